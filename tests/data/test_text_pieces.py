import codecs
import gzip
import io
import re
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data import texts as module
from toolkit.data.texts import PIECE, line_documents, one_document, paragraph_documents, text_pieces
from toolkit.errors import DataError

# What normal form C joins: an accent, a Hangul syllable of three letters, two Indic vowel signs (of which one is a
# starter), a sign that decomposes, and what it must not join.
TRICKY = "a\u0301 \r\n\u1100\u1161\u11a8\u0dd9\u0dcf\u0dca\u0f73\u0938\u093c🌍"
# Not the NUL: a file that is full of them is refused.
TEXT = st.text(
    st.one_of(st.sampled_from(TRICKY), st.characters(codec="utf-8", exclude_characters="\0")), min_size=1, max_size=60
)


@pytest.fixture
def write(tmp_path):
    def write(content: bytes | str, name: str = "a.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def expected(text: str) -> str:
    return unicodedata.normalize("NFC", text.replace("\r\n", "\n"))


@given(text=TEXT, chunk=st.integers(1, 9), piece=st.integers(2, 12))
def test_pieces_are_the_text_wherever_the_file_is_cut(tmp_path_factory, text, chunk, piece):
    path = tmp_path_factory.mktemp("text") / "a.txt"
    path.write_bytes(codecs.BOM_UTF8 + b"a" + text.encode())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.data.lines._CHUNK", chunk + 4)  # the marks of other encodings fit into a chunk
        patch.setattr(module, "PIECE", piece)
        pieces = list(text_pieces(path))
    assert "".join(pieces) == expected("a" + text)
    assert all(0 < len(one) <= piece for one in pieces)


def test_pieces_end_before_spaces_where_there_are_some(write):
    pieces = list(text_pieces(write("word\nनेपाली " * 50_000)))
    assert 5 < len(pieces) < 20
    assert all(piece.startswith(" ") for piece in pieces[1:])


def test_one_endless_line_is_read_in_little_memory(write):
    path = write("म" * (1 << 22))
    pieces = text_pieces(path)
    assert len(next(pieces)) <= PIECE
    assert sum(map(len, pieces)) > (1 << 22) - PIECE - 1


def test_packed_files_and_standard_input_are_read(write, monkeypatch):
    text = "one\r\ntwo " * 9
    assert "".join(text_pieces(write(gzip.compress(text.encode()), "a.txt.gz"))) == expected(text)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert "".join(text_pieces("-")) == expected(text)


@pytest.mark.parametrize(
    ("content", "name", "problem"),
    [
        (b"a\nb\n\xff\n", "a.txt", "line 3 is not UTF-8 (byte 0xFF): save the file as UTF-8"),
        (b"a\n" * 700_000 + b"\xe0\xa4", "a.txt", "line 700001 is not UTF-8 (byte 0xE0)"),
        ("म".encode("utf-16"), "a.txt", "is UTF-16, not UTF-8"),
        (b"", "a.txt", "is empty"),
        (gzip.compress(b"a" * 999)[:-9], "a.txt.gz", "is cut off, damaged or not compressed by gzip"),
        (b"plain", "a.txt.gz", "is cut off, damaged or not compressed by gzip"),
    ],
)
def test_what_is_wrong_is_said_as_for_lines(write, content, name, problem):
    path = write(content, name)
    with pytest.raises(DataError, match=f"^{re.escape(str(path))}.*{re.escape(problem)}"):
        list(text_pieces(path))


def documents(pieces) -> list[str]:
    """The documents that pieces make up; that of the last one may not have ended."""
    texts = [""]
    for piece in pieces:
        texts[-1] += piece.text
        if piece.ends:
            texts.append("")
    assert texts.pop() == ""
    return texts


CUT = st.lists(st.text(st.sampled_from("ab \t\n\n"), min_size=1, max_size=9), max_size=12)


@given(pieces=CUT)
def test_all_of_a_text_is_one_document(pieces):
    assert documents(one_document(pieces)) == (["".join(pieces)] if pieces else [])


@given(pieces=CUT, piece=st.integers(5, 99))
def test_lines_are_documents_wherever_they_are_cut(pieces, piece):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PIECE", piece)
        assert all(text.count("\n") == 0 for text in documents(line_documents(pieces)))
    assert documents(line_documents(pieces)) == [line for line in "".join(pieces).split("\n") if line.strip()]


@given(pieces=CUT)
def test_documents_stand_between_blank_lines(pieces):
    whole: list[list[str]] = [[]]
    for line in "".join(pieces).split("\n"):
        if line.strip():
            whole[-1].append(line)
        elif whole[-1]:
            whole.append([])
    assert documents(paragraph_documents(pieces)) == ["\n".join(lines) for lines in whole if lines]


@given(text=st.text(st.sampled_from("ab \n"), max_size=60), piece=st.integers(4, 9))
def test_parts_of_a_document_are_cut_before_spaces(text, piece):
    pieces = re.findall("[^ ]+| [^ ]*", text)  # each begins with a space, as those of a file do
    parts = list(paragraph_documents(pieces))
    for part, following in pairwise(parts):
        assert part.ends or following.text.startswith(" ") or not following.text


@pytest.mark.parametrize("split", [line_documents, paragraph_documents])
def test_endless_blanks_do_not_fill_the_memory(split):
    blanks = (" " * 1000 for _ in range(1000))
    assert sum(len(piece.text) for piece in split(["a\n", *blanks, "b"])) <= 1_000_003
    assert all(len(piece.text) <= 3 * PIECE for piece in split(["a\n", *blanks, "b"]))
