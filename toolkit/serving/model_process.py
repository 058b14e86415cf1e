"""A model process as the front of the server sees it: what was sent to it, what comes from it, its end."""

import asyncio
import itertools
import multiprocessing
import socket
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from toolkit.functional.arrays import Array
from toolkit.parallel import started
from toolkit.serving.engine import Figures, Messages, Pairs, Settings, message_bytes, run, unpacked
from toolkit.serving.stream import CLOSING, Died, Stream, Unavailable

# Seconds that a process has to end by itself; it has nothing to write.
_PATIENCE = 2.0
# Prompts whose beginnings the process has probably kept.
_REMEMBERED = 16

UNREAD = "the process of the model has ended while it read the model: is there memory for it?"
DIED = "the process of the model has ended unexpectedly and is being started again: ask again"


class ModelProcess(asyncio.Protocol):
    """A process, spawned: it has no thread and no socket of this one.

    leaving: called with each request that has ended, or was cancelled, when its places are free.
    """

    def __init__(self, settings: Settings, leaving: Callable[[Stream], None]):
        self._settings, self._leaving, self._process = settings, leaving, None
        self.requests: dict[int, Stream] = {}  # that were sent and have not ended, in this order
        self.places, self.served = 0, False  # that they take; whether one has ended
        self.figures, self.facts = Figures(), {}
        self.error: Exception | None = None  # that it has told before it ended
        loop = asyncio.get_running_loop()
        self.ready, self.ended = loop.create_future(), loop.create_future()
        self._messages, self._transport = Messages(), None
        self._answers: dict[int, asyncio.Future] = {}
        self._numbers, self._prompts = itertools.count(), deque(maxlen=_REMEMBERED)

    async def start(self) -> None:
        """Start the process, which then reads the model; `ready` has a result when it has done so."""
        try:
            ours, theirs = socket.socketpair()
            with theirs:
                await asyncio.get_running_loop().create_connection(lambda: self, sock=ours)
                self._process = started(self, multiprocessing.get_context("spawn"), run, (theirs, self._settings))
        except OSError as error:  # no memory, or no more files
            self.error = Unavailable(f"the process of the model cannot be started: {error.strerror}")
            self.connection_lost(error)

    @property
    def pid(self) -> int:
        return self._process.pid

    def add(self, stream: Stream) -> None:
        """Send a request."""
        request = stream.request
        self.requests[request.key] = stream
        self.places += stream.places
        self._prompts.append(request.ids)
        self._send("add", request)

    def cancel(self, key: int) -> None:
        """Make the process forget a request."""
        if key in self.requests:
            self._send("cancel", key)
            self._forget(key)

    async def attention(self, pairs: Pairs) -> list[Array]:
        """Ask for `cross_attention` of pairs of source and target."""
        number = next(self._numbers)
        self._answers[number] = asyncio.get_running_loop().create_future()
        self._send("attend", number, pairs)
        try:
            return await self._answers[number]
        finally:
            self._answers.pop(number, None)

    def remembers(self, ids: Sequence[int]) -> int:
        """Count the ids that a prompt has in common with the beginning of one of the last."""
        return max((_common(ids, each) for each in self._prompts), default=0)

    async def close(self) -> None:
        """End the process.  What is still asked for is told why."""
        self.error = self.error or Unavailable(CLOSING)
        if self._transport is not None and not self.ended.done():
            self._transport.write_eof()
            await asyncio.wait([self.ended], timeout=_PATIENCE)
        await self.bury()

    async def bury(self) -> int | None:
        """Clear away what is left of the process, and give its exit code."""
        if self._transport is not None:
            self._transport.abort()
        if self._process is None:
            return None
        for _ in range(50):  # its sockets close a little before it has ended
            if self._process.exitcode is not None:
                break
            await asyncio.sleep(0.01)
        self._process.kill()
        self._process.join()
        code = self._process.exitcode
        self._process.close()
        return code

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        for kind, *arguments in self._messages.push(data):
            getattr(self, f"_{kind}")(*arguments)

    def connection_lost(self, error: Exception | None) -> None:
        if not self.ready.done():
            self.error = self.error or Died(
                "the process of the model has ended while it read the model: is memory short?"
            )
        for answer in self._answers.values():
            if not answer.done():
                answer.set_exception(self.error or Died(DIED, 1))
        for future in (self.ready, self.ended):
            if not future.done():
                future.set_result(None)

    def _ready(self, facts: dict[str, Any]) -> None:
        self.facts = facts
        if not self.ready.done():  # nobody waits any more where the server goes already
            self.ready.set_result(None)

    def _failed(self, error: Exception) -> None:
        self.error = error

    def _news(self, news: list[tuple], answers: list[tuple[int, Any]], figures: tuple) -> None:
        self.figures = Figures(*figures)
        for each in map(unpacked, news):
            if stream := self.requests.get(each.key):
                stream.push(each)
                if stream.done:
                    self.served = True
                    self._forget(each.key)
        for number, answer in answers:
            if (future := self._answers.get(number)) and not future.done():
                if isinstance(answer, Exception):
                    future.set_exception(answer)
                else:
                    future.set_result(answer)

    def _forget(self, key: int) -> None:
        stream = self.requests.pop(key)
        self.places -= stream.places
        self._leaving(stream)

    def _send(self, *message: Any) -> None:
        self._transport.write(message_bytes(message))  # kept by the transport where the process is slow to read


def _common(some: Sequence[int], others: Sequence[int]) -> int:
    """Count the ids with which both begin."""
    pairs = zip(some, others, strict=False)
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(some), len(others)))
