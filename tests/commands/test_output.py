"""An output file takes its name when it is whole; what interrupted work has done is gone on with, to the same bytes."""

import errno
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace

import pytest

from toolkit import lock
from toolkit.commands import lines as windows
from toolkit.commands import output as outputs
from toolkit.commands.lines import Work, file_windows
from toolkit.commands.output import answer_all
from toolkit.errors import DataError
from toolkit.parallel import in_order

WORDS = ["I am a boy.", "", "She eats rice.", "Where do you go?", "He drinks water.", "This is my house.", "A girl."]
LINES = [*WORDS, "You go.", *WORDS]  # five windows
LONG = "xq " * 2000
SHORT = ("--max-new-tokens", 4)
KINDS = {
    "text": ("translate", *SHORT),
    "drawn": ("translate", *SHORT, "--json", "--alignments", "--do-sample"),
    "prefixes": ("translate", *SHORT, "--prefix-file", "prefixes"),
    "skipped": ("translate", *SHORT, "--long-lines", "skip", "--num-beams", 2),
    "cut off": ("translate", *SHORT, "--json", "--long-lines", "truncate"),
    "generate": ("generate", *SHORT, "--batch-size", 3, "--num-return-sequences", 2),
    "generate json": ("generate", *SHORT, "--batch-size", 3, "--json"),
    "score": ("score", "--json"),
}
PART, JOURNAL = Path("out.part"), Path("out.part.json")


@pytest.fixture(autouse=True)
def _room(monkeypatch, tmp_path):
    monkeypatch.setattr(windows, "WINDOW", 3)
    monkeypatch.setattr(lock, "_PATIENCE", 0.1)
    monkeypatch.chdir(tmp_path)


def write(lines, name="lines"):
    Path(name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


def names():
    return sorted(path.name for path in Path().iterdir())


@pytest.fixture
def verb(run, tiny_model, tiny_gpt):
    """Run a verb with its tiny model, from a file to a file."""

    def verb(name, *flags, **options):
        model = tiny_gpt if name == "generate" else tiny_model
        given = () if "stdin" in options else ("--file", "lines")
        return run(name, "--model", model, *given, "--output", "out", *flags, **options)

    return verb


@pytest.fixture
def translate(verb):
    return lambda *flags, **options: verb("translate", *SHORT, *flags, **options)


@pytest.fixture
def stop(monkeypatch):
    """stop(count): work is interrupted after so many windows."""

    def stop(count):
        def some(*arguments):
            answers = in_order(*arguments)
            for _ in range(count):
                yield next(answers)
            answers.close()
            raise DataError("this is wrong")

        monkeypatch.setattr(outputs, "in_order", some if count else in_order)

    return stop


@pytest.fixture
def begun(translate, stop):
    """Unfinished work, of which two windows are done -> what lies there."""
    write(LINES)
    stop(2)
    told = "toolkit: this is wrong; the first 6 lines are in out.part: put that right and add --resume\n"
    assert translate().sentence == told
    stop(0)
    return PART.read_bytes()


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("kind", KINDS)
def test_work_that_was_interrupted_twice_gives_the_same_bytes(verb, stop, kind, workers, fresh_seeds):
    name, *flags = KINDS[kind]
    lines = [LONG if "--long-lines" in flags and place in (1, 4, 10) else line for place, line in enumerate(LINES)]
    write([json.dumps({"source": each or "I", "target": "म केटा हुँ।"}) for each in lines] if name == "score" else lines)
    write(["म" if place % 2 else "" for place in range(len(lines))], "prefixes")
    flags = [*flags, "--workers", workers]
    for count in 1, 2:
        stop(count)
        assert "; the first " in verb(name, *flags, *["--resume"] * (count > 1)).err
        assert names() == ["lines", "out.part", "out.part.json", "prefixes"]
    stop(0)
    seed = json.loads(JOURNAL.read_bytes())["seed"]
    assert (seed is None) == (kind not in ("drawn", "generate", "generate json"))
    last = verb(name, *flags, "--resume")
    assert (last.code, last.out, names()) == (0, "", ["lines", "out", "prefixes"])
    assert last.err.startswith("toolkit: out.part has the first 9 lines of interrupted work\n")
    found = Path("out").read_bytes()
    again = verb(name, *flags, *(() if seed is None else ("--seed", seed)))
    assert Path("out").read_bytes() == found
    assert last.err.endswith(again.err)  # about lines that were too long: also of those that were done before
    assert ("3 lines too long" in last.err) == ("--long-lines" in flags)


def test_a_line_may_be_mended_and_what_becomes_of_long_ones_may_change(translate):
    write([*LINES[:7], LONG, *LINES[8:]])
    assert translate().sentence.endswith(
        "divide it; the first 6 lines are in out.part: put that right and add --resume\n"
    )
    kept = PART.read_bytes(), JOURNAL.read_bytes()
    assert translate("--long-lines", "skip", "--resume").code == 0
    assert Path("out").read_text().split("\n")[7] == ""
    PART.write_bytes(kept[0])
    JOURNAL.write_bytes(kept[1])
    write(LINES)
    assert translate("--resume", "--quiet", "--workers", 2, "--batch-size", 2) == (0, "", "")
    found = Path("out").read_bytes()
    assert translate() == (0, "", "")
    assert Path("out").read_bytes() == found


def test_what_does_not_continue_the_work_is_refused_and_changes_nothing(translate, begun, make_model, tmp_path):
    journal, part = JOURNAL.read_bytes(), "toolkit: out.part"
    assert (
        translate().sentence
        == f"{part} has the first 6 lines of interrupted work: add --resume to go on, or remove it\n"
    )
    write([*LINES[:5], "Another one.", *LINES[6:]])
    words = "is of an input whose first lines were others: resume with the same, or remove it\n"
    assert translate("--resume", "--quiet").sentence == f"{part} {words}"
    write(LINES[:4])
    assert translate("--resume", "--quiet").sentence == f"{part} has 6 lines, the input only 4\n"
    write(LINES)
    for flags, change in {
        ("--num-beams", 2): "num-beams: 1 → 2",
        ("--no-split-sentences",): "split-sentences: None → False",
        ("--json",): "batch-size: None → 64, json: False → True",
        ("--do-sample", "--seed", 3): "do-sample: False → True, seed: None → 3",
    }.items():
        words = f"was written with other settings ({change}): resume with the same, or remove it\n"
        assert translate("--resume", *flags).sentence == f"{part} {words}"
    other = make_model(tmp_path / "other", max_length=64)
    assert "out.part was written by another model than " in translate("--resume", "--model", other).sentence
    assert (PART.read_bytes(), JOURNAL.read_bytes()) == (begun, journal)
    PART.write_bytes(begun + b"more")  # a piece whose journal was not written any more, or not to its end
    Path("out.part.json.new").write_bytes(journal[:9])
    assert translate("--resume", "--quiet") == (0, "", "")
    found = Path("out").read_bytes()
    assert found.startswith(begun)
    assert names() == ["lines", "other", "out"]
    PART.write_bytes(begun[:-1])
    JOURNAL.write_bytes(journal)
    assert "out.part is shorter than out.part.json says: remove both" in translate("--resume", "--quiet").sentence
    JOURNAL.write_bytes(journal.replace(b'"lines"', b'"words"'))
    assert "out.part.json is damaged: done has no lines" in translate("--resume").sentence
    JOURNAL.unlink()
    assert "out.part is in the way, and not our work: choose another --output" in translate("--resume").sentence
    assert (PART.read_bytes(), Path("out").read_bytes()) == (begun[:-1], found)


def test_where_nothing_is_done_nothing_stays_and_resuming_begins(translate, stop):
    write([*LINES[:2], LONG])
    assert translate().sentence.endswith("divide it\n")
    assert names() == ["lines"]
    PART.touch()  # killed before the first piece, or between two names
    JOURNAL.write_text("{}")
    assert "out.part.json is damaged" in translate().sentence
    assert names() == ["lines", "out.part.json"]
    JOURNAL.unlink()
    write(LINES)
    assert translate("--resume") == (0, "", "toolkit: out.part is new: all is to be done\n")
    assert names() == ["lines", "out"]
    assert "--resume goes on with the file of --output" in translate("--resume", "--output", "-").sentence


def test_a_pipe_gives_its_lines_again(translate, begun):
    data = Path("lines").read_bytes()
    assert translate("--resume", "--quiet", stdin=data) == (0, "", "")
    found = Path("out").read_bytes()
    assert translate(stdin=data) == (0, "", "")
    assert Path("out").read_bytes() == found


def test_a_full_disk_loses_no_piece(translate, monkeypatch):
    write(LINES)
    Path("real").symlink_to("there")
    count = iter(range(100))

    def full(descriptor):
        if next(count) == 6:  # three a piece
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        told = translate("--output", "real").sentence
    assert re.fullmatch("toolkit: .*/there cannot be written: No space left on device; the first 6 lines .*\n", told)
    assert translate("--output", "real", "--resume").code == 0
    assert names() == ["lines", "real", "there"]
    assert Path("real").is_symlink()


@contextmanager
def started(model, *flags):
    """Translate a pipe that stays open, in a group of processes -> the first, which waits for more lines at last."""
    code = "import sys; from toolkit.commands import lines; lines.WINDOW = 3; from toolkit.cli import main; "
    flags = ("translate", "--model", model, "--output", "out", *SHORT, *flags)
    command = [sys.executable, "-c", f"{code}sys.exit(main())", *map(str, flags)]
    streams = {"stdin": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(command, **streams, start_new_session=True) as process:
        process.stdin.write(Path("lines").read_bytes())
        process.stdin.flush()
        yield process


def done():
    """The number of lines that are done."""
    return json.loads(JOURNAL.read_bytes())["done"]["lines"] if JOURNAL.exists() else 0


def wait_for(process, lines):
    """Wait until at least so many lines are done."""
    deadline = time.monotonic() + 120
    while done() < lines:
        assert process.poll() is None, process.stderr.read().decode()
        assert time.monotonic() < deadline
        time.sleep(0.002)


@pytest.mark.parametrize(("workers", "waiting"), [(1, 0), (2, 4)])
def test_work_that_is_killed_or_stopped_goes_on(translate, tiny_model, workers, waiting):
    """Killed without its workers, which end by themselves; then asked to end, all together."""
    write(f"I am number {number}. She eats rice." for number in range(24))
    with started(tiny_model, "--workers", workers) as process:
        wait_for(process, 24 - 3 * waiting)  # so many windows are given out before the first is waited for
        expected = rf"toolkit: out.part is being written by another process(, number {process.pid})?: wait for it, or "
        assert re.match(expected, translate("--resume", stdin=b"").sentence)
        process.kill()
    write(f"I am number {number}. She eats rice." for number in range(48))
    with started(tiny_model, "--workers", workers, "--resume") as process:
        wait_for(process, 48 - 3 * waiting)
        while process.poll() is None:  # a signal that comes just before a read begins is heard when the read ends
            os.killpg(process.pid, signal.SIGTERM)
            with suppress(subprocess.TimeoutExpired):
                process.wait(20)
        told = process.stderr.read().decode()
        assert process.returncode == 143
    assert names() == ["lines", "out.part", "out.part.json"]
    assert told.endswith(f"\nstopped: the first {done()} lines are in out.part, go on with --resume\n")
    assert translate("--resume").code == 0
    found = Path("out").read_bytes()
    assert translate().code == 0
    assert Path("out").read_bytes() == found


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Echo(Work):
    def _answers(self, window, cut=()):
        return window.lines


@pytest.fixture
def echo(tiny_model):
    """Answer each line of the file with itself."""

    def echo(quiet=False):
        settings = {"output": Path("out"), "resume": False, "workers": 1, "long_lines": "refuse", "quiet": quiet}
        command = SimpleNamespace(model=tiny_model, **settings)
        answer_all(Echo, command, file_windows(Path("lines")), Path("lines"))
        return Path("out").read_text() == Path("lines").read_text()

    return echo


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize("quiet", [True, False])
def test_progress_is_shown_on_a_terminal_only(monkeypatch, echo, terminal, quiet):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    write(WORDS)
    assert echo(quiet)
    assert ("7/7" in stream.getvalue()) == (terminal and not quiet)


def test_no_progress_without_standard_error(monkeypatch, echo):
    monkeypatch.setattr(sys, "stderr", None)
    write(["a"])
    assert echo()
