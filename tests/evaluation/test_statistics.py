"""A score computed from sums of a few numbers for each sentence is the score of sacreBLEU."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics import BLEU, CHRF

from toolkit.errors import DataError
from toolkit.evaluation import bleu_chrf, corpus_scores, sentence_statistics
from toolkit.evaluation.statistics import COLUMNS

words = st.sampled_from(["म", "तिमी", "घर", "।", "book", "a,", "1.5"])
texts = st.one_of(st.text("ab क. ", max_size=12), st.lists(words).map(" ".join))
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=8)


def scores_of(statistics):
    scores = corpus_scores(statistics.sum(axis=0, keepdims=True), len(statistics))
    return [float(scores[metric][0]) for metric in ("bleu", "chrf", "exact_match")]


@given(pairs)
@settings(max_examples=150)
def test_sums_of_statistics_give_the_scores_of_the_whole(pairs):
    references, hypotheses = zip(*pairs, strict=True)
    whole = bleu_chrf(references, hypotheses)
    found = scores_of(sentence_statistics(references, hypotheses))
    assert found == pytest.approx([whole.bleu, whole.chrf, whole.exact_match], abs=1e-9)


@pytest.mark.parametrize("pair", [("", ""), ("", "a"), ("a", ""), ("a b c d", "e f g h"), ("a b c d e", "a b x d e")])
def test_blank_short_and_unrelated_texts_have_the_scores_of_sacrebleu(pair):
    reference, hypothesis = pair
    bleu, chrf, _ = scores_of(sentence_statistics([reference], [hypothesis]))
    assert bleu == pytest.approx(BLEU().corpus_score([hypothesis], [[reference]]).score)
    assert chrf == pytest.approx(CHRF().corpus_score([hypothesis], [[reference]]).score)


def test_several_selections_are_scored_at_once():
    references, hypotheses = ["a b c d e", "म घर जान्छु", "x y z w"], ["a b c d", "म घर", "x y w z"]
    statistics = sentence_statistics(references, hypotheses)
    assert statistics.shape == (3, COLUMNS)
    together = corpus_scores(np.stack([statistics[:2].sum(0), statistics[1:].sum(0)]), np.array([2, 2]))
    assert [together[metric][0] for metric in together] == pytest.approx(scores_of(statistics[:2]))
    assert [together[metric][1] for metric in together] == pytest.approx(scores_of(statistics[1:]))


def test_unequal_numbers_are_refused():
    with pytest.raises(DataError, match="2 references for 1 hypotheses"):
        sentence_statistics(["a", "b"], ["a"])
