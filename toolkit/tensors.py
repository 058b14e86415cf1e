"""Tensors in a safetensors file, mapped: each is read from the disk where it is looked at.

The format: eight bytes that say how long the header is, the header, a JSON object of name -> {dtype, shape,
data_offsets}, and the tensors, in C order, little endian, one behind the other up to the end of the file. NumPy knows
no bfloat16: it is the upper half of a float32.
"""

import math
import mmap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.untrusted import (
    OBJECT,
    SETTINGS_BYTES,
    Items,
    Maybe,
    Record,
    Row,
    Text,
    UnfitError,
    Whole,
    check,
    map_bytes,
    parse_json,
)

DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}  # those that weights may have

INTEGERS = {"I8": "i1"}  # what matrices in int8 are stored as

_SIZES = {name: np.dtype(dtype).itemsize for name, dtype in (DTYPES | INTEGERS).items()}
_MOST_DIMENSIONS, _MOST_NUMBERS = 32, 1 << 48
_LENGTH = 8  # bytes

_ENTRY = {"dtype": Text(16), "shape": Items(Whole(0), _MOST_DIMENSIONS), "data_offsets": Row(Whole(0), Whole(0))}
_HEADER = Record({"__metadata__": Maybe(OBJECT)}, others=Record(_ENTRY, needed=tuple(_ENTRY), others=OBJECT))


class Tensor(NamedTuple):
    """The place of a tensor in a file, its type and its shape."""

    content: mmap.mmap | bytes
    dtype: str  # as the format calls it
    shape: tuple[int, ...]
    start: int  # in the content

    def read(self, integers: bool = False) -> np.ndarray:
        """The values, bfloat16 as float32, the others as a view that cannot be written to.

        Raises UnfitError where they are of none of the DTYPES, nor with `integers` of the INTEGERS.
        """
        known = DTYPES | INTEGERS if integers else DTYPES
        if self.dtype not in known:
            raise UnfitError(f"is stored as {self.dtype}: weights must be float32, float16 or bfloat16")
        count = math.prod(self.shape)
        raw = np.frombuffer(self.content, known[self.dtype], count, self.start) if count else np.empty(0, np.float32)
        if self.dtype == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.reshape(self.shape)


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a file by name, of whatever type.

    Raises OSError where it cannot be read, UnfitError where it is damaged: every byte behind the header must belong to
    one tensor.
    """
    content = map_bytes(path)
    length = int.from_bytes(content[:_LENGTH], "little")
    begin = _LENGTH + length
    if not length or begin > min(len(content), SETTINGS_BYTES):
        raise UnfitError("has no header")
    header = check(parse_json(content[_LENGTH:begin]), _HEADER)
    header.pop("__metadata__", None)
    end = 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        first, last = entry["data_offsets"]
        if math.prod(length or 1 for length in entry["shape"]) > _MOST_NUMBERS:
            raise UnfitError("has a shape that no array has", f"{name:.60}")
        size = math.prod(entry["shape"]) * _SIZES.get(entry["dtype"], 0)
        if first != end or last < first or (size != last - first and entry["dtype"] in _SIZES):
            raise UnfitError("does not lie where it should", f"{name:.60}")
        end = last
    if begin + end != len(content):
        raise UnfitError("does not end where its tensors do")
    return {
        name: Tensor(content, entry["dtype"], tuple(entry["shape"]), begin + entry["data_offsets"][0])
        for name, entry in header.items()
    }


@contextmanager
def reading(path: Path, missing: str, whole: str = "model") -> Iterator[None]:
    """Read a file of tensors within the block.

    Raises ModelError for one that is `missing`, which is the sentence then, cannot be read or is damaged. whole: what
    the file is a part of.
    """
    try:
        yield
    except FileNotFoundError:
        raise ModelError(missing) from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except UnfitError as error:
        raise ModelError(
            f"{path} is damaged or is not a safetensors file ({error}): copy the whole {whole} again"
        ) from None
