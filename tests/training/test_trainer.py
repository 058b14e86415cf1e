import math
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from tests.training.small import (
    NotANumber,
    after_update,
    bits,
    build_small,
    log,
    named,
    press_ctrl_c,
    small_task,
    small_trainer,
    steps,
    timeless_log,
)
from toolkit.errors import DivergenceError
from toolkit.functional import tuning
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import load_model, model_directory, read_metrics
from toolkit.training.task import Evaluation
from toolkit.training.trainer import Trainer
from toolkit.training.translation import TranslationTask


def test_training_lowers_the_loss_and_records_it(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", updates=40, validate_every=20, learning_rate=0.01, tokens_per_batch=500)
    state = trainer.train()
    assert (state.update, state.epoch) == (40, 39)
    assert state.tokens == 40 * sum(len(example.target) + 1 for example in trainer.task.examples["train"])
    first, second = log(tmp_path / "run", "loss")
    assert second["loss"] < first["loss"] < math.log(30) + 0.5
    assert second["learning_rate"] == pytest.approx(0, abs=1e-12)
    assert second["gradient_norm"] > 0
    validations = log(tmp_path / "run", "validation")
    assert [record["update"] for record in validations] == [20, 40]
    scores = validations[-1]["validation"]
    assert scores["perplexity"] == pytest.approx(math.exp(scores["loss"]))
    assert scores["chrf"] == 1.0


def test_the_last_checkpoint_is_the_model(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run")
    trainer.train()
    last, _ = named(tmp_path / "run")
    directory = tmp_path / "run" / last
    assert last == "step-000006"
    assert load_model(directory).vector.tobytes() == trainer.model.vector.tobytes()
    metrics = read_metrics(directory)
    assert metrics["validation"] == trainer.state.scores
    assert metrics["command"] == "how to train it"
    assert metrics["settings"] == trainer.run.settings
    assert (directory / "tokenizer.model").read_bytes() == b"none"


@pytest.mark.parametrize("workers", [1, 2])
def test_one_seed_one_result(tmp_path: Path, workers: int) -> None:
    trainers = []
    for number, seed in enumerate((1, 1, 2)):
        path = tmp_path / str(number)
        trainers.append(small_trainer(path, seed=seed, workers=workers, dropout=0.2, updates=3))
        trainers[-1].train()
    first, second, other = map(bits, trainers)
    assert first == second
    assert first[0] != other[0]


def test_the_kernels_of_a_run_are_fixed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A choice belongs to a machine, and may be made anew: nothing in a run depends on it."""
    other, asked = tuning.Choice("vecdot", "packed", 0), []
    monkeypatch.delenv("TOOLKIT_KERNELS")
    monkeypatch.setattr(tuning, "_read_or_measured", lambda *_: other)

    def evaluate(_model: Seq2Seq) -> Evaluation:
        asked.append(tuning.choose("cache"))
        return Evaluation({"chrf": 1.0}, [])

    small_trainer(tmp_path / "run", evaluate=evaluate).train()
    assert asked == [tuning.FIXED["cache"]] * 3
    assert tuning.choose("cache") == other


@pytest.mark.parametrize("stop", [3, 4])  # between two validations, and just before one
@pytest.mark.parametrize(("workers", "optimizer"), [(1, "adamw"), (2, "adamw"), (2, "muon")])
def test_resuming_equals_not_stopping(tmp_path: Path, workers: int, optimizer: str, stop: int) -> None:
    settings = {"workers": workers, "optimizer": optimizer, "dropout": 0.2, "accumulation": 2, "best_by": "chrf"}
    whole = small_trainer(tmp_path / "whole", **settings)
    whole.train()

    interrupted = small_trainer(tmp_path / "parts", **settings)
    after_update(interrupted, stop, press_ctrl_c)
    assert interrupted.train().update == stop
    assert named(tmp_path / "parts")[0] == f"step-00000{stop}"
    assert bits(interrupted) != bits(whole)

    resumed = small_trainer(tmp_path / "parts", create=False, **settings)
    resumed.train(resumed.run.resume())
    assert bits(resumed) == bits(whole)
    assert (resumed.state.epoch, resumed.state.tokens) == (whole.state.epoch, whole.state.tokens)
    assert resumed.state.scores == whole.state.scores
    assert named(tmp_path / "parts") == named(tmp_path / "whole")
    assert timeless_log(tmp_path / "parts") == timeless_log(tmp_path / "whole")
    assert steps(tmp_path / "parts") == steps(tmp_path / "whole")


def test_ctrl_c_during_an_evaluation_saves_and_leaves(tmp_path: Path) -> None:
    evaluations = []

    def evaluate(_model) -> Evaluation:
        evaluations.append(press_ctrl_c())
        return Evaluation({"chrf": 0.5}, [])

    state = small_trainer(tmp_path / "run", evaluate=evaluate).train()
    assert state.update == 2
    assert len(evaluations) == 1
    assert named(tmp_path / "run") == ("step-000002", "step-000002")


def test_ctrl_c_twice_leaves_at_once(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", workers=2)
    after_update(trainer, 3, lambda: (press_ctrl_c(), press_ctrl_c()))
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert named(tmp_path / "run")[0] == "step-000002"


def test_ctrl_c_means_what_it_did_when_training_is_over(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run", updates=1).train()
    with pytest.raises(KeyboardInterrupt):
        press_ctrl_c()


def test_divergence_keeps_the_checkpoint_before_it(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", task=small_task(kind=NotANumber))
    expected = "training diverged at update 3: the loss is no longer a finite number, again with half the learning rate"
    with pytest.raises(DivergenceError, match=expected):
        trainer.train()
    assert named(tmp_path / "run") == ("step-000002", "step-000002")
    assert np.isfinite(load_model(model_directory(tmp_path / "run")).vector).all()


@pytest.mark.parametrize("validate_every", [1, 2, 3])
@pytest.mark.parametrize("workers", [1, 2])
def test_a_learning_rate_far_too_high(tmp_path: Path, validate_every: int, workers: int) -> None:
    """Nothing that is not a number is ever saved, whenever it first appears."""
    settings = {"learning_rate": 1e37, "warmup": 0, "schedule": "constant", "weight_decay": 0.0}
    evaluated = []

    def evaluate(model) -> Evaluation:
        evaluated.append(np.isfinite(model.vector).all())
        return Evaluation({"chrf": 0.5}, [])

    settings |= {"validate_every": validate_every, "workers": workers, "updates": 9}
    trainer = small_trainer(tmp_path / "run", evaluate=evaluate, **settings)
    with pytest.raises(DivergenceError, match="training diverged"):
        trainer.train()
    for step in steps(tmp_path / "run"):
        load_model(tmp_path / "run" / step)
        assert math.isfinite(read_metrics(tmp_path / "run" / step)["validation"]["loss"])
    assert all(evaluated)


def test_ctrl_c_does_not_save_what_is_not_a_number(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run")

    def diverge_and_stop() -> None:
        trainer.model.vector[:2] = np.inf, -np.inf
        press_ctrl_c()

    after_update(trainer, 3, diverge_and_stop)
    assert trainer.train().update == 2
    assert named(tmp_path / "run") == ("step-000002", "step-000002")


def test_no_two_passes_share_their_dropout_masks(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", workers=2, accumulation=3)
    seeds = [tuple(seed) for step in (1, 2) for own in trainer._shares(step) for _, seed in own]
    assert len(set(seeds)) == len(seeds) == 2 * 2 * 3


def test_early_stopping(tmp_path: Path) -> None:
    scores = iter([1.0, 2.0, 2.0, 1.5, 9.0])
    trainer = small_trainer(
        tmp_path / "run",
        evaluate=lambda _: Evaluation({"chrf": next(scores)}, []),
        best_by="chrf",
        patience=2,
        validate_every=1,
    )
    state = trainer.train()
    assert (state.update, state.best, state.best_update) == (4, 2.0, 2)
    assert named(tmp_path / "run") == ("step-000004", "step-000002")
    assert steps(tmp_path / "run") == ["step-000002", "step-000004"]


def test_the_lowest_loss_is_the_best(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run", updates=8, learning_rate=0.1).train()
    losses = {record["update"]: record["validation"]["loss"] for record in log(tmp_path / "run", "validation")}
    assert named(tmp_path / "run")[1] == f"step-{min(losses, key=losses.get):06d}"


def test_samples_are_shown_on_stderr_unless_quiet(tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    for quiet in (True, False):
        trainer = small_trainer(
            tmp_path / str(quiet), updates=1, evaluate=lambda _: Evaluation({"chrf": 0.5}, ["a sample"])
        )
        trainer._quiet = quiet
        trainer.train()
        shown = capsys.readouterr()
        assert shown.out == ""
        assert ("a sample" in shown.err) == ("perplexity" in shown.err) == (not quiet)


def test_accumulated_batches_are_one_update(tmp_path: Path) -> None:
    """All thirty pairs at once, or in several batches of one epoch: the same update, to rounding."""
    parameters, batches = [], len(small_task().batches(0, 40, 1))
    assert batches > 2
    for tokens, accumulation in ((1000, 1), (40, batches)):
        trainer = small_trainer(
            tmp_path / str(tokens), updates=1, tokens_per_batch=tokens, accumulation=accumulation, eps=1e-3
        )
        assert trainer.train().tokens == sum(len(example.target) + 1 for example in trainer.task.examples["train"])
        parameters.append(trainer.model.vector.copy())
    np.testing.assert_allclose(*parameters, atol=1e-6)


# What a trainer of another kind gives or overrides


def with_start(path: Path, **settings) -> Trainer:
    """A trainer whose model begins with other values than its seed gives."""
    trainer = small_trainer(path, **settings)
    trainer._start = lambda model: model.initialize(np.random.default_rng(99))
    return trainer


def test_a_model_may_begin_with_given_values(tmp_path: Path) -> None:
    expected = build_small()()
    expected.allocate()
    expected.initialize(np.random.default_rng(99))
    for seed in 1, 2:
        settings = {"updates": 1, "learning_rate": 1e-12, "weight_decay": 0.0, "ema": 0.5, "seed": seed}
        trainer = with_start(tmp_path / str(seed), **settings)
        trainer.train()
        np.testing.assert_allclose(trainer.model.vector, expected.vector, atol=1e-9)
        np.testing.assert_allclose(trainer.workers.shared.average, expected.vector, atol=1e-9)


def test_given_values_are_not_given_again_to_a_run_that_is_resumed(tmp_path: Path) -> None:
    whole = with_start(tmp_path / "whole")
    whole.train()
    stopped = with_start(tmp_path / "parts")
    after_update(stopped, 3, press_ctrl_c)
    stopped.train()
    resumed = with_start(tmp_path / "parts", create=False)
    resumed._start = None  # would be an error to ask
    resumed.train(resumed.run.resume())
    assert bits(resumed) == bits(whole)


def test_a_run_that_diverges_goes_back_to_the_given_values(tmp_path: Path) -> None:
    trainer = with_start(tmp_path / "run", task=small_task(kind=NotANumber), validate_every=6)
    begun = []
    start = trainer._start
    trainer._start = lambda model: (begun.append(1), start(model))
    with pytest.raises(DivergenceError):
        trainer.train()
    assert len(begun) == 2


@pytest.mark.parametrize("every", [1, 2, 3])
def test_ctrl_c_waits_until_the_run_may_stop(tmp_path: Path, every: int) -> None:
    trainer = small_trainer(tmp_path / "run", validate_every=6)
    trainer.may_stop = lambda: trainer.state.update % every == 0
    after_update(trainer, 1, press_ctrl_c)
    assert trainer.train().update == every
    assert steps(tmp_path / "run") == [f"step-00000{every}"]


def test_batches_of_an_epoch_are_asked_for_once_when_it_begins(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run")
    asked, give = [], trainer.epoch_batches

    def batches(epoch: int) -> list:
        asked.append((epoch, trainer.state.update))
        return [give(epoch)[number] for number in range(2)]

    trainer.epoch_batches = batches
    trainer.train()
    assert asked == [(0, 0), (1, 2), (2, 4)]


class AsDocumented:
    """Another task's methods, those alone that `Task` documents as what training calls."""

    def __init__(self, task: TranslationTask) -> None:
        for name in "batches", "validation_batches", "split", "loss", "scores":
            setattr(self, name, getattr(task, name))


def test_the_documented_methods_are_all_that_training_calls(tmp_path: Path) -> None:
    whole, documented = (
        small_trainer(tmp_path / name, task=task)
        for name, task in {"whole": small_task(), "documented": AsDocumented(small_task())}.items()
    )
    assert documented.train().scores == whole.train().scores
    assert bits(documented) == bits(whole)


def test_the_log_has_further_sums_divided_by_the_tokens(tmp_path: Path) -> None:
    class Sums(NamedTuple):
        loss: float
        negative_log_likelihood: float
        tokens: int
        threes: float

    class Counting(TranslationTask):
        def loss(self, model, share, tape) -> Sums:
            sums = super().loss(model, share, tape)
            return Sums(*sums, 3.0 * sums.tokens)

        def scores(self, sums: Sums) -> dict[str, float]:
            return {"loss": sums.loss / sums.tokens, "threes": sums.threes / sums.tokens}

    small_trainer(tmp_path / "run", task=small_task(kind=Counting)).train()
    (averages,) = log(tmp_path / "run", "gradient_norm")
    assert averages["threes"] == pytest.approx(3)
    assert "tokens" not in averages
    assert all(record["validation"]["threes"] == pytest.approx(3) for record in log(tmp_path / "run", "validation"))
