import shutil
from pathlib import Path

import numpy as np
import pytest

import toolkit
from toolkit.commands.models import Average
from toolkit.errors import ConfigError, ModelError
from toolkit.models.storage import load_model, read_metrics, save_metrics, save_model


@pytest.fixture
def run(tiny_model: Path, tmp_path: Path) -> Path:
    """A run with three checkpoints, whose weights are 0, 1 and 5 more than the tiny model's."""
    path = tmp_path / "run"
    path.mkdir()
    (path / "settings.json").write_text("{}")
    for number, by in ((2, 0.0), (10, 1.0), (400, 5.0)):
        step = shutil.copytree(tiny_model, path / f"step-{number:06d}")
        (step / "training").mkdir()
        model = load_model(step)
        for value in model.arrays().values():
            value += np.float32(by)
        save_model(model, step)
        save_metrics(step, {"update": number, "validation": {"chrf": number / 10}})
    (path / "best").write_text("step-000010\n")
    return path


def more_than(tiny: Path, averaged: Path) -> float:
    """By how much the weights of a model exceed the tiny one's."""
    one, other = load_model(tiny).arrays(), load_model(averaged).arrays()
    return float(np.mean([np.mean(other[name] - one[name]) for name in one]))


@pytest.mark.parametrize(("last", "expected"), [(0, 2.0), (2, 3.0), (9, 2.0)])
def test_the_checkpoints_of_a_run(run: Path, tiny_model: Path, tmp_path: Path, last: int, expected: float) -> None:
    output = tmp_path / "average"
    Average((str(run),), output, last).run()
    assert more_than(tiny_model, output) == pytest.approx(expected, abs=1e-5)
    assert (output / "tokenizer.model").read_bytes() == (tiny_model / "tokenizer.model").read_bytes()
    assert sorted(path.name for path in output.iterdir()) == sorted(path.name for path in tiny_model.iterdir())
    assert isinstance(toolkit.load(output).translate("I am a boy."), str)


def test_several_models_and_what_they_were(run: Path, tiny_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "average"
    parts = [str(tiny_model), str(run / "step-000400")]
    Average(tuple(parts), output, half=True).run()
    assert more_than(tiny_model, output) == pytest.approx(2.5, abs=1e-2)
    assert read_metrics(output)["average_of"] == parts
    assert (output / "model.safetensors").stat().st_size < 0.6 * (tiny_model / "model.safetensors").stat().st_size


def test_a_model_and_one_that_went_on_from_it(run: Path, tiny_model: Path, tmp_path: Path) -> None:
    before, longer = run / "step-000002", run / "step-000400"
    (before / "words.txt").write_text("Devanagari\none\n")
    (before / "confidence.json").write_text("{}")
    (longer / "words.txt").write_text("Devanagari\none\ntwo\n")
    shutil.copytree(tiny_model, longer / "names")
    output = tmp_path / "average"
    Average((str(longer), str(longer), str(before)), output).run()
    assert more_than(tiny_model, output) == pytest.approx(10 / 3, abs=1e-5)
    assert (output / "words.txt").read_bytes() == (longer / "words.txt").read_bytes()
    assert load_model(output / "names").config == load_model(tiny_model).config
    assert not (output / "confidence.json").exists()  # which was of the other's weights
    (longer / "tokenizer.model").write_bytes(b"of others")
    with pytest.raises(ModelError, match="their tokenizers differ"):
        Average((str(longer), str(before)), tmp_path / "other").run()


def test_what_cannot_be_averaged(run: Path, tiny_model: Path, tmp_path: Path) -> None:
    output = tmp_path / "average"
    with pytest.raises(ConfigError, match="is one model: an average needs two or more"):
        Average((str(tiny_model),), output).run()
    with pytest.raises(ConfigError, match="--last is -1"):
        Average((str(run),), output, -1).run()
    (run / "step-000400" / "model.safetensors").write_bytes(b"")
    with pytest.raises(ModelError, match=r"step-000400.model\.safetensors is damaged"):
        Average((str(run),), output).run()
    (tmp_path / "empty").mkdir()
    (tmp_path / "empty" / "settings.json").write_text("{}")
    with pytest.raises(ModelError, match="is a run without checkpoints"):
        Average((str(tmp_path / "empty"),), output).run()
    assert not output.exists()


def test_an_existing_directory_is_not_replaced(run: Path, tmp_path: Path) -> None:
    (tmp_path / "letter.txt").write_text("mine")
    for output in (tmp_path, tmp_path / "letter.txt", run):
        with pytest.raises(ConfigError, match="already exists: choose another --output"):
            Average((str(run),), output).run()
    assert (tmp_path / "letter.txt").read_text() == "mine"
