"""Of what is drawn, that is taken which the others resemble most."""

import numpy as np
import pytest
from sacrebleu.metrics import CHRF

import toolkit
from toolkit.errors import ConfigError
from toolkit.minimum_risk import mutual_chrf

TEXTS = ["My mother is at home.", "The boy eats rice. I am here.", "He works in a bank in the city."]
DRAWN = {"do_sample": True, "temperature": 1.5, "seed": 3}


@pytest.fixture(scope="module")
def translator():
    return toolkit.load("en-ne-small")


def test_chrf_is_that_of_sacrebleu():
    texts = ["म घर जान्छु।", "म घर गएँ।", "ऊ", "म अहिले घर जाँदै छु।", "aaaa aaa", "aa"]
    reference = CHRF()
    expected = [[reference.sentence_score(one, [other]).score / 100 for other in texts] for one in texts]
    np.testing.assert_allclose(mutual_chrf(texts), expected, atol=1e-6)
    np.testing.assert_array_equal(mutual_chrf(["", "a", " "]), [[1, 0, 1], [0, 1, 0], [1, 0, 1]])


def test_the_choice_is_that_of_the_formula(translator):
    every = translator.translate_n(TEXTS, num_return_sequences=6, split_sentences=False, **DRAWN)
    chosen = translator.translate_n(TEXTS, mbr_samples=6, split_sentences=False, **DRAWN)
    moved = 0
    for group, [found] in zip(every, chosen, strict=True):
        means = mutual_chrf([each.text for each in group]).mean(axis=1)
        assert found.text == group[int(means.argmax())].text
        assert found.score == pytest.approx(means.max())
        moved += means.argmax() > 0
    assert moved > 0  # else nothing was tested
    assert translator.translate(TEXTS, mbr_samples=6, split_sentences=False, **DRAWN) == [
        each[0].text for each in chosen
    ]


def test_several_are_in_order_and_a_blank_text_stays_blank(translator):
    found = translator.translate_n(TEXTS[0], mbr_samples=5, num_return_sequences=3, **DRAWN)
    assert len(found) == 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert translator.translate(["", TEXTS[0]], mbr_samples=5, **DRAWN) == ["", found[0].text]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"mbr_samples": 4}, "add do_sample"),
        ({"mbr_samples": 4, "do_sample": True, "temperature": 0}, "add do_sample"),
        ({"mbr_samples": 1, "do_sample": True}, "at least 2"),
        ({"mbr_samples": True, "do_sample": True}, "at least 2"),
        ({"mbr_samples": 2.0, "do_sample": True}, "at least 2"),
        ({"mbr_samples": -3, "do_sample": True}, "at least 2"),
        ({"mbr_samples": 2, "do_sample": True, "num_return_sequences": 3}, "draw more"),
    ],
)
def test_settings_that_are_no_choice_are_told(translator, settings, told):
    with pytest.raises(ConfigError, match=told):
        translator.translate_n(TEXTS[0], **settings)
