"""The recipe for language models, as a user runs it: trained, stopped by Ctrl-C, continued, exported, used."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

import toolkit
from tests.system.damage.room import obey
from toolkit.models.storage import read_arrays, read_metrics

ROOT = Path(__file__).resolve().parents[2]
SIZES = {
    "model.d-model": 16,
    "model.layers": 1,
    "model.num-heads": 2,
    "model.d-ff": 16,
    "model.max-length": 32,
    "training.tokens-per-batch": 96,
    "training.warmup": 2,
    "training.updates": 120,
    "training.validate-every": 40,
    "samples": 2,
}
SMALL = [word for name, value in SIZES.items() for word in (f"--{name}", str(value))]


def start(run: Path, *flags: str | Path) -> subprocess.Popen:
    command = [sys.executable, ROOT / "recipes" / "language_model.py", "--run", run, "--quiet", *SMALL, *flags]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "env": environment}
    return subprocess.Popen([str(word) for word in command], **pipes, start_new_session=True)


def train(run: Path, *flags: str | Path) -> int:
    """Do the same within this process -> the exit code."""
    return obey(" ".join(map(str, ("recipe-lm", "--run", run, "--quiet", *SMALL, *flags))))


def weights(run: Path) -> dict[str, np.ndarray]:
    return read_arrays(run / (run / "last").read_text().strip() / "model.safetensors")


def validations(run: Path) -> list[dict]:
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [record["validation"] for record in records if "validation" in record]


@pytest.fixture(scope="module")
def own_text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "own.txt"
    rng = np.random.default_rng(0)
    words = ["राम", "घर", "गयो", "one", "two", "three", "।", "."]
    path.write_text("\n".join(" ".join(rng.choice(words, 6)) for _ in range(400)), encoding="utf-8")
    return path


@pytest.mark.parametrize(
    "flags",
    [
        ("--tokenizer", "character", "--training.workers", "2"),
        ("--tokenizer", "byte", "--documents", "line", "--whole-documents", "--training.ema", "0.9"),
    ],
    ids=["characters of a stream", "bytes of lines"],
)
def test_a_run_that_is_stopped_and_continued_ends_in_the_same_bits(own_text: Path, tmp_path: Path, flags: tuple):
    whole, cut = tmp_path / "whole", tmp_path / "cut"
    assert train(whole, "--text", own_text, *flags) == 0
    process = start(cut, "--text", own_text, *flags)
    while process.poll() is None and not (cut / "best").exists():
        time.sleep(0.002)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    stopped_at = (cut / "last").read_text().strip()
    assert train(cut, "--text", own_text, *flags, "--resume") == 0
    assert stopped_at <= (cut / "last").read_text().strip() == "step-000120"
    for name, value in weights(whole).items():
        np.testing.assert_array_equal(value, weights(cut)[name])
    assert validations(whole) == validations(cut)
    first, *_, last = validations(whole)
    assert set(first) == {"loss", "perplexity", "bits_per_byte"}
    assert last["loss"] < first["loss"]


def test_what_is_exported_writes_and_scores_as_the_recipe_said(own_text: Path, tmp_path: Path, capsys) -> None:
    flags = ("--documents", "line", "--whole-documents", "--valid-text", own_text, "--model.vocab-size", "300")
    flags += ("--export", tmp_path / "exported", "--prompt", "one")
    assert train(tmp_path / "run", "--text", own_text, *flags) == 0
    said = capsys.readouterr().out
    model = toolkit.load(tmp_path / "exported")
    scores = read_metrics(tmp_path / "exported")["validation_full"]
    assert f"loss {scores['loss']:.4f}" in said
    found = model.perplexity(own_text.read_text(encoding="utf-8").split("\n"))
    assert found.loss == pytest.approx(scores["loss"], rel=1e-5)
    assert found.perplexity == pytest.approx(scores["perplexity"], rel=1e-5)
    # The recipe counts the line feeds that end marks stand for, too.
    assert found.bits_per_byte == pytest.approx(scores["bits_per_byte"], rel=0.05)
    samples = [line for line in said.splitlines() if line][:2]
    written = model.generate_n(["one"], num_return_sequences=2, temperature=0.6, seed=1)[0]
    assert ["one" + each.text for each in written] == samples


def test_settings_that_do_not_fit_are_refused_before_anything_is_written(own_text: Path, tmp_path: Path, capsys):
    for flags, told in (
        (("--text", own_text, "--whole-documents"), "needs documents"),
        (("--preset", "gpt5"), "no preset 'gpt5'"),
        (("--training.subword-alpha", "0.1"), "subword"),
        (("--valid-text", own_text), "give the training text too"),
        (("--text", tmp_path / "missing.txt"), "missing.txt does not exist"),
    ):
        assert train(tmp_path / "run", *flags) == 2
        err = capsys.readouterr().err
        assert told in err
        assert err.count("\n") == 1
        assert not (tmp_path / "run").exists()
