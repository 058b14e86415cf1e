"""What an output must be, whatever the model prefers: how it begins, what it avoids, where it may, or must, end."""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.distribution import forbid_control_tokens, force_end
from toolkit.decoding.processors import Processors
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import EOS


class Constraints:
    """The limits of B outputs, and which tokens each may write next.

    limits: (B,) tokens that each output may have, prefix and end mark included. prefixes: ids that each begins with,
    at least one token shorter than its limit. min_new_tokens: after the prefix, so many tokens come before the end
    mark. forced_end: what happens at the limit (see `GenerationConfig`). processors: what avoids repetition and bans.
    end: the end mark, one of the special ids.
    """

    def __init__(
        self,
        limits: Array,
        prefixes: Sequence[Sequence[int]] | None = None,
        min_new_tokens: int = 0,
        forced_end: str = "scored",
        processors: Processors | None = None,
        end: int = EOS,
    ):
        self.limits, self.forced_end, self.end = limits, forced_end, end
        self._lengths = np.array([len(prefix) for prefix in prefixes or [()] * len(limits)], np.int64)
        self._prefixes = np.zeros((len(limits), self._lengths.max(initial=0)), np.int64)
        for row, prefix in zip(self._prefixes, prefixes or (), strict=False):
            row[: len(prefix)] = prefix
        self._earliest = self._lengths + min_new_tokens
        self._last_earliest = int(self._earliest.max(initial=0))
        self._processors = processors or None

    @property
    def longest(self) -> int:
        """The largest of the limits."""
        return int(self.limits.max(initial=0))

    @property
    def reshape(self) -> bool:
        """Whether scores depend on what was written."""
        return self._processors is not None

    def impose(
        self, logits: Array, normalizers: Array, sentences: Array, step: int, written: Array | None = None
    ) -> tuple[Array, Array]:
        """Reshape the scores of the token after `step` others, and take away what it may not be, in place.

        Shapes: sentences (B,), logits (B·W, V) and their normalizers (B·W,), written (B·W, step) the ids so far, needed
        where `reshape` says so. Returns the model's own logits, (B·W, V), right wherever something is left
        (log-probabilities are own - normalizers, but for a free end mark, which has 0), and which sentences are at
        their limit, (B,).
        """
        width = len(logits) // max(len(sentences), 1)
        at_limit = self.limits[sentences] == step + 1
        own = logits
        if self._processors is not None:
            own = logits.copy()
            self._processors.apply(logits, np.repeat(sentences, width), written)
        if step < self._last_earliest:
            self._impose_beginning(logits, own, np.repeat(sentences, width), step)
        else:
            forbid_control_tokens(logits, self.end)
        if own is not logits:
            stuck = logits.max(axis=1) == -np.inf
            logits[stuck, self.end] = own[stuck, self.end]
        if self.forced_end != "none" and at_limit.any():
            rows = np.repeat(at_limit, width)
            force_end(logits, own, rows, self.end)
            if self.forced_end == "free":
                logits[rows, self.end] = own[rows, self.end] = normalizers[rows] = 0
        return own, at_limit

    def _impose_beginning(self, logits: Array, own: Array, sentences: Array, step: int) -> None:
        """Leave the prefix's token while it lasts, and no end mark before the earliest one.  sentences: (B·W,)."""
        rows = tokens = kept = None
        if step < self._prefixes.shape[1]:
            rows = np.flatnonzero(step < self._lengths[sentences])
            tokens = self._prefixes[sentences[rows], step]
            kept = own[rows, tokens]
        forbid_control_tokens(logits, self.end)
        logits[step < self._earliest[sentences], self.end] = -np.inf
        if rows is not None:
            logits[rows] = -np.inf
            logits[rows, tokens] = kept

    def ended_by_itself(self, sentences: Array | int, lengths: Array | int, last: Array | int) -> Array:
        """Whether the model, not the limit, ended outputs of these lengths, their `last` tokens included."""
        ends = last == self.end
        return ends if self.forced_end == "none" else ends & (lengths < self.limits[sentences])
