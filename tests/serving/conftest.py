"""A real server with the shipped models, on a port that the system chooses: one for each process of tests."""

import contextlib
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

PATIENCE = 60.0  # seconds, of a machine that is busy
_LIBRARIES = ("starlette", "uvicorn", "prometheus_client", "python_multipart")

needs_server = pytest.mark.skipif(
    not hasattr(signal, "SIGHUP") or not all(map(find_spec, _LIBRARIES)),
    reason="toolkit serve needs the extra serve, and signals",
)


def until(condition: Callable[[], Any]) -> Any:
    """Wait until something is so; return what it is."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


class Served:
    """A `toolkit serve` in a process of its own: its address, and what it writes.

    first: a program that is run before. stdin: a file descriptor.
    """

    def __init__(self, *arguments: object, first: str = "", stdin: int = subprocess.DEVNULL, **environment: str):
        # What started the tests may ignore SIGHUP, as nohup does; a server at a terminal does not.
        program = f"import signal, sys\nsignal.signal(signal.SIGHUP, signal.SIG_DFL)\n{first}\n"
        program += "from toolkit.cli import main\nsys.exit(main(sys.argv[1:]))"
        command = [sys.executable, "-c", program, "serve", "--port", "0", *map(str, arguments)]
        own = {**os.environ, **environment, "PYTHONUNBUFFERED": "1"}
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=stdin, stdout=pipe, stderr=pipe, env=own, text=True)
        self.written = self.address = ""

    def opened(self) -> "Served":
        """Wait until it says where it is."""
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"(http://\S+:\d+\S*)/ is the page.*\n", self.written)):
            ready, _, _ = select.select([self.process.stdout], [], [], max(deadline - time.monotonic(), 0))
            piece = os.read(self.process.stdout.fileno(), 65536) if ready else b""
            if not piece:
                self.process.kill()
                pytest.fail(f"the server has not started: {self.process.communicate()[1]}")
            self.written += piece.decode()
        self.address = found[1]
        return self

    def ask(self, path: str, body: Any = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Ask with GET, or with POST where there is a body: a value is sent as JSON, bytes as they are.

        Returns the status, the body, read where it is JSON, and the headers in small letters.
        """
        data = body if isinstance(body, bytes | Iterator | None) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        request = urllib.request.Request(f"{self.address}{path}", data, {"Content-Type": "application/json", **named})
        try:
            answer = urllib.request.urlopen(request, timeout=PATIENCE)
        except urllib.error.HTTPError as error:
            answer = error
        with answer:
            told = {name.lower(): value for name, value in answer.headers.items()}
            text = answer.read()
        is_json = told.get("content-type", "").startswith("application/json")
        return answer.status, json.loads(text) if is_json else text.decode(), told

    def children(self) -> list[int]:
        """List its processes with models."""
        path = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children")
        found = path.read_text("ascii").split()
        return [int(each) for each in found if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes()]

    def kill(self) -> None:
        """End it where a test has left it, and its processes with models: one that is stopped would stay."""
        with contextlib.suppress(OSError):  # it has ended, or this system lists no processes
            for each in self.children():
                os.kill(each, signal.SIGKILL)
        self.process.kill()
        self.process.communicate()

    def end(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Ask it to end; return its exit code, and what it has written to standard output and error."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        try:
            rest, errors = self.process.communicate(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise
        return self.process.returncode, self.written + rest, errors


@pytest.fixture(scope="session")
def server() -> Iterator[Served]:
    """Serve all shipped models, without keys."""
    for name in _LIBRARIES:
        pytest.importorskip(name)
    served = Served("en-ne-small", "chat", "stories", "stories-ne").opened()
    yield served
    code, _, errors = served.end()
    assert (code, errors) == (0, "")


@pytest.fixture
def serve() -> Iterator[Callable[..., Served]]:
    """serve(*arguments, ...) starts a server, which is killed after the test where that has not ended it."""
    started: list[Served] = []

    def serve(*arguments: object, **options: Any) -> Served:
        started.append(Served(*arguments, **options))
        return started[-1]

    yield serve
    for each in started:
        if each.process.returncode is None:
            each.kill()
