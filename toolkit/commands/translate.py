"""toolkit translate: text, a file, a pipe or a prompt in, one line out for every line in."""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import OmitArgPrefixes, Positional, Suppress

from toolkit.api import BATCH_SIZE, Translator, load
from toolkit.commands.console import arriving_lines, emit
from toolkit.data.readers import read_lines, write_lines_atomically
from toolkit.decoding import GenerationConfig
from toolkit.errors import ConfigError, DataError, ToolkitError

# So many lines are sorted by length, translated and printed before the next.
_LINES_AT_A_TIME = 1024


@dataclass(frozen=True)
class OneTranslation(GenerationConfig):
    """How to search for the translation of a line. One beam and no sampling is greedy search."""

    num_return_sequences: Suppress[int] = 1


@dataclass
class Translate:
    """Translate the given text, a file, standard input, or what you type at a prompt.

    Every line gives exactly one line of output, in order; an empty line gives an empty one. Only translations go to
    standard output.
    """

    text: Positional[list[str]] = field(default_factory=list)
    """What to translate, before or after all flags. Without it, and without --file, lines come from standard input."""
    model: str = "en-ne"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    file: Path | None = None
    """Text file in UTF-8 to translate line by line."""
    output: Path | None = None
    """File to write instead of standard output; it takes its name when all is translated."""
    batch_size: int = BATCH_SIZE
    """Sentences that are translated at once. Changes the speed, not the result."""
    generation: OmitArgPrefixes[OneTranslation] = field(default_factory=OneTranslation)

    def run(self) -> None:
        if self.text and self.file:
            raise ConfigError("text and --file are both given: choose one")
        typed = not self.text and not self.file and sys.stdin is not None and sys.stdin.isatty()
        if typed and self.output:
            raise ConfigError("--output is given without a text: give one, or --file, or a pipe")
        translator = load(self.model)
        if typed:
            self._converse(translator)
        elif self.output:
            write_lines_atomically(self.output, (line for lines in self._translations(translator) for line in lines))
        else:
            for lines in self._translations(translator):
                emit(lines)

    def _translations(self, translator: Translator) -> Iterator[list[str]]:
        """The translations of the whole input, as many lines at a time as are ready."""
        name, pieces = self._input()
        if self.generation.samples:  # samples depend on a line's number, so they must not on when it arrives
            return iter([self._translate(translator, [line for lines in pieces for line in lines], name, 0)])
        return self._in_turn(translator, name, pieces)

    def _in_turn(self, translator: Translator, name: str, pieces: Iterator[list[str]]) -> Iterator[list[str]]:
        done = 0
        for lines in pieces:
            for begin in range(0, len(lines), _LINES_AT_A_TIME):
                yield self._translate(translator, lines[begin : begin + _LINES_AT_A_TIME], name, done + begin)
            done += len(lines)

    def _input(self) -> tuple[str, Iterator[list[str]]]:
        """Where the lines come from, and the lines."""
        if self.text:
            return "the text", iter([[line for text in self.text for line in text.split("\n")]])
        if self.file:
            return str(self.file), iter([read_lines(self.file)])
        if sys.stdin is None:
            raise DataError("standard input is closed: give a text or --file")
        return "standard input", arriving_lines(sys.stdin.buffer, "standard input")

    def _translate(self, translator: Translator, lines: list[str], name: str, done: int) -> list[str]:
        def where(number: int) -> str:
            return f"{name}, line {done + number}"

        translations = translator.translate_all(lines, self.generation, self.batch_size, where)
        # A model can write any character, a line feed too; a translation is one line all the same.
        return [re.sub(r"[\r\n]+", " ", translation) for translation in translations]

    def _converse(self, translator: Translator) -> None:
        """Translate line by line what is typed, until the end of input or an empty line."""
        print("Type a sentence to translate; an empty line or Ctrl-D ends.", file=sys.stderr)
        while line := _typed().strip():
            try:
                emit(self._translate(translator, [line], "the text", 0))
            except ToolkitError as error:
                print(f"toolkit: {error}", file=sys.stderr)


def _typed() -> str:
    """The next line of the terminal; empty at its end."""
    if sys.stdout.isatty():
        with suppress(ImportError):  # not on every system
            import readline  # noqa: F401  (importing it gives input() its line editing and history)
        prompt = "> "
    else:
        print("> ", end="", file=sys.stderr, flush=True)  # input() would print it among the results
        prompt = ""
    try:
        return input(prompt)
    except EOFError:
        print(file=sys.stderr)
        return ""
    except UnicodeDecodeError as error:
        raise DataError("the terminal sends text that is not UTF-8: set its encoding to UTF-8") from error
