"""The pieces that searches are made of, each alone."""

import numpy as np
import pytest
import tyro
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.decoding import GenerationConfig, Hypothesis, generate
from toolkit.decoding.beam import Finished, search_is_over
from toolkit.decoding.logits_processors import forbid_control_tokens, force_end
from toolkit.decoding.sampling import best_continuations, log_sum_exp
from toolkit.decoding.state import fill_holes
from toolkit.errors import ConfigError, DataError


@pytest.mark.parametrize("scale", [1.0, 1e3])
@pytest.mark.parametrize("shift", [0.0, 500.0, -500.0])
def test_log_sum_exp(scale, shift):
    logits = np.random.default_rng(0).standard_normal((70, 1000)) * scale + shift
    logits[3] = 0.0
    expected = np.logaddexp.reduce(logits, axis=1)
    np.testing.assert_allclose(log_sum_exp(logits), expected, rtol=1e-12)
    np.testing.assert_allclose(log_sum_exp(logits.astype(np.float32)), expected, rtol=1e-5)


@pytest.mark.parametrize(("end", "given"), [(3, ()), (7, (7,)), (0, (0,)), (15, (15,))])
def test_only_ordinary_tokens_and_the_end_mark_are_permitted(end, given):
    logits = np.zeros((2, 20))
    forbid_control_tokens(logits, *given)
    assert np.flatnonzero(logits[1] == 0).tolist() == [end, 16, 17, 18, 19]
    force_end(logits, logits, np.array([True, False]), *given)
    assert np.flatnonzero(logits[0] == 0).tolist() == [end]
    assert np.isfinite(logits[1]).sum() == 5


@pytest.mark.parametrize("vocabulary", [3, 255, 256, 257, 512, 513, 700, 5000])
@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("ties", [False, True])
def test_best_continuations_equal_a_full_sort(vocabulary, width, ties):
    generator = np.random.default_rng(vocabulary)
    logits = generator.standard_normal((3 * width, vocabulary))
    if ties:
        logits = np.round(logits)
    scores = generator.standard_normal((3, width))
    scores[1, -1] = -np.inf
    logits[0, : vocabulary // 2] = -np.inf
    count = 20
    sums, beams, tokens = best_continuations(logits, scores, count)
    everything = (logits.reshape(3, width, -1) + scores[:, :, None]).reshape(3, -1)
    np.testing.assert_array_equal(sums, -np.sort(-everything, axis=1)[:, :count])
    assert 0 <= tokens.min() <= tokens.max() < vocabulary
    for row in range(3):
        real = sums[row] > -np.inf
        found = list(zip(beams[row, real], tokens[row, real], strict=True))
        assert len(set(found)) == len(found)
        values = [everything[row, beam * vocabulary + token] for beam, token in found]
        assert values == sums[row, real].tolist()


@given(st.lists(st.booleans(), max_size=12))
@settings(max_examples=60, deadline=None)
def test_holes_are_filled_by_the_last_ones(live):
    live = np.array(live, bool)
    order = fill_holes(live)
    assert sorted(order) == np.flatnonzero(live).tolist()
    stay = order == np.arange(len(order))
    assert stay.sum() == live[: len(order)].sum()


def test_the_finished_list_keeps_the_best():
    finished = Finished(2, wanted=2)
    for score in (-3.0, -1.0, -2.0, -4.0):
        finished.add(1, Hypothesis([], score, score, True, [score]))
    assert [each.score for each in finished.hypotheses[1]] == [-1.0, -2.0]
    assert finished.thresholds == [-np.inf, -2.0]
    assert finished.hypotheses[0] == []


@pytest.mark.parametrize("power", [-1.0, 0.0, 0.5, 1.0, 2.0])
def test_settled_means_that_no_length_still_possible_would_do(power):
    generator = np.random.default_rng(0)
    live, thresholds = -20 * generator.random(500), -5 * generator.random(500)
    limits = generator.integers(4, 12, 500)
    config, over = GenerationConfig(length_penalty=power), 0
    for each, threshold, limit in zip(live.tolist(), thresholds.tolist(), limits.tolist(), strict=True):
        claimed = search_is_over(config, each, threshold, 3, limit)
        assert claimed == ((each / np.arange(4, limit + 1) ** power).max() <= threshold)
        over += claimed
    assert 0 < over < 500


@pytest.mark.parametrize("rule", [True, False, "never", "settled"])
def test_a_search_without_live_hypotheses_is_over(rule):
    config = GenerationConfig(num_beams=2, early_stopping=rule)
    assert search_is_over(config, -np.inf, -np.inf, 1, 5)
    assert not search_is_over(config, -1.0, -np.inf, 1, 5)


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("num_beams", 0),
        ("num_beams", 2.0),
        ("num_beams", True),
        ("num_return_sequences", 2),
        ("max_new_tokens", 0),
        ("max_new_tokens", 1.5),
        ("top_k", -1),
        ("top_p", 1.1),
        ("top_p", "all"),
        ("temperature", -0.1),
        ("temperature", float("nan")),
        ("length_penalty", float("inf")),
        ("min_p", 1.1),
        ("repetition_penalty", 0.0),
        ("repetition_penalty", float("inf")),
        ("no_repeat_ngram_size", -1),
        ("no_repeat_ngram_size", 1.5),
        ("seed", -1),
        ("do_sample", 1),
        ("min_new_tokens", -1),
        ("min_new_tokens", 1.0),
        ("early_stopping", "sometimes"),
        ("early_stopping", 1),
        ("early_stopping", None),
        ("forced_eos", True),
    ],
)
def test_foolish_settings_are_refused_by_name(setting, value):
    with pytest.raises(ConfigError, match=setting):
        GenerationConfig(**{setting: value})


def test_contradictions_are_refused(random_model, make_sources):
    with pytest.raises(ConfigError, match="num_beams"):
        GenerationConfig(num_beams=2, do_sample=True)
    model = random_model(positions="learned")
    with pytest.raises(ConfigError, match="64"):
        generate(model, [[20]], GenerationConfig(max_new_tokens=65))
    with pytest.raises(ConfigError, match="batch_size"):
        generate(model, [[20]], batch_size=0)
    with pytest.raises(DataError, match="sentence 2 has 64 tokens"):
        generate(model, [[20], [20] * 64])
    with pytest.raises(DataError, match="sentence 2 has ids outside"):
        generate(model, [[20], [37]])
    assert len(generate(model, make_sources([63]), GenerationConfig(max_new_tokens=64))) == 1


@pytest.mark.parametrize("rule", [True, False, "never", "settled"])
def test_the_stopping_rule_is_a_flag(rule):
    arguments = ["--num-beams", "2", "--early-stopping", str(rule), "--min-new-tokens", "3", "--forced-eos", "free"]
    expected = GenerationConfig(num_beams=2, early_stopping=rule, min_new_tokens=3, forced_eos="free")
    assert tyro.cli(GenerationConfig, args=arguments) == expected
