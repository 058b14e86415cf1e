"""What reaches a terminal: what models write without what would steer it, and names out of files never with it."""

import io
import json
import re
import shutil
import sys
import unicodedata
from xml.etree import ElementTree

import pytest

from toolkit.cli import main
from toolkit.models.storage import load_model, save_model
from toolkit.tokenization import CharacterTokenizer
from toolkit.tokenization.special import ASSISTANT

# Clears the screen in two ways, rings, turns the line around, ends it in four ways; the joiners of Devanagari.
EVIL = "\x1b[2J\x9b31m\x07\x7f\u202e\u2066\u200f\u2028\x85\r"
JOINED = "क्\u200dष \u200c"
NAME = f"a{EVIL}\nb{JOINED}"
STEERING = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
ALPHABET = CharacterTokenizer(f"{EVIL}\n\t{JOINED}abc<script>/")
WRITTEN = ("--max-new-tokens", 40, "--seed", 3)
CHAT = ("--template", "control", "--max-new-tokens", 9)


def shown(text, kept="\n\t"):
    """A text as a terminal may have it."""
    steering = ("Cc", "Zl", "Zp", "Cf")
    return "".join(
        ascii(each)[1:-1] if unicodedata.category(each) in steering and each not in f"{kept}\u200c\u200d" else each
        for each in text
    )


@pytest.fixture(scope="module")
def writer(make_gpt, tmp_path_factory):
    """A language model that knows few characters, most of which would steer a terminal."""
    directory = make_gpt(tmp_path_factory.mktemp("models") / "writer", ALPHABET, max_length=128)
    model = load_model(directory)
    table = model.trunk.input.embedding.table.data
    table[ASSISTANT] = 100 * table[ALPHABET.encode("\x1b")[0]]  # every reply begins with it
    save_model(model, directory)
    return directory


@pytest.fixture
def on_terminal(capsys, monkeypatch):
    """Run the command within this process, its standard output being a terminal -> what that gets."""

    def on_terminal(*arguments, stdin=b""):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8"))
        monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
        assert main([*map(str, arguments)]) == 0
        return capsys.readouterr().out

    return on_terminal


@pytest.mark.parametrize(
    ("words", "stdin"),
    [
        (("generate", "ab", *WRITTEN, "--top-k", 0), b""),
        (("generate", f"a{EVIL}", "b", *WRITTEN, "--top-k", 0), b""),
        (("generate", *WRITTEN, "--top-k", 0), b"a\nb\x1bc\n"),
        (("generate", "ab", *WRITTEN, "--num-return-sequences", 2, "--top-k", 0), b""),
        (("chat", "ab", *CHAT), b""),
        (("chat", *CHAT), b"ab\ncc\n"),
    ],
    ids=lambda value: ascii(value)[:40],
)
def test_what_a_model_writes_is_escaped_on_a_terminal_and_nowhere_else(run, on_terminal, writer, words, stdin):
    piped = run(*words, "--model", writer, stdin=stdin)
    assert STEERING.search(piped.out)
    assert on_terminal(*words, "--model", writer, stdin=stdin) == shown(piped.out)


def test_json_reads_as_what_was_written_and_steers_nothing(run, writer):
    out = run("generate", f"ab{EVIL}", *WRITTEN, "--top-k", 0, "--json", "--model", writer).out
    assert not STEERING.search(out)
    assert json.loads(out)["prompt"] == f"ab{EVIL}"
    assert STEERING.search(json.loads(out)["continuations"][0]["text"])
    out = run("chat", f"ab{EVIL}", "--json", "--model", writer, *CHAT).out
    assert not STEERING.search(out)
    assert json.loads(out)["response"].strip().startswith("\x1b")


def test_a_conversation_that_was_loaded_is_shown_without_its_control_characters(
    run, writer, tmp_path, monkeypatch, capsys
):
    roles = ("system", "user", "assistant", "user", "assistant")
    contents = ("cab", f"ab{EVIL}c\nab", "क्\u200dष\x9b", "a", "b")
    messages = [{"role": role, "content": content} for role, content in zip(roles, contents, strict=True)]
    (tmp_path / "talk.json").write_text(json.dumps({"messages": messages}))
    typed = iter(["/history", "/prompt", "/prompt tokens", "/system", "/undo", "/undo", f"/{EVIL}"])

    def type_line(prompt=""):
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    monkeypatch.setattr("builtins.input", type_line)
    monkeypatch.setattr(sys, "stdin", io.StringIO())
    for stream in sys.stdin, sys.stdout:
        monkeypatch.setattr(stream, "isatty", lambda: True)
    assert main(["chat", "--model", str(writer), *map(str, CHAT), "--load", str(tmp_path / "talk.json")]) == 0
    out, err = capsys.readouterr()
    assert not STEERING.search(out + err)
    assert f"user       ab{shown(EVIL)}c\n{' ' * 11}ab\n" in out
    assert "क्\u200dष\\x9b" in out
    assert f"(Taken back: ab{shown(EVIL)}c\\nab)\n" in err


# Names out of files


@pytest.fixture
def room(writer, tmp_path):
    """A model whose metrics have names and texts that would steer a terminal, and a run of such a name."""
    directory = shutil.copytree(writer, tmp_path / "model")
    metrics = {"languages": [NAME], "command": f"recipe {NAME}", "settings": {NAME: NAME}, NAME: {NAME: NAME}}
    (directory / "metrics.json").write_text(json.dumps(metrics))
    run = tmp_path / "runs" / f"run {NAME}"
    run.mkdir(parents=True)
    (run / "settings.json").write_text(json.dumps({"model": {NAME: NAME}}))
    record = {"update": 1, "loss": 2.0, f"{NAME} $\\frac{{$ <b>": 3.0, "seconds": 1.0, NAME: {NAME: 1.0}}
    (run / "log.jsonl").write_text("".join(json.dumps(record | {"update": update}) + "\n" for update in (1, 2)))
    shutil.copytree(run, tmp_path / "runs" / "other")
    (tmp_path / "runs" / "other" / "settings.json").write_text(json.dumps({"model": {NAME: 1}}))
    shutil.copytree(run, tmp_path / "runs" / "empty" / NAME)
    (tmp_path / "runs" / "empty" / NAME / "log.jsonl").write_text("")
    (tmp_path / f"file {NAME}").write_text("abc")
    for name in "reference", "translation":
        (tmp_path / name).write_text(f"b{EVIL}c\n", newline="\n")
    return tmp_path


@pytest.mark.parametrize(
    "words",
    [
        ("info", "model"),
        ("info", "model", "--json"),
        ("models", "model"),
        ("models", "model", "--json"),
        ("runs", "runs"),
        ("runs", "runs", "--json"),
        ("plot", "runs", "--output", "curves.svg"),
        ("plot", "runs", "--output", f"{NAME}.png"),
        ("perplexity", "--model", "model", f"file {NAME}"),
        ("evaluate", "reference", "translation", "--worst", "1", "--bootstrap", "0"),
        ("export", "model", NAME),
        ("explain", "generate", f"ab{EVIL}", "--model", "model", "--max-new-tokens", "2"),
        ("explain", "generate", "ab", "--model", "model", "--max-new-tokens", "2", "--html", f"{NAME}.html"),
    ],
    ids=lambda words: " ".join(map(ascii, words[:2] + words[-1:]))[:60],
)
def test_names_out_of_files_steer_nothing_wherever_they_go(run, room, monkeypatch, words):
    monkeypatch.chdir(room)
    outcome = run(*words)
    assert outcome.code == 0, outcome.err
    assert outcome.out
    assert not STEERING.search(outcome.out + outcome.err)
    if NAME in words or "model" in words:
        assert "\\x1b" in outcome.out or "u001b" in outcome.out or "explain" in words


def test_pages_and_pictures_hold_no_control_characters_and_no_markup_of_others(run, room, monkeypatch):
    monkeypatch.chdir(room)
    assert run("plot", "runs", "--output", "curves.svg").code == 0
    picture = (room / "curves.svg").read_text(encoding="utf-8")
    drawn = "".join(ElementTree.fromstring(picture).itertext())
    assert not STEERING.search(picture)
    assert "$\\frac{$ <b>" in drawn
    words = ("--model", "model", "--max-new-tokens", 2, "--html", "page.html", "--picture", "maps.svg")
    assert run("explain", "generate", f"ab<script>{EVIL}</script>", *words).code == 0
    page = (room / "page.html").read_text(encoding="utf-8")
    assert not STEERING.search(page)
    assert "<script" not in page
    maps = (room / "maps.svg").read_text(encoding="utf-8")
    assert not STEERING.search(maps)
    assert ElementTree.fromstring(maps) is not None
