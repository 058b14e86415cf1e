"""The application: the routes of all interfaces, errors in the form of each, health, metrics and the page."""

import base64
import gzip
import hashlib
import re
from collections.abc import Collection, Mapping
from importlib import import_module
from importlib.resources import files

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from toolkit.display import meant
from toolkit.errors import ToolkitError
from toolkit.serving.errors import ApiError, Limits, error_response
from toolkit.serving.gate import Gate, Keys
from toolkit.serving.host import Host
from toolkit.serving.metrics import AccessLog, Metrics
from toolkit.serving.stream import ServingError

# The chapters with routes, each by a function `routes`.
_CHAPTERS: tuple[str, ...] = ("catalogue", "completions", "chat_completions", "libretranslate", "explanations")


def application(
    hosts: Mapping[str, Host],
    limits: Limits,
    keys: Keys,
    access_log: AccessLog,
    origins: Collection[str] = (),
    names: Collection[str] = (),
    root_path: str = "",
) -> Starlette:
    """Make the application.

    hosts: the models by name. origins: of pages elsewhere that may ask; "*" is all of them. names: by which the server
    may be reached, which keeps a page elsewhere from reaching it under a name of its own; empty: any. root_path: that a
    proxy may have left in front of paths.
    """
    chapters = [import_module(f"toolkit.serving.{name}") for name in _CHAPTERS]
    routes = [route for chapter in chapters for route in chapter.routes()]
    routes += [Route("/health", _health), Route("/ready", _ready), Route("/metrics", _metrics), Route("/", _page)]
    errors = (ApiError, ToolkitError, ServingError, HTTPException, ClientDisconnect, Exception)
    gate = {"keys": keys, "limits": limits, "names": names, "origins": origins, "root_path": root_path}
    middleware = [Middleware(Gate, **gate)]
    if origins:
        shown = ["X-Request-Id", "Retry-After"]
        cors = {
            "allow_methods": ["GET", "POST"],
            "allow_headers": ["*"],
            "expose_headers": shown,
            "allow_private_network": True,
        }
        middleware.insert(0, Middleware(CORSMiddleware, allow_origins=list(origins), **cors))
    app = Starlette(routes=routes, middleware=middleware, exception_handlers=dict.fromkeys(errors, _told))
    app.state.hosts, app.state.limits, app.state.keys = hosts, limits, keys
    app.state.metrics, app.state.access_log = Metrics(hosts), access_log
    app.state.paths, app.state.page = {route.path for route in routes}, Page()
    app.state.closing, app.state.active = False, 0  # requests that have not been answered to the end
    return app


def _told(request: Request, error: Exception) -> Response:
    path = request.scope["path"].removeprefix(request.scope.get("root_path", ""))
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
