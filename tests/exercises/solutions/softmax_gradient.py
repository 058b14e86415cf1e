"""The gradient of softmax.

In all these exercises a function returns two things: its result, and a function `back` that turns the gradient of the
result into the gradients of what went in. A gradient is d + the name of what it is of: dp is of p, dx of x; it has the
shape of what it is of.

Here: p = softmax(x). Every p of a row depends on every x of that row.
"""

from softmax import softmax


def softmax_gradient(x):
    """Return p = softmax(x), and `back`.

    x: (T, D); back: dp (T, D) -> dx (T, D)
    """
    p = softmax(x)

    def back(dp):
        return p * (dp - (p * dp).sum(axis=-1, keepdims=True))

    return p, back
