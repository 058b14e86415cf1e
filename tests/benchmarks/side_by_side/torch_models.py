"""The toolkit's models in PyTorch, as a careful PyTorch program has them: padded batches, fused attention.

Parameters are named and shaped so that the toolkit's load into them; see `load_arrays`.
"""

import math
from collections.abc import Mapping

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

ACTIVATIONS = {"relu": F.relu, "gelu": F.gelu, "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"), "silu": F.silu}


class Attention(nn.Module):
    """Self-attention from one fused projection.  Shapes: (B, T, D) -> (B, T, D)."""

    def __init__(self, config: Mapping, causal: bool):
        super().__init__()
        self.num_heads, self.dropout, self.causal = config["num_heads"], config["attention_dropout"], causal
        width, bias = config["d_model"], config["bias"]
        self.query_key_value = nn.Linear(width, 3 * width, bias)
        self.output = nn.Linear(width, width, bias)

    def forward(self, x: Tensor, visible: Tensor | None = None) -> Tensor:
        """visible: (B, 1, 1, T) False where a key is padding; None where none is."""
        parts = self.query_key_value(x).unflatten(-1, (3, self.num_heads, -1))
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, visible, rate, self.causal)
        return self.output(context.transpose(1, 2).flatten(2))


class CrossAttention(nn.Module):
    """Attention to a memory.  Shapes: x (B, T, D), memory (B, S, D) -> (B, T, D)."""

    def __init__(self, config: Mapping):
        super().__init__()
        self.num_heads, self.dropout = config["num_heads"], config["attention_dropout"]
        width, bias = config["d_model"], config["bias"]
        self.query = nn.Linear(width, width, bias)
        self.key_value = nn.Linear(width, 2 * width, bias)
        self.output = nn.Linear(width, width, bias)

    def forward(self, x: Tensor, memory: Tensor, visible: Tensor | None) -> Tensor:
        query = self.query(x).unflatten(-1, (self.num_heads, -1)).transpose(1, 2)
        key, value = self.key_value(memory).unflatten(-1, (2, self.num_heads, -1)).permute(2, 0, 3, 1, 4)
        rate = self.dropout if self.training else 0.0
        context = F.scaled_dot_product_attention(query, key, value, visible, rate)
        return self.output(context.transpose(1, 2).flatten(2))


class FeedForward(nn.Module):
    """Shapes: (B, T, D) -> (B, T, D)."""

    def __init__(self, config: Mapping):
        super().__init__()
        self.up = nn.Linear(config["d_model"], config["d_ff"], config["bias"])
        self.down = nn.Linear(config["d_ff"], config["d_model"], config["bias"])
        self.activation, self.dropout = ACTIVATIONS[config["activation"]], config["activation_dropout"]

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.dropout(self.activation(self.up(x)), self.dropout, self.training))


class Residual(nn.Module):
    """A sub-layer with its norm before it and its dropout: x + dropout(f(norm(x)))."""

    def __init__(self, config: Mapping, layer: nn.Module):
        super().__init__()
        self.norm = nn.LayerNorm(config["d_model"], bias=config["bias"])
        self.layer, self.dropout = layer, config["residual_dropout"]

    def forward(self, x: Tensor, *more: Tensor | None) -> Tensor:
        return x + F.dropout(self.layer(self.norm(x), *more), self.dropout, self.training)


class Block(nn.Module):
    """A layer of an encoder, of a language model, or with `crosses` of a decoder."""

    def __init__(self, config: Mapping, causal: bool, crosses: bool = False):
        super().__init__()
        self.attention = Residual(config, Attention(config, causal))
        if crosses:
            self.cross_attention = Residual(config, CrossAttention(config))
        self.feed_forward = Residual(config, FeedForward(config))

    def forward(self, x: Tensor, visible: Tensor | None = None, memory: Tensor | None = None) -> Tensor:
        """visible: keys of the memory, where there is one, and otherwise of the sequence itself."""
        x = self.attention(x, visible if memory is None else None)
        if memory is not None:
            x = self.cross_attention(x, memory, visible)
        return self.feed_forward(x)


class Stack(nn.Module):
    """Blocks, and a norm after the last."""

    def __init__(self, config: Mapping, layers: int, causal: bool, crosses: bool = False):
        super().__init__()
        self.blocks = nn.ModuleList(Block(config, causal, crosses) for _ in range(layers))
        self.norm = nn.LayerNorm(config["d_model"], bias=config["bias"])

    def forward(self, x: Tensor, *more: Tensor | None) -> Tensor:
        for block in self.blocks:
            x = block(x, *more)
        return self.norm(x)


class GPT(nn.Module):
    """Learned positions, tied output table."""

    def __init__(self, config: Mapping):
        super().__init__()
        self.embedding = nn.Embedding(config["vocab_size"], config["d_model"])
        self.positions = nn.Embedding(config["max_length"], config["d_model"])
        self.decoder = Stack(config, config["layers"], causal=True)
        self.dropout = config["embedding_dropout"]

    def forward(self, inputs: Tensor, labels: Tensor) -> Tensor:
        """The mean loss.  Shapes: inputs and labels (B, T)."""
        x = self.embedding(inputs) + self.positions.weight[: inputs.shape[1]]
        x = self.decoder(F.dropout(x, self.dropout, self.training))
        return F.cross_entropy(F.linear(x, self.embedding.weight).flatten(0, 1), labels.flatten())


class Seq2Seq(nn.Module):
    """Pre-norm, sinusoidal positions, one table for sources, targets and output."""

    def __init__(self, config: Mapping, smoothing: float):
        super().__init__()
        width, self.smoothing, self.dropout = config["d_model"], smoothing, config["embedding_dropout"]
        self.embedding = nn.Embedding(config["vocab_size"], width)
        self.encoder = Stack(config, config["encoder_layers"], causal=False)
        self.decoder = Stack(config, config["decoder_layers"], causal=True, crosses=True)
        self.register_buffer("waves", waves(config["max_length"], width), persistent=False)

    def forward(self, sources: Tensor, inputs: Tensor, labels: Tensor, visible: Tensor | None, real: Tensor) -> Tensor:
        """The mean loss of the real target tokens.

        Shapes: sources (B, S), inputs (B, T), visible (B, 1, 1, S), or None where no source is padded; real (N,)
        which of the B·T places hold a token, labels (N,). What is padding has no place in the output scores, which are
        the largest array.
        """
        memory = self.encoder(self.embed(sources), visible)
        x = self.decoder(self.embed(inputs), visible, memory).flatten(0, 1).index_select(0, real)
        return F.cross_entropy(F.linear(x, self.embedding.weight), labels, label_smoothing=self.smoothing)

    def embed(self, ids: Tensor) -> Tensor:
        x = self.embedding(ids) * math.sqrt(self.waves.shape[1]) + self.waves[: ids.shape[1]]
        return F.dropout(x, self.dropout, self.training)


def waves(length: int, width: int) -> Tensor:
    """Sines and cosines side by side (Vaswani et al. 2017, section 3.5)."""
    rates = torch.exp(torch.arange(0, width, 2) * (-math.log(10000.0) / width))
    angles = torch.arange(length)[:, None] * rates
    return torch.stack([angles.sin(), angles.cos()], dim=2).flatten(1)


@torch.no_grad()
def load_arrays(model: nn.Module, arrays: Mapping[str, np.ndarray]) -> None:
    """Take the toolkit's parameters: linear maps are transposed, and its inputs and trunk are no modules here."""
    own = dict(model.named_parameters())
    for name, array in arrays.items():
        name = name.removeprefix("trunk.").replace("input.", "").replace("source.embedding", "embedding")
        name = name.replace("positions.embedding.table", "positions.weight").replace(".table", ".weight")
        parameter = own.pop(name.replace(".gain", ".weight"))
        is_linear = array.ndim == 2 and name.split(".")[0] not in ("embedding", "positions")
        parameter.copy_(torch.from_numpy(array.T if is_linear else array))
    if own:
        raise ValueError(f"parameters without a value: {', '.join(own)}")
