"""Turns: ours, theirs, ours, theirs, so that what the machine does meanwhile happens to all."""

import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .side import Side

_PAUSE = 0.1  # seconds, in which the threads of the side before fall asleep


def interleave(
    sides: Mapping[str, Side], run: Callable[[Side, int], Any], repeats: int
) -> tuple[dict[str, list[Any]], float]:
    """`repeats` rounds in which each side has its turn; who begins moves on from round to round.

    run: what a side does in the round of a number. Returns what it returned, by side, and the share of a core that the
    waiting sides together kept busy.
    """
    results: dict[str, list[Any]] = {name: [] for name in sides}
    busy = waited = 0.0
    names = list(sides)
    for number in range(repeats):
        turn = number % len(names)
        for name in names[turn:] + names[:turn]:
            time.sleep(_PAUSE)
            others = [side for other, side in sides.items() if other != name]
            before, begin = sum(side.processor_seconds() for side in others), time.perf_counter()
            results[name].append(run(sides[name], number))
            waited += time.perf_counter() - begin
            busy += sum(side.processor_seconds() for side in others) - before
    return results, busy / max(waited, 1e-9)


def figures(rounds: Mapping[str, Sequence[Mapping[str, float]]]) -> dict[str, Any]:
    """Tokens per second of every side: of each turn, and their medians."""
    speeds = {name: [each["tokens"] / each["seconds"] for each in own] for name, own in rounds.items()}
    return {"speeds": speeds, "medians": {name: statistics.median(own) for name, own in speeds.items()}}


def ratio(row: Mapping[str, Any], ours: str, theirs: str) -> dict[str, Any]:
    """Our best layout against the best of theirs: the ratio of the medians, and the lowest and highest of a round.

    ours, theirs: what the names of their sides begin with. Empty where a side was left out.
    """
    first, second = (
        max((n for n in row["medians"] if n.startswith(side)), key=row["medians"].get, default="")
        for side in (ours, theirs)
    )
    if not (first and second):
        return {}
    turns = [own / other for own, other in zip(row["speeds"][first], row["speeds"][second], strict=True)]
    medians = row["medians"]
    return {
        "ours": first,
        "theirs": second,
        "ratio": medians[first] / medians[second],
        "range": [min(turns), max(turns)],
    }
