import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import ENGLISH, NEPALI
from toolkit.data import token_stream as module
from toolkit.data.token_stream import WordEncoder, marked, stream_encoder
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.special import BOS, EOS

# Pieces that reach over line ends: "-\n-" and ".\n\n" become one token.
LINES = [*ENGLISH, *NEPALI, "- a\n- b-\n-", "rice.\n\nShe"] * 20
TOKENIZERS = {
    "unigram": SentencePieceTokenizer.train(LINES, 420, "unigram"),
    "bpe": SentencePieceTokenizer.train(LINES, 420, "bpe"),
    "character": CharacterTokenizer("ab.-\n \u0301\u00e1\u00e9\u1e41\u2581" + "".join(LINES)),
    "byte": ByteTokenizer(),
}
WORDS = ["rice", ".", "\n", "\n\n", "-", " ", "  ", " She", "म", " केटा", "a", "\u0301", "\u2581"]
TEXTS = st.lists(
    st.lists(st.sampled_from(WORDS), max_size=12).map(lambda words: unicodedata.normalize("NFC", "".join(words))),
    min_size=1,
    max_size=6,
)


@pytest.mark.parametrize("kind", TOKENIZERS)
@given(texts=TEXTS)
def test_ids_of_many_texts_are_those_of_each(kind, texts):
    encoder = stream_encoder(TOKENIZERS[kind])
    for _ in range(2):  # the second time, all words are known
        ids, lengths = encoder.encode(texts)
        assert [part.tolist() for part in np.split(ids, lengths.cumsum()[:-1])] == TOKENIZERS[kind].encode_batch(texts)


def test_some_pieces_of_this_test_reach_over_line_ends():
    pieces = {TOKENIZERS["bpe"].piece(index) for index in range(420)}
    assert any("\n" in piece[:-1] for piece in pieces)


def test_words_are_forgotten_when_there_are_many(monkeypatch):
    monkeypatch.setattr(module, "_REMEMBERED", 50)
    tokenizer = TOKENIZERS["unigram"]
    encoder = WordEncoder(tokenizer)
    for number in range(100):
        text = f"rice {number} She {number * 7}"
        assert encoder.encode([text])[0].tolist() == tokenizer.encode(text)
        assert len(encoder._after_space) < 30


@given(texts=st.lists(st.tuples(st.lists(st.integers(20, 30), max_size=3), st.booleans(), st.booleans()), min_size=1))
def test_marks_stand_where_documents_begin_and_end(texts):
    ids = [token for tokens, _, _ in texts for token in tokens]
    lengths = [len(tokens) for tokens, _, _ in texts]
    begin, end = ([text[which] for text in texts] for which in (1, 2))
    found, counts = marked(np.array(ids, np.uint16), np.array(lengths), np.array(begin), np.array(end))
    whole = [[BOS] * begins + tokens + [EOS] * ends for tokens, begins, ends in texts]
    assert found.tolist() == [token for tokens in whole for token in tokens]
    assert found.dtype == np.uint16
    assert counts.tolist() == [len(tokens) for tokens in whole]
