"""What holds for every pair of the calculus."""

import importlib
import pkgutil
import zlib

import numpy as np
import pytest

import toolkit.functional
from tests.checks import check_pair
from tests.functional.pairs import CASES, Case, case
from toolkit.functional import output_loss as output_loss_module
from toolkit.functional import token_log_probs as token_log_probs_module
from toolkit.functional.activation import silu
from toolkit.functional.arrays import row_blocks, sum_rows
from toolkit.functional.attention import attention_backward
from toolkit.functional.rotary import rotary

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def generator(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(case.name.encode()))


@pytest.fixture(params=["one block", "several blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks smaller than the arrays of the cases, with a shorter one at the end, as large arrays have them."""
    if request.param == "several blocks":
        monkeypatch.setattr(row_blocks, "__defaults__", (11,))
        for module in (output_loss_module, token_log_probs_module):
            monkeypatch.setattr(module, "_CHUNK_ELEMENTS", 20)


@every_case
@pytest.mark.usefixtures("_blocks")
def test_gradients_are_the_slopes_of_the_forward(case: Case) -> None:
    rng = generator(case)
    forward, backward, arguments, _ = case.check(rng)
    check_pair(forward, backward, arguments, rng)


def test_every_backward_is_checked() -> None:
    public = set()
    for module_info in pkgutil.iter_modules(toolkit.functional.__path__):
        module = importlib.import_module(f"toolkit.functional.{module_info.name}")
        names = (name for name in vars(module) if name.endswith("_backward") and not name.startswith("_"))
        public |= {getattr(module, name) for name in names}
    assert len(public) >= 8
    assert public == {case.backward for case in CASES}


@every_case
@pytest.mark.usefixtures("_blocks")
def test_nobody_writes_to_an_argument(case: Case) -> None:
    forward, backward, arguments, constants = case.check(generator(case))
    given = [*arguments, *constants]
    kept = [array.copy() for array in given]
    output, saved = forward(*arguments)
    cotangent = np.random.default_rng(0).standard_normal(np.shape(output))
    kept_output, kept_cotangent = np.copy(output), cotangent.copy()
    backward(cotangent, saved)
    for array, before in zip([*given, output, cotangent], [*kept, kept_output, kept_cotangent], strict=True):
        np.testing.assert_array_equal(array, before)


@every_case
def test_float32_stays_float32(case: Case) -> None:
    forward, backward, arguments, _ = case.check(generator(case), np.float32)
    output, saved = forward(*arguments)
    assert isinstance(output, float) or output.dtype == np.float32
    kept = saved if isinstance(saved, tuple) else (saved,)
    assert not [x for x in kept if isinstance(x, np.ndarray | np.generic) and x.dtype == np.float64]
    cotangent = 0.5 if isinstance(output, float) else np.full_like(output, 0.5)
    assert {gradient.dtype for gradient in backward(cotangent, saved)} == {np.dtype(np.float32)}


@every_case
def test_float32_agrees_with_float64(case: Case) -> None:
    results = []
    for dtype in (np.float32, np.float64):
        forward, backward, arguments, _ = case.check(generator(case), dtype)
        output, saved = forward(*arguments)
        results.append([output, *backward(1.5 if isinstance(output, float) else np.full_like(output, 1.5), saved)])
    for single, double in zip(*results, strict=True):
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=2e-3 if "large" in case.name else 1e-5)


def layer_norm_without_mean(dy, saved):
    normal, inverse_std, gain, _ = saved
    dnormal = dy * gain
    dx = dnormal - normal * (dnormal * normal).mean(axis=1, keepdims=True)
    return dx * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def layer_norm_without_variance(dy, saved):
    normal, inverse_std, gain, _ = saved
    dnormal = dy * gain
    return (dnormal - dnormal.mean(axis=1, keepdims=True)) * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def layer_norm_that_forgets_its_gain(dy, saved):
    """Right wherever the gain is 1, as it is in a fresh model."""
    normal, inverse_std, _, _ = saved
    dx = dy - dy.mean(axis=1, keepdims=True) - normal * (dy * normal).mean(axis=1, keepdims=True)
    return dx * inverse_std, (dy * normal).sum(axis=0), dy.sum(axis=0)


def rms_norm_that_takes_its_root_for_a_constant(dy, saved):
    normal, inverse_root, gain = saved
    return dy * gain * inverse_root, (dy * normal).sum(axis=0)


def rms_norm_with_the_mean_of_layer_norm(dy, saved):
    normal, inverse_root, gain = saved
    dnormal = dy * gain
    dx = dnormal - dnormal.mean(axis=1, keepdims=True) - normal * (dnormal * normal).mean(axis=1, keepdims=True)
    return dx * inverse_root, (dy * normal).sum(axis=0)


def rms_norm_that_forgets_its_gain(dy, saved):
    normal, inverse_root, _ = saved
    return (dy - normal * (dy * normal).mean(axis=1, keepdims=True)) * inverse_root, (dy * normal).sum(axis=0)


def rotary_that_turns_further(dy, saved):
    return rotary(dy, *saved)[:1]


def rotary_that_turns_neighbours(dy, saved):
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


def linear_with_the_mean_of_its_bias(dy, saved):
    x, weight, _ = saved
    return dy @ weight.T, x.T @ dy, dy.mean(axis=0)


def attention_without_the_jacobian_of_softmax(dcontext, saved, _out):
    query, key, value, probabilities, *_ = saved
    dscores = probabilities * np.einsum("bthk,bshk->bhst", dcontext, value) / 2
    dquery, dkey = np.einsum("bhst,bshk->bthk", dscores, key), np.einsum("bhst,bthk->bshk", dscores, query)
    return dquery, dkey, np.einsum("bhst,bthk->bshk", probabilities, dcontext)


def attention_without_its_scale(dcontext, saved, _out):
    dquery, dkey, dvalue = case("attention, 4 x 4 all, no dropout").backward(dcontext, saved)
    return dquery * 2, dkey * 2, dvalue  # the root of the head width is 2


def attention_that_forgets_to_sum_over_the_group(dcontext, saved, out):
    """Every key head hears the first of the query heads that share it."""
    query, key, value, probabilities, mask, scale, context = saved
    shared = query.shape[2] // key.shape[2]
    first = query[:, :, ::shared], key, value, probabilities[:, ::shared].copy(), mask, scale, context[:, :, ::shared]
    _, dkey, dvalue = attention_backward(dcontext[:, :, ::shared], first)
    return attention_backward(dcontext, saved, out)[0], dkey, dvalue


def embedding_that_counts_a_duplicate_once(dy, saved, table_gradient):
    ids, scale = saved
    table_gradient[ids] += scale * dy


def embedding_without_its_scale(dy, saved, table_gradient):
    np.add.at(table_gradient, saved[0], dy)


def dropout_without_its_scale(dy, saved):
    return (dy * saved[0],)


def slope_left_out(dy, saved):
    x, weight, _, _ = saved
    return dy @ weight.T, x.T @ dy, dy.sum(axis=0)


def loss_that_ignores_what_it_is_multiplied_by(_dloss, saved):
    return saved


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("layer_norm, width 5, bias", layer_norm_without_mean),
        ("layer_norm, width 5, bias", layer_norm_without_variance),
        ("layer_norm, width 5, bias", layer_norm_that_forgets_its_gain),
        ("rms_norm, width 5", rms_norm_that_takes_its_root_for_a_constant),
        ("rms_norm, width 5", rms_norm_with_the_mean_of_layer_norm),
        ("rms_norm, width 5", rms_norm_that_forgets_its_gain),
        ("rotary", rotary_that_turns_further),
        ("rotary", rotary_that_turns_neighbours),
        ("gated_linear, no dropout, no bias", gate_whose_slope_is_left_out),
        ("gated_linear, no dropout, no bias", gate_that_gets_no_gradient),
        ("attention, 4 heads on 2, no dropout", attention_that_forgets_to_sum_over_the_group),
        ("linear, bias", linear_with_the_mean_of_its_bias),
        ("attention, 4 x 4 all, no dropout", attention_without_the_jacobian_of_softmax),
        ("attention, 4 x 4 all, no dropout", attention_without_its_scale),
        ("embedding, duplicates", embedding_that_counts_a_duplicate_once),
        ("embedding, scaled", embedding_without_its_scale),
        ("dropout", dropout_without_its_scale),
        ("gelu, no dropout, bias", slope_left_out),
        ("output_loss, smoothing 0.1, bias", loss_that_ignores_what_it_is_multiplied_by),
    ],
)
def test_the_check_finds_wrong_gradients(name: str, wrong) -> None:
    rng = np.random.default_rng(1)
    forward, backward, arguments, _ = case(name).check(rng, backward=wrong)
    with pytest.raises(AssertionError, match="argument"):
        check_pair(forward, backward, arguments, rng)


def test_the_check_finds_a_missing_gradient() -> None:
    rng = np.random.default_rng(1)
    forward, backward, arguments, _ = case("linear, bias").check(rng)
    with pytest.raises(ValueError, match="shorter"):
        check_pair(forward, lambda dy, saved: backward(dy, saved)[:2], arguments, rng)


@pytest.mark.parametrize(("rows", "width"), [(0, 3), (1, 100), (7, 3), (8, 4)])
def test_blocks_cover_every_row_once(rows: int, width: int) -> None:
    blocks = list(row_blocks(rows, width, 12))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert all((block.stop - block.start) * width <= max(12, width) for block in blocks)


def test_sum_rows() -> None:
    x = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(sum_rows(x), x.sum(axis=0), rtol=1e-14)
