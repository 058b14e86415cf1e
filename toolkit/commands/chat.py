"""toolkit chat: a conversation with a model, at a prompt, through a pipe, or in JSON lines for programs."""

import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction

from toolkit.api import load_language_model
from toolkit.chat import ChatSession
from toolkit.commands.chat_terminal import TerminalChat
from toolkit.commands.console import emit, emit_results
from toolkit.commands.flags import BadWords, Dtype, ModelName
from toolkit.commands.lines import one_text, standard_input, tell_one_text
from toolkit.data.conversations import messages_to_json
from toolkit.data.lines import arriving_bytes, arriving_lines
from toolkit.data.objects import json_kind
from toolkit.decoding import ContinuationConfig
from toolkit.display import json_text
from toolkit.errors import DataError, ToolkitError
from toolkit.files import check_writable
from toolkit.untrusted import UnfitError, parse_json


@dataclass
class Chat:
    """Converse with a model that was taught to: what you type, given messages, or lines of standard input.

    At the prompt, /help shows the commands; Ctrl-C ends a reply, and Ctrl-D the conversation. Several messages, or the
    lines of a pipe, are said in turn in one conversation: each gives a line with the reply, in which line feeds have
    become spaces, and an empty line an empty one. There, a message may begin with "/".

    With --json, each line in is a JSON object, and so is each line out: {"message": "…"} gives {"response": "…",
    "finish_reason": "stop" or "length", "dropped": …, "prompt_tokens": …, "cached_tokens": …, "new_tokens": …}, and the
    "seed" where replies are sampled. Other requests are {"undo": true}, {"reset": true}, {"history": true}, {"prompt":
    true}, and {"system": "…"}, which changes the system message. What cannot be answered gives {"error": "…"} and
    changes nothing; the conversation goes on, and the exit code is 2 at its end.
    """

    examples = (
        "",
        '"What is the capital of Nepal?"',
        '--save talk.json "My name is Zanubia."',
        "--json < requests.jsonl",
    )

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
    dtype: Dtype = "auto"
    quiet: bool = False
    """Show no notes: what to type, a drawn seed, what was left out, where a reply was cut off."""
    generation: OmitArgPrefixes[ContinuationConfig] = field(default_factory=lambda: ContinuationConfig(do_sample=False))

    def run(self) -> None:
        session, messages = self._session(), one_text(self.message)
        typed = not messages and sys.stdin is not None and sys.stdin.isatty()
        if messages == ["-"]:
            messages = []
        if self.save:
            check_writable(self.save)
        seed = session.config.seed if session.config.seed != self.generation.seed else None
        terminal = TerminalChat(session, self.save, self.quiet, seed)
        if self.json:
            lines = messages or arriving_bytes(
                standard_input("a message"), "standard input", "write one JSON object a line"
            )
            answer_requests(session, lines, self.save)
        elif typed:
            terminal.run()
        elif len(messages) == 1:
            terminal.say(messages[0])
        else:
            _answer_lines(session, messages, terminal)
        tell_one_text(self.message, self.quiet)

    def _session(self) -> ChatSession:
        model = load_language_model(self.model, dtype=self.dtype)
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


def _answer_lines(session: ChatSession, messages: list[str], terminal: TerminalChat) -> None:
    """Say the messages, or else the lines of standard input, and print a line with the reply to each."""
    said = ((message, f"message {number}") for number, message in enumerate(messages, 1))
    for message, place in said if messages else _typed_lines():
        if not message.strip():
            emit_results([""])
            continue
        try:
            reply = session.send(message)
        except DataError as error:
            raise DataError(f"{place}: {error}") from error
        terminal.tell_seed()
        emit_results([re.sub(r"[\r\n]+", " ", reply.text)])
        terminal.tell_left_out()
        terminal.keep()


def _typed_lines() -> Iterator[tuple[str, str]]:
    """Yield the lines of standard input, each with its name in an error."""
    arriving = arriving_lines(standard_input("a message"), "standard input")
    for number, line in enumerate((line for lines in arriving for line in lines), start=1):
        yield line, f"standard input, line {number}"


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


# The values that each request may have.
_REQUESTS = {
    "message": ("text",),
    "undo": ("true",),
    "reset": ("true",),
    "system": ("text",),
    "history": ("true",),
    "prompt": ("true", "text"),
}


def _response(session: ChatSession, request: dict[str, Any]) -> dict[str, Any]:
    if unknown := [key for key in request if key not in _REQUESTS]:
        raise DataError(f"there is no request {unknown[0]!r:.60}: give one of {', '.join(_REQUESTS)}")
    if len(request) != 1:
        raise DataError(f"it has {len(request)} requests: give one of {', '.join(_REQUESTS)} a line")
    ((kind, value),) = request.items()
    given = "text" if isinstance(value, str) else "true" if value is True else ""
    if given not in _REQUESTS[kind]:
        raise DataError(f"{kind} is {json_kind(value)}: it must be {' or '.join(_REQUESTS[kind])}")
    if kind == "message":
        reply = session.send(value)
        figures = ("finish_reason", "dropped", "prompt_tokens", "cached_tokens", "new_tokens")
        seed = {"seed": session.config.seed} if session.config.samples else {}
        return {"response": reply.text, **{name: getattr(reply, name) for name in figures}, **seed}
    if kind == "history":
        return {"messages": messages_to_json(session.messages), "dropped": session.dropped}
    if kind == "prompt":  # of the last reply, or the one that a text would make
        prompt = vars(session.prompt("" if value is True else value))
        return {"prompt": prompt["text"], **{name: each for name, each in prompt.items() if name != "text"}}
    if kind == "undo":
        return {"undo": session.undo()}
    if kind == "system":
        session.system = value
        return {"system": session.system}
    session.reset()
    return {"reset": True}
