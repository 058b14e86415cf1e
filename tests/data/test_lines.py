import codecs
import gzip
import os
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.data import read_lines, read_pairs, write_lines_atomically
from toolkit.data.lines import _CHUNK, LONGEST_LINE, arriving_bytes, arriving_lines, count_lines, iter_lines
from toolkit.errors import DataError


@pytest.fixture
def write(tmp_path):
    def write(content: bytes | str, name: str = "text.en"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.mark.parametrize(
    ("content", "lines"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\r\nb\r\n", ["a", "b"]),
        ("a\r\nb", ["a", "b"]),
        ("\n", [""]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        (" a \n\tb", [" a ", "\tb"]),
        ("a\rb\n", ["a\rb"]),
    ],
)
def test_only_line_feeds_with_or_without_carriage_return_end_a_line(write, content, lines):
    assert read_lines(write(content)) == lines


@pytest.mark.parametrize("character", ["\u2028", "\u2029", "\u0085", "\v", "\f", "\x1c", "\x1d", "\x1e"])
def test_other_separators_stay_inside_their_line(write, character):
    assert read_lines(write(f"a{character}b\nc\n")) == [f"a{character}b", "c"]


def test_a_utf8_byte_order_mark_is_dropped_only_at_the_start(write):
    assert read_lines(write(codecs.BOM_UTF8 + "म\n\ufeffb\n".encode())) == ["म", "\ufeffb"]


def test_text_is_brought_into_normal_form_c_within_its_line(write):
    assert read_lines(write("cafe\u0301\n\u0301x\n")) == ["caf\u00e9", "\u0301x"]


LINES = st.text(st.characters(codec="utf-8", exclude_characters="\n\0")).filter(lambda line: not line.endswith("\r"))


@given(lines=st.lists(LINES))
def test_what_was_written_is_read(tmp_path_factory, lines):
    path = tmp_path_factory.mktemp("lines") / "text"
    lines = ["a mark at the very start would be dropped", *lines]
    write_lines_atomically(path, lines)
    assert read_lines(path) == [unicodedata.normalize("NFC", line) for line in lines]


@given(
    lines=st.lists(LINES, min_size=1), end=st.sampled_from(["\n", "\r\n"]), ended=st.booleans(), chunk=st.integers(4, 9)
)
def test_lines_do_not_depend_on_where_the_file_is_cut(tmp_path_factory, lines, end, ended, chunk):
    path = tmp_path_factory.mktemp("cut") / "text"
    path.write_bytes((end.join(["first", *lines]) + end * ended).encode())
    whole = read_lines(path)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("toolkit.data.lines._CHUNK", chunk)
        assert list(iter_lines(path)) == whole
        assert count_lines(path) == len(whole)


def test_lines_come_while_the_rest_is_still_on_the_disk(write):
    path = write(b"a line\n" * (2 * _CHUNK // 7) + b"\xff\n")
    lines = iter_lines(path)
    assert next(lines) == "a line"
    with pytest.raises(DataError, match=rf"line {2 * _CHUNK // 7 + 1} is not UTF-8"):
        list(lines)


@pytest.mark.parametrize("before", [0, 3, _CHUNK // 2])
def test_a_line_too_long_is_named_whatever_its_size(write, before):
    for length in (LONGEST_LINE + 1, 3 * _CHUNK):
        path = write("\n" * before + "म" * length + "\nafter\n")
        with pytest.raises(DataError) as caught:
            read_lines(path)
        assert message(caught) == (
            f"{path}, line {before + 1} has more than 100,000 characters: is it one sentence a line?"
        )
    assert len(read_lines(write("म" * LONGEST_LINE + "\r\n"))[0]) == LONGEST_LINE


def test_what_cannot_be_read_cannot_be_counted(tmp_path, write):
    for path in (tmp_path / "none", tmp_path, write(b"", "empty"), write("a".encode("utf-16"), "foreign")):
        with pytest.raises(DataError) as read:
            read_lines(path)
        with pytest.raises(DataError) as counted:
            count_lines(path)
        assert message(read) == message(counted)


@pytest.mark.parametrize(
    ("content", "name"), [(gzip.compress(b"a\n", mtime=0), "gzip"), (b"PK\x03\x04...", "zip archive")]
)
def test_compressed_files_are_recognised(write, content, name):
    with pytest.raises(DataError, match=name):
        read_lines(write(content))


def test_a_few_nul_characters_are_text(write):
    assert read_lines(write("a\0b\nlong enough\n")) == ["a\0b", "long enough"]


def message(caught) -> str:
    return str(caught.value)


def test_missing_files_directories_and_empty_files_are_named(tmp_path, write):
    with pytest.raises(DataError, match=r"none\.en does not exist"):
        read_lines(tmp_path / "none.en")
    with pytest.raises(DataError, match="is a directory"):
        read_lines(tmp_path)
    for content in (b"", codecs.BOM_UTF8):
        with pytest.raises(DataError, match=r"empty\.en is empty"):
            read_lines(write(content, "empty.en"))
    with pytest.raises(DataError, match="cannot be read"):
        read_lines(write("x") / "below.en")


@pytest.mark.parametrize(
    ("encoding", "name"),
    [
        ("utf-16", "is UTF-16"),
        ("utf-32", "is UTF-32"),
        *((f"utf-16-{end}", "is full of NUL bytes") for end in ("le", "be")),
    ],
)
def test_utf16_is_recognised(write, encoding, name):
    with pytest.raises(DataError, match=rf"text\.en {name}"):
        read_lines(write("Hello\nworld\n".encode(encoding)))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_latin1_byte_is_found_in_its_line(write, end):
    path = write(end.join([b"one", "é\u2028".encode(), b"caf\xe9", b"four \xe9", b""]))
    with pytest.raises(DataError) as caught:
        read_lines(path)
    assert message(caught) == f"{path}, line 3 is not UTF-8 (byte 0xE9): save the file as UTF-8"


def test_a_character_cut_off_at_the_end_is_found(write):
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        read_lines(write("a\nम".encode()[:-1]))


def test_pairs_stand_side_by_side(write):
    assert read_pairs(write("a\nb\n", "x.en"), write("क\r\nख", "x.ne")) == [("a", "क"), ("b", "ख")]


@pytest.mark.parametrize("longer_is_source", [True, False])
def test_unequal_counts_name_the_line_without_translation(write, longer_is_source):
    short, long = write("a\nb\n", "x.ne"), write("a\nb\nc\nd\n", "x.en")
    with pytest.raises(DataError) as caught:
        read_pairs(*((long, short) if longer_is_source else (short, long)))
    assert message(caught) == f"{short} has 2 lines, {long} has 4: line 3 of {long} has no translation"


def test_one_line_is_singular(write):
    with pytest.raises(DataError, match=r"x\.ne has 1 line, .*x\.en has 2: line 2 of .*x\.en has no translation"):
        read_pairs(write("a\nb\n", "x.en"), write("a\n", "x.ne"))


@pytest.mark.parametrize("blank", ["", "  ", "\t", "\u00a0", "\r"])
@pytest.mark.parametrize("side", [0, 1])
def test_an_empty_line_is_named_on_its_side(write, blank, side):
    contents = ["a\nb\nc\n", "a\nb\nc\n"]
    contents[side] = f"a\n{blank}\nc\n"
    paths = [write(contents[0], "x.en"), write(contents[1], "x.ne")]
    with pytest.raises(DataError) as caught:
        read_pairs(*paths)
    assert message(caught).startswith(f"{paths[side]}, line 2 is empty")


def test_lines_are_written_whole_or_not_at_all(tmp_path):
    path = tmp_path / "out.txt"
    write_lines_atomically(path, ["old"])

    def interrupted():
        yield "new"
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_lines_atomically(path, interrupted())
    with pytest.raises(ValueError, match=r"line 2 .* contains a line feed"):
        write_lines_atomically(path, ["new", "b\nc"])
    with pytest.raises(UnicodeEncodeError):
        write_lines_atomically(path, ["\ud800"])
    assert path.read_bytes() == b"old\n"
    assert list(tmp_path.iterdir()) == [path]  # no temporary file is left behind


def test_the_old_file_stands_until_all_lines_are_there(tmp_path):
    path = tmp_path / "out.txt"
    write_lines_atomically(path, ["old"])
    seen = []

    def lines():
        yield "new"
        seen.append(path.read_bytes())
        yield "म\u2028"

    write_lines_atomically(path, lines())
    assert seen == [b"old\n"]
    assert path.read_bytes() == "new\nम\u2028\n".encode()
    assert list(tmp_path.iterdir()) == [path]


def test_lines_are_on_the_disk_before_they_get_their_name(tmp_path, monkeypatch):
    path, existed = tmp_path / "out.txt", []
    monkeypatch.setattr("os.fsync", lambda descriptor: existed.append((path.exists(), os.fstat(descriptor).st_size)))
    write_lines_atomically(path, ["new"])
    assert existed[0] == (False, len("new\n"))


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(DataError, match=r"none/out\.txt cannot be written: No such file or directory"):
        write_lines_atomically(tmp_path / "none" / "out.txt", ["a"])
    with pytest.raises(DataError, match="is not a regular file"):
        write_lines_atomically(tmp_path, ["a"])


def test_a_link_is_written_through(tmp_path):
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_lines_atomically(tmp_path / "link", ["new"])
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new\n"


def test_a_new_file_gets_the_usual_permissions(tmp_path):
    (tmp_path / "usual").write_text("")
    write_lines_atomically(tmp_path / "ours", [])
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


# Streams


class Stream:
    """Bytes that arrive in the given pieces."""

    def __init__(self, pieces):
        self._pieces = iter([piece for piece in pieces if piece])

    def read1(self, _size):
        return next(self._pieces, b"")


def arrived(*pieces):
    return [line for lines in arriving_lines(Stream(pieces), "it") for line in lines]


@given(lines=st.lists(st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]))), data=st.data())
def test_lines_do_not_depend_on_the_pieces_they_come_in(lines, data):
    ends = data.draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=len(lines), max_size=len(lines)))
    whole = "".join(map("".join, zip(lines, ends, strict=True))).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    expected = [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
    assert arrived(*pieces) == expected


def test_a_last_line_needs_no_end_and_a_byte_order_mark_is_no_text():
    assert arrived(b"\xef", b"\xbb\xbfa\n", b"b") == ["a", "b"]
    assert arrived() == []
    assert arrived(b"\n\n") == ["", ""]


def test_what_has_arrived_is_not_kept_waiting():
    stream = Stream([b"one\ntwo\nth", b"ree\n"])
    arriving = arriving_lines(stream, "it")
    assert [next(arriving), next(arriving)] == [["one", "two"], ["three"]]


def test_a_wrong_byte_is_named_with_its_line():
    with pytest.raises(DataError, match=r"it, line 3 is not UTF-8 \(byte 0xE9\)"):
        arrived(b"a\nb", b"\ncaf\xe9 \nd")


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr("toolkit.data.lines._LONGEST_ARRIVING", 100)
    with pytest.raises(DataError, match="line 2 has no end"):
        arrived(b"a\n", *[b"x" * 60] * 1000)


def test_bytes_that_are_wrong_do_not_hurt_the_lines_beside_them():
    pieces = [b"a\nb\xe9", b"\n\nc"]
    assert list(arriving_bytes(Stream(pieces), "it", "end it")) == [b"a", b"b\xe9", b"", b"c"]
