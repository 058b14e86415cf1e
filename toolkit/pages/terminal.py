"""A page as lines of text, for a terminal of any width or for a pipe.

With colour, maps are coloured and headings bold; without, all of it is plain characters.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import accumulate, groupby, zip_longest

import numpy as np

from toolkit.display import visible
from toolkit.pages import blocks
from toolkit.pages.curves import curves_lines
from toolkit.pages.maps import heat_lines, maps_lines
from toolkit.pages.writing import (
    BLUE,
    BOLD,
    DIM,
    GREEN,
    MOST_COLUMNS,
    MOST_ROWS,
    RED,
    STATES,
    Paint,
    cells,
    clipped,
    figures,
    left_out,
    padded,
    paint,
    plain,
    probability,
    wrapped,
    written,
)

NARROWEST = 24  # columns: below that, nothing is readable, and lines are this long

_LABEL = 18  # cells of a row's label, at most
_BETWEEN = 4  # cells between arrays that stand beside each other
_INDENT = "    "
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_STYLES = {"kept": "0", "dropped": DIM, "ended": BLUE, "chosen": f"{BOLD};{GREEN}"}


def lines(page: blocks.Page, width: int = 100, color: bool = False) -> list[str]:
    """Write a page as lines of at most `width` cells (24 at least), with colours of a terminal or without."""
    width = max(width, NARROWEST)
    brush = paint if color else plain
    found = [brush(line, BOLD) for line in wrapped(page.title, width)]
    found += ["═" * max(map(cells, wrapped(page.title, width))), *wrapped(page.about, width)]
    found += [line for cut in page.cut for line in wrapped(f"! {cut}", width, more="  ")]
    for number, section in enumerate(page.sections, start=1):
        found += _section(section, f"{number}. {section.title}", width, brush)
    return found


def _section(section: blocks.Section, title: str, width: int, brush: Paint) -> list[str]:
    heading = wrapped(title, width)
    found = ["", "", *(brush(line, BOLD) for line in heading), "─" * max(map(cells, heading))]
    for kind, group in groupby(section.blocks, type):
        parts = [block_lines(block, width, brush) for block in group]
        for part in _packed(parts, width) if kind is blocks.Numbers else parts:
            found += ["", *part]
    return found


def _packed(parts: Sequence[list[str]], width: int) -> Iterator[list[str]]:
    """Put arrays that follow each other beside each other, as far as they fit. Numbers have no colours."""
    row, *rest = parts
    for part in rest:
        used = max(map(cells, row)) + _BETWEEN
        if used + max(map(cells, part)) <= width:
            both = zip_longest(row, part, fillvalue="")
            row = [padded(left, used) + right if right else left for left, right in both]
        else:
            yield row
            row = part
    yield row


def block_lines(block: blocks.Block, width: int, brush: Paint = plain) -> list[str]:
    """Write one block as lines of at most `width` cells."""
    return _SHOWN[type(block)](block, width, brush)


def _text(block: blocks.Text, width: int, brush: Paint) -> list[str]:
    return wrapped(block.text, width)


def _formula(block: blocks.Formula, width: int, brush: Paint) -> list[str]:
    return wrapped(block.text.strip("\n"), width, _INDENT, "    ")


def _code(block: blocks.Code, width: int, brush: Paint) -> list[str]:
    where = [brush(line, DIM) for line in wrapped(block.where, width)] if block.where else []
    return where + wrapped(block.text.strip("\n"), width, _INDENT if width > 60 else "", "      ")


def _numbers(block: blocks.Numbers, width: int, brush: Paint) -> list[str]:
    values = np.atleast_2d(block.values)
    (height, breadth), figure = values.shape, figures(values, block.digits)
    rows, columns = min(height, MOST_ROWS), min(breadth, MOST_COLUMNS)
    shown = [[figure(value) for value in row] for row in values[:rows, :columns].tolist()]
    labels = [visible(str(label)) for label in block.rows[:rows]] or [""] * rows
    header = [visible(str(label)) for label in block.columns[:columns]]
    beside = min(max(map(cells, labels), default=0), _LABEL, width // 3)
    lines = [("", header)] * bool(header) + list(zip(labels, shown, strict=False))
    widths = [max([cells(row[index]) for row in shown] or [1]) for index in range(columns)]
    widths = [max(each, min(cells(label), 12)) for each, label in zip_longest(widths, header, fillvalue="")]
    fit = sum(used <= width - beside - 2 for used in accumulate(each + 2 for each in widths))
    columns = max(fit, min(columns, 1))
    found = wrapped(f"{block.name}  {np.shape(block.values)}", width)
    for label, row in lines:
        parts = ("  " + padded(cell, each, right=True) for cell, each in zip(row, widths[:columns], strict=False))
        found.append(padded(label, beside) + "".join(parts) + " …" * (columns < breadth))
    notes = (block.note, left_out(rows, height, "rows"), left_out(columns, breadth, "columns"))
    return found + [line for note in notes if note for line in wrapped(note, width, "  ")]


def _table(block: blocks.Table, width: int, brush: Paint) -> list[str]:
    rows = [[visible(str(cell)) for cell in row] for row in (block.header, *block.rows)]
    widths = [max(map(cells, column)) for column in zip(*rows, strict=True)]
    if sum(widths) + 2 * len(widths) - 2 > width < 8 * len(widths):
        return _records(rows, width, brush)
    while sum(widths) + 2 * len(widths) - 2 > width:
        widths[widths.index(max(widths))] -= 1
    found = []
    for row in rows:
        folded = [wrapped(cell, each) for cell, each in zip(row, widths, strict=True)]
        for index in range(max(map(len, folded))):
            parts = [part[index] if index < len(part) else "" for part in folded]
            padding = [padded(part, widths[at], at not in block.left) for at, part in enumerate(parts)]
            found.append("  ".join(padding).rstrip())
    count = max(len(wrapped(cell, each)) for cell, each in zip(rows[0], widths, strict=True))
    rule = "─" * (sum(widths) + 2 * len(widths) - 2)
    return [*(brush(line, BOLD) for line in found[:count]), rule, *found[count:]]


def _records(rows: Sequence[Sequence[str]], width: int, brush: Paint) -> list[str]:
    """Write a table of too many columns: each cell in a line of its own behind the name of its column."""
    header, *rest = rows
    found = []
    for row in rest:
        found += [brush(line, BOLD) for line in wrapped(row[0], width)]
        for name, cell in zip(header[1:], row[1:], strict=True):
            found += wrapped(f"{name}: {cell}", width, "  ", "  ")
    return found


def _erratum(block: blocks.Erratum, width: int, brush: Paint) -> list[str]:
    found = [brush(line, RED) for line in wrapped(f"✗ Document {block.document} errs: {block.place}", width, more="  ")]
    found += wrapped(f"printed   {block.printed}", width, "  │ ", " " * 10)
    found += wrapped(f"computed  {block.computed}", width, "  │ ", " " * 10)
    return found + (wrapped(block.why, width, "  │ ") if block.why else [])


def _bars(block: blocks.Bars, width: int, brush: Paint) -> list[str]:
    """Write a line for each candidate, with a bar and a number in each column."""
    labels = [visible(str(label)) for label in block.labels]
    beside = min(max(map(cells, labels), default=0), 24, width // 3)
    names = list(block.columns)
    most = max((value for column in block.columns.values() for value in column if value is not None), default=0)
    room = (width - beside - 2) // max(len(names), 1) - 10
    if len(names) > 1 and room < 6:  # one below the other instead
        parts = [replace(block, name=f"{block.name}: {each}", columns={each: block.columns[each]}) for each in names]
        lines = [line for part in parts for line in _bars(replace(part, note=""), width, brush)]
        return lines + _note(block.note, width, brush)
    room = max(1, min(room, 40))
    found = wrapped(block.name, width)
    if len(names) > 1:
        found.append((" " * (beside + 2) + "".join(padded(f"  {visible(each)}", room + 10) for each in names)).rstrip())
    for index, label in enumerate(labels):
        chosen = index in block.chosen
        parts = [_bar(block.columns[each][index], most, room) for each in names]
        line = ("★ " if chosen else "  ") + padded(label, beside) + "".join(parts)
        excluded = all(block.columns[each][index] is None for each in names)
        found.append(brush(line.rstrip(), BOLD if chosen else DIM) if chosen or excluded else line.rstrip())
    return found + _note("★ was chosen." if block.chosen else "", width, brush) + _note(block.note, width, brush)


def _bar(value: float | None, most: float, room: int) -> str:
    """Fill room + 10 cells: two spaces, the number, a space, the bar."""
    if value is None:
        return padded("       -  excluded", room + 10)
    eighths = round(8 * room * max(value, 0) / most) if most > 0 and math.isfinite(value) else 0
    bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return "  " + padded(probability(value), 6, right=True) + " " + padded(bar, room + 1)


def _note(note: str, width: int, brush: Paint) -> list[str]:
    return [brush(line, DIM) for line in wrapped(note, width, "  ")] if note else []


def _tree(block: blocks.Tree, width: int, brush: Paint) -> list[str]:
    """Write a line for each branch, below the one that it grew from."""
    legend = "★ chosen · ■ ended · ✗ dropped; behind each, its score"
    return [*wrapped(block.name, width), *_branch_lines(block.root, "", "", width, brush), *_note(legend, width, brush)]


def _branch_lines(branch: blocks.Branch, lead: str, below: str, width: int, brush: Paint) -> Iterator[str]:
    """Write a branch behind `lead`, and what grows from it behind `below`."""
    score = written(branch.score, 3)
    if cells(lead) > width - 20:  # deeper than the terminal is wide
        lead = "… " + lead[-(width - 22) :].lstrip()
    label = clipped(visible(branch.label) or "(nothing)", max(4, width - cells(lead) - len(score) - 5))
    yield lead + brush(f"{STATES[branch.state]} {label}  {score}".lstrip(), _STYLES[branch.state])
    for index, each in enumerate(branch.branches, start=1):
        last = index == len(branch.branches)
        yield from _branch_lines(each, below + ("└ " if last else "├ "), below + ("  " if last else "│ "), width, brush)


_SHOWN: dict[type, Callable[..., list[str]]] = {
    blocks.Text: _text,
    blocks.Formula: _formula,
    blocks.Code: _code,
    blocks.Numbers: _numbers,
    blocks.Heat: heat_lines,
    blocks.Maps: maps_lines,
    blocks.Bars: _bars,
    blocks.Table: _table,
    blocks.Curves: curves_lines,
    blocks.Tree: _tree,
    blocks.Erratum: _erratum,
}
