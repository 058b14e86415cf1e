"""Blocks: sub-layers with a residual connection around each.

Pre-norm, x + dropout(f(norm(x))), trains without care; post-norm, norm(x + dropout(f(x))), is the original (Vaswani et
al. 2017, section 3.1; Xiong et al. 2020 compare them). Without a norm it is x + dropout(f(x)).
"""

from toolkit.functional.arrays import Array
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.layers import Dropout, FeedForward, Norm
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape


class Residual(Module):
    """The norm (None: there is none) and the dropout around one sub-layer.

    `enter` and `leave` are called before and after the sub-layer, `leave_backward` and `enter_backward` in its
    backward; the sub-layer itself belongs to the block, because sub-layers differ in what they are given.
    """

    def __init__(self, norm: Norm | None, dropout: float, pre_norm: bool):
        self.norm = norm
        self.dropout = Dropout(dropout)
        self.pre_norm = norm is not None and pre_norm
        self.post_norm = norm is not None and not pre_norm

    def enter(self, x: Array, tape: Tape) -> Array:
        return self.norm.forward(x, tape) if self.pre_norm else x

    def leave(self, x: Array, branch: Array, tape: Tape) -> Array:
        y = tape.add(x, self.dropout.forward(branch, tape))
        tape.record(self, "sum", y)
        return self.norm.forward(y, tape) if self.post_norm else y

    def leave_backward(self, dy: Array, tape: Tape) -> tuple[Array, Array]:
        """The gradients of `x` and of the branch."""
        dy = self.norm.backward(dy, tape) if self.post_norm else dy
        return dy, self.dropout.backward(dy, tape)

    def enter_backward(self, dx: Array, dbranch: Array, tape: Tape) -> Array:
        """Both paths lead to x, so their gradients add up: the one around the sub-layer and the one through it."""
        return tape.add(dx, self.norm.backward(dbranch, tape) if self.pre_norm else dbranch)


class Block(Module):
    """Self-attention, then a feed-forward network.  Shapes: (N, D) -> (N, D).

    A layer of an encoder, and where the attention is causal, of a language model.
    """

    def __init__(self, attention: SelfAttention, feed_forward: FeedForward, residuals: list[Residual]):
        self.attention, self.feed_forward = attention, feed_forward
        self.around_attention, self.around_feed_forward = residuals

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        branch = self.attention.forward(self.around_attention.enter(x, tape), rows, tape)
        x = self.around_attention.leave(x, branch, tape)
        branch = self.feed_forward.forward(self.around_feed_forward.enter(x, tape), tape)
        return self.around_feed_forward.leave(x, branch, tape)

    def backward(self, dx: Array, tape: Tape) -> Array:
        dx, dbranch = self.around_feed_forward.leave_backward(dx, tape)
        dx = self.around_feed_forward.enter_backward(dx, self.feed_forward.backward(dbranch, tape), tape)
        dx, dbranch = self.around_attention.leave_backward(dx, tape)
        return self.around_attention.enter_backward(dx, self.attention.backward(dbranch, tape), tape)


class DecoderBlock(Module):
    """Causal self-attention, cross-attention to the memory, then a feed-forward network.

    Shapes: x (N, D), memory (M, D) -> (N, D). Backward returns (dx, dmemory).
    """

    def __init__(
        self,
        attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: FeedForward,
        residuals: list[Residual],
    ):
        self.attention, self.cross_attention, self.feed_forward = attention, cross_attention, feed_forward
        self.around_attention, self.around_cross_attention, self.around_feed_forward = residuals

    def forward(self, x: Array, memory: Array, rows: Rows, tape: Tape) -> Array:
        branch = self.attention.forward(self.around_attention.enter(x, tape), rows, tape)
        x = self.around_attention.leave(x, branch, tape)
        branch = self.cross_attention.forward(self.around_cross_attention.enter(x, tape), memory, rows, tape)
        x = self.around_cross_attention.leave(x, branch, tape)
        branch = self.feed_forward.forward(self.around_feed_forward.enter(x, tape), tape)
        return self.around_feed_forward.leave(x, branch, tape)

    def backward(self, dx: Array, tape: Tape) -> tuple[Array, Array]:
        dx, dbranch = self.around_feed_forward.leave_backward(dx, tape)
        dx = self.around_feed_forward.enter_backward(dx, self.feed_forward.backward(dbranch, tape), tape)
        dx, dbranch = self.around_cross_attention.leave_backward(dx, tape)
        dbranch, dmemory = self.cross_attention.backward(dbranch, tape)
        dx = self.around_cross_attention.enter_backward(dx, dbranch, tape)
        dx, dbranch = self.around_attention.leave_backward(dx, tape)
        return self.around_attention.enter_backward(dx, self.attention.backward(dbranch, tape), tape), dmemory
