"""Exercises on what stands around attention: norms, residuals, the feed-forward layer, logits from the table."""

from copy import deepcopy

import numpy as np

from toolkit import plain
from toolkit.exercises.exercise import Arguments, Exercise, Mistake
from toolkit.functional.norms import rms_norm, rms_norm_backward

T, D, F, V = 6, 8, 10, 7
SIZES = {"T": T, "D": D, "F": F, "V": V}


def _mean(x):
    return x.mean(axis=-1, keepdims=True)


# RMS norm


def rows_and_gain(rng: np.random.Generator) -> Arguments:
    """Rows that are not centred, and gains other than 1."""
    return rng.standard_normal((T, D)) + 0.5, rng.standard_normal(D)


def rms_norm_pair(x, gain):
    y, saved = rms_norm(x, gain)

    def back(dy):
        dx, dgain = rms_norm_backward(dy.copy(), deepcopy(saved))  # it may write over both
        return dx, {"gain": dgain}

    return y, back


def _rms_norm(dx, dgain=lambda dy, normal, x: dy * normal):
    """Make a wrong RMS norm: dx(dnormal, normal, root, dy), and dgain of each row."""

    def rms_norm(x, gain, eps=1e-5):
        root = np.sqrt(_mean(x**2) + eps)
        normal = x / root

        def back(dy):
            return dx(dy * gain, normal, root, dy), {"gain": dgain(dy, normal, x).sum(axis=0)}

        return normal * gain, back

    return rms_norm


def _right_rms_dx(dn, normal, root, dy):
    return (dn - normal * _mean(dn * normal)) / root


RMS_NORM = Exercise(
    "rms_norm", "The gradient of RMS norm", rms_norm_pair, rows_and_gain, ("y", "dx"),
    (
        "It is layer norm that takes no mean away: only the root of the mean square depends on the whole row.",
        "Multiply a row by a number: y does not change (but for eps). So dx of a row has nothing along the row itself: "
        "the sum of dx · x is 0.",
        "With dn = dy · gain: dx = (dn - normal · mean(dn · normal)) / root, the mean over the row; dgain is the sum "
        "of dy · normal over the rows.",
    ),
    "toolkit/functional/norms.py: rms_norm_backward",
    (
        Mistake(
            _rms_norm(lambda dn, normal, root, dy: dn / root),
            "the root is taken for a constant: it depends on every x of the row, which takes normal · mean(dn · "
            "normal) away",
        ),
        Mistake(
            _rms_norm(lambda dn, normal, root, dy: (dn - _mean(dn) - normal * _mean(dn * normal)) / root),
            "that is layer norm's gradient: here the forward took no mean away, so mean(dn) stays in dx",
        ),
        Mistake(
            _rms_norm(lambda dn, normal, root, dy: (dy - normal * _mean(dy * normal)) / root),
            "dx forgets the gain: begin with dn = dy · gain (a fresh model, whose gains are 1, would not show it)",
        ),
        Mistake(
            _rms_norm(lambda dn, normal, root, dy: (dn - normal * D * _mean(dn * normal)) / root),
            "what is taken away is normal times the mean of dn · normal over the row, not times the sum: the root is "
            "of a mean",
        ),
        Mistake(
            _rms_norm(lambda dn, normal, root, dy: (dn - normal * _mean(dn * normal)) * root),
            "multiplied by the root where it is to be divided by it",
        ),
        Mistake(
            _rms_norm(_right_rms_dx, lambda dy, normal, x: dy * x),
            "dgain is made of x: what the gain was multiplied with in the forward is normal",
        ),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# residual


def row_layer_and_norm(rng: np.random.Generator) -> Arguments:
    """Rows, a layer that is bent, and a layer norm; both functions give the gradient of their rows alone."""
    x, weight, gain = rng.standard_normal((T, D)), rng.standard_normal((D, D)), rng.standard_normal(D)

    def layer(x):
        y, back = plain.gelu(x @ weight)
        return y, lambda dy: back(dy) @ weight.T

    def norm(x):
        y, back = plain.layer_norm(x, gain)
        return y, lambda dy: back(dy)[0]

    return x, layer, norm


def _residual(dx):
    """Make a residual connection: dx(dy, back_layer, back_norm)."""

    def residual(x, layer, norm):
        normal, back_norm = norm(x)
        branch, back_layer = layer(normal)
        return x + branch, lambda dy: dx(dy, back_layer, back_norm)

    return residual


RESIDUAL = Exercise(
    "residual", "The gradient takes both ways",
    _residual(lambda dy, back_layer, back_norm: dy + back_norm(back_layer(dy))), row_layer_and_norm, ("y", "dx"),
    (
        "x is used twice: in the sum, and inside of the norm. Each use has a gradient of its own, and they are added.",
        "Backward the last function comes first: y was made by the layer of the norm of x.",
        "dx = dy + back_norm(back_layer(dy)): around the layer and through it.",
    ),
    "toolkit/plain.py: residual; toolkit/nn/blocks.py",
    (
        Mistake(
            _residual(lambda dy, back_layer, back_norm: back_norm(back_layer(dy))),
            "the way around the layer is missing: x is also a term of the sum, so dy itself belongs to dx (it is what "
            "lets gradients through many layers)",
        ),
        Mistake(
            _residual(lambda dy, back_layer, back_norm: dy),
            "only the way around the layer is there: x also went through norm and layer",
        ),
        Mistake(
            _residual(lambda dy, back_layer, back_norm: dy + back_layer(dy)),
            "the gradient of the branch stops behind the layer: it is that of norm(x), and has to go through back_norm "
            "to become that of x",
        ),
        Mistake(
            _residual(lambda dy, back_layer, back_norm: dy + back_layer(back_norm(dy))),
            "the two backs are in the order of the forward: the layer came last, so its back comes first",
        ),
        Mistake(
            _residual(lambda dy, back_layer, back_norm: back_norm(dy + back_layer(dy))),
            "the way around the layer goes through the norm in yours: it is x that is added in the forward, not "
            "norm(x)",
        ),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# feed-forward


def rows_and_maps(rng: np.random.Generator) -> Arguments:
    """Rows, GELU, and the two linear maps."""
    up = {"weight": rng.standard_normal((D, F)), "bias": rng.standard_normal(F)}
    down = {"weight": rng.standard_normal((F, D)), "bias": rng.standard_normal(D)}
    return rng.standard_normal((T, D)), plain.gelu, up, down


def _flat(dx, dup, ddown):
    return dx, {f"{name}_{key}": d for name, part in (("up", dup), ("down", ddown)) for key, d in part.items()}


def feed_forward_pair(x, activation, up, down):
    y, back = plain.feed_forward(x, activation, up, down)

    def flat_back(dy):
        dx, gradients = back(dy)
        return _flat(dx, gradients["up"], gradients["down"])

    return y, flat_back


def _feed_forward(dhidden=lambda dactive, back, activation: back(dactive), last=_flat, before=False, around=0.0):
    """Make a wrong feed-forward layer: dhidden(dactive, back_activation, activation), last(dx, dup, ddown)."""

    def feed_forward(x, activation, up, down):
        hidden, back_up = plain.linear(x, **up)
        active, back_activation = activation(hidden)
        y, back_down = plain.linear(active, **down)

        def back(dy):
            dactive, ddown = back_down(dy)
            dx, dup = back_up(dhidden(dactive, back_activation, activation))
            return last(dx + around * dy, dup, ddown | {"weight": hidden.T @ dy} if before else ddown)

        return y, back

    return feed_forward


FEED_FORWARD = Exercise(
    "feed_forward", "Three maps one after the other: the chain rule", feed_forward_pair, rows_and_maps, ("y", "dx"),
    (
        "Every map has its own back. Call them in the opposite order, each with what the one before has returned.",
        "The backs of linear return two things, the gradient of the rows and a dictionary with weight and bias; that "
        "of the activation returns one.",
        "dactive, ddown = back_down(dy); dhidden = back_activation(dactive); dx, dup = back_up(dhidden). Then name the "
        "four gradients: up_weight is dup['weight'], and so on.",
    ),
    "toolkit/plain.py: feed_forward; toolkit/nn/blocks.py",
    (
        Mistake(
            _feed_forward(lambda dactive, back, activation: dactive),
            "the activation's back is left out: what back_down returns is the gradient of the active rows, and back_up "
            "wants that of the hidden ones",
        ),
        Mistake(
            _feed_forward(lambda dactive, back, activation: activation(dactive)[0]),
            "the gradient goes through the activation itself: it is to be multiplied by the slope at the hidden rows, "
            "which is what back_activation does",
        ),
        Mistake(
            _feed_forward(before=True),
            "ddown_weight is made of the hidden rows: what the weight of down was multiplied with is active, what "
            "comes after the activation",
        ),
        Mistake(
            _feed_forward(last=lambda dx, dup, ddown: _flat(dx, ddown, dup)),
            "the gradients of up and down are exchanged: back_down comes first, but what it returns is of down",
        ),
        Mistake(
            _feed_forward(around=1.0),
            "dy is added to dx: that is the residual connection, which is around this layer and not in it",
        ),
    ),
    SIZES, has_back=True,
)  # fmt: skip


# tied logits


def ids_table_and_positions(rng: np.random.Generator) -> Arguments:
    """Ids of which some occur twice, the table, and the positions."""
    ids = rng.integers(0, V, T)
    ids[1] = ids[4]
    return ids, rng.standard_normal((V, D)), rng.standard_normal((T, D))


def _tied_logits(dtable):
    """Make logits with one table: dtable(dlogits, x, dx, ids, positions)."""

    def tied_logits(ids, table, positions):
        x = table[ids] + positions

        def back(dlogits):
            dx = dlogits @ table
            return dtable(dlogits, x, dx, ids, positions), dx

        return x @ table.T, back

    return tied_logits


def _looked_up(dx, ids):
    return plain.embedding(ids, np.zeros((V, D)))[1](dx)


def _counted_once(dlogits, x, dx, ids, positions):
    dtable = dlogits.T @ x
    dtable[ids] += dx
    return dtable


def _written_over(dlogits, x, dx, ids, positions):
    dtable = dlogits.T @ x
    dtable[np.unique(ids)] = _looked_up(dx, ids)[np.unique(ids)]
    return dtable


TIED_LOGITS = Exercise(
    "tied_logits", "One table, used twice",
    _tied_logits(lambda dlogits, x, dx, ids, positions: dlogits.T @ x + _looked_up(dx, ids)),
    ids_table_and_positions, ("logits", "dtable", "dpositions"),
    (
        "The table is used at both ends, where rows are looked up and where logits are made. Find the gradient of "
        "each use as if there were two tables.",
        "logits = x tableᵀ is a linear map: it gives dx, and one part of dtable. What dx does to the table is the "
        "exercise embedding; positions were simply added.",
        "dx = dlogits table; dtable = dlogitsᵀ x, and then np.add.at(dtable, ids, dx); dpositions = dx.",
    ),
    "toolkit/plain.py: gpt, the last lines of `back`",
    (
        Mistake(
            _tied_logits(lambda dlogits, x, dx, ids, positions: dlogits.T @ x),
            "dtable has the gradient of the logits alone: the table is also where x comes from, so that of the "
            "look-up is to be added",
        ),
        Mistake(
            _tied_logits(lambda dlogits, x, dx, ids, positions: _looked_up(dx, ids)),
            "dtable has the gradient of the look-up alone: the table also makes the logits, so dlogitsᵀ x is to be "
            "added",
        ),
        Mistake(
            _tied_logits(lambda dlogits, x, dx, ids, positions: (dlogits.T @ x + _looked_up(dx, ids)) / 2),
            "dtable is the mean of the gradients of both uses; it is their sum: a change of the table acts at both "
            "ends",
        ),
        Mistake(
            _tied_logits(_counted_once),
            "a token that occurs twice counts once: dtable[ids] += dx writes the last of them and loses the others "
            "(np.add.at)",
        ),
        Mistake(
            _tied_logits(_written_over),
            "the look-up writes over what the logits gave: in the rows of the ids both gradients have to be added",
        ),
        Mistake(
            _tied_logits(
                lambda dlogits, x, dx, ids, positions: dlogits.T @ (x - positions) + _looked_up(dx, ids)
            ),
            "the logits are made of x, which has the positions in it: dlogitsᵀ x, not dlogitsᵀ table[ids]",
        ),
    ),
    SIZES, has_back=True, points=2,
)  # fmt: skip

LAYERING = (RMS_NORM, RESIDUAL, FEED_FORWARD, TIED_LOGITS)
