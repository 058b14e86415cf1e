"""The recipe of the founding documents 000 and 001: an auto-encoder is to give back the vectors that it reads.

A sentence is read as vectors of mean 0 and variance 1, one fixed random vector for each of the tokens there are. The
model adds positions to them, mixes them by attention, and has to give them back without either. Whoever gives back the
mean of each vector has a mean squared error (MSE) of 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from toolkit.data.embedded import CORPORA
from toolkit.data.lines import read_lines
from toolkit.data.sentences import sentence_ids
from toolkit.display import aligned, short_repr
from toolkit.errors import DataError
from toolkit.explain.parameters import Movement, moved_in_all, movement_rows, movements
from toolkit.functional.arrays import Array
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.storage import find_model
from toolkit.nn.tape import Tape
from toolkit.recipes.recipe import BY_LOSS, Recipe, refuse
from toolkit.tokenization import load_tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.logs import read_log
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer
from toolkit.training.vectors import Vectors, VectorTask, check_training, standardized

DATA = CORPORA / "en_ne"
TOKENIZER = "en-ne-small"  # the shipped model whose tokenizer cuts the sentences

DOCUMENTED_MSE = 0.0043  # what 000 and 001 report after 500 epochs
DOCUMENTED_PARAMETERS = 100_096, 128  # theirs, and how many of them their public code trains

# 500 epochs of seven batches. Adam without weight decay and without clipping, as in the documents.
ADAM = replace(BY_LOSS, optimizer="adam", weight_decay=0.0, clip=0.0)
TRAINING = replace(ADAM, updates=3500, tokens_per_batch=2048, learning_rate=3e-3, validate_every=700)

KEYS = [
    "a key's bias b adds q·b to all the scores of a query q, and softmax does not notice what is added to all of them:",
    "its gradient is 0. What the table shows is rounding: Adam divides a gradient by its size, and steps even by that.",
]


@dataclass(frozen=True)
class Settings(Recipe):
    """Train an auto-encoder, and say how well it gives back what it reads."""

    examples = (
        "",
        "--model.norm-position pre",
        "--text my.txt --valid-text other.txt",
    )

    run: Path = Path("checkpoints/autoencoder")
    text: Path = DATA / "train.en"
    """Sentences to train on, one a line."""
    valid_text: Path = DATA / "valid.en"
    """Sentences that are held out."""
    sentences: int = 2000
    """Number of training sentences that are used, drawn at random."""
    model: AutoEncoderConfig = field(default_factory=AutoEncoderConfig)
    training: TrainingConfig = field(default_factory=lambda: TRAINING)

    __repr__ = short_repr

    def check(self) -> None:
        super().check()
        check_training(self.training)
        flat = "a vector of one number has no variance: choose a --model.d-model of at least 2"
        few = f"sentences is {self.sentences}: it must be at least 1"
        refuse((self.sentences < 1, few), (self.model.d_model < 2, flat))


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from sentences to a model that gives their vectors back."""
    files = {"text": recipe.text, "valid_text": recipe.valid_text}
    with recipe.opened(recipe.settings(recipe.digests(files), files), command) as (run, saved):
        task, build = prepare(recipe), partial(AutoEncoder, recipe.model)
        trainer = Trainer(build, task, recipe.training, run, None, quiet=recipe.quiet)
        parts = [f"{len(each.lengths):,} sentences of {len(each.inputs):,} tokens" for each in task.sets.values()]
        recipe.fit(trainer, saved, f"{' to train on, '.join(parts)} held out")
        recipe.finish(run, None, partial(score, recipe, run, task))
    return run


def prepare(recipe: Settings) -> VectorTask:
    """Read sentences as vectors, which are the inputs and the targets."""
    tokenizer = load_tokenizer(find_model(TOKENIZER))
    table_seed, choice_seed = np.random.SeedSequence(recipe.training.seed).spawn(2)
    shape = tokenizer.vocab_size, recipe.model.d_model
    table = standardized(np.random.default_rng(table_seed).standard_normal(shape)).astype(np.float32)
    lines = read_lines(recipe.text)
    chosen = np.random.default_rng(choice_seed).permutation(len(lines))[: recipe.sentences]
    read = partial(sentence_ids, tokenizer, ignore_case=True)  # as the tokenizer's own model reads
    train = vectors(table, read([lines[number] for number in chosen]), recipe.text)
    valid = vectors(table, read(read_lines(recipe.valid_text)), recipe.valid_text)
    return VectorTask(train, valid, 1 / recipe.model.d_model)


def vectors(table: Array, sentences: Iterable[list[int]], where: Path) -> Vectors:
    """Look up the tokens of the sentences that have any.  Raises DataError where there are none."""
    sentences = [ids for ids in sentences if ids]
    if not sentences:
        raise DataError(f"{where} has no sentence to read: give one a line")
    x = table[np.concatenate(sentences)]
    return Vectors(x, x, np.array([len(ids) for ids in sentences]))


def score(
    recipe: Settings, run: Run, task: VectorTask, model: AutoEncoder, metrics: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Score a model on both sets, beside what needs no model, and say which parameters have moved."""
    tokens = recipe.training.tokens_per_batch
    scores = {name: task.evaluated(model, name, tokens) for name in task.sets}
    batches, update = len(task.batches(0, tokens, 0)), metrics["update"]
    found = {"training": scores["train"], "held_out": scores["valid"], "baselines": baselines(task)}
    reached = read_log(run.path, run.path.name).first_update("training", "loss", DOCUMENTED_MSE)
    reached = None if reached is None else -(-reached // batches)  # the epoch of this update
    found |= {"epochs": update / batches, "epochs_to_documented": reached}
    groups, after = moved(recipe, task, model), f"after {update / batches:.0f} epochs"
    told = {
        "held out, each token's mean": found["baselines"]["token_mean"],
        "held out, the mean training vector": found["baselines"]["mean_vector"],
        f"held out, {after}": scores["valid"],
        f"training, {after}": scores["train"],
    }
    rows = [["", "MSE", "‖y - x‖ per token"]]
    rows += [[what, f"{score['loss']:.6f}", f"{score['distance']:.4f}"] for what, score in told.items()]
    when, counts = f"below in epoch {reached}" if reached else "not reached", moved_in_all(groups)
    lines = [*aligned(rows), f"a training MSE of {DOCUMENTED_MSE}, as the documents report: {when}", ""]
    told = f"{counts['moved']:,} of the {counts['with_gradient']:,} parameters that have a gradient have moved"
    told += f" (the documents' public code trains {DOCUMENTED_PARAMETERS[1]} of its {DOCUMENTED_PARAMETERS[0]:,}):"
    lines += [told, *aligned(movement_rows(groups)), *(KEYS if counts["key_biases"] else [])]
    return found | {"moved": counts}, lines


def baselines(task: VectorTask) -> dict[str, dict[str, float]]:
    """Score what needs no model on the held-out sentences: each token's mean, and the mean training vector."""
    targets, mean = task.sets["valid"].targets, task.sets["train"].targets.mean(axis=0)
    found = {}
    for name, y in ("token_mean", targets.mean(axis=1, keepdims=True)), ("mean_vector", mean):
        squares = np.square(targets - y, dtype=np.float64).sum(axis=1)
        found[name] = {"loss": float(squares.mean() / targets.shape[1]), "distance": float(np.sqrt(squares).mean())}
    return found


def moved(recipe: Settings, task: VectorTask, model: AutoEncoder) -> list[Movement]:
    """Begin again from the same seed, and compare: the gradient there, and how far from it the model is."""
    first = AutoEncoder(recipe.model)
    first.allocate()
    first.initialize(np.random.default_rng(recipe.training.seed))
    views = first.views(np.zeros_like(first.vector))
    share = task.batches(0, recipe.training.tokens_per_batch, recipe.training.seed)[0]
    rows = task.loss(first, share, Tape(views)).tokens
    gradients = {name: views[parameter] / rows for name, parameter in first.parameters().items()}
    return movements(first.arrays(), model.arrays(), gradients)
