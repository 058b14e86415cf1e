"""Parameters with names, modules that own them, and one vector that holds them all."""

import math
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.functional.int8 import Int8Matrix
from toolkit.pages.blocks import Block, Shown, Table, Text

Initializer = Callable[["np.random.Generator", tuple[int, ...]], Array]

_NUMBER = re.compile(r"\.(\d+)\.")  # of a block: "decoder.blocks.0.attention.norm"

# Parameters begin at multiples of a cache line within their vector.
_ALIGNMENT = 64


class Parameter:
    """A learned array. Weight decay applies to matrices and not to gains and biases, unless told otherwise.

    data: an `Int8Matrix` where the model has been quantised.
    trained: False for one that only models from elsewhere have values for: its gradient stays 0.
    transposed: the matrix lies in memory column after column. Nothing but speed depends on that.
    splits: where the parameter is the weights of linear maps, the columns at which the second and further ones begin.
    """

    data: Array
    joined: Array | None = None  # of a copy for decoding steps: data and below it the bias, (D + 1, F)

    def __init__(
        self,
        shape: tuple[int, ...],
        initial: Initializer,
        decay: bool | None = None,
        transposed: bool = False,
        splits: Sequence[int] | None = None,
        trained: bool = True,
    ):
        self.shape, self.transposed, self.splits, self.trained = shape, transposed, splits, trained
        self.size, self.initial = math.prod(shape), initial
        self.decay = len(shape) > 1 if decay is None else decay

    def __repr__(self) -> str:
        return f"<Parameter: {self.shape}{', ' + str(self.data.dtype) if hasattr(self, 'data') else ''}>"

    @property
    def quantized(self) -> bool:
        return isinstance(getattr(self, "data", None), Int8Matrix)

    def view(self, stretch: Array) -> Array:
        """Its own part of a vector in its own shape."""
        if self.transposed:
            return stretch.reshape(self.shape[::-1]).T
        return stretch.reshape(self.shape)


class Module:
    """Owns parameters and other modules as attributes, and has a `forward` and a `backward` that mirror each other.

    A module remembers nothing between calls: what a pass needs later goes on the `Tape`. It may therefore be called
    twice in one pass, or by two workers at once.
    """

    def __repr__(self) -> str:
        count = sum(parameter.size for parameter in self.parameters().values())
        config = f", {self.config!r}" if hasattr(self, "config") else ""
        return f"<{type(self).__name__}: {count:,} parameters{config}>"

    def parameters(self, prefix: str = "") -> dict[str, Parameter]:
        """Every parameter by its dotted name. One that is shared appears once, under the first of its names."""
        names: dict[Parameter, str] = {}
        for name, parameter in self._walk(prefix):
            names.setdefault(parameter, name)
        return {name: parameter for parameter, name in names.items()}

    def members(self) -> dict[str, Any]:
        """Find the attributes that are modules, or lists of modules."""
        named = {name: value if isinstance(value, list) else [value] for name, value in vars(self).items()}
        return {name: getattr(self, name) for name, each in named.items() if any(isinstance(x, Module) for x in each)}

    def _quantize(self, shared: set[Parameter]) -> None:
        """Turn the matrices of all linear maps, embeddings and outputs in it into int8.  shared: by several of them."""
        for value in vars(self).values():
            for member in value if isinstance(value, list) else [value]:
                if isinstance(member, Module):
                    member._quantize(shared)

    def _walk(self, prefix: str) -> Iterator[tuple[str, Parameter]]:
        for name, value in vars(self).items():
            members = enumerate(value) if isinstance(value, list) else [(None, value)]
            for index, member in members:
                path = f"{prefix}{name}" if index is None else f"{prefix}{name}.{index}"
                if isinstance(member, Parameter):
                    yield path, member
                elif isinstance(member, Module):
                    yield from member._walk(path + ".")


class Model(Module, Shown):
    """A module at the root: its parameters are views into one contiguous `vector`, the decayed ones first.

    Clipping, the optimizer, averaging and the sum over workers are then loops over one vector.
    """

    vector: Array
    decayed: int  # this many leading elements of `vector` take weight decay

    def allocate(self, dtype: type = np.float32, vector: Array | None = None) -> None:
        """Give every parameter its place, in `vector` where given (contents kept) and in new zeros where not."""
        own = (parameter for parameter in self.parameters().values() if not parameter.quantized)
        ordered = sorted(own, key=lambda parameter: not parameter.decay)
        self._places, size = _laid_out(ordered, dtype)
        self.decayed = next((start for parameter, start in self._places if not parameter.decay), size)
        self.vector = aligned_zeros(size, dtype) if vector is None else vector
        for parameter, view in self.views(self.vector).items():
            parameter.data = view

    def views(self, vector: Array) -> dict[Parameter, Array]:
        """The same division of another vector of this length, such as the one that gradients are summed in."""
        return {p: p.view(vector[start : start + p.size]) for p, start in self._places}

    def places(self) -> list[tuple[Parameter, int]]:
        """Every parameter, with where it begins in the vector."""
        return list(self._places)

    def __getstate__(self) -> dict[str, Any]:
        """Give pickle and copy everything but the vector: its values travel once, with the parameters."""
        return {name: value for name, value in vars(self).items() if name not in ("vector", "_places")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Put the parameters into a vector of their own again."""
        vars(self).update(state)
        if "decayed" in state:  # it had been allocated
            self._gather()

    def summary(self) -> Table:
        """List the maps, norms and tables with their shapes; one row stands for all blocks that are alike."""
        shapes: dict[str, list[str]] = {}  # module -> its parameters
        counts: Counter[str] = Counter()
        for name, parameter in self.parameters().items():
            module, _, own = name.rpartition(".")
            shapes.setdefault(module, []).append(f"{own} {parameter.shape}")
            counts[module] += parameter.size
        rows: dict[tuple[str, str], list[str]] = {}  # (name with * for its number, parameters) -> modules
        for module, each in shapes.items():
            rows.setdefault((_NUMBER.sub(".*.", module), ", ".join(each)), []).append(module)
        lines = []
        for (name, each), modules in rows.items():
            numbers = [found[1] for module in modules if (found := _NUMBER.search(module))]
            place = f".{numbers[0]}…{numbers[-1]}." if len(numbers) > 1 else f".{''.join(numbers)}."
            count = sum(counts[module] for module in modules)
            lines.append(
                (name.replace(".*.", place), each, f"{count:,}", f"{100 * count / self.parameter_count:.1f} %")
            )
        lines.append(("all", "", f"{self.parameter_count:,}", ""))
        return Table(("module", "parameters", "numbers", "share"), lines, left=(0, 1))

    def _shown(self) -> list[Block]:
        """Show the configuration, and the parameters."""
        return [Text(repr(self).strip("<>")), self.summary()]

    @property
    def quantized(self) -> bool:
        return any(parameter.quantized for parameter in self.parameters().values())

    @np.errstate(all="ignore")  # a damaged model shows at its outputs
    def quantize(self) -> None:
        """Turn the matrices of linear maps, embeddings and outputs into int8, for good: such a model is not trained.

        Norms are folded into them before (see `toolkit.models.folding`).

        Raises ConfigError where the library is missing; see `Int8Matrix`.
        """
        if not self.quantized:
            self._fold()
        uses = Counter(parameter for _, parameter in self._walk(""))
        self._quantize({parameter for parameter, count in uses.items() if count > 1})
        self._gather()

    def fold(self) -> None:
        """Fold norms into the maps that read them (see `toolkit.models.folding`)."""
        self._fold()
        self._gather()

    def _fold(self) -> None:
        """Fold norms into the maps that read them; `_gather` follows."""

    def _gather(self) -> None:
        """Put the values of all parameters that are not quantised into a new vector."""
        values = {parameter: parameter.data for parameter in self.parameters().values() if not parameter.quantized}
        self.allocate(next(iter(values.values())).dtype.type)
        for parameter, value in values.items():
            parameter.data[...] = value

    def rows_first(self, vector: Array) -> Array:
        """A copy of another vector of this length with every matrix row after row, as arrays are written to files."""
        copy = vector.copy()
        for parameter, start in self._places:
            part = copy[start : start + parameter.size]
            part[:] = parameter.view(vector[start : start + len(part)]).reshape(-1)
        return copy

    def from_rows_first(self, vector: Array, ordered: Sequence[Parameter] | None = None) -> Array:
        """The inverse of `rows_first`.  ordered: the parameters as they follow in `vector`, where not as in ours."""
        copy = np.zeros_like(vector)
        starts = dict(self._places if ordered is None else _laid_out(ordered, vector.dtype.type)[0])
        for parameter, view in self.views(copy).items():
            start = starts[parameter]
            view[...] = vector[start : start + parameter.size].reshape(parameter.shape)
        return copy

    def initialize(self, generator: "np.random.Generator") -> None:
        """Draw every parameter from its own distribution."""
        for parameter in self.parameters().values():
            parameter.data[...] = parameter.initial(generator, parameter.shape)

    def arrays(self) -> dict[str, Array]:
        """The values by name: views, not copies."""
        return {name: parameter.data for name, parameter in self.parameters().items()}

    def load_arrays(self, arrays: dict[str, Array], where: str) -> None:
        """Take values by name; every name and shape must match, and every value must be finite.

        Raises ModelError.
        """
        self.check_arrays(arrays, where)
        for name, parameter in self.parameters().items():
            if isinstance(arrays[name], Int8Matrix):
                parameter.data = arrays[name]
            else:
                parameter.data[...] = _widened(arrays[name])
        if self.quantized:
            self._gather()

    def check_arrays(self, arrays: dict[str, Array], where: str) -> None:
        """Raises ModelError where `load_arrays` would.  Needs no allocated parameters."""
        own = self.parameters()
        if missing := sorted(own.keys() - arrays.keys()):
            raise ModelError(f"{where} lacks {len(missing)} of the model's parameters, such as {missing[0]}")
        if foreign := sorted(arrays.keys() - own.keys()):
            raise ModelError(f"{where} has arrays that the model does not know ({len(foreign)}), such as {foreign[0]}")
        for name, parameter in own.items():
            if arrays[name].shape != parameter.shape:
                raise ModelError(f"{where}: {name} has shape {arrays[name].shape}, the model expects {parameter.shape}")
            if isinstance(arrays[name], Int8Matrix):
                continue
            if arrays[name].dtype.kind != "f" or not _is_finite(arrays[name]):
                raise ModelError(f"{where}: {name} contains values that are not finite floating-point numbers")

    @property
    def parameter_count(self) -> int:
        """Count the numbers that training changes."""
        return sum(parameter.size for parameter in self.parameters().values() if parameter.trained)


def rebuilt(module: Module, kind_of: Callable[[Module], type[Module]], originals: dict[Module, Module]) -> Module:
    """Copy a tree of modules, of the classes that `kind_of` says, over the same parameters.

    originals: gets what each copy comes from, which of a copy in it is the original of that.
    """
    twin = object.__new__(kind_of(module))
    vars(twin).update(vars(module))
    originals[twin] = originals.get(module, module)
    for name, value in module.members().items():
        several = isinstance(value, list)
        copies = [rebuilt(each, kind_of, originals) for each in (value if several else [value])]
        setattr(twin, name, copies if several else copies[0])
    return twin


def _is_finite(array: Array) -> bool:
    """Say if all values are finite; of halves by their exponents, which takes a sixth of the time."""
    if array.dtype == np.float16:
        return bool((array.view(np.uint16) & 0x7FFF).max(initial=0) < 0x7C00)
    return bool(np.isfinite(array).all())


def _widened(array: Array) -> Array:
    """Give halves as float32, out of a table of all there are, which is faster than the cast; others as they are."""
    if array.dtype != np.float16 or array.size < 1 << 16:
        return array
    return _halves()[array.view(np.uint16)]


@cache
def _halves() -> Array:
    return np.arange(1 << 16, dtype=np.uint16).view(np.float16).astype(np.float32)


def _laid_out(ordered: Sequence[Parameter], dtype: type) -> tuple[list[tuple[Parameter, int]], int]:
    """Every parameter with where it begins in a vector, and the length of the vector."""
    places, size, step = [], 0, _ALIGNMENT // np.dtype(dtype).itemsize
    for parameter in ordered:
        places.append((parameter, size))
        size += -(-parameter.size // step) * step
    return places, size


def aligned_zeros(size: int, dtype: type = np.float32) -> Array:
    """A vector of zeros that begins on a cache line."""
    itemsize = np.dtype(dtype).itemsize
    if size * itemsize >= sys.maxsize - _ALIGNMENT:
        raise MemoryError(f"{size} numbers are more than any memory holds")
    raw = np.zeros(size * itemsize + _ALIGNMENT, np.uint8)
    start = -raw.ctypes.data % _ALIGNMENT
    return raw[start : start + size * itemsize].view(dtype)


def zeros(_generator: "np.random.Generator", shape: tuple[int, ...]) -> Array:
    return np.zeros(shape)


def ones(_generator: "np.random.Generator", shape: tuple[int, ...]) -> Array:
    return np.ones(shape)


def normal(std: float) -> Initializer:
    """N(0, std²)."""
    return partial(_normal, std)


def _normal(std: float, generator: "np.random.Generator", shape: tuple[int, ...]) -> Array:
    return generator.standard_normal(shape) * std


def xavier_uniform(fan_in: int, fan_out: int) -> Initializer:
    """U(-a, a) with a = √(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16)."""
    bound = (6 / (fan_in + fan_out)) ** 0.5
    return partial(_uniform, bound)


def _uniform(bound: float, generator: "np.random.Generator", shape: tuple[int, ...]) -> Array:
    return generator.uniform(-bound, bound, shape)
