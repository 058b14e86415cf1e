"""How good is it? Scores that others can reproduce, how sure they are, what they are to be compared with, and why."""

from toolkit.evaluation.baseline import Baseline, look_up
from toolkit.evaluation.bootstrap import Difference, Interval, compare, intervals
from toolkit.evaluation.breakdown import Bucket, by_length, worst
from toolkit.evaluation.lookup import nearest
from toolkit.evaluation.scores import Scores, bleu_chrf, normalise_for_match
from toolkit.evaluation.statistics import corpus_scores, sentence_statistics

__all__ = [
    "Baseline",
    "Bucket",
    "Difference",
    "Interval",
    "Scores",
    "bleu_chrf",
    "by_length",
    "compare",
    "corpus_scores",
    "intervals",
    "look_up",
    "nearest",
    "normalise_for_match",
    "sentence_statistics",
    "worst",
]
