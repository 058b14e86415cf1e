"""Where the texts of a corpus came from."""

from collections.abc import Callable, Sequence

import numpy as np


class Origins:
    """The texts of all sources are numbered through in the order of reading; a text's number is its row.

    begins: the first row of every source, ascending. lines: (rows,) the line of each text in its source. places: for
    every source, how to say where a line is (see `PairSource.place`).
    """

    def __init__(self, begins: Sequence[int], lines: np.ndarray, places: Sequence[Callable[[int], str]]):
        self.begins, self.lines, self.places = np.array(begins, np.int64), lines, places

    def sources_of(self, rows: np.ndarray) -> np.ndarray:
        """The numbers of the sources that rows came from, (rows,). A source without rows begins where the next does."""
        return np.searchsorted(self.begins, rows, side="right") - 1

    def place(self, row: int) -> str:
        """Where a text came from, for a sentence."""
        return self.places[int(self.sources_of(np.array(row)))](int(self.lines[row]))
