"""Writing a step at a time: streams, stopping criteria that end sequences, and loops that are stepped by hand."""

from itertools import islice

import numpy as np
import pytest

from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, stream
from toolkit.decoding.logits_processors import Constraints
from toolkit.decoding.loop import GenerationLoop
from toolkit.decoding.state import GPTState
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.nn.memory import Pool
from toolkit.tokenization.special import BOS, EOS

PROMPTS = [[20, 21, 22], [], [30, 17, 30], [18], [20, 21, 22]]
GREEDY = GenerationConfig()
LONGER = {"past_context": "slide", "max_new_tokens": 20}


def third_token_or(token):
    """Makes stopping criteria that end a sequence with its third token, or with `token`."""

    def watch():
        told = []

        def ends(written):
            told.append(written)
            return len(told) == 3 or written == token

        return ends

    return watch


def cut(ids, token):
    """What such a criterion leaves of an output."""
    first = ids.index(token) + 1 if token in ids else len(ids)
    return ids[: min(first, 3)]


@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")
def test_a_model_that_overflows_on_the_way_is_told_at_the_end(random_gpt, monkeypatch):
    healthy, calls = GPTState.logits, iter(range(100))
    overflow = lambda self, ids: healthy(self, ids) * (np.nan if next(calls) == 4 else 1)  # noqa: E731
    monkeypatch.setattr(GPTState, "logits", overflow)
    with pytest.raises(ModelError, match="not finite"):
        list(stream(random_gpt(), [20, 21], ContinuationConfig(min_new_tokens=8)))


@pytest.mark.parametrize(
    "settings", [{}, {"do_sample": False}, {"do_sample": False, "num_beams": 3}, {"num_return_sequences": 3}]
)
@pytest.mark.parametrize("past", [{}, LONGER])
def test_a_stream_gives_the_ids_of_the_whole(random_gpt, settings, past):
    model, config = random_gpt(), ContinuationConfig(repetition_penalty=1.2, **settings, **past)
    whole = generate(model, PROMPTS, config, numbers=range(7, 7 + len(PROMPTS)))
    for number, (prompt, group) in enumerate(zip(PROMPTS, whole, strict=True), start=7):
        assert list(stream(model, prompt, config, number=number)) == group[0].ids


def test_a_stream_writes_only_what_it_is_asked_for(random_gpt, monkeypatch):
    steps, logits = [], GPTState.logits
    monkeypatch.setattr(GPTState, "logits", lambda self, ids: steps.append(0) or logits(self, ids))
    written = stream(random_gpt(), [20], ContinuationConfig(min_new_tokens=9))
    assert steps == []
    assert len(list(islice(written, 4))) == len(steps) == 4
    written.close()
    assert len(steps) == 4


def test_no_memory_is_taken_for_what_may_never_be_written(random_gpt):
    """And what is written past the first room is what it is anyhow."""
    model, endless = random_gpt(), {"past_context": "slide", "max_new_tokens": 10**30, "seed": 3}
    written = stream(model, [20], ContinuationConfig(min_new_tokens=10**29, **endless))
    config = ContinuationConfig(past_context="slide", max_new_tokens=200, min_new_tokens=199, seed=3)
    ((found,),) = generate(model, [[20]], config)
    assert list(islice(written, 199)) == found.ids[:199]
    beams = ContinuationConfig(num_beams=3, temperature=0.0, no_repeat_ngram_size=1, **endless)
    assert generate(model, [[20]], beams)[0][0].finished


def test_a_stream_is_refused_before_it_is_read(random_gpt):
    with pytest.raises(DataError, match="prompt 1 has 30 tokens"):
        stream(random_gpt(), [20] * 30)


@pytest.mark.parametrize("batch_size", [1, 3, 16])
@pytest.mark.parametrize("settings", [{"num_return_sequences": 2}, {"do_sample": False}])
def test_stopping_criteria_end_their_sequences_at_once(random_gpt, settings, batch_size):
    model, config = random_gpt(seed=3), ContinuationConfig(**settings, **LONGER)
    whole = generate(model, PROMPTS, config)
    token = whole[0][0].ids[1]
    found = generate(model, PROMPTS, config, batch_size, stopping=third_token_or(token))
    for left, right in zip(whole, found, strict=True):
        assert sorted(cut(each.ids, token) for each in left) == sorted(each.ids for each in right)
        assert all(each.finished for each in right)
    assert any(len(each.ids) == 2 for group in found for each in group)


def test_a_watched_output_has_the_log_probabilities_of_what_it_wrote(random_gpt):
    model, config = random_gpt(seed=3), ContinuationConfig(do_sample=False, **LONGER)
    whole = generate(model, PROMPTS, config)
    for (left,), (right,) in zip(whole, generate(model, PROMPTS, config, stopping=third_token_or(-1)), strict=True):
        np.testing.assert_allclose(right.token_log_probs, left.token_log_probs[:3], atol=1e-9)


def test_beams_are_not_watched(random_gpt):
    config = ContinuationConfig(do_sample=False, num_beams=2)
    with pytest.raises(ConfigError, match="stop strings"):
        generate(random_gpt(), PROMPTS, config, stopping=third_token_or(20))


def make_loop(model, most):
    texts = [[BOS, *prompt] for prompt in PROMPTS]
    constraints = Constraints(np.full(len(texts), most), min_new_tokens=most, forced_eos="none")
    return GenerationLoop(GPTState(model, texts, Pool()), constraints, GREEDY)


def test_whoever_ends_leaves_and_the_others_go_on_as_before(random_gpt):
    model = random_gpt()
    undisturbed, disturbed = make_loop(model, 6), make_loop(model, 6)
    while not undisturbed.done:
        sequences, tokens = undisturbed.step()
        assert sequences.tolist() == list(range(5))
        assert EOS not in tokens
    told = [[] for _ in PROMPTS]
    for step in range(6):
        for sequence, token in zip(*disturbed.step(), strict=True):
            told[sequence].append(int(token))
        if step < 3:
            disturbed.end([step])
            disturbed.end([])
    assert disturbed.done
    assert [len(each) for each in told] == [1, 2, 3, 6, 6]
    for whole, part, ids in zip(undisturbed.hypotheses(), disturbed.hypotheses(), told, strict=True):
        assert part.ids == ids == whole.ids[: len(ids)]
        assert part.finished == (len(ids) < 6)
        np.testing.assert_allclose(part.token_log_probs, whole.token_log_probs[: len(ids)], atol=1e-9)


def test_what_is_written_may_be_looked_at_between_steps(random_gpt):
    loop = make_loop(random_gpt(), 4)
    loop.step()
    loop.step()
    assert [len(each.ids) for each in loop.hypotheses()] == [2] * 5
    loop.end(range(5))
    assert loop.done
    assert all(each.finished for each in loop.hypotheses())
