"""Heat maps in a terminal: digits, and behind them colours where there are any."""

from collections.abc import Sequence

import numpy as np

from toolkit.display import visible
from toolkit.explain.pages.blocks import Heat, Maps
from toolkit.explain.pages.scale import Scale
from toolkit.explain.pages.terminal_paint import DIM, Paint, ground, plain
from toolkit.explain.pages.writing import cells, clipped, left_out, padded, wrapped, written

MOST_ROWS = 40  # of a map

_LABEL, _COLUMN = 16, 8  # cells of a label
_HIDDEN = "·"
_SMALL = 3  # cells of a number in a small map: "35" for 0.35


def heat_lines(block: Heat, width: int, brush: Paint = plain) -> list[str]:
    """One map: two decimals a cell if all columns fit so, else hundredths."""
    scale = Scale.of([block])
    labels = _labels(block.columns)
    wide = max(4 if scale.low >= 0 else 6, min(max(map(cells, labels), default=0), _COLUMN)) + 1
    beside = _beside(block.rows, width)
    name = wrapped(f"{block.name}  {np.shape(block.values)}", width)
    if beside + wide * len(labels) <= width or not scale.is_share:
        columns = max(1, min(len(labels), (width - beside - 2) // wide)) if labels else 0
        header = [padded("", beside) + "".join(padded(each, wide, right=True) for each in labels[:columns])]
        rows = _rows(block, columns, beside, wide, scale, brush)
        legend = []
    else:
        columns = max(1, min(len(labels), (width - beside - 2) // _SMALL))
        header = [padded("", beside) + _numbered(columns)]
        rows = _rows(block, columns, beside, _SMALL, scale, brush)
        legend = _legend(labels[:columns], width)
    return name + header + rows + legend + _notes([block], columns, width, brush)


def maps_lines(block: Maps, width: int, brush: Paint = plain) -> list[str]:
    """Small maps beside each other, hundredths a cell, of one scale."""
    if not block.maps:
        return []
    first, scale = block.maps[0], Scale.of(block.maps)
    if not scale.is_share or len(block.maps) == 1:
        return [line for each in block.maps for line in [*heat_lines(each, width, brush), ""]][:-1]
    beside, total = _beside(first.rows, width), len(first.columns)
    columns = max(1, min(total, (width - beside - 2) // _SMALL))
    breadth = max(columns * _SMALL, min(max(cells(each.name) for each in block.maps), width - beside - 2))
    across = max(1, (width - beside) // (breadth + 2))
    found = []
    for begin in range(0, len(block.maps), across):
        band = block.maps[begin : begin + across]
        found.append(padded("", beside) + "  ".join(padded(visible(each.name), breadth) for each in band).rstrip())
        found.append(padded("", beside) + "  ".join(padded(_numbered(columns), breadth) for _ in band).rstrip())
        found += [*_band(band, columns, beside, breadth, scale, brush), ""]
    return found + _legend(_labels(first.columns)[:columns], width) + _notes(block.maps, columns, width, brush)


def _band(band: Sequence[Heat], columns: int, beside: int, breadth: int, scale: Scale, brush: Paint) -> list[str]:
    """The rows of maps that stand beside each other, with the labels in front of the first one."""
    parts = [_rows(each, columns, beside, _SMALL, scale, brush, labelled=False) for each in band]
    space = " " * (breadth - columns * _SMALL)
    labels = (padded(label, beside) for label in _labels(band[0].rows))
    return [label + (space + "  ").join(row) for label, row in zip(labels, zip(*parts, strict=True), strict=False)]


def _rows(
    block: Heat, columns: int, beside: int, wide: int, scale: Scale, brush: Paint, labelled: bool = True
) -> list[str]:
    values = np.asarray(block.values)[:MOST_ROWS, :columns]
    hidden = np.zeros(values.shape, bool) if block.hidden is None else np.asarray(block.hidden)[:MOST_ROWS, :columns]
    found = []
    for label, row, dark in zip(_labels(block.rows), values.tolist(), hidden.tolist(), strict=False):
        shown = "".join(_cell(value, away, wide, scale, brush) for value, away in zip(row, dark, strict=True))
        more = " …" if columns < len(block.columns) and labelled else ""
        found.append((padded(label, beside) if labelled else "") + shown + more)
    return found


def _cell(value: float, hidden: bool, wide: int, scale: Scale, brush: Paint) -> str:
    if hidden:
        return brush(padded(_HIDDEN, wide, right=True), DIM)
    text = f"{100 * value:.0f}" if wide == _SMALL else written(value, 2)
    return brush(padded(text, wide, right=True), ground(scale.share(value)))


def _labels(names: Sequence[str]) -> list[str]:
    return [visible(str(name)) for name in names]


def _beside(rows: Sequence[str], width: int) -> int:
    """Cells of the labels in front of rows."""
    return min(max(map(cells, _labels(rows)), default=0), _LABEL, width // 3)


def _numbered(columns: int) -> str:
    return "".join(padded(str(index % 100), _SMALL, right=True) for index in range(1, columns + 1))


def _legend(labels: Sequence[str], width: int) -> list[str]:
    names = (f"{index} {clipped(label, _LABEL)}" for index, label in enumerate(labels, start=1))
    return wrapped(f"columns: {' · '.join(names)}; cells in hundredths", width, "  ")


def _notes(maps: Sequence[Heat], columns: int, width: int, brush: Paint) -> list[str]:
    """What a reader has to know, each said once: notes, what is hidden, what is left out."""
    first = maps[0]
    notes = [each.note for each in maps if each.note]
    if any(each.hidden is not None and np.any(each.hidden) for each in maps):
        notes.append(f"{_HIDDEN} is hidden by the mask.")
    notes += [left_out(min(len(first.rows), MOST_ROWS), len(first.rows), "rows")]
    notes += [left_out(columns, len(first.columns), "columns")]
    unique = dict.fromkeys(note for note in notes if note)
    return [brush(line, DIM) for note in unique for line in wrapped(note, width, "  ")]
