"""Backwards that are wrong, each in a way that people get wrong: what the check must find.

The founding document 001 lists four that "90% of repositories" have; the others are slips of the same kind. Each takes
what the right one takes, and every formula here is to be read against the right one's.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from inspect import getdoc
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.activation import silu
from toolkit.functional.arrays import Array
from toolkit.functional.attention import attention_backward
from toolkit.functional.positions import rotary
from toolkit.proof.cases import SEQUENCE, find_case


class Wrong(NamedTuple):
    """A wrong backward, and the case of the right one in whose place it is checked."""

    case: str
    backward: Callable
    printed: tuple[str, str, str] | None = None  # in a founding document: the document, the place, the formula

    @property
    def name(self) -> str:
        return self.backward.__name__.replace("_", " ")

    @property
    def about(self) -> str:
        """Return the first line of its docstring: what it does instead."""
        return (getdoc(self.backward) or "").splitlines()[0]


def layer_norm_without_its_averages(dy, saved, empty=np.empty):
    """Takes mean and variance for constants: dx = dnormal / std."""
    normal, inverse_std, gain, has_bias = saved
    return dy * gain * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0) if has_bias else None


def layer_norm_of_document_000(dy, saved):
    """The formula as it is printed: the mean's gradient lacks the sum over the row in its first term."""
    normal, inverse_std, gain, _ = saved
    dnormal = dy * gain
    dmean = -dnormal * inverse_std  # the second term is 0; right is the sum of the first over the row
    along_normal = (dnormal * normal).mean(axis=1, keepdims=True)  # -std g_σ² D / 2 in the document's names
    dx = dnormal * inverse_std - normal * along_normal * inverse_std + dmean / dy.shape[1]
    return dx, (dy * normal).sum(axis=0), dy.sum(axis=0)


def layer_norm_without_mean(dy, saved):
    """Takes the mean for a constant: dx lacks - mean(dnormal) / std."""
    normal, inverse_std, gain, _ = saved
    dnormal = dy * gain
    dx = dnormal - normal * (dnormal * normal).mean(axis=1, keepdims=True)
    return dx * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def layer_norm_without_variance(dy, saved):
    """Takes the variance for a constant: dx lacks - normal mean(dnormal normal) / std."""
    normal, inverse_std, gain, _ = saved
    dnormal = dy * gain
    return (dnormal - dnormal.mean(axis=1, keepdims=True)) * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def layer_norm_that_forgets_its_gain(dy, saved):
    """Takes dy for dnormal: right wherever the gain is 1, as it is in a fresh model."""
    normal, inverse_std, _, _ = saved
    dx = dy - dy.mean(axis=1, keepdims=True) - normal * (dy * normal).mean(axis=1, keepdims=True)
    return dx * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def rms_norm_that_takes_its_root_for_a_constant(dy, saved):
    """dx = dnormal / root."""
    normal, inverse_root, gain = saved
    return dy * gain * inverse_root, (dy * normal).sum(axis=0)


def rms_norm_with_the_mean_of_layer_norm(dy, saved):
    """Takes away a mean that the forward never took away."""
    normal, inverse_root, gain = saved
    dnormal = dy * gain
    dx = dnormal - dnormal.mean(axis=1, keepdims=True) - normal * (dnormal * normal).mean(axis=1, keepdims=True)
    return dx * inverse_root, (dy * normal).sum(axis=0)


def rms_norm_that_forgets_its_gain(dy, saved):
    """Takes dy for dnormal: right wherever the gain is 1."""
    normal, inverse_root, _ = saved
    return (dy - normal * (dy * normal).mean(axis=1, keepdims=True)) * inverse_root, (dy * normal).sum(axis=0)


def rotary_that_turns_further(dy, saved):
    """Turns by the angle once more instead of back."""
    return rotary(dy, *saved)[:1]


def rotary_that_turns_neighbours(dy, saved):
    """Turns back, but the paper's planes, 2i and 2i + 1, and not those of the forward, i and i + K/2."""
    cosine, sine = (table[:, None] for table in saved)
    dx = np.empty_like(dy)
    dx[..., 0::2] = dy[..., 0::2] * cosine + dy[..., 1::2] * sine
    dx[..., 1::2] = dy[..., 1::2] * cosine - dy[..., 0::2] * sine
    return (dx,)


def gate_whose_slope_is_left_out(dy, saved):
    """Takes the gradient of silu(g) for that of g."""
    x, weight, _, _ = saved
    gate, up = np.split(x @ weight, 2, axis=1)
    silu(gate)
    factors = np.concatenate((dy * up, dy * gate), axis=1)
    return factors @ weight.T, x.T @ factors, None


def gate_that_gets_no_gradient(dy, saved):
    """Takes silu(g) for a constant."""
    x, weight, _, factors = saved
    factors = np.concatenate((np.zeros_like(dy), dy * factors[:, dy.shape[1] :]), axis=1)
    return factors @ weight.T, x.T @ factors, None


def linear_of_the_first_sequence(dy, saved, empty=np.empty, dweight=None):
    """Forgets the batch: the sums over rows that are dW and db end with the first sequence.

    That is what becomes of a loop over the batch with = in the place of +=, or of x[0] where x was meant.
    """
    x, weight, has_bias = saved
    first = slice(0, SEQUENCE)
    return dy @ weight.T, x[first].T @ dy[first], dy[first].sum(axis=0) if has_bias else None


def linear_with_means_for_sums(dy, saved, empty=np.empty, dweight=None):
    """Divides by the number of rows once more, though the loss was divided already: dW = xᵀ dy / N, db = dy's mean."""
    x, weight, has_bias = saved
    return dy @ weight.T, x.T @ dy / len(x), dy.mean(axis=0) if has_bias else None


def linear_with_the_mean_of_its_bias(dy, saved):
    """Divides db alone by the number of rows."""
    x, weight, _ = saved
    return dy @ weight.T, x.T @ dy, dy.mean(axis=0)


def attention_without_the_jacobian_of_softmax(dcontext, saved, out=None, empty=np.empty):
    """Takes softmax for a function of each score alone: dS = P · dP / √K. (It knows neither dropout nor groups.)"""
    query, key, value, probabilities, *_ = saved
    dprobabilities = np.einsum("bthk,bshk->bhst", dcontext, value)
    dscores = probabilities * dprobabilities / np.sqrt(query.shape[-1])
    dquery, dkey = np.einsum("bhst,bshk->bthk", dscores, key), np.einsum("bhst,bthk->bshk", dscores, query)
    gradients = dquery, dkey, np.einsum("bhst,bthk->bshk", probabilities, dcontext)
    for place, gradient in zip(out or gradients, gradients, strict=True):
        place[...] = gradient
    return out or gradients


def attention_without_its_scale(dcontext, saved, out=None):
    """Leaves out 1 / √K, by which the scores were multiplied."""
    root = np.sqrt(saved[0].shape[-1])
    dquery, dkey, dvalue = attention_backward(dcontext, saved)
    return dquery * root, dkey * root, dvalue


def attention_that_forgets_to_sum_over_the_group(dcontext, saved, out=None):
    """Every key head hears the first of the query heads that share it."""
    query, key, value, probabilities, mask, scale, context = saved
    shared = query.shape[2] // key.shape[2]
    first = query[:, :, ::shared], key, value, probabilities[:, ::shared].copy(), mask, scale, context[:, :, ::shared]
    _, dkey, dvalue = attention_backward(dcontext[:, :, ::shared], first)
    return attention_backward(dcontext, saved, out)[0], dkey, dvalue


def embedding_that_counts_a_duplicate_once(dy, saved, table_gradient):
    """With repeated ids, `table_gradient[ids] += dy` writes the last of them and loses the others."""
    ids, scale = saved
    table_gradient[ids] += scale * dy


def embedding_without_its_scale(dy, saved, table_gradient):
    """Leaves out what the looked-up rows were multiplied by."""
    np.add.at(table_gradient, saved[0], dy)


def dropout_without_its_scale(dy, saved):
    """Leaves out 1 / P(kept)."""
    return (dy * saved[0],)


def slope_left_out(dy, saved):
    """Takes the gradient of f(z) for that of z."""
    x, weight, _, _ = saved
    return dy @ weight.T, x.T @ dy, dy.sum(axis=0)


def loss_that_ignores_what_it_is_multiplied_by(_dloss, saved):
    """Right wherever dloss is 1, as it is where nothing follows the loss."""
    return saved


WRONG = [
    Wrong("layer_norm, width 5, bias", layer_norm_without_its_averages),
    Wrong(
        "layer_norm, width 5, bias",
        layer_norm_of_document_000,
        ("000", "the gradient of the mean, LayerNorm", "g_μ = -g_x̂ / √(σ² + ε) + g_σ² · Σ -2 (x - μ) / d"),
    ),
    Wrong("layer_norm, width 5, bias", layer_norm_without_mean),
    Wrong("layer_norm, width 5, bias", layer_norm_without_variance),
    Wrong("layer_norm, width 5, bias", layer_norm_that_forgets_its_gain),
    Wrong("rms_norm, width 5", rms_norm_that_takes_its_root_for_a_constant),
    Wrong("rms_norm, width 5", rms_norm_with_the_mean_of_layer_norm),
    Wrong("rms_norm, width 5", rms_norm_that_forgets_its_gain),
    Wrong("rotary", rotary_that_turns_further),
    Wrong("rotary", rotary_that_turns_neighbours),
    Wrong("gated_linear, no dropout, no bias", gate_whose_slope_is_left_out),
    Wrong("gated_linear, no dropout, no bias", gate_that_gets_no_gradient),
    Wrong("linear, two sequences", linear_of_the_first_sequence),
    Wrong("linear, bias", linear_with_means_for_sums),
    Wrong("linear, bias", linear_with_the_mean_of_its_bias),
    Wrong("attention, 4 x 4 all, no dropout", attention_without_the_jacobian_of_softmax),
    Wrong("attention, 4 x 4 all, no dropout", attention_without_its_scale),
    Wrong("attention, 4 heads on 2, no dropout", attention_that_forgets_to_sum_over_the_group),
    Wrong("embedding, duplicates", embedding_that_counts_a_duplicate_once),
    Wrong("embedding, scaled", embedding_without_its_scale),
    Wrong("dropout", dropout_without_its_scale),
    Wrong("gelu, no dropout, bias", slope_left_out),
    Wrong("output_loss, smoothing 0.1, bias", loss_that_ignores_what_it_is_multiplied_by),
]


def recognised(arguments: Sequence[Any], y: Sequence[Array], dy: Any, gradients: Sequence[Any]) -> list[str]:
    """Name the wrong versions that give these gradients, where the forward is one of `toolkit.functional`, each in a
    sentence.

    Their forwards are given the same arguments; those that cannot take them, or make something else of them, are not
    meant. y: the results of the forward. dy: the gradient of them.
    """
    found = []
    for wrong in WRONG:
        case = find_case(wrong.case)
        with suppress(Exception), np.errstate(all="ignore"):
            theirs, saved = case.forward(*arguments)
            if not np.allclose(theirs, y[0], rtol=1e-3):  # an eps may differ
                continue
            known = [each for each in case.adapted(wrong.backward)(np.copy(dy), saved) if each is not None]
            if all(np.allclose(one, other, rtol=1e-3) for one, other in zip(known, gradients, strict=True)):
                found.append(f"That is what {wrong.name} gives. {wrong.about}")
    return found
