"""The parameters of whole models: every gradient checked, and how far training has moved each group of them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.functional.losses import squared_error, squared_error_backward
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.nn.rows import Rows
from toolkit.nn.tape import Tape
from toolkit.proof import Measurement, check

_LENGTHS = np.array([3, 3, 5, 1])  # of more than one sequence, not all alike


def checked_gradients(config: AutoEncoderConfig, rng: np.random.Generator) -> dict[str, Measurement]:
    """Check the gradients of L = ½ ‖Y - Y_true‖², in float64: of each parameter, and of "x", the vectors that are read.

    Parameters, vectors and targets are random, gains around 1; weights of queries, keys and values are separate.
    """
    model = AutoEncoder(config)
    model.allocate(np.float64)
    for name, value in model.arrays().items():
        scale = value.shape[0] ** -0.5 if value.ndim > 1 else 0.4  # larger ones leave softmax nothing to weigh
        value[...] = rng.standard_normal(value.shape) * scale + name.endswith("gain")
    rows = Rows(_LENGTHS)
    x, target = rng.standard_normal((2, rows.total, config.d_model))
    arrays = unpacked(model.arrays())

    def forward(x: Array, *values: Array) -> tuple[float, Any]:
        for array, value in zip(arrays.values(), values, strict=True):
            array[...] = value
        tape = Tape(model.views(np.zeros_like(model.vector)))
        loss, saved = squared_error(model.forward(x, rows, tape), target)
        return loss / 2, (saved, tape)

    def backward(dloss: float, saved: Any) -> tuple[Array, ...]:
        difference, tape = saved
        dx = model.backward(squared_error_backward(dloss / 2, difference)[0], tape)
        gradients = {name: tape.gradients[parameter] for name, parameter in model.parameters().items()}
        return dx, *unpacked(gradients).values()

    report = check(forward, backward, [x, *arrays.values()], seed=rng)
    return dict(zip(["x", *arrays], report.measurements, strict=True))


class Movement(NamedTuple):
    """A group of parameters: those of one name in all layers."""

    name: str
    count: int
    moved: int  # the number of them that are other numbers now
    before: float  # root mean squares: of the values before,
    change: float  # of what was added to them since,
    gradient: float  # and of the gradient of the loss before


def movements(
    before: Mapping[str, Array], after: Mapping[str, Array], gradients: Mapping[str, Array]
) -> list[Movement]:
    """Compare parameters before and after, group by group; what attention packs is split (see `unpacked`).

    Raises KeyError unless all three have the same names: a gradient without a parameter is a mistake, or the reverse.
    """
    if not before.keys() == after.keys() == gradients.keys():
        raise KeyError(sorted((before.keys() ^ gradients.keys()) | (before.keys() ^ after.keys())))
    columns = [unpacked(arrays) for arrays in (before, after, gradients)]
    groups: dict[str, list[list[Array]]] = {}
    for name in columns[0]:
        group = ".".join("*" if word.isdigit() else word for word in name.split("."))
        groups.setdefault(group, []).append([column[name] for column in columns])
    return [_movement(name, members) for name, members in groups.items()]


def unpacked(arrays: Mapping[str, Array]) -> dict[str, Array]:
    """Split the arrays of attention into those of queries, keys and values, as views, all by name.

    Of self-attention with as many heads of keys as of queries, which keeps the three side by side.
    """
    found = {}
    for name, value in arrays.items():
        if "query_key_value" in name:
            parts = zip(("query", "key", "value"), np.split(value, 3, axis=-1), strict=True)
            found |= {name.replace("query_key_value", part): view for part, view in parts}
        else:
            found[name] = value
    return found


def _movement(name: str, members: list[list[Array]]) -> Movement:
    old, new, gradient = (np.concatenate([array.reshape(-1) for array in each]) for each in zip(*members, strict=True))
    sizes = (float(np.sqrt(np.mean(np.square(x, dtype=np.float64)))) for x in (old, new - old, gradient))
    return Movement(name, old.size, int(np.count_nonzero(new != old)), *sizes)


def movement_rows(groups: Sequence[Movement]) -> list[list[str]]:
    """Tabulate movements."""
    rows = [["parameters", "number", "moved", "before", "moved by", "first gradient"]]
    for group in groups:
        sizes = (f"{size:.1e}" for size in (group.before, group.change, group.gradient))
        rows.append([group.name, f"{group.count:,}", f"{group.moved:,}", *sizes])
    return rows


def moved_in_all(groups: Sequence[Movement]) -> dict[str, int]:
    """Count the parameters that can move, and have moved; key biases cannot."""
    able = [group for group in groups if not group.name.endswith("key.bias")]
    counts = {"with_gradient": sum(group.count for group in able), "moved": sum(group.moved for group in able)}
    return counts | {"key_biases": sum(group.count for group in groups if group not in able)}


def gradient_rows(gradients: Mapping[str, Measurement]) -> list[list[str]]:
    """Tabulate gradients, each along a random direction, beside finite differences, as document 003 names them."""
    rows = [["gradient", "by hand", "by differences", "relative error", ""]]
    for name, measured in gradients.items():
        verdict = "right" if measured.is_right else "WRONG"
        figures = f"{measured.analytic:.6f}", f"{measured.numeric:.6f}", f"{measured.error:.0e}"
        rows.append([f"∂L/∂{symbol(name)}", *figures, verdict])
    return rows


def symbol(name: str) -> str:
    """Name a weight as the document does; where that has none like it, by its own name."""
    *_, number, place = name.split(".", 3) if name.count(".") > 3 else ("", name)
    letter = _SYMBOLS.get(place)
    return f"{letter},{int(number) + 1}" if letter else name.upper() if name == "x" else name


_SYMBOLS = {
    "attention.layer.query.weight": "W_q",
    "attention.layer.key.weight": "W_k",
    "attention.layer.value.weight": "W_v",
    "attention.layer.output.weight": "W_o",
    "feed_forward.layer.up.weight": "W_1",
    "feed_forward.layer.down.weight": "W_2",
}
