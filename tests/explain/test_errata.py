"""The known errors of the founding documents: what is called right is so by arithmetic that is not the toolkit's."""

import math
import re

import numpy as np
import pytest

from toolkit.explain.errata import errata, erratum
from toolkit.explain.worked import worked_page

X = [[1, 1], [0.841, 1.540], [1.909, 0.584]]
MEMORY = [[1.288, 1.030], [1.201, 1.178], [1.485, 0.989]]


def dots(queries, keys):
    return [[sum(a * b for a, b in zip(q, k, strict=True)) for k in keys] for q in queries]


def softmax(row):
    powers = [math.exp(each) for each in row]
    return [each / sum(powers) for each in powers]


def scaled(rows, width=2):
    return [[each / math.sqrt(width) for each in row] for row in rows]


def mixed(weights, values):
    return [[sum(w * v[i] for w, v in zip(row, values, strict=True)) for i in (0, 1)] for row in weights]


WEIGHTS = [softmax(row) for row in scaled(dots(X, X))]
CONTEXT = mixed(WEIGHTS, X)
FIRST = [softmax(row) for row in scaled(dots([[1.0, 1.5]], CONTEXT))]
SECOND = [softmax(row) for row in scaled(dots([[1.4, 1.2]], MEMORY))]

# What each must say, in the order in which it says it.
EXPECTED = {
    "scaled_row_1": scaled(dots(X, X))[0],
    "context_row_1": CONTEXT[0],
    "scores_row_2": [2.381, 3.079, 2.505],
    "scores_row_3": [2.493, 2.505, 3.985],
    "scaled_rows_2_3": [*scaled(dots(X, X))[1], *scaled(dots(X, X))[2]],
    "weights_rows_2_3": [*WEIGHTS[1], *WEIGHTS[2]],
    "context_rows_2_3": [*CONTEXT[1], *CONTEXT[2]],
    "cross_weights": [*dots([[1.0, 1.5]], CONTEXT)[0], *FIRST[0], *mixed(FIRST, CONTEXT)[0]],
    "second_dots": [3.039, 3.095, 3.266],
    "second_weights": SECOND[0],
    "second_context": mixed(SECOND, MEMORY)[0],
    "cross_entropy": [math.log(1 / 0.85)],
    "positions_of_four": [0.841, 0.540, 0.010, 1.000],
    "small_softmax": [0.346, 0.326, 0.329],
}


def numbers(text):
    return [float(each) for each in re.findall(r"-?\d+\.\d+", text)]


@pytest.mark.parametrize("key", EXPECTED)
def test_what_is_computed_is_what_arithmetic_by_hand_gives(key):
    found = numbers(erratum(key).computed)
    assert len(found) == len(EXPECTED[key])
    np.testing.assert_allclose(found, EXPECTED[key], atol=0.00051)


def test_what_is_printed_differs_from_what_is_computed():
    for key in EXPECTED:
        printed = [float(each) for each in re.findall(r"\d+(?:\.\d+)?", erratum(key).printed)][: len(EXPECTED[key])]
        assert np.abs(np.array(printed) - EXPECTED[key]).max() > 0.0005, key


def test_exponentials_and_weight_of_row_1():
    row = scaled(dots(X, X))[0]
    found = numbers(erratum("exponentials_row_1").computed)
    np.testing.assert_allclose(found[:3], [math.exp(each) for each in row], atol=0.0051)
    np.testing.assert_allclose(found[4], 0.380, atol=1e-9)
    np.testing.assert_allclose(WEIGHTS[0], [0.268, 0.351, 0.380], atol=0.0005)  # which the document first has right


def test_a_position_that_is_not_the_second():
    assert numbers(erratum("mask_token").computed)[2:] == [1.641, 1.640]


def test_the_gradient_of_a_weight_has_its_shape_and_the_slope_of_the_loss():
    x, w_q = np.array([[1.0, 0.5], [0.5, 1.0], [1.5, 1.0]]), np.array([[0.1, 0.3], [0.2, 0.7]])
    key, value = x @ [[0.1, 0.2], [0.3, 0.8]], x @ [[0.2, 0.7], [0.1, 0.3]]

    def loss(weight):
        [weights] = [softmax(row) for row in scaled((x[-1:] @ weight @ key.T).tolist())]
        return float(np.array(weights) @ value @ [0.2, -0.3])

    slopes = []
    for place in np.ndindex(2, 2):
        step = np.zeros((2, 2))
        step[place] = 1e-5
        slopes.append((loss(w_q + step) - loss(w_q - step)) / 2e-5)
    np.testing.assert_allclose(numbers(erratum("gradient_of_w_q").computed), slopes, atol=0.000051)


def test_the_later_weights_give_the_query_that_is_printed():
    assert numbers(erratum("later_weights").computed)[4:] == [0.2, 0.65, 0.25, 0.85, 0.35, 1.15]


def test_the_second_moment_is_the_square_of_the_gradient():
    assert math.isclose(float(erratum("adam_moment").computed), 0.001 * 0.01**2)


def test_how_many_parameters_never_train():
    assert erratum("trained_parameters").computed.startswith("128 of 100,096 ")


def test_the_printed_gradient_of_the_mean_is_off_and_the_toolkits_is_not():
    printed, computed = map(float, re.findall(r"by ([\d.e-]*\d)", erratum("mean_gradient").why))
    assert printed > 0.1
    assert computed < 1e-8


def test_the_error_of_a_token():
    assert erratum("token_error").computed.endswith(f"= {math.sqrt(64 * 0.0043):.3f}")


def test_a_mask_of_minus_a_billion_is_not_infinite():
    why = erratum("masked_scores").why
    assert "a weight of 0.000, and -∞ 0.000" in why
    assert "(0.500 each)" in why
    assert "gives nan" in why


def test_the_scale_is_that_of_a_head():
    assert (erratum("scale_of_heads").printed[-12:-10], erratum("scale_of_heads").computed[13:16]) == ("8 ", " 4 ")


def test_decoupled_decay_depends_on_its_strength_alone():
    assert "2.0 becomes 1.960" in erratum("weight_decay").why  # 2 · (1 - 0.1 · 0.2)
    assert "1.900, whatever" in erratum("weight_decay").why  # 2 - 0.1


def test_marks_and_words():
    assert erratum("start_mark").computed == '["<sos>", "म"]'
    assert erratum("fed_its_answer").computed == "(0.5, 1.5), which is <sos>"
    assert erratum("no_end").computed == "reads <sos> म केटा हुँ, says म केटा हुँ <eos>"
    assert erratum("spelling").computed == "म केटा हुँ"


def test_each_is_on_the_default_page_once():
    shown = [
        block for section in worked_page().sections for block in section.blocks if type(block).__name__ == "Erratum"
    ]
    assert len(shown) == len(errata())
    assert {each.place for each in shown} == {each.place for each in errata().values()}
    other = worked_page("boy I").sections  # whose figures are not the document's
    assert "scores_row_2" in errata()
    assert erratum("scores_row_2") in other[-1].blocks


def test_all_documents_are_there():
    documents = {each.document for each in errata().values()}
    assert documents == {"000", "000, 001", "002", "003", "004"}
    assert all(each.printed and each.computed and each.place for each in errata().values())
