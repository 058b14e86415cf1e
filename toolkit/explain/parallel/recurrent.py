"""A recurrent network (Elman 1990), to set attention beside: each step needs the state that the step before left."""

import numpy as np

from toolkit.functional.arrays import Array, Saved, sum_rows


def recurrence(x: Array, weight: Array, recurrent: Array, bias: Array) -> tuple[Array, Saved]:
    """One state after the other, from a state of zeros.

        h_t = tanh(x_t W + h_{t-1} U + b)

    x W needs no state and is one product for all steps; h U is one product a step, and no two of them can be joined.
    Shapes: x (B, T, D), weight W (D, F), recurrent U (F, F), bias (F,) -> h (B, T, F).
    """
    batch, steps, width = x.shape
    h = np.matmul(x.reshape(-1, width), weight).reshape(batch, steps, len(bias))
    h += bias
    for step in range(steps):
        state = h[:, step]
        if step:
            state += h[:, step - 1] @ recurrent
        np.tanh(state, out=state)
    return h, (x, weight, recurrent, h)


def recurrence_backward(dh: Array, saved: Saved) -> tuple[Array, Array, Array, Array]:
    """From the last state to the first: a state receives its own gradient and what the next one passes back.

        dz_t = (dh_t + dz_{t+1} Uᵀ) · (1 - h_t²)        dx = dz Wᵀ        dW = Σ_t x_tᵀ dz_t
        dU = Σ_t h_{t-1}ᵀ dz_t        db = Σ_t dz_t

    What arrives at step t from step t + d has been multiplied d times by Uᵀ and by 1 - h²: it vanishes or explodes
    (Bengio, Simard and Frasconi 1994). Returns dx (B, T, D), dweight (D, F), drecurrent (F, F), dbias (F,).
    """
    x, weight, recurrent, h = saved
    dz = 1 - h * h
    for step in reversed(range(h.shape[1])):
        arrived = dh[:, step] + dz[:, step + 1] @ recurrent.T if step + 1 < h.shape[1] else dh[:, step]
        dz[:, step] *= arrived
    rows = dz.reshape(-1, dz.shape[2])
    dx = np.matmul(rows, weight.T).reshape(x.shape)
    dweight = x.reshape(-1, x.shape[2]).T @ rows
    drecurrent = np.tensordot(h[:, :-1], dz[:, 1:], ((0, 1), (0, 1)))
    return dx, dweight, drecurrent, sum_rows(rows)
