"""How far a score would move with another test set of the same kind, by resampling its sentences (Koehn 2004)."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.evaluation.statistics import METRICS, corpus_scores

CONFIDENCE = 0.95
_DRAWS = 1 << 22  # drawn at a time: 32 MB


@dataclass(frozen=True)
class Interval:
    """A score and the bounds between which 95 % of the resampled scores lie."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """How much better the first of two systems is, with bounds.

    p_value: how often a difference as large, in either direction, arises by the choice of sentences where there is
    none; below 0.05 is commonly called significant.
    """

    p_value: float


def intervals(statistics: np.ndarray, samples: int = 1000, seed: int = 1) -> dict[str, Interval]:
    """The scores of a system with their confidence intervals, by metric.

    statistics: one row for each sentence, from `sentence_statistics`. samples: how many test sets of the same size
    are drawn, with replacement. The same seed draws the same ones.

    Raises ConfigError for less than one sample or a negative seed, and DataError if there is no sentence.
    """
    drawn = _resampled([statistics], samples, seed)[0]
    whole = _whole(statistics)
    return {metric: Interval(whole[metric], *_bounds(drawn[metric])) for metric in METRICS}


def compare(ours: np.ndarray, theirs: np.ndarray, samples: int = 1000, seed: int = 1) -> dict[str, Difference]:
    """How much better one system is than another on the same sentences, by metric: the paired bootstrap.

    Both are scored on the same resampled test sets. The p-value is two-sided: the resampled differences, shifted to
    mean zero, are what would be seen if the systems were equally good (Riezler and Maxwell 2005); p = (1 + those at
    least as large as the real difference, in either direction) / (1 + samples), so that a system compared with itself
    has p = 1. It is not sacreBLEU's, which takes absolute values before it shifts them and so counts one direction
    only: its p-values are about half as large, and below 0.05 twice as often where there is no difference.

    Raises what `intervals` raises, and DataError for unequal numbers of sentences.
    """
    if len(ours) != len(theirs):
        raise DataError(f"{len(ours)} sentences of one system, {len(theirs)} of the other: compare them on the same")
    drawn, other = _resampled([ours, theirs], samples, seed)
    whole, against = _whole(ours), _whole(theirs)
    differences = {}
    for metric in METRICS:
        real, resampled = whole[metric] - against[metric], drawn[metric] - other[metric]
        as_large = np.abs(resampled - resampled.mean()) >= abs(real)
        p_value = (1 + int(as_large.sum())) / (1 + samples)
        differences[metric] = Difference(real, *_bounds(resampled), p_value)
    return differences


def _resampled(systems: Sequence[np.ndarray], samples: int, seed: int) -> list[dict[str, np.ndarray]]:
    """The scores of every system on the same resampled test sets, each (samples,)."""
    if samples < 1:
        raise ConfigError(f"{samples} bootstrap samples give no interval: choose at least one, usually 1000")
    if seed < 0:
        raise ConfigError(f"the seed is {seed}: choose a whole number from 0")
    sentences = len(systems[0])
    if not sentences:
        raise DataError("there is nothing to score: give at least one reference and its hypothesis")
    rng = np.random.default_rng(seed)
    sums: list[list[np.ndarray]] = [[] for _ in systems]
    step = max(1, _DRAWS // sentences)
    for first in range(0, samples, step):
        # How often each sentence is in each test set: the sums are then one matrix product.
        times = np.stack(
            [
                np.bincount(rng.integers(sentences, size=sentences), minlength=sentences)
                for _ in range(min(step, samples - first))
            ]
        ).astype(np.float64)
        for system, parts in zip(systems, sums, strict=True):
            parts.append(times @ system)
    return [corpus_scores(np.concatenate(parts), sentences) for parts in sums]


def _whole(statistics: np.ndarray) -> dict[str, float]:
    scores = corpus_scores(statistics.sum(axis=0, keepdims=True), len(statistics))
    return {metric: float(score[0]) for metric, score in scores.items()}


def _bounds(scores: np.ndarray) -> tuple[float, float]:
    tail = 50 * (1 - CONFIDENCE)
    low, high = np.percentile(scores, [tail, 100 - tail])
    return float(low), float(high)
