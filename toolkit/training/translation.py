"""Translation as a task: pairs of sentences, teacher forcing, label smoothing towards tokens that occur."""

from collections.abc import Sequence

import numpy as np

from toolkit.data.batches import Example, epoch_batches, split_batch
from toolkit.data.collate import translation_batch
from toolkit.functional.output_loss import LossSums
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import EOS

Share = tuple[str, np.ndarray]  # which set of examples, and indices into it


class TranslationTask:
    """Training and validation pairs, and the loss of any share of them."""

    def __init__(self, train: Sequence[Example], valid: Sequence[Example], vocab_size: int, smoothing: float):
        self.examples = {"train": train, "valid": valid}
        self.smoothing = smoothing
        self.prior = _label_prior(train, vocab_size)

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> list[Share]:
        """The batches of one epoch: the same for the same seed, so that a resumed run sees them again."""
        generator = np.random.default_rng([seed, epoch])
        return [("train", indices) for indices in epoch_batches(self.examples["train"], tokens_per_batch, generator)]

    def validation_batches(self, tokens_per_batch: int) -> list[Share]:
        """Batches that cover all validation pairs once, always the same."""
        return [("valid", i) for i in epoch_batches(self.examples["valid"], tokens_per_batch, np.random.default_rng(0))]

    def split(self, batch: Share, parts: int) -> list[Share]:
        """The shares of `parts` workers, balanced by tokens; some may be empty."""
        name, indices = batch
        return [(name, part) for part in split_batch(indices, self.examples[name], parts)]

    def loss(self, model: Seq2Seq, share: Share, tape: Tape) -> LossSums:
        """Loss sums of a share; adds its gradient where the tape keeps. Validation is not smoothed."""
        name, indices = share
        if len(indices) == 0:
            return LossSums(0.0, 0.0, 0)
        examples = [self.examples[name][index] for index in indices]
        batch = translation_batch([example.source for example in examples], [example.target for example in examples])
        sums = model.loss(batch, tape, self.smoothing if name == "train" else 0.0, self.prior)
        if tape.keeps:
            model.backward(tape)
        return sums


def _label_prior(examples: Sequence[Example], vocab_size: int) -> np.ndarray:
    """Equal shares for all tokens that occur as labels, none for the others: padding, markers, unused bytes."""
    occurs = np.zeros(vocab_size, bool)
    occurs[EOS] = True
    for example in examples:
        occurs[example.target] = True
    return (occurs / occurs.sum()).astype(np.float32)


def describe(examples: Sequence[Example]) -> str:
    """How much there is to learn from, end marks counted."""
    sources = sum(len(example.source) + 1 for example in examples)
    targets = sum(len(example.target) + 1 for example in examples)
    return f"{len(examples):,} pairs, {sources:,} source and {targets:,} target tokens"
