"""Task: what a model is trained on. It cuts its examples into batches, divides these, and knows their loss.

Beside it stands the evaluator, by which a model is judged on the way.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.data.batches import cut_batch, epoch_batches, split_batch
from toolkit.display import short_repr
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape

# Validation needs no gradients and little memory, and takes fewer and larger batches than training.
VALIDATION_TOKENS = 8192


class Share(NamedTuple):
    """Some examples of a set: a batch, or the part of it that one worker gets."""

    name: str  # of the set: "train" or "valid"
    numbers: Array  # (B,) of its examples
    seed: tuple[int, ...] = ()  # of what is drawn anew whenever the examples are read; empty where nothing is


class Bucketed:
    """Examples of similar length batched together; see `epoch_batches` for what an example must have.

    repeats: (examples,) how often an epoch has each of them. A subclass that is itself the sequence of its examples
    needs no `__init__`.
    """

    repeats: Array | None = None

    __repr__ = short_repr

    def __init__(self, examples: Sequence[Any], repeats: Array | None = None):
        self.examples, self.repeats = examples, repeats

    @property
    def _lengths(self) -> Sequence[Any]:
        return getattr(self, "examples", self)

    def batches(self, tokens_per_batch: int, rng: np.random.Generator) -> list[Array]:
        return epoch_batches(self._lengths, tokens_per_batch, rng, self.repeats)

    def in_order(self, tokens_per_batch: int) -> list[Array]:
        return epoch_batches(self._lengths, tokens_per_batch, np.random.default_rng(0))

    def split(self, numbers: Array, parts: int) -> list[Array]:
        return split_batch(numbers, self._lengths, parts)

    def shards(self, numbers: Array, parts: int) -> list[Array]:
        return cut_batch(numbers, self._lengths, parts)


class Task:
    """Examples to train and to validate on, and the loss of any share of them.

    A set has numbered examples: `batches(tokens_per_batch, rng)` and `in_order(tokens_per_batch)` return the numbers of
    each batch, drawn or always the same; `split(numbers, parts)` and `shards(numbers, parts)` divide a batch into parts
    of about equal work. `Bucketed` has them all. A subclass gives the two sets, and `batch`, where its model computes
    the loss of a batch by cross-entropy, or else `sums`. Workers call `loss`: shares are pickled, and the task where
    processes are spawned.

    smoothing, prior: label smoothing in training, and the distribution (V,) that labels are smoothed towards.
    """

    validation_tokens = VALIDATION_TOKENS  # the fewest in a batch of validation

    def __init__(self, train: Any, valid: Any, smoothing: float = 0.0, prior: Array | None = None):
        self.sets: dict[str, Any] = {"train": train, "valid": valid}
        self.smoothing, self.prior = smoothing, prior

    __repr__ = short_repr

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> Sequence[Share]:
        """Return the batches of one epoch, counted from 0; the same arguments give the same, as a resumed run needs."""
        batches = self.sets["train"].batches(tokens_per_batch, np.random.default_rng([seed, epoch]))
        return Lazy(len(batches), lambda index: Share("train", batches[index]))

    def validation_batches(self, tokens_per_batch: int) -> Sequence[Share]:
        """Return batches that cover the validation set once, always the same."""
        return self.in_order("valid", max(tokens_per_batch, self.validation_tokens))

    def in_order(self, name: str, tokens_per_batch: int) -> Sequence[Share]:
        """Return batches that cover a set once, always the same."""
        return [Share(name, numbers) for numbers in self.sets[name].in_order(tokens_per_batch)]

    def split(self, batch: Share, parts: int) -> list[Share]:
        """Divide a batch among `parts` workers, balanced by tokens; some shares may be empty."""
        return self._shares(batch, self.sets[batch.name].split(batch.numbers, parts))

    def shards(self, batch: Share, parts: int) -> list[Share]:
        """Divide a batch into a fixed number of parts, a power of two; some may be empty."""
        return self._shares(batch, self.sets[batch.name].shards(batch.numbers, parts))

    def _shares(self, batch: Share, dealt: Sequence[Array]) -> list[Share]:
        name, _, seed = batch
        return [Share(name, part, (*seed, number) if seed else ()) for number, part in enumerate(dealt)]

    def loss(self, model: Model, share: Share, tape: Tape) -> LossSums:
        """Return the loss sums of a share, zeros for an empty one; where the tape keeps, add its gradient.

        The sums may be of another type whose first three fields are those of `LossSums`. Gradients are sums as well:
        the trainer divides by the tokens of the whole update.
        """
        return self.sums(model, share, tape) if len(share.numbers) else LossSums(0.0, 0.0, 0)

    def sums(self, model: Model, share: Share, tape: Tape) -> LossSums:
        """Return the loss sums of a share that is not empty. Validation is not smoothed."""
        sums = model.loss(self.batch(share), tape, self.smoothing if share.name == "train" else 0.0, self.prior)
        if tape.keeps:
            model.backward(tape)
        return sums

    def batch(self, share: Share) -> Any:
        """Return the rows that the model reads for a share, with their labels."""
        raise NotImplementedError

    def scores(self, sums: LossSums) -> dict[str, float]:
        """Turn sums over the validation set into scores by name; "loss" is one of them, and is to be lowered.

        Here it is the loss of a token in nats, with its exponential.
        """
        loss = sums.negative_log_likelihood / sums.tokens
        return {"loss": loss, "perplexity": math.exp(min(loss, 700))}

    def evaluated(self, model: Model, name: str = "valid", tokens_per_batch: int = 0) -> dict[str, float]:
        """Score a model by a full pass over a set in this process."""
        memory, tokens = Pool(), max(tokens_per_batch, self.validation_tokens)
        shares = self.in_order(name, tokens)
        return self.scores(add_sums([self.loss(model, share, Tape(memory=memory)) for share in shares]))


class Evaluation(NamedTuple):
    """The result of an evaluation: figures (more is better, except the loss), and lines to show."""

    scores: dict[str, Any]
    samples: list[str]


class Evaluator:
    """Scores a model on the validation set; it may decode, of which training itself knows nothing.

    Its work lies in pieces, always the same ones, so that the scores do not depend on the number of workers, which
    divide them. It is pickled where processes are spawned. This one finds nothing beside the loss.
    """

    __repr__ = short_repr

    def pieces(self) -> Sequence[Any]:
        """Divide the work: the largest pieces first."""
        return []

    def answers(self, model: Model, pieces: Sequence[Any]) -> list[Any]:
        """Do some of the pieces, in a worker -> for each what `result` needs."""
        raise NotImplementedError

    def result(self, answers: Sequence[Any]) -> Evaluation:
        """Put the answers to all pieces together."""
        return Evaluation({}, [])


class Undivided(Evaluator):
    """Lets a function of the model do everything, in the first worker."""

    def __init__(self, evaluate: Callable[[Model], Evaluation]):
        self._evaluate = evaluate

    def pieces(self) -> Sequence[None]:
        return [None]

    def answers(self, model: Model, pieces: Sequence[None]) -> list[Evaluation]:
        return [self._evaluate(model) for _ in pieces]

    def result(self, answers: Sequence[Evaluation]) -> Evaluation:
        return answers[0]


class Lazy(Sequence):
    """A sequence of `count` items, each made by `make(index)` whenever it is asked for."""

    def __init__(self, count: int, make: Callable[[int], Any]):
        self._count, self._make = count, make

    def __len__(self) -> int:
        return self._count

    def __getitem__(self, index: int) -> Any:
        if not 0 <= index < self._count:
            raise IndexError(index)
        return self._make(index)


def add_sums(sums: Sequence[LossSums]) -> LossSums:
    """Add the sums of several shares, of whatever type the task gives: the fields of `LossSums` come first."""
    counted = [each for each in sums if each.tokens]  # an empty share gives plain zeros
    if not counted:
        return LossSums(0.0, 0.0, 0)
    return type(counted[0])(*(sum(column) for column in zip(*counted, strict=True)))


def label_prior(occurs: Array) -> Array:
    """Give equal shares to all tokens that may occur as labels, none to the others.  Shapes: (V,) bool -> (V,)."""
    return (occurs / occurs.sum()).astype(np.float32)
