"""The colour scale that the cells of a map share with all maps beside it."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.explain.pages.blocks import Heat


@dataclass(frozen=True)
class Scale:
    """From the smallest to the largest number that is seen; weights, which are shares of 1, begin at 0."""

    low: float
    high: float

    @classmethod
    def of(cls, maps: Sequence[Heat]) -> "Scale":
        """The scale of all cells that no mask hides."""
        values = np.concatenate([np.asarray(each.values, float)[~hidden(each)] for each in maps])
        return cls(float(values.min(initial=0)), float(values.max(initial=0)))

    @property
    def is_share(self) -> bool:
        """Whether the numbers are weights between 0 and 1."""
        return self.low >= 0 and self.high <= 1 + 1e-6

    @property
    def ends(self) -> tuple[float, float]:
        """What the colours of a picture begin and end with: 0 and the largest number, or as far on both sides of 0."""
        most = max(self.high, -self.low) or 1.0
        return (-most if self.low < 0 else 0.0), most

    def share(self, value: float) -> float:
        """Where a number stands, from 0 to 1; what is no number stands at 0."""
        if not np.isfinite(value) or self.high == self.low:
            return float(value == np.inf)
        return min(max((value - self.low) / (self.high - self.low), 0.0), 1.0)

    def strength(self, value: float) -> float:
        """How far from 0 a number is, from 0 to 1, whatever its sign."""
        most = max(self.high, -self.low)
        if not np.isfinite(value) or most == 0:
            return float(np.isinf(value))
        return min(abs(value) / most, 1.0)


def hidden(block: Heat) -> np.ndarray:
    """The cells that show no number: a mask hides them, or there is none.  Returns booleans (T, S)."""
    unknown = ~np.isfinite(np.asarray(block.values, float))
    return unknown if block.hidden is None else unknown | np.asarray(block.hidden, bool)
