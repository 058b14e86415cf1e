"""Writing a file so that its name never points to half of it."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from toolkit.errors import DataError


@contextmanager
def atomic_writer(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing bytes that takes the name `path` only when the block has ended without an exception.

    The bytes go to a temporary name in the same directory, are flushed to the disk and renamed; until then, and
    after any failure, whatever `path` named before is untouched.

    Raises DataError if `path` cannot be written or names something other than a regular file.
    """
    target = Path(path).resolve()  # a link keeps being a link: the file it names is replaced
    if target.exists() and not target.is_file():  # renaming over /dev/null would replace the device itself
        raise DataError(f"{path} is not a regular file: give the name of a file to write")
    temporary = target.with_name(f".toolkit-{secrets.token_hex(8)}.tmp")
    try:
        with temporary.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror or error}") from error
    finally:
        temporary.unlink(missing_ok=True)
