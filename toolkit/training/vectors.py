"""Vectors as a task: sequences of vectors, and the vectors that a model is to make of them, by squared error."""

from typing import NamedTuple

import numpy as np

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.losses import squared_error, squared_error_backward
from toolkit.models.autoencoder import AutoEncoder
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.training.config import TrainingConfig
from toolkit.training.task import Share, Task


class Vectors(NamedTuple):
    """Sequences, one after the other: row i of `inputs` is to become row i of `targets`."""

    inputs: Array  # (N, D)
    targets: Array  # (N, D)
    lengths: Array  # (B,) rows of each sequence

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> list[Array]:
        """Cut an epoch into batches of about as many sequences each, as many in every epoch."""
        return self._cut(rng.permutation(len(self.lengths)), tokens_per_batch)

    def in_order(self, tokens_per_batch: int) -> list[Array]:
        return self._cut(np.argsort(self.lengths, kind="stable"), tokens_per_batch)

    def split(self, numbers: Array, parts: int) -> list[Array]:
        return [numbers[part::parts] for part in range(parts)]

    shards = split

    def _cut(self, order: Array, tokens_per_batch: int) -> list[Array]:
        count = min(-(-int(self.lengths.sum()) // tokens_per_batch), len(self.lengths))
        return [part[np.argsort(self.lengths[part], kind="stable")] for part in np.array_split(order, count)]


class VectorSums(NamedTuple):
    """Sums over rows, which stand for tokens."""

    loss: float
    negative_log_likelihood: float  # of a normal distribution around what was given back, up to constants: the loss
    tokens: int  # rows
    distance: float  # ‖y - target‖


class VectorTask(Task):
    """Sequences to train and to validate on; the loss of a row is `factor` · ‖y - target‖².

    With factor = 1 / D the loss is the mean squared error.
    """

    def __init__(self, train: Vectors, valid: Vectors, factor: float):
        super().__init__(train, valid)
        self.factor = factor

    def sums(self, model: AutoEncoder, share: Share, tape: Tape) -> VectorSums:
        """Return sums over the rows of a share; add their gradient where the tape keeps."""
        inputs, targets, rows = self.batch(share)
        y = model.forward(inputs, rows, tape)
        error, saved = squared_error(y, targets, tape.empty)
        distance = float(np.sqrt(np.vecdot(saved, saved)).sum(dtype=np.float64))
        if tape.keeps:
            model.backward(squared_error_backward(self.factor, saved)[0], tape)
        return VectorSums(error * self.factor, error * self.factor, len(inputs), distance)

    def batch(self, share: Share) -> tuple[Array, Array, Rows]:
        """Return the inputs and targets of a share, (N, D) each, and their rows."""
        inputs, targets, lengths = self.sets[share.name]
        starts, chosen = np.cumsum(lengths) - lengths, lengths[share.numbers]
        rows = Rows(chosen)
        places = np.repeat(starts[share.numbers] - rows.starts, chosen) + np.arange(rows.total)
        return inputs[places], targets[places], rows

    def scores(self, sums: VectorSums) -> dict[str, float]:
        """Divide the sums by the number of rows."""
        return {"loss": sums.loss / sums.tokens, "distance": sums.distance / sums.tokens}


def check_training(config: TrainingConfig) -> None:
    """Raise ConfigError for settings that squared error has no use for."""
    if config.best_by != "loss":
        raise ConfigError("vectors are compared by their squared error: leave out --training.best-by")
    if config.label_smoothing or config.subword_alpha:
        raise ConfigError("vectors are taken as they are: leave out --training.label-smoothing and subword-alpha")


def standardized(x: Array) -> Array:
    """Give every row mean 0 and variance 1, so that its mean, given back as every entry, is off by 1 in mean square."""
    centred = x - x.mean(axis=1, keepdims=True)
    return centred / np.sqrt((centred * centred).mean(axis=1, keepdims=True))
