"""Pretended machines on a simulated network: what an update takes, beside what is predicted of it."""

import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.models.gpt import GPTConfig

from .costs import measure_cost
from .prediction import CORES, Cost, Network, Shape, update
from .side import Side
from .workloads import TRAINING, Workload, write_workload

MPIEXEC = str(Path(sys.executable).parent / "mpiexec")
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
LINKS = {
    "none": Network("none", 0.0, 1e12),
    "1 Gbit/s": Network("1 Gbit/s", 50e-6, 125e6),
    "10 Gbit/s": Network("10 Gbit/s", 20e-6, 1.25e9),
}


_STEPS = 3  # of a turn


class Layout(NamedTuple):
    """Ranks on pretended machines; overlap: whether gradients leave during backward."""

    machines: int
    ranks: int
    link: str
    overlap: bool

    def side(self) -> tuple[Side, dict[str, Any]]:
        """Start the ranks -> their side, and the arguments to start it with."""
        hosts = ",".join(f"machine{number}" for number in range(self.machines))
        launcher = [MPIEXEC, "-launcher", "fork", "-hosts", hosts, "-n", str(self.ranks)]
        network = LINKS[self.link]
        mine = network.bandwidth * self.machines / self.ranks  # a machine's ranks share its link
        arguments = {"threads": self.ranks, "link": [network.latency, mine], "overlap": self.overlap}
        return Side("toolkit_training", "ToolkitTraining", ONE_THREAD, launcher), arguments


LAYOUTS = [
    Layout(2, 2, "none", True),
    *(Layout(2, 2, link, overlap) for link in ("10 Gbit/s", "1 Gbit/s") for overlap in (False, True)),
    Layout(2, 4, "1 Gbit/s", True),
    Layout(4, 4, "1 Gbit/s", True),
    Layout(8, 8, "1 Gbit/s", True),
]


def shape_of(workload: Workload) -> Shape:
    config = workload.config
    assert isinstance(config, GPTConfig)
    return Shape(workload.title, config.layers, config.d_model, config.vocab_size, config.max_length)


def measure_networks(name: str, layouts: Sequence[Layout], repeats: int) -> dict[str, Any]:
    """Return for each layout the milliseconds of an update, measured in turns and predicted."""
    workload = next(row for row in TRAINING if row.name == name)
    shape = shape_of(workload)
    cost = measure_cost(shape, workload.batch // CORES, max(5, workload.steps))
    with tempfile.TemporaryDirectory() as directory:
        write_workload(workload, [], Path(directory))
        turns = [[_turn(layout, workload, directory) for layout in layouts] for _ in range(repeats)]
    rows = []
    for layout, times in zip(layouts, zip(*turns, strict=True), strict=True):
        rows.append({**layout._asdict(), "measured": statistics.median(times), "times": times})
        rows[-1]["predicted"] = predicted(layout, shape, cost, workload).seconds
    return {"row": name, "title": workload.title, "cost": cost._asdict(), "layouts": rows}


def _turn(layout: Layout, workload: Workload, directory: str) -> float:
    """Return the seconds of an update of ranks that are started for it: those that wait would ask for messages."""
    side, arguments = layout.side()
    try:
        side.start(directory=directory, **arguments)
        side.call("run", first=0, steps=1)
        return side.call("run", first=0, steps=_STEPS)["seconds"] / _STEPS
    finally:
        side.close()


def predicted(layout: Layout, shape: Shape, cost: Cost, workload: Workload) -> Any:
    tokens = workload.batch * shape.length / layout.ranks
    cores = layout.ranks // layout.machines
    crowd = layout.ranks / CORES
    return update(
        shape, cost, LINKS[layout.link], layout.ranks, tokens, overlap=layout.overlap, cores=cores, crowd=crowd
    )


def network_table(found: dict[str, Any]) -> list[str]:
    """Markdown, with the error of the prediction."""
    heads = ("machines × ranks of each", "link", "gradients leave", "measured, ms", "predicted, ms", "error")
    lines = ["", found["title"], "", f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for row in found["layouts"]:
        times = sorted(1e3 * each for each in row["times"])
        cells = [f"{row['machines']} × {row['ranks'] // row['machines']}", row["link"]]
        cells += ["during backward" if row["overlap"] else "after it"]
        cells += [f"{1e3 * row['measured']:.1f} ({times[0]:.1f} to {times[-1]:.1f})", f"{1e3 * row['predicted']:.1f}"]
        cells += [f"{row['predicted'] / row['measured'] - 1:+.0%}"]
        lines.append(f"| {' | '.join(cells)} |")
    return lines
