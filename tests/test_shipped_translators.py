"""The shipped everyday translator: what everybody types first, numbers, names, and what it doubts."""

import json
import re

import numpy as np
import pytest

import toolkit
from tests.benchmarks.everyday import folded, folded_words
from toolkit.data.embedded import embedded
from toolkit.data.lines import read_lines
from toolkit.evaluation import matches

# What any of these may become: the register of the corpus, in its several wordings.
FIRST = {
    "Hello": ["नमस्ते"],
    "How are you?": ["तपाईंलाई कस्तो छ?"],
    "Thank you.": ["धन्यवाद।"],
    "What is your name?": ["तपाईंको नाम के हो?"],
    "My name is John and I am from America.": ["मेरो नाम जोन हो र म अमेरिकाबाट हुँ।"],
    "where is the bathroom": ["बाथरुम कहाँ छ", "शौचालय कहाँ छ"],
    "I don't understand.": ["मैले बुझिनँ।", "म बुझ्दिनँ।"],
    "How much is this?": ["यसको कति हो?", "यसको कति पर्छ?", "यो कति हो?"],
    "I love you": ["म तपाईंलाई माया गर्छु"],
    "I am a boy": ["म केटा हुँ"],
}


@pytest.fixture(scope="module")
def model():
    return toolkit.load("en-ne")


@pytest.fixture(scope="module")
def corpus():
    return embedded("everyday", quiet=True)


@pytest.fixture(scope="module")
def judged(model, corpus):
    """The validation sentences, translated, and whether each is acceptable."""
    references = [line.split("\t") for line in read_lines(corpus / "valid.references.ne")]
    found = [group[0] for group in model.translate_n(read_lines(corpus / "valid.en"), split_sentences=False)]
    return found, np.array([matches(own, each.text) for own, each in zip(references, found, strict=True)])


@pytest.mark.parametrize("english", FIRST)
def test_what_everybody_types_first_is_right(model, english):
    assert model.translate(english, num_beams=4) in FIRST[english]


def test_numbers_and_addresses_are_carried_over(model):
    numbers = np.random.default_rng(7).integers(2, 10**6, 20)
    texts = model.translate([f"I have {number} rupees." for number in numbers])
    written = ["".join("०१२३४५६७८९"[int(digit)] for digit in str(number)) for number in numbers]
    assert [[*re.findall("[०-९]+", text)] for text in texts] == [[each] for each in written]
    assert "sita.rai@example.org" in model.translate("My address is sita.rai@example.org.")


def test_names_that_it_never_read_are_spelled(model, corpus):
    names = json.loads((corpus / "names-test.json").read_text("utf-8"))[::30]
    texts = model.translate(read_lines(corpus / "names-test.en")[::30])
    good = [
        any(folded(each) in folded_words(text) for each in name["devanagari"])
        for name, text in zip(names, texts, strict=True)
    ]
    assert np.mean(good) > 0.6


def test_it_is_as_good_as_its_readme_says(judged):
    assert judged[1].mean() > 0.4


def test_the_sure_ones_are_right_and_the_wrong_ones_are_not_sure(judged):
    found, right = judged
    sure = np.array([each.confidence.sure for each in found])
    assert right[sure].mean() >= 0.9
    assert (~sure)[~right].mean() >= 0.7


def test_what_is_no_english_is_not_sure(model):
    for text in "Qwzx blorf trundlefix the vlim.", "la la la la la la la":
        assert not model.translate_n(text)[0].confidence.sure


def test_held_out_combinations_of_grammar_are_as_right_as_its_readme_says(model):
    corpus = embedded("en_ne", quiet=True)
    sources, references = (read_lines(corpus / f"test.{side}")[::5] for side in ("en", "ne"))
    texts = model.translate(sources, split_sentences=False)
    assert np.mean([matches([own], text) for own, text in zip(references, texts, strict=True)]) > 0.75
