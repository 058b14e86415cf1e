"""Logits processors: what has been written makes tokens less probable, or excludes them.

Every function changes scores (N, V) in place, logits or log-probabilities, by the history (N, T) of each row: the ids
that count, the last ones at the right, `NOTHING` before the first.
"""

from collections.abc import Sequence

import numpy as np

from toolkit.decoding.config import GenerationConfig
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.tokenization.special import BOS, EOS

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


class Bans:
    """Sequences of ids that are not written: the last id is excluded where the others were just written.

    Raises ConfigError for a sequence without ids, with an end mark, or with ids outside a vocabulary of `size`.
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


class Processors:
    """The repetition penalty, then n-grams, then bans, for B outputs that belong to B prompts.

    prompts: ids that count as history; for the outputs of an encoder-decoder, their begin mark alone. begin: the token
    that <s> is to the model: in models from elsewhere that may be the end mark.
    """

    def __init__(self, config: GenerationConfig, bans: Bans, prompts: Sequence[Sequence[int]], begin: int = BOS):
        self._penalty, self._ngram_size, self._bans = config.repetition_penalty, config.no_repeat_ngram_size, bans
        longest = max(map(len, prompts), default=0) if self else 0
        self._prompts = np.full((len(prompts), longest), NOTHING, np.int64)
        for row, prompt in zip(self._prompts, prompts if longest else (), strict=False):
            row[longest - len(prompt) :] = prompt
        self._prompts[self._prompts == BOS] = begin

    def __bool__(self) -> bool:
        """Whether there is anything to do."""
        return self._penalty != 1 or self._ngram_size > 0 or bool(self._bans)

    def apply(self, scores: Array, sentences: Array, written: Array) -> None:
        """Reshape scores (N, V), in place, of outputs that have `written` (N, T) so far for `sentences` (N,)."""
        history = np.concatenate([self._prompts[sentences], written], axis=1)
        if self._penalty != 1:
            penalize_repetition(scores, history, self._penalty)
        if self._ngram_size:
            forbid_repeated_ngrams(scores, history, self._ngram_size)
        self._bans.exclude(scores, history)
