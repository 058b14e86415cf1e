"""POST /v1/chat/completions replies as a `ChatSession` with the same history and settings does."""

import json
import math
from itertools import pairwise

import pytest

pytest.importorskip("starlette")

import toolkit
from toolkit.chat import ChatSession
from toolkit.chat.history import write_conversation
from toolkit.tokenization.chat_template import Message

SAID = ("Hello, who are you?", "My name is Rita.", "What is my name?")
NEPALI = "नमस्ते, तपाईंलाई कस्तो छ?"


@pytest.fixture(scope="module")
def model():
    return toolkit.load_language_model("chat")


@pytest.fixture(scope="module")
def ask(server):
    def ask(messages, **fields):
        status, answer, _ = server.ask("/v1/chat/completions", {"model": "chat", "messages": messages, **fields})
        assert status == 200, answer
        return answer

    return ask


@pytest.fixture(scope="module")
def stream(server):
    def stream(messages, **fields):
        fields = {"model": "chat", "messages": messages, "stream": True, **fields}
        status, text, headers = server.ask("/v1/chat/completions", fields)
        assert (status, headers["content-type"]) == (200, "text/event-stream; charset=utf-8"), text
        *lines, last, rest = text.split("\n\n")
        assert (last, rest) == ("data: [DONE]", "")
        return [json.loads(line.removeprefix("data: ")) for line in lines if not line.startswith(":")]

    return stream


def user(text):
    return {"role": "user", "content": text}


def assistant(text):
    return {"role": "assistant", "content": text}


@pytest.mark.parametrize(
    ("settings", "same"),
    [
        ({}, {}),
        ({"max_tokens": 5}, {"max_new_tokens": 5}),
        ({"max_completion_tokens": 5}, {"max_new_tokens": 5}),
        ({"temperature": 0.9, "seed": 3}, {"do_sample": True, "temperature": 0.9, "seed": 3}),
        ({"top_p": 0.7, "seed": 3}, {"do_sample": True, "top_p": 0.7, "seed": 3}),
        ({"temperature": 0, "top_p": 0.7, "top_k": 3}, {}),
        ({"num_beams": 3, "max_tokens": 8}, {"num_beams": 3, "max_new_tokens": 8}),
        ({"stop": ["small", "?"]}, {"stop_strings": ["small", "?"]}),
        ({"bad_words": ["Thank", "asking"], "repetition_penalty": 1.2}, "names"),
        ({"min_tokens": 12, "max_tokens": 14, "no_repeat_ngram_size": 3}, "names"),
    ],
)
def test_three_turns_are_those_of_a_session(ask, stream, model, settings, same):
    names = {"max_tokens": "max_new_tokens", "min_tokens": "min_new_tokens"}
    same = {names.get(name, name): value for name, value in settings.items()} if same == "names" else same
    session = model.chat("You are a kind assistant.", **same)
    messages = [{"role": "developer", "content": "You are a kind assistant."}]
    for text in SAID:
        messages.append(user(text))
        expected = session.send(text)
        answer = ask(messages, **settings)
        [choice] = answer["choices"]
        assert choice["message"] == {"role": "assistant", "content": expected.text, "refusal": None}
        assert choice["finish_reason"] == expected.finish_reason
        counts = answer["usage"]
        assert counts["prompt_tokens"] == expected.prompt_tokens
        if "stop" not in settings:  # of which the session counts all that was written meanwhile
            ended = expected.finish_reason == "stop"
            assert counts["completion_tokens"] == expected.new_tokens + ended  # the end of the turn
        assert counts["total_tokens"] == counts["prompt_tokens"] + counts["completion_tokens"]
        events = stream(messages, **settings)
        assert "".join(each["choices"][0]["delta"].get("content", "") for each in events) == expected.text
        messages.append(assistant(expected.text))


def test_a_saved_conversation_goes_on_alike(ask, model, tmp_path):
    messages = [Message("user", NEPALI), Message("assistant", "म ठीक छु।")]
    write_conversation(tmp_path / "talk.json", messages)
    session = ChatSession(model)
    session.load(tmp_path / "talk.json")
    expected = session.send("What is your name?")
    answer = ask([user(NEPALI), assistant("म ठीक छु।"), user("What is your name?")])
    assert answer["choices"][0]["message"]["content"] == expected.text


def test_a_stream_has_the_events_that_clients_wait_for(stream, ask):
    messages = [user(SAID[0])]
    found = stream(messages, stream_options={"include_usage": True})
    assert len({(each["id"], each["created"], each["model"], each["object"]) for each in found}) == 1
    assert found[0]["object"] == "chat.completion.chunk"
    assert found[0]["id"].startswith("chatcmpl-")
    first, *parts, last, counts = found
    assert first["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    for each in parts:
        [choice] = each["choices"]
        assert list(choice["delta"]) == ["content"]
        assert choice["delta"]["content"]
        assert choice["finish_reason"] is None
    assert last["choices"] == [{"index": 0, "delta": {}, "logprobs": None, "finish_reason": "stop"}]
    assert counts["choices"] == []
    assert {each["usage"] for each in found[:-1]} == {None}
    whole = ask(messages)
    fields = ("prompt_tokens", "completion_tokens", "total_tokens")
    assert [counts["usage"][name] for name in fields] == [whole["usage"][name] for name in fields]
    assert whole["system_fingerprint"] == counts["system_fingerprint"]
    assert all("usage" not in each for each in stream(messages))


def test_several_replies_are_told_apart(stream, ask):
    messages, settings = [user(SAID[0])], {"n": 3, "temperature": 1.5, "min_p": 0, "top_k": 0, "seed": 2}
    whole = ask(messages, **settings)
    assert whole["seed"] == 2
    texts = [each["message"]["content"] for each in whole["choices"]]
    assert len(set(texts)) > 1
    found = [each["choices"][0] for each in stream(messages, **settings)]
    for index, text in enumerate(texts):
        own = [each for each in found if each["index"] == index]
        assert own[0]["delta"]["role"] == "assistant"
        assert "".join(each["delta"].get("content", "") for each in own) == text
        assert [each["finish_reason"] for each in own].count(None) == len(own) - 1


def test_log_probabilities_belong_to_the_text(ask, stream, model):
    messages = [user(SAID[0])]
    [choice] = ask(messages, logprobs=True, top_logprobs=4)["choices"]
    entries, text = choice["logprobs"]["content"], choice["message"]["content"]
    session = model.chat()
    session.send(SAID[0])
    assert "".join(each["token"] for each in entries) == text
    assert bytes(byte for each in entries for byte in each["bytes"]).decode() == text
    assert math.fsum(each["logprob"] for each in entries) == pytest.approx(session.last.log_prob, abs=1e-3)
    for each in entries:
        best = [every["logprob"] for every in each["top_logprobs"]]
        assert len(best) == 4
        assert best == sorted(best, reverse=True)
        assert each["logprob"] == pytest.approx(best[0])  # greedy
        assert each["logprob"] <= 0
    parts = [each["choices"][0] for each in stream(messages, logprobs=True, top_logprobs=4)]
    found = [entry for each in parts if each["logprobs"] for entry in each["logprobs"]["content"]]
    assert [(each["token"], each["bytes"]) for each in found] == [(each["token"], each["bytes"]) for each in entries]
    assert [each["logprob"] for each in found] == pytest.approx([each["logprob"] for each in entries], abs=1e-4)
    shown = told = ""
    for each in parts:  # no token is told before its text is
        shown += each["delta"].get("content", "")
        told = [
            entry
            for other in parts[: parts.index(each) + 1]
            if other["logprobs"]
            for entry in other["logprobs"]["content"]
        ]
        assert shown.startswith("".join(entry["token"] for entry in told))
    [cut] = ask(messages, logprobs=True, stop="small")["choices"]
    assert "".join(each["token"] for each in cut["logprobs"]["content"]) == cut["message"]["content"]
    assert cut["finish_reason"] == "stop"


def test_contents_may_be_parts_and_letters_of_any_form(ask):
    whole = ask([user("Hello, who are you?")])["choices"][0]["message"]
    parts = [{"type": "text", "text": each} for each in ("Hello, ", "who are you?")]
    assert ask([user(parts)])["choices"][0]["message"] == whole
    one, two = (ask([user(text)], max_tokens=5) for text in ("cafe\u0301", "caf\u00e9"))
    assert one["choices"] == two["choices"]
    assert one["usage"]["prompt_tokens"] == two["usage"]["prompt_tokens"]


def test_replies_of_a_model_may_be_sent_back_whatever_they_are(ask):
    whole = ask([user(SAID[0])], max_tokens=5)
    silent = ask([user("Say nothing."), assistant(""), user(SAID[0])], max_tokens=5)
    assert whole["choices"] == silent["choices"]
    assert whole["usage"]["prompt_tokens"] == silent["usage"]["prompt_tokens"]
    assert ask([user(SAID[0]), assistant("a\0b"), user(SAID[0])], max_tokens=1)["choices"]


def test_a_conversation_beyond_the_context_is_refused_or_truncated(ask, server, model):
    session = model.chat(max_new_tokens=4)
    messages = []
    for number in range(30):
        messages += [user(f"My number is {number}. " + "What do you say to it? " * 14)]
        expected = session.send(messages[-1]["content"])
        if expected.dropped:
            break
        messages += [assistant(expected.text or "…")]
    fields = {"model": "chat", "messages": messages, "max_tokens": 4}
    status, answer, headers = server.ask("/v1/chat/completions", fields)
    assert (status, answer["error"]["code"]) == (400, "context_length_exceeded")
    count = server.ask("/tokenize", {"model": "chat", "messages": messages})[1]["count"]
    assert f"the conversation has {count} tokens, and the model has room for 508 beside" in answer["error"]["message"]
    assert "truncation" in answer["error"]["message"]
    assert "retry-after" not in headers
    answer = ask(messages, max_tokens=4, truncation="auto")
    assert answer["dropped_messages"] == 2 * expected.dropped > 0
    assert answer["choices"][0]["message"]["content"] == expected.text
    assert answer["usage"]["prompt_tokens"] == expected.prompt_tokens <= 508
    assert ask(messages[:1], truncation="auto")["dropped_messages"] == 0
    assert "dropped_messages" not in ask(messages[:1])


def test_letters_are_whole_at_the_borders_of_events(stream, ask):
    messages = [user(NEPALI)]
    parts = [each["choices"][0]["delta"].get("content", "") for each in stream(messages)]
    assert "".join(parts) == ask(messages)["choices"][0]["message"]["content"]
    parts = [each for each in parts if each]
    assert any(0x900 <= ord(letter) < 0x980 for letter in "".join(parts))
    for one, two in pairwise(parts):
        assert not 0x93A <= ord(two[0]) <= 0x94F
        assert not one.endswith("्") or not two[0].isalpha()


def test_tokens_of_earlier_turns_are_read_once(ask):
    messages = [user(SAID[0])]
    messages += [assistant(ask(messages)["choices"][0]["message"]["content"]), user(SAID[1])]
    ask(messages)
    counts = ask(messages)["usage"]
    assert 0 <= counts["prompt_tokens_details"]["cached_tokens"] <= counts["prompt_tokens"]
