"""A model that converses in nonsense, for everything that is a way into a conversation."""

import re
import string

import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from toolkit.tokenization import CharacterTokenizer

MESSAGES = ["She eats", "म केटा", "Where do you go?"]
SHORT = ("--max-new-tokens", 6)
# Whatever is written in these tokens is read in the same ones again, though it is nonsense.
LETTERS = CharacterTokenizer("".join([*ENGLISH, *NEPALI, string.ascii_letters, string.punctuation, "\n"]))


@pytest.fixture(scope="session")
def chatty(make_gpt, tmp_path_factory):
    """A model that answers nonsense, as if it had been taught to converse."""
    return make_gpt(tmp_path_factory.mktemp("models") / "chatty", LETTERS, template="control", max_length=64)


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
