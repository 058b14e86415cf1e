import codecs
import gzip
import io
import itertools
import json
import os
import re
import sys
import unicodedata
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data import texts as module
from toolkit.data.text_corpus import TextCorpus
from toolkit.data.texts import PIECE, divided_documents, one_document, open_texts, text_pieces
from toolkit.errors import ConfigError, DataError


@pytest.fixture
def read(tmp_path):
    """read(documents, *names, data=(), column="text") -> the documents of all sources; None where none ended."""

    def read(documents, *names, data=(), column="text"):
        sources = open_texts(
            [tmp_path / name for name in names], [str(tmp_path / one) for one in data], column, documents
        )
        texts, begun = [], ""
        for piece in (piece for source in sources for piece in source):
            begun += piece.text
            if piece.ends:
                texts.append(begun)
                begun = ""
        return texts, begun

    return read


def test_the_same_files_are_divided_in_four_ways(tmp_path, read):
    (tmp_path / "a.txt").write_text("one\ntwo\n\n\nthree\n")
    (tmp_path / "b.txt").write_text("four")
    assert read("none", "a.txt", "b.txt") == ([], "one\ntwo\n\n\nthree\nfour")
    assert read("file", "a.txt", "b.txt") == (["one\ntwo\n\n\nthree\n", "four"], "")
    assert read("line", "a.txt", "b.txt") == (["one", "two", "three", "four"], "")
    assert read("blank", "a.txt", "b.txt") == (["one\ntwo", "three", "four"], "")


def test_a_folder_is_all_text_files_below_it_sorted(tmp_path, read):
    for name, text in ("b.txt", "b"), ("a/z.txt", "az"), ("a/x.md", "no text"), ("c.txt", ""), ("a.txt", "a"):
        (tmp_path / "all" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "all" / name).write_text(text)
    assert read("file", "all") == (["az", "a", "b"], "")
    (source,) = open_texts([tmp_path / "all"], [], "text", "file")
    assert (source.name, source.bytes) == (str(tmp_path / "all"), 4)


@pytest.mark.parametrize("suffix", ["jsonl", "csv", "tsv", "parquet"])
def test_rows_of_a_table_are_documents(tmp_path, read, suffix):
    long = "a long text " * 20_000
    texts = ["one", "  ", "e\u0301", long]
    path = tmp_path / f"t.{suffix}"
    if suffix == "jsonl":
        path.write_text("".join(json.dumps({"n": 1, "body": text}) + "\n" for text in texts))
    elif suffix == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"n": range(4), "body": texts}), path)
    else:
        mark = "," if suffix == "csv" else "\t"
        path.write_text(f"n{mark}body\n" + "".join(f"1{mark}{text}\n" for text in texts))
    assert read("line", data=[path], column="body") == (["one", "\u00e9", long], "")
    assert read("none", data=[path], column="body") == ([], f"one\n\u00e9\n{long}\n")
    with pytest.raises(DataError, match="has no column text, only n, body: name the column with --column"):
        read("line", data=[path])


def test_a_source_is_read_from_the_beginning_every_time(tmp_path):
    (tmp_path / "a.txt").write_text("one two")
    (source,) = open_texts([tmp_path / "a.txt"], [], "text", "line")
    assert list(source) == list(source)


def test_fingerprints_follow_the_contents_and_not_the_names(tmp_path):
    def fingerprint(name, text):
        (tmp_path / name).write_text(text)
        files, data = ([], [str(tmp_path / name)]) if name.endswith("jsonl") else ([tmp_path / name], [])
        (source,) = open_texts(files, data, "text", "line")
        return source.fingerprint()

    assert fingerprint("a.txt", "one") == fingerprint("b.txt", "one") != fingerprint("a.txt", "two")
    assert fingerprint("a.jsonl", '{"text": "one"}') != fingerprint("a.jsonl", '{"text": "two"}')


def test_what_cannot_be_read_is_said_at_once(tmp_path):
    (tmp_path / "empty").mkdir()
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "a.txt").write_text("text")
    for paths, data, problem in (
        ([tmp_path / "none.txt"], [], "none.txt does not exist: check the path"),
        ([tmp_path / "empty"], [], "empty has no text in it: a folder holds files whose names end in .txt"),
        ([tmp_path / "pipe"], [], "pipe is a pipe or a device, and texts are read more than once"),
        ([], [str(tmp_path / "a.txt")], "a.txt is not a table .*: a file of plain text is given as --text"),
    ):
        with pytest.raises(DataError, match=problem):
            open_texts(paths, data, "text", "line")


def test_half_of_a_character_in_a_row_is_refused_with_its_place(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('{"text": "fine"}\n{"text": "\\ud800"}\n')
    with pytest.raises(DataError, match="line 2: text has half of a surrogate pair"):
        list(*open_texts([], [str(path)], "text", "line"))


def test_columns_without_names_go_by_number(tmp_path, read):
    (tmp_path / "t.tsv").write_text("1\tone\n2\ttwo\n")
    assert read("line", data=["t.tsv"], column="2") == (["one", "two"], "")
    with pytest.raises(DataError, match="has 2 columns: there is no column 3"):
        read("line", data=["t.tsv"], column="3")


@pytest.mark.parametrize("name", ["t.jsonl", "t.json", "t.tsv"])
def test_a_row_that_is_no_single_text_is_refused(tmp_path, read, monkeypatch, name):
    monkeypatch.setattr("toolkit.data.tables.LONGEST_TEXT", 200_000)
    long = "a" * 200_001
    lines = {"t.jsonl": f'{{"text": "{long}"}}', "t.json": f'[{{"text": "{long}"}}]', "t.tsv": f"text\n{long}"}
    (tmp_path / name).write_text(lines[name])
    with pytest.raises(DataError, match="has more than 200,000 characters: is it one text"):
        read("line", data=[name])


# Pairs of line-aligned files


@pytest.fixture
def pairs(tmp_path):
    """pairs(source, target) -> the source of documents that two files of these texts are."""

    def read(source, target, name="p"):
        paths = [tmp_path / f"{name}.en", tmp_path / f"{name}.ne"]
        for path, text in zip(paths, (source, target), strict=True):
            path.write_text(text, encoding="utf-8")
        (found,) = open_texts([], [], "text", "blank", pairs=paths)
        return found

    return read


def test_a_pair_of_lines_is_a_document_of_two_lines(pairs):
    found = pairs("one\ntwo\n", "एक\nदुई\n")
    assert [(piece.text, piece.ends) for piece in found] == [("one\nएक", True), ("two\nदुई", True)]
    assert list(found) == list(found)
    assert found.bytes == len("one\ntwo\nएक\nदुई\n".encode())
    assert found.name.endswith("p.en")


def test_a_pair_of_which_a_side_is_blank_is_no_document(pairs):
    found = pairs("one\n\n  \nfour\n", "एक\nदुई\nतीन\n\t\n")
    assert [piece.text for piece in found] == ["one\nएक"]


def test_pairs_are_in_normal_form(pairs):
    (piece,) = pairs("cafe\u0301\n", "न\u093c\n")
    assert piece.text == "caf\u00e9\n" + unicodedata.normalize("NFC", "न\u093c")


def test_the_fingerprint_of_pairs_knows_both_sides(pairs):
    first = pairs("one\n", "एक\n", "a").fingerprint()
    assert pairs("one\n", "एक\n", "b").fingerprint() == first
    assert len({first, pairs("one\n", "दुई\n").fingerprint(), pairs("एक\n", "one\n").fingerprint()}) == 3


def test_pairs_come_last_and_each_needs_its_other(tmp_path, read):
    names = ["a.en", "a.ne", "b.en", "b.ne", "c.txt"]
    for name in names:
        (tmp_path / name).write_text(f"{name}\n")
    paths = [tmp_path / name for name in names]
    sources = open_texts(paths[4:], [], "text", "line", pairs=paths[:4])
    assert [piece.text for source in sources for piece in source if piece.text] == ["c.txt", "a.en\na.ne", "b.en\nb.ne"]
    for count in 1, 3:
        with pytest.raises(ConfigError, match=rf"^the files of pairs are odd in number \({count}\)"):
            open_texts([], [], "text", "line", pairs=paths[:count])
    (tmp_path / "b.ne").write_text("one\ntwo\n")
    with pytest.raises(DataError, match=r"line 2 of .*b\.ne has no translation"):
        open_texts([], [], "text", "line", pairs=paths[:4])


def test_a_corpus_of_pairs_never_has_parts_of_two(tmp_path, pairs):
    numbers = range(40)
    found = pairs("".join(f"a{n}\n" for n in numbers), "".join(f"b{n}\n" for n in numbers))
    corpus = TextCorpus.build(tmp_path / "data", [found], [], "character", 0, marks=True, valid_share=0.2)
    texts = []
    for split in "train", "valid":
        store = corpus.documents(split)
        ends = store.offsets
        texts += [corpus.tokenizer.decode(store.values[a:b].tolist()) for a, b in itertools.pairwise(ends)]
    assert sorted(texts) == sorted(f"a{n}\nb{n}" for n in numbers)


# Pieces

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
        (gzip.compress(b"a" * 999, mtime=0)[:-9], "a.txt.gz", "is cut off, damaged or not compressed by gzip"),
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
        assert all(text.count("\n") == 0 for text in documents(divided_documents(pieces, "line")))
    lines = [line for line in "".join(pieces).split("\n") if line.strip()]
    assert documents(divided_documents(pieces, "line")) == lines


@given(pieces=CUT)
def test_documents_stand_between_blank_lines(pieces):
    whole: list[list[str]] = [[]]
    for line in "".join(pieces).split("\n"):
        if line.strip():
            whole[-1].append(line)
        elif whole[-1]:
            whole.append([])
    assert documents(divided_documents(pieces, "blank")) == ["\n".join(lines) for lines in whole if lines]


@given(text=st.text(st.sampled_from("ab \n"), max_size=60), piece=st.integers(4, 9))
def test_parts_of_a_document_are_cut_before_spaces(text, piece):
    pieces = re.findall("[^ ]+| [^ ]*", text)  # each begins with a space, as those of a file do
    parts = list(divided_documents(pieces, "blank"))
    for part, following in pairwise(parts):
        assert part.ends or following.text.startswith(" ") or not following.text


@pytest.mark.parametrize("split", ["line", "blank"])
def test_endless_blanks_do_not_fill_the_memory(split):
    blanks = (" " * 1000 for _ in range(1000))
    assert sum(len(piece.text) for piece in divided_documents(["a\n", *blanks, "b"], split)) <= 1_000_003
    assert all(len(piece.text) <= 3 * PIECE for piece in divided_documents(["a\n", *blanks, "b"], split))
