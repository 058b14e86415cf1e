"""Pairs or texts in the columns of a table: TSV, CSV, JSON lines and Parquet files, and datasets in the Hub's layout.

`datasets` parses; what it would let pass or could only name vaguely is checked before, in one pass over the file.
"""

import functools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from toolkit.data.hub import batches_of, load_file, load_split
from toolkit.data.json_tables import check_json
from toolkit.data.lines import opened
from toolkit.data.separated import check_csv, check_tsv
from toolkit.data.table import Columns, Keys, Table, find_columns, rows_at_a_time, text_fault, unit
from toolkit.errors import DataError
from toolkit.tokenization.normal_form import normal_form

TABLE_SUFFIXES = (".tsv", ".csv", ".jsonl", ".ndjson", ".json", ".parquet")
_COMPRESSED = ".gz"  # after any of them but the last

_PARQUET = b"PAR1"


def table_suffix(path: Path) -> str | None:
    """The suffix that says how a table is written, ".gz" after it left out; None for another file."""
    name = path.name.lower()
    if name.endswith(_COMPRESSED) and not name.endswith(f".parquet{_COMPRESSED}"):
        name = name.removesuffix(_COMPRESSED)
    return next((suffix for suffix in TABLE_SUFFIXES if name.endswith(suffix)), None)


def open_table(path: Path, columns: Columns) -> Table:
    """Check a file with one of the TABLE_SUFFIXES, ".gz" after it or not, and find its columns, two or one.

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
                functools.partial(load_file, "parquet", path, batch_size=rows_at_a_time(columns)), str(path), columns
            )
    with opened(path, path.suffix.lower() == _COMPRESSED) as file:
        if suffix == ".tsv":
            return check_tsv(file, path, columns)
        if suffix == ".csv":
            return check_csv(file, path, columns)
        return check_json(file, path, columns)


def open_dataset(name: str, config: str, split: str, columns: Columns) -> Table:
    """Find a split of a dataset and its columns: a directory in the layout of the Hugging Face Hub, or a name there.

    Raises DataError if there is no such dataset, configuration, split or column, or if the Hub does not answer.
    """
    return _loaded(functools.partial(load_split, name, config, split), name, columns)


def table_rows(table: Table) -> Iterator[tuple[str | int, ...]]:
    """Every row as (source, target, number) or (text, number), streamed; numbers as `place` takes them.

    Texts are in Unicode normal form C. Raises DataError, naming the row or its line, for a value that is no text or too
    long (see `longest`), and for what `datasets` cannot read.
    """
    number = table.first
    for batch in batches_of(table.load(), table.name, rows_at_a_time(table.columns)):
        for values in zip(*(_values(batch, keys) for keys in table.keys), strict=True):
            for value, column in zip(values, table.columns, strict=True):
                if fault := text_fault(value, table.columns):
                    raise DataError(f"{table.place(number)}: {column} {fault}")
            # A CR that ends a line belongs to its end; TSV is parsed without taking it off.
            yield *(normal_form(value.removesuffix("\r")) for value in values), number
            number += 1


def _check_parquet(file: BinaryIO, path: Path) -> None:
    """The format has its name at either end: a file that was cut off is told from one that is damaged within."""
    first, length = file.read(len(_PARQUET)), file.seek(0, os.SEEK_END)
    file.seek(max(0, length - len(_PARQUET)))
    if length < 2 * len(_PARQUET) or first != _PARQUET or file.read() != _PARQUET:
        raise DataError(f"{path} is cut off, or is not a Parquet file: copy it again, or write it anew")


def _loaded(load: Callable[[], Any], name: str, columns: Columns) -> Table:
    """A table that `datasets` alone can look into."""
    batch = next(batches_of(load(), name, 1), None)
    if batch is None:
        raise DataError(f"{name} has no rows: it needs at least one {unit(columns)}")
    return Table(load, name, columns, find_columns({key: values[0] for key, values in batch.items()}, columns, name))


def _values(batch: Mapping[str, list[Any]], keys: Keys) -> list[Any]:
    """One column of a batch. A null where a struct should be has null fields."""
    values = batch[keys[0]]
    return values if len(keys) == 1 else [value.get(keys[1]) if value else None for value in values]
