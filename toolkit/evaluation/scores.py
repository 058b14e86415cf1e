"""Scores of translations: BLEU and chrF as sacreBLEU computes them (Post 2018), exact match, and how sure they are.

All three are functions of sums over sentences. So the score of any selection of sentences (a bucket of lengths, a
bootstrap sample, a single sentence) needs no text any more: it is a function of a few numbers for each sentence.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import Literal

import numpy as np

from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.normal_form import normal_form

References = str | Sequence[str]  # of a line: one, or several that are as good
Tokenization = Literal["13a", "intl", "char", "none"]  # of sacreBLEU, for BLEU

FINAL_MARKS = ".?!।"
METRICS = ("bleu", "chrf", "exact_match")
WORD_ORDER, CHARACTER_ORDER, BETA = 4, 6, 2  # sacreBLEU's defaults

# Columns of the statistics: words of the hypothesis, words of the reference, matching and all word n-grams of the
# hypothesis for each order; then n-grams of the hypothesis, of the reference and of both for each order of characters;
# then exact match.
_CHRF = 2 + 2 * WORD_ORDER
_EXACT = _CHRF + 3 * CHARACTER_ORDER
COLUMNS = _EXACT + 1

# The longest sentence of each bucket of `by_length`, in words; the last bucket has no end.
BOUNDS = (3, 6, 10, 15, 25, 40)
CONFIDENCE = 0.95
_DRAWS = 1 << 22  # drawn at a time: 32 MB


@dataclass(frozen=True)
class Scores:
    """Corpus scores from 0 to 100, higher is better, with the signatures to compute BLEU and chrF again elsewhere."""

    bleu: float
    chrf: float
    exact_match: float
    bleu_signature: str
    chrf_signature: str

    def to_dict(self) -> dict[str, float | str]:
        """Return the fields by name, as they go into metrics.json."""
        return asdict(self)


def bleu_chrf(references: Sequence[References], hypotheses: Sequence[str], tokenize: Tokenization = "13a") -> Scores:
    """Score plain (detokenized) hypotheses against one reference each, or several, all in Unicode normal form C.

    BLEU with a tokenization of sacreBLEU, chrF with its defaults (character 6-grams, beta 2), exact match in percent of
    the lines, compared after `normalise_for_match`. Of several references n-grams of BLEU may come from any, chrF
    counts against the nearest one, and a match with one of them is a match.

    Raises DataError for unequal numbers of lines, for none, and for a line without a reference.
    """
    _check_pairs(references, hypotheses)
    if not references:
        raise DataError("there is nothing to score: give at least one reference and its hypothesis")
    from sacrebleu.metrics import BLEU, CHRF

    wanted, hypotheses = [*map(_listed, references)], [*map(normal_form, hypotheses)]
    streams = [[*stream] for stream in zip_longest(*wanted)]  # the k-th reference of every line; None where it has less
    bleu, chrf = BLEU(tokenize=tokenize), CHRF()
    return Scores(
        bleu=bleu.corpus_score(hypotheses, streams).score,
        chrf=chrf.corpus_score(hypotheses, streams).score,
        exact_match=100 * sum(map(matches, wanted, hypotheses)) / len(references),
        bleu_signature=str(bleu.get_signature()),
        chrf_signature=str(chrf.get_signature()),
    )


def _listed(references: References) -> list[str]:
    """List the references of a line, in normal form C.  Raises DataError where there is none."""
    found = [references] if isinstance(references, str) else list(references)
    if not found:
        raise DataError("a line has no reference: give at least one for each")
    return [*map(normal_form, found)]


def matches(references: Sequence[str], hypothesis: str) -> bool:
    """Say if a hypothesis is one of its references, but for the final mark."""
    return normalise_for_match(hypothesis) in map(normalise_for_match, references)


def _check_pairs(references: Sequence[References], hypotheses: Sequence[str]) -> None:
    if len(references) != len(hypotheses):
        raise DataError(
            f"there are {len(references)} references for {len(hypotheses)} hypotheses: each line needs its counterpart"
        )


def stripped(text: str) -> str:
    """Put a text into normal form C, without outer white space."""
    return normal_form(text).strip()


def normalise_for_match(text: str) -> str:
    """Put a text into normal form C, without outer white space and without its final mark (one of . ? ! ।)."""
    text = stripped(text)
    return text[:-1].rstrip() if text.endswith(tuple(FINAL_MARKS)) else text


def sentence_statistics(
    references: Sequence[References], hypotheses: Sequence[str], tokenize: Tokenization = "13a"
) -> np.ndarray:
    """Count the statistics of every sentence, (B, COLUMNS) in float64, as `bleu_chrf` compares texts.

    Raises DataError for unequal numbers of sentences, and for one without a reference.
    """
    _check_pairs(references, hypotheses)
    from sacrebleu.metrics import BLEU

    bleu = BLEU(tokenize=tokenize, effective_order=True)  # the order is for its own score of a sentence, not for counts
    table = np.zeros((len(references), COLUMNS))
    for place, (given, hypothesis) in enumerate(zip(references, hypotheses, strict=True)):
        wanted, hypothesis = _listed(given), normal_form(hypothesis)
        counted = bleu.sentence_score(hypothesis, wanted)
        table[place] = [
            counted.sys_len,
            counted.ref_len,
            *counted.counts,
            *counted.totals,
            *_nearest_counts(wanted, hypothesis),
            matches(wanted, hypothesis),
        ]
    return table


def corpus_scores(sums: np.ndarray, sentences: np.ndarray | int) -> dict[str, np.ndarray]:
    """Compute scores from 0 to 100 of selections of sentences, by metric, each (R,).

    sums: the statistics added up over each selection, (R, COLUMNS). sentences: how many each has. The formulas are
    sacreBLEU's: BLEU with exponential smoothing, chrF with effective order.
    """
    return {
        "bleu": _bleu(sums[:, :_CHRF]),
        "chrf": _chrf(sums[:, _CHRF:_EXACT]),
        "exact_match": 100 * sums[:, _EXACT] / sentences,
    }


def _nearest_counts(references: Sequence[str], hypothesis: str) -> list[int]:
    """Count n-grams of characters against the reference of the highest chrF; of equals the first."""
    counts = [_character_counts(reference, hypothesis) for reference in references]
    return counts[int(np.argmax(_chrf(np.array(counts, np.float64))))]


def _character_counts(reference: str, hypothesis: str) -> list[int]:
    """Count the n-grams of the hypothesis, of the reference and of both, for every order; white space is left out."""
    reference, hypothesis = "".join(reference.split()), "".join(hypothesis.split())
    counts: list[int] = []
    for order in range(1, CHARACTER_ORDER + 1):
        ours, theirs = (
            Counter(text[begin : begin + order] for begin in range(len(text) - order + 1))
            for text in (hypothesis, reference)
        )
        # sacreBLEU leaves out n-grams of the hypothesis where the reference is too short to have any.
        counts += [ours.total() if theirs else 0, theirs.total(), (ours & theirs).total()]
    return counts


def _bleu(sums: np.ndarray) -> np.ndarray:
    """Multiply brevity penalty and geometric mean of the precisions (Papineni et al. 2002, section 2.3).

    The k-th order without a match counts 1 / 2^k matches (the smoothing of NIST's mteval).
    """
    length, wanted = sums[:, 0], sums[:, 1]
    matches, totals = sums[:, 2 : 2 + WORD_ORDER], sums[:, 2 + WORD_ORDER :]
    smoothed = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=1))
    defined = (totals > 0).all(axis=1) & (matches > 0).any(axis=1)
    logs = np.log(smoothed / np.maximum(totals, 1)).mean(axis=1)
    brevity = np.minimum(0, 1 - wanted / np.maximum(length, 1))
    return np.where(defined, 100 * np.exp(logs + brevity), 0)


def _chrf(sums: np.ndarray) -> np.ndarray:
    """Compute the F score of mean precision and mean recall, recall weighing BETA times as much (Popović 2015).

    The means are over the orders of which both sides have an n-gram.
    """
    hypothesis, reference, matches = (sums[:, side::3] for side in range(3))
    both = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(both.sum(axis=1), 1)
    precision = (np.where(both, matches, 0) / np.maximum(hypothesis, 1)).sum(axis=1) / orders
    recall = (np.where(both, matches, 0) / np.maximum(reference, 1)).sum(axis=1) / orders
    weighted = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)


@dataclass(frozen=True)
class Bucket:
    """The sentences of `shortest` to `longest` words (None: however long), their number and their scores."""

    shortest: int
    longest: int | None
    sentences: int
    bleu: float
    chrf: float
    exact_match: float


def by_length(statistics: np.ndarray, texts: Sequence[str]) -> list[Bucket]:
    """Score by the number of words (between white space) in `texts`, shortest first; empty buckets are left out.

    statistics: one row for each text, from `sentence_statistics`. Each bucket is scored as a corpus of its own.
    """
    words = np.array([len(text.split()) for text in texts], np.int64)
    place = np.searchsorted(BOUNDS, words)
    buckets = []
    for bucket in np.unique(place):
        own = statistics[place == bucket]
        shortest = BOUNDS[bucket - 1] + 1 if bucket else 0
        longest = BOUNDS[bucket] if bucket < len(BOUNDS) else None
        buckets.append(Bucket(shortest, longest, len(own), **_whole(own)))
    return buckets


def worst(statistics: np.ndarray, count: int) -> list[tuple[int, float]]:
    """Find the `count` sentences of the lowest chrF: (index, chrF), worst first; of equals the earlier comes first.

    A sentence whose hypothesis and reference are both empty is not an error and is left out.
    """
    chrf = corpus_scores(statistics, 1)["chrf"]
    order = np.argsort(chrf, kind="stable")
    order = order[statistics[order, :-1].any(axis=1)]  # the last column, exact match, counts two blanks as equal
    return [(int(index), float(chrf[index])) for index in order[:count]]


@dataclass(frozen=True)
class Interval:
    """A score and the bounds between which 95 % of the resampled scores lie."""

    score: float
    low: float
    high: float


@dataclass(frozen=True)
class Difference(Interval):
    """The score of the first of two systems minus that of the second, with bounds.

    p_value: how often a difference as large, in either direction, arises by the choice of sentences where there is
    none; below 0.05 is commonly called significant.
    """

    p_value: float


def intervals(statistics: np.ndarray, samples: int = 1000, seed: int = 1) -> dict[str, Interval]:
    """Score a system, with confidence intervals, by metric: how far a score would move with another test set.

    statistics: one row for each sentence, from `sentence_statistics`. samples: how many test sets of the same size
    are drawn from the sentences, with replacement (Koehn 2004). The same seed draws the same ones.

    Raises ConfigError for less than one sample or a negative seed, and DataError if there is no sentence.
    """
    drawn = _resampled([statistics], samples, seed)[0]
    whole = _whole(statistics)
    return {metric: Interval(whole[metric], *_bounds(drawn[metric])) for metric in METRICS}


def compare(ours: np.ndarray, theirs: np.ndarray, samples: int = 1000, seed: int = 1) -> dict[str, Difference]:
    """Compare one system with another on the same sentences, by metric: the paired bootstrap.

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
    """Score every system on the same resampled test sets, each (samples,)."""
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
        drawn = (rng.integers(sentences, size=sentences) for _ in range(min(step, samples - first)))
        times = np.stack([np.bincount(each, minlength=sentences) for each in drawn]).astype(np.float64)
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
