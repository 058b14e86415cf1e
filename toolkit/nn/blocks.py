"""Blocks of a transformer, and stacks of them: sub-layers with a residual connection around each."""

from typing import Any

from toolkit.functional.arrays import Array
from toolkit.nn.layers import Dropout, Norm
from toolkit.nn.module import Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape


class Residual(Module):
    """A sub-layer f with its norm, its dropout, and the connection around it.  Shapes: (N, D) -> (N, D).

    Pre-norm, y = x + dropout(f(norm(x))), trains without care; post-norm, y = norm(x + dropout(f(x))), is the original
    (Vaswani et al. 2017, section 3.1; Xiong et al. 2020 compare them). Without a norm, y = x + dropout(f(x)).
    """

    def __init__(self, norm: Norm | None, layer: Module, dropout: float = 0.0, pre_norm: bool = True):
        self.norm = norm
        self.layer = layer
        self.dropout = Dropout(dropout)
        self.pre_norm = norm is not None and pre_norm
        self.post_norm = norm is not None and not pre_norm

    def forward(self, x: Array, *context: Any) -> Array:
        """Add to x what the layer f makes of it:

            y = x + f(norm(x))

        pre-norm; see the class for the others. context: what the layer takes beside x; the tape comes last.
        """
        tape = context[-1]
        branch = self.layer.forward(self.norm.forward(x, tape) if self.pre_norm else x, *context)
        y = tape.add(x, self.dropout.forward(branch, tape))
        tape.show(self, "sum", y)
        return self.norm.forward(y, tape) if self.post_norm else y

    def backward(self, dy: Array, tape: Tape) -> Array | tuple[Array, Array]:
        """Returns dx, or (dx, dmemory) where the layer is cross-attention."""
        dx = self.norm.backward(dy, tape) if self.post_norm else dy
        dbranch = self.layer.backward(self.dropout.backward(dx, tape), tape)
        if isinstance(dbranch, tuple):
            dbranch, dmemory = dbranch
            return self.joined(dx, dbranch, tape), dmemory
        return self.joined(dx, dbranch, tape)

    def joined(self, dx: Array, dbranch: Array, tape: Tape) -> Array:
        """Both paths lead to x, so their gradients add up, the one around the layer and the one through it:

            dx = dy + norm_backward(f_backward(dy))

        Returns dx (N, D).
        """
        return tape.add(dx, self.norm.backward(dbranch, tape) if self.pre_norm else dbranch)


class Block(Module):
    """Self-attention, then a feed-forward network: a layer of an encoder, or where it is causal, of a language model.

    Shapes: (N, D) -> (N, D).
    """

    def __init__(self, attention: Residual, feed_forward: Residual):
        self.attention, self.feed_forward = attention, feed_forward

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        x = self.attention.forward(x, rows, tape)
        return self.feed_forward.forward(x, tape)

    def backward(self, dx: Array, tape: Tape) -> Array:
        dx = self.feed_forward.backward(dx, tape)
        return self.attention.backward(dx, tape)


class DecoderBlock(Module):
    """Causal self-attention, cross-attention to the memory, then a feed-forward network.

    Shapes: x (N, D), memory (M, D) -> (N, D). Backward returns (dx, dmemory).
    """

    def __init__(self, attention: Residual, cross_attention: Residual, feed_forward: Residual):
        self.attention, self.cross_attention, self.feed_forward = attention, cross_attention, feed_forward

    def forward(self, x: Array, memory: Array, rows: Rows, tape: Tape) -> Array:
        x = self.attention.forward(x, rows, tape)
        x = self.cross_attention.forward(x, memory, rows, tape)
        return self.feed_forward.forward(x, tape)

    def backward(self, dx: Array, tape: Tape) -> tuple[Array, Array]:
        dx = self.feed_forward.backward(dx, tape)
        dx, dmemory = self.cross_attention.backward(dx, tape)
        return self.attention.backward(dx, tape), dmemory


class Stack(Module):
    """Blocks one after the other, and a last norm where there is one.  Shapes: (N, D) -> (N, D)."""

    def __init__(self, blocks: list[Block] | list[DecoderBlock], norm: Norm | None):
        self.blocks, self.norm = blocks, norm

    def forward(self, x: Array, *context: Any) -> Array:
        """context: what every block takes beside x; the tape comes last."""
        for block in self.blocks:
            x = block.forward(x, *context)
        return self.norm.forward(x, context[-1]) if self.norm else x

    def backward(self, dx: Array, tape: Tape) -> Array:
        dx = self.norm.backward(dx, tape) if self.norm else dx
        for block in reversed(self.blocks):
            dx = block.backward(dx, tape)
        return dx


class DecoderStack(Stack):
    """Decoder blocks that all read one memory.

    Shapes: x (N, D), memory (M, D) -> (N, D). Backward returns (dx, dmemory).
    """

    def backward(self, dx: Array, tape: Tape) -> tuple[Array, Array]:
        dx, dmemory = self.norm.backward(dx, tape) if self.norm else dx, None
        for block in reversed(self.blocks):
            dx, of_block = block.backward(dx, tape)
            dmemory = of_block if dmemory is None else tape.add(dmemory, of_block)
        return dx, dmemory
