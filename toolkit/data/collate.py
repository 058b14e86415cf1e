"""From examples to the rows that a model reads."""

from collections.abc import Sequence

import numpy as np

from toolkit.models.gpt import GPTBatch
from toolkit.models.seq2seq import Seq2SeqBatch
from toolkit.nn.rows import Rows
from toolkit.tokenization.special import BOS, EOS


def source_rows(sources: Sequence[Sequence[int] | np.ndarray]) -> tuple[np.ndarray, Rows]:
    """Source sentences, an end mark after each, as ids (M,) and their rows."""
    end = np.array([EOS])
    ids = np.concatenate([part for source in sources for part in (source, end)]).astype(np.int64)
    return ids, Rows(np.array([len(source) + 1 for source in sources]))


def translation_batch(sources: Sequence[np.ndarray], targets: Sequence[np.ndarray]) -> Seq2SeqBatch:
    """Pairs as rows with teacher forcing: the decoder reads [begin] + target and is to say target + [end].

    Sources are read in the order of their lengths, so that the encoder too meets runs of equal length; targets stay
    in the order given, which should be by length.
    """
    order = np.argsort([len(source) for source in sources], kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    source_ids, memory = source_rows([sources[index] for index in order])
    lengths = np.array([len(target) + 1 for target in targets])
    text = np.concatenate([part for target in targets for part in (target, [EOS])]).astype(np.int64)
    rows = Rows(lengths, memory=memory, memory_of=place)
    inputs = np.empty_like(text)
    inputs[1:] = text[:-1]
    inputs[rows.starts] = BOS
    return Seq2SeqBatch(source_ids, memory, inputs, text, rows)


def text_batch(texts: Sequence[np.ndarray]) -> GPTBatch:
    """Texts of at least two tokens as rows with teacher forcing: of each, every token but the first is a label."""
    rows = Rows(np.array([len(text) - 1 for text in texts]))
    inputs, labels = (np.concatenate([text[part] for text in texts]) for part in (slice(None, -1), slice(1, None)))
    return GPTBatch(inputs.astype(np.int64), labels.astype(np.int64), rows)
