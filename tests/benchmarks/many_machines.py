"""Training on ranks of MPI: what the fixed tree of shards costs, and what ranks cost beside worker processes.

    python tests/benchmarks/many_machines.py --pairs train.en train.ne --shards 2 4 8 16

Every side makes the same updates in turn, as in compare.py.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side.machine import describe, in_words
from side_by_side.rounds import figures, interleave
from side_by_side.side import Side
from side_by_side.workloads import TRAINING, Workload, read_pairs, write_workload

MPIEXEC = str(Path(sys.executable).parent / "mpiexec")
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}


def sides_of(shards: Sequence[int]) -> dict[str, tuple[str, Sequence[str], dict[str, Any]]]:
    """Name the sides, each with its class, its launcher and arguments."""
    ranks = [MPIEXEC, "-n", "2"]
    sides = {
        "2 workers": ("ToolkitTraining", (), {"threads": 2}),
        "2 ranks": ("ToolkitTraining", ranks, {"threads": 2}),
    }
    for number in shards:
        sides[f"2 ranks, {number} shards"] = ("ToolkitTraining", ranks, {"threads": 2, "shards": number})
    return sides


def measure(
    workload: Workload, pairs: Sequence[tuple[str, str]], shards: Sequence[int], repeats: int
) -> dict[str, Any]:
    """Return tokens per second of every side."""
    with tempfile.TemporaryDirectory() as directory:
        found = {"row": workload.name, "title": workload.title} | write_workload(workload, pairs, Path(directory))
        sides = {}
        try:
            for name, (kind, launcher, arguments) in sides_of(shards).items():
                sides[name] = Side("toolkit_training", kind, _ONE_THREAD, launcher)
                sides[name].start(directory=directory, **arguments)
                sides[name].call("run", first=0, steps=workload.steps)
            rounds, idle = interleave(sides, partial(_run, workload), repeats)
        finally:
            for side in sides.values():
                side.close()
    return found | {"idle": idle} | figures(rounds)


def _run(workload: Workload, side: Side, number: int) -> Mapping[str, float]:
    return side.call("run", first=number * workload.steps, steps=workload.steps)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=Path, nargs=2, metavar=("SOURCE", "TARGET"), help="aligned lines to train on")
    parser.add_argument("--shards", type=int, nargs="*", default=[2, 4, 8, 16])
    parser.add_argument("--only", default="")
    parser.add_argument("--repeats", type=int, default=8)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    pairs = read_pairs(arguments.pairs) if arguments.pairs else []
    rows = []
    for row in TRAINING:
        if arguments.only in row.name and (pairs or not row.smoothing):
            rows.append(measure(row, pairs, arguments.shards, arguments.repeats))
            base = rows[-1]["medians"]["2 workers"]
            print(
                row.name,
                {name: f"{value:,.0f} ({value / base:.2f})" for name, value in rows[-1]["medians"].items()},
                rows[-1]["idle"],
                flush=True,
            )
    print(in_words(describe(2), [0.0]))
    if arguments.json:
        arguments.json.write_text(json.dumps(rows, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
