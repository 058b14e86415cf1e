"""What was read of one prompt and serves the next: the same as reading each prompt anew, whatever came before it."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.decoding import plain
from toolkit.decoding import ContinuationConfig, PrefixCache, generate, stream
from toolkit.decoding.cache import Cache
from toolkit.decoding.state import GPTState, common_prefix
from toolkit.errors import ConfigError
from toolkit.tokenization.special import BOS, END

MODELS = [
    {"positions": "rotary", "num_key_value_heads": 2},
    {"positions": "rotary", "num_key_value_heads": 1, "activation": "swiglu", "norm": "rms", "bias": True},
    {"positions": "learned", "bias": True, "begin": False},
    {"positions": "sinusoidal", "num_key_value_heads": 1},
]
GREEDY = ContinuationConfig(do_sample=False)
IDS = st.lists(st.integers(16, 18), min_size=1, max_size=20)


@st.composite
def prompts(draw):
    """Prompts that share beginnings, grow, shrink, lose their middle, go on with what was written, and come again.

    Each with how many ids are asked for of what follows it; None: all.
    """
    found = [draw(IDS)]
    for _ in range(draw(st.integers(1, 6))):
        last = draw(st.sampled_from(found))
        begin, end = sorted(draw(st.tuples(st.integers(0, len(last)), st.integers(0, len(last)))))
        found.append((last[:begin] + draw(st.sampled_from([[], last[end:]])) + draw(IDS))[:22])
        found.append(draw(st.sampled_from([last, last[: begin + 1]])))
    return [(each, draw(st.sampled_from([None, 0, 1, 3]))) for each in found]


@pytest.mark.parametrize("sizes", MODELS, ids=str)
def test_what_is_kept_equals_reading_everything_again(random_gpt, sizes):
    model = random_gpt(max_length=24, **sizes)

    @given(prompts(), st.sampled_from([GREEDY, ContinuationConfig(seed=3, temperature=1.0)]))
    @settings(max_examples=3)
    def check(told, config):
        kept, read, mark = PrefixCache(model), [], [BOS] if model.config.begin else []
        for number, (prompt, wanted) in enumerate(told):
            ((whole,),) = generate(model, [prompt], config, numbers=[number], end=END)
            written = stream(model, prompt, config, (), number, END, kept)
            assert list(islice(written, wanted)) == whole.ids[:wanted]
            if wanted is None:
                text = mark + prompt
                assert kept.reused == common_prefix(read, text[:-1])
                read = text + whole.ids[: len(whole.token_log_probs) - 1]
                assert kept.ids == read
            read = list(kept.ids)

    check()


@pytest.mark.parametrize("sizes", MODELS, ids=str)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_logits_after_what_is_kept(random_gpt, sizes, dtype, monkeypatch):
    """And the rest may be read in pieces."""
    monkeypatch.setattr("toolkit.decoding.state._ROWS_AT_ONCE", 3)
    model = random_gpt(dtype, **{**sizes, "max_length": 24, "begin": False})
    kept, generator = PrefixCache(model), np.random.default_rng(0)
    text = generator.integers(16, 37, 20).tolist()
    for prompt in (text, text[:9], text[:12] + text[15:], text, text, text[:1], text[3:], text[3:] + text[:3]):
        session = GPTState(model, [prompt], kept.pool, prefix_cache=kept)
        found = session.logits(session.begin)[0]
        np.testing.assert_allclose(
            found, plain.gpt_logits(model, prompt)([]), atol=1e-10 if dtype is np.float64 else 2e-4
        )
        assert kept.ids == prompt


@pytest.mark.parametrize("name", ["extend", "advance", "begin_step", "end_step", "keep"])
@pytest.mark.parametrize("late", [False, True])
def test_whatever_is_interrupted_nothing_wrong_is_kept(random_gpt, monkeypatch, name, late):
    model, healthy = random_gpt(max_length=24), getattr(Cache, name)
    prompts = [20, 21, 22, 23, 24], [20, 21, 30], [20, 21, 22, 23, 24, 25], [20, 21, 22, 31]
    expected = [generate(model, [prompt], GREEDY)[0][0].ids for prompt in prompts]
    for count in range(2):
        kept, calls = PrefixCache(model), iter(range(1000))

        def interrupted(*arguments, calls=calls, count=count):
            hit = next(calls) == count
            if hit and not late:
                raise KeyboardInterrupt
            result = healthy(*arguments)
            if hit:
                raise KeyboardInterrupt
            return result

        monkeypatch.setattr(Cache, name, interrupted)
        for prompt, ids in zip(prompts, expected, strict=True):
            try:
                found = list(stream(model, prompt, GREEDY, prefix_cache=kept))
            except KeyboardInterrupt:
                continue
            assert found == ids
        assert next(calls) > count


def test_nothing_is_kept_of_a_model_that_was_trained_since(random_gpt):
    model, prompt = random_gpt(), [20, 21, 22, 23]
    kept = PrefixCache(model)
    before = list(stream(model, prompt, GREEDY, prefix_cache=kept))
    model.vector *= -1
    after = list(stream(model, prompt, GREEDY, prefix_cache=kept))
    assert kept.reused == 0
    assert before != after == generate(model, [prompt], GREEDY)[0][0].ids


def test_what_cannot_be_kept_is_refused(random_gpt):
    model = random_gpt()
    for wrong in (
        {"num_beams": 2, "do_sample": False},
        {"num_return_sequences": 2},
        {"past_context": "slide"},
    ):
        with pytest.raises(ConfigError, match="one sequence that does not slide"):
            stream(model, [20], ContinuationConfig(**wrong), prefix_cache=PrefixCache(model))


def test_common_prefix():
    assert [common_prefix([], []), common_prefix([1], []), common_prefix([1, 2], [1, 2, 3])] == [0, 0, 2]
    assert common_prefix([1, 2, 3], np.array([1, 5, 3])) == 1
