"""Where a system is weak: its scores by sentence length, and its worst sentences."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.evaluation.statistics import corpus_scores

# The longest sentence of each bucket, in words; the last bucket has no end.
BOUNDS = (3, 6, 10, 15, 25, 40)


@dataclass(frozen=True)
class Bucket:
    """The sentences of `shortest` to `longest` words (None: however long), how many they are, and their scores."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    chrf: float
    exact_match: float


def by_length(statistics: np.ndarray, texts: Sequence[str]) -> list[Bucket]:
    """Scores by the number of words (between white space) in `texts`, shortest first; empty buckets are left out.

    statistics: one row for each text, from `sentence_statistics`. Each bucket is scored as a corpus of its own.
    """
    words = np.array([len(text.split()) for text in texts], np.int64)
    place = np.searchsorted(BOUNDS, words)
    buckets = []
    for bucket in np.unique(place):
        inside = place == bucket
        count = int(inside.sum())
        scores = corpus_scores(statistics[inside].sum(axis=0, keepdims=True), count)
        buckets.append(
            Bucket(
                shortest=BOUNDS[bucket - 1] + 1 if bucket else 0,
                longest=BOUNDS[bucket] if bucket < len(BOUNDS) else None,
                sentences=count,
                **{metric: float(score[0]) for metric, score in scores.items()},
            )
        )
    return buckets


def worst(statistics: np.ndarray, count: int) -> list[tuple[int, float]]:
    """The `count` sentences of the lowest chrF: (index, chrF) from the worst on; of equals the earlier comes first.

    A sentence whose hypothesis and reference are both empty is not an error and is left out.
    """
    chrf = corpus_scores(statistics, 1)["chrf"]
    order = np.argsort(chrf, kind="stable")
    order = order[statistics[order, :-1].any(axis=1)]  # the last column, exact match, counts two blanks as equal
    return [(int(index), float(chrf[index])) for index in order[:count]]
