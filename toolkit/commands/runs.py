"""toolkit runs: the runs below a directory, side by side."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.display import json_text
from toolkit.training.table import (
    SCORES,
    RunRecord,
    SeedGroup,
    differing_settings,
    find_runs,
    read_run,
    seed_groups,
)

_LONGEST_VALUE = 24
_SHOWN = {"loss": ("loss", "{:.3f}"), "chrf": ("chrF", "{:.2f}"), "bleu": ("BLEU", "{:.2f}")}


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
                "runs": [record.to_dict() for record in records],
                "seeds": [group.to_dict() for group in groups],
            }
            emit([json_text(facts)])
        else:
            emit(_lines(records, differing, groups))


def _name(path: Path, directory: Path) -> str:
    return str(path.relative_to(directory)) if path != directory else str(path)


def _lines(records: Sequence[RunRecord], differing: Sequence[str], groups: Sequence[SeedGroup]) -> list[str]:
    test = [name for name in SCORES if any(name in record.test for record in records)]
    titles = ["run", "state", "updates", "time", *(_SHOWN[name][0] for name in SCORES)]
    titles += [f"test {_SHOWN[name][0]}" for name in test] + ["settings that differ"] * bool(differing)
    rows = [[*_facts(record), *_figures(record, test), _settings(record, differing)] for record in records]
    for group in groups:
        figures = [_spread(group.validation, name) for name in SCORES] + [_spread(group.test, name) for name in test]
        rows.append([f"{len(group.names)} seeds, mean ± s.d.", "", "", "", *figures, ", ".join(group.names)])
    notes = [f"{record.name}: {record.problem}" for record in records if record.problem]
    return _table([titles, *rows]) + ([""] if notes else []) + notes


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


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    """Rows as lines, every column but the last padded to its widest cell."""
    count = max(map(len, rows))
    padded = [[*row, *[""] * (count - len(row))] for row in rows]
    widths = [max(len(row[column]) for row in padded) for column in range(count)]
    return ["  ".join(f"{cell:{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in padded]
