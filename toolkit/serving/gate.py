"""The gate: what every request passes before the application, and every answer after it."""

import asyncio
import hmac
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from starlette.responses import RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.display import tell
from toolkit.errors import DataError
from toolkit.serving.errors import ApiError, Limits, error_response
from toolkit.serving.stream import CLOSING

# What everybody may see: it says nothing of anybody's texts. LibreTranslate's clients may have their key in the body of
# the last two, and whoever reads that looks at it.
_OPEN = ("/", "/health", "/ready", "/languages", "/frontend/settings", "/translate", "/detect")
# The body of a request must be here in so many seconds, and one more for each so many bytes of it that have come.
_BODY_SECONDS, _BYTES_A_SECOND = 30.0, 4096
# Of the body of a request that is refused, so much is thrown away before the answer, in at most so many seconds and
# until nothing comes for so long: a client that still sends when the connection is closed would not see the answer.
_THROWN_AWAY, _THROWING_SECONDS, _IDLE_SECONDS = 1 << 25, 5.0, 0.5
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}\Z", re.ASCII)
_LONGEST_PATH = 200  # letters, in the log


class Keys:
    """The keys of which a client needs one; where there are none, everybody is let in."""

    def __init__(self, keys: Iterable[str] = ()):
        self._keys = [key.encode() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def permits(self, given: str | None) -> bool:
        """Compare with all keys, in a time that tells nothing of them."""
        code = (given or "").encode("utf-8", "surrogateescape")
        return not self._keys or sum(hmac.compare_digest(code, key) for key in self._keys) > 0


def read_keys(path: Path | None, variable: str | None) -> Keys:
    """Read the keys of a file, one a line, and of an environment variable, divided by commas; None: there is none.

    Raises DataError for a file that cannot be read, and where one of them has no key in it, or one that no header can
    carry: a server that was meant to be locked must not stand open.
    """
    keys = []
    if variable is not None:
        keys += _keys_in("the environment's TOOLKIT_API_KEYS", variable.split(","))
    if path is not None:
        try:
            lines = path.read_text("utf-8-sig").splitlines()
            readable = path.stat().st_mode & 0o007
        except (OSError, UnicodeError) as error:
            raise DataError(f"{path} cannot be read: {getattr(error, 'strerror', None) or error}") from error
        keys += _keys_in(str(path), [line for line in lines if not line.lstrip().startswith("#")])
        if readable:
            tell(f"toolkit: everybody on this machine can read the keys in {path}: chmod 600 keeps them to yourself")
    return Keys(keys)


def _keys_in(place: str, texts: Iterable[str]) -> list[str]:
    keys = [text.strip() for text in texts if text.strip()]
    if not keys:
        raise DataError(f"{place} has no key in it: one is any word, such as {secrets.token_urlsafe(24)}")
    for number, key in enumerate(keys, 1):
        if not (key.isascii() and key.isprintable()) or " " in key:
            raise DataError(f"{place} has a key that cannot be sent, number {number}: letters of ASCII without spaces")
    return keys


class Gate:
    """Looks at every request before the application, and at every answer after it.

    It refuses while the server is closing, hosts and origins that are not allowed, wrong keys, bodies that are too
    large or too slow; and it counts, and writes the access log.

    names: by which the server may be reached; empty: any. origins: of pages elsewhere that may ask; "*" is all.
    root_path: that a proxy has left in front of paths.
    """

    def __init__(
        self,
        app: ASGIApp,
        keys: Keys,
        limits: Limits,
        names: Collection[str] = (),
        origins: Collection[str] = (),
        root_path: str = "",
    ):
        self._app, self._keys, self._limits, self._names, self._origins = app, keys, limits, names, origins
        self._root_path = root_path

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state, begin = scope["app"].state, time.perf_counter()
        path = scope["path"]
        if self._root_path and (path + "/").startswith(f"{self._root_path}/"):
            path = path.removeprefix(self._root_path)
            scope["root_path"] = self._root_path
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given, facts = headers.get("x-request-id", ""), {}
        name = given if _REQUEST_ID.match(given) else secrets.token_hex(8)
        authorized = self._keys.permits(_key_of(headers))
        scope.setdefault("state", {}).update(log=facts, authorized=authorized, id=name)
        status = 499  # the client has not waited for an answer

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, more = message["status"], [(b"x-request-id", name.encode())]
                more += [(b"x-content-type-options", b"nosniff"), (b"x-frame-options", b"DENY")]
                if status in (408, 413) or state.closing:
                    more.append((b"connection", b"close"))
                message["headers"] = [*message["headers"], *more]
            await send(message)

        state.active += 1
        try:
            if not path:  # of the page, whose own paths are relative
                await RedirectResponse(f"{self._root_path}/", 308)(scope, receive, answer)
            elif refusal := self._refusal(path, headers, authorized, state.closing):
                await _throw_away(receive, headers)
                await error_response(refusal, path)(scope, receive, answer)
            else:
                await self._app(scope, Body(receive, self._limits.body, headers), answer)
        except Exception:
            status = 500
            raise
        finally:
            state.active -= 1
            self._note(scope, path, status, time.perf_counter() - begin, facts)

    def _note(self, scope: Scope, path: str, status: int, seconds: float, facts: dict[str, Any]) -> None:
        """Count a request, and write it to the access log."""
        state = scope["app"].state
        state.metrics.count(path if path in state.paths else "other", status, seconds, facts)
        about = {"id": scope["state"]["id"], "client": (scope.get("client") or ("",))[0], "method": scope["method"]}
        about |= {"path": path[:_LONGEST_PATH], "status": status, "ms": round(seconds * 1000, 3)}
        state.access_log.write({**about, **facts})

    def _refusal(self, path: str, headers: Mapping[str, str], authorized: bool, closing: bool) -> ApiError | None:
        host = _host_name(headers.get("host", ""))
        if self._names and host not in self._names:
            return ApiError(400, f"this server is not reached by the name {host!r}: start it with --allow-host {host}")
        if asks := self._stranger(headers):
            return ApiError(403, f"{asks} asks, which is another origin: start the server with --cors to allow that")
        if path in ("/health", "/ready"):
            return None
        if closing:
            return ApiError(503, CLOSING, headers={"Retry-After": "5"})
        if not authorized and path not in _OPEN:
            how = "this one is not known" if _key_of(headers) else "send it as Authorization: Bearer KEY"
            return ApiError(401, f"a key is needed: {how}", headers={"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._limits.body:
            return _too_large(f"{int(length)} bytes", self._limits.body)
        return None

    def _stranger(self, headers: Mapping[str, str]) -> str:
        """Name the page of another origin that asks without being allowed to; "" where there is none.

        Forms and pictures of such a page are sent without asking before, so the answer alone must not decide.
        """
        origin = headers.get("origin")
        if "*" in self._origins or origin in self._origins:
            return ""
        if origin is not None:
            return "" if urlsplit(origin).netloc == headers.get("host", "").lower() else f"a page of {origin:.100}"
        embedded = headers.get("sec-fetch-site") == "cross-site" and headers.get("sec-fetch-dest") != "document"
        return "a page elsewhere" if embedded else ""


class Body:
    """Receives the body of a request, no more of it than is allowed, and not too slowly."""

    def __init__(self, receive: Receive, most: int, headers: Mapping[str, str]):
        self._receive, self._most, self._headers, self._bytes, self._whole = receive, most, headers, 0, False
        self._begin = time.monotonic()

    async def __call__(self) -> Message:
        """Receive the next piece.  Raises ApiError for one too many, or too late."""
        if self._whole:
            return await self._receive()
        deadline = self._begin + _BODY_SECONDS + self._bytes / _BYTES_A_SECOND
        try:
            async with asyncio.timeout(max(deadline - time.monotonic(), 0)):
                message = await self._receive()
        except TimeoutError:
            raise ApiError(408, f"the body has not come within {_BODY_SECONDS:g} seconds") from None
        self._bytes += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._bytes > self._most:
            if not self._whole:
                await _throw_away(self._receive, self._headers)
            raise _too_large(f"more than {self._most} bytes", self._most)
        return message


async def _throw_away(receive: Receive, headers: Mapping[str, str]) -> None:
    """Receive what a client sends of a body that nobody wants; not where it waits to be asked for it."""
    if "expect" in headers or not {"content-length", "transfer-encoding"} & headers.keys():
        return
    count, deadline = 0, time.monotonic() + _THROWING_SECONDS
    while count < _THROWN_AWAY:
        try:
            async with asyncio.timeout(min(max(deadline - time.monotonic(), 0), _IDLE_SECONDS)):
                message = await receive()
        except TimeoutError:
            return
        count += len(message.get("body", b""))
        if not message.get("more_body", False):
            return


def _key_of(headers: Mapping[str, str]) -> str | None:
    """Find the key of a request: Authorization: Bearer KEY, or X-Api-Key: KEY."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


def _host_name(host: str) -> str:
    """Give the name of a Host header, without its port."""
    name = host.lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.rpartition(":")[0] or name


def _too_large(has: str, most: int) -> ApiError:
    return ApiError(413, f"the body has {has}, and may have {most}: divide it")
