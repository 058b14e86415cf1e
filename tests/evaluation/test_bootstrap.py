"""Intervals hold what they say they hold, and a p-value is small where a difference is real and only there."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF
from sacrebleu.significance import PairedTest

from toolkit.errors import ConfigError, DataError
from toolkit.evaluation import bleu_chrf, bootstrap, compare, intervals, sentence_statistics
from toolkit.evaluation.statistics import COLUMNS

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
    monkeypatch.setattr(bootstrap, "_DRAWS", 7 * len(statistics[0]))
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
