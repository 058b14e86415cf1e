"""What a language model thinks of replies: the log-probability of every token, with the pass back."""

from collections.abc import Sequence

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.functional.token_log_probs import token_log_probs, token_log_probs_backward
from toolkit.models.gpt import GPT, GPTBatch, at_rows
from toolkit.nn.tape import Tape
from toolkit.tokenization.special import SPECIAL_TOKENS


def never_written(end: int) -> Array:
    """The ids that decoding never writes where `end` is what ends an output: all other special ones."""
    return np.setdiff1d(np.arange(len(SPECIAL_TOKENS)), [end])


def reply_log_probs(
    model: GPT, batch: GPTBatch, tape: Tape, temperature: float = 1.0, excluded: Array | None = None
) -> tuple[Array, Array]:
    """Log-probabilities of the labels that count in a batch of `reply_batch`, and the entropies there: (M,) each.

    `reply_log_probs_backward` follows if the tape keeps. Only these rows are projected to the vocabulary; all others
    are only read. temperature, excluded: for replies that were sampled so; see `token_log_probs`.
    """
    x = model.read(batch.inputs, batch.rows, tape)
    chosen = np.take(x, batch.scored, axis=0, out=tape.empty((len(batch.scored), x.shape[1]), x.dtype))
    bias = model.output_bias and model.output_bias.data
    labels = batch.labels[batch.scored]
    found, saved = token_log_probs(chosen, model.output.table.data, bias, labels, temperature, excluded, tape.empty)
    tape.push(model, (saved, batch.scored, len(x)))
    return found


def reply_log_probs_backward(model: GPT, dlog_probs: Array, tape: Tape) -> None:
    """Add the gradient of the last `reply_log_probs` on this tape to the tape's gradients.  dlog_probs: (M,)."""
    saved, scored, count = tape.pop(model)
    dx, dtable, dbias = token_log_probs_backward(dlog_probs, saved, tape.empty)
    tape.accumulate(model.output.table, dtable)
    if model.output_bias:
        tape.accumulate(model.output_bias, dbias)
    model.trunk.backward(at_rows(dx, scored, count, tape), tape)


def sums_of_replies(values: Array, lengths: Sequence[int]) -> Array:
    """Sums of consecutive stretches of these lengths, none of them empty.  Shapes: (M,) -> (B,)."""
    return np.add.reduceat(values, np.cumsum(lengths) - lengths)
