"""Vectors as a task: sequences of vectors, and the vectors that a model is to make of them, by squared error."""

from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.mean_squared_error import squared_error, squared_error_backward
from toolkit.models.autoencoder import AutoEncoder
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.training.config import TrainingConfig
from toolkit.training.trainer import Evaluation

# Validation needs no gradients and takes fewer and larger batches.
_VALIDATION_TOKENS = 8192


class Vectors(NamedTuple):
    """Sequences, one after the other: row i of `inputs` is to become row i of `targets`."""

    inputs: Array  # (N, D)
    targets: Array  # (N, D)
    lengths: Array  # (B,) rows of each sequence


class VectorSums(NamedTuple):
    """Sums over rows, which stand for tokens."""

    loss: float
    negative_log_likelihood: float  # of a normal distribution around what was given back, up to constants: the loss
    tokens: int  # rows
    distance: float  # ‖y - target‖


class Share(NamedTuple):
    """Some sequences of a set: a batch, or what one worker gets of it."""

    name: str  # of the set: "train" or "valid"
    numbers: Array  # (B,) of its sequences, by length


class VectorTask:
    """Sequences to train and to validate on; the loss of a row is `factor` · ‖y - target‖².

    With factor = 1 / D the loss is the mean squared error.
    """

    def __init__(self, train: Vectors, valid: Vectors, factor: float):
        self.sets = {"train": train, "valid": valid}
        self.factor = factor

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> list[Share]:
        """One epoch in batches of about as many sequences each, as many in every epoch, drawn by seed and epoch."""
        order = np.random.default_rng([seed, epoch]).permutation(len(self.sets["train"].lengths))
        return self._cut("train", order, tokens_per_batch)

    def validation_batches(self, tokens_per_batch: int) -> list[Share]:
        """Batches that cover all validation sequences once, always the same."""
        return self.in_order("valid", tokens_per_batch)

    def in_order(self, name: str, tokens_per_batch: int) -> list[Share]:
        """Batches that cover a set once, always the same."""
        order = np.argsort(self.sets[name].lengths, kind="stable")
        return self._cut(name, order, max(tokens_per_batch, _VALIDATION_TOKENS))

    def _cut(self, name: str, order: Array, tokens_per_batch: int) -> list[Share]:
        lengths = self.sets[name].lengths
        count = min(-(-int(lengths.sum()) // tokens_per_batch), len(lengths))
        return [Share(name, part[np.argsort(lengths[part], kind="stable")]) for part in np.array_split(order, count)]

    def split(self, batch: Share, parts: int) -> list[Share]:
        """The shares of `parts` workers, dealt out by length; some may be empty."""
        return [Share(batch.name, batch.numbers[part::parts]) for part in range(parts)]

    def loss(self, model: AutoEncoder, share: Share, tape: Tape) -> VectorSums:
        """Sums over the rows of a share; adds their gradient where the tape keeps."""
        if len(share.numbers) == 0:
            return VectorSums(0.0, 0.0, 0, 0.0)
        inputs, targets, rows = self._rows(share)
        y = model.forward(inputs, rows, tape)
        error, saved = squared_error(y, targets, tape.empty)
        distance = float(np.sqrt(np.vecdot(saved, saved)).sum(dtype=np.float64))
        if tape.keeps:
            model.backward(squared_error_backward(self.factor, saved)[0], tape)
        return VectorSums(error * self.factor, error * self.factor, len(inputs), distance)

    def _rows(self, share: Share) -> tuple[Array, Array, Rows]:
        inputs, targets, lengths = self.sets[share.name]
        starts = np.cumsum(lengths) - lengths
        chosen = lengths[share.numbers]
        rows = Rows(chosen)
        places = np.repeat(starts[share.numbers] - rows.starts, chosen) + np.arange(rows.total)
        return inputs[places], targets[places], rows

    def scores(self, sums: VectorSums) -> dict[str, float]:
        """Means over rows."""
        return {"loss": sums.loss / sums.tokens, "distance": sums.distance / sums.tokens}

    def evaluated(self, model: AutoEncoder, name: str, tokens_per_batch: int) -> dict[str, float]:
        """Means over all rows of a set, in this process."""
        sums = [self.loss(model, share, Tape()) for share in self.in_order(name, tokens_per_batch)]
        return self.scores(VectorSums(*(sum(column) for column in zip(*sums, strict=True))))


def no_more_scores(_model: Model) -> Evaluation:
    """What a validation pass finds says it all."""
    return Evaluation({}, [])


def check_training(config: TrainingConfig) -> None:
    """Raises ConfigError for settings that squared error has no use for."""
    if config.best_by != "loss":
        raise ConfigError("vectors are compared by their squared error: leave out --training.best-by")
    if config.label_smoothing or config.subword_alpha:
        raise ConfigError("vectors are taken as they are: leave out --training.label-smoothing and subword-alpha")


def standardized(x: Array) -> Array:
    """Every row with mean 0 and variance 1, so that a row's mean, given as every entry, is off by 1 in mean square."""
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True))
