"""Looking rows up in a table, and adding gradients back to the rows that were looked up."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved
from toolkit.functional.int8 import Int8Matrix


def embedding(
    ids: Array, table: Array | Int8Matrix, scale: float = 1.0, empty: Empty = np.empty
) -> tuple[Array, Saved]:
    """Every id is replaced by its row of the table:

        y_n = scale · table[ids_n]

    Shapes: ids (N,) of integers in [0, V), table (V, D) -> y (N, D).
    """
    y = empty((len(ids), table.shape[1]), table.dtype)
    look_up(ids, table, y)
    if scale != 1.0:
        y *= scale
    return y, (ids, scale)


def look_up(ids: Array, table: Array | Int8Matrix, out: Array) -> None:
    """Copy rows of a table.  Shapes: ids (N,), table (V, D), out (N, D)."""
    if isinstance(table, Int8Matrix):
        table.look_up(ids, out)
    else:  # the default mode buffers a copy first; ids are checked where text becomes ids
        table.take(ids, 0, out, "clip")  # the method is faster than the function


def embedding_backward(dy: Array, saved: Saved, table_gradient: Array) -> None:
    """A row that was looked up k times receives k gradients:

        table_gradient[v] += scale · Σ_{n: ids_n = v} dy_n

    The table is large and the batch touches few of its rows, so the sum goes straight into `table_gradient` (V, D)
    instead of into a table of zeros. Sorting by id turns the scattered sum into sums over consecutive rows.
    """
    ids, scale = saved
    if len(ids) == 0:
        return
    order = np.argsort(ids, kind="stable")
    ordered = ids[order]
    starts = np.flatnonzero(np.concatenate(([True], ordered[1:] != ordered[:-1])))
    sums = np.add.reduceat(dy[order], starts, axis=0)
    if scale != 1.0:
        sums *= scale
    table_gradient[ordered[starts]] += sums
