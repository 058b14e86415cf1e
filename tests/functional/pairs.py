"""Every pair of `toolkit.functional`, with arguments that leave no branch of it out."""

from collections.abc import Callable, Iterator

import numpy as np

from tests.functional.cases import Case, Check, arrays, present
from tests.functional.preference_pairs import preference_cases
from toolkit.functional.activation import ACTIVATIONS, activated_linear, activated_linear_backward
from toolkit.functional.arrays import Array
from toolkit.functional.attention import attention, attention_backward
from toolkit.functional.causal_attention import causal_attention, causal_attention_backward
from toolkit.functional.dropout import dropout, dropout_backward
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.gated import gated_linear, gated_linear_backward
from toolkit.functional.layer_norm import layer_norm, layer_norm_backward
from toolkit.functional.linear import linear, linear_backward
from toolkit.functional.mean_squared_error import squared_error, squared_error_backward
from toolkit.functional.output_loss import output_loss, output_loss_backward
from toolkit.functional.rms_norm import rms_norm, rms_norm_backward
from toolkit.functional.rotary import rotary, rotary_backward, rotary_table

SCALE = 256 / 230  # of dropout


def _linear(with_bias: bool) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (5, 3), (3, 4), (4,))[: 2 + with_bias]
        return Check(
            lambda x, weight, bias=None: linear(x, weight, bias),
            lambda dy, saved: present(backward(dy, saved), with_bias),
            arguments,
            [],
        )

    return make


def _activated_linear(activation: str, with_bias: bool, with_mask: bool) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (6, 3), (3, 5), (5,))[: 2 + with_bias]
        mask = rng.random((6, 5)) < 0.7 if with_mask else None
        scale = SCALE if with_mask else 1.0
        return Check(
            lambda x, weight, bias=None: activated_linear(x, weight, bias, activation, mask, scale),
            lambda dy, saved: present(backward(dy, saved), with_bias),
            arguments,
            [mask] if with_mask else [],
        )

    return make


def _gated_linear(with_bias: bool, with_mask: bool) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (6, 3), (3, 8), (8,))[: 2 + with_bias]
        mask = rng.random((6, 4)) < 0.7 if with_mask else None
        scale = SCALE if with_mask else 1.0
        return Check(
            lambda x, weight, bias=None: gated_linear(x, weight, bias, mask, scale),
            lambda dy, saved: present(backward(dy, saved), with_bias),
            arguments,
            [mask] if with_mask else [],
        )

    return make


def _embedding(ids: list[int], scale: float) -> Callable:
    def make(rng, dtype, backward):
        ids_array, before = np.array(ids, dtype=np.int64), arrays(rng, dtype, (6, 3))[0]

        def into_table(dy, saved):
            gradient = before.copy()  # what other contributions have left there stays
            backward(dy, saved, gradient)
            return (gradient - before,)

        return Check(
            lambda table: embedding(ids_array, table, scale), into_table, arrays(rng, dtype, (6, 3)), [ids_array]
        )

    return make


def _layer_norm(width: int, with_bias: bool) -> Callable:
    def make(rng, dtype, backward):
        x, gain, bias = arrays(rng, dtype, (9, width), (width,), (width,))
        x *= np.array([[0.3], [1], [4]] * 3, dtype)  # rows of different spread
        x += 2
        return Check(
            lambda x, gain, bias=None: layer_norm(x, gain, bias, 1e-3),
            lambda dy, saved: present(backward(dy, saved), with_bias),
            [x, gain, bias][: 2 + with_bias],
            [],
        )

    return make


def _rms_norm(width: int) -> Callable:
    def make(rng, dtype, backward):
        x, gain = arrays(rng, dtype, (9, width), (width,))
        x *= np.array([[0.3], [1], [4]] * 3, dtype)  # rows of different size, and not around 0
        x += 1
        return Check(lambda x, gain: rms_norm(x, gain, 1e-3), backward, [x, gain], [])

    return make


def _rotary(strided: bool) -> Callable:
    """Rows of several sequences, so that positions begin again; a base that turns all planes visibly."""

    def make(rng, dtype, backward):
        cosine, sine = (table[[0, 1, 2, 3, 0, 1, 9]] for table in rotary_table(10, 6, 20.0, dtype))
        x = arrays(rng, dtype, (1, 7, 2, 6))[0]
        x = _as_part_of_a_wider_array(x)[0] if strided else x[0]
        return Check(lambda x: rotary(x, cosine, sine), backward, [x], [cosine, sine])

    return make


def _dropout(rng, dtype, backward):
    mask = rng.random((6, 5)) < 0.7
    return Check(lambda x: dropout(x, mask, SCALE), backward, arrays(rng, dtype, (6, 5)), [mask])


def causal(keys: int, queries: int) -> Array:
    """(1, 1, S, T): the last query sees all keys."""
    return (np.arange(keys)[:, None] <= np.arange(queries) + keys - queries)[None, None]


def ragged(keys: int, _queries: int) -> Array:
    """(B, 1, S, 1): the second of three sequences has one key, the third lacks one."""
    return (np.arange(keys) < np.array([[keys], [1], [keys - 1]]))[:, None, :, None]


def _attention(
    queries: int, keys: int, visibility: Callable | None, with_mask: bool, strided=False, large=False, heads=(2, 2)
):
    """heads: of queries, and of keys and values."""
    batch, (heads, groups), width = 3, heads, 4

    def make(rng, dtype, backward):
        shapes = [(batch, queries, heads, width), *[(batch, keys, groups, width)] * 2]
        arguments = arrays(rng, dtype, *shapes)
        if large:
            for argument in arguments[:2]:  # scores near 8 · 8 · 4 / √4 = 128, which differ by about 3
                argument *= 0.2
                argument += 8
            arguments[1][:, -1] *= 3  # a key that outshines the others, invisible to most
        if strided:
            arguments = [_as_part_of_a_wider_array(argument) for argument in arguments]
        visible = visibility(keys, queries) if visibility else None
        mask = rng.random((batch, heads, keys, queries)) < 0.7 if with_mask else None
        scale = SCALE if with_mask else 1.0

        def backward_into(dcontext, saved):
            out = tuple(_as_part_of_a_wider_array(argument) for argument in arguments) if strided else None
            gradients = backward(dcontext, saved, out)
            assert out is None or all(given is found for given, found in zip(out, gradients, strict=True))
            return gradients

        def forward(query, key, value):
            out = _as_part_of_a_wider_array(query) if strided else None
            context, saved = attention(query, key, value, visible, mask, scale, out)
            assert out is None or context is out
            return context, saved

        constants = [array for array in (visible, mask) if array is not None]
        return Check(forward, backward_into, arguments, constants)

    return make


def _causal_attention(length: int, with_mask: bool, heads=(2, 2)):
    """heads: of queries, and of keys and values."""
    batch, (heads, groups), width = 2, heads, 2

    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (batch, length, heads, width), *[(batch, length, groups, width)] * 2)
        mask = rng.random((batch, heads, length, length)) < 0.7 if with_mask else None
        scale = SCALE if with_mask else 1.0
        constants = [mask] if with_mask else []
        return Check(lambda *parts: causal_attention(*parts, mask, scale), backward, arguments, constants)

    return make


def _as_part_of_a_wider_array(x: Array) -> Array:
    """A copy of (B, T, H, K) that is a view of some columns of (B·T, 3·H·K), as the parts of a joint projection are."""
    batch, length, heads, width = x.shape
    wide = np.zeros((batch * length, 3 * heads * width), x.dtype)
    view = np.split(wide, 3, axis=1)[1].reshape(x.shape)
    assert np.shares_memory(view, wide)
    view[...] = x
    return view


def _output_loss(with_bias: bool, smoothing: float) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (7, 3), (6, 3), (6,))[: 2 + with_bias]
        labels = np.array([1, 3, 3, 5, 1, 2, 5])
        prior = np.array([0, 0.3, 0.2, 0.4, 0, 0.1], dtype)

        def forward(x, weight, bias=None):
            sums, saved = output_loss(x, weight, bias, labels, smoothing, prior if smoothing else None)
            return sums.loss, saved

        return Check(
            forward, lambda dy, saved: present(backward(float(dy), saved), with_bias), arguments, [labels, prior]
        )

    return make


def _squared_error(rng, dtype, backward):
    prediction, target = arrays(rng, dtype, (4, 3), (4, 3))
    return Check(
        lambda x: squared_error(x, target), lambda dy, saved: backward(float(dy), saved), [prediction], [target]
    )


def _cases() -> Iterator[Case]:
    for bias in (True, False):
        named = "bias" if bias else "no bias"
        yield Case(f"linear, {named}", linear_backward, _linear(bias))
        for mask in (True, False):
            name = f"gated_linear, {'dropout' if mask else 'no dropout'}, {named}"
            yield Case(name, gated_linear_backward, _gated_linear(bias, mask))
        for width in (5, 8):
            yield Case(f"layer_norm, width {width}, {named}", layer_norm_backward, _layer_norm(width, bias))
        for smoothing in (0.0, 0.1):
            make = _output_loss(bias, smoothing)
            yield Case(f"output_loss, smoothing {smoothing}, {named}", output_loss_backward, make)
        for activation in ACTIVATIONS:
            for mask in (True, False):
                name = f"{activation}, {'dropout' if mask else 'no dropout'}, {named}"
                yield Case(name, activated_linear_backward, _activated_linear(activation, bias, mask))
    for width in (5, 8):
        yield Case(f"rms_norm, width {width}", rms_norm_backward, _rms_norm(width))
    for strided in (True, False):
        yield Case(f"rotary{', strided' if strided else ''}", rotary_backward, _rotary(strided))
    yield Case("embedding, duplicates", embedding_backward, _embedding([4, 1, 4, 0, 4, 1], 1.0))
    yield Case("embedding, scaled", embedding_backward, _embedding([5, 5, 2], 2.5))
    yield Case("dropout", dropout_backward, _dropout)
    yield Case("squared_error", squared_error_backward, _squared_error)
    for mask in (True, False):
        named = "dropout" if mask else "no dropout"
        for length, keys, visibility in ((4, 4, None), (4, 4, causal), (2, 5, causal), (3, 5, ragged), (1, 1, None)):
            seen = visibility.__name__ if visibility else "all"
            for large in (False, True):
                name = f"attention, {length} x {keys} {seen}, {named}{', large scores' if large else ''}"
                yield Case(name, attention_backward, _attention(length, keys, visibility, mask, large=large))
        name = f"attention, 3 x 5 ragged, {named}, strided"
        yield Case(name, attention_backward, _attention(3, 5, ragged, mask, strided=True))
        for length in (1, 5, 130):
            name = f"causal_attention, {length}, {named}"
            yield Case(name, causal_attention_backward, _causal_attention(length, mask))
        grouped = _causal_attention(129, mask, heads=(4, 2))
        yield Case(f"causal_attention, 4 heads on 2, {named}", causal_attention_backward, grouped)
        for heads in ((4, 2), (3, 1)):
            name = f"attention, {heads[0]} heads on {heads[1]}, {named}"
            yield Case(name, attention_backward, _attention(4, 4, causal, mask, heads=heads))
            strided = _attention(3, 5, ragged, mask, strided=True, heads=heads)
            yield Case(f"{name}, strided", attention_backward, strided)


CASES = [*_cases(), *preference_cases()]


def case(name: str) -> Case:
    return next(each for each in CASES if each.name == name)
