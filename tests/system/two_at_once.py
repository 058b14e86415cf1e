"""Two processes that want the same run, or the same name for a result: does one win, and does the other say so?

    python -m tests.system.two_at_once --pairs 30 --seed 1

Starts pairs of processes, the second at a random moment, often the same: starts of a run, starts and --resume,
--resume after kill -9, exports, imports, averages, and a recipe's --export beside `toolkit export`. Of each pair one
must come to its end, and whoever does not must say so in one sentence; what is there afterwards must be whole, byte for
byte what one process alone makes, and nothing beside it.
"""

import argparse
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tests.system.kill_and_resume import Torture, cut_corpus, differences

TOOLKIT = [sys.executable, "-m", "toolkit"]
# What the verbs make, of what, and the flag before its name.
VERBS = {
    "exported": ("export", "best"),
    "imported": ("import", "exported"),
    "mean": ("average", "whole", "--output"),
}
BUSY, MEANWHILE = "is being trained by another process", "has come to be in the meantime"
THERE, NOTHING = "already exists", "is not a run: there is no such directory"


class Outcome(NamedTuple):
    """How a process has ended, and what it has told."""

    code: int
    told: str

    @property
    def won(self) -> bool:
        return self.code == 0


@dataclass
class Pairs:
    """A directory with a small corpus, a run, and what becomes of it elsewhere, to compare with."""

    directory: Path
    random: random.Random
    torture: Torture
    seconds: float = 0.0  # that a run takes
    told: Counter = field(default_factory=Counter)  # so many pairs of each kind have ended so

    @classmethod
    def prepare(cls, directory: Path, seed: int, updates: int) -> "Pairs":
        cut_corpus(directory)
        self = cls(directory, random.Random(seed), Torture(directory, random.Random(seed), updates))
        started = time.monotonic()
        self.alone(*self.torture.command(directory / "whole"), "--export", directory / "best")
        self.seconds = time.monotonic() - started
        return self

    def process(self, *words: object) -> subprocess.Popen:
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        return subprocess.Popen(
            [str(word) for word in words],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def alone(self, *words: object) -> None:
        process = self.process(*words)
        _, told = process.communicate()
        assert process.returncode == 0, told

    def race(self, one: Sequence[object], other: Sequence[object], seconds: float) -> list[Outcome]:
        """Both commands, the second within so many seconds after the first, half the time almost at once."""
        first = self.process(*one)
        time.sleep(self.random.choice([0.01, seconds]) * self.random.random())
        processes = [first, self.process(*other)]
        told = [process.communicate()[1] for process in processes]
        return [Outcome(process.returncode, text) for process, text in zip(processes, told, strict=True)]

    def check(self, outcomes: list[Outcome], *reasons: str) -> None:
        """Somebody came to an end, and whoever did not has said why, in one sentence."""
        assert any(outcome.won for outcome in outcomes), outcomes
        for outcome in outcomes:
            if not outcome.won:
                assert outcome.code == 2, outcomes
                assert outcome.told.count("\n") == 1, outcomes
                assert outcome.told.startswith("toolkit: "), outcomes
                assert any(reason in outcome.told for reason in reasons), outcomes

    def check_one_won(self, outcomes: list[Outcome], *reasons: str) -> None:
        self.check(outcomes, *reasons)
        assert sum(outcome.won for outcome in outcomes) == 1, outcomes

    def made(self, name: str) -> Path:
        """What one process alone makes."""
        path = self.directory / name
        if not path.exists():
            self.alone(*TOOLKIT, *self.words(VERBS[name], path))
        return path

    def words(self, command: Sequence[str], output: Path) -> list[object]:
        """The words of a verb: what it reads by its path, and what it writes."""
        verb, source, *flag = command
        return [verb, self.made(source), *flag, output]

    def same(self, name: str, path: Path) -> None:
        differing = differences(self.made(name), path)
        assert not differing, f"{path} differs in {differing}"

    def two_starts(self, home: Path) -> list[Outcome]:
        command = self.torture.command(home / "run")
        outcomes = self.race(command, command, self.seconds)
        self.check_one_won(outcomes, BUSY, THERE)
        self.same("whole", home / "run")
        return outcomes

    def a_start_and_a_resume(self, home: Path) -> list[Outcome]:
        command = self.torture.command(home / "run")
        outcomes = self.race(command, [*command, "--resume"], self.seconds)
        self.check(outcomes, BUSY, THERE, NOTHING)
        self.same("whole", home / "run")
        return outcomes

    def two_resumes_after_a_kill(self, home: Path) -> list[Outcome]:
        command = self.torture.command(home / "run")
        process = self.process(*command)
        while not (home / "run").exists():
            time.sleep(0.001)
        time.sleep(self.random.random() * self.seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.communicate()
        outcomes = self.race([*command, "--resume"], [*command, "--resume"], self.seconds)
        self.check(outcomes, BUSY)
        self.same("whole", home / "run")
        return outcomes

    def two_results(self, home: Path, name: str) -> list[Outcome]:
        """Two that make the same directory `out`: whatever has become of it is like `name`."""
        command = [*TOOLKIT, *self.words(VERBS[name], home / "out")]
        outcomes = self.race(command, command, 0.5)
        self.check_one_won(outcomes, THERE, MEANWHILE)
        for path in home.iterdir():
            self.same(name, path)
        kept = sum(MEANWHILE in outcome.told for outcome in outcomes)
        assert len(list(home.iterdir())) == 1 + kept, outcomes
        return outcomes

    def two_exports(self, home: Path) -> list[Outcome]:
        return self.two_results(home, "exported")

    def two_imports(self, home: Path) -> list[Outcome]:
        return self.two_results(home, "imported")

    def two_averages(self, home: Path) -> list[Outcome]:
        return self.two_results(home, "mean")

    def a_recipe_and_an_export(self, home: Path) -> list[Outcome]:
        """Each result is whole wherever it lies; the run is, where it was not refused before it began."""
        train = [*self.torture.command(home / "run"), "--export", home / "out"]
        export = [*TOOLKIT, *self.words(VERBS["exported"], home / "out")]
        outcomes = self.race(train, export, self.seconds)
        self.check_one_won(outcomes, THERE, MEANWHILE)
        names = ["best", "exported"] if outcomes[0].won else ["exported", "best"]
        for name, path in zip(names, (home / "out", home / "out-2"), strict=True):
            if path.exists():
                self.same(name, path)
        assert (home / "out-2").exists() == any(MEANWHILE in outcome.told for outcome in outcomes)
        if (home / "run").exists():
            self.same("whole", home / "run")
        return outcomes


KINDS: tuple[Callable[[Pairs, Path], list[Outcome]], ...] = (
    Pairs.two_starts,
    Pairs.a_start_and_a_resume,
    Pairs.two_resumes_after_a_kill,
    Pairs.a_recipe_and_an_export,
    Pairs.two_exports,
    Pairs.two_imports,
    Pairs.two_averages,
)


def run_pairs(directory: Path, count: int, seed: int, updates: int, kinds: Sequence[Callable] = KINDS) -> Pairs:
    """Race so many pairs, kind after kind.  Raises AssertionError where one ends otherwise than it should."""
    pairs = Pairs.prepare(directory, seed, updates)
    for number in range(count):
        kind = kinds[number % len(kinds)]
        home = directory / f"pair-{number}"
        home.mkdir()
        outcomes = kind(pairs, home)
        left = [str(path) for path in home.rglob(".toolkit-*")]
        assert not left, left
        shutil.rmtree(home)
        ends = " and ".join(_end(outcome) for outcome in outcomes)
        pairs.told[f"{kind.__name__.replace('_', ' ')}: {ends}"] += 1
        print(f"pair {number + 1} of {count}: {kind.__name__.replace('_', ' ')}: {ends}", file=sys.stderr, flush=True)
    return pairs


def _end(outcome: Outcome) -> str:
    return "done" if outcome.won else next(each for each in (BUSY, MEANWHILE, THERE, NOTHING) if each in outcome.told)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=30, help="how many")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--updates", type=int, default=600, help="of each run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        pairs = run_pairs(Path(directory), arguments.pairs, arguments.seed, arguments.updates)
    for told, count in sorted(pairs.told.items()):
        print(f"{count:3} {told}")
    print(f"{arguments.pairs} pairs: one won, the other said so, and nothing was lost")


if __name__ == "__main__":
    main()
