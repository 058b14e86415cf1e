"""A model whose tokens change their order: into ours when it is imported, and back when it leaves again."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from toolkit.functional.arrays import Array
from toolkit.interop.architecture import Config
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import GPTConfig

_OUTPUT, _BIAS = "output.table", "output_bias"
_TIED = {"all": "source.embedding.table", "decoder": "target.embedding.table", True: "trunk.input.embedding.table"}
_TABLES = {*_TIED.values(), _OUTPUT}


def in_own_order(
    config: Config, arrays: Mapping[str, Array], vocabulary: Vocabulary
) -> tuple[Config, dict[str, Array]]:
    """The model with the rows of its tables, and the entries of its output bias, in our order.

    It gets an output bias where there are tokens that must never be written.
    """
    arrays = dict(arrays)
    for name in _TABLES & arrays.keys():
        arrays[name] = vocabulary.read_table(arrays[name])
    bias = vocabulary.read_bias(arrays.get(_BIAS))
    if bias is not None:
        arrays[_BIAS] = bias
    return replace(config, vocab_size=vocabulary.size, output_bias=bias is not None), arrays


def in_foreign_order(
    config: Config, arrays: Mapping[str, Array], vocabulary: Vocabulary
) -> tuple[Config, dict[str, Array]]:
    """The model with the rows of its tables, and the entries of its output bias, in the foreign order.

    Where training has taught the begin token another row than the token that it was, input and output get tables of
    their own: one reads the begin token, the other writes the token.
    """
    config, arrays = _untied(config, dict(arrays), vocabulary)
    for name in _TABLES & arrays.keys():
        arrays[name] = vocabulary.write_table(arrays[name], begins=name != _OUTPUT)
    bias = vocabulary.write_table(arrays.pop(_BIAS, np.zeros(vocabulary.size, np.float32)))
    if has_bias := bool(bias.any()):
        arrays[_BIAS] = bias
    return replace(config, vocab_size=vocabulary.foreign_size, output_bias=has_bias), arrays


def _untied(config: Config, arrays: dict[str, Array], vocabulary: Vocabulary) -> tuple[Config, dict[str, Array]]:
    """The same model with separate tables, where one table has two rows for one token."""
    if config.tie not in _TIED:
        return config, arrays
    table = arrays[_TIED[config.tie]]
    if np.array_equal(vocabulary.write_table(table), vocabulary.write_table(table, begins=True)):
        return config, arrays
    if not isinstance(config, GPTConfig):
        arrays.setdefault("target.embedding.table", table)
    arrays[_OUTPUT] = table
    return replace(config, tie=False if isinstance(config, GPTConfig) else "none"), arrays
