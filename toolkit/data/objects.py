"""Objects with named fields, one after the other: JSON lines, a JSON list, a Parquet file."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from toolkit.data.hub import batches_of, load_file
from toolkit.data.json_tables import json_fault, json_list
from toolkit.data.lines import chunks_of, lines_of, opened
from toolkit.data.messages import json_kind
from toolkit.data.sources import refuse_pipe
from toolkit.data.table import LONGEST_TEXT
from toolkit.data.tables import table_suffix
from toolkit.errors import DataError
from toolkit.untrusted import UnfitError, parse_json

_SUFFIXES = (".jsonl", ".ndjson", ".json", ".parquet")
_TOGETHER = 100  # rows of a Parquet file


class Item(NamedTuple):
    """An object, and where it stands: "my.jsonl, line 3". A field that is null is left out."""

    fields: dict[str, Any]
    place: str


def read_objects(path: Path) -> Iterator[Item]:
    """The objects in JSON lines or a JSON list (.jsonl, .ndjson, .json, also with .gz after it), or in a .parquet.

    Read from the disk as they are asked for; a JSON list is read as a whole. A byte order mark and CR LF do no harm.

    Raises DataError, naming the file and where it applies the line, if the file is of another kind, missing, a pipe,
    damaged, empty or not UTF-8, for a line that is empty or not JSON, and for what is no object; each when it is
    reached.
    """
    suffix = table_suffix(path)
    if suffix not in _SUFFIXES:
        raise DataError(f"{path} is no file of JSON or Parquet: give one that ends in {', '.join(_SUFFIXES)}")
    refuse_pipe(path)
    with opened(path, path.suffix.lower() == ".gz") as file:
        if suffix == ".parquet":
            yield from _parquet_rows(path)
            return
        is_list = next(chunks_of(file, path)).lstrip().startswith(b"[")
        file.seek(0)
        rows, number = json_list(file, path) if is_list else _json_lines(file, path), 0
        for number, row in enumerate(rows, 1):
            place = f"{path}, {'row' if is_list else 'line'} {number}"
            if not isinstance(row, dict):
                raise DataError(f"{place} is {json_kind(row)}, not a JSON object: write one for each conversation")
            yield _item(row, place)
        if not number:
            raise DataError(f"{path} holds an empty list: it needs at least one object")


def _item(fields: dict[str, Any], place: str) -> Item:
    return Item({name: value for name, value in fields.items() if value is not None}, place)


def _parquet_rows(path: Path) -> Iterator[Item]:
    number = 0
    for batch in batches_of(load_file("parquet", path, batch_size=_TOGETHER), str(path), _TOGETHER):
        for values in zip(*batch.values(), strict=True):
            number += 1
            yield _item(dict(zip(batch, values, strict=True)), f"{path}, row {number}")
    if not number:
        raise DataError(f"{path} has no rows: it needs at least one")


def _json_lines(file: BinaryIO, path: Path) -> Iterator[Any]:
    for number, line in enumerate(lines_of(file, path, LONGEST_TEXT), 1):
        try:
            yield parse_json(line)
        except UnfitError as error:
            problem = f"is not JSON ({json_fault(error)})" if line.strip() else "is empty"
            raise DataError(f"{path}, line {number} {problem}: write one object a line") from error
