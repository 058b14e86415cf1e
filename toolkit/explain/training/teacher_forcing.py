"""Teacher forcing on one pair of sentences, or on one text: what is read, what is to be said, and what that costs.

The model reads the right tokens whatever it would have said itself, so that all positions are scored in one pass.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.data.collate import text_batch, translation_batch
from toolkit.decoding.sampling import log_sum_exp
from toolkit.decoding.state import DecoderState, GPTState, Seq2SeqState
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch
from toolkit.nn.attention import SelfAttention
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.recorder import Recorder
from toolkit.nn.tape import Tape


class Forced(NamedTuple):
    """One pass with teacher forcing, token by token, without dropout."""

    losses: Array  # (N,) -log p(label), in float64
    best: Array  # (N,) the most probable token
    best_probabilities: Array  # (N,)
    mean_log_probs: Array  # (N,) the mean of log p over the tokens that smoothing spreads to
    attention: Array  # (T, S) of the first layer that reads the target, the mean of its heads

    @property
    def loss(self) -> float:
        """The mean over the tokens."""
        return float(self.losses.mean())


def pair_batch(source: Sequence[int], target: Sequence[int]) -> Seq2SeqBatch:
    """One pair, ids without marks, as training batches it: inputs = [begin] + target, labels = target + [end]."""
    return translation_batch([np.asarray(source, np.int64)], [np.asarray(target, np.int64)])


def one_text(ids: Sequence[int]) -> GPTBatch:
    """One text of at least two ids, its marks among them: every token but the first is a label."""
    return text_batch([np.asarray(ids, np.int64)])


def forced(model: Seq2Seq | GPT, batch: Seq2SeqBatch | GPTBatch, prior: Array) -> Forced:
    """Read the labels' probabilities from one forward pass.

    prior: (V,) the shares of the tokens that label smoothing spreads to.
    """
    attention = first_attention(model)
    recorder = Recorder([attention], ["probabilities"])
    tape = Tape(memory=Pool(), recorder=recorder)
    if isinstance(model, GPT):
        x = model.read(batch.inputs, batch.rows, tape)
    else:
        x = model.decode(batch.inputs, model.encode(batch.sources, batch.source_rows, tape), batch.rows, tape)
    logits = model.logits(x, tape)
    totals, best = log_sum_exp(logits), logits.argmax(axis=1)
    rows = np.arange(len(logits))
    return Forced(
        totals - logits[rows, batch.labels],
        best,
        np.exp(logits[rows, best] - totals),
        logits @ prior - totals,
        recorder.attention_maps(attention)[0].mean(axis=0),
    )


def first_attention(model: Seq2Seq | GPT) -> SelfAttention:
    """The causal self-attention that reads the labels' inputs first."""
    return (model.trunk.blocks if isinstance(model, GPT) else model.decoder)[0].attention


def step_by_step(model: Seq2Seq | GPT, batch: Seq2SeqBatch | GPTBatch) -> Array:
    """(N,) -log p(label) once more, as decoding finds it: one token at a time over the KV cache."""
    if isinstance(model, GPT):
        state: DecoderState = GPTState(model, [batch.inputs[:1]], Pool(), new_tokens=len(batch.labels))
    else:
        state = Seq2SeqState(model, [batch.sources[:-1]], Pool(), room=len(batch.labels))
    losses = np.empty(len(batch.labels))
    for step, (read, label) in enumerate(zip(batch.inputs, batch.labels, strict=True)):
        logits = state.logits(np.array([read]))
        losses[step] = log_sum_exp(logits)[0] - logits[0, label]
    return losses


def gradient_of(model: Model, batch: Seq2SeqBatch | GPTBatch) -> tuple[LossSums, Array]:
    """The loss sums, and the gradient of the sum as one vector, divided as the model's own: a real backward pass."""
    gradient = np.zeros_like(model.vector)
    tape = Tape(model.views(gradient), memory=Pool())
    sums = model.loss(batch, tape)
    model.backward(tape)
    return sums, gradient
