import errno
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit import files
from toolkit.errors import ConfigError, DataError
from toolkit.files import (
    atomic_writer,
    check_new_directory,
    new_directory,
    remove_directory,
    remove_leftovers,
    replaced_directory,
)

FULL = OSError(errno.ENOSPC, "No space left on device")


def contents(directory: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in directory.iterdir()}


def write_directory(path: Path, text: str) -> None:
    with replaced_directory(path) as new:
        (new / "file").write_text(text)


def fail(*_: object, **__: object) -> None:
    raise FULL


def test_a_directory_is_replaced_as_a_whole(tmp_path: Path) -> None:
    path = tmp_path / "deeper" / "model"
    for text in ("first", "second"):
        with replaced_directory(path) as new:
            (new / text).write_text(text)
            (new / "always").write_text(text)
        assert contents(path) == {text: text, "always": text}
    assert [file.name for file in path.parent.iterdir()] == ["model"]
    assert path.stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt, ConnectionError(), FileNotFoundError(2, "no", "other")])
def test_an_error_leaves_the_old_directory(tmp_path: Path, error) -> None:
    write_directory(tmp_path / "model", "old")
    kind = error if isinstance(error, type) else type(error)
    with pytest.raises(kind), replaced_directory(tmp_path / "model") as new:  # noqa: PT012
        (new / "file").write_text("half of the new")
        raise error
    assert contents(tmp_path / "model") == {"file": "old"}
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_a_signal_while_the_new_directory_is_made_leaves_nothing(tmp_path: Path, monkeypatch) -> None:
    made = Path.mkdir

    def interrupted(self: Path, *arguments, **options) -> None:
        made(self, *arguments, **options)
        if self != tmp_path:
            raise KeyboardInterrupt

    monkeypatch.setattr(Path, "mkdir", interrupted)
    with pytest.raises(KeyboardInterrupt), replaced_directory(tmp_path / "new"):
        pass
    assert list(tmp_path.iterdir()) == []


def test_another_mistake_within_the_block_keeps_its_message(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"my\.en is missing"), replaced_directory(tmp_path / "model"):
        raise DataError("my.en is missing") from FileNotFoundError(2, "No such file", "my.en")


@pytest.mark.parametrize("where", ["flush_to_disk", "_temporary_directory", "within", "file within"])
def test_a_full_disk_is_told_with_the_name_of_the_directory(tmp_path: Path, monkeypatch, where: str) -> None:
    path = tmp_path / "model"
    write_directory(path, "old")
    if not where.endswith("within"):
        monkeypatch.setattr(files, where, fail)
    with pytest.raises(DataError) as told, replaced_directory(path) as new:  # noqa: PT012
        if where == "within":
            fail()
        if where == "file within":
            monkeypatch.setattr(os, "fsync", fail)
            with atomic_writer(new / "config.json") as file:
                file.write(b"{}")
    assert str(told.value) == f"{path} cannot be written: No space left on device"
    monkeypatch.undo()
    assert contents(path) == {"file": "old"}
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


def test_the_old_directory_comes_back_where_the_new_one_cannot_take_its_name(tmp_path: Path, monkeypatch) -> None:
    write_directory(tmp_path / "model", "old")
    rename = Path.rename
    monkeypatch.setattr(Path, "rename", lambda a, b: fail() if a.name.startswith(".toolkit-model") else rename(a, b))
    with pytest.raises(DataError, match="cannot be written: No space left"):
        write_directory(tmp_path / "model", "new")
    assert contents(tmp_path / "model") == {"file": "old"}


def test_a_file_is_not_replaced_by_a_directory(tmp_path: Path) -> None:
    (tmp_path / "notes").write_text("mine")
    with pytest.raises(DataError, match="is a file: give the name of a directory"):
        write_directory(tmp_path / "notes", "new")
    assert (tmp_path / "notes").read_text() == "mine"


def test_a_directory_where_nothing_can_be_made(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Path, "mkdir", fail)
    with pytest.raises(DataError, match="model cannot be written: No space left"):
        write_directory(tmp_path / "model", "new")


def test_leftovers_of_an_interruption_are_cleared_away(tmp_path: Path) -> None:
    """Killed while writing two files and a directory, removing one directory, and between the two steps of a swap."""
    write_directory(tmp_path / "whole", "stays")
    for leftover in (".toolkit-ab12.tmp", "whole/.toolkit-cd34.tmp"):
        (tmp_path / leftover).write_text("half")
    for leftover in (".toolkit-model.ef56.tmp/training", ".toolkit-old-78.tmp/moved", ".toolkit-old-90.tmp/whole"):
        (tmp_path / leftover).mkdir(parents=True)
        (tmp_path / leftover / "file").write_text("old")
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["moved", "whole"]
    assert contents(tmp_path / "whole") == {"file": "stays"}
    assert contents(tmp_path / "moved") == {"file": "old"}


def test_a_directory_is_removed(tmp_path: Path) -> None:
    write_directory(tmp_path / "model", "old")
    remove_directory(tmp_path / "model")
    assert not list(tmp_path.iterdir())
    remove_directory(tmp_path / "model")


SCRIPT = """
import sys
from toolkit.files import atomic_writer
with atomic_writer(sys.argv[1]) as file:
    file.write(bytes(1 << 20))
"""


def test_a_file_that_the_disk_has_no_room_for(tmp_path: Path) -> None:
    """A real limit of the system, on the size of files: what was there stays."""
    path = tmp_path / "file"
    path.write_text("old")
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))  # noqa: E731
    command = [sys.executable, "-c", SCRIPT, str(path)]
    result = subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)
    assert "DataError: " in result.stderr
    assert "cannot be written: File too large" in result.stderr
    assert contents(tmp_path) == {"file": "old"}


@pytest.mark.parametrize(("name", "problem"), [("full", "exists"), ("file", "exists"), ("file/x", "file is a file")])
def test_a_result_must_not_replace_anything(tmp_path, name, problem):
    (tmp_path / "full" / "inner").mkdir(parents=True)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(ConfigError, match=rf"{problem}.*--output"):
        check_new_directory(tmp_path / name, "--output")
    for free in "new", "new/inner", "full/inner":
        check_new_directory(tmp_path / free, "--output")


def come_to_be(path: Path, what: str) -> None:
    """Something that somebody else puts at a path."""
    if what == "a file":
        path.write_text("mine")
    elif what == "a link that leads nowhere":
        path.symlink_to("nowhere")
    else:
        path.mkdir()
        (path / "letter").write_text("mine")


@pytest.mark.parametrize("what", ["a file", "a directory", "a link that leads nowhere"])
@pytest.mark.parametrize("before", [False, True], ids=["nothing before", "an empty directory before"])
def test_what_has_come_to_be_meanwhile_is_not_replaced_and_the_result_is_kept(tmp_path, what, before):
    path = tmp_path / "out"
    if before:
        path.mkdir()
    check_new_directory(path, "--export")
    (tmp_path / "out-2").mkdir()  # not free either
    with pytest.raises(DataError) as told, new_directory(path) as new:  # noqa: PT012
        (new / "file").write_text("an hour of training")
        if before:
            path.rmdir()
        come_to_be(path, what)
    kept = tmp_path / "out-3"
    assert str(told.value) == f"{path} has come to be in the meantime and is not replaced: the result is in {kept}"
    assert contents(kept) == {"file": "an hour of training"}
    if path.is_dir():
        assert contents(path) == {"letter": "mine"}
    assert os.path.lexists(path)
    assert sorted(each.name for each in tmp_path.iterdir()) == ["out", "out-2", "out-3"]


@pytest.mark.parametrize("link", [False, True], ids=["itself", "a link to it"])
def test_an_empty_directory_is_filled(tmp_path: Path, link: bool) -> None:
    (tmp_path / "out").mkdir()
    path = tmp_path / ("link" if link else "out")
    if link:
        path.symlink_to("out")
    check_new_directory(path, "--export")
    with new_directory(path) as new:
        (new / "file").write_text("new")
    assert contents(tmp_path / "out") == {"file": "new"}
    assert path.is_symlink() == link


@pytest.mark.parametrize("length", [226, 255])
@pytest.mark.parametrize("letter", ["n", "न"])
def test_every_name_that_may_be_is_written(tmp_path: Path, length: int, letter: str) -> None:
    path = tmp_path / (letter * (length // len(letter.encode())))
    check_new_directory(path, "--export")
    for text in "one", "other":
        write_directory(path, text)
        assert contents(path) == {"file": text}
    remove_directory(path)
    with new_directory(path) as new:
        (new / "file").write_text("new")
    assert [each.name for each in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("/".join(["n" * 200] * 20), "File name too long"), ("loop", "Too many levels")],
    ids=["path", "loop"],
)
def test_a_path_where_nothing_can_be_written_is_told_beforehand(tmp_path: Path, name: str, reason: str) -> None:
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(ConfigError, match=rf"cannot be written \({reason}.*: choose another --export"):
        check_new_directory(tmp_path / name, "--export")
    with pytest.raises(DataError, match="cannot be written: "), atomic_writer(tmp_path / name):
        pass
    assert [each.name for each in tmp_path.iterdir()] == ["loop"]
