"""The check of every gradient of a whole encoder: of all its parameters, and of the vectors that it reads."""

from typing import Any

import numpy as np

from toolkit.explain.gradients.check import Measurement, measure
from toolkit.explain.gradients.movement import unpacked
from toolkit.functional.arrays import Array
from toolkit.functional.mean_squared_error import squared_error, squared_error_backward
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape

_LENGTHS = np.array([3, 3, 5, 1])  # of more than one sequence, not all alike


def checked_gradients(config: AutoEncoderConfig, rng: np.random.Generator) -> dict[str, Measurement]:
    """Of L = ½ ‖Y - Y_true‖², in float64, for each parameter by name and for "x", the vectors that are read.

    Parameters, vectors and targets are random, gains around 1; weights of queries, keys and values are told apart.
    """
    model = AutoEncoder(config)
    model.allocate(np.float64)
    for name, value in model.arrays().items():
        scale = value.shape[0] ** -0.5 if value.ndim > 1 else 0.4  # larger ones leave softmax nothing to weigh
        value[...] = rng.standard_normal(value.shape) * scale + name.endswith("gain")
    rows = Rows(_LENGTHS)
    x, target = rng.standard_normal((2, rows.total, config.width))
    arguments = {"x": x, **unpacked(model.arrays())}  # views, which `measure` moves in place

    def forward(*_: Array) -> tuple[float, Any]:
        tape = Tape(model.views(np.zeros_like(model.vector)))
        loss, saved = squared_error(model.forward(x, rows, tape), target)
        return loss / 2, (saved, tape)

    def backward(dloss: float, saved: Any) -> tuple[Array, ...]:
        difference, tape = saved
        dx = model.backward(squared_error_backward(dloss / 2, difference)[0], tape)
        gradients = {name: tape.gradients[parameter] for name, parameter in model.parameters().items()}
        return dx, *unpacked(gradients).values()

    return dict(zip(arguments, measure(forward, backward, list(arguments.values()), rng), strict=True))
