"""What tests of files share."""

from pathlib import Path

import pytest


@pytest.fixture
def write(tmp_path):
    def write(name: str, content: str | bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write
