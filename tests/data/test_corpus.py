"""Checksums of files: whatever happens to one of them is noticed."""

import pytest

from toolkit.data.corpus import CHECKSUMS_FILE, check_checksums, write_checksums
from toolkit.errors import DataError


@pytest.fixture
def directory(tmp_path):
    """Two files with checksums, of which one lies beside the directory."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "rows").write_bytes(b"one two")
    (tmp_path / "beside").write_bytes(b"three")
    write_checksums(tmp_path / "inner", [tmp_path / "beside"])
    return tmp_path / "inner"


def test_what_is_whole_passes(directory):
    check_checksums(directory)


@pytest.mark.parametrize("name", ["rows", "../beside", CHECKSUMS_FILE])
@pytest.mark.parametrize("content", [None, b"", b"one tw0", b"[]"], ids=["gone", "empty", "other", "list"])
def test_a_file_that_changed_is_named(directory, name, content):
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name.removeprefix('../')} is missing or damaged: delete "):
        check_checksums(directory)
