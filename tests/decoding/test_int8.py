"""Models in int8: what a step computes, from a cache and without, alone and in batches."""

import copy

import numpy as np
import pytest

from tests.decoding.test_step import GPT, SEQ2SEQ, continuation, follow, translation
from toolkit.decoding import ContinuationConfig, GenerationConfig, generate, score
from toolkit.functional.int8 import Int8Matrix
from toolkit.nn.layers import Linear, Output

pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")


class Emulated(Int8Matrix):
    """The same product in plain NumPy: a rounded row times the numbers that the integers stand for."""

    nbytes = 0

    def __init__(self, matrix):
        self.values, self.shape, self.dtype, self.is_table = np.asarray(matrix), matrix.shape, matrix.dtype, False

    @property
    def T(self):  # noqa: N802
        return Emulated(self.values.T)

    def scaled(self, factors):
        return Emulated(self.values * factors)

    def __array_ufunc__(self, ufunc, method, x, _, out):
        largest = np.abs(x).max(axis=1, keepdims=True)
        out[0][...] = (np.rint(x * (127 / largest)) * (largest / 127)) @ self.values
        return out[0]


def quantized(model):
    model.quantize()
    return model


def emulated(model):
    """A copy of a model in int8 that computes in floating point."""
    twin = copy.deepcopy(model)

    def walk(module):
        for value in vars(module).values():
            for member in value if isinstance(value, list) else [value]:
                if isinstance(member, Linear):
                    member.weight.data = Emulated(member.weight.data)
                elif isinstance(member, Output):
                    member.table = copy.copy(member.table)  # embeddings keep theirs
                    member.table.data = Emulated(member.table.data)
                if hasattr(member, "parameters"):
                    walk(member)

    walk(twin)
    return twin


@pytest.mark.parametrize("settings", SEQ2SEQ)
def test_a_step_of_a_translator_is_its_forward(random_model, make_sources, settings):
    """The step with the cache, in int8; the forward without recording, emulated."""
    model = quantized(random_model(np.float64, **settings))
    pair = translation(model, make_sources([4, 7, 2]))
    pair.model = emulated(model)
    follow(pair, np.float64)


@pytest.mark.parametrize("settings", GPT)
def test_a_step_of_a_language_model_is_its_forward(random_gpt, settings):
    model = quantized(random_gpt(np.float64, **settings))
    pair, other = continuation(model, [4, 0, 3]), continuation(emulated(model), [4, 0, 3])
    pair.model, pair.plain = other.model, other.plain
    follow(pair, np.float64)


@pytest.mark.parametrize("beams", [1, 3])
def test_scores_are_those_of_the_search(random_model, make_sources, beams):
    """With a cache, token by token, as without, all at once; and one by one as in batches."""
    model, sources = quantized(random_model(np.float64)), make_sources([3, 9, 1, 5, 5])
    config = GenerationConfig(num_beams=beams, max_new_tokens=40)
    together = [best for best, *_ in generate(model, sources, config)]
    alone = [generate(model, [source], config)[0][0] for source in sources]
    assert [each.ids for each in together] == [each.ids for each in alone]
    log_probs = [each.log_prob for each in together]
    np.testing.assert_allclose(log_probs, [each.log_prob for each in alone], rtol=1e-9)
    ended = [number for number, each in enumerate(together) if each.finished]
    scored = score(model, [sources[number] for number in ended], [together[number].ids for number in ended])
    assert len(ended) > 1
    np.testing.assert_allclose([each.log_prob for each in scored], [log_probs[number] for number in ended], rtol=1e-9)


def test_a_long_context_slides(random_gpt):
    model = quantized(random_gpt(np.float64, positions="rotary"))
    config = ContinuationConfig(do_sample=False, max_new_tokens=30, min_new_tokens=30, past_context="slide")
    prompts = [[20, 21, 22], [30] * 11]
    together = generate(model, prompts, config)
    assert [len(best.ids) for (best,) in together] == [30, 30]
    assert [best.ids for (best,) in together] == [generate(model, [each], config)[0][0].ids for each in prompts]


@pytest.mark.parametrize("tie", ["none", "all"])
def test_a_model_in_int8_has_no_floats_of_its_matrices(random_model, tie):
    """The rest of its parameters has a vector of its own; and so has a copy."""
    before = random_model(np.float32, tie=tie)
    before._fold()
    model = quantized(quantized(random_model(np.float32, tie=tie)))
    matrices = [name for name, parameter in model.parameters().items() if parameter.quantized]
    assert len(matrices) == 2 * 4 + 2 * 7 + (3 if tie == "none" else 1)
    assert all(name.endswith(("weight", "table")) for name in matrices)
    assert model.parameter_count == before.parameter_count
    floats = {name: value for name, value in before.arrays().items() if name not in matrices}
    assert model.vector.size <= sum(value.size + 16 for value in floats.values())
    for twin in (model, copy.deepcopy(model)):
        for name, value in floats.items():
            assert np.array_equal(twin.arrays()[name], value)
            assert np.shares_memory(twin.arrays()[name], twin.vector)
        for name in matrices:
            assert np.array_equal(np.asarray(twin.arrays()[name]), np.asarray(model.arrays()[name]))
