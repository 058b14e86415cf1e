"""Answers in OpenAI's form: which model is asked, what all parts of an answer share, and the counts of tokens."""

import asyncio
import time
import uuid
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response

from toolkit import __version__
from toolkit.display import meant
from toolkit.serving.choices import Job
from toolkit.serving.connection import dumps
from toolkit.serving.errors import ApiError
from toolkit.serving.host import Host

# From this number of characters on, what is computed of a text is computed beside the loop that serves everybody.
_LONG = 4096

Result = TypeVar("Result")


class Answer:
    """Makes the parts of an answer, which share most of their fields."""

    def __init__(self, request: Request, host: Host, prefix: str, **more: Any):
        """Begin an answer. prefix: of its id. more: fields of the answer, and of every event of a stream."""
        self._request, name = request, f"{prefix}-{uuid.uuid4().hex}"
        fingerprint = f"toolkit-{__version__}-{host.name}-{host.created}"
        self._head = {"id": name, "created": int(time.time()), "model": host.name, "system_fingerprint": fingerprint}
        self._head |= more
        request.state.log["model"] = host.name

    def __call__(self, kind: str, choices: Sequence[dict[str, Any]], **more: Any) -> dict[str, Any]:
        """Make an object of this kind."""
        return {**self._head, "object": kind, "choices": choices, **more}

    def note(self, jobs: Sequence[Job], prompt_tokens: int) -> None:
        """Note in the log what came of the prompts."""
        log = self._request.state.log
        log["prompt_tokens"], log["new_tokens"] = prompt_tokens, sum(job.new_tokens for job in jobs)
        for name, values in ("queue_ms", [job.queued for job in jobs]), ("first_ms", [job.first for job in jobs]):
            if known := [value for value in values if value is not None]:
                log[name] = round(1000 * min(known), 3)


def usage(jobs: Sequence[Job], prompt_tokens: int) -> dict[str, Any]:
    """Count tokens: of the prompts, with the BOS that the model reads, and all that were written, with end marks."""
    new, cached = sum(job.new_tokens for job in jobs), sum(job.cached for job in jobs)
    return {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": new,
        "total_tokens": prompt_tokens + new,
        "prompt_tokens_details": {"cached_tokens": min(cached, prompt_tokens)},
    }


def find_host(request: Request, name: str | None, kinds: Collection[str], what: str) -> Host:
    """Find the model of a request; where none is named, the only one of these kinds.

    what: the path by which it is asked, for an error. Raises ApiError: 404 for a name that there is not, and 400 for a
    model of another kind, saying where that is asked.
    """
    hosts: Mapping[str, Host] = request.app.state.hosts
    fit = [each for each, host in hosts.items() if host.kind in kinds]
    if name is None:
        if len(fit) == 1:
            return hosts[fit[0]]
        raise ApiError(400, f"model is missing: give one of {', '.join(fit) or 'none'}", param="model")
    if name not in hosts:
        near = meant(name, hosts)
        hint = f"did you mean {near}? There" if near else "there"
        message = f"there is no model {name[:60]!r}: {hint} are {', '.join(hosts)}"
        raise ApiError(404, message, "invalid_request_error", "model", "model_not_found")
    host = hosts[name]
    if host.kind not in kinds:
        if host.kind == "translator":
            other = "translates: POST /translate with q, source and target"
        else:
            other = "was not taught to converse: POST /v1/completions continues a text with it"
        here = f"; for {what} there are {', '.join(fit)}" if fit else ""
        raise ApiError(400, f"the model {name} {other}{here}", param="model")
    return host


async def computed(length: int, function: Callable[..., Result], *arguments: Any) -> Result:
    """Compute something of a text of this length: of a long one in a thread, so that nobody else waits for it."""
    return await asyncio.to_thread(function, *arguments) if length >= _LONG else function(*arguments)


def json_response(value: Any) -> Response:
    """Answer with JSON in which letters are as they are."""
    return Response(dumps(value), media_type="application/json")
