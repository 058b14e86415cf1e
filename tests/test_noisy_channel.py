"""Of what the beams find, that is taken which the translator of the other direction thinks best, too."""

import math

import numpy as np
import pytest

import toolkit
from toolkit.errors import ConfigError
from toolkit.noisy_channel import BEAMS
from toolkit.tokenization.carrying import Carrier

TEXTS = ["My mother is at home.", "The boy eats rice. I am here.", "I want two cups of tea."]


@pytest.fixture(scope="module")
def both():
    """Two translators; which languages the second has read makes no difference to the rule."""
    return toolkit.load("en-ne-small"), toolkit.load("en-ne")


@pytest.mark.parametrize("weight", [0.0, 0.5, 5.0])
def test_the_choice_is_that_of_the_formula(both, weight):
    translator, reverse = both
    chosen = translator.translate_n(TEXTS, reverse=reverse, reverse_weight=weight, split_sentences=False)
    every = translator.translate_n(TEXTS, num_beams=BEAMS, num_return_sequences=BEAMS, split_sentences=False)
    moved = 0
    for text, [first], group in zip(TEXTS, chosen, every, strict=True):
        back = [one.score for one in reverse.score([each.text for each in group], [text] * len(group))]
        scores = [each.log_prob / len(each.token_log_probs) + weight * q for each, q in zip(group, back, strict=True)]
        best = int(np.argmax(scores))
        assert first.text == group[best].text
        assert first.score == pytest.approx(scores[best], abs=1e-4)
        moved += best > 0
    if weight > 1:  # else nothing was tested
        assert moved > 0


def test_sentences_of_a_text_are_chosen_by_themselves_and_n_best_are_in_order(both):
    translator, reverse = both
    settings = {"reverse": reverse, "reverse_weight": 3.0, "num_beams": 4}
    whole = translator.translate(TEXTS[1], **settings)
    assert whole == " ".join(translator.translate(TEXTS[1].split(". ")[0] + ".", **settings).split()) + " " + (
        translator.translate("I am here.", **settings)
    )
    found = translator.translate_n(TEXTS[0], num_return_sequences=3, **settings)
    assert len(found) == 3
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    assert found[0].text == translator.translate(TEXTS[0], **settings)
    assert translator.translate(["", "  "], **settings) == ["", ""]


def test_nothing_that_is_carried_over_is_lost_for_it(both):
    _, translator = both
    texts = ["Call Zorbrick at 6:45.", "Zorbrick paid 517 rupees."]
    found = translator.translate(texts, reverse=both[0], reverse_weight=50.0)
    assert all(number in text for number, text in zip(("६:४५", "५१७"), found, strict=True))


def test_a_blank_translation_is_never_chosen(both, monkeypatch):
    translator, reverse = both
    real = translator.translate_n(TEXTS[0], num_beams=2, num_return_sequences=2)
    search = translator._generate

    def with_a_blank(*arguments):
        return [[group[0]._replace(ids=[], log_prob=0.0), *group[1:]] for group in search(*arguments)]

    monkeypatch.setattr(translator, "_generate", with_a_blank)
    assert translator.translate(TEXTS[0], reverse=reverse, num_beams=2) == real[1].text != ""


def test_what_does_not_fit_together_is_refused(both):
    translator, reverse = both
    for settings, message in (
        ({"do_sample": True}, "leave out one of both"),
        ({"reverse_weight": -1.0}, "at least 0"),
        ({"reverse_weight": math.nan}, "must be a number"),
        ({"reverse_weight": "much"}, "must be a number"),
    ):
        with pytest.raises(ConfigError, match=message):
            translator.translate(TEXTS, reverse=reverse, **settings)
    assert isinstance(reverse.tokenizer.carrier, Carrier)
    with pytest.raises(ConfigError, match="the same language"):
        reverse.translate(TEXTS, reverse=reverse)
    with pytest.raises(ConfigError, match="translate texts"):
        toolkit.load("en-ne-small", ids=True).translate(["5 6"], reverse=reverse)
