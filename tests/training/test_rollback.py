"""A run that diverges goes back once, and on with half the learning rate."""

from pathlib import Path

import numpy as np
import pytest

from tests.training.small import Fragile, after_update, bits, log, named, press_ctrl_c, small_task, small_trainer, steps
from toolkit.errors import DivergenceError
from toolkit.models.storage import load_model
from toolkit.training.trainer import Trainer

# Adam moves a parameter by about the learning rate each time. With a limit of 0.047 the sixth batch finds the
# parameters 5 · 0.01 from home, which is too far, and after going back 4 · 0.01 + 0.005, which is not.
SETTINGS = {"learning_rate": 0.01, "warmup": 0, "schedule": "constant", "weight_decay": 0.0, "eps": 1e-6}


def fragile(path: Path, limit: float, create: bool = True, **settings) -> Trainer:
    task = small_task(kind=Fragile)
    task.limit = limit
    trainer = small_trainer(path, task=task, create=create, **{**SETTINGS, **settings})
    trainer.model.initialize(np.random.default_rng(1))  # as training begins: seed 1
    task.home = trainer.model.vector.copy()
    return trainer


@pytest.mark.parametrize("workers", [1, 2])
def test_back_to_the_last_checkpoint_with_half_the_learning_rate(tmp_path: Path, workers: int, capsys) -> None:
    trainer = fragile(tmp_path / "run", 0.047, workers=workers)
    trainer._quiet = False
    state = trainer.train()
    (record,) = log(tmp_path / "run", "rollback")
    assert record["rollback"] == {"from": 5, "to": 4, "learning_rate_factor": 0.5}
    assert (state.update, state.rollbacks) == (6, 1)
    (figures,) = log(tmp_path / "run", "learning_rate")
    assert figures["learning_rate"] == 0.005
    assert "back to update 4, and on with half the learning rate" in capsys.readouterr().err
    assert named(tmp_path / "run")[0] == "step-000006"


def test_it_goes_on_exactly_as_half_the_learning_rate_does_from_there(tmp_path: Path) -> None:
    trainer = fragile(tmp_path / "run", 0.047)
    trainer.train()
    other = fragile(tmp_path / "other", float("inf"))
    schedule = other.schedule
    other.schedule = lambda step: schedule(step) * (0.5 if step > 4 else 1.0)
    other.train()
    assert bits(trainer) == bits(other)


def test_before_the_first_checkpoint_it_begins_again(tmp_path: Path, capsys) -> None:
    trainer = fragile(tmp_path / "run", 0.047, validate_every=6)
    trainer._quiet = False
    assert trainer.train().update == 6
    assert "back to the beginning" in capsys.readouterr().err
    half = fragile(tmp_path / "half", float("inf"), validate_every=6, learning_rate=0.005)
    half.train()
    assert bits(trainer) == bits(half)


def test_the_second_time_it_stops(tmp_path: Path) -> None:
    trainer = fragile(tmp_path / "run", 0.035)
    with pytest.raises(DivergenceError, match=r"again with half the learning rate; the last good checkpoint is"):
        trainer.train()
    assert len(log(tmp_path / "run", "rollback")) == len(log(tmp_path / "run", "diverged")) == 1
    for step in steps(tmp_path / "run"):
        load_model(tmp_path / "run" / step)


@pytest.mark.parametrize(("when", "stop"), [("before", 3), ("before", 5), ("after", 5)])
def test_resuming_equals_not_stopping(tmp_path: Path, when: str, stop: int) -> None:
    """Stopped before the divergence, between it and the checkpoint that it goes back to, and after that."""
    whole, parts = fragile(tmp_path / "whole", 0.047), fragile(tmp_path / "parts", 0.047)
    whole.train()
    update = parts.workers.update

    def update_and_stop(step: int, *rest: float) -> None:
        update(step, *rest)
        if step == stop and parts.state.rollbacks == (when == "after"):
            press_ctrl_c()

    parts.workers.update = update_and_stop
    assert parts.train().update == stop
    resumed = fragile(tmp_path / "parts", 0.047, create=False)
    resumed.train(resumed.run.resume())
    assert bits(resumed) == bits(whole)
    for key in ("rollback", "validation"):
        assert log(tmp_path / "parts", key) == log(tmp_path / "whole", key) != []
    assert named(tmp_path / "parts") == named(tmp_path / "whole")
    assert steps(tmp_path / "parts") == steps(tmp_path / "whole")


def test_where_it_goes_back_to_does_not_depend_on_where_somebody_stopped(tmp_path: Path) -> None:
    """A checkpoint of Ctrl-C is newer than the one that the run goes back to, and is removed."""
    whole, parts = (
        fragile(tmp_path / "whole", 0.047, validate_every=6),
        fragile(tmp_path / "parts", 0.047, validate_every=6),
    )
    whole.train()
    after_update(parts, 2, press_ctrl_c)
    parts.train()
    assert steps(tmp_path / "parts") == ["step-000002"]
    resumed = fragile(tmp_path / "parts", 0.047, create=False, validate_every=6)
    resumed.train(resumed.run.resume())
    assert bits(resumed) == bits(whole)
    assert steps(tmp_path / "parts") == ["step-000006"]
