"""Averages of weights: the exponential one that training keeps, and the mean of several models."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tests.training.small import after_update, bits, log, press_ctrl_c, small_trainer
from toolkit.errors import ModelError
from toolkit.models.storage import load_model, save_model
from toolkit.training.checkpoint import average_models, read_checkpoint
from toolkit.training.optimizer import BLOCK_ELEMENTS, move_average
from toolkit.training.task import Evaluation
from toolkit.training.trainer import Trainer

EMA = {"ema": 0.3, "dropout": 0.2, "learning_rate": 0.01}


def test_a_moving_average_against_its_formula() -> None:
    rng = np.random.default_rng(0)
    average = rng.standard_normal(BLOCK_ELEMENTS + 3)
    expected = average.copy()
    for step in range(1, 6):
        theta = rng.standard_normal(len(average))
        kept = theta.copy()
        move_average(average, theta, step, 0.25)
        decay = [2 / 11, 3 / 12, 0.25, 0.25, 0.25][step - 1]
        expected = decay * expected + (1 - decay) * theta
        np.testing.assert_array_equal(theta, kept)
    np.testing.assert_allclose(average, expected, rtol=1e-12)


def watched(path: Path, **settings) -> tuple[Trainer, np.ndarray]:
    """A trained trainer, and the average of its parameters computed on the side."""
    trainer = small_trainer(path, **{**EMA, **settings})
    update, averages = trainer.workers.update, []

    def update_and_average(step: int, *rest: float) -> None:
        if not averages:
            averages.append(trainer.model.vector.astype(np.float64))
        update(step, *rest)
        decay = min(0.3, (1 + step) / (10 + step))
        averages[0] = decay * averages[0] + (1 - decay) * trainer.model.vector

    trainer.workers.update = update_and_average
    trainer.train()
    return trainer, averages[0]


@pytest.mark.parametrize("workers", [1, 2])
def test_the_average_is_stored_and_the_parameters_beside_it(tmp_path: Path, workers: int) -> None:
    trainer, average = watched(tmp_path / "run", workers=workers)
    saved = read_checkpoint(tmp_path / "run" / "step-000006")
    np.testing.assert_allclose(saved.model.vector, average, atol=1e-6)
    assert saved.raw.tobytes() == trainer.model.vector.tobytes()
    assert np.abs(saved.raw - saved.model.vector).max() > 1e-4


def test_the_average_is_what_is_validated(tmp_path: Path) -> None:
    evaluated = []

    def evaluate(model) -> Evaluation:
        evaluated.append(model.vector.copy())
        return Evaluation({"chrf": 0.5}, [])

    trainer, average = watched(tmp_path / "run", evaluate=evaluate)
    np.testing.assert_allclose(evaluated[-1], average, atol=1e-6)
    other = small_trainer(tmp_path / "other")
    other.model.vector[:] = evaluated[-1]
    with other.workers:
        sums = other.validation_loss()
    assert trainer.state.scores["loss"] == pytest.approx(sums.negative_log_likelihood / sums.tokens, rel=1e-6)


def test_averaging_does_not_change_training(tmp_path: Path) -> None:
    plain, averaged = (small_trainer(tmp_path / str(ema), **{**EMA, "ema": ema}) for ema in (0.0, 0.9))
    assert plain.workers.shared.average is None
    plain.train()
    averaged.train()
    assert plain.model.vector.tobytes() == averaged.model.vector.tobytes()


def test_the_number_of_workers_changes_rounding_only(tmp_path: Path) -> None:
    averages = []
    for workers in (1, 2):
        trainer = small_trainer(tmp_path / str(workers), ema=0.3, workers=workers, eps=1e-3)
        trainer.train()
        averages.append(trainer.workers.shared.average)
    np.testing.assert_allclose(*averages, atol=1e-5)


@pytest.mark.parametrize("workers", [1, 2])
def test_resuming_equals_not_stopping(tmp_path: Path, workers: int) -> None:
    whole = small_trainer(tmp_path / "whole", workers=workers, **EMA)
    whole.train()
    interrupted = small_trainer(tmp_path / "parts", workers=workers, **EMA)
    after_update(interrupted, 3, press_ctrl_c)
    interrupted.train()
    resumed = small_trainer(tmp_path / "parts", workers=workers, create=False, **EMA)
    resumed.train(resumed.run.resume())
    assert len(bits(whole)) == 4
    assert bits(resumed) == bits(whole)
    assert log(tmp_path / "parts", "validation") == log(tmp_path / "whole", "validation")
    one, other = (load_model(tmp_path / name / "step-000006").vector for name in ("parts", "whole"))
    assert one.tobytes() == other.tobytes()


def test_a_checkpoint_without_an_average_is_not_continued_with_one(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run", updates=1).train()
    trainer = small_trainer(tmp_path / "run", updates=1, ema=0.5, create=False)
    with pytest.raises(ModelError, match="belongs to another run"):
        trainer.train(trainer.run.resume())


def moved(tiny: Path, where: Path, by: float) -> Path:
    """A copy of a model, all of its weights larger by something."""
    shutil.copytree(tiny, where)
    model = load_model(where)
    for value in model.arrays().values():
        value += np.float32(by)
    save_model(model, where)
    return where


def test_the_mean_of_models(tiny_model: Path, tmp_path: Path) -> None:
    others = [moved(tiny_model, tmp_path / str(by), by) for by in (1.0, 5.0)]
    model, first = average_models([tiny_model, *others]), load_model(tiny_model)
    for name, value in model.arrays().items():
        np.testing.assert_allclose(value, first.arrays()[name] + 2.0, rtol=1e-6)
    assert model.vector.dtype == np.float32
    assert average_models([tiny_model, tiny_model, tiny_model]).vector.tobytes() == first.vector.tobytes()


def test_models_of_other_settings_are_refused(tiny_model: Path, tmp_path: Path, make_model: Callable) -> None:
    other = make_model(tmp_path / "other", norm_position="post", positions="learned")
    with pytest.raises(ModelError, match=r"cannot be averaged: they differ in norm_position, positions"):
        average_models([tiny_model, other])


def test_models_of_another_tokenizer_are_refused(tiny_model: Path, tmp_path: Path) -> None:
    other = moved(tiny_model, tmp_path / "other", 0.0)
    (other / "tokenizer.model").write_bytes(b"another")
    with pytest.raises(ModelError, match="cannot be averaged: their tokenizers differ"):
        average_models([tiny_model, other])
