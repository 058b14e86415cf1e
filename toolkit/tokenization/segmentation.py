"""Segmentations of a text: the pieces that it can be cut into, and random cuts (subword regularisation).

The library samples too, but its newer versions draw other segmentations in every process whatever the seed, and a run
that is resumed must meet the ones it would have met. So the draws are our own, from the pieces and their scores.

No piece reaches over a space (see `words`), so that the words of a text are segmented independently.
"""

import heapq
import math
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import accumulate

import numpy as np

from toolkit.tokenization.normal_form import normal_form

SPACE_MARK = "\u2581"  # how SentencePiece writes a space; a piece has it in front, if at all
UNKNOWN_PENALTY = 10.0  # how far a character without a piece lies below the worst piece: the library's value

_WORDS_SEARCHED = 1_000_000  # that are remembered, about 100 MB: texts have few new words after the first million
_LATTICES_KEPT = 20_000  # about 50 MB

Scores = Mapping[str, float]  # log-probability of every piece; for BPE, the higher the earlier it is merged
Lattice = list[tuple[list[float], list[int]]]  # for every end: cumulative probabilities of the pieces, their starts


def occurring_pieces(pieces: Collection[str], texts: Iterable[str]) -> set[str]:
    """Find the pieces that occur anywhere in the texts, so that some segmentation may use them.

    `pieces` is looked up in, so give a set or the like. Every different word is searched once.
    """
    longest = max(map(len, pieces), default=0)
    found: set[str] = set()
    seen: set[str] = set()
    for text in texts:
        sections = normal_form(text).split(SPACE_MARK)  # a real ▁ is in no piece
        new = {word for section in sections for word in words(section)} - seen
        for word in new:
            for start in range(len(word)):
                ends = range(start + 1, min(start + longest, len(word)) + 1)
                found.update(part for end in ends if (part := word[start:end]) in pieces)
        seen |= new
        if len(seen) > _WORDS_SEARCHED:
            seen.clear()
    return found


def words(text: str) -> list[str]:
    """Cut a text without a real ▁, as SentencePiece reads it, before every space: no piece reaches beyond."""
    return [word for word in text.replace(" ", f" {SPACE_MARK}").split(" ") if word]


def uniforms(rng: "np.random.Generator") -> Iterator[float]:
    """Yield numbers between 0 and 1, drawn in blocks."""
    while True:
        yield from rng.random(256).tolist()


class UnigramSampler:
    """Samples x with P(x)^alpha / Σ P(x)^alpha over all segmentations of a word (Kudo 2018, section 3.2).

    Forward filtering, backward sampling: with F(0) = 0 and F(e) = log Σ exp(F(s) + alpha · score(s..e)) over the pieces
    that end at e, the last piece begins at s with probability exp(F(s) + alpha · score(s..e) - F(e)), and so on to the
    front. What this needs of a word is remembered.
    """

    def __init__(self, scores: Scores):
        self._scores = scores
        self._longest = max(map(len, scores), default=1)
        self._unknown = min(scores.values(), default=0.0) - UNKNOWN_PENALTY
        self._lattices: dict[tuple[str, float], Lattice] = {}

    def __call__(self, word: str, alpha: float, draws: Iterator[float]) -> list[str]:
        """Segment a word; a character without a piece is a part of its own."""
        lattice = self._lattices.get((word, alpha))
        if lattice is None:
            if len(self._lattices) >= _LATTICES_KEPT:
                self._lattices.clear()
            lattice = self._lattices[word, alpha] = self._lattice(word, alpha)
        parts, end = [], len(word)
        while end:
            cumulative, starts = lattice[end]
            start = starts[bisect_right(cumulative, next(draws))] if len(starts) > 1 else starts[0]
            parts.append(word[start:end])
            end = start
        return parts[::-1]

    def _lattice(self, word: str, alpha: float) -> Lattice:
        forward, lattice = [0.0], [([], [])]
        for end in range(1, len(word) + 1):
            arcs = {
                start: forward[start] + alpha * self._scores[word[start:end]]
                for start in range(max(0, end - self._longest), end)
                if word[start:end] in self._scores
            }
            if end - 1 not in arcs:  # with every character a part, every word has a segmentation
                arcs[end - 1] = forward[end - 1] + alpha * self._unknown
            highest = max(arcs.values())
            weights = [math.exp(value - highest) for value in arcs.values()]
            total = sum(weights)
            forward.append(highest + math.log(total))
            # Without the last value, which is 1 but for rounding: no draw lies beyond it.
            lattice.append(([weight / total for weight in accumulate(weights[:-1])], list(arcs)))
        return lattice


def bpe_sample(scores: Scores, word: str, alpha: float, draws: Iterator[float]) -> list[str]:
    """Segment a word by BPE that leaves out a merge with probability alpha when it is due (Provilkov et al. 2020).

    A character without a piece is a part of its own.
    """
    parts: list[str] = list(word)  # a part that was merged into the one in front is empty
    after = list(range(1, len(word) + 1))
    before = list(range(-1, len(word) - 1))
    due: list[tuple[float, int, str]] = []  # merges that are possible, the best and leftmost first

    def offer(left: int) -> None:
        if left >= 0 and after[left] < len(word):
            merged = parts[left] + parts[after[left]]
            if merged in scores:
                heapq.heappush(due, (-scores[merged], left, merged))

    for left in range(len(word)):
        offer(left)
    while due:
        _, left, merged = heapq.heappop(due)
        right = after[left]
        is_past = not parts[left] or right == len(word) or parts[left] + parts[right] != merged
        if is_past or next(draws) < alpha:
            continue
        parts[left], parts[right], after[left] = merged, "", after[right]
        if after[left] < len(word):
            before[after[left]] = left
        offer(before[left])
        offer(left)
    return [part for part in parts if part]


Sampler = Callable[[str, float, Iterator[float]], list[str]]


def sample_ids(
    text: str, alpha: float, sampler: Sampler, ids: Mapping[str, int], first_byte: int, draws: Iterator[float]
) -> list[int]:
    """Draw a segmentation of a text without a real ▁, as ids; what has no piece is spelled in bytes.

    Raises UnicodeEncodeError for a lone surrogate.
    """
    found: list[int] = []
    for word in words(text):
        for part in sampler(word, alpha, draws):
            found += [ids[part]] if part in ids else [first_byte + byte for byte in part.encode()]
    return found
