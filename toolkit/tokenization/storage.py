"""The file of a tokenizer in a model directory."""

import json
import os
from pathlib import Path
from typing import Any

from toolkit.errors import DataError, ModelError
from toolkit.files import atomic_writer
from toolkit.untrusted import ANYTHING, VOCABULARY_BYTES, Record, Text, UnfitError, check, parse_json, read_bytes

JSON_FILE = "tokenizer.json"  # of the tokenizers that are not SentencePiece's
JSON_VERSION = 1

_SETTINGS = Record({"kind": Text()}, needed=("kind",), others=ANYTHING)


def read_file(path: Path) -> bytes:
    """The content of a tokenizer's file. Raises ModelError if it is missing, unreadable or too large."""
    try:
        return read_bytes(path, VOCABULARY_BYTES)
    except FileNotFoundError as error:
        raise ModelError(f"{path} does not exist: a model directory holds its tokenizer there") from error
    except OSError as error:
        raise ModelError(f"{path} cannot be read: {error.strerror or error}") from error


def write_file(directory: str | os.PathLike[str], name: str, content: bytes) -> None:
    """Write a tokenizer's file into a directory, which is made if need be. Raises DataError if that fails."""
    directory = Path(directory)
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"{directory} cannot be made a directory: {error.strerror or error}") from error
    with atomic_writer(directory / name) as file:
        file.write(content)


def read_settings(directory: str | os.PathLike[str]) -> dict[str, Any]:
    """What `write_settings` has written, "kind" and all. Raises ModelError if it is missing, damaged or foreign."""
    path = Path(directory) / JSON_FILE
    try:
        settings = check(parse_json(read_file(path)), _SETTINGS)
    except UnfitError:
        raise damaged(path) from None
    version = settings.pop("version", None)
    if version != JSON_VERSION or isinstance(version, bool):
        found = "no format version" if version is None else f"format version {version!r:.60}"
        raise ModelError(
            f"{path} has {found}, and this toolkit reads version {JSON_VERSION}: use the toolkit that wrote it"
        )
    return settings


def write_settings(directory: str | os.PathLike[str], kind: str, **settings: Any) -> None:
    """Write `tokenizer.json` into a directory, which is made if need be. Raises DataError if that fails."""
    content = json.dumps({"version": JSON_VERSION, "kind": kind, **settings}, ensure_ascii=False, indent=2)
    write_file(directory, JSON_FILE, f"{content}\n".encode())


def damaged(path: str | Path) -> ModelError:
    """The error for a file that holds something else than a tokenizer of ours."""
    return ModelError(f"{path} is damaged or is not a tokenizer of this toolkit: copy the whole model directory again")
