import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.data.sentences import sentence_ids, sentence_text, spaced, tidy
from toolkit.tokenization import SentencePieceTokenizer


@pytest.fixture(scope="module")
def tokenizer() -> SentencePieceTokenizer:
    lines = ["the boy sees the dog", "dog sees boy", "Dog and Boy", "केटा कुकुर देख्छ।", "कुकुर"]
    return SentencePieceTokenizer.train([spaced(line) for line in lines * 4], 340)


@given(text=st.text(alphabet=" \t\n\rab\u00e9e\u0301", max_size=20))
@settings(deadline=None)
def test_tidy_text_stays_as_it_is(text):
    tidied = tidy(text)
    assert tidy(tidied) == tidied
    assert tidied.split() == unicodedata.normalize("NFC", text).split()
    assert "  " not in tidied


def test_a_word_is_the_same_token_wherever_it_stands(tokenizer):
    first, _, last = sentence_ids(tokenizer, ["dog sees", "sees", "sees dog"])
    assert first == last[::-1]
    assert len(first) == 2


def test_blank_sentences_have_no_ids_and_white_space_makes_no_difference(tokenizer):
    assert sentence_ids(tokenizer, ["", " \n\t", "the  dog", " the dog\n"]) == [
        [],
        [],
        *sentence_ids(tokenizer, ["the dog"] * 2),
    ]


def test_case_is_ignored_on_request_only(tokenizer):
    lower = sentence_ids(tokenizer, ["dog and boy"])
    assert sentence_ids(tokenizer, ["Dog AND Boy"], ignore_case=True) == lower
    assert sentence_ids(tokenizer, ["Dog AND Boy"]) != lower
    assert spaced("केटा।", ignore_case=True) == " केटा।"


@given(text=st.text(max_size=40))
@settings(deadline=None)
def test_what_is_read_can_be_written(text):
    tokenizer = SentencePieceTokenizer.train(["some text"], 300)
    text = tidy(text.encode("utf-8", "ignore").decode())
    assert sentence_text(tokenizer, sentence_ids(tokenizer, [text])[0]) == tidy(text)
