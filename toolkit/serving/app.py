"""The application: the gate that every request passes, the routes of all interfaces, health, metrics and the page."""

import asyncio
import base64
import gzip
import hashlib
import hmac
import re
import secrets
import time
from collections.abc import Collection, Iterable, Mapping
from importlib import import_module
from importlib.resources import files
from urllib.parse import urlsplit

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from toolkit.display import meant
from toolkit.errors import ToolkitError
from toolkit.serving.errors import ApiError, Limits, error_response
from toolkit.serving.host import Host
from toolkit.serving.metrics import AccessLog, Metrics
from toolkit.serving.stream import CLOSING, ServingError

# The chapters with routes, each by a function `routes`.
_CHAPTERS: tuple[str, ...] = ()
# What everybody may see: it says nothing of anybody's texts.
_OPEN = ("/", "/health", "/ready", "/languages", "/frontend/settings")
# Seconds in which the body of a request must be here.
_BODY_SECONDS = 30.0
_REQUEST_ID = re.compile(r"[\w.:-]{1,128}\Z", re.ASCII)


class Keys:
    """The keys of which a client needs one; where there are none, everybody is let in."""

    def __init__(self, keys: Iterable[str] = ()):
        self._keys = [key.encode() for key in keys]

    def __bool__(self) -> bool:
        return bool(self._keys)

    def permits(self, given: str | None) -> bool:
        """Compare with all keys, in a time that tells nothing of them."""
        code = (given or "").encode("utf-8", "surrogateescape")
        found = [hmac.compare_digest(code, key) for key in self._keys]  # all of them, whichever it is
        return not self._keys or any(found)


class Gate:
    """Looks at every request before the application, and at every answer after it.

    It refuses while the server is closing, hosts and origins that are not allowed, wrong keys, bodies that are too
    large or too slow; and it counts, and writes the access log.
    """

    def __init__(self, app: ASGIApp, keys: Keys, limits: Limits, names: Collection[str], origins: Collection[str]):
        self._app, self._keys, self._limits, self._names, self._origins = app, keys, limits, names, origins

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        state, begin = scope["app"].state, time.perf_counter()
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        given = headers.get("x-request-id", "")
        name = given if _REQUEST_ID.match(given) else secrets.token_hex(8)
        path, facts, status = scope["path"].removeprefix(scope.get("root_path", "")), {}, 499  # nobody waited for it
        authorized = self._keys.permits(_key_of(headers))
        scope.setdefault("state", {}).update(log=facts, authorized=authorized, id=name)

        async def answer(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], (b"x-request-id", name.encode())]
                message["headers"].append((b"x-content-type-options", b"nosniff"))
                if status == 413 or state.closing:
                    message["headers"].append((b"connection", b"close"))
            await send(message)

        state.active += 1
        try:
            if refusal := self._refusal(scope["method"], path, headers, authorized, state.closing):
                await error_response(refusal, path)(scope, receive, answer)
            else:
                await self._app(scope, _Body(receive, self._limits.body), answer)
        finally:
            state.active -= 1
            seconds = time.perf_counter() - begin
            state.metrics.count(path if path in state.paths else "other", status, seconds, facts)
            client = scope.get("client") or ("", 0)
            whole = {"id": name, "client": client[0], "method": scope["method"], "path": path, "status": status}
            state.access_log.write({**whole, "ms": round(seconds * 1000, 3), **facts})

    def _refusal(
        self, method: str, path: str, headers: Mapping[str, str], authorized: bool, closing: bool
    ) -> ApiError | None:
        host, origin = _host_name(headers.get("host", "")), headers.get("origin")
        if self._names and host not in self._names:
            return ApiError(400, f"this server is not reached by the name {host!r}: start it with --allow-host {host}")
        own = origin is None or urlsplit(origin).netloc == headers.get("host")
        if not own and origin not in self._origins and "*" not in self._origins:
            return ApiError(403, f"a page of {origin} asks, which is another origin: start the server with --cors")
        if path in ("/health", "/ready"):
            return None
        if closing:
            return ApiError(503, CLOSING, headers={"Retry-After": "5"})
        # LibreTranslate's clients may have their key in the body: whoever reads that looks at it.
        if not authorized and path not in (*_OPEN, "/translate", "/detect"):
            how = "Authorization: Bearer KEY" if not _key_of(headers) else "another key: this one is not known"
            return ApiError(401, f"a key is needed: {how}", headers={"WWW-Authenticate": "Bearer"})
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._limits.body:
            return _too_large(length, self._limits.body)
        return None


class _Body:
    """Receives the body of a request, no more of it than is allowed, and in no more time."""

    def __init__(self, receive: Receive, most: int):
        self._receive, self._most, self._bytes, self._whole = receive, most, 0, False
        self._deadline = time.monotonic() + _BODY_SECONDS

    async def __call__(self) -> Message:
        if self._whole:
            return await self._receive()
        try:
            async with asyncio.timeout(max(self._deadline - time.monotonic(), 0)):
                message = await self._receive()
        except TimeoutError:
            raise ApiError(408, f"the body has not come within {_BODY_SECONDS:.0f} seconds") from None
        self._bytes += len(message.get("body", b""))
        self._whole = not message.get("more_body", False)
        if self._bytes > self._most:
            raise _too_large(f"more than {self._most}", self._most)
        return message


def application(
    hosts: Mapping[str, Host],
    limits: Limits,
    keys: Keys,
    access_log: AccessLog,
    origins: Collection[str] = (),
    names: Collection[str] = (),
) -> Starlette:
    """Make the application.

    hosts: the models by name. origins: of pages elsewhere that may ask; "*" is all of them. names: by which the server
    may be reached, which keeps a page elsewhere from reaching it under a name of its own; empty: any.
    """
    chapters = [import_module(f"toolkit.serving.{name}") for name in _CHAPTERS]
    routes = [route for chapter in chapters for route in chapter.routes()]
    routes += [Route("/health", _health), Route("/ready", _ready), Route("/metrics", _metrics), Route("/", _page)]
    errors = (ApiError, ToolkitError, ServingError, HTTPException, ClientDisconnect, Exception)
    middleware = [Middleware(Gate, keys=keys, limits=limits, names=names, origins=origins)]
    if origins:
        shown = ["X-Request-Id", "Retry-After"]
        cors = {"allow_methods": ["GET", "POST"], "allow_headers": ["*"], "expose_headers": shown}
        middleware.insert(0, Middleware(CORSMiddleware, allow_origins=list(origins), **cors))
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=dict.fromkeys(errors, _told))
    app.state.hosts, app.state.limits, app.state.keys = hosts, limits, keys
    app.state.metrics, app.state.access_log = Metrics(hosts), access_log
    app.state.paths, app.state.page = {route.path for route in routes}, Page()
    app.state.closing, app.state.active = False, 0  # requests that have not been answered to the end
    return app


def _told(request: Request, error: Exception) -> Response:
    path = request.url.path.removeprefix(request.scope.get("root_path", ""))
    if isinstance(error, HTTPException):
        error = ApiError(error.status_code, _explained(error, request, path), headers=error.headers)
    elif isinstance(error, ClientDisconnect):
        error = ApiError(400, "the body has ended early")
    return error_response(error, path)


def _explained(error: HTTPException, request: Request, path: str) -> str:
    """Say in a sentence what Starlette has refused."""
    if error.status_code == 404:
        paths = sorted(request.app.state.paths - {"/"})
        near = f"/v1{path}" if f"/v1{path}" in paths else meant(path, paths)
        return f"there is nothing at {path:.100}" + (f": did you mean {near}?" if near else "")
    if error.status_code == 405:
        return f"{path} is not asked by {request.method}: by {(error.headers or {}).get('Allow', 'another method')}"
    return str(error.detail)


async def _health(request: Request) -> Response:
    return JSONResponse({"status": "ok"})


async def _ready(request: Request) -> Response:
    state = request.app.state
    missing = {name: host.problem for name, host in state.hosts.items() if not host.ready}
    if missing or state.closing:
        return JSONResponse({"status": "closing" if state.closing else "loading", "models": missing}, 503)
    return JSONResponse({"status": "ok"})


async def _metrics(request: Request) -> Response:
    return Response(request.app.state.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")


async def _page(request: Request) -> Response:
    return request.app.state.page.response(request)


class Page:
    """The page, read and compressed once, and the rule that nothing but its own script and style runs in it."""

    def __init__(self) -> None:
        text = files("toolkit.serving").joinpath("page.html").read_bytes()
        self._plain, self._packed = text, gzip.compress(text, mtime=0)
        scripts, styles = (_hashes(text, tag) for tag in (b"script", b"style"))
        policy = (
            f"default-src 'none'; script-src {scripts}; style-src {styles}; connect-src 'self'; img-src data:; "
            "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
        )
        self._headers = {
            "Content-Security-Policy": policy,
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-cache",
            "Vary": "Accept-Encoding",
            "ETag": f'"{hashlib.sha256(text).hexdigest()[:32]}"',
        }

    def response(self, request: Request) -> Response:
        """Answer with the page, or with nothing where the browser has it already."""
        if self._headers["ETag"] in request.headers.get("if-none-match", ""):
            return Response(status_code=304, headers=self._headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            packed = {**self._headers, "Content-Encoding": "gzip"}
            return Response(self._packed, media_type="text/html", headers=packed)
        return Response(self._plain, media_type="text/html", headers=self._headers)


def _hashes(page: bytes, tag: bytes) -> str:
    """List the hashes of all elements of a kind, as a policy names them."""
    contents = re.findall(rb"<%b[^>]*>(.*?)</%b>" % (tag, tag), page, re.DOTALL)
    return " ".join(f"'sha256-{base64.b64encode(hashlib.sha256(each).digest()).decode()}'" for each in contents)


def _key_of(headers: Mapping[str, str]) -> str | None:
    """Find the key of a request: Authorization: Bearer KEY, or X-Api-Key: KEY."""
    scheme, _, key = headers.get("authorization", "").partition(" ")
    return key.strip() if scheme.lower() == "bearer" else headers.get("x-api-key")


def _host_name(host: str) -> str:
    """Give the name of a Host header, without its port."""
    name = host.lower()
    return name.partition("]")[0] + "]" if name.startswith("[") else name.rpartition(":")[0] or name


def _too_large(length: str, most: int) -> ApiError:
    return ApiError(413, f"the body has {length} bytes, and may have {most}: divide it")
