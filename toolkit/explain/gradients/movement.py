"""How far training has moved every group of parameters, and how large its gradient was when it began."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array


class Movement(NamedTuple):
    """A group of parameters: those of one name in all layers."""

    name: str
    count: int
    moved: int  # so many of them are other numbers now
    before: float  # root mean squares: of the values before,
    change: float  # of what was added to them since,
    gradient: float  # and of the gradient of the loss before


def movements(
    before: Mapping[str, Array], after: Mapping[str, Array], gradients: Mapping[str, Array]
) -> list[Movement]:
    """Before and after, group by group; what attention packs is told apart (see `unpacked`).

    Raises KeyError unless all three have the same names: a gradient without a parameter is a mistake, or the reverse.
    """
    if not before.keys() == after.keys() == gradients.keys():
        raise KeyError(sorted((before.keys() ^ gradients.keys()) | (before.keys() ^ after.keys())))
    columns = [unpacked(arrays) for arrays in (before, after, gradients)]
    groups: dict[str, list[list[Array]]] = {}
    for name in columns[0]:
        group = ".".join("*" if word.isdigit() else word for word in name.split("."))
        groups.setdefault(group, []).append([column[name] for column in columns])
    return [_movement(name, members) for name, members in groups.items()]


def unpacked(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Arrays by name, those of queries, keys and values each by itself: views.

    Of self-attention with as many heads of keys as of queries, which keeps the three side by side.
    """
    found = {}
    for name, value in arrays.items():
        if "query_key_value" in name:
            parts = zip(("query", "key", "value"), np.split(value, 3, axis=-1), strict=True)
            found |= {name.replace("query_key_value", part): view for part, view in parts}
        else:
            found[name] = value
    return found


def _movement(name: str, members: list[list[Array]]) -> Movement:
    old, new, gradient = (np.concatenate([array.reshape(-1) for array in each]) for each in zip(*members, strict=True))
    sizes = (float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (old, new - old, gradient))
    return Movement(name, old.size, int(np.count_nonzero(new != old)), *sizes)
