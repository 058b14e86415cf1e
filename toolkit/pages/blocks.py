"""The blocks of an explanation, whether it is read in a terminal, in a browser or in a notebook.

A topic builds a `Page`; `toolkit.pages.terminal` and `toolkit.pages.html` show it, and in a notebook it shows itself,
as each block does. Blocks hold the numbers themselves, in full; how many of them fit, and to how many decimals, is
decided where they are shown.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from toolkit.display import short_repr
from toolkit.functional.arrays import Array

if TYPE_CHECKING:
    from toolkit.pages.drawing import Drawing


class Shown:
    """An object that shows itself in a notebook, by the blocks that it gives; a block by itself."""

    def _shown(self) -> "Sequence[Block | Drawing]":
        """Give what is shown of it."""
        return [self]  # type: ignore[list-item]

    def _repr_html_(self) -> str:
        from toolkit.pages.html import fragment  # here, because few who make blocks look at them as HTML

        return fragment(*self._shown())


@dataclass(frozen=True)
class Text(Shown):
    """A paragraph."""

    text: str

    __repr__ = short_repr


@dataclass(frozen=True)
class Formula(Shown):
    """One or several lines of mathematics in Unicode, as docstrings have them."""

    text: str

    __repr__ = short_repr


@dataclass(frozen=True)
class Code(Shown):
    """A function as it stands in the toolkit, or what to type."""

    text: str
    where: str = ""  # "toolkit/functional/linear.py:12", or nothing

    __repr__ = short_repr


@dataclass(frozen=True)
class Numbers(Shown):
    """An array of one or two dimensions, with its shape, and what its rows and columns belong to."""

    name: str
    values: Array
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()
    digits: int = 3
    note: str = ""

    __repr__ = short_repr


@dataclass(frozen=True)
class Heat(Shown):
    """A map of weights, (T, S): row t says how much of what t takes comes from each column."""

    name: str
    values: Array
    rows: Sequence[str]
    columns: Sequence[str]
    hidden: Array | None = None  # (T, S), true where a mask forbids to look
    note: str = ""

    __repr__ = short_repr


@dataclass(frozen=True)
class Maps(Shown):
    """Several heat maps of the same rows and columns, such as those of all heads: small, side by side."""

    maps: Sequence[Heat]

    __repr__ = short_repr


@dataclass(frozen=True)
class Bars(Shown):
    """Probabilities of some candidates, best first, in one column or several. chosen: which of them were taken."""

    name: str
    labels: Sequence[str]
    columns: Mapping[str, Sequence[float | None]]  # None: excluded
    chosen: Sequence[int] = ()
    note: str = ""

    __repr__ = short_repr


@dataclass(frozen=True)
class Table(Shown):
    """Rows of cells that are written already."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    left: Sequence[int] = (0,)  # columns whose cells stand at the left

    __repr__ = short_repr


@dataclass(frozen=True)
class Curves(Shown):
    """Lines over a common axis: name -> (x, y)."""

    name: str
    lines: Mapping[str, tuple[Sequence[float], Sequence[float]]]
    x: str = ""
    y: str = ""
    log_x: bool = False
    log_y: bool = False

    __repr__ = short_repr


@dataclass(frozen=True)
class Branch:
    """A node of a tree: what was written, what it scored, what became of it."""

    label: str
    score: float
    state: str = "kept"  # "kept", "dropped", "ended", "chosen"
    branches: Sequence["Branch"] = ()

    __repr__ = short_repr


@dataclass(frozen=True)
class Tree(Shown):
    """The tree that a search grew."""

    name: str
    root: Branch

    __repr__ = short_repr


@dataclass(frozen=True)
class Erratum(Shown):
    """A place where a founding document is wrong: what it prints, and what comes out."""

    document: str  # "004"
    place: str  # "scores of row 2"
    printed: str
    computed: str
    why: str = ""

    __repr__ = short_repr


Block = Text | Formula | Code | Numbers | Heat | Maps | Bars | Table | Curves | Tree | Erratum


@dataclass(frozen=True, init=False)
class Section:
    """A step.  blocks: a string is a `Text`, a list gives its blocks, None and "" nothing."""

    title: str
    blocks: Sequence[Block]

    __repr__ = short_repr

    def __init__(self, title: str, *blocks: "Block | str | Sequence | None"):
        object.__setattr__(self, "title", title)
        object.__setattr__(self, "blocks", list(_flat(blocks)))


def _flat(blocks: Sequence) -> Iterator[Block]:
    for each in blocks:
        if isinstance(each, list | tuple):
            yield from _flat(each)
        elif each:
            yield Text(each) if isinstance(each, str) else each


@dataclass(frozen=True)
class Page(Shown):
    """An explanation: a title, what it is about in a sentence or two, what was cut, and its steps."""

    title: str
    about: str
    sections: Sequence[Section]
    cut: Sequence[str] = ()  # one sentence for each thing that is not shown, or not read

    __repr__ = short_repr
