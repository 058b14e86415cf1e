"""Train the auto-encoder of the founding documents 000 and 001: it is to give back the vectors that it reads.

    python recipes/autoencoder.py                          # a minute or two
    python recipes/autoencoder.py --model.norm pre         # another shape
    python recipes/autoencoder.py --text my.txt --valid-text other.txt

A sentence is read as vectors of mean 0 and variance 1, one fixed random vector for each of the tokens there are. The
model adds positions to them, mixes them by attention, and has to give them back without either. Whoever gives back the
mean of each vector has a mean squared error (MSE) of 1.
"""

import functools
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.commands.console import aligned, emit
from toolkit.commands.recipe import carry_out, opened, preparing, run_recipe, tell
from toolkit.data.embedded import CORPORA, make_embedded
from toolkit.data.lines import digest_of_files, read_lines, refuse_pipe
from toolkit.data.sentences import sentence_ids
from toolkit.errors import ConfigError, DataError
from toolkit.explain.logs import read_log
from toolkit.explain.parameters import Movement, movements
from toolkit.functional.arrays import Array
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.shelf import find_model
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.nn.tape import Tape
from toolkit.tokenization import load_tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer, no_more_scores
from toolkit.training.vectors import Vectors, VectorTask, check_training, standardized

DATA = CORPORA / "en_ne"
TOKENIZER = "en-ne"  # the shipped model whose tokenizer cuts the sentences

DOCUMENTED_MSE = 0.0043  # what 000 and 001 report after 500 epochs
DOCUMENTED_PARAMETERS = 100_096, 128  # theirs, and how many of them their public code trains

# 500 epochs of seven batches. Adam without weight decay and without clipping, as in the documents.
TRAINING = TrainingConfig(
    updates=3500,
    tokens_per_batch=2048,
    optimizer="adam",
    learning_rate=3e-3,
    warmup=100,
    weight_decay=0.0,
    eps=1e-8,
    clip=0.0,
    label_smoothing=0.0,
    validate_every=700,
    best_by="loss",
)

KEYS = [
    "a key's bias b adds q·b to all the scores of a query q, and softmax does not notice what is added to all of them:",
    "its gradient is 0. What the table shows is rounding: Adam divides a gradient by its size, and steps even by that.",
]


@dataclass(frozen=True)
class Recipe:
    """Train an auto-encoder, and say how well it gives back what it reads."""

    run: Path = Path("checkpoints/autoencoder")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    text: Path = DATA / "train.en"
    """Sentences to train on, one a line."""
    valid_text: Path = DATA / "valid.en"
    """Sentences that are held out."""
    sentences: int = 2000
    """So many of the training sentences, drawn at random."""
    quiet: bool = False
    """Print results only."""
    model: AutoEncoderConfig = field(default_factory=AutoEncoderConfig)
    training: TrainingConfig = field(default_factory=lambda: TRAINING)


def main(recipe: Recipe) -> None:
    check_training(recipe.training)
    if recipe.sentences < 1:
        raise ConfigError(f"sentences is {recipe.sentences}: it must be at least 1")
    if recipe.model.width < 2:
        raise ConfigError("a vector of one number has no variance: choose a --model.width of at least 2")
    with opened(recipe.run, settings_of(recipe), recipe.resume) as (run, saved):
        with preparing(run):
            task = prepare(recipe)
            build = functools.partial(AutoEncoder, recipe.model)
            trainer = Trainer(build, task, recipe.training, run, None, no_more_scores, recipe.quiet)
        parts = [f"{len(each.lengths):,} sentences of {len(each.inputs):,} tokens" for each in task.sets.values()]
        told = f"{' to train on, '.join(parts)} held out", f"{trainer.model.parameter_count:,} parameters"
        tell(recipe.quiet, *told)
        carry_out(trainer, saved, recipe.quiet)
        with threadpool_limits(1):
            finish(recipe, run, task)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Everything that decides the result, the contents of the files included."""
    own = {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet")}
    files = {name: own.pop(name) for name in ("text", "valid_text")}
    make_embedded(files.values(), recipe.quiet)
    for path in files.values():
        refuse_pipe(path)
    return own | {"data": {name: digest_of_files([path])[:16] for name, path in files.items()}}


def prepare(recipe: Recipe) -> VectorTask:
    """Sentences as vectors, which are the inputs and the targets."""
    tokenizer = load_tokenizer(find_model(TOKENIZER))
    table_seed, choice_seed = np.random.SeedSequence(recipe.training.seed).spawn(2)
    shape = tokenizer.vocab_size, recipe.model.width
    table = standardized(np.random.default_rng(table_seed).standard_normal(shape)).astype(np.float32)
    lines = read_lines(recipe.text)
    chosen = np.random.default_rng(choice_seed).permutation(len(lines))[: recipe.sentences]
    read = functools.partial(sentence_ids, tokenizer, ignore_case=True)  # as the tokenizer's own model reads
    train = vectors(table, read([lines[number] for number in chosen]), recipe.text)
    valid = vectors(table, read(read_lines(recipe.valid_text)), recipe.valid_text)
    return VectorTask(train, valid, 1 / recipe.model.width)


def vectors(table: Array, sentences: Iterable[list[int]], where: Path) -> Vectors:
    """The sentences that have tokens.  Raises DataError where there are none."""
    sentences = [ids for ids in sentences if ids]
    if not sentences:
        raise DataError(f"{where} has no sentence to read: give one a line")
    x = table[np.concatenate(sentences)]
    return Vectors(x, x, np.array([len(ids) for ids in sentences]))


def finish(recipe: Recipe, run: Run, task: VectorTask) -> None:
    """Score the best checkpoint on both sets, beside what needs no model, and say which parameters have moved."""
    directory = run.named("best")
    model = load_model(directory)
    tokens = recipe.training.tokens_per_batch
    scores = {name: task.evaluated(model, name, tokens) for name in task.sets}
    batches, update = len(task.batches(0, tokens, 0)), read_metrics(directory)["update"]
    found = {"training": scores["train"], "held_out": scores["valid"], "baselines": baselines(task)}
    found |= {"epochs": update / batches, "epochs_to_documented": epochs_to(run, batches)}
    groups = moved(recipe, task, model)
    save_metrics(directory, read_metrics(directory) | found | {"moved": moved_in_all(groups)})
    after = f"after {update / batches:.0f} epochs"
    told = {
        "held out, each token's mean": found["baselines"]["token_mean"],
        "held out, the mean training vector": found["baselines"]["mean_vector"],
        f"held out, {after}": scores["valid"],
        f"training, {after}": scores["train"],
    }
    rows = [["", "MSE", "‖y - x‖ per token"]]
    rows += [[what, f"{score['loss']:.6f}", f"{score['distance']:.4f}"] for what, score in told.items()]
    reached = found["epochs_to_documented"]
    when = f"below in epoch {reached}" if reached else "not reached"
    emit([*aligned(rows), f"a training MSE of {DOCUMENTED_MSE}, as the documents report: {when}", ""])
    emit(told_movements(groups))


def baselines(task: VectorTask) -> dict[str, dict[str, float]]:
    """On the held-out sentences, what needs no model: to give back each token's mean, or the mean training vector."""
    targets = task.sets["valid"].targets
    given = {
        "token_mean": targets.mean(axis=1, keepdims=True),
        "mean_vector": task.sets["train"].targets.mean(axis=0),
    }
    found = {}
    for name, y in given.items():
        squares = np.square(targets - y, dtype=np.float64).sum(axis=1)
        found[name] = {"loss": float(squares.mean() / targets.shape[1]), "distance": float(np.sqrt(squares).mean())}
    return found


def epochs_to(run: Run, batches: int) -> int | None:
    """The epoch in which the log first shows a training MSE of at most what the documents report."""
    update = read_log(run.path, run.path.name).first_update("training", "loss", DOCUMENTED_MSE)
    return None if update is None else -(-update // batches)


def moved(recipe: Recipe, task: VectorTask, model: AutoEncoder) -> list[Movement]:
    """Where training began, from the same seed, with the gradient there; and how far from it the model is."""
    first = AutoEncoder(recipe.model)
    first.allocate()
    first.initialize(np.random.default_rng(recipe.training.seed))
    views = first.views(np.zeros_like(first.vector))
    share = task.batches(0, recipe.training.tokens_per_batch, recipe.training.seed)[0]
    rows = task.loss(first, share, Tape(views)).tokens
    gradients = {name: views[parameter] / rows for name, parameter in first.parameters().items()}
    return movements(first.arrays(), model.arrays(), gradients)


def told_movements(groups: list[Movement]) -> list[str]:
    """A table, and why one group has no gradient."""
    rows = [["parameters", "number", "moved", "before", "moved by", "first gradient"]]
    for group in groups:
        sizes = (f"{size:.1e}" for size in (group.before, group.change, group.gradient))
        rows.append([group.name, f"{group.count:,}", f"{group.moved:,}", *sizes])
    found, (total, theirs) = moved_in_all(groups), DOCUMENTED_PARAMETERS
    told = f"{found['moved']:,} of the {found['with_gradient']:,} parameters that have a gradient have moved"
    lines = [f"{told} (the documents' public code trains {theirs} of its {total:,}):", *aligned(rows)]
    return lines + KEYS * (found["key_biases"] > 0)


def moved_in_all(groups: list[Movement]) -> dict[str, int]:
    """How many parameters can move, and have; key biases cannot."""
    able = [group for group in groups if not group.name.endswith("key.bias")]
    counts = {"with_gradient": sum(group.count for group in able), "moved": sum(group.moved for group in able)}
    return counts | {"key_biases": sum(group.count for group in groups if group not in able)}


if __name__ == "__main__":
    run_recipe(Recipe, main)
