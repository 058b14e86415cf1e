"""The verbs for training runs: runs compares them side by side, plot draws their curves."""

import json
import math
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Annotated, Any, Literal

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import aligned, json_text, tell
from toolkit.errors import ConfigError, ModelError
from toolkit.files import check_writable
from toolkit.lock import is_locked
from toolkit.models.storage import read_found, read_json, read_metrics
from toolkit.training.checkpoint import read_state
from toolkit.training.config import flat_settings
from toolkit.training.run import LOG_FILE, SETTINGS_FILE, Run, find_runs
from toolkit.untrusted import UnfitError, open_regular, parse_json

_LONGEST = 24  # characters of a value
_MOST = 8  # settings of a run that are shown
SCORES = {"loss": ("loss", "{:.3f}"), "chrf": ("chrF", "{:.2f}"), "bleu": ("BLEU", "{:.2f}")}


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

    examples = (
        "checkpoints",
        "checkpoints/seeds --json",
    )

    directory: Positional[Path]
    """Directory that holds runs, or a run."""
    json: bool = False
    """Print one JSON object instead of a table."""

    def run(self) -> None:
        paths = find_runs(self.directory)
        names = [str(path if path == self.directory else path.relative_to(self.directory)) for path in paths]
        records = list(map(read_run, paths, names))
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


def _lines(records: Sequence[RunRecord], differing: Sequence[str], groups: Sequence[SeedGroup]) -> list[str]:
    test = [name for name in SCORES if any(name in record.test for record in records)]
    titles = ["run", "state", "updates", "time", *(SCORES[name][0] for name in SCORES)]
    titles += [f"test {SCORES[name][0]}" for name in test] + ["settings that differ" if differing else ""]
    rows = [titles]
    for record in records:
        asked = "?" if record.updates_asked is None else record.updates_asked
        own = [(name, str(record.settings[name])) for name in differing if name in record.settings]
        short = (f"{name}={text if len(text) <= _LONGEST else '…' + text[1 - _LONGEST :]}" for name, text in own)
        shown = [*islice(short, _MOST), *([f"and {len(own) - _MOST} more: --json"] if len(own) > _MOST else [])]
        figures = [*_figures(record.validation, SCORES), *_figures(record.test, test)]
        rows.append(
            [record.name, record.state, f"{record.updates}/{asked}", _time(record.seconds), *figures, "  ".join(shown)]
        )
    for group in groups:
        figures = [*_figures(group.validation, SCORES), *_figures(group.test, test)]
        rows.append([f"{len(group.names)} seeds, mean ± s.d.", "", "", "", *figures, ", ".join(group.names)])
    notes = [f"{record.name}: {record.problem}" for record in records if record.problem]
    return aligned(rows, range(len(titles))) + ([""] if notes else []) + notes


def _figures(scores: Mapping[str, float | tuple[float, float]], names: Iterable[str]) -> Iterator[str]:
    """Write the scores with these names; of several runs they are mean and standard deviation."""
    for name in names:
        values = scores.get(name, ())
        yield " ± ".join(map(SCORES[name][1].format, values if isinstance(values, tuple) else [values])) or "-"


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
            best = "best" if (path / "best").exists() else "last"
            state, metrics = read_found(
                lambda: (run.named("last"), run.named(best)),
                lambda found: (read_state(found[0]), read_metrics(found[1])),
            )
            record.updates, record.seconds = state.update, state.seconds
            record.validation, record.test = _scores(metrics.get("validation")), _scores(metrics.get("test"))
            patience = _number(record.settings.get("training.patience")) or 0
            if 0 < patience <= state.validations_without_gain or state.update >= (record.updates_asked or math.inf):
                record.state = "finished"
                return record
        record.state = "running" if is_locked(path) else "diverged" if _diverged(path) else "stopped"
    except ModelError as error:
        record.state, record.problem = "damaged", str(error)
    except OSError as error:
        record.state, record.problem = "damaged", f"{error.filename} cannot be read: {error.strerror}"
    return record


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
            rest = {name: value for name, value in record.settings.items() if name != "training.seed"}
            kinds.setdefault(json.dumps(rest, sort_keys=True), []).append(record)
    return [
        SeedGroup(
            [one.name for one in alike], *(_means([getattr(one, of) for one in alike]) for of in ("validation", "test"))
        )
        for alike in kinds.values()
        if len(alike) > 1
    ]


def _means(scores: Sequence[dict[str, float]]) -> dict[str, tuple[float, float]]:
    shared = [name for name in scores[0] if all(name in other for other in scores)]
    columns = {name: [values[name] for values in scores] for name in shared}
    return {name: (statistics.mean(column), statistics.stdev(column)) for name, column in columns.items()}


@dataclass
class Plot:
    """Draw what runs have logged: losses, scores, learning rate, speed; a panel for each, a colour for each run.

    Training loss and validation loss share a panel. Where a run diverged and went back, its panels have a dashed line.
    A run may still be training. For a PNG the library matplotlib must be installed: pip install 'matplotlib>=3.11'.
    """

    examples = (
        "checkpoints/own",
        "checkpoints/seeds --metrics loss chrf --output seeds.svg",
    )

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN [RUN ...]")]]
    """Runs, or directories that hold runs, such as those of several seeds."""
    output: Path = Path("curves.png")
    """The picture to write, .png or .svg; an older one is replaced."""
    metrics: tuple[str, ...] = ()
    """Draw only these, in this order; the names are those in log.jsonl, such as loss, learning_rate or chrf."""
    x: Literal["updates", "tokens", "seconds"] = "updates"
    """The axis: updates, tokens trained on (a preference run counts pairs), or seconds spent in updates."""

    def run(self) -> None:
        from toolkit.pages.drawing import picture_format
        from toolkit.training.logs import find_logs, panels, run_curves

        if not self.runs:
            raise ConfigError("RUN is missing: give the directory of a run, or one that holds runs")
        picture_format(self.output)
        check_writable(self.output)
        logs, empty = find_logs(self.runs)
        metrics = list(panels(logs, self.metrics))
        run_curves(logs, metrics, self.x).save(self.output)
        if empty:
            tell(f"toolkit: no figures yet: {', '.join(empty)}")
        emit([f"{self.output}: {len(logs)} {'run' if len(logs) == 1 else 'runs'}: {', '.join(metrics)}"])
