"""From one wide row to several heads: each head attends by itself, with its own part of every row.

The columns of a row are divided among the heads in their order: K = D / H for each.
"""

import numpy as np


def split_heads(x, heads):
    """Give every head its columns of all rows.

    x: (T, D), heads: H, an integer that divides D -> (H, T, K)
    """
    return np.stack(np.split(x, heads, axis=1))
