"""Recorded passes: modules that decoding has never seen are done again as their own forward does them, or refused."""

import gc
import weakref

import numpy as np
import pytest

from tests.decoding.test_step import continuation
from toolkit.decoding.recording import Recording, plain, recorder_of
from toolkit.nn.layers import Linear, RMSNorm
from toolkit.nn.memory import Pool
from toolkit.nn.module import Module
from toolkit.nn.tape import Tape

WIDTH = 6


class Softsign(Module):
    """A leaf that nobody has a recorded form of, of functions that cannot be recorded one by one."""

    def forward(self, x, tape):
        return np.where(x > 0, x, -x.copy()).cumsum(axis=1) / (1 + np.abs(x))


class Highway(Module):
    """A composite of leaves, known and unknown, that computes with what they return."""

    def __init__(self, width):
        self.gate, self.value = Linear(width, width), Linear(width, width)
        self.norm, self.activation = RMSNorm(width), Softsign()

    def forward(self, x, tape):
        gate = 1 / (1 + np.exp(-self.gate.forward(self.norm.forward(x, tape), tape)))
        value = self.activation.forward(self.value.forward(x, tape), tape)
        y = gate * value
        y += (1 - gate) * x
        half = y.shape[1] // 2
        y[:, :half] = y[:, half : 2 * half] - y.mean(axis=1, keepdims=True)
        first, second = np.split(y, 2, axis=1)
        np.multiply(first, second.max(axis=1, keepdims=True), out=first)
        return tape.add(x, y)


class Joined(Module):
    def __init__(self, function):
        self.linear, self.function = Linear(WIDTH, WIDTH), function

    def forward(self, x, tape):
        return self.function(self.linear.forward(x, tape)) + x


def drawn(module, dtype=np.float64):
    generator = np.random.default_rng(0)
    for parameter in module.parameters().values():
        parameter.data = generator.standard_normal(parameter.shape).astype(dtype)
    return module


def test_a_composed_module_is_done_again_with_other_numbers():
    module, generator = drawn(Highway(WIDTH)), np.random.default_rng(1)
    x, tape = generator.standard_normal((3, WIDTH)), Recording(Pool())
    given = tape.empty(x.shape, np.float64)
    plain(given)[...] = x
    found = plain(recorder_of(module, {}).forward(given, tape))
    np.testing.assert_array_equal(found, module.forward(x, Tape()))
    for _ in range(3):
        x = generator.standard_normal((3, WIDTH))
        plain(given)[...] = x
        tape.replay()
        np.testing.assert_array_equal(found, module.forward(x, Tape()))


def test_memory_is_lent_again_within_a_pass_and_after_it():
    pool, module = Pool(), drawn(Highway(WIDTH))
    allocated = []
    for _ in range(3):
        tape = Recording(pool)
        given = tape.empty((4000, WIDTH), np.float64)
        plain(given)[...] = 1
        for _ in range(9):
            recorder_of(module, {}).forward(given, tape)
        allocated.append(pool.allocated)
    assert allocated[0] == allocated[2] < 30 * 4000 * WIDTH * 8


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda x: np.concatenate([x, x])[: len(x)], "np.concatenate"),
        (lambda x: x.copy(), "not recorded"),
        (lambda x: x.dot(np.eye(WIDTH)), "not recorded"),
        (lambda x: x * x.max(), "may differ"),
        (lambda x: np.max(x) * x, "np.max"),
    ],
)
def test_what_cannot_be_recorded_is_refused(function, words):
    tape = Recording(Pool())
    given = tape.empty((3, WIDTH), np.float64)
    with pytest.raises(TypeError, match=words):
        recorder_of(drawn(Joined(function)), {}).forward(given, tape)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_language_model_with_a_module_of_ones_own_is_decoded(random_gpt, dtype):
    model = random_gpt(dtype)
    for block in model.trunk.decoder.blocks:
        block.feed_forward.layer = drawn(Highway(model.config.d_model), dtype)
    pair = continuation(model, [3, 1, 4])
    for _ in range(3):
        pair.read(np.random.default_rng(1).integers(16, 37, 3))
    pair.select([2, 0], [2, 2, 0, 0])
    for _ in range(3):
        pair.read(np.random.default_rng(1).integers(16, 37, 4))


def test_a_recording_goes_with_its_last_step(random_gpt):
    """Its memory is lent again at once, not when Python next looks for cycles."""
    pair = continuation(random_gpt(), [3, 1, 4])
    pair.read(np.array([20, 21, 22]))
    [(kept, _)] = pair.step._kept.values()
    recording = weakref.ref(kept)
    del kept
    pair.select([2, 0], [2, 0])
    gc.disable()
    try:
        pair.read(np.array([20, 21]))
        assert recording() is None
    finally:
        gc.enable()
