"""Sentences as a translator reads and writes them, and subword regularisation."""

import re
from collections.abc import Iterable, Sequence

import numpy as np

from toolkit.data.batches import Example
from toolkit.errors import ConfigError
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.normal_form import normal_form

_SPACE = re.compile(r"[ \t\r\n]+")


def tidy(text: str) -> str:
    """Tidy a text: normal form C, without white space at the ends, and with one space where there are several."""
    return _SPACE.sub(" ", normal_form(text)).strip()


def spaced(text: str, ignore_case: bool = False) -> str:
    """Tidy a sentence and put a space in front: a word is then the same token wherever in the sentence it stands.

    A blank text stays empty. `ignore_case` puts it in lower case, for sources in a small corpus: "The", "the" and
    "THE" are then one word to learn instead of three.
    """
    text = tidy(text)
    return f" {text.lower() if ignore_case else text}" if text else ""


def sentence_ids(
    tokenizer: Tokenizer, texts: Iterable[str], ignore_case: bool = False, language: int | None = None
) -> list[list[int]]:
    """Encode every sentence; a blank one has no ids.

    language: the token of their language, which all begin with (see `toolkit.tokenization.languages`).
    """
    found = tokenizer.encode_batch([spaced(text, ignore_case) for text in texts])
    return found if language is None else [[language, *ids] if ids else ids for ids in found]


def sentence_text(tokenizer: Tokenizer, ids: Sequence[int]) -> str:
    """Decode the sentence that ids spell, and tidy it."""
    return tidy(tokenizer.decode(ids))


class SubwordSampler:
    """Cuts the sentences of a batch into other pieces every time (Kudo 2018; for BPE, Provilkov et al. 2020).

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
        """Draw new segmentations of the pairs with these indices, whose best ones are `best`, in the same order.

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
        """List the ids that sampled targets may have beside those of the best segmentations, sorted, (P,)."""
        return self.tokenizer.possible_ids(spaced(target) for _, target in self.texts)
