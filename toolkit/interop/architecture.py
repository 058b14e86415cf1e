"""What it takes to exchange models of one class: its settings and tensors, and ours, in both directions.

Which of our parameters is which tensor is a table that is read in both directions. Our linear maps are (inputs,
outputs) and keep maps of one input together, queries, keys and values say, side by side in one matrix; elsewhere each
is a tensor of its own, and often (outputs, inputs).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.interop.foreign_settings import Config, ForeignSettings
from toolkit.interop.foreign_weights import ForeignWeights


@dataclass(frozen=True)
class Entry:
    """One parameter of ours, and the tensors that lie side by side in it.

    theirs: names, with how much of our last axis each takes. transposed: matrices are (outputs, inputs) there.
    """

    ours: str
    theirs: Mapping[str, int]
    transposed: bool = False

    def read(self, weights: ForeignWeights, shape: tuple[int, ...]) -> Array:
        """Our parameter, of this shape.  Raises ModelError where a tensor is missing or has another shape."""
        parts = []
        for name, width in self.theirs.items():
            expected = (*shape[:-1], width)
            part = read_tensor(weights, name, expected[::-1] if self.transposed else expected)
            parts.append(part.T if self.transposed else part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-1)

    def write(self, value: Array | None) -> Iterator[tuple[str, Array]]:
        """Their tensors; zeros where we have no such parameter, which only a bias may lack."""
        if value is None:
            value = np.zeros(sum(self.theirs.values()), np.float32)
        begin = 0
        for name, width in self.theirs.items():
            part = value[..., begin : begin + width]
            yield name, part.T if self.transposed else part
            begin += width


@dataclass(frozen=True)
class Table:
    """One table of ours with a row for each token, and the names that it has elsewhere.

    theirs: all the names, of which reading takes the first that is there. Writing uses the names in `written`.
    """

    ours: str
    theirs: tuple[str, ...]
    written: tuple[str, ...]

    def read(self, weights: ForeignWeights, size: int, width: int) -> Array:
        """(foreign size, D).  Raises ModelError where it is missing or has another shape."""
        name = next((name for name in self.theirs if name in weights), self.theirs[0])
        table = read_tensor(weights, name, (size, width))
        weights.unread.difference_update(self.theirs)
        return table


def linear(ours: str, theirs: Mapping[str, int], bias: bool = True, transposed: bool = True) -> Iterator[Entry]:
    """Our linear map, and the maps in it with their outputs."""
    yield Entry(f"{ours}.weight", {f"{name}.weight": width for name, width in theirs.items()}, transposed)
    if bias:
        yield Entry(f"{ours}.bias", {f"{name}.bias": width for name, width in theirs.items()})


def norm(ours: str, theirs: str, width: int, bias: bool = True) -> Iterator[Entry]:
    yield Entry(f"{ours}.gain", {f"{theirs}.weight": width})
    if bias:
        yield Entry(f"{ours}.bias", {f"{theirs}.bias": width})


def same_tables(weights: ForeignWeights, *names: str) -> bool:
    """Whether those of the tables that a file has are one."""
    first, *others = [name for name in names if name in weights] or names[:1]
    return all(
        weights.shape(name) == weights.shape(first) and np.array_equal(weights[name], weights[first]) for name in others
    )


def untied_note(name: str, setting: str) -> str:
    """What import says of a table that differs from the one that it should be."""
    return f"{name} is a table of its own, though {setting} says otherwise: it is read as it is"


def read_tensor(weights: ForeignWeights, name: str, shape: tuple[int, ...]) -> Array:
    """A tensor of this shape.  Raises ModelError where it is missing, of another shape, or not finite."""
    where = weights.where(name)
    if name not in weights:
        raise ModelError(f"{where.parent} lacks {name}, which a model of its kind has: copy the whole model again")
    if weights.shape(name) != shape:
        raise ModelError(f"{where}: {name} has shape {weights.shape(name)}, by config.json it should be {shape}")
    tensor = weights[name]
    if not np.isfinite(tensor).all():
        raise ModelError(f"{where}: {name} contains values that are not finite numbers")
    return tensor


class Architecture:
    """One class of Hugging Face's transformers.  The subclasses are the tables; they hold nothing else."""

    name: ClassVar[str]
    model_type: ClassVar[str]
    prefix: ClassVar[str] = ""  # of the names of its tensors, where files may leave it out
    config_class: ClassVar[type]
    output_bias: ClassVar[str | None] = None  # the tensor that is added to the scores of tokens
    begins_texts: ClassVar[bool] = True  # whether its texts usually begin with their begin token
    aliases: ClassVar[Mapping[str, str]] = {}  # other names of settings, which config.json may use

    def read_config(self, settings: ForeignSettings, weights: ForeignWeights) -> Config:
        """Our settings for a model of theirs, its vocabulary as it is there.

        Raises ModelError for settings without a counterpart.
        """
        raise NotImplementedError

    def notes(self, settings: ForeignSettings, weights: ForeignWeights, config: Config) -> list[str]:
        """What is not the same here as config.json says, in sentences."""
        return []

    def write_config(self, config: Config) -> dict[str, Any]:
        """Their settings for a model of ours, but for those that all classes share."""
        raise NotImplementedError

    def misfits(self, config: Config) -> list[str]:
        """What a model of ours has that this class has not, such as "rotary positions"; nothing where it fits."""
        raise NotImplementedError

    def tables(self, config: Config) -> Sequence[Table]:
        raise NotImplementedError

    def entries(self, config: Config) -> Iterator[Entry]:
        """Everything but what has a row for each token."""
        raise NotImplementedError

    def check_unread(self, weights: ForeignWeights, config: Config) -> None:
        """Raises ModelError for tensors that were not read, unless they say nothing that is not known anyway."""
        unknown = [name for name in sorted(weights.unread) if not self.is_redundant(name, weights, config)]
        if unknown:
            raise ModelError(
                f"{weights.where(unknown[0])} has tensors that a {self.name} of this toolkit has no place for "
                f"({len(unknown)}), such as {unknown[0]}"
            )

    def is_redundant(self, name: str, weights: ForeignWeights, config: Config) -> bool:
        return False


# What transformers calls the activations that we have; the first name of each is the one that is written.
_ACTIVATIONS = {
    "relu": ("relu",),
    "gelu": ("gelu", "gelu_python"),
    "gelu_tanh": ("gelu_pytorch_tanh", "gelu_new", "gelu_python_tanh", "gelu_fast", "gelu_accurate"),
    "silu": ("silu", "swish"),
}


def read_activation(settings: ForeignSettings, name: str, default: str) -> str:
    """Our name of an activation.  Raises ModelError for one that we have not."""
    theirs = settings.get(name, default)
    for ours, names in _ACTIVATIONS.items():
        if theirs in names:
            return ours
    known = ", ".join(each for names in _ACTIVATIONS.values() for each in names)
    raise ModelError(f"{settings.path} has {name} {theirs!r}: this toolkit has no such activation, only {known}")


def written_activation(ours: str) -> str:
    return _ACTIVATIONS[ours][0]
