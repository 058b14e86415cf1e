"""Pairs as ids, grouped into batches of about equal work."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from toolkit.display import short_repr
from toolkit.errors import ConfigError


class Example(NamedTuple):
    """A pair as ids, without BOS and EOS, int32, shapes (S,) and (T,)."""

    source: np.ndarray
    target: np.ndarray

    __repr__ = short_repr


def lengths_of(examples: Sequence[Example], indices: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Count the tokens of every source and of every target of the examples with these indices, each (B,)."""
    if hasattr(examples, "source_lengths"):  # on the disk, where no example should be touched for this
        return examples.source_lengths[indices].astype(np.int64), examples.target_lengths[indices].astype(np.int64)
    chosen = [examples[index] for index in indices]
    source = np.fromiter((len(example.source) for example in chosen), dtype=np.int64, count=len(chosen))
    target = np.fromiter((len(example.target) for example in chosen), dtype=np.int64, count=len(chosen))
    return source, target


def target_ids(examples: Sequence[Example]) -> Iterator[np.ndarray]:
    """Yield the ids of all targets, some at a time."""
    if hasattr(examples, "target_ids"):
        return examples.target_ids()
    return (example.target for example in examples)


def epoch_batches(
    examples: Sequence[Example], tokens_per_batch: int, rng: "np.random.Generator", repeats: np.ndarray | None = None
) -> list[np.ndarray]:
    """Cut one epoch into batches -> arrays of indices into `examples`, each index exactly once.

    Examples of similar length go into the same batch, and a batch is as long as `tokens_per_batch` target tokens
    (the end marker of each included) allow; an example longer than that is a batch of its own. Within a batch,
    examples are sorted by (target length, source length), so that equal lengths lie side by side. Which of
    similar examples meet, and the order of the batches, are drawn from `rng` and differ from epoch to epoch.

    repeats: (examples,) how often the epoch has each example instead of once: 2 is twice, 0.5 is for one of two
        examples, drawn anew for every epoch, 2.5 is twice and for one of two once more. All ones change nothing.

    Raises ConfigError for a budget below one token.
    """
    if tokens_per_batch < 1:
        raise ConfigError(f"tokens_per_batch is {tokens_per_batch}: a batch holds at least one token")
    chosen = np.arange(len(examples))
    if repeats is not None and (repeats != 1).any():
        chosen = np.repeat(chosen, _times(repeats, rng))
    if len(chosen) == 0:
        return []
    source, target = lengths_of(examples, chosen)
    # Sorting by lengths blurred by a few percent lets neighbours change places and draws the order of equal ones.
    order = np.lexsort((rng.random(len(chosen)), _blur(source, rng), _blur(target, rng)))
    starts = _cut(target[order] + 1, tokens_per_batch)
    batch_of = np.zeros(len(chosen), dtype=np.int64)
    batch_of[starts[1:]] = 1
    order = order[np.lexsort((source[order], target[order], np.cumsum(batch_of)))]
    batches = np.split(chosen[order], starts[1:])
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
    source, target = lengths_of(examples, indices)
    turn, place = np.divmod(np.arange(len(indices)), parts)
    receiver = np.empty(len(indices), dtype=np.intp)
    receiver[np.argsort(-(source + target), kind="stable")] = np.where(turn % 2 == 0, place, parts - 1 - place)
    order = np.lexsort((source, target))
    return [indices[order[receiver[order] == part]] for part in range(parts)]


def cut_batch(indices: np.ndarray, examples: Sequence[Example], parts: int) -> list[np.ndarray]:
    """Cut a batch into `parts`, a power of two, of about as many tokens each, every one of similar lengths.

    Attention is computed for all sequences of a length together, so that a small part of few lengths takes less time
    than one of many. Short and long parts alternate (place i has the part whose number is i with its bits reversed):
    so neighbours, which a worker gets, have about as much to do as any others. Every part is sorted by (target length,
    source length); some may be empty.
    """
    indices = np.asarray(indices, dtype=np.intp)
    source, target = lengths_of(examples, indices)
    order = np.lexsort((source, target))
    tokens = (source + target + 1)[order]  # one more, so that there is no part of empty examples only
    part = (np.cumsum(tokens) - tokens / 2) * parts // max(tokens.sum(), 1)
    digits = parts.bit_length() - 1
    reversed_bits = [int(f"{place:0{digits}b}"[::-1], 2) if digits else 0 for place in range(parts)]
    return [indices[order[part == number]] for number in reversed_bits]


def _times(repeats: np.ndarray, rng: "np.random.Generator") -> np.ndarray:
    """Draw the number of times that each example comes: a fraction is rounded up with its probability.

    The roundings are drawn together (systematic sampling in random order), so that the epoch is never longer or
    shorter than the sum of `repeats` by more than one.
    """
    whole = np.floor(repeats).astype(np.int64)
    order = rng.permutation(len(repeats))
    ticks = np.floor(np.cumsum((repeats - whole)[order], dtype=np.float64) + rng.random()).astype(np.int64)
    whole[order] += np.diff(ticks, prepend=0)
    return whole


def _blur(lengths: np.ndarray, rng: "np.random.Generator") -> np.ndarray:
    """Lengthen some of the lengths a little: by one for a short sentence, by up to 5 % + 1 for a long one."""
    return (lengths + rng.random(len(lengths)) * (1 + 0.05 * lengths)).astype(np.int64)


def _cut(tokens: np.ndarray, budget: int) -> np.ndarray:
    """Find the starts of batches that consecutive examples fill up to `budget` tokens."""
    ends = np.cumsum(tokens)
    starts = [0]
    while True:
        full = ends[starts[-1] - 1] if starts[-1] else 0
        start = max(int(np.searchsorted(ends, full + budget, side="right")), starts[-1] + 1)
        if start >= len(tokens):
            return np.array(starts)
        starts.append(start)
