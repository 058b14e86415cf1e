"""toolkit translate: text, a file, a pipe or a prompt in, one line out for every line in."""

import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import DisallowNone, OmitArgPrefixes, Positional

from toolkit.api import load_translator
from toolkit.commands.console import emit_results, typed_lines
from toolkit.commands.flags import (
    Alignments,
    BadWords,
    Dtype,
    Ids,
    ModelName,
    Quiet,
    SourceLanguage,
    TargetLanguage,
    Workers,
)
from toolkit.commands.lines import (
    LongLines,
    Window,
    Work,
    answered,
    check_inputs,
    file_windows,
    is_input,
    is_same_file,
    one_text,
    tell_one_text,
    text_windows,
)
from toolkit.data.lines import write_lines_atomically
from toolkit.decoding import GenerationConfig
from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.translator import BATCH_SIZE


@dataclass
class Translate:
    """Translate the given text, a file, standard input, or what you type at a prompt.

    Every line gives exactly one line of output, in order; an empty line gives an empty one. Only translations go to
    standard output. Input and output may be larger than memory.
    """

    examples = (
        '"I am a boy"',
        "--file letter.txt --num-beams 4 --output letter.ne",
        '--json --alignments "My mother is at home."',
        '--do-sample --temperature 0.8 --seed 7 "I am a boy"',
    )

    text: Positional[list[str]] = field(default_factory=list)
    """What to translate, before or after all flags; words without quotation marks are one text. Without it, and without
    --file, or where it is -, lines come from standard input."""
    model: ModelName = "en-ne"
    file: Path | None = None
    """Text file in UTF-8 to translate line by line; - is standard input."""
    output: Path | None = None
    """File to write instead of standard output (-); it takes its name when all is translated."""
    prefix: str = ""
    """What every translation begins with, that of the first sentence."""
    prefix_file: Path | None = None
    """Text file with what the translation of each line begins with; an empty line leaves the model free."""
    split_sentences: DisallowNone[bool | None] = None
    """Translate every sentence of a line by itself, and keep what stands between; otherwise a line is one sentence.
    Default: as the model was trained."""
    long_lines: LongLines = "refuse"
    """A line with a sentence that is longer than the model reads: refuse it, skip it (its translation is empty), or
    truncate it after the last word that fits. How many there were is told at the end."""
    bad_words: BadWords = ()
    json: bool = False
    """Write a JSON object for every line: its translations with ids, tokens, their log-probabilities and the score; of
    several sentences, the same for each as "segments"."""
    ids: Ids = False
    alignments: Alignments = False
    source_language: SourceLanguage = None
    target_language: TargetLanguage = None
    dtype: Dtype = "auto"
    workers: Workers = None
    batch_size: int = BATCH_SIZE
    """Sentences that are translated at once. Changes the speed, not the result."""
    quiet: Quiet = False
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def run(self) -> None:
        self._check()
        typed = not self.text and not self.file and sys.stdin is not None and sys.stdin.isatty()
        if typed and (self._written or self.prefix_file):
            flag = "--output" if self._written else "--prefix-file"
            raise ConfigError(f"{flag} is given without a text: give one, or --file, or a pipe")
        work = _Work(self)
        if typed:
            self._converse(work)
            return
        with answered(work, self._windows(), self, self.file, self._written) as results:
            if self._written:
                write_lines_atomically(self.output, (line for lines in results for line in lines))
            else:
                for lines in results:
                    emit_results(lines)
        tell_one_text(self.text, self.quiet)

    @property
    def _written(self) -> bool:
        return self.output is not None and not is_input(self.output)

    def _check(self) -> None:
        """Raises ConfigError for flags that contradict each other."""
        if self.text and self.file:
            raise ConfigError("text and --file are both given: choose one")
        if self.prefix and self.prefix_file:
            raise ConfigError("--prefix and --prefix-file are both given: choose one")
        check_inputs(file=Path("-") if self.text == ["-"] else self.file, prefix_file=self.prefix_file)
        for flag, path in ("--file", self.file), ("--prefix-file", self.prefix_file):
            if self._written and path and is_same_file(path, self.output):
                raise ConfigError(f"--output would replace {path}, which {flag} reads: choose another name")
        if self.alignments and not self.json:
            raise ConfigError("--alignments are shown in JSON only: add --json")
        if self.generation.num_return_sequences > 1 and not self.json:
            raise ConfigError("several translations of a line are shown in JSON only: add --json")

    def _windows(self) -> Iterator[Window | None]:
        if self.text and self.text != ["-"]:
            return text_windows(one_text(self.text), self.prefix_file, "prefix")
        return file_windows(self.file, self.prefix_file, "prefix", self.long_lines)

    def _converse(self, work: "_Work") -> None:
        """Translate line by line what is typed, until the end of input or an empty line."""
        tell("Type a sentence to translate; an empty line or Ctrl-D ends.")
        for number, line in enumerate(typed_lines()):
            try:
                outputs = work(Window([line.strip()], "the text", spoken_before=number)).outputs
                work.tell_seed()
                emit_results(outputs)
            except ToolkitError as error:
                tell(f"toolkit: {error}")


class _Work(Work):
    def __init__(self, command: Translate):
        super().__init__(command)
        self.seeded()
        translator = load_translator(command.model, ids=command.ids, dtype=command.dtype)
        self._translator = translator.between(command.source_language, command.target_language)

    def _check(self, line: str, cut: bool = False) -> object:
        return self._translator.read([line], str, self._command.split_sentences)

    def _answers(self, window: Window, cut: Sequence[int] = ()) -> list[str]:
        command = self._command
        settings = {
            "prefix": window.partners or command.prefix,
            "bad_words": command.bad_words,
            "split_sentences": command.split_sentences,
            "batch_size": command.batch_size,
            "where": window.where,
            "first": window.spoken_before,
        }
        if not command.json:
            found = self._translator.translate(window.lines, command.generation, **settings)
            # A model can write any character, a line feed too; a translation is one line all the same.
            return [re.sub(r"[\r\n]+", " ", translation) for translation in found]
        settings["alignments"] = command.alignments
        groups = self._translator.translate_n(window.lines, command.generation, **settings)
        return [
            self._json(line, group, "truncated" if place in cut else "")
            for place, (line, group) in enumerate(zip(window.lines, groups, strict=True))
        ]
