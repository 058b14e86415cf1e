"""Where the texts of a language model come from: text files, folders of them, tables and datasets, read as streams."""

import hashlib
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, Protocol

from toolkit.data.lines import opened
from toolkit.data.sources import LineFiles, digest_of_files, find_table, path_mode, refuse_pipe
from toolkit.data.table import Table
from toolkit.data.tables import table_rows
from toolkit.data.text_pieces import Piece, cut_up, line_documents, one_document, paragraph_documents, text_pieces
from toolkit.errors import ConfigError, DataError

Documents = Literal["none", "file", "line", "blank"]

_SEPARATORS: dict[Documents, str] = {"none": "", "file": "", "line": "\n", "blank": "\n\n"}


class TextSource(Protocol):
    """Texts that are read from the disk, from the beginning at every iteration; memory does not grow with them.

    name: for sentences. bytes: how much is to be read, None where that is not known before. separator: what stood
    between two documents, which their pieces do not contain.
    """

    name: str
    bytes: int | None
    separator: str

    def __iter__(self) -> Iterator[Piece]: ...

    def fingerprint(self) -> str:
        """A hexadecimal digest that changes when the contents do, and not when only names do."""
        ...


class TextFiles:
    """One text file or all those of a folder, in UTF-8; see `text_pieces` for what is read and refused.

    documents: "none": no document ends; what follows, be it in the next file, goes on where this one stops, as if the
    files were one. "file": a file is a document. "line": a line that is not blank. "blank": what stands between
    blank lines.
    """

    def __init__(self, name: str, paths: Sequence[Path], documents: Documents):
        self.name, self.separator = name, _SEPARATORS[documents]
        self._paths, self._documents = paths, documents
        counted = all(path.is_file() and not path.name.lower().endswith(".gz") for path in paths)
        self.bytes = sum(path.stat().st_size for path in paths) if counted else None

    def __iter__(self) -> Iterator[Piece]:
        for path in self._paths:
            pieces = text_pieces(path)
            if self._documents == "none":
                yield from (Piece(piece, False) for piece in pieces)
            elif self._documents == "file":
                yield from one_document(pieces)
            else:
                yield from (line_documents if self._documents == "line" else paragraph_documents)(pieces)

    def fingerprint(self) -> str:
        return digest_of_files(self._paths)


class TextRows:
    """The texts in one column of a table, every row that is not blank a document.

    marked: False where nothing is a document: then a line feed follows every row.
    """

    separator = ""

    def __init__(self, table: Table, path: Path | None, marked: bool):
        self.name, self.bytes = table.name, None
        self._table, self._path, self._marked = table, path, marked

    def __iter__(self) -> Iterator[Piece]:
        for text, number in table_rows(self._table):
            self._refuse_surrogates(text, number)
            if text.strip():
                pieces = one_document(cut_up(text))
                yield from (
                    pieces if self._marked else (Piece(piece.text + "\n" * piece.ends, False) for piece in pieces)
                )

    def _refuse_surrogates(self, text: str, number: int) -> None:
        try:
            text.encode()
        except UnicodeEncodeError:
            raise DataError(
                f"{self._table.place(number)} has half of a surrogate pair, which is not text: correct or delete it"
            ) from None

    def fingerprint(self) -> str:
        if self._path:
            return digest_of_files([self._path])
        digest = hashlib.sha256()
        for piece in self:
            data = piece.text.encode()
            digest.update(len(data).to_bytes(8, "little") + data + bytes([piece.ends]))
        return digest.hexdigest()


class TextPairs:
    """Two line-aligned files, each pair of lines a document: a text and, on the next line, its translation.

    A language model that reads such documents learns to translate: the translation is how the text goes on.
    """

    separator = "\n\n"

    def __init__(self, source: Path, target: Path):
        self._files = LineFiles(source, target)
        self.name, self.bytes = self._files.name, source.stat().st_size + target.stat().st_size

    def __iter__(self) -> Iterator[Piece]:
        for pair in self._files:
            if pair.source.strip() and pair.target.strip():
                yield Piece(f"{pair.source}\n{pair.target}", True)

    def fingerprint(self) -> str:
        return self._files.fingerprint()


def open_texts(
    paths: Sequence[Path],
    data: Sequence[str],
    column: str,
    documents: Documents,
    once: bool = False,
    pairs: Sequence[Path] = (),
) -> list[TextSource]:
    """The sources that the arguments name: files and folders of text first, then tables and datasets, then pairs.

    paths: text files in UTF-8, ".gz" after their names or not; of a folder, all files below it whose names end in
        ".txt", sorted by path. data: see `open_sources`; column: the one that holds the texts. documents: see
        `TextFiles`; a row of a table is a document of its own, unless that is "none". once: the texts are read a single
        time, so that they may come through pipes, and "-" is standard input. pairs: line-aligned files, in turn a text
        and its translation; see `TextPairs`.

    Raises DataError for what is missing, damaged or can be read only once, and for a folder without text files;
    ConfigError for a file of pairs that has no other.
    """
    if len(pairs) % 2:
        raise ConfigError(f"the files of pairs are odd in number ({len(pairs)}): each needs its translations after it")
    files: list[TextSource] = [_open_path(path, documents, once) for path in paths]
    tables = (find_table(name, (column,)) for name in data)
    rows = [TextRows(table, path, documents != "none") for table, path in tables]
    return [*files, *rows, *(TextPairs(*both) for both in zip(pairs[::2], pairs[1::2], strict=True))]


def _open_path(path: Path, documents: Documents, once: bool) -> TextFiles:
    if once and str(path) == "-":
        return TextFiles("standard input", [path], documents)
    if stat.S_ISDIR(path_mode(path)):
        below = sorted(one for one in path.rglob("*.txt") if one.is_file() and one.stat().st_size)
        if not below:
            raise DataError(f"{path} has no text in it: a folder holds files whose names end in .txt")
        return TextFiles(str(path), below, documents)
    if once and path.exists() and not path.is_file():
        return TextFiles(str(path), [path], documents)
    refuse_pipe(path)
    with opened(path):  # what is missing is said before anything long begins
        pass
    return TextFiles(str(path), [path], documents)
