"""toolkit perplexity: how well does a language model predict a text?"""

import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from tyro.conf import Positional

from toolkit.api import load_language_model
from toolkit.commands.console import emit
from toolkit.commands.flags import Dtype, Ids, ModelName, Quiet, Workers
from toolkit.commands.lines import file_windows, is_input
from toolkit.data.texts import Piece, TextSource, open_texts
from toolkit.display import aligned, json_text, progress_bar
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation.perplexity import Perplexity, pooled
from toolkit.language_model import LanguageModel
from toolkit.parallel import in_order
from toolkit.tokenization import Tokenizer


@dataclass
class MeasurePerplexity:
    """Measure how well a language model predicts text files: loss, perplexity, bits per byte.

    Every token is predicted once, from those before it within the model's context, in one deterministic pass. Files
    may be larger than memory. Perplexities compare models of one tokenizer, bits per byte compare any.

    A model that knows BOS reads every document after it and predicts its EOS. Where there are no documents (none), and
    with any other model, a file is one text: its first token is not predicted without BOS, its end never.

    With --ids, every line is a text of its own, read as it is: its first id is not predicted, and its end only where it
    stands there. There are no bytes then, and no bits per byte.
    """

    examples = (
        "story.txt",
        "story.txt --model checkpoints/book --overlap 128",
        "story.txt other.txt --json",
    )

    files: Positional[Annotated[tuple[Path, ...], tyro.conf.arg(metavar="FILE...")]]
    """Text files in UTF-8 (also .gz), or directories with .txt files; - is standard input."""
    model: ModelName = "stories"
    overlap: int = 0
    """Tokens of a window of the context that the next one reads again; more is slower, and nearer to reading it all."""
    documents: Literal["auto", "none", "file", "line", "blank"] = "auto"
    """What ends with EOS: each file, line, or text between blank lines; auto: blank if the model knows BOS."""
    json: bool = False
    """Print one JSON object instead of text."""
    ids: Ids = False
    dtype: Dtype = "auto"
    workers: Workers = None
    quiet: Quiet = False

    def run(self) -> None:
        if not self.files:
            raise ConfigError("no file is given: name the texts to measure on")
        if self.ids and self.documents != "auto":
            raise ConfigError(f"--documents is {self.documents}, but with --ids every line is a text: leave it out")
        if len({*self.files}) < len(self.files):
            raise ConfigError("a file is named twice: name each once")
        instead = "toolkit score, which scores given translations"
        model = load_language_model(self.model, instead, self.ids, self.dtype)
        marks = model.model.config.begin
        documents = self.documents if self.documents != "auto" else "blank" if marks else "none"
        if documents != "none" and not marks:
            raise ConfigError(f"--documents is {documents}, but {self.model} knows no marks between texts: use none")
        if self.ids:
            documents = "line"
            sources = [IdLines(path, model.tokenizer) for path in self.files]
        else:
            sources = open_texts(self.files, [], "text", documents, once=True)
        found = {source.name: self._measured(model, source, marks and documents != "none") for source in sources}
        total = pooled(found.values())
        if self.json:
            figures = {"model": self.model, "documents": documents, "overlap": self.overlap, **_known(total)}
            emit([json_text(figures | {"files": {name: _known(one) for name, one in found.items()}})])
        else:
            emit(_lines(found, total))

    def _measured(self, model: LanguageModel, source: TextSource, marks: bool) -> Perplexity:
        def each(work: Callable[[Any], Any], batches: Iterable[Any]) -> Iterator[Any]:
            with closing(in_order(work, batches, self.workers)) as results:
                yield from results

        shown = not self.quiet and sys.stderr is not None and sys.stderr.isatty()
        pieces = _with_progress(source) if shown else source
        try:
            return model.perplexity_of(pieces, self.overlap, marks, len(source.separator.encode()), each)
        except DataError as error:
            if source.name in str(error):
                raise
            raise DataError(f"{source.name} cannot be measured: {error}") from error


def _with_progress(source: TextSource) -> Iterator[Piece]:
    """Yield the pieces as they are, with a bar on the terminal: how many bytes, how fast, how long still."""
    with progress_bar(False, total=source.bytes, unit="B", unit_scale=True, dynamic_ncols=True) as bar:
        for piece in source:
            yield piece
            bar.update(len(piece.text.encode()))


class IdLines:
    """Lines of ids, each a text of its own; see `TextSource`.  Raises DataError, naming the line, for what is no id."""

    separator, bytes = "", None

    def __init__(self, path: Path, tokenizer: Tokenizer):
        self.name, self._path, self._tokenizer = "standard input" if is_input(path) else str(path), path, tokenizer

    def __iter__(self) -> Iterator[Piece]:
        for window in file_windows(self._path):
            for number, line in enumerate(window.lines if window else (), start=1):
                try:
                    self._tokenizer.encode(line)
                except DataError as error:
                    raise DataError(f"{window.where(number)} cannot be read: {error}") from error
                yield Piece(line, True)


def _known(found: Perplexity) -> dict[str, Any]:
    """Give the figures by name, without those that need a text where there is none."""
    figures = asdict(found)
    return figures if found.bytes else {name: figures[name] for name in ("loss", "perplexity", "tokens")}


def _lines(found: dict[str, Perplexity], total: Perplexity) -> list[str]:
    of_text = ("bits per byte", "bytes") if total.bytes else ()
    rows = [("", "nats per token", "perplexity", *of_text[:1], "tokens", *of_text[1:])]
    for name, one in {**found, **({"all together": total} if len(found) > 1 else {})}.items():
        bits, size = ([f"{one.bits_per_byte:.4f}"], [f"{one.bytes:,}"]) if total.bytes else ((), ())
        rows.append((name, f"{one.loss:.4f}", f"{one.perplexity:.4g}", *bits, f"{one.tokens:,}", *size))
    return aligned(rows)
