"""The recipes of the founding systems, as a user runs them: they learn, stop, go on with the same bits, and refuse."""

import json
import signal
from pathlib import Path

import numpy as np
import pytest

from tests.system.damage.room import obey
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.storage import load_model, model_directory, read_arrays, read_metrics
from toolkit.training.workers import Workers

SIZES = "--model.d-model 16 --model.d-ff 32 --training.workers 1"
ENCODER = f"recipe-ae {SIZES} --sentences 40 --valid-text held.en --training.tokens-per-batch 100"
SWISH = f"recipe-swish {SIZES} --sequences 200 --held-out 20 --length 6 --training.tokens-per-batch 300"
FEW = "--training.updates 6 --training.validate-every 2 --training.workers 2 --training.keep 9 --quiet"


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "held.en").write_text("I am a boy.\nShe eats rice.\n\nWhere do you go?\n")
    return tmp_path


def figures(run: str) -> dict:
    return read_metrics(model_directory(run))


def test_the_auto_encoder_learns_to_give_back_what_it_reads(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--training.updates 240 --training.validate-every 120 --training.warmup 10 --training.learning-rate 0.01"
    assert obey(f"{ENCODER} {flags} --run whole") == 0
    said, found = capsys.readouterr().out, figures("whole")
    baselines = found["baselines"]
    assert baselines["token_mean"]["loss"] == pytest.approx(1, abs=1e-5)
    assert baselines["token_mean"]["distance"] == pytest.approx(4, abs=1e-4)  # √16
    assert found["training"]["loss"] < 0.1 * baselines["mean_vector"]["loss"]
    assert found["training"]["loss"] < found["held_out"]["loss"] < 0.6
    assert found["held_out"] == pytest.approx(found["validation"], rel=1e-3)
    assert found["epochs"] == 80
    assert found["epochs_to_documented"] is None
    assert f"{found['held_out']['loss']:.6f}" in said
    assert "as the documents report: not reached" in said
    model = load_model(model_directory("whole"))
    assert isinstance(model, AutoEncoder)
    moved = found["moved"]
    assert moved["with_gradient"] == model.parameter_count - 2 * 16
    assert moved["with_gradient"] >= moved["moved"] > 0.99 * moved["with_gradient"]
    (keys,) = [line.split() for line in said.splitlines() if "key.bias" in line]
    (queries,) = [line.split() for line in said.splitlines() if "query.bias" in line]
    assert float(keys[-1]) < 1e-7 < 1e-4 < float(queries[-1])  # the first gradient
    assert float(keys[-2]) < 0.1 * float(queries[-2])  # how far it moved
    assert "softmax does not notice" in said


def test_the_epoch_that_came_below_the_documents_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert obey(f"{ENCODER} {FEW} --run new") == 0
    capsys.readouterr()
    log = Path("new/log.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for record in records:
        record["loss"] = 0.004 if record["update"] > 2 else 0.005
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert obey(f"{ENCODER} {FEW} --run new --resume") == 0
    assert "as the documents report: below in epoch 2\n" in capsys.readouterr().out  # update 4 of three batches each


def test_the_swish_transformer_learns_what_its_teacher_answers(capsys: pytest.CaptureFixture[str]) -> None:
    flags = "--training.updates 200 --training.validate-every 20 --training.warmup 10 --training.learning-rate 0.02"
    assert obey(f"{SWISH} {flags} --run whole") == 0
    told, found = capsys.readouterr(), figures("whole")
    assert found["fall"] == pytest.approx(found["held_out_before"] / found["held_out_after"])
    assert found["fall"] > 5
    assert found["held_out_after"] == pytest.approx(found["validation"]["loss"], rel=1e-3)
    assert f"{found['fall']:.1f}-fold" in told.out
    lines = [line for line in told.err.splitlines() if line.startswith("∂L/∂")]
    letters = [f"W_{letter},{layer}" for layer in (1, 2) for letter in ("q", "k", "v", "o", "1", "2")]
    assert [line.split()[0].removeprefix("∂L/∂") for line in lines] == ["X", *letters]
    assert all(line.endswith("right") for line in lines)
    assert {name.split(".")[-1] for name in load_model(model_directory("whole")).arrays()} == {"weight"}


def test_the_update_that_reached_the_goal_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert obey(f"{SWISH} {FEW} --run new") == 0
    assert figures("new")["update_of_goal"] is None
    assert "not 20-fold" in capsys.readouterr().out
    log, low = Path("new/log.jsonl"), figures("new")["held_out_before"] / 20
    records = [json.loads(line) for line in log.read_text().splitlines()]
    for record in records:
        if "validation" in record and record["update"] > 2:
            record["validation"]["loss"] = low
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    assert obey(f"{SWISH} {FEW} --run new --resume") == 0
    assert "(20-fold by update 4)" in capsys.readouterr().out
    assert figures("new")["update_of_goal"] == 4


@pytest.mark.parametrize("command", [f"{ENCODER} {FEW}", f"{SWISH} {FEW}"], ids=["auto-encoder", "swish"])
def test_a_run_that_is_stopped_and_continued_ends_in_the_same_bits(
    monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    assert obey(f"{command} --run whole") == 0
    update = Workers.update

    def update_and_press(self: Workers, step: int, *rest: float) -> None:
        update(self, step, *rest)
        if step == 3:
            signal.raise_signal(signal.SIGINT)

    with monkeypatch.context() as patch:
        patch.setattr(Workers, "update", update_and_press)
        assert obey(f"{command} --run cut") == 130
    assert Path("cut/last").read_text() == "step-000003\n"
    assert obey(f"{command} --run cut --resume") == 0
    whole, cut = (read_arrays(Path(run) / "step-000006" / "model.safetensors") for run in ("whole", "cut"))
    for name, value in whole.items():
        np.testing.assert_array_equal(value, cut[name])
    assert {**figures("whole"), "command": ""} == {**figures("cut"), "command": ""}


@pytest.mark.parametrize(
    ("command", "says"),
    [
        (f"{ENCODER} --sentences 0", "sentences is 0: it must be at least 1"),
        (f"{ENCODER} --model.d-model 1 --model.num-heads 1", "a vector of one number has no variance"),
        (f"{ENCODER} --text none.en", "none.en"),
        (f"{ENCODER} --text empty.en", "empty.en has no sentence to read"),
        (f"{ENCODER} --model.num-heads 3", "d_model 16 cannot be divided into 3 heads"),
        (f"{ENCODER} --training.best-by bleu", "leave out --training.best-by"),
        (f"{SWISH} --sequences 0", "sequences is 0: it must be at least 1"),
        (f"{SWISH} --held-out -1", "held_out is -1"),
        (f"{SWISH} --length 0", "length is 0"),
        (f"{SWISH} --model.norm-position rms", "norm-position"),
        (f"{SWISH} --training.label-smoothing 0.1", "leave out --training.label-smoothing"),
    ],
)
def test_what_cannot_be_is_told_in_a_sentence_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str], command: str, says: str
) -> None:
    Path("empty.en").write_text("\n \n")
    assert obey(f"{command} --run new") == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert says in told.err
    assert not Path("new").exists()
