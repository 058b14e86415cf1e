"""Sequences of different lengths in files that are mapped, not read: a corpus may be larger than memory.

A store is two `.npy` files, all values one after the other and where each sequence begins. They are written in one
pass, a chunk at a time.
"""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

from toolkit.display import counted
from toolkit.errors import DataError
from toolkit.untrusted import OBJECT, VOCABULARY_BYTES, Schema, UnfitError, check, open_regular, parse_json, read_bytes

Item = TypeVar("Item")
CHUNK = 1024  # sequences that are handled together: enough for NumPy, little to keep in memory


def chunks(items: Iterable[Item], size: int = CHUNK) -> Iterator[list[Item]]:
    """Yield the items in lists of `size`, the last one shorter."""
    iterator = iter(items)
    while chunk := list(islice(iterator, size)):
        yield chunk


class ArrayWriter:
    """A one-dimensional `.npy` file that grows, as a context manager. Raises OSError where it cannot be written."""

    def __init__(self, path: Path, dtype: type):
        self.path, self.dtype, self.length = path, np.dtype(dtype), 0

    def __enter__(self) -> "ArrayWriter":
        self._file = self.path.open("xb")
        self._write_header()
        return self

    def append(self, values: np.ndarray) -> None:
        """Add (n,) values at the end."""
        self._file.write(np.ascontiguousarray(values, self.dtype).data)
        self.length += len(values)

    def __exit__(self, kind: type | None, *_: object) -> None:
        with self._file:
            if kind is None:
                self._file.seek(0)
                self._write_header()

    def _write_header(self) -> None:
        """Write the length so far: the format leaves room for one that grows, and the last fits over the first."""
        description = np.lib.format.dtype_to_descr(self.dtype)
        shape = {"descr": description, "fortran_order": False, "shape": (self.length,)}
        np.lib.format.write_array_header_1_0(self._file, shape)


def map_array(path: Path) -> np.ndarray:
    """Map a vector of numbers in a `.npy` file, (N,): the system reads from the disk the parts that are used.

    Raises DataError if it is missing or damaged.
    """
    try:
        with open_regular(path):  # NumPy would wait for a pipe
            pass
        array = np.lib.format.open_memmap(path, mode="r")
        if array.ndim != 1 or array.dtype.kind not in "iuf":
            raise ValueError("no vector of numbers")
    except (OSError, ValueError, OverflowError) as error:
        raise damaged(path) from error
    return array.view(np.ndarray)  # indexing a `memmap` takes many times as long


def read_report(path: Path, schema: Schema = OBJECT) -> Any:
    """Read the JSON in a file that lies beside arrays.  Raises DataError if it is missing or damaged."""
    try:
        return check(parse_json(read_bytes(path, VOCABULARY_BYTES)), schema)
    except (OSError, UnfitError) as error:
        raise damaged(path) from error


def damaged(path: Path) -> DataError:
    return DataError(f"{path} is missing or damaged: delete {path.parent} to have it made again from the data")


class RaggedWriter(ExitStack):
    """Writes a store, as a context manager; `prefix` is the path without the endings of its two files."""

    def __init__(self, prefix: Path, dtype: type):
        super().__init__()
        self._values = self.enter_context(ArrayWriter(_values_path(prefix), dtype))
        self._offsets = self.enter_context(ArrayWriter(_offsets_path(prefix), np.int64))
        self._offsets.append(np.zeros(1))

    def extend(self, items: Sequence[bytes] | Sequence[Sequence[int]]) -> None:
        """Add some sequences: bytes where the store is of bytes, whole numbers otherwise."""
        lengths = np.fromiter(map(len, items), np.int64, len(items))
        ends = self._values.length + np.cumsum(lengths)
        if self._values.dtype == np.uint8:
            self._values.append(np.frombuffer(b"".join(items), np.uint8))
        else:
            count = int(lengths.sum())
            self._values.append(np.fromiter(chain.from_iterable(items), self._values.dtype, count))
        self._offsets.append(ends)

    def append(self, values: np.ndarray, ends: np.ndarray) -> None:
        """Go on with the sequence that has not ended, by (n,) values.

        ends: (k,), ascending, the places between 0 and n where a sequence ends and the next one begins. A store whose
        last sequence has not ended cannot be opened.
        """
        self._offsets.append(self._values.length + ends)
        self._values.append(values)


class RaggedStore(Sequence[np.ndarray]):
    """A store, opened: `store[i]` is the i-th sequence, (length,), a view of what is on the disk.

    Pickled as its path: another process maps the same files. Raises DataError if one of them is missing or damaged.
    """

    def __init__(self, prefix: Path):
        self.prefix = prefix.absolute()
        self.values = map_array(_values_path(self.prefix))
        self.offsets = map_array(_offsets_path(self.prefix))
        if len(self.offsets) == 0 or self.offsets[-1] != len(self.values):
            raise damaged(_values_path(self.prefix))

    def __repr__(self) -> str:
        return f"<RaggedStore: {counted(len(self), 'sequence')}, {counted(len(self.values), 'number')}>"

    @classmethod
    def write(cls, prefix: Path, items: Iterable[bytes] | Iterable[Sequence[int]], dtype: type) -> "RaggedStore":
        """Write all items and open what was written. Raises OSError where a file exists or cannot be written."""
        with RaggedWriter(prefix, dtype) as writer:
            for chunk in chunks(items):
                writer.extend(chunk)
        return cls(prefix)

    def __reduce__(self) -> tuple[type, tuple[Path]]:
        return type(self), (self.prefix,)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> np.ndarray:
        if index < 0:
            index += len(self)
            if index < 0:
                raise IndexError("no sequence so far in front")
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def text(self, index: int) -> str:
        """Decode a sequence of a store of UTF-8."""
        return self[index].tobytes().decode()

    @cached_property
    def lengths(self) -> np.ndarray:
        """The lengths of all sequences, (sequences,), int32."""
        return np.diff(self.offsets).astype(np.int32)


def _values_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.values.npy")


def _offsets_path(prefix: Path) -> Path:
    return prefix.with_name(f"{prefix.name}.offsets.npy")
