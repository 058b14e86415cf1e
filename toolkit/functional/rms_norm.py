"""Root mean square normalisation (Zhang and Sennrich 2019, eq. 4): layer normalisation without the mean."""

import numpy as np

from toolkit.functional.arrays import Array, Empty, Saved, row_blocks, sum_rows


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
