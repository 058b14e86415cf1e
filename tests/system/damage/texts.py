"""Text files that are none, or not the ones that were meant."""

import bz2
import codecs
import gzip
import io
import lzma
import pickle
import socket
import zipfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np

from tests.system.damage.room import TRAIN, VALIDATED, Harm, Kind, change, directory, fresh, link, remove, write

TRANSLATE = "translate --model model --max-new-tokens 2"
SCORE = "score --model model"
EVALUATE = "evaluate lines.ne valid.ne --bootstrap 2"

# The files that are read line by line, and a command that reads each.
READERS = [
    ("lines.en", f"{TRANSLATE} --output old.txt --file lines.en"),
    ("lines.ne", f"{TRANSLATE} --file lines.en --prefix-file lines.ne"),
    ("lines.en", f"{SCORE} --target lines.ne --source lines.en"),
    ("lines.ne", f"{SCORE} --source lines.en --target lines.ne"),
    ("lines.ne", EVALUATE),
    ("valid.ne", EVALUATE.replace("2", "0")),
    ("lines.en", f"{EVALUATE} --source lines.en"),
    ("valid.en", f"{EVALUATE} --versus valid.en"),
    ("valid.en", f"{EVALUATE} --source lines.en --baseline valid.en valid.ne"),
    ("lines.en", TRAIN),
    ("lines.ne", TRAIN),
    ("valid.en", VALIDATED),
    ("valid.ne", VALIDATED),
]
PIPED = f"{TRANSLATE} < lines.en"

# What the first line has become, what is told of it, and what is told of standard input instead.
LINES = {
    "Latin-1": (b"caf\xe9", "is not UTF-8 (byte 0xE9)"),
    "Windows-1252 quotation marks": (b"\x93so\x94", "is not UTF-8 (byte 0x93)"),
    "Shift JIS": ("日本語".encode("shift-jis"), "is not UTF-8 (byte 0x93)"),
    "KOI8-R": ("где".encode("koi8-r"), "is not UTF-8"),
    "a character without its end": ("क".encode()[:2], "is not UTF-8 (byte 0xE0)"),
    "a character without its beginning": ("क".encode()[1:], "is not UTF-8 (byte 0xA4)"),
    "a zero of two bytes": (b"a\xc0\x80b", "is not UTF-8 (byte 0xC0)"),
    "half a surrogate pair in UTF-8": (b"\xed\xa0\x80", "is not UTF-8 (byte 0xED)"),
    "a character beyond Unicode": (b"\xf4\x90\x80\x80", "is not UTF-8 (byte 0xF4)"),
    "an enormous line": (b"x" * 100_001, "has more than 100,000 characters", "has 100001 characters"),
}


def zipped(_: bytes = b"") -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("word/document.xml", "text")
    return file.getvalue()


def encoded(encoding: str, mark: bytes = b"") -> Callable[[bytes], bytes]:
    return lambda content: mark + content.decode().encode(encoding, "replace")


# What a whole file has become, as bytes made from its own; the rest as above.
CONTENTS: dict[str, tuple] = {
    "UTF-16 with a mark": (encoded("utf-16-le", codecs.BOM_UTF16_LE), "is UTF-16"),
    "UTF-16, big end first": (encoded("utf-16-be", codecs.BOM_UTF16_BE), "is UTF-16"),
    "UTF-16 without a mark": (lambda _: "I am\nhere\n".encode("utf-16-le"), "is full of NUL bytes"),
    "UTF-32": (encoded("utf-32-le", codecs.BOM_UTF32_LE), "is UTF-32"),
    "zeros, as after a power cut": (lambda _: bytes(4096), "is full of NUL bytes"),
    "a program": (lambda _: b"\x7fELF\x02\x01\x01" + bytes(57) + b"\xb8\xf8\x00", "is full of NUL bytes"),
    "a picture": (lambda _: b"\x89PNG\r\n\x1a\n" + bytes(64), "is full of NUL bytes"),
    "gzip": (gzip.compress, "is compressed (gzip)"),
    "zip, as a document is": (zipped, "is a zip archive or an office document"),
    "bzip2": (bz2.compress, "line 1 is not UTF-8 (byte 0x"),
    "xz": (lzma.compress, "line 1 is not UTF-8 (byte 0xFD)"),
    "a PDF": (lambda _: b"%PDF-1.7 %\xe2\xe3\xcf\xd3\n1 0 obj\n", "line 1 is not UTF-8 (byte 0xE2)"),
    "a pickle": (lambda content: pickle.dumps(content.splitlines()), "line 1 is not UTF-8 (byte 0x80)"),
    "random bytes": (lambda _: np.random.default_rng(0).bytes(4000), "line 1 is not UTF-8 (byte 0x"),
}
EMPTY = {"no bytes": b"", "nothing but a byte order mark": codecs.BOM_UTF8}


def listening(name: str) -> Harm:
    """A socket stands where a file should be."""

    def harm(room: Path) -> None:
        fresh(room / name)
        with closing(socket.socket(socket.AF_UNIX)) as end:
            end.bind(name)  # a path that is not absolute: a long one has no room in it

    return harm


# What stands in the place of a file.
PLACES: dict[str, tuple[Callable[[str], Harm], str]] = {
    "no such file": (remove, "does not exist: check the path"),
    "a directory": (directory, "is a directory: give the path of a text file"),
    "a link to nothing": (lambda name: link(name, "nowhere"), "does not exist: check the path"),
    "a link to itself": (lambda name: link(name, name), "cannot be read: Too many levels of symbolic links"),
    "a link to what nobody may read": (lambda name: link(name, "/proc/self/mem"), "cannot be read: Input/output error"),
    "an endless supply of nothing": (lambda name: link(name, "/dev/null"), ""),
    "a socket": (listening, ""),
}


def kinds() -> Iterator[Kind]:
    """What no command can read meets two of them in turn, and standard input."""
    harms = [(name, lambda file, line=line: change(file, _first(line)), *says) for name, (line, *says) in LINES.items()]
    harms += [(name, lambda file, how=how: change(file, how), *says) for name, (how, *says) in CONTENTS.items()]
    piped = [(name, harm("lines.en"), says[-1]) for name, harm, *says in harms]
    harms += [(name, lambda file, content=content: write(file, content), "is empty") for name, content in EMPTY.items()]
    harms += [(name, *rest) for name, rest in PLACES.items()]
    for number, (name, harm, says, *_) in enumerate(harms):
        for turn in range(2):
            file, command = READERS[(number + 6 * turn) % len(READERS)]
            yield Kind(name, command, f"{file}, line 1 {says}" if name in LINES else says, harm(file))
    for name, harm, says in piped:
        yield Kind(name, PIPED, says, harm)
    yield from _lines_that_do_not_fit()


def _first(line: bytes) -> Callable[[bytes], bytes]:
    return lambda content: line + b"\n" + content.partition(b"\n")[2]


def _lines_that_do_not_fit() -> Iterator[Kind]:
    """Files that are good by themselves, but not together, or not for what is to be done with them."""
    more, fewer = (lambda content: content + b"one more\n"), (lambda content: content.partition(b"\n")[2])
    harms = ("a line too many", more), ("a line too few", fewer), ("no line ends", _joined)
    for number, (name, how) in enumerate(harms):
        for file, command in READERS[1 + number % 2 :: 2]:
            yield Kind(name, command, file, change(file, how))
    for name, line, file, side in [
        ("a blank source", b"", "lines.en", "source"),
        ("white space for a source", "\u3000 \xa0\t".encode(), "lines.en", "source"),
        ("a blank target", b"", "lines.ne", "target"),
    ]:
        yield Kind(name, TRAIN, f"{file}, line 1 has a blank {side}", change(file, _first(line)))


def _joined(content: bytes) -> bytes:
    return content.replace(b"\n", b"\r")
