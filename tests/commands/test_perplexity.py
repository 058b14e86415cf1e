"""toolkit perplexity: the figures of the library, for files of any size."""

import json
import math
import subprocess
import sys

import pytest

import toolkit
from toolkit.evaluation.perplexity import _BATCH_TOKENS

STORIES = ["She eats rice.\nWhere do you go?", "I am a boy. " * 20 + "I am a girl.", "म केटा हुँ।"]


@pytest.fixture(scope="module")
def model(tiny_gpt):
    return toolkit.load(tiny_gpt)


@pytest.fixture
def stories(tmp_path):
    path = tmp_path / "stories.txt"
    path.write_text("\n\n".join(STORIES) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def measure(run, tiny_gpt):
    """The figures that `toolkit perplexity --json` prints."""
    return lambda *words: json.loads(run("perplexity", "--model", tiny_gpt, "--json", *words).lines[0])


def test_documents_stand_between_blank_lines_and_each_is_read_by_itself(measure, model, stories):
    found, expected = measure(stories), model.perplexity(STORIES)
    assert found["documents"] == "blank"
    assert found["tokens"] == expected.tokens
    assert found["loss"] == pytest.approx(expected.loss, rel=1e-6)
    assert found["bytes"] == expected.bytes + 3 * 2  # the blank lines that end marks stand for
    bits = found["loss"] * found["tokens"] / math.log(2)
    assert found["bits_per_byte"] == pytest.approx(bits / found["bytes"])


def test_what_is_a_document_can_be_said(measure, model, stories):
    text = stories.read_text()
    lines = [line for line in text.split("\n") if line]
    for documents, texts, marks in ("line", lines, True), ("file", [text], True), ("none", [text], False):
        expected = model.perplexity_of([(each, True) for each in texts], marks=marks)
        found = measure(stories, "--documents", documents)
        assert found["tokens"] == expected.tokens
        assert found["loss"] == pytest.approx(expected.loss, rel=1e-6)
    assert found["bytes"] == len(text.encode())


def test_overlap_reads_with_more_context(measure, model, stories):
    found = measure(stories, "--overlap", 20)
    assert found["loss"] == pytest.approx(model.perplexity(STORIES, overlap=20).loss, rel=1e-6)
    assert found["loss"] != measure(stories)["loss"]
    assert found["tokens"] == measure(stories)["tokens"]


def test_several_files_are_measured_each_and_together(run, measure, tiny_gpt, stories, tmp_path):
    other = tmp_path / "other.txt"
    other.write_text("Where do you go?\n")
    found = measure(stories, other)
    parts = found["files"]
    assert [*parts] == [str(stories), str(other)]
    assert parts[str(stories)]["loss"] == measure(stories)["loss"]
    assert found["tokens"] == sum(part["tokens"] for part in parts.values())
    assert found["loss"] * found["tokens"] == pytest.approx(
        sum(part["loss"] * part["tokens"] for part in parts.values())
    )
    lines = run("perplexity", "--model", tiny_gpt, stories, other).lines
    assert len(lines) == 4
    assert lines[-1].split()[:3] == ["all", "together", f"{found['loss']:.4f}"]
    assert len(run("perplexity", "--model", tiny_gpt, stories).lines) == 2


def test_a_file_larger_than_a_piece_is_one_text(measure, model, tmp_path, monkeypatch):
    monkeypatch.setattr("toolkit.data.texts.PIECE", 500)
    path = tmp_path / "long.txt"
    text = "She eats rice. I am a boy. " * 200
    path.write_text(text)
    expected = model.perplexity_of([(text, False)])
    found = measure(path, "--documents", "none")
    assert (found["tokens"], found["bytes"]) == (expected.tokens, expected.bytes)
    assert found["loss"] == pytest.approx(expected.loss, rel=1e-6)


def test_the_number_of_workers_changes_nothing(measure, stories, monkeypatch):
    monkeypatch.setattr("toolkit.evaluation.perplexity._BATCH_TOKENS", 40)
    one, two, unasked = (measure(stories, *flags) for flags in (["--workers", 1], ["--workers", 2], []))
    assert one == two == unasked


def test_as_much_text_as_makes_workers_start_is_measured_as_by_one(measure, tmp_path):
    """With batches of full size: their arrays come from blocks of memory, which workers must not share."""
    path = tmp_path / "long.txt"
    path.write_text("\n\n".join(STORIES * 300), encoding="utf-8")
    alone = measure(path, "--workers", 1)
    assert alone["tokens"] > 8 * _BATCH_TOKENS
    assert measure(path) == measure(path, "--workers", 2) == alone


def test_a_text_comes_through_a_pipe(run, measure, tiny_gpt, stories):
    told = run("perplexity", "--model", tiny_gpt, "--json", "-", stdin=stories.read_bytes()).lines[0]
    piped, found = json.loads(told), measure(stories)
    assert piped.pop("files").keys() == {"standard input"}
    assert piped == {name: value for name, value in found.items() if name != "files"}


def test_standard_input_that_is_empty_or_closed_is_told(run, tiny_gpt):
    assert "standard input is empty" in run("perplexity", "--model", tiny_gpt, "-").sentence
    command = f'"{sys.executable}" -m toolkit perplexity --model "{tiny_gpt}" - <&-'
    done = subprocess.run(command, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "standard input is closed" in done.stderr


def test_a_file_that_is_named_twice_is_refused(run, tiny_gpt, stories):
    assert "named twice" in run("perplexity", "--model", tiny_gpt, stories, stories).sentence


def test_a_model_without_marks_reads_a_file_as_one_text(run, make_gpt, stories, tmp_path):
    name = make_gpt(tmp_path / "plain", begin=False)
    found = json.loads(run("perplexity", "--model", name, "--json", stories).lines[0])
    assert found["documents"] == "none"
    assert found["tokens"] == len(toolkit.load(name).tokenizer.encode(stories.read_text())) - 1
    assert "knows no marks" in run("perplexity", "--model", name, "--documents", "line", stories).sentence


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"caf\xe9\n", "stories.txt, line 1 is not UTF-8"),
        (b"", "stories.txt is empty"),
        (b"\n\n \n", "stories.txt cannot be measured: there is nothing to predict"),
    ],
)
def test_what_cannot_be_measured_is_named(run, tiny_gpt, stories, content, words):
    stories.write_bytes(content)
    assert words in run("perplexity", "--model", tiny_gpt, stories).sentence


def test_a_mistake_in_flags_is_told_in_one_sentence(run, tiny_gpt, stories):
    assert "no file is given" in run("perplexity", "--model", tiny_gpt).sentence
    assert "workers is 0" in run("perplexity", "--model", tiny_gpt, "--workers", 0, stories).sentence
    assert "overlap is 32" in run("perplexity", "--model", tiny_gpt, "--overlap", 32, stories).sentence
    assert "nowhere does not exist" in run("perplexity", "--model", tiny_gpt, "nowhere").sentence
