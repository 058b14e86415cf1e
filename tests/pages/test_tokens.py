"""Names of tokens: readable, short, and never two of them alike."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.display import visible
from toolkit.pages.writing import LONGEST_LABEL, cells, labels
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, load_tokenizer
from toolkit.tokenization.special import BOS, EOS, UNK, USER


@pytest.fixture(scope="module")
def sentencepiece(tiny_model) -> SentencePieceTokenizer:
    return load_tokenizer(tiny_model)


def test_special_tokens_have_their_names(sentencepiece):
    for tokenizer in (sentencepiece, ByteTokenizer(), CharacterTokenizer("ab")):
        assert labels(tokenizer, [BOS, UNK, USER, EOS]) == ["<s>", "<unk>", "<|user|>", "</s>"]


def test_a_text_can_be_read_from_the_labels(sentencepiece):
    for text in ("I am a boy.", "म केटा हुँ।"):
        shown = "".join(labels(sentencepiece, sentencepiece.encode(text)))
        assert shown.replace("␣", " ").replace("◌", "") == text


def test_what_nobody_sees_is_named():
    characters = CharacterTokenizer(" \n\t\u200d\u00a0ाँक")
    assert labels(characters, characters.encode(" \n\t\u200d\u00a0ाँक")) == [
        "␣", "↵", "⇥", "<U+200D>", "<U+00A0>", "◌ा", "◌ँ", "क",
    ]  # fmt: skip
    assert labels(ByteTokenizer(), ByteTokenizer().encode("aम ")) == ["a", "<E0>", "<A4>", "<AE>", "␣"]


def test_two_ids_are_never_called_alike():
    characters = CharacterTokenizer(" ␣\n↵")
    ids = characters.encode("␣ ↵\n␣")
    shown = labels(characters, ids)
    assert len(set(shown)) == len(set(ids)) == 4
    assert shown[0] == shown[4] == f"␣#{ids[0]}"


@settings(max_examples=40)
@given(st.lists(st.integers(0, 299), max_size=30))
def test_names_tell_ids_apart_and_fit(sentencepiece, ids):
    shown = labels(sentencepiece, ids)
    assert len(set(shown)) == len(set(ids))
    assert all(0 < cells(each.partition("#")[0] or each) <= LONGEST_LABEL and visible(each) == each for each in shown)


def test_no_id_outside_the_vocabulary_has_a_name(sentencepiece):
    with pytest.raises(IndexError):
        labels(sentencepiece, [sentencepiece.vocab_size])
