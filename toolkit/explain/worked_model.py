"""The founding document 004's own small numbers, as a little model of the toolkit's own modules.

Two numbers a token, one head, identity weights: what can be followed with a pocket calculator. The document goes from
attention straight to the next attention; only its last step, "feed-forward and layer norm", has a residual here.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.models.base import InputEmbedding
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Residual
from toolkit.nn.layers import Embedding, FeedForward, LayerNorm, SinusoidalPositions
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Recorder, Tape
from toolkit.proof import central_difference

SOURCE = {"I": (1.0, 0.0), "am": (0.0, 1.0), "boy": (1.0, 1.0)}
# The document gives the first two; the others are ours, so that there is something to choose from.
TARGET = {"<sos>": (0.5, 0.5), "म": (1.0, 0.5), "केटा": (0.2, 0.9), "हुँ": (0.4, 0.3), "<eos>": (-0.5, -0.5)}

# The later example: its W_q is printed 3×2, and these are the numbers that it multiplies. W_v is printed 3×2 too, and
# nothing is multiplied by it: its first two rows are taken.
LATER_X = np.array([[1.0, 0.5], [0.5, 1.0], [1.5, 1.0]])
LATER_W_Q = np.array([[0.1, 0.3], [0.2, 0.7]])
LATER_W_K = np.array([[0.1, 0.2], [0.3, 0.8]])
LATER_W_V = np.array([[0.2, 0.7], [0.1, 0.3]])
LATER_D_OUTPUT = np.array([0.2, -0.3])

_ONE = np.eye(2)


class WorkedTranslator(Model):
    """The document's encoder and decoder, in float64, with all weights identities but the embeddings."""

    kind = "worked"

    def __init__(self) -> None:
        self.source = InputEmbedding(Embedding(len(SOURCE), 2), SinusoidalPositions(2), 0.0)
        self.encoder = SelfAttention(2, 1, bias=False)
        self.target = InputEmbedding(Embedding(len(TARGET), 2), SinusoidalPositions(2), 0.0)
        self.decoder = SelfAttention(2, 1, bias=False, causal=True)
        self.cross_attention = CrossAttention(2, 1, bias=False)
        self.feed_forward = Residual(LayerNorm(2, bias=False), FeedForward(2, 2, "relu", bias=False), pre_norm=False)
        self.allocate(np.float64)
        for module, words in ((self.source, SOURCE), (self.target, TARGET)):
            module.embedding.table.data[...] = list(words.values())
        for attention in (self.encoder, self.decoder, self.cross_attention):
            _set_identity(attention)
        self.feed_forward.layer.up.weight.data[...] = _ONE
        self.feed_forward.layer.down.weight.data[...] = _ONE
        self.feed_forward.norm.gain.data[...] = 1

    def forward(self, source: Sequence[int], target: Sequence[int], tape: Tape) -> Array:
        """Compute the logits of each next word.  The sums E + PE are rounded to three decimals, as
        the document does, so that what it computes from them can be checked against what it prints."""
        memory_rows = Rows(np.array([len(source)]))
        rows = Rows(np.array([len(target)]), memory=memory_rows, memory_of=np.array([0]))
        x = self.source.forward(np.array(source), memory_rows, tape).round(3)
        memory = self.encoder.forward(x, memory_rows, tape)
        y = self.target.forward(np.array(target), rows, tape).round(3)
        y = self.decoder.forward(y, rows, tape)
        y = self.cross_attention.forward(y, memory, rows, tape)
        y = self.feed_forward.forward(y, tape)
        logits = y @ self.target.embedding.table.data.T
        tape.show(self, "logits", logits)
        return logits


class Worked(NamedTuple):
    """One pass of the worked model."""

    model: WorkedTranslator
    recorder: Recorder
    source: list[str]
    target: list[str]


def worked_pass(source: Sequence[str] = ("I", "am", "boy"), target: Sequence[str] = ("<sos>", "म")) -> Worked:
    """Run the document's model.  Raises ValueError for a word that it does not have."""
    model, recorder = WorkedTranslator(), Recorder()
    ids = ([list(words).index(each) for each in text] for words, text in ((SOURCE, source), (TARGET, target)))
    model.forward(*ids, Tape(recorder=recorder))
    return Worked(model, recorder, list(source), list(target))


class Attended(NamedTuple):
    """The scores, weights and context of an attention with one head."""

    scores: Array  # (T, S) scaled
    weights: Array  # (T, S)
    context: Array  # (T, K)
    head_dim: int

    @property
    def dots(self) -> Array:
        """Undo the scaling of the scores: the products q·k, (T, S)."""
        return self.scores * self.head_dim**0.5


def self_attended(x: Array, causal: bool = False) -> Attended:
    """Run the toolkit's self-attention with identity weights over rows (T, D)."""
    x = np.asarray(x, np.float64)
    return _attended(SelfAttention(x.shape[1], 1, bias=False, causal=causal), x, Rows(np.array([len(x)])))


def cross_attended(query: Array, memory: Array) -> Attended:
    """Run the toolkit's cross-attention with identity weights: rows (T, D) attend to rows (S, D)."""
    query, memory = np.asarray(query, np.float64), np.asarray(memory, np.float64)
    rows = Rows(np.array([len(query)]), memory=Rows(np.array([len(memory)])), memory_of=np.array([0]))
    return _attended(CrossAttention(query.shape[1], 1, bias=False), query, memory, rows)


def _attended(module: SelfAttention | CrossAttention, *arguments: Array | Rows) -> Attended:
    recorder = Recorder()
    _set_identity(_Root(module).module)
    module.forward(*arguments, Tape(recorder=recorder))
    scores, by_key, context = (recorder.found(module, name) for name in ("scores", "probabilities", "context"))
    return Attended(scores[0, 0], by_key[0, 0].T, context, module.head_dim)


def later_attention() -> SelfAttention:
    """Make the later example's attention, with the weights that the document multiplies."""
    module = _Root(SelfAttention(2, 1, bias=False)).module
    module.query_key_value.weight.data[...] = np.hstack([LATER_W_Q, LATER_W_K, LATER_W_V])
    module.output.weight.data[...] = _ONE
    return module


def later_pass(module: SelfAttention, tape: Tape) -> Array:
    """Compute the later example's output, (3, 2)."""
    return module.forward(LATER_X, Rows(np.array([len(LATER_X)])), tape)


def later_gradients() -> tuple[Array, Array, Array]:
    """Compute ∂L/∂W_q, ∂L/∂W_k and ∂L/∂W_v of the later example by the toolkit's backward, (2, 2) each.

    The document's gradient of "the output" is that of the last token, boy; the others have none.
    """
    module = later_attention()
    gradients = {parameter: np.zeros(parameter.shape) for parameter in module.parameters().values()}
    tape = Tape(gradients)
    dy = np.zeros_like(later_pass(module, tape))
    dy[-1] = LATER_D_OUTPUT
    module.backward(dy, tape)
    return tuple(np.hsplit(gradients[module.query_key_value.weight], 3))


def later_differences() -> Array:
    """Compute ∂L/∂W_q, entry by entry, from central differences of the loss <∂L/∂output, output>."""
    module = later_attention()
    weight = module.query_key_value.weight.data
    slopes = np.empty((2, 2))
    for place in np.ndindex(2, 2):
        direction = np.zeros_like(weight)
        direction[place] = 1  # the columns of W_q come first
        slopes[place] = central_difference(
            lambda: later_pass(module, Tape())[-1] @ LATER_D_OUTPUT, weight, direction, 1e-5
        )
    return slopes


class _Root(Model):
    """Gives a single module its parameters."""

    kind = "root"

    def __init__(self, module: SelfAttention | CrossAttention):
        self.module = module
        self.allocate(np.float64)


def _set_identity(module: SelfAttention | CrossAttention) -> None:
    for linear in (value for value in vars(module).values() if hasattr(value, "weight")):
        width = linear.weight.shape[0]
        linear.weight.data[...] = np.tile(np.eye(width), linear.weight.shape[1] // width)
