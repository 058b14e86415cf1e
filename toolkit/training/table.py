"""What became of training runs: one record for each, read from its directory."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.models.shelf import read_found
from toolkit.models.storage import read_json, read_metrics
from toolkit.training.checkpoint import read_progress
from toolkit.training.lock import is_locked
from toolkit.training.progress import Progress
from toolkit.training.run import LOG_FILE, SETTINGS_FILE, Run
from toolkit.training.settings import flat_settings
from toolkit.untrusted import UnfitError, open_regular, parse_json

SCORES = ("loss", "chrf", "bleu")
_SEED = "training.seed"


@dataclass
class RunRecord:
    """One run: what was asked for, how far it came, and the scores of its best checkpoint."""

    name: str
    state: str  # "finished", "running", "stopped", "diverged" or "damaged"
    problem: str = ""  # what is damaged
    updates: int = 0
    updates_asked: int | None = None
    seconds: float = 0.0
    validation: dict[str, float] = field(default_factory=dict)
    test: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # by their full names

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass
class SeedGroup:
    """Runs that differ in nothing but their seed: mean and sample standard deviation of each score they all have."""

    names: list[str]
    validation: dict[str, tuple[float, float]]
    test: dict[str, tuple[float, float]]

    def to_dict(self) -> dict[str, Any]:
        return asdict(self)


def find_runs(directory: Path) -> list[Path]:
    """The runs in a directory and in its sub-directories, or the directory itself if it is one, by name.

    Raises ModelError where there is none.
    """
    try:
        there = directory.is_dir()
    except OSError:  # of a name that is too long for a path
        there = False
    if not there:
        raise ModelError(f"{directory} is not a directory: give one that holds runs")
    if _is_run(directory):
        return [directory]
    found = [path for pattern in ("*", "*/*") for path in directory.glob(pattern) if _is_run(path)]
    if not found:
        raise ModelError(f"{directory} holds no runs: a run is a directory with {SETTINGS_FILE} in it")
    return sorted(found)


def _is_run(path: Path) -> bool:
    try:
        return (path / SETTINGS_FILE).exists()
    except OSError:  # of a directory that may not be looked into
        return False


def read_run(path: Path, name: str) -> RunRecord:
    """What became of one run; where it is damaged, the record says so."""
    record = RunRecord(name, "stopped")
    try:
        record.settings = flat_settings(read_json(path / SETTINGS_FILE))
        record.updates_asked = _number(record.settings.get("training.updates"))
        run = Run(path, {})
        if run.steps():
            progress, metrics = read_found(lambda: _last_and_best(run), _progress_and_metrics)
            record.updates, record.seconds = progress.update, progress.seconds
            record.validation, record.test = _scores(metrics.get("validation")), _scores(metrics.get("test"))
            if _is_finished(progress, record):
                record.state = "finished"
                return record
        record.state = "running" if is_locked(path) else "diverged" if _diverged(path) else "stopped"
    except ModelError as error:
        record.state, record.problem = "damaged", str(error)
    except OSError as error:
        record.state, record.problem = "damaged", f"{error.filename} cannot be read: {error.strerror}"
    return record


def _last_and_best(run: Run) -> tuple[Path, Path]:
    return run.named("last"), run.named("best" if (run.path / "best").exists() else "last")


def _progress_and_metrics(checkpoints: tuple[Path, Path]) -> tuple[Progress, dict[str, Any]]:
    last, best = checkpoints
    return read_progress(last), read_metrics(best)


def _is_finished(progress: Progress, record: RunRecord) -> bool:
    patience = _number(record.settings.get("training.patience")) or 0
    return 0 < patience <= progress.validations_without_gain or progress.update >= (record.updates_asked or math.inf)


def _diverged(path: Path) -> bool:
    """Does the log end with divergence?  Only its end is read."""
    try:
        with open_regular(path / LOG_FILE) as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - (1 << 16)))
            lines = file.read().splitlines()
        return bool(lines) and "diverged" in parse_json(lines[-1])
    except (OSError, UnfitError, TypeError):
        return False


def _number(value: Any) -> int | None:
    return value if type(value) is int else None


def _scores(values: Any) -> dict[str, float]:
    """The figures among what was scored; signatures and the like are left out."""
    items = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in items if type(value) in (int, float) and math.isfinite(value)}


def differing_settings(records: Sequence[RunRecord]) -> list[str]:
    """The full names of the settings that are not the same in all records that have any."""
    known = [record.settings for record in records if record.settings]
    names = sorted({name for settings in known for name in settings})
    return [name for name in names if any(settings.get(name) != known[0].get(name) for settings in known)]


def seed_groups(records: Sequence[RunRecord]) -> list[SeedGroup]:
    """Finished runs that differ in nothing but the seed, two or more of each kind."""
    kinds: dict[str, list[RunRecord]] = {}
    for record in records:
        if record.state == "finished":
            rest = {name: value for name, value in record.settings.items() if name != _SEED}
            kinds.setdefault(json.dumps(rest, sort_keys=True), []).append(record)
    return [
        SeedGroup(
            [record.name for record in alike],
            _means([record.validation for record in alike]),
            _means([record.test for record in alike]),
        )
        for alike in kinds.values()
        if len(alike) > 1
    ]


def _means(scores: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    shared = [name for name in scores[0] if all(name in other for other in scores)]
    columns = {name: [values[name] for values in scores] for name in shared}
    return {name: (statistics.mean(column), statistics.stdev(column)) for name, column in columns.items()}
