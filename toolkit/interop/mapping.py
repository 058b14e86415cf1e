"""A mapping language: which tensors and settings of other libraries are which of ours, read in both directions.

A class of models elsewhere is described by three tables: `Tensors`, the names of the parts of its layers; a `Table`
for each matrix with a row for every token; and a `Setting` for each entry of its config.json (see `architectures`). Our
own names of parameters stand in this file, once; `encoder_decoders`, `language_models`, `rotary_models` and
`ctranslate2_spec` say what they are called there.

Our linear maps are (inputs, outputs) and keep maps of one input together, queries, keys and values say, side by side
in one matrix; elsewhere each is a tensor of its own, and often (outputs, inputs).
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.positions import sinusoidal_positions
from toolkit.interop.ctranslate2_file import VariableSource
from toolkit.interop.hugging_face_files import Config, ForeignWeights
from toolkit.models.base import LAYOUTS
from toolkit.models.gpt import GPTConfig
from toolkit.models.storage import new_model

Source = ForeignWeights | VariableSource

# Our parameters with a row or an entry for each token.
EMBEDDING, SOURCE, TARGET = "trunk.input.embedding.table", "source.embedding.table", "target.embedding.table"
OUTPUT, OUTPUT_BIAS = "output.table", "output.bias"
# Of tied tables, the one that the parameter is called after, by `config.tie`.
TIED = {"all": SOURCE, "decoder": TARGET, True: EMBEDDING}
TABLES = {EMBEDDING, SOURCE, TARGET, OUTPUT}


class _Stack(NamedTuple):
    """Our names for a stack of layers: {} is the number of one, `count` the config's field with how many there are."""

    layers: str
    count: str
    norm: str
    positions: str  # the table of learned positions


GPT_POSITIONS = "trunk.input.positions.embedding.table"
_GPT = {"decoder": _Stack("trunk.decoder.blocks.{}", "layers", "trunk.decoder.norm", GPT_POSITIONS)}
_SEQ2SEQ = {
    "encoder": _Stack("encoder.blocks.{}", "encoder_layers", "encoder.norm", "source.positions.embedding.table"),
    "decoder": _Stack("decoder.blocks.{}", "decoder_layers", "decoder.norm", "target.positions.embedding.table"),
}

# The parts of a layer, and our names of them; a layer of an encoder or a language model has no cross-attention.
_PARTS = {
    "attention_input": "attention.layer.query_key_value",
    "attention_output": "attention.layer.output",
    "attention_norm": "attention.norm",
    "query_norm": "attention.layer.query_norm",
    "key_norm": "attention.layer.key_norm",
    "cross_query": "cross_attention.layer.query",
    "cross_key_value": "cross_attention.layer.key_value",
    "cross_output": "cross_attention.layer.output",
    "cross_norm": "cross_attention.norm",
    "up": "feed_forward.layer.up",
    "down": "feed_forward.layer.down",
    "feed_forward_norm": "feed_forward.norm",
}
_HEAD_NORMS = ("query_norm", "key_norm")  # RMS norms, whatever the others are
_INTO_STREAM = ("attention_output", "cross_output", "down")  # maps whose outputs are added to the residual stream


def stacks(config: Config) -> dict[str, _Stack]:
    """Give our stacks of layers, by the side that they are on: "encoder" or "decoder"."""
    return _GPT if isinstance(config, GPTConfig) else _SEQ2SEQ


def _modules(config: Config) -> Iterator[tuple[str, str, str, int]]:
    """Yield all maps and norms that a model of this kind may have: our name, the part, its side, and its layer."""
    for side, stack in stacks(config).items():
        for layer in range(getattr(config, stack.count)):
            for part, name in _PARTS.items():
                yield f"{stack.layers.format(layer)}.{name}", part, side, layer
        yield stack.norm, "norm", side, 0


@dataclass(frozen=True)
class Entry:
    """One parameter of ours, and the tensors that lie side by side in it, each with the shape of its part of ours.

    transposed: matrices are (outputs, inputs) there. optional: it may be missing there, and is zeros then.
    unused: so many rows come first there that nothing reads.
    """

    ours: str
    theirs: Mapping[str, tuple[int, ...]]
    transposed: bool = False
    optional: bool = False
    unused: int = 0

    def read(self, source: Source) -> Array:
        """Read our parameter.  Raises ModelError where a tensor is missing or has another shape."""
        parts = []
        for name, shape in self._stored.items():
            part = source.tensor(name, shape[::-1] if self.transposed else shape, not self.optional)
            part = np.zeros(shape, np.float32) if part is None else part
            parts.append(part.T if self.transposed else part[self.unused :])
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def write(self, value: Array | None) -> Iterator[tuple[str, Array]]:
        """Yield their tensors; zeros where we have no such parameter, which only a bias may lack."""
        begin = 0
        for name, shape in self.theirs.items():
            part = np.zeros(shape, np.float32) if value is None else value[..., begin : begin + shape[-1]]
            part = np.concatenate([np.zeros_like(part[: self.unused]), part]) if self.unused else part
            yield name, part.T if self.transposed else part
            begin += shape[-1]

    @property
    def _stored(self) -> dict[str, tuple[int, ...]]:
        """Their tensors as they are stored, before they are turned."""
        return {name: (shape[0] + self.unused, *shape[1:]) for name, shape in self.theirs.items()}


@dataclass(frozen=True)
class Table:
    """One table of ours with a row for each token or position, and the names that it has elsewhere.

    theirs: all the names, of which reading takes the first that is there. written: those that writing uses; the first
    name alone, if none are given.
    """

    ours: str
    theirs: tuple[str, ...]
    written: tuple[str, ...] = ()

    def read(self, source: Source, shape: tuple[int, ...] | None = None) -> Array:
        """Read it.  Raises ModelError where it is missing or has another shape."""
        table = source.tensor(next((name for name in self.theirs if name in source), self.theirs[0]), shape)
        source.mark_read(self.theirs)
        return table

    def write(self, arrays: Mapping[str, Array]) -> dict[str, Array]:
        """Give one array, under each name that is written."""
        return dict.fromkeys(self.written or self.theirs[:1], arrays[self.ours])


@dataclass(frozen=True)
class Tensors:
    """The names of the tensors in the layers of a class of models, for both directions.

    layer: what the names in a layer begin with; {side} stands for "encoder" or "decoder", {layer} for its number.
    parts: the rest of the names, by the part of a layer; several names where several tensors are one of our matrices.
    norm: the norm after all layers. positions: the table of learned positions.
    map_ends, norm_ends: what the names of weights and biases end with. transposed: maps are (outputs, inputs).
    optional_biases: files may leave out the biases of maps. unused_positions: rows of the table of learned positions in
    front of the first.
    """

    layer: str
    parts: Mapping[str, str | tuple[str, ...]]
    norm: str
    positions: str | None = None
    map_ends: tuple[str, str] = (".weight", ".bias")
    norm_ends: tuple[str, str] = (".weight", ".bias")
    transposed: bool = True
    optional_biases: bool = False
    unused_positions: int = 0

    def entries(
        self, config: Config, shapes: Mapping[str, tuple[int, ...]], biased: Collection[str] = ("map", "norm")
    ) -> Iterator[Entry]:
        """Yield everything but the tables of tokens.

        shapes: of our parameters; a part that we have not is left out. biased: which of "map" and "norm", or which
        parts, have biases there even where ours have none, so that there is an entry for each.
        """
        for ours, part, side, layer in _modules(config):
            begin, names = ("", self.norm) if part == "norm" else (self.layer, self.parts.get(part, ()))
            each = [names] if isinstance(names, str) else names
            theirs = [(begin + name).format(side=side, layer=layer) for name in each]
            is_norm = part.endswith("norm")
            weight, bias = f"{ours}.{'gain' if is_norm else 'weight'}", f"{ours}.bias"
            if weight not in shapes:
                continue
            *inputs, total = shapes[weight]
            queries = config.num_heads * config.head_width
            widths = dict(zip(theirs, _shares(total, len(theirs), queries), strict=True))
            weight_end, bias_end = self.norm_ends if is_norm else self.map_ends
            matrices = {f"{name}{weight_end}": (*inputs, width) for name, width in widths.items()}
            yield Entry(weight, matrices, self.transposed and not is_norm)
            kind = "" if part in _HEAD_NORMS else "norm" if is_norm else "map"
            if bias in shapes or kind in biased or part in biased:
                vectors = {f"{name}{bias_end}": (width,) for name, width in widths.items()}
                yield Entry(bias, vectors, optional=self.optional_biases and not is_norm)
        for stack in stacks(config).values() if self.positions else ():
            if stack.positions in shapes:
                yield Entry(stack.positions, {self.positions: shapes[stack.positions]}, unused=self.unused_positions)


Entries = Callable[[Config, Mapping[str, tuple[int, ...]]], Iterator[Entry]]


def read_entries(source: Source, config: Config, entries: Entries) -> dict[str, Array]:
    """Read our parameters but for tables of tokens, and what else must be there.  entries: of a class of models.

    Raises ModelError where a tensor is missing or has another shape.
    """
    shapes = {name: parameter.shape for name, parameter in new_model(config).parameters().items()}
    found = {entry.ours: entry.read(source) for entry in entries(config, shapes)}
    return {name: value for name, value in found.items() if name in shapes}


def write_entries(arrays: Mapping[str, Array], config: Config, entries: Entries) -> dict[str, Array]:
    """Give the tensors that `read_entries` reads."""
    shapes = {name: array.shape for name, array in arrays.items()}
    return {name: part for each in entries(config, shapes) for name, part in each.write(arrays.get(each.ours))}


def _shares(total: int, parts: int, queries: int) -> list[int]:
    """Divide the outputs of a matrix: of three, the first are queries, `queries` wide; others are alike."""
    if parts == 3:
        return [queries, (total - queries) // 2, (total - queries) // 2]
    return [total // parts] * parts


_SMALL_TABLE = 1 << 20  # numbers that no model is too small for


def with_written_positions(config: Config, arrays: Mapping[str, Array]) -> tuple[Config, dict[str, Array]]:
    """Give the same model with sinusoidal positions as other libraries have them.

    Our models take sines and cosines in turn, encoder-decoders elsewhere all sines first (see
    `toolkit.functional.positions`); what is added to an embedding may stand in any order if everything that reads or
    writes the residual stream has the same one. Language models elsewhere have no waves, but tables of learned
    positions, in which waves can be written: a row for each position of the context.

    Raises ModelError where that table would be too large.
    """
    arrays = dict(arrays)
    if isinstance(config, GPTConfig) and config.positions.startswith("sinusoidal"):
        waves = written_waves(config, config.max_length, sum(value.size for value in arrays.values()))
        return replace(config, positions="learned"), arrays | {GPT_POSITIONS: waves}
    if config.positions != "sinusoidal":
        return config, arrays
    order = np.concatenate((np.arange(0, config.d_model, 2), np.arange(1, config.d_model, 2)))
    arrays |= {name: arrays[name].take(order, axis) for name, axis in _stream_axes(config).items() if name in arrays}
    return replace(config, positions="sinusoidal_halves"), arrays


def written_waves(config: Config, length: int, size: int) -> Array:
    """Write the waves of a model of `size` numbers as a table, (length, D).

    Raises ModelError where the table has more numbers than the model: what its config says must not fill a disk.
    """
    if length * config.d_model > max(size, _SMALL_TABLE):
        raise ModelError(
            f"a table of its {length:,} positions would be larger than the model: set max_length in its config.json to "
            "what its texts need"
        )
    return sinusoidal_positions(length, config.d_model, LAYOUTS[config.positions])


def _stream_axes(config: Config) -> dict[str, int]:
    """Name the parameters that read or write the residual stream, each with the axis that is the stream."""
    axes = dict.fromkeys(TABLES, 1)
    for ours, part, *_ in _modules(config):
        if part.endswith("norm"):
            axes |= {f"{ours}.gain": 0, f"{ours}.bias": 0}
        elif part in _INTO_STREAM:
            axes |= {f"{ours}.weight": 1, f"{ours}.bias": 0}
        else:
            axes[f"{ours}.weight"] = 0
    return axes
