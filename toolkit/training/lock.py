"""A directory for one process at a time: two that train the same run would clear away what the other is writing."""

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from toolkit.errors import ConfigError

_PATIENCE = 3.0  # seconds: workers whose main process was killed hold its lock until they notice


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Keep a directory to this process within the block; the system ends that however the process ends.

    Where the system or the disk knows no locks there is none. Raises ConfigError where another process is at work.
    """
    descriptor = _open(directory)
    try:
        deadline = time.monotonic() + _PATIENCE
        while not _try_lock(descriptor):
            if time.monotonic() > deadline:
                raise ConfigError(f"{directory} is being trained by another process: wait for it, or stop it")
            time.sleep(0.05)
        yield
    finally:
        _close(descriptor)


def is_locked(directory: Path) -> bool:
    """Is a process at work on the directory?"""
    descriptor = _open(directory)
    try:
        return not _try_lock(descriptor)
    finally:
        _close(descriptor)


def _open(directory: Path) -> int | None:
    try:
        return os.open(directory, os.O_RDONLY)
    except OSError:
        return None


def _try_lock(descriptor: int | None) -> bool:
    """Also true where there are no locks to be had."""
    try:
        import fcntl

        if descriptor is not None:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except (ImportError, OSError):
        pass
    return True


def _close(descriptor: int | None) -> None:
    if descriptor is None:
        return
    try:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_UN)  # for forked processes, too, which hold the same descriptor
    except (ImportError, OSError):
        pass
    os.close(descriptor)
