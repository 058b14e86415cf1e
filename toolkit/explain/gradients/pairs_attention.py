"""The two pairs of attention: all masks, both sizes of scores, shared heads, parts of wider arrays."""

from collections.abc import Callable, Iterator

import numpy as np

from toolkit.explain.gradients.pair_case import Case, Check, arrays
from toolkit.functional.arrays import Array
from toolkit.functional.attention import attention, attention_backward
from toolkit.functional.causal_attention import causal_attention, causal_attention_backward

SCALE = 256 / 230  # of dropout


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
            arguments = [as_part_of_a_wider_array(argument) for argument in arguments]
        visible = visibility(keys, queries) if visibility else None
        mask = rng.random((batch, heads, keys, queries)) < 0.7 if with_mask else None
        scale = SCALE if with_mask else 1.0

        def backward_into(dcontext, saved):
            out = tuple(as_part_of_a_wider_array(argument) for argument in arguments) if strided else None
            gradients = backward(dcontext, saved, out)
            _check_place(out, gradients)
            return gradients

        def forward(query, key, value):
            out = as_part_of_a_wider_array(query) if strided else None
            context, saved = attention(query, key, value, visible, mask, scale, out)
            _check_place(None if out is None else (out,), (context,))
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
        return Check(
            lambda query, key, value: causal_attention(query, key, value, mask, scale), backward, arguments, constants
        )

    return make


def _check_place(given: tuple[Array, ...] | None, found: tuple[Array, ...]) -> None:
    """Raises AssertionError where results are not the very arrays that were given for them."""
    if given is not None and not all(one is other for one, other in zip(given, found, strict=True)):
        raise AssertionError("a result is not where it was to be written")


def as_part_of_a_wider_array(x: Array) -> Array:
    """A copy of (B, T, H, K) that is a view of some columns of (B·T, 3·H·K), as the parts of a joint projection are."""
    batch, length, heads, width = x.shape
    wide = np.zeros((batch * length, 3 * heads * width), x.dtype)
    view = np.split(wide, 3, axis=1)[1].reshape(x.shape)
    view[...] = x
    return view


def attention_cases() -> Iterator[Case]:
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
