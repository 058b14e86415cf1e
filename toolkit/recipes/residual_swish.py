"""The recipe of the founding document 003: a transformer without norms and biases, swish, residuals around everything.

A teacher of the same shape with random weights answers random vectors, and the pupil, with other random weights, is to
answer alike. The loss of a vector is ½ ‖Y - Y_true‖², so that ∂L/∂Y = Y - Y_true, as in the document. AdamW has its ε
inside the root. Before training, every gradient of the document's list is compared with finite differences.
"""

import sys
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.display import aligned, short_repr
from toolkit.explain.parameters import checked_gradients, gradient_rows
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.recipes.recipe import BY_LOSS, Recipe, refuse
from toolkit.training.config import TrainingConfig
from toolkit.training.logs import read_log
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer
from toolkit.training.vectors import Vectors, VectorTask, check_training

GOAL = 20  # so many times is the held-out loss to fall

MODEL = AutoEncoderConfig(
    d_model=64, num_heads=1, d_ff=256, layers=2, activation="silu", norm_position="none", bias=False, positions="none"
)
ADAMW = replace(BY_LOSS, eps_inside=True, clip=0.0)  # the document's
TRAINING = replace(ADAMW, updates=1000, tokens_per_batch=1024, learning_rate=5e-3, warmup=50, validate_every=50)


@dataclass(frozen=True)
class Settings(Recipe):
    """Train a transformer without norms and biases on the answers of a random one of its kind."""

    examples = (
        "",
        "--model.layers 3",
    )

    run: Path = Path("checkpoints/residual-swish")
    sequences: int = 4000
    """Random sequences to train on."""
    held_out: int = 200
    """Random sequences to validate on."""
    length: int = 16
    """Vectors of a sequence."""
    model: AutoEncoderConfig = field(default_factory=lambda: MODEL)
    training: TrainingConfig = field(default_factory=lambda: TRAINING)

    __repr__ = short_repr

    def check(self) -> None:
        """Raise MemoryError too, for vectors that no memory holds."""
        super().check()
        check_training(self.training)
        for name in ("sequences", "held_out", "length"):
            refuse((getattr(self, name) < 1, f"{name} is {getattr(self, name)}: it must be at least 1"))
        numbers = (self.sequences + self.held_out) * self.length * self.model.d_model
        if numbers > sys.maxsize // 8:
            raise MemoryError(f"{numbers} numbers are more than any memory holds")


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from a teacher to a pupil that answers alike."""
    with recipe.opened(recipe.settings({}), command) as (run, saved):
        with threadpool_limits(1):
            task = prepare(recipe)
            build = partial(AutoEncoder, recipe.model)
            trainer = Trainer(build, task, recipe.training, run, None, quiet=recipe.quiet)
            gradients = checked_gradients(recipe.model, np.random.default_rng(recipe.training.seed))
        recipe.fit(trainer, saved, *aligned(gradient_rows(gradients), (0, 4)), "")
        recipe.finish(run, None, lambda model, _: score(recipe, run, task, model))
    return run


def prepare(recipe: Settings) -> VectorTask:
    """Draw random vectors, and let the teacher answer them."""
    seeds = np.random.SeedSequence(recipe.training.seed).spawn(3)
    teacher = AutoEncoder(recipe.model)
    teacher.allocate()
    teacher.initialize(np.random.default_rng(seeds[0]))
    sets = []
    for seed, count in zip(seeds[1:], (recipe.sequences, recipe.held_out), strict=True):
        rows = Rows(np.full(count, recipe.length))
        x = np.random.default_rng(seed).standard_normal((rows.total, recipe.model.d_model), dtype=np.float32)
        sets.append(Vectors(x, teacher.forward(x, rows, Tape()), rows.lengths))
    return VectorTask(*sets, factor=0.5)


def score(recipe: Settings, run: Run, task: VectorTask, model: AutoEncoder) -> tuple[dict[str, Any], list[str]]:
    """Score the pupil before and after on what is held out."""
    pupil = AutoEncoder(recipe.model)
    pupil.allocate()
    pupil.initialize(np.random.default_rng(recipe.training.seed))
    tokens = recipe.training.tokens_per_batch
    before, after = (task.evaluated(each, "valid", tokens)["loss"] for each in (pupil, model))
    reached = read_log(run.path, run.path.name).first_update("validation", "loss", before / GOAL)
    found = {"held_out_before": before, "held_out_after": after, "fall": before / after, "update_of_goal": reached}
    when = f"{GOAL}-fold by update {reached}" if reached else f"not {GOAL}-fold: train for more --training.updates"
    return found, [f"held-out loss: {before:.4g} before, {after:.4g} after: {before / after:.1f}-fold ({when})"]
