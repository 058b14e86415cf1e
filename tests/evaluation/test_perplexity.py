"""Perplexity: every token is predicted once, whatever windows it is read in."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolkit.errors import ConfigError
from toolkit.evaluation.perplexity import (
    MarkedTexts,
    WindowLosses,
    batches,
    perplexity,
    pooled,
    windows,
)
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS, EOS

T = 8


@pytest.fixture(scope="module")
def model():
    sizes = {"vocab_size": 30, "d_model": 8, "layers": 2, "num_heads": 2, "d_ff": 12, "max_length": T}
    model = GPT(GPTConfig(**sizes, output_bias=True))
    model.allocate(np.float64)
    model.vector[:] = np.random.default_rng(0).standard_normal(len(model.vector)) * 0.4
    return model


def cut(texts, length, overlap, pieces=()):
    """The windows of texts that come in pieces of these sizes, in turn."""
    parts = []
    for text in texts:
        rest, sizes = list(text), list(pieces)
        while sizes and len(rest) > sizes[0]:
            size = sizes.pop(0)
            parts.append((rest[:size], False))
            rest = rest[size:]
        parts.append((rest, True))
    return list(windows(parts, length, overlap))


TEXTS = st.lists(st.lists(st.integers(0, 29), max_size=40), max_size=4)


@given(texts=TEXTS, length=st.integers(1, 9), overlap=st.integers(0, 8), pieces=st.lists(st.integers(0, 15)))
def test_every_token_but_the_first_of_a_text_is_predicted_once_in_order(texts, length, overlap, pieces):
    overlap = min(overlap, length - 1)
    found = cut(texts, length, overlap, pieces)
    assert [token for window in found for token in window.ids[1 + window.known :]] == [
        token for text in texts for token in text[1:]
    ]
    assert all(2 <= len(window.ids) <= length + 1 for window in found)
    for window in found:
        assert window.known in (0, overlap)
    assert [window.ids.tolist() for window in found] == [w.ids.tolist() for w in cut(texts, length, overlap)]


def losses(model, found):
    return [*map(WindowLosses(model), batches(found))]


def alone(model, text, overlap):
    """-log p of every token but the first, each from what its window has before it: the definition, one by one."""
    total, stride = 0.0, T - overlap
    for place in range(1, len(text)):
        window = 0 if place <= T else -(-(place - T) // stride)
        context = text[window * stride : place]
        tape = Tape()
        x = model.read(np.array(context), Rows(np.array([len(context)])), tape)
        logits = model.output.logits(x[-1:], tape)[0]
        total += math.log(np.exp(logits - logits.max()).sum()) + logits.max() - logits[text[place]]
    return total


@pytest.mark.parametrize("overlap", [0, 3, T - 1])
def test_the_loss_is_that_of_every_token_from_what_stands_before_it(model, overlap):
    rng = np.random.default_rng(1)
    texts = [rng.integers(0, 30, length).tolist() for length in (1, 2, 5, T, T + 1, T + 2, 29)]
    sums = losses(model, cut(texts, T, overlap))
    assert sum(tokens for _, tokens in sums) == sum(len(text) - 1 for text in texts)
    expected = sum(alone(model, text, overlap) for text in texts)
    assert sum(loss for loss, _ in sums) == pytest.approx(expected, rel=1e-9)


def test_more_overlap_gives_more_context():
    """A model of a repeated word predicts it the better the more of it it has seen."""
    text = list(range(20)) * 3
    shortest = [min(window.known + 1 for window in cut([text], T, overlap)[1:]) for overlap in range(T)]
    assert shortest == list(range(1, T + 1))


def test_batches_of_windows_do_not_change_the_figures(model, monkeypatch):
    texts = [np.random.default_rng(seed).integers(0, 30, 50).tolist() for seed in range(3)]
    whole = np.sum(losses(model, cut(texts, T, 2)), axis=0)
    monkeypatch.setattr("toolkit.evaluation.perplexity._BATCH_TOKENS", 1)
    sums = losses(model, cut(texts, T, 2))
    assert len(sums) > 10
    np.testing.assert_allclose(np.sum(sums, axis=0), whole, rtol=1e-12)


@pytest.mark.parametrize("overlap", [-1, T, T + 5])
def test_an_overlap_that_does_not_fit_is_named(overlap):
    with pytest.raises(ConfigError, match=f"overlap is {overlap}"):
        cut([[1, 2, 3]], T, overlap)


class Letters:
    """A tokenizer of single letters."""

    def encode(self, text):
        return [ord(letter) for letter in text]


def test_marks_stand_at_the_ends_of_documents_and_nowhere_else():
    pieces = [("ab", False), ("c", True), ("d", True), ("", True), ("e", False)]
    a, b, c, d, e = range(ord("a"), ord("f"))
    texts = MarkedTexts(pieces, Letters(), begin=True, end=True, separator=2)
    assert [*texts] == [([BOS, a, b], False), ([c, EOS], True), ([BOS, d, EOS], True), ([BOS, EOS], True),
                        ([BOS, e], False)]  # fmt: skip
    assert texts.bytes == 5 + 3 * 2
    assert [ids for ids, _ in MarkedTexts(pieces, Letters(), begin=False, end=False)] == [[a, b], [c], [d], [], [e]]
    assert MarkedTexts([("नम", True)], Letters(), begin=False, end=False).bytes == 0  # nothing was read yet


def test_bytes_are_those_of_utf8():
    texts = MarkedTexts([("नम", True), ("é", True)], Letters(), begin=False, end=False)
    list(texts)
    assert texts.bytes == 8


def test_the_figures_fit_together():
    found = perplexity(10 * math.log(2), 5, 4)
    assert found.loss == pytest.approx(2 * math.log(2))
    assert found.perplexity == pytest.approx(4)
    assert found.bits_per_byte == pytest.approx(2.5)
    assert perplexity(1e6, 1, 1).perplexity == math.inf
    both = pooled([found, perplexity(3.0, 1, 6)])
    assert (both.tokens, both.bytes) == (6, 10)
    assert both.loss * 6 == pytest.approx(10 * math.log(2) + 3)
