"""A page as one self-contained HTML document, or its blocks as a part of a notebook: no script, nothing to be fetched.

Texts, numbers, tables, bars and trees are elements of HTML; maps and curves are drawings. What comes from a page is
escaped in the smallest functions, at the end, and only there.
"""

import base64
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from functools import cache
from html import escape
from itertools import groupby, zip_longest
from pathlib import Path

import numpy as np

from toolkit.display import visible
from toolkit.functional.arrays import Array
from toolkit.pages import blocks
from toolkit.pages.curves import Axis, Style, plot, swatch
from toolkit.pages.drawing import FONTS, Drawing
from toolkit.pages.maps import Scale, hidden, map_drawing, notes, scale_drawing
from toolkit.pages.writing import (
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

MOST_SIDE = 48  # rows and columns of one map
MOST_SMALL_SIDE = 32  # of several
MOST_CELLS = 20_000  # of several together: a page stays a few megabytes
MOST_POINTS = 600  # of a line
_POINTS = 12  # of a line in the table of values
_PLOT = (600, 320)

_STYLES = Path(__file__).with_name("blocks.css"), Path(__file__).with_name("page.css")
_SIDE_BY_SIDE = (blocks.Numbers, blocks.Heat, blocks.Bars, blocks.Table)
_CONTENTS = 3  # as many sections as need no table of contents
_LONGEST_LABEL = 40  # cells

_HYPHEN = re.compile(r"(?<![^\W\d_])-|-(?![^\W\d_])")  # not one between letters
_NUMBER = re.compile(r"-?\d[\d.,]*(e-?\d+)?")
# A minus before a number in a sentence; what is code or quoted stays as it is.
_MINUS = re.compile(r"(`[^`\n]+`|“[^”]*”)|(?<![^\s(=])-(?=\d)")

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
_SHOWN_CLASS = "toolkit-shown"  # of the element around blocks in a notebook
# What JupyterLab, Visual Studio Code and Colab say of a dark theme. Elsewhere a notebook is light.
_DARK_THEMES = ':is([data-jp-theme-light="false"], .vscode-dark, [theme="dark"])'
_DARK = re.compile(r"@media [^{]*\(prefers-color-scheme: dark\) \{(.*?)\}\s*\}", re.DOTALL)

_INLINE_DRAWING = re.compile(
    r'<svg class="(drawing [^"]*)" style="--width:\d+" viewBox="0 0 (\d+) (\d+)"[^>]*>(.*?)</svg>', re.DOTALL
)
_INLINE_BAR = re.compile(r'<span class="bar" style="--v:([\d.]+)"></span>')
_ENLARGED, _SWATCH, _BAR = 1.15, "28px", 12  # a drawing in a notebook; the longest bar, in letters

# Were there anything to fetch or to run, the browser would refuse to. The icon is empty: without one it asks a server.
_HEAD = (
    '<meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1">',
    f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">',
    '<meta name="color-scheme" content="light dark">',
    '<link rel="icon" href="data:,">',
)


def document(page: blocks.Page) -> str:
    """Write a page as HTML, for a file in UTF-8. Every number has its full value in `data-value`."""
    title = element("title", inline(page.title, plain=True))
    style = "".join(each.read_text(encoding="utf-8") for each in _STYLES)
    head = element("head", *_HEAD, title, element("style", style), between="\n")
    sections = [_section(each, number) for number, each in enumerate(page.sections, start=1)]
    contents = [_contents(page)] if len(page.sections) > _CONTENTS else []
    main = element("main", _header(page), *sections, between="\n")
    body = element("body", *contents, main, Class="with-contents" if contents else None, between="\n")
    return f'<!DOCTYPE html>\n<html lang="en">\n{head}\n{body}\n</html>\n'


def fragment(*shown: "blocks.Page | blocks.Block | Drawing") -> str:
    """Write pages, blocks and drawings as a part of another page: of a notebook, in its theme, light or dark."""
    parts = []
    for each in shown:
        if isinstance(each, blocks.Page):
            parts += [_header(each), *(_section(one, number) for number, one in enumerate(each.sections, start=1))]
        else:
            parts.append(each.inline("", "wide") if isinstance(each, Drawing) else _SHOWN[type(each)](each))
    return element("div", element("style", _style_within()), *map(_cleanly, parts), Class=_SHOWN_CLASS, between="\n")


def _cleanly(content: str) -> str:
    """Make of drawings and bars what is seen in a notebook that is not trusted, too: it shows neither SVG nor style.

    A drawing becomes a picture, and a bar has its size and colour with it.
    """

    def picture(found: re.Match[str]) -> str:
        kind, width, height, inner = found.groups()
        size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
        ground = '<rect width="100%" height="100%" fill="#ffffff"/>'
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{FONTS}">{ground}{inner}</svg>'
        data = base64.b64encode(svg.encode()).decode()
        shown = _SWATCH if "swatch" in kind else f"{float(width) * _ENLARGED:.0f}px"
        return f'<img class="{kind}" src="data:image/svg+xml;base64,{data}" style="width:{shown};max-width:100%">'

    def bar(found: re.Match[str]) -> str:
        size = f"display:inline-block;height:0.9em;width:{max(float(found[1]) * _BAR, 0.1):.2f}em"
        return f'<span class="bar" style="{size};background-color:#5f7f9f"></span>'

    return _INLINE_BAR.sub(bar, _INLINE_DRAWING.sub(picture, content))


@cache
def _style_within() -> str:
    """Write the style of blocks for an element of the class alone; sizes are by the letters around it."""
    css = re.sub(r"/\*.*?\*/|\n\s*", "", _STYLES[0].read_text(encoding="utf-8"), flags=re.DOTALL)
    dark = "".join(each + "}" for each in _DARK.findall(css)).replace(":root", "&")
    light = re.sub(r"(?<=\d)rem\b", "em", _DARK.sub("", css)).replace(":root", "&").replace("light dark", "light")
    inner = "color:var(--ink);font:1em/1.5 var(--text);overflow-wrap:break-word"
    light += 'th[scope="row"]{position:static;background:none}'  # whatever the ground of the notebook is
    return f".{_SHOWN_CLASS}{{{inner};{light}}}{_DARK_THEMES} .{_SHOWN_CLASS}{{color-scheme:dark;{dark}}}"


def _header(page: blocks.Page) -> str:
    cut = [element("ul", *(element("li", inline(each)) for each in page.cut), Class="cut")] if page.cut else []
    return element("header", element("h1", inline(page.title)), element("p", inline(page.about), Class="about"), *cut)


def _contents(page: blocks.Page) -> str:
    titles = enumerate((inline(section.title) for section in page.sections), start=1)
    links = (element("li", element("a", title, href=f"#step-{number}")) for number, title in titles)
    return element("nav", element("ol", *links), aria_label="Contents")


def _section(section: blocks.Section, number: int) -> str:
    """Write a section; blocks of one kind that follow each other stand beside each other, where there is room."""
    found = [element("h2", element("span", str(number), Class="number"), " ", inline(section.title))]
    for kind, group in groupby(section.blocks, type):
        parts = [_SHOWN[kind](each) for each in group]
        found += parts if len(parts) == 1 or kind not in _SIDE_BY_SIDE else [element("div", *parts, Class="beside")]
    return element("section", *found, id=f"step-{number}", between="\n")


def _text(given: blocks.Text) -> str:
    return "\n".join(element("p", inline(each)) for each in re.split(r"\n\s*\n", given.text.strip("\n")))


def _formula(given: blocks.Formula) -> str:
    content = text(_HYPHEN.sub("\u2212", given.text.strip("\n")))
    return element("pre", content, Class="formula", tabindex=0, aria_label="Formula", role="region")


def _code(given: blocks.Code) -> str:
    content = element("code", text(given.text.strip("\n")))
    shown = element("pre", content, tabindex=0, role="region", aria_label=given.where or "Code")
    place = [element("figcaption", element("code", text(given.where)))] if given.where else []
    return element("figure", *place, shown, Class="code")


def _numbers(given: blocks.Numbers) -> str:
    values = np.atleast_2d(given.values)
    (height, breadth), written = values.shape, figures(values, given.digits)
    rows, columns = min(height, MOST_ROWS), min(breadth, MOST_COLUMNS)
    labels, names = list(given.rows)[:rows], list(given.columns)[:columns]
    more = [element("td", ELLIPSIS)] * (columns < breadth)
    lines = [
        element("tr", *([_row_name(name)] if labels else []), *(number(value, written) for value in row), *more)
        for name, row in zip_longest(labels, values[:rows, :columns], fillvalue="")
    ]
    header = [*[""] * bool(labels), *names, *[""] * len(more)] if names else []
    note = sentences(given.note, left_out(rows, height, "rows"), left_out(columns, breadth, "columns"))
    return figure(given.name, scroll(_grid(header, lines, "numbers"), given.name), note=note, shape=given.values)


def _table(given: blocks.Table) -> str:
    def cell(index: int, content: str, name: str = "td", **attributes: str) -> str:
        shown = signed(content) if _NUMBER.fullmatch(str(content)) else inline(str(content))
        return element(name, shown, Class="left" if index in given.left else None, **attributes)

    header = element("tr", *(cell(index, each, "th", scope="col") for index, each in enumerate(given.header)))
    rows = (element("tr", *(cell(index, each) for index, each in enumerate(row))) for row in given.rows)
    table = element("table", element("thead", header), element("tbody", *rows), Class="cells")
    return scroll(table, "Table: " + ", ".join(map(str, given.header)))


def _erratum(given: blocks.Erratum) -> str:
    pairs = (("printed", given.printed), ("computed", given.computed))
    beside = (element("div", element("dt", name), element("dd", inline(what)), Class=name) for name, what in pairs)
    heading = element("p", element("strong", f"Document {text(given.document)} errs:"), " ", inline(given.place))
    why = [element("p", inline(given.why))] if given.why else []
    return element("aside", heading, element("dl", *beside), *why, Class="erratum")


def _maps(given: blocks.Heat | blocks.Maps) -> str:
    """Draw one map, or small ones beside each other on one scale, each as large as a page can hold."""
    maps = given.maps if isinstance(given, blocks.Maps) else [given]
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


def _cut(given: blocks.Heat, side: int) -> blocks.Heat:
    """Take the first rows and columns of a map."""
    masked = None if given.hidden is None else np.asarray(given.hidden)[:side, :side]
    rows, columns = list(map(str, given.rows))[:side], list(map(str, given.columns))[:side]
    return replace(given, values=np.asarray(given.values)[:side, :side], rows=rows, columns=columns, hidden=masked)


def _bars(given: blocks.Bars) -> str:
    names, values = list(given.columns), given.columns.values()
    most = max((value for column in values for value in column if value is not None), default=0) or 1
    rows = []
    for index, candidate in enumerate(given.labels):
        mark = element("span", "★ ", title="chosen") if index in given.chosen else ""
        cells = (_bar(column[index], most) for column in values)
        rows.append(element("tr", _row_name(candidate, mark), *cells, Class="chosen" if mark else None))
    note = sentences("★ was chosen." if given.chosen else "", given.note)
    table = _grid(["", *names] if len(names) > 1 else [], rows, "bars")
    return figure(given.name, scroll(table, given.name), note=note)


def _bar(value: float | None, most: float) -> str:
    if value is None:
        return element("td", element("span", "excluded"), Class="excluded")
    share = max(value / most, 0) if np.isfinite(value) else 0
    bar = element("span", "", Class="bar", style=f"--v:{share:.4f}")
    return element("td", number(value, probability, "span"), bar)


def _tree(given: blocks.Tree) -> str:
    kinds = (element("li", f"{mark} {state}".strip(), Class=f"node {state}") for state, mark in STATES.items())
    legend = element("ul", *kinds, Class="states", aria_label="States")
    return figure(given.name, legend, scroll(element("ul", _branch(given.root), Class="tree"), given.name))


def _branch(branch: blocks.Branch) -> str:
    token = element("span", f"{STATES[branch.state]} ".lstrip() + label(branch.label or "(nothing)"), Class="token")
    score = number(branch.score, lambda each: written(each, 3), "span", Class="score")
    node = element("div", token, " ", score, Class=f"node {branch.state}", title=branch.state)
    grown = [element("ul", *map(_branch, branch.branches))] if branch.branches else []
    return element("li", node, *grown, Class="way" if branch.state == "chosen" else None)


def _curves(given: blocks.Curves) -> str:
    """Draw a plot, with its legend above and its values in a table that opens."""
    most = max((len(x) for x, _ in given.lines.values()), default=0)
    step = max(1, -(-most // MOST_POINTS))
    drawing, lines, rows, legend = Drawing(*_PLOT), {}, [], []
    for index, (name, (x, y)) in enumerate(given.lines.items()):
        end = len(x) - 1
        kept = [*range(0, end, step), end] if len(x) else []
        lines[name] = [x[place] for place in kept], [y[place] for place in kept]
        for place in sorted({round(row * end / (_POINTS - 1)) for row in range(_POINTS)}) if len(x) else []:
            numbers = (number(float(each[place]), "{:.6g}".format) for each in (x, y))
            rows.append(element("tr", _row_name(name), *numbers))
        last = [" ", number(float(y[-1]), Axis.label, "span", Class="last")] if len(y) else []
        legend.append(element("li", swatch(Style.of(index)).inline("", "swatch"), " ", label(name), *last))
    plot(drawing, replace(given, name="", lines=lines), (0, 0, *_PLOT))
    about = f"{given.name}: {given.y or 'lines'} over {given.x or 'steps'}: {', '.join(given.lines)}"
    table = _grid(("line", given.x or "x", given.y or "y"), rows, "numbers")
    return figure(
        given.name,
        element("ul", *legend, Class="lines", aria_label="Lines, each with its last value"),
        scroll(drawing.inline(about, "plot"), given.name),
        element("details", element("summary", "Values"), scroll(table, f"{given.name}, values")),
        note=f"Of {most} points, one of every {step} is drawn." if step > 1 else "",
    )


_SHOWN: dict[type, Callable[..., str]] = {
    blocks.Text: _text,
    blocks.Formula: _formula,
    blocks.Code: _code,
    blocks.Numbers: _numbers,
    blocks.Heat: _maps,
    blocks.Maps: _maps,
    blocks.Bars: _bars,
    blocks.Table: _table,
    blocks.Curves: _curves,
    blocks.Tree: _tree,
    blocks.Erratum: _erratum,
}


def _grid(header: Sequence[str], rows: Iterable[str], kind: str) -> str:
    """Write a table with rows that are HTML already. An empty name has no cell of a header."""
    names = (element("th", label(each), scope="col") if each else "<td></td>" for each in header)
    head = element("thead", element("tr", *names)) if header else ""
    return element("table", head, element("tbody", *rows), Class=kind)


def _row_name(name: str, mark: str = "") -> str:
    return element("th", mark, label(name), scope="row")


def element(name: str, *content: str, between: str = "", **attributes: object) -> str:
    """Put an element around content that is HTML already. An attribute that is None is left out; `Class` is class."""
    given = "".join(
        f' {("class" if key == "Class" else key).replace("_", "-")}="{escape(visible(str(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return f"<{name}{given}>{between}{between.join(content)}{between}</{name}>"


def text(content: object) -> str:
    """Write text as HTML; line ends stay, other control characters are made visible."""
    return "\n".join(escape(visible(line)) for line in str(content).replace("\t", "    ").split("\n"))


def label(content: object) -> str:
    """Name a row, a column or a node: cut where it is very long, with the sign of a space paler than the rest."""
    return _pale(text(clipped(str(content), _LONGEST_LABEL)))


def inline(content: str, plain: bool = False) -> str:
    """Write text as HTML, with what stands between backticks set as code; plain: without them."""
    content = _MINUS.sub(lambda found: found[1] or "\u2212", content)
    if plain:
        return text(re.sub("`([^`\n]+)`", r"\1", content))
    return re.sub("`([^`\n]+)`", r"<code>\1</code>", _pale(text(content)))


def _pale(content: str) -> str:
    return content.replace(SPACE, f'<span class="space">{SPACE}</span>')


def number(value: float, figure: Callable[[float], str], name: str = "td", **attributes: object) -> str:
    """Write a number as it is read, with its full value beside it: what float() reads back exactly."""
    full = repr(value.item() if hasattr(value, "item") else value)
    return element(name, signed(text(figure(value))), data_value=full, **attributes)


def signed(figure: str) -> str:
    """Make a minus sign as wide as a digit."""
    return figure.replace("-", "\u2212")


def scroll(content: str, name: str) -> str:
    """Put content into a box that scrolls sideways where it is too wide, also by keys."""
    return element("div", content, Class="scroll", tabindex=0, role="region", aria_label=name or "numbers")


def figure(name: str, *content: str, note: str = "", kind: str = "", shape: Array | None = None) -> str:
    """Make a figure with its caption above and a note below."""
    shaped = "" if shape is None else " " + element("span", text(np.shape(shape)), Class="shape")
    caption = [element("figcaption", inline(name) + shaped)] if name or shaped else []
    notes = [element("p", inline(note), Class="note")] if note else []
    return element("figure", *caption, *content, *notes, Class=kind or None)
