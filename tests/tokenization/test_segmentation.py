"""Segmentations are drawn as the papers say, and the pieces that may occur are found."""

import math
from collections import Counter
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.tokenization.test_sentencepiece import CORPUS, TOKENIZERS
from toolkit.tokenization import segmentation
from toolkit.tokenization.segmentation import UnigramSampler, bpe_sample, occurring_pieces, sample_ids, uniforms

PIECES = st.sets(st.text("ab▁", min_size=1, max_size=4).filter(lambda piece: "▁" not in piece[1:]))


@given(names=PIECES, texts=st.lists(st.text("ab ", max_size=12)))
def test_what_occurs_is_found_and_nothing_else(names, texts):
    written = [text.replace(" ", "▁") for text in texts]
    assert occurring_pieces(names, texts) == {name for name in names if any(name in text for text in written)}


def test_a_real_mark_is_no_space():
    assert occurring_pieces({"▁", "▁a", "a", "b"}, ["b▁a"]) == {"a", "b"}


def test_words_are_forgotten_and_pieces_are_not(monkeypatch):
    monkeypatch.setattr(segmentation, "_WORDS_SEARCHED", 1)
    assert occurring_pieces({"a", "b", "c"}, ["a b", "c", "a"]) == {"a", "b", "c"}


SCORES = {"a": -1.0, "b": -2.0, "ab": -1.5, "ba": -2.5, "aba": -4.0}


def segmentations(word):
    """All ways to cut a word."""
    for cuts in product([False, True], repeat=len(word) - 1):
        parts, start = [], 0
        for end, cut in enumerate([*cuts, True], start=1):
            if cut:
                parts.append(word[start:end])
                start = end
        yield tuple(parts)


@pytest.mark.parametrize("alpha", [0.05, 0.5, 1.0, 3.0])
def test_unigram_samples_have_the_distribution_of_the_paper(alpha):
    weights = {
        parts: math.exp(alpha * sum(SCORES[part] for part in parts))
        for parts in segmentations("ababa")
        if all(part in SCORES for part in parts)
    }
    draws, sampler, count = uniforms(np.random.default_rng(0)), UnigramSampler(SCORES), 20_000
    found = Counter(tuple(sampler("ababa", alpha, draws)) for _ in range(count))
    assert found.keys() <= weights.keys()
    for parts, weight in weights.items():
        expected = weight / sum(weights.values())
        assert found[parts] / count == pytest.approx(expected, abs=5 * math.sqrt(expected / count) + 1e-3)


@given(word=st.text("abx", min_size=1, max_size=12), alpha=st.sampled_from([0.01, 0.5, 1.0]), seed=st.integers(0, 99))
@pytest.mark.parametrize("kind", [UnigramSampler, lambda scores: partial(bpe_sample, scores)], ids=["unigram", "bpe"])
def test_parts_are_pieces_or_unknown_characters_and_spell_the_word(kind, word, alpha, seed):
    parts = kind(SCORES)(word, alpha, uniforms(np.random.default_rng(seed)))
    assert "".join(parts) == word
    assert all(part in SCORES or part == "x" for part in parts)


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_at_the_limit_samples_are_the_best_segmentation(kind):
    """Unigram: an infinitely sharp distribution; BPE: no merge is left out."""
    alpha = {"unigram": 1000.0, "bpe": 1e-12}[kind]
    assert TOKENIZERS[kind].encode_batch(CORPUS, alpha, 1) == TOKENIZERS[kind].encode_batch(CORPUS)


def test_bpe_that_leaves_out_every_merge_spells_characters():
    sampler, draws = partial(bpe_sample, SCORES), uniforms(np.random.default_rng(0))
    assert sampler("abab", 1.0, draws) == list("abab")


def test_a_merge_is_left_out_with_the_probability_asked_for():
    sampler, draws = partial(bpe_sample, {"ab": 0.0}), uniforms(np.random.default_rng(0))
    left_out = sum(len(sampler("ab", 0.3, draws)) == 2 for _ in range(5000))
    assert left_out / 5000 == pytest.approx(0.3, abs=0.03)


def test_words_are_cut_independently_and_the_unknown_is_spelled_in_bytes():
    ids = {"a": 300, "▁": 301}
    draws = uniforms(np.random.default_rng(0))
    found = sample_ids("a  é", 1.0, UnigramSampler({"a": -1.0, "▁": -1.0}), ids, 16, draws)
    assert found == [300, 301, 301, *(16 + byte for byte in "é".encode())]


def test_remembered_words_change_nothing(monkeypatch):
    remembered = TOKENIZERS["unigram"].encode_batch(CORPUS, 0.1, 5)
    monkeypatch.setattr(segmentation, "_LATTICES_KEPT", 1)
    assert TOKENIZERS["unigram"].encode_batch(CORPUS, 0.1, 5) == remembered
