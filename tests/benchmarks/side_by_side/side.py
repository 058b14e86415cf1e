"""A side seen from outside: a process that is told what to do, and measured while it does it or waits."""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[3]
_TICKS = os.sysconf("SC_CLK_TCK")


class Side:
    """A process that imports `module` and serves an object of `kind` in it; see `serve`.

    Its environment has none of the variables that set numbers of threads but those of `environment`. launcher: words
    before the command, such as those of mpiexec.
    """

    def __init__(self, module: str, kind: str, environment: dict[str, str] | None = None, launcher: Sequence[str] = ()):
        kept = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        paths = [str(Path(__file__).resolve().parents[1]), str(ROOT), kept.get("PYTHONPATH", "")]
        kept["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        command = [*launcher, sys.executable, "-m", f"{__package__}.serve", module, kind]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115, open as long as the process is
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._errors}
        self._process = subprocess.Popen(command, text=True, env=kept | (environment or {}), **pipes)
        self._answer()
        self.imported = self.memory()  # bytes, after the imports

    def start(self, **arguments: Any) -> None:
        """Make the object."""
        self.call("", **arguments)

    def call(self, method: str, **arguments: Any) -> Any:
        """What a method of the object returns."""
        self.send(method, **arguments)
        return self._answer()

    def send(self, method: str, **arguments: Any) -> None:
        print(json.dumps([method, arguments]), file=self._process.stdin, flush=True)

    def peak_memory(self, method: str, **arguments: Any) -> int:
        """The most memory above the imports that the process and its children have while a method runs, in bytes.

        Where the peaks of several processes are not at the same moment, it is their sum all the same.
        """
        for process in self._family():
            with suppress(OSError):  # where it is not allowed, peaks count from the start of the process
                Path(f"/proc/{process}/clear_refs").write_text("5", encoding="ascii")
        self.call(method, **arguments)
        return self.memory() + sum(map(_above_now, self._family())) - self.imported

    def memory(self) -> int:
        """Bytes of the process and its children that no file stands behind; what they share counts once."""
        return _memory(self._family())

    def processor_seconds(self) -> float:
        """Seconds that the process and its children have kept a core busy so far."""
        return processor_seconds(self._family())

    def close(self) -> None:
        """End the process, and with its pipe its children."""
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()

    def _answer(self) -> Any:
        line = self._process.stdout.readline()
        if not line:
            self._process.wait()
            self._errors.seek(0)
            told = self._errors.read().decode(errors="replace").splitlines()[-40:]
            sys.exit("\n".join([f"{' '.join(self._process.args)} has ended:", *told]))
        return json.loads(line)

    def _family(self) -> list[int]:
        return family(self._process.pid)


def family(process: int) -> list[int]:
    """Give a process id, and those of its children and theirs."""
    parents = {}
    for path in Path("/proc").iterdir():
        if path.name.isdigit():
            try:
                stat = (path / "stat").read_text(encoding="utf-8", errors="replace")
            except OSError:
                continue
            parents[int(path.name)] = int(stat.rpartition(")")[2].split()[1])
    found, before = {process}, 0
    while len(found) > before:
        before = len(found)
        found |= {each for each, parent in parents.items() if parent in found}
    return sorted(found)


def processor_seconds(processes: Iterable[int]) -> float:
    """Seconds that processes have kept a core busy so far."""
    ticks = 0
    for process in processes:
        fields = Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS


def _memory(processes: Iterable[int]) -> int:
    """Bytes that no file stands behind; what processes share counts once."""
    found = 0
    for process in processes:
        lines = Path(f"/proc/{process}/smaps_rollup").read_text(encoding="ascii").splitlines()
        found += sum(int(line.split()[1]) for line in lines if line.startswith(("Pss_Anon", "Pss_Shmem")))
    return found << 10


def _above_now(process: int) -> int:
    """Bytes that a process had more at its peak than it has now."""
    lines = Path(f"/proc/{process}/status").read_text(encoding="utf-8").splitlines()
    sizes = {name: int(line.split()[1]) for line in lines for name in ("VmHWM", "VmRSS") if line.startswith(name)}
    return sizes["VmHWM"] - sizes["VmRSS"] << 10
