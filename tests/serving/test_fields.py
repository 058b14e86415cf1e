"""Every field of every endpoint: right values, null, wrong types, values out of range, and names that do not exist."""

import json
import re

import pytest

pytest.importorskip("starlette")

from toolkit.serving import catalogue, chat_completions, completions
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import choice, flag, ids, number, read_fields, text, texts, whole

NOT_WHOLE, NOT_A_NUMBER, NOT_A_FLAG = ["1", True, 1.5, [], {}], ["1", True, [], {}], [0, "true", [], {}]
NOT_TEXT, NOT_AN_OBJECT = [1, True, [], {}], [1, True, "x", []]
ASKED = [{"role": "user", "content": "Hello"}]

# Of each field: values that are taken, values that are not.
SHARED = {
    "model": (["{model}"], NOT_TEXT),
    "max_tokens": ([1, 2.0, 10**6], [*NOT_WHOLE, -1]),
    "temperature": ([0, 0.5, 2], [*NOT_A_NUMBER, -0.1]),
    "top_p": ([0.5, 1], [*NOT_A_NUMBER, -0.1, 1.1]),
    "n": ([1], [*NOT_WHOLE, 0, 17]),
    "stop": (["\n", [], ["a", "b"]], [1, True, {}, [1], "", ["a", ""], ["a"] * 17, "a" * 257]),
    "seed": ([0, 2**63 - 1], [*NOT_WHOLE, -1]),
    "stream": ([False, True], NOT_A_FLAG),
    "stream_options": ([], [*NOT_AN_OBJECT, {"include_usage": 1}, {"usage": True}]),
    "logit_bias": (
        [{}, {"20": -100}, {"20": 0}],
        [*NOT_AN_OBJECT, {"20": 5}, {"20": True}, {"x": -100}, {"99999": -100}, {"-1": -100}],
    ),
    "user": (["somebody"], NOT_TEXT),
    "top_k": ([0, 5], [*NOT_WHOLE, -1]),
    "min_p": ([0, 0.5], [*NOT_A_NUMBER, -0.1, 1.1]),
    "repetition_penalty": ([1.2], [*NOT_A_NUMBER, 0, -1]),
    "no_repeat_ngram_size": ([0, 2], [*NOT_WHOLE, -1]),
    "num_beams": ([1, 2], [*NOT_WHOLE, 0, 17]),
    "length_penalty": ([0, 2.0], [*NOT_A_NUMBER, 101]),
    "early_stopping": (["settled"], [1, "sometimes", [], True]),  # true is of beams, and there is one
    "min_tokens": ([0, 1], [*NOT_WHOLE, -1, 2]),  # max_tokens is 1
    "bad_words": ([[], ["bad"]], ["bad", 1, True, {}, [1], [""], ["a"] * 17]),
    "do_sample": ([True, False], NOT_A_FLAG),
    "max_wait": ([1, 30], [*NOT_A_NUMBER, -1, 31]),
    "presence_penalty": ([0, 0.0], [0.5, "0", True]),
    "frequency_penalty": ([0, 0.0], [0.5, "0", True]),
}
COMPLETIONS = SHARED | {
    "prompt": (
        ["Once", "", ["Once", "The"], [20, 30], [[20], [30, 40]]],
        [1, True, {}, [], [1, "a"], [True], [-1], [1.5], [99999], [["a"]], ["a"] * 65],
    ),
    "echo": ([True, False], NOT_A_FLAG),
    "logprobs": ([0, 3], [*NOT_WHOLE, -1, 21]),
    "best_of": ([1, 2], [*NOT_WHOLE, 0, 17]),
    "past_context": (["stop", "slide"], [1, True, "go on"]),
    "max_tokens": ([0, 1, 2.0, 10**6], [*NOT_WHOLE, -1]),
    "suffix": ([""], ["the end", 1]),
}
CHAT = SHARED | {
    "messages": (
        [
            ASKED,
            [{"role": "system", "content": "Be kind."}, *ASKED],
            [{"role": "developer", "content": "Be kind."}, *ASKED],
            [*ASKED, {"role": "assistant", "content": "Hi.", "refusal": None, "tool_calls": None}, *ASKED],
            [*ASKED, {"role": "assistant", "content": "Hi.", "annotations": [], "tool_calls": []}, *ASKED],
            [{"role": "user", "content": [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}]}],
        ],
        [
            *([value] for value in (1, "x", None, [], {})),
            *(1, True, "x", {}, []),
            [{"role": "user"}],
            [{"content": "Hello"}],
            [{"role": 123, "content": "Hello"}],
            [{"role": "tool", "content": "Hello"}],
            [{"role": "user", "content": 123}],
            [{"role": "user", "content": None}],
            [{"role": "user", "content": " "}],
            [{"role": "user", "content": "a\0b"}],
            [{"role": "user", "content": "\ud800"}],
            [{"role": "user", "content": []}],
            [{"role": "user", "content": ["Hello"]}],
            [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}],
            [{"role": "user", "content": [{"type": "text"}]}],
            [{"role": "user", "content": [{"type": "text", "text": "a", "bold": True}]}],
            [{"role": "user", "content": "Hello", "name": "Rita"}],
            [{"role": "user", "content": "Hello", "mood": "good"}],
            [{"role": "user", "content": "Hello", "tool_calls": [{}]}],
            [*ASKED, *ASKED],
            [*ASKED, {"role": "system", "content": "Be kind."}],
            [*ASKED, {"role": "assistant", "content": "Hi."}],
            [{"role": "assistant", "content": "Hi."}],
            [{"role": "system", "content": "Be kind."}],
            ASKED * 1025,
        ],
    ),
    "max_tokens": ([1, 2.0, 10**6], [*NOT_WHOLE, 0, -1]),
    "max_completion_tokens": ([1], [*NOT_WHOLE, 0, 2]),  # max_tokens is 1
    "logprobs": ([True, False], NOT_A_FLAG),
    "top_logprobs": ([0], [*NOT_WHOLE, -1, 1, 21]),  # 1 needs logprobs
    "truncation": (["auto", "disabled"], [1, True, "yes"]),
    "safety_identifier": (["somebody"], NOT_TEXT),
    "prompt_cache_key": (["something"], NOT_TEXT),
    "past_context": (["stop"], ["slide", 1]),
    "tools": ([[]], [[{"type": "function"}], {}]),
    "tool_choice": (["none", "auto"], ["required", {}]),
    "parallel_tool_calls": ([True, False], [1]),
    "functions": ([[]], [[{}]]),
    "function_call": (["none", "auto"], [{}]),
    "response_format": ([{"type": "text"}], [{"type": "json_object"}, "text"]),
    "modalities": ([["text"]], [["text", "audio"]]),
    "audio": ([], [{}]),
    "prediction": ([], [{"type": "content", "content": "x"}]),
    "store": ([False], [True, 0]),
    "metadata": ([{}], [{"a": "b"}]),
    "service_tier": (["auto", "default"], ["flex"]),
    "reasoning_effort": (["none"], ["high"]),
    "verbosity": ([], ["low"]),
    "web_search_options": ([], [{}]),
}
TOKENIZE = {
    "model": (["{model}"], NOT_TEXT),
    "prompt": (["Once", ""], [*NOT_TEXT, "\ud800"]),
    "content": ([], NOT_TEXT),  # beside a prompt
    "messages": ([], [ASKED]),
    "add_special_tokens": ([True, False], NOT_A_FLAG),
}
DETOKENIZE = {"model": (["{model}"], NOT_TEXT), "tokens": ([[20, 30], []], [1, "x", [True], [-1], ["a"], [99999]])}

ENDPOINTS = {
    "/v1/completions": ("stories", {"prompt": "Once", "max_tokens": 1}, COMPLETIONS),
    "/v1/chat/completions": ("chat", {"messages": ASKED, "max_tokens": 1}, CHAT),
    "/tokenize": ("stories", {"prompt": "Once"}, TOKENIZE),
    "/v1/detokenize": ("stories", {"tokens": [20]}, DETOKENIZE),
}
NEEDED = {"messages", "tokens"}


def test_the_tables_have_all_fields():
    limits = Limits()
    assert set(COMPLETIONS) == {*completions._readers(limits), *completions._REFUSED}
    assert set(CHAT) == {*chat_completions._readers(limits), *chat_completions._REFUSED}
    assert set(TOKENIZE) == {*catalogue._TOKENIZE}
    assert set(DETOKENIZE) == {*catalogue._DETOKENIZE}


@pytest.mark.parametrize("path", ENDPOINTS)
def test_right_values_are_taken_and_null_is_not_given(server, path):
    model, least, table = ENDPOINTS[path]
    for name, (right, _) in table.items():
        for value in [*right, *([] if name in {*NEEDED, "model", "prompt"} else [None])]:
            value = model if value == "{model}" else value
            status, answer, _ = server.ask(path, {"model": model, **least, name: value})
            assert status == 200, (name, value, answer)
    status, answer, _ = server.ask(path, {"model": model, **least} | dict.fromkeys(set(table) - {*least, "model"}))
    assert status == 200, answer


@pytest.mark.parametrize("path", ENDPOINTS)
def test_wrong_values_are_refused_by_name(server, path):
    model, least, table = ENDPOINTS[path]
    for name, (_, wrong) in table.items():
        for value in wrong:
            status, answer, _ = server.ask(path, {"model": model, **least, name: value})
            assert status == 400, (name, value, answer)
            error = answer["error"]
            assert set(error) == {"message", "type", "param", "code"}
            if not (path == "/tokenize" and name == "messages"):  # two fields together
                assert str(error["param"]).startswith(name), (name, value, error)
                assert name in error["message"] or name in ("messages", "prompt"), error
            assert 10 < len(error["message"]) <= 500


@pytest.mark.parametrize("path", ENDPOINTS)
def test_a_field_that_does_not_exist_is_named_with_the_nearest(server, path):
    model, least, table = ENDPOINTS[path]
    name = "promt" if "prompt" in table else "mesages" if "messages" in table else "token"
    right = "prompt" if "prompt" in table else "messages" if "messages" in table else "tokens"
    status, answer, _ = server.ask(path, {"model": model, **least, name: None})
    assert status == 400
    assert answer["error"]["message"] == f"there is no field {name}: did you mean {right}?"
    status, answer, _ = server.ask(path, {"model": model, **least, "qqqq": 1})
    assert answer["error"]["message"].startswith("there is no field qqqq: there are ")


@pytest.mark.parametrize(
    ("path", "fields", "words"),
    [
        ("/v1/completions", {"n": 2, "best_of": 1}, "best_of is 1, and n is 2"),
        ("/v1/completions", {"best_of": 3, "stream": True}, "the best are known at the end only"),
        ("/v1/completions", {"n": 2, "temperature": 0}, "n is 2, but nothing is drawn"),
        ("/v1/completions", {"best_of": 2, "do_sample": False}, "best_of is 2, but nothing is drawn"),
        ("/v1/completions", {"n": 3, "num_beams": 2}, "n is 3, but a search with 2 beams finds no more than 2"),
        ("/v1/completions", {"num_beams": 2, "stop": "x"}, "beam search knows no stop strings"),
        ("/v1/completions", {"num_beams": 2, "logprobs": 1}, "beam search keeps no other tokens"),
        ("/v1/completions", {"num_beams": 2, "temperature": 1}, "sampling has no beams"),
        ("/v1/completions", {"do_sample": False, "top_p": 0.5}, "top_p is 0.5"),
        ("/v1/completions", {"min_tokens": 4, "max_tokens": 3}, "min_tokens is 4, but max_tokens 3"),
        ("/v1/completions", {"stream_options": {"include_usage": True}}, "stream_options are of a stream"),
        ("/v1/completions", {"logit_bias": {"3": -100}}, "the id 3: it ends a text"),
        ("/v1/completions", {"prompt": "a " * 700}, "room for 254 before what it writes"),
        ("/v1/completions", {"prompt": [20] * 255}, "the prompt has 255 tokens, and the model has room for 254"),
        ("/v1/completions", {"prompt": ["a", "b " * 400]}, "prompt[1] has "),
        ("/v1/completions", {"prompt": [20] * 257, "max_tokens": 0, "past_context": "slide"}, "256 can be scored"),
        ("/v1/completions", {"prompt": "a" * 20_000}, "20000 characters, more than the model reads"),
        ("/v1/chat/completions", {"max_tokens": 1, "max_completion_tokens": 2}, "two names of one thing"),
        ("/v1/chat/completions", {"top_logprobs": 2}, "set logprobs to true"),
        ("/v1/chat/completions", {"logprobs": True, "top_logprobs": 2, "num_beams": 2}, "beam search keeps no other"),
        ("/v1/chat/completions", {"min_tokens": 600}, "min_tokens is 600, but this model reads 512 tokens in all"),
        ("/v1/chat/completions", {"logit_bias": {"7": -100}}, "the id 7: it ends a text"),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a " * 600}]}, "the message has "),
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a" * 40_000}]}, "40000 characters"),
    ],
)
def test_fields_that_contradict_each_other_or_the_model(server, path, fields, words):
    model, least, _ = ENDPOINTS[path]
    least = {name: value for name, value in least.items() if name not in ("max_tokens",)}
    status, answer, headers = server.ask(path, {"model": model, **least, **fields})
    assert status == 400, answer
    assert words in answer["error"]["message"]
    too_long = re.search("room for|characters|scored|^the message has|\\] has", words)
    assert answer["error"]["code"] == ("context_length_exceeded" if too_long else None)
    assert "retry-after" not in headers


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"])
def test_models_are_found_or_named(server, path):
    _, least, _ = ENDPOINTS.get(path) or ENDPOINTS[f"/v1{path}"]
    status, answer, _ = server.ask(path, {"model": "storys", **least})
    assert (status, answer["error"]["code"], answer["error"]["param"]) == (404, "model_not_found", "model")
    assert "did you mean stories? There are en-ne-small, chat, stories, stories-ne" in answer["error"]["message"]
    status, answer, _ = server.ask(path, least)
    if path == "/v1/chat/completions":  # one model chats
        assert (status, answer["model"]) == (200, "chat")
    else:
        assert (status, answer["error"]["param"]) == (400, "model")
        assert answer["error"]["message"].startswith("model is missing: give one of ")


def test_models_of_another_kind_are_asked_elsewhere(server):
    for path, model, words in (
        ("/v1/completions", "en-ne-small", "translates: POST /translate"),
        ("/v1/chat/completions", "en-ne-small", "translates: POST /translate"),
        ("/v1/chat/completions", "stories", "was not taught to converse: POST /v1/completions"),
    ):
        status, answer, _ = server.ask(path, {**ENDPOINTS[path][1], "model": model})
        assert status == 400
        assert words in answer["error"]["message"]


@pytest.mark.parametrize(
    ("reader", "value", "words"),
    [
        (whole(1, 5), 6, "f is 6: it must be at most 5"),
        (whole(1, 5), 0, "f is 0: it must be at least 1"),
        (whole(0, 2**63 - 1), 2**64, "f is 18446744073709551616: it must be at most 9223372036854775807"),
        (whole(1, 5), "3", 'f is "3": it must be a whole number'),
        (whole(1, 5), False, "f is false: it must be a whole number"),
        (number(0), -1, "f is -1: it must be at least 0"),
        (number(0, 1.0), 1.5, "f is 1.5: it must be at most 1"),
        (flag, 1, "f is 1: it must be true or false"),
        (text, ["a"], 'f is ["a"]: it must be text'),
        (choice("a", True), 1, 'f is 1: it must be one of "a", true'),
        (texts(2, 3), ["a", "b", "c"], "f has 3 texts: this server takes at most 2"),
        (texts(2, 3), "abcd", "a text of f has 4 characters: it must have 1 to 3"),
        (texts(2, 3, alone=False), "a", 'f is "a": it must be a list of texts'),
        (ids, [1, True], "f is [1, true]: it must be a list of ids, which are whole numbers from 0 on"),
        (text, {"a": 1}, "f is an object: it must be text"),
        (whole(1, 5), "x" * 100, f'f is "{"x" * 38}…: it must be a whole number'),
    ],
)
def test_sentences_of_the_readers(reader, value, words):
    with pytest.raises(ApiError) as caught:
        read_fields(json.loads(json.dumps({"f": value})), {"f": reader})
    assert (caught.value.message, caught.value.param, caught.value.status) == (words, "f", 400)
