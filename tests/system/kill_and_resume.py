"""Does a run that is killed again and again end in the bits of one that is left alone?

    python tests/system/kill_and_resume.py --kills 20 --seed 1

Trains a tiny translator with the recipe, kills all its processes (kill -9) at random moments, half of them while it is
writing, resumes it with --resume until it has finished, and compares every file with those of an uninterrupted run.
Runs that finish early are followed by others, until there have been as many kills as asked for.
"""

import argparse
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from toolkit.data.embedded import embedded

ROOT = Path(__file__).resolve().parents[2]
RECIPE = ROOT / "recipes" / "translation.py"
LINES = {"train": 240, "valid": 16}

MODEL = {
    "vocab-size": 400,
    "d_model": 16,
    "num_heads": 2,
    "d-ff": 32,
    "encoder-layers": 1,
    "decoder-layers": 1,
    "embedding-dropout": 0.1,
}
TRAINING = {
    "tokens-per-batch": 300,
    "validate-every": 5,
    "keep": 2,
    "ema": 0.9,
    "subword-alpha": 0.1,
    "best-by": "loss",
    "workers": 2,
}


UNLIKE = ("seconds", "tokens_per_second", "command")  # what says when or how something was made


@dataclass
class Torture:
    """A directory with a small corpus in it, and what has been done to the runs there."""

    directory: Path
    random: random.Random
    updates: int = 60
    recipe: Path = RECIPE
    training: dict = field(default_factory=lambda: TRAINING)
    kills: list[str] = field(default_factory=list)  # where each found its run
    seconds: float = 0.0  # that an uninterrupted run takes

    def command(self, run: Path) -> list[str]:
        """The recipe with its flags."""
        corpus = {"source": "train.en", "target": "train.ne", "valid-source": "valid.en", "valid-target": "valid.ne"}
        flags = {name: self.directory / file for name, file in corpus.items()}
        flags |= {f"model.{name}": value for name, value in MODEL.items()}
        flags |= {f"training.{name}": value for name, value in {**self.training, "updates": self.updates}.items()}
        given = [part for name, value in flags.items() for part in (f"--{name}", str(value))]
        return [sys.executable, str(self.recipe), "--run", str(run), "--quiet", *given]

    def start(self, run: Path) -> subprocess.Popen:
        """A process of the recipe, with --resume as soon as there is something that could be resumed."""
        environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        with (self.directory / "stderr").open("wb") as told:
            return subprocess.Popen(
                self.command(run) + ["--resume"] * run.exists(),
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=told,
                start_new_session=True,  # with its workers, a group of its own
            )

    def finish(self, run: Path) -> None:
        """Let a run come to its end."""
        self.check(self.start(run).wait())

    def check(self, code: int) -> None:
        if code:
            told = (self.directory / "stderr").read_text(encoding="utf-8", errors="replace")
            raise AssertionError(f"it ended with exit code {code} after {self.kills}:\n{told}")

    def kill_once(self, run: Path) -> bool:
        """Start or resume a run and kill it; False where it finished first."""
        process = self.start(run)
        if self.random.random() < 0.5:
            found = self.wait_for_writing(process, run, self.random.randint(1, 12))
            time.sleep(self.random.uniform(0, 0.004))
        else:
            found = ""
            deadline = time.monotonic() + self.random.uniform(0, self.seconds)
            while time.monotonic() < deadline and process.poll() is None:
                time.sleep(0.002)
        if process.poll() is not None:
            self.check(process.returncode)
            return False
        where = f"while {found} was there" if found else f"with {self.state(run)}"
        self.kills.append(f"{self.kill(process)} {where}")
        return True

    def kill(self, process: subprocess.Popen) -> str:
        """Kill all processes of the run -> what was killed."""
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return "all"

    def state(self, run: Path) -> str:
        """How far a run has come, for the report."""
        try:
            return (run / "last").read_text().strip()
        except OSError:
            return "no checkpoint" if run.exists() else "nothing"

    def wait_for_writing(self, process: subprocess.Popen, run: Path, count: int) -> str:
        """Wait until temporary names have appeared so many times in the run, or it has finished -> the last name."""
        seen: set[str] = set()
        while process.poll() is None:
            for name in temporary_names(run):
                seen.add(name)
                if len(seen) >= count:
                    return name
            time.sleep(0.0002)
        return ""


def temporary_names(run: Path) -> Iterator[str]:
    try:
        yield from (name for name in os.listdir(run) if name.startswith(".toolkit-"))  # noqa: PTH208  (speed)
    except FileNotFoundError:
        return


def cut_corpus(directory: Path) -> None:
    """Short training and validation files, from the embedded corpus."""
    for name, count in LINES.items():
        for language in ("en", "ne"):
            lines = (embedded("en_ne") / f"{name}.{language}").read_text(encoding="utf-8").splitlines()
            text = "".join(f"{line}\n" for line in lines[:: len(lines) // count][:count])
            (directory / f"{name}.{language}").write_text(text, encoding="utf-8")


def contents(run: Path) -> dict[str, object]:
    """Every file of a run, without what says when or how it was made."""
    return {str(path.relative_to(run)): _content(path) for path in sorted(run.rglob("*")) if path.is_file()}


def _content(path: Path) -> object:
    if path.name == "log.jsonl":
        return [_timeless(json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    if path.name in ("state.json", "metrics.json", "corpus.json"):
        return _timeless(json.loads(path.read_text(encoding="utf-8")))
    return path.read_bytes()


def _timeless(value: object) -> object:
    if not isinstance(value, dict):
        return value
    return {name: _timeless(inner) for name, inner in value.items() if name not in UNLIKE}


def differences(one: Path, other: Path) -> list[str]:
    """The names of files that are not alike in two runs, or missing from one of them."""
    left, right = contents(one), contents(other)
    return sorted(name for name in left.keys() | right.keys() if left.get(name) != right.get(name))


def torture(directory: Path, kills: int, seed: int, updates: int = 60, recipe: Path = RECIPE) -> Torture:
    """Kill runs `kills` times and compare each with an uninterrupted one.  Raises AssertionError where one differs."""
    cut_corpus(directory)
    return endure(Torture(directory, random.Random(seed), updates, recipe), kills, end_run)


def endure(done: Torture, kills: int, end: Callable[[Torture, Path], None], starts: int = 1) -> Torture:
    """Kill runs so many times, and let each end.

    end: compares a run with the uninterrupted one, and removes it. starts: so many times as long as that one a start
    may take.
    """
    begin = time.monotonic()
    done.finish(done.directory / "whole")
    done.seconds = starts * (time.monotonic() - begin)
    number = 0
    while len(done.kills) < kills:
        number += 1
        run = done.directory / f"killed-{number}"
        while len(done.kills) < kills and done.kill_once(run):
            print(f"kill {len(done.kills)} of {kills}: {done.kills[-1]}", file=sys.stderr, flush=True)
        done.finish(run)
        end(done, run)
        print(f"{run.name} ended in the same bits", file=sys.stderr, flush=True)
    return done


def end_run(done: Torture, run: Path) -> None:
    """Compare a run with the uninterrupted one.  Raises AssertionError where it differs."""
    if differing := differences(done.directory / "whole", run):
        raise AssertionError(f"{run} differs in {', '.join(differing)} after {done.kills}")
    shutil.rmtree(run)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=20, help="how often to kill")
    parser.add_argument("--seed", type=int, default=1, help="of the moments")
    parser.add_argument("--updates", type=int, default=60, help="of each run")
    parser.add_argument("--recipe", type=Path, default=RECIPE, help="the script to run")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        done = torture(Path(directory), arguments.kills, arguments.seed, arguments.updates, arguments.recipe)
    print(f"{len(done.kills)} kills, and every run ended in the bits of an uninterrupted one")


if __name__ == "__main__":
    main()
