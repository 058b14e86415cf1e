"""An axis of a plot: its ends, its ticks, where numbers stand on it."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Axis:
    """From low to high; with `log`, equal factors are equally far apart, and only numbers above 0 stand on it."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def of(cls, numbers: Sequence[Sequence[float]], log: bool = False) -> "Axis":
        """As long as all of these need; as long as 1, or a factor of 10, where that would be nothing."""
        every = np.concatenate([np.asarray(each, float) for each in numbers] or [np.zeros(0)])
        every = every[np.isfinite(every) & ((every > 0) | (not log))]
        low, high = (float(every.min()), float(every.max())) if every.size else (1.0, 1.0)
        if low == high:
            return cls(low, low * 10, log) if log else cls(low - 0.5, low + 0.5, log)
        return cls(low, high, log)

    def places(self, numbers: Sequence[float]) -> list[float]:
        """Where numbers stand, 0 at the low end and 1 at the high one; nan for those that do not stand on it."""
        values = np.asarray(numbers, float)
        ok = np.isfinite(values) & ((values > 0) | (not self.log))
        values = np.where(ok, values, np.nan)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return ((values - low) / (high - low)).tolist()

    def ticks(self, most: int = 6) -> list[float]:
        """Round numbers between the ends: 1, 2 or 5 times a power of ten; on a log axis, powers of ten."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            found = [10.0**power for power in powers[:: max(1, math.ceil(len(powers) / most))]]
            if len(found) < 3:
                finer = (factor * 10.0**power for power in range(powers.start - 1, powers.stop) for factor in (1, 2, 5))
                found = [each for each in finer if self.low <= each <= self.high]
            return found if len(found) > 1 else [self.low, self.high]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]

    @staticmethod
    def label(number: float) -> str:
        """A number on an axis, short: "0.002", "1e-05", "30000"."""
        if number and not 1e-4 <= abs(number) < 1e6:
            mantissa, power = f"{number:.2e}".split("e")
            return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
        return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"
