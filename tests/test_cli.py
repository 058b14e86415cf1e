"""The `toolkit` command: what goes to which stream, exit codes, and one line out for every line in."""

import builtins
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest

import toolkit
from tests.conftest import ENGLISH, NEPALI
from tests.outcome import Outcome
from tests.system.damage.room import TRAIN
from toolkit.cli import VERBS, main
from toolkit.commands import lines as windows

LINES = ["I am a boy.", "", "She eats rice.", "   ", "Where do you go?", "I am a boy.", ""]

FULL = Path("/dev/full")

# An install without datasets, without what it brings, and without all optional libraries.
LIGHT = """
import importlib, pkgutil, runpy, sys
from pathlib import Path

MISSING = "datasets pyarrow pandas huggingface_hub fsspec aiohttp httpx yaml tokenizers matplotlib torch transformers "
MISSING += "starlette uvicorn h11 anyio prometheus_client python_multipart multipart"


class Blocked:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in MISSING.split():
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


sys.meta_path.insert(0, Blocked())
import toolkit
from toolkit.cli import main

for module in pkgutil.walk_packages(toolkit.__path__, "toolkit."):
    if not module.name.endswith("__main__") and not module.name.startswith("toolkit.serving."):
        importlib.import_module(module.name)
recipe, model, gpt, sizes, *commands = sys.argv[1:]
for line in commands:
    words = line.format(model=model, gpt=gpt).split()
    if words[0] == "recipe":
        sys.argv = [recipe, *words[1:], *sizes.split()]
        runpy.run_path(recipe, run_name="__main__")
    else:
        assert main(words) == 0, line
"""


@pytest.fixture(scope="module")
def expected(tiny_model):
    """What the library makes of LINES."""
    return toolkit.load(tiny_model).translate(LINES)


def process(*arguments, **options):
    return subprocess.Popen([sys.executable, "-m", "toolkit", *map(str, arguments)], **options)


# What goes in, and what comes out


def test_every_way_in_gives_the_translations_of_the_library(translate, expected, tmp_path):
    file, output = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_text("\n".join(LINES) + "\n")
    assert translate(*LINES).lines == expected
    assert translate("\n".join(LINES)).lines == expected
    assert translate("--file", file).lines == expected
    assert translate(stdin=file.read_bytes()).lines == expected
    assert translate("--file", file, "--output", output).out == ""
    assert output.read_bytes().decode() == "".join(f"{line}\n" for line in expected)


@pytest.mark.parametrize(
    "text", ["\r\n".join(LINES) + "\r\n", "\n".join([*LINES, "x"]), "\ufeff" + "\n".join(LINES) + "\n"]
)
def test_a_file_and_a_pipe_agree_on_line_ends(translate, tmp_path, text):
    (tmp_path / "in.txt").write_bytes(text.encode())
    piped = translate(stdin=text.encode())
    assert piped == translate("--file", tmp_path / "in.txt")
    assert len(piped.lines) == len(text.removesuffix("\n").split("\n"))
    assert [not line for line in piped.lines[:7]] == [not line.strip() for line in LINES]


def test_only_line_feeds_separate_lines(translate):
    assert len(translate(stdin="a\u2028b\x85c\x0bd\re\nf".encode()).lines) == 2


def test_nothing_in_is_nothing_out(translate):
    assert translate(stdin=b"") == Outcome(0, "", "")


def test_a_line_feed_that_the_model_writes_does_not_make_two_lines(translate, monkeypatch):
    monkeypatch.setattr(toolkit.Translator, "translate", lambda *_, **__: ["one\r\ntwo\nthree"] * 2)
    assert translate("a", "b").lines == ["one two three"] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_long_input_is_translated_in_order(translate, tiny_model, monkeypatch, workers):
    monkeypatch.setattr(windows, "WINDOW", 100)
    lines = [f"{'boy ' * (number % 3)}{number}" if number % 7 else "" for number in range(450)]
    translations = toolkit.load(tiny_model).translate(lines, max_new_tokens=2)
    flags, text = ("--max-new-tokens", 2, "--workers", workers), "".join(f"{line}\n" for line in lines).encode()
    assert translate(*flags, stdin=text).lines == translations
    sampled = translate(*flags, "--do-sample", stdin=text).lines
    assert sampled == toolkit.load(tiny_model).translate(lines, max_new_tokens=2, do_sample=True)


@pytest.mark.parametrize("flags", [["--num-beams", 3], ["--do-sample", "--seed", 5], ["--max-new-tokens", 3]])
def test_flags_are_the_settings_of_the_library(translate, tiny_model, flags):
    names = [str(flag).removeprefix("--").replace("-", "_") for flag in flags]
    settings = {"do_sample": True, "seed": 5} if len(flags) == 3 else {names[0]: flags[1]}
    assert translate(*flags, *LINES).lines == toolkit.load(tiny_model).translate(LINES, **settings)


# The prompt


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def converse(capsys, monkeypatch, tiny_model):
    """Type lines at the prompt; an exception among them is what the terminal does instead."""

    def converse(*typed, flags=()):
        answers = iter(typed)

        def answer(prompt=""):
            value = next(answers)
            if isinstance(value, BaseException):
                raise value
            return value

        monkeypatch.setattr(sys, "stdin", Terminal())
        monkeypatch.setattr(builtins, "input", answer)
        code = main(["translate", "--model", str(tiny_model), *flags])
        return Outcome(code, *capsys.readouterr())

    return converse


@pytest.mark.parametrize("end", ["", "  ", EOFError()])
def test_the_prompt_answers_line_by_line_until_it_is_left(converse, expected, end):
    assert converse(LINES[0], LINES[2], end).lines == [expected[0], expected[2]]


def test_the_prompt_survives_what_it_cannot_translate(converse, expected):
    outcome = converse("x" * 100_000, LINES[0], "")
    assert outcome.lines == [expected[0]]
    assert "toolkit: the text, line 1 has 100000 characters" in outcome.err


def test_control_c_leaves_without_a_traceback(converse, expected):
    outcome = converse(LINES[0], KeyboardInterrupt())
    assert (outcome.code, outcome.out) == (130, expected[0] + "\n")
    assert "Traceback" not in outcome.err


def test_a_prompt_does_not_write_to_a_file(converse):
    assert "--output" in converse(flags=["--output", "x"]).sentence


def test_a_terminal_that_is_not_utf8(converse):
    assert "UTF-8" in converse(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "")).err


# Mistakes


def test_wrong_encoding_is_named_with_its_line_and_nothing_is_written(translate, tmp_path):
    file, output = tmp_path / "in.txt", tmp_path / "out.txt"
    file.write_bytes(b"good\ncaf\xe9\n")
    output.write_text("precious")
    assert "in.txt, line 2 is not UTF-8" in translate("--file", file, "--output", output).sentence
    assert output.read_text() == "precious"
    assert [path.name for path in tmp_path.iterdir() if path not in (file, output)] == []
    assert "standard input, line 2 is not UTF-8" in translate(stdin=file.read_bytes()).sentence
    assert "UTF-8" in translate("caf\udce9").sentence  # how Python shows such a byte of the command line


def test_a_line_that_is_too_long_is_named(translate, tmp_path):
    file = tmp_path / "in.txt"
    file.write_text("a\n" * 5 + "xq" * 3000 + "\n")
    assert "in.txt, line 6 has 6,001 tokens" in translate("--file", file).sentence
    assert "standard input, line 6 has" in translate(stdin=file.read_bytes()).sentence


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--file", "no-such-file"], "no-such-file does not exist"),
        (["--file", "."], "is a directory"),
        (["text", "--file", "x"], "choose one"),
        (["text", "--output", "no/such/directory/x"], "cannot be written"),
        (["text", "--num-beams", "0"], "num_beams is 0"),
        (["text", "--batch-size", "0"], "batch_size is 0"),
        (["text", "--do-sample", "--num-beams", "2"], "num_beams is 2"),
        (["text", "--max-new-tokens", "100000"], "max_new_tokens is 100000"),
        (["text", "--model", "no-such-model"], "there is no model 'no-such-model'"),
        (["text", "--model", ""], "is not a model"),
        (["text", "--model", "no/such/model"], "there is no model"),
    ],
)
def test_a_mistake_is_told_in_one_sentence(translate, flags, words):
    assert words in translate(*flags).sentence


@pytest.mark.parametrize("verb", [*VERBS, "--no-such-flag", "no-such-verb"])
def test_an_unknown_flag_or_verb_is_told_in_one_sentence(run, verb):
    # What is looked at first.
    chosen = {"explain": ("training",), "train": ("chat",), "exercise": ("check",), "completion": ("zsh",)}
    words = chosen.get(verb, ("some", "words"))
    assert "no-such" in run(verb, *words, "--no-such-flag").sentence


# The other verbs


def test_alone_it_shows_help_and_names_every_verb(run):
    alone = run()
    assert alone == run("--help")
    assert all(verb in alone.out for verb in VERBS)
    assert run("--version") == Outcome(0, f"toolkit {toolkit.__version__}\n", "")


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_explains_its_flags(run, verb):
    outcome = run(verb, "--help")
    assert (outcome.code, outcome.err) == (0, "")
    assert f"usage: toolkit {verb}" in outcome.out


def test_evaluate_refuses_files_of_unequal_length(run, tmp_path):
    (tmp_path / "ref").write_text("a\nb\n")
    (tmp_path / "hyp").write_text("a\n")
    assert "ref has 2 lines" in run("evaluate", tmp_path / "ref", tmp_path / "hyp").sentence
    assert "nowhere does not exist" in run("evaluate", tmp_path / "ref", "nowhere").sentence


# The process


def test_a_pipe_that_stays_open_is_answered(tiny_model, expected):
    with process("translate", "--model", tiny_model, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        for line, translation in zip(LINES, expected, strict=True):
            running.stdin.write(f"{line}\n".encode())
            running.stdin.flush()
            assert running.stdout.readline().decode() == f"{translation}\n"
        running.stdin.close()
        assert running.wait() == 0


def test_a_reader_that_leaves_is_no_reason_to_complain(tiny_model):
    reading, writing = os.pipe()
    os.close(reading)
    with process("translate", "--model", tiny_model, "a", stdout=writing, stderr=subprocess.PIPE) as running:
        os.close(writing)
        assert running.stderr.read() == b""
    assert running.returncode == 141


@pytest.mark.skipif(not FULL.exists(), reason="needs a device that is always full")
def test_a_full_disk_is_told_in_one_sentence(tiny_model):
    with (
        FULL.open("wb") as full,
        process("translate", "--model", tiny_model, "a", stdout=full, stderr=subprocess.PIPE) as running,
    ):
        assert running.stderr.read().decode().startswith("toolkit: standard output cannot be written")
    assert running.returncode == 2


@pytest.mark.parametrize(
    ("arguments", "unneeded"),
    [
        (["--version"], {"numpy", "tyro"}),
        (["--help"], {"numpy", "tyro"}),
        (
            ["translate", "--model", "{model}", "a"],
            {"datasets", "sacrebleu", "tqdm", "pandas", "multiprocessing.connection", "toolkit.training"},
        ),
        (
            ["generate", "--model", "{gpt}", "a"],
            {"datasets", "sacrebleu", "tqdm", "pandas", "multiprocessing.connection", "toolkit.training"},
        ),
        (
            ["chat", "--model", "{gpt}", "--template", "plain", "a"],
            {"datasets", "sacrebleu", "tqdm", "pandas", "multiprocessing.connection", "toolkit.training"},
        ),
        (["presets"], {"datasets", "sacrebleu", "tqdm", "pandas", "toolkit.training", "toolkit.decoding"}),
    ],
)
def test_a_verb_does_not_import_what_it_does_not_need(tiny_model, tiny_gpt, arguments, unneeded):
    arguments = [argument.format(model=tiny_model, gpt=tiny_gpt) for argument in arguments]
    code = f"import sys; from toolkit.cli import main; main({arguments!r}); print(sorted(sys.modules), file=sys.stderr)"
    modules = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True).stderr
    assert "'toolkit.cli'" in modules
    assert [name for name in unneeded if repr(name) in modules] == []


def test_all_but_parquet_and_the_hub_works_without_datasets(tiny_model, tiny_gpt, tmp_path):
    for name, texts in (("lines.en", ENGLISH), ("lines.ne", NEPALI)):
        (tmp_path / name).write_text("".join(f"{text}\n" for text in texts), "utf-8")
    commands = (
        "translate --model {model} --file lines.en --output lines.out",
        "evaluate lines.ne lines.out --source lines.en --baseline lines.en lines.ne --by-length",
        "score --model {model} --source lines.en --target lines.ne",
        "generate --model {gpt} --max-new-tokens 2 a",
        "chat --model {gpt} --template plain --max-new-tokens 2 a",
        "perplexity lines.en --model {gpt}",
        "explain attention --model {model} --html page.html",
        "export {model} marian",
        "import marian again",
        "recipe --run own --source lines.en --target lines.ne",
        "recipe --run own --source lines.en --target lines.ne --resume",
        "average own --last 2 --output mean",
        "plot own --output curves.svg",
        "runs own",
        "info mean",
    )
    recipe = Path(__file__).parents[1] / "recipes" / "translation.py"
    sizes = TRAIN.split("--run new ")[1].split("--source")[0]
    argv = [sys.executable, "-c", LIGHT, recipe, tiny_model, tiny_gpt, sizes, *commands]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    assert done.returncode == 0, done.stderr
