"""Locks: a directory or a file for one process at a time, or two would clear away what the other has written."""

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from toolkit.errors import ConfigError, ModelError

try:
    import fcntl
except ImportError:  # there are no such locks on Windows
    fcntl = None

_PATIENCE = 3.0  # seconds: workers whose main process was killed hold its lock until they notice
_MOST_VANISHED = 10  # so often a directory may be removed between being made and being locked
_LOCKS = Path("/proc/locks")  # where Linux tells who holds which


@contextmanager
def locked(path: Path, make: Callable[[], None] | None = None, work: str = "trained") -> Iterator[None]:
    """Keep a directory or a file to this process within the block; the system ends that however the process ends.

    make: makes it, where it need not be there; another process may remove it again before it is locked. work: what is
    done to it, in errors. Where the system or the disk knows no locks there is none. Raises ConfigError, with its
    number where the system tells, where another process is at work, ModelError where nothing is there or made.
    """
    descriptor = _lock(path, make, work)
    try:
        yield
    finally:
        _close(descriptor)


def is_locked(directory: Path) -> bool:
    """Say if a process is at work on the directory."""
    try:
        descriptor = _open(directory)
    except OSError:
        return False
    try:
        return not _try_lock(descriptor, shared=True)  # so that those who only ask do not see each other
    finally:
        _close(descriptor)


def _lock(path: Path, make: Callable[[], None] | None, work: str) -> int | None:
    deadline, vanished = time.monotonic() + _PATIENCE, 0
    while True:
        try:
            if make:
                make()
            descriptor = _open(path)
        except (FileNotFoundError, FileExistsError):  # removed by another process after it was made, or was seen
            if not make:
                raise ModelError(f"{path} is not a run: there is no such directory") from None
            vanished += 1
            if vanished > _MOST_VANISHED:  # it cannot be made at all
                raise
            time.sleep(0.01)
            continue
        free = _try_lock(descriptor)
        if free and _is_named(path, descriptor):
            return descriptor
        holder = "" if free else _holder(descriptor)
        _close(descriptor)
        if time.monotonic() > deadline:
            raise ConfigError(f"{path} is being {work} by another process{holder}: wait for it, or stop it")
        time.sleep(0 if free else 0.05)


def _open(path: Path) -> int | None:
    """Open a descriptor to lock; None where the system opens no directories.  Raises FileNotFoundError."""
    try:
        return os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        raise
    except OSError:
        return None


def _try_lock(descriptor: int | None, shared: bool = False) -> bool:
    """Try to lock; also true where there are no locks to be had."""
    if fcntl and descriptor is not None:
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:
            pass
    return True


def _is_named(path: Path, descriptor: int | None) -> bool:
    """Say if the path still names what was locked, and nothing that another process has made since."""
    try:
        return descriptor is None or os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False


def _holder(descriptor: int) -> str:
    """Find the number of the process that holds the lock, for a sentence; empty where the system does not tell."""
    try:
        lines = _LOCKS.read_text(encoding="ascii").splitlines()
    except (OSError, UnicodeDecodeError):
        return ""
    found = os.fstat(descriptor)
    place = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    for words in map(str.split, lines):  # "1: FLOCK ADVISORY WRITE 4711 fe:00:1234 0 EOF"
        if words[1:2] == ["FLOCK"] and words[5] == place and words[4].isdecimal() and words[4] != "0":
            return f", number {words[4]}"
    return ""


def _close(descriptor: int | None) -> None:
    if descriptor is None:
        return
    if fcntl:
        with suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # for forked processes, too, which hold the same descriptor
    os.close(descriptor)
