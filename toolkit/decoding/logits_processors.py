"""Logits processors and constraints: how an output begins, what it avoids, and where it may or must end.

Processors change scores (N, V) in place, logits or log-probabilities, by the history (N, T) of each row: the ids that
count, the last ones at the right, `NOTHING` before the first.
"""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

NOTHING = -1  # fills the history of rows that have less of it than others


def penalize_repetition(scores: Array, history: Array, penalty: float) -> None:
    """Divide positive scores of tokens that occurred by `penalty` and multiply negative ones (Keskar et al. 2019, 4.1).

    Once for each token, however often it occurred: all its occurrences write the same number.
    """
    occurred = history != NOTHING
    rows, tokens = np.nonzero(occurred)[0], history[occurred]
    found = scores[rows, tokens].astype(np.float64)
    largest = float(np.finfo(scores.dtype).max) / 4
    scores[rows, tokens] = np.clip(np.where(found < 0, found * penalty, found / penalty), -largest, largest)


def forbid_repeated_ngrams(scores: Array, history: Array, size: int) -> None:
    """Exclude every token that would write a sequence of `size` tokens a second time (Paulus et al. 2018, section 2.5).

    Where the last size - 1 tokens occurred before, what followed them then is excluded.
    """
    places = history.shape[1] - size + 1
    if places < 1:
        return
    repeated = np.ones((len(history), places), bool)
    for offset in range(size - 1):
        repeated &= history[:, offset : places + offset] == history[:, [places + offset]]
    followed = history[:, size - 1 :]
    repeated &= followed != NOTHING
    scores[np.nonzero(repeated)[0], followed[repeated]] = -np.inf


class BadWords:
    """Sequences of ids that are not written: the last id is excluded where the others were just written.

    Raises ConfigError for a sequence without ids, with EOS, or with ids outside a vocabulary of `size`.
    """

    def __init__(self, sequences: Sequence[Sequence[int]], size: int, end: int = EOS):
        by_length: dict[int, set[tuple[int, ...]]] = {}
        for sequence in sequences:
            ids = [int(token) for token in sequence]
            if not ids or not all(0 <= token < size for token in ids):
                raise ConfigError(f"the ban {ids} is no sequence of the model's {size} ids: wrong tokenizer?")
            if end in ids:
                raise ConfigError(f"the ban {ids} has an end mark in it, and outputs must end: leave it out")
            by_length.setdefault(len(ids), set()).add(tuple(ids))
        self._tables = [np.array(sorted(same)) for same in by_length.values()]

    def __bool__(self) -> bool:
        return bool(self._tables)

    def exclude(self, scores: Array, history: Array) -> None:
        for table in self._tables:
            beginning = table.shape[1] - 1
            if beginning == 0:
                scores[:, table[:, 0]] = -np.inf
            elif beginning <= history.shape[1]:
                recent = history[:, history.shape[1] - beginning :]
                rows, which = np.nonzero((recent[:, None] == table[:, :-1]).all(axis=2))
                scores[rows, table[which, -1]] = -np.inf


class LogitsProcessors:
    """The repetition penalty, then n-grams, then bad words, for B outputs that belong to B prompts.

    prompts: ids that count as history; for the outputs of an encoder-decoder, BOS alone. begin: the token that the
    model reads for BOS: in models from other libraries that may be EOS.
    """

    def __init__(
        self, config: GenerationConfig, bad_words: BadWords, prompts: Sequence[Sequence[int]], begin: int = BOS
    ):
        self._penalty, self._ngram_size = config.repetition_penalty, config.no_repeat_ngram_size
        self._bad_words = bad_words
        longest = max(map(len, prompts), default=0) if self else 0
        self._prompts = np.full((len(prompts), longest), NOTHING, np.int64)
        for row, prompt in zip(self._prompts, prompts if longest else (), strict=False):
            row[longest - len(prompt) :] = prompt
        self._prompts[self._prompts == BOS] = begin

    def __bool__(self) -> bool:
        """Tell if any processor is on."""
        return self._penalty != 1 or self._ngram_size > 0 or bool(self._bad_words)

    def apply(self, scores: Array, sentences: Array, written: Array) -> None:
        """Change scores (N, V), in place, of outputs that have `written` (N, T) so far for `sentences` (N,).

        Without prompts, they are part of what was written."""
        history = written
        if self._prompts.shape[1]:
            history = np.concatenate([self._prompts[sentences], written], axis=1)
        if self._penalty != 1:
            penalize_repetition(scores, history, self._penalty)
        if self._ngram_size:
            forbid_repeated_ngrams(scores, history, self._ngram_size)
        self._bad_words.exclude(scores, history)


def forbid_control_tokens(logits: Array, end: int = EOS) -> None:
    """Permit ordinary tokens and EOS alone: no padding, BOS, <unk>, chat marker or spare symbol is written.

    Shapes: (N, V), changed in place. The probability of the others is lost, not shared out: log-probabilities stay the
    model's own, computed before.  end: the special id that is EOS here.
    """
    logits[:, :end] = -np.inf
    logits[:, end + 1 : len(SPECIAL_TOKENS)] = -np.inf


def _set_free(logits: Array, own: Array, normalizers: Array | None, rows: Array, tokens: Array | int) -> None:
    """Give tokens of some rows log-probability 0."""
    logits[rows, tokens] = own[rows, tokens] = 0
    if normalizers is not None:
        normalizers[rows] = 0


def force_end(logits: Array, own: Array, rows: Array, end: int = EOS) -> None:
    """Permit EOS alone in some rows, with the model's own logit.

    Shapes: logits (N, V), changed in place; own (N, V), which may be the same array; rows (N,) of bool.
    """
    kept = own[rows, end]
    logits[rows] = -np.inf
    logits[rows, end] = kept


class Constraints:
    """The limits of B outputs, and the tokens that each may write next.

    limits: (B,) tokens that each output may have, prefix and EOS included. prefixes: ids that each begins with, at
    least one token shorter than its limit. min_new_tokens: the fewest tokens between prefix and EOS, of all or of each,
    (B,). forced_eos: the
    rule at the limit (see `GenerationConfig`). processors: against repetition and bad words. end: the special id that
    ends outputs. free: how many ids of every prefix, from the first on, have log-probability 0; they are new tokens.
    """

    def __init__(
        self,
        limits: Array,
        prefixes: Sequence[Sequence[int]] | None = None,
        min_new_tokens: int | Array = 0,
        forced_eos: str = "scored",
        processors: LogitsProcessors | None = None,
        end: int = EOS,
        free: int = 0,
    ):
        self.limits, self.forced_eos, self.end, self._free = limits, forced_eos, end, free
        self._lengths = np.array([len(prefix) for prefix in prefixes or [()] * len(limits)], np.int64)
        self._prefixes = np.zeros((len(limits), self._lengths.max(initial=0)), np.int64)
        for row, prefix in zip(self._prefixes, prefixes or (), strict=False):
            row[: len(prefix)] = prefix
        self._earliest = self._lengths + np.maximum(min_new_tokens - free, 0)
        self._last_earliest = int(self._earliest.max(initial=0))
        self._first_limit = min(limits.tolist(), default=0)
        self._processors = processors or None

    @property
    def reshape(self) -> bool:
        """Tell if scores depend on the ids written so far."""
        return self._processors is not None

    def impose(
        self,
        logits: Array,
        normalizers: Array | None,
        sentences: Array,
        step: int | Array,
        written: Array | None = None,
    ) -> tuple[Array, Array]:
        """Process the scores of the token after `step` others, and forbid what it may not be, in place.

        Shapes: sentences (B,), step a number or (B,), logits (B·W, V) and their normalizers (B·W,), if wanted, written
        (B·W, step) the ids so far, needed if `reshape`. Returns the model's own logits, (B·W, V), right wherever a
        token is permitted (log-probabilities are own - normalizers, but for a free EOS or beginning, which have 0), and
        which sentences are at their limit, (B,).
        """
        width = len(logits) // max(len(sentences), 1)
        first, last = (step, step) if isinstance(step, int) else (int(step.min()), int(step.max()))
        ends = last + 1 >= self._first_limit
        at_limit = self.limits[sentences] == step + 1 if ends else np.zeros(len(sentences), bool)
        own = logits
        if self._processors is not None:
            own = logits.copy()
            self._processors.apply(logits, np.repeat(sentences, width), written)
        if first < self._last_earliest:
            rows = np.repeat(sentences, width)
            steps = first if first == last else np.repeat(step, width)
            self._impose_beginning(logits, own, rows, steps)
            if first < self._free:
                begun, tokens = self._beginnings(rows, steps, np.minimum(self._free, self._lengths))
                _set_free(logits, own, normalizers, begun, tokens)
        else:
            forbid_control_tokens(logits, self.end)
        if own is not logits:
            stuck = logits.max(axis=1) == -np.inf
            logits[stuck, self.end] = own[stuck, self.end]
        if self.forced_eos != "none" and ends and at_limit.any():
            rows = np.repeat(at_limit, width)
            force_end(logits, own, rows, self.end)
            if self.forced_eos == "free":
                _set_free(logits, own, normalizers, np.flatnonzero(rows), self.end)
        return own, at_limit

    def free(self, lengths: Array, count: int) -> Array:
        """Mark, of the first `count` tokens of outputs of these lengths, those with log-probability 0, (B, count)."""
        places = np.arange(count)
        at_limit = (lengths == self.limits) & (self.forced_eos == "free")
        return (places < self._free) | at_limit[:, None] & (places == self.limits[:, None] - 1)

    def _beginnings(self, sentences: Array, steps: int | Array, lengths: Array) -> tuple[Array, Array]:
        """Find the rows that are within so many tokens (B,) of their prefix, and the tokens that come there."""
        rows = np.flatnonzero(steps < lengths[sentences])
        return rows, self._prefixes[sentences[rows], steps if isinstance(steps, int) else steps[rows]]

    def _impose_beginning(self, logits: Array, own: Array, sentences: Array, steps: int | Array) -> None:
        """Permit the prefix's token alone while it lasts, and no EOS before the earliest.

        Shapes: sentences (B·W,), steps a number for all or (B·W,)."""
        rows = tokens = kept = None
        if (steps if isinstance(steps, int) else steps.min()) < self._prefixes.shape[1]:
            rows, tokens = self._beginnings(sentences, steps, self._lengths)
            kept = own[rows, tokens]
        forbid_control_tokens(logits, self.end)
        logits[steps < self._earliest[sentences], self.end] = -np.inf
        if rows is not None:
            logits[rows] = -np.inf
            logits[rows, tokens] = kept

    def ended_by_itself(self, sentences: Array | int, lengths: Array | int, last: Array | int) -> Array:
        """Tell if the model, not the limit, ended outputs of these lengths, their `last` tokens included."""
        ends = last == self.end
        return ends if self.forced_eos == "none" else ends & (lengths < self.limits[sentences])
