"""Sampling as a distribution: frequencies of many draws against the exact truncated softmax."""

import numpy as np
import pytest

from tests.decoding import plain, reference
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.decoding.sampling import choose_tokens, nucleus
from toolkit.tokenization.special import BOS, EOS

DRAWS = 40_000
SETTINGS = [
    {},
    {"temperature": 0.5},
    {"temperature": 2.0},
    {"top_k": 1},
    {"top_k": 7},
    {"top_p": 0.3},
    {"top_p": 0.9},
    {"min_p": 0.05},
    {"min_p": 0.5},
    {"temperature": 0.7, "top_k": 20, "top_p": 0.95, "min_p": 0.02},
    {"temperature": 1.5, "top_k": 10, "top_p": 0.8, "min_p": 0.3},
    {"temperature": 0.3, "top_p": 0.99, "min_p": 0.001},
]


def assert_frequencies(tokens, expected):
    """Nothing that has probability 0 is drawn, and the rest passes Pearson's chi-square test.

    With d degrees of freedom the statistic has mean d and variance 2·d: 5 standard deviations, and 8 besides, which few
    degrees need, are exceeded once in some 10⁵ times.
    """
    counts = np.bincount(tokens, minlength=len(expected))
    assert counts[expected == 0].sum() == 0
    likely = expected * len(tokens) >= 5
    observed, wanted = counts[likely], expected[likely] * len(tokens)
    rest = len(tokens) - wanted.sum()
    if rest > 0.5:
        observed, wanted = np.append(observed, counts[~likely].sum()), np.append(wanted, rest)
    freedom = len(wanted) - 1
    assert ((observed - wanted) ** 2 / wanted).sum() <= freedom + 5 * np.sqrt(2 * freedom) + 8


def drawn(logits, seed=0, **settings):
    """DRAWS tokens from one row of logits."""
    config = GenerationConfig(do_sample=True, **{"top_k": 0, "min_p": 0.0} | settings)
    rows = np.broadcast_to(logits, (2000, len(logits)))
    numbers = np.random.default_rng(seed).random((DRAWS // 2000, 2000))
    return np.concatenate([choose_tokens(rows, uniform, config) for uniform in numbers])


@pytest.mark.parametrize("settings", SETTINGS)
@pytest.mark.parametrize("size", [5, 60])
def test_draws_have_the_frequencies_of_the_truncated_softmax(settings, size):
    logits = 2 * np.random.default_rng(size).standard_normal(size).astype(np.float32)
    logits[3] = -np.inf
    assert_frequencies(drawn(logits, **settings), plain.truncated_softmax(logits, **settings))


def test_the_test_would_notice_wrong_distributions():
    """One that is slightly too flat, and one that truncates in another order."""
    logits = 2 * np.random.default_rng(60).standard_normal(60).astype(np.float32)
    with pytest.raises(AssertionError):
        assert_frequencies(drawn(logits, temperature=1.05), plain.truncated_softmax(logits))
    wrong_order = plain.truncated_softmax(np.log(plain.truncated_softmax(logits, top_p=0.8) + 1e-300) / 0.5)
    with pytest.raises(AssertionError):
        assert_frequencies(drawn(logits, temperature=0.5, top_p=0.8), wrong_order)


# Weights 1/2, 1/4, 1/8, 1/8: sums and ratios are exact in binary.
DYADIC = np.log2(np.array([0.125, 0.5, 0.125, 0.25])) * np.log(2)


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"top_p": 0.5}, {1}),  # the first token reaches the sum exactly: nothing comes after it
        ({"top_p": 0.5 + 1e-9}, {1, 3}),
        ({"top_p": 0.75}, {1, 3}),
        ({"top_p": 0.0}, {1}),
        ({"min_p": 0.5}, {1, 3}),  # exactly half as probable as the best is enough
        ({"min_p": 0.5 + 1e-9}, {1}),
        ({"min_p": 0.25}, {0, 1, 2, 3}),  # both of the tied
        ({"min_p": 0.25 + 1e-9}, {1, 3}),
        ({"min_p": 1.0}, {1}),
        ({"top_k": 3, "top_p": 0.8, "min_p": 0.5}, {1, 3}),
        ({"temperature": 0.5, "min_p": 0.25}, {1, 3}),  # after the temperature: a quarter as probable
    ],
)
def test_boundaries(settings, kept):
    tokens = drawn(DYADIC, **settings)
    assert set(tokens.tolist()) == kept
    assert_frequencies(tokens, plain.truncated_softmax(DYADIC, **settings))


@pytest.mark.parametrize(("settings", "count"), [({"top_k": 3}, 3), ({"top_p": 0.5}, 4), ({"min_p": 1.0}, 8)])
def test_ties_are_drawn_evenly(settings, count):
    """Of equal tokens top-k and top-p keep as many as they must, min-p all."""
    counts = np.bincount(drawn(np.zeros(8), **settings), minlength=8)
    assert np.count_nonzero(counts) == count
    expected = np.where(counts > 0, 1 / count, 0)
    assert_frequencies(np.repeat(np.arange(8), counts), expected)


@pytest.mark.parametrize("scale", [0.0, 0.5, 5.0])
@pytest.mark.parametrize("mass", [0.0, 0.2, 0.9, 0.999])
def test_a_large_vocabulary_has_the_same_nucleus(scale, mass):
    """Whether a few tokens reach the mass or nearly all are needed, row by row."""
    logits = np.random.default_rng(0).standard_normal((3, 1000)) * np.array([[scale], [1.0], [8.0]])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    for row, kept in zip(weights, nucleus(weights, mass), strict=True):
        ordered = np.sort(row)[::-1]
        least = int((np.cumsum(ordered) - ordered < mass * row.sum()).sum())
        assert abs(kept.sum() - max(least, 1)) <= 1  # sums of 1000 numbers are rounded
        assert row[kept].min() >= row[~kept].max(initial=0)


def test_extreme_temperatures_are_safe():
    logits = np.array([1.0, 3.0, 2.0], np.float32)
    assert set(drawn(logits, temperature=1e-300).tolist()) == {1}
    assert_frequencies(drawn(logits, temperature=1e30), np.full(3, 1 / 3))


MODEL_SETTINGS = [
    {"temperature": 0.8, "top_k": 6, "top_p": 0.9},
    {"temperature": 1.2, "min_p": 0.2, "repetition_penalty": 1.4},
]


def expected_of(logits, history, settings, bans):
    """The exact distribution, after penalty and bans."""
    config = ContinuationConfig(repetition_penalty=settings.get("repetition_penalty", 1.0))
    scores = plain.processed(logits, history, config, bans)
    return plain.truncated_softmax(scores, **{k: v for k, v in settings.items() if k != "repetition_penalty"})


@pytest.mark.parametrize("settings", MODEL_SETTINGS)
def test_language_models_draw_what_they_should(random_gpt, settings):
    """Two tokens of 20,000 samples: the first, and the second after the most frequent first."""
    model, prompt, bans, count = random_gpt(np.float32), [20, 21], [[25], [18, 19]], 20_000
    config = ContinuationConfig(max_new_tokens=2, num_return_sequences=count, **{"top_k": 0, "min_p": 0.0} | settings)
    (samples,) = generate(model, [prompt], config, bad_words=bans)
    outputs, after = [[*each.ids, EOS][:2] for each in samples], plain.gpt_logits(model, prompt)
    firsts = np.array([ids[0] for ids in outputs])
    assert_frequencies(firsts, expected_of(after([]), [BOS, *prompt], settings, bans))
    usual = int(np.bincount(firsts[firsts != EOS]).argmax())
    seconds = np.array([ids[1] for ids in outputs if ids[0] == usual])
    assert_frequencies(seconds, expected_of(after([usual]), [BOS, *prompt, usual], settings, bans))


def test_translators_draw_what_they_should(random_model):
    model, source, bans, settings = random_model(np.float32), [20, 21, 22], [[25], [18, 19]], MODEL_SETTINGS[1]
    config = GenerationConfig(
        max_new_tokens=1,
        forced_eos="none",
        do_sample=True,
        num_return_sequences=20_000,
        **{"top_k": 0, "min_p": 0.0} | settings,
    )
    (samples,) = generate(model, [source], config, bad_words=bans)
    tokens = np.array([[*each.ids, EOS][0] for each in samples])
    assert_frequencies(tokens, expected_of(reference.logits_after(model, source)([]), [], settings, bans))
