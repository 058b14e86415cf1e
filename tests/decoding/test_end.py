"""Outputs that end with another mark than </s>: a model whose scores of the two marks are exchanged writes the same."""

import numpy as np
import pytest

from toolkit.decoding import ContinuationConfig, generate, stream
from toolkit.errors import ConfigError
from toolkit.tokenization.special import END, EOS

PROMPTS = [[20, 21, 22], [], [30, 17, END, 30], [18, EOS]]
WAYS = [
    {"do_sample": False},
    {"num_return_sequences": 3, "temperature": 1.0},
    {"do_sample": False, "num_beams": 3, "num_return_sequences": 2},
    {"do_sample": False, "min_new_tokens": 3, "forced_eos": "scored", "max_new_tokens": 5},
    {"do_sample": False, "num_beams": 3, "forced_eos": "free", "max_new_tokens": 4},
    {"do_sample": False, "repetition_penalty": 1.4, "no_repeat_ngram_size": 1},
    {"do_sample": False, "num_beams": 2, "no_repeat_ngram_size": 2, "min_new_tokens": 2},
    {"past_context": "slide", "max_new_tokens": 30, "seed": 5},
    # Stuck, where every id was written once.
    {"past_context": "slide", "max_new_tokens": 30, "min_new_tokens": 29, "no_repeat_ngram_size": 1},
]


def exchanged(model):
    """Give each of the two marks the scores of the other, in place."""
    for scores in (model.output.table.data, model.output.bias.data):
        scores[[EOS, END]] = scores[[END, EOS]]
    return model


@pytest.mark.parametrize("settings", WAYS, ids=str)
def test_the_other_mark_ends_outputs_as_the_usual_one_does(random_gpt, settings):
    usual, other = (random_gpt(seed=4, output_bias=True) for _ in range(2))
    for model in usual, other:
        model.output.bias.data[EOS] += 4
    exchanged(other)
    config, bans = ContinuationConfig(**settings), [[25], [26, 27]]
    prompts = PROMPTS if config.repetition_penalty == 1 and not config.no_repeat_ngram_size else PROMPTS[:2]
    expected, found = generate(usual, prompts, config, 3, bad_words=bans), []
    for left, right in zip(expected, generate(other, prompts, config, 3, bad_words=bans, end=END), strict=True):
        assert [(each.ids, each.finished) for each in left] == [(each.ids, each.finished) for each in right]
        for each, exchange in zip(left, right, strict=True):
            np.testing.assert_allclose(each.token_log_probs, exchange.token_log_probs, atol=1e-9)
            found.append(each)
    assert all(token >= 16 for each in found for token in each.ids)
    assert config.forced_eos != "none" or any(each.finished for each in found)
    for number, (prompt, group) in enumerate(zip(prompts, expected, strict=True)):
        assert list(stream(other, prompt, config, bans, number, END)) == group[0].ids


def test_the_value_of_a_stream_is_the_whole_hypothesis(random_gpt):
    for settings in WAYS[:3]:
        config = ContinuationConfig(**settings)
        written = stream(random_gpt(), [20, 21], config, end=END)
        with pytest.raises(StopIteration) as ended:
            [next(written) for _ in range(100)]
        assert ended.value.value == generate(random_gpt(), [[20, 21]], config, end=END)[0][0]


def test_a_watched_output_ends_with_its_own_mark(random_gpt):
    """Stopping criteria are not told of the mark."""
    told, config = [], ContinuationConfig(do_sample=False)
    watch = lambda: lambda token: told.append(token)  # noqa: E731
    found = generate(exchanged(random_gpt(output_bias=True)), PROMPTS[:2], config, stopping=watch, end=END)
    assert sorted(told) == sorted(token for (each,) in found for token in each.ids)


def test_an_end_that_is_no_special_id_is_refused(random_gpt):
    for end in (-1, 16, 20):
        with pytest.raises(ConfigError, match=f"end is {end}: it must be a special id, below 16"):
            generate(random_gpt(), PROMPTS, end=end)
    with pytest.raises(ConfigError, match="end mark in it"):
        generate(random_gpt(), PROMPTS, bad_words=[[20, END]], end=END)
    assert generate(random_gpt(), PROMPTS[:1], bad_words=[[20, EOS]], end=END)
