"""Optimizers against their formulas, what each moves, and learning rate schedules."""

import math
from itertools import pairwise

import numpy as np
import pytest

from tests.checks import small_config, small_gpt_config
from tests.training.small import build_small, small_task
from tests.training.test_orthogonalization import halley
from toolkit.errors import ConfigError
from toolkit.models.gpt import GPT
from toolkit.models.seq2seq import Seq2Seq
from toolkit.training import optimizer as optimizer_module
from toolkit.training.config import TrainingConfig
from toolkit.training.optimizer import (
    Adam,
    Map,
    Muon,
    clip_scale,
    make_optimizer,
    make_schedule,
    partition,
    sum_of_squares,
)
from toolkit.training.workers import Workers


def textbook_adam(adam: Adam, theta: np.ndarray, gradients: list[np.ndarray], rate: float, decayed: int) -> np.ndarray:
    """Algorithm 1 of Kingma and Ba 2015 and algorithm 2 of Loshchilov and Hutter 2019, one number at a time."""
    theta = theta.copy()
    for i in range(len(theta)):
        m = v = 0.0
        decay = adam.weight_decay if i < decayed else 0.0
        for step, gradient in enumerate(gradients, 1):
            g = gradient[i] if adam.decoupled else gradient[i] + decay * theta[i]
            m = adam.beta1 * m + (1 - adam.beta1) * g
            v = adam.beta2 * v + (1 - adam.beta2) * g * g
            unbiased_m, unbiased_v = m / (1 - adam.beta1**step), v / (1 - adam.beta2**step)
            shrink = rate * decay * theta[i] if adam.decoupled else 0.0
            root = math.sqrt(unbiased_v + adam.eps) if adam.eps_inside else math.sqrt(unbiased_v) + adam.eps
            theta[i] -= rate * unbiased_m / root + shrink
    return theta


def moments_of(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros_like(theta), np.zeros_like(theta)


@pytest.mark.parametrize("decoupled", [True, False])
@pytest.mark.parametrize("decayed", [0, 6, 8, 13, 20], ids=lambda n: f"{n} decayed")  # blocks are of four
@pytest.mark.parametrize("weight_decay", [0.0, 0.3])
@pytest.mark.parametrize("eps_inside", [False, True])
def test_against_the_textbook(
    monkeypatch, decoupled: bool, decayed: int, weight_decay: float, eps_inside: bool
) -> None:
    monkeypatch.setattr(optimizer_module, "BLOCK_ELEMENTS", 4)
    rng = np.random.default_rng(0)
    adam = Adam(0.8, 0.95, 1e-3, weight_decay, decoupled, eps_inside)
    before, gradients = rng.standard_normal(18), list(rng.standard_normal((5, 18)))
    theta, moments = before.copy(), moments_of(before)
    for step, gradient in enumerate(gradients, 1):
        kept = gradient.copy()
        adam.update(theta, gradient, moments, step, 0.05, 0.5, decayed)
        np.testing.assert_array_equal(gradient, kept)
    halved = [gradient * 0.5 for gradient in gradients]
    np.testing.assert_allclose(theta, textbook_adam(adam, before, halved, 0.05, decayed), rtol=1e-12)
    if weight_decay:
        plain = textbook_adam(adam, before, halved, 0.05, 0)
        assert (np.abs(theta - plain)[:decayed] > 1e-6).all()
        np.testing.assert_allclose(theta[decayed:], plain[decayed:], rtol=1e-12)


def test_numbers_worked_by_hand() -> None:
    gradient = np.array([[0.01, -0.02], [0.005, 0.01]])
    theta, moments = np.zeros(4), moments_of(np.zeros(4))
    Adam(0.9, 0.999, 1e-8).update(theta, gradient.ravel(), moments, 1, 0.001, 1.0, 0)
    np.testing.assert_allclose(moments[0].reshape(2, 2), 0.1 * gradient, rtol=1e-12)
    np.testing.assert_allclose(moments[1].reshape(2, 2), [[1e-7, 4e-7], [2.5e-8, 1e-7]], rtol=1e-9)
    # The corrected moments of the first step are g and g², so every step is as long as the learning rate.
    np.testing.assert_allclose(theta.reshape(2, 2), -0.001 * np.sign(gradient), rtol=1e-5)


def test_where_eps_stands_decides_how_far_the_first_step_goes() -> None:
    """The corrected moments of the first step are g and g², here both nothing against ε."""
    lengths = {}
    for inside in (False, True):
        theta = np.zeros(1)
        Adam(eps=1e-6, eps_inside=inside).update(theta, np.array([1e-9]), moments_of(theta), 1, 1.0, 1.0, 0)
        lengths[inside] = -theta[0]
    assert lengths[False] == pytest.approx(1e-9 / (1e-9 + 1e-6), rel=1e-12)
    assert lengths[True] == pytest.approx(1e-9 / math.sqrt(1e-18 + 1e-6), rel=1e-12)


@pytest.mark.parametrize("decoupled", [True, False])
def test_a_stretch_moves_as_the_whole_would(decoupled: bool) -> None:
    """Workers each move a part: whichever way the vector is divided, the bits are the same."""
    rng = np.random.default_rng(1)
    adam = Adam(weight_decay=0.1, decoupled=decoupled)
    before, gradient = (rng.standard_normal(50).astype(np.float32) for _ in range(2))
    results = []
    for bounds in ([0, 50], [0, 7, 20, 50]):
        theta, moments = before.copy(), moments_of(before)
        for begin, end in pairwise(bounds):
            part = slice(begin, end)
            decayed = max(0, min(17, end) - begin)
            adam.update(theta[part], gradient[part], tuple(m[part] for m in moments), 1, 0.1, 0.25, decayed)
        results.append(theta.tobytes())
        assert theta.dtype == np.float32
    assert results[0] == results[1]


def test_sum_of_squares(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(optimizer_module, "BLOCK_ELEMENTS", 7)
    x = np.random.default_rng(0).standard_normal(40).astype(np.float32)
    assert sum_of_squares(x) == pytest.approx((x.astype(np.float64) ** 2).sum(), rel=1e-6)


@pytest.mark.parametrize(("norm", "limit", "expected"), [(4.0, 1.0, 0.25), (0.5, 1.0, 1.0), (9.0, 0.0, 1.0), (0, 1, 1)])
def test_clip_scale(norm: float, limit: float, expected: float) -> None:
    assert clip_scale(norm, limit) == expected


MODELS = {
    "translator": lambda: Seq2Seq(small_config()),
    "language model": lambda: GPT(small_gpt_config(num_key_value_heads=2, activation="swiglu", norm="rms")),
}


def update_shards(model: GPT, optimizer: Muon, gradient: np.ndarray, moments, step: int, count: int = 1) -> None:
    """What `count` workers do, one after the other."""
    for shards in partition(model, optimizer, count):
        maps = []
        for stretch, parameter in shards:
            own = model.vector[stretch], gradient[stretch]
            if parameter is None:
                decayed = max(0, min(model.decayed, stretch.stop) - stretch.start)
                optimizer.update(*own, tuple(each[stretch] for each in moments), step, 0.05, 0.5, decayed)
            else:
                maps.append(Map(parameter, *own, moments[0][stretch]))
        optimizer.update_maps(maps, 0.05, 0.5)


def test_muon_against_the_formula() -> None:
    """Two steps of every parameter, the maps one by one, as the docstrings have it."""
    rng = np.random.default_rng(1)
    model = MODELS["language model"]()
    model.allocate(np.float64)
    model.vector[:] = rng.standard_normal(len(model.vector))
    before = {name: value.copy() for name, value in model.arrays().items()}
    gradients = rng.standard_normal((2, len(model.vector)))
    views = [model.views(gradient.copy()) for gradient in gradients]
    muon = Muon(Adam(weight_decay=0.1), momentum=0.9)
    moments = np.zeros_like(model.vector), np.zeros_like(model.vector)
    for step, gradient in enumerate(gradients, 1):
        update_shards(model, muon, gradient, moments, step)

    def orthogonal(direction: np.ndarray) -> np.ndarray:
        lengths = np.linalg.svd(direction, compute_uv=False)
        return halley(direction / (lengths**4).sum() ** 0.25)

    for name, parameter in model.parameters().items():
        if parameter.splits is None:
            continue
        first, second = (view[parameter] * 0.5 for view in views)
        expected = []
        for theta, g1, g2 in zip(
            *(np.split(x, parameter.splits, 1) for x in (before[name], first, second)), strict=True
        ):
            size = 0.05 * 0.2 * max(theta.shape) ** 0.5
            theta = 0.995 * theta - size * orthogonal(g1 + 0.9 * g1)
            u = 0.9 * g1 + g2
            expected.append(0.995 * theta - size * orthogonal(g2 + 0.9 * u))
        np.testing.assert_allclose(parameter.data, np.concatenate(expected, axis=1), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_the_same_gradient_moves_by_the_same_bits_with_any_number_of_workers(name: str) -> None:
    results = []
    for count in (1, 2, 3, 7):
        rng = np.random.default_rng(2)
        model = MODELS[name]()
        model.allocate()
        model.initialize(rng)
        moments = np.zeros_like(model.vector), np.zeros_like(model.vector)
        for step in (1, 2):
            gradient = rng.standard_normal(len(model.vector)).astype(np.float32)
            update_shards(model, Muon(Adam(weight_decay=0.1)), gradient, moments, step, count)
        results.append((model.vector.tobytes(), moments[0].tobytes(), moments[1].tobytes()))
    assert len(set(results)) == 1


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_every_number_is_moved_once(name: str, count: int) -> None:
    model = MODELS[name]()
    model.allocate()
    moved = np.zeros(len(model.vector), int)
    maps = []
    for shards in partition(model, Muon(), count):
        for stretch, parameter in shards:
            moved[stretch] += 1
            maps += [] if parameter is None else [parameter]
    assert (moved == 1).all()
    linear = [value for path, value in model.parameters().items() if path.endswith(".weight")]
    assert set(maps) == set(linear)  # and neither embeddings nor gains nor biases


def train_by_muon(count: int, updates: int = 3) -> np.ndarray:
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


def test_of_muon_the_number_of_workers_changes_rounding_only() -> None:
    one, two, three = (train_by_muon(count) for count in (1, 2, 3))
    np.testing.assert_allclose(two, one, atol=2e-4)
    np.testing.assert_allclose(three, one, atol=2e-4)
    assert train_by_muon(2).tobytes() == two.tobytes()


def test_the_setting_chooses_the_rule() -> None:
    made = {
        name: make_optimizer(TrainingConfig(optimizer=name, weight_decay=0.3)) for name in ("adam", "adamw", "muon")
    }
    assert (made["adam"].decoupled, made["adamw"].decoupled) == (False, True)
    assert made["muon"] == Muon(made["adamw"])


SCHEDULES = ("noam", "inverse_sqrt", "cosine", "constant")


@pytest.mark.parametrize("name", ["inverse_sqrt", "cosine", "constant"])
@pytest.mark.parametrize("warmup", [0, 1, 40])
def test_warm_up_rises_evenly_to_the_learning_rate(name: str, warmup: int) -> None:
    rate = make_schedule(name, 0.3, warmup, 200)
    assert [rate(update) for update in range(1, warmup + 1)] == pytest.approx(
        [0.3 * update / warmup for update in range(1, warmup + 1)]
    )
    assert rate(max(warmup, 1)) == pytest.approx(0.3, rel=1e-3)


@pytest.mark.parametrize("name", SCHEDULES)
def test_up_and_then_never_up_again(name: str) -> None:
    rate = make_schedule(name, 0.3, 40, 200, final=0.01)
    rates = [rate(update) for update in range(1, 260)]
    assert all(a < b for a, b in pairwise(rates[:40]))
    assert all(a >= b for a, b in pairwise(rates[39:]))
    assert min(rates) > 0


def test_noam_is_the_formula_of_the_paper() -> None:
    rate = make_schedule("noam", 1.0, 4000, 100_000, width=512)
    for update in (1, 100, 4000, 4001, 90_000):
        assert rate(update) == pytest.approx(512**-0.5 * min(update**-0.5, update * 4000**-1.5), rel=1e-12)
    assert make_schedule("noam", 2.0, 4000, 9, width=128)(4000) == pytest.approx(4 * rate(4000))
    assert make_schedule("noam", 1.0, 0, 9, width=1)(4) == 0.5


def test_inverse_square_root() -> None:
    rate = make_schedule("inverse_sqrt", 0.3, 50, 1000)
    assert rate(200) == pytest.approx(0.15)
    assert rate(5000) == pytest.approx(0.03)


def test_cosine_is_half_a_wave() -> None:
    rate = make_schedule("cosine", 0.3, 100, 500, final=0.1)
    assert rate(100) == pytest.approx(0.3)
    assert rate(200) == pytest.approx(0.1 + 0.2 * (1 + math.cos(math.pi / 4)) / 2)
    assert rate(300) == pytest.approx(0.2)
    assert rate(500) == pytest.approx(0.1)
    assert rate(900) == pytest.approx(0.1)
    assert make_schedule("cosine", 0.3, 0, 500)(500) == pytest.approx(0, abs=1e-12)


def test_a_warm_up_longer_than_the_run() -> None:
    for name in SCHEDULES:
        rates = [make_schedule(name, 0.3, 50, 20)(update) for update in range(1, 21)]
        assert rates == sorted(rates)


def test_an_unknown_schedule() -> None:
    with pytest.raises(ValueError, match="linear"):
        make_schedule("linear", 0.3, 1, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"updates": 0}, "updates is 0: it must be at least 1"),
        ({"workers": 0}, "workers is 0"),
        ({"warmup": -1}, "warmup is -1: it must not be negative"),
        ({"beta1": 1.0}, "beta1 is 1.0: it must be at least 0 and below 1"),
        ({"learning_rate": 0.0}, "learning_rate is 0.0: it must be above 0"),
        ({"learning_rate": float("nan")}, "learning_rate is nan"),
        ({"label_smoothing": 1.5}, "label_smoothing is 1.5"),
        ({"optimizer": "sgd"}, "optimizer is 'sgd': it must be one of adamw, adam"),
        ({"schedule": "linear"}, "schedule is 'linear'"),
        ({"best_by": "speed"}, "best_by is 'speed'"),
        ({"clip": float("nan")}, "clip is nan"),
    ],
)
def test_settings_out_of_range(settings: dict, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        TrainingConfig(**settings)
