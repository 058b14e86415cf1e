"""Recipes as processes of their own, for tests of what one does to another."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.damage.room import RECIPES


@contextmanager
def started(command: str, **streams: object) -> Iterator[subprocess.Popen]:
    """A recipe as a process of its own, which has come to its end after the block."""
    verb, *words = command.split()
    command = [sys.executable, str(RECIPES[verb]), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **streams) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def wait_for(path: Path, process: subprocess.Popen | None = None) -> None:
    while not path.exists():
        assert process is None or process.poll() is None
        time.sleep(0.001)


def last_update() -> int:
    """The update of the last checkpoint of the run `new`."""
    return int(Path("new/last").read_text().removeprefix("step-"))
