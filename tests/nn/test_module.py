import numpy as np
import pytest

from tests.checks import small_config
from toolkit.errors import ModelError
from toolkit.models.seq2seq import Seq2Seq
from toolkit.nn.layers import Linear
from toolkit.nn.module import Model, Module, Parameter, aligned_zeros, normal, ones, xavier_uniform, zeros


class Pair(Module):
    def __init__(self, shared: Linear):
        self.left = Linear(3, 5)
        self.again = shared


class Example(Model):
    def __init__(self):
        self.gain = Parameter((3,), ones)
        self.layers = [Linear(2, 3), Linear(3, 3, bias=False)]
        self.pair = Pair(self.layers[1])
        self.free = Parameter((2, 7), normal(1.0), decay=False)
        self.rate = 0.5


NAMES = ["gain", "layers.0.weight", "layers.0.bias", "layers.1.weight", "pair.left.weight", "pair.left.bias", "free"]


@pytest.fixture(params=[np.float32, np.float64])
def model(request: pytest.FixtureRequest) -> Example:
    model = Example()
    model.allocate(request.param)
    model.initialize(np.random.default_rng(0))
    return model


def test_names_are_paths_and_a_shared_parameter_appears_once() -> None:
    model = Example()
    assert list(model.parameters()) == NAMES
    assert list(model.pair.parameters("trunk.")) == ["trunk.left.weight", "trunk.left.bias", "trunk.again.weight"]


def test_the_values_of_a_model_are_one_vector_decayed_first(model: Example) -> None:
    assert model.parameter_count == 3 + 6 + 3 + 9 + 15 + 5 + 14
    model.vector[...] = 0
    model.vector[: model.decayed] = 1
    for name, value in model.arrays().items():
        assert np.shares_memory(value, model.vector)
        assert (value == name.endswith("weight")).all(), name  # matrices decay; gains, biases and `free` do not


def test_parameters_do_not_overlap(model: Example) -> None:
    for number, value in enumerate(model.arrays().values()):
        value[...] = number
    assert [set(value.flat) for value in model.arrays().values()] == [{number} for number in range(len(NAMES))]


def test_every_parameter_begins_on_a_cache_line(model: Example) -> None:
    assert [value.ctypes.data % 64 for value in model.arrays().values()] == [0] * len(NAMES)
    assert aligned_zeros(5, np.float64).ctypes.data % 64 == 0


def test_gradients_have_the_keys_of_the_parameters(model: Example) -> None:
    gradients = model.views(np.zeros_like(model.vector))
    assert gradients.keys() == set(model.parameters().values())
    assert {parameter.shape for parameter in gradients} == {view.shape for view in gradients.values()}


@pytest.mark.parametrize(("tie", "tables"), [("all", 1), ("decoder", 2), ("none", 3)])
def test_a_tied_table_is_one_parameter(tie: str, tables: int) -> None:
    model = Seq2Seq(small_config(tie=tie))
    model.allocate()
    assert sum(name.endswith("table") for name in model.parameters()) == tables
    assert model.views(model.vector).keys() == set(model.parameters().values())


def test_a_vector_that_is_given_keeps_its_contents(model: Example) -> None:
    kept = {name: value.copy() for name, value in model.arrays().items()}
    other = Example()
    other.allocate(model.vector.dtype, vector=model.vector)
    for name, value in other.arrays().items():
        np.testing.assert_array_equal(value, kept[name])
        assert np.shares_memory(value, model.vector)


def test_load_arrays_copies_values(model: Example) -> None:
    values = {name: np.random.default_rng(1).random(value.shape) for name, value in model.arrays().items()}
    model.load_arrays(values, "here")
    for name, value in model.arrays().items():
        np.testing.assert_array_equal(value, values[name].astype(value.dtype))
        assert not np.shares_memory(value, values[name])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda values: values.pop("free"), r"here lacks 1 of the model's parameters, such as free"),
        (lambda values: values.update(more=np.ones(2)), r"here has arrays .* not know .1., such as more"),
        (lambda values: values.update(gain=np.ones(4)), r"here: gain has shape \(4,\), the model expects \(3,\)"),
        (lambda values: values.update(gain=np.ones((3, 1))), r"gain has shape"),
        (lambda values: values.update(gain=np.array([1, np.nan, 1])), r"here: gain contains values that are not"),
        (lambda values: values.update(gain=np.array([1, np.inf, 1])), r"gain contains values that are not finite"),
    ],
)
def test_load_arrays_refuses(model: Example, change, message: str) -> None:
    values = {name: value.copy() for name, value in model.arrays().items()}
    change(values)
    with pytest.raises(ModelError, match=message):
        model.load_arrays(values, "here")


def test_initial_values() -> None:
    rng = np.random.default_rng(0)
    assert (zeros(rng, (3,)) == 0).all()
    assert (ones(rng, (3,)) == 1).all()
    drawn = xavier_uniform(30, 70)(rng, (300, 70))
    bound = (6 / 100) ** 0.5
    assert bound * 0.99 < np.abs(drawn).max() <= bound
    assert drawn.std() == pytest.approx(bound / 3**0.5, rel=0.02)
    assert normal(0.25)(rng, (200, 100)).std() == pytest.approx(0.25, rel=0.02)


def test_one_seed_one_model() -> None:
    vectors = []
    for seed in (1, 1, 2):
        model = Seq2Seq(small_config())
        model.allocate()
        model.initialize(np.random.default_rng(seed))
        vectors.append(model.vector)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert (vectors[0] != vectors[2]).any()


def test_matrices_lie_as_they_are_told_to_and_files_do_not_know(model: Example) -> None:
    assert model.layers[0].weight.data.T.flags.c_contiguous
    assert model.free.data.flags.c_contiguous
    written = model.rows_first(model.vector)
    np.testing.assert_array_equal(model.from_rows_first(written), model.vector)
    for parameter, start in model._places:
        stretch = written[start : start + parameter.data.size]
        np.testing.assert_array_equal(stretch.reshape(parameter.shape), parameter.data)
