"""Subword regularisation: the sentences of a batch, cut into other pieces every time they are read."""

from collections.abc import Iterable, Sequence

import numpy as np

from toolkit.data.batches import Example
from toolkit.data.sentences import spaced
from toolkit.errors import ConfigError
from toolkit.tokenization import Tokenizer


class SubwordSampler:
    """Draws segmentations of training pairs (Kudo 2018; for BPE, Provilkov et al. 2020).

    tokenizer, alpha: see `Tokenizer.encode_batch`. texts: the pairs (source, target) behind the examples, in the same
    order; any sequence, so that they may stay on disk. max_length: the most tokens that a side may have, its end mark
    included. ignore_case: sources are read in lower case. Can be pickled if `texts` can.

    Raises ConfigError for an alpha that is not above 0.
    """

    def __init__(
        self,
        tokenizer: Tokenizer,
        texts: Sequence[tuple[str, str]],
        alpha: float,
        max_length: int,
        ignore_case: bool = False,
    ):
        if not alpha > 0:
            raise ConfigError(f"alpha is {alpha}: sampling segmentations needs a number above 0")
        self.tokenizer, self.texts, self.alpha, self.max_length = tokenizer, texts, alpha, max_length
        self.ignore_case = ignore_case

    def sample(self, indices: Iterable[int], best: Sequence[Example], seed: Sequence[int]) -> list[Example]:
        """New segmentations of the pairs with these indices, whose best segmentations are `best`, in the same order.

        A side whose sample is longer than `max_length` is the best one instead. The same seed gives the same ids.
        """
        pairs = [self.texts[index] for index in indices]
        texts = [spaced(source, self.ignore_case) for source, _ in pairs] + [spaced(target) for _, target in pairs]
        ids = self.tokenizer.encode_batch(texts, self.alpha, seed)
        sources, targets = ids[: len(pairs)], ids[len(pairs) :]
        return [
            Example(self._bounded(source, example.source), self._bounded(target, example.target))
            for source, target, example in zip(sources, targets, best, strict=True)
        ]

    def _bounded(self, ids: list[int], best: np.ndarray) -> np.ndarray:
        return np.array(ids, dtype=np.int32) if len(ids) < self.max_length else best

    def possible_targets(self) -> np.ndarray:
        """Ids that sampled targets may have beside those of the best segmentations, sorted, (P,)."""
        return self.tokenizer.possible_ids(spaced(target) for _, target in self.texts)
