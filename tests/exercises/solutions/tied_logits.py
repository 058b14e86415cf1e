"""The gradient of a table that is used twice: where tokens are looked up, and where they are predicted.

This is a language model without any layers: the rows of the tokens plus those of their positions, and the products
with all rows of the same table as logits. GPT-2 has its 12 layers in between, and ties the table in the same way.
"""

import numpy as np


def tied_logits(ids, table, positions):
    """Return the logits x tableᵀ, with x = table[ids] + positions, and `back`.

    ids: (T,) integers, some may occur more than once, table: (V, D), positions: (T, D); logits: (T, V)
    back: dlogits (T, V) -> dtable (V, D), dpositions (T, D)
    """
    x = table[ids] + positions

    def back(dlogits):
        dx = dlogits @ table
        dtable = dlogits.T @ x
        np.add.at(dtable, ids, dx)
        return dtable, dx

    return x @ table.T, back
