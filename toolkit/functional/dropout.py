"""Dropout (Srivastava et al. 2014), in its inverted form: what is kept is scaled up, so that inference does nothing."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks


def keep_mask(generator: "np.random.SFC64", shape: tuple[int, ...], rate: float) -> tuple[Array, float]:
    """A mask (True is kept) and the scale 1 / P(kept).

    One random byte decides one element, which is several times cheaper than one random float: the rate is rounded
    to 256ths (0.1 becomes 26/256) and the scale follows the rounded rate, so the expectation is exact.
    """
    dropped = drop_byte(rate)
    count = int(np.prod(shape))
    random_bytes = generator.random_raw(-(-count // 8)).view(np.uint8)[:count]
    return (random_bytes >= dropped).reshape(shape), 256 / (256 - dropped)


def drop_byte(rate: float) -> int:
    """The rate in 256ths: 1 at least where dropout is asked for at all, 255 at most."""
    return min(max(round(rate * 256), 1), 255)


def dropout(x: Array, mask: Array, scale: float, empty: Empty = np.empty) -> tuple[Array, Saved]:
    """Set to 0 what the mask drops, and scale up what it keeps:

        y = x · mask · scale

    Shapes: x, mask (N, D) -> y (N, D).
    """
    return _masked(x, mask, scale, empty), (mask, scale)


def dropout_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array]:
    """A dropped entry had no effect and gets no gradient:

        dx = dy · mask · scale

    Returns dx (N, D).
    """
    mask, scale = saved
    return (_masked(dy, mask, scale, empty),)


def _masked(x: Array, mask: Array, scale: float, empty: Empty) -> Array:
    y = empty(x.shape, x.dtype)
    for rows in row_blocks(*x.shape):
        np.multiply(x[rows], mask[rows], out=y[rows])
        y[rows] *= scale
    return y
