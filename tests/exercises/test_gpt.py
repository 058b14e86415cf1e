"""The learner's GPT: with right functions it is the toolkit's, gradient by gradient and update by update."""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.house import CLONE
from toolkit.exercises.course import EXERCISES, TOGETHER, _importing, _load, check, exercise, start
from toolkit.models.gpt import GPT, GPTConfig, text_batch
from toolkit.nn.tape import Tape
from toolkit.tokenization import ByteTokenizer
from toolkit.tokenization.special import BOS, EOS

SOLUTIONS = Path(__file__).parent / "solutions"
TOKENIZER = ByteTokenizer()
TEXTS = [f"{who} had a {thing}. {who} lost the {thing}." for who in ("Ana", "Bo", "Mina") for thing in ("cap", "kite")]
STORIES, VALID = TOKENIZER.encode_batch(TEXTS[1:]), TOKENIZER.encode_batch(TEXTS[:1])
SMALL = {"WIDTH": 16, "HEADS": 2, "HIDDEN": 32, "STORIES": 2, "LONGEST": 64, "PEAK": 3e-2, "WARMUP": 5}
UPDATES = 25
CLOSE = 1e-5  # relative, between float64 and float32 after so many updates

# What stands in a right solution, and what makes it wrong.
WRONG = {
    "residual": ("dy + back_norm(back_layer(dy))", "back_norm(back_layer(dy))"),  # not the way around the layer
    "rotary_gradient": ("db * cosine - da * sine", "db * cosine + da * sine"),  # not turned back
    "adam_step": ("v / (1 - 0.999**step)", "v"),  # without its correction
    "learning_rate": ("peak * step / warmup", "peak"),  # no warm-up
}


def solve(directory: Path, wrong: str = "") -> Path:
    """Start the exercises in a directory and finish them, one of them wrongly."""
    start(directory)
    shutil.copytree(SOLUTIONS, directory, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__"))
    if wrong:
        right, instead = WRONG[wrong]
        text = (directory / f"{wrong}.py").read_text(encoding="utf-8")
        assert text.count(right) == 1
        (directory / f"{wrong}.py").write_text(text.replace(right, instead), encoding="utf-8")
    return directory


def small(directory: Path, monkeypatch):
    """Import the learner's GPT, and make it small."""
    with _importing(directory):
        module = _load(directory / TOGETHER)
    for name, value in SMALL.items():
        monkeypatch.setattr(module, name, value)
    return module


def both_losses(gpt) -> tuple[float, float]:
    """Train the learner's GPT and the toolkit's -> the validation loss of each."""
    mine, theirs = (gpt.new_parameters(TOKENIZER.vocab_size) for _ in range(2))
    assert len(list(gpt.train(mine, STORIES, UPDATES))) == UPDATES
    return gpt.validation_loss(VALID, mine), gpt.toolkit_loss(STORIES, VALID, TOKENIZER, theirs, UPDATES)


def test_loss_and_gradients_are_those_of_the_toolkit(tmp_path, monkeypatch):
    gpt = small(solve(tmp_path), monkeypatch)
    rng, parameters = np.random.default_rng(0), gpt.new_parameters(TOKENIZER.vocab_size)
    arrays = [array for part in parameters.values() for array in part.values()]
    for array in arrays:  # gains that are 1 and biases that are 0 hide mistakes
        array += rng.standard_normal(array.shape) / 5
    loss, gradients = gpt.loss_and_gradients(STORIES, parameters)

    shape = {"d_model": 16, "layers": gpt.LAYERS, "num_heads": 2, "d_ff": 32}
    model = GPT(GPTConfig(TOKENIZER.vocab_size, activation="gelu_tanh", bias=True, **shape))
    model.allocate(np.float64)
    for name, own in zip(model.parameters(), arrays, strict=True):
        model.arrays()[name][...] = own
    views = model.views(np.zeros_like(model.vector))
    tape = Tape(views)
    sums = model.loss(text_batch([np.array([BOS, *ids, EOS]) for ids in STORIES]), tape)
    model.backward(tape)
    assert loss == pytest.approx(sums.loss / sums.tokens, rel=1e-12)
    for (name, parameter), gradient in zip(model.parameters().items(), gradients, strict=True):
        right = views[parameter] / sums.tokens
        np.testing.assert_allclose(gradient, right, rtol=0, atol=1e-12 * abs(right).max(), err_msg=name)


def test_training_reaches_the_loss_of_the_toolkit(tmp_path, monkeypatch):
    mine, theirs = both_losses(small(solve(tmp_path), monkeypatch))
    assert theirs < 3.5 < np.log(TOKENIZER.vocab_size)  # it learns
    assert mine == pytest.approx(theirs, rel=CLOSE)


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_function_does_not(tmp_path, monkeypatch, name):
    directory = solve(tmp_path, name)
    assert check(exercise(name), directory)
    mine, theirs = both_losses(small(directory, monkeypatch))
    assert abs(mine / theirs - 1) > 10 * CLOSE


def run_small(directory: Path, monkeypatch, wrong: str = ""):
    """Import the learner's GPT as `small` does, with few stories and arguments of its command."""
    gpt = small(solve(directory, wrong), monkeypatch)
    for name in ("train", "valid"):
        (directory / f"{name}.en.txt").write_text("\n\n".join(TEXTS), encoding="utf-8")
    monkeypatch.setattr(gpt, "embedded", lambda name: directory)
    monkeypatch.setattr(sys, "argv", ["gpt.py", "--check", "--updates", str(UPDATES)])
    return gpt


@pytest.mark.parametrize("wrong", ["", "residual"])
def test_the_program(tmp_path, monkeypatch, capsys, wrong):
    """It trains, writes and compares; where more than 2 % are between the losses, it says so."""
    code, (out, err) = run_small(tmp_path, monkeypatch, wrong).main(), capsys.readouterr()
    assert f"update   {UPDATES}: loss" in out
    assert out.count("by chance: ") == 2
    assert (code, "within 2 %" in out, "more than 2 % apart" in err) == (
        (2, False, True) if wrong else (0, True, False)
    )


def test_control_c_ends_training_and_no_more(tmp_path, monkeypatch, capsys):
    gpt = run_small(tmp_path, monkeypatch)
    rates = iter([0.01, 0.01])

    def interrupted(*_):
        if (rate := next(rates, None)) is None:
            raise KeyboardInterrupt
        return rate

    monkeypatch.setattr(gpt, "learning_rate", interrupted)
    assert gpt.main() == 0
    out = capsys.readouterr().out
    assert "stopped after 2 updates" in out
    assert out.count("by chance: ") == 2
    assert "the toolkit's model" not in out  # it would have been trained for longer


@pytest.mark.parametrize("waiting", [["softmax"], ["linear", "residual"]])
def test_what_is_not_finished_is_told_in_a_sentence(tmp_path, waiting):
    solve(tmp_path)
    for name in (*waiting, "dpo_loss"):  # which is of no use here
        (tmp_path / f"{name}.py").unlink()
    start(tmp_path)
    command, environment = [sys.executable, TOGETHER], {"PYTHONPATH": str(CLONE), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    names = ", ".join(f"{name}.py" for name in waiting)
    assert done.stderr == f"not finished yet: {names} (toolkit exercise next)\n"


def test_it_is_no_exercise():
    assert TOGETHER.removesuffix(".py") not in {each.name for each in EXERCISES}
