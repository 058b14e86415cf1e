"""toolkit chat: a conversation with a model, at a prompt, through a pipe, or in JSON lines for programs."""

import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from tyro.conf import OmitArgPrefixes, Positional, UseAppendAction

from toolkit.api import load_language_model
from toolkit.chat import ChatSession
from toolkit.commands.chat_json import answer_requests
from toolkit.commands.chat_notes import Notes
from toolkit.commands.chat_terminal import TerminalChat
from toolkit.commands.console import emit_results, emit_text
from toolkit.commands.lines import one_text, tell_one_text
from toolkit.data.lines import arriving_lines
from toolkit.decoding import ContinuationConfig
from toolkit.errors import DataError
from toolkit.files import atomic_writer


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
    model: str = "chat"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
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
    bad_words: UseAppendAction[tuple[str, ...]] = ()
    """Not to be written, as it is tokenized with and without a space in front; may be given several times."""
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
            answer_requests(session, messages, self.save)
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
    """The messages, or else the lines of standard input, each with its name in an error."""
    if messages:
        yield from ((message, f"message {number}") for number, message in enumerate(messages, 1))
        return
    if sys.stdin is None:
        raise DataError("standard input is closed: give a message")
    arriving = (line for lines in arriving_lines(sys.stdin.buffer, "standard input") for line in lines)
    yield from ((line, f"standard input, line {number}") for number, line in enumerate(arriving, 1))


class _NothingToWrite(Exception):  # noqa: N818  (nothing went wrong)
    pass


def _check_writable(path: Path) -> None:
    """Whether there will be a place for what is said: raises DataError before it is, where not."""
    with suppress(_NothingToWrite), atomic_writer(path):
        raise _NothingToWrite
