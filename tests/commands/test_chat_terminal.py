"""toolkit chat at a prompt: commands show and change what the model is told, and at a real terminal replies stream."""

import builtins
import io
import os
import select
import subprocess
import sys
import termios
from contextlib import suppress

import pytest

from tests.commands.conftest import MESSAGES, SHORT
from tests.outcome import Outcome
from toolkit.cli import main

LONG_CONTEXT = 20_000
PATIENCE = 60  # seconds


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def converse(capsys, monkeypatch, chatty):
    """Type lines at the prompt; an exception among them is what the terminal does instead."""

    def converse(*typed, flags=()):
        answers = iter([*typed, EOFError()])

        def answer(prompt=""):
            value = next(answers)
            if isinstance(value, BaseException):
                raise value
            return value

        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr(builtins, "input", answer)
        code = main(["chat", "--model", str(chatty), *map(str, (*SHORT, *flags))])
        return Outcome(code, *capsys.readouterr())

    return converse


def test_what_is_typed_is_answered_as_the_library_does(converse, session):
    outcome = converse(MESSAGES[0], "", MESSAGES[1], "  ", "//slash")
    texts = [session.send(text).text for text in (*MESSAGES[:2], "/slash")]
    assert (outcome.code, outcome.out) == (0, "".join(f"{text}\n" for text in texts))
    assert "Type a message, or /help for the commands" in outcome.err


def test_history_undo_and_reset(converse, session):
    first, second = (session.send(text).text for text in ("She", "He"))
    begun = [f"user       She\n{'assistant'}  {first}\n"]
    history = "".join([*begun, f"user       He\nassistant  {second}\n"])
    outcome = converse("She", "He", "/history", "/undo", "/history", "He", "/reset", "/history", "/undo", "She")
    assert outcome.out == "".join([f"{first}\n{second}\n", history, *begun, f"{second}\n{first}\n"])
    assert "(Taken back: He)" in outcome.err
    assert outcome.err.count("(Nothing was said yet.)") == 2


def test_what_no_longer_fits_is_told_when_it_grows_and_marked(converse, session):
    dropped = [session.send("Where do you go?").dropped for _ in range(9)]
    outcome = converse(*["Where do you go?"] * 9, "/history", flags=["--system", ""])
    grown = sorted({number for number in dropped if number})
    assert len(grown) >= 3
    told = [line for line in outcome.err.splitlines() if "no longer fit" in line]
    assert told[0] == "(The first exchange no longer fits into what the model reads, and was left out.)"
    assert told[1:] == [
        f"(The first {number} exchanges no longer fit into what the model reads, and were left out.)"
        for number in grown[1:]
    ]
    assert outcome.out.count("user, no longer sent ") == outcome.out.count("assistant, no longer sent  ") == dropped[-1]
    assert outcome.out.count("Where do you go?") == 9


def test_prompt_shows_exactly_what_was_sent(converse, session):
    session.system = "म केटा"
    session.send("She")
    session.send("He")
    prompt, last = session.prompt(), session.last
    shown = converse("/prompt", "She", "He", "/prompt", "/prompt tokens", flags=["--system", "म केटा"])
    assert shown.out.startswith("<s><|system|> म केटा<|end|>\n")
    assert f"\n{prompt.text}\n" in shown.out
    note = f"({last.prompt_tokens} tokens of the 64 that the model reads: {last.cached_tokens} cached from before"
    assert note in shown.err
    table = [line.split(maxsplit=4) for line in shown.out.splitlines()[-len(prompt.ids) :]]
    assert [row[:2] for row in table] == [[str(place), str(token)] for place, token in enumerate(prompt.ids)]
    assert [row[2] for row in table] == ["cached"] * last.cached_tokens + ["new"] * (len(table) - last.cached_tokens)
    pieces = [piece if piece.strip() else repr(piece) for piece in prompt.pieces]
    assert [row[3:] for row in table[1:]] == [[*pair] for pair in zip(prompt.roles, pieces, strict=True)][1:]
    assert "' '" in pieces


def test_system_shows_or_changes_the_system_message(converse, session):
    session.system = "He"
    reply = session.send("She").text
    outcome = converse("/system", "/system He", "/system", "She")
    assert outcome.out == f"He\n{reply}\n"
    assert "(There is no system message.)" in outcome.err


def test_save_and_load(converse, session, tmp_path):
    first, second = (session.send(text).text for text in ("She", "He"))
    mine, kept = tmp_path / "mine file", tmp_path / "kept"
    outcome = converse("She", f"/save {mine}", "/reset", f"/load {mine}", "He", "/undo", flags=["--save", kept])
    assert outcome.out == f"{first}\n{second}\n"
    assert mine.read_bytes() == kept.read_bytes()
    assert "(Saved: 2 messages.)" in outcome.err
    assert "(Loaded: 2 messages.)" in outcome.err


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("/histroy", "there is no command /histroy: did you mean /history?"),
        ("/xyzzy", "there is no command /xyzzy: see /help, or begin what you say with //"),
        ("/", "there is no command /: see /help, or begin what you say with //"),
        ("/reset now", "/reset has no words after it"),
        ("/save", "/save needs a word after it: /save FILE"),
        ("/save none/file", "none/file cannot be written"),
        ("/load none", "none cannot be read"),
        ("/prompt all", "/prompt all means nothing"),
        ("/system " + "xq" * 99, "the system message has"),
        ("xq" * 99, "the message has"),
        ("caf\udce9", "surrogate"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, ""), "UTF-8"),
    ],
)
def test_the_prompt_survives_every_mistake(converse, session, typed, words):
    outcome = converse("She", typed, "He")
    assert (outcome.code, outcome.out) == (0, "".join(f"{session.send(text).text}\n" for text in ("She", "He")))
    assert f"toolkit: {words}" in outcome.err or words in outcome.err


def test_a_reply_that_cannot_be_saved_is_told_and_the_chat_goes_on(converse, tmp_path):
    folder = tmp_path / "folder"
    folder.mkdir()
    flags = ["--save", folder / "file"]
    typed = iter(["She", "He"])

    class Removing(str):
        def strip(self):
            folder.rmdir()
            return "She"

    outcome = converse(Removing(), next(typed), flags=flags)
    assert outcome.code == 0
    assert outcome.err.count("file cannot be written: No such file or directory") == 2
    assert len(outcome.out.splitlines()) >= 2


def test_notes_are_left_out_on_request_and_errors_are_not(converse):
    outcome = converse("She", "/undo", "/wrong", flags=["--quiet"])
    assert (
        outcome.err.replace("> ", "").strip()
        == "toolkit: there is no command /wrong: see /help, or begin what you say with //"
    )


def test_commands_that_leave_and_help(converse, session):
    assert converse("/quit", "She").out == ""
    shown = converse("/help").out
    assert all(
        f"\n{name} " in f"\n{shown}" for name in ("/history", "/prompt", "/system", "/undo", "/reset", "/save", "/load")
    )
    outcome = converse("She", KeyboardInterrupt())
    assert (outcome.code, outcome.out) == (130, session.send("She").text + "\n")


# A real terminal

BESIDE_A_TERMINAL = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from toolkit.cli import main
sys.exit(main(sys.argv[1:]))
"""


class PseudoTerminal:
    """`toolkit chat` at a terminal of its own, which makes a Ctrl-C an interrupt."""

    def __init__(self, *arguments):
        self._end, theirs = os.openpty()
        environment = {**os.environ, "TERM": "dumb", "INPUTRC": os.devnull}
        command = [sys.executable, "-c", BESIDE_A_TERMINAL, "chat", *map(str, arguments)]
        self.running = subprocess.Popen(
            command, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, env=environment
        )
        os.close(theirs)
        self.shown = b""

    def type(self, keys):
        os.write(self._end, keys.encode())

    def until_there_are(self, count):
        """Wait until so many bytes are shown."""
        while len(self.shown) < count:
            self.shown += self._read()

    def until(self, words):
        """What is shown up to some words, which have not been shown before."""
        while words.encode() not in self.shown:
            self.shown += self._read()
        found, _, self.shown = self.shown.partition(words.encode())
        return found.decode(errors="replace").replace("\r\n", "\n")

    def _read(self):
        """What is shown next; a terminal that shows nothing for long fails the test and does not stop all others."""
        if not select.select([self._end], [], [], PATIENCE)[0]:
            self.running.kill()
            raise AssertionError(f"nothing was shown for {PATIENCE} s after {self.shown[-200:]!r}")
        return os.read(self._end, 4096)

    def end(self):
        with suppress(OSError):  # how a terminal ends
            while os.read(self._end, 4096):
                pass
        os.close(self._end)
        return self.running.wait()


@pytest.mark.skipif(not hasattr(termios, "TIOCSCTTY"), reason="needs pseudo-terminals")
def test_a_real_terminal_streams_and_a_control_c_ends_no_more_than_the_reply(make_gpt, tmp_path):
    model = make_gpt(tmp_path / "endless", template="control", max_length=LONG_CONTEXT)
    terminal = PseudoTerminal("--model", model, "--min-new-tokens", LONG_CONTEXT - 100)
    terminal.until("> ")
    terminal.type("म केटा हुँ\n")
    terminal.until("म केटा हुँ\r\n")
    terminal.until_there_are(200)  # which are shown while it is written: the whole takes far longer
    terminal.type("\x03")
    reply = terminal.until("\n> ")
    terminal.type("/history\n")
    terminal.until("/history\r\n")
    assert terminal.until("assistant  ").strip() == "user       म केटा हुँ"
    assert terminal.until("> ").rstrip("\n")[:50] == reply[:50]
    terminal.type("/prompt tokenx\x7fs\n")  # line editing
    terminal.until("cached from before")
    terminal.until("> ")
    terminal.type("\x1b[A\n")  # history
    terminal.until("cached from before")
    terminal.until("> ")
    terminal.type("\x04")
    assert terminal.end() == 0
