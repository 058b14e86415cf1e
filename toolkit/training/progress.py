"""Where a run stands, and the figures since the last line of its log."""

import dataclasses
import math
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from toolkit.errors import ModelError
from toolkit.functional.output_loss import LossSums


@dataclass
class Progress:
    """Where a run stands; saved with every checkpoint."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    validated: int = 0  # the update of the last validation
    best: float | None = None  # the best validation score so far
    best_update: int = 0
    validations_without_gain: int = 0
    rollbacks: int = 0  # how often it diverged and went back; each halves the learning rate
    seconds: float = 0.0  # spent in updates
    tokens: int = 0
    scores: dict[str, Any] = field(default_factory=dict)  # of the last validation

    @classmethod
    def from_json(cls, values: dict[str, Any], where: Path) -> "Progress":
        """What was saved in the file `where`.  Raises ModelError where it is not that."""
        expected = dataclasses.asdict(cls())
        odd = sorted((values.keys() ^ expected.keys()) - (_ADDED - values.keys()))
        if odd:
            raise ModelError(f"{where} is damaged or from another version: look at {odd[0]!r}")
        for name, value in values.items():
            if not _fits(value, expected[name]):
                raise ModelError(f"{where} is damaged: {name} is {value!r}")
        return cls(**values)


_ADDED = {"validated", "rollbacks"}  # older runs do not have them


def _fits(value: Any, default: Any) -> bool:
    """Is a value from a file of the kind that the default is?"""
    if isinstance(default, dict):
        return isinstance(value, dict)
    if isinstance(default, int):
        return type(value) is int and value >= 0
    if value is None:
        return default is None
    return type(value) in (int, float) and math.isfinite(value)


def loss_scores(sums: LossSums) -> dict[str, float]:
    """The loss of a token in nats, and its exponential."""
    loss = sums.negative_log_likelihood / sums.tokens
    return {"loss": loss, "perplexity": math.exp(min(loss, 700))}


class Averages:
    """Training figures since the last line of the log."""

    def __init__(self) -> None:
        self.clear()

    def clear(self) -> None:
        self._sums, self._norms, self._seconds = None, [], 0.0

    def add(self, sums: LossSums, norm: float, seconds: float) -> None:
        """Count an update; `sums` may have fields beside those of `LossSums`, sums like them."""
        before = self._sums
        self._sums = sums if before is None else type(sums)(*(a + b for a, b in zip(before, sums, strict=True)))
        self._norms.append(norm)
        self._seconds += seconds

    def take(self) -> dict[str, float]:
        """Means over the tokens, or whatever else a task counts as such."""
        sums, norms, seconds = self._sums, self._norms, self._seconds
        self.clear()
        means = {name: value / sums.tokens for name, value in sums._asdict().items() if name != "tokens"}
        return {
            **means,
            "gradient_norm": sum(norms) / len(norms),
            "tokens_per_second": round(sums.tokens / seconds, 1),
        }
