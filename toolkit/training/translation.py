"""Translation as a task: pairs of sentences, teacher forcing, label smoothing towards tokens that occur."""

from collections.abc import Sequence
from itertools import chain

import numpy as np

from toolkit.data.batches import Example, lengths_of, target_ids
from toolkit.data.sentences import SubwordSampler
from toolkit.models.seq2seq import Seq2SeqBatch, translation_batch
from toolkit.tokenization.special import EOS
from toolkit.training.task import Bucketed, Share, Task, label_prior


class TranslationTask(Task):
    """Training and validation pairs, and the loss of any share of them.

    sampler: draws segmentations of the training pairs, other ones in every epoch; without one, each pair is what it
    is in `train`. repeats: (examples,) how often an epoch has each of them; see `epoch_batches`.
    """

    validation_tokens = 1

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
        occurs = np.zeros(vocab_size, bool)  # as a label: all but padding, markers and unused bytes
        for ids in chain([EOS], target_ids(train), [sampler.possible_targets()] if sampler else ()):
            occurs[ids] = True
        super().__init__(Bucketed(train, repeats), Bucketed(valid), smoothing, label_prior(occurs))
        self.examples, self.sampler = {"train": train, "valid": valid}, sampler

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> Sequence[Share]:
        """Return the batches of one epoch; with a sampler, each with the seed of its segmentations."""
        batches = super().batches(epoch, tokens_per_batch, seed)
        if self.sampler is None:
            return batches
        return [batch._replace(seed=(seed, epoch, number)) for number, batch in enumerate(batches)]

    def batch(self, share: Share) -> Seq2SeqBatch:
        """Return the pairs of a share as rows, by length; with a seed, each in a segmentation of its own."""
        examples = [self.examples[share.name][index] for index in share.numbers]
        if share.seed:
            sampled = self.sampler.sample(share.numbers, examples, share.seed)
            examples = sorted(sampled, key=lambda example: (len(example.target), len(example.source)))
        return translation_batch([example.source for example in examples], [example.target for example in examples])


def describe(examples: Sequence[Example]) -> str:
    """Count the pairs and their tokens, end marks included, for a sentence."""
    source, target = (int(lengths.sum()) + len(examples) for lengths in lengths_of(examples, np.arange(len(examples))))
    return f"{len(examples):,} pairs, {source:,} source and {target:,} target tokens"
