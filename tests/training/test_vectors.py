"""Vectors as a task: sums over rows that do not depend on how the rows are divided."""

import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.training.config import TrainingConfig
from toolkit.training.task import add_sums
from toolkit.training.vectors import Vectors, VectorSums, VectorTask, check_training, standardized

WIDTH = 8


def vectors(seed: int, *lengths: int) -> Vectors:
    x, target = np.random.default_rng(seed).standard_normal((2, sum(lengths), WIDTH))
    return Vectors(x, target, np.array(lengths))


@pytest.fixture
def task() -> VectorTask:
    return VectorTask(vectors(0, 3, 1, 4, 1, 5, 9, 2, 6, 5, 3), vectors(1, 2, 7, 1), 1 / WIDTH)


@pytest.fixture
def model() -> AutoEncoder:
    model = AutoEncoder(AutoEncoderConfig(d_model=WIDTH, num_heads=2, d_ff=12))
    model.allocate(np.float64)
    model.initialize(np.random.default_rng(0))
    return model


@pytest.mark.parametrize(("tokens", "count"), [(1, 10), (10, 4), (39, 1), (1000, 1)])
def test_an_epoch_has_every_sequence_once_and_as_many_batches_as_any_other(
    task: VectorTask, tokens: int, count: int
) -> None:
    epochs = [task.batches(epoch, tokens, seed=1) for epoch in range(5)]
    for batches in epochs:
        assert len(batches) == count
        assert sorted(np.concatenate([batch.numbers for batch in batches])) == list(range(10))
        for batch in batches:
            assert (np.diff(task.sets["train"].lengths[batch.numbers]) >= 0).all()
    again = task.batches(3, tokens, seed=1)
    assert all((one.numbers == other.numbers).all() for one, other in zip(epochs[3], again, strict=True))
    if tokens == 10:
        assert len({tuple(batches[0].numbers) for batches in epochs}) > 1


def test_the_sums_are_those_of_the_rows_however_they_are_divided(task: VectorTask, model: AutoEncoder) -> None:
    share = task.batches(0, 1000, 1)[0]
    gradients = []
    for parts in ([share], task.split(share, 3), task.split(share, 12)):
        views = model.views(np.zeros_like(model.vector))
        sums = [task.loss(model, part, Tape(views)) for part in parts]
        total = add_sums(sums)
        assert type(total) is VectorSums
        gradients.append([gradient.copy() for gradient in views.values()])
        assert total.tokens == 39
        np.testing.assert_allclose(total, task.loss(model, share, Tape()), rtol=1e-10)
    for one, *others in zip(*gradients, strict=True):
        for other in others:
            np.testing.assert_allclose(other, one, rtol=1e-8, atol=1e-12)


def test_scores_are_the_mean_squared_error_and_the_mean_distance(task: VectorTask, model: AutoEncoder) -> None:
    inputs, targets, lengths = task.sets["valid"]
    errors = []
    for end, length in zip(np.cumsum(lengths), lengths, strict=True):
        rows = slice(end - length, end)
        errors.append(model.forward(inputs[rows], Rows(np.array([length])), Tape()) - targets[rows])
    errors = np.concatenate(errors)
    scores = task.evaluated(model, "valid", 4)
    assert scores["loss"] == pytest.approx(np.mean(errors**2), rel=1e-10)
    assert scores["distance"] == pytest.approx(np.linalg.norm(errors, axis=1).mean(), rel=1e-10)


def test_to_give_back_the_mean_of_a_standardized_row_scores_one() -> None:
    x = standardized(np.random.default_rng(0).exponential(size=(7, 16)) * 5 + 3)
    np.testing.assert_allclose(x.mean(axis=1), 0, atol=1e-12)
    np.testing.assert_allclose(np.mean((x - x.mean(axis=1, keepdims=True)) ** 2, axis=1), 1, rtol=1e-12)


@pytest.mark.parametrize("setting", [{"best_by": "chrf"}, {"label_smoothing": 0.1}, {"subword_alpha": 0.1}])
def test_settings_that_squared_error_has_no_use_for(setting: dict) -> None:
    plain = {"best_by": "loss", "label_smoothing": 0.0}
    check_training(TrainingConfig(**plain))
    with pytest.raises(ConfigError, match="leave out"):
        check_training(TrainingConfig(**{**plain, **setting}))
