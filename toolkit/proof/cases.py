"""The cases of the check: every pair of `toolkit.functional`, with arguments that leave no branch of it out."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from functools import partial, wraps
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.activation import (
    ACTIVATIONS,
    activated_linear,
    activated_linear_backward,
    gated_linear,
    gated_linear_backward,
)
from toolkit.functional.arrays import Array
from toolkit.functional.attention import attention, attention_backward, causal_attention, causal_attention_backward
from toolkit.functional.dropout import dropout, dropout_backward
from toolkit.functional.embedding import embedding, embedding_backward
from toolkit.functional.linear import linear, linear_backward
from toolkit.functional.losses import (
    clipped_policy,
    clipped_policy_backward,
    clipped_value,
    clipped_value_backward,
    preference_loss,
    preference_loss_backward,
    squared_error,
    squared_error_backward,
)
from toolkit.functional.norms import layer_norm, layer_norm_backward, rms_norm, rms_norm_backward
from toolkit.functional.output_loss import output_loss, output_loss_backward, token_log_probs, token_log_probs_backward
from toolkit.functional.positions import rotary, rotary_backward, rotary_frequencies, rotary_table
from toolkit.proof.gradient_check import Report, check

SEQUENCE = 8  # rows of each sequence, where rows are those of several
SCALE = 256 / 230  # of dropout

Make = Callable[[np.random.Generator, type], Sequence[Any]]  # (rng, dtype) -> arguments of the forward


class Case(NamedTuple):
    """A pair with arguments for it.  adapted: makes of a backward of the pair one that `check` can call."""

    name: str
    forward: Callable
    backward: Callable
    arguments: Make
    constants: tuple[str, ...] = ()  # names of arguments of floats that are not differentiated
    adapted: Callable[[Callable], Callable] = lambda backward: backward

    def check(self, seed: int = 0, backward: Callable | None = None) -> Report:
        """Check the pair with numbers that depend on the seed and the case's name alone.

        backward: another one in the place of the pair's own, such as a wrong one.
        """
        rng = np.random.default_rng([seed, zlib.crc32(self.name.encode())])
        arguments = self.arguments(rng, np.float64)
        derivative = self.adapted(backward or self.backward)
        return check(self.forward, derivative, arguments, constants=self.constants, seed=rng)


def pair_name(backward: Callable) -> str:
    """Return the name of the pair that a backward belongs to."""
    return backward.__name__.removesuffix("_backward")


def normal(rng: np.random.Generator, dtype: type, *shapes: tuple[int, ...]) -> list[Array]:
    """Draw arrays of these shapes, of independent normal numbers."""
    return [rng.standard_normal(shape).astype(dtype) for shape in shapes]


def _affine(rows: int, width: int, outputs: int, bias: bool, function: list, mask: int, rng, dtype) -> list:
    """Draw an affine map, perhaps a function of it, and where `mask` is above 0, dropout of that many columns."""
    x, weight, shift = normal(rng, dtype, (rows, width), (width, outputs), (outputs,))
    dropped = [rng.random((rows, mask)) < 0.7, SCALE] if mask else []
    return [x, weight, shift if bias else None, *function, *dropped]


def _layer_norm(width: int, with_bias: bool, rng, dtype) -> list:
    x, gain, bias = normal(rng, dtype, (9, width), (width,), (width,))
    x *= np.array([[0.3], [1], [4]] * 3, dtype)  # rows of different spread
    x += 2
    return [x, gain, bias if with_bias else None, 1e-3]


def _rms_norm(width: int, rng, dtype) -> list:
    x, gain = normal(rng, dtype, (9, width), (width,))
    x *= np.array([[0.3], [1], [4]] * 3, dtype)  # rows of different size, and not around 0
    x += 1
    return [x, gain, 1e-3]


def _rotary(scale: float, rng, dtype) -> list:
    """Draw rows of several sequences, so that positions begin again; a base that turns all planes visibly."""
    tables = rotary_table(10, rotary_frequencies(6, 20.0), scale, dtype)
    return [*normal(rng, dtype, (7, 2, 6)), *(table[[0, 1, 2, 3, 0, 1, 9]] for table in tables)]


def _strided_rotary(x: Array, cosine: Array, sine: Array) -> tuple[Array, Any]:
    return rotary(part_of_a_wider_array(x), cosine, sine)


def part_of_a_wider_array(x: Array) -> Array:
    """Copy (..., H, K) to the middle of (..., 3, H, K) -> a view of that, as the parts of a joint projection are."""
    return np.stack([x, x, x], axis=-3)[..., 1, :, :]


def _dropout(rng, dtype) -> list:
    mask = rng.random((6, 5)) < 0.7
    return [*normal(rng, dtype, (6, 5)), mask, SCALE]


def _embedding(ids: list[int], scale: float, rng, dtype) -> list:
    others, table = normal(rng, dtype, (6, 3), (6, 3))
    return [others, np.array(ids, np.int64), table, scale]


def _embedding_beside_others(others: Array, ids: Array, table: Array, scale: float) -> tuple[Array, Any]:
    """Look up rows; others: what other contributions have left in the table's gradient, and find there again."""
    y, saved = embedding(ids, table, scale)
    return y, (saved, others)


def _into_table(backward: Callable) -> Callable:
    def derivative(dy, saved):
        saved, others = saved
        gradient = others.copy()
        backward(dy, saved, gradient)
        return (gradient - others,)

    return derivative


def _layer_cases() -> Iterator[Case]:
    masks = ((True, "dropout"), (False, "no dropout"))
    for bias, named in ((True, "bias"), (False, "no bias")):
        yield Case(f"linear, {named}", linear, linear_backward, partial(_affine, 5, 3, 4, bias, [], 0))
        for dropped, mask in masks:
            arguments = partial(_affine, 6, 3, 8, bias, [], 4 * dropped)
            yield Case(f"gated_linear, {mask}, {named}", gated_linear, gated_linear_backward, arguments)
        for width in (5, 8):
            arguments = partial(_layer_norm, width, bias)
            yield Case(f"layer_norm, width {width}, {named}", layer_norm, layer_norm_backward, arguments)
        for activation, (dropped, mask) in product(ACTIVATIONS, masks):
            arguments = partial(_affine, 6, 3, 5, bias, [activation], 5 * dropped)
            yield Case(f"{activation}, {mask}, {named}", activated_linear, activated_linear_backward, arguments)
    yield Case("linear, two sequences", linear, linear_backward, partial(_affine, 2 * SEQUENCE, 3, 4, True, [], 0))
    for width in (5, 8):
        yield Case(f"rms_norm, width {width}", rms_norm, rms_norm_backward, partial(_rms_norm, width))
    for name, forward, scale in (
        ("rotary, strided", _strided_rotary, 1.0),
        ("rotary", rotary, 1.0),
        ("rotary, scaled", rotary, 1.3),
    ):
        yield Case(name, forward, rotary_backward, partial(_rotary, scale), ("cosine", "sine"))
    for name, ids, scale in (("duplicates", [4, 1, 4, 0, 4, 1], 1.0), ("scaled", [5, 5, 2], 2.5)):
        own = _embedding_beside_others, embedding_backward, partial(_embedding, ids, scale)
        yield Case(f"embedding, {name}", *own, ("others",), _into_table)
    yield Case("dropout", dropout, dropout_backward, _dropout)


def causal(keys: int, queries: int) -> Array:
    """Make a mask (1, 1, S, T) whose last query sees all keys."""
    return (np.arange(keys)[:, None] <= np.arange(queries) + keys - queries)[None, None]


def ragged(keys: int, _queries: int) -> Array:
    """Make a mask (B, 1, S, 1): the second of three sequences has one key, the third lacks one."""
    return (np.arange(keys) < np.array([[keys], [1], [keys - 1]]))[:, None, :, None]


def _attention(
    queries: int, keys: int, visibility: Callable | None, dropped: bool, large: bool, heads: Sequence[int], rng, dtype
) -> list:
    """Draw queries, keys and values, with masks.  heads: of queries, and of keys and values."""
    lengths = ((queries, heads[0]), (keys, heads[1]), (keys, heads[1]))
    query, key, value = normal(rng, dtype, *((3, length, count, 4) for length, count in lengths))
    if large:
        for argument in (query, key):  # scores near 8 · 8 · 4 / √4 = 128, which differ by about 3
            argument *= 0.2
            argument += 8
        key[:, -1] *= 3  # a key that outshines the others, invisible to most
    dropout = [rng.random((3, heads[0], keys, queries)) < 0.7, SCALE] if dropped else []
    return [query, key, value, visibility(keys, queries) if visibility else None, *dropout]


def _causal_attention(length: int, dropped: bool, heads: Sequence[int], rng, dtype) -> list:
    given = normal(rng, dtype, *((2, length, count, 2) for count in (heads[0], heads[1], heads[1])))
    return [*given, rng.random((2, heads[0], length, length)) < 0.7, SCALE] if dropped else given


def _strided_attention(query: Array, key: Array, value: Array, visible: Array, mask=None, scale=1.0) -> tuple:
    """Run attention whose arguments and results are parts of wider arrays."""
    given, parts = (query, key, value), [part_of_a_wider_array(each) for each in (query, key, value)]
    out = part_of_a_wider_array(query)
    context, saved = attention(*parts, visible, mask, scale, out)
    _check_places([out], [context])
    return context, (saved, given, parts)


def _into_parts(backward: Callable) -> Callable:
    def derivative(dcontext, saved):
        saved, given, parts = saved
        out = tuple(part_of_a_wider_array(each) for each in parts)
        gradients = backward(dcontext, saved, out)
        _check_places(out, gradients)
        if not all(np.array_equal(one, other) for one, other in zip(given, parts, strict=True)):
            raise AssertionError("attention writes to its arguments")
        return gradients

    return derivative


def _check_places(given: Sequence[Array], found: Sequence[Array]) -> None:
    """Raise AssertionError where results are not the very arrays that were given for them."""
    if not all(one is other for one, other in zip(given, found, strict=True)):
        raise AssertionError("a result is not where it was to be written")


def _attention_cases() -> Iterator[Case]:
    plain, causal_pair = (attention, attention_backward), (causal_attention, causal_attention_backward)
    for dropped in (True, False):
        named = "dropout" if dropped else "no dropout"
        for length, keys, visibility in ((4, 4, None), (4, 4, causal), (2, 5, causal), (3, 5, ragged), (1, 1, None)):
            seen = visibility.__name__ if visibility else "all"
            for large in (False, True):
                name = f"attention, {length} x {keys} {seen}, {named}{', large scores' if large else ''}"
                yield Case(name, *plain, partial(_attention, length, keys, visibility, dropped, large, (2, 2)))
        yield _strided(f"attention, 3 x 5 ragged, {named}", partial(_attention, 3, 5, ragged, dropped, False, (2, 2)))
        for length in (1, 5, 130):
            arguments = partial(_causal_attention, length, dropped, (2, 2))
            yield Case(f"causal_attention, {length}, {named}", *causal_pair, arguments)
        grouped = partial(_causal_attention, 129, dropped, (4, 2))
        yield Case(f"causal_attention, 4 heads on 2, {named}", *causal_pair, grouped)
        for heads in ((4, 2), (3, 1)):
            name = f"attention, {heads[0]} heads on {heads[1]}, {named}"
            yield Case(name, *plain, partial(_attention, 4, 4, causal, dropped, False, heads))
            yield _strided(name, partial(_attention, 3, 5, ragged, dropped, False, heads))


def _strided(name: str, arguments: Make) -> Case:
    return Case(f"{name}, strided", _strided_attention, attention_backward, arguments, (), _into_parts)


def _first(forward: Callable) -> Callable:
    """Make a forward that returns the first of its results alone: of the sums of a loss, the loss."""

    @wraps(forward)
    def first(*arguments):
        results, saved = forward(*arguments)
        return results[0], saved

    return first


def _output_loss(bias: bool, smoothing: float, rng, dtype) -> list:
    x, weight, shift = normal(rng, dtype, (7, 3), (6, 3), (6,))
    prior = np.array([0, 0.3, 0.2, 0.4, 0, 0.1], dtype)
    labels = np.array([1, 3, 3, 5, 1, 2, 5])
    return [x, weight, shift if bias else None, labels, smoothing, prior if smoothing else None]


def _token_log_probs(bias: bool, temperature: float, excluded: list[int] | None, rng, dtype) -> list:
    x, weight, shift = normal(rng, dtype, (7, 3), (6, 3), (6,))
    return [x, weight, shift if bias else None, np.array([1, 3, 3, 5, 1, 3, 5]), temperature, excluded]


def _preference_loss(scale: float, rng, dtype) -> list:
    chosen, rejected = normal(rng, dtype, (6,), (6,))
    chosen += np.array([0, 0, 3, -3, 0, 0], dtype)  # sure and right, sure and wrong
    return [chosen, rejected, scale]


def _clipped_policy(rng, dtype) -> list:
    """Draw ratios within and beyond the clip on both sides, each with advantages of both signs."""
    ratios = np.repeat([0.4, 0.7, 0.9, 1.1, 1.3, 2.5], 2) * np.exp(rng.uniform(-0.05, 0.05, 12))
    old, advantages = normal(rng, dtype, (12,), (12,))
    advantages = np.abs(advantages) * np.tile(np.array([1, -1], dtype), 6)
    return [old + np.log(ratios).astype(dtype), old, advantages, 0.2]


def _clipped_value(rng, dtype) -> list:
    """Draw values near the old ones and far from them, returns on either side and between."""
    moves = np.repeat([-1.5, -0.6, -0.1, 0.1, 0.6, 1.5], 3) + rng.uniform(-0.05, 0.05, 18)
    old = normal(rng, dtype, (18,))[0]
    return [old + moves.astype(dtype), old, old + np.tile(np.array([-2, 0.4, 2], dtype), 6), 0.3]


def _loss_cases() -> Iterator[Case]:
    for bias in (True, False):
        named = "bias" if bias else "no bias"
        for smoothing in (0.0, 0.1):
            own = _first(output_loss), output_loss_backward, partial(_output_loss, bias, smoothing)
            yield Case(f"output_loss, smoothing {smoothing}, {named}", *own, ("prior",))
        for temperature, excluded in ((1.0, None), (0.6, [0, 2])):
            arguments = partial(_token_log_probs, bias, temperature, excluded)
            name = f"token_log_probs, temperature {temperature}, {named}"
            yield Case(name, _first(token_log_probs), token_log_probs_backward, arguments)
    own = squared_error, squared_error_backward, lambda rng, dtype: normal(rng, dtype, (4, 3), (4, 3))
    yield Case("squared_error", *own, ("target",))
    for scale in (1.0, 0.3):
        own = preference_loss, preference_loss_backward, partial(_preference_loss, scale)
        yield Case(f"preference_loss, scale {scale}", *own)
    own = _first(clipped_policy), clipped_policy_backward, _clipped_policy
    yield Case("clipped_policy", *own, ("old", "advantages"))
    yield Case("clipped_value", clipped_value, clipped_value_backward, _clipped_value, ("old", "returns"))


CASES = [*_layer_cases(), *_attention_cases(), *_loss_cases()]


def find_case(name: str) -> Case:
    """Return the case of that name.  Raises StopIteration where there is none."""
    return next(each for each in CASES if each.name == name)
