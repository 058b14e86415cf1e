"""toolkit generate: text from a prompt, from a file of prompts, a pipe, or what you type."""

import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction

from toolkit.api import load_language_model
from toolkit.commands.console import emit_results, emit_text, typed_lines
from toolkit.commands.flags import BadWords, Dtype, Ids, ModelName, Output, Quiet, Resume, Workers
from toolkit.commands.lines import LongLines, Window, Work, file_windows, one_text, tell_one_text
from toolkit.commands.output import answer_all, check_output, written_file
from toolkit.decoding import ContinuationConfig
from toolkit.display import tell
from toolkit.errors import ConfigError, ModelError, ToolkitError
from toolkit.language_model import BATCH_SIZE, LanguageModel

# Of the context, what a prompt that is cut off leaves for its continuation.
_PART = 4


@dataclass
class Generate:
    """Continue the given text, every line of a file or of standard input, or what you type at a prompt.

    What the model writes is printed after its prompt, as it is written where there is one prompt. Several texts are
    separated by an empty line. An empty prompt lets the model begin.
    """

    examples = (
        '"Once upon a time"',
        '--model stories-ne "एकादेशमा" --seed 1',
        '"One day" --temperature 0 --no-repeat-ngram-size 4',
        "--file prompts.txt --json --output written.jsonl",
    )

    text: Positional[list[str]] = field(default_factory=list)
    """How the text begins; several are several prompts, words without quotation marks one. Without it, and without
    --file, or where it is -, lines of standard input are."""
    model: ModelName = "stories"
    file: Path | None = None
    """Text file in UTF-8 with one prompt a line; - is standard input."""
    output: Output = None
    resume: Resume = False
    long_lines: LongLines = "refuse"
    """A prompt that is longer than the model reads: refuse it, skip it (its text is empty), or truncate it after the
    last word that leaves room for more. How many there were is told at the end."""
    stop_strings: UseAppendAction[tuple[str, ...]] = ()
    """The text ends before this string; may be given several times."""
    bad_words: BadWords = ()
    only_new: bool = False
    """Print what the model writes, without the prompt."""
    json: bool = False
    """Write a JSON object for every prompt: its continuations with ids, tokens, log-probabilities and the score."""
    ids: Ids = False
    dtype: Dtype = "auto"
    workers: Workers = None
    batch_size: int = BATCH_SIZE
    """Prompts that are continued at once; all continuations of one are. Changes the speed and the last digits only."""
    quiet: Quiet = False
    generation: OmitArgPrefixes[ContinuationConfig] = field(default_factory=ContinuationConfig)

    def run(self) -> None:
        if self.text and self.file:
            raise ConfigError("text and --file are both given: choose one")
        for name in "batch_size", "workers":
            if (value := getattr(self, name)) is not None and value < 1:
                raise ConfigError(f"{name} is {value}: it must be at least 1")
        check_output(self, file=self.file)
        texts, written = one_text(self.text), written_file(self)
        typed = not self.text and not self.file and sys.stdin is not None and sys.stdin.isatty()
        if typed and written:
            raise ConfigError("--output is given without a prompt: give one, or --file, or a pipe")
        if typed:
            self._converse(_Work(self))
        elif len(texts) == 1 and texts != ["-"] and self.long_lines == "refuse" and not written:
            _Work(self).answer(texts[0])
        else:
            self._continue_all(texts)
        tell_one_text(self.text, self.quiet)

    def _continue_all(self, texts: list[str]) -> None:
        if texts and texts != ["-"]:
            windows: Iterable[Window | None] = [Window(texts, "the prompts")]
        else:
            windows = file_windows(self.file, long_lines=self.long_lines, live=not written_file(self))
        answer_all(_Work, self, _cut(windows, self.batch_size), self.file, "" if self.json else "\n")

    def _converse(self, work: "_Work") -> None:
        """Continue what is typed, until the end of input or an empty line."""
        tell("Type how a text begins; an empty line or Ctrl-D ends.")
        for number, prompt in enumerate(typed_lines()):
            try:
                work.answer(prompt, number)
            except KeyboardInterrupt:  # ends this text and nothing else
                tell("")
            except ToolkitError as error:
                tell(f"toolkit: {error}")


def _cut(windows: Iterable[Window | None], size: int) -> Iterator[Window | None]:
    """Yield windows of at most `size` prompts, so that the first results do not wait for thousands of others."""
    for window in windows:
        if window is None:
            yield None
        else:
            yield from (window.part(begin, begin + size) for begin in range(0, len(window.lines), size))


def load_writer(
    name: str, instead: str = "toolkit translate", ids: bool = False, dtype: Dtype = "auto"
) -> LanguageModel:
    """Read a model that continues texts; see `load_language_model`.

    Raises ModelError for one that was taught to converse: what it writes after a bare text is nonsense.
    """
    model = load_language_model(name, instead, ids, dtype)
    if model.model.config.template != "none" and not ids:
        chat = shlex.join(["toolkit", "chat", "--model", name])
        raise ModelError(f"{name} was taught to converse, and continues no bare text: {chat} asks it")
    return model


class _Work(Work):
    keys = ("prompt", "continuations")

    def __init__(self, command: Generate):
        super().__init__(command)
        self.seeded()
        self._model = load_writer(command.model, ids=command.ids, dtype=command.dtype)
        part, config = self._model.model.config.max_length // _PART, command.generation
        room = part if config.max_new_tokens is None else min(part, config.max_new_tokens)
        self._longer = replace(config, max_new_tokens=None, min_new_tokens=max(config.min_new_tokens, room))

    def _check(self, line: str, cut: bool = False) -> object:
        return self._model.encode([line], self._longer if cut else self._command.generation, str)

    def _answers(self, window: Window, cut: Sequence[int] = ()) -> list[str]:
        command = self._command
        where = window.where if window.name != "the prompts" else lambda number: f"prompt {window.before + number}"
        found = self._model.generate_n(
            window.lines,
            command.generation,
            stop_strings=command.stop_strings,
            bad_words=command.bad_words,
            batch_size=command.batch_size,
            where=where,
            first=window.before,
        )
        outputs = []
        for place, (prompt, group) in enumerate(zip(window.lines, found, strict=True)):
            begin = "" if command.only_new else prompt
            text = "\n\n".join(begin + each.text for each in group)
            outputs.append(self._json(prompt, group, "truncated" if place in cut else "") if command.json else text)
        return outputs

    def answer(self, prompt: str, number: int = 0) -> None:
        """Print the continuation of one prompt, as it is written where that can be; `number` were given before it."""
        command = self._command
        if command.json or command.generation.num_return_sequences > 1:
            outputs = self._answers(Window([prompt], "the prompt", number))
            self.tell_seed()
            emit_results(outputs)
            return
        words = {"stop_strings": command.stop_strings, "bad_words": command.bad_words}
        parts = self._model.stream(prompt, command.generation, **words, first=number)
        first = next(parts, "")  # what goes wrong at once is told before anything is printed
        self.tell_seed()
        emit_text(first if command.only_new else prompt + first)
        for part in parts:
            emit_text(part)
        emit_text("\n")
