"""Where a command reads: - is standard input everywhere, its output is not its input, and forgotten quotation marks."""

import json
import os
import subprocess
import sys

import pytest

import toolkit

LINES = b"I am a boy.\nShe eats rice.\n"
SHORT = ("--max-new-tokens", 5)


@pytest.fixture
def file(tmp_path):
    (tmp_path / "lines").write_bytes(LINES)
    return tmp_path / "lines"


# -


def test_a_dash_is_standard_input_for_every_verb(run, file, tiny_model, tiny_gpt):
    translate, score = ("translate", "--model", tiny_model, *SHORT), ("score", "--model", tiny_model)
    generate = ("generate", "--model", tiny_gpt, *SHORT)
    chat = ("chat", "--model", tiny_gpt, "--template", "plain", "--max-new-tokens", 1)
    requests = json.dumps({"source": "I am", "target": "म"}).encode()
    for with_dash, with_file, stdin in (
        ((*translate, "--file", "-"), (*translate, "--file", file), LINES),
        ((*translate, "-"), (*translate, "--file", file), LINES),
        ((*translate, "--file", "-", "--output", "-"), (*translate, "--file", file), LINES),
        (
            (*translate, "--file", file, "--prefix-file", "-"),
            (*translate, "--file", file, "--prefix-file", file),
            LINES,
        ),
        ((*generate, "--file", "-"), (*generate, "--file", file), LINES),
        ((*generate, "-"), (*generate, "--file", file), LINES),
        ((*chat, "-"), chat, b"a\nb\n"),
        ((*score, "--file", "-"), score, requests),
        ((*score, "--source", "-", "--target", file), (*score, "--source", file, "--target", file), LINES),
        ((*score, "--source", file, "--target", "-"), (*score, "--source", file, "--target", file), LINES),
        (("evaluate", "-", file), ("evaluate", file, file), LINES),
        (("evaluate", file, "-", "--source", file), ("evaluate", file, file, "--source", file), LINES),
        (("evaluate", file, file, "--versus", "-"), ("evaluate", file, file, "--versus", file), LINES),
    ):
        found, expected = (run(*words, stdin=stdin) for words in (with_dash, with_file))
        assert found.lines
        assert found.out.replace(str(file), "-") == expected.out.replace(str(file), "-")


def test_standard_input_is_read_once(run, file, tiny_model):
    for words in (
        ("translate", "--model", tiny_model, "--file", "-", "--prefix-file", "-"),
        ("score", "--model", tiny_model, "--source", "-", "--target", "-"),
        ("evaluate", "-", "-"),
        ("evaluate", file, "-", "--versus", "-"),
    ):
        assert "standard input" in run(*words, stdin=LINES).sentence


# The output


def test_an_output_that_is_the_input_is_refused(translate, file, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link").symlink_to(file)
    os.link(file, tmp_path / "hard")
    (tmp_path / "empty").write_text("\n\n")
    for output in (file, "lines", "./lines", tmp_path / "link", tmp_path / "hard"):
        for flags in ("--file", file), ("--file", "link"), ("--file", "empty", "--prefix-file", file):
            assert "--output would replace " in translate(*flags, "--output", output).sentence
    assert file.read_bytes() == LINES
    assert not list(tmp_path.glob(".toolkit*"))


def test_a_file_that_standard_output_goes_to_is_not_read(tiny_model, file):
    command = [sys.executable, "-m", "toolkit", "translate", "--model", str(tiny_model), "--file", str(file)]
    with file.open("ab") as output:
        done = subprocess.run(command, stdout=output, stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"lines is where standard output goes" in done.stderr
    assert file.read_bytes() == LINES


# Quotation marks


def test_words_without_quotation_marks_are_one_text(run, tiny_model, tiny_gpt):
    for words in (
        ("translate", "--model", tiny_model, *SHORT),
        ("generate", "--model", tiny_gpt, *SHORT),
        ("chat", "--model", tiny_gpt, "--template", "plain", "--max-new-tokens", 1),
    ):
        found, expected = run(*words, "I", "am", "a", "boy"), run(*words, "I am a boy")
        assert found.lines == expected.lines
        note = 'toolkit: taken as one text, "I am a boy": words that are texts of their own go on lines of their own\n'
        assert found.err == expected.err + note
        assert run(*words, "--quiet", "I", "am").err == run(*words, "--quiet", "I am").err


@pytest.mark.parametrize("texts", [["I am", "a boy"], ["I", "am a"], ["I", ""], ["I"], ["I\nam", "a"]], ids=repr)
def test_texts_that_were_quoted_stay_several(translate, tiny_model, texts):
    outcome = translate(*SHORT, *texts)
    lines = [line for text in texts for line in text.split("\n")]
    assert outcome.lines == toolkit.load(tiny_model).translate(lines, max_new_tokens=5)
    assert outcome.err == ""
