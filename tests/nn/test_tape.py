import numpy as np
import pytest

from toolkit.nn.module import Parameter, ones
from toolkit.nn.tape import Tape


def test_last_in_first_out() -> None:
    tape, first, second = Tape({}), object(), object()
    tape.push(first, 1)
    tape.push(second, 2)
    tape.push(first, 3)
    assert not tape.finished
    assert [tape.pop(first), tape.pop(second), tape.pop(first)] == [3, 2, 1]
    assert tape.finished


def test_a_pop_out_of_order_names_both() -> None:
    tape = Tape({})
    tape.push("forward", 1)
    tape.push(2.5, 2)
    with pytest.raises(RuntimeError, match="str pops what float pushed"):
        tape.pop("forward")


def test_a_pop_by_another_of_the_same_class() -> None:
    tape = Tape({})
    tape.push([], 1)
    with pytest.raises(RuntimeError, match="list pops what list pushed"):
        tape.pop([])


def test_a_pop_from_an_empty_tape() -> None:
    with pytest.raises(RuntimeError, match="empty tape"):
        Tape({}).pop("anybody")


def test_inference_keeps_nothing() -> None:
    tape = Tape()
    tape.push("owner", 1)
    assert tape.finished
    assert not tape.keeps
    assert Tape({}).keeps


def test_gradients_accumulate() -> None:
    parameter = Parameter((2,), ones)
    gradients = {parameter: np.array([1.0, 2.0])}
    tape = Tape(gradients)
    tape.accumulate(parameter, np.array([10.0, 20.0]))
    tape.accumulate(parameter, np.array([100.0, 200.0]))
    assert gradients[parameter].tolist() == [111, 222]


def test_what_comes_first_is_written_over_a_gradient_that_holds_nothing() -> None:
    used, shared, looked_up, unused = parameters = [Parameter((2,), ones) for _ in range(4)]
    gradients = {parameter: np.array([np.nan, np.nan]) for parameter in parameters}
    unwritten = set(parameters)
    tape = Tape(gradients, unwritten=unwritten)
    own = tape.unwritten_gradient(used)
    own[...] = 1, 2
    tape.accumulate(used, own)
    tape.accumulate(shared, np.array([10.0, 20.0]))
    tape.written_gradient(looked_up)[1] += 5
    assert all(tape.unwritten_gradient(parameter) is None for parameter in (used, shared, looked_up))
    for parameter in (used, shared):
        tape.accumulate(parameter, np.array([100.0, 200.0]))
    tape.written_gradient(looked_up)[1] += 5
    assert [gradients[each].tolist() for each in (used, shared, looked_up)] == [[101, 202], [110, 220], [0, 10]]
    assert unwritten == {unused}


def test_add_writes_to_the_branch() -> None:
    x, branch = np.array([1.0, 2.0]), np.array([3.0, 4.0])
    assert Tape().add(x, branch) is branch
    assert (branch.tolist(), x.tolist()) == ([4, 6], [1, 2])


def test_dropout_needs_a_rate_and_a_generator() -> None:
    assert Tape().keep_mask((2, 2), 0.5) == (None, 1.0)
    assert Tape({}, np.random.SFC64(1)).keep_mask((2, 2), 0.0) == (None, 1.0)
    mask, scale = Tape({}, np.random.SFC64(1)).keep_mask((2, 2), 0.5)
    assert (mask.shape, scale) == ((2, 2), 2.0)
