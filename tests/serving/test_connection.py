"""A client is told what is wrong, waits as long as it likes, and takes its request with it when it leaves."""

import asyncio
import json
import socket
import time
from contextlib import suppress

import pytest

pytest.importorskip("starlette")
pytest.importorskip("prometheus_client")

from toolkit.decoding import Hypothesis
from toolkit.decoding.continuous import Progress, Token
from toolkit.language_model import LanguageModel
from toolkit.models.storage import described_model
from toolkit.serving import connection
from toolkit.serving.app import application
from toolkit.serving.errors import Limits
from toolkit.serving.gate import Keys
from toolkit.serving.metrics import AccessLog
from toolkit.serving.stream import Busy, Died, Overdue, Stream
from toolkit.tokenization import load_tokenizer

PATIENCE = 60


class Scripted:
    """A host that tells what the test wants it to."""

    kind, languages, facts, ready, created, name = "language-model", [], {}, True, 1, "scripted"
    running = waiting = restarts = 0

    def __init__(self, reader):
        self.reader, self.streams, self.left, self.waits, self.refusal = reader, [], [], [], None
        self.asked = asyncio.Event()

    def submit(self, request, wait=None, reader=None):
        if self.refusal:
            raise self.refusal
        assert reader is self.reader
        self.waits.append(wait)
        stream = Stream(request, self.left.append)
        stream.sent = time.monotonic()
        self.streams.append(stream)
        self.asked.set()
        return stream


class Client:
    """Sends one request to an application, and leaves when it wants."""

    def __init__(self, app, path, body):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.incoming = asyncio.Queue()
        self.incoming.put_nowait({"type": "http.request", "body": data, "more_body": False})
        self.sent, self.news = [], asyncio.Event()
        headers = [(b"host", b"localhost"), (b"content-type", b"text/plain")]
        path = {"path": path, "raw_path": path.encode(), "query_string": b"", "root_path": ""}
        scope = {"type": "http", "asgi": {"version": "3.0", "spec_version": "2.3"}, "http_version": "1.1", **path}
        scope |= {"method": "POST", "headers": headers, "client": ("127.0.0.1", 1), "server": ("127.0.0.1", 2)}
        self.task = asyncio.create_task(app(scope | {"scheme": "http"}, self.incoming.get, self.send))

    async def send(self, message):
        self.sent.append(message)
        self.news.set()

    def leave(self):
        self.incoming.put_nowait({"type": "http.disconnect"})

    async def until(self, text):
        while text not in self.body:
            self.news.clear()
            await self.news.wait()

    @property
    def status(self):
        return self.sent[0]["status"] if self.sent else None

    @property
    def body(self):
        return b"".join(message.get("body", b"") for message in self.sent).decode()

    @property
    def events(self):
        lines = [each for each in self.body.split("\n\n") if each.startswith("data: ")]
        return [each[6:] if each == "data: [DONE]" else json.loads(each[6:]) for each in lines]


@pytest.fixture
def talk(tiny_gpt):
    """Runs a scene with a host, its application, and a function that makes clients."""

    def run(scene, **limits):
        async def play():
            model, _ = described_model(tiny_gpt)
            host = Scripted(LanguageModel(model, load_tokenizer(tiny_gpt)))
            app = application({"scripted": host}, Limits(**limits), Keys(), AccessLog(None))
            clients = []

            def client(body, path="/v1/completions"):
                clients.append(Client(app, path, body))
                return clients[-1]

            try:
                await asyncio.wait_for(scene(host, client), PATIENCE)
            finally:
                for each in clients:
                    each.leave()
                    with suppress(Exception):
                        await each.task

        asyncio.run(play())

    return run


def news(*tokens, sample=0, done=None):
    written = [(sample, Token(each, -1.0, [])) for each in tokens]
    return Progress(0, written, hypotheses=None if done is None else [Hypothesis([], 0.0, 0.0, done, [])])


def until(condition):
    """Ask again and again until something is so."""
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline


def a_token(host, text="a"):
    return host.reader.tokenizer.encode(text)[-1]


@pytest.mark.parametrize("stream", [False, True])
def test_a_client_that_leaves_takes_its_requests_with_it(talk, stream):
    async def scene(host, client):
        body = {"prompt": ["I am", "She is"], "stream": stream}
        one = client(body)
        while len(host.streams) < 2:
            await asyncio.sleep(0)
        host.streams[0].push(news(a_token(host)))
        if stream:
            await one.until("data: ")
        one.leave()
        await one.task
        assert set(host.left) == set(host.streams)

    talk(scene)


def test_one_that_leaves_before_anything_was_written_too(talk):
    async def scene(host, client):
        one = client({"prompt": "I am", "stream": True})
        await host.asked.wait()
        one.leave()
        await one.task
        assert host.left == host.streams

    talk(scene)


def test_what_fails_before_the_first_token_is_an_answer_with_a_status(talk):
    async def scene(host, client):
        host.refusal = Busy("64 requests wait already", 3)
        one = client({"prompt": "I am", "stream": True})
        await one.task
        headers = dict(one.sent[0]["headers"])
        assert one.status == 429
        assert headers[b"retry-after"] == b"3"
        assert json.loads(one.body)["error"]["message"] == "64 requests wait already"
        host.refusal = None
        two = client({"prompt": "I am", "stream": True})
        await host.asked.wait()
        host.streams[0].fail(Overdue("it has waited for 30 seconds", 1))
        await two.task
        assert two.status == 503

    talk(scene)


def test_what_fails_later_is_an_event_and_the_end(talk):
    async def scene(host, client):
        one = client({"prompt": "I am", "stream": True})
        await host.asked.wait()
        host.streams[0].push(news(a_token(host)))
        await one.until("data: ")
        host.streams[0].fail(Died("the process of the model has ended"))
        await one.task
        assert one.status == 200
        assert one.events[-1]["error"]["message"] == "the process of the model has ended"
        assert "[DONE]" not in one.body
        assert one.sent[-1]["more_body"] is False

    talk(scene)


def test_comments_are_sent_while_there_is_nothing(talk, monkeypatch):
    monkeypatch.setattr(connection, "PING", 0.01)

    async def scene(host, client):
        one = client({"prompt": "I am", "stream": True})
        await one.until(": waiting\n\n: waiting\n\n")
        assert (one.status, one.events) == (200, [])
        host.streams[0].push(news(a_token(host), done=False))
        await one.task
        assert one.events[-1] == "[DONE]"
        assert one.events[0]["choices"][0]["finish_reason"] == "length"

    talk(scene)


def test_a_fault_of_ours_in_the_middle_is_told_and_logged(talk, monkeypatch):
    async def scene(host, client):
        one = client({"prompt": "I am", "stream": True})
        await host.asked.wait()
        host.streams[0].push(news(a_token(host)))
        await one.until("data: ")
        host.streams[0].push(Progress(0, [(7, Token(1, -1.0, []))]))  # a sample that nobody asked for
        with pytest.raises(IndexError):
            await one.task
        assert one.events[-1]["error"]["type"] == "server_error"

    talk(scene)


def test_prompts_of_a_list_are_with_the_engine_a_few_at_a_time(talk):
    async def scene(host, client):
        one = client({"prompt": ["I am"] * 20})
        for number in range(20):
            while len(host.streams) <= number:
                await asyncio.sleep(0)
            assert len([each for each in host.streams if not each.done]) <= 8
            host.streams[number].push(news(a_token(host), done=True))
        await one.task
        assert [each["index"] for each in json.loads(one.body)["choices"]] == [*range(20)]
        assert [each.request.number for each in host.streams] == [*range(20)]

    talk(scene)


def test_what_is_asked_for_reaches_the_engine_within_the_limits(talk):
    async def scene(host, client):
        client({"prompt": "I am", "max_tokens": 99, "logprobs": 4, "echo": True, "max_wait": 2, "bad_words": ["boy"]})
        client({"prompt": "I am", "logit_bias": {"20": -100}, "temperature": 0})
        while len(host.streams) < 2:
            await asyncio.sleep(0)
        one, two = (stream.request for stream in host.streams)
        assert (one.config.max_new_tokens, two.config.max_new_tokens) == (6, 6)
        assert (one.alternatives, one.score_prompt, two.alternatives, two.score_prompt) == (4, True, 0, False)
        assert (one.config.samples, two.config.samples, one.config.seed is None) == (True, False, False)
        assert (one.bad_words, two.bad_words) == (host.reader.bad_ids(["boy"]), [[20]])
        assert host.waits == [2.0, 7.0]
        for body, words in (({"n": 3}, "n is 3: it must be at most 2"), ({"num_beams": 5}, "at most 4")):
            three = client({"prompt": "I am", **body})
            await three.task
            assert words in json.loads(three.body)["error"]["message"]

    talk(scene, tokens=6, n=2, beams=4, wait=7.0)


def test_a_real_client_that_leaves_is_not_written_to_any_more(server):
    """A request of 4096 tokens, without a stream, of which most are never written."""

    def figure(name):
        lines = server.ask("/metrics")[1].splitlines()
        return float(next(line for line in lines if line.startswith(f'{name}{{model="stories"}}')).rsplit(" ", 1)[1])

    before = figure("toolkit_written_tokens_total")
    fields = {"model": "stories", "prompt": "Once", "past_context": "slide", "max_tokens": 4096, "min_tokens": 4095}
    body = json.dumps(fields).encode()
    host, port = server.address.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), PATIENCE) as client:
        head = f"POST /v1/completions HTTP/1.1\r\nHost: {host}:{port}\r\nContent-Length: {len(body)}\r\n\r\n"
        client.sendall(head.encode() + body)
        until(lambda: figure("toolkit_running"))
    until(lambda: not figure("toolkit_running"))
    assert figure("toolkit_written_tokens_total") - before < 4096


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b"", "is empty"),
        (b"{", "is not JSON: expecting property name"),
        (b'{"prompt": "\xff"}', "is not UTF-8: byte 13"),
        (b"[]", "is a list: send an object"),
        (b"null", "is null"),
        (b'"text"', "is text"),
        (b'{"n": 1' + b"0" * 5000 + b"}", "digits"),
        (b'{"prompt": ' + b"[" * 2000 + b"]" * 2000 + b"}", "nested too deeply"),
        (b"[" * 200_000, "nested too deeply"),
        (b'{"temperature": NaN}', "temperature is NaN: it must be a finite number"),
        (b'{"temperature": 1e999}', "temperature is Infinity: it must be a finite number"),
        (b'{"prompt": "\\ud800"}', "half of a surrogate pair"),
        (b'{"a\\ud800": 1}', "there is no field"),
        (b'{"prompt": "x", "model": "\\ud800"}', "half of a surrogate pair"),
    ],
)
def test_a_body_that_is_none_is_refused_in_a_sentence(talk, body, words):
    async def scene(host, client):
        one = client(body)
        await one.task
        assert one.status == 400
        assert words in json.loads(one.body)["error"]["message"]
        assert host.streams == []

    talk(scene)


def test_a_byte_order_mark_is_passed_over(talk):
    async def scene(host, client):
        one = client(b'\xef\xbb\xbf{"prompt": "I am", "n": 99}')
        await one.task
        assert json.loads(one.body)["error"]["param"] == "n"

    talk(scene)
