"""An encoder alone, from vectors to vectors: the systems of the founding documents 000, 001 and 003.

With its default settings it is the auto-encoder of 000 and 001: post-norm, ReLU, sinusoidal positions, and one more
norm at the end, 100,096 parameters in all. Without norms, biases and positions, with one head and SiLU (swish), it is
the transformer of 003.
"""

from dataclasses import dataclass
from typing import Literal

from toolkit.display import short_repr
from toolkit.functional.arrays import Array
from toolkit.models.base import ModelConfig
from toolkit.nn.attention import SelfAttention
from toolkit.nn.blocks import Block, Residual, Stack
from toolkit.nn.layers import FeedForward, LayerNorm, SinusoidalPositions
from toolkit.nn.module import Model
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape


@dataclass(frozen=True)
class AutoEncoderConfig(ModelConfig):
    """The shape of an `AutoEncoder`."""

    d_model: int = 64  # D, of the vectors that are read and given back
    num_heads: int = 4  # attention heads; they divide d_model
    d_ff: int = 256  # F, inside the feed-forward networks
    layers: int = 2
    activation: Literal["relu", "gelu", "gelu_tanh", "silu"] = "relu"  # silu is also called swish
    # before each sub-layer or after its residual sum; and at the end
    norm_position: Literal["pre", "post", "none"] = "post"
    bias: bool = True  # biases in linear maps and norms
    positions: Literal["sinusoidal", "none"] = "sinusoidal"  # what is added to the vectors

    __repr__ = short_repr


class AutoEncoder(Model):
    """Blocks of self-attention that looks both ways, and a norm where there are norms.  Shapes: (N, D) -> (N, D)."""

    kind = "autoencoder"

    def __init__(self, config: AutoEncoderConfig):
        self.config = config
        self.positions = SinusoidalPositions(config.d_model) if config.positions == "sinusoidal" else None
        self.encoder = Stack([_block(config) for _ in range(config.layers)], _norm(config))

    def forward(self, x: Array, rows: Rows, tape: Tape) -> Array:
        """Read vectors, which stay as they are; `backward` follows if the tape keeps.  Shapes: (N, D) -> (N, D)."""
        if self.positions:
            x = self.positions.forward(x, rows, tape)
        return self.encoder.forward(x, rows, tape)

    def backward(self, dy: Array, tape: Tape) -> Array:
        """Add the gradients of the last `forward` on this tape to the tape's; returns that of the vectors, (N, D)."""
        dx = self.encoder.backward(dy, tape)
        return self.positions.backward(dx, tape) if self.positions else dx


def _block(config: AutoEncoderConfig) -> Block:
    attention = SelfAttention(config.d_model, config.num_heads, bias=config.bias)
    feed_forward = FeedForward(config.d_model, config.d_ff, config.activation, bias=config.bias)
    return Block(
        *(Residual(_norm(config), layer, 0.0, config.norm_position == "pre") for layer in (attention, feed_forward))
    )


def _norm(config: AutoEncoderConfig) -> LayerNorm | None:
    return None if config.norm_position == "none" else LayerNorm(config.d_model, config.bias)
