"""How far parameters have moved, told by groups."""

import numpy as np
import pytest

from toolkit.explain.parameters import Movement, movements, unpacked

BEFORE = {
    "layers.0.attention.query_key_value.bias": np.array([0.0, 0, 0, 0, 0, 0]),
    "layers.0.norm.gain": np.array([1.0, 1]),
    "layers.1.attention.query_key_value.bias": np.array([3.0, 0, 0, 0, 0, 4]),
    "layers.1.norm.gain": np.array([1.0, 1]),
}


def test_groups_are_those_of_one_name_in_all_layers() -> None:
    after = {name: value.copy() for name, value in BEFORE.items()}
    after["layers.0.attention.query_key_value.bias"][0] = 2
    after["layers.1.norm.gain"][:] = 4, -3
    gradients = {name: np.full_like(value, number) for number, (name, value) in enumerate(BEFORE.items())}
    found = {each.name: each for each in movements(BEFORE, after, gradients)}
    biases = [f"layers.*.attention.{name}.bias" for name in ("query", "key", "value")]
    assert list(found) == [*biases, "layers.*.norm.gain"]
    assert found["layers.*.attention.query.bias"] == Movement("layers.*.attention.query.bias", 4, 1, 1.5, 1.0, 2**0.5)
    assert found["layers.*.attention.key.bias"] == Movement("layers.*.attention.key.bias", 4, 0, 0.0, 0.0, 2**0.5)
    assert found["layers.*.norm.gain"] == Movement("layers.*.norm.gain", 4, 2, 1.0, 2.5, 5**0.5)


@pytest.mark.parametrize("which", [0, 1, 2])
def test_a_gradient_without_a_parameter_is_a_mistake(which: int) -> None:
    given = [dict(BEFORE) for _ in range(3)]
    given[which]["layers.0.norm.gains"] = given[which].pop("layers.0.norm.gain")
    with pytest.raises(KeyError, match=r"layers\.0\.norm\.gains"):
        movements(*given)


def test_what_is_unpacked_is_the_same_memory() -> None:
    packed = {"a.query_key_value.weight": np.arange(12.0).reshape(2, 6)}
    parts = unpacked(packed)
    assert list(parts) == ["a.query.weight", "a.key.weight", "a.value.weight"]
    parts["a.key.weight"][...] = 0
    np.testing.assert_array_equal(packed["a.query_key_value.weight"], [[0, 1, 0, 0, 4, 5], [6, 7, 0, 0, 10, 11]])
