"""A server as a process of its own: started, looked at from outside while it works, asked to end."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, Self

from tests.benchmarks.side_by_side.side import family, processor_seconds
from tests.serving.client import Connection

ROOT = Path(__file__).resolve().parents[2]


class State(NamedTuple):
    """The processes of a server at some time: memory in MB (front, then the others), threads and open files of all."""

    seconds: float
    memory: list[float]
    threads: int
    files: int


class Served:
    """`toolkit serve`, or another server, on a port that is free; the directories and flags as on the command line."""

    def __init__(self, *arguments: str, command: Sequence[str] = (sys.executable, "-m", "toolkit", "serve")):
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = tempfile.NamedTemporaryFile(suffix=".log")  # noqa: SIM115, open as long as the process is
        environment = os.environ | {"PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"}
        whole = [*command, *arguments, "--port", str(self.port)]
        self.process = subprocess.Popen(whole, stdout=self.log, stderr=self.log, env=environment)
        self.begin = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        self.log.close()

    async def ready(self, path: str = "/ready", timeout: float = 120) -> None:
        """Wait until it answers there.  Raises RuntimeError with what it has printed where it ends instead."""
        async with asyncio.timeout(timeout), Connection(self.url) as connection:
            while True:
                if self.process.poll() is not None:
                    raise RuntimeError(f"the server has ended with {self.process.returncode}:\n{self.printed()}")
                try:
                    if (await connection.ask("GET", path)).status == 200:
                        return
                except (OSError, EOFError):
                    pass
                await asyncio.sleep(0.05)

    def printed(self) -> str:
        """Read what it has printed."""
        return Path(self.log.name).read_text("utf-8", errors="replace")

    def state(self) -> State:
        """Look at its processes; some may end meanwhile."""
        memory, threads, files = [], 0, 0
        for process in self.processes():
            try:
                status = Path(f"/proc/{process}/status").read_text("utf-8").splitlines()
                found = {name: value for name, _, value in (line.partition(":") for line in status)}
                files += len(os.listdir(f"/proc/{process}/fd"))  # noqa: PTH208, names are enough
            except OSError:
                continue
            memory.append(int(found.get("VmRSS", "0 kB").split()[0]) / 1024)
            threads += int(found["Threads"])
        return State(time.monotonic() - self.begin, memory, threads, files)

    def processes(self) -> list[int]:
        """List its process and all below it, itself first."""
        return [self.process.pid, *(each for each in family(self.process.pid) if each != self.process.pid)]

    def models(self) -> list[int]:
        """List its processes with models."""
        return [each for each in self.processes()[1:] if "spawn_main" in _command(each)]

    def busy(self) -> list[float]:
        """Tell for how many seconds each process has kept a core busy."""
        return [processor_seconds([each]) for each in self.processes()]

    def end(self, name: str = "SIGTERM", timeout: float = 60) -> tuple[int, list[str]]:
        """Ask it to end by a signal -> its exit code, and the commands of the processes that it leaves behind.

        They have a second to find out that it is gone.
        """
        every = {process: _command(process) for process in self.processes()}
        self.process.send_signal(getattr(signal, name))
        code, until = self.process.wait(timeout), time.monotonic() + 1
        while any(map(_alive, every)) and time.monotonic() < until:
            time.sleep(0.01)
        return code, [command for process, command in every.items() if _alive(process)]


def _command(process: int) -> str:
    """Tell what a process is; empty where it has ended."""
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def _alive(process: int) -> bool:
    """True where a process goes on; one that has ended and was not waited for does not."""
    try:
        stat = Path(f"/proc/{process}/stat").read_text("utf-8")
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"
