"""Objects with named fields: the rows of JSON lines, a JSON list, a Parquet file, or of what `datasets` loads."""

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from toolkit.data.hub import parquet_batches
from toolkit.data.lines import LONGEST_TEXT, chunks_of, decoded, lines_of, opened, refuse_pipe
from toolkit.errors import DataError
from toolkit.untrusted import UnfitError, parse_json

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")

_OBJECT_SUFFIXES = TABLE_SUFFIXES[2:]
_COMPRESSED = ".gz"  # after any of them but the last
_TOGETHER = 100  # rows of a Parquet file


class Item(NamedTuple):
    """An object, and where it stands: "my.jsonl, line 3"."""

    fields: dict[str, Any]
    place: str


def table_suffix(path: Path) -> str | None:
    """Find the suffix that says how a table is written, ".gz" after it left out; None for another file."""
    name = path.name.lower()
    if name.endswith(_COMPRESSED) and not name.endswith(f".parquet{_COMPRESSED}"):
        name = name.removesuffix(_COMPRESSED)
    return next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)


def unpacked(path: Path) -> AbstractContextManager[BinaryIO]:
    """Open a table, unpacked where its name ends in ".gz"; see `opened` for errors."""
    return opened(path, path.suffix.lower() == _COMPRESSED)


def read_objects(path: Path) -> Iterator[Item]:
    """Read the objects of JSON lines or a JSON list (.jsonl, .ndjson, .json, also with .gz after it), or of a .parquet.

    They are read from the disk as they are asked for; a JSON list is read as a whole. A byte order mark and CR LF do no
    harm. A field that is null is left out.

    Raises DataError, naming the file and where it applies the line, if the file is of another kind, missing, a pipe,
    damaged, empty or not UTF-8, for a line that is empty or not JSON, and for what is no object; each when it is
    reached.
    """
    suffix, item = table_suffix(path), None
    if suffix not in _OBJECT_SUFFIXES:
        raise DataError(f"{path} is no file of JSON or Parquet: give one that ends in {', '.join(_OBJECT_SUFFIXES)}")
    refuse_pipe(path)
    columnar = suffix == ".parquet"
    for item in _parquet_objects(path) if columnar else json_objects(path, LONGEST_TEXT, "conversation"):
        yield Item({name: value for name, value in item.fields.items() if value is not None}, item.place)
    if item is None:
        needs = (
            "has no rows: it needs at least one" if columnar else "holds an empty list: it needs at least one object"
        )
        raise DataError(f"{path} {needs}")


def json_objects(path: Path, longest: int, what: str) -> Iterator[Item]:
    """Read the objects of JSON lines, each of at most `longest` characters, or of a JSON list.

    Raises DataError as `read_objects` does; what: the thing that each object is, for sentences.
    """
    is_list = is_json_list(path)
    with unpacked(path) as file:
        rows, unit = (_json_list(file, path), "row") if is_list else (_json_lines(file, path, longest), "line")
        for number, row in enumerate(rows, 1):
            place = f"{path}, {unit} {number}"
            if not isinstance(row, dict):
                raise DataError(f"{place} is {json_kind(row)}, not a JSON object: write one for each {what}")
            yield Item(row, place)


def is_json_list(path: Path) -> bool:
    """Find out whether a file of JSON holds a list, and not a value a line."""
    with unpacked(path) as file:
        return next(chunks_of(file, path)).lstrip().startswith(b"[")


def _json_lines(file: BinaryIO, path: Path, longest: int) -> Iterator[Any]:
    for number, line in enumerate(lines_of(file, path, longest), 1):
        try:
            yield parse_json(line)
        except UnfitError as error:
            if "\r" in line:
                raise DataError(f"{path}, line {number} has a CR in the middle: end lines with LF or CR LF") from error
            problem = f"is not JSON ({_json_fault(error)})" if line.strip() else "is empty"
            raise DataError(f"{path}, line {number} {problem}: write one object a line") from error


def _json_list(file: BinaryIO, path: Path) -> Iterator[Any]:
    try:
        yield from parse_json(decoded(b"".join(chunks_of(file, path)), path))
    except UnfitError as error:
        if isinstance(error.__cause__, json.JSONDecodeError):
            place, what = f"{path}, line {error.__cause__.lineno}", "correct it"
        else:
            place, what = path, "write a list of objects"
        raise DataError(f"{place} is not JSON ({_json_fault(error)}): {what}") from error


def _json_fault(error: UnfitError) -> str:
    """Say what is wrong with a text that is not the JSON that is read here."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        return f"column {cause.colno}: {cause.msg.removesuffix(' starting at').lower()}"
    return str(error).removeprefix("it is ")


def json_kind(value: Any) -> str:
    """Name the kind of a JSON value, for a sentence."""
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    kinds = {dict: "an object", list: "a list", str: "text", int: "a number", float: "a number"}
    return kinds[type(value)]


def _parquet_objects(path: Path) -> Iterator[Item]:
    number = 0
    for batch in parquet_batches(path, _TOGETHER):
        for values in zip(*batch.values(), strict=True):
            number += 1
            yield Item(dict(zip(batch, values, strict=True)), f"{path}, row {number}")
