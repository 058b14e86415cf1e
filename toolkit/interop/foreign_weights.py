"""Weights in safetensors files as other libraries write them: several files, half precision, bfloat16."""

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.storage import WEIGHTS_FILE, read_json
from toolkit.models.tensors import DTYPES, Tensor, read_tensors
from toolkit.untrusted import ANYTHING, Record, Text, UnfitError

INDEX_FILE = f"{WEIGHTS_FILE}.index.json"

# Which file beside it has which weights.
_INDEX = Record(
    {"weight_map": Record(others=Text(255, r"[^/\\]*[^/\\.][^/\\]*", "the name of a file beside it"))},
    needed=("weight_map",),
    others=ANYTHING,
)

# Formats that can run code when they are opened, or that need the library they come from.
_OTHERS = ("pytorch_model.bin", "pytorch_model.bin.index.json", "tf_model.h5", "flax_model.msgpack", "model.ckpt.index")


class _Place(NamedTuple):
    path: Path
    tensor: Tensor


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
            places.update((name, _Place(path, tensor)) for name, tensor in _tensors(path).items())
        if prefix and not any(name.startswith(prefix) for name in places):
            places = {f"{prefix}{name}": place for name, place in places.items()}
        self._places = places
        self.unread = set(places)

    def __getitem__(self, name: str) -> Array:
        path, tensor = self._places[name]
        self.unread.discard(name)
        try:
            return tensor.read().astype(np.float32, copy=False)
        except UnfitError as error:
            raise ModelError(f"{path}: {name} {error.problem}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places

    def shape(self, name: str) -> tuple[int, ...]:
        return self._places[name].tensor.shape

    def where(self, name: str) -> Path:
        """The file that holds a tensor, or would."""
        return self._places[name].path if name in self._places else self.directory / WEIGHTS_FILE

    @property
    def size(self) -> int:
        """Numbers in all tensors together that can be read."""
        tensors = (place.tensor for place in self._places.values())
        return sum(math.prod(tensor.shape) for tensor in tensors if tensor.dtype in DTYPES)


def _files(directory: Path) -> list[Path]:
    """The files that hold the weights."""
    if (directory / WEIGHTS_FILE).exists():
        return [directory / WEIGHTS_FILE]
    if (directory / INDEX_FILE).exists():
        names = read_json(directory / INDEX_FILE, schema=_INDEX)["weight_map"]
        return [directory / name for name in sorted(set(names.values()))]
    for name in _OTHERS:
        if (directory / name).exists():
            raise ModelError(
                f"{directory} has its weights in {name}, which this toolkit does not open: convert them to "
                f"{WEIGHTS_FILE} first, with from_pretrained and save_pretrained of transformers"
            )
    raise ModelError(f"{directory} has no weights: there is no {WEIGHTS_FILE}, nor {INDEX_FILE}")


def _tensors(path: Path) -> dict[str, Tensor]:
    try:
        return read_tensors(path)
    except FileNotFoundError:
        raise ModelError(f"{path} does not exist: copy the whole model again") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except UnfitError as error:
        raise ModelError(
            f"{path} is damaged or is not a safetensors file ({error}): copy the whole model again"
        ) from None
