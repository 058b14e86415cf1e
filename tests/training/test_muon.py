"""Muon: what it does to a matrix, to which parameters, and that workers divide it among themselves."""

import numpy as np
import pytest

from tests.checks import small_config, small_gpt_config
from tests.training.small import build_small, small_task
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.training.config import TrainingConfig
from toolkit.training.muon import Muon, divided, make_optimizer, orthogonalized
from toolkit.training.optimizer import Adam
from toolkit.training.workers import Workers

MODELS = {
    "translator": lambda: Seq2Seq(small_config()),
    "language model": lambda: GPT(small_gpt_config(key_value_heads=2, activation="swiglu", norm="rms")),
}


@pytest.mark.parametrize("shape", [(1, 5), (4, 4), (6, 15), (15, 6), (32, 128)])
def test_every_direction_becomes_about_equally_long(shape) -> None:
    matrix = np.random.default_rng(0).standard_normal(shape)
    left, lengths, right = np.linalg.svd(matrix, full_matrices=False)
    assert lengths.min() > 0.01 * lengths.max()
    for size in (1e-12, 1.0, 1e12):
        found = left.T @ orthogonalized(matrix * size) @ right.T
        np.testing.assert_allclose(found, np.diag(np.diag(found)), atol=1e-9)  # the directions stay as they were
        assert (np.diag(found) > 0.6).all()
        assert (np.diag(found) < 1.25).all()
    assert (orthogonalized(np.zeros(shape)) == 0).all()


def test_against_the_formula() -> None:
    """Two steps of every parameter, the maps one by one, as the docstrings have it."""
    rng = np.random.default_rng(1)
    model = MODELS["language model"]()
    model.allocate(np.float64)
    model.vector[:] = rng.standard_normal(len(model.vector))
    before = {name: value.copy() for name, value in model.arrays().items()}
    gradients = rng.standard_normal((2, len(model.vector)))
    muon = Muon(Adam(weight_decay=0.1), momentum=0.9)
    moments = np.zeros_like(model.vector), np.zeros_like(model.vector)
    (pieces,) = divided(model, muon, 1)
    for step, gradient in enumerate(gradients, 1):
        for stretch, parameter in pieces:
            own = model.vector[stretch], gradient[stretch]
            if parameter is None:
                decayed = max(0, min(model.decayed, stretch.stop) - stretch.start)
                muon.update(*own, tuple(each[stretch] for each in moments), step, 0.05, 0.5, decayed)
            else:
                muon.update_maps(parameter, *own, moments[0][stretch], 0.05, 0.5)
    views = [model.views(gradient) for gradient in gradients]
    for name, parameter in model.parameters().items():
        if parameter.maps is None:
            continue
        first, second = (view[parameter] * 0.5 for view in views)
        expected = []
        for theta, g1, g2 in zip(*(np.split(x, parameter.maps, 1) for x in (before[name], first, second)), strict=True):
            size = 0.05 * 0.2 * max(theta.shape) ** 0.5
            theta = 0.995 * theta - size * orthogonalized(g1 + 0.9 * g1)
            u = 0.9 * g1 + g2
            expected.append(0.995 * theta - size * orthogonalized(g2 + 0.9 * u))
        np.testing.assert_allclose(parameter.data, np.concatenate(expected, axis=1), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_number_is_moved_once(name: str, count: int) -> None:
    model = MODELS[name]()
    model.allocate()
    moved = np.zeros(len(model.vector), int)
    maps = []
    for pieces in divided(model, Muon(), count):
        for stretch, parameter in pieces:
            moved[stretch] += 1
            maps += [] if parameter is None else [parameter]
    assert (moved == 1).all()
    linear = [value for path, value in model.parameters().items() if path.endswith(".weight")]
    assert set(maps) == set(linear)  # and neither embeddings nor gains nor biases


def train(count: int, updates: int = 3) -> np.ndarray:
    task = small_task()
    workers = Workers(build_small(), task, Muon(Adam(eps=1e-3, weight_decay=0.01)), count, ema=0.5)
    workers.model.initialize(np.random.default_rng(0))
    with workers:
        for step, batch in zip(range(1, updates + 1), task.batches(0, 60, 1), strict=False):
            shares = [[(share, [1, index])] for index, share in enumerate(task.split(batch, count))]
            sums = workers.gradient(shares)
            workers.reduce()
            workers.update(step, 0.01, 1 / sums.tokens)
        return np.concatenate([workers.model.vector, workers.shared.average])


def test_the_number_of_workers_changes_rounding_only() -> None:
    one, two, three = (train(count) for count in (1, 2, 3))
    np.testing.assert_allclose(two, one, atol=2e-4)
    np.testing.assert_allclose(three, one, atol=2e-4)
    assert train(2).tobytes() == two.tobytes()


def test_the_setting_chooses_the_rule() -> None:
    made = {
        name: make_optimizer(TrainingConfig(optimizer=name, weight_decay=0.3)) for name in ("adam", "adamw", "muon")
    }
    assert (made["adam"].decoupled, made["adamw"].decoupled) == (False, True)
    assert made["muon"] == Muon(made["adamw"])
