"""Does a run on ranks of MPI end, and go on in the same bits, whichever of its processes is killed?

    python tests/system/kill_ranks.py --kills 20 --seed 1
    python tests/system/kill_ranks.py --mpiexec "mpiexec --allow-run-as-root --map-by :OVERSUBSCRIBE" --python PYTHON

Trains a tiny translator by mpiexec and kills (kill -9) one of its processes at a random moment, half of the time while
it is writing: a rank, mpiexec itself, or what mpiexec has started to start the ranks. All processes must end within
ten seconds, and leave neither shared memory nor a launcher's files, unless MPI itself is just beginning. Then the run
is resumed on another number of ranks; in the end every file of it is compared with those of a run of one process that
nobody has killed. Linux only.
"""

import argparse
import os
import random
import re
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from tests.system.kill_and_resume import TRAINING, Torture, cut_corpus, end_run, endure

PATIENCE = 10.0  # seconds
COUNTS = 1, 2, 3, 4
_MARK = "TOOLKIT_TEST_KILLS"
_PROC, _SHARED = Path("/proc"), Path("/dev/shm")
_ON_RANKS = {name: value for name, value in TRAINING.items() if name != "workers"} | {"shards": 8}


@dataclass
class RankTorture(Torture):
    """As `Torture`, on ranks: every start has another number of them."""

    mpiexec: str = "mpiexec"
    python: str = sys.executable
    counts: tuple[int, ...] = COUNTS
    training: dict = field(default_factory=lambda: _ON_RANKS)
    ranks: int = 0  # of the last start; 0 for a process without mpiexec
    slowest: float = 0.0  # seconds from a kill to the end of all
    early: list[list[str]] = field(default_factory=list)  # what MPI left when it was killed before it had begun

    def start(self, run: Path) -> subprocess.Popen:
        """Start or resume the recipe on another number of ranks than before; a first, whole run in one process."""
        self.mark = f"{_MARK}={uuid.uuid4().hex}"
        launcher = []
        if run.name != "whole":
            self.ranks = self.random.choice([count for count in self.counts if count != self.ranks])
            launcher = [*shlex.split(self.mpiexec), "-n", str(self.ranks)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", _MARK: self.mark.partition("=")[2]}
        command = [self.python, *self.command(run)[1:]]
        with (self.directory / "stderr").open("wb") as told:
            return subprocess.Popen(
                [*launcher, *command, *["--resume"] * run.exists()],
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=told,
            )

    def kill(self, process: subprocess.Popen) -> str:
        """Kill one process of the run, and see to it that no other is left, nor anything else -> which it was."""
        there = self.processes()
        ranks = [number for number in there if _is_rank(number)]
        between = [number for number in there if number not in ranks and number != process.pid]
        kinds = {"a rank": ranks, "mpiexec": [process.pid], "a process of the launcher": between}
        name = self.random.choice(["a rank", "a rank", *(name for name, numbers in kinds.items() if numbers)])
        begun = any(map(_has_begun, ranks))
        shared = set().union(*map(_shared_files, there))
        with suppress(ProcessLookupError):  # it has come to its end since
            os.kill(self.random.choice(kinds[name] or [process.pid]), signal.SIGKILL)
        begin = time.monotonic()
        while left := self.processes():
            if time.monotonic() > begin + PATIENCE:
                for number in left:
                    os.kill(number, signal.SIGKILL)
                raise AssertionError(f"{len(left)} processes are left after {name} was killed: {self.kills}")
            process.poll()
            time.sleep(0.01)
        self.slowest = max(self.slowest, time.monotonic() - begin)
        process.wait()
        session = Path(tempfile.gettempdir()) / f"ompi.{process.pid}"  # of Open MPI
        if remains := [path for path in (*shared, session) if path.exists()]:
            if begun:
                raise AssertionError(f"left over after {name} was killed, {self.kills}: {remains}")
            self.early.append([path.name for path in remains])
            for path in remains:
                shutil.rmtree(path) if path.is_dir() else path.unlink()
        return f"{name} of {self.ranks}"

    def processes(self) -> list[int]:
        """List all processes of the run, wherever they are."""
        return [number for number in _numbers() if self.mark.encode() in _read(number, "environ").split(b"\0")]


def _numbers() -> list[int]:
    return [int(name) for name in os.listdir(_PROC) if name.isdigit()]  # noqa: PTH208  (speed)


def _read(number: int, name: str) -> bytes:
    """Read what the system tells of a process; nothing of one that has ended."""
    try:
        return (_PROC / str(number) / name).read_bytes()
    except OSError:
        return b""


def _is_rank(number: int) -> bool:
    names = {each.partition(b"=")[0] for each in _read(number, "environ").split(b"\0")}
    words = {*_read(number, "cmdline").split(b"\0")}
    return bool(names & {b"PMI_RANK", b"PMIX_RANK"}) and bool(words & {b"--run", b"--output"})


def _has_begun(number: int) -> bool:
    """Say if MPI has begun on a rank, and its files have lost their names."""
    return any(b"/dev/shm/" in line and line.endswith(b"(deleted)") for line in _read(number, "maps").splitlines())


def _shared_files(number: int) -> set[Path]:
    """List the files of shared memory that a process has, and that still have names."""
    lines = _read(number, "maps").decode(errors="replace").splitlines()
    paths = {Path(line.split(maxsplit=5)[-1]) for line in lines if not line.endswith("(deleted)")}
    return {path for path in paths if path.parent == _SHARED}


def torture(directory: Path, kills: int, seed: int, **settings: object) -> RankTorture:
    """Kill processes `kills` times and compare each run with an uninterrupted one.

    Raises AssertionError where one differs, or something is left.
    """
    cut_corpus(directory)
    # Ranks find each other first, and share the cores.
    return endure(RankTorture(directory, random.Random(seed), **settings), kills, end_run, starts=2)


def report(done: RankTorture) -> None:
    """Print what was killed, and what became of it."""
    killed = Counter(re.split(r" of \d", each)[0] for each in done.kills)
    print(f"{len(done.kills)} kills: {', '.join(f'{name} {count} times' for name, count in killed.items())}")
    print(f"all processes ended within {done.slowest:.1f} s and left nothing, but for what MPI had as it began:")
    print(f"    {done.early or 'nothing'}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often to kill")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--updates", type=int, default=60, help="of each run")
    parser.add_argument("--mpiexec", default="mpiexec", help="the launcher with its flags")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has its mpi4py")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        report(torture(Path(directory), **vars(arguments)))
    print("every run ended in the bits of an uninterrupted one")


if __name__ == "__main__":
    main()
