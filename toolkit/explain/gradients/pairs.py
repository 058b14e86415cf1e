"""Every pair of `toolkit.functional`, with arguments that leave no branch of it out."""

from collections.abc import Callable, Iterator

import numpy as np

from toolkit.explain.gradients.pair_case import Case, Check, arrays, present
from toolkit.explain.gradients.pair_residual import RESIDUAL
from toolkit.explain.gradients.pairs_attention import SCALE, as_part_of_a_wider_array, attention_cases
from toolkit.explain.gradients.pairs_losses import loss_cases
from toolkit.functional.activation import ACTIVATIONS, activated_linear, activated_linear_backward
from toolkit.functional.dropout import dropout, dropout_backward
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.gated import gated_linear, gated_linear_backward
from toolkit.functional.layer_norm import layer_norm, layer_norm_backward
from toolkit.functional.linear import linear, linear_backward
from toolkit.functional.rms_norm import rms_norm, rms_norm_backward
from toolkit.functional.rotary import rotary, rotary_backward, rotary_table

SEQUENCE = 8  # rows of each sequence, where rows are those of several


def _linear(with_bias: bool, rows: int = 5) -> Callable:
    def make(rng, dtype, backward):
        arguments = arrays(rng, dtype, (rows, 3), (3, 4), (4,))[: 2 + with_bias]
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
        x = as_part_of_a_wider_array(x)[0] if strided else x[0]
        return Check(lambda x: rotary(x, cosine, sine), backward, [x], [cosine, sine])

    return make


def _dropout(rng, dtype, backward):
    mask = rng.random((6, 5)) < 0.7
    return Check(lambda x: dropout(x, mask, SCALE), backward, arrays(rng, dtype, (6, 5)), [mask])


def _layer_cases() -> Iterator[Case]:
    for bias in (True, False):
        named = "bias" if bias else "no bias"
        yield Case(f"linear, {named}", linear_backward, _linear(bias))
        for mask in (True, False):
            name = f"gated_linear, {'dropout' if mask else 'no dropout'}, {named}"
            yield Case(name, gated_linear_backward, _gated_linear(bias, mask))
        for width in (5, 8):
            yield Case(f"layer_norm, width {width}, {named}", layer_norm_backward, _layer_norm(width, bias))
        for activation in ACTIVATIONS:
            for mask in (True, False):
                name = f"{activation}, {'dropout' if mask else 'no dropout'}, {named}"
                yield Case(name, activated_linear_backward, _activated_linear(activation, bias, mask))
    yield Case("linear, two sequences", linear_backward, _linear(True, 2 * SEQUENCE))
    for width in (5, 8):
        yield Case(f"rms_norm, width {width}", rms_norm_backward, _rms_norm(width))
    for strided in (True, False):
        yield Case(f"rotary{', strided' if strided else ''}", rotary_backward, _rotary(strided))
    yield Case("embedding, duplicates", embedding_backward, _embedding([4, 1, 4, 0, 4, 1], 1.0))
    yield Case("embedding, scaled", embedding_backward, _embedding([5, 5, 2], 2.5))
    yield Case("dropout", dropout_backward, _dropout)


CASES = [*_layer_cases(), *attention_cases(), *loss_cases()]


def case(name: str) -> Case:
    return next(each for each in [*CASES, RESIDUAL] if each.name == name)
