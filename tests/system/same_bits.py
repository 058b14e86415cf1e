"""Does a training run give the same bits on any number of ranks, of machines, and by any MPI?

    python tests/system/same_bits.py --openmpi "mpiexec --allow-run-as-root --map-by :OVERSUBSCRIBE"

Trains small models by every recipe, each in many ways: in one process, by several, on 1 to 16 ranks, on two pretended
hosts, by another MPI, and resumed on another number of ranks than it was stopped on. Every file of a run is compared
with those of the run in one process; what says when it was made is left out. Prints a table, and exits with code 1
where something differs.

    python tests/system/same_bits.py --recipes translation dpo --ways "2 ranks" "1 process, then 4 ranks"
    python tests/system/same_bits.py --recipes full --updates 5000 --ways "1 rank" "2 ranks" "4 ranks"
"""

import argparse
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from tests.system.kill_and_resume import differences
from toolkit.data.embedded import CORPORA, embedded
from toolkit.display import aligned

ROOT = Path(__file__).resolve().parents[2]
SHARDS = 16
WIDTH = {"model.d-model": 64, "model.num-heads": 2, "model.d-ff": 128}
UPDATES = {"training.updates": 60, "training.validate-every": 30, "training.warmup": 10}
LANGUAGE = {**WIDTH, **UPDATES, "model.layers": 2, "model.residual-dropout": 0.1, "training.tokens-per-batch": 512}
PREFERENCE = {**UPDATES, "training.tokens-per-batch": 1024, "preferences": "preferences.jsonl", "samples": 2}
PREFERENCE |= {"valid-preferences": "valid.jsonl"}
TRANSLATION = {
    **WIDTH,
    **UPDATES,
    "source": "train.en",
    "target": "train.ne",
    "valid-lines": 50,
    "model.vocab-size": 600,
    "model.encoder-layers": 1,
    "model.decoder-layers": 2,
    "model.residual-dropout": 0.1,
    "training.tokens-per-batch": 400,
    "training.accumulation": 2,
    "training.ema": 0.9,
    "training.subword-alpha": 0.2,
}
PPO = {"training.updates": 64, "training.validate-every": 32, "ppo.prompts": 40, "ppo.max-new-tokens": 16}
# The recipe of a row of the table, with its flags; {chat} and {reward} are the runs of rows before it.
RECIPES: dict[str, tuple[str, dict]] = {
    "translation": ("translation", TRANSLATION),
    "translation, Muon": ("translation", {**TRANSLATION, "training.optimizer": "muon", "training.ema": 0}),
    "language model": ("language-model", {**LANGUAGE, "text": "story.txt", "model.vocab-size": 400}),
    "chat": ("chat", {**LANGUAGE, "conversations": "talk.jsonl", "model.vocab-size": 600}),
    "dpo": ("preference", {**PREFERENCE, "method": "dpo", "start": "{chat}"}),
    "reward": ("preference", {**PREFERENCE, "method": "reward", "start": "chat"}),
    "ppo": ("preference", {**PREFERENCE, **PPO, "method": "ppo", "start": "chat", "reward": "{reward}"}),
    "autoencoder": ("autoencoder", {**WIDTH, **UPDATES, "sentences": 300, "training.tokens-per-batch": 512}),
    "residual-swish": ("residual-swish", {**UPDATES, "sequences": 300, "training.tokens-per-batch": 512}),
    # The recipe's own shapes and corpus, which take long: it runs only when it is asked for.
    "full": ("translation", UPDATES),
}


class Stage(NamedTuple):
    """A start of a run: on how many ranks (0: without MPI), or by how many processes."""

    ranks: int = 0
    hosts: str = ""
    openmpi: bool = False
    workers: int = 1
    shards: int | str = SHARDS


REFERENCE = "1 process"
# Of several stages, all but the last are stopped in the middle by a SIGTERM.
WAYS: dict[str, tuple[Stage, ...]] = {
    REFERENCE: (Stage(),),
    **{f"{count} processes": (Stage(workers=count),) for count in (2, 3)},
    **{f"{count} rank{'s' * (count > 1)}": (Stage(count),) for count in (1, 2, 3, 4, 8, 16)},
    "2 hosts, 2 + 2 ranks": (Stage(4, "a:2,b:2"),),
    "2 hosts, 2 + 1 ranks": (Stage(3, "a:2,b:1"),),
    "3 hosts, 1 rank each": (Stage(3, "a,b,c"),),
    **{f"Open MPI, {count} rank{'s' * (count > 1)}": (Stage(count, openmpi=True),) for count in (1, 2, 4)},
    "8 ranks, then 2": (Stage(8), Stage(2)),
    "2 ranks, then 1 process": (Stage(2), Stage(workers=1)),
    "1 process, then 4 ranks": (Stage(workers=1), Stage(4)),
    "3 ranks, then 2 processes": (Stage(3), Stage(workers=2)),
}
# Without a fixed number of shards: ranks are to give what as many processes give.
FREE: dict[str, tuple[Stage, ...]] = {
    "2 processes, free": (Stage(workers=2, shards="ranks"),),
    "2 ranks, free": (Stage(2, shards="ranks"),),
    "3 processes, free": (Stage(workers=3, shards="ranks"),),
    "3 ranks, free": (Stage(3, shards="ranks"),),
}


class Matrix:
    """A directory with small corpora and the runs, and how each was started."""

    def __init__(self, directory: Path, mpiexec: str, openmpi: str, updates: int):
        self.directory, self.mpiexec, self.openmpi = directory, shlex.split(mpiexec), shlex.split(openmpi)
        self.updates = {"training.updates": updates, "training.validate-every": updates // 2} if updates else {}
        cut_corpora(directory)

    def run(self, row: str, way: str, stages: tuple[Stage, ...]) -> Path:
        """Train a row of the table in one way -> the run.  Raises AssertionError where a process fails."""
        run = self.directory / row / way
        shutil.rmtree(run, ignore_errors=True)
        for number, stage in enumerate(stages):
            self.start(row, run, stage, resume=number > 0, stop=number < len(stages) - 1)
        return run

    def start(self, row: str, run: Path, stage: Stage, resume: bool, stop: bool) -> None:
        kind, given = RECIPES[row]
        places = {name: str(self.directory / name / REFERENCE) for name in ("chat", "reward")}
        flags = {**given, **self.updates, "run": str(run), "training.shards": stage.shards}
        if not stage.ranks:
            flags["training.workers"] = stage.workers
        words = [
            f"--{name}={str(value).format(**places)}" if value != "" else f"--{name}" for name, value in flags.items()
        ]
        words = [word for word in words if word not in ("--start", "--reward")]
        command = [*self.launcher(stage), "-m", "toolkit", "train", kind, *words, *(["--resume"] * resume)]
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        environment |= {"PYTHONPATH": str(ROOT)}
        with (self.directory / "told").open("wb+") as told:
            streams = {"stdin": subprocess.DEVNULL, "stdout": told, "stderr": subprocess.STDOUT}
            process = subprocess.Popen(command, cwd=self.directory, env=environment, **streams)
            try:
                if stop:
                    wait_for_update(run, process)
                    process.send_signal(signal.SIGTERM)
                code = process.wait()
            finally:
                process.kill()
            told.seek(0)
            text = told.read().decode("utf-8", "replace")
        if bool(code) is not stop or (stop and "--resume" not in text):
            raise AssertionError(f"{row}, {run.name}: exit code {code}: {shlex.join(command)}\n{text}")

    def launcher(self, stage: Stage) -> list[str]:
        """Return the words before those of the interpreter, and the interpreter: the one beside mpiexec, if any."""
        if not stage.ranks:
            return [sys.executable]
        words = self.openmpi if stage.openmpi else self.mpiexec
        program = shutil.which(words[0]) or words[0]
        hosts = ["-launcher", "fork", "-hosts", stage.hosts] if stage.hosts else []
        beside = Path(program).parent / "python"
        python = str(beside) if beside.exists() else sys.executable
        return [program, *words[1:], *hosts, "-n", str(stage.ranks), python]


def cut_corpora(directory: Path) -> None:
    """Write small parts of the embedded corpora."""
    pairs, stories = embedded("en_ne"), embedded("stories")
    for language in ("en", "ne"):
        (directory / f"train.{language}").write_text(every(pairs / f"train.{language}", 700), "utf-8")
    (directory / "story.txt").write_text(every(stories / "train.en.txt", 1500, together=30), "utf-8")
    embedded("chat")
    parts = {"talk.jsonl": ("train-1.jsonl", 400), "preferences.jsonl": ("preferences.train.jsonl", 250)}
    for name, (source, count) in {**parts, "valid.jsonl": ("preferences.test.jsonl", 40)}.items():
        (directory / name).write_text(every(CORPORA / "chat" / source, count), "utf-8")


def every(path: Path, count: int, together: int = 1) -> str:
    """Take so many lines of a file, evenly, some together."""
    lines = path.read_text("utf-8").splitlines(keepends=True)
    step = max(1, len(lines) * together // count)
    return "".join(line for begin in range(0, len(lines), step) for line in lines[begin : begin + together])


def wait_for_update(run: Path, process: subprocess.Popen) -> None:
    """Wait until a run has written a line about its updates."""
    log = run / "log.jsonl"
    while process.poll() is None and not (log.exists() and '"learning_rate"' in log.read_text("utf-8")):
        time.sleep(0.005)


def compare(one: Path, other: Path) -> str:
    """Name what differs, the parameters first; empty where nothing does."""
    # Checksums are of a file with times too; and free runs are on ranks, or by processes.
    without = {"data/checksums.json", *(["settings.json"] if "free" in one.name else [])}
    found = set(differences(one, other)) - without
    return ", ".join(sorted(found, key=lambda name: (not name.endswith("model.safetensors"), name))[:3])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--recipes", nargs="+", choices=RECIPES, default=[name for name in RECIPES if name != "full"])
    parser.add_argument("--ways", nargs="+", choices=[*WAYS, *FREE], default=[*WAYS, *FREE])
    parser.add_argument("--mpiexec", default=str(Path(sys.executable).parent / "mpiexec"), help="MPICH's, with words")
    parser.add_argument(
        "--openmpi", default="", help="Open MPI's mpiexec, with words; an interpreter may lie beside it"
    )
    parser.add_argument("--directory", type=Path, help="keep the runs here")
    parser.add_argument("--updates", type=int, default=0, help="of each run, in place of about 60")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # what it has started ends with it
    ways = {name: stages for name, stages in {**WAYS, **FREE}.items() if name in arguments.ways}
    if not arguments.openmpi:
        ways = {name: stages for name, stages in ways.items() if not stages[0].openmpi}
    with tempfile.TemporaryDirectory() as temporary:
        matrix = Matrix(
            (arguments.directory or Path(temporary)).resolve(), arguments.mpiexec, arguments.openmpi, arguments.updates
        )
        results = {row: row_of(matrix, row, ways) for row in arguments.recipes}
    names = list(next(iter(results.values())))
    print(*aligned([["", *results], *([name, *(results[row][name] for row in results)] for name in names)]), sep="\n")
    return int(any("≠" in cell for cells in results.values() for cell in cells.values()))


def row_of(matrix: Matrix, row: str, ways: dict[str, tuple[Stage, ...]]) -> dict[str, str]:
    """Train a recipe in all ways -> for each "=", or what differs from its reference."""
    cells, references = {}, {REFERENCE: matrix.run(row, REFERENCE, WAYS[REFERENCE])}
    for way, stages in ways.items():
        begun = time.monotonic()
        reference = REFERENCE if way in WAYS else way.replace("ranks", "processes")
        if reference not in references:
            references[reference] = matrix.run(row, reference, FREE[reference])
        try:
            run = references[way] if way in references else matrix.run(row, way, stages)
            different = compare(references[reference], run)
        except AssertionError as error:
            different = "failed"
            print(error, file=sys.stderr)
        cells[way] = f"≠ {different}" if different else "="
        print(f"{row}, {way}: {cells[way]} ({time.monotonic() - begun:.0f} s)", file=sys.stderr, flush=True)
        if not different and way not in references:
            shutil.rmtree(run)
    return cells


if __name__ == "__main__":
    sys.exit(main())
