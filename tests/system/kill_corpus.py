"""Does the translation of a corpus end, and go on to the same bytes, whichever of its processes is killed?

    python tests/system/kill_corpus.py --kills 20 --seed 1
    python tests/system/kill_corpus.py --mpiexec "mpiexec --allow-run-as-root --map-by :OVERSUBSCRIBE" --python PYTHON

Translates lines of the embedded corpus by mpiexec, and kills as kill_ranks.py does: all processes must end within ten
seconds and leave neither shared memory nor a launcher's files. Every start has --resume, on another number of ranks; a
piece that the journal has once is never done again, and in the end the file has the bytes of one process that nobody
has killed. Linux only.
"""

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.system.kill_and_resume import ROOT, endure
from tests.system.kill_ranks import COUNTS, RankTorture, report
from toolkit.data.embedded import embedded

_SMALL = "import sys, toolkit.cli as cli, toolkit.commands.lines as lines; lines.WINDOW = 128; sys.exit(cli.main())"


@dataclass
class CorpusTorture(RankTorture):
    """As `RankTorture`, of a translation; what is called a run is its file."""

    model: Path = ROOT / "checkpoints" / "en-ne-small"
    done: list[int] = field(default_factory=list)  # lines in the journal after each kill

    def command(self, run: Path) -> list[str]:
        flags = {"model": self.model, "file": self.directory / "lines", "output": run, "num-beams": 2}
        given = [part for name, value in flags.items() for part in (f"--{name}", str(value))]
        return [sys.executable, "-c", _SMALL, "translate", *given, "--quiet", "--resume"]

    def state(self, run: Path) -> str:
        return f"{self.lines(run)} lines"

    def lines(self, run: Path) -> int:
        """Count the lines that the journal has.  Raises AssertionError where there are fewer than before."""
        journal = run.with_name(f"{run.name}.part.json")
        count = json.loads(journal.read_bytes())["done"]["lines"] if journal.exists() else 0
        assert run.exists() or count >= max(self.done, default=0), f"{count} lines are left of {self.done}"
        self.done.append(count)
        return count

    def wait_for_writing(self, process: subprocess.Popen, run: Path, count: int) -> str:
        """Wait until so many journals have been written, or the work is done -> the name of the last."""
        seen, name = set(), f"{run.name}.part.json"
        while process.poll() is None:
            try:
                seen.add(run.with_name(name).stat().st_mtime_ns)
            except FileNotFoundError:
                continue
            if len(seen) > count:
                return name
            time.sleep(0.0002)
        return ""


def torture(directory: Path, kills: int, seed: int, lines: int, **settings: object) -> CorpusTorture:
    """Kill processes `kills` times and compare each file with that of one process that nobody has killed.

    Raises AssertionError where one differs, or something is left.
    """
    corpus = (embedded("en_ne") / "train.en").read_text(encoding="utf-8").splitlines()
    (directory / "lines").write_text("".join(f"{line}\n" for line in corpus[:lines]), encoding="utf-8")
    # Ranks find each other first, and share the cores.
    return endure(CorpusTorture(directory, random.Random(seed), **settings), kills, end_file, starts=2)


def end_file(done: CorpusTorture, run: Path) -> None:
    """Compare a file with that of one process.  Raises AssertionError where it differs, or something else is left."""
    assert run.read_bytes() == (done.directory / "whole").read_bytes(), f"{run} differs after {done.kills}"
    left = sorted(path.name for path in done.directory.iterdir() if path.name not in ("lines", "stderr", "whole"))
    assert left == [run.name], left
    run.unlink()
    done.done.clear()


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often to kill")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--lines", type=int, default=8000, help="of each file")
    parser.add_argument("--counts", type=int, nargs="+", default=COUNTS, help="of ranks")
    parser.add_argument("--mpiexec", default="mpiexec", help="the launcher with its flags")
    parser.add_argument("--python", default=sys.executable, help="the interpreter that has its mpi4py")
    settings = vars(parser.parse_args(arguments))
    with tempfile.TemporaryDirectory() as directory:
        report(torture(Path(directory), **settings | {"counts": tuple(settings["counts"])}))
    print("every file has the bytes of one process that nobody has killed")


if __name__ == "__main__":
    main()
