"""Sources of sentence pairs: line-aligned files, tables and datasets; streams that can say where each pair stands."""

from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from toolkit.data.corpus import Split
from toolkit.data.embedded import CorpusName, embedded
from toolkit.data.lines import check_aligned, digest_of_files, iter_lines, path_mode, refuse_pipe
from toolkit.data.tables import find_table
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization.carrying import masked_pair

Side = Literal["source", "target"]

# The embedded corpora of pairs, by name: their folder, and which file of it is trained on (the split's where it is "").
EMBEDDED: dict[str, tuple[CorpusName, str]] = {"en_ne": ("en_ne", "")} | {
    f"everyday:{kind}": ("everyday", kind)
    for kind in (
        *("sentences", "typed", "worded", "swaps", "grammar", "names"),
        *("english-spellings", "foreign-spellings", "nepali-spellings"),
    )
}


class Located(NamedTuple):
    """A pair in Unicode normal form C, and the line or row it stands in, counted from 1."""

    source: str
    target: str
    line: int


class PairSource(Protocol):
    """Pairs that are read from the disk, from the beginning at every iteration; memory does not grow with them.

    Iterating gives what `Located` holds; a `Table` of two columns is such a source.
    """

    name: str

    def __iter__(self) -> Iterator[Located]: ...

    def place(self, line: int, side: Side = "source") -> str:
        """Say where a side of the pair of `Located.line` stands: "my.en, line 7"."""
        ...

    def fingerprint(self) -> str:
        """Digest the contents (hexadecimal): it changes when they do, and not when only names do."""
        ...


class LineFiles:
    """Two text files, line i of one the translation of line i of the other.

    Raises DataError, naming file and line, at once for files of unequal length, and for what `iter_lines` refuses when
    it is reached. Blank lines are texts like any others.
    """

    def __init__(self, source: Path, target: Path):
        self.name = str(source)
        self._paths = (source, target)
        for path in self._paths:
            refuse_pipe(path)
        check_aligned(source, target)

    def __iter__(self) -> Iterator[Located]:
        try:
            for number, texts in enumerate(zip(*map(iter_lines, self._paths), strict=True), start=1):
                yield Located(*texts, number)
        except ValueError as error:
            raise DataError(f"{self.name} or its translation changed while they were read: start again") from error

    def place(self, line: int, side: Side = "source") -> str:
        return f"{self._paths[side == 'target']}, line {line}"

    def fingerprint(self) -> str:
        return digest_of_files(self._paths)


class CarriedPairs:
    """The pairs of a source, with marks for the numbers and addresses that both sides have: see `carrying`."""

    def __init__(self, source: PairSource):
        self.source, self.name, self.place = source, source.name, source.place

    def __iter__(self) -> Iterator[Located]:
        return (Located(*masked_pair(source, target), line) for source, target, line in self.source)

    def fingerprint(self) -> str:
        return sha256(f"carried {self.source.fingerprint()}".encode()).hexdigest()


class EmbeddedPairs(LineFiles):
    """A split of an embedded corpus, whose languages are the columns: no pairs need be taken out to validate on.

    Raises ConfigError where it has not these columns, and what `embedded` raises.
    """

    def __init__(self, name: str, columns: tuple[str, str], split: Split):
        if sorted(columns) != ["en", "ne"]:
            raise ConfigError(f"{name} has the columns en and ne, not {columns[0]!r:.40} and {columns[1]!r:.40}")
        corpus, kind = EMBEDDED[name]
        stem = kind if kind and split == "train" else split
        super().__init__(*(embedded(corpus) / f"{stem}.{column}" for column in columns))
        self.name = name


def open_sources(
    source: Sequence[Path],
    target: Sequence[Path],
    data: Sequence[str],
    source_column: str,
    target_column: str,
    split: Split = "train",
) -> list[PairSource]:
    """Open the sources that the arguments name: pairs of line-aligned files first, then tables and datasets, in order.

    data: see `find_table`; the columns are looked for in all of them. A name in EMBEDDED is this split of that corpus,
    if nothing else has that name.

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
    columns = source_column, target_column
    return files + [
        EmbeddedPairs(text, columns, split)
        if text in EMBEDDED and not path_mode(Path(text))
        else find_table(text, columns)
        for text in data
    ]
