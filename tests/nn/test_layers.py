"""Layers remember nothing, so they can be called twice; attention over rows is attention over each sequence."""

from collections.abc import Callable

import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.attention import attention, causal_mask
from toolkit.functional.positions import rotary, rotary_frequencies, rotary_table, sinusoidal_positions
from toolkit.nn import rows as rows_module
from toolkit.nn.attention import CrossAttention, SelfAttention
from toolkit.nn.layers import (
    Dropout,
    Embedding,
    FeedForward,
    LayerNorm,
    LearnedPositions,
    Linear,
    RMSNorm,
    RotaryPositions,
    SinusoidalPositions,
)
from toolkit.nn.module import Model, Module
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

WIDTH = 6
ROWS = Rows(np.array([2, 3, 3, 1]))


class Only(Model):
    def __init__(self, layer: Module):
        self.layer = layer


def random(layer: Module, rng: np.random.Generator) -> Only:
    model = Only(layer)
    model.allocate(np.float64)
    model.vector[...] = rng.standard_normal(len(model.vector))
    return model


LAYERS: dict[str, tuple[Callable[[], Module], Callable]] = {
    "linear": (lambda: Linear(WIDTH, WIDTH), lambda layer, x, tape: layer.forward(x, tape)),
    "layer norm": (lambda: LayerNorm(WIDTH), lambda layer, x, tape: layer.forward(x, tape)),
    "rms norm": (lambda: RMSNorm(WIDTH), lambda layer, x, tape: layer.forward(x, tape)),
    "gated feed-forward": (
        lambda: FeedForward(WIDTH, 9, "swiglu", 0.3),
        lambda layer, x, tape: layer.forward(x, tape),
    ),
    "feed-forward": (lambda: FeedForward(WIDTH, 9, "silu", 0.3), lambda layer, x, tape: layer.forward(x, tape)),
    "positions": (lambda: LearnedPositions(3, WIDTH), lambda layer, x, tape: layer.forward(x.copy(), ROWS, tape)),
    "attention": (
        lambda: SelfAttention(WIDTH, 2, 0.3, causal=True),
        lambda layer, x, tape: layer.forward(x, ROWS, tape),
    ),
    "rotary attention": (
        lambda: SelfAttention(
            WIDTH, 3, causal=True, num_key_value_heads=1, rotary=RotaryPositions(rotary_frequencies(2))
        ),
        lambda layer, x, tape: layer.forward(x, ROWS, tape),
    ),
}


@pytest.mark.parametrize(("make", "forward"), LAYERS.values(), ids=LAYERS)
def test_a_layer_called_twice_sums_its_gradients(make, forward) -> None:
    rng = np.random.default_rng(0)
    layer = make()
    model = random(layer, rng)
    inputs, cotangents = rng.standard_normal((2, 2, ROWS.total, WIDTH))

    def passes(which: list[int]) -> tuple[Array, dict[int, Array]]:
        vector = np.zeros_like(model.vector)
        tape, dx = Tape(model.views(vector)), {}
        for index in which:
            forward(layer, inputs[index], tape)
        for index in reversed(which):
            dx[index] = layer.backward(cotangents[index].copy(), tape)
        assert tape.finished
        return vector, dx

    (first, dx_first), (second, dx_second), (both, dx_both) = passes([0]), passes([1]), passes([0, 1])
    assert (first != second).any()
    np.testing.assert_allclose(both, first + second, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(dx_both[0], dx_first[0], rtol=1e-12)
    np.testing.assert_allclose(dx_both[1], dx_second[1], rtol=1e-12)


def test_an_embedding_called_twice_sums_its_gradients() -> None:
    model = random(Embedding(5, 3, 2.0), np.random.default_rng(0))
    tape = Tape(model.views(np.zeros_like(model.vector)))
    model.layer.forward(np.array([1, 2]), tape)
    model.layer.forward(np.array([2, 4, 2]), tape)
    model.layer.backward(np.ones((3, 3)), tape)
    model.layer.backward(np.ones((2, 3)), tape)
    assert tape.gradients[model.layer.table].tolist() == [[0] * 3, [2] * 3, [6] * 3, [0] * 3, [2] * 3]


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("scores", [1 << 14, 1])
def test_self_attention_treats_every_sequence_alone(monkeypatch: pytest.MonkeyPatch, causal: bool, scores: int) -> None:
    monkeypatch.setattr(rows_module, "_SPAN_SCORES", scores)
    rng = np.random.default_rng(1)
    layer = SelfAttention(WIDTH, 2, causal=causal)
    random(layer, rng)
    rows = Rows(ROWS.lengths)
    x = rng.standard_normal((rows.total, WIDTH))
    together = layer.forward(x, rows, Tape())
    projected = x @ layer.query_key_value.weight.data + layer.query_key_value.bias.data
    for start, length in zip(rows.starts, rows.lengths, strict=True):
        own = slice(start, start + length)
        query, key, value = (part.reshape(1, length, 2, 3) for part in np.split(projected[own], 3, axis=1))
        visible = causal_mask(length, length) if causal else None
        context = attention(query, key, value, visible)[0].reshape(length, WIDTH)
        expected = context @ layer.output.weight.data + layer.output.bias.data
        np.testing.assert_allclose(together[own], expected, rtol=1e-10)


def test_causal_attention_does_not_look_ahead() -> None:
    rng = np.random.default_rng(1)
    layer = SelfAttention(WIDTH, 2, causal=True)
    random(layer, rng)
    x = rng.standard_normal((5, WIDTH))
    before = layer.forward(x, Rows(np.array([5])), Tape())
    x[3:] += 1
    after = layer.forward(x, Rows(np.array([5])), Tape())
    np.testing.assert_array_equal(before[:3], after[:3])
    assert (before[3:] != after[3:]).all()


def test_a_memory_that_nobody_attends_to_gets_no_gradient() -> None:
    rng = np.random.default_rng(2)
    layer = CrossAttention(WIDTH, 2)
    model = random(layer, rng)
    memory_rows = Rows(np.array([3, 2, 4]))
    rows = Rows(np.array([2, 1]), memory=memory_rows, memory_of=np.array([2, 0]))
    tape = Tape(model.views(np.zeros_like(model.vector)))
    layer.forward(rng.standard_normal((3, WIDTH)), rng.standard_normal((9, WIDTH)), rows, tape)
    dx, dmemory = layer.backward(rng.standard_normal((3, WIDTH)), tape)
    assert dx.shape == (3, WIDTH)
    assert (dmemory[3:5] == 0).all()
    assert (dmemory[:3] != 0).all()
    assert (dmemory[5:] != 0).all()


def test_dropout_only_while_training() -> None:
    x = np.ones((50, 40))
    assert Dropout(0.5).forward(x, Tape()) is x
    y = Dropout(0.5).forward(x, Tape({}, np.random.SFC64(0)))
    assert set(y.flat) == {0, 2}


@pytest.mark.parametrize("layout", ["interleaved", "halves"])
def test_sinusoidal_positions_are_added_and_grow_as_needed(layout: str) -> None:
    layer = SinusoidalPositions(WIDTH, layout)
    for lengths, dtype in (([2, 3], np.float32), ([300], np.float64), ([4], np.float32)):
        rows = Rows(np.array(lengths))
        y = layer.forward(np.ones((rows.total, WIDTH), dtype), rows, Tape())
        assert y.dtype == dtype
        expected = 1 + sinusoidal_positions(max(lengths), WIDTH, layout, np.float64)[rows.positions]
        np.testing.assert_allclose(y, expected, atol=1e-6)


def test_rotary_positions_turn_in_place_and_grow_as_needed() -> None:
    layer = RotaryPositions(rotary_frequencies(4, 30.0))
    for lengths, dtype in (([2, 3], np.float32), ([300], np.float64), ([4], np.float32)):
        rows, tape = Rows(np.array(lengths)), Tape({})
        x = np.random.default_rng(0).standard_normal((rows.total, 3, 4)).astype(dtype)
        turned = x.copy()
        layer.turn(turned, rows, tape)
        assert turned.dtype == dtype
        expected = rotary(
            x, *(table[rows.positions] for table in rotary_table(300, rotary_frequencies(4, 30.0), dtype=np.float64))
        )[0]
        np.testing.assert_allclose(turned, expected, atol=1e-5 if dtype is np.float32 else 1e-12)
        layer.turn_back(turned, tape)
        np.testing.assert_allclose(turned, x, atol=1e-6)
        assert tape.finished


def test_self_attention_where_heads_share_keys() -> None:
    """Four heads of queries on two of keys are four on four whose weights for keys and values are repeated."""
    rng, width, rows = np.random.default_rng(3), 8, Rows(ROWS.lengths)
    shared, full = SelfAttention(width, 4, causal=True, num_key_value_heads=2), SelfAttention(width, 4, causal=True)
    arrays, whole = random(shared, rng).arrays(), random(full, rng)
    columns = [*range(8), *(8 + i for i in (0, 1, 0, 1, 2, 3, 2, 3)), *(12 + i for i in (0, 1, 0, 1, 2, 3, 2, 3))]
    repeated = {name: value[..., columns] for name, value in arrays.items() if "query_key_value" in name}
    whole.load_arrays(arrays | repeated, "here")
    x = rng.standard_normal((rows.total, width))
    outputs = [layer.forward(x, rows, Tape()) for layer in (shared, full)]
    np.testing.assert_allclose(*outputs, rtol=1e-11)


def test_learned_positions_end() -> None:
    layer = LearnedPositions(3, WIDTH)
    random(layer, np.random.default_rng(0))
    with pytest.raises(ConfigError, match="a sequence of 4 tokens is longer than the model's 3 positions"):
        layer.forward(np.ones((5, WIDTH)), Rows(np.array([1, 4])), Tape())
