"""Language models: cached decoding against reading the whole text again, alone and in batches of unequal prompts."""

import math

import numpy as np
import pytest

from tests.decoding import plain
from toolkit.decoding import ContinuationConfig, generate
from toolkit.decoding.sampling import choose_tokens
from toolkit.decoding.state import GPTState, window_length
from toolkit.errors import ConfigError, DataError
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import BOS, EOS

PROMPTS = [[20, 21, 22], [], [30, 17, 30, 17, 25, 26, 27, 28, 29], [18], [20, 21, 22], [36] * 6]
LONG = [[20, 21] * 9, [16, 36, 17] * 4, list(range(16, 29)) * 3]  # past the context of 12 tokens
MODELS = [
    {"positions": "rotary", "num_key_value_heads": 2},
    {"positions": "rotary", "num_key_value_heads": 1, "activation": "swiglu", "norm": "rms", "bias": True},
    {"positions": "learned", "bias": True},
    {"positions": "sinusoidal", "num_key_value_heads": 1},
]
GREEDY = {"do_sample": False}
SLIDE = {"past_context": "slide", "max_new_tokens": 30}


def history(model, prompt):
    return [*([BOS] if model.config.begin else []), *prompt]


def limit_of(model, prompt, config):
    left = model.config.max_length - len(history(model, prompt))
    return 30 if config.past_context == "slide" else left


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("past", [{}, SLIDE])
def test_cached_greedy_equals_reading_everything_again(random_gpt, settings, past, dtype):
    model, config = random_gpt(dtype, **settings), ContinuationConfig(**GREEDY, **past)
    prompts = PROMPTS + (LONG if past else [])
    for prompt, (found,) in zip(prompts, generate(model, prompts, config), strict=True):
        after, limit = plain.gpt_logits(model, prompt), limit_of(model, prompt, config)
        ids, log_probs = plain.greedy(after, history(model, prompt), limit, config)
        assert found.finished == (ids[-1] == EOS)
        assert found.ids == [token for token in ids if token != EOS]
        np.testing.assert_allclose(found.token_log_probs, log_probs, atol=1e-9 if dtype is np.float64 else 1e-4)


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("past", [{}, SLIDE])
def test_cached_beams_equal_reading_everything_again(random_gpt, settings, past):
    model, prompts = random_gpt(seed=3, **settings), [PROMPTS[0], PROMPTS[2], *(LONG[:1] if past else PROMPTS[1:2])]
    config = ContinuationConfig(do_sample=False, num_beams=3, **past)
    for prompt, found in zip(prompts, generate(model, prompts, config), strict=True):
        after, limit = plain.gpt_logits(model, prompt), limit_of(model, prompt, config)
        score, ids, log_prob = plain.beam_search(after, history(model, prompt), limit, config)
        assert found[0].score == pytest.approx(score, abs=1e-9)
        assert found[0].log_prob == pytest.approx(log_prob, abs=1e-9)
        assert found[0].ids == [token for token in ids if token != EOS]


@pytest.mark.parametrize("settings", MODELS)
@pytest.mark.parametrize("past", [{}, SLIDE])
def test_cached_samples_equal_reading_everything_again(random_gpt, settings, past):
    """With the same random numbers, each of several samples that share one reading of the prompt."""
    model, prompts = random_gpt(**settings), [PROMPTS[0], PROMPTS[2], *(LONG[:1] if past else [])]
    config = ContinuationConfig(num_return_sequences=3, temperature=0.9, top_p=0.95, seed=4, **past)
    for number, (prompt, found) in enumerate(zip(prompts, generate(model, prompts, config), strict=True)):
        after, limit, expected = plain.gpt_logits(model, prompt), limit_of(model, prompt, config), []
        for sample in range(3):
            uniform, ids = np.random.default_rng((4, number, sample)).random(limit), []
            while len(ids) < limit and ids[-1:] != [EOS]:
                logits = after(ids)
                logits[[token for token in range(16) if token != EOS]] = -np.inf
                ids.append(int(choose_tokens(logits[None], uniform[[len(ids)]], config)[0]))
            expected.append([token for token in ids if token != EOS])
        assert sorted(each.ids for each in found) == sorted(expected)


@pytest.mark.parametrize(
    "settings",
    [GREEDY, {"num_return_sequences": 3}, {"do_sample": False, "num_beams": 4, "length_penalty": 0.0}],
)
@pytest.mark.parametrize("past", [{}, SLIDE])
def test_a_batch_equals_its_prompts_one_by_one(random_gpt, settings, past):
    model, config = random_gpt(seed=2, num_key_value_heads=2), ContinuationConfig(**settings, **past)
    prompts = PROMPTS + (LONG if past else [])
    together = generate(model, prompts, config, 100)
    assert len({len(group[0].ids) for group in together}) > 2
    for batch_size in (1, 7):
        for left, right in zip(together, generate(model, prompts, config, batch_size), strict=True):
            assert [each.ids for each in left] == [each.ids for each in right]
            np.testing.assert_allclose([each.score for each in left], [each.score for each in right], atol=1e-9)


def test_the_number_of_a_prompt_decides_its_samples(random_gpt):
    model, config = random_gpt(), ContinuationConfig(temperature=2.0, num_return_sequences=2)
    numbers = range(3, 3 + len(PROMPTS))
    whole = generate(model, PROMPTS, config, numbers=numbers)
    parts = generate(model, PROMPTS[:2], config, numbers=numbers[:2]) + generate(
        model, PROMPTS[2:], config, numbers=numbers[2:]
    )
    assert [[each.ids for each in group] for group in whole] == [[each.ids for each in group] for group in parts]
    assert whole[0] != whole[4]  # equal prompts
    assert whole == generate(model, PROMPTS, config, numbers=numbers)
    other = ContinuationConfig(temperature=2.0, num_return_sequences=2, seed=1)
    assert whole != generate(model, PROMPTS, other, numbers=numbers)


@pytest.mark.parametrize("settings", [GREEDY, {"num_return_sequences": 3}, {"do_sample": False, "num_beams": 4}])
def test_a_score_is_the_sum_of_the_models_log_probabilities(random_gpt, settings):
    model = random_gpt()
    config = ContinuationConfig(repetition_penalty=1.3, no_repeat_ngram_size=2, **settings)
    for prompt, group in zip(PROMPTS, generate(model, PROMPTS, config), strict=True):
        for each in group:
            text = each.ids + [EOS] * (len(each.token_log_probs) - len(each.ids))
            after = plain.gpt_logits(model, prompt)
            parts = [plain.log_softmax(after(text[:count]))[token] for count, token in enumerate(text)]
            np.testing.assert_allclose(each.token_log_probs, parts, atol=1e-9)
            assert each.log_prob == pytest.approx(math.fsum(parts), abs=1e-9)
            assert config.num_beams > 1 or each.score == pytest.approx(each.log_prob / len(parts))


def test_temperature_zero_is_greedy_search_or_beam_search(random_gpt):
    model = random_gpt()
    assert generate(model, PROMPTS, ContinuationConfig(temperature=0.0)) == generate(
        model, PROMPTS, ContinuationConfig(do_sample=False)
    )
    assert generate(model, PROMPTS, ContinuationConfig(temperature=0.0, num_beams=3)) == generate(
        model, PROMPTS, ContinuationConfig(do_sample=False, num_beams=3)
    )
    with pytest.raises(ConfigError, match="num_beams"):
        ContinuationConfig(num_beams=3)


def test_the_context_ends_outputs(random_gpt):
    """Begin mark, prompt and output have at most as many tokens as the context, whatever is asked for."""
    for begin in (True, False):
        model = random_gpt(begin=begin)
        for most in (None, 5, 100):
            config = ContinuationConfig(max_new_tokens=most, min_new_tokens=1)
            prompts = [prompt for prompt in PROMPTS if prompt]
            for prompt, (found,) in zip(prompts, generate(model, prompts, config), strict=True):
                room = min(12 - begin - len(prompt), most or 100)
                assert 1 <= len(found.ids) <= room
                assert found.finished == (len(found.token_log_probs) == len(found.ids) + 1)
                assert found.finished or len(found.ids) == room


@pytest.mark.parametrize("context", [1, 2, 3, 7, 12])
def test_windows_are_those_of_reading_token_by_token(context):
    for count in range(1, 60):
        assert window_length(count, context) == len(plain.window(range(count), context))


@pytest.mark.parametrize("settings", MODELS[:3])
def test_a_prompt_is_read_as_if_it_had_been_written(random_gpt, settings):
    """Past the context too: an output, handed in as a prompt at any place, goes on as it did."""
    model, config = random_gpt(**settings), ContinuationConfig(do_sample=False, min_new_tokens=29, **SLIDE)
    ((whole,),) = generate(model, [[20]], config)
    assert len(whole.ids) >= 29
    for cut in range(1, 28):
        rest = ContinuationConfig(
            do_sample=False, past_context="slide", max_new_tokens=29 - cut, min_new_tokens=29 - cut - 1
        )
        ((found,),) = generate(model, [[20, *whole.ids[:cut]]], rest)
        assert found.ids == whole.ids[cut : cut + len(found.ids)]


def test_a_context_of_one_token_slides(random_gpt):
    model = random_gpt(max_length=1)
    config = ContinuationConfig(do_sample=False, past_context="slide", max_new_tokens=6)
    for prompt, (found,) in zip(PROMPTS, generate(model, PROMPTS, config), strict=True):
        ids, _ = plain.greedy(plain.gpt_logits(model, prompt), [], 6, config)
        assert found.ids == [token for token in ids if token != EOS]


@pytest.mark.parametrize("rows_at_once", [1, 5, 1000])
def test_long_prompts_are_read_in_pieces(random_gpt, monkeypatch, rows_at_once):
    model, texts = random_gpt(num_key_value_heads=2), [[BOS, *prompt] for prompt in PROMPTS]
    monkeypatch.setattr("toolkit.decoding.state._ROWS_AT_ONCE", rows_at_once)
    session = GPTState(model, texts, Pool())
    found = session.logits(session.begin)
    for row, prompt in zip(found, PROMPTS, strict=True):
        np.testing.assert_allclose(row, plain.gpt_logits(model, prompt)([]), atol=1e-10)


def test_what_cannot_be_continued_is_refused(random_gpt):
    model = random_gpt()  # reads <s> and 11 tokens
    assert generate(model, []) == []
    assert len(generate(model, [[20] * 10])[0][0].token_log_probs) == 1
    with pytest.raises(DataError, match="prompt 2 has 11 tokens, and there is room for 10"):
        generate(model, [[20], [20] * 11])
    with pytest.raises(DataError, match="prompt 1 has 8 tokens, and there is room for 7"):
        generate(model, [[20] * 8], ContinuationConfig(min_new_tokens=4))
    with pytest.raises(DataError, match="prompt 1 has ids outside"):
        generate(model, [[37]])
    with pytest.raises(DataError, match="prompt 2 is empty"):
        generate(random_gpt(begin=False), [[20], []])
    with pytest.raises(ConfigError, match="batch_size"):
        generate(model, [[20]], batch_size=0)
    with pytest.raises(ConfigError, match="past_context"):
        ContinuationConfig(past_context="crop")
