"""The connection to a client: the object that it sends, whether it is still there, and events that are sent to it."""

import asyncio
import json
from collections.abc import AsyncGenerator, Awaitable
from contextlib import suppress
from typing import Any, TypeVar

from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from toolkit.data.objects import json_kind
from toolkit.serving.errors import ApiError, refusal_of
from toolkit.untrusted import DEEPEST, UnfitError, parse_json

# Seconds without an event after which a comment is sent, so that no proxy takes the connection for dead.
PING = 15.0

Result = TypeVar("Result")


async def json_object(request: Request) -> dict[str, Any]:
    """Read the body of a request, whatever its content type says.  Raises ApiError for what is no object of JSON."""
    body = await request.body()
    try:
        value = parse_json(body.removeprefix(b"\xef\xbb\xbf"))
    except UnfitError as error:
        cause = error.__cause__
        if isinstance(cause, UnicodeDecodeError):
            problem = f"is not UTF-8: byte {cause.start + 1} is wrong"
        elif isinstance(cause, json.JSONDecodeError):
            problem = f"is not JSON: {cause.msg.lower()}, line {cause.lineno}, column {cause.colno}"
            problem = problem if body else "is empty"
        else:
            problem = f"{error.problem}: lists and objects may be {DEEPEST} deep, whole numbers have 64 bits"
        raise ApiError(400, f"the body of the request {problem}") from None
    if not isinstance(value, dict):
        raise ApiError(400, f'the body of the request is {json_kind(value)}: send an object, {{"model": …}}')
    return value


def dumps(value: Any) -> bytes:
    """Write JSON as it is sent: letters as they are, and no NaN.  Raises ValueError for one."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode()


async def _left(receive: Receive) -> None:
    """Wait until the client has left."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def _first(work: Awaitable[Result], receive: Receive) -> Result:
    """Do work unless the client leaves before, which cancels it.  Raises ClientDisconnect then."""
    doing, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(receive))
    try:
        await asyncio.wait({doing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if not doing.done():
            raise ClientDisconnect
        return doing.result()
    finally:
        for each in (doing, leaving):
            if not each.done():
                each.cancel()
                await asyncio.wait({each})


async def while_connected(request: Request, work: Awaitable[Result]) -> Result:
    """Do work for a request whose body was read; where the client leaves, it is cancelled: ClientDisconnect."""
    return await _first(work, request.receive)


class EventStream(Response):
    """Server-sent events: objects as JSON, comments while there are none, and [DONE]; or an error, and the end.

    The events are closed whenever the sending ends, also because the client has left.
    """

    def __init__(self, begun: "asyncio.Future[dict[str, Any]]", events: AsyncGenerator[dict[str, Any]]):
        self._next, self._events = begun, events
        headers = {"Cache-Control": "no-cache", "X-Accel-Buffering": "no"}
        super().__init__(headers=headers, media_type="text/event-stream")
        del self.headers["content-length"]

    @classmethod
    async def of(cls, request: Request, events: AsyncGenerator[dict[str, Any]]) -> "EventStream":
        """Wait for the first event, so that what fails before it is an answer with a status; but not for too long."""
        begun = asyncio.ensure_future(anext(events))
        try:
            await while_connected(request, asyncio.wait({begun}, timeout=PING))
            if begun.done():
                begun.result()  # raises
        except BaseException:
            await _close(begun, events)
            raise
        return cls(begun, events)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send all events, unless the client leaves."""
        try:
            with suppress(ClientDisconnect):
                await _first(self._send_all(send), receive)
        finally:
            await _close(self._next, self._events)

    async def _send_all(self, send: Send) -> None:
        await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
        fault, last = None, b"data: [DONE]\n\n"
        try:
            while True:
                done, _ = await asyncio.wait({self._next}, timeout=PING)
                line = b"data: " + dumps(self._next.result()) if done else b": waiting"
                if done:
                    self._next = asyncio.ensure_future(anext(self._events))
                await send({"type": "http.response.body", "body": line + b"\n\n", "more_body": True})
        except StopAsyncIteration:
            pass
        except Exception as error:
            refusal = refusal_of(error)
            fault, last = error if refusal.status == 500 else None, b"data: " + dumps(refusal.body()) + b"\n\n"
        await send({"type": "http.response.body", "body": last, "more_body": False})
        if fault is not None:
            raise fault  # for the log


async def _close(pending: "asyncio.Future[Any]", events: AsyncGenerator[Any]) -> None:
    """End a generator that may be waiting for its next event."""
    if not pending.done():
        pending.cancel()
        await asyncio.wait({pending})
    if not pending.cancelled():
        pending.exception()
    await events.aclose()
