"""nanoGPT's CPU recipe, trained by the toolkit and by PyTorch: full validation loss and wall time, side by side.

    python tests/benchmarks/nanogpt.py input.txt --torch-python ~/torch/bin/python --json nanogpt.json

input.txt is tinyshakespeare, or any other text. Both sides are processes of their own that train the same model on the
same characters (the first 90 % of the text) with the same settings on the same cores, one side after the other, for
every seed; which side is first changes with the seed. The toolkit's side is the recipe as a user runs it. Both predict
every token of the last 10 % but the first, in windows of the context, after the same updates. Seconds count from the
start of a process to the end of its last validation pass: imports, preparation of the data, all validation passes and
all checkpoints but the last are part of them.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from side_by_side.machine import describe, in_words

ROOT = Path(__file__).resolve().parents[2]
SPECIALS = 16  # that the toolkit's tokenizers begin with
VALID_SHARE = 0.1

RECIPE = {
    "layers": 4,
    "num_heads": 4,
    "d_model": 128,
    "d_ff": 512,
    "context": 64,
    "batch": 12,
    "updates": 2000,
    "learning_rate": 1e-3,
    "final_learning_rate": 1e-4,
    "warmup": 100,
    "beta1": 0.9,
    "beta2": 0.99,
    "eps": 1e-8,
    "weight_decay": 0.1,
    "clip": 1.0,
    "dropout": 0.0,
    "validate_every": 250,
}


class Outcome(NamedTuple):
    """What one side made of one seed."""

    side: str
    seed: int
    losses: dict[int, float]  # after each validated update, in nats per token
    seconds: float  # from the start of the process to the last validation
    load: float  # processes that wanted a core in the minute before


class Bench(NamedTuple):
    """What all runs share."""

    text: Path
    recipe: dict[str, Any]
    directory: Path  # scratch
    cores: int
    torch_python: str
    compiled: bool

    def toolkit(self, seed: int) -> tuple[dict[int, float], float]:
        run = self.directory / f"toolkit-{seed}"
        recipe = ROOT / "recipes" / "language_model.py"
        _, seconds = self.start([sys.executable, str(recipe), *self.toolkit_flags(run, seed)], "update ")
        records = [json.loads(line) for line in (run / "log.jsonl").read_text(encoding="utf-8").splitlines()]
        return {record["update"]: record["validation"]["loss"] for record in records if "validation" in record}, seconds

    def toolkit_flags(self, run: Path, seed: int) -> list[str]:
        """Every setting of the recipe, so that none depends on a default; no samples, which the other side has not."""
        recipe = self.recipe
        flags = {"run": run, "preset": "nanogpt-cpu", "text": self.text, "documents": "none", "tokenizer": "character"}
        flags |= {"valid-share": VALID_SHARE, "samples": 0}
        model = {name: recipe[name] for name in ("layers", "num_heads", "d_model", "d_ff")}
        model |= {"max_length": recipe["context"], "activation": "gelu", "norm": "layer", "positions": "learned"}
        model |= {f"{name}_dropout": recipe["dropout"] for name in ("embedding", "attention", "activation", "residual")}
        same = ("updates", "learning_rate", "final_learning_rate", "warmup", "beta1", "beta2", "eps", "weight_decay")
        training = {name: recipe[name] for name in (*same, "clip", "validate_every")}
        training |= {"tokens_per_batch": recipe["batch"] * recipe["context"], "schedule": "cosine"}
        training |= {"label_smoothing": 0.0, "workers": self.cores, "seed": seed}
        flags |= {f"model.{name}": value for name, value in model.items()}
        flags |= {f"training.{name}": value for name, value in training.items()}
        return [word for name, value in flags.items() for word in (f"--{name.replace('_', '-')}", str(value))]

    def torch(self, seed: int) -> tuple[dict[int, float], float]:
        script = Path(__file__).with_name("nanogpt_torch.py")
        command = [self.torch_python, str(script), str(self.directory), "--seed", str(seed)]
        command += ["--threads", str(self.cores), *["--compile"] * self.compiled]
        lines, seconds = self.start(command, '{"update"')
        records = [json.loads(line) for line in lines if line.startswith('{"update"')]
        return {record["update"]: record["loss"] for record in records}, seconds

    def start(self, command: list[str], validated: str) -> tuple[list[str], float]:
        """Run a process to its end -> what it printed, and seconds to the last line that begins with `validated`.

        Ends the benchmark where the process fails.
        """
        environment = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
        lines, seconds, started = [], 0.0, time.perf_counter()
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environment
        ) as process:
            for line in process.stdout:
                lines.append(line)
                if line.startswith(validated):
                    seconds = time.perf_counter() - started
        if process.returncode:
            sys.exit(f"{' '.join(command)}\nended with exit code {process.returncode}:\n{''.join(lines)}")
        return lines, seconds

    def measure(self, side: str, seed: int) -> Outcome:
        load = os.getloadavg()[0]
        outcome = Outcome(side, seed, *getattr(self, side)(seed), load)
        losses = outcome.losses
        last = max(losses)
        print(
            f"seed {seed}  {side:8} loss {losses[last]:.4f} after {last} updates, {outcome.seconds:.1f} s, "
            f"load before {load:.1f}",
            file=sys.stderr,
            flush=True,
        )
        return outcome


def prepare(text: Path, recipe: dict[str, Any], directory: Path) -> dict[str, Any]:
    """Leave what the PyTorch side reads in `directory` -> the recipe with the size of the vocabulary."""
    content = text.read_text(encoding="utf-8")
    characters = sorted(set(content))
    points = np.frombuffer(content.encode("utf-32-le"), np.uint32)
    ids = np.searchsorted(np.array([ord(character) for character in characters]), points) + SPECIALS
    cut = int((1 - VALID_SHARE) * len(ids))
    np.save(directory / "train.npy", ids[:cut].astype(np.int32))
    np.save(directory / "valid.npy", ids[cut:].astype(np.int32))
    recipe = recipe | {"vocab_size": SPECIALS + len(characters)}
    (directory / "recipe.json").write_text(json.dumps(recipe), encoding="utf-8")
    return recipe


def table(outcomes: list[Outcome]) -> list[str]:
    """The curves of the mean loss, then loss and time of every seed, then their means and ratio."""
    sides = {side: [each for each in outcomes if each.side == side] for side in ("toolkit", "torch")}
    lines = [f"{'update':10}{'toolkit':>10}{'torch':>10}{'difference':>12}"]
    for update in sorted(outcomes[0].losses):
        ours, theirs = (statistics.mean(each.losses[update] for each in own) for own in sides.values())
        lines.append(f"{update:<10}{ours:>10.4f}{theirs:>10.4f}{ours - theirs:>+12.4f}")
    lines += ["", f"{'seed':10}{'toolkit':>10}{'torch':>10}{'toolkit s':>12}{'torch s':>10}{'ratio':>8}"]
    figures = []
    for ours, theirs in zip(*sides.values(), strict=True):
        last = max(ours.losses)
        figures.append((ours.losses[last], theirs.losses[last], ours.seconds, theirs.seconds))
        lines.append(_row(str(ours.seed), figures[-1]))
    return [*lines, _row("mean", tuple(map(statistics.mean, zip(*figures, strict=True))))]


def _row(name: str, figures: tuple[float, ...]) -> str:
    loss, torch_loss, seconds, torch_seconds = figures
    times = f"{seconds:>12.1f}{torch_seconds:>10.1f}{seconds / torch_seconds:>8.2f}"
    return f"{name:10}{loss:>10.4f}{torch_loss:>10.4f}{times}"


def machine(torch_python: str, cores: int) -> dict[str, Any]:
    """What runs here, with the PyTorch of the other interpreter."""
    asked = [torch_python, "-c", "import torch; print(torch.__version__)"]
    torch = subprocess.run(asked, capture_output=True, text=True, check=True).stdout.strip()
    found = describe(cores)
    return found | {"versions": found["versions"] | {"toolkit": version("toolkit"), "torch": torch}}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", type=Path, help="a text file in UTF-8, such as tinyshakespeare")
    parser.add_argument("--torch-python", required=True, help="an interpreter that has PyTorch and NumPy")
    parser.add_argument("--compile", action="store_true", help="let PyTorch compile its model")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--cores", type=int, default=2, help="threads of PyTorch, workers of the toolkit")
    parser.add_argument("--updates", type=int, default=RECIPE["updates"])
    parser.add_argument("--validate-every", type=int, default=RECIPE["validate_every"])
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    arguments = parser.parse_args()
    recipe = RECIPE | {"updates": arguments.updates, "validate_every": arguments.validate_every}
    recipe["warmup"] = min(recipe["warmup"], recipe["updates"] // 2)
    found = machine(arguments.torch_python, arguments.cores)
    outcomes = []
    with tempfile.TemporaryDirectory() as directory:
        recipe = prepare(arguments.text, recipe, Path(directory))
        python, text = arguments.torch_python, arguments.text.resolve()
        bench = Bench(text, recipe, Path(directory), arguments.cores, python, arguments.compile)
        for number, seed in enumerate(arguments.seeds):
            sides = ("torch", "toolkit") if number % 2 else ("toolkit", "torch")
            outcomes += [bench.measure(side, seed) for side in sides]
    told = in_words(found, [each.load for each in outcomes])
    print("\n".join([told, f"{recipe}", "", *table(outcomes)]))
    if arguments.json:
        everything = {"machine": found, "recipe": recipe, "outcomes": [each._asdict() for each in outcomes]}
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
