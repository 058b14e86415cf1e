"""The inside of a model process: it owns the weights, decodes requests together, and tells the front what comes of it.

Both sides write pickles, each behind its length, to the two ends of a pair of sockets:

    to the process      ("add", Request)    ("cancel", key)    ("attend", number, pairs)
    to the front        ("ready", facts) or ("failed", error), then ("news", news, answers, figures) after a step

The front closes its end when the process may go; so does the system where the front has died.
"""

import gc
import pickle
import select
import socket
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from toolkit.api import Dtype, load
from toolkit.decoding import Hypothesis, cross_attention
from toolkit.decoding.continuous import ContinuousBatch, Progress, Token
from toolkit.errors import ModelError, ToolkitError
from toolkit.functional.arrays import Array
from toolkit.models.seq2seq import Seq2Seq
from toolkit.process import ignore_signals
from toolkit.serving.stream import Failed, ServingError, join

# Pairs whose attention is computed between two steps at most.
_PAIRS_AT_ONCE = 8
_READ_BYTES = 1 << 16
# Seconds that tokens wait for others, but the first few and the last of a request: to wake an idle front took 50 µs,
# where a step of 16 conversations took 2,000.
_INTERVAL = 0.01
# News of a request that do not wait: the first token is often a mark or a space, and the first letters come after it.
_AT_ONCE = 3

Pairs = Sequence[tuple[Sequence[int], Sequence[int]]]


@dataclass(frozen=True)
class Settings:
    """Settings of a model process; batch makes, of the model, what decodes."""

    directory: Path
    name: str
    dtype: Dtype = "auto"
    places: int = 32
    piece: int = 64
    threads: int | None = None  # of BLAS; None: as the size of the model says
    batch: Callable[..., ContinuousBatch] = ContinuousBatch


class Figures(NamedTuple):
    """Counts of what a process has done."""

    prompt_tokens: int = 0  # of all requests
    cached_tokens: int = 0  # those of them that were not read again
    written_tokens: int = 0  # of beams, those that were returned
    steps: int = 0
    busy: int = 0  # the sum over the steps of the sequences that were written
    seconds: float = 0.0  # that the steps took


class Messages:
    """Cuts what comes out of a socket into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def push(self, data: bytes) -> list[Any]:
        """Take bytes, and give the messages that have come to their end with them."""
        self._bytes += data
        begin, found = 0, []
        while len(self._bytes) - begin >= 4:
            end = begin + 4 + int.from_bytes(self._bytes[begin : begin + 4], "big")
            if len(self._bytes) < end:
                break
            found.append(pickle.loads(memoryview(self._bytes)[begin + 4 : end]))
            begin = end
        del self._bytes[:begin]
        return found


def message_bytes(message: Any) -> bytes:
    """Write a message as it goes through a socket."""
    data = pickle.dumps(message, pickle.HIGHEST_PROTOCOL)
    return len(data).to_bytes(4, "big") + data


def packed(news: Progress) -> tuple:
    """Give news as plain tuples, which are written and read faster than what they stand for."""
    written = [(sample, *token) for sample, token in news.written]
    prompt = news.prompt and [tuple(each) for each in news.prompt]
    hypotheses = None if news.hypotheses is None else [tuple(each) for each in news.hypotheses]
    return news.key, written, prompt, news.cached, hypotheses, news.error


def unpacked(values: tuple) -> Progress:
    """Give the news that were packed."""
    key, written, prompt, cached, hypotheses, error = values
    tokens = [(sample, Token(token, log_prob, best)) for sample, token, log_prob, best in written]
    prompt = prompt and [Token(*each) for each in prompt]
    found = None if hypotheses is None else [Hypothesis(*each) for each in hypotheses]
    return Progress(key, tokens, prompt, cached, found, error)


class Channel:
    """The end of the sockets that the process holds: neither side ever waits for the other to read."""

    def __init__(self, connection: socket.socket):
        connection.setblocking(False)
        self._socket, self._messages, self._unsent = connection, Messages(), b""

    def receive(self, wait: bool) -> list[Any]:
        """Give the messages that have come.  Raises EOFError where the other side is gone.

        wait: until there is one, or until something that was left can be sent.
        """
        if wait:
            select.select([self._socket], [self._socket] if self._unsent else [], [])
        try:
            data = self._socket.recv(_READ_BYTES)
        except BlockingIOError:
            return []
        if not data:
            raise EOFError
        return self._messages.push(data)

    def flush(self) -> bool:
        """Send more of what is left, and say if that was all."""
        try:
            while self._unsent:
                self._unsent = self._unsent[self._socket.send(self._unsent) :]
        except BlockingIOError:
            return False
        return True

    def send(self, message: Any) -> None:
        """Send a message, or as much of it as the other side has room for."""
        self._unsent += message_bytes(message)
        self.flush()

    def send_last(self, message: Any) -> None:
        """Send a message, and wait until it is gone; where the other side is gone, nobody wanted to know."""
        with suppress(OSError):
            self._socket.setblocking(True)
            self.send(message)


class Engine:
    """Decodes what the front asks for, and answers between two steps."""

    def __init__(self, channel: Channel, model: Any, batch: ContinuousBatch):
        self._channel, self._model, self._batch = channel, model, batch
        self._news: dict[int, Progress] = {}  # that have not been sent
        self._begun: dict[int, int] = {}  # how many of the first news of a request were told
        self._urgent, self._sent = False, 0.0  # if news must not wait; when the last were sent
        self._answers: list[tuple[int, Any]] = []
        self._asked: deque[tuple[int, Pairs, list[Array]]] = deque()  # for attention, and what of it is there
        self._written = self._steps = self._busy = 0
        self._seconds = 0.0

    def run(self) -> None:
        """Work until the front closes its end (EOFError)."""
        while True:
            rests = self._batch.idle and not self._asked
            for command, *arguments in self._channel.receive(wait=rests):
                getattr(self, f"_{command}")(*arguments)
            if self._asked:
                self._attend_some()
            if not self._batch.idle:
                self._step()
            self._send_news()

    def _send_news(self) -> None:
        """Send what there is, unless the front still reads what came before, or it can wait and be joined with more."""
        if not self._channel.flush() or not (self._news or self._answers):
            return
        now = time.perf_counter()
        if self._urgent or self._answers or now - self._sent > _INTERVAL or self._batch.idle:
            news = [packed(each) for each in self._news.values()]
            self._channel.send(("news", news, self._answers, self._figures()))
            self._news, self._answers, self._urgent, self._sent = {}, [], False, now

    def _add(self, request: Any) -> None:
        try:
            self._batch.add(request)
        except ToolkitError as error:
            self._tell(Progress(request.key, error=error))
        except Exception:  # a fault with this request alone
            self._tell(Progress(request.key, error=_fault()))

    def _cancel(self, key: int) -> None:
        self._batch.cancel(key)
        self._begun.pop(key, None)
        self._news.pop(key, None)

    def _attend(self, number: int, pairs: Pairs) -> None:
        self._asked.append((number, pairs, []))

    def _attend_some(self) -> None:
        """Compute the attention of a few pairs, and answer where they were the last."""
        number, pairs, found = self._asked[0]
        try:
            if not isinstance(self._model, Seq2Seq):
                raise ModelError("the model is a language model: its attention to a source is asked for")
            some = pairs[len(found) : len(found) + _PAIRS_AT_ONCE]
            found += cross_attention(self._model, [source for source, _ in some], [target for _, target in some])
            answer = found
        except ToolkitError as error:
            answer = error
        except Exception:
            answer = _fault()
        if answer is not found or len(found) == len(pairs):
            self._asked.popleft()
            self._answers.append((number, answer))

    def _step(self) -> None:
        begin = time.perf_counter()
        for news in self._batch.step():
            if news.key in self._news or news.written or not news.hypotheses:
                self._written += len(news.written)
            else:  # beams, which are told at their end only
                self._written += sum(len(each.token_log_probs) for each in news.hypotheses)
            self._tell(news)
        self._steps += 1
        self._busy += self._batch.sequences
        self._seconds += time.perf_counter() - begin

    def _figures(self) -> tuple:
        batch = self._batch
        return batch.prompt_tokens, batch.cached_tokens, self._written, self._steps, self._busy, self._seconds

    def _tell(self, news: Progress) -> None:
        if news.hypotheses is not None or news.error is not None:
            self._begun.pop(news.key, None)
            self._urgent = True
        elif (count := self._begun.get(news.key, 0)) < _AT_ONCE:
            self._begun[news.key] = count + 1
            self._urgent = True
        if news.key in self._news:
            join(self._news[news.key], news)
        else:
            self._news[news.key] = news


def run(connection: socket.socket, settings: Settings) -> None:
    """Be a model process, until the front closes its end of the sockets."""
    ignore_signals()
    channel = Channel(connection)
    try:
        try:
            found = load(settings.directory, ids=False, dtype=settings.dtype)
        except ToolkitError as error:
            channel.send_last(("failed", error))
            return
        model = found.model
        facts = {"parameters": model.parameter_count, "dtype": "int8" if model.quantized else "float32"}
        with found.arithmetic(settings.threads):
            batch = settings.batch(model, settings.places, settings.piece)
            gc.freeze()  # what there is now stays: nothing looks through it again and again
            channel.send(("ready", facts))
            Engine(channel, model, batch).run()
    except (EOFError, ConnectionError):  # the front has closed its end, or died
        return
    except BaseException as error:
        channel.send_last(("failed", _fault(error)))
        sys.exit(1)


def _fault(error: BaseException | None = None) -> ServingError:
    """Write the traceback of the error that is being handled to standard error, and tell of it in a sentence."""
    with suppress(OSError):
        traceback.print_exc()
    error = error or sys.exc_info()[1]
    return Failed(f"the server has made a mistake ({type(error).__name__}): its log says more")
