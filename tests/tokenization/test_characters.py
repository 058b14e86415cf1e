"""Characters and bytes as tokens."""

import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokenization.traps import CORPUS, TEXTS, TRAPS
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, characters, load_tokenizer, special
from toolkit.tokenization.special import SPECIAL_TOKENS


def tokenizer_for(kind, texts):
    return ByteTokenizer() if kind is ByteTokenizer else CharacterTokenizer.train([*texts, "x"])


@pytest.fixture(params=[CharacterTokenizer, ByteTokenizer], ids=["character", "byte"])
def tokenizer(request):
    return tokenizer_for(request.param, [*CORPUS, *TRAPS])


@pytest.mark.parametrize("kind", [CharacterTokenizer, ByteTokenizer])
@given(texts=st.lists(TEXTS, max_size=4))
def test_every_text_comes_back_and_yields_no_special_id(kind, texts):
    tokenizer = tokenizer_for(kind, texts)
    encoded = tokenizer.encode_batch(texts)
    assert [tokenizer.decode(ids) for ids in encoded] == [unicodedata.normalize("NFC", text) for text in texts]
    assert encoded == [tokenizer.encode(text) for text in texts]
    assert all(16 <= index < tokenizer.vocab_size for ids in encoded for index in ids)


def test_arrays_are_the_same_ids_in_two_bytes_each(tokenizer):
    text = "".join(TRAPS + tuple(CORPUS)) * 50
    array = tokenizer.encode_array(text)
    assert array.dtype == np.uint16
    assert array.tolist() == tokenizer.encode(text)
    assert tokenizer.decode(array) == unicodedata.normalize("NFC", text)
    assert tokenizer.encode_array("").shape == (0,)


def test_control_ids_are_skipped_and_lost_text_is_shown(tokenizer):
    ids = tokenizer.encode("म केटा")
    framed = [special.BOS, *ids[:2], special.PAD, special.USER, *ids[2:], special.EOS, *special.SPARE, special.UNK]
    assert tokenizer.decode(framed) == "म केटा\ufffd"
    assert tokenizer.decode([]) == ""


@pytest.mark.parametrize("beyond", [-1, 10**6])
def test_ids_outside_the_vocabulary_are_refused(tokenizer, beyond):
    for ask in (lambda index: tokenizer.decode([20, index]), tokenizer.piece, tokenizer.surface):
        with pytest.raises(IndexError, match=rf"id {beyond} is outside the vocabulary of {tokenizer.vocab_size}"):
            ask(beyond)
    with pytest.raises(IndexError):
        tokenizer.decode([tokenizer.vocab_size])


def test_there_is_only_one_segmentation(tokenizer):
    assert tokenizer.possible_ids(CORPUS).tolist() == []
    assert tokenizer.encode_batch(["boy"], 0.0, 3) == [tokenizer.encode("boy")]
    with pytest.raises(ConfigError, match=r"alpha is 0\.1: .* only one way"):
        tokenizer.encode_batch(["boy"], 0.1)


def test_special_tokens_have_their_fixed_ids_and_are_not_written(tokenizer):
    assert [tokenizer.piece(index) for index in range(16)] == list(special.SPECIAL_TOKENS)
    assert all(tokenizer.surface(index) == b"" for index in special.CONTROL_IDS)


def test_half_a_surrogate_pair_is_refused_by_name(tokenizer):
    with pytest.raises(DataError, match=r"character 3 of 'ab\\ud800' is half of a surrogate pair"):
        tokenizer.encode("ab\ud800")


def test_saved_pickled_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "model")
    tokenizer.encode("boy")  # the tables that this makes do not travel
    for other in (load_tokenizer(tmp_path / "new" / "model"), pickle.loads(pickle.dumps(tokenizer))):
        assert type(other) is type(tokenizer)
        assert [other.piece(index) for index in range(other.vocab_size)] == [
            tokenizer.piece(index) for index in range(tokenizer.vocab_size)
        ]
        assert other.encode("".join(TRAPS)) == tokenizer.encode("".join(TRAPS))
    assert len(pickle.dumps(tokenizer)) < 1000


def test_saving_below_a_file_is_refused(tokenizer, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be made a directory"):
        tokenizer.save(tmp_path / "file" / "model")


def test_a_byte_is_shown_by_its_character_or_its_number():
    tokenizer = ByteTokenizer()
    assert [tokenizer.piece(index) for index in tokenizer.encode("a< \né")] == [
        "a",
        "<",
        *["<0x20>", "<0x0A>", "<0xC3>", "<0xA9>"],
    ]
    assert tokenizer.vocab_size == 272
    assert len({tokenizer.piece(index) for index in range(272)}) == 272


@given(content=st.binary(max_size=12))
def test_each_byte_that_is_no_part_of_a_character_becomes_one_replacement(content):
    decoded = ByteTokenizer().decode([16 + byte for byte in content])
    valid = content.decode("utf-8", "ignore")
    assert [letter for letter in decoded if letter != "\ufffd"] == [letter for letter in valid if letter != "\ufffd"]
    assert decoded.count("\ufffd") - valid.count("\ufffd") == len(content) - len(valid.encode())


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
