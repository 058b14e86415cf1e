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
        seen = [_seen(each) for each in maps]
        values = np.concatenate([each for each in seen if each.size] or [np.zeros(1)])
        return cls(min(0.0, float(values.min())), max(0.0, float(values.max())))

    @property
    def is_share(self) -> bool:
        """Whether the numbers are weights between 0 and 1."""
        return self.low >= 0 and self.high <= 1 + 1e-6

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


def _seen(block: Heat) -> np.ndarray:
    values = np.asarray(block.values, float)
    kept = np.isfinite(values) if block.hidden is None else np.isfinite(values) & ~np.asarray(block.hidden, bool)
    return values[kept]
