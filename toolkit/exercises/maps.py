"""Exercises on the maps of a transformer: each forward is given or short, each backward is to be found."""

import numpy as np

from toolkit import plain
from toolkit.exercises.exercise import Arguments, Exercise, Mistake

T, D, F, V = 5, 8, 6, 7
SIZES = {"T": T, "D": D, "F": F, "V": V}


def _numbers(*shapes: tuple[int, ...]):
    """Return a function that draws arrays of these shapes."""
    return lambda rng: tuple(rng.standard_normal(shape) for shape in shapes)


# softmax


def large_scores(rng: np.random.Generator) -> Arguments:
    """Scores as they occur, and a row so large that exp alone overflows; sometimes this row by itself."""
    scores = 3 * rng.standard_normal((T, D))
    scores[1] += 900
    return (scores if rng.random() < 0.5 else scores[1],)


def softmax_of_all(x):
    exp = np.exp(x - x.max())
    return exp / exp.sum()


def softmax_of_columns(x):
    exp = np.exp(x - x.max(axis=0, keepdims=True))
    return exp / exp.sum(axis=0, keepdims=True)


def softmax_with_one_maximum(x):
    with np.errstate(invalid="ignore"):
        exp = np.exp(x - x.max())
        return exp / exp.sum(axis=-1, keepdims=True)


def softmax_that_overflows(x):
    with np.errstate(over="ignore", invalid="ignore"):
        exp = np.exp(x)
        return exp / exp.sum(axis=-1, keepdims=True)


SOFTMAX = Exercise(
    "softmax", "Probabilities from scores", plain.softmax, large_scores, ("probabilities",),
    (
        "A row is the last axis, whether there are others before it or not: axis=-1.",
        "Divide exp(x) by its sum over the row: keepdims=True keeps the shapes fitting.",
        "exp(900) is inf. Taking the same number from all scores of a row changes nothing in the quotient: take the "
        "row's largest.",
    ),
    "toolkit/plain.py: softmax; toolkit/functional/attention.py: softmax_over_keys",
    (
        Mistake(softmax_of_all,
            "the sum goes over all rows: every row has to sum to 1 by itself (axis=-1, keepdims=True)"),
        Mistake(softmax_of_columns,
            "the sum goes down the columns: the probabilities of a row must sum to 1 (axis=-1)"),
        Mistake(
            softmax_with_one_maximum,
            "one maximum is taken from all rows: the rows that are far below it underflow to 0 / 0; take each "
            "row's own"),
        Mistake(softmax_that_overflows,
            "exp overflows for large scores: take the largest score of each row away first"),
    ),
    SIZES, calls=8,
)  # fmt: skip


# softmax's gradient


def softmax_pair(x):
    p = plain.softmax(x)

    def back(dp):
        return p * (dp - (p * dp).sum(axis=-1, keepdims=True))

    return p, back


def softmax_of_each_alone(x):
    p = plain.softmax(x)
    return p, lambda dp: dp * p * (1 - p)


def softmax_without_its_sum(x):
    p = plain.softmax(x)
    return p, lambda dp: dp * p


def softmax_with_the_sum_of_dp(x):
    p = plain.softmax(x)
    return p, lambda dp: p * (dp - dp.sum(axis=-1, keepdims=True))


def softmax_with_the_mean(x):
    p = plain.softmax(x)
    return p, lambda dp: p * (dp - (p * dp).mean(axis=-1, keepdims=True))


SOFTMAX_GRADIENT = Exercise(
    "softmax_gradient", "The gradient of softmax", softmax_pair, _numbers((T, D)), ("p", "dx"),
    (
        "p_i depends on every x_j: ∂p_i/∂x_j is p_i (1 - p_i) for i = j, and -p_i p_j for the others.",
        "dx_j = Σ_i dp_i ∂p_i/∂x_j = p_j (dp_j - Σ_i p_i dp_i): one sum for each row.",
    ),
    "toolkit/plain.py: attention, in `back`",
    (
        Mistake(
            softmax_of_each_alone,
            "you take p_i for a function of x_i alone (the diagonal p (1 - p)): a higher score also lowers all "
            "the other "
            "probabilities of its row"),
        Mistake(softmax_without_its_sum,
            "a term is missing: Σ_i p_i dp_i of the row has to be taken from dp before the product with p"),
        Mistake(softmax_with_the_sum_of_dp, "the sum of the row is of p · dp, not of dp alone"),
        Mistake(softmax_with_the_mean, "it is the sum of p · dp over the row, not its mean"),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# linear


def linear_pair(x, weight, bias):
    return plain.linear(x, weight, bias)


def _linear(dx, dweight, dbias):
    """Make a wrong linear map of three formulas."""

    def linear(x, weight, bias):
        def back(dy):
            return dx(dy, weight), {"weight": dweight(x, dy), "bias": dbias(dy)}

        return x @ weight + bias, back

    return linear


def _right_dx(dy, weight):
    return dy @ weight.T


def _right_dweight(x, dy):
    return x.T @ dy


LINEAR = Exercise(
    "linear", "The gradient of a linear map", linear_pair, _numbers((T, D), (D, F), (F,)), ("y", "dx"),
    (
        "Look at the shapes: dx is (T, D), and is made of dy (T, F) and weight (D, F); dweight is (D, F).",
        "y_tf = Σ_d x_td w_df + b_f, so dx = dy weightᵀ, dweight = xᵀ dy; b is added to every row, so dbias "
        "is the sum of "
        "dy over the rows.",
    ),
    "toolkit/plain.py: linear; toolkit/functional/linear.py",
    (
        Mistake(
            _linear(_right_dx, _right_dweight, lambda dy: dy.mean(axis=0)),
            "dbias is the mean of dy over the rows; it must be the sum: a loss that is a mean was divided already"),
        Mistake(
            _linear(_right_dx, lambda x, dy: x.T @ dy / len(x), lambda dy: dy.mean(axis=0)),
            "dweight and dbias are divided by the number of rows once more: the loss was divided already"),
        Mistake(
            _linear(_right_dx, lambda x, dy: x[:1].T @ dy[:1], lambda dy: dy[0]),
            "dweight and dbias are of the first row only: every row adds to them"),
        Mistake(
            _linear(_right_dx, lambda x, dy: dy.T @ x, lambda dy: dy.sum(axis=0)),
            "dweight is turned: it must have the shape of weight, (D, F), so xᵀ dy and not dyᵀ x"),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# gelu


def gelu_of_relu(x):
    return plain.gelu(x)[0], lambda dy: dy * (x > 0)


def _gelu(dx):
    """Make a wrong GELU: dx(dy, x, tanh, slope of u for a factor of the power)."""

    def gelu(x):
        root = np.sqrt(2 / np.pi)
        tanh = np.tanh(root * (x + 0.044715 * x**3))
        return plain.gelu(x)[0], lambda dy: dx(dy, x, tanh, lambda power: root * (1 + power * 0.044715 * x**2))

    return gelu


gelu_with_phi_alone = _gelu(lambda dy, x, tanh, slope: dy * 0.5 * (1 + tanh))
gelu_without_the_inner_slope = _gelu(lambda dy, x, tanh, slope: dy * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2)))
gelu_without_dy = _gelu(lambda dy, x, tanh, slope: 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * slope(3))
gelu_with_dy_once = _gelu(lambda dy, x, tanh, slope: dy * 0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * slope(3))
gelu_without_the_power = _gelu(lambda dy, x, tanh, slope: dy * (0.5 * (1 + tanh) + 0.5 * x * (1 - tanh**2) * slope(1)))

GELU = Exercise(
    "gelu", "The gradient of GELU", plain.gelu, _numbers((T, D)), ("y", "dx"),
    (
        "y = x Φ with Φ = (1 + tanh u) / 2: a product, so two terms: Φ + x Φ'.",
        "Φ' = (1 - tanh² u) u' / 2, and u = √(2/π) (x + 0.044715 x³) has the slope u' = √(2/π) (1 + 3 · 0.044715 x²).",
    ),
    "toolkit/plain.py: gelu; toolkit/functional/activation.py",
    (
        Mistake(gelu_of_relu, "that is the gradient of ReLU"),
        Mistake(gelu_without_dy, "dy is missing: the slope at each entry has to be multiplied by its dy"),
        Mistake(gelu_with_dy_once, "dy multiplies the first term only: it belongs to both (mind the brackets)"),
        Mistake(gelu_without_the_power, "the slope of x³ is 3 x²: a factor 3 is missing in u'"),
        Mistake(gelu_with_phi_alone, "the second term of the product is missing: Φ(x) depends on x as well"),
        Mistake(gelu_without_the_inner_slope, "the inner derivative u'(x) is missing in the second term (chain rule)"),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# layer norm


def layer_norm_pair(x, gain, bias):
    return plain.layer_norm(x, gain, bias)


def _layer_norm(dx):
    """Make a wrong layer norm: dx(dnormal, normal, std, dy)."""

    def layer_norm(x, gain, bias):
        std = np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
        normal = (x - x.mean(axis=-1, keepdims=True)) / std

        def back(dy):
            return dx(dy * gain, normal, std, dy), {"gain": (dy * normal).sum(axis=0), "bias": dy.sum(axis=0)}

        return normal * gain + bias, back

    return layer_norm


def _mean(x):
    return x.mean(axis=-1, keepdims=True)


def layer_norm_with_the_gain_of_x(x, gain, bias):
    y, right = plain.layer_norm(x, gain, bias)

    def back(dy):
        dx, parameters = right(dy)
        return dx, parameters | {"gain": (dy * x).sum(axis=0)}

    return y, back


LAYER_NORM = Exercise(
    "layer_norm", "The gradient of layer norm", layer_norm_pair, _numbers((T, D), (D,), (D,)), ("y", "dx"),
    (
        "Mean and standard deviation depend on every entry of the row: a change of one entry moves them both.",
        "Add the same number to all entries of a row: y does not change. So dx of a row must sum to 0. "
        "Multiply what is "
        "left of the row by a number: y does not change either.",
        "With dn = dy · gain: dx = (dn - mean(dn) - normal · mean(dn · normal)) / std, means over the row.",
    ),
    "toolkit/plain.py: layer_norm; toolkit/functional/norms.py: layer_norm_backward",
    (
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: dn / std),
            "mean and standard deviation are taken for constants: they depend on x too, which takes away two averages"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dn - normal * _mean(dn * normal)) / std),
            "the mean also depends on x: along a constant direction your gradient is not 0, it must be "
            "(take mean(dn) away)"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dn - _mean(dn)) / std),
            "the standard deviation also depends on x: normal · mean(dn · normal) is to be taken away too"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dy - _mean(dy) - normal * _mean(dy * normal)) / std),
            "dx forgets the gain: begin with dn = dy · gain (a fresh model, whose gains are 1, would not show it)"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dn - _mean(dn) - D * normal * _mean(dn * normal)) / std),
            "what is taken away is normal times the mean of dn · normal over the row, not times the sum"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dn - dn.mean(0) - normal * (dn * normal).mean(0)) / std),
            "the averages go down the columns: mean and deviation were those of each row (axis=-1, keepdims=True)"),
        Mistake(
            layer_norm_with_the_gain_of_x,
            "dgain is made of x: what the gain was multiplied with in the forward is normal"),
        Mistake(
            _layer_norm(lambda dn, normal, std, dy: (dn - _mean(dn) - normal * _mean(dn * normal)) * std),
            "multiplied by std where it is to be divided by it"),
    ),
    SIZES, has_back=True, points=2,
)  # fmt: skip


# embedding


def repeated_ids(rng: np.random.Generator) -> Arguments:
    """Ids of which some occur twice."""
    ids = rng.integers(0, V, T)
    ids[1] = ids[3]
    return ids, rng.standard_normal((V, D))


def embedding_that_counts_once(ids, table):
    def back(dy):
        dtable = np.zeros_like(table)
        dtable[ids] += dy
        return dtable

    return table[ids], back


def embedding_that_writes(ids, table):
    def back(dy):
        dtable = np.zeros_like(table)
        dtable[ids[::-1]] = dy[::-1]
        return dtable

    return table[ids], back


EMBEDDING = Exercise(
    "embedding", "The gradient of a look-up", plain.embedding, repeated_ids, ("y", "dtable"),
    (
        "Row ids[t] of the table became row t of y, so row t of dy belongs to row ids[t] of dtable.",
        "A token that occurs twice gets both gradients: np.add.at(dtable, ids, dy) adds them one after the other.",
    ),
    "toolkit/plain.py: embedding; toolkit/functional/embedding.py",
    (
        Mistake(
            embedding_that_counts_once,
            "a token that occurs twice counts once: dtable[ids] += dy writes the last of them and loses the others"),
        Mistake(embedding_that_writes, "a token that occurs twice counts once: its gradients have to be added"),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# cross-entropy


def logits_and_labels(rng: np.random.Generator) -> Arguments:
    return rng.standard_normal((T, V)), rng.integers(0, V, T)


def _cross_entropy(dlogits):
    def cross_entropy(logits, labels):
        return plain.cross_entropy(logits, labels)[0], lambda: dlogits(plain.softmax(logits), labels)

    return cross_entropy


def _one_hot(labels):
    return np.eye(V)[labels]


CROSS_ENTROPY = Exercise(
    "cross_entropy", "The loss, and where all gradients begin", plain.cross_entropy, logits_and_labels,
    ("loss", "dlogits"),
    (
        "The loss is the mean over the rows of -log p(label), and log p = logit(label) - log Σ exp(logits).",
        "dlogits = (p - one-hot of the label) / T: what is too probable goes down, the label goes up, each "
        "row sums to 0.",
    ),
    "toolkit/plain.py: cross_entropy; toolkit/functional/output_loss.py: output_loss_backward",
    (
        Mistake(_cross_entropy(lambda p, labels: p - _one_hot(labels)),
            "the loss is a mean: dlogits has to be divided by the number of rows"),
        Mistake(_cross_entropy(lambda p, labels: (_one_hot(labels) - p) / T),
            "the sign is the opposite: this climbs; it is p minus one-hot"),
        Mistake(_cross_entropy(lambda p, labels: p / T),
            "the label is left out: 1 is to be taken from its probability in every row"),
        Mistake(_cross_entropy(lambda p, labels: -_one_hot(labels) / T),
            "only the label gets a gradient: the other logits are in the denominator of softmax"),
        Mistake(_cross_entropy(lambda p, labels: -_one_hot(labels) / p / T),
            "that is the gradient of the probabilities: one more step, through softmax, leads to the logits"),
    ),
    SIZES, has_back=True,
)  # fmt: skip

MAPS = (SOFTMAX, SOFTMAX_GRADIENT, LINEAR, GELU, LAYER_NORM, EMBEDDING, CROSS_ENTROPY)
