"""Pairs as ids, grouped into batches of about equal work."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np

from toolkit.data.sentences import sentence_ids
from toolkit.errors import ConfigError
from toolkit.tokenization.base import Tokenizer


class Example(NamedTuple):
    """One pair: ids without begin and end markers, int32, shapes (S,) and (T,)."""

    source: np.ndarray
    target: np.ndarray


def encode_pairs(
    pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, max_length: int, ignore_case: bool = False
) -> tuple[list[Example], int]:
    """Encode pairs of sentences -> (examples, number of pairs that were dropped for being too long).

    max_length: the most tokens that either side may have, its end marker included. ignore_case: sources are read in
    lower case (see `toolkit.data.sentences`).
    """
    pairs = list(pairs)
    sources = sentence_ids(tokenizer, (source for source, _ in pairs), ignore_case)
    targets = sentence_ids(tokenizer, (target for _, target in pairs))
    examples = [
        Example(np.array(source, dtype=np.int32), np.array(target, dtype=np.int32))
        for source, target in zip(sources, targets, strict=True)
        if max(len(source), len(target)) < max_length
    ]
    return examples, len(pairs) - len(examples)


def epoch_batches(examples: Sequence[Example], tokens_per_batch: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Cut one epoch into batches -> arrays of indices into `examples`, each index exactly once.

    Examples of similar length go into the same batch, and a batch is as long as `tokens_per_batch` target tokens
    (the end marker of each included) allow; an example longer than that is a batch of its own. Within a batch,
    examples are sorted by (target length, source length), so that equal lengths lie side by side. Which of
    similar examples meet, and the order of the batches, are drawn from `rng` and differ from epoch to epoch.

    Raises ConfigError for a budget below one token.
    """
    if tokens_per_batch < 1:
        raise ConfigError(f"tokens_per_batch is {tokens_per_batch}: a batch holds at least one token")
    if not examples:
        return []
    source, target = _lengths(examples)
    # Sorting by lengths blurred by a few percent lets neighbours change places and draws the order of equal ones.
    order = np.lexsort((rng.random(len(examples)), _blur(source, rng), _blur(target, rng)))
    starts = _cut(target[order] + 1, tokens_per_batch)
    batch_of = np.zeros(len(examples), dtype=np.int64)
    batch_of[starts[1:]] = 1
    order = order[np.lexsort((source[order], target[order], np.cumsum(batch_of)))]
    batches = np.split(order, starts[1:])
    return [batches[index] for index in rng.permutation(len(batches))]


def split_batch(indices: np.ndarray, examples: Sequence[Example], parts: int) -> list[np.ndarray]:
    """Deal a batch out to `parts` workers, so that source and target tokens together are balanced.

    From the longest example to the shortest they are dealt out there and back again (0 1 2, 2 1 0, 0 1 2, ...), which
    keeps the tokens of any two parts within the length of the longest example. Every part is sorted by
    (target length, source length). The parts together are the batch; with fewer examples than parts some are empty.

    Raises ConfigError for less than one part.
    """
    if parts < 1:
        raise ConfigError(f"a batch cannot be split into {parts} parts: choose at least one")
    indices = np.asarray(indices, dtype=np.intp)
    source, target = _lengths([examples[index] for index in indices])
    turn, place = np.divmod(np.arange(len(indices)), parts)
    receiver = np.empty(len(indices), dtype=np.intp)
    receiver[np.argsort(-(source + target), kind="stable")] = np.where(turn % 2 == 0, place, parts - 1 - place)
    order = np.lexsort((source, target))
    return [indices[order[receiver[order] == part]] for part in range(parts)]


def _lengths(examples: Sequence[Example]) -> tuple[np.ndarray, np.ndarray]:
    """Tokens of every source and of every target, each (B,)."""
    count = len(examples)
    source = np.fromiter((len(example.source) for example in examples), dtype=np.int64, count=count)
    target = np.fromiter((len(example.target) for example in examples), dtype=np.int64, count=count)
    return source, target


def _blur(lengths: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Every length, some of them made a little longer: by one for a short sentence, by up to 5 % + 1 for a long one."""
    return (lengths + rng.random(len(lengths)) * (1 + 0.05 * lengths)).astype(np.int64)


def _cut(tokens: np.ndarray, budget: int) -> np.ndarray:
    """Where batches start when consecutive examples fill them up to `budget` tokens."""
    ends = np.cumsum(tokens)
    starts = [0]
    while True:
        full = ends[starts[-1] - 1] if starts[-1] else 0
        start = max(int(np.searchsorted(ends, full + budget, side="right")), starts[-1] + 1)
        if start >= len(tokens):
            return np.array(starts)
        starts.append(start)
