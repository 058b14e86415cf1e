"""Plain text of any length, a piece at a time: a file of two gigabytes in a single line is a text like any other."""

import os
import re
import sys
import unicodedata
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from typing import BinaryIO, NamedTuple

from toolkit.data.lines import chunks_of, decoded, opened
from toolkit.errors import DataError
from toolkit.tokenization.normal_form import normal_form

PIECE = 1 << 16  # the most characters of a piece, about
_CONTEXT = 64  # characters before a place that decide whether normal form C reaches across it: far more than needed
_BLANK_LINES = re.compile(r"\n(?:[^\S\n]*\n)+")
_LEADING_BLANK_LINES = re.compile(r"\A(?:[^\S\n]*\n)+")
_BLANK_END = re.compile(r"(?:\n[^\S\n]*)+\Z")


class Piece(NamedTuple):
    """A part of a document, in Unicode normal form C; `ends`: it is the document's last one, and may be empty."""

    text: str
    ends: bool


def text_pieces(path: str | os.PathLike[str]) -> Iterator[str]:
    """A UTF-8 file in pieces, read from the disk as they are asked for; ".gz" is unpacked, "-" is standard input.

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
            whole = _whole_characters(block)
            text = pending + decoded(block[:whole], name, done)
            done += block.count(b"\n", 0, whole)
            rest = block[whole:]
            cut = _last_cut(text)
            yield from cut_up(_normal(text[:cut]))
            pending = text[cut:]
        yield from cut_up(_normal(pending + decoded(rest, name, done)))


def _opened(path: str | os.PathLike[str]) -> AbstractContextManager[BinaryIO]:
    if str(path) == "-":
        if sys.stdin is None:
            raise DataError("standard input is closed: give the name of a file")
        return nullcontext(sys.stdin.buffer)
    return opened(path, str(path).lower().endswith(".gz"))


def cut_up(text: str) -> Iterator[str]:
    """A text in normal form C in pieces; none for an empty one."""
    begin = 0
    while len(text) - begin > PIECE:
        piece = text[begin : begin + PIECE]
        cut = _last_cut(piece)
        yield piece[:cut]
        begin += cut
    if begin < len(text):
        yield text[begin:]


def _whole_characters(data: bytes) -> int:
    """How many bytes to take so that no character in UTF-8 is cut at the end."""
    for back in range(1, min(len(data), 3) + 1):
        byte = data[-back]
        if byte >= 0xC0:  # begins a character, of as many bytes as it has leading ones
            return len(data) - back if back < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4) else len(data)
        if byte < 0x80:
            break
    return len(data)


def _normal(text: str) -> str:
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    return normal_form(text)


def _last_cut(text: str) -> int:
    """The last place where a text of some length may be cut, more than 0 characters from its beginning."""
    low = max(1, len(text) - PIECE)
    space = text.rfind(" ", low)
    if space > 0:
        return space
    return next((cut for cut in range(len(text) - 1, low - 1, -1) if _is_apart(text, cut)), len(text))


def _is_apart(text: str, cut: int) -> bool:
    """Whether CR LF and normal form C leave both sides of a place as they are."""
    before, after = text[max(0, cut - _CONTEXT) : cut], text[cut]
    if before.endswith("\r"):
        return after != "\n"
    if unicodedata.combining(after):
        return False
    normal = normal_form(after)
    joined = normal_form(before + after)
    return not unicodedata.combining(normal[0]) and joined == normal_form(before) + normal


def one_document(pieces: Iterable[str]) -> Iterator[Piece]:
    """All of a text as one document."""
    last = None
    for piece in pieces:
        if last is not None:
            yield Piece(last, False)
        last = piece
    if last is not None:
        yield Piece(last, True)


def line_documents(pieces: Iterable[str]) -> Iterator[Piece]:
    """Every line that is not blank as a document, without its end."""
    begun, blank = False, ""  # of the line that is not yet complete: whether a part was given, and what leads it
    for piece in pieces:
        first, *others = piece.split("\n")
        first, blank = blank + first, ""
        if others:
            if begun or first.strip():
                yield Piece(first, True)
            for line in others[:-1]:
                if line.strip():
                    yield Piece(line, True)
            begun, first = False, others[-1]
        if begun or first.strip() or len(first) > PIECE:
            yield Piece(first, False)
            begun = True
        else:
            blank = first
    if begun:
        yield Piece("", True)


def paragraph_documents(pieces: Iterable[str]) -> Iterator[Piece]:
    """Documents that stand between blank lines, without the line ends before and after them."""
    begun, held = False, ""
    for piece in pieces:
        *whole, last = _BLANK_LINES.split(held + piece)
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
    """Where to cut a part of a document that may turn out to be its end: before the last word, if a line ends there."""
    end = len(text.rstrip())
    if "\n" not in text[end:] or len(text) - end > PIECE:
        return len(text)
    space = text.rfind(" ", 0, end)
    return space if space > 0 else 0 if end < PIECE else end


def utf8_length(text: str) -> int:
    """The bytes of a text in UTF-8."""
    return len(text) if text.isascii() else len(text.encode())
