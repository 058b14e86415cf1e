"""Pairs in the columns of a table: TSV, CSV, JSON lines and Parquet files, and datasets in the Hub's layout.

`datasets` parses; what it would let pass or could only name vaguely is checked before, in one pass over the file.
"""

import csv
import functools
import gzip
import json
import operator
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Literal, NamedTuple

from toolkit.data.hub import batches_of, load_file, load_split
from toolkit.data.readers import LONGEST_LINE, chunks_of, decoded, lines_of, opened
from toolkit.errors import ConfigError, DataError

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
_COMPRESSED = ".gz"  # after any of them but the last

_PARQUET = b"PAR1"

# JSON can spell half of a character, which no text in UTF-8 has.
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")

_ROWS_AT_A_TIME = 1000  # in columns, which is five times faster than row by row

Columns = tuple[str, str]
Keys = tuple[str, ...]  # a column, or a column and a field in it


class Table(NamedTuple):
    """What a check found out about a table: how its rows are read, and where in a row and in the file the texts are."""

    load: Callable[[], Any]  # -> datasets.IterableDataset
    name: str
    columns: Columns
    keys: tuple[Keys, Keys]
    unit: Literal["row", "line"] = "row"  # "line" where every row is one line of a file
    first: int = 1  # the number of the first row

    def place(self, number: int) -> str:
        return f"{self.name}, {self.unit} {number}"


def table_suffix(path: Path) -> str | None:
    """The suffix that says how a table is written, ".gz" after it left out; None for another file."""
    name = path.name.lower()
    if name.endswith(_COMPRESSED) and not name.endswith(f".parquet{_COMPRESSED}"):
        name = name.removesuffix(_COMPRESSED)
    return next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)


def open_table(path: Path, columns: Columns) -> Table:
    """Check a file with one of the TABLE_SUFFIXES, ".gz" after it or not, and find its columns (source, target).

    TSV is taken as it stands, without quoting; CSV as RFC 4180 has it, so that a text may contain commas and line
    feeds. Both begin with a line of column names, or with the first pair if the columns are given as numbers, from 1.
    JSON holds an object a line, or one list of objects, which is read as a whole. In JSON and Parquet the columns may
    also be fields of a column named "translation".

    Raises DataError, naming the file and where it applies the line, for what `iter_lines` refuses, for a line that
    is not what the format asks for, for a column that is missing or twice there, and in JSON for a value that is no
    text; ConfigError for columns that exclude each other.
    """
    suffix = table_suffix(path)
    if suffix == ".parquet":
        with opened(path) as file:
            _check_parquet(file, path)
            return _loaded(
                functools.partial(load_file, "parquet", path, batch_size=_ROWS_AT_A_TIME), str(path), columns
            )
    with opened(path, gzip.open if path.suffix.lower() == _COMPRESSED else open) as file:
        if suffix == ".tsv":
            return _check_tsv(file, path, columns)
        if suffix == ".csv":
            return _check_csv(file, path, columns)
        return _check_json(file, path, columns)


def open_dataset(name: str, config: str, split: str, columns: Columns) -> Table:
    """Find a split of a dataset and its columns: a directory in the layout of the Hugging Face Hub, or a name there.

    Raises DataError if there is no such dataset, configuration, split or column, or if the Hub does not answer.
    """
    return _loaded(functools.partial(load_split, name, config, split), name, columns)


def table_rows(table: Table) -> Iterator[tuple[str, str, int]]:
    """Every row as (source, target, number), streamed; texts in Unicode normal form C, numbers as `place` takes them.

    Raises DataError, naming the row or its line, for a value that is no text or longer than LONGEST_LINE characters,
    and for what `datasets` cannot read.
    """
    number = table.first
    for batch in batches_of(table.load(), table.name, _ROWS_AT_A_TIME):
        for values in zip(*(_values(batch, keys) for keys in table.keys), strict=True):
            for value, column in zip(values, table.columns, strict=True):
                if fault := _fault(value):
                    raise DataError(f"{table.place(number)}: {column} {fault}")
            # A CR that ends a line belongs to its end; TSV is parsed without taking it off.
            source, target = (unicodedata.normalize("NFC", value.removesuffix("\r")) for value in values)
            yield source, target, number
            number += 1


def _check_parquet(file: BinaryIO, path: Path) -> None:
    """The format has its name at either end: a file that was cut off is told from one that is damaged within."""
    first, length = file.read(len(_PARQUET)), file.seek(0, os.SEEK_END)
    file.seek(max(0, length - len(_PARQUET)))
    if length < 2 * len(_PARQUET) or first != _PARQUET or file.read() != _PARQUET:
        raise DataError(f"{path} is cut off, or is not a Parquet file: copy it again, or write it anew")


def _check_tsv(file: BinaryIO, path: Path, columns: Columns) -> Table:
    number, header = 0, []
    for number, line in enumerate(_without_nul(lines_of(file, path), path), start=1):
        if number == 1:
            header = line.split("\t")
        elif line.count("\t") + 1 != len(header):
            raise _uneven(path, number, line.count("\t") + 1 if line else 0, len(header))
    # With LF alone as the end of a line, a CR inside a text stays there, as in a text file.
    options = {"sep": "\t", "quoting": csv.QUOTE_NONE, "lineterminator": "\n"}
    return _separated(path, columns, header, number, number, options)


def _check_csv(file: BinaryIO, path: Path, columns: Columns) -> Table:
    reader = csv.reader(_without_nul(lines_of(file, path), path), strict=True)
    records, begin, header = 0, 1, []
    try:
        for records, fields in enumerate(reader, start=1):
            if records == 1:
                header = fields
            elif len(fields) != len(header):
                raise _uneven(path, begin, len(fields), len(header))
            begin = reader.line_num + 1
    except csv.Error as error:
        raise DataError(
            f"{path}, line {begin} begins a row that is not CSV ({error}): "
            "write a quotation mark inside quoted text twice"
        ) from error
    return _separated(path, columns, header, records, reader.line_num, {"sep": ","})


def _separated(
    path: Path, columns: Columns, header: list[str], records: int, lines: int, options: dict[str, Any]
) -> Table:
    """A TSV or CSV table. `header`: the fields of its first record; `lines` of the file hold its `records`."""
    header = [name.strip() for name in header]
    numbered = [re.fullmatch("[0-9]{1,9}", column) is not None for column in columns]
    if any(numbered) and not all(numbered):
        raise ConfigError(f"columns {_listed(columns)}: give both columns by name or both by number")
    if numbered[0]:
        if not all(1 <= int(column) <= len(header) for column in columns):
            raise DataError(f"{path} has {_count(len(header), 'column')}: there are no columns {' and '.join(columns)}")
        indices = [int(column) - 1 for column in columns]
    else:
        indices = [_index(header, column, path) for column in columns]
        if records == 1:
            raise DataError(f"{path} has column names and nothing below them: it needs at least one pair")
    names = [str(index) for index in range(len(header))]
    options |= {"header": None if numbered[0] else 0, "names": names, "encoding": "utf-8-sig"}
    # A text is what stands there: "NA" is not a missing value, and "007" is not seven.
    options |= {"na_filter": False, "keep_default_na": False, "skip_blank_lines": False}

    def load() -> Any:
        import datasets

        features = datasets.Features({name: datasets.Value("string") for name in names})
        return load_file("csv", path, features=features, **options)

    source, target = ((names[index],) for index in indices)
    if lines > records:  # texts with line feeds: only rows can be counted
        return Table(load, str(path), columns, (source, target))
    return Table(load, str(path), columns, (source, target), "line", 1 if numbered[0] else 2)


def _check_json(file: BinaryIO, path: Path, columns: Columns) -> Table:
    is_list = next(chunks_of(file, path)).startswith(b"[")
    file.seek(0)
    keys = None
    for number, row in enumerate(_json_list(file, path) if is_list else _json_lines(file, path), start=1):
        place = f"{path}, {'row' if is_list else 'line'} {number}"
        if not isinstance(row, dict):
            raise DataError(f"{place} is not a JSON object: write one object with both texts for each pair")
        keys = keys or _find(row, columns, str(path))
        for column, where in zip(columns, keys, strict=True):
            value = _value(row, where, place)
            if fault := _fault(value):
                raise DataError(f"{place}: {column} {fault}")
            if _HALF_CHARACTER.search(value):
                raise DataError(f"{place}: {column} has half of a surrogate pair: correct it, or delete the row")
    if keys is None:
        raise DataError(f"{path} holds an empty list: it needs at least one pair")
    if is_list:
        return Table(functools.partial(load_file, "json", path), str(path), columns, keys)

    def load() -> Any:
        # Read as text: the reader for JSON takes the type of a column from the first megabytes and refuses any other
        # below, in columns that nobody asked for too, and it makes times of texts that look like times.
        lines = load_file("text", path, encoding="utf-8-sig", chunksize=1 << 20)
        return lines.map(functools.partial(_texts_of_lines, keys=keys), batched=True, remove_columns=["text"])

    return Table(load, str(path), columns, (("source",), ("target",)), "line")


def _json_lines(file: BinaryIO, path: Path) -> Iterator[Any]:
    for number, line in enumerate(lines_of(file, path), start=1):
        if "\r" in line:  # where `datasets` would begin a new line
            raise DataError(f"{path}, line {number} has a CR in the middle: end lines with LF or CR LF")
        try:
            yield json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = f"is not a JSON object ({_json_fault(error)})" if line.strip() else "is empty"
            raise DataError(f"{path}, line {number} {problem}: write one object a line") from error


def _texts_of_lines(batch: Mapping[str, list[str]], keys: tuple[Keys, Keys]) -> dict[str, list[str]]:
    rows = [json.loads(line) for line in batch["text"]]
    return {
        side: [functools.reduce(operator.getitem, where, row) for row in rows]
        for side, where in zip(("source", "target"), keys, strict=True)
    }


def _json_list(file: BinaryIO, path: Path) -> Iterator[Any]:
    try:
        yield from json.loads(decoded(b"".join(chunks_of(file, path)), path))
    except json.JSONDecodeError as error:
        raise DataError(f"{path}, line {error.lineno} is not JSON ({_json_fault(error)}): correct it") from error
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON ({_json_fault(error)}): write a list of objects") from error


def _json_fault(error: Exception) -> str:
    if isinstance(error, json.JSONDecodeError):
        return f"column {error.colno}: {error.msg.removesuffix(' starting at').lower()}"
    return "nested too deeply" if isinstance(error, RecursionError) else "a number is too long"


def _loaded(load: Callable[[], Any], name: str, columns: Columns) -> Table:
    """A table that `datasets` alone can look into."""
    batch = next(batches_of(load(), name, 1), None)
    if batch is None:
        raise DataError(f"{name} has no rows: it needs at least one pair")
    return Table(load, name, columns, _find({key: values[0] for key, values in batch.items()}, columns, name))


def _find(row: Mapping[str, Any], columns: Columns, name: str) -> tuple[Keys, Keys]:
    """Where in a row the two columns are: at the top, or in "translation"."""
    inner = row.get("translation")
    inner = inner if isinstance(inner, Mapping) else {}
    found = []
    for column in columns:
        if column not in row and column not in inner:
            raise _missing(name, column, [key for key in row if key != "translation" or not inner] + list(inner))
        found.append((column,) if column in row else ("translation", column))
    return found[0], found[1]


def _index(header: list[str], column: str, path: Path) -> int:
    if column not in header:
        raise _missing(str(path), column, header)
    if header.count(column) > 1:
        raise DataError(f"{path} has {header.count(column)} columns named {column}: give each its own name")
    return header.index(column)


def _missing(name: str, column: str, there: Iterable[str]) -> DataError:
    return DataError(
        f"{name} has no column {_listed([column])}, only {_listed(there)}: "
        "name the columns with --source-column and --target-column"
    )


def _value(row: Mapping[str, Any], keys: Keys, place: str) -> Any:
    value: Any = row
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise DataError(f"{place} has no {'.'.join(keys)}: give every row both texts, or delete it")
        value = value[key]
    return value


def _values(batch: Mapping[str, list[Any]], keys: Keys) -> list[Any]:
    """One column of a batch. A null where a struct should be has null fields."""
    values = batch[keys[0]]
    return values if len(keys) == 1 else [value.get(keys[1]) if value else None for value in values]


def _fault(value: Any) -> str | None:
    """What keeps a value from being the text of a sentence."""
    if not isinstance(value, str):
        kind = "null" if value is None else f"of type {type(value).__name__}"
        return f"is {kind}, not a text: correct it, or delete the row"
    if len(value) > LONGEST_LINE:
        return f"has more than {LONGEST_LINE:,} characters: is it one sentence?"
    return None


def _without_nul(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise DataError(f"{path}, line {number} has a NUL character, which no text has: is the file damaged?")
        yield line


def _uneven(path: Path, line: int, fields: int, columns: int) -> DataError:
    if not fields:
        return DataError(f"{path}, line {line} is empty: delete it")
    return DataError(f"{path}, line {line} has {_count(fields, 'column')}, the first line has {columns}: correct it")


def _listed(names: Iterable[str]) -> str:
    """Names for a sentence: some of many, the beginning of long ones."""
    names = [name if 0 < len(name) <= 40 else f"{name[:40]}…" if name else "(no name)" for name in names] or ["(none)"]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "…"])


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
