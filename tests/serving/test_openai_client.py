"""The official client of OpenAI works against the server, also where it checks every field that comes."""

import asyncio

import pytest

import toolkit

openai = pytest.importorskip("openai")
pytest.importorskip("starlette")

MESSAGES = [{"role": "user", "content": "Hello, who are you?"}]


@pytest.fixture(scope="module", params=[False, True], ids=["lenient", "strict"])
def client(request, server):
    strict = request.param
    settings = {"api_key": "any", "max_retries": 0, "_strict_response_validation": strict}
    with openai.OpenAI(base_url=f"{server.address}/v1", **settings) as client:
        yield client


@pytest.fixture(scope="module")
def expected():
    return toolkit.load_language_model("chat").chat().send(MESSAGES[0]["content"]).text


def test_models(client):
    found = client.models.list().data
    assert [each.id for each in found] == ["en-ne-small", "chat", "stories", "stories-ne"]
    assert client.models.retrieve("chat").model_extra["kind"] == "chat"


def test_a_reply(client, expected):
    answer = client.chat.completions.create(
        model="chat", messages=MESSAGES, logprobs=True, top_logprobs=2, extra_body={"truncation": "auto"}
    )
    assert answer.choices[0].message.content == expected
    assert answer.choices[0].finish_reason == "stop"
    assert "".join(each.token for each in answer.choices[0].logprobs.content) == expected
    assert answer.model_extra["dropped_messages"] == 0
    assert answer.usage.prompt_tokens_details.cached_tokens >= 0
    # The message is sent back as it came, with all the fields that the client has put into it.
    again = [*MESSAGES, answer.choices[0].message.model_dump(), {"role": "user", "content": "Thank you."}]
    assert client.chat.completions.create(model="chat", messages=again).choices[0].message.content


def test_a_stream_of_a_reply(client, expected):
    settings = {"stream": True, "stream_options": {"include_usage": True}, "logprobs": True}
    *events, last = client.chat.completions.create(model="chat", messages=MESSAGES, **settings)
    assert "".join(each.choices[0].delta.content or "" for each in events) == expected
    assert events[0].choices[0].delta.role == "assistant"
    assert [each.choices[0].finish_reason for each in events][-2:] == [None, "stop"]
    assert (last.choices, last.usage.total_tokens) == ([], last.usage.prompt_tokens + last.usage.completion_tokens)


def test_the_helper_for_streams(client, expected):
    with client.chat.completions.stream(model="chat", messages=MESSAGES) as stream:
        deltas = [event.delta for event in stream if event.type == "content.delta"]
        final = stream.get_final_completion()
    assert "".join(deltas) == final.choices[0].message.content == expected


def test_completions(client):
    answer = client.completions.create(
        model="stories", prompt=["Once", "The"], max_tokens=5, echo=True, logprobs=2, seed=1, extra_body={"min_p": 0.2}
    )
    assert [each.index for each in answer.choices] == [0, 1]
    for each, begin in zip(answer.choices, ("Once", "The"), strict=True):
        assert each.text.startswith(begin)
        assert "".join(each.logprobs.tokens) == each.text
    by_ids = client.completions.create(model="stories", prompt=[[20, 30], [40]], max_tokens=2, n=2)
    assert len(by_ids.choices) == 4


def test_a_stream_of_completions(client):
    whole = client.completions.create(model="stories", prompt="Once", max_tokens=8, seed=1).choices[0].text
    events = client.completions.create(model="stories", prompt="Once", max_tokens=8, seed=1, stream=True)
    if client._strict_response_validation:
        # Its schema has no null for finish_reason here, which OpenAI's own server sends as every other does: in all
        # events but the last, of which a client that is slow may find no other.
        try:
            assert [each.choices[0].finish_reason for each in events] == ["length"]
        except openai.APIResponseValidationError:
            events.close()
        return
    assert "".join(each.choices[0].text for each in events) == whole


def test_errors_are_the_classes_that_they_should_be(client):
    long = [{"role": "user", "content": "word " * 900}]
    for error, code, fields in (
        (openai.NotFoundError, "model_not_found", {"model": "gpt-4", "messages": MESSAGES}),
        (openai.BadRequestError, None, {"model": "chat", "messages": MESSAGES, "n": 99}),
        (openai.BadRequestError, None, {"model": "chat", "messages": MESSAGES, "extra_body": {"topk": 3}}),
        (openai.BadRequestError, "context_length_exceeded", {"model": "chat", "messages": long}),
    ):
        with pytest.raises(error) as caught:
            client.chat.completions.create(**fields)
        assert caught.value.code == code
        assert caught.value.type == "invalid_request_error"
        assert caught.value.body["message"]
    assert caught.value.param is None or isinstance(caught.value.param, str)


def test_leaving_a_stream_closes_it(client):
    with client.chat.completions.create(model="chat", messages=MESSAGES, stream=True) as events:
        assert next(iter(events)).choices[0].delta.role == "assistant"
    assert client.chat.completions.create(model="chat", messages=MESSAGES).choices[0].finish_reason == "stop"


@pytest.mark.parametrize("stream", [False, True])
def test_the_asynchronous_client(server, expected, stream):
    async def talk():
        async with openai.AsyncOpenAI(base_url=f"{server.address}/v1", api_key="any", max_retries=0) as client:
            asked = (client.chat.completions.create(model="chat", messages=MESSAGES, stream=stream) for _ in range(3))
            found = await asyncio.gather(*asked)
            if not stream:
                return [each.choices[0].message.content for each in found]
            return ["".join([part.choices[0].delta.content or "" async for part in each]) for each in found]

    assert asyncio.run(talk()) == [expected] * 3
