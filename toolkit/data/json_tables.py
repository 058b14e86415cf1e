"""JSON: an object a line, or one list of objects, checked before `datasets` reads it."""

import functools
import json
import operator
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from toolkit.data.hub import load_file
from toolkit.data.lines import chunks_of, decoded, lines_of
from toolkit.data.table import Columns, Keys, Table, find_columns, longest, rows_at_a_time, text_fault, unit
from toolkit.errors import DataError
from toolkit.untrusted import UnfitError, parse_json

# JSON can spell half of a character, which no text in UTF-8 has.
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")


def check_json(file: BinaryIO, path: Path, columns: Columns) -> Table:
    """Lines of JSON or a list, with all columns in every object. Raises as `open_table` says."""
    is_list = next(chunks_of(file, path)).startswith(b"[")
    file.seek(0)
    keys = None
    rows = json_list(file, path) if is_list else _json_lines(file, path, longest(columns))
    for number, row in enumerate(rows, start=1):
        place = f"{path}, {'row' if is_list else 'line'} {number}"
        if not isinstance(row, dict):
            raise DataError(f"{place} is not a JSON object: write one object for each {unit(columns)}")
        keys = keys or find_columns(row, columns, str(path))
        for column, where in zip(columns, keys, strict=True):
            value = _value(row, where, place)
            if fault := text_fault(value, columns):
                raise DataError(f"{place}: {column} {fault}")
            if _HALF_CHARACTER.search(value):
                raise DataError(f"{place}: {column} has half of a surrogate pair: correct it, or delete the row")
    if keys is None:
        raise DataError(f"{path} holds an empty list: it needs at least one {unit(columns)}")
    if is_list:
        return Table(functools.partial(load_file, "json", path), str(path), columns, keys)

    def load() -> Any:
        # Read as text: the reader for JSON takes the type of a column from the first megabytes and refuses any other
        # below, in columns that nobody asked for too, and it makes times of texts that look like times.
        lines = load_file("text", path, encoding="utf-8-sig", chunksize=1 << 20)
        texts = functools.partial(_texts_of_lines, keys=keys)
        return lines.map(texts, batched=True, batch_size=rows_at_a_time(columns), remove_columns=["text"])

    return Table(load, str(path), columns, tuple((str(number),) for number in range(len(columns))), "line")


def _json_lines(file: BinaryIO, path: Path, most: int) -> Iterator[Any]:
    for number, line in enumerate(lines_of(file, path, most), start=1):
        if "\r" in line:  # where `datasets` would begin a new line
            raise DataError(f"{path}, line {number} has a CR in the middle: end lines with LF or CR LF")
        try:
            yield parse_json(line)
        except UnfitError as error:
            problem = f"is not a JSON object ({json_fault(error)})" if line.strip() else "is empty"
            raise DataError(f"{path}, line {number} {problem}: write one object a line") from error


def _texts_of_lines(batch: Mapping[str, list[str]], keys: tuple[Keys, ...]) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in batch["text"]]
    return {
        str(number): [functools.reduce(operator.getitem, where, row) for row in rows]
        for number, where in enumerate(keys)
    }


def json_list(file: BinaryIO, path: Path) -> Iterator[Any]:
    """The elements of a list in JSON. Raises DataError, naming the file and where it applies the line."""
    try:
        yield from parse_json(decoded(b"".join(chunks_of(file, path)), path))
    except UnfitError as error:
        if isinstance(error.__cause__, json.JSONDecodeError):
            place, what = f"{path}, line {error.__cause__.lineno}", "correct it"
        else:
            place, what = path, "write a list of objects"
        raise DataError(f"{place} is not JSON ({json_fault(error)}): {what}") from error


def json_fault(error: UnfitError) -> str:
    """What is wrong with a text that is not the JSON that is read here, for a sentence."""
    cause = error.__cause__
    if isinstance(cause, json.JSONDecodeError):
        return f"column {cause.colno}: {cause.msg.removesuffix(' starting at').lower()}"
    return str(error).removeprefix("it is ")


def _value(row: Mapping[str, Any], keys: Keys, place: str) -> Any:
    value: Any = row
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise DataError(f"{place} has no {'.'.join(keys)}: write it, or delete the row")
        value = value[key]
    return value
