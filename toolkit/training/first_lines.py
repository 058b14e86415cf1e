"""Documents whose first line is a prompt: it is read, and what follows it is to be predicted."""

import numpy as np

from toolkit.data.store import RaggedStore
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPTBatch
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.special import BOS
from toolkit.training.language import LanguageTask


class FirstLineTask(LanguageTask):
    """Whole documents, of which those of several lines count after their first one, and those of one line in full.

    What nobody can predict, such as the sentence that is to be translated, has the largest loss in a text and so the
    largest gradient; without it, updates are about what can be learned.
    breaks: (V,) which ids end a line (see `line_breaks`). Tokens that are counted are predicted ones.
    """

    def __init__(
        self,
        train: RaggedStore,
        valid: RaggedStore,
        length: int,
        breaks: Array,
        smoothing: float = 0.0,
        vocab_size: int = 0,
    ):
        super().__init__(train, valid, length, True, smoothing, vocab_size)
        self._made_of = (train, valid, length, breaks, smoothing, vocab_size)
        self._breaks = breaks

    def batch(self, name: str, numbers: np.ndarray) -> GPTBatch:
        """Some texts as rows, of which those count that are followed by a token to be predicted."""
        texts, counts = self.texts[name], []
        for number in numbers:
            begin, length = texts.span(number)
            counts.append(self._counts(texts.stream[begin : begin + length]))
        return super().batch(name, numbers)._replace(scored=np.flatnonzero(np.concatenate(counts)))

    def _counts(self, ids: Array) -> Array:
        """Of each row of a text, (T,), whether what follows it is to be predicted."""
        ends = np.flatnonzero(self._breaks[ids])
        is_piece = ids[0] != BOS  # of a document longer than the context, whose first line is not here
        return np.arange(len(ids)) >= (0 if is_piece or len(ends) == 0 else ends[0])


def line_breaks(tokenizer: Tokenizer) -> Array:
    """(V,) which ids end a line."""
    return np.array(["\n" in tokenizer.piece(index) for index in range(tokenizer.vocab_size)])
