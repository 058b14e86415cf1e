"""What an interpreter shows of an object: one line that says what it is, however much is in it."""

import dataclasses
import gc
import inspect
import re
from importlib import import_module

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from tests.training.small import small_task
from toolkit.cli import KINDS
from toolkit.decoding import ContinuationConfig, GenerationConfig, PrefixCache, generate
from toolkit.display import short_repr
from toolkit.explain.decoding import translation_page
from toolkit.models.gpt import GPTConfig, text_batch
from toolkit.models.reward import RewardConfig
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Recorder, Tape
from toolkit.recipes import recipe_of
from toolkit.recipes.recipe import Recipe
from toolkit.tokenization import Tokenizer
from toolkit.training.optimizer import Adam, Muon
from toolkit.training.task import Task

ROOMS = ("", *(f".{room}" for room in ("chat", "data", "decoding", "evaluation", "interop", "preference", "proof")))
ROOMS += (".tokenization", ".explain", ".recipes", ".models", ".nn", ".training")


def named_public():
    """All classes that a package names in `__all__`, and those that a loop of one's own is made of."""
    for room in ROOMS:
        package = import_module(f"toolkit{room}")
        for name in getattr(package, "__all__", ()):
            if inspect.isclass(found := getattr(package, name)) and not hasattr(found, "__total__"):
                yield found
    for kind in KINDS:
        recipe_of(kind)
    families = [Module, Tokenizer, Task, Recipe]
    while families:
        yield (family := families.pop())
        families += [each for each in family.__subclasses__() if each.__module__.startswith("toolkit.")]


def test_no_public_class_is_shown_by_its_address():
    found = {each for each in named_public() if each.__repr__ is object.__repr__}
    assert found == set()
    # A dataclass that inherits from one has the long form again, unless it is told otherwise.
    inherited = {each for each in named_public() if dataclasses.is_dataclass(each) and issubclass(each, Recipe)}
    assert len(inherited) == 7
    assert {each.__repr__ for each in inherited} == {short_repr}
    assert RewardConfig.__repr__ is GPTConfig.__repr__ is short_repr


def of_the_toolkit(*roots):
    """All objects of public classes that one can reach from some."""
    seen, left = {}, list(roots)
    while left:
        each = left.pop()
        if id(each) in seen or inspect.isclass(each) or inspect.ismodule(each) or inspect.isroutine(each):
            continue
        seen[id(each)] = each
        left += gc.get_referents(each)
    public = {*named_public()}
    rooms = (
        "toolkit.outputs",
        "toolkit.chat",
        "toolkit.models",
        "toolkit.nn.tape",
        "toolkit.pages",
    )
    return [each for each in seen.values() if type(each) in public or type(each).__module__.startswith(rooms)]


def test_everything_that_a_session_leaves_is_shown_in_one_short_line(tiny_model, tiny_gpt, tmp_path):
    translator, model = toolkit.load(tiny_model), toolkit.load(tiny_gpt)
    translations = translator.translate_n([*ENGLISH] * 5, num_beams=2, num_return_sequences=2, alignments=True)
    chat = model.chat(template="plain", max_new_tokens=4)
    chat.send("I am a boy")
    batch, recorder = text_batch([np.arange(16, 30)] * 40), Recorder()
    tape = Tape(model.model.views(np.zeros_like(model.model.vector)), recorder=recorder)
    model.model.loss(batch, tape)
    objects = of_the_toolkit(
        translator, translations, model, chat, chat.prompt("She"), tape, recorder, batch, Adam(), Muon(),
        model.generate_n(["I am"], num_return_sequences=3), translation_page(translator, NEPALI[0]),
        generate(model.model, [[20] * 9]), GPTConfig(**dict.fromkeys(("d_model", "d_ff"), 512)), small_task(),
        GenerationConfig(num_beams=4), ContinuationConfig(**WIDE), PrefixCache(model.model), Rows(np.arange(1, 900)),
    )  # fmt: skip
    assert len({type(each) for each in objects}) > 40
    for each in objects:
        shown = repr(each)
        assert len(shown) < 500, shown
        assert "\n" not in shown
        assert not re.search(r"object at 0x", shown), shown


WIDE = {"temperature": 1.23, "top_k": 3, "top_p": 0.5, "min_p": 0.25, "max_new_tokens": 77, "seed": 4}


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (lambda: GenerationConfig(num_beams=4), "GenerationConfig(num_beams=4)"),
        (lambda: Rows(np.array([3, 4])), "<Rows: 7 rows of 2 sequences>"),
        (lambda: Tape(), "<Tape: keeps nothing>"),
        (lambda: Tape({}), "<Tape: 0 saved values>"),
        (lambda: Recorder(), "<Recorder: 0 records>"),
        (lambda: toolkit.tokenization.ByteTokenizer(), "<ByteTokenizer: 272 tokens>"),
        (lambda: toolkit.nn.layers.Linear(3, 2), "<Linear: 8 parameters>"),
        (lambda: toolkit.nn.layers.Linear(3, 2).weight, "<Parameter: (3, 2)>"),
        (lambda: toolkit.nn.memory.Pool(), "<Pool: 0 bytes>"),
        (lambda: toolkit.data.Example([5] * 99, [6]), "Example(source=99 items, target=[6])"),
        (lambda: toolkit.load("en-ne-small").model.config, "Seq2SeqConfig(vocab_size=2000, d_model=128, num_heads=4, "),
    ],
)
def test_what_is_shown(make, shown):
    assert repr(make()).startswith(shown)


def test_a_shown_config_can_be_read_again():
    config = ContinuationConfig(**WIDE)
    assert eval(repr(config)) == config


def test_long_and_hostile_contents_stay_short():
    ids, text = [7] * 9000, "b" * 9000
    reply = toolkit.outputs.Continuation("a\n\x1b[2J" * 500, text, ids, [*text], [0.0], -1.0, -1.0, "stop")
    assert len(repr(reply)) < 300
    assert not re.search(r"[\x00-\x1f]", repr(reply))
