"""The live comparison: what `make.py --check` asks the installed transformers and CTranslate2.

1. The fixtures: the same answers as are stored, and `from_pretrained` computes what was stored.
2. Exported: random models of ours over their options compute the same in both libraries, and searches find the same.
3. Shipped: what en-ne-small translates and what the story models write, text by text.
"""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.parity import exported, reference, shipped
from tests.parity.cases import CASES, EXPECTED, FIXTURES


def check(names: list[str]) -> int:
    """Print what was compared; returns how many comparisons failed."""
    failures = 0
    with tempfile.TemporaryDirectory() as scratch:
        for lines in (fixtures(names), exported.compare(Path(scratch)), shipped.compare(Path(scratch))):
            for is_right, line in lines:
                print("     " if is_right else "WRONG", line, flush=True)
                failures += not is_right
    return failures


def fixtures(names: list[str]) -> Iterator[tuple[bool, str]]:
    """Whether the installed versions still answer what is stored."""
    for name in names:
        case, live = CASES[name], reference.expectations(CASES[name])
        with np.load(FIXTURES / name / EXPECTED) as file:
            stored = dict(file)
        same = all(np.array_equal(stored[key], live[key]) for key in stored if stored[key].dtype.kind != "f")
        off = {key: distance(stored[key], live[key]) for key in stored if stored[key].dtype.kind == "f"}
        read = reference.loss_and_gradient(reference.read(FIXTURES / name), case, stored)
        off["from_pretrained"] = distance(stored["logits"], read["logits"])
        figures = ", ".join(f"{key} {value:.0e}" for key, value in off.items())
        yield same and max(off.values()) < 1e-5, f"{name}: stored and live differ by {figures}"


def distance(one: np.ndarray, other: np.ndarray) -> float:
    """The largest difference, as a share of the largest number."""
    return float(np.nanmax(np.abs(one - other)) / np.nanmax(np.abs(one)))
