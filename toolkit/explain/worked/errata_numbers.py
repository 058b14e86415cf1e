"""Where the arithmetic of the founding document 004 errs: what it prints beside what the toolkit computes.

The printed figures are facts about the document; every other number is computed when it is asked for.
"""

import math
from collections.abc import Callable

import numpy as np

from toolkit.explain.pages.blocks import Erratum
from toolkit.explain.worked.example import (
    TARGET,
    cross_attended,
    later_attention,
    later_differences,
    later_gradients,
    later_pass,
    self_attended,
)
from toolkit.functional.arrays import Array
from toolkit.functional.attention import softmax_over_keys
from toolkit.functional.positions import sinusoidal_positions
from toolkit.nn.recorder import Recorder
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam

# What the document prints and goes on with.
X = np.array([[1.0, 1.0], [0.841, 1.540], [1.909, 0.584]])
WEIGHTS = np.array([[0.268, 0.351, 0.380], [0.312, 0.470, 0.218], [0.309, 0.242, 0.449]])
MEMORY = np.array([[1.288, 1.030], [1.201, 1.178], [1.485, 0.989]])
FIRST_QUERY, SECOND_QUERY = np.array([[1.0, 1.5]]), np.array([[1.4, 1.2]])
SECOND_DOTS, SECOND_WEIGHTS = np.array([3.060, 3.243, 3.486]), np.array([0.26, 0.30, 0.44])
GRADIENT = np.array([0.01, -0.02, 0.005, 0.01])


def shown(values: Array, digits: int = 3) -> str:
    """Numbers as a document prints them: "(1.288, 1.030)", rows one after the other."""
    values = np.asarray(values)
    if values.ndim > 1:
        return ", ".join(shown(row, digits) for row in values)
    return f"({', '.join(f'{value:.{digits}f}' for value in values)})"


def softmax(scores: Array) -> Array:
    """The toolkit's softmax, of one row."""
    by_key = np.array(scores, np.float64).reshape(1, 1, -1, 1)
    softmax_over_keys(by_key, None)
    return by_key.reshape(-1)


def scaled_row_1() -> Erratum:
    return Erratum(
        "004",
        "row 1 of the scores, scaled by √2",
        "(1.418, 1.688, 1.767), and later (1.414, 1.683, 1.763)",
        shown(self_attended(X).scores[0]),
        "The first time √2 is cut to 1.41. The weights do not change by more than a thousandth.",
    )


def exponentials_row_1() -> Erratum:
    exponentials = np.exp(self_attended(X).scores[0])
    return Erratum(
        "004",
        "exponentials of row 1, and its last weight",
        "(4.11, 5.38, 5.84), sum 15.33; weight 0.381",
        f"{shown(exponentials, 2)}, sum {exponentials.sum():.2f}; weight {self_attended(X).weights[0, 2]:.3f}",
        "Its first time through has the right weight.",
    )


def context_row_1() -> Erratum:
    return Erratum(
        "004",
        "context of row 1, I",
        shown(MEMORY[0]),
        shown(self_attended(X).context[0]),
        f"Its weights, rounded, sum to {WEIGHTS[0].sum():.3f}, and it rounds each product once more.",
    )


def scores_row_2() -> Erratum:
    return Erratum(
        "004",
        "scores of row 2, am, before scaling",
        "(2.381, 2.971, 2.125)",
        shown(self_attended(X).dots[1]),
        "0.841² + 1.540² and 0.841·1.909 + 1.540·0.584 are added up wrongly.",
    )


def scores_row_3() -> Erratum:
    return Erratum(
        "004",
        "scores of row 3, boy, before scaling",
        "(2.493, 2.125, 3.981)",
        shown(self_attended(X).dots[2]),
        "The wrong product of am and boy is used again, and 1.909² + 0.584² is slightly off.",
    )


def scaled_rows_2_3() -> Erratum:
    return Erratum(
        "004",
        "rows 2 and 3 of the scores, scaled",
        "(1.683, 2.100, 1.502), (1.763, 1.502, 2.814)",
        shown(self_attended(X).scores[1:]),
        "They follow from the wrong products.",
    )


def weights_rows_2_3() -> Erratum:
    return Erratum(
        "004",
        "rows 2 and 3 of the attention matrix",
        shown(WEIGHTS[1:]),
        shown(self_attended(X).weights[1:]),
        "The document says “let's say”, and goes on with them.",
    )


def context_rows_2_3() -> Erratum:
    return Erratum(
        "004",
        "contexts of rows 2 and 3, the encoder's output for am and boy",
        shown(MEMORY[1:]),
        shown(self_attended(X).context[1:]),
        f"Not even the printed weights give the printed contexts, but {shown(WEIGHTS[1:] @ X)}.",
    )


def cross_weights() -> Erratum:
    printed = cross_attended(FIRST_QUERY, MEMORY)
    right = cross_attended(FIRST_QUERY, self_attended(X).context)
    return Erratum(
        "004",
        "cross-attention of (1.0, 1.5): products, weights, context",
        "(2.833, 2.968, 2.969), (0.312, 0.343, 0.345), (1.33, 1.06)",
        f"{shown(right.dots)}, {shown(right.weights)}, {shown(right.context)}",
        "It looks at the wrong rows for am and boy. Of those rows as printed it takes "
        f"{shown(printed.weights)} and gets {shown(printed.context)}.",
    )


def mask_token() -> Erratum:
    right = np.array([0.8, 1.1]) + sinusoidal_positions(2, 2, dtype=np.float64)[1]
    sos = np.array(TARGET["<sos>"]) + sinusoidal_positions(1, 2, dtype=np.float64)[0]
    return Erratum(
        "004",
        "what is added to the second target word",
        "(0.8, 1.1) + (1, 0) = (1.8, 1.1)",
        f"(0.8, 1.1) + PE(1) = {shown(right)}",
        "(1, 0) is not PE(1). Nor does a translator read a MASK token: at its second step it reads <sos>, which "
        f"stands at position 0 as {shown(sos, 1)}, and म at position 1.",
    )


def second_dots() -> Erratum:
    return Erratum(
        "004",
        "products of the second target word, (1.4, 1.2)",
        shown(SECOND_DOTS),
        shown(cross_attended(SECOND_QUERY, MEMORY).dots[0]),
        "With the document's own rows. With the right ones they are "
        f"{shown(cross_attended(SECOND_QUERY, self_attended(X).context).dots[0])}.",
    )


def second_weights() -> Erratum:
    return Erratum(
        "004",
        "weights of the second target word",
        shown(SECOND_WEIGHTS, 2),
        shown(cross_attended(SECOND_QUERY, MEMORY).weights[0]),
        f"The scaling by √2 is left out, and the softmax of the printed products is {shown(softmax(SECOND_DOTS))}. "
        "So boy gets little more than a third of the attention: nothing has been learned yet.",
    )


def second_context() -> Erratum:
    return Erratum(
        "004",
        "context of the second target word",
        "(1.35, 1.05)",
        shown(cross_attended(SECOND_QUERY, MEMORY).context[0]),
        f"It follows from those weights; the printed weights give {shown(SECOND_WEIGHTS @ MEMORY)}.",
    )


def cross_entropy() -> Erratum:
    return Erratum("004", "-log 0.85", "0.17", f"{-math.log(0.85):.3f}", "-log 0.1 = 2.30 is right.")


def later_weights() -> Erratum:
    module, recorder = later_attention(), Recorder()
    later_pass(module, Tape(recorder=recorder))
    query = next(each.value for each in recorder.records if each.name == "query")[:, 0]
    return Erratum(
        "004",
        "W_q of the later example, and W_v",
        "3×2: (0.1, 0.3), (0.2, 0.4), (0.5, 0.6)",
        f"2×2: (0.1, 0.3), (0.2, 0.7), which gives Q = {shown(query, 2)}",
        "X is 3×2, so that X W needs a W of two rows; the text multiplies this 2×2 one, and prints its Q rightly. W_v "
        "is printed with three rows too; nothing is multiplied by it.",
    )


def gradient_of_w_q() -> Erratum:
    gradient = later_gradients()[0]
    off = np.abs(gradient - later_differences()).max()
    return Erratum(
        "004",
        "the gradient of W_q (and of W_k and W_v)",
        "∂L/∂Q × Xᵀ",
        f"Xᵀ × ∂L/∂Q, in the later example {shown(gradient, 4)}",
        f"∂L/∂Q Xᵀ is 3×3 where W_q is 2×2. The toolkit's backward is off finite differences by {off:.0e} at most. "
        "Some pages later the document has it right.",
    )


def adam_moment() -> Erratum:
    moments = np.zeros(4), np.zeros(4)
    Adam(0.9, 0.999, 1e-8).update(np.zeros(4), GRADIENT, moments, 1, 0.001, 1.0, 0)
    return Erratum(
        "004",
        "v₁ of the Adam example, last entry",
        "1e-6",
        f"{moments[1][3]:.0e}".replace("e-0", "e-"),
        f"0.001 · 0.01²; the whole of v₁ is {', '.join(f'{value:.1e}' for value in moments[1])}.",
    )


def positions_of_four() -> Erratum:
    return Erratum(
        "004",
        "PE(1) for d = 4",
        "(1, 0, 1, 0)",
        shown(sinusoidal_positions(2, 4, dtype=np.float64)[1]),
        "PE(0) = (0, 1, 0, 1) is right.",
    )


def small_softmax() -> Erratum:
    scaled = cross_attended([[0.1, 0.2]], [[0.2, 0.3], [0.0, 0.1], [-0.1, 0.2]])
    return Erratum(
        "004",
        "softmax(0.08, 0.02, 0.03)",
        "(0.34, 0.33, 0.33)",
        shown(softmax(scaled.dots[0])),
        f"The products are right; scaled by √2, as its own formula says, they give {shown(scaled.weights[0])}.",
    )


NUMBERS: dict[str, Callable[[], Erratum]] = {
    each.__name__: each
    for each in (
        scaled_row_1,
        exponentials_row_1,
        context_row_1,
        scores_row_2,
        scores_row_3,
        scaled_rows_2_3,
        weights_rows_2_3,
        context_rows_2_3,
        cross_weights,
        mask_token,
        second_dots,
        second_weights,
        second_context,
        cross_entropy,
        later_weights,
        gradient_of_w_q,
        adam_moment,
        positions_of_four,
        small_softmax,
    )
}
