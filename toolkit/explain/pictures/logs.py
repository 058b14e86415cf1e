"""The figures in the log of a run, as series that can be drawn."""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.errors import DataError, ModelError
from toolkit.functional.arrays import Array
from toolkit.training.run import LOG_FILE, find_runs
from toolkit.untrusted import ANYTHING, LOG_BYTES, Record, UnfitError, Whole, check, parse_json, read_bytes

TRAINING, VALIDATION = "training", "validation"
AXES = ("updates", "tokens", "seconds")
_COUNTERS = ("update", "epoch", "seconds")
_RECORD = Record({"update": Whole(0, 2**53)}, needed=("update",), others=ANYTHING)  # a float holds no more than that
_MOST = 1e100  # of a figure: no axis reaches further


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
        """Where updates stand on one of the axes; between two lines of the log, on a straight line."""
        if axis == "updates":
            return updates
        return np.interp(updates, self.clock[:, 0], self.clock[:, AXES.index(axis)])

    def first_update(self, part: str, name: str, most: float) -> int | None:
        """The first update after which a figure was at most this."""
        series = self.series.get((part, name))
        return None if series is None else next(map(int, series.updates[series.values <= most]), None)


@dataclass
class _Reading:
    columns: dict[tuple[str, str], list[tuple[int, float]]] = field(default_factory=dict)
    clock: list[tuple[float, float, float]] = field(default_factory=lambda: [(0.0, 0.0, 0.0)])
    rollbacks: list[tuple[int, int]] = field(default_factory=list)
    diverged: int | None = None


def find_logs(directories: Sequence[Path]) -> tuple[list[RunLog], list[str]]:
    """The runs that the directories are or hold, and the names of those that have no figures yet.

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
    """The figures of a run. A last line that is being written is left out; what is not finite, or too large for any
    axis, is a gap.

    Raises DataError for a log that is damaged or cannot be read.
    """
    path, reading = run / LOG_FILE, _Reading()
    try:
        content = read_bytes(path, LOG_BYTES) if path.exists() else b""
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    for number, line in enumerate(content.split(b"\n")[:-1], start=1):
        try:
            _add(check(parse_json(line), _RECORD), reading)
        except UnfitError as error:
            raise DataError(f"{path}, line {number} is damaged: it is not a record of an update ({error})") from error
    columns = _with_own_validation_loss(reading.columns)
    series = {key: Series(*np.array(points, dtype=np.float64).T) for key, points in columns.items()}
    clock = np.maximum.accumulate(np.array(reading.clock), axis=0)
    return RunLog(name, series, clock, reading.rollbacks, reading.diverged)


def _add(record: dict[str, Any], reading: _Reading) -> None:
    update = record["update"]
    if isinstance(back := record.get("rollback"), dict):
        reading.rollbacks.append((int(_number(back.get("from"), update)), int(_number(back.get("to"), update - 1))))
        return
    if "diverged" in record:
        reading.diverged = update
        return
    parts = [(TRAINING, record), *((part, values) for part, values in record.items() if isinstance(values, dict))]
    for part, values in parts:
        for name, value in values.items():
            if type(value) in (int, float) and not (part == TRAINING and name in _COUNTERS):
                reading.columns.setdefault((part, name), []).append((update, _number(value, math.nan)))
    if "seconds" in record:
        _, tokens, before = reading.clock[-1]
        seconds = _number(record["seconds"], before)
        tokens += _number(record.get("tokens_per_second"), 0.0) * max(0.0, seconds - before)
        reading.clock.append((update, tokens, seconds))


def _number(value: Any, otherwise: float) -> float:
    # NaN is not below anything, and a whole number may be of any length.
    within = type(value) in (int, float) and abs(value) <= _MOST
    return value if within else otherwise


def _with_own_validation_loss(columns: dict) -> dict:
    """Where a run learns from its own replies, the loss of validation is another quantity than that of training."""
    if all(part in (TRAINING, VALIDATION) for part, _ in columns):
        return columns
    return {(VALIDATION, "validation_loss") if key == (VALIDATION, "loss") else key: columns[key] for key in columns}
