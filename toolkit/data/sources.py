"""Where pairs of sentences come from: line-aligned files, tables and datasets, streams that can say where they are."""

import hashlib
import re
import stat
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from toolkit.data.lines import count_lines, iter_lines, opened
from toolkit.data.table import Columns, Table
from toolkit.data.tables import TABLE_SUFFIXES, open_dataset, open_table, table_rows, table_suffix
from toolkit.display import counted
from toolkit.errors import ConfigError, DataError

_TEXT_FILES = "a file of plain text is given as --text"

_HUB_NAME = re.compile(r"[A-Za-z0-9_][\w.-]*/[\w.-]+")


Side = Literal["source", "target"]


class Located(NamedTuple):
    """A pair in Unicode normal form C, and the line or row it stands in, counted from 1."""

    source: str
    target: str
    line: int


class PairSource(Protocol):
    """Pairs that are read from the disk, from the beginning at every iteration; memory does not grow with them."""

    name: str

    def __iter__(self) -> Iterator[Located]: ...

    def place(self, line: int, side: Side = "source") -> str:
        """Where a side of the pair of `Located.line` is to be found, for a sentence: "my.en, line 7"."""
        ...

    def fingerprint(self) -> str:
        """A hexadecimal digest that changes when the contents do, and not when only names do."""
        ...


class LineFiles:
    """Two text files, line i of one the translation of line i of the other.

    Raises DataError, naming file and line, at once for files of unequal length, and for what `iter_lines` refuses when
    it is reached. Blank lines are texts like any others.
    """

    def __init__(self, source: Path, target: Path):
        self.name = str(source)
        self._paths = (source, target)
        self._count()

    def __iter__(self) -> Iterator[Located]:
        for number, texts in enumerate(self._texts(), start=1):
            yield Located(*texts, number)

    def place(self, line: int, side: Side = "source") -> str:
        return f"{self._paths[side == 'target']}, line {line}"

    def fingerprint(self) -> str:
        return digest_of_files(self._paths)

    def _texts(self) -> Iterator[tuple[str, str]]:
        try:
            yield from zip(*map(iter_lines, self._paths), strict=True)
        except ValueError as error:
            raise DataError(f"{self.name} or its translation changed while they were read: start again") from error

    def _count(self) -> None:
        for path in self._paths:
            refuse_pipe(path)
        (short, short_path), (long, long_path) = sorted(
            ((count_lines(path), path) for path in self._paths), key=lambda side: side[0]
        )
        if short != long:
            raise DataError(
                f"{short_path} has {counted(short)}, {long_path} has {long}: "
                f"line {short + 1} of {long_path} has no translation"
            )


class TableRows:
    """Two columns of a table."""

    def __init__(self, table: Table):
        self.name = table.name
        self._table = table

    def __iter__(self) -> Iterator[Located]:
        return (Located(*row) for row in table_rows(self._table))

    def place(self, line: int, side: Side = "source") -> str:
        return self._table.place(line)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for source, target, _ in self:
            for text in (source, target):
                data = text.encode("utf-8")
                digest.update(len(data).to_bytes(8, "little") + data)
        return digest.hexdigest()


class TableFile(TableRows):
    """Two columns of a TSV, CSV, JSON or Parquet file."""

    def __init__(self, table: Table, path: Path):
        super().__init__(table)
        self._path = path

    def fingerprint(self) -> str:
        return digest_of_files([self._path])


def open_sources(
    source: Sequence[Path], target: Sequence[Path], data: Sequence[str], source_column: str, target_column: str
) -> list[PairSource]:
    """The sources that the arguments name: pairs of line-aligned files first, then tables and datasets, in order.

    Each entry of `data` is a table file (see `open_table`), a directory in the layout of the Hugging Face Hub or a
    name on the Hub, "owner/name"; after the latter two ":CONFIG" or ":CONFIG:SPLIT" may follow, where CONFIG may be
    empty and SPLIT is "train" if it is not given. The columns are looked for in all of them.

    Raises DataError for what is missing or damaged, as each kind of source does, and ConfigError for arguments that
    do not fit together.
    """
    if len(source) != len(target):
        raise ConfigError(
            f"{len(source)} source and {len(target)} target files are given: give one target file for each source file"
        )
    if data and source_column == target_column:
        raise ConfigError(f"source and target column are both {source_column}: name two columns")
    files: list[PairSource] = [LineFiles(*paths) for paths in zip(source, target, strict=True)]
    tables = (find_table(text, (source_column, target_column)) for text in data)
    return files + [TableFile(table, path) if path else TableRows(table) for table, path in tables]


def find_table(text: str, columns: Columns) -> tuple[Table, Path | None]:
    """The table that an entry of `data` names (see `open_sources`), and its path where it is one file."""
    name, _, rest = text.partition(":")
    if name and path_mode(Path(text)):  # a path may contain a colon
        name, rest = text, ""
    config, _, split = rest.partition(":")
    path, mode = Path(name), path_mode(Path(name)) if name else 0  # a path of no characters is the directory we are in
    is_table = table_suffix(path) is not None
    if stat.S_ISDIR(mode) or (not mode and not is_table and _HUB_NAME.fullmatch(name)):
        return open_dataset(name, config, split or "train", columns), None
    if not mode:
        raise DataError(
            f"{text or 'the empty name'} does not exist: "
            f"give a table ({', '.join(TABLE_SUFFIXES)}), a directory, or owner/name on the Hub"
        )
    if rest:
        raise DataError(f"{name} is a file, which has no configurations and splits: leave out :{rest}")
    if not is_table:
        flags = "two line-aligned files are given as --source and --target" if len(columns) == 2 else _TEXT_FILES
        raise DataError(f"{name} is not a table ({', '.join(TABLE_SUFFIXES)}): {flags}")
    refuse_pipe(path)
    return open_table(path, columns), path


def path_mode(path: Path) -> int:
    """What a path names, for `stat`; 0 for nothing."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0


def refuse_pipe(path: Path) -> None:
    """Raises DataError for what can be read only once."""
    mode = path_mode(path)
    if mode and not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise DataError(f"{path} is a pipe or a device, and texts are read more than once: write them to a file first")


def digest_of_files(paths: Iterable[Path]) -> str:
    """A hexadecimal digest (SHA-256) of the contents of files, in their order."""
    digest = hashlib.sha256()
    for path in paths:
        with opened(path) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()
