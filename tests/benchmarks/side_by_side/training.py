"""The rows of training: every side makes the same updates in turn."""

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from .rounds import figures, interleave
from .side import Side
from .workloads import Workload, write_workload

SIDES = {
    "toolkit": ("toolkit_training", "ToolkitTraining"),
    "torch eager": ("torch_training", "TorchEager"),
    "torch compiled": ("torch_training", "TorchCompiled"),
    "products": ("toolkit_training", "Products"),
}


def measure(
    workload: Workload, pairs: Sequence[tuple[str, str]], threads: int, repeats: int, skip: Sequence[str] = ()
) -> dict[str, Any]:
    """Tokens per second, peak memory and first loss of every side that is not skipped, with all that was measured.

    Ends the benchmark where the first losses differ by more than 1e-4 of them.
    """
    with tempfile.TemporaryDirectory() as directory:
        found = {"row": workload.name, "title": workload.title} | write_workload(workload, pairs, Path(directory))
        names = [name for name in SIDES if not set(skip) & set(name.split())]
        environment = {"TORCHINDUCTOR_COMPILE_THREADS": "1"}  # which leaves no helper processes behind
        sides = {name: Side(*SIDES[name], environment) for name in names}
        try:
            for side in sides.values():
                side.start(directory=directory, threads=threads)
            first = {name: side.call("check") for name, side in sides.items() if name != "products"}
            _compare(workload, first)
            memory = {name: _warm(side, workload) for name, side in sides.items()}
            rounds, idle = interleave(sides, lambda side, number: _run(side, number, workload), repeats)
        finally:
            for side in sides.values():
                side.close()
    found |= {"first_loss": {name: each["loss"] for name, each in first.items()}, "idle": idle}
    found |= {"memory": {name: size for name, size in memory.items() if name != "products"}}
    return found | figures(rounds)


def _compare(workload: Workload, first: dict[str, dict[str, float]]) -> None:
    """All sides begin with the same weights and compute the same function, or there is nothing to compare."""
    for quantity, tolerance in (("loss", 1e-4), ("gradient_norm", 1e-3)):
        values = [each[quantity] for each in first.values()]
        if not all(math.isclose(value, values[0], rel_tol=tolerance) for value in values):
            sys.exit(f"{workload.name}: the sides disagree on the {quantity} of the first update: {first}")


def _warm(side: Side, workload: Workload) -> int:
    """Updates that are not timed -> the most memory above the imports seen in the later ones, in bytes."""
    side.call("run", first=0, steps=2)  # what a compiler needs for itself is over then
    return side.peak_memory("run", first=2, steps=2 * workload.steps)


def _run(side: Side, number: int, workload: Workload) -> dict[str, float]:
    return side.call("run", first=number * workload.steps, steps=workload.steps)
