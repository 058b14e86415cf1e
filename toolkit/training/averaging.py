"""The average of several models' weights: often a better model than any of them (Vaswani et al. 2017, section 6.1)."""

import dataclasses
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from toolkit.errors import ModelError
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.storage import CONFIG_FILE, METRICS_FILE, WEIGHTS_FILE, load_model, read_json
from toolkit.nn.module import Model
from toolkit.untrusted import VOCABULARY_BYTES, read_bytes


def average_models(directories: Sequence[Path]) -> Model:
    """A model whose weights are the means of those in the directories, summed up in float64, one in memory at a time.

    Raises ModelError where one is damaged, or its settings or tokenizer are not those of the first.
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
    """What a model directory holds beside the model itself, by name.

    Raises ModelError where that is nothing and the model reads texts.
    """
    own = (CONFIG_FILE, WEIGHTS_FILE, METRICS_FILE)
    try:
        files = {
            path.name: read_bytes(path, VOCABULARY_BYTES)
            for path in sorted(directory.iterdir())
            if _is_tokenizer(path, own)
        }
    except OSError as error:
        raise ModelError(f"{error.filename or directory} cannot be read: {error.strerror}") from None
    if not files and read_json(directory / CONFIG_FILE).get("kind") != AutoEncoder.kind:
        raise ModelError(f"{directory} has no tokenizer: copy the whole model again")
    return files


def _is_tokenizer(path: Path, own: Sequence[str]) -> bool:
    return path.is_file() and path.name not in own and not path.name.startswith(".")


def _check_alike(model: Model, where: Path, other: Model, other_where: Path) -> None:
    one, two = dataclasses.asdict(model.config), dataclasses.asdict(other.config)
    differing = sorted(name for name in one.keys() | two.keys() if one.get(name) != two.get(name))
    if type(model) is not type(other):
        differing = ["kind"]
    if differing:
        raise ModelError(f"{where} and {other_where} cannot be averaged: they differ in {', '.join(differing)}")
    if tokenizer_files(where) != tokenizer_files(other_where):
        raise ModelError(f"{where} and {other_where} cannot be averaged: their tokenizers differ")
