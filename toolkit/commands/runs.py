"""toolkit runs: the runs below a directory, side by side."""

import json
import math
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from toolkit.commands.console import aligned, emit
from toolkit.display import json_text
from toolkit.errors import ModelError
from toolkit.models.storage import read_json, read_metrics
from toolkit.models.zoo import read_found
from toolkit.training.checkpoint import TrainerState, read_state
from toolkit.training.config import flat_settings
from toolkit.training.lock import is_locked
from toolkit.training.run import LOG_FILE, SETTINGS_FILE, Run, find_runs
from toolkit.untrusted import UnfitError, open_regular, parse_json

SCORES = ("loss", "chrf", "bleu")
_SEED = "training.seed"
_LONGEST_VALUE = 24
_SHOWN = {"loss": ("loss", "{:.3f}"), "chrf": ("chrF", "{:.2f}"), "bleu": ("BLEU", "{:.2f}")}


@dataclass
class RunRecord:
    """One run: its settings, how far it came, and the scores of its best checkpoint."""

    name: str
    state: str  # "finished", "running", "stopped", "diverged" or "damaged"
    problem: str = ""  # what is damaged
    updates: int = 0
    updates_asked: int | None = None
    seconds: float = 0.0
    validation: dict[str, float] = field(default_factory=dict)
    test: dict[str, float] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)  # by their full names


@dataclass
class SeedGroup:
    """Runs that differ in nothing but their seed: mean and sample standard deviation of each score they all have."""

    names: list[str]
    validation: dict[str, tuple[float, float]]
    test: dict[str, tuple[float, float]]


@dataclass
class Runs:
    """Compare training runs: the settings that differ, how far they came, their scores and their time.

    Scores are those of a run's best checkpoint. Runs that differ in nothing but --training.seed also give a line with
    their mean and standard deviation.
    """

    directory: Positional[Path]
    """Directory that holds runs, or a run."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        paths = find_runs(self.directory)
        records = [read_run(path, _name(path, self.directory)) for path in paths]
        differing, groups = differing_settings(records), seed_groups(records)
        if self.json:
            facts = {
                "directory": str(self.directory),
                "differing": differing,
                "runs": [asdict(record) for record in records],
                "seeds": [asdict(group) for group in groups],
            }
            emit([json_text(facts)])
        else:
            emit(_lines(records, differing, groups))


def _name(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory)) if path != directory else str(path)


def _lines(records: Sequence[RunRecord], differing: Sequence[str], groups: Sequence[SeedGroup]) -> list[str]:
    test = [name for name in SCORES if any(name in record.test for record in records)]
    titles = ["run", "state", "updates", "time", *(_SHOWN[name][0] for name in SCORES)]
    titles += [f"test {_SHOWN[name][0]}" for name in test] + ["settings that differ" if differing else ""]
    rows = [[*_facts(record), *_figures(record, test), _settings(record, differing)] for record in records]
    for group in groups:
        figures = [_spread(group.validation, name) for name in SCORES] + [_spread(group.test, name) for name in test]
        rows.append([f"{len(group.names)} seeds, mean ± s.d.", "", "", "", *figures, ", ".join(group.names)])
    notes = [f"{record.name}: {record.problem}" for record in records if record.problem]
    return aligned([titles, *rows], range(len(titles))) + ([""] if notes else []) + notes


def _facts(record: RunRecord) -> list[str]:
    asked = "?" if record.updates_asked is None else record.updates_asked
    return [record.name, record.state, f"{record.updates}/{asked}", _time(record.seconds)]


def _figures(record: RunRecord, test: Sequence[str]) -> list[str]:
    pairs = [(record.validation, name) for name in SCORES] + [(record.test, name) for name in test]
    return [_SHOWN[name][1].format(scores[name]) if name in scores else "-" for scores, name in pairs]


def _spread(means: dict[str, tuple[float, float]], name: str) -> str:
    form = _SHOWN[name][1]
    return " ± ".join(form.format(value) for value in means[name]) if name in means else "-"


def _settings(record: RunRecord, differing: Sequence[str]) -> str:
    return "  ".join(f"{name}={_short(record.settings[name])}" for name in differing if name in record.settings)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST_VALUE else f"…{text[1 - _LONGEST_VALUE :]}"


def _time(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}"


def read_run(path: Path, name: str) -> RunRecord:
    """Read one run; where it is damaged, the record says so."""
    record = RunRecord(name, "stopped")
    try:
        record.settings = flat_settings(read_json(path / SETTINGS_FILE))
        record.updates_asked = _number(record.settings.get("training.updates"))
        run = Run(path, {})
        if run.steps():
            state, metrics = read_found(lambda: _last_and_best(run), _state_and_metrics)
            record.updates, record.seconds = state.update, state.seconds
            record.validation, record.test = _scores(metrics.get("validation")), _scores(metrics.get("test"))
            if _is_finished(state, record):
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


def _state_and_metrics(checkpoints: tuple[Path, Path]) -> tuple[TrainerState, dict[str, Any]]:
    last, best = checkpoints
    return read_state(last), read_metrics(best)


def _is_finished(state: TrainerState, record: RunRecord) -> bool:
    patience = _number(record.settings.get("training.patience")) or 0
    return 0 < patience <= state.validations_without_gain or state.update >= (record.updates_asked or math.inf)


def _diverged(path: Path) -> bool:
    """Say if the log ends with divergence.  Only its end is read."""
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
    """Keep the figures among the scores; signatures and the like are left out."""
    items = values.items() if isinstance(values, dict) else ()
    return {name: value for name, value in items if type(value) in (int, float) and math.isfinite(value)}


def differing_settings(records: Sequence[RunRecord]) -> list[str]:
    """List the full names of the settings that are not the same in all records that have any."""
    known = [record.settings for record in records if record.settings]
    names = sorted({name for settings in known for name in settings})
    return [name for name in names if any(settings.get(name) != known[0].get(name) for settings in known)]


def seed_groups(records: Sequence[RunRecord]) -> list[SeedGroup]:
    """Group the finished runs that differ in nothing but the seed, two or more of each kind."""
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
