"""Training logs: the figures of a run as series, and the curves of one run or several as a picture."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from colorsys import hsv_to_rgb
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.pages.blocks import Curves
from toolkit.pages.curves import COLORS, Axis, Place, Style, plot, swatch
from toolkit.pages.drawing import Drawing, Label, Line, seen, text_width
from toolkit.pages.writing import clipped
from toolkit.training.run import LOG_FILE, find_runs
from toolkit.untrusted import ANYTHING, LOG_BYTES, Record, UnfitError, Whole, check, parse_json, read_bytes

TRAINING, VALIDATION = "training", "validation"
AXES = ("updates", "tokens", "seconds")
_COUNTERS = ("update", "epoch", "seconds")
_RECORD = Record({"update": Whole(0, 2**53)}, needed=("update",), others=ANYTHING)  # a float holds no more than that
_MOST = 1e100  # of a figure: no axis reaches further


LOSS, LIKELIHOOD, SPEED = "loss", "negative_log_likelihood", "tokens_per_second"

# What comes first and what comes last among the panels; all others stand between, as the logs have them.
_FIRST = (
    *("reward", "kl_to_reference", LIKELIHOOD, LOSS, "validation_loss"),
    *("perplexity", "bits_per_byte", "chrf", "bleu", "accuracy"),
)
_LAST = ("learning_rate", "gradient_norm", SPEED)
_TITLES = {
    LIKELIHOOD: "negative log-likelihood",
    "chrf": "chrF",
    "bleu": "BLEU",
    SPEED: "tokens / s",
    "kl_to_reference": "KL to the reference",
    "approx_kl": "approximate KL of an update",
    "ended": "share ended",
    "reward_std": "reward, standard deviation",
}
_LOG_WORDS = ("loss", LIKELIHOOD, "perplexity", "gradient_norm", "error", "mse")
_LOG_FROM = 4.0  # the ratio of the largest to the smallest value from which on an axis is logarithmic
_EVENT_COLOR = "#444444"
_WIDTH, _HEIGHT = 400, 260  # of a panel, in pixels
_FONT, _ENTRY, _ROW = 13.0, 46, 24  # of the legend: its letters, a swatch, a line
_LONGEST_NAME = 60  # cells


@dataclass(frozen=True)
class Series:
    """The values of one figure, each with the update that it was taken after."""

    updates: Array  # (N,)
    values: Array  # (N,)


@dataclass(frozen=True)
class RunLog:
    """All that the log of a run has in numbers."""

    name: str
    series: dict[tuple[str, str], Series]  # by part ("training", "validation", "rollout" …) and name
    clock: Array  # (N, 3): updates done, tokens trained on, seconds spent in updates
    rollbacks: Sequence[tuple[int, int]] = ()  # after which update it diverged, and after which it went on
    diverged: int | None = None  # the update at which it ended

    def at(self, updates: Array, axis: str) -> Array:
        """Place updates on one of the axes; between two lines of the log, on a straight line."""
        if axis == "updates":
            return updates
        return np.interp(updates, self.clock[:, 0], self.clock[:, AXES.index(axis)])

    def first_update(self, part: str, name: str, most: float) -> int | None:
        """Find the first update after which a figure was at most `most`."""
        series = self.series.get((part, name))
        return None if series is None else next(map(int, series.updates[series.values <= most]), None)


def find_logs(directories: Sequence[Path]) -> tuple[list[RunLog], list[str]]:
    """Read the runs that the directories are or hold; gives the names of those that have no figures yet too.

    Raises ModelError where a directory is no run and holds none, or where no run has any figures; DataError for a
    damaged log.
    """
    names: dict[Path, str] = {}
    for directory in directories:
        for path in find_runs(directory):
            names.setdefault(path, path.resolve().name if path == directory else str(path.relative_to(directory)))
    count = Counter(names.values())
    logs = [read_log(path, name if count[name] == 1 else str(path)) for path, name in names.items()]
    with_figures = [log for log in logs if log.series]
    empty = [str(path) for path, log in zip(names, logs, strict=True) if not log.series]
    given = [str(path) for path in directories if str(path) in empty]
    if given or not with_figures:
        raise ModelError(f"{(given or empty)[0]} has no figures in its {LOG_FILE} yet: train it further")
    return with_figures, empty


def read_log(run: Path, name: str) -> RunLog:
    """Read the figures of a run. A last line that is being written is left out; what is not finite, or too large for
    any axis, is a gap.

    Raises DataError for a log that is damaged or cannot be read.
    """
    path, columns, clock, rollbacks, diverged = run / LOG_FILE, {}, [(0.0, 0.0, 0.0)], [], None
    try:
        content = read_bytes(path, LOG_BYTES) if path.exists() else b""
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            record = check(parse_json(line), _RECORD)
        except UnfitError as error:
            raise DataError(f"{path}, line {number} is damaged: it is not a record of an update ({error})") from error
        update = record["update"]
        if isinstance(back := record.get("rollback"), dict):
            rollbacks.append((int(_number(back.get("from"), update)), int(_number(back.get("to"), update - 1))))
        elif "diverged" in record:
            diverged = update
        else:
            for key, value in _figures(record):
                columns.setdefault(key, []).append((update, value))
            if "seconds" in record:
                _, tokens, before = clock[-1]
                seconds = _number(record["seconds"], before)
                tokens += _number(record.get("tokens_per_second"), 0.0) * max(0.0, seconds - before)
                clock.append((update, tokens, seconds))
    if any(part not in (TRAINING, VALIDATION) for part, _ in columns):
        # Such a run learns from its own replies: the loss of validation is another quantity than that of training.
        columns = {
            (VALIDATION, "validation_loss") if key == (VALIDATION, LOSS) else key: columns[key] for key in columns
        }
    series = {key: Series(*np.array(points, dtype=np.float64).T) for key, points in columns.items()}
    return RunLog(name, series, np.maximum.accumulate(np.array(clock), axis=0), rollbacks, diverged)


def _figures(record: dict[str, Any]) -> Iterator[tuple[tuple[str, str], float]]:
    """Give the part and the name of every figure of a record, and its value."""
    parts = [(TRAINING, record), *((part, values) for part, values in record.items() if isinstance(values, dict))]
    for part, values in parts:
        for name, value in values.items():
            if type(value) in (int, float) and not (part == TRAINING and name in _COUNTERS):
                yield (part, name), _number(value, math.nan)


def _number(value: Any, otherwise: float) -> float:
    # NaN is not below anything, and a whole number may be of any length.
    within = type(value) in (int, float) and abs(value) <= _MOST
    return value if within else otherwise


Lines = list[tuple[int, str, Series]]  # of a panel: the number of the run, the part of its log, the values


def panels(logs: Sequence[RunLog], metrics: Sequence[str] = ()) -> dict[str, Lines]:
    """Choose the panels, by metric: those asked for, or all that say something of their own.

    The loss of validation stands beside the training's negative log-likelihood, where that has a panel and is the same
    quantity (training's loss may be smoothed), and else beside its loss.

    Raises ConfigError for a metric that no log has.
    """
    names = list(dict.fromkeys(name for log in logs for _, name in log.series))
    between = [name for name in names if name not in _FIRST and name not in _LAST]
    known = [*(name for name in _FIRST if name in names), *between, *(name for name in _LAST if name in names)]
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise ConfigError(f"there is no metric {unknown[0]!r} in these logs: choose from {', '.join(known)}")
    if not metrics and not any(map(_likelihood_differs, logs)):
        known = [name for name in known if name != LIKELIHOOD]
    found: dict[str, Lines] = {metric: [] for metric in metrics or known}
    for number, log in enumerate(logs):
        moved = LIKELIHOOD in found and (VALIDATION, "perplexity") in log.series
        for (part, name), series in log.series.items():
            metric = LIKELIHOOD if moved and (part, name) == (VALIDATION, LOSS) else name
            if metric in found:
                found[metric].append((number, part, series))
    return found


def _likelihood_differs(log: RunLog) -> bool:
    loss, likelihood = log.series.get((TRAINING, LOSS)), log.series.get((TRAINING, LIKELIHOOD))
    if likelihood is None:
        return False
    return loss is None or not np.array_equal(loss.values, likelihood.values, equal_nan=True)


def run_curves(logs: Sequence[RunLog], metrics: Sequence[str] = (), axis: str = "updates") -> Drawing:
    """Draw the curves of runs: a panel for each figure, a colour for each run.

    axis: "updates", "tokens" or "seconds" (spent in updates). Raises ConfigError as `panels`.
    """
    shown = panels(logs, metrics)
    columns = next((width for width in (1, 2, 3) if len(shown) <= width * width), 4)
    scale = 1.5 if columns == 1 else 1
    width, height = _WIDTH * scale, _HEIGHT * scale
    unit, label = _unit(logs, axis)
    drawing = Drawing(columns * width + 16)
    top = _legend(drawing, logs, shown.values())
    for number, (metric, lines) in enumerate(shown.items()):
        x, y = 8 + number % columns * width, top + number // columns * height
        _panel(drawing, logs, metric, lines, axis, unit, (x, y, width, height))
    bottom = top + -(-len(shown) // columns) * height
    drawing.labels.append(Label(drawing.width / 2, bottom + 16, label, _FONT, "middle"))
    drawing.height = bottom + 28
    return drawing


def _unit(logs: Sequence[RunLog], axis: str) -> tuple[float, str]:
    """Choose the unit of the axis, and its name."""
    if axis != "seconds":
        return 1, axis
    longest = max(log.clock[-1, 2] for log in logs)
    unit, name = (3600, "hours") if longest > 7200 else (60, "minutes") if longest > 180 else (1, "seconds")
    return unit, f"{name} in updates"


def _panel(
    drawing: Drawing, logs: Sequence[RunLog], metric: str, lines: Lines, axis: str, unit: float, place: Place
) -> None:
    runs = dict.fromkeys(number for number, _, _ in lines)
    drawn = {
        f"{index}": (logs[number].at(series.updates, axis) / unit, series.values)
        for index, (number, _, series) in enumerate(lines)
    }
    styles = [_style(part, color(number, len(logs)), len(series.values)) for number, part, series in lines]
    ends = (
        logs[number].at(each.updates, axis).max() / unit for number in runs for each in logs[number].series.values()
    )
    across, up = Axis(0, float(max(ends)) or 1).widened(0.02), _up(metric, lines)
    curves = Curves(title(metric, lines), drawn, log_y=up.log)
    left, top, right, bottom = plot(drawing, curves, place, (across, up), styles)
    for number in runs:
        log, tint = logs[number], color(number, len(logs))
        events = [("back", to) for _, to in log.rollbacks] + [("diverged", log.diverged)] * (log.diverged is not None)
        for kind, update in events:
            [share] = across.places(log.at(np.array([update]), axis) / unit)
            x = min(left + share * (right - left), right)
            drawing.lines.append(Line([(x, top), (x, bottom)], tint, 1, (4, 3), 0.7))
            drawing.lines += _mark(kind, x, top, tint)


def _up(metric: str, lines: Lines) -> Axis:
    """Choose a logarithmic axis for a figure that falls or rises by a factor; else one from zero if that is near."""
    values = np.concatenate([series.values for _, _, series in lines])
    values = values[np.isfinite(values)]
    log = len(values) > 0 and is_logarithmic(metric, values)
    if len(values) and not log and values.min() >= 0:
        most = values.max() or 1.0
        if values.min() <= 0.4 * most or metric == "learning_rate":
            return Axis(-0.02 * most, 1.06 * most)
    return Axis.of([values], log).widened(0.05)


def _style(part: str, tint: str, points: int) -> Style:
    if part == VALIDATION:
        return Style(tint, width=2.1, dots=2.9 if points <= 40 else 1.6)
    return Style(tint, width=1.6, opacity=0.6)


def _mark(kind: str, x: float, y: float, tint: str) -> list[Line]:
    """Draw the sign of an event: a triangle for going back, a cross for the end."""
    if kind == "back":
        return [Line([(x - 4, y - 4), (x + 4, y - 4), (x, y + 4)], tint, filled=True)]
    return [Line([(x - 3, y + way * 3), (x + 3, y - way * 3)], tint, 3) for way in (1, -1)]


def _legend(drawing: Drawing, logs: Sequence[RunLog], shown: Iterable[Lines]) -> float:
    """Draw the names of runs, parts and events above the panels -> where they end."""
    entries: list[tuple[str, list[Line]]] = [
        (log.name, swatch(Style(color(number, len(logs)), width=4)).lines) for number, log in enumerate(logs)
    ]
    parts = {part for lines in shown for _, part, _ in lines}
    if VALIDATION in parts and len(parts) > 1:
        others = " and ".join(sorted(parts - {VALIDATION}, key=lambda part: (part != TRAINING, part)))
        entries += [
            (name, swatch(_style(part, _EVENT_COLOR, 2)).lines) for name, part in ((others, ""), (VALIDATION,) * 2)
        ]
    dashed = [Line([(0, 5), (28, 5)], _EVENT_COLOR, 1, (4, 3))]
    if told := [f"back from update {old} to {new}" for log in logs for old, new in log.rollbacks]:
        entries.append((told[0] if len(told) == 1 else "rollback", [*dashed, *_mark("back", 14, 5, _EVENT_COLOR)]))
    if any(log.diverged is not None for log in logs):
        entries.append(("diverged", [*dashed, *_mark("diverged", 14, 5, _EVENT_COLOR)]))
    x, y = 16.0, 12.0
    for name, lines in entries:
        name = _shown(name)
        needed = _ENTRY + text_width(name) * _FONT
        if x > 16 and x + needed > drawing.width:
            x, y = 16.0, y + _ROW
        drawing.lines += [replace(line, points=[(x + a, y + b) for a, b in line.points]) for line in lines]
        drawing.labels.append(Label(x + 34, y + 9.5, name, _FONT))
        x += needed
    return y + _ROW


def title(metric: str, lines: Lines) -> str:
    """Write the name of a panel's metric in words."""
    if metric == LOSS and all(part == TRAINING for _, part, _ in lines):
        return "training loss"
    return _TITLES.get(metric) or _shown(metric.replace("_", " "))


def _shown(name: str) -> str:
    """Write the name of a run or a figure, which may have any characters and any length."""
    return clipped(seen(name), _LONGEST_NAME)


def color(number: int, count: int) -> str:
    """Choose the colour of a run, the same in all panels."""
    if count <= len(COLORS):
        return COLORS[number]
    hue, light = number / count, 0.55 + 0.25 * (number % 2)
    return "#" + bytes(round(255 * each) for each in hsv_to_rgb(hue, 0.9, light)).hex()


def is_logarithmic(metric: str, values: Array) -> bool:
    """Tell whether a logarithmic axis shows these values better.  values: (N,), finite, N > 0."""
    named = any(word in metric for word in _LOG_WORDS)
    return bool(named and values.min() > 0 and values.max() > _LOG_FROM * values.min())
