"""The gradient of the whole language model, with respect to every parameter, for every option."""

import math
from itertools import product

import numpy as np
import pytest

from tests.checks import DROPOUT, gpt_batch, random_model, small_gpt_config
from toolkit.models.gpt import GPT, GPTBatch
from toolkit.nn import rows as rows_module
from toolkit.nn.tape import Tape
from toolkit.proof import central_difference

ACTIVATIONS = ("relu", "gelu", "gelu_tanh", "silu", "swiglu")
NORMS = ("layer", "rms")
POSITIONS = ("learned", "sinusoidal", "sinusoidal_halves", "rotary")
KEY_VALUE_HEADS = (1, 2, 0)
CONTEXT = 8
LENGTHS = (3, CONTEXT, 1, 5, 5, CONTEXT)  # runs of equal length, single ones, and all of the context

# Every value of every option, and most pairs of them; each parameter is checked by itself.
ONE_BY_ONE = [
    {
        "norm": norm,
        "positions": positions,
        "bias": bias,
        "num_key_value_heads": heads,
        "tie": tie,
        "activation": activation,
    }
    for (norm, positions, activation), (bias, heads, tie) in zip(
        [*product(NORMS, POSITIONS, ("gelu", "swiglu")), *product(NORMS, ("rotary",), ("relu", "gelu_tanh", "silu"))],
        [*product((True, False), KEY_VALUE_HEADS, (True, False))] * 2,
        strict=False,
    )
]
HEADS = [
    {"qk_norm": True, "head_dim": 6, "num_key_value_heads": 2, "norm": "rms", "norm_eps": 0.1},
    {"qk_norm": True, "rotary_scaling": "yarn", "rotary_factor": 3.0, "rotary_attention_factor": 1.3, "bias": True},
    {"rotary_scaling": "llama3", "rotary_factor": 3.0, "bias": True, "bias_in": "attention_input"},
]
OUTPUT_BIAS = [{"output_bias": True}, {"output_bias": True, "tie": False, "bias": True, "norm": "rms"}]
DROPPED = [
    *({rate: 0.3, "activation": "swiglu"} for rate in DROPOUT),
    {**DROPOUT, "norm": "rms", "activation": "swiglu", "num_key_value_heads": 2},
    {**DROPOUT, "bias": True, "positions": "learned", "num_key_value_heads": 1},
]


def loss_and_gradient(
    model: GPT, batch: GPTBatch, dloss: float = 1.0, seed: int = 5
) -> tuple[float, dict[str, np.ndarray]]:
    views = model.views(np.zeros_like(model.vector))
    tape = Tape(views, np.random.SFC64([seed, 1]))
    loss = model.loss(batch, tape).loss
    model.backward(tape, dloss)
    assert tape.finished
    return loss, {name: views[parameter] for name, parameter in model.parameters().items()}


def no_effect(model: GPT, name: str, gradient: np.ndarray) -> np.ndarray:
    """Which entries of a parameter cannot change the loss: biases of keys that are not turned.

    A key bias b adds q·b to the scores of one query with all its keys alike, and softmax does not notice a constant.
    """
    constant = np.zeros(gradient.shape, bool)
    if name.endswith("query_key_value.bias") and model.config.positions != "rotary":
        width = model.config.d_model
        constant[width : (width + len(gradient)) // 2] = True
    return constant


def check_every_parameter(model: GPT, batch: GPTBatch, rng: np.random.Generator, seed: int = 5) -> None:
    """Each gradient against the slope of the loss along a random direction of its parameter."""
    dloss = float(rng.standard_normal())
    _, gradients = loss_and_gradient(model, batch, dloss, seed)
    assert gradients.keys() == model.parameters().keys() == model.arrays().keys()

    def loss() -> float:
        return dloss * model.loss(batch, Tape(dropout=np.random.SFC64([seed, 1]))).loss

    for name, value in model.arrays().items():
        gradient = gradients[name]
        constant = no_effect(model, name, gradient)
        assert np.abs(gradient[constant]).max(initial=0) < 1e-10, name
        assert np.abs(gradient[~constant]).max() > 1e-3 * abs(dloss), name
        direction = rng.standard_normal(value.shape)
        difference = central_difference(loss, value, direction, 1e-6)
        found = float(np.vdot(gradient, direction))
        assert math.isclose(found, difference, rel_tol=1e-5, abs_tol=1e-6), f"{name}: {found} {difference}"


@pytest.mark.parametrize(
    "options", ONE_BY_ONE + HEADS + OUTPUT_BIAS, ids=lambda options: "-".join(map(str, options.values()))
)
def test_every_parameter_has_the_gradient_of_the_loss(options: dict) -> None:
    rng = np.random.default_rng(11)
    model = random_model(small_gpt_config(**options), rng)
    check_every_parameter(model, gpt_batch(rng, LENGTHS), rng)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("options", DROPPED, ids=lambda options: "-".join(options))
def test_gradients_with_dropout(options: dict, seed: int) -> None:
    rng = np.random.default_rng(12)
    model = random_model(small_gpt_config(**options), rng)
    check_every_parameter(model, gpt_batch(rng, LENGTHS), rng, seed)


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
@pytest.mark.parametrize("positions", POSITIONS)
def test_all_combinations_of_options(monkeypatch, activation: str, norm: str, positions: str) -> None:
    """All parameters at once, along one direction; in narrow spans, which short texts share and long ones do not."""
    monkeypatch.setattr(rows_module, "_SPAN_SCORES", 40)
    rng = np.random.default_rng(13)
    for bias, heads, tie in product((True, False), KEY_VALUE_HEADS, (True, False)):
        settings = {"activation": activation, "norm": norm, "positions": positions}
        config = small_gpt_config(**settings, bias=bias, num_key_value_heads=heads, tie=tie, layers=1)
        model, batch = random_model(config, rng), gpt_batch(rng, (CONTEXT, 2, 2, 5))
        dloss = float(rng.standard_normal())
        vector, direction = np.zeros_like(model.vector), rng.standard_normal(model.vector.shape)
        tape = Tape(model.views(vector))
        model.loss(batch, tape)
        model.backward(tape, dloss)
        assert tape.finished
        difference = central_difference(
            lambda model=model, batch=batch: model.loss(batch, Tape()).loss, model.vector, direction, 1e-6
        )
        found = float(np.vdot(vector, direction))
        assert math.isclose(found, dloss * difference, rel_tol=1e-5, abs_tol=1e-6), f"{config}: {found} {difference}"


def test_the_gradient_is_linear_in_what_comes_back() -> None:
    rng = np.random.default_rng(2)
    config = small_gpt_config(**DROPOUT, activation="swiglu", norm="rms", num_key_value_heads=2)
    model, batch = random_model(config, rng), gpt_batch(rng, LENGTHS)
    plain, scaled = (loss_and_gradient(model, batch, dloss)[1] for dloss in (1.0, -0.25))
    for name, gradient in plain.items():
        np.testing.assert_allclose(scaled[name], gradient * -0.25, rtol=1e-9, atol=1e-12)


def test_gradients_of_several_batches_add_up() -> None:
    """A batch has the gradient of its texts one by one."""
    rng = np.random.default_rng(3)
    model = random_model(small_gpt_config(norm="rms", activation="swiglu", num_key_value_heads=1), rng)
    batch = gpt_batch(rng, LENGTHS)
    alone = np.zeros_like(model.vector)
    for start, length in zip(batch.rows.starts, batch.rows.lengths, strict=True):
        one = slice(start, start + length)
        tape = Tape(model.views(alone))
        model.loss(GPTBatch(batch.inputs[one], batch.labels[one], rows_module.Rows(np.array([length]))), tape)
        model.backward(tape)
    together = np.zeros_like(model.vector)
    tape = Tape(model.views(together))
    model.loss(batch, tape)
    model.backward(tape)
    np.testing.assert_allclose(alone, together, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("norm", NORMS)
def test_a_tied_table_hears_of_what_it_reads_and_of_what_it_predicts(norm: str) -> None:
    """An untied model with equal tables has the same gradient, in two parts."""
    rng = np.random.default_rng(4)
    tied = random_model(small_gpt_config(norm=norm), rng)
    other = GPT(small_gpt_config(norm=norm, tie=False))
    other.allocate(np.float64)
    table = tied.arrays()["trunk.input.embedding.table"]
    other.load_arrays(tied.arrays() | {"output.table": table}, "the tied model")
    batch = gpt_batch(rng, LENGTHS)
    whole = loss_and_gradient(tied, batch)[1]["trunk.input.embedding.table"]
    parts = loss_and_gradient(other, batch)[1]
    np.testing.assert_allclose(whole, parts["trunk.input.embedding.table"] + parts["output.table"], rtol=1e-10)
    assert other.parameters().keys() - tied.parameters().keys() == {"output.table"}
