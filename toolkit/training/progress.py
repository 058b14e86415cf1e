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
    averages: dict[str, float] = field(default_factory=dict)  # sums since the last line of the log

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
        for name, value in values.get("averages", {}).items():
            if type(value) not in (int, float) or (name in _COUNTS and not value >= 0):
                raise ModelError(f"{where} is damaged: among the averages, {name} is {value!r}")
        return cls(**values)


_ADDED = {"validated", "rollbacks", "averages"}  # older runs do not have them


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
    """Training figures since the last line of the log, out of sums that a checkpoint keeps.

    sums: of all updates, by name, in a dictionary that is the caller's; empty where the log has just had its line.
    """

    def __init__(self, sums: dict[str, float]) -> None:
        self._sums = sums

    def add(self, sums: LossSums, norm: float, seconds: float) -> None:
        """Count an update; `sums` may have fields beside those of `LossSums`, sums like them."""
        own = {_UPDATES: 1, _NORMS: norm, _SECONDS: seconds}
        for name, value in {**sums._asdict(), **own}.items():
            self._sums[name] = self._sums.get(name, 0) + value

    def take(self) -> dict[str, float]:
        """Means over the tokens, or whatever else a task counts as such; the sums begin anew."""
        sums = dict(self._sums)
        self._sums.clear()
        updates, norms, seconds, tokens = (sums.pop(name) for name in (_UPDATES, _NORMS, _SECONDS, "tokens"))
        means = {name: value / tokens for name, value in sums.items()}
        return {**means, "gradient_norm": norms / updates, "tokens_per_second": round(tokens / seconds, 1)}


_UPDATES, _NORMS, _SECONDS = "updates", "gradient_norms", "seconds"  # beside the task's own sums
_COUNTS = {_UPDATES, _SECONDS, "tokens"}
