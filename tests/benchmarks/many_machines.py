"""Training on ranks of MPI: what it costs here, and what is to be expected of many machines.

    python tests/benchmarks/many_machines.py --predict --json costs.json --picture many_machines
    python tests/benchmarks/many_machines.py --network train-gpt-words          # pretended machines, simulated links
    python tests/benchmarks/many_machines.py --shards 2 4 8 16 --pytorch --pairs train.en train.ne

--predict measures the arithmetic of one machine and computes the rest (see side_by_side/prediction.py); --network
compares that with ranks on two cores whose messages are held back; --shards compares ranks with worker processes, at
several numbers of shards, and with PyTorch's DistributedDataParallel. Sides take turns, as in compare.py.
"""

import argparse
import json
import math
import os
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from side_by_side.machine import describe, in_words
from side_by_side.networks import LAYOUTS, MPIEXEC, ONE_THREAD, measure_networks, network_table
from side_by_side.prediction import Cost, Network
from side_by_side.predictions import MEASURED, RANKS, batch_table, batches, predict, prediction_table
from side_by_side.rounds import figures, interleave, ratio
from side_by_side.side import Side
from side_by_side.workloads import TRAINING, Workload, read_pairs, write_workload


def sides_of(shards: Sequence[int], pytorch: bool) -> dict[str, tuple[str, str, Sequence[str], dict[str, Any]]]:
    """Name the sides, each with its module, its class, its launcher and arguments."""
    ours, ranks = ("toolkit_training", "ToolkitTraining"), [MPIEXEC, "-n", "2"]
    sides = {"2 workers": (*ours, (), {"threads": 2}), "2 ranks": (*ours, ranks, {"threads": 2})}
    for number in shards:
        sides[f"{number} shards"] = (*ours, ranks, {"threads": 2, "shards": number})
    if pytorch:
        sides["PyTorch DDP"] = ("torch_parallel", "TorchParallel", (), {"threads": 2})
    return sides


def measure(
    workload: Workload, pairs: Sequence[tuple[str, str]], shards: Sequence[int], pytorch: bool, repeats: int
) -> dict[str, Any]:
    """Return tokens per second of every side."""
    with tempfile.TemporaryDirectory() as directory:
        found = {"row": workload.name, "title": workload.title} | write_workload(workload, pairs, Path(directory))
        sides = {}
        try:
            for name, (module, kind, launcher, arguments) in sides_of(shards, pytorch).items():
                sides[name] = Side(module, kind, ONE_THREAD, launcher)
                sides[name].start(directory=directory, **arguments)
                sides[name].call("run", first=0, steps=2)
            rounds, idle = interleave(sides, partial(_run, workload), repeats)
        finally:
            for side in sides.values():
                side.close()
    return found | {"idle": idle} | figures(rounds)


def _run(workload: Workload, side: Side, number: int) -> Mapping[str, float]:
    return side.call("run", first=number * workload.steps, steps=workload.steps)


def ranks_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Markdown: tokens a second of two workers, and of the others how many times that."""
    names = list(rows[0]["medians"])
    lines = ["", f"| training | {' | '.join(names)} |", f"| --- |{' --- |' * len(names)}"]
    for row in rows:
        cells = [f"{row['medians'][names[0]]:,.0f} tokens/s"]
        for name in names[1:]:
            found = ratio(row, name, names[0])
            low, high = found["range"]
            cells.append(f"{found['ratio']:.2f} ({low:.2f} to {high:.2f})")
        lines.append(f"| {row['title']} | {' | '.join(cells)} |")
    return lines


def predicted(costs: Path | None, link: Sequence[float] | None) -> dict[str, Any]:
    """Return the costs, measured here or by an earlier run, and what follows from them for the usual links, or one."""
    if costs:
        found = [Cost(**each) for each in json.loads(costs.read_text(encoding="utf-8"))["predict"]["costs"]]
    else:
        from side_by_side.costs import measure_cost

        found = [measure_cost(shape, *how) for shape, how in MEASURED.items()]
    given: list[Any] = [found]
    if link:
        microseconds, gigabits = link
        given.append([Network(f"{gigabits:g} Gbit/s, {microseconds:g} µs", microseconds / 1e6, gigabits * 1e9 / 8)])
    return {"costs": [each._asdict() for each in found], "rows": predict(*given), "batches": batches(*given)}


def draw(rows: Sequence[Mapping[str, Any]], path: Path) -> None:
    from side_by_side.picture import prediction_picture

    figure = prediction_picture(rows, RANKS)
    for ending in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=160)


def main() -> None:
    parser = make_parser()
    arguments = parser.parse_args()
    if not (arguments.predict or arguments.network or arguments.shards is not None):
        parser.error("one of --predict, --network and --shards is needed")
    loads, everything = [os.getloadavg()[0]], {}
    if arguments.predict:
        everything["predict"] = predicted(arguments.costs, arguments.link)
        print("\n".join(map(str, everything["predict"]["costs"])), "\n")
        print("\n".join(prediction_table(everything["predict"]["rows"])), "\n")
        print("\n".join(batch_table(everything["predict"]["batches"])), flush=True)
        if arguments.picture:
            draw(everything["predict"]["rows"], arguments.picture)
    everything["network"] = [measure_networks(name, LAYOUTS, arguments.repeats) for name in arguments.network]
    for found in everything["network"]:
        print("\n".join(network_table(found)), flush=True)
    if arguments.shards is not None:
        everything["shards"] = _measure_rows(arguments)
        print("\n".join(ranks_table(everything["shards"])))
    everything["machine"] = describe(2)
    print("\n" + in_words(everything["machine"], [*loads, os.getloadavg()[0]]))
    if arguments.json:
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")


def _measure_rows(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    pairs = read_pairs(arguments.pairs) if arguments.pairs else []
    chosen = [row for row in TRAINING if arguments.only in row.name and (pairs or not row.smoothing)]
    if not chosen:
        sys.exit(f"no row{'' if pairs else ', without --pairs,'} has a name with {arguments.only}")
    rows = []
    for row in chosen:
        rows.append(measure(row, pairs, arguments.shards, arguments.pytorch, arguments.repeats))
        print(row.name, rows[-1]["medians"], f"others busy {rows[-1]['idle']:.1%}", file=sys.stderr, flush=True)
    return rows


def positive_number(word: str) -> float:
    number = float(word)
    if not 0 < number < math.inf:
        raise ValueError(word)
    return number


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--predict", action="store_true", help="updates of 1 to 1,024 ranks on paper")
    parser.add_argument("--costs", type=Path, help="JSON of an earlier --predict, in place of measuring again")
    of_link = {"nargs": 2, "type": positive_number, "metavar": ("MICROSECONDS", "GBIT")}
    parser.add_argument("--link", **of_link, help="latency and bandwidth of your network, in place of the usual ones")
    parser.add_argument("--picture", type=Path, help="draw the prediction, as this name with .svg and .png")
    gpts = [row.name for row in TRAINING if not row.smoothing]
    parser.add_argument("--network", nargs="+", default=[], choices=gpts, help="rows on simulated networks")
    parser.add_argument("--shards", type=int, nargs="*", help="compare ranks and workers, at these numbers of shards")
    parser.add_argument("--pytorch", action="store_true", help="with --shards: PyTorch's DDP too")
    parser.add_argument("--pairs", type=Path, nargs=2, metavar=("SOURCE", "TARGET"), help="aligned lines to train on")
    parser.add_argument("--only", default="", metavar="ROW", help="with --shards: rows, by a part of their names")
    parser.add_argument("--repeats", type=int, default=8, help="turns of every side")
    parser.add_argument("--json", type=Path, help="write all that was measured and computed to this file")
    return parser


if __name__ == "__main__":
    main()
