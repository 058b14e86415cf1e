"""Checkpoints: a model, and in its directory `training/` all that training continues from; and their average.

Averaging the weights of several checkpoints often gives a better model than any of them (Vaswani et al. 2017, section
6.1).
"""

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import save

from toolkit.display import short_repr
from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.older import order_in_vector
from toolkit.models.storage import (
    CONFIDENCE_FILE,
    CONFIG_FILE,
    FORMAT_VERSION,
    METRICS_FILE,
    WEIGHTS_FILE,
    load_model,
    model_format,
    read_arrays,
    read_json,
    write_json,
)
from toolkit.nn.module import Model
from toolkit.tokenization.carrying import FILE as WORDS_FILE
from toolkit.untrusted import OBJECT, VOCABULARY_BYTES, Maybe, Number, Record, Schema, Whole, read_bytes

# Files of a model beside its tokenizer's: its own, and what is told or was measured of it alone.
_OWN = CONFIG_FILE, WEIGHTS_FILE, METRICS_FILE, CONFIDENCE_FILE, "README.md"
_VECTORS_FILE, _STATE_FILE = "training/moments.safetensors", "training/state.json"


@dataclass
class TrainerState:
    """State of a run; saved with every checkpoint."""

    update: int = 0
    epoch: int = 0
    batch: int = 0  # batches of this epoch that are done
    validated: int = 0  # the update of the last validation
    best: float | None = None  # the best validation score so far
    best_update: int = 0
    validations_without_gain: int = 0
    rollbacks: int = 0  # how often it diverged and went back; each halves the learning rate
    seconds: float = 0.0  # spent in updates
    tokens: int = 0
    scores: dict[str, Any] = field(default_factory=dict)  # of the last validation
    averages: dict[str, float] = field(default_factory=dict)  # sums since the last line of the log


_SCHEMAS = {int: Whole(0), float: Number(), dict: OBJECT}
_COUNTS = dict.fromkeys(("updates", "seconds", "tokens"), Number(0))
_FIGURE = Schema("a number", lambda value: type(value) in (int, float))  # a sum may be no longer finite
_FIELDS = {name: _SCHEMAS.get(type(value)) for name, value in dataclasses.asdict(TrainerState()).items()}
_FIELDS |= {"best": Maybe(Number()), "averages": Record(_COUNTS, others=_FIGURE)}
_ADDED = {"validated", "rollbacks", "averages"}  # older runs do not have them
_STATE = Record(_FIELDS, needed=[name for name in _FIELDS if name not in _ADDED])  # what the file may hold


class Checkpoint(NamedTuple):
    """Model and training state that a run continues from."""

    model: Model  # its weights are averaged ones where `raw` is given
    moments: tuple[Array, Array]
    state: TrainerState
    raw: Array | None  # the parameters themselves, where the run averages its weights
    directory: Path
    note: str = ""  # what the user should know about the choice of this checkpoint

    __repr__ = short_repr


def write_training(
    directory: Path, model: Model, moments: tuple[Array, Array], state: TrainerState, raw: Array | None
) -> None:
    """Add to the directory of a model what training continues from."""
    (directory / "training").mkdir()
    vectors = {"first": moments[0], "second": moments[1]} | ({} if raw is None else {"parameters": raw})
    vectors = {name: model.rows_first(vector) for name, vector in vectors.items()}
    (directory / _VECTORS_FILE).write_bytes(save(vectors))
    write_json(directory / _STATE_FILE, dataclasses.asdict(state))


def read_checkpoint(directory: Path) -> Checkpoint:
    """Read a checkpoint.  Raises ModelError where it is missing or damaged."""
    state = read_state(directory)
    model = load_model(directory)
    path = directory / _VECTORS_FILE
    vectors = read_arrays(path, "checkpoint")
    if not {"first", "second"} <= vectors.keys() <= {"first", "second", "parameters"}:
        raise ModelError(f"{path} is damaged: it has {', '.join(sorted(vectors)) or 'nothing in it'}")
    for name, vector in vectors.items():
        if vector.shape != model.vector.shape or vector.dtype != np.float32 or not np.isfinite(vector).all():
            raise ModelError(f"{path} is damaged: {name!r} is not {len(model.vector)} finite float32 numbers")
    is_older = model_format(read_json(directory / CONFIG_FILE), directory) != FORMAT_VERSION
    ordered = order_in_vector(model) if is_older else None
    vectors = {name: model.from_rows_first(vector, ordered) for name, vector in vectors.items()}
    return Checkpoint(model, (vectors["first"], vectors["second"]), state, vectors.get("parameters"), directory)


def read_state(directory: Path) -> TrainerState:
    """Read where the run stood.  Raises ModelError where the checkpoint is missing or damaged."""
    return TrainerState(**read_json(directory / _STATE_FILE, "checkpoint", _STATE))


def average_models(directories: Sequence[Path]) -> Model:
    """Make a model whose weights are the means of those in the directories, summed in float64, one in memory at a time.

    Raises ModelError where one is damaged, or its settings or tokenizer are not those of the first; the words that a
    translator knows may be others.
    """
    first, *others = directories
    model = load_model(first)
    total = model.vector.astype(np.float64)
    for directory in others:
        other = load_model(directory)
        _check_alike(model, first, other, directory)
        total += other.vector
    model.vector[:] = total / len(directories)
    return model


def tokenizer_files(directory: Path) -> dict[str, bytes]:
    """Read the files that a model directory holds beside the model itself, by name.

    Raises ModelError where that is nothing and the model reads texts.
    """
    try:
        files = {
            path.name: read_bytes(path, VOCABULARY_BYTES)
            for path in sorted(directory.iterdir())
            if path.is_file() and path.name not in _OWN and not path.name.startswith(".")
        }
    except OSError as error:
        raise ModelError(f"{error.filename or directory} cannot be read: {error.strerror}") from None
    if not files and read_json(directory / CONFIG_FILE).get("kind") != AutoEncoder.kind:
        raise ModelError(f"{directory} has no tokenizer: copy the whole model again")
    return files


def _check_alike(model: Model, where: Path, other: Model, other_where: Path) -> None:
    one, two = dataclasses.asdict(model.config), dataclasses.asdict(other.config)
    differing = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    if type(model) is not type(other):
        differing = ["kind"]
    if differing:
        raise ModelError(f"{where} and {other_where} cannot be averaged: they differ in {', '.join(differing)}")
    files = [tokenizer_files(each) for each in (where, other_where)]
    for each in files:
        each.pop(WORDS_FILE, None)  # a run that goes on from another knows more of them, and its pieces are the same
    if files[0] != files[1]:
        raise ModelError(f"{where} and {other_where} cannot be averaged: their tokenizers differ")
