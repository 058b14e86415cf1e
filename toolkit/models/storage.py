"""Models on disk: directories with config.json, model.safetensors, the tokenizer and metrics.json, found by name.

A directory is self-contained and can be copied anywhere. Everything is written under another name, flushed and
renamed, so what a name points to is always whole; nothing is ever unpickled.
"""

import dataclasses
import json
import os
import re
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from safetensors.numpy import save

from toolkit.display import meant
from toolkit.errors import ConfigError, ModelError, ToolkitError
from toolkit.files import atomic_writer
from toolkit.functional.int8 import Int8Matrix
from toolkit.models import older
from toolkit.models.autoencoder import AutoEncoder, AutoEncoderConfig
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import ActorCritic, ActorCriticConfig, RewardConfig, RewardModel
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.nn.module import Model
from toolkit.tensors import read_tensors, reading
from toolkit.untrusted import LIKE, OBJECT, SETTINGS_BYTES, Record, Schema, UnfitError, check, parse_json, read_bytes

Found, Result = TypeVar("Found"), TypeVar("Result")

FORMAT_VERSION, INT8_VERSION = 2, 3
CONFIG_FILE, WEIGHTS_FILE, METRICS_FILE = "config.json", "model.safetensors", "metrics.json"
CONFIDENCE_FILE = "confidence.json"

_PASSED_ON = "imported_from", "generation", "languages"  # metrics that export reads, or `toolkit models`
_NAME_BYTES = 1 << 12  # of a file that names a checkpoint
_MOST_REPLACED = 10  # so often another checkpoint may take the place of the one that is read
_NO_SIZES = ("max_length", "rotary_original_length")  # numbers of a config that ask for no memory
_STORED, _STORED_IN_INT8 = ("F32", "F16", "F64"), ("F32", "I8")
_SCALES = ".scales"  # behind the name of a matrix in int8: what its integers are multiplied with

# Every kind of model that a directory can hold, by the name in its config.json.
_KINDS = {
    Seq2Seq.kind: (Seq2Seq, Seq2SeqConfig),
    GPT.kind: (GPT, GPTConfig),
    RewardModel.kind: (RewardModel, RewardConfig),
    ActorCritic.kind: (ActorCritic, ActorCriticConfig),
    AutoEncoder.kind: (AutoEncoder, AutoEncoderConfig),
}


def save_model(model: Model, directory: Path, metrics: dict[str, Any] | None = None, half: bool = False) -> None:
    """Write config, weights and metrics into an existing directory; `half` stores float16.

    Of a model in int8, whose norms are folded, integers and scales are written, and the rest as float32.
    Callers that replace a directory write a new one and rename it: see `toolkit.files.replaced_directory`.
    """
    dtype, arrays = np.float16 if half else np.float32, {}
    for name, value in model.arrays().items():
        if isinstance(value, Int8Matrix):
            value, arrays[name + _SCALES] = map(np.ascontiguousarray, value.parts())
            arrays[name] = value
        else:
            arrays[name] = np.ascontiguousarray(value, dtype=dtype)
    (directory / WEIGHTS_FILE).write_bytes(save(arrays))  # `save_file` would hide it from all other users
    version = INT8_VERSION if model.quantized else FORMAT_VERSION
    config = {"format": version, "kind": model.kind, "model": dataclasses.asdict(model.config)}
    write_json(directory / CONFIG_FILE, config)
    save_metrics(directory, metrics or {})


def model_directory(path: str | os.PathLike[str]) -> Path:
    """The model directory that `path` means: itself, or the best (else the last) checkpoint of a training run.

    Raises ModelError where the file that names the checkpoint is damaged.
    """
    path = Path(path)
    for name in ("best", "last"):
        pointer = path / name
        if pointer.is_file() and not (path / CONFIG_FILE).exists():
            return named_checkpoint(pointer)
    return path


def named_checkpoint(pointer: Path) -> Path:
    """The checkpoint beside it that a file names.  Raises ModelError where it names none, OSError where it cannot."""
    name = read_bytes(pointer, _NAME_BYTES).decode(errors="replace").strip()
    if not re.fullmatch(r"[\w.-]{1,255}", name):
        raise ModelError(f"{pointer} is damaged: it does not name a checkpoint")
    return pointer.with_name(name)


def find_model(path_or_name: str | os.PathLike[str]) -> Path:
    """The directory of a model: itself, the best checkpoint of a run, or a shipped one by its name.

    A directory at hand comes before a shipped model of the same name.

    Raises ModelError, with the names there are, where nothing is found.
    """
    path, shipped = Path(path_or_name), shipped_models()
    with suppress(OSError):  # of a name that is too long for a path
        for candidate in (path, shipped.get(str(path_or_name), path)):
            directory = model_directory(candidate)
            if directory != candidate or (directory / CONFIG_FILE).exists():
                return directory
        if path.is_dir():
            found = sorted(each for each in path.iterdir() if holds_a_model(each))
            if found:
                raise ModelError(f"{path} is not a model, but has some in it: give one of them, such as {found[0]}")
            raise ModelError(f"{path} is not a model: it has no {CONFIG_FILE}")
    names = ", ".join(sorted(shipped)) or "none is shipped"
    near = meant(str(path_or_name), shipped)
    advice = f"did you mean {near}?" if near else f"give the path of a directory, or a name ({names})"
    raise ModelError(f"there is no model {str(path_or_name)!r}: {advice}")


def read_model(path_or_name: str | os.PathLike[str], read: Callable[[Path], Result]) -> Result:
    """Find a model and read it; see `find_model` and `read_found`."""
    return read_found(lambda: find_model(path_or_name), read)


def read_found(find: Callable[[], Found], read: Callable[[Found], Result]) -> Result:
    """Read what `find` finds.

    A run that is being trained removes a checkpoint when there is a better one, also under whoever is reading it: where
    reading fails and something else is found by then, that is read.
    """
    found = find()
    for _ in range(_MOST_REPLACED):
        try:
            return read(found)
        except ToolkitError:
            before, found = found, find()
            if found == before:
                raise
    return read(found)


def shipped_models() -> dict[str, Path]:
    """The models that come with the toolkit: within the installed package, or beside it in a clone."""
    package = Path(__file__).parent.parent
    directory = package / "checkpoints"
    if not directory.is_dir():
        directory = package.parent / "checkpoints"
    if not directory.is_dir():
        return {}
    return {path.name: path for path in directory.iterdir() if holds_a_model(path)}


def holds_a_model(path: Path) -> bool:
    """True for a directory that is a model, or a run that has one."""
    return any((path / name).is_file() for name in (CONFIG_FILE, "best", "last"))


def load_model(directory: Path, dtype: type = np.float32, int8: bool | None = None) -> Model:
    """Read a model back.

    int8: of a model that is stored in int8, True: its matrices stay so; False: all are floats; None: it is refused,
    as by all that is not made for the folded norms that it has.

    Raises ModelError where the directory is missing, damaged, foreign or of another version, ConfigError where matrices
    stay in int8 and the library for that is missing.
    """
    if int8 is None:
        refuse_int8(directory)
    model, arrays = described_model(directory)
    where = str(directory / WEIGHTS_FILE)
    if _is_in_int8(directory):
        arrays = _matrices(model, arrays, where, dtype, bool(int8))
        model.allocate(dtype)
        model.fold()
    else:
        model.check_arrays(arrays, where)
        model.allocate(dtype)
    model.load_arrays(arrays, where)
    return model


def _is_in_int8(directory: Path) -> bool:
    return model_format(read_json(directory / CONFIG_FILE), directory) == INT8_VERSION


def refuse_int8(directory: Path) -> None:
    """Raises ModelError for a model that is stored in int8, by all that is not made for the folded norms it has."""
    if _is_in_int8(directory):
        what = "which is neither trained, averaged nor exported: give the model that it was made from"
        raise ModelError(f"{directory} is stored in int8, {what}")


def _matrices(model: Model, arrays: dict[str, np.ndarray], where: str, dtype: type, int8: bool) -> dict[str, Any]:
    """Put integers and scales together, to matrices in int8 or floats.  Raises ModelError where they do not fit."""
    found: dict[str, Any] = {name: array for name, array in arrays.items() if not name.endswith(_SCALES)}
    for name, parameter in model.parameters().items():
        if len(parameter.shape) < 2:
            continue
        integers, scales = arrays.get(name), arrays.get(name + _SCALES)
        if integers is None or integers.shape != parameter.shape:
            raise ModelError(f"{where}: {name} is missing, or of another shape than the model expects")
        if scales is None and integers.dtype.kind == "f":
            continue
        shape = (len(integers), 1) if name.endswith("table") else (1, integers.shape[1])
        is_whole = scales is not None and scales.shape == shape and integers.dtype == np.int8
        if not is_whole or scales.dtype.kind != "f" or not (np.isfinite(scales) & (scales >= 0)).all():
            raise ModelError(f"{where}: {name} has no scales that fit its integers: copy the whole model again")
        scales = scales.astype(dtype)
        with np.errstate(over="ignore"):  # what is not finite is told with its name
            found[name] = Int8Matrix.stored(integers, scales) if int8 else integers * scales
    if odd := next(
        (name for name in arrays if name.endswith(_SCALES) and name.removesuffix(_SCALES) not in found), None
    ):
        raise ModelError(f"{where}: {odd} has scales and no integers: copy the whole model again")
    return found


def described_model(directory: Path) -> tuple[Model, dict[str, np.ndarray]]:
    """Make the model of a directory, without values, and map those.  Raises as `load_model`, which looks at them."""
    config = read_json(directory / CONFIG_FILE)
    version = model_format(config, directory)
    is_older = version in older.FORMATS
    if config.get("kind") not in list(_KINDS):  # a list: JSON may hold what cannot be hashed
        raise ModelError(f"{directory / CONFIG_FILE} describes a model of kind {config.get('kind')!r}, unknown here")
    model_class, config_class = _KINDS[config["kind"]]
    settings = config.get("model")
    if is_older and isinstance(settings, dict):
        settings = older.renamed_settings(settings)
    model_config = _config_from(config_class, settings, directory / CONFIG_FILE)
    arrays = read_arrays(directory / WEIGHTS_FILE, stored=_STORED_IN_INT8 if version == INT8_VERSION else _STORED)
    if is_older:
        arrays = {older.parameter_name(name): array for name, array in arrays.items()}
    if is_larger(model_config, len(arrays), sum(array.size for array in arrays.values())):
        raise ModelError(f"{directory / CONFIG_FILE} describes a larger model than {WEIGHTS_FILE} beside it holds")
    return model_class(model_config), arrays


def model_format(config: dict[str, Any], directory: Path) -> int:
    """Return the format that a config.json names.  Raises ModelError where it is not read here."""
    found = config.get("format")
    if type(found) is int and found in (*older.FORMATS, FORMAT_VERSION, INT8_VERSION):
        return found
    told = f"format {found!r}" if "format" in config else "no format"
    elsewhere = "" if "format" in config else ", and toolkit import reads models from elsewhere"
    versions = f"{older.FORMATS[0]} to {INT8_VERSION}"
    raise ModelError(f"{directory / CONFIG_FILE} has {told}: this version reads formats {versions}{elsewhere}")


def new_model(config: Seq2SeqConfig | GPTConfig) -> Model:
    """A model of these settings, without values."""
    return next(model for model, settings in _KINDS.values() if type(config) is settings)(config)


def is_larger(config: Seq2SeqConfig | GPTConfig, arrays: int, size: int) -> bool:
    """True for a config that asks for more than `arrays` arrays of `size` numbers in all, or for one above those.

    A damaged digit must not ask for more memory than there is.
    """
    numbers = {name: value for name, value in dataclasses.asdict(config).items() if isinstance(value, int)}
    layers = sum(value for name, value in numbers.items() if name.endswith("layers"))
    return layers > arrays or max(value for name, value in numbers.items() if name not in _NO_SIZES) > size


def read_metrics(directory: Path) -> dict[str, Any]:
    """Read the scores of a model and the command that trained it; empty where nothing was recorded."""
    path = directory / METRICS_FILE
    return read_json(path) if path.exists() else {}


def read_origin(directory: Path) -> dict[str, Any]:
    """Read what a model passes on to those that begin as it: its class elsewhere, how its authors decode, languages."""
    return {name: value for name, value in read_metrics(directory).items() if name in _PASSED_ON}


def save_metrics(directory: Path, metrics: dict[str, Any]) -> None:
    """Record what a model scored."""
    write_json(directory / METRICS_FILE, metrics)


def read_json(
    path: Path,
    whole: str = "model",
    schema: Schema = OBJECT,
    most: int = SETTINGS_BYTES,
    endless: bool = False,
) -> Any:
    """The JSON in a file of at most so many bytes, an object where the schema does not say otherwise.

    endless: as in `parse_json`.

    Raises ModelError where the file is missing, without which there is no `whole`, or holds something else.
    """
    try:
        return check(parse_json(read_bytes(path, most), endless), schema)
    except FileNotFoundError:
        what = "is not a directory" if not path.parent.is_dir() else f"has no {path.name}"
        raise ModelError(f"{path.parent} is not a {whole}: it {what}") from None
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror}") from None
    except UnfitError as error:
        raise ModelError(f"{path} is damaged: {error}") from None


def write_json(path: Path, value: dict[str, Any]) -> None:
    """Write a JSON object in UTF-8; in names of files that are not, each wrong byte as an escape of JSON."""
    with atomic_writer(path) as file:
        file.write((json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "backslashreplace"))


def _config_from(config_class: type, values: Any, where: Path) -> Any:
    schema = Record({field.name: LIKE[type(field.default)] for field in dataclasses.fields(config_class)})
    try:
        return config_class(**check({"model": values}, Record({"model": schema}))["model"])
    except (ConfigError, UnfitError) as error:
        raise ModelError(f"{where} is damaged or from another version: {error}") from None


def read_arrays(path: Path, whole: str = "model", stored: Collection[str] = _STORED) -> dict[str, np.ndarray]:
    """The arrays of a safetensors file of ours, mapped: they cannot be written to.

    Raises ModelError where it is missing, damaged, or of other types than are written here; see `read_json`.
    """
    with reading(path, f"{path.parent} is not a {whole}: it has no {path.name}", whole):
        tensors = read_tensors(path)
        if odd := next((name for name, tensor in tensors.items() if tensor.dtype not in stored), None):
            ours = " and ".join(stored)
            raise ModelError(
                f"{path}: {odd} is stored as {tensors[odd].dtype}, and here this toolkit writes {ours}: "
                "convert it, or toolkit import the model that it comes from"
            )
        return {name: tensor.read("I8" in stored) for name, tensor in tensors.items()}
