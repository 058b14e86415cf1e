"""A corpus larger than anybody wants to wait for, on one process and on ranks of MPI: lines a second, and memory.

    python tests/benchmarks/large_corpus.py --lines 200000 --ranks 0 1 2 4

Translates so many lines of the embedded corpus, which is repeated, by `toolkit translate` with one thread; 0 ranks is
one process, -2 are two worker processes without MPI. Equal digests are equal bytes.
"""

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import cycle, islice
from pathlib import Path

from side_by_side.machine import describe, in_words
from side_by_side.networks import MPIEXEC

from toolkit.data.embedded import embedded
from toolkit.parallel import available_cores

# At its end each process says what it was, and the most memory that it had (VmHWM).
_MEASURED = """
import atexit, os, pathlib, re, sys
from toolkit.cli import main
def say(home=os.getpid()):
    if os.getpid() == home:
        status = pathlib.Path("/proc/self/status").read_text()
        pathlib.Path(sys.argv.pop(), str(home)).write_text(re.search(r"VmHWM:\\s*(\\d+)", status)[1])
atexit.register(say)
sys.exit(main(sys.argv[1:-1]))
"""


def write_lines(path: Path, count: int) -> None:
    """Write so many lines, which are those of the embedded corpus again and again."""
    with (embedded("en_ne") / "train.en").open(encoding="utf-8") as file:
        lines = file.readlines()
    with path.open("w", encoding="utf-8") as file:
        file.writelines(islice(cycle(lines), count))


def translated(path: Path, ranks: int, launcher: Sequence[str], flags: Sequence[str]) -> tuple[str, float, list[int]]:
    """Translate a file -> a digest of what comes out, seconds, and the peak of each process in MB."""
    with tempfile.TemporaryDirectory() as directory:
        output, peaks = Path(directory, "output"), Path(directory, "peaks")
        peaks.mkdir()
        words = [sys.executable, "-c", _MEASURED, "translate", "--file", str(path), "--output", str(output), *flags]
        words += ["--workers", str(max(1, -ranks)), str(peaks)]
        environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
        begin = time.perf_counter()
        command = [*launcher, "-n", str(ranks), *words] if ranks > 0 else words
        subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, check=True)
        seconds = time.perf_counter() - begin
        digest = hashlib.sha256(output.read_bytes()).hexdigest()
        return digest, seconds, sorted(int(each.read_text()) // 1024 for each in peaks.iterdir())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--ranks", type=int, nargs="+", default=(0, 1, 2, 4))
    parser.add_argument("--mpiexec", nargs="+", default=[MPIEXEC], help="the launcher with its flags")
    parser.add_argument("--flags", nargs="*", default=[], help="of toolkit translate, without --: num-beams=4")
    arguments = parser.parse_args()
    flags = [f"--{flag}" for flag in arguments.flags]
    print(f"{in_words(describe(available_cores()), os.getloadavg())}; {arguments.lines:,} lines")
    print("ranks | seconds | lines/s | peak memory of each process, MB | digest")
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory, "lines")
        write_lines(path, arguments.lines)
        for ranks in arguments.ranks:
            digest, seconds, peaks = translated(path, ranks, arguments.mpiexec, flags)
            speed = arguments.lines / seconds
            print(f"{ranks} | {seconds:.1f} | {speed:.0f} | {', '.join(map(str, peaks))} | {digest[:16]}", flush=True)


if __name__ == "__main__":
    main()
