"""Train the transformer of the founding document 003: no norms, no biases, swish, and residuals around everything.

    python recipes/residual_swish.py                       # half a minute
    python recipes/residual_swish.py --model.layers 3      # another shape, of teacher and pupil

A teacher of the same shape with random weights answers random vectors, and the pupil, with other random weights, is to
answer alike. The loss of a vector is ½ ‖Y - Y_true‖², so that ∂L/∂Y = Y - Y_true, as in the document. AdamW has its ε
inside the root. Before training, every gradient of the document's list (of all
weights and of X) is compared with finite differences.
"""

import functools
import sys
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.commands.console import aligned, emit
from toolkit.commands.recipe import carry_out, opened, preparing, run_recipe, tell
from toolkit.errors import ConfigError
from toolkit.explain.logs import read_log
from toolkit.explain.parameters import checked_gradients
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.proof import Measurement
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer, no_more_scores
from toolkit.training.vectors import Vectors, VectorTask, check_training

GOAL = 20  # so many times is the held-out loss to fall

MODEL = AutoEncoderConfig(
    width=64, heads=1, feed_forward=256, layers=2, activation="silu", norm="none", bias=False, positions="none"
)
TRAINING = TrainingConfig(
    updates=1000,
    tokens_per_batch=1024,
    learning_rate=5e-3,
    warmup=50,
    weight_decay=0.01,
    eps=1e-8,
    eps_inside=True,
    clip=0.0,
    label_smoothing=0.0,
    validate_every=50,
    best_by="loss",
)


@dataclass(frozen=True)
class Recipe:
    """Train a transformer without norms and biases on the answers of a random one of its kind."""

    run: Path = Path("checkpoints/residual-swish")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    sequences: int = 4000
    """Random sequences to train on."""
    held_out: int = 200
    """Random sequences to validate on."""
    length: int = 16
    """Vectors of a sequence."""
    quiet: bool = False
    """Print results only."""
    model: AutoEncoderConfig = field(default_factory=lambda: MODEL)
    training: TrainingConfig = field(default_factory=lambda: TRAINING)


def main(recipe: Recipe) -> None:
    check(recipe)
    with opened(recipe.run, settings_of(recipe), recipe.resume) as (run, saved):
        with preparing(run), threadpool_limits(1):
            task = prepare(recipe)
            build = functools.partial(AutoEncoder, recipe.model)
            trainer = Trainer(build, task, recipe.training, run, None, no_more_scores, recipe.quiet)
            gradients = checked_gradients(recipe.model, np.random.default_rng(recipe.training.seed))
        tell(recipe.quiet, f"{trainer.model.parameter_count:,} parameters", *told_gradients(gradients), "")
        carry_out(trainer, saved, recipe.quiet)
        with threadpool_limits(1):
            finish(recipe, run, task)


def told_gradients(gradients: dict[str, Measurement]) -> list[str]:
    """A table of the document's list of gradients, each along a random direction, beside finite differences."""
    rows = [["gradient", "by hand", "by differences", "relative error", ""]]
    for name, measured in gradients.items():
        verdict = "right" if measured.is_right else "WRONG"
        figures = f"{measured.analytic:.6f}", f"{measured.numeric:.6f}", f"{measured.error:.0e}"
        rows.append([f"∂L/∂{symbol(name)}", *figures, verdict])
    return aligned(rows, (0, 4))


def symbol(name: str) -> str:
    """What the document calls a weight; its own name where the document has none like it."""
    *_, number, place = name.split(".", 3) if name.count(".") > 3 else ("", name)
    letter = _SYMBOLS.get(place)
    return f"{letter},{int(number) + 1}" if letter else name.upper() if name == "x" else name


_SYMBOLS = {
    "attention.layer.query.weight": "W_q",
    "attention.layer.key.weight": "W_k",
    "attention.layer.value.weight": "W_v",
    "attention.layer.output.weight": "W_o",
    "feed_forward.layer.up.weight": "W_1",
    "feed_forward.layer.down.weight": "W_2",
}


def check(recipe: Recipe) -> None:
    """Raises ConfigError for settings that do not fit, and MemoryError for vectors that no memory holds."""
    check_training(recipe.training)
    for name in ("sequences", "held_out", "length"):
        if getattr(recipe, name) < 1:
            raise ConfigError(f"{name} is {getattr(recipe, name)}: it must be at least 1")
    numbers = (recipe.sequences + recipe.held_out) * recipe.length * recipe.model.width
    if numbers > sys.maxsize // 8:
        raise MemoryError(f"{numbers} numbers are more than any memory holds")


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Everything that decides the result."""
    return {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet")}


def prepare(recipe: Recipe) -> VectorTask:
    """Random vectors with the teacher's answers."""
    seeds = np.random.SeedSequence(recipe.training.seed).spawn(3)
    teacher = AutoEncoder(recipe.model)
    teacher.allocate()
    teacher.initialize(np.random.default_rng(seeds[0]))
    sets = []
    for seed, count in zip(seeds[1:], (recipe.sequences, recipe.held_out), strict=True):
        rows = Rows(np.full(count, recipe.length))
        x = np.random.default_rng(seed).standard_normal((rows.total, recipe.model.width), dtype=np.float32)
        sets.append(Vectors(x, teacher.forward(x, rows, Tape()), rows.lengths))
    return VectorTask(*sets, factor=0.5)


def finish(recipe: Recipe, run: Run, task: VectorTask) -> None:
    """Score the pupil before and after on what is held out, and record that with the best checkpoint."""
    directory = run.named("best")
    pupil = AutoEncoder(recipe.model)
    pupil.allocate()
    pupil.initialize(np.random.default_rng(recipe.training.seed))
    tokens = recipe.training.tokens_per_batch
    before, after = (task.evaluated(model, "valid", tokens)["loss"] for model in (pupil, load_model(directory)))
    reached = read_log(run.path, run.path.name).first_update("validation", "loss", before / GOAL)
    found = {"held_out_before": before, "held_out_after": after, "fall": before / after, "update_of_goal": reached}
    save_metrics(directory, read_metrics(directory) | found)
    when = f"{GOAL}-fold by update {reached}" if reached else f"not {GOAL}-fold: train for more --training.updates"
    emit([f"held-out loss: {before:.4g} before, {after:.4g} after: {before / after:.1f}-fold ({when})"])


if __name__ == "__main__":
    run_recipe(Recipe, main)
