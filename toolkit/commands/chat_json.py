"""Conversations for programs: a JSON object a line in, and one a line out for each, whatever it was."""

import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from toolkit.chat import ChatSession
from toolkit.commands.console import emit
from toolkit.data.lines import arriving_bytes
from toolkit.data.messages import json_kind, messages_to_json
from toolkit.display import json_text
from toolkit.errors import DataError, ToolkitError
from toolkit.untrusted import UnfitError, parse_json


def answer_requests(session: ChatSession, messages: Sequence[str] = (), save: Path | None = None) -> None:
    """Answer given messages, or else every line of standard input: each gives one line, flushed at once.

    save: the file that has the conversation after every reply.

    Raises DataError at the end where a request could not be answered, which has given {"error": …}, and at once where
    the conversation cannot be saved.
    """
    requests, name = (_given(messages), "message") if messages else (_lines(), "standard input, line")
    count, wrong, first = 0, 0, ""
    for count, request in enumerate(requests, start=1):
        try:
            response = _response(session, request())
        except ToolkitError as error:
            response = {"error": str(error)}
            wrong, first = wrong + 1, first or f"{name} {count}: {error}"
        emit([json_text(response)])
        if save and "response" in response and session.messages:
            session.save(save)
    if wrong:
        raise DataError(f"{wrong} of {count} requests could not be answered, the first is {first}")


# A request, or what is wrong with it as an exception, when it is asked for.
Request = Callable[[], dict[str, Any]]


def _given(messages: Sequence[str]) -> Iterator[Request]:
    return (lambda message=message: {"message": message} for message in messages)


def _lines() -> Iterator[Request]:
    if sys.stdin is None:
        raise DataError("standard input is closed: give a message")
    lines = arriving_bytes(sys.stdin.buffer, "standard input", "write one JSON object a line")
    return (lambda line=line: _parsed(line) for line in lines)


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        value = parse_json(line.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"it is not UTF-8 (byte 0x{line[error.start]:02X}): give the text in UTF-8") from error
    except UnfitError as error:
        raise DataError('it is not JSON: give a line like {"message": "…"}') from error
    if not isinstance(value, dict):
        raise DataError(f'it is {json_kind(value)}: give an object like {{"message": "…"}}')
    return value


def _response(session: ChatSession, request: dict[str, Any]) -> dict[str, Any]:
    if unknown := [key for key in request if key not in _ANSWERS]:
        raise DataError(f"there is no request {unknown[0]!r:.60}: give one of {', '.join(_ANSWERS)}")
    if len(request) != 1:
        raise DataError(f"it has {len(request)} requests: give one of {', '.join(_ANSWERS)} a line")
    ((kind, value),) = request.items()
    answer, wanted = _ANSWERS[kind]
    given = "text" if isinstance(value, str) else "true" if value is True else ""
    if given not in wanted:
        raise DataError(f"{kind} is {json_kind(value)}: it must be {' or '.join(wanted)}")
    return answer(session, value)


def _message(session: ChatSession, text: str) -> dict[str, Any]:
    reply = session.send(text)
    return {
        "response": reply.text,
        "finish_reason": reply.finish_reason,
        "dropped": reply.dropped,
        "prompt_tokens": reply.prompt_tokens,
        "cached_tokens": reply.cached_tokens,
        "new_tokens": reply.new_tokens,
    }


def _undo(session: ChatSession, _: bool) -> dict[str, Any]:
    return {"undo": session.undo()}


def _reset(session: ChatSession, _: bool) -> dict[str, Any]:
    session.reset()
    return {"reset": True}


def _system(session: ChatSession, text: str) -> dict[str, Any]:
    session.system = text
    return {"system": session.system}


def _history(session: ChatSession, _: bool) -> dict[str, Any]:
    return {"messages": messages_to_json(session.messages), "dropped": session.dropped}


def _prompt(session: ChatSession, text: str | bool) -> dict[str, Any]:
    """What was sent for the last reply, or what would be with a text."""
    prompt = session.prompt(text if isinstance(text, str) else "")
    return {
        "prompt": prompt.text,
        "ids": prompt.ids,
        "pieces": prompt.pieces,
        "roles": prompt.roles,
        "dropped": prompt.dropped,
        "cached": prompt.cached,
    }


# For every request, what answers it and what its value may be.
_ANSWERS: dict[str, tuple[Callable[[ChatSession, Any], dict[str, Any]], tuple[str, ...]]] = {
    "message": (_message, ("text",)),
    "undo": (_undo, ("true",)),
    "reset": (_reset, ("true",)),
    "system": (_system, ("text",)),
    "history": (_history, ("true",)),
    "prompt": (_prompt, ("true", "text")),
}
