"""Disks that are full, that may not be written to, or that fail: whatever was there stays as it was."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tests.system.damage.room import RESUME, TRAIN, Kind, link

TRANSLATE = "translate --model model --max-new-tokens 2 --file lines.en --output"
AVERAGE = "average run run/step-000001 --output mean"
EXPORT = f"{TRAIN} --export exported"


@contextmanager
def limited(size: int) -> Iterator[None]:
    """No file may become larger: writing fails in earnest, within the library that writes, as on a full disk."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def failing(owner: Any, name: str, number: int, after: int = 0) -> Callable[[], Any]:
    """From the call after `after` others on, a function of the system fails with this error number."""

    @contextmanager
    def disk() -> Iterator[None]:
        real, calls = getattr(owner, name), 0

        def fail(*arguments: Any, **options: Any) -> Any:
            nonlocal calls
            calls += 1
            if calls > after:
                names = [str(name) for name in arguments[:1] if not isinstance(name, int)]
                raise OSError(number, os.strerror(number), *names)
            return real(*arguments, **options)

        with patch.object(owner, name, fail):
            yield

    return disk


ERRORS = {
    "a full disk": errno.ENOSPC,
    "a disk that may only be read": errno.EROFS,
    "a disk that fails": errno.EIO,
    "no more space for this user": errno.EDQUOT,
    "no permission": errno.EACCES,
}


def kinds() -> Iterator[Kind]:
    yield from _limits()
    for name, number in ERRORS.items():
        yield Kind(
            f"{name}, told on flushing",
            f"{TRANSLATE} old.txt",
            "old.txt cannot be written",
            disk=failing(os, "fsync", number),
        )
        yield Kind(
            f"{name}, told on renaming",
            f"{TRANSLATE} old.txt",
            "old.txt.part.json cannot be written",
            disk=failing(Path, "replace", number),
        )
        yield Kind(
            f"{name}, told on making a directory", TRAIN, "new cannot be created", disk=failing(Path, "mkdir", number)
        )
        yield Kind(
            f"{name}, told on flushing a model", AVERAGE, "mean cannot be written", disk=failing(os, "fsync", number, 3)
        )
        yield Kind(
            f"{name}, told on renaming a model", AVERAGE, "mean cannot be written", disk=failing(Path, "rename", number)
        )

    yield Kind(
        "a full disk, told on the way to a checkpoint",
        RESUME,
        "run/",
        disk=failing(os, "fsync", errno.ENOSPC, 8),
        leaves="run",
    )

    yield from _paths()


def _paths() -> Iterator[Kind]:
    """Where a result is to lie: told before there is one."""
    deep = "/".join(["n" * 250] * 17)
    for command, flag, problem in (
        (TRAIN, "--run", "cannot be created: "),
        (TRAIN, "--export", "cannot be written ("),
        (AVERAGE, "--output", "cannot be written ("),
        (f"{TRANSLATE} new.txt", "--output", "cannot be written: "),
    ):
        what = f"{command.split()[0]} {flag}"
        circle = f"{problem}Too many levels of symbolic links"
        yield Kind(f"a link to itself, {what}", command, circle, flags=(flag, "loop"), harm=link("loop", "loop"))
        yield Kind(f"an endless path, {what}", command, problem, flags=(flag, deep))
    nowhere = "exists: choose another --run"
    yield Kind("a run that is a link to nowhere", TRAIN, nowhere, flags=("--run", "link"), harm=link("link", "away"))


def _limits() -> Iterator[Kind]:
    yield Kind(
        "no room for a translation",
        f"{TRANSLATE} old.txt".replace("--max-new-tokens 2", ""),
        "old.txt cannot be written: File too large",
        disk=lambda: limited(300),
    )
    for size in 300, 1000, 10_000:
        yield Kind(
            f"no room for a model of more than {size} bytes",
            AVERAGE,
            "mean cannot be written",
            disk=lambda size=size: limited(size),
        )
    for size in 300, 1000, 1700, 5000, 10_000, 30_000:
        yield Kind(
            f"no room for files of more than {size} bytes in a run",
            TRAIN,
            "new",
            disk=lambda size=size: limited(size),
            leaves="new",
        )
    for size in 300, 1000, 30_000:
        yield Kind(
            f"no room for more than {size} bytes to resume",
            RESUME,
            "run",
            disk=lambda size=size: limited(size),
            leaves="run",
        )
