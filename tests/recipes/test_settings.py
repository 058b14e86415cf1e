"""Settings as flags, as keywords and out of a file are the same settings; mistakes are told in a sentence."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from toolkit.commands.train import Training
from toolkit.errors import ConfigError, ModelError
from toolkit.models.gpt import GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.recipes import recipe_of
from toolkit.recipes.recipe import Recipe
from toolkit.recipes.settings import settings_of
from toolkit.training.config import TrainingConfig

BOTH = [
    ("translation", "", {}),
    ("translation", "--reverse --seeds 3 4", {"reverse": True, "seeds": np.array([3, 4])}),
    ("translation", "--source a --target b --num-beams 1", {"source": "a", "target": ["b"], "num_beams": 1}),
    ("translation", "--data a.tsv b.tsv --weights 1 0.5", {"data": ("a.tsv", "b.tsv"), "weights": [1, 0.5]}),
    ("translation", "--preset everyday --data a.tsv", {"preset": "everyday", "data": "a.tsv"}),
    ("language-model", "--preset nanogpt-cpu", {"preset": "nanogpt-cpu"}),
    ("language-model", "--preset chat --model.layers 2", {"preset": "chat", "model": {"layers": 2}}),
    ("language-model", "--text a b --prompt x", {"text": [Path("a"), "b"], "prompt": "x"}),
    ("language-model", "--data a", {"data": Path("a"), "text": []}),
    ("chat", "--template plain", {"template": "plain"}),
    ("chat", "--conversations a --start b", {"conversations": Path("a"), "start": Path("b")}),
    ("chat", "--conversations a --tests b", {"conversations": ["a"], "tests": "b"}),
    ("chat", "--no-tests --export x", {"tests": None, "export": "x"}),
    ("preference", "--method dpo --dpo.beta 1", {"method": "dpo", "dpo": {"beta": 1}}),
    ("preference", "--reward a --preferences b", {"reward": "a", "preferences": "b"}),
    ("preference", "--no-tests --preferences b --tests c", {"preferences": "b", "tests": "c"}),
    ("autoencoder", "--sentences 5 --quiet", {"sentences": np.int64(5), "quiet": True}),
    ("residual-swish", "--model.no-bias --length 3 --resume", {"model": {"bias": False}, "length": 3, "resume": True}),
]  # fmt: skip


def from_words(kind: str, words: str) -> Recipe:
    return Training.read(kind, "program", words.split(), "").recipe


def from_keywords(kind: str, **given: Any) -> Recipe:
    return settings_of(recipe_of(kind).Settings, given)


@pytest.mark.parametrize(("kind", "words", "given"), BOTH, ids=[f"{kind} {words}" for kind, words, _ in BOTH])
def test_flags_keywords_and_a_file_give_the_same(kind: str, words: str, given: dict[str, Any], tmp_path: Path) -> None:
    recipe = from_words(kind, words)
    assert from_keywords(kind, **given) == recipe
    (tmp_path / "settings.json").write_text(json.dumps(recipe.settings({"text": "0123"})))
    of_this_run = {name: getattr(recipe, name) for name in ("run", "resume", "seeds", "export", "quiet")}
    for path in (tmp_path, str(tmp_path / "settings.json")):
        assert replace(from_keywords(kind, config=path), config=None, **of_this_run) == recipe


def test_a_group_is_its_class_too() -> None:
    model, training = GPTConfig(layers=3), TrainingConfig(updates=5)
    recipe = from_keywords("chat", model=model, training=training)
    assert (recipe.model, recipe.training) == (model, training)
    assert from_keywords("chat", **{"training.updates": 5}) == from_keywords("chat", training={"updates": 5})


def test_what_is_given_beside_a_file_wins(tmp_path: Path) -> None:
    words = "--preset nanogpt-cpu --text a.txt --model.layers 2 --training.seed 3"
    (tmp_path / "settings.json").write_text(json.dumps(from_words("language-model", words).settings({})))
    recipe = from_words("language-model", f"--config {tmp_path} --training.seed 4 --text b.txt")
    assert recipe == replace(from_words("language-model", f"{words} --training.seed 4 --text b.txt"), config=tmp_path)
    assert recipe == from_keywords("language-model", config=tmp_path, training={"seed": 4}, text="b.txt")
    assert recipe.model == replace(PRESETS["nanogpt-cpu"], layers=2)
    with pytest.raises(ConfigError, match=r"settings\.json is of --preset nanogpt-cpu, not chat: leave out one"):
        from_words("language-model", f"--config {tmp_path} --preset chat")
    (tmp_path / "settings.json").write_text(json.dumps(from_words("preference", "--reward a").settings({})))
    with pytest.raises(ConfigError, match=r"settings\.json is of --method ppo, not dpo: leave out one"):
        from_keywords("preference", config=tmp_path, method="dpo")


def test_a_file_of_an_older_version_is_read_by_the_names_of_today(tmp_path: Path) -> None:
    old = {"preset": "", "model": {"width": 32, "heads": 2, "norm": "rms"}, "tables": ["a.tsv"]}
    (tmp_path / "settings.json").write_text(json.dumps(old))
    recipe = from_words("language-model", f"--config {tmp_path}")
    assert (recipe.model.d_model, recipe.model.num_heads, recipe.model.norm) == (32, 2, "rms")
    assert (recipe.data, recipe.documents) == (("a.tsv",), "blank")
    assert recipe.training == from_words("language-model", "--data a.tsv").training  # what it does not say is default


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"updates": 5}, "there is no setting 'updates': did you mean 'training.updates'?"),
        ({"sorce": "a"}, "there is no setting 'sorce': did you mean 'source'?"),
        ({"training": {"learing_rate": 1}}, "'training.learing_rate': did you mean 'training.learning_rate'?"),
        ({"trainign": {}}, "there is no setting 'trainign': did you mean 'training'?"),
        ({"xyzzy": 1}, "there is no setting 'xyzzy'$"),
        ({"deciding": ()}, "there is no setting 'deciding'"),
    ],
)
def test_a_name_that_there_is_not_is_told_with_the_nearest(given: dict[str, Any], told: str) -> None:
    with pytest.raises(TypeError, match=told):
        from_keywords("translation", **given)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"training": {"updates": "5"}}, r"training\.updates is '5': it must be a whole number"),
        ({"training": {"updates": 5.0}}, r"training\.updates is 5\.0: it must be a whole number"),
        ({"training": {"updates": 10**400}}, r"training\.updates is 10+: it must be a whole number"),
        ({"training": {"learning_rate": 10**400}}, r"training\.learning_rate is 10+: it must be a finite number"),
        ({"training": {"updates": True}}, r"training\.updates is True: it must be a whole number"),
        ({"training": {"updates": 0}}, r"updates is 0: it must be at least 1"),
        ({"training": {"learning_rate": float("nan")}}, r"training\.learning_rate is nan: it must be a finite number"),
        ({"training": 5}, r"training is 5: give a mapping, or TrainingConfig"),
        ({"model": TrainingConfig()}, r"model is TrainingConfig\(.*: give a mapping, or Seq2SeqConfig"),
        ({"reverse": 1}, r"reverse is 1: it must be True or False"),
        ({"tokenizer": "words"}, r"tokenizer is 'words': it must be one of unigram, bpe"),
        ({"tokenizer": ["bpe"]}, r"tokenizer is \['bpe'\]: it must be one of unigram, bpe"),
        ({"source": [1]}, r"source is 1: it must be a path"),
        ({"run": None}, r"run is None: it must be a path"),
        ({"source_column": b"en"}, r"source_column is b'en': it must be a text"),
        ({"config": "no-such-file"}, r"no-such-file does not exist"),
    ],
)
def test_a_value_of_another_type_is_told(given: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigError, match=told):
        from_keywords("translation", **given)


@pytest.mark.parametrize(
    ("content", "error", "told"),
    [
        ('{"source": ', ModelError, "is damaged: it is not JSON"),
        ("[1]", ModelError, r"is damaged: it is \[1\], not an object"),
        (
            '{"conversations": []}',
            ConfigError,
            "has 'conversations', .*: is it of another recipe",
        ),
        ('{"model": {"d_modl": 1}}', ConfigError, "has 'model.d_modl', .*: did you mean 'model.d_model'"),
        ('{"model": {"d_model": 9, "num_heads": 2}}', ConfigError, r"settings\.json: d_model 9 cannot be divided"),
        (
            '{"training": {"seed": "a"}}',
            ConfigError,
            r"settings\.json: training\.seed is 'a': it must be a",
        ),
        ('{"training": {"updates": {"a": 1}}}', ConfigError, "has 'training.updates.a', which is no setting"),
        ('{"run": "elsewhere"}', ConfigError, "has 'run', which no run writes there: take it out"),
        ('{"training": null}', ConfigError, r"settings\.json: training is None: give a mapping"),
    ],
)
def test_a_file_that_is_wrong_is_told_with_its_name(content: str, error: type, told: str, tmp_path: Path) -> None:
    (tmp_path / "settings.json").write_text(content)
    with pytest.raises(error, match=told):
        from_words("translation", f"--config {tmp_path}")


def test_what_decides_about_others_is_checked_first(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"method is \['dpo'\]: it must be one of reward, ppo, dpo"):
        from_keywords("preference", method=["dpo"])
    (tmp_path / "settings.json").write_text('{"method": {"dpo": ["a"]}}')
    with pytest.raises(ConfigError, match="no setting here"):
        from_words("preference", f"--config {tmp_path}")
    (tmp_path / "settings.json").write_text('{"method": ["dpo"]}')
    with pytest.raises(ConfigError, match=r"settings\.json: method is \['dpo'\]: it must be one of"):
        from_words("preference", f"--config {tmp_path}")
