"""What a checkpoint holds beside the model: all that training continues from, in its directory `training/`."""

import dataclasses
from pathlib import Path
from typing import NamedTuple

import numpy as np
from safetensors.numpy import save

from toolkit.errors import ModelError
from toolkit.functional.arrays import Array
from toolkit.models.storage import load_model, read_arrays, read_json, write_json
from toolkit.nn.module import Model
from toolkit.training.progress import PROGRESS, Progress

_VECTORS_FILE, _STATE_FILE = "training/moments.safetensors", "training/state.json"


class Saved(NamedTuple):
    """What a run continues from."""

    model: Model  # its weights are averaged ones where `raw` is given
    moments: tuple[Array, Array]
    progress: Progress
    raw: Array | None  # the parameters themselves, where the run averages its weights
    directory: Path
    note: str = ""  # what the user should know about the choice of this checkpoint


def write_training(
    directory: Path, model: Model, moments: tuple[Array, Array], progress: Progress, raw: Array | None
) -> None:
    """Add to the directory of a model what training continues from."""
    (directory / "training").mkdir()
    vectors = {"first": moments[0], "second": moments[1]} | ({} if raw is None else {"parameters": raw})
    vectors = {name: model.rows_first(vector) for name, vector in vectors.items()}
    (directory / _VECTORS_FILE).write_bytes(save(vectors))
    write_json(directory / _STATE_FILE, dataclasses.asdict(progress))


def read_checkpoint(directory: Path) -> Saved:
    """Raises ModelError where the checkpoint is missing or damaged."""
    progress = read_progress(directory)
    model = load_model(directory)
    path = directory / _VECTORS_FILE
    vectors = read_arrays(path, "checkpoint")
    if not {"first", "second"} <= vectors.keys() <= {"first", "second", "parameters"}:
        raise ModelError(f"{path} is damaged: it has {', '.join(sorted(vectors)) or 'nothing in it'}")
    for name, vector in vectors.items():
        if vector.shape != model.vector.shape or vector.dtype != np.float32 or not np.isfinite(vector).all():
            raise ModelError(f"{path} is damaged: {name!r} is not {len(model.vector)} finite float32 numbers")
    vectors = {name: model.from_rows_first(vector) for name, vector in vectors.items()}
    return Saved(model, (vectors["first"], vectors["second"]), progress, vectors.get("parameters"), directory)


def read_progress(directory: Path) -> Progress:
    """Where the run stood.  Raises ModelError where the checkpoint is missing or damaged."""
    return Progress(**read_json(directory / _STATE_FILE, "checkpoint", PROGRESS))
