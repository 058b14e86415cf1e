"""Continuous batching: whoever else is in the batch, a request gets what `generate` gives it alone."""

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest

from tests.decoding import fuzz_continuous
from tests.decoding.test_step import GPT, SEQ2SEQ
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, lanes
from toolkit.decoding.continuous import ContinuousBatch, Request
from toolkit.decoding.lanes import Lane
from toolkit.decoding.sampling import log_sum_exp
from toolkit.decoding.step import Step
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import BOS

GREEDY = ContinuationConfig(do_sample=False)
DRAWN = ContinuationConfig(temperature=1.0, min_p=0, seed=4)
IDS = [20, 21, 22, 23, 30, 31, 32, 33, 24, 25, 26, 27]


def run(batch, most=10_000):
    """All news until the batch is idle, by request: the list of each step's."""
    found = {}
    for number in range(most):
        if batch.idle:
            return found
        for news in batch.step():
            found.setdefault(news.key, []).append((number, news))
    raise AssertionError("the batch has no end")


def outputs(found):
    return {key: news[-1][1].hypotheses for key, news in found.items()}


def alone(model, request):
    return fuzz_continuous.alone(model, request)


@pytest.mark.parametrize(("number", "dtype"), [*((each, np.float64) for each in range(14)), (14, np.float32)])
def test_requests_at_random_are_what_they_are_alone(number, dtype, monkeypatch):
    """Of any model, greedy, drawn or searched, with any settings; some are cancelled. More of them are made by hand, in
    tests/decoding/fuzz_continuous.py."""
    if number % 2:  # the cache grows
        monkeypatch.setattr(lanes, "_ROOM_BYTES", 0)
        monkeypatch.setattr(lanes, "_FIRST_ENTRIES", 3)
    *differences, count = fuzz_continuous.case(number, seed=7, dtype=dtype)
    assert differences == []
    assert count


@pytest.mark.parametrize("settings", GPT)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_all_kinds_of_language_models(random_gpt, settings, dtype):
    model = random_gpt(dtype, max_length=40, sharpness=6.0, **settings)
    configs = [GREEDY, DRAWN, replace(DRAWN, num_return_sequences=3, top_p=0.9), replace(GREEDY, num_beams=3)]
    configs += [replace(each, past_context="slide", max_new_tokens=90) for each in configs]
    requests = [Request(key, IDS[key:], config) for key, config in enumerate(configs)]
    batch = ContinuousBatch(model, piece=5)
    for request in requests:
        batch.add(request)
    found = outputs(run(batch))
    for request in requests:
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        assert fuzz_continuous.same(found[request.key], alone(model, request), tolerance) == ""


@pytest.mark.parametrize("settings", SEQ2SEQ)
def test_all_kinds_of_translators(random_model, settings):
    model = random_model(**settings)
    configs = [GenerationConfig(), GenerationConfig(do_sample=True, seed=1, num_return_sequences=2)]
    configs += [GenerationConfig(num_beams=4, num_return_sequences=4), GenerationConfig(min_new_tokens=3)]
    requests = [Request(key, IDS[: 3 + key], config, forced_bos=17, prefix=[19]) for key, config in enumerate(configs)]
    batch, found = ContinuousBatch(model), {}
    for request in requests:
        batch.add(request)
        found |= {news.key: news.hypotheses for news in batch.step() if news.hypotheses}
    found |= outputs(run(batch))
    for request in requests:
        assert fuzz_continuous.same(found[request.key], alone(model, request), 1e-9) == ""


def test_models_in_int8(random_gpt, random_model):
    """As `generate`, but where rounding moves a number of a row to the next integer."""
    pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")
    for model, ids in ((random_gpt(np.float32, max_length=40, sharpness=6.0), IDS), (random_model(np.float32), IDS)):
        model.quantize()
        make = ContinuationConfig if hasattr(model, "trunk") else GenerationConfig
        configs = [make(do_sample=False), make(do_sample=True, seed=2), make(do_sample=False, num_beams=3)]
        batch = ContinuousBatch(model)
        requests = [Request(key, ids[key:], config) for key, config in enumerate(configs)]
        for request in requests:
            batch.add(request)
        found = outputs(run(batch))
        for request in requests:
            assert fuzz_continuous.same(found[request.key], alone(model, request), 0.1) == ""


def test_what_was_read_is_not_read_again(random_gpt, monkeypatch):
    model, read = random_gpt(max_length=64, sharpness=6.0), []
    plain_read = Lane.read
    monkeypatch.setattr(Lane, "read", lambda *each: (read.append(sum(map(len, each[2]))), plain_read(*each))[1])
    batch = ContinuousBatch(model)

    def ask(ids, config=GREEDY, **settings):
        """A request alone in the batch: how many tokens were read for it, and told as not read."""
        read.clear()
        request = Request(len(told), ids, config, **settings)
        told.append(request)
        batch.add(request)
        news = run(batch)[request.key]
        assert fuzz_continuous.same(news[-1][1].hypotheses, alone(model, request), 1e-9) == ""
        return sum(read), news[0][1].cached

    told = []
    short = replace(GREEDY, max_new_tokens=5)
    assert ask(IDS, short) == (12, 0)  # BOS and all but the last
    (reply,) = alone(model, told[0])
    assert ask([*IDS, *reply.ids, 33, 34, 35], short) == (3, 12 + len(reply.ids) - 1)  # the next turn
    assert ask([*IDS, *reply.ids, 33, 34, 36], short) == (0, 12 + len(reply.ids) + 2)  # said differently
    assert ask([*IDS[:6], 16, 16, 16], short) == (2, 6)  # another conversation with the same system message
    assert ask([*IDS, *reply.ids, 33, 34, 35, 17], short)[0] == 0  # and the first one goes on
    assert ask([*IDS[:6], 16, 16, 16, 17], short)[0] == 0
    assert ask(IDS, replace(DRAWN, num_return_sequences=4)) == (0, 11)
    assert ask(IDS, short, score_prompt=True) == (12, 0)
    assert batch.prompt_tokens == sum(len(each.ids) for each in told)
    assert 60 < batch.cached_tokens < batch.prompt_tokens


def test_a_prefix_of_what_is_still_being_written(random_gpt):
    model = random_gpt(max_length=64, sharpness=6.0)
    batch = ContinuousBatch(model)
    requests = [Request(0, IDS, replace(DRAWN, max_new_tokens=50, min_new_tokens=20)), Request(1, [*IDS, 20], GREEDY)]
    batch.add(requests[0])
    for _ in range(4):
        batch.step()
    batch.add(requests[1])
    found = run(batch)
    assert found[1][0][1].cached == len(IDS)
    for request in requests:
        assert fuzz_continuous.same(found[request.key][-1][1].hypotheses, alone(model, request), 1e-9) == ""


def test_a_long_prompt_does_not_make_others_wait(random_gpt, monkeypatch):
    model = random_gpt(max_length=200, sharpness=6.0)
    batch, read = ContinuousBatch(model, piece=8), []
    plain_read = Lane.read
    monkeypatch.setattr(Lane, "read", lambda *each: (read.append(sum(map(len, each[2]))), plain_read(*each))[1])
    long = np.random.default_rng(0).integers(16, 37, 150).tolist()
    batch.add(Request(0, [20], replace(GREEDY, max_new_tokens=60, min_new_tokens=50)))
    batch.step()
    batch.add(Request(1, long, GREEDY))
    for number in range(12):
        if number == 3:
            batch.add(Request(2, [25, 26], GREEDY))
        read.clear()
        news = {each.key: each for each in batch.step()}
        assert len(news[0].written) == 1  # whoever writes goes on
        assert sum(read) <= 8
        assert 1 not in news
        assert (2 in news) >= (number == 3)  # what is short overtakes
    found = run(batch)
    assert fuzz_continuous.same(found[1][-1][1].hypotheses, generate(model, [long], GREEDY)[0], 1e-9) == ""


def test_who_leaves_is_told_nothing_and_makes_room(random_gpt):
    model = random_gpt(max_length=40)
    batch, long = ContinuousBatch(model, places=2, piece=4), replace(DRAWN, min_new_tokens=20)
    batch.add(Request(0, IDS, replace(long, num_return_sequences=2)))
    batch.add(Request(1, [20], long))
    batch.add(Request(2, IDS, long))
    batch.add(Request(3, [21], long))
    assert batch.step() == []  # the prompt has pieces
    assert (batch.running, batch.waiting) == (1, 3)
    batch.cancel(0)
    batch.cancel(2)
    news = batch.step()
    assert {each.key for each in news} == {1, 3}
    assert (batch.running, batch.waiting) == (2, 0)
    batch.cancel(1)
    batch.cancel(1)  # twice, or of nobody, is no matter
    batch.add(Request(4, [22], long))
    assert {each.key for each in batch.step()} == {3, 4}
    batch.cancel(3)
    batch.cancel(4)
    assert batch.idle
    assert batch.step() == []


def test_requests_wait_in_order_and_a_wide_one_is_alone(random_gpt):
    batch = ContinuousBatch(random_gpt(max_length=40), places=3)
    config = replace(DRAWN, min_new_tokens=5, max_new_tokens=5)
    for key, count in enumerate((2, 2, 1, 9, 1)):
        batch.add(Request(key, [20], replace(config, num_return_sequences=count)))
    steps = {key: [number for number, _ in news] for key, news in run(batch).items()}
    assert steps == {
        0: [0, 1, 2, 3, 4],
        1: [5, 6, 7, 8, 9],
        2: [5, 6, 7, 8, 9],
        3: [10, 11, 12, 13, 14],
        4: [15, 16, 17, 18, 19],
    }


def test_tokens_come_as_they_are_written(random_gpt):
    """With the model's own log-probabilities of them and of the best, before anything is excluded."""
    model = random_gpt(max_length=40, sharpness=6.0)
    config = replace(DRAWN, num_return_sequences=3, temperature=0.5, repetition_penalty=1.3, max_new_tokens=8)
    batch = ContinuousBatch(model)
    batch.add(Request(0, IDS, config, bad_words=[[20]], alternatives=4))
    news, written = run(batch)[0], [[], [], []]
    for _, each in news:
        for sample, token in each.written:
            written[sample].append(token)
    assert sum(len(each.written) for _, each in news) == sum(map(len, written))
    assert sorted(len(tokens) for tokens in written) == sorted(len(h.token_log_probs) for h in news[-1][1].hypotheses)
    for tokens in written:
        text = np.array([BOS, *IDS, *(token.id for token in tokens)])
        logits = all_logits(model, text[:-1])[len(IDS) :]
        check_told(tokens, logits, 4)


def all_logits(model, text):
    return model.output.logits(model.read(text, Rows(np.array([len(text)])), Tape()), Tape())


def check_told(tokens, logits, alternatives):
    expected = logits - log_sum_exp(logits)[:, None]
    for token, log_probs in zip(tokens, expected, strict=True):
        assert token.log_prob == pytest.approx(log_probs[token.id], abs=1e-9)
        best = np.argsort(-log_probs)[:alternatives]
        assert token.best == [(each, pytest.approx(log_probs[each], abs=1e-9)) for each in best.tolist()]


@pytest.mark.parametrize("begin", [True, False])
@pytest.mark.parametrize("config", [None, replace(GREEDY, max_new_tokens=3), replace(GREEDY, num_beams=2)])
def test_prompts_are_scored(random_gpt, begin, config):
    model = random_gpt(max_length=30, begin=begin)
    batch = ContinuousBatch(model, piece=5)
    for key in range(2):  # the second time nothing of it is taken from what was read
        batch.add(Request(key, IDS, config, alternatives=2, score_prompt=True))
        news = run(batch)[key]
        (prompt,) = (each.prompt for _, each in news if each.prompt is not None)
        assert news[0][1].prompt is prompt
        assert [token.id for token in prompt] == IDS
        text = np.array([BOS, *IDS] if begin else IDS)
        if not begin:
            first, *prompt = prompt
            assert first == (IDS[0], None, [])
        check_told(prompt, all_logits(model, text)[:-1], 2)
        if config is None:
            assert news[-1][1].hypotheses == []
            assert len(news) == 1
        else:
            assert fuzz_continuous.same(news[-1][1].hypotheses, generate(model, [IDS], config)[0], 1e-9) == ""


def test_as_much_of_a_prompt_is_scored_as_can_be_read(random_gpt):
    model = random_gpt(max_length=12)
    batch = ContinuousBatch(model)
    batch.add(Request(0, IDS, None, score_prompt=True))
    check_told(run(batch)[0][0][1].prompt, all_logits(model, np.array([BOS, *IDS])[:-1]), 0)
    with pytest.raises(DataError, match="the prompt has 13 tokens, and at most 12 can be scored"):
        batch.add(Request(1, [*IDS, 20], None, score_prompt=True))
    slide = replace(GREEDY, past_context="slide", max_new_tokens=2)
    batch.add(Request(1, [*IDS, 20, 21], slide, score_prompt=True))  # only what the model still sees
    (prompt,) = (each.prompt for _, each in run(batch)[1] if each.prompt)
    assert [token.id for token in prompt] == [*IDS, 20, 21]
    assert [token.log_prob is None for token in prompt] == [True] * 7 + [False] * 7


@pytest.mark.parametrize("number", [np.nan, np.inf])
def test_a_request_whose_numbers_are_not_finite_fails_alone(random_gpt, number):
    model = random_gpt(max_length=40, sharpness=6.0)
    model.trunk.input.embedding.table.data[36] = number
    batch = ContinuousBatch(model, places=8)
    requests = [
        Request(0, [20, 21, 22, 23], DRAWN, bad_words=[[36]]),
        Request(1, [20, 36, 22, 23], DRAWN),
        Request(2, [20, 21, 36], replace(GREEDY, num_beams=3)),
        Request(3, [20, 21, 24], replace(GREEDY, num_beams=3), bad_words=[[36]]),
    ]
    with np.errstate(all="ignore"):
        for again in range(2):
            for request in requests:
                batch.add(replace(request, key=request.key + 4 * again))
            found = run(batch)
            for request in requests:
                last = found[request.key + 4 * again][-1][1]
                if 36 in request.ids:
                    assert isinstance(last.error, ModelError)
                    assert last.hypotheses is None
                else:
                    assert fuzz_continuous.same(last.hypotheses, alone(model, request), 1e-9) == ""


def test_what_cannot_be_decoded_is_refused_at_once(random_gpt, random_model):
    gpt, translator = ContinuousBatch(random_gpt()), ContinuousBatch(random_model())
    for batch, request, error, words in (
        (gpt, Request(0, IDS, GREEDY), DataError, "has 12 tokens, and there is room for 10"),
        (gpt, Request(0, [99], GREEDY), DataError, "outside the model's vocabulary"),
        (gpt, Request(0, [20], GREEDY, prefix=[20]), ConfigError, "prefixes are of translations"),
        (gpt, Request(0, [20], GREEDY, bad_words=[[]]), ConfigError, "the ban"),
        (gpt, Request(0, [20], GREEDY, end=30), ConfigError, "end is 30"),
        (translator, Request(0, [20], GenerationConfig(max_new_tokens=99)), ConfigError, "writes at most 64"),
        (translator, Request(0, [20], None, score_prompt=True), ConfigError, "only the prompts of a language model"),
    ):
        with pytest.raises(error, match=words):
            batch.add(request)
        assert batch.idle


@pytest.mark.parametrize("beams", [1, 3])
def test_who_joins_and_leaves_makes_no_new_recording(random_gpt, monkeypatch, beams):
    model, recorded = random_gpt(max_length=100), []
    plain_record = Step._record
    monkeypatch.setattr(Step, "_record", lambda *each: (recorded.append(each[1]), plain_record(*each))[1])
    batch, rng = ContinuousBatch(model, places=4 * beams), np.random.default_rng(0)
    for key in range(60):
        config = replace(GREEDY, num_beams=beams, max_new_tokens=int(rng.integers(2, 30)), min_new_tokens=1)
        batch.add(Request(key, rng.integers(16, 37, 6).tolist(), config))
        for _ in range(rng.integers(0, 6)):
            batch.step()
    run(batch)
    assert len(recorded) <= 9  # of each number of texts once, and where the cache has grown
    recorded.clear()
    for key in range(20):
        batch.add(Request(key, [20, 21], replace(GREEDY, num_beams=beams, max_new_tokens=4)))
    run(batch)
    assert recorded == []


def test_nothing_grows_with_the_number_of_requests(random_gpt, random_model):
    """Of objects and of borrowed memory there is as much after many requests as after some."""
    for model in (random_gpt(max_length=30), random_model()):
        batch, rng, sizes = ContinuousBatch(model, places=8), np.random.default_rng(0), []
        make = ContinuationConfig if hasattr(model, "trunk") else GenerationConfig
        configs = [make(do_sample=True, seed=1, max_new_tokens=9), make(do_sample=False, num_beams=3)]
        configs += [make(do_sample=False, repetition_penalty=1.2), make(do_sample=True, top_p=0.9, seed=2)]
        for key in range(240):
            if key % 80 == 79:
                run(batch)
                gc.collect()
                sizes.append(
                    (
                        sum(str(type(each).__module__).startswith("toolkit") for each in gc.get_objects()),
                        batch._pool.allocated,
                    )
                )
            batch.add(Request(key, rng.integers(16, 37, rng.integers(1, 9)).tolist(), configs[key % 4]))
            batch.step()
            if key % 7 == 0:
                batch.cancel(key)
        assert sizes[1] == sizes[2]


def test_a_number_of_beams_that_nobody_asks_for_any_more_keeps_no_memory(random_gpt, monkeypatch):
    """But one lane, and that of single sequences; a lane in which a text is written stays."""
    model, made, gone = random_gpt(np.float64), [], []
    monkeypatch.setattr(Lane, "__init__", _noted(Lane.__init__, made))
    batch, config = ContinuousBatch(model, places=16), ContinuationConfig(do_sample=False, max_new_tokens=4)
    requests = [Request(width, [5, 6], replace(config, num_beams=width)) for width in (1, 2, 3, 4, 5)]
    for request in requests:
        batch.add(request)
        assert outputs(run(batch)) == {request.key: alone(model, request)}
        gc.collect()
        gone.append(sum(lane() is None for lane in made))
    assert gone == [0, 0, 1, 2, 3]
    batch.add(Request(8, [5, 6], replace(config, num_beams=2, max_new_tokens=20)))
    batch.step()
    batch.add(Request(9, [5, 6], replace(config, num_beams=3)))
    found = outputs(run(batch))
    assert found[9] == alone(model, Request(9, [5, 6], replace(config, num_beams=3)))
    assert found[8] == alone(model, Request(8, [5, 6], replace(config, num_beams=2, max_new_tokens=20)))


def _noted(original, made):
    def init(lane, *arguments):
        original(lane, *arguments)
        made.append(weakref.ref(lane))

    return init
