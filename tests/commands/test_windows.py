"""Windows cover an input, in order and without a gap, and know where in it they are."""

import itertools
import os
import sys
import threading

import pytest

from toolkit.commands import lines as windows
from toolkit.data.lines import counted
from toolkit.errors import DataError

LINES = ["a", "", "b", " \t", "c", "d", "e"]


@pytest.fixture(autouse=True)
def _small_windows(monkeypatch):
    monkeypatch.setattr(windows, "WINDOW", 3)


@pytest.fixture
def write(tmp_path):
    def write(name, lines):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines))
        return path

    return write


def test_windows_cover_a_file_and_its_partner(write):
    path, partner = write("lines", LINES), write("partners", map(str, range(7)))
    found = list(windows.file_windows(path, partner, "number"))
    assert [window.lines for window in found] == [LINES[:3], LINES[3:6], LINES[6:]]
    assert [window.partners for window in found] == [["0", "1", "2"], ["3", "4", "5"], ["6"]]
    assert [(window.before, window.spoken_before) for window in found] == [(0, 0), (3, 2), (6, 4)]
    assert found[1].where(2) == f"{path}, line 5"


def test_a_text_has_the_windows_of_a_file(write):
    from_text = list(windows.text_windows(["\n".join(LINES[:4]), *LINES[4:]]))
    from_file = windows.file_windows(write("lines", LINES))
    assert [window[0] for window in from_text] == [window[0] for window in from_file]


@pytest.mark.parametrize("count", [1, 3, 6, 8, 20])
def test_a_partner_of_another_length_is_refused(write, count):
    partner = write("partners", ["x"] * count)
    with pytest.raises(DataError, match=rf"lines has 7 lines, .*partners {count}: each line needs its prefix"):
        list(windows.file_windows(write("lines", LINES), partner, "prefix"))
    # Where the lines cannot be counted before they are read:
    words = (
        f"partners has {counted(count)}, the text has more: line {count + 1} has no prefix"
        if count < 7
        else "more than"
    )
    with pytest.raises(DataError, match=words):
        list(windows.text_windows(LINES, partner, "prefix"))


def test_a_pipe_is_answered_and_read_ahead_up_to_a_window(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin, os.fdopen(writing, "wb", 0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        arriving = windows.file_windows(None)
        pipe.write(b"a\n")
        assert next(arriving).lines == ["a"]
        assert next(arriving) is None  # what follows may be long in coming
        pipe.write(b"b\nc\nd\ne")
        assert next(arriving).lines == ["b", "c", "d"]
        assert next(arriving) is None
        pipe.write(b"f\n")
        window = next(arriving)
        assert (window.lines, window.before, window.where(1)) == (["ef"], 4, "standard input, line 5")
        timer = threading.Timer(0.05, pipe.close)
        timer.start()
        assert [*arriving][-1:] in ([], [None])
        timer.join()


def test_what_comes_without_a_pause_comes_in_whole_windows(monkeypatch):
    reading, writing = os.pipe()
    with os.fdopen(reading, encoding="utf-8") as stdin, os.fdopen(writing, "wb", 0) as pipe:
        monkeypatch.setattr(sys, "stdin", stdin)
        arriving = windows.file_windows(None)
        pipe.write("".join(f"{line}\n" for line in LINES).encode())
        pipe.close()
        assert [window.lines for window in arriving if window] == [LINES[:3], LINES[3:6], LINES[6:]]


def test_closed_standard_input_is_named(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(DataError, match="standard input is closed"):
        windows.file_windows(None)


def test_memory_holds_one_window(write):
    path = write("lines", ["x"] * 1000)
    first = next(windows.file_windows(path))
    assert len(first.lines) == 3
    endless = windows._windows(itertools.repeat(["x"]), "it", None, "")
    assert next(itertools.islice(endless, 1000, None)).before == 1000
