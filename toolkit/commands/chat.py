"""toolkit chat: a conversation with a model, at a prompt, through a pipe, or in JSON lines for programs."""

import re
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Literal

from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction

from toolkit.api import load_language_model
from toolkit.chat import ChatSession
from toolkit.commands.chat_terminal import Notes, TerminalChat
from toolkit.commands.console import emit, emit_results, emit_text
from toolkit.commands.flags import BadWords, ModelName
from toolkit.commands.lines import one_text, tell_one_text
from toolkit.data.conversations import messages_to_json
from toolkit.data.lines import arriving_bytes, arriving_lines
from toolkit.data.objects import json_kind
from toolkit.decoding import ContinuationConfig
from toolkit.display import json_text
from toolkit.errors import DataError, ToolkitError
from toolkit.files import atomic_writer
from toolkit.untrusted import UnfitError, parse_json


@dataclass
class Chat:
    """Converse with a model that was taught to: what you type, given messages, or lines of standard input.

    At the prompt, /help shows the commands; Ctrl-C ends a reply, and Ctrl-D the conversation. Several messages, or the
    lines of a pipe, are said in turn in one conversation: each gives a line with the reply, in which line feeds have
    become spaces, and an empty line an empty one. There, a message may begin with "/".

    With --json, each line in is a JSON object, and so is each line out: {"message": "…"} gives {"response": "…",
    "finish_reason": "stop" or "length", "dropped": …, "prompt_tokens": …, "cached_tokens": …, "new_tokens": …}. Other
    requests are {"undo": true}, {"reset": true}, {"history": true}, {"prompt": true}, and {"system": "…"}, which
    changes the system message. What cannot be answered gives {"error": "…"} and changes nothing; the conversation goes
    on, and the exit code is 2 at its end.
    """

    message: Positional[list[str]] = field(default_factory=list)
    """What to say; several are said in turn, words without quotation marks are one message. Without it, or where it is
    -, lines of standard input are."""
    model: ModelName = "chat"
    system: str = ""
    """The system message, which is sent in front of all others."""
    template: Literal["taught", "control", "plain"] = "taught"
    """How messages are written for the model: as it was taught, with control symbols, or with lines like User: …"""
    load: Path | None = None
    """File with a conversation to go on with."""
    save: Path | None = None
    """File that has the conversation after every reply: JSON that --load and fine-tuning read."""
    stop_strings: UseAppendAction[tuple[str, ...]] = ()
    """A reply ends before this string; may be given several times."""
    bad_words: BadWords = ()
    json: bool = False
    """Read and write JSON lines."""
    quiet: bool = False
    """Show no notes: what to type, what was left out, where a reply was cut off."""
    generation: OmitArgPrefixes[ContinuationConfig] = field(default_factory=lambda: ContinuationConfig(do_sample=False))

    def run(self) -> None:
        session, messages = self._session(), one_text(self.message)
        typed = not messages and sys.stdin is not None and sys.stdin.isatty()
        if messages == ["-"]:
            messages = []
        if self.save:
            _check_writable(self.save)
        if self.json:
            answer_requests(session, messages or _json_lines(), self.save)
        elif typed:
            TerminalChat(session, self.save, self.quiet).run()
        elif len(messages) == 1:
            self._stream(session, messages[0], Notes(self.quiet))
        else:
            self._answer_lines(session, messages, Notes(self.quiet))
        tell_one_text(self.message, self.quiet)

    def _session(self) -> ChatSession:
        model = load_language_model(self.model)
        session = ChatSession(
            model,
            system=self.system,
            template=None if self.template == "taught" else self.template,
            config=self.generation,
            stop_strings=self.stop_strings,
            bad_words=self.bad_words,
        )
        if self.load:
            session.load(self.load)
            if self.system:
                session.system = self.system
        return session

    def _stream(self, session: ChatSession, message: str, notes: Notes) -> None:
        for part in session.stream(message):
            emit_text(part)
        emit_text("\n")
        notes.about_end(session.last)
        self._finish(session, notes)

    def _answer_lines(self, session: ChatSession, messages: list[str], notes: Notes) -> None:
        for message, place in _said_in_turn(messages):
            if not message.strip():
                emit_results([""])
                continue
            try:
                reply = session.send(message)
            except DataError as error:
                raise DataError(f"{place}: {error}") from error
            emit_results([re.sub(r"[\r\n]+", " ", reply.text)])
            self._finish(session, notes)

    def _finish(self, session: ChatSession, notes: Notes) -> None:
        notes.about_left_out(session.last)
        if self.save and session.messages:
            session.save(self.save)


def _said_in_turn(messages: list[str]) -> Iterator[tuple[str, str]]:
    """Yield the messages, or else the lines of standard input, each with its name in an error."""
    if messages:
        yield from ((message, f"message {number}") for number, message in enumerate(messages, 1))
        return
    arriving = (line for lines in arriving_lines(_standard_input(), "standard input") for line in lines)
    yield from ((line, f"standard input, line {number}") for number, line in enumerate(arriving, 1))


def _standard_input() -> BinaryIO:
    if sys.stdin is None:
        raise DataError("standard input is closed: give a message")
    return sys.stdin.buffer


class _NothingToWrite(Exception):  # noqa: N818  (nothing went wrong)
    pass


def _check_writable(path: Path) -> None:
    """Check, before anything is said, that the conversation can be written. Raises DataError otherwise."""
    with suppress(_NothingToWrite), atomic_writer(path):
        raise _NothingToWrite


# JSON lines


def answer_requests(session: ChatSession, requests: Iterable[str | bytes], save: Path | None = None) -> None:
    """Answer messages, or lines of JSON as bytes: each gives one line, flushed at once.

    save: the file that has the conversation after every reply.

    Raises DataError at the end where a request could not be answered, which has given {"error": …}, and at once where
    the conversation cannot be saved.
    """
    count, wrong, first = 0, 0, ""
    for count, request in enumerate(requests, start=1):
        is_message = isinstance(request, str)
        try:
            response = _response(session, {"message": request} if is_message else _parsed(request))
        except ToolkitError as error:
            response = {"error": str(error)}
            wrong, first = wrong + 1, first or f"{'message' if is_message else 'standard input, line'} {count}: {error}"
        emit([json_text(response)])
        if save and "response" in response and session.messages:
            session.save(save)
    if wrong:
        raise DataError(f"{wrong} of {count} requests could not be answered, the first is {first}")


def _json_lines() -> Iterator[bytes]:
    return arriving_bytes(_standard_input(), "standard input", "write one JSON object a line")


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


def _said(session: ChatSession, text: str) -> dict[str, Any]:
    reply = session.send(text)
    figures = ("finish_reason", "dropped", "prompt_tokens", "cached_tokens", "new_tokens")
    return {"response": reply.text, **{name: getattr(reply, name) for name in figures}}


def _taken_back(session: ChatSession, _: bool) -> dict[str, Any]:
    return {"undo": session.undo()}


def _begun_anew(session: ChatSession, _: bool) -> dict[str, Any]:
    session.reset()
    return {"reset": True}


def _told(session: ChatSession, text: str) -> dict[str, Any]:
    session.system = text
    return {"system": session.system}


def _history(session: ChatSession, _: bool) -> dict[str, Any]:
    return {"messages": messages_to_json(session.messages), "dropped": session.dropped}


def _prompt(session: ChatSession, text: str | bool) -> dict[str, Any]:
    """Give the prompt of the last reply, or the one that a text would make."""
    prompt = session.prompt(text if isinstance(text, str) else "")
    return {"prompt": prompt.text, **{name: value for name, value in vars(prompt).items() if name != "text"}}


# For every request, what answers it and what its value may be.
_ANSWERS: dict[str, tuple[Callable[[ChatSession, Any], dict[str, Any]], tuple[str, ...]]] = {
    "message": (_said, ("text",)),
    "undo": (_taken_back, ("true",)),
    "reset": (_begun_anew, ("true",)),
    "system": (_told, ("text",)),
    "history": (_history, ("true",)),
    "prompt": (_prompt, ("true", "text")),
}
