"""The gradient of a feed-forward layer: of three maps one after the other.

y = down(activation(up(x))), where up and down are linear maps, each with its weight and bias. All of the mathematics is
in the `back` of each; yours calls them, and gives the gradients of the parameters names.
"""

from linear import linear


def feed_forward(x, activation, up, down):
    """Return y = down(activation(up(x))), and `back`.

    x: (T, D), activation: a function such as gelu, (T, F) -> (T, F), back
    up: {"weight": (D, F), "bias": (F,)}, down: {"weight": (F, D), "bias": (D,)}
    back: dy (T, D) -> dx (T, D), {"up_weight": (D, F), "up_bias": (F,), "down_weight": (F, D), "down_bias": (D,)}
    """
    hidden, back_up = linear(x, up["weight"], up["bias"])
    active, back_activation = activation(hidden)
    y, back_down = linear(active, down["weight"], down["bias"])

    def back(dy):
        dactive, ddown = back_down(dy)
        dx, dup = back_up(back_activation(dactive))
        names = {"up_weight": dup["weight"], "up_bias": dup["bias"]}
        return dx, names | {"down_weight": ddown["weight"], "down_bias": ddown["bias"]}

    return y, back
