"""Models small enough to check whole, and batches for them."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from toolkit.data.batches import Example
from toolkit.data.sentences import sentence_ids
from toolkit.functional.arrays import Array
from toolkit.models.gpt import GPT, GPTBatch, GPTConfig
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig, translation_batch
from toolkit.models.storage import new_model
from toolkit.nn.rows import Rows
from toolkit.tokenization import Tokenizer


def small_config(**settings: Any) -> Seq2SeqConfig:
    """One encoder and two decoder layers, so that two layers attend to the memory; without dropout."""
    small = {"vocab_size": 30, "d_model": 8, "num_heads": 2, "d_ff": 12, "encoder_layers": 1, "decoder_layers": 2}
    rates = dict.fromkeys(("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout"), 0.0)
    return Seq2SeqConfig(**{**small, "max_length": 16, **rates, **settings})


DROPOUT = dict.fromkeys(("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout"), 0.2)


def small_gpt_config(**settings: Any) -> GPTConfig:
    """Two blocks; four heads of even width, so that they can share keys and be turned."""
    small = {"vocab_size": 30, "d_model": 16, "layers": 2, "num_heads": 4, "d_ff": 12, "max_length": 8}
    return GPTConfig(**{**small, **settings})


def random_model(
    config: Seq2SeqConfig | GPTConfig, rng: np.random.Generator, dtype: type = np.float64
) -> Seq2Seq | GPT:
    """A model whose every parameter is random, gains and biases included."""
    model = new_model(config)
    model.allocate(dtype)
    for name, value in model.arrays().items():
        value[...] = rng.standard_normal(value.shape) * 0.4 + name.endswith("gain")
    return model


def random_pairs(rng: np.random.Generator, count: int, vocab_size: int = 30, longest: int = 7) -> list[tuple]:
    """Sources and targets of random lengths, ids without specials; a source may be empty, a target too."""
    lengths = rng.integers(0, longest + 1, (count, 2))
    return [tuple(rng.integers(16, vocab_size, length).astype(np.int32) for length in pair) for pair in lengths]


def batch_of(pairs: list[tuple]) -> Seq2SeqBatch:
    """A batch of pairs, sorted as training sorts them."""
    pairs = sorted(pairs, key=lambda pair: (len(pair[1]), len(pair[0])))
    return translation_batch([source for source, _ in pairs], [target for _, target in pairs])


def gpt_batch(rng: np.random.Generator, lengths: Sequence[int], vocab_size: int = 30) -> GPTBatch:
    """Random texts of these lengths, each with the token that follows its last one as a label."""
    texts = [rng.integers(0, vocab_size, length + 1) for length in lengths]
    return batch_of_texts(texts)


def batch_of_texts(texts: Sequence[Array]) -> GPTBatch:
    """A batch of texts as they stand: all of a text but its last token is read, all but the first is predicted."""
    inputs, labels = (np.concatenate([text[cut] for text in texts]) for cut in (slice(None, -1), slice(1, None)))
    return GPTBatch(inputs, labels, Rows(np.array([len(text) - 1 for text in texts])))


def encode_pairs(
    pairs: Iterable[tuple[str, str]], tokenizer: Tokenizer, max_length: int, ignore_case: bool = False
) -> tuple[list[Example], int]:
    """Pairs in memory as a corpus encodes them -> (examples, number of pairs that were left out for their length).

    max_length: the most tokens that either side may have, its end marker included. ignore_case: sources are read in
    lower case (see `toolkit.data.sentences`).
    """
    pairs = list(pairs)
    sources = sentence_ids(tokenizer, (source for source, _ in pairs), ignore_case)
    targets = sentence_ids(tokenizer, (target for _, target in pairs))
    examples = [
        Example(np.array(source, dtype=np.int32), np.array(target, dtype=np.int32))
        for source, target in zip(sources, targets, strict=True)
        if max(len(source), len(target)) < max_length
    ]
    return examples, len(pairs) - len(examples)
