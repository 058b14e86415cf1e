"""A model that converses in nonsense, for everything that is a way into a conversation."""

import re
import string

import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from toolkit.models.storage import load_model, save_model
from toolkit.tokenization import CharacterTokenizer
from toolkit.tokenization.special import ASSISTANT

MESSAGES = ["She eats", "म केटा", "Where do you go?"]
SHORT = ("--max-new-tokens", 6)
# Whatever is written in these tokens is read in the same ones again, though it is nonsense.
LETTERS = CharacterTokenizer("".join([*ENGLISH, *NEPALI, string.ascii_letters, string.punctuation, "\n"]))


@pytest.fixture(scope="session")
def chatty(make_gpt, tmp_path_factory):
    """A model that answers nonsense, as if it had been taught to converse: every reply begins with a space."""
    directory = make_gpt(tmp_path_factory.mktemp("models") / "chatty", LETTERS, template="control", max_length=64)
    model = load_model(directory)
    table = model.trunk.input.embedding.table.data
    table[ASSISTANT] = 100 * table[LETTERS.encode(" ")[0]]
    save_model(model, directory)
    return directory


@pytest.fixture
def chat(run, chatty):
    """Run `toolkit chat` with that model."""
    return lambda *arguments, **options: run("chat", "--model", chatty, *arguments, **options)


@pytest.fixture
def session(chatty):
    """What the library makes of a conversation of short replies."""
    return toolkit.load(chatty).chat(max_new_tokens=6)


def one_line(text):
    return re.sub(r"[\r\n]+", " ", text)
