"""What a model thinks of given outputs: teacher forcing instead of search."""

from collections.abc import Iterator

import numpy as np

from toolkit.data.collate import translation_batch
from toolkit.decoding.distribution import log_sum_exp
from toolkit.decoding.generate import Sources, check_ids
from toolkit.decoding.hypothesis import Hypothesis, hypothesis_of
from toolkit.errors import ConfigError, DataError
from toolkit.functional.arrays import Array, row_blocks
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape

# Logits of one block of rows, 4 MB of float32, so that memory does not grow with batch times vocabulary.
_BLOCK_LOGITS = 1 << 20


def score(
    model: Seq2Seq, sources: Sources, targets: Sources, batch_size: int = 64, length_penalty: float = 1.0
) -> list[Hypothesis]:
    """The targets as hypotheses, end marks included, in input order: what `generate` reports for the same ids.

    sources, targets: ids without special marks, as many of the one as of the other. Pairs of similar length are scored
    together, `batch_size` at a time, which changes nothing but the time it takes.

    Raises DataError for ids that the model cannot read, ConfigError for a batch_size below 1.
    """
    check_pairs(model, sources, targets, batch_size)
    pool = Pool()
    results: dict[int, Hypothesis] = {}
    for chosen, batch in batches_by_length(sources, targets, batch_size):
        parts = np.split(_label_log_probs(model, batch, Tape(memory=pool)), batch.rows.starts[1:])
        for index, log_probs in zip(chosen, parts, strict=True):
            ids = [int(token) for token in targets[index]]
            results[index] = hypothesis_of(ids, log_probs.tolist(), length_penalty, finished=True)
    return [results[index] for index in range(len(targets))]


def _label_log_probs(model: Seq2Seq, batch: Seq2SeqBatch, tape: Tape) -> Array:
    """(N,) the log-probability of every label, in float64."""
    memory = model.encode(batch.sources, batch.source_rows, tape)
    x = model.decode(batch.inputs, memory, batch.rows, tape)
    result = np.empty(len(x))
    for rows in row_blocks(len(x), model.config.vocab_size, _BLOCK_LOGITS):
        logits = model.logits(x[rows], tape)
        result[rows] = logits[np.arange(len(logits)), batch.labels[rows]] - log_sum_exp(logits)
    return result


def batches_by_length(sources: Sources, targets: Sources, batch_size: int) -> Iterator[tuple[list[int], Seq2SeqBatch]]:
    """Pairs of similar length together: their numbers, and the pairs with teacher forcing."""
    order = sorted(range(len(targets)), key=lambda index: (len(targets[index]), len(sources[index])))
    for begin in range(0, len(order), batch_size):
        chosen = order[begin : begin + batch_size]
        yield chosen, translation_batch([sources[index] for index in chosen], [targets[index] for index in chosen])


def check_pairs(model: Seq2Seq, sources: Sources, targets: Sources, batch_size: int) -> None:
    """Raises DataError where sources and targets are not pairs that the model can read, ConfigError for no batch."""
    if batch_size < 1:
        raise ConfigError(f"batch_size is {batch_size}: it must be at least 1")
    if len(sources) != len(targets):
        raise DataError(f"there are {len(targets)} translations for {len(sources)} sentences: give one for each")
    check_ids(model, sources, "sentence {}")
    check_ids(model, targets, "the translation of sentence {}")
