"""A stream of lines means what a file of the same bytes means, however it arrives."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.commands import console
from toolkit.errors import DataError


class Stream:
    """Bytes that arrive in the given pieces."""

    def __init__(self, pieces):
        self._pieces = iter([piece for piece in pieces if piece])

    def read1(self, _size):
        return next(self._pieces, b"")


def lines_of(*pieces):
    return [line for lines in console.arriving_lines(Stream(pieces), "it") for line in lines]


@given(lines=st.lists(st.text(st.characters(exclude_characters="\0\n\r", exclude_categories=["Cs"]))), data=st.data())
def test_lines_do_not_depend_on_the_pieces_they_come_in(lines, data):
    ends = data.draw(st.lists(st.sampled_from(["\n", "\r\n"]), min_size=len(lines), max_size=len(lines)))
    whole = "".join(map("".join, zip(lines, ends, strict=True))).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=6)))
    pieces = [whole[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(whole)], strict=True)]
    expected = [lines[0].removeprefix("\ufeff"), *lines[1:]] if lines else []
    assert lines_of(*pieces) == expected


def test_a_last_line_needs_no_end_and_a_byte_order_mark_is_no_text():
    assert lines_of(b"\xef", b"\xbb\xbfa\n", b"b") == ["a", "b"]
    assert lines_of() == []
    assert lines_of(b"\n\n") == ["", ""]


def test_what_has_arrived_is_not_kept_waiting():
    stream = Stream([b"one\ntwo\nth", b"ree\n"])
    arriving = console.arriving_lines(stream, "it")
    assert [next(arriving), next(arriving)] == [["one", "two"], ["three"]]


def test_a_wrong_byte_is_named_with_its_line():
    with pytest.raises(DataError, match=r"it, line 3 is not UTF-8 \(byte 0xE9\)"):
        lines_of(b"a\nb", b"\ncaf\xe9 \nd")


def test_a_line_without_end_does_not_fill_the_memory(monkeypatch):
    monkeypatch.setattr(console, "_LONGEST_LINE", 100)
    with pytest.raises(DataError, match="line 2 has no end"):
        lines_of(b"a\n", *[b"x" * 60] * 1000)
