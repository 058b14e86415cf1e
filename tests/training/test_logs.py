"""Training logs: what is read from one, and what is drawn of it."""

import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest

from tests.explain.drawn import SVG, png_size, texts
from tests.training.run_logs import training, validation, write_log
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.pages.curves import COLORS
from toolkit.training.logs import (
    AXES,
    LIKELIHOOD,
    color,
    find_logs,
    is_logarithmic,
    panels,
    read_log,
    run_curves,
)


def test_all_numbers_of_a_log_are_series(tmp_path: Path) -> None:
    rollout = {"update": 1, "epoch": 0, "rollout": {"reward": 0.5}}
    mixed = validation(20, signature="nrefs:1", best=True, odd=None)
    log = read_log(write_log(tmp_path / "a", training(10, own_figure=3), mixed, training(20), rollout), "a")
    names = {
        ("training", name) for name in ("learning_rate", "loss", "gradient_norm", "tokens_per_second", "own_figure")
    }
    assert log.series.keys() == names | {
        ("validation", "validation_loss"),
        ("validation", "chrf"),
        ("rollout", "reward"),
    }
    assert log.series["training", "loss"].updates.tolist() == [10, 20]
    assert log.series["training", "loss"].values.tolist() == [0.5, 0.25]
    assert log.series["training", "own_figure"].values.tolist() == [3]


def test_the_axes(tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path / "a", training(10), training(20), validation(15)), "a")
    updates = np.array([0.0, 10, 15, 20])
    assert {axis: log.at(updates, axis).tolist() for axis in AXES} == {
        "updates": [0, 10, 15, 20],
        "tokens": [0, 1000, 1500, 2000],
        "seconds": [0, 20, 30, 40],
    }


def test_a_line_that_is_being_written_is_left_out_and_a_damaged_one_told(tmp_path: Path) -> None:
    whole = read_log(write_log(tmp_path / "a", training(10)), "run")
    cut = read_log(write_log(tmp_path / "b", training(10), rest='{"update": 20, "lo'), "run")
    assert cut.series.keys() == whole.series.keys()
    assert len(cut.series["training", "loss"].values) == 1
    for number, rest in enumerate(
        ('{"upda\n', "7\n", '{"update": "x"}\n', "[" * 100_000 + "\n", '{"update": -1}\n', f'{{"update": {10**400}}}\n')
    ):
        run = write_log(tmp_path / f"c{number}", training(10), rest=rest)
        with pytest.raises(DataError, match=r"log\.jsonl, line 2 is damaged"):
            read_log(run, "run")


def test_what_is_not_finite_is_a_gap(tmp_path: Path) -> None:
    log = read_log(write_log(tmp_path / "a", training(10, loss=float("nan")), training(20, loss=1e300)), "a")
    assert np.isnan(log.series["training", "loss"].values).all()


def test_the_first_update_at_which_a_figure_was_low_enough(tmp_path: Path) -> None:
    lines = [training(10, loss=0.5), validation(10, chrf=0.1), training(20, loss=float("nan")), training(30, loss=0.25)]
    log = read_log(write_log(tmp_path / "a", *lines), "a")
    asked = (("training", "loss", 0.25), ("training", "loss", 0.2), ("validation", "chrf", 0.1), ("test", "loss", 1.0))
    assert [log.first_update(*each) for each in asked] == [30, None, 10, None]


def test_rollbacks_and_divergence(tmp_path: Path) -> None:
    back = {"update": 11, "rollback": {"from": 17, "to": 10, "learning_rate_factor": 0.5}}
    log = read_log(write_log(tmp_path / "a", training(10), back, {"update": 15, "diverged": "no number"}), "a")
    assert (log.rollbacks, log.diverged) == ([(17, 10)], 15)


def test_validation_stands_beside_the_same_quantity(tmp_path: Path) -> None:
    smoothed = [training(10, negative_log_likelihood=0.3), validation(10, perplexity=2.0)]
    equal = [training(10, negative_log_likelihood=0.5), validation(10, perplexity=2.0)]
    logs = [read_log(write_log(tmp_path / name, *lines), name) for name, lines in (("s", smoothed), ("e", equal))]
    for chosen, metric in ((logs, LIKELIHOOD), (logs[1:], "loss")):
        holding = [name for name, lines in panels(chosen).items() if "validation" in {part for _, part, _ in lines}]
        assert holding == [metric, "perplexity", "chrf"]
    assert LIKELIHOOD not in panels(logs[1:])
    assert [part for _, part, _ in panels(logs, ["loss"])["loss"]] == ["training", "validation"] * 2


def test_metrics_are_drawn_in_the_order_asked_for(tmp_path: Path) -> None:
    logs = [read_log(write_log(tmp_path / "a", training(10), validation(10)), "a")]
    assert list(panels(logs, ["chrf", "loss", "chrf"])) == ["chrf", "loss"]
    with pytest.raises(ConfigError, match="no metric 'los' in these logs: choose from loss, chrf, learning_rate"):
        panels(logs, ["los"])


def test_names_tell_runs_apart(tmp_path: Path) -> None:
    for name in ("one/seed-1", "one/seed-2", "two/seed-1"):
        write_log(tmp_path / name, training(10))
    (tmp_path / "one" / "new").mkdir()
    (tmp_path / "one" / "new" / "settings.json").write_text("{}")
    logs, empty = find_logs([tmp_path / "one", tmp_path / "two"])
    assert [log.name for log in logs] == [str(tmp_path / "one/seed-1"), "seed-2", str(tmp_path / "two/seed-1")]
    assert empty == [str(tmp_path / "one/new")]
    assert [log.name for log in find_logs([tmp_path / "two/seed-1"])[0]] == ["seed-1"]
    with pytest.raises(ModelError, match="new has no figures in its log"):
        find_logs([tmp_path / "one", tmp_path / "one/new"])


def test_which_axes_are_logarithmic() -> None:
    falling = np.array([7.0, 0.1])
    assert is_logarithmic("value_loss", falling)
    assert not is_logarithmic("chrf", falling)
    assert not is_logarithmic("loss", np.array([2.0, 1.0]))
    assert not is_logarithmic("loss", np.array([7.0, 0.0]))


def test_colours_differ() -> None:
    for count in (10, 30):
        assert len({color(number, count) for number in range(count)}) == count


def test_curves_hold_the_values_of_the_log(tmp_path: Path) -> None:
    back = {"update": 11, "rollback": {"from": 17, "to": 10, "learning_rate_factor": 0.5}}
    run = write_log(tmp_path / "_प्रयोग $x_1$", training(10), validation(10), back, training(20), validation(20))
    own = training(10, loss=float("nan")), training(15), {"update": 22, "diverged": "no number"}
    logs, _ = find_logs([run, write_log(tmp_path / "b", *own)])
    svg = run_curves(logs, ["loss"]).svg
    tags = ElementTree.fromstring(svg).iter(f"{SVG}polyline")
    lines = [
        each.get("points") for each in tags if (each.get("stroke"), len(each.get("stroke-width"))) == (COLORS[0], 3)
    ]
    ((a, low), (b, high)), ((c, lower), (d, higher)) = (
        [tuple(map(float, point.split(","))) for point in line.split()] for line in lines
    )
    assert a == c < b == d  # updates 10 and 20
    unit = (high - low) / (0.5 - 0.25)
    assert (lower - low, higher - high) == pytest.approx((unit * (0.5 - 0.6), unit * (0.25 - 0.3)), abs=0.02)
    assert {"_प्रयोग $x_1$", "b", "training", "validation", "loss", "updates", "diverged"} <= set(texts(svg))
    assert "back from update 17 to 10" in texts(svg)


def test_a_png_of_curves_has_twice_the_pixels(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    curves = run_curves([read_log(write_log(tmp_path / "a", training(10), training(20)), "a")])
    assert png_size(curves.png()) == (2 * curves.width, 2 * curves.height)


@pytest.mark.parametrize(
    "values",
    [(2.0, 2.0), (0.0, 0.0), (1.0, 1 + 2e-16), (5e-324, 1e-310), (1e99, 1e-99), (-1e99, 1e99), (float("nan"),) * 2],
)
def test_any_figures_can_be_drawn(tmp_path: Path, values: tuple[float, float]) -> None:
    lines = (training(update, loss=loss) for update, loss in zip((10, 20), values, strict=True))
    svg = run_curves([read_log(write_log(tmp_path / "a", *lines), "a")], axis="seconds").svg
    assert not [
        each for each in ElementTree.fromstring(svg).iter() if "nan" in each.get("points", "") + each.get("y", "")
    ]
