"""Weights in safetensors files as other libraries write them: several files, half precision, bfloat16.

The format: eight bytes that say how long the header is, the header, a JSON object of name -> {dtype, shape,
data_offsets}, and the tensors, in C order, little endian. NumPy knows no bfloat16: it is the upper half of a float32.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.storage import WEIGHTS_FILE, read_json

INDEX_FILE = f"{WEIGHTS_FILE}.index.json"

_DTYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}

# Formats that can run code when they are opened, or that need the library they come from.
_OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack", "model.ckpt.index")


class _Place(NamedTuple):
    path: Path
    dtype: str
    shape: tuple[int, ...]
    start: int  # bytes from the beginning of the file
    end: int


class ForeignWeights(Mapping[str, Array]):
    """The tensors of a model directory by name, as float32, each read when it is asked for.

    prefix: put before every name where no name begins with it, because some files leave it out. Names in `unread` have
    not been asked for.

    Raises ModelError where there are no weights, or they are damaged, quantised, or in another format.
    """

    def __init__(self, directory: Path, prefix: str = ""):
        self.directory = directory
        places: dict[str, _Place] = {}
        for path in _files(directory):
            places.update(_header(path))
        if prefix and not any(name.startswith(prefix) for name in places):
            places = {f"{prefix}{name}": place for name, place in places.items()}
        self._places = places
        self.unread = set(places)

    def __getitem__(self, name: str) -> Array:
        place = self._places[name]
        self.unread.discard(name)
        raw = np.memmap(place.path, np.uint8, "r")[place.start : place.end].view(_DTYPES[place.dtype])
        if place.dtype == "BF16":
            raw = (raw.astype(np.uint32) << 16).view(np.float32)
        return raw.reshape(place.shape).astype(np.float32, copy=False)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        return self._places[name].shape

    def where(self, name: str) -> Path:
        """The file that holds a tensor, or would."""
        return self._places[name].path if name in self._places else self.directory / WEIGHTS_FILE

    @property
    def size(self) -> int:
        """Numbers in all tensors together."""
        return sum(int(np.prod(place.shape)) for place in self._places.values())


def _files(directory: Path) -> list[Path]:
    """The files that hold the weights."""
    if (directory / WEIGHTS_FILE).exists():
        return [directory / WEIGHTS_FILE]
    if (directory / INDEX_FILE).exists():
        names = read_json(directory / INDEX_FILE).get("weight_map")
        if not isinstance(names, dict) or not all(isinstance(name, str) for name in names.values()):
            raise ModelError(f"{directory / INDEX_FILE} is damaged: it does not say which file has which weights")
        if strange := sorted(name for name in set(names.values()) if Path(name).name != name):
            raise ModelError(f"{directory / INDEX_FILE} is damaged: {strange[0]!r} is no name of a file beside it")
        return [directory / name for name in sorted(set(names.values()))]
    for name in _OTHERS:
        if (directory / name).exists():
            raise ModelError(
                f"{directory} has its weights in {name}, which this toolkit does not open: convert them to "
                f"{WEIGHTS_FILE} first, with from_pretrained and save_pretrained of transformers"
            )
    raise ModelError(f"{directory} has no weights: there is no {WEIGHTS_FILE}, nor {INDEX_FILE}")


def _header(path: Path) -> dict[str, _Place]:
    """Where each tensor of a file lies."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            size = path.stat().st_size - 8
            if length > size:
                raise ValueError(length)
            header = json.loads(file.read(length))
        header.pop("__metadata__", None)
        return {name: _place(path, name, entry, 8 + length, 8 + size) for name, entry in header.items()}
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist: copy the whole model again") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        raise ModelError(f"{path} is damaged or is not a safetensors file: copy the whole model again") from None


def _place(path: Path, name: str, entry: dict, begin: int, end: int) -> _Place:
    """Raises ValueError where a tensor does not lie within its file, ModelError where it is of no type of ours."""
    dtype, shape, (first, last) = entry["dtype"], tuple(entry["shape"]), entry["data_offsets"]
    if dtype not in _DTYPES:
        raise ModelError(f"{path}: {name} is stored as {dtype}: weights must be float32, float16 or bfloat16")
    place = _Place(path, dtype, shape, begin + first, begin + last)
    count = int(np.prod(shape, dtype=object))
    if not (begin <= place.start and place.end <= end) or min(shape, default=1) < 0:
        raise ValueError(name)
    if place.end - place.start != count * np.dtype(_DTYPES[dtype]).itemsize:
        raise ValueError(name)
    return place
