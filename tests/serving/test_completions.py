"""POST /v1/completions writes what `LanguageModel.generate_n` writes, and finds as probable what `perplexity` does."""

import json
import math
from itertools import pairwise

import pytest

pytest.importorskip("starlette")

import toolkit
from toolkit.tokenization.special import BOS

PROMPTS = ("Once upon a time", "The little", "")


@pytest.fixture(scope="module")
def stories():
    return toolkit.load_language_model("stories")


@pytest.fixture(scope="module")
def ask(server):
    def ask(model="stories", **fields):
        status, answer, _ = server.ask("/v1/completions", {"model": model, **fields})
        assert status == 200, answer
        return answer

    return ask


def events(text):
    """Read a stream to its end."""
    *lines, last, rest = text.split("\n\n")
    assert (last, rest) == ("data: [DONE]", "")
    return [json.loads(line.removeprefix("data: ")) for line in lines if not line.startswith(":")]


def joined(found, index=0):
    """Join the parts of a choice."""
    parts = [each for event in found for each in event["choices"] if each["index"] == index]
    assert [each["finish_reason"] for each in parts[:-1]] == [None] * (len(parts) - 1)
    return "".join(each["text"] for each in parts), parts[-1]["finish_reason"], parts


SETTINGS = [
    {"max_tokens": 20, "seed": 3},
    {"max_tokens": 20, "temperature": 0},
    {"max_tokens": 20, "seed": 5, "temperature": 1.2, "top_p": 0.8, "top_k": 20},
    {"max_tokens": 20, "seed": 5, "min_p": 0.0, "repetition_penalty": 1.3, "no_repeat_ngram_size": 2},
    {"max_tokens": 12, "num_beams": 3, "length_penalty": 0.5},
    {"max_tokens": 12, "num_beams": 3, "early_stopping": True, "n": 3},
    {"max_tokens": 20, "seed": 1, "n": 3},
    {"max_tokens": 30, "seed": 1, "stop": [" was", "."]},
    {"max_tokens": 20, "do_sample": False, "bad_words": ["there", " little"]},
    {"max_tokens": 8, "min_tokens": 8, "seed": 2},
]


def library(settings):
    """Give the settings of a request as the library has them."""
    names = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens", "stop": "stop_strings"}
    given = {names.get(name, name): value for name, value in settings.items() if name != "n"}
    if given.get("temperature") == 0 or "num_beams" in given:
        given["do_sample"] = False
        given.pop("temperature", None)
    return given | {"num_return_sequences": settings.get("n", 1)}


@pytest.mark.parametrize("settings", SETTINGS)
def test_texts_are_those_of_the_library(ask, server, stories, settings):
    expected = [stories.generate_n(prompt, first=place, **library(settings)) for place, prompt in enumerate(PROMPTS)]
    logprobs = {} if "num_beams" in settings else {"logprobs": 2}
    answer = ask(prompt=PROMPTS, **settings, **logprobs)
    count = settings.get("n", 1)
    new = prompts = 0
    for place, group in enumerate(expected):
        found = answer["choices"][count * place : count * (place + 1)]
        assert [each["index"] for each in found] == [*range(count * place, count * (place + 1))]
        one = [(each["text"], each["finish_reason"]) for each in found]
        # Samples come in the order in which they were drawn, the library's the most probable first.
        two = [(each.text, each.finish_reason) for each in group]
        assert (one if "num_beams" in settings else sorted(one)) == (two if "num_beams" in settings else sorted(two))
        if not settings.get("stop"):
            new += sum(len(each.ids) for each in group)
        prompts += len(stories.tokenizer.encode(PROMPTS[place])) + 1
        for each in found if logprobs and not settings.get("stop") else ():
            [same] = [every for every in group if every.text == each["text"]][:1]
            assert each["logprobs"]["token_logprobs"] == pytest.approx(same.token_log_probs, abs=1e-4)
            assert "".join(each["logprobs"]["tokens"]) == each["text"]
    counts = answer["usage"]
    assert counts["prompt_tokens"] == prompts
    if not settings.get("stop"):
        assert counts["completion_tokens"] == new
    assert counts["total_tokens"] == prompts + counts["completion_tokens"]
    status, text, headers = server.ask(
        "/v1/completions",
        {
            "model": "stories",
            "prompt": PROMPTS,
            **settings,
            **logprobs,
            "stream": True,
            "stream_options": {"include_usage": True},
        },
    )
    assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    *found, last = events(text)
    assert len({(each["id"], each["created"], each["model"]) for each in [*found, last]}) == 1
    assert {each["usage"] for each in map(dict, found)} == {None}
    assert (last["choices"], last["usage"]["completion_tokens"]) == ([], counts["completion_tokens"])
    for each in answer["choices"]:
        whole, reason, parts = joined(found, each["index"])
        assert (whole, reason) == (each["text"], each["finish_reason"])
        if logprobs:
            scores = [value for part in parts for value in part["logprobs"]["token_logprobs"]]
            assert scores == pytest.approx(each["logprobs"]["token_logprobs"], abs=1e-4)
            offsets = [value for part in parts for value in part["logprobs"]["text_offset"]]
            assert offsets == each["logprobs"]["text_offset"]


def test_a_seed_that_was_drawn_is_told_and_writes_the_same(ask):
    first = ask(prompt="Once", max_tokens=10)
    assert isinstance(first["seed"], int)
    assert ask(prompt="Once", max_tokens=10, seed=first["seed"])["choices"] == first["choices"]
    assert ask(prompt="Once", max_tokens=10)["seed"] != first["seed"]
    assert "seed" not in ask(prompt="Once", max_tokens=10, temperature=0)


@pytest.mark.parametrize("more", [{}, {"length_penalty": 0.0, "temperature": 1.5}, {"stop": ["."]}])
def test_the_best_of_several_are_those_of_the_library(ask, stories, more):
    settings = {"max_new_tokens": 15, "seed": 4, **more}
    settings["stop_strings"] = settings.pop("stop", [])
    expected = stories.generate_n("Once upon a time", num_return_sequences=5, **settings)
    answer = ask(prompt="Once upon a time", max_tokens=15, seed=4, n=2, best_of=5, **more)
    assert [each["text"] for each in answer["choices"]] == [each.text for each in expected[:2]]
    assert [each["index"] for each in answer["choices"]] == [0, 1]
    assert answer["usage"]["completion_tokens"] == sum(len(each.ids) for each in expected)


def test_a_banned_token_is_not_written(ask, stories):
    text = ask(prompt="Once upon a time", temperature=0, max_tokens=1, logprobs=0)["choices"][0]["logprobs"]
    [banned] = stories.tokenizer.encode(text["tokens"][0])[-1:]
    other = ask(prompt="Once upon a time", temperature=0, max_tokens=1, logit_bias={str(banned): -100}, logprobs=0)
    assert other["choices"][0]["logprobs"]["tokens"] != text["tokens"]


def test_what_is_beyond_the_context_is_not_written(ask, stories):
    ids = stories.tokenizer.encode("Once upon a time ")[:4] * 60
    answer = ask(prompt=ids, temperature=0, max_tokens=100, min_tokens=5)
    assert answer["choices"][0]["finish_reason"] == "length"
    assert answer["usage"]["total_tokens"] == stories.model.config.max_length
    slid = ask(prompt=ids, temperature=0, max_tokens=40, min_tokens=40, past_context="slide")
    assert slid["usage"]["completion_tokens"] == 40


def test_a_prompt_alone_is_scored_as_perplexity_has_it(ask, stories):
    text = "Once upon a time there was a little girl named Rita."
    ids = stories.tokenizer.encode(text)
    measured = stories.perplexity(text)
    one = ask(prompt=text, echo=True, max_tokens=0, logprobs=1)
    two = ask(prompt=[[BOS, *ids]], echo=True, max_tokens=1, logprobs=1, temperature=0)
    end = ask(prompt=[[*ids, 3]], echo=True, max_tokens=0, logprobs=0)
    scores, with_bos = (each["choices"][0]["logprobs"]["token_logprobs"] for each in (one, two))
    assert (one["choices"][0]["text"], one["choices"][0]["finish_reason"]) == (text, "length")
    assert with_bos[0] is None
    assert two["choices"][0]["logprobs"]["top_logprobs"][0] is None
    assert with_bos[1:-1] == pytest.approx(scores, abs=1e-4)
    total = math.fsum(end["choices"][0]["logprobs"]["token_logprobs"])
    assert total == pytest.approx(-measured.loss * measured.tokens, abs=1e-4 * measured.tokens)
    offsets, tokens = (one["choices"][0]["logprobs"][name] for name in ("text_offset", "tokens"))
    assert [text[begin : begin + len(token)] for begin, token in zip(offsets, tokens, strict=True)] == tokens
    assert (one["usage"]["prompt_tokens"], one["usage"]["completion_tokens"]) == (len(ids) + 1, 0)
    assert (two["usage"]["prompt_tokens"], end["usage"]["prompt_tokens"]) == (len(ids) + 1, len(ids) + 2)


def test_an_echo_comes_before_what_is_written(ask, server):
    fields = {"prompt": ["Once", [20, 30]], "echo": True, "max_tokens": 5, "logprobs": 0, "seed": 1}
    answer = ask(**fields)
    for each in answer["choices"]:
        assert "".join(each["logprobs"]["tokens"]) == each["text"]
        assert each["logprobs"]["top_logprobs"] is None
    assert answer["choices"][0]["text"].startswith("Once")
    assert answer["choices"][1]["text"].startswith(
        server.ask("/detokenize", {"model": "stories", "tokens": [20, 30]})[1]["prompt"]
    )
    _, text, _ = server.ask("/v1/completions", {"model": "stories", **fields, "stream": True})
    for index in 0, 1:
        assert joined(events(text), index)[0] == answer["choices"][index]["text"]
    silent = ask(prompt="Once", echo=True, max_tokens=0)["choices"][0]
    assert (silent["text"], silent["logprobs"]) == ("Once", None)


def test_harness_requests_are_answered_as_it_reads_them(ask, stories):
    """The exact payload of lm-evaluation-harness's local-completions, and its reading of the answer."""
    context, rest = "Once upon a time", " there was a little girl."
    whole = stories.tokenizer.encode(context + rest)
    length = len(stories.tokenizer.encode(context))
    answer = ask(prompt=[whole, whole], temperature=0, max_tokens=1, logprobs=1, seed=1234, echo=True)
    for choice in sorted(answer["choices"], key=lambda each: each["index"]):
        scores = choice["logprobs"]["token_logprobs"][length:-1]
        best = choice["logprobs"]["top_logprobs"][length:-1]
        assert len(scores) == len(whole) - length
        before, after = (
            math.fsum(
                ask(prompt=[ids], echo=True, max_tokens=0, logprobs=0)["choices"][0]["logprobs"]["token_logprobs"]
            )
            for ids in (whole[:length], whole)
        )
        assert sum(scores) == pytest.approx(after - before, abs=1e-4)
        greedy = stories.generate(context, do_sample=False, max_new_tokens=1)
        assert (scores[0] == max(best[0].values())) == rest.startswith(greedy)
        assert all(score <= max(each.values()) for score, each in zip(scores, best, strict=True))


def test_devanagari_is_whole_in_every_event(server, ask):
    fields = {"model": "stories-ne", "prompt": "एक", "max_tokens": 60, "temperature": 0}
    _, text, _ = server.ask("/v1/completions", {**fields, "stream": True})
    whole, _, parts = joined(events(text))
    assert whole == ask(**fields)["choices"][0]["text"]
    assert "\ufffd" not in whole
    # No part begins within a letter: with a vowel sign, a virama, or what a virama joins.
    for one, two in pairwise(parts):
        assert not two["text"][:1] or not 0x93A <= ord(two["text"][0]) <= 0x94F
        assert not one["text"].endswith("्") or not two["text"][:1].isalpha()


def test_models_are_listed_with_what_they_are(server):
    status, answer, _ = server.ask("/v1/models")
    assert (status, answer["object"]) == (200, "list")
    found = {each["id"]: each for each in answer["data"]}
    kinds = {"en-ne-small": "translator", "chat": "chat", "stories": "language-model", "stories-ne": "language-model"}
    assert {name: each["kind"] for name, each in found.items()} == kinds
    assert (found["en-ne-small"]["languages"], found["en-ne-small"]["max_length"]) == (["en", "ne"], 256)
    for name, each in found.items():
        assert (each["object"], each["owned_by"], each["ready"]) == ("model", "toolkit", True)
        assert each["parameters"] > 0
        assert server.ask(f"/v1/models/{name}")[1] == each
    status, answer, _ = server.ask("/v1/models/nothing")
    assert (status, answer["error"]["code"]) == (404, "model_not_found")


def test_tokens_of_texts_messages_and_ids(server, stories):
    text = "Once upon a time"
    ids = stories.tokenizer.encode(text)
    status, answer, _ = server.ask("/v1/tokenize", {"model": "stories", "prompt": text})
    assert (status, answer["tokens"], answer["count"], answer["max_model_len"]) == (200, ids, len(ids), 256)
    assert answer["token_strs"] == [stories.tokenizer.piece(each) for each in ids]
    fields = {"model": "stories", "content": text, "add_special_tokens": True}
    assert server.ask("/tokenize", fields)[1]["tokens"] == [BOS, *ids]
    answer = server.ask("/detokenize", {"model": "stories", "tokens": ids})[1]
    assert answer["prompt"] == answer["content"] == text
    messages = [{"role": "user", "content": "Hello"}]
    count = server.ask("/tokenize", {"model": "chat", "messages": messages})[1]["count"]
    fields = {"model": "chat", "messages": messages, "max_tokens": 1}
    assert server.ask("/v1/chat/completions", fields)[1]["usage"]["prompt_tokens"] == count
    # How a harness finds the ids of special tokens.
    info = server.ask("/tokenizer_info?model=stories")[1]
    for name, number in (("bos_token", BOS), ("eos_token", 3)):
        assert server.ask("/tokenize", {"model": "stories", "prompt": info[name]})[1]["tokens"] == [number]
    assert server.ask("/tokenize", {"model": "en-ne-small", "prompt": "Hello"})[1]["count"] > 0
