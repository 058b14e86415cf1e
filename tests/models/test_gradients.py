"""The gradient of the whole model, with respect to every parameter, for every option."""

import math

import numpy as np
import pytest

from tests.checks import DROPOUT, batch_of, random_model, random_pairs, small_config
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqBatch, Seq2SeqConfig
from toolkit.nn.tape import Tape
from toolkit.proof import central_difference

OPTIONS = [
    {},
    {"norm_position": "post"},
    {"bias": False},
    {"norm_position": "post", "bias": False},
    *({"activation": activation} for activation in ("gelu", "gelu_tanh", "silu")),
    {"positions": "sinusoidal_halves"},
    {"positions": "sinusoidal_fairseq"},
    {"positions": "learned"},
    {"tie": "decoder"},
    {"tie": "none"},
    {"output_bias": True},
    {"scale_embedding": False},
    {"output_bias": True, "scale_embedding": False, "tie": "none", "norm_position": "post"},
    {"positions": "learned", "tie": "none", "norm_position": "post", "activation": "gelu"},
    {"num_heads": 1, "encoder_layers": 2, "decoder_layers": 1},
    *({rate: 0.3} for rate in DROPOUT),
    DROPOUT,
    {**DROPOUT, "norm_position": "post", "activation": "silu", "tie": "decoder"},
]
SMOOTHED = [{}, {"norm_position": "post", "tie": "none"}, {"output_bias": True}, DROPOUT]

PRIOR = np.concatenate((np.zeros(3), [1.0], np.zeros(12), np.ones(14))) / 15  # over 30 tokens; 12 never occur


def loss_and_gradient(
    model: Seq2Seq, batch: Seq2SeqBatch, smoothing: float = 0.0, dloss: float = 1.0
) -> tuple[float, dict[str, np.ndarray]]:
    views = model.views(np.zeros_like(model.vector))
    tape = Tape(views, np.random.SFC64([5, 1]))
    loss = model.loss(batch, tape, smoothing, PRIOR).loss
    model.backward(tape, dloss)
    assert tape.finished
    assert views.keys() == set(model.parameters().values())
    return loss, {name: views[parameter] for name, parameter in model.parameters().items()}


def no_effect(name: str, gradient: np.ndarray) -> np.ndarray:
    """Which entries of a parameter cannot change the loss: biases of keys.

    A key bias b adds q·b to the scores of one query with all its keys alike, and softmax does not notice a constant.
    """
    constant = np.zeros(gradient.shape, bool)
    third, half = len(gradient) // 3, len(gradient) // 2
    if name.endswith("query_key_value.bias"):
        constant[third : 2 * third] = True
    if name.endswith("key_value.bias") and "query" not in name:
        constant[:half] = True
    return constant


@pytest.mark.parametrize(("options", "smoothing"), [*((o, 0.0) for o in OPTIONS), *((o, 0.1) for o in SMOOTHED)])
def test_every_parameter_has_the_gradient_of_the_loss(options: dict, smoothing: float) -> None:
    rng = np.random.default_rng(11)
    model = random_model(small_config(**options), rng)
    batch = batch_of(random_pairs(rng, 5))
    _, gradients = loss_and_gradient(model, batch, smoothing)

    def loss() -> float:
        return model.loss(batch, Tape(dropout=np.random.SFC64([5, 1])), smoothing, PRIOR).loss

    for name, value in model.arrays().items():
        gradient = gradients[name]
        constant = no_effect(name, gradient)
        assert np.abs(gradient[constant]).max(initial=0) < 1e-10, name
        assert np.abs(gradient[~constant]).max() > 1e-3, name
        direction = rng.standard_normal(value.shape)
        difference = central_difference(loss, value, direction, 1e-6)
        found = float(np.vdot(gradient, direction))
        assert math.isclose(found, difference, rel_tol=1e-5, abs_tol=1e-6), f"{name}: {found} {difference}"


def test_biases_of_keys_are_where_they_are_thought_to_be() -> None:
    model = random_model(small_config(), np.random.default_rng(0))
    exempt = {name: int(no_effect(name, value).sum()) for name, value in model.arrays().items()}
    width, attentions = 8, 1 + 2 + 2
    assert [count for count in exempt.values() if count] == [width] * attentions


@pytest.mark.parametrize("config", [small_config(**DROPOUT), small_config(tie="none", norm_position="post")])
def test_the_gradient_is_linear_in_what_comes_back(config: Seq2SeqConfig) -> None:
    rng = np.random.default_rng(2)
    model, batch = random_model(config, rng), batch_of(random_pairs(rng, 4))
    plain = loss_and_gradient(model, batch)[1]
    scaled = loss_and_gradient(model, batch, dloss=-0.25)[1]
    for name, gradient in plain.items():
        np.testing.assert_allclose(scaled[name], gradient * -0.25, rtol=1e-9, atol=1e-12)


def test_gradients_of_several_batches_add_up() -> None:
    rng = np.random.default_rng(3)
    model = random_model(small_config(), rng)
    batches = [batch_of(random_pairs(rng, count)) for count in (2, 3)]
    separate = [loss_and_gradient(model, batch)[1] for batch in batches]
    views = model.views(np.zeros_like(model.vector))
    for batch in batches:
        tape = Tape(views)
        model.loss(batch, tape)
        model.backward(tape)
    for name, parameter in model.parameters().items():
        np.testing.assert_allclose(views[parameter], separate[0][name] + separate[1][name], rtol=1e-9, atol=1e-12)


def test_backward_without_a_loss() -> None:
    model = random_model(small_config(), np.random.default_rng(0))
    with pytest.raises(RuntimeError, match="empty tape"):
        model.backward(Tape(model.views(np.zeros_like(model.vector))))


def test_backward_twice() -> None:
    rng = np.random.default_rng(0)
    model = random_model(small_config(), rng)
    tape = Tape(model.views(np.zeros_like(model.vector)))
    model.loss(batch_of(random_pairs(rng, 2)), tape)
    model.backward(tape)
    with pytest.raises(RuntimeError, match="empty tape"):
        model.backward(tape)
