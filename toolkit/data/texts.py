"""Sources of texts for a language model: text files, folders of them, tables, datasets and pairs, read as streams.

A text comes in pieces, so that a file of two gigabytes in a single line is a text like any other.
"""

import hashlib
import os
import re
import stat
import sys
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import BinaryIO, Literal, NamedTuple, Protocol

from toolkit.data.lines import chunks_of, decoded, decoded_part, digest_of_files, opened, path_mode, refuse_pipe
from toolkit.data.pairs import LineFiles
from toolkit.data.tables import Table, find_table
from toolkit.errors import ConfigError, DataError
from toolkit.launcher import check_standard_input
from toolkit.tokenization.normal_form import normal_form

Documents = Literal["none", "file", "line", "blank"]

_SEPARATORS: dict[Documents, str] = {"none": "", "file": "", "line": "\n", "blank": "\n\n"}

PIECE = 1 << 16  # the most characters of a piece, about
_CONTEXT = 64  # characters before a place that decide whether normal form C reaches across it: far more than needed
_LINE_END = re.compile(r"\n")
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_BLANK_END = re.compile(r"(?:\n[^\S\n]*)+\Z")


class Piece(NamedTuple):
    """A part of a document, in Unicode normal form C; `ends`: it is the document's last one, and may be empty."""

    text: str
    ends: bool


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
        """Digest the contents (hexadecimal): it changes when they do, and not when only names do."""
        ...


class TextFiles:
    """A text file, or all those of a folder, in UTF-8; see `text_pieces` for what is read and refused.

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
                yield from divided_documents(pieces, self._documents)

    def fingerprint(self) -> str:
        return digest_of_files(self._paths)


class TextRows:
    """Texts in one column of a table, every row that is not blank a document.

    marked: False where nothing is a document: then a line feed follows every row.
    """

    separator = ""

    def __init__(self, table: Table, marked: bool):
        self.name, self.bytes = table.name, None
        self._table, self._marked = table, marked

    def __iter__(self) -> Iterator[Piece]:
        for text, _ in self._table:
            if text.strip():
                pieces = one_document(cut_up(text))
                yield from (
                    pieces if self._marked else (Piece(piece.text + "\n" * piece.ends, False) for piece in pieces)
                )

    def fingerprint(self) -> str:
        if self._table.path:
            return digest_of_files([self._table.path])
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
        for source, target, _ in self._files:
            if source.strip() and target.strip():
                yield Piece(f"{source}\n{target}", True)

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
    """Open the sources that the arguments name: files and folders of text first, then tables and datasets, then pairs.

    paths: text files in UTF-8, ".gz" after their names or not; of a folder, all files below it whose names end in
        ".txt", sorted by path. data: see `find_table`; column: the one that holds the texts. documents: see
        `TextFiles`; a row of a table is a document of its own, unless that is "none". once: the texts are read a single
        time, so that they may come through pipes, and "-" is standard input. pairs: line-aligned files, in turn a text
        and its translation; see `TextPairs`.

    Raises DataError for what is missing, damaged or can be read only once, and for a folder without text files;
    ConfigError for a file of pairs that has no other.
    """
    if len(pairs) % 2:
        raise ConfigError(f"the files of pairs are odd in number ({len(pairs)}): each needs its translations after it")
    files: list[TextSource] = [_open_path(path, documents, once) for path in paths]
    rows = [TextRows(find_table(name, (column,)), documents != "none") for name in data]
    return [*files, *rows, *(TextPairs(*both) for both in zip(pairs[::2], pairs[1::2], strict=True))]


def _open_path(path: Path, documents: Documents, once: bool) -> TextFiles:
    name, files = str(path), [path]
    if once and name == "-":
        name = "standard input"
    elif stat.S_ISDIR(path_mode(path)):
        files = sorted(one for one in path.rglob("*.txt") if one.is_file() and one.stat().st_size)
        if not files:
            raise DataError(f"{path} has no text in it: a folder holds files whose names end in .txt")
    elif not (once and path.exists() and not path.is_file()):
        refuse_pipe(path)
        with opened(path):  # what is missing is said before anything long begins
            pass
    return TextFiles(name, files, documents)


# Pieces


def text_pieces(path: str | os.PathLike[str]) -> Iterator[str]:
    """Read a UTF-8 file in pieces, from the disk as they are asked for; ".gz" is unpacked, "-" is standard input.

    Joined, the pieces are the text in normal form C, with LF for CR LF and without a byte order mark. A piece ends
    before a space, where no token ends later, or where the text has none for PIECE characters, anywhere between
    characters that normal form C does not join; a run of more than PIECE marks on one letter, between two of them.

    Raises DataError, naming the file and where it applies the line, if the file is missing, is a directory, cannot be
    read, is empty or is not UTF-8; each when it is reached.
    """
    name = "standard input" if str(path) == "-" else path
    with _opened(path) as file:
        done, rest, pending = 0, b"", ""
        for chunk in chunks_of(file, name):
            block = rest + chunk
            text, whole = decoded_part(block, name, done)
            text = pending + text
            done += block.count(b"\n", 0, whole)
            rest = block[whole:]
            cut = _last_cut(text)
            yield from cut_up(_normal(text[:cut]))
            pending = text[cut:]
        yield from cut_up(_normal(pending + decoded(rest, name, done)))


def _opened(path: str | os.PathLike[str]) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        check_standard_input("the name of a file")
        if sys.stdin is None:
            raise DataError("standard input is closed: give the name of a file")
        return nullcontext(sys.stdin.buffer)
    return opened(path, str(path).lower().endswith(".gz"))


def cut_up(text: str) -> Iterator[str]:
    """Cut a text in normal form C into pieces; none for an empty one."""
    begin = 0
    while len(text) - begin > PIECE:
        piece = text[begin : begin + PIECE]
        cut = _last_cut(piece)
        yield piece[:cut]
        begin += cut
    if begin < len(text):
        yield text[begin:]


def _normal(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return normal_form(text)


def _last_cut(text: str) -> int:
    """Find the last place where a text of some length may be cut, more than 0 characters from its beginning."""
    low = max(1, len(text) - PIECE)
    space = text.rfind(" ", low)
    if space > 0:
        return space
    return next((cut for cut in range(len(text) - 1, low - 1, -1) if _is_apart(text, cut)), len(text))


def _is_apart(text: str, cut: int) -> bool:
    """Do CR LF and normal form C leave both sides of a place as they are?"""
    before, after = text[max(0, cut - _CONTEXT) : cut], text[cut]
    if before.endswith("\r"):
        return after != "\n"
    if unicodedata.combining(after):
        return False
    normal = normal_form(after)
    joined = normal_form(before + after)
    return not unicodedata.combining(normal[0]) and joined == normal_form(before) + normal


def one_document(pieces: Iterable[str]) -> Iterator[Piece]:
    """Make all of a text one document."""
    last = None
    for piece in pieces:
        if last is not None:
            yield Piece(last, False)
        last = piece
    if last is not None:
        yield Piece(last, True)


def divided_documents(pieces: Iterable[str], documents: Literal["line", "blank"]) -> Iterator[Piece]:
    """Make every line that is not blank a document, or what stands between blank lines, without the line ends around.

    No more than a piece of it is held back.
    """
    begun, held, separator = False, "", _LINE_END if documents == "line" else _BLANK_LINES
    for piece in pieces:
        *whole, last = separator.split(held + piece)
        for text in whole:
            text = text if begun else _LEADING_BLANK_LINES.sub("", text)
            if begun or text.strip():
                yield Piece(text, True)
            begun = False
        last = last if begun else _LEADING_BLANK_LINES.sub("", last)
        if not begun and not last.strip():
            held = last[-PIECE:]
            continue
        cut = _before_open_end(last)
        if cut:
            yield Piece(last[:cut], False)
            begun = True
        held = last[cut:]
    text = _BLANK_END.sub("", held)
    if begun or text.strip():
        yield Piece(text, True)


def _before_open_end(text: str) -> int:
    """Find the cut in a part of a document that may be its end: before the last word, if a line ends after that."""
    end = len(text.rstrip())
    if "\n" not in text[end:] or len(text) - end > PIECE:
        return len(text)
    space = text.rfind(" ", 0, end)
    return space if space > 0 else 0 if end < PIECE else end


def utf8_length(text: str) -> int:
    """Count the bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
