"""Rotary positions: queries and keys are turned by angles that grow with the position.

The product of a turned query and a turned key depends on their distance alone. A row of width K is K/2 points of a
plane: point i has the coordinates i and i + K/2 (not 2i and 2i + 1). At position t, counted from 0, point i is turned
by the angle t · base^(-2i / K), from the first axis towards the second.
"""

import numpy as np


def rotary(x, base=10000.0):
    """Turn the points of every row by the angles of its position.

    x: (T, K), row t is of position t, K is even; base: a number -> (T, K)
    """
    raise NotImplementedError
