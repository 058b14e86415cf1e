"""A page as one self-contained HTML document: no script, and nothing that a browser would fetch.

Texts, numbers, tables, bars and trees are elements of HTML; maps and curves are drawings. What comes from a page is
escaped in the smallest functions, at the end, and only there.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby, zip_longest
from pathlib import Path

import numpy as np

from toolkit.display import visible
from toolkit.explain.pages.blocks import (
    Bars,
    Block,
    Branch,
    Code,
    Curves,
    Erratum,
    Formula,
    Heat,
    Maps,
    Numbers,
    Page,
    Section,
    Table,
    Text,
    Tree,
)
from toolkit.explain.pages.curves import Axis, Style, plot, swatch
from toolkit.explain.pages.drawing import Drawing
from toolkit.explain.pages.maps import Scale, hidden, map_drawing, notes, scale_drawing
from toolkit.explain.pages.writing import (
    ELLIPSIS,
    MOST_COLUMNS,
    MOST_ROWS,
    SPACE,
    STATES,
    clipped,
    figures,
    left_out,
    probability,
    sentences,
    written,
)
from toolkit.functional.arrays import Array

MOST_SIDE = 48  # rows and columns of one map
MOST_SMALL_SIDE = 32  # of several
MOST_CELLS = 20_000  # of several together: a page stays a few megabytes
MOST_POINTS = 600  # of a line
_POINTS = 12  # of a line in the table of values
_PLOT = (600, 320)

_STYLE = Path(__file__).with_name("page.css")
_SIDE_BY_SIDE = (Numbers, Heat, Bars, Table)
_CONTENTS = 3  # as many sections as need no table of contents
_LONGEST_LABEL = 40  # cells

_HYPHEN = re.compile(r"(?<![^\W\d_])-|-(?![^\W\d_])")  # not one between letters
_NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")
# A minus before a number in a sentence; what is code or quoted stays as it is.
_MINUS = re.compile(r"(`[^`\n]+`|“[^”]*”)|(?<![^\s(=])-(?=\d)")

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
# Were there anything to fetch or to run, the browser would refuse to. The icon is empty: without one it asks a server.
_HEAD = (
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
    '<meta name="color-scheme" content="light dark">',
    '<link rel="icon" href="data:,">',
)


def document(page: Page) -> str:
    """The HTML of a page, to be written in UTF-8. Every number shown has its full value in `data-value`."""
    title = element("title", inline(page.title, plain=True))
    head = element("head", *_HEAD, title, element("style", _STYLE.read_text(encoding="utf-8")), between="\n")
    sections = [_section(each, number) for number, each in enumerate(page.sections, start=1)]
    contents = [_contents(page)] if len(page.sections) > _CONTENTS else []
    main = element("main", _header(page), *sections, between="\n")
    body = element("body", *contents, main, Class="with-contents" if contents else None, between="\n")
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def _header(page: Page) -> str:
    cut = [element("ul", *(element("li", inline(each)) for each in page.cut), Class="cut")] if page.cut else []
    return element("header", element("h1", inline(page.title)), element("p", inline(page.about), Class="about"), *cut)


def _contents(page: Page) -> str:
    links = (
        element("li", element("a", inline(section.title), href=f"#step-{number}"))
        for number, section in enumerate(page.sections, start=1)
    )
    return element("nav", element("ol", *links), aria_label="Contents")


def _section(section: Section, number: int) -> str:
    heading = element("h2", element("span", str(number), Class="number"), " ", inline(section.title))
    return element("section", heading, *_beside(section.blocks), id=f"step-{number}", between="\n")


def _beside(blocks: Sequence[Block]) -> Iterator[str]:
    """Blocks as HTML; those of one kind that follow each other stand beside each other, where there is room."""
    for kind, group in groupby(blocks, type):
        parts = [block(each) for each in group]
        yield from parts if len(parts) == 1 or kind not in _SIDE_BY_SIDE else [element("div", *parts, Class="beside")]


def block(given: Block) -> str:
    """One block."""
    return _SHOWN[type(given)](given)


def _text(given: Text) -> str:
    return "\n".join(element("p", inline(each)) for each in re.split(r"\n\s*\n", given.text.strip("\n")))


def _formula(given: Formula) -> str:
    content = text(_HYPHEN.sub("\u2212", given.text.strip("\n")))
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
    return figure(given.name, scroll(table, given.name), note=note, shape=given.values)


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


def _maps(given: Heat | Maps) -> str:
    """Draw one map, or small ones beside each other on one scale, each as large as a page can hold."""
    maps = given.maps if isinstance(given, Maps) else [given]
    if not maps:
        return ""
    side = MOST_SMALL_SIDE if len(maps) > 1 else MOST_SIDE
    cut = [_cut(each, side) for each in maps]
    shown = cut[: max(1, MOST_CELLS // max(1, cut[0].values.size))]
    scale = Scale.of(maps)
    drawn = [scroll(map_drawing(each, scale, len(maps) == 1).inline(each.name, "map"), each.name) for each in shown]
    legend = scale_drawing(scale, any(hidden(each).any() for each in maps)).inline("Colour scale", "scale")
    note = sentences(
        *notes(maps, side, side, "Grey cells are hidden by the mask."), left_out(len(shown), len(maps), "maps")
    )
    if len(maps) == 1:
        return figure(maps[0].name, drawn[0], legend, note=note, shape=maps[0].values, kind="of-map")
    small = (figure(each.name, one, kind="small") for each, one in zip(shown, drawn, strict=True))
    return figure("", element("div", *small, Class="maps"), legend, note=note, kind="of-map")


def _cut(given: Heat, side: int) -> Heat:
    """Take the first rows and columns of a map."""
    masked = None if given.hidden is None else np.asarray(given.hidden)[:side, :side]
    rows, columns = list(map(str, given.rows))[:side], list(map(str, given.columns))[:side]
    return replace(given, values=np.asarray(given.values)[:side, :side], rows=rows, columns=columns, hidden=masked)


def _bars(given: Bars) -> str:
    """A row for each candidate, a bar for each column."""
    names = list(given.columns)
    most = max((value for column in given.columns.values() for value in column if value is not None), default=0) or 1
    header = ""
    if len(names) > 1:
        cells = (element("th", label(each), scope="col") for each in names)
        header = element("thead", element("tr", "<td></td>", *cells))
    rows = []
    for index, candidate in enumerate(given.labels):
        chosen = index in given.chosen
        mark = element("span", "★ ", title="chosen") if chosen else ""
        name = element("th", mark, label(candidate), scope="row")
        cells = (_bar(given.columns[each][index], most) for each in names)
        rows.append(element("tr", name, *cells, Class="chosen" if chosen else None))
    table = element("table", header, element("tbody", *rows), Class="bars")
    note = sentences("★ was chosen." if given.chosen else "", given.note)
    return figure(given.name, scroll(table, given.name), note=note)


def _bar(value: float | None, most: float) -> str:
    if value is None:
        return element("td", element("span", "excluded"), Class="excluded")
    share = max(value / most, 0) if np.isfinite(value) else 0
    bar = element("span", "", Class="bar", style=f"--v:{share:.4f}")
    return element("td", number(value, probability, "span"), bar)


def _tree(given: Tree) -> str:
    """The beam, growing from left to right."""
    kinds = (element("li", f"{mark} {state}".strip(), Class=f"node {state}") for state, mark in STATES.items())
    legend = element("ul", *kinds, Class="states", aria_label="States")
    return figure(given.name, legend, scroll(element("ul", _branch(given.root), Class="tree"), given.name))


def _branch(branch: Branch) -> str:
    token = element("span", f"{STATES[branch.state]} ".lstrip() + label(branch.label or "(nothing)"), Class="token")
    score = number(branch.score, lambda each: written(each, 3), "span", Class="score")
    node = element("div", token, " ", score, Class=f"node {branch.state}", title=branch.state)
    grown = [element("ul", *map(_branch, branch.branches))] if branch.branches else []
    return element("li", node, *grown, Class="way" if branch.state == "chosen" else None)


def _curves(given: Curves) -> str:
    """Draw a plot, with its legend above and its values in a table that opens."""
    most = max((len(x) for x, _ in given.lines.values()), default=0)
    step = max(1, -(-most // MOST_POINTS))
    drawing = Drawing(*_PLOT)
    plot(
        drawing,
        replace(given, name="", lines={name: _thinned(*line) for name, line in given.lines.items()}),
        (0, 0, *_PLOT),
    )
    about = f"{given.name}: {given.y or 'lines'} over {given.x or 'steps'}: {', '.join(given.lines)}"
    note = f"Of {most} points, one of every {step} is drawn." if step > 1 else ""
    shown = scroll(drawing.inline(about, "plot"), given.name)
    return figure(given.name, _legend(given), shown, _values(given), note=note)


def _thinned(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Take some of very many points, the last one always."""
    kept = [*range(0, len(x) - 1, max(1, -(-len(x) // MOST_POINTS))), len(x) - 1] if len(x) else []
    return [x[index] for index in kept], [y[index] for index in kept]


def _legend(given: Curves) -> str:
    items = []
    for index, (name, (_, y)) in enumerate(given.lines.items()):
        last = [" ", number(float(y[-1]), Axis.label, "span", Class="last")] if len(y) else []
        items.append(element("li", swatch(Style.of(index)).inline("", "swatch"), " ", label(name), *last))
    return element("ul", *items, Class="lines", aria_label="Lines, each with its last value")


def _values(given: Curves) -> str:
    """Some of the points of each line in numbers, the last one always."""
    rows = []
    for name, (x, y) in given.lines.items():
        places = sorted({round(index * (len(x) - 1) / (_POINTS - 1)) for index in range(_POINTS)}) if len(x) else []
        for index in places:
            numbers = (number(float(each[index]), "{:.6g}".format) for each in (x, y))
            rows.append(element("tr", element("th", label(name), scope="row"), *numbers))
    header = (element("th", text(each), scope="col") for each in ("line", given.x or "x", given.y or "y"))
    table = element("table", element("thead", element("tr", *header)), element("tbody", *rows), Class="numbers")
    return element("details", element("summary", "Values"), scroll(table, f"{given.name}, values"))


_SHOWN: dict[type, Callable[..., str]] = {
    Text: _text,
    Formula: _formula,
    Code: _code,
    Numbers: _numbers,
    Heat: _maps,
    Maps: _maps,
    Bars: _bars,
    Table: _table,
    Curves: _curves,
    Tree: _tree,
    Erratum: _erratum,
}


def element(name: str, *content: str, between: str = "", **attributes: object) -> str:
    """An element around content that is HTML already. An attribute is left out if it is None; `Class` means class."""
    given = "".join(
        f' {("class" if key == "Class" else key).replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{between}{between.join(content)}{between}</{name}>"


def text(content: object) -> str:
    """Text as HTML; line ends stay, other control characters are made visible."""
    return "\n".join(escape(visible(line)) for line in str(content).replace("\t", "    ").split("\n"))


def label(content: object) -> str:
    """What a row, a column or a node is called: cut where it is very long, the sign of a space paler than the rest."""
    return _pale(text(clipped(str(content), _LONGEST_LABEL)))


def inline(content: str, plain: bool = False) -> str:
    """Text as HTML, with what stands between backticks set as code; plain: without them."""
    content = _MINUS.sub(lambda found: found[1] or "\u2212", content)
    if plain:
        return text(re.sub("`([^`\n]+)`", r"\1", content))
    return re.sub("`([^`\n]+)`", r"<code>\1</code>", _pale(text(content)))


def _pale(content: str) -> str:
    return content.replace(SPACE, f'<span class="space">{SPACE}</span>')


def value_of(number: float) -> str:
    """A number in full, for `data-value`: what float() reads back exactly."""
    return repr(number.item() if hasattr(number, "item") else number)


def number(value: float, figure: Callable[[float], str], name: str = "td", **attributes: object) -> str:
    """A number as it is read, with its full value beside it."""
    return element(name, signed(text(figure(value))), data_value=value_of(value), **attributes)


def signed(figure: str) -> str:
    """A number with a minus sign as wide as a digit."""
    return figure.replace("-", "\u2212")


def scroll(content: str, name: str) -> str:
    """A box that scrolls sideways where its content is too wide, also by keys."""
    return element("div", content, Class="scroll", tabindex=0, role="region", aria_label=name or "numbers")


def figure(name: str, *content: str, note: str = "", kind: str = "", shape: Array | None = None) -> str:
    """A figure with its caption above and a note below."""
    shaped = "" if shape is None else " " + element("span", text(np.shape(shape)), Class="shape")
    caption = [element("figcaption", inline(name) + shaped)] if name or shaped else []
    notes = [element("p", inline(note), Class="note")] if note else []
    return element("figure", *caption, *content, *notes, Class=kind or None)
