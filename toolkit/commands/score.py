"""toolkit score: how probable the model finds translations that are given."""

import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toolkit.api import load_translator
from toolkit.commands.flags import (
    Alignments,
    Dtype,
    Ids,
    ModelName,
    Output,
    Quiet,
    Resume,
    SourceLanguage,
    TargetLanguage,
    Workers,
)
from toolkit.commands.lines import Answer, LongLines, Window, Work, check_inputs, file_windows
from toolkit.commands.output import answer_all, check_output, written_file
from toolkit.data.lines import LONGEST_LINE
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.outputs import Translation
from toolkit.translator import BATCH_SIZE
from toolkit.untrusted import UnfitError, parse_json

# A text or the ids of one, or a list of such for the sentences of the source.
Target = str | list[int] | list[str | list[int]]


class Request(NamedTuple):
    """A source, and the translations of it that are to be scored; None where they are too long to be."""

    source: str
    targets: list[Target] | None


@dataclass
class Score:
    """Score given translations: the log-probability that the model gives them.

    Either two text files, line by line, or JSON lines, from --file or standard input: {"source": text, "target": text}
    or {"source": text, "ids": [...]}, or what `toolkit translate --json` wrote, whose translations are scored by their
    ids. A text has the score of the ids that it is tokenized to, which need not be those that the model wrote.

    Every translation gives a line: score, log-probability and number of tokens, EOS included, separated by tabs.
    The score is the log-probability divided by tokens ** length penalty. Two empty lines give an empty line.
    """

    examples = (
        "--source new.en --target new.ne",
        "--file pairs.jsonl --json --alignments",
        "--json < translations.jsonl",
    )

    model: ModelName = "en-ne"
    source: Path | None = None
    """Text file in UTF-8 with the sentences that were translated; - is standard input, here and below."""
    target: Path | None = None
    """Text file in UTF-8 with their translations, line by line."""
    file: Path | None = None
    """File of JSON lines."""
    output: Output = None
    resume: Resume = False
    long_lines: Literal["refuse", "skip"] = "refuse"
    """A source or translation that is longer than the model reads: refuse it, or skip its line, which becomes empty.
    How many there were is told at the end."""
    length_penalty: float = 1.0
    """As in `toolkit translate`."""
    json: bool = False
    """Write a JSON object for every line, as `toolkit translate --json` does."""
    ids: Ids = False
    alignments: Alignments = False
    source_language: SourceLanguage = None
    target_language: TargetLanguage = None
    dtype: Dtype = "auto"
    workers: Workers = None
    batch_size: int = BATCH_SIZE
    """Pairs that are scored at once. Changes the speed, not the result."""
    quiet: Quiet = False

    def run(self) -> None:
        self._check()
        path = self.source or self.file
        windows = file_windows(path, self.target, "translation", self.long_lines, live=not written_file(self))
        answer_all(_Work, self, windows, path)

    def _check(self) -> None:
        """Raises ConfigError for flags that contradict each other."""
        if (self.source is None) != (self.target is None):
            raise ConfigError("--source and --target go together: give both files, or JSON lines in --file or a pipe")
        if self.source and self.file:
            raise ConfigError("--file and --source are both given: choose JSON lines or two text files")
        check_inputs(source=self.source, target=self.target)
        check_output(self, source=self.source, target=self.target, file=self.file)
        if not (self.source or self.file) and sys.stdin is not None and sys.stdin.isatty():
            raise ConfigError("give what to score: --source and --target, or JSON lines in --file or a pipe")
        if not math.isfinite(self.length_penalty):
            raise ConfigError(f"length_penalty is {self.length_penalty}: it must be a finite number")
        if self.alignments and not self.json:
            raise ConfigError("--alignments are shown in JSON only: add --json")


class _Work(Work):
    def __init__(self, command: Score):
        super().__init__(command)
        translator = load_translator(command.model, "toolkit perplexity", command.ids, command.dtype)
        self._translator = translator.between(command.source_language, command.target_language)

    def __call__(self, window: Window) -> Answer:
        """Give the output of every line; several lines where several translations are scored."""
        read = enumerate(_requests(window, self._command.long_lines), start=1)
        requests = [self._fitting(request, window.where(number)) for number, request in read]
        places = [window.where(number) for number, (_, targets) in enumerate(requests, start=1) for _ in targets or ()]
        scored = iter(
            self._translator.score(
                [source for source, targets in requests for _ in targets or ()],
                [target for _, targets in requests for target in targets or ()],
                length_penalty=self._command.length_penalty,
                alignments=self._command.alignments,
                batch_size=self._command.batch_size,
                where=lambda number: places[number - 1],
            )
        )
        outputs = [self._shown(request, scored) for request in requests]
        long = [number for number, request in enumerate(requests, start=1) if request.targets is None]
        return Answer(outputs, [*map(window.where, long)])

    def _fitting(self, request: Request, name: str) -> Request:
        """Take the translations from a request that is too long, where such are skipped."""
        if self._command.long_lines == "skip" and request.targets is not None:
            try:
                self._translator.pairs([request.source] * len(request.targets), request.targets, lambda _: name)
            except LengthError:
                return Request(request.source, None)
        return request

    def _shown(self, request: Request, scored: Iterator[Translation]) -> str:
        found = [*islice(scored, len(request.targets or ()))]
        if not self._command.json:
            return "\n".join(f"{each.score:.6f}\t{each.log_prob:.6f}\t{len(each.tokens)}" for each in found)
        return self._json(request.source, found, "skipped" if request.targets is None else "")


def _requests(window: Window, long_lines: LongLines) -> Iterator[Request]:
    for place, line in enumerate(window.lines):
        target = None if window.partners is None else window.partners[place]
        if long_lines == "skip" and max(len(line), len(target or "")) > LONGEST_LINE:
            yield Request("" if target is None else line, None)
        elif target is None:
            yield Request(*_request(line, window.where(place + 1)))
        else:
            yield Request(line, [target] if line.strip() or target.strip() else [])


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
    """Read the ids of a translation, and without them its text; of several sentences those of each."""
    found = None
    if isinstance(value, dict) and isinstance(value.get("segments"), list):
        return [_target(each, where) for each in value["segments"]]
    if isinstance(value, dict):
        found = next((value[name] for name in ("ids", "target", "text") if name in value), None)
    if isinstance(found, str) or (isinstance(found, list) and all(type(each) is int for each in found)):
        return found
    raise DataError(f'{where} has no translation: it needs "target", a text, or "ids", a list of whole numbers')
