"""A table with pairs in two of its columns: what is known once it has been checked, and sentences about its faults."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, NamedTuple

from toolkit.data.readers import LONGEST_LINE
from toolkit.errors import DataError

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


def find_columns(row: Mapping[str, Any], columns: Columns, name: str) -> tuple[Keys, Keys]:
    """Where in a row the two columns are: at the top, or in "translation"."""
    inner = row.get("translation")
    inner = inner if isinstance(inner, Mapping) else {}
    found = []
    for column in columns:
        if column not in row and column not in inner:
            raise missing_column(name, column, [key for key in row if key != "translation" or not inner] + list(inner))
        found.append((column,) if column in row else ("translation", column))
    return found[0], found[1]


def missing_column(name: str, column: str, there: Iterable[str]) -> DataError:
    """The error for a column that is not `there`."""
    return DataError(
        f"{name} has no column {listed([column])}, only {listed(there)}: "
        "name the columns with --source-column and --target-column"
    )


def text_fault(value: Any) -> str | None:
    """What keeps a value from being the text of a sentence."""
    if not isinstance(value, str):
        kind = "null" if value is None else f"of type {type(value).__name__}"
        return f"is {kind}, not a text: correct it, or delete the row"
    if len(value) > LONGEST_LINE:
        return f"has more than {LONGEST_LINE:,} characters: is it one sentence?"
    return None


def listed(names: Iterable[str]) -> str:
    """Names for a sentence: some of many, the beginning of long ones."""
    names = [name if 0 < len(name) <= 40 else f"{name[:40]}…" if name else "(no name)" for name in names] or ["(none)"]
    return ", ".join(names if len(names) <= 8 else [*names[:8], "…"])
