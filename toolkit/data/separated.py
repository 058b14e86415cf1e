"""TSV and CSV: checked line by line before `datasets` parses them."""

import csv
import re
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from toolkit.data.hub import load_file
from toolkit.data.lines import lines_of
from toolkit.data.table import Columns, Table, listed, longest, missing_column, unit
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError

# What columns are called, and no sentence says: a file that begins so has a header.
_NAME = re.compile(
    "source|src|target|tgt|trg|text|sentence|translation|input|output|prompt|completion|english|nepali|en|ne",
    re.IGNORECASE,
)


def check_tsv(file: BinaryIO, path: Path, columns: Columns) -> Table:
    """TSV is taken as it stands, without quoting. Raises as `open_table` says."""
    number, header = 0, []
    for number, line in enumerate(_without_nul(lines_of(file, path, longest(columns)), path), start=1):
        if number == 1:
            header = line.split("\t")
        elif line.count("\t") + 1 != len(header):
            raise _uneven(path, number, line.count("\t") + 1 if line else 0, len(header))
    # With LF alone as the end of a line, a CR inside a text stays there, as in a text file.
    options = {"sep": "\t", "quoting": csv.QUOTE_NONE, "lineterminator": "\n"}
    return _separated(path, columns, header, number, number, options)


def check_csv(file: BinaryIO, path: Path, columns: Columns) -> Table:
    """CSV is taken as RFC 4180 has it. Raises as `open_table` says."""
    lines = _without_nul(lines_of(file, path, longest(columns)), path)
    first = next(lines)
    # Where numbers have a decimal comma, spreadsheets write other signs between the columns.
    sign = next((sign for sign in ",;\t" if sign in first), ",")
    reader = csv.reader(chain([first], lines), strict=True, delimiter=sign)
    records, begin, header = 0, 1, []
    others_limit = csv.field_size_limit(longest(columns))  # the whole process has one
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
    finally:
        csv.field_size_limit(others_limit)
    return _separated(path, columns, header, records, reader.line_num, {"sep": sign})


def _separated(
    path: Path, columns: Columns, header: list[str], records: int, lines: int, options: dict[str, Any]
) -> Table:
    """A TSV or CSV table. `header`: the fields of its first record; `lines` of the file hold its `records`."""
    header = [name.strip() for name in header]
    numbered = [re.fullmatch("[0-9]{1,9}", column) is not None for column in columns]
    if any(numbered) and not all(numbered):
        raise ConfigError(f"columns {listed(columns)}: give both columns by name or both by number")
    if numbered[0]:
        if not all(1 <= int(column) <= len(header) for column in columns):
            none = f"are no columns {' and '.join(columns)}" if len(columns) > 1 else f"is no column {columns[0]}"
            raise DataError(f"{path} has {counted(len(header), 'column')}: there {none}")
        indices = [int(column) - 1 for column in columns]
        if all(_NAME.fullmatch(header[index]) for index in indices):
            raise DataError(
                f"{path}, line 1 has names of columns, {listed(header[index] for index in indices)}, where a numbered "
                f"column begins with a {unit(columns)}: give the columns by name, or delete the line"
            )
    else:
        indices = [_index(header, column, path, columns) for column in columns]
        if records == 1:
            raise DataError(f"{path} has column names and nothing below them: it needs at least one {unit(columns)}")
    names = [str(index) for index in range(len(header))]
    options |= {"header": None if numbered[0] else 0, "names": names, "encoding": "utf-8-sig"}
    # A text is what stands there: "NA" is not a missing value, and "007" is not seven.
    options |= {"na_filter": False, "keep_default_na": False, "skip_blank_lines": False}

    def load() -> Any:
        import datasets

        features = datasets.Features({name: datasets.Value("string") for name in names})
        return load_file("csv", path, features=features, **options)

    keys = tuple((names[index],) for index in indices)
    if lines > records:  # texts with line feeds: only rows can be counted
        return Table(load, str(path), columns, keys)
    return Table(load, str(path), columns, keys, "line", 1 if numbered[0] else 2)


def _index(header: list[str], column: str, path: Path, columns: Columns) -> int:
    if column not in header:
        raise missing_column(str(path), column, header, columns)
    if header.count(column) > 1:
        raise DataError(f"{path} has {header.count(column)} columns named {column}: give each its own name")
    return header.index(column)


def _without_nul(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise DataError(f"{path}, line {number} has a NUL character, which no text has: is the file damaged?")
        yield line


def _uneven(path: Path, line: int, fields: int, columns: int) -> DataError:
    if not fields:
        return DataError(f"{path}, line {line} is empty: delete it")
    return DataError(f"{path}, line {line} has {counted(fields, 'column')}, the first line has {columns}: correct it")
