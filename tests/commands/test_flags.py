"""A mistake in flags is one sentence that names the flag; what is right reaches the dataclass."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from tyro.conf import Positional

from toolkit.commands.flags import parse_flags
from toolkit.errors import ConfigError


@dataclass
class Inner:
    learning_rate: float = 0.1
    warm_up: int = 3
    clip: float = 1.0
    tie: bool = True


@dataclass
class Recipe:
    """What it is for. It has nothing to do with --elsewhere."""

    first: Positional[Path]
    second: Positional[Path]
    where: Path
    kind: Literal["unigram", "bpe"] = "unigram"
    beams: int = 1
    workers: int | None = None
    many: list[int] = field(default_factory=list)
    shares: tuple[float, ...] = ()
    loud: bool = False
    training: Inner = field(default_factory=Inner)


GOOD = ["a", "b", "--where", "c"]


def test_what_is_right_is_read():
    flags = [
        "--kind",
        "bpe",
        "--loud",
        "--training.learning-rate",
        "1e-3",
        "--training.warm_up=7",
        "--many",
        "1",
        "2",
        "--shares",
        "0.5",
    ]
    read = parse_flags(Recipe, "it", [*GOOD, *flags])
    assert read == Recipe(Path("a"), Path("b"), Path("c"), "bpe", 1, None, [1, 2], (0.5,), True, Inner(1e-3, 7))


@pytest.mark.parametrize(
    ("flags", "sentence"),
    [
        (["--beam", "3"], "there is no flag --beam: did you mean --beams?"),
        (["--beam=3"], "there is no flag --beam: did you mean --beams?"),
        (["--Beems"], "there is no flag --Beems: did you mean --beams?"),
        (["--learning-rte", "1"], "there is no flag --learning-rte: did you mean --training.learning-rate?"),
        (["--training.lr", "1"], "there is no flag --training.lr: did you mean --training.learning-rate?"),
        (["--ppo.discount", "1"], "there is no flag --ppo.discount"),  # nor is there a --ppo.gamma here
        (["--lr", "1"], "there is no flag --lr: did you mean --training.learning-rate?"),
        (["--training.learn", "1"], "there is no flag --training.learn: did you mean --training.learning-rate?"),
        (["--training.batch", "1"], "there is no flag --training.batch"),
        (["--warm_up", "1"], "there is no flag --warm_up: did you mean --training.warm-up?"),
        (["--loud", "true"], "'true' is a word too many: a flag is on by itself, and off as --no-…"),
        (["--colour", "red", "--shape"], "there is no flag --colour"),
        (["--elsewhere"], "there is no flag --elsewhere"),
        (["-x"], "there is no flag -x"),
        (["--beams", "three"], "--beams is 'three': it must be a whole number"),
        (["--beams", "1.5"], "--beams is '1.5': it must be a whole number"),
        (["--beams="], "--beams is '': it must be a whole number"),
        (["--training.learning-rate", "fast"], "--training.learning-rate is 'fast': it must be a number"),
        (["--workers", "two"], "--workers is 'two': it must be a whole number"),
        (["--beams", "it's"], '--beams is "it\'s": it must be a whole number'),
        (["--many", "1", "two", "3.5"], "--many has 'two' in it: give whole numbers"),
        (["--shares", "1e-3", "a half"], "--shares has 'a half' in it: give numbers"),
        (["--kind", "words"], "--kind is 'words': it must be one of unigram, bpe"),
        (["--beams"], "--beams needs a value"),
        (["c"], "'c' is a word too many"),
    ],
)
def test_a_mistake_is_named(flags, sentence):
    with pytest.raises(ConfigError) as caught:
        parse_flags(Recipe, "the recipe", [*GOOD, *flags] if flags != ["c"] else ["a", "b", "c", "--where", "d"])
    found = str(caught.value).removesuffix(" (see the recipe --help)")
    if ":" in sentence or not sentence.startswith("there is no flag"):
        assert found == sentence
    else:
        assert found.split(":")[0] == sentence


@pytest.mark.parametrize(
    ("flags", "missing"),
    [
        ([], "first and second and --where are missing"),
        (["a"], "second and --where are missing"),
        (["a", "b"], "--where is missing"),
        (["a", "--where", "b"], "second is missing"),
    ],
)
def test_what_is_missing_is_named(flags, missing):
    with pytest.raises(ConfigError, match=missing):
        parse_flags(Recipe, "it", flags)


@pytest.mark.parametrize("flags", [["--lod"], ["--lod", "a"], ["a", "--lod"], ["--lod=3", "a", "b"]])
def test_a_misspelt_flag_is_named_before_a_word_that_is_missing(flags):
    with pytest.raises(ConfigError, match="there is no flag --lod: did you mean --loud"):
        parse_flags(Recipe, "it", flags)


def test_a_long_word_is_not_broken():
    word = "x" * 200 + " " + "y" * 200
    with pytest.raises(ConfigError) as caught:
        parse_flags(Recipe, "it", [*GOOD, "--kind", word])
    assert f"--kind is {word!r}" in str(caught.value)


@pytest.mark.parametrize(
    ("flags", "loud", "tie"),
    [
        ([], False, True),
        (["--loud"], True, True),
        (["--loud", "--no-loud"], False, True),
        (["--training.no-tie"], False, False),
        (["--no-training.tie"], False, False),
        (["--no-training.tie", "--training.tie"], False, True),
    ],
)
def test_what_is_on_or_off_has_both_spellings(flags, loud, tie):
    read = parse_flags(Recipe, "it", [*GOOD, *flags])
    assert (read.loud, read.training.tie) == (loud, tie)
