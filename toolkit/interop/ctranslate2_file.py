"""The file model.bin of CTranslate2: named arrays ("variables"), some of them under several names.

Little-endian, one thing after the other, as its Python package writes it (`ctranslate2.specs.model_spec`, version 6):

    version u32, name of the specification, its revision u32
    number of variables u32, and for each: name, rank u8, dimensions u32 ..., type u8, bytes u32, the bytes
    number of aliases u32, and for each: alias, name of the variable

A string is its length with the final zero byte (u16), its bytes, and that zero.
"""

import mmap
import struct
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import BinaryIO, NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.files import atomic_writer
from toolkit.functional.arrays import Array
from toolkit.untrusted import map_bytes

MODEL_FILE = "model.bin"

_VERSION, _NO_VERSION = 6, 1000  # the least number that is taken for the beginning of another kind of file
# Types by their number; bfloat16, which NumPy does not have, is read as the upper half of a float32.
_TYPES = ("<f4", "|i1", "<i2", "<i4", "<f2", "<u2")
_BFLOAT16 = 5
_MOST_BYTES = 2**32 - 1


class Variables(NamedTuple):
    """Content of a model.bin."""

    specification: str  # which kind of model it is
    revision: int
    arrays: dict[str, Array]  # as they are stored, bfloat16 as float32; quantised weights have a "..._scale" beside
    aliases: dict[str, str]  # other names of these arrays


def write_variables(path: Path, variables: Variables, half: bool = False) -> None:
    """Write a model.bin; `half` stores arrays of floats, but not single numbers, as float16.

    Raises DataError where the file cannot be written, ModelError for an array that the format cannot hold, or numbers
    that float16 cannot.
    """
    with atomic_writer(path) as file:
        file.write(struct.pack("<I", _VERSION))
        _write_string(file, variables.specification)
        file.write(struct.pack("<II", variables.revision, len(variables.arrays)))
        for name in sorted(variables.arrays):
            _write_array(file, name, variables.arrays[name], half)
        file.write(struct.pack("<I", len(variables.aliases)))
        for alias, name in sorted(variables.aliases.items()):
            _write_string(file, alias)
            _write_string(file, name)


def _write_array(file: BinaryIO, name: str, array: Array, half: bool) -> None:
    array = np.asarray(array)
    if array.dtype.kind == "f":
        with np.errstate(over="ignore"):
            array = array.astype("<f2" if half and array.ndim else "<f4")
        if half and np.isinf(array).any():
            raise ModelError(f"{name} has weights that are too large for float16: store it in float32")
    array = array.astype(array.dtype.newbyteorder("<"), copy=False)
    if array.nbytes > _MOST_BYTES:
        raise ModelError(f"{name} has {array.nbytes} bytes, which {MODEL_FILE} cannot hold: store it in half precision")
    _write_string(file, name)
    file.write(struct.pack(f"<B{array.ndim}I", array.ndim, *array.shape))
    file.write(struct.pack("<BI", _TYPES.index(array.dtype.str), array.nbytes))
    file.write(array.tobytes())


def _write_string(file: BinaryIO, text: str) -> None:
    content = text.encode() + b"\0"
    file.write(struct.pack("<H", len(content)) + content)


def read_variables(path: Path) -> Variables:
    """Read a model.bin; the arrays are views of its bytes, which are mapped.

    Raises ModelError where it is missing, damaged, or of another version.
    """
    try:
        reader = _Reader(map_bytes(path))
    except FileNotFoundError:
        raise ModelError(f"{path.parent} is not a CTranslate2 model: it has no {path.name}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    try:
        version = reader.number("I")
        if not 0 < version < _NO_VERSION:
            raise ModelError(f"{path} is damaged or is not a model of CTranslate2: copy the whole model again")
        if version != _VERSION:
            raise ModelError(f"{path} has binary version {version}, and version {_VERSION} is read: convert it again")
        specification, revision = reader.string(), reader.number("I")
        arrays = dict(reader.array() for _ in range(reader.number("I")))
        aliases = {reader.string(): reader.string() for _ in range(reader.number("I"))}
    except (struct.error, ValueError, IndexError):  # ValueError: no UTF-8, or not what the shape says
        raise ModelError(f"{path} is damaged or incomplete: copy the whole model again") from None
    if not reader.at_end or not set(aliases.values()) <= arrays.keys():
        raise ModelError(f"{path} is damaged: it does not end where it should, or names what it does not hold")
    return Variables(specification, revision, arrays, aliases)


class _Reader:
    """Bytes that are read from the front.  Raises struct.error, ValueError or IndexError where they do not fit."""

    def __init__(self, content: mmap.mmap | bytes):
        self._content, self._place = content, 0

    def number(self, kind: str) -> int:
        (value,) = struct.unpack_from(f"<{kind}", self._content, self._place)
        self._place += struct.calcsize(f"<{kind}")
        return value

    def string(self) -> str:
        return bytes(self._take(self.number("H"))).removesuffix(b"\0").decode()

    def array(self) -> tuple[str, Array]:
        name, rank = self.string(), self.number("B")
        shape = tuple(self.number("I") for _ in range(rank))
        kind, size = self.number("B"), self.number("I")
        array = np.frombuffer(self._take(size), _TYPES[kind]).reshape(shape)
        return name, (array.astype(np.uint32) << 16).view(np.float32) if kind == _BFLOAT16 else array

    def _take(self, size: int) -> memoryview:
        part = memoryview(self._content)[self._place : self._place + size]
        if len(part) < size:
            raise ValueError("the file ends early")
        self._place += size
        return part

    @property
    def at_end(self) -> bool:
        return self._place == len(self._content)


def quantised(variables: Variables) -> Variables:
    """Turn matrices into int8, each row with the scale that brings its largest magnitude to 127."""
    arrays, names = dict(variables.arrays), set()
    for name, array in variables.arrays.items():
        if name.endswith("/weight") and array.ndim == 2:
            largest = np.abs(array).max(axis=1)
            scale = np.float32(127) / np.where(largest == 0, np.float32(1), largest)
            arrays[name] = np.rint(array * scale[:, None]).astype(np.int8)
            arrays[f"{name}_scale"] = scale
            names.add(name)
    scales = {f"{alias}_scale": f"{name}_scale" for alias, name in variables.aliases.items() if name in names}
    return variables._replace(arrays=arrays, aliases=variables.aliases | scales)


def dequantised(variables: Mapping[str, Array], name: str) -> Array:
    """Give a variable in float32: one of int8 or int16 divided by its scale, of which int8 has one for every row.

    Raises ModelError where it is of another type, or where no scale that belongs to it lies beside.
    """
    array, scale = variables[name], variables.get(f"{name}_scale")
    if array.dtype.kind == "f":
        return array.astype(np.float32)
    if array.dtype not in (np.int8, np.int16):
        raise ModelError(f"{name} is stored as {array.dtype}, which are no weights")
    if scale is None or scale.shape not in ((), array.shape[:1]) or not (scale > 0).all():
        raise ModelError(f"{name} is stored as {array.dtype}, and no scale that fits lies beside it")
    columns = (1,) * (array.ndim - scale.ndim if scale.ndim else 0)
    return (array / scale.reshape(scale.shape + columns)).astype(np.float32)


# Variables that change nothing here: which attention is shown as alignment, how features that are refused would work,
# and what another variable says too.
_WITHOUT_EFFECT = {
    "alignment_layer",
    "alignment_heads",
    "alibi_use_positive_positions",
    "scale_alibi",
    "embeddings_merge",
    "multi_query_attention",
}
# Variables that change nothing where they are 0.
_SWITCHES = {"alibi", "layer_norm_use_residual", "start_from_zero_embedding"}


class VariableSource:
    """Hands out variables and remembers which, so that nothing of a model is overlooked."""

    def __init__(self, path: Path):
        """Read the file.  Raises ModelError where it is missing, damaged, or of another version."""
        self.path = path
        self.specification, _, self._arrays, self._aliases = read_variables(path)
        self._taken: set[str] = set()

    def names(self) -> list[str]:
        return sorted({*self._arrays, *self._aliases})

    @property
    def size(self) -> int:
        """Numbers in all arrays together."""
        return sum(array.size for array in self._arrays.values())

    def __contains__(self, name: object) -> bool:
        return name in self._arrays or name in self._aliases

    def add(self, name: str, array: Array) -> None:
        """Add an array that the file leaves to a rule."""
        self._arrays[name] = array

    def tensor(self, name: str, shape: tuple[int, ...] | None = None, needed: bool = True) -> Array | None:
        """Give a variable in float32, of this shape; None where it is missing and not needed.

        Raises ModelError where it is missing and needed, damaged, or of another shape.
        """
        if name not in self:
            if needed:
                raise self.refusal(f"has no {name}, which every model of its kind has here")
            return None
        self._taken.add(name)
        try:
            found = dequantised(self._arrays, self._aliases.get(name, name))
        except ModelError as error:
            raise ModelError(f"{self.path}: {error}") from None
        if shape is not None and found.shape != shape:
            raise ModelError(f"{self.path}: {name} has shape {found.shape}, the model expects {shape}")
        return found

    def mark_read(self, names: Collection[str]) -> None:
        """Count variables as read which say nothing that another has not said."""
        self._taken.update(names)

    def number(self, name: str, default: float) -> float:
        """Give a single number, `default` where it is missing.  Raises ModelError where it is an array."""
        if name not in self:
            return default
        self._taken.add(name)
        array = self._arrays[self._aliases.get(name, name)]
        if array.size != 1 or not np.isfinite(array).all():
            raise self.refusal(f"is damaged: {name} is not a number")
        return array.item()

    def agreed(self, names: Iterable[str], default: float) -> float:
        """Give the number that several variables are.  Raises ModelError where they differ."""
        values = {name: self.number(name, default) for name in names}
        first = next(iter(values), "")
        for name, value in values.items():
            if value != values[first]:
                raise self.refusal(f"has {value:g} as {name} and {values[first]:g} as {first}: here they are one")
        return values.get(first, default)

    def is_same(self, first: str, second: str) -> bool:
        """True if two names are one array: by an alias, or because all is equal."""
        if self._aliases.get(first, first) == self._aliases.get(second, second):
            self._taken |= {first, second}
            return True
        return np.array_equal(self.tensor(first), self.tensor(second))

    def is_stored_as(self, name: str, kind: str) -> bool:
        """True if there is a variable of that name with numbers of that kind of NumPy: "f", "f2" or the like."""
        found = self._arrays.get(self._aliases.get(name, name))
        return found is not None and found.dtype.str[1:].startswith(kind)

    def check_all_taken(self) -> None:
        """Raises ModelError, naming it, where there is something that nobody asked for."""
        for name in self.names():
            last = name.rpartition("/")[2]
            is_scale = name.endswith("_scale") and name.removesuffix("_scale") in self._taken
            if name in self._taken or is_scale or last in _WITHOUT_EFFECT:
                continue
            if last not in _SWITCHES or self.number(name, 0):
                raise self.refusal(f"has {name}, for which this toolkit has no counterpart")

    def refusal(self, what: str) -> ModelError:
        return ModelError(f"{self.path} {what}")
