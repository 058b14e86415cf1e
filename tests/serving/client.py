"""A small client of HTTP/1.1: by it the programs here ask a server and take the time of each piece of an answer."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

# The longest line, and how much of an answer is read at once.
_MOST_BYTES = 1 << 24


class Answer(NamedTuple):
    """The answer to a request, its body in the pieces in which it came, each with the seconds since the request."""

    status: int
    headers: dict[str, str]
    pieces: list[tuple[float, bytes]]
    seconds: float

    @property
    def body(self) -> bytes:
        """Join the pieces."""
        return b"".join(piece for _, piece in self.pieces)

    @property
    def json(self) -> Any:
        """Read the body, which is JSON."""
        return json.loads(self.body)

    @property
    def streamed(self) -> bool:
        """True where the body is a stream of events."""
        return self.headers.get("content-type", "").startswith("text/event-stream")

    def events(self) -> list[tuple[float, Any]]:
        """Read the body, a stream of events -> the data of each, and when it came; the last is "[DONE]"."""
        found, rest = [], b""
        for seconds, piece in self.pieces:
            *whole, rest = (rest + piece).split(b"\n\n")
            data = (line[len(b"data: ") :] for event in whole for line in event.split(b"\n") if line[:6] == b"data: ")
            found += [(seconds, "[DONE]" if each == b"[DONE]" else json.loads(each)) for each in data]
        if rest:
            raise ValueError(f"a stream of events ends within one: {rest!r:.80}")
        return found


class Connection:
    """A connection that stays open from one request to the next, and is opened again where the server closed it."""

    def __init__(self, url: str):
        parts = urlsplit(url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def ask(
        self, method: str, path: str, fields: Any = None, leave: float | None = None, headers: str = ""
    ) -> Answer | None:
        """Send a request, and read all of the answer.

        fields: a body to be, as JSON; bytes are sent as they are. leave: in so many seconds the socket is closed, and
        the answer None. Raises OSError and EOFError where the server closes it.
        """
        try:
            async with asyncio.timeout(leave):
                return await self._ask(request_bytes(method, path, fields, headers))
        except TimeoutError:
            self.abort()
            return None
        except BaseException:
            self.abort()
            raise

    async def _ask(self, data: bytes) -> Answer:
        kept = self._writer is not None
        begin = time.perf_counter()
        try:
            await self.send(data)
            status, headers = await self.head()
        except (OSError, EOFError):
            if not kept:
                raise
            self.abort()  # it was closed while nothing was asked
            await self.send(data)
            status, headers = await self.head()
        pieces = [(time.perf_counter() - begin, piece) async for piece in self._pieces(headers)]
        if headers.get("connection") == "close":
            await self.close()
        return Answer(status, headers, pieces, time.perf_counter() - begin)

    async def send(self, data: bytes) -> None:
        """Send bytes, after opening the connection where it is not open."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(self._host, self._port, limit=_MOST_BYTES)
        self._writer.write(data)
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        """Read the status and the headers of an answer, whose names are in small letters.  Raises EOFError."""
        line, *lines = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")[:-2]
        pairs = (each.partition(":") for each in lines)
        return int(line.split()[1]), {name.lower(): value.strip() for name, _, value in pairs}

    async def body(self, headers: dict[str, str]) -> bytes:
        """Read the body that belongs to these headers."""
        return b"".join([piece async for piece in self._pieces(headers)])

    async def _pieces(self, headers: dict[str, str]) -> AsyncIterator[bytes]:
        """Yield the body: by length or in chunks."""
        if headers.get("transfer-encoding") != "chunked":
            yield await self._reader.readexactly(int(headers.get("content-length", 0)))
            return
        while size := int(await self._reader.readuntil(b"\r\n"), 16):
            yield (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readuntil(b"\r\n")

    async def close(self) -> None:
        """Close the connection, and wait until it is closed."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()
            with suppress(OSError):  # the server was faster
                await writer.wait_closed()

    def abort(self) -> None:
        """Close the connection at once."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.transport.abort()


def request_bytes(method: str, path: str, fields: Any = None, headers: str = "") -> bytes:
    """Write a request as it goes over the wire; each of the further headers ends with a line break."""
    body = fields if isinstance(fields, bytes) else b"" if fields is None else json.dumps(fields).encode()
    length = f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n" if body else ""
    return f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{length}{headers}\r\n".encode() + body
