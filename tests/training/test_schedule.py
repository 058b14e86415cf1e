import math
from itertools import pairwise

import pytest

from toolkit.errors import ConfigError
from toolkit.training.config import TrainingConfig
from toolkit.training.schedule import SCHEDULES, make_schedule


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
