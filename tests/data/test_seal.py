"""Checksums of files: whatever happens to one of them is noticed."""

import pytest

from toolkit.data.seal import SEAL_FILE, check_seal, seal
from toolkit.errors import DataError


@pytest.fixture
def directory(tmp_path):
    """Two files under a seal, of which one lies beside the directory."""
    (tmp_path / "inner").mkdir()
    (tmp_path / "inner" / "rows").write_bytes(b"one two")
    (tmp_path / "beside").write_bytes(b"three")
    seal(tmp_path / "inner", [tmp_path / "beside"])
    return tmp_path / "inner"


def test_what_is_whole_passes(directory):
    check_seal(directory)


@pytest.mark.parametrize("name", ["rows", "../beside", SEAL_FILE])
@pytest.mark.parametrize("content", [None, b"", b"one tw0", b"[]"], ids=["gone", "empty", "other", "list"])
def test_a_file_that_changed_is_named(directory, name, content):
    (directory / name).unlink()
    if content is not None:
        (directory / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name.removeprefix('../')} is missing or damaged: delete "):
        check_seal(directory)
