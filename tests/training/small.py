"""A training run small enough to repeat: thirty random pairs over thirty tokens."""

import contextlib
import functools
import json
import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.checks import random_pairs, small_config
from toolkit.data.batches import Example
from toolkit.errors import DivergenceError
from toolkit.functional.output_loss import LossSums
from toolkit.models.seq2seq import Seq2Seq
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.task import Evaluation, Undivided
from toolkit.training.trainer import Trainer
from toolkit.training.translation import TranslationTask


class NoTokenizer:
    """All that a run asks of a tokenizer."""

    def save(self, directory: Path) -> None:
        (directory / "tokenizer.model").write_bytes(b"none")


def build_small(**settings: Any) -> Callable[[], Seq2Seq]:
    return functools.partial(Seq2Seq, small_config(**settings))


def small_task(smoothing: float = 0.1, kind: type = TranslationTask) -> TranslationTask:
    pairs = [Example(*pair) for pair in random_pairs(np.random.default_rng(0), 36)]
    return kind(pairs[:30], pairs[30:], 30, smoothing)


def nothing_to_decode(_model: Seq2Seq) -> Evaluation:
    return Evaluation({"chrf": 1.0}, [])


def small_trainer(
    path: Path,
    *,
    dropout: float = 0.0,
    task: TranslationTask | None = None,
    evaluate: Callable[[Seq2Seq], Evaluation] = nothing_to_decode,
    create: bool = True,
    **settings: Any,
) -> Trainer:
    """A trainer of six updates, two batches to an epoch or so."""
    given = {"updates": 6, "tokens_per_batch": 64, "warmup": 2, "validate_every": 2, "best_by": "loss", "workers": 1}
    config = TrainingConfig(**{**given, **settings})
    schedule = {name: getattr(config, name) for name in ("updates", "schedule", "warmup", "patience")}
    kept = {"workers": config.workers, "learning_rate": config.learning_rate, "training": schedule}
    run = Run(path, kept, "how to train it")
    if create:
        run.create()
    rates = ("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout")
    build = build_small(**dict.fromkeys(rates, dropout))
    return Trainer(build, task or small_task(), config, run, NoTokenizer(), Undivided(evaluate), quiet=True)


def after_update(trainer: Trainer, number: int, action: Callable[[], Any]) -> None:
    """Do something as soon as the parameters have been updated that many times."""
    update = trainer.workers.update

    def update_and_act(step: int, *rest: float) -> None:
        update(step, *rest)
        if step == number:
            action()

    trainer.workers.update = update_and_act


def bits(trainer: Trainer) -> list[bytes]:
    """All that decides how training goes on."""
    shared = trainer.workers.shared
    vectors = [shared.parameters, *shared.moments, *([] if shared.average is None else [shared.average])]
    return [vector.tobytes() for vector in vectors]


def steps(run: Path) -> list[str]:
    return sorted(path.name for path in run.glob("step-*"))


def named(run: Path) -> tuple[str, str]:
    return tuple((run / name).read_text().strip() for name in ("last", "best"))


def log(run: Path, key: str) -> list[dict]:
    records = [json.loads(line) for line in (run / "log.jsonl").read_text().splitlines()]
    return [record for record in records if key in record]


def timeless_log(run: Path) -> list[dict]:
    """All lines of a log, without what depends on how fast the machine was."""
    times = ("seconds", "tokens_per_second")
    return [{name: value for name, value in record.items() if name not in times} for record in log(run, "update")]


def press_ctrl_c() -> None:
    signal.raise_signal(signal.SIGINT)


class NotANumber(TranslationTask):
    """Diverges in the third batch that it is trained on, and in all that follow."""

    calls = 0

    def loss(self, model, share, tape) -> LossSums:
        sums = super().loss(model, share, tape)
        self.calls += tape.keeps
        return sums._replace(loss=float("nan")) if self.calls >= 3 and tape.keeps else sums


class Fragile(TranslationTask):
    """Its loss is no longer a number where the parameters have moved far from their initial values."""

    limit = float("inf")
    home: np.ndarray | None = None

    def loss(self, model, share, tape) -> LossSums:
        if self.home is None:
            self.home = model.vector.copy()
        sums = super().loss(model, share, tape)
        far = np.abs(model.vector - self.home).max() > self.limit
        return sums._replace(loss=float("nan")) if far and tape.keeps else sums


class Deadly(TranslationTask):
    """Fails in every process but the one that made it."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self.home = os.getpid()
        self.fail = lambda: os._exit(7)

    def loss(self, model, share, tape) -> LossSums:
        if os.getpid() != self.home:
            self.fail()
        return super().loss(model, share, tape)


def trainer_with_settings(path: Path, **settings) -> Trainer:
    """A trainer whose run records its settings as the recipe does."""
    trainer = small_trainer(path, create=False, **settings)
    own = {"updates": 6, "patience": 0, "seed": 1, **settings}
    trainer.run = Run(path, {"training": {name: value for name, value in own.items() if name != "task"}})
    trainer.run.create()
    return trainer


def make_runs(home: Path) -> Path:
    """Runs that have finished, were stopped by Ctrl-C, ran out of patience, diverged, and have not begun."""
    for seed in (1, 2):
        trainer_with_settings(home / f"seed{seed}", seed=seed).train()
    stopped = trainer_with_settings(home / "deeper" / "stopped", learning_rate=0.5)
    after_update(stopped, 3, press_ctrl_c)
    stopped.train()
    trainer_with_settings(home / "patient", patience=1, validate_every=1, best_by="chrf").train()
    with contextlib.suppress(DivergenceError):
        trainer_with_settings(home / "diverged", task=small_task(kind=NotANumber)).train()
    trainer_with_settings(home / "new")
    return home
