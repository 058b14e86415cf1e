"""Fold norms and scales into maps, in a model that is not trained any more: the same numbers in fewer operations.

A norm that stands before a map scales and shifts what it has normalised, n. The map can do both:

    (n · gain + bias) W + b = n W' + b'        with W' = diag(gain) W and b' = b + bias W

A factor of √D goes with the gain, so that what is left of the norm is a division by the length of the row.

A layer norm also takes the mean of its row away. Only norms read the residual stream of a pre-norm stack, so means may
be kept out of it from the beginning: where x, and every map that adds to it, is centred, W - mean(W) over the columns,
all rows of the stream have mean 0, and layer norm is root mean square norm.
"""

import copy
import math
from collections import Counter
from collections.abc import Callable, Sequence

import numpy as np

from toolkit.functional.arrays import Array, Empty
from toolkit.functional.int8 import Int8Matrix
from toolkit.models.base import InputEmbedding
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.blocks import Block, DecoderBlock, Residual, Stack
from toolkit.nn.layers import (
    ActivatedLinear,
    Centring,
    FeedForward,
    GatedLinear,
    LayerNorm,
    Linear,
    Norm,
    RMSNorm,
)
from toolkit.nn.module import Module, Parameter, zeros

# The map of a sub-layer that reads what its norm gives, and the one that adds to the residual stream.
_MAPS = {SelfAttention: ("query_key_value", "output"), CrossAttention: ("query", "output"), FeedForward: ("up", "down")}
_LINEAR, _NORMS = (Linear, ActivatedLinear, GatedLinear), (LayerNorm, RMSNorm)

Own = Callable[[Parameter], Parameter]


@np.errstate(all="ignore")  # a damaged model shows at its outputs
def fold_norms(entry: InputEmbedding, stack: Stack, readers: Sequence[Linear] = (), own: Own | None = None) -> None:
    """Fold the norms of a pre-norm stack, in place; a stack of another kind is left as it is.

    Norms and maps of unknown kinds are left too, and those that share parameters with others.
    entry: what the stack reads. readers: all that read its last norm; without any that is left as it is, as where an
    output reads it, which has far more columns for a bias than the norm.
    own: gives the parameter that may be changed in place of one that may not; None: all may.
    """
    if stack.norm is None or any(parameter.quantized for parameter in stack.parameters().values()):
        return  # before it was quantised, a stack was folded
    own = own or (lambda parameter: parameter)
    uses = Counter(parameter for _, parameter in stack._walk(""))

    def known(module: Module | None, kinds: Sequence[type]) -> bool:
        return type(module) in kinds and all(uses[each] <= 1 for each in module.parameters().values())

    places: list[tuple[Module, list]] = []  # owners of norms, and what reads these
    writers: list[Linear | None] = []
    for block in stack.blocks:
        for part in (each for each in vars(block).values() if isinstance(each, Module)):
            is_known = type(block) in (Block, DecoderBlock) and type(part) is Residual and part.pre_norm
            names = _MAPS.get(type(part.layer), ()) if is_known else ()
            maps = [getattr(part.layer, name) for name in names]
            places.append((part, maps[:1]))
            writers.append(maps[1] if maps else None)
    folded = [
        (owner, read)
        for owner, read in [*places, (stack, readers)]
        if read and known(owner.norm, _NORMS) and all(known(each, _LINEAR) for each in read)
    ]
    centres = all(place in folded and type(place[0].norm) is LayerNorm for place in places)
    centres = centres and type(stack.norm) is LayerNorm and all(known(writer, _LINEAR) for writer in writers)
    if centres:
        entry.dropout = Centring()  # dropout does nothing any more
        for writer in writers:
            writer.weight = own(writer.weight)
            writer.weight.data -= writer.weight.data.mean(axis=1, keepdims=True)
            if writer.bias is not None:
                writer.bias = _holding(writer.bias, writer.bias.data - writer.bias.data.mean())
    for owner, read in folded:
        for each in read:
            _scale_and_shift(each, owner.norm, own)
        owner.norm = _without_scale(owner.norm, centres)


def fold_copies(entry: InputEmbedding, stack: Stack, empty: Empty, joins: Callable[[], bool]) -> None:
    """Fold norms, and the 1/√K of attention, of modules whose parameters belong to others: into copies of those.

    For decoding steps: `is_scaled` tells them where 1/√K is done.  empty: gives memory. joins: says if matrices are to
    lie row after row with their biases, or zeros, below, so that one product multiplies a row by both; asked if needed.
    """
    copies: set[Parameter] = set()

    def own(parameter: Parameter) -> Parameter:
        if parameter in copies:
            return parameter
        found, dtype = copy.copy(parameter), parameter.data.dtype.type
        if joins():
            found.joined = empty((parameter.shape[0] + 1, parameter.shape[1]), dtype)
            found.data = found.joined[:-1]
        else:
            found.data = parameter.view(empty((parameter.size,), dtype))
        found.data[...] = parameter.data
        copies.add(found)
        return found

    fold_norms(entry, stack, own=own)
    layers = [getattr(part, "layer", None) for block in stack.blocks for part in vars(block).values()]
    for layer in [layer for layer in layers if type(layer) in _MAPS]:
        if not isinstance(layer, FeedForward):
            _fold_scale(layer, 1 / math.sqrt(layer.head_dim), own)
        for linear in [getattr(layer, name) for name in _MAPS[type(layer)]]:
            if not linear.weight.quantized and joins():
                linear.weight = own(linear.weight)
                linear.weight.joined[-1] = 0 if linear.bias is None else linear.bias.data
                linear.bias = linear.bias and _holding(linear.bias, linear.weight.joined[-1])


def _fold_scale(layer: SelfAttention | CrossAttention, scale: float, own: Own) -> None:
    """Multiply queries by their norm, or the map that they come from."""
    layer.is_scaled = True
    if norm := getattr(layer, "query_norm", None):
        norm.gain = _holding(norm.gain, norm.gain.data * norm.gain.data.dtype.type(scale))
        return
    queries = getattr(layer, _MAPS[type(layer)][0])
    factors = np.ones(queries.weight.shape[1], queries.weight.data.dtype)
    factors[: layer.num_heads * layer.head_dim] = scale
    if queries.weight.quantized:
        queries.weight = _holding(queries.weight, queries.weight.data.scaled(factors))
    else:
        queries.weight = own(queries.weight)
        queries.weight.data *= factors
    queries.bias = queries.bias and _holding(queries.bias, queries.bias.data * factors)


def _scale_and_shift(reader: Linear, norm: Norm, own: Own) -> None:
    """Let a map do what a norm does to what it has normalised."""
    reader.weight = own(reader.weight)
    weight = reader.weight.data
    if isinstance(norm, LayerNorm) and norm.bias is not None:
        shift, bias = norm.bias.data @ weight, reader.bias or Parameter((weight.shape[1],), zeros)
        reader.bias = _holding(bias, shift if reader.bias is None else shift + reader.bias.data)
    weight *= norm.gain.data[:, None] * weight.dtype.type(math.sqrt(len(weight)))


def _without_scale(norm: Norm, is_centred: bool) -> Norm:
    """Make the norm that is left."""
    width = len(norm.gain.data)
    keeps_mean = is_centred or isinstance(norm, RMSNorm)
    found = RMSNorm(width, norm.eps) if keeps_mean else LayerNorm(width, bias=False, eps=norm.eps)
    found.gain = _holding(norm.gain, np.full_like(norm.gain.data, 1 / math.sqrt(width)))
    return found


def _holding(parameter: Parameter, values: Array | Int8Matrix) -> Parameter:
    """Make a parameter like another one, with values of its own."""
    found = copy.copy(parameter)
    found.data = values
    return found
