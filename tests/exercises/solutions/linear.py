"""The gradient of a linear map, of which nearly all of a transformer is made.

y = x weight + bias. `back` returns dx, and the gradients of the parameters in a dictionary.
"""


def linear(x, weight, bias=0.0):
    """Return y = x weight + bias, and `back`.

    x: (T, D), weight: (D, F), bias: (F,); y: (T, F)
    back: dy (T, F) -> dx (T, D), {"weight": dweight (D, F), "bias": dbias (F,)}
    """

    def back(dy):
        return dy @ weight.T, {"weight": x.T @ dy, "bias": dy.sum(axis=0)}

    return x @ weight + bias, back
