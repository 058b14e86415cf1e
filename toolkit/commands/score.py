"""toolkit score: how probable the model finds translations that are given."""

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from toolkit.api import load_translator
from toolkit.commands.console import emit_results
from toolkit.commands.records import json_line
from toolkit.commands.windows import Window, file_windows, input_windows, line_count, with_progress
from toolkit.errors import ConfigError, DataError
from toolkit.parallel import in_order
from toolkit.translations import Translation
from toolkit.translator import BATCH_SIZE
from toolkit.untrusted import UnfitError, parse_json

# A text, or the ids of one.
Target = str | list[int]


@dataclass
class Score:
    """Score given translations: the log-probability that the model gives them.

    Either two text files, line by line, or JSON lines, from --file or standard input: {"source": text, "target": text}
    or {"source": text, "ids": [...]}, or what `toolkit translate --json` wrote, whose translations are scored by their
    ids. A text has the score of the ids that it is tokenized to, which need not be those that the model wrote.

    Every translation gives a line: score, log-probability and number of tokens, end mark included, separated by tabs.
    The score is the log-probability divided by tokens ** length penalty. Two empty lines give an empty line.
    """

    model: str = "en-ne"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    source: Path | None = None
    """Text file in UTF-8 with the sentences that were translated."""
    target: Path | None = None
    """Text file in UTF-8 with their translations, line by line."""
    file: Path | None = None
    """File of JSON lines."""
    length_penalty: float = 1.0
    """As in `toolkit translate`."""
    json: bool = False
    """Write a JSON object for every line, as `toolkit translate --json` does."""
    alignments: bool = False
    """With --json: which source words each word comes from, and the attention that says so."""
    workers: int | None = None
    """Processes. By default one, and for long input one a core. Changes the speed, not the result."""
    batch_size: int = BATCH_SIZE
    """Pairs that are scored at once. Changes the speed, not the result."""
    quiet: bool = False
    """Show no progress."""

    def run(self) -> None:
        self._check()
        shown = not self.quiet and sys.stdout is not None and not sys.stdout.isatty()
        path = self.source or self.file
        results = with_progress(in_order(_Work(self), self._windows(), self.workers), lambda: line_count(path), shown)
        with closing(results):
            for lines in results:
                emit_results(lines)

    def _check(self) -> None:
        """Raises ConfigError for flags that contradict each other."""
        if (self.source is None) != (self.target is None):
            raise ConfigError("--source and --target go together: give both files, or JSON lines in --file or a pipe")
        if self.source and self.file:
            raise ConfigError("--file and --source are both given: choose JSON lines or two text files")
        if not (self.source or self.file) and sys.stdin is not None and sys.stdin.isatty():
            raise ConfigError("give what to score: --source and --target, or JSON lines in --file or a pipe")
        if not math.isfinite(self.length_penalty):
            raise ConfigError(f"length_penalty is {self.length_penalty}: it must be a finite number")
        if self.alignments and not self.json:
            raise ConfigError("--alignments are shown in JSON only: add --json")

    def _windows(self) -> Iterator[Window | None]:
        if self.source:
            return file_windows(self.source, self.target, "translation")
        return file_windows(self.file) if self.file else input_windows()


class _Work:
    """Scores windows, in whichever process.  Pickled, it is the command, and loads the model again."""

    def __init__(self, command: Score):
        self._command, self._translator = command, load_translator(command.model, instead="toolkit perplexity")

    def __reduce__(self) -> tuple:
        return _Work, (self._command,)

    def __call__(self, window: Window) -> list[str]:
        """The output for every line; several lines where several translations are scored."""
        requests = [*_requests(window)]
        places = [window.where(number) for number, (_, targets) in enumerate(requests, start=1) for _ in targets]
        scored = iter(
            self._translator.scores(
                [source for source, targets in requests for _ in targets],
                [target for _, targets in requests for target in targets],
                length_penalty=self._command.length_penalty,
                alignments=self._command.alignments,
                batch_size=self._command.batch_size,
                where=lambda number: places[number - 1],
            )
        )
        groups = [(source, [*islice(scored, len(targets))]) for source, targets in requests]
        return [json_line(*group) if self._command.json else _lines(group[1]) for group in groups]


def _lines(translations: Sequence[Translation]) -> str:
    return "\n".join(f"{each.score:.6f}\t{each.log_prob:.6f}\t{len(each.tokens)}" for each in translations)


def _requests(window: Window) -> Iterator[tuple[str, list[Target]]]:
    """The source of every line, and the translations of it that are to be scored."""
    if window.partners is None:
        for number, line in enumerate(window.lines, start=1):
            yield _request(line, window.where(number))
        return
    for source, target in zip(window.lines, window.partners, strict=True):
        yield source, [target] if source.strip() or target.strip() else []


def _request(line: str, where: str) -> tuple[str, list[Target]]:
    try:
        value = parse_json(line)
    except UnfitError as error:
        raise DataError(f'{where} is not JSON: give a line like {{"source": "…", "target": "…"}}') from error
    source = value.get("source") if isinstance(value, dict) else None
    if not isinstance(source, str):
        raise DataError(f'{where} is not an object with a text as "source"')
    translations = value.get("translations", [value])
    if not isinstance(translations, list):
        raise DataError(f'{where} has "translations" that are not a list')
    return source, [_target(each, where) for each in translations]


def _target(value: Any, where: str) -> Target:
    """The ids of a translation, and without them its text."""
    found = None
    if isinstance(value, dict):
        found = next((value[name] for name in ("ids", "target", "text") if name in value), None)
    if isinstance(found, str) or (isinstance(found, list) and all(type(each) is int for each in found)):
        return found
    raise DataError(f'{where} has no translation: it needs "target", a text, or "ids", a list of whole numbers')
