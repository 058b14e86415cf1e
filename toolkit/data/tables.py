"""Tables with pairs in two of their columns, or texts in one: TSV, CSV, JSON, Parquet, datasets in the Hub's layout.

Each format is parsed once, by one reader; those of objects with named fields are in `objects`. What is wrong is said
with the file and the line, when it is reached.
"""

import csv
import functools
import hashlib
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, Literal, NamedTuple

from toolkit.data.hub import Batch, batches_of, load_split, parquet_batches
from toolkit.data.lines import LONGEST_LINE, LONGEST_TEXT, digest_of_files, lines_of, path_mode, refuse_pipe
from toolkit.data.objects import TABLE_SUFFIXES, is_json_list, json_objects, table_suffix, unpacked
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.normal_form import normal_form

Columns = tuple[str, ...]  # (source, target) of pairs, or (text,) alone
Keys = tuple[str, ...]  # a column, or a column and a field in it

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*/[\w.-]+")
_HALF_CHARACTER = re.compile("[\\ud800-\\udfff]")  # which JSON can spell, and no text in UTF-8 has
# What columns are called, and no sentence says: a file that begins so has a header.
_NAME = re.compile(
    "source|src|target|tgt|trg|text|sentence|translation|input|output|prompt|completion|english|nepali|en|ne",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Table:
    """Columns of a table, whose rows are read from the disk, or from the Hub, whenever they are iterated over.

    Iterating gives (source, target, number) or (text, number): texts in Unicode normal form C, and what `place` takes.

    name: for sentences. read: gives the values of every row, and its number. unit: what the numbers count. path: of the
    file, if the table is a single one.
    """

    name: str
    columns: Columns
    read: Callable[[], Iterator[tuple[Sequence[Any], int]]]
    unit: Literal["row", "line"] = "row"
    path: Path | None = None

    def place(self, number: int, _side: str = "") -> str:
        """Say where a row stands, with all its values: "my.tsv, line 7"."""
        return f"{self.name}, {self.unit} {number}"

    def fingerprint(self) -> str:
        """Digest the contents (hexadecimal): of a file its bytes, otherwise all texts."""
        if self.path:
            return digest_of_files([self.path])
        digest = hashlib.sha256()
        for *texts, _ in self:
            for data in map(str.encode, texts):
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()

    def __iter__(self) -> Iterator[tuple[str | int, ...]]:
        """Raise DataError, naming the row or its line, for a value that is no text or too long."""
        most = _kind(self.columns).longest
        for values, number in self.read():
            for value, column in zip(values, self.columns, strict=True):
                is_text = isinstance(value, str) and (value.isascii() or not _HALF_CHARACTER.search(value))
                if not is_text or len(value) > most:
                    raise DataError(f"{self.place(number)}: {column} {_text_fault(value, self.columns)}")
            # A CR that ends a line belongs to its end.
            yield *(normal_form(value.removesuffix("\r")) for value in values), number


class _Kind(NamedTuple):
    """The differences between tables of pairs and of texts."""

    row: str  # what one holds, for a sentence
    value: str
    longest: int  # characters of a value: sentences of pairs are short, other texts may be books
    together: int  # rows in memory: in columns, many are read five times faster than one by one


def _kind(columns: Columns) -> _Kind:
    pairs = len(columns) == 2
    return _Kind("pair", "sentence", LONGEST_LINE, 1000) if pairs else _Kind("text", "text", LONGEST_TEXT, 50)


def find_table(text: str, columns: Columns) -> Table:
    """Open the table that an argument names: a file, a directory in the layout of the Hugging Face Hub, a name there.

    After a directory and a name, "owner/name", ":CONFIG" or ":CONFIG:SPLIT" may follow, where CONFIG may be empty and
    SPLIT is "train" if it is not given. Raises DataError as `open_table` and `open_dataset` do.
    """
    name, _, rest = text.partition(":")
    if name and path_mode(Path(text)):  # a path may contain a colon
        name, rest = text, ""
    config, _, split = rest.partition(":")
    path, mode = Path(name), path_mode(Path(name)) if name else 0  # a path of no characters is the directory we are in
    is_table = table_suffix(path) is not None
    if stat.S_ISDIR(mode) or (not mode and not is_table and _HUB_NAME.fullmatch(name)):
        return open_dataset(name, config, split or "train", columns)
    if not mode:
        raise DataError(
            f"{text or 'the empty name'} does not exist: "
            f"give a table ({', '.join(TABLE_SUFFIXES)}), a directory, or owner/name on the Hub"
        )
    if rest:
        raise DataError(f"{name} is a file, which has no configurations and splits: leave out :{rest}")
    if not is_table:
        plain = "a file of plain text is given as --text"
        flags = "two line-aligned files are given as --source and --target" if len(columns) == 2 else plain
        raise DataError(f"{name} is not a table ({', '.join(TABLE_SUFFIXES)}): {flags}")
    refuse_pipe(path)
    return open_table(path, columns)


def open_table(path: Path, columns: Columns) -> Table:
    """Open a file with one of the TABLE_SUFFIXES, ".gz" after it or not, and find its columns, two or one.

    TSV is taken as it stands, without quoting; CSV as RFC 4180 has it, so that a text may contain commas and line
    feeds. Both begin with a line of column names, or with the first pair if the columns are given as numbers, from 1.
    JSON holds an object a line, or one list of objects, which is read as a whole. In JSON and Parquet the columns may
    also be fields of a column named "translation".

    Raises DataError, naming the file and where it applies the line, for what `iter_lines` refuses, for a line that
    is not what the format asks for, for a column that is missing or twice there, and in JSON for a value that is no
    text: here what the first row shows (but of a JSON list), the rest when it is reached; ConfigError for columns that
    exclude each other.
    """
    suffix = table_suffix(path)
    rows = {".tsv": _separated_rows, ".csv": _separated_rows, ".parquet": _parquet_rows}.get(suffix, _json_rows)
    is_list = rows is _json_rows and is_json_list(path)
    unit = "row" if is_list or suffix == ".parquet" else "line"
    table = Table(str(path), columns, functools.partial(rows, path, columns), unit, path)
    return table if is_list else _tried(table)


def open_dataset(name: str, config: str, split: str, columns: Columns) -> Table:
    """Find a split of a dataset and its columns: a directory in the layout of the Hugging Face Hub, or a name there.

    Raises DataError if there is no such dataset, configuration, split or column, or if the Hub does not answer.
    """
    return _tried(Table(name, columns, functools.partial(_hub_rows, name, config, split, columns)))


# Lines of fields


def _separated_rows(path: Path, columns: Columns) -> Iterator[tuple[list[str], int]]:
    is_csv = table_suffix(path) == ".csv"
    with unpacked(path) as file:
        lines = _without_nul(lines_of(file, path, _kind(columns).longest, verbatim=is_csv), path)
        records = ((line.split("\t"), number) for number, line in enumerate(lines, 1))
        yield from _columns_of(_csv_records(lines, path, _kind(columns)) if is_csv else records, path, columns)


def _csv_records(lines: Iterator[str], path: Path, kind: _Kind) -> Iterator[tuple[list[str], int]]:
    """Yield the records of a CSV file, and the line that each begins in."""
    first, begin = next(lines), 1
    # Where numbers have a decimal comma, spreadsheets write other signs between the columns.
    sign = next((sign for sign in ",;\t" if sign in first), ",")
    reader = csv.reader((f"{line}\n" for line in chain([first], lines)), strict=True, delimiter=sign)
    while True:
        records: list[tuple[list[str], int]] = []
        others_limit = csv.field_size_limit(kind.longest)  # the whole process has one
        try:
            for fields in islice(reader, kind.together):
                records.append((fields, begin))
                begin = reader.line_num + 1
        except csv.Error as error:
            raise DataError(
                f"{path}, line {begin} begins a row that is not CSV ({error}): "
                "write a quotation mark inside quoted text twice"
            ) from error
        finally:
            csv.field_size_limit(others_limit)
        if not records:
            return
        yield from records


def _columns_of(
    records: Iterator[tuple[list[str], int]], path: Path, columns: Columns
) -> Iterator[tuple[list[str], int]]:
    """Pick the columns of records, of which the first has their names, unless they are given as numbers."""
    header, line = next(records)
    numbered = [re.fullmatch("[0-9]{1,9}", column) is not None for column in columns]
    if any(numbered) and not all(numbered):
        raise ConfigError(f"columns {_listed(columns)}: give both columns by name or both by number")
    if all(numbered):
        indices = _numbered(header, columns, path)
        yield [header[index] for index in indices], line
    else:
        names = [name.strip() for name in header]
        for column in columns:
            if column not in names:
                raise _missing_column(str(path), column, names, columns)
            if names.count(column) > 1:
                raise DataError(f"{path} has {names.count(column)} columns named {column}: give each its own name")
        indices = [*map(names.index, columns)]
    for fields, line in records:
        if fields in ([], [""]) and len(header) != len(fields):
            raise DataError(f"{path}, line {line} is empty: delete it")
        if len(fields) != len(header):
            there = counted(len(fields), "column")
            raise DataError(f"{path}, line {line} has {there}, the first line has {len(header)}: correct it")
        yield [fields[index] for index in indices], line
    if line == 1 and not all(numbered):
        raise DataError(f"{path} has column names and nothing below them: it needs at least one {_kind(columns).row}")


def _numbered(header: list[str], columns: Columns, path: Path) -> list[int]:
    if not all(1 <= int(column) <= len(header) for column in columns):
        none = f"are no columns {' and '.join(columns)}" if len(columns) > 1 else f"is no column {columns[0]}"
        raise DataError(f"{path} has {counted(len(header), 'column')}: there {none}")
    indices = [int(column) - 1 for column in columns]
    if all(_NAME.fullmatch(header[index].strip()) for index in indices):
        raise DataError(
            f"{path}, line 1 has names of columns, {_listed(header[index] for index in indices)}, where a numbered "
            f"column begins with a {_kind(columns).row}: give the columns by name, or delete the line"
        )
    return indices


def _without_nul(lines: Iterable[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(lines, start=1):
        if "\0" in line:
            raise DataError(f"{path}, line {number} has a NUL character, which no text has: is the file damaged?")
        yield line


# Objects


def _json_rows(path: Path, columns: Columns) -> Iterator[tuple[Sequence[Any], int]]:
    keys = None
    for number, (row, place) in enumerate(json_objects(path, _kind(columns).longest, _kind(columns).row), 1):
        keys = keys or _find_columns(row, columns, str(path))
        yield [_value(row, where, place) for where in keys], number
    if keys is None:
        raise DataError(f"{path} holds an empty list: it needs at least one {_kind(columns).row}")


def _parquet_rows(path: Path, columns: Columns) -> Iterator[tuple[Sequence[Any], int]]:
    return _batched_rows(parquet_batches(path, _kind(columns).together), str(path), columns)


def _hub_rows(name: str, config: str, split: str, columns: Columns) -> Iterator[tuple[Sequence[Any], int]]:
    batches = batches_of(load_split(name, config, split), name, _kind(columns).together)
    return _batched_rows(batches, name, columns)


def _batched_rows(batches: Iterator[Batch], name: str, columns: Columns) -> Iterator[tuple[Sequence[Any], int]]:
    number, keys = 0, None
    for batch in batches:
        keys = keys or _find_columns({key: values[0] for key, values in batch.items()}, columns, name)
        # A null where a struct should be has null fields.
        picked = (
            [value.get(inner[0]) if value else None for value in batch[outer]] if inner else batch[outer]
            for outer, *inner in keys
        )
        for values in zip(*picked, strict=True):
            number += 1
            yield values, number
    if keys is None:
        raise DataError(f"{name} has no rows: it needs at least one {_kind(columns).row}")


def _value(row: Mapping[str, Any], keys: Keys, place: str) -> Any:
    value: Any = row
    for key in keys:
        if not isinstance(value, Mapping) or key not in value:
            raise DataError(f"{place} has no {'.'.join(keys)}: write it, or delete the row")
        value = value[key]
    return value


# What they share


def _tried(table: Table) -> Table:
    """Read the first row of a table: mistakes that it shows are told before anything long begins."""
    with closing(iter(table)) as rows:
        next(rows, None)
    return table


def _find_columns(row: Mapping[str, Any], columns: Columns, name: str) -> tuple[Keys, ...]:
    """Find the columns in a row: at the top, or in "translation"."""
    inner = row.get("translation")
    inner = inner if isinstance(inner, Mapping) else {}
    found = []
    for column in columns:
        if column not in row and column not in inner:
            there = [key for key in row if key != "translation" or not inner] + list(inner)
            raise _missing_column(name, column, there, columns)
        found.append((column,) if column in row else ("translation", column))
    return tuple(found)


def _missing_column(name: str, column: str, there: Iterable[str], columns: Columns) -> DataError:
    flags = "columns with --source-column and --target-column" if len(columns) == 2 else "column with --column"
    return DataError(f"{name} has no column {_listed([column])}, only {_listed(there)}: name the {flags}")


def _text_fault(value: Any, columns: Columns) -> str:
    """Say what keeps a value from being the text of one of these columns."""
    if not isinstance(value, str):
        kind = "null" if value is None else f"of type {type(value).__name__}"
        return f"is {kind}, not a text: correct it, or delete the row"
    kind = _kind(columns)
    if len(value) <= kind.longest:
        return "has half of a surrogate pair: correct it, or delete the row"
    return f"has more than {kind.longest:,} characters: is it one {kind.value}?"


def _listed(names: Iterable[str]) -> str:
    """List names for a sentence: some of many, the beginning of long ones."""
    names = [name if 0 < len(name) <= 40 else f"{name[:40]}…" if name else "(no name)" for name in names] or ["(none)"]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "…"])
