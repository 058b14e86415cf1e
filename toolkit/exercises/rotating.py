"""Exercises on positions: rotary embeddings, and their gradient."""

import numpy as np

from toolkit.exercises.exercise import Exercise, Mistake
from toolkit.functional.positions import rotary, rotary_backward, rotary_frequencies, rotary_table

T, D = 6, 8
SIZES = {"T": T, "K": D}


def _angles(x, base, power=2.0, first=0):
    return np.arange(first, first + len(x))[:, None] * base ** (-power * np.arange(x.shape[1] // 2) / x.shape[1])


def _turned(x, angles):
    first, second = np.split(x, 2, axis=1)
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.hstack((first * cosine - second * sine, second * cosine + first * sine))


def _turned_neighbours(x, angles):
    """Turn the planes of the paper, 2i and 2i + 1."""
    x = np.hstack((x[:, 0::2], x[:, 1::2]))
    return np.stack(np.split(_turned(x, angles), 2, axis=1), axis=-1).reshape(x.shape)


def turned_one_after_the_other(x, base):
    first, second = np.split(x, 2, axis=1)
    cosine, sine = np.cos(_angles(x, base)), np.sin(_angles(x, base))
    first = first * cosine - second * sine
    return np.hstack((first, second * cosine + first * sine))


def rotary_pair(x, base):
    y, saved = rotary(x[:, None], *rotary_table(len(x), rotary_frequencies(x.shape[1], base), dtype=np.float64))
    return y[:, 0], lambda dy: rotary_backward(dy[:, None], saved)[0][:, 0]


ROTARY = Exercise(
    "rotary", "Positions as angles", lambda x, base: rotary_pair(x, base)[0],
    lambda rng: (rng.standard_normal((T, D)), 100.0), ("y",),
    (
        "np.arange(T)[:, None] * frequencies gives all angles, (T, K / 2). Row 0 stays as it is.",
        "The point (a, b), turned by θ, is (a cos θ - b sin θ, b cos θ + a sin θ). Keep the old a until b is done.",
        "θ of position t and pair i is t · base^(-2i / K), i from 0 to K/2 - 1; a = x[:, :K // 2] and b = x[:, K // "
        "2:].",
    ),
    "toolkit/functional/positions.py: rotary",
    (
        Mistake(
            lambda x, base: _turned_neighbours(x, _angles(x, base)),
            "you turn neighbours, 2i and 2i + 1, as the paper has it; here the pairs are i and i + K/2, as in Llama's "
            "weights",
        ),
        Mistake(
            lambda x, base: _turned(x, -_angles(x, base)),
            "the sign of the angle is the opposite of the right one: a cos θ - b sin θ comes first, b cos θ + a sin θ "
            "after",
        ),
        Mistake(
            lambda x, base: _turned(x, _angles(x, base, power=-2.0)),
            "the exponent lacks its minus: the angles have to become smaller from pair to pair, t · base^(-2i / K)",
        ),
        Mistake(
            lambda x, base: _turned(x, _angles(x, base, power=1.0)),
            "the exponent is -2i / K, not -i / K: there are K / 2 pairs, and the last is to turn nearly base times "
            "slower than the first",
        ),
        Mistake(
            lambda x, base: _turned(x, _angles(x, base, first=1)),
            "positions are counted from 1 in yours: the first is 0, and its row is not turned at all",
        ),
        Mistake(
            turned_one_after_the_other,
            "the second half is made of the first half that is turned already: both need the old one, or lengths "
            "change",
        ),
        Mistake(
            lambda x, base: _turned(x, _angles(x, 10000.0)),
            "the base is 10000 whatever is given: take it from the arguments (models for long texts have a larger one)",
        ),
    ),
    {"T": T, "K": D},
)  # fmt: skip


def _rotary_gradient(dx):
    """Make a wrong rotary map: dx(dy, angles)."""
    return lambda x, base: (rotary_pair(x, base)[0], lambda dy: dx(dy, _angles(x, base)))


def turned_back_with_one_sign(dy, angles):
    first, second = np.split(dy, 2, axis=1)
    cosine, sine = np.cos(angles), np.sin(angles)
    return np.hstack((first * cosine + second * sine, second * cosine + first * sine))


ROTARY_GRADIENT = Exercise(
    "rotary_gradient", "The gradient of a rotation turns back", rotary_pair,
    lambda rng: (rng.standard_normal((T, D)), 100.0), ("y", "dx"),
    (
        "The angles do not depend on x, so this is a linear map: its gradient goes through the matrix turned, rows for "
        "columns.",
        "The transpose of a rotation is the rotation by the opposite angle: cos stays, sin changes its sign.",
        "da = dy_a cos θ + dy_b sin θ and db = dy_b cos θ - dy_a sin θ, with a and b the two halves of a row.",
    ),
    "toolkit/functional/positions.py: rotary_backward",
    (
        Mistake(
            _rotary_gradient(_turned),
            "you turn by the angle once more: the gradient has to be turned back, by the opposite angle",
        ),
        Mistake(
            _rotary_gradient(lambda dy, angles: _turned_neighbours(dy, -angles)),
            "you turn back neighbours, 2i and 2i + 1; the forward has turned i together with i + K/2",
        ),
        Mistake(
            _rotary_gradient(lambda dy, angles: dy),
            "dy passes as it is: positions have no parameters, but the rows were turned, and so is their gradient",
        ),
        Mistake(
            _rotary_gradient(lambda dy, angles: dy * np.cos(np.hstack((angles, angles)))),
            "the terms with the sine are missing: each entry of x went into two entries of y, so it has two terms",
        ),
        Mistake(
            _rotary_gradient(turned_back_with_one_sign),
            "both sines have the same sign, which is no rotation: in db it is minus, since b stands with -sin θ in the "
            "first half of y",
        ),
    ),
    {"T": T, "K": D}, has_back=True,
)  # fmt: skip


# a table that is used twice

ROTATING = (ROTARY, ROTARY_GRADIENT)
