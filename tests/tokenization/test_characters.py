import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokenization.traps import TEXTS
from toolkit.errors import DataError
from toolkit.tokenization import CharacterTokenizer, characters
from toolkit.tokenization.special import SPECIAL_TOKENS


@given(texts=st.lists(TEXTS, max_size=4))
def test_ids_are_the_special_tokens_then_the_characters_by_code_point(texts):
    found = sorted({letter for text in texts for letter in unicodedata.normalize("NFC", text)} | {"x"})
    tokenizer = CharacterTokenizer.train(iter([*texts, "x"]))
    assert [tokenizer.piece(index) for index in range(tokenizer.vocab_size)] == [*SPECIAL_TOKENS, *found]
    assert CharacterTokenizer(set(found)).characters == tokenizer.characters == "".join(found)


def test_a_long_text_is_learned_from_to_its_end(monkeypatch):
    monkeypatch.setattr(characters, "_AT_ONCE", 5)
    assert CharacterTokenizer.train(["ab" * 7 + "e\u0301z"]).characters == "abzé"
    # A letter and its mark on the two sides of a cut are one character.
    assert CharacterTokenizer.train(["abcde\u0301"]).characters == "abcdé"


def test_marks_that_stand_beside_their_letters_in_the_alphabet_stay_apart():
    tokenizer = CharacterTokenizer("\u09c7\u09be")  # written in this order they are one character in normal form C
    assert [tokenizer.encode(mark) for mark in "\u09be\u09c7"] == [[16], [17]]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("aжb", "'ж' (U+0436) in 'aжb'"),
        ("ab\x07", r"'\x07' (U+0007)"),
        ("b" * 99 + "👍", "'👍' (U+1F44D)"),
        ("aé", "(U+00E9)"),
    ],
)
def test_a_character_never_seen_is_named(text, named):
    tokenizer = CharacterTokenizer("ab")
    for encode in (tokenizer.encode, tokenizer.encode_array, lambda text: tokenizer.encode_batch(["a", text])):
        with pytest.raises(DataError) as caught:
            encode(text)
        assert named in str(caught.value)
        assert "is not among the 2 characters" in str(caught.value)
        assert len(str(caught.value)) < 250
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("texts", [[], [""], ["", ""]])
def test_nothing_to_learn_from_is_refused(texts):
    with pytest.raises(DataError, match="no text to learn from"):
        CharacterTokenizer.train(texts)
    with pytest.raises(DataError, match="no text to learn from"):
        CharacterTokenizer("")


def test_more_characters_than_two_bytes_can_count_are_refused():
    points = [*range(0xD800), *range(0xE000, 0x14000)]
    most = CharacterTokenizer(map(chr, points[: 2**16 - 16]))
    assert most.vocab_size == 2**16
    assert most.encode_array(chr(points[2**16 - 17]))[0] == 2**16 - 1
    with pytest.raises(DataError, match="different characters, a character tokenizer takes 65520 at most"):
        CharacterTokenizer(map(chr, points))


def test_half_a_surrogate_pair_is_no_character():
    for make in (CharacterTokenizer, lambda text: CharacterTokenizer.train([text])):
        with pytest.raises(DataError, match="half of a surrogate pair"):
            make("ab\ud800")
