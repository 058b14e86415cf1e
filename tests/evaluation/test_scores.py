import json
import math
import unicodedata

import pytest
from sacrebleu import corpus_bleu, corpus_chrf

from toolkit.errors import DataError
from toolkit.evaluation import bleu_chrf, normalise_for_match

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
