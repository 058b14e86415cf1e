"""Translation as a task: pairs of sentences, teacher forcing, label smoothing towards tokens that occur."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.data.batches import Example, epoch_batches, lengths_of, split_batch, target_ids
from toolkit.data.collate import translation_batch
from toolkit.data.subwords import SubwordSampler
from toolkit.functional.output_loss import LossSums
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import EOS
from toolkit.training.progress import loss_scores


class Share(NamedTuple):
    """Some pairs of a set: a batch, or what one worker gets of it."""

    name: str  # of the set: "train" or "valid"
    indices: np.ndarray  # into it, (B,)
    seed: tuple[int, ...] = ()  # of sampled segmentations; without one they are the best


class TranslationTask:
    """Training and validation pairs, and the loss of any share of them.

    sampler: draws segmentations of the training pairs, other ones in every epoch; without one, each pair is what it
    is in `train`. repeats: (examples,) how often an epoch has each of them; see `epoch_batches`.
    """

    def __init__(
        self,
        train: Sequence[Example],
        valid: Sequence[Example],
        vocab_size: int,
        smoothing: float,
        *,
        sampler: SubwordSampler | None = None,
        repeats: np.ndarray | None = None,
    ):
        self.examples = {"train": train, "valid": valid}
        self.smoothing, self.sampler, self.repeats = smoothing, sampler, repeats
        self.prior = _label_prior(train, sampler, vocab_size)

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> list[Share]:
        """The batches of one epoch: the same for the same seed, so that a resumed run sees them again."""
        generator = np.random.default_rng([seed, epoch])
        batches = epoch_batches(self.examples["train"], tokens_per_batch, generator, self.repeats)
        sampled = self.sampler is not None
        return [
            Share("train", indices, (seed, epoch, number) if sampled else ()) for number, indices in enumerate(batches)
        ]

    def validation_batches(self, tokens_per_batch: int) -> list[Share]:
        """Batches that cover all validation pairs once, always the same."""
        batches = epoch_batches(self.examples["valid"], tokens_per_batch, np.random.default_rng(0))
        return [Share("valid", indices) for indices in batches]

    def split(self, batch: Share, parts: int) -> list[Share]:
        """The shares of `parts` workers, balanced by tokens; some may be empty."""
        name, indices, seed = Share(*batch)
        dealt = split_batch(indices, self.examples[name], parts)
        return [Share(name, part, (*seed, number) if seed else ()) for number, part in enumerate(dealt)]

    def loss(self, model: Seq2Seq, share: Share, tape: Tape) -> LossSums:
        """Loss sums of a share; adds its gradient where the tape keeps. Validation is not smoothed."""
        share = Share(*share)
        if len(share.indices) == 0:
            return LossSums(0.0, 0.0, 0)
        examples = self._examples_of(share)
        batch = translation_batch([example.source for example in examples], [example.target for example in examples])
        sums = model.loss(batch, tape, self.smoothing if share.name == "train" else 0.0, self.prior)
        if tape.keeps:
            model.backward(tape)
        return sums

    def scores(self, sums: LossSums) -> dict[str, float]:
        """What a full pass over the validation pairs says of a model."""
        return loss_scores(sums)

    def _examples_of(self, share: Share) -> list[Example]:
        """The pairs of a share, by length; with a seed, each in a segmentation of its own."""
        examples = [self.examples[share.name][index] for index in share.indices]
        if not share.seed or self.sampler is None:
            return examples
        sampled = self.sampler.sample(share.indices, examples, share.seed)
        return sorted(sampled, key=lambda example: (len(example.target), len(example.source)))


def _label_prior(examples: Sequence[Example], sampler: SubwordSampler | None, vocab_size: int) -> np.ndarray:
    """Equal shares for all tokens that may occur as labels, none for the others: padding, markers, unused bytes."""
    occurs = np.zeros(vocab_size, bool)
    occurs[EOS] = True
    for ids in target_ids(examples):
        occurs[ids] = True
    if sampler is not None:
        occurs[sampler.possible_targets()] = True
    return (occurs / occurs.sum()).astype(np.float32)


def describe(examples: Sequence[Example]) -> str:
    """How much there is to learn from, end marks counted."""
    source, target = (int(lengths.sum()) + len(examples) for lengths in lengths_of(examples, np.arange(len(examples))))
    return f"{len(examples):,} pairs, {source:,} source and {target:,} target tokens"
