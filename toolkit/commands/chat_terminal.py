"""A chat at a terminal: typed lines are said, those that begin with a slash are commands; and notes on replies."""

import os
import sys
from contextlib import suppress
from pathlib import Path

from toolkit.chat import ChatSession, Prompt
from toolkit.commands.console import emit, emit_results, emit_text, line_or_end
from toolkit.commands.lines import seed_note
from toolkit.display import aligned, counted, meant, tell
from toolkit.errors import ConfigError, DataError, ToolkitError

# Every command, with the words after it (in brackets where they may be left out), and what it shows or does.
_COMMANDS = {
    "/history": ("", "what was said; what is no longer sent to the model is marked"),
    "/prompt": ("[tokens]", "exactly what was sent to the model for the last reply, as text or token by token"),
    "/system": ("[TEXT]", "the system message, or another one from now on"),
    "/undo": ("", "take back what you said last, and the reply"),
    "/reset": ("", "begin anew, with the same system message"),
    "/save": ("FILE", "write the conversation to a file"),
    "/load": ("FILE", "go on with the conversation of a file"),
    "/help": ("", "these commands"),
    "/quit": ("", "leave, as Ctrl-D does, and Ctrl-C where nothing is typed"),
}


class TerminalChat:
    """Says typed lines, streams replies, and obeys commands, until the end of input.

    Replies and what a command shows go to standard output, notes and errors to standard error.

    save: the file that has the conversation after everything that changes it. quiet: show no notes. seed: one that
    replies are drawn by and nobody has given.
    """

    def __init__(self, session: ChatSession, save: Path | None = None, quiet: bool = False, seed: int | None = None):
        self._session, self._save_to, self._quiet = session, save, quiet
        self._left_out = 0  # exchanges that are known not to be sent any more
        self._seed = seed

    def run(self) -> None:
        """Converse until Ctrl-D; a Ctrl-C that finds nothing to end is raised as KeyboardInterrupt."""
        if not self._quiet:
            tell("Type a message, or /help for the commands; Ctrl-D ends.")
        self.tell_seed()
        try:
            while (line := self._typed()) is not None:
                self._answer(line.strip())
        except EOFError:
            pass

    def _typed(self) -> str | None:
        """Read the next line; None at the end of input."""
        while True:
            try:
                return line_or_end()
            except KeyboardInterrupt:
                readline = sys.modules.get("readline")
                if not (readline and readline.get_line_buffer()):  # no line was begun, or nothing knows of it
                    raise
                tell("")  # what was typed is given up, and a new line begins
            except DataError as error:
                tell(f"toolkit: {error}")

    def _answer(self, line: str) -> None:
        try:
            if line.startswith("/") and not line.startswith("//"):
                self._obey(line)
            elif line:
                self.say(line.removeprefix("/"))
        except KeyboardInterrupt:  # ends what is being done and nothing else
            self._session.stop()
            tell("")
        except ToolkitError as error:
            tell(f"toolkit: {error}")

    def say(self, text: str) -> None:
        """Say something and print the reply, part by part.  Raises as `ChatSession.stream`."""
        parts = self._session.stream(text)
        try:
            first = next(parts, "")
            self.tell_seed()
            emit_text(first)
            for part in parts:
                emit_text(part)
            emit_text("\n")
        finally:
            self._session.stop()
            self.keep()
        reply = self._session.last
        if not reply.text.strip():
            self._note("The model said nothing, and this is not remembered.")
        elif reply.finish_reason == "length":
            self._note(f"The reply was cut off after {counted(reply.new_tokens, 'token')}.")
        self.tell_left_out()

    def tell_seed(self) -> None:
        """Tell the seed that was drawn, once."""
        if self._seed is not None:
            self._note(seed_note(self._seed))
        self._seed = None

    def tell_left_out(self) -> None:
        """Tell what was left out of the last prompt, once each time that it grows."""
        dropped = self._session.dropped
        if dropped > self._left_out:
            exchanges, fit, were = ("exchange", "fits", "was") if dropped == 1 else ("exchanges", "fit", "were")
            first = "first" if dropped == 1 else f"first {dropped}"
            self._note(f"The {first} {exchanges} no longer {fit} into what the model reads, and {were} left out.")
        self._left_out = dropped

    def keep(self) -> None:
        """Save the conversation where that was asked for.  Raises DataError where it cannot be written."""
        if self._save_to and self._session.messages:
            self._session.save(self._save_to)

    def _note(self, text: str) -> None:
        if not self._quiet:
            tell(f"({text})")

    # Commands

    def _obey(self, line: str) -> None:
        name, *rest = line.split(maxsplit=1)
        if name not in _COMMANDS:
            near = meant(name, _COMMANDS)
            advice = f"did you mean {near}?" if near else "see /help, or begin what you say with //"
            raise ConfigError(f"there is no command {name:.60}: {advice}")
        words, _ = _COMMANDS[name]
        if rest and not words:
            raise ConfigError(f"{name} has no words after it: begin what you say with // where it is a message")
        if words and not rest and not words.startswith("["):
            raise ConfigError(f"{name} needs a word after it: {name} {words}")
        getattr(self, f"_{name[1:]}")(*rest)

    def _help(self) -> None:
        rows = [(f"{name} {words}", purpose) for name, (words, purpose) in _COMMANDS.items()]
        emit(aligned([*rows, ("//…", "say something that begins with a slash")], left=(0, 1)))

    def _quit(self) -> None:
        raise EOFError

    def _history(self) -> None:
        messages, unsent = self._session.messages, 0
        with suppress(DataError):  # a conversation from elsewhere may have a last message that does not fit at all
            unsent = 2 * self._session.prompt().dropped
        if not messages:
            self._note("Nothing was said yet.")
        labels = [message.role for message in messages]
        first = "system" in labels[:1]  # which is always sent
        labels[first : first + unsent] = [f"{role}, no longer sent" for role in labels[first : first + unsent]]
        width = max(map(len, labels), default=0) + 2
        for label, message in zip(labels, messages, strict=True):
            emit_results([label.ljust(width) + message.content.replace("\n", "\n" + " " * width)])

    def _prompt(self, words: str = "") -> None:
        if words not in ("", "tokens"):
            raise ConfigError(f"/prompt {words:.60} means nothing: it is /prompt, or /prompt tokens")
        prompt = self._session.prompt()
        if words:
            emit(_token_table(prompt))
        else:
            emit_results([prompt.text])
        if not any(role == "user" for role in prompt.roles):
            self._note("Nothing was said yet: this is what every prompt begins with.")
            return
        left_out = f"; {counted(prompt.dropped, 'exchange')} left out" if prompt.dropped else ""
        new = len(prompt.ids) - prompt.cached
        context = self._session.model.model.config.max_length
        self._note(
            f"{counted(len(prompt.ids), 'token')} of the {context} that the model reads: {prompt.cached} cached from "
            f"before, {new} new{left_out}."
        )

    def _system(self, text: str = "") -> None:
        if text:
            self._session.system = text
            self.keep()
            self._note("The next reply is told this.")
        elif self._session.system:
            emit_results([self._session.system])
        else:
            self._note("There is no system message.")

    def _undo(self) -> None:
        text = self._session.undo()
        self._note("Nothing was said yet." if text is None else f"Taken back: {text}")
        self.keep()

    def _reset(self) -> None:
        self._session.reset()
        self._left_out = 0
        self._note("All is forgotten.")

    def _save(self, name: str) -> None:
        self._session.save(os.path.expanduser(name))  # noqa: PTH111  (Path.expanduser fails where there is no home)
        self._note(f"Saved: {counted(len(self._session.messages), 'message')}.")

    def _load(self, name: str) -> None:
        self._session.load(os.path.expanduser(name))  # noqa: PTH111
        self._left_out = 0
        self.keep()
        self._note(f"Loaded: {counted(len(self._session.messages), 'message')}.")


def _token_table(prompt: Prompt) -> list[str]:
    """Lay out a line for every token; the pieces are last, because Devanagari would not stand in columns."""
    rows = [("place", "id", "", "role", "piece")]
    for place, (token, role, piece) in enumerate(zip(prompt.ids, prompt.roles, prompt.pieces, strict=True)):
        shown = piece if piece.strip() and piece.isprintable() else repr(piece)  # a space would not be seen
        rows.append((str(place), str(token), "cached" if place < prompt.cached else "new", role or "", shown))
    return aligned(rows, left=(2, 3, 4))
