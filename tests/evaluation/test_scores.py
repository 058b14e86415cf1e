"""Scores are sacreBLEU's, of the whole and of any part; intervals and p-values mean what they should."""

import json
import math
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu import corpus_bleu, corpus_chrf
from sacrebleu.metrics import BLEU, CHRF
from sacrebleu.significance import PairedTest

from toolkit.errors import ConfigError, DataError
from toolkit.evaluation import (
    bleu_chrf,
    by_length,
    compare,
    corpus_scores,
    intervals,
    normalise_for_match,
    scores,
    sentence_statistics,
    worst,
)
from toolkit.evaluation.scores import COLUMNS

REFERENCES = ["the cat sat on the mat", "म एउटा केटा हुँ।", "उनी किताब पढ्छिन्।"]
HYPOTHESES = ["the cat sat on a mat", "म केटा हुँ", "उनी किताब पढ्छिन्।"]


def test_bleu_of_a_case_counted_by_hand():
    # 6 words: 5 match; of 5 word pairs 3 (the cat, cat sat, sat on), of 4 triples 2, of 3 quadruples 1. Equal length.
    scores = bleu_chrf(REFERENCES[:1], HYPOTHESES[:1])
    assert math.isclose(scores.bleu, 100 * (5 / 6 * 3 / 5 * 2 / 4 * 1 / 3) ** 0.25)


def test_bleu_pays_for_brevity():
    scores = bleu_chrf(["a b c d e f g h"], ["a b c d"])
    assert math.isclose(scores.bleu, 100 * math.exp(1 - 8 / 4))


def test_chrf_of_a_case_counted_by_hand():
    # "ab" against "abc": 1-grams 2 of 2 and 2 of 3, 2-grams 1 of 1 and 1 of 2; "ab" has no longer ones, they are left
    # out. Mean precision 1, mean recall 7/12, F with beta 2.
    precision, recall = 1.0, (2 / 3 + 1 / 2) / 2
    scores = bleu_chrf(["abc"], ["ab"])
    assert math.isclose(scores.chrf, 100 * 5 * precision * recall / (4 * precision + recall))


def test_scores_are_those_of_sacrebleu():
    scores = bleu_chrf(REFERENCES, HYPOTHESES)
    assert scores.bleu == corpus_bleu(HYPOTHESES, [REFERENCES]).score
    assert scores.chrf == corpus_chrf(HYPOTHESES, [REFERENCES]).score
    assert 0 < scores.bleu < 100
    assert 0 < scores.chrf < 100


def test_signatures_say_how_to_compute_them_again():
    scores = bleu_chrf(REFERENCES, HYPOTHESES)
    assert "nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|version:" in scores.bleu_signature
    assert "nrefs:1|case:mixed|eff:yes|nc:6|nw:0|space:no|version:" in scores.chrf_signature


def test_a_perfect_translation_has_full_marks_in_any_normal_form():
    references = ["café au lait, s'il vous plaît", "क़लम यहाँ छ, किताब त्यहाँ छ"]
    decomposed = [unicodedata.normalize("NFD", text) for text in references]
    assert decomposed != references
    scores = bleu_chrf(decomposed, references)
    assert [scores.bleu, scores.chrf, scores.exact_match] == pytest.approx([100, 100, 100])


def test_exact_match_is_a_percentage_of_lines():
    assert bleu_chrf(REFERENCES, HYPOTHESES).exact_match == pytest.approx(100 / 3)
    assert bleu_chrf(["म जान्छु।", "a", "b", "c"], [" म जान्छु ", "A", "b!", ""]).exact_match == 50


@pytest.mark.parametrize("text", ["म केटा हुँ", "म केटा हुँ।", "म केटा हुँ ।", " म केटा हुँ?\n", "म केटा हुँ !", "म केटा हुँ."])
def test_a_final_mark_and_outer_space_do_not_count(text):
    assert normalise_for_match(text) == "म केटा हुँ"


@pytest.mark.parametrize(
    ("one", "other"), [("a.b", "ab"), ("a..", "a"), ("A", "a"), ("a,", "a"), (".a", "a"), ("a  b", "a b"), ("a", "")]
)
def test_everything_else_counts(one, other):
    assert normalise_for_match(one) != normalise_for_match(other)


def test_a_dictionary_holds_every_score():
    scores = bleu_chrf(REFERENCES, HYPOTHESES)
    assert json.loads(json.dumps(scores.to_dict())) == {
        "bleu": scores.bleu,
        "chrf": scores.chrf,
        "exact_match": scores.exact_match,
        "bleu_signature": scores.bleu_signature,
        "chrf_signature": scores.chrf_signature,
    }


def test_unequal_and_missing_lines_are_refused():
    with pytest.raises(DataError, match="2 references for 1 hypotheses"):
        bleu_chrf(["a", "b"], ["a"])
    with pytest.raises(DataError, match="nothing to score"):
        bleu_chrf([], [])


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


OF_ALL_LENGTHS = ["one", "one two three", "one two three four", "a b c d e f g", "", " ".join("abcdefghij" * 5)]
WRITTEN = ["one", "one three", "one two four four", "a b c d f e g", "", " ".join("abcdefghij" * 4)]


def test_a_bucket_has_the_scores_of_its_sentences_alone():
    buckets = by_length(sentence_statistics(OF_ALL_LENGTHS, WRITTEN), OF_ALL_LENGTHS)
    assert [(one.shortest, one.longest, one.sentences) for one in buckets] == [
        (0, 3, 3),
        (4, 6, 1),
        (7, 10, 1),
        (41, None, 1),
    ]
    for bucket in buckets:
        longest = bucket.longest or 10**9
        inside = [i for i, text in enumerate(OF_ALL_LENGTHS) if bucket.shortest <= len(text.split()) <= longest]
        alone = bleu_chrf([OF_ALL_LENGTHS[i] for i in inside], [WRITTEN[i] for i in inside])
        assert [bucket.bleu, bucket.chrf, bucket.exact_match] == pytest.approx(
            [alone.bleu, alone.chrf, alone.exact_match]
        )


def test_lengths_are_those_of_the_texts_given():
    statistics = sentence_statistics(OF_ALL_LENGTHS, WRITTEN)
    (bucket,) = by_length(statistics, ["w " * 20] * 6)
    assert (bucket.shortest, bucket.longest, bucket.sentences) == (16, 25, 6)


def test_the_worst_come_first_with_their_chrf():
    statistics = sentence_statistics(OF_ALL_LENGTHS, WRITTEN)
    ranked = worst(statistics, 100)
    assert sorted(index for index, _ in ranked) == [0, 1, 2, 3, 5]  # nothing for nothing is no error
    assert [score for _, score in ranked] == sorted(score for _, score in ranked)
    for index, score in ranked:
        assert score == pytest.approx(bleu_chrf([OF_ALL_LENGTHS[index]], [WRITTEN[index]]).chrf)
    assert worst(statistics, 2) == ranked[:2]


def test_equally_bad_ones_keep_their_order():
    assert worst(sentence_statistics(["abc"] * 3, ["x", "abc", "y"]), 2) == [(0, 0), (2, 0)]


WORDS = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]


def system(rng, references, wrong):
    """The references with a share of their words replaced."""
    return [" ".join("zero" if rng.random() < wrong else word for word in text.split()) for text in references]


@pytest.fixture(scope="module")
def statistics():
    """Statistics of three systems on the same 200 references: good, as good, and worse."""
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(200)]
    return [sentence_statistics(references, system(rng, references, wrong)) for wrong in (0.2, 0.2, 0.35)]


def matches(statistics_of_matches):
    """Statistics in which only exact match means something."""
    table = np.zeros((len(statistics_of_matches), COLUMNS))
    table[:, -1] = statistics_of_matches
    return table


def test_the_same_seed_draws_the_same_test_sets(statistics):
    assert intervals(statistics[0], 50, seed=3) == intervals(statistics[0], 50, seed=3)
    assert intervals(statistics[0], 50, seed=3) != intervals(statistics[0], 50, seed=4)


def test_drawing_in_blocks_changes_nothing(statistics, monkeypatch):
    whole = compare(statistics[0], statistics[1], 50)
    monkeypatch.setattr(scores, "_DRAWS", 7 * len(statistics[0]))
    parts = compare(statistics[0], statistics[1], 50)
    for metric, one in whole.items():
        assert vars(parts[metric]) == pytest.approx(vars(one))


def test_the_score_is_that_of_the_whole_and_lies_within_its_interval(statistics):
    references, hypotheses = ["a b c d e f", "म घर जान्छु", "x y z"] * 5, ["a b c d e x", "म घर जान्छु", "x z y"] * 5
    whole, found = bleu_chrf(references, hypotheses), intervals(sentence_statistics(references, hypotheses))
    for metric, interval in found.items():
        assert interval.score == pytest.approx(getattr(whole, metric))
        assert interval.low < interval.score < interval.high


def test_an_interval_of_a_percentage_is_that_of_the_binomial_distribution():
    found = intervals(matches(np.arange(400) < 100), samples=4000)["exact_match"]
    margin = 1.96 * 100 * (0.25 * 0.75 / 400) ** 0.5
    assert found.low == pytest.approx(25 - margin, abs=0.5)
    assert found.high == pytest.approx(25 + margin, abs=0.5)


def test_sentences_that_are_all_alike_leave_no_doubt():
    found = intervals(sentence_statistics(["a b c d"] * 9, ["a b c d"] * 9), samples=20)
    assert all((one.low, one.score, one.high) == pytest.approx((100, 100, 100)) for one in found.values())


def test_a_real_difference_is_significant_and_none_is_not(statistics):
    good, as_good, worse = statistics
    for metric in ("bleu", "chrf"):
        real, none = compare(good, worse)[metric], compare(good, as_good)[metric]
        assert real.p_value < 0.01
        assert 0 < real.low < real.score < real.high
        assert none.p_value > 0.05
        assert none.low < 0 < none.high


def test_the_other_way_round_a_difference_changes_its_sign_only(statistics):
    there, back = compare(statistics[0], statistics[2], 200), compare(statistics[2], statistics[0], 200)
    for metric, one in there.items():
        other = back[metric]
        assert (other.score, other.low, other.high) == pytest.approx((-one.score, -one.high, -one.low))
        assert other.p_value == one.p_value


def test_a_system_is_no_better_than_itself(statistics):
    assert all((one.score, one.p_value) == (0, 1) for one in compare(statistics[0], statistics[0], 50).values())


def test_pairing_sees_what_separate_intervals_hide():
    rng = np.random.default_rng(1)
    theirs = rng.random(400) < 0.5
    ours = theirs | (np.arange(400) % 40 == 0)  # right wherever they are right, and a little more often
    apart = [intervals(matches(one))["exact_match"] for one in (ours, theirs)]
    assert apart[0].low < apart[1].high
    assert compare(matches(ours), matches(theirs))["exact_match"].p_value < 0.05


def test_what_the_help_says_of_sacrebleus_p_is_so(run):
    assert "p is two-sided: sacreBLEU's paired bootstrap gives about half of it" in (
        " ".join(run("evaluate", "--help").out.replace("│", " ").split())
    )
    rng = np.random.default_rng(0)
    references = [" ".join(rng.choice(WORDS, rng.integers(4, 12))) for _ in range(100)]
    good, worse = (system(rng, references, wrong) for wrong in (0.2, 0.22))
    ours = compare(*(sentence_statistics(references, one) for one in (good, worse)), 2000)["chrf"]
    chrf = {"chrF": CHRF(references=[references])}
    theirs = PairedTest([("worse", worse), ("good", good)], chrf, None, test_type="bs", n_samples=2000)()[1]["chrF2"]
    assert theirs[1].score - theirs[0].score == pytest.approx(ours.score)
    assert ours.p_value == pytest.approx(2 * theirs[1].p_value, rel=0.4)


def test_what_cannot_be_drawn_is_refused(statistics):
    with pytest.raises(ConfigError, match="0 bootstrap samples"):
        intervals(statistics[0], 0)
    with pytest.raises(ConfigError, match="seed is -1"):
        intervals(statistics[0], 10, -1)
    with pytest.raises(DataError, match="nothing to score"):
        intervals(statistics[0][:0])
    with pytest.raises(DataError, match="compare them on the same"):
        compare(statistics[0], statistics[1][:5])


SEVERAL = [["the cat sat", "a cat was sitting"], ["hello there"], ["यो राम्रो छ।", "यो असल छ।", "राम्रो छ।"]]
SAID = ["a cat sat", "hello", "यो असल छ"]


@pytest.mark.parametrize("tokenize", ["13a", "intl", "char", "none"])
def test_several_references_a_line_are_scored_as_sacrebleu_does(tokenize):
    scores = bleu_chrf(SEVERAL, SAID, tokenize)
    streams = [[line[place] if place < len(line) else None for line in SEVERAL] for place in range(3)]
    assert scores.bleu == pytest.approx(BLEU(tokenize=tokenize).corpus_score(SAID, streams).score)
    assert scores.chrf == pytest.approx(CHRF().corpus_score(SAID, streams).score)
    assert scores.exact_match == pytest.approx(100 / 3)
    assert "nrefs:var" in scores.chrf_signature
    found = scores_of(sentence_statistics(SEVERAL, SAID, tokenize))
    assert found == pytest.approx((scores.bleu, scores.chrf, scores.exact_match))


def test_the_order_of_references_makes_no_difference_and_a_line_needs_one():
    backward = [line[::-1] for line in SEVERAL]
    assert bleu_chrf(backward, SAID) == bleu_chrf(SEVERAL, SAID)
    for compute in bleu_chrf, sentence_statistics:
        with pytest.raises(DataError, match="no reference"):
            compute([["a"], []], ["a", "b"])
