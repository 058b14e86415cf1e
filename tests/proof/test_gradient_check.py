"""The check tells right from wrong on anybody's pair, and says what is wrong."""

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import toolkit
from toolkit.functional.norms import layer_norm, layer_norm_backward
from toolkit.proof import WRONG, Measurement, Wrong, check
from toolkit.proof.cases import find_case
from toolkit.proof.gradient_check import SMALLEST_SLOPE, TOLERANCE


def normal(*shapes):
    rng = np.random.default_rng(0)
    return [rng.standard_normal(shape) for shape in shapes]


def product(x, weight):
    return x @ weight, (x, weight)


def product_backward(dy, saved):
    x, weight = saved
    return dy @ weight.T, x.T @ dy


def softmax(x):
    exp = np.exp(x - x.max(axis=-1, keepdims=True))
    return exp / exp.sum(axis=-1, keepdims=True)


# Right pairs of every kind


def test_a_right_pair_passes_and_the_report_says_so():
    report = check(product, product_backward, normal((4, 3), (3, 2)))
    assert report.passed
    assert (report.arguments, report.problems) == (["x", "weight"], [])
    lines = str(report).splitlines()
    assert [line.split()[0] for line in lines] == ["argument", "x", "weight", "passed"]
    assert lines[2].endswith("right")


def test_a_forward_may_save_nothing():
    assert check(lambda x: 3 * x, lambda dy: 3 * dy, normal((4, 3))).passed


def test_a_forward_may_return_a_number():
    assert check(lambda x: (float((x * x).sum()), x), lambda dloss, x: 2 * dloss * x, normal((4, 3))).passed


def test_a_forward_may_return_several_arrays():
    def both(x):
        return (np.sin(x), x.sum(axis=1)), x

    assert check(both, lambda dy, x: dy[0] * np.cos(x) + dy[1][:, None], normal((4, 3))).passed
    assert not check(both, lambda dy, x: dy[0] * np.cos(x), normal((4, 3))).passed


def test_what_is_no_array_of_floats_is_not_differentiated():
    def looked_up(ids, table, scale, name=None, *, shift):
        return scale * table[ids] + shift, (ids, table.shape, scale)

    def backward(dy, saved):
        ids, shape, scale = saved
        gradient = np.zeros(shape)
        np.add.at(gradient, ids, scale * dy)
        return gradient

    arguments = np.array([1, 1, 0]), normal((4, 3))[0], 2.5, None
    for returned in (backward, lambda dy, saved: (None, backward(dy, saved))):
        report = check(looked_up, returned, arguments, keywords={"shift": 1.0})
        assert (report.passed, report.arguments) == (True, ["table"]), report


def test_arrays_of_floats_may_be_constants():
    def weighted(x, mask):
        return x * mask, mask

    arguments = normal((4, 3), (4, 3))
    assert check(weighted, lambda dy, mask: dy * mask, arguments, constants=["mask"]).passed
    missing = check(weighted, lambda dy, mask: dy * mask, arguments)
    assert missing.problems == ["mask: its gradient is missing."]
    with pytest.raises(ValueError, match="no argument 'masks': the arguments are x, mask"):
        check(weighted, lambda dy, mask: dy * mask, arguments, constants=["masks"])


def test_arguments_are_copied_and_single_precision_is_widened():
    x = np.ones((2, 2), np.float32)
    x.setflags(write=False)
    assert check(lambda x: (x * x, x.copy()), lambda dy, x: 2 * x * dy, [x]).passed
    same = normal((3, 3))[0]
    assert check(product, product_backward, [same, same]).passed


def test_a_seed_draws_other_directions():
    arguments = normal((4, 3), (3, 2))
    one, same, other = (check(product, product_backward, arguments, seed=seed) for seed in (1, 1, 2))
    assert one == same != other


# What is wrong, and how it is told


@pytest.mark.parametrize(
    ("forward", "backward", "told"),
    [
        (product, lambda dy, saved: (saved[1] @ dy.T, saved[0].T @ dy), "x: it has shape (4, 3), its gradient (3, 4)."),
        (product, lambda dy, saved: (dy @ saved[1].T, None), "weight: its gradient is missing."),
        (product, lambda dy, saved: dy @ saved[1].T, "weight: its gradient is missing."),
        (
            product,
            lambda dy, saved: (*product_backward(dy, saved), dy),
            "returns 3 gradients for 2 arguments.",
        ),
        (
            product,
            lambda dy, saved: (dy @ saved[1].T, saved[0].T @ dy * np.inf),
            "weight: its gradient is not finite",
        ),
        (product, lambda dy, saved: (0 * saved[0], saved[0].T @ dy), "x: its gradient is 0 everywhere."),
        (product, lambda dy, saved: (-dy @ saved[1].T, saved[0].T @ dy), "x: its gradient is -1 times the right one: "),
        (product, lambda dy, saved: (dy @ saved[1].T, saved[0].T @ dy / 4), "divided by 4 once too often (a mean for"),
        (product, lambda dy, saved: (dy @ saved[1].T * 2**0.5, saved[0].T @ dy), "a scale of √2 is missing"),
        (lambda x, w: (softmax(x) + w.sum(), softmax(x)), lambda dy, p: (dy * p, None), "do not add up to 0"),
        (lambda x, w: x * 1.5, lambda dy: (np.vstack([1.5 * dy[:2], dy[2:]]), None), "x: 2 of 4 rows of its gradient"),
        (lambda x, w: (x * w[:, 0], w), lambda dy, w: (dy, None), "x: each column of its gradient is off by a factor"),
        (lambda x, w: (float((x**2).sum()), x), lambda dy, x: (2 * x, None), "dy, is not multiplied in."),
        (lambda x, w: x.astype(np.float32), lambda dy: (dy, None), "forward makes float32 of float64, too coarse"),
        (lambda x, w: x + np.random.default_rng().random(x.shape), lambda dy: (dy, None), "something else each time"),
    ],
)
@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
def test_what_is_wrong_is_told(forward, backward, told):
    report = check(forward, backward, normal((4, 3), (3, 2)))
    assert not report.passed
    assert any(told in each for each in report.problems), report.problems
    assert str(report).endswith("failed")


def test_the_transposed_gradient_is_told():
    report = check(product, lambda dy, saved: (dy @ saved[1].T, dy.T @ saved[0]), normal((4, 3), (3, 3)))
    assert report.problems == ["weight: its gradient is the transposed one."]


def test_a_gradient_of_what_is_not_there_is_told():
    report = check(lambda x, bias: x + 0, lambda dy: (dy, dy.sum(axis=0)), [*normal((4, 3)), None])
    assert report.problems == ["bias: there is a gradient of what is not differentiated."]


def test_an_argument_that_is_written_to_is_told_and_put_back():
    def doubled(x):
        x *= 2
        return x.copy()

    report = check(doubled, lambda dy: 2 * dy, normal((4, 3)))
    assert report.problems[0] == "x: forward writes to it, and whoever owns the array finds other numbers."

    def backward(dy, x):
        x += 1
        return dy

    report = check(lambda x: (x + 1, x), backward, normal((4, 3)))
    assert [each[:22] for each in report.problems] == ["x: backward writes to "]
    assert report.error < TOLERANCE


def test_misuse_is_refused():
    with pytest.raises(ValueError, match="nothing to differentiate"):
        check(product, product_backward, [np.arange(3), 2.0])
    with pytest.raises(TypeError, match="returns no numbers"):
        check(lambda x: None, lambda dy: dy, normal((3,)))
    with pytest.raises(ValueError, match="not finite"):
        check(lambda x: x * np.inf, lambda dy: dy, normal((3,)))


def test_a_known_mistake_in_ones_own_pair_is_recognised():
    def own_norm(x, gain, bias):
        std = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-6)
        normal = (x - x.mean(axis=-1, keepdims=True)) / std
        return normal * gain + bias, (normal, gain, std)

    def own_backward(dy, saved):
        normal, gain, std = saved
        dnormal = dy * gain
        along = (dnormal * normal).mean(axis=-1, keepdims=True)
        return (dnormal - normal * along) / std, (dy * normal).sum(axis=0), dy.sum(axis=0)

    report = check(own_norm, own_backward, normal((6, 5), (5,), (5,)))
    assert [each.is_right for each in report.measurements] == [False, True, True]
    assert "That is what layer norm without mean gives. Takes the mean for a constant" in report.problems[-1]


@pytest.mark.parametrize("wrong", WRONG, ids=lambda wrong: wrong.name)
def test_a_wrong_version_fails_the_check_that_the_right_one_passes_and_is_recognised(wrong: Wrong):
    case = find_case(wrong.case)
    assert case.check(5).passed
    report = case.check(5, wrong.backward)
    assert report.error > 1e-3
    assert any(each.startswith(f"That is what {wrong.name} gives") for each in report.problems)


def test_a_wrong_gradient_may_pass_where_the_gain_is_1():
    """The reason that the arguments of the check are random."""
    (forgets,) = (each for each in WRONG if each.backward.__name__ == "layer_norm_that_forgets_its_gain")
    (x,), bias = normal((6, 4)), np.zeros(4)
    assert check(layer_norm, forgets.backward, [x, np.ones(4), bias]).passed
    assert not check(layer_norm, forgets.backward, [x, np.full(4, 2.0), bias]).passed
    assert check(layer_norm, layer_norm_backward, [x, np.full(4, 2.0), None]).passed


@pytest.mark.parametrize(
    ("analytic", "numeric", "error"),
    [
        (2.0, 1.0, 0.5),
        (1.0, 2.0, 0.5),
        (-1.0, 1.0, 2.0),
        (0.0, 1e-9, 1e-9 / SMALLEST_SLOPE),
        (math.nan, 1.0, math.nan),
        (math.inf, 1.0, math.nan),
    ],
)
def test_relative_error(analytic: float, numeric: float, error: float) -> None:
    measured = Measurement("x", analytic, numeric)
    assert measured.error == pytest.approx(error, nan_ok=True)
    assert measured.is_right == (abs(error) <= TOLERANCE)


def test_the_program_prints_every_pair_and_every_wrong_version():
    command = [sys.executable, "-m", "toolkit.proof"]
    shown = subprocess.run(command, capture_output=True, encoding="utf-8", timeout=60, check=False)
    assert (shown.returncode, shown.stderr) == (0, "")
    assert f"{len(WRONG)} of {len(WRONG)} wrong versions are found." in shown.stdout
    assert all(wrong.name in shown.stdout for wrong in WRONG)


def test_the_example_of_the_readme_prints_what_stands_there(capsys):
    text = (Path(toolkit.__file__).parent / "explain" / "README.md").read_text(encoding="utf-8")
    program, shown = re.search(
        r"```python\n(import numpy.*?check\(my_norm.*?)```\n\n```\n(.*?)```", text, re.S
    ).groups()
    exec(program, {})
    found, expected = (re.sub(r"\d\.\de-1[0-9]", "tiny", each) for each in (capsys.readouterr().out, shown))
    assert found == expected  # but for the last digits of errors that are rounding
