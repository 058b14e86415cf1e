"""The shipped everyday translators: what everybody types first, numbers, names, and what they doubt."""

import re

import numpy as np
import pytest

import toolkit
from tests.benchmarks.everyday import folded, folded_words, unlisted_names
from toolkit.data.embedded import embedded
from toolkit.data.lines import read_lines
from toolkit.evaluation import bleu_chrf, matches

# What any of these may become: the register of the corpus, in its several wordings.
FIRST = {
    "Hello": ["नमस्ते"],
    "How are you?": ["तपाईंलाई कस्तो छ?", "तपाईं कस्तो हुनुहुन्छ?"],
    "Thank you.": ["धन्यवाद।"],
    "What is your name?": ["तपाईंको नाम के हो?"],
    "My name is John and I am from America.": ["मेरो नाम जोन हो र म अमेरिकाबाट हुँ।"],
    "My name is Emma.": ["मेरो नाम एमा हो।"],
    "My name is Tom and I'm from Canada.": ["मेरो नाम टम हो र म क्यानडाबाट हुँ।"],
    "I'm Lukas and I live in Berlin.": ["म लुकास हुँ र म बर्लिनमा बस्छु।", "म लुकास हुँ र बर्लिनमा बस्छु।"],
    "where is the bathroom": ["बाथरुम कहाँ छ", "शौचालय कहाँ छ"],
    "I don't understand.": ["मैले बुझिनँ।", "म बुझ्दिनँ।"],
    "How much is this?": ["यसको कति हो?", "यसको कति पर्छ?", "यो कति हो?"],
    "I love you": ["म तपाईंलाई माया गर्छु"],
    "I am a boy": ["म केटा हुँ"],
}


FIRST_NEPALI = {
    "नमस्ते": ["Hello", "Hi", "Namaste"],
    "तपाईंलाई कस्तो छ?": ["How are you?", "How are you feeling?"],
    "धन्यवाद।": ["Thank you.", "Thanks."],
    "तपाईंको नाम के हो?": ["What's your name?", "What is your name?"],
    "शौचालय कहाँ छ?": ["Where is the toilet?", "Where's the toilet?"],
    "मैले बुझिनँ।": ["I do not understand.", "I don't understand.", "I didn't understand."],
    "यसको कति पर्छ?": ["How much does it cost?", "How much is it?", "How much does this cost?"],
    "म मासु खाँदिनँ": ["I don't eat meat"],
    "म मासु खान्न": ["I don't eat meat"],
    "बिस्तारै बोल्नुस्": ["Speak slowly", "Please speak slowly", "Talk slowly", "Speak quietly", "Speak softly"],
    "मेरो फोन नम्बर 9841234567 हो।": ["My phone number is 9841234567."],
}


@pytest.fixture(scope="module")
def back():
    return toolkit.load("ne-en")


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


@pytest.mark.parametrize("nepali", FIRST_NEPALI)
def test_what_is_typed_first_in_nepali_is_right(back, nepali):
    assert back.translate(nepali, num_beams=4) in FIRST_NEPALI[nepali]


def test_from_nepali_it_is_as_good_as_its_readme_says_however_it_is_typed(back, corpus):
    references = [line.split("\t") for line in read_lines(corpus / "valid.references.en")][::2]
    sources = read_lines(corpus / "valid.ne")[::2]
    typed = [text.replace("नुहोस्", "नुस्").replace("ँ", "ं").replace("ी", "ि").replace("हरू", "हरु") for text in sources]
    for texts in sources, typed:
        found = back.translate(texts, split_sentences=False)
        assert bleu_chrf(references, found).chrf > 78


def test_names_are_never_lost_on_the_way_to_english(back, corpus):
    sources = read_lines(corpus / "names-test.ne")[::20]
    found = [group[0] for group in back.translate_n(sources, split_sentences=False)]
    assert not any(each.confidence.lost for each in found)
    assert back.translate("मेरो नाम Jörg हो।").count("Jörg") == 1  # what is in Latin letters stays


def test_numbers_and_addresses_are_carried_over(model):
    numbers = np.random.default_rng(7).integers(2, 10**6, 20)
    texts = model.translate([f"I have {number} rupees." for number in numbers])
    written = ["".join("०१२३४५६७८९"[int(digit)] for digit in str(number)) for number in numbers]
    assert [[*re.findall("[०-९]+", text)] for text in texts] == [[each] for each in written]
    assert "sita.rai@example.org" in model.translate("My address is sita.rai@example.org.")


def test_names_that_it_never_read_are_spelled(corpus):
    model = toolkit.load("en-ne")
    assert model.speller.spell("Adam") == "एडम"  # as listed, until it is taken out of the list
    names = unlisted_names(model, corpus)[::30]
    assert not model.speller.lists("adam")
    texts = model.translate(read_lines(corpus / "names-test.en")[::30])
    good = [
        any(folded(each) in folded_words(text) for each in name["devanagari"])
        for name, text in zip(names, texts, strict=True)
    ]
    assert np.mean(good) > 0.6


def test_countries_are_carried_over_both_ways(model, back):
    here = {"France": "फ्रान्स", "Italy": "इटाली", "Russia": "रुस", "Japan": "जापान", "Spain": "स्पेन", "Turkey": "टर्की"}
    there = {f"She lives in {one}.": f"उनी {other}मा बस्छिन्।" for one, other in here.items()}
    assert model.translate([*there]) == [*there.values()]
    assert back.translate([*there.values()]) == [*there]


def test_languages_and_nations_are_known(model):
    said = {"French": "फ्रेन्च", "Spanish": "स्पेनिस", "Japanese": "जापानी भाषा", "Arabic": "अरबी", "Hindi": "हिन्दी"}
    assert model.translate([f"I am learning {one}." for one in said]) == [f"म {one} सिक्दै छु।" for one in said.values()]
    assert model.translate(["Are you Indian?", "They are Dutch tourists."]) == [
        "के तपाईं भारतीय हुनुहुन्छ?",
        "उनीहरू डच पर्यटक हुन्।",
    ]


def test_what_is_typed_in_a_hurry_is_read_as_what_is_meant(model, back):
    assert model.translate("I lsot the key to my rooom.") == model.translate("I lost the key to my room.")
    assert back.translate("उनीहरू घर जादै छन") == back.translate("उनीहरू घर जाँदै छन्")


def test_a_name_is_not_cut_off_after_its_first_letter(model):
    assert len(model.spell("Shaughnessy")) > 3  # whose end the model puts there, when it takes the likeliest each time


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
