"""What BLEU, chrF and exact match are computed from, sentence by sentence.

All three are functions of sums over sentences. So the score of any selection of sentences (a bucket of lengths, a
bootstrap sample, a single sentence) needs no text any more: it is a function of a few numbers for each.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np

from toolkit.errors import DataError
from toolkit.evaluation.scores import normalise_for_match
from toolkit.tokenization.normal_form import normal_form

METRICS = ("bleu", "chrf", "exact_match")
WORD_ORDER, CHARACTER_ORDER, BETA = 4, 6, 2  # sacreBLEU's defaults

# Columns: words of the hypothesis, words of the reference, matching and all word n-grams of the hypothesis for each
# order; then n-grams of the hypothesis, of the reference and of both for each order of characters; then exact match.
_CHRF = 2 + 2 * WORD_ORDER
_EXACT = _CHRF + 3 * CHARACTER_ORDER
COLUMNS = _EXACT + 1


def sentence_statistics(references: Sequence[str], hypotheses: Sequence[str]) -> np.ndarray:
    """The statistics of every sentence, (B, COLUMNS) in float64; texts are compared in Unicode normal form C.

    Raises DataError for unequal numbers of sentences.
    """
    if len(references) != len(hypotheses):
        raise DataError(
            f"there are {len(references)} references for {len(hypotheses)} hypotheses: each line needs its counterpart"
        )
    from sacrebleu.metrics import BLEU

    bleu = BLEU(tokenize="13a", effective_order=True)  # the order is for its own score of a sentence, not for counts
    table = np.zeros((len(references), COLUMNS))
    for place, (reference, hypothesis) in enumerate(zip(references, hypotheses, strict=True)):
        reference, hypothesis = map(normal_form, (reference, hypothesis))
        counted = bleu.sentence_score(hypothesis, [reference])
        table[place] = [
            counted.sys_len,
            counted.ref_len,
            *counted.counts,
            *counted.totals,
            *_character_counts(reference, hypothesis),
            normalise_for_match(reference) == normalise_for_match(hypothesis),
        ]
    return table


def corpus_scores(sums: np.ndarray, sentences: np.ndarray | int) -> dict[str, np.ndarray]:
    """Scores from 0 to 100 of selections of sentences, by metric, each (R,).

    sums: the statistics added up over each selection, (R, COLUMNS). sentences: how many each has. The formulas are
    sacreBLEU's: BLEU with exponential smoothing, chrF with effective order.
    """
    return {
        "bleu": _bleu(sums[:, :_CHRF]),
        "chrf": _chrf(sums[:, _CHRF:_EXACT]),
        "exact_match": 100 * sums[:, _EXACT] / sentences,
    }


def _character_counts(reference: str, hypothesis: str) -> list[int]:
    """How many n-grams the hypothesis, the reference and both have, for every order; white space does not count."""
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
    """Brevity penalty times the geometric mean of the precisions (Papineni et al. 2002, section 2.3).

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
    """F score of mean precision and mean recall, recall weighing BETA times as much (Popović 2015).

    The means are over the orders of which both sides have an n-gram.
    """
    hypothesis, reference, matches = (sums[:, side::3] for side in range(3))
    both = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(both.sum(axis=1), 1)
    precision = (np.where(both, matches, 0) / np.maximum(hypothesis, 1)).sum(axis=1) / orders
    recall = (np.where(both, matches, 0) / np.maximum(reference, 1)).sum(axis=1) / orders
    weighted = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / np.where(weighted > 0, weighted, 1)
