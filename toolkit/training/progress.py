"""Where a run stands, and the figures since the last line of its log."""

import dataclasses
import math
from dataclasses import dataclass, field
from typing import Any

from toolkit.functional.output_loss import LossSums
from toolkit.untrusted import OBJECT, Maybe, Number, Only, Record, Whole


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

_SCHEMAS = {int: Whole(0), float: Number(), dict: OBJECT}
_FIGURE = Only("a number", lambda value: type(value) in (int, float))  # a sum may be no longer finite
_OWN = {
    "best": Maybe(Number()),
    "averages": Record(dict.fromkeys(_COUNTS, Number(0)), others=_FIGURE),
}
_FIELDS = {name: _SCHEMAS.get(type(value)) for name, value in dataclasses.asdict(Progress()).items()} | _OWN
_ADDED = {"validated", "rollbacks", "averages"}  # older runs do not have them

# What a file may hold as a `Progress`.
PROGRESS = Record(_FIELDS, needed=[name for name in _FIELDS if name not in _ADDED])
