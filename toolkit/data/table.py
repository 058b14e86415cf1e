"""A table with pairs in two of its columns, or texts in one: what a check finds out, and sentences about its faults."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from toolkit.data.lines import LONGEST_LINE
from toolkit.errors import DataError

Columns = tuple[str, ...]  # (source, target) of pairs, or (text,) alone
Keys = tuple[str, ...]  # a column, or a column and a field in it

LONGEST_TEXT = 10_000_000  # the most characters of a text that is a row, which is held in memory as a whole


def longest(columns: Columns) -> int:
    """The most characters that a value may have: sentences of pairs are short, other texts may be books."""
    return LONGEST_LINE if len(columns) == 2 else LONGEST_TEXT


def rows_at_a_time(columns: Columns) -> int:
    """How many rows are in memory together. In columns, many are read five times faster than one by one."""
    return 1000 if len(columns) == 2 else 50


def unit(columns: Columns) -> str:
    """What a row holds, for a sentence."""
    return "pair" if len(columns) == 2 else "text"


class Table(NamedTuple):
    """What a check found out about a table: how its rows are read, and where in a row and in the file the texts are."""

    load: Callable[[], Any]  # -> datasets.IterableDataset
    name: str
    columns: Columns
    keys: tuple[Keys, ...]
    unit: Literal["row", "line"] = "row"  # "line" where every row is one line of a file
    first: int = 1  # the number of the first row

    def place(self, number: int) -> str:
        return f"{self.name}, {self.unit} {number}"


def find_columns(row: Mapping[str, Any], columns: Columns, name: str) -> tuple[Keys, ...]:
    """Where in a row the columns are: at the top, or in "translation"."""
    inner = row.get("translation")
    inner = inner if isinstance(inner, Mapping) else {}
    found = []
    for column in columns:
        if column not in row and column not in inner:
            there = [key for key in row if key != "translation" or not inner] + list(inner)
            raise missing_column(name, column, there, columns)
        found.append((column,) if column in row else ("translation", column))
    return tuple(found)


def missing_column(name: str, column: str, there: Iterable[str], columns: Columns) -> DataError:
    """The error for a column that is not `there`."""
    flags = "columns with --source-column and --target-column" if len(columns) == 2 else "column with --column"
    return DataError(f"{name} has no column {listed([column])}, only {listed(there)}: name the {flags}")


def text_fault(value: Any, columns: Columns) -> str | None:
    """What keeps a value from being the text of one of these columns."""
    if not isinstance(value, str):
        kind = "null" if value is None else f"of type {type(value).__name__}"
        return f"is {kind}, not a text: correct it, or delete the row"
    if len(value) > longest(columns):
        what = "sentence" if len(columns) == 2 else "text"
        return f"has more than {longest(columns):,} characters: is it one {what}?"
    return None


def listed(names: Iterable[str]) -> str:
    """Names for a sentence: some of many, the beginning of long ones."""
    names = [name if 0 < len(name) <= 40 else f"{name[:40]}…" if name else "(no name)" for name in names] or ["(none)"]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "…"])
