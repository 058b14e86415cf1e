"""Sinusoidal positions as other libraries have them: the same function, with other numbers in other places.

Our own models take sines and cosines in turn, others all sines first (see `toolkit.functional.positions`). What is
added to an embedding may stand in any order if everything that reads or writes the residual stream has the same one.
Language models elsewhere have no waves, but they have tables of learned positions, in which waves can be written.
"""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.foreign_settings import Config
from toolkit.models.gpt import GPTConfig

_SMALL_TABLE = 1 << 20  # numbers that no model is too small for

# Parameters by the end of their name, and the axis that is the residual stream.
_AXES = {
    "table": 1,
    "gain": 0,
    "norm.bias": 0,
    "query_key_value.weight": 0,
    "cross_attention.query.weight": 0,
    "key_value.weight": 0,
    "expand.weight": 0,
    "output.weight": 1,
    "contract.weight": 1,
    "output.bias": 0,
    "contract.bias": 0,
}
# These lie within a sub-layer, or have an entry for each token.
_INSIDE = ("query_key_value.bias", "query.bias", "key_value.bias", "expand.bias", "output_bias")


def with_written_positions(config: Config, arrays: Mapping[str, Array]) -> tuple[Config, dict[str, Array]]:
    """The same model, where its positions are waves: an encoder-decoder's with all sines before all cosines, a
    language model's as a table with a row for each position of its context.

    Raises ModelError where that table would be too large.
    """
    arrays = dict(arrays)
    if isinstance(config, GPTConfig) and config.positions.startswith("sinusoidal"):
        waves = written_waves(config, config.max_length, sum(value.size for value in arrays.values()))
        return replace(config, positions="learned"), arrays | {"trunk.input.positions.embedding.table": waves}
    if config.positions != "sinusoidal":
        return config, arrays
    order = np.concatenate((np.arange(0, config.width, 2), np.arange(1, config.width, 2)))
    moved = {name: _moved(name, value, order) for name, value in arrays.items()}
    return replace(config, positions="sinusoidal_halves"), moved


def written_waves(config: Config, length: int, size: int) -> Array:
    """The waves of a model of `size` numbers as a table, (length, D).

    Raises ModelError where the table has more numbers than the model: what its config says must not fill a disk.
    """
    if length * config.width > max(size, _SMALL_TABLE):
        raise ModelError(
            f"a table of its {length:,} positions would be larger than the model: set max_length in its config.json to "
            "what its texts need"
        )
    layout = "halves" if config.positions == "sinusoidal_halves" else "interleaved"
    return sinusoidal_positions(length, config.width, layout)


def _moved(name: str, value: Array, order: Array) -> Array:
    if name.endswith(_INSIDE):
        return value
    (axis,) = {axis for end, axis in _AXES.items() if name.endswith(end)}
    return value.take(order, axis=axis)
