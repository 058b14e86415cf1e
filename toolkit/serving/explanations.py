"""Explanations on demand: pages of `toolkit explain`, each made by a process of its own, one at a time."""

import asyncio
import os
import re
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from toolkit.display import meant
from toolkit.serving.connection import while_connected
from toolkit.serving.errors import ApiError, Limits
from toolkit.serving.fields import Reader, choice, number, read_fields, text, whole
from toolkit.serving.host import Host
from toolkit.serving.stream import Busy, Overdue

# Pages are of one sentence or a short text: one of the longest that is let in takes a few seconds.
_CHARACTERS, _NEW_TOKENS, _CANDIDATES = 1000, 64, 50
_SECONDS = 60.0
# Requests that wait for their turn, and pages that are kept: of some hundred kilobytes, a few megabytes at most.
_MOST_WAITING, _MOST_KEPT = 8, 8

# Nothing runs in a page, and nothing is fetched; its style stands in it.
_POLICY = (
    "default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)
_HEADERS = {"Content-Security-Policy": _POLICY, "Referrer-Policy": "no-referrer", "Cache-Control": "private, no-cache"}

_KINDS = {"translate": ("translator",), "generate": ("language-model",)}
_TOPICS = (*_KINDS, "attention")
_SAMPLING = ("do_sample", "temperature", "top_k", "top_p", "min_p", "seed")
_DECODING = ("num_beams", "length_penalty", "repetition_penalty", "no_repeat_ngram_size", "candidates")
# Of paths in errors, which are nobody's business but this machine's.
_DIRECTORIES = re.compile(r"(?<!\S)/\S*/")
_LANGUAGES, _PLACES = ("source", "target"), ("layer", "head")
_NAMES = {
    "translate": ("model", "text", *_DECODING, *_SAMPLING, *_LANGUAGES, *_PLACES),
    "generate": ("model", "text", "max_tokens", *_DECODING, *_SAMPLING, *_PLACES),
    "attention": ("model", "text", *_LANGUAGES, *_PLACES),
}
# Flags of the command that have other names than the fields here.
_FLAGS = {"max_tokens": "max-new-tokens", "source": "source-language", "target": "target-language"}


class Explanations:
    """Makes pages, one at a time, and keeps the last ones."""

    def __init__(self) -> None:
        self._turn, self._waiting = asyncio.Semaphore(1), 0
        self._kept: OrderedDict[tuple, bytes] = OrderedDict()

    async def answer(self, request: Request) -> Response:
        """Answer GET /explain/TOPIC with a page, unless the client leaves before it is made."""
        topic, state = request.path_params["topic"], request.app.state
        if topic not in _TOPICS:
            near = meant(topic, _TOPICS)
            hint = f"did you mean {near}?" if near else f"there are {', '.join(_TOPICS)}"
            raise ApiError(404, f"there is no explanation {topic[:40]!r}: {hint}")
        given = _given(topic, request.query_params.multi_items(), state.limits)
        host = _host(topic, given, state.hosts)
        request.state.log["model"] = host.name
        arguments = _arguments(topic, given, host)
        key = (*arguments, host.created)
        page = self._kept.get(key)
        if page is None:
            await request.body()
            page = await while_connected(request, self._made(arguments, state.limits.wait))
            if topic == "attention" or "seed" in given or not _draws(topic, given):
                self._kept[key] = page
        if key in self._kept:
            self._kept.move_to_end(key)
            while len(self._kept) > _MOST_KEPT:
                self._kept.popitem(last=False)
        return HTMLResponse(page, headers=_HEADERS)

    async def _made(self, arguments: Sequence[str], wait: float) -> bytes:
        """Wait for its turn, and make a page.  Raises Busy and Overdue where others take too long."""
        if self._waiting >= _MOST_WAITING:
            raise Busy(f"{self._waiting} explanations are waiting already: ask again later")
        self._waiting += 1
        try:
            async with asyncio.timeout(wait):
                await self._turn.acquire()
        except TimeoutError:
            raise Overdue(f"other explanations took more than {wait:g} seconds: ask again later") from None
        finally:
            self._waiting -= 1
        try:
            return await _page(arguments)
        finally:
            self._turn.release()


async def _page(arguments: Sequence[str]) -> bytes:
    """Run the command -> its page.  Raises ApiError with its sentence where it refuses, or takes too long."""
    with tempfile.TemporaryDirectory(prefix="toolkit-explain-") as directory:
        path, told = Path(directory, "page.html"), Path(directory, "errors")
        with told.open("wb") as errors:
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, "-m", "toolkit", "explain", arguments[0], f"--html={path}", *arguments[1:]),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=errors,
                env={**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONIOENCODING": "utf-8"},
            )
        try:
            async with asyncio.timeout(_SECONDS):
                code = await process.wait()
        except TimeoutError:
            raise ApiError(503, f"the explanation took more than {_SECONDS:g} seconds: give a shorter text") from None
        finally:
            with suppress(ProcessLookupError):
                process.kill()
            await process.wait()
        if code == 0:
            return path.read_bytes()
        lines = told.read_text("utf-8", "replace").splitlines() or [""]
        last = _DIRECTORIES.sub("", lines[-1].removeprefix("toolkit: "))
        if code == 2:
            raise ApiError(400, last)
        raise ApiError(500, f"the explanation has ended with code {code}: {last[:200]}")


def _given(topic: str, items: Sequence[tuple[str, str]], limits: Limits) -> dict:
    """Read the fields of a query.  Raises ApiError."""
    readers = _readers(limits)
    given: dict[str, str | int | float] = {}
    for name, value in items:
        if name in given:
            raise ApiError(400, f"{name} is given twice", param=name[:40])
        given[name] = value if readers.get(name) is text else _number(value)
    found = read_fields(given, {name: readers[name] for name in _NAMES[topic]})
    if "\0" in "".join(each for each in found.values() if isinstance(each, str)):
        raise ApiError(400, "there is a character of number 0, which no text has")
    if not found.get("text", "").strip():
        raise ApiError(400, "text is missing: give the text to explain", param="text")
    if len(found["text"]) > _CHARACTERS:
        count = len(found["text"])
        raise ApiError(400, f"text has {count} characters: an explanation is of {_CHARACTERS} at most", param="text")
    return found


def _readers(limits: Limits) -> Mapping[str, Reader]:
    return {
        **dict.fromkeys(("model", "text", *_LANGUAGES), text),
        "do_sample": choice("true", "false"),
        "num_beams": whole(1, limits.beams),
        "max_tokens": whole(1, _NEW_TOKENS),
        "candidates": whole(1, _CANDIDATES),
        **dict.fromkeys(("layer", "head"), whole(1, 1 << 16)),
        **dict.fromkeys(("top_k", "no_repeat_ngram_size"), whole(0, 1 << 31)),
        "seed": whole(0, (1 << 63) - 1),
        **dict.fromkeys(("temperature", "top_p", "min_p", "repetition_penalty"), number(0)),
        "length_penalty": number(-1e6),
    }


def _number(value: str) -> str | int | float:
    """Read the number that a text of a query stands for; what is none stays a text, and is refused as such."""
    for kind in (int, float):
        with suppress(ValueError):
            return kind(value)
    return value


def _host(topic: str, given: Mapping, hosts: Mapping[str, Host]) -> Host:
    """Find the model that is meant, or the first that fits.  Raises ApiError where there is none."""
    fitting = [host for host in hosts.values() if host.kind in _KINDS.get(topic, (host.kind,))]
    if "model" not in given:
        if not fitting:
            raise ApiError(404, f"no model that is served here fits explain/{topic}", param="model")
        return fitting[0]
    host = hosts.get(given["model"])
    if host is None:
        served = ", ".join(hosts)
        raise ApiError(404, f"there is no model {given['model'][:80]!r} here: {served}", param="model")
    if host not in fitting:
        other = next((each for each, kinds in _KINDS.items() if host.kind in kinds), "attention")
        raise ApiError(400, f"the model {host.name} is a {host.kind}: ask for explain/{other}", param="model")
    return host


def _arguments(topic: str, given: Mapping, host: Host) -> list[str]:
    """Write the arguments of the command: the topic, flags, the text as the last."""
    flags = [f"--model={host.path}"]
    for name, value in given.items():
        flag = _FLAGS.get(name, name).replace("_", "-")
        if name == "do_sample":
            flags.append("--do-sample" if value == "true" else "--no-do-sample")
        elif name not in ("model", "text"):
            flags.append(f"--{flag}={value}")
    return [topic, *flags, "--", given["text"]]


def _draws(topic: str, given: Mapping) -> bool:
    """Say if tokens may be drawn, so that a page is not the same when it is made again."""
    if topic == "translate":
        return given.get("do_sample") == "true"
    return given.get("do_sample") != "false" and given.get("temperature") != 0


def routes() -> list[Route]:
    """List the routes of explanations."""
    return [Route("/explain/{topic}", Explanations().answer)]
