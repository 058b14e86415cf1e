"""Logits processors: each alone against its definition, and what outputs have in common whatever wrote them."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.checks import random_model, small_config
from tests.decoding import plain, reference
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate
from toolkit.decoding.logits_processors import (
    NOTHING,
    BadWords,
    LogitsProcessors,
    forbid_repeated_ngrams,
    penalize_repetition,
)
from toolkit.errors import ConfigError
from toolkit.tokenization.special import BOS, EOS

SIZE = 20
WAYS = [
    {"do_sample": False},
    {"do_sample": True, "temperature": 1.5, "num_return_sequences": 2},
    {"do_sample": False, "num_beams": 3, "num_return_sequences": 3},
]
PROMPTS = [[20, 21, 20, 21, 20], [], [30, 17, 30], [18] * 4]
SOURCES = [[20, 21, 22], [], [30, 17, 30, 18, 19], [18]]

histories = st.lists(st.lists(st.integers(0, 5), max_size=9), min_size=1, max_size=4)


def padded(told):
    longest = max(map(len, told))
    return np.array([[NOTHING] * (longest - len(ids)) + ids for ids in told], np.int64).reshape(len(told), longest)


def random_scores(count):
    return np.random.default_rng(0).standard_normal((count, SIZE))


@given(histories, st.floats(0.2, 5))
@settings(max_examples=60)
def test_the_penalty_changes_every_token_that_occurred_once(told, penalty):
    scores = random_scores(len(told))
    expected = scores.copy()
    for row, ids in zip(expected, told, strict=True):
        for token in set(ids):
            row[token] = row[token] * penalty if row[token] < 0 else row[token] / penalty
    penalize_repetition(scores, padded(told), penalty)
    np.testing.assert_allclose(scores, expected, rtol=1e-12)


@pytest.mark.parametrize("penalty", [1e-300, 1e300])
def test_the_penalty_leaves_finite_numbers(penalty):
    scores = np.array([[-3.0, 3.0, 0.0]], np.float32)
    penalize_repetition(scores, np.array([[0, 1, 2]]), penalty)
    assert np.isfinite(scores).all()


@given(histories, st.integers(1, 4))
@settings(max_examples=100)
def test_what_would_repeat_an_ngram_is_excluded_and_nothing_else(told, size):
    scores = random_scores(len(told))
    forbid_repeated_ngrams(scores, padded(told), size)
    for row, ids in zip(scores, told, strict=True):
        repeats = [tuple([*ids, token][-size:]) in plain.ngrams(ids, size) for token in range(SIZE)]
        assert (row == -np.inf).tolist() == repeats


@given(histories, st.lists(st.lists(st.integers(4, 9) | st.integers(0, 2), min_size=1, max_size=4), max_size=6))
@settings(max_examples=100)
def test_a_ban_excludes_its_last_id_after_its_others_and_nothing_else(told, bans):
    scores = random_scores(len(told))
    BadWords(bans, SIZE).exclude(scores, padded(told))
    for row, ids in zip(scores, told, strict=True):
        banned = [any(plain.ends_with([*ids, token], ban) for ban in bans) for token in range(SIZE)]
        assert (row == -np.inf).tolist() == banned


def test_foolish_bans_are_refused():
    for ban, words in (([], "no sequence"), ([20], "no sequence"), ([-1], "no sequence"), ([5, EOS], "end mark")):
        with pytest.raises(ConfigError, match=words):
            BadWords([[5], ban], SIZE)


def test_nothing_to_do_is_known():
    assert not LogitsProcessors(GenerationConfig(), BadWords([], SIZE), [[5]])
    assert LogitsProcessors(GenerationConfig(), BadWords([[5]], SIZE), [[5]])
    assert LogitsProcessors(GenerationConfig(repetition_penalty=1.1), BadWords([], SIZE), [[5]])
    assert LogitsProcessors(GenerationConfig(no_repeat_ngram_size=2), BadWords([], SIZE), [[5]])


@pytest.mark.parametrize(("begin", "ends_at_once"), [(BOS, True), (EOS, False)])
def test_a_mark_that_outputs_begin_with_has_occurred(begin, ends_at_once):
    """Where a model from elsewhere begins with its end mark, the penalty is on ending too, as there."""
    model = random_model(small_config(vocab_size=40, output_bias=True, begin_row=begin), np.random.default_rng(0))
    model.output.bias.data[EOS] += 30
    found = generate(model, SOURCES, GenerationConfig(repetition_penalty=100.0))
    assert {hypotheses[0].ids == [] for hypotheses in found} == {ends_at_once}


CASES = [
    ({"repetition_penalty": 1.5}, []),
    ({"repetition_penalty": 0.7}, []),
    ({"no_repeat_ngram_size": 1}, []),
    ({"no_repeat_ngram_size": 2}, []),
    ({}, [[20], [21, 22], [17, 30]]),
    ({"repetition_penalty": 1.2, "no_repeat_ngram_size": 3}, [[25], [18, 18]]),
]


@pytest.mark.parametrize(("case", "bans"), CASES)
@pytest.mark.parametrize("beams", [1, 3])
def test_language_models_equal_the_plain_ones(random_gpt, case, bans, beams):
    model, config = random_gpt(), ContinuationConfig(do_sample=False, num_beams=beams, **case)
    for prompt, found in zip(PROMPTS, generate(model, PROMPTS, config, bad_words=bans), strict=True):
        given = (plain.gpt_logits(model, prompt), [BOS, *prompt], 11 - len(prompt), config, bans)
        compare(found[0], given, beams)


@pytest.mark.parametrize(("case", "bans"), CASES)
@pytest.mark.parametrize("beams", [1, 3])
def test_translators_equal_the_plain_ones(random_model, case, bans, beams):
    """The history of an encoder-decoder is its output alone."""
    model = random_model()
    config = GenerationConfig(max_new_tokens=9, num_beams=beams, forced_eos="none", **case)
    for source, found in zip(SOURCES, generate(model, SOURCES, config, bad_words=bans), strict=True):
        compare(found[0], (reference.logits_after(model, source), [], 9, config, bans), beams)


def compare(found, given, beams):
    if beams == 1:
        ids, log_probs = plain.greedy(*given)
        np.testing.assert_allclose(found.token_log_probs, log_probs, atol=1e-9)
    else:
        score, ids, log_prob = plain.beam_search(*given)
        assert found.score == pytest.approx(score, abs=1e-9)
        assert found.log_prob == pytest.approx(log_prob, abs=1e-9)
    assert found.ids == [token for token in ids if token != EOS]


@pytest.fixture
def outputs(random_gpt, random_model):
    """outputs(way, seed, bans, **settings): (history, new ids) of everything that models of both kinds write."""

    def write(way, seed, bans=(), **settings):
        continuation = {"past_context": "slide", "max_new_tokens": 25}
        gpt, config = random_gpt(seed=seed), ContinuationConfig(**way, **settings, **continuation)
        groups = generate(gpt, PROMPTS, config, bad_words=bans)
        found = [([BOS, *prompt], each.ids) for prompt, group in zip(PROMPTS, groups, strict=True) for each in group]
        config = GenerationConfig(max_new_tokens=20, **way, **settings)
        groups = generate(random_model(seed=seed), SOURCES, config, bad_words=bans)
        return found + [([], each.ids) for group in groups for each in group]

    return write


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("size", [1, 2, 3])
def test_no_ngram_is_written_twice(outputs, way, size):
    for seed in range(3):
        for history, ids in outputs(way, seed, no_repeat_ngram_size=size):
            text = [*history, *ids]
            for end in range(len(history) + 1, len(text) + 1):
                if end >= size:
                    assert tuple(text[end - size : end]) not in plain.ngrams(text[: end - 1], size)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_banned_is_not_written(outputs, way):
    for seed in range(3):
        free = outputs(way, seed)
        pairs = {tuple(ids[place : place + 2]) for _, ids in free for place in range(len(ids) - 1)}
        bans = [*sorted(pairs), (20,), (21,), (20, 18), (17, 30, 31)]
        for history, ids in outputs(way, seed, bans):
            for end in range(1, len(ids) + 1):
                assert not any(plain.ends_with([*history, *ids[:end]], ban) for ban in bans)


@pytest.mark.parametrize("way", WAYS)
def test_what_is_off_changes_nothing(outputs, way):
    off = {"repetition_penalty": 1.0, "no_repeat_ngram_size": 0}
    assert outputs(way, 1) == outputs(way, 1, [], **off)
    never = {"no_repeat_ngram_size": 40}
    assert outputs(way, 1) == outputs(way, 1, [[19] * 30], **never)


@pytest.mark.parametrize("way", WAYS)
def test_where_everything_is_excluded_the_end_is_left(outputs, way):
    for _, ids in outputs(way, 1, [[token] for token in range(16, 37)], min_new_tokens=3):
        assert ids == []
    for history, ids in outputs(way, 1, [[token] for token in range(18, 37)], no_repeat_ngram_size=1, min_new_tokens=9):
        assert len(ids) <= 2 - (17 in history)
        assert set(ids) == {16, 17} - set(history)


@pytest.mark.parametrize("way", WAYS)
def test_a_prefix_is_written_though_it_is_banned_and_counts_as_history(random_model, way):
    config = GenerationConfig(max_new_tokens=9, no_repeat_ngram_size=2, repetition_penalty=1.5, **way)
    prefix = [20, 21, 20, 21]
    for group in generate(random_model(), SOURCES, config, prefixes=[prefix] * 4, bad_words=[[21], [22]]):
        for each in group:
            assert each.ids[:4] == prefix
            assert not {21, 22} & set(each.ids[4:])
            assert (21, 20) not in plain.ngrams(each.ids[3:], 2)
            assert np.isfinite(each.log_prob)


def test_the_penalty_makes_repetition_rarer(random_gpt):
    model, repeated = random_gpt(), []
    for penalty in (0.5, 1.0, 2.0):
        config = ContinuationConfig(
            repetition_penalty=penalty, num_return_sequences=20, temperature=1.0, min_new_tokens=11, max_new_tokens=12,
            past_context="slide",
        )  # fmt: skip
        found = [each.ids for group in generate(model, PROMPTS, config) for each in group]
        repeated.append(sum(len(ids) - len(set(ids)) for ids in found))
    assert repeated[0] > repeated[1] > repeated[2]
