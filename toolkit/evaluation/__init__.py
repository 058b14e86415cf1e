"""Evaluation: scores that others can reproduce, how sure they are, what to compare them with, and replies judged."""

from toolkit.evaluation.lookup import Baseline, look_up, nearest
from toolkit.evaluation.scores import (
    Bucket,
    Difference,
    Interval,
    Scores,
    Tokenization,
    bleu_chrf,
    by_length,
    compare,
    corpus_scores,
    intervals,
    matches,
    normalise_for_match,
    sentence_statistics,
    worst,
)

__all__ = [
    "Baseline",
    "Bucket",
    "Difference",
    "Interval",
    "Scores",
    "Tokenization",
    "bleu_chrf",
    "by_length",
    "compare",
    "corpus_scores",
    "intervals",
    "look_up",
    "matches",
    "nearest",
    "normalise_for_match",
    "sentence_statistics",
    "worst",
]
