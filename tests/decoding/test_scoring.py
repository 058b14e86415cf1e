"""Scores of given outputs: what search reported, and what the plain reference computes."""

import math

import numpy as np
import pytest

from tests.decoding import reference
from toolkit.decoding import GenerationConfig, generate, score
from toolkit.errors import ConfigError, DataError

LENGTHS = [3, 7, 0, 7, 5, 1, 9, 4]
CONFIGS = [
    GenerationConfig(max_new_tokens=12),
    GenerationConfig(max_new_tokens=12, num_beams=4, num_return_sequences=3, length_penalty=0.5),
    GenerationConfig(max_new_tokens=12, do_sample=True, temperature=1.5, length_penalty=0.0),
]


@pytest.mark.parametrize("config", CONFIGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-9), (np.float32, 1e-4)])
def test_outputs_have_the_scores_that_decoding_reported(random_model, make_sources, config, dtype, tolerance):
    model, sources = random_model(dtype, seed=2), make_sources(LENGTHS)
    found = generate(model, sources, config)
    repeated = [source for source, group in zip(sources, found, strict=True) for _ in group]
    flat = [each for group in found for each in group]
    scored = score(model, repeated, [each.ids for each in flat], 5, config.length_penalty)
    for ours, reported in zip(scored, flat, strict=True):
        assert ours.ids == reported.ids
        assert ours.finished
        np.testing.assert_allclose(ours.token_log_probs, reported.token_log_probs, atol=tolerance)
        assert ours.log_prob == pytest.approx(reported.log_prob, abs=tolerance)
        assert ours.score == pytest.approx(reported.score, abs=tolerance)


@pytest.mark.parametrize("config", CONFIGS)
def test_token_scores_add_up(random_model, make_sources, config):
    for group in generate(random_model(np.float32), make_sources(LENGTHS), config):
        for each in group:
            assert len(each.token_log_probs) == len(each.ids) + 1
            assert math.fsum(each.token_log_probs) == pytest.approx(each.log_prob, abs=1e-9)


def test_any_text_is_scored_in_input_order_and_any_batch(random_model, make_sources):
    model, sources = random_model(), make_sources(LENGTHS)
    targets = make_sources([5, 0, 60, 3, 3, 7, 1, 80], seed=3)  # longer ones than the model writes, too
    expected = [reference.log_prob_of(model, *pair) for pair in zip(sources, targets, strict=True)]
    for batch_size in (1, 3, 64):
        found = score(model, sources, targets, batch_size)
        np.testing.assert_allclose([each.log_prob for each in found], expected, atol=1e-8)
        assert [each.ids for each in found] == targets
    arrays = score(model, [np.array(source, np.int32) for source in sources], [np.array(x, np.int32) for x in targets])
    assert arrays == found


def test_blocks_of_rows_make_no_difference(random_model, make_sources, monkeypatch):
    model, sources, targets = random_model(), make_sources([4, 2]), make_sources([9, 5], seed=4)
    whole = score(model, sources, targets)
    monkeypatch.setattr("toolkit.decoding.scoring._BLOCK_LOGITS", 100)  # two rows at a time
    for left, right in zip(whole, score(model, sources, targets), strict=True):
        np.testing.assert_allclose(left.token_log_probs, right.token_log_probs, atol=1e-12)


def test_what_cannot_be_scored_is_refused(random_model):
    model = random_model(positions="learned")  # reads 63 tokens and an end mark
    assert score(model, [], []) == []
    assert len(score(model, [[20]], [[20] * 63])[0].token_log_probs) == 64
    with pytest.raises(DataError, match="2 translations for 1 sentences"):
        score(model, [[20]], [[20], [21]])
    with pytest.raises(DataError, match="translation of sentence 1 has 64 tokens"):
        score(model, [[20]], [[20] * 64])
    with pytest.raises(DataError, match="translation of sentence 1 has ids outside"):
        score(model, [[20]], [[-1]])
    with pytest.raises(ConfigError, match="batch_size"):
        score(model, [[20]], [[20]], batch_size=0)
