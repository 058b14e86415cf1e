"""Layer normalisation (Ba, Kiros and Hinton 2016, eq. 3), and without the mean (Zhang and Sennrich 2019, eq. 4)."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks, sum_rows


def layer_norm(
    x: Array, gain: Array, bias: Array | None, eps: float = 1e-5, empty: Empty = np.empty
) -> tuple[Array, Saved]:
    """Give every row mean 0 and variance 1, then scale and shift it.

        normal = (x - mean(x)) / sqrt(var(x) + eps)        y = normal * gain + bias

    Shapes: x (N, D), gain (D,), bias (D,) or None -> y (N, D). The variance is the biased one.
    """
    count, width = x.shape
    normal, y = empty(x.shape, x.dtype), empty(x.shape, x.dtype)
    inverse_std = np.empty((count, 1), x.dtype)
    average = np.full((width, 1), 1 / width, x.dtype)
    for rows in row_blocks(count, width):
        centred = np.subtract(x[rows], x[rows] @ average, out=normal[rows])
        variance = np.vecdot(centred, centred)[:, None] * (1 / width)
        centred *= np.divide(1, np.sqrt(variance + eps), out=inverse_std[rows])
        np.multiply(centred, gain, out=y[rows])
        if bias is not None:
            y[rows] += bias
    return y, (normal, inverse_std, gain, bias is not None)


def layer_norm_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array, Array | None]:
    """The mean and the variance depend on every entry of a row, so each entry's gradient loses two averages:

        dnormal = dy * gain
        dx      = (dnormal - mean(dnormal) - normal * mean(dnormal * normal)) / std

    Returns dx (N, D), dgain (D,), dbias (D,) or None.
    """
    normal, inverse_std, gain, has_bias = saved
    count, width = dy.shape
    dx = empty(dy.shape, dy.dtype)
    dgain = np.zeros(width, dy.dtype)
    average = np.full((width, 1), 1 / width, dy.dtype)
    for rows in row_blocks(count, width):
        block, dnormal = normal[rows], dx[rows]
        dgain += sum_rows(np.multiply(dy[rows], block, out=dnormal))
        np.multiply(dy[rows], gain, out=dnormal)
        along_normal = np.vecdot(dnormal, block)[:, None] * (1 / width)
        dnormal -= dnormal @ average
        block *= along_normal
        dnormal -= block
        dnormal *= inverse_std[rows]
    return dx, dgain, sum_rows(dy) if has_bias else None


def rms_norm(x: Array, gain: Array, eps: float = 1e-5, empty: Empty = np.empty) -> tuple[Array, Saved]:
    """Give every row a mean square of 1, then scale it.

        normal = x / sqrt(mean(x²) + eps)        y = normal * gain

    Shapes: x (N, D), gain (D,) -> y (N, D).
    """
    count, width = x.shape
    normal, y = empty(x.shape, x.dtype), empty(x.shape, x.dtype)
    inverse_root = np.empty((count, 1), x.dtype)
    for rows in row_blocks(count, width):
        block = x[rows]
        mean_square = np.vecdot(block, block)[:, None] * (1 / width)
        np.divide(1, np.sqrt(mean_square + eps), out=inverse_root[rows])
        np.multiply(block, inverse_root[rows], out=normal[rows])
        np.multiply(normal[rows], gain, out=y[rows])
    return y, (normal, inverse_root, gain)


def rms_norm_backward(dy: Array, saved: Saved, empty: Empty = np.empty) -> tuple[Array, Array]:
    """The root depends on every entry of a row, so each entry's gradient loses its part along the row:

        dnormal = dy * gain        dx = (dnormal - normal * mean(dnormal * normal)) / root

    Returns dx (N, D), dgain (D,).
    """
    normal, inverse_root, gain = saved
    count, width = dy.shape
    dx = empty(dy.shape, dy.dtype)
    dgain = np.zeros(width, dy.dtype)
    for rows in row_blocks(count, width):
        block, dnormal = normal[rows], dx[rows]
        dgain += sum_rows(np.multiply(dy[rows], block, out=dnormal))
        np.multiply(dy[rows], gain, out=dnormal)
        along_normal = np.vecdot(dnormal, block)[:, None] * (1 / width)
        block *= along_normal
        dnormal -= block
        dnormal *= inverse_root[rows]
    return dx, dgain
