"""Texts are divided into the sentences that a person marks, and nothing of them is lost."""

import re
import time
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.data.marked_texts import between, cases, marked, paragraphs
from toolkit.data.sentence_boundaries import divided, sentence_names

# Words, marks and signs that the rules know, in any order, and letters of any kind.
SIGNS = " \n\t.!?…।॥\"'“”()[]«»-•*#:,@/’aIक१5ः好\u2028\u200d\xa0"
WORDS = "... a.m Mr No U.S The the said डा छ 1. (a) 😀 www.a.b e\u0301 भने"
PIECES = st.sampled_from([*SIGNS, *WORDS.split(), ". ", "। ", "\r\n"])
TEXTS = st.lists(PIECES, max_size=30).map("".join) | st.text(max_size=30)


@pytest.mark.parametrize("text", cases())
def test_a_line_is_divided_as_it_is_marked(text):
    expected = marked(text)
    found = divided(expected.text)
    assert found.sentences == expected.sentences
    assert found.is_whole == (expected.sentences == [expected.text.strip()])


def test_paragraphs_are_divided_as_they_are_marked():
    assert len(paragraphs()) == 50
    for text in paragraphs():
        assert divided(marked(text).text).sentences == marked(text).sentences
        assert between(text) == "".join(divided(marked(text).text).parts(["{}"] * len(marked(text).sentences)))


def test_the_marked_texts_are_in_normal_form_and_of_both_scripts():
    assert len(cases()) > 150
    for texts in cases(), paragraphs():
        assert all(unicodedata.is_normalized("NFC", text) for text in texts)
        assert (
            min(sum(bool(re.search(letters, text)) for text in texts) for letters in ("[a-z]", "[क-ह]"))
            >= len(texts) / 4
        )


@given(text=TEXTS)
@settings(deadline=None, max_examples=300, derandomize=True)
def test_nothing_is_lost_and_a_sentence_is_what_it_is_alone(text):
    found = divided(text)
    assert "".join(found.parts()) == text
    assert found.joined(found.sentences) == unicodedata.normalize("NFC", text.strip())
    places = [place for span in found.spans for place in span]
    assert places == sorted(places)
    for sentence in found.sentences:
        assert sentence == sentence.strip() != ""
        assert any(map(str.isalpha, sentence))
        assert len(sentence.splitlines()) == 1 or not set(sentence) & set("\r\n\u2028\u2029")
        assert divided(sentence).sentences == [sentence]
    whole = divided(text, split=False)
    assert whole.sentences == [text.strip()] * bool(text.strip())


@given(text=TEXTS)
@settings(deadline=None, max_examples=100)
def test_lines_are_divided_by_themselves(text):
    lines = re.split("[\r\n\u2028\u2029]+", text)
    assert divided(text).sentences == [sentence for line in lines for sentence in divided(line).sentences]


@pytest.mark.parametrize(
    "piece", [".", "a. ", "(", '"', '. " ', "A.", "- ", "1. ", "a.b ", "x", "।", " ", "\n", "ः", "?!(", "No. 5 "]
)
def test_the_time_grows_with_the_length_of_a_text_alone(piece):
    begin = time.process_time()
    divided(piece * (60_000 // len(piece)))
    assert time.process_time() - begin < 1  # with its square, it would take minutes


def test_sentences_are_named_by_their_place():
    texts = [divided(text) for text in ("One.", "", "---", "One. Two.")]
    name = sentence_names(texts, "text {}".format)
    assert [name(number) for number in (1, 2, 3)] == ["text 1", "text 4, sentence 1", "text 4, sentence 2"]
