"""Blocks of a page as HTML: texts, numbers and tables; pictures are made elsewhere."""

import re
from collections.abc import Callable, Sequence
from itertools import zip_longest

import numpy as np

from toolkit.explain.pages.blocks import (
    Bars,
    Block,
    Code,
    Curves,
    Erratum,
    Formula,
    Heat,
    Maps,
    Numbers,
    Table,
    Text,
    Tree,
)
from toolkit.explain.pages.html_maps import bars, heat, maps
from toolkit.explain.pages.html_parts import element, figure, inline, label, number, scroll, signed, text
from toolkit.explain.pages.html_shapes import curves, tree
from toolkit.explain.pages.writing import ELLIPSIS, MOST_COLUMNS, MOST_ROWS, figures, left_out, sentences, shape_of

_MINUS = re.compile(r"(?<![^\W\d_])-|-(?![^\W\d_])")  # not a hyphen, which stands between letters
_NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")


def block(given: Block) -> str:
    """One block."""
    return _SHOWN[type(given)](given)


def _text(given: Text) -> str:
    return "\n".join(element("p", inline(each)) for each in re.split(r"\n\s*\n", given.text.strip("\n")))


def _formula(given: Formula) -> str:
    content = text(_MINUS.sub("\u2212", given.text.strip("\n")))
    return element("pre", content, Class="formula", tabindex=0, aria_label="Formula", role="region")


def _code(given: Code) -> str:
    content = element("code", text(given.text.strip("\n")))
    shown = element("pre", content, tabindex=0, role="region", aria_label=given.where or "Code")
    place = [element("figcaption", element("code", text(given.where)))] if given.where else []
    return element("figure", *place, shown, Class="code")


def _numbers(given: Numbers) -> str:
    values = np.atleast_2d(given.values)
    (height, breadth), written = values.shape, figures(values, given.digits)
    rows, columns = min(height, MOST_ROWS), min(breadth, MOST_COLUMNS)
    more = columns < breadth
    labels, names = list(given.rows)[:rows], list(given.columns)[:columns]
    header = _names(names, bool(labels), more) if names else ""
    lines = [
        element(
            "tr",
            *([element("th", label(name), scope="row")] if labels else []),
            *(number(value, written) for value in row),
            *([element("td", ELLIPSIS)] if more else []),
        )
        for name, row in zip_longest(labels, values[:rows, :columns], fillvalue="")
    ]
    table = element("table", header, element("tbody", *lines), Class="numbers")
    note = sentences(given.note, left_out(rows, height, "rows"), left_out(columns, breadth, "columns"))
    return figure(given.name, scroll(table, given.name), note=note, shape=shape_of(given.values))


def _names(names: Sequence[str], labelled: bool, more: bool) -> str:
    cells = [element("th", label(each), scope="col") for each in names]
    return element("thead", element("tr", "<td></td>" * labelled, *cells, "<td></td>" * more))


def _table(given: Table) -> str:
    def cell(index: int, content: str, name: str = "td", **attributes: str) -> str:
        shown = signed(content) if _NUMBER.fullmatch(str(content)) else inline(str(content))
        return element(name, shown, Class="left" if index in given.left else None, **attributes)

    header = element("tr", *(cell(index, each, "th", scope="col") for index, each in enumerate(given.header)))
    rows = (element("tr", *(cell(index, each) for index, each in enumerate(row))) for row in given.rows)
    table = element("table", element("thead", header), element("tbody", *rows), Class="cells")
    return scroll(table, "Table: " + ", ".join(map(str, given.header)))


def _erratum(given: Erratum) -> str:
    pairs = (("printed", given.printed), ("computed", given.computed))
    beside = (element("div", element("dt", name), element("dd", inline(what)), Class=name) for name, what in pairs)
    heading = element("p", element("strong", f"Document {text(given.document)} errs:"), " ", inline(given.place))
    why = [element("p", inline(given.why))] if given.why else []
    return element("aside", heading, element("dl", *beside), *why, Class="erratum")


_SHOWN: dict[type, Callable[..., str]] = {
    Text: _text,
    Formula: _formula,
    Code: _code,
    Numbers: _numbers,
    Heat: heat,
    Maps: maps,
    Bars: bars,
    Table: _table,
    Curves: curves,
    Tree: tree,
    Erratum: _erratum,
}
