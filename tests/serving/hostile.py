"""Clients that do wrong, by mistake or on purpose: none may bring the server down, or hold up the others."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import suppress

import numpy as np

from tests.serving.client import Connection, request_bytes

COMPLETIONS, CHAT = "/v1/completions", "/v1/chat/completions"
GOOD = {"model": "stories", "prompt": "One day", "max_tokens": 4, "temperature": 0}

# Bodies that are refused, each with the statuses that are right for it.
_DEEP = 100_000
WRONG: dict[str, tuple[str, bytes, set[int]]] = {
    "no JSON": (COMPLETIONS, b'{"model": "stories", "prompt": ', {400}),
    "no UTF-8": (COMPLETIONS, b'{"model": "stories", "prompt": "\xff\xfe"}', {400}),
    "a list": (COMPLETIONS, b"[1, 2]", {400}),
    "null": (CHAT, b"null", {400}),
    "nothing": (CHAT, b"", {400}),
    "deep brackets": (COMPLETIONS, b"[" * _DEEP + b"]" * _DEEP, {400, 413}),
    "deep objects": ("/translate", b'{"q":' * _DEEP, {400, 413}),
    "a number of 5,000 digits": (
        COMPLETIONS,
        json.dumps(GOOD)[:-1].encode() + b', "seed": ' + b"9" * 5000 + b"}",
        {400},
    ),
    "a huge number": (COMPLETIONS, json.dumps({**GOOD, "max_tokens": 10**100}).encode(), {200, 400}),
    "infinity": (COMPLETIONS, json.dumps({**GOOD, "temperature": float("inf")}).encode(), {400}),
    "not a number": (CHAT, b'{"model": "chat", "messages": [{"role": "user", "content": "a"}], "top_p": NaN}', {400}),
    "too many samples": (COMPLETIONS, json.dumps({**GOOD, "temperature": 1, "n": 10**9}).encode(), {400}),
    "too many beams": (COMPLETIONS, json.dumps({**GOOD, "num_beams": 10**6}).encode(), {400}),
    "too many alternatives": (
        "/translate",
        b'{"q": "a", "source": "en", "target": "ne", "alternatives": 10000}',
        {400},
    ),
    "wrong names": (COMPLETIONS, json.dumps({**GOOD, "promt": "a"}).encode(), {400}),
    "wrong types": (CHAT, b'{"model": "chat", "messages": [{"role": 123, "content": {}}]}', {400}),
    "half a surrogate": (COMPLETIONS, json.dumps({**GOOD, "prompt": "a \ud800 b"}).encode(), {400}),
    "a long prompt": (COMPLETIONS, json.dumps({**GOOD, "prompt": "so " * 200_000}).encode(), {400, 413}),
    "ids out of range": (COMPLETIONS, json.dumps({**GOOD, "prompt": [1, 10**12]}).encode(), {400}),
    "ids below 0": (COMPLETIONS, json.dumps({**GOOD, "prompt": [[-1]]}).encode(), {400}),
    "many texts": (
        "/translate",
        json.dumps({"q": ["a"] * 100_000, "source": "en", "target": "ne"}).encode(),
        {400, 413},
    ),
    "a model of no name": (
        CHAT,
        b'{"model": "../../etc/passwd", "messages": [{"role": "user", "content": "a"}]}',
        {404},
    ),
    "an unknown language": ("/translate", b'{"q": "a", "source": "en", "target": "zz"}', {400}),
}

# What is no HTTP, or hardly.
BYTES: dict[str, tuple[bytes, set[int]]] = {
    "unknown path": (request_bytes("GET", "/v1/" + "x" * 2000), {404}),
    "a path upward": (request_bytes("GET", "/../../../etc/passwd"), {400, 404}),
    "wrong method": (request_bytes("DELETE", COMPLETIONS), {405}),
    "garbage": (bytes(range(128, 256)) * 8 + b"\r\n\r\n", {400}),
    "a header of 200 kB": (request_bytes("GET", "/health", headers="X-Long: " + "x" * 200_000 + "\r\n"), {400, 431}),
    "a negative length": (b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: -5\r\n\r\n", {400}),
    "an oversized length": (
        b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 99999999999\r\n\r\n",
        {413},
    ),
    "packed": (request_bytes("POST", COMPLETIONS, b"\x1f\x8b\x08\x00", "Content-Encoding: gzip\r\n"), {400, 415}),
}

# Statuses of a server that has too much to do.
BUSY = {429, 503}


async def _wrong_body(url: str, rng: np.random.Generator) -> str:
    name = list(WRONG)[int(rng.integers(len(WRONG)))]
    path, body, right = WRONG[name]
    return await _asked(url, name, request_bytes("POST", path, body), right)


async def _wrong_bytes(url: str, rng: np.random.Generator) -> str:
    name = list(BYTES)[int(rng.integers(len(BYTES)))]
    return await _asked(url, name, *BYTES[name])


async def _asked(url: str, name: str, data: bytes, right: set[int]) -> str:
    """Send bytes -> what is wrong with the answer; the server may close the connection instead of reading them all."""
    async with Connection(url) as connection:
        try:
            with suppress(ConnectionError):  # it has answered before it has read all
                await connection.send(data)
            status, headers = await connection.head()
            body = await connection.body(headers)
        except (OSError, EOFError) as error:
            return "" if len(data) > 1 << 16 else f"{name}: no answer, {error!r}"
    if status in right | BUSY and b"Traceback" not in body:
        return ""
    return f"{name}: {status} {body[:200]!r}"


async def _endless_body(url: str, _: np.random.Generator) -> str:
    """Send a body in chunks that does not end, until it is refused."""
    async with Connection(url) as connection:
        with suppress(ConnectionError):
            await connection.send(b"POST /translate HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n")
            for _ in range(64):
                await connection.send(b"80000\r\n" + b" " * 0x80000 + b"\r\n")
        try:
            status, _ = await connection.head()
        except (OSError, EOFError):
            return ""
    return "" if status in {413} | BUSY else f"a body without end: {status}"


async def _slow_headers(url: str, _: np.random.Generator) -> str:
    """Send a byte of the headers a second, and leave."""
    async with Connection(url) as connection:
        with suppress(OSError):
            for byte in b"GET /he":
                await connection.send(bytes([byte]))
                await asyncio.sleep(1)
        connection.abort()
    return ""


async def _half_body(url: str, _: np.random.Generator) -> str:
    """Announce more than is sent, and leave."""
    async with Connection(url) as connection:
        await connection.send(request_bytes("POST", CHAT, json.dumps(GOOD).encode())[:-10])
        await asyncio.sleep(0.5)
        connection.abort()
    return ""


async def _unread(url: str, _: np.random.Generator) -> str:
    """Ask for a stream, do not read it, and leave."""
    async with Connection(url) as connection:
        await connection.send(request_bytes("POST", COMPLETIONS, {**GOOD, "max_tokens": 200, "stream": True}))
        await asyncio.sleep(1)
        connection.abort()
    return ""


async def _pipelined(url: str, _: np.random.Generator) -> str:
    """Send several requests at once: their answers come in order."""
    many = [request_bytes("GET", "/health"), request_bytes("POST", COMPLETIONS, GOOD), request_bytes("GET", "/nowhere")]
    async with Connection(url) as connection:
        await connection.send(b"".join(many))
        found = []
        for _ in many:
            status, headers = await connection.head()
            await connection.body(headers)
            found.append(status)
    right = found[0] == 200 and found[1] in {200} | BUSY and found[2] == 404
    return "" if right else f"three requests at once: {found}"


ACTS: list[Callable[[str, np.random.Generator], Awaitable[str]]] = [
    *(_wrong_body, _wrong_body, _wrong_body, _wrong_bytes, _wrong_bytes),
    *(_endless_body, _slow_headers, _half_body, _unread, _pipelined),
]


async def act(url: str, rng: np.random.Generator) -> str:
    """Do one of all that -> what the server did wrong; empty where it did well."""
    chosen = ACTS[int(rng.integers(len(ACTS)))]
    try:
        async with asyncio.timeout(60):
            return await chosen(url, rng)
    except (OSError, EOFError, TimeoutError) as error:
        return f"{chosen.__name__}: {error!r}"


async def refusals(url: str) -> list[str]:
    """Send each of the wrong bodies and bytes, one after the other -> what the server did wrong."""
    asked = [(name, request_bytes("POST", path, body), right) for name, (path, body, right) in WRONG.items()]
    asked += [(name, *each) for name, each in BYTES.items()]
    found = [await _asked(url, *each) for each in asked]
    return [each for each in [*found, await _pipelined(url, np.random.default_rng(0))] if each]


async def slow_acts(url: str) -> list[str]:
    """Do once what takes long -> what the server did wrong."""
    rng = np.random.default_rng(0)
    found = [await each(url, rng) for each in (_endless_body, _slow_headers, _half_body, _unread)]
    return [each for each in found if each]
