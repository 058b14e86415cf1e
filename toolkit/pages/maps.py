"""Maps of weights, such as those of attention: their scale of colours, in a terminal, and laid out as a drawing.

>>> picture(heat)                   # in a notebook, shows itself
>>> picture(heat).save("map.png")   # or "map.svg"
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from toolkit.display import visible
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.pages.blocks import Heat, Maps, Page
from toolkit.pages.drawing import INK, PALE, Box, Cells, Drawing, Label, seen, text_width
from toolkit.pages.writing import (
    DIM,
    Paint,
    cells,
    clipped,
    ground,
    left_out,
    padded,
    plain,
    wrapped,
    written,
)

# In a terminal.
MOST_ROWS = 40  # of a map
_LABEL, _COLUMN = 16, 8  # cells of a label
_HIDDEN = "·"
_SMALL = 3  # cells of a number in a small map: "35" for 0.35

# In a drawing, in pixels of its own size.
_MARGIN, _GAP = 16, 26
_HEADING, _TITLE, _NOTE, _NUMBER = 16.0, 13.0, 11.0, 10.0  # sizes of fonts
_LINE = 16  # from one line of a note to the next
_WIDEST = 1800  # a row of maps ends before it is wider
_FEW = 3  # a group of up to three maps is drawn large
_NUMBERED = 30  # from this size on, cells have their number in them
_ANGLE = -50  # degrees of the names of columns that do not fit above their cells

# The colours: from nothing to much, and from negative to positive (both of ColorBrewer, Harrower and Brewer 2003).
_BLUES = ("f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b")
_BOTH = ("2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b")
_MASKED = (205, 205, 205)


@dataclass(frozen=True)
class Scale:
    """The colour scale of maps beside each other: it begins at 0, or where numbers are negative, as far below 0 as it
    ends above.

    low, high: the smallest and the largest number, or 0.
    """

    low: float
    high: float

    @classmethod
    def of(cls, maps: Sequence[Heat]) -> "Scale":
        """Take the numbers of all cells that no mask hides."""
        values = np.concatenate([np.asarray(each.values, float)[~hidden(each)] for each in maps])
        return cls(float(values.min(initial=0)), float(values.max(initial=0)))

    @property
    def is_share(self) -> bool:
        """True for weights between 0 and 1."""
        return self.low >= 0 and self.high <= 1 + 1e-6

    @property
    def ends(self) -> tuple[float, float]:
        """The numbers of the first and the last colour."""
        most = max(self.high, -self.low) or 1.0
        return (-most if self.low < 0 else 0.0), most

    def shares(self, values: Array) -> Array:
        """Place numbers between the ends, 0 to 1; what is no number is at 0."""
        low, high = self.ends
        return np.clip((np.nan_to_num(np.asarray(values, float)) - low) / (high - low), 0, 1)

    def colors(self, values: Array) -> Array:
        """Choose the colours of numbers in a drawing.  (...) -> (..., 3), uint8."""
        stops = np.array([[*bytes.fromhex(name)] for name in (_BOTH if self.low < 0 else _BLUES)], dtype=np.float64)
        places = self.shares(values) * (len(stops) - 1)
        channels = [np.interp(places, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
        return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


def hidden(block: Heat) -> Array:
    """Find the cells that show no number: a mask hides them, or there is none.  Returns booleans (T, S)."""
    unknown = ~np.isfinite(np.asarray(block.values, float))
    return unknown if block.hidden is None else unknown | np.asarray(block.hidden, bool)


def notes(maps: Sequence[Heat], rows: int, columns: int, masked: str) -> list[str]:
    """Collect what a reader must know, each once: the maps' notes, what is masked, what does not fit."""
    first = maps[0]
    found = [each.note for each in maps]
    found += [masked] if any(each.hidden is not None and np.any(each.hidden) for each in maps) else []
    found.append(left_out(min(len(first.rows), rows), len(first.rows), "rows"))
    found.append(left_out(min(len(first.columns), columns), len(first.columns), "columns"))
    return [note for note in dict.fromkeys(found) if note]


def heat_lines(block: Heat, width: int, brush: Paint = plain) -> list[str]:
    """Write one map for a terminal: two decimals a cell if all columns fit, else hundredths."""
    scale, labels = Scale.of([block]), _labels(block.columns)
    beside = _beside(block.rows, width)
    wide = max(4 if scale.low >= 0 else 6, min(max(map(cells, labels), default=0), _COLUMN)) + 1
    small = scale.is_share and beside + wide * len(labels) > width
    wide = _SMALL if small else wide
    fits = beside + wide * len(labels) <= width
    columns = len(labels) if fits else max(1, min(len(labels), (width - beside - 2) // wide))
    names = _numbered(columns) if small else "".join(padded(each, wide, right=True) for each in labels[:columns])
    more = " …" * (columns < len(labels))
    rows = [label + row + more for label, row in _rows(block, columns, beside, wide, scale, brush)]
    legend = _legend(labels[:columns], width) if small else []
    heading = [*wrapped(f"{block.name}  {np.shape(block.values)}", width), padded("", beside) + names]
    return heading + rows + legend + _note_lines([block], columns, width, brush)


def maps_lines(block: Maps, width: int, brush: Paint = plain) -> list[str]:
    """Write small maps beside each other for a terminal, hundredths a cell, of one scale."""
    if not block.maps:
        return []
    first, scale = block.maps[0], Scale.of(block.maps)
    if not scale.is_share or len(block.maps) == 1:
        return [line for each in block.maps for line in [*heat_lines(each, width, brush), ""]][:-1]
    beside, total = _beside(first.rows, width), len(first.columns)
    columns = max(1, min(total, (width - beside - 2) // _SMALL))
    breadth = max(columns * _SMALL, min(max(cells(each.name) for each in block.maps), width - beside - 2))
    across = max(1, (width - beside) // (breadth + 2))
    gap = " " * (breadth - columns * _SMALL + 2)
    found = []
    for begin in range(0, len(block.maps), across):
        band = block.maps[begin : begin + across]
        for names in ([visible(each.name) for each in band], [_numbered(columns)] * len(band)):
            found.append(padded("", beside) + "  ".join(padded(each, breadth) for each in names).rstrip())
        parts = [_rows(each, columns, beside, _SMALL, scale, brush) for each in band]
        found += [row[0][0] + gap.join(part for _, part in row) for row in zip(*parts, strict=True)]
        found.append("")
    return found + _legend(_labels(first.columns)[:columns], width) + _note_lines(block.maps, columns, width, brush)


def _rows(block: Heat, columns: int, beside: int, wide: int, scale: Scale, brush: Paint) -> list[tuple[str, str]]:
    """Write the label and the cells of each row."""
    values = np.asarray(block.values)[:MOST_ROWS, :columns]
    away = np.zeros(values.shape, bool) if block.hidden is None else np.asarray(block.hidden)[:MOST_ROWS, :columns]
    found = []
    parts = (values.tolist(), scale.shares(values).tolist(), away.tolist())
    for label, *row in zip(_labels(block.rows), *parts, strict=False):
        line = ""
        for value, share, dark in zip(*row, strict=True):
            text = _HIDDEN if dark else f"{100 * value:.0f}" if wide == _SMALL else written(value, 2)
            line += brush(padded(text, wide, right=True), DIM if dark else ground(share))
        found.append((padded(label, beside), line))
    return found


def _labels(names: Sequence[str]) -> list[str]:
    return [visible(str(name)) for name in names]


def _beside(rows: Sequence[str], width: int) -> int:
    """Count the cells of the labels in front of rows."""
    return min(max(map(cells, _labels(rows)), default=0), _LABEL, width // 3)


def _numbered(columns: int) -> str:
    return "".join(padded(str(index % 100), _SMALL, right=True) for index in range(1, columns + 1))


def _legend(labels: Sequence[str], width: int) -> list[str]:
    names = (f"{index} {clipped(label, _LABEL)}" for index, label in enumerate(labels, start=1))
    return wrapped(f"columns: {' · '.join(names)}; cells in hundredths", width, "  ")


def _note_lines(maps: Sequence[Heat], columns: int, width: int, brush: Paint) -> list[str]:
    told = notes(maps, MOST_ROWS, columns, f"{_HIDDEN} is hidden by the mask.")
    return [brush(line, DIM) for note in told for line in wrapped(note, width, "  ")]


def picture(blocks: Heat | Maps | Sequence[Heat | Maps]) -> Drawing:
    """Draw one map, or several below each other; those of a `Maps` stand side by side.

    Raises ConfigError where there is none, or where the labels of a map are not as many as its rows and columns.
    """
    groups = [blocks] if isinstance(blocks, Heat | Maps) else list(blocks)
    if not groups:
        raise ConfigError("there is no map of weights to draw")
    return _arranged([group.maps if isinstance(group, Maps) else [group] for group in groups])


def page_picture(page: Page) -> Drawing:
    """Draw all maps of an explanation as one picture, under the titles of their sections.

    Single maps with the same labels and names of their own stand side by side, wherever they come from.
    Raises ConfigError where it has none.
    """
    groups: list[list[Heat]] = []
    headings: list[str] = []
    single: dict[tuple, int] = {}  # labels -> the number of their group
    for section in page.sections:
        for block in section.blocks:
            heats = list(block.maps) if isinstance(block, Maps) else [block] if isinstance(block, Heat) else []
            labels = tuple((*heat.rows, "", *heat.columns) for heat in heats)
            place = single.setdefault(labels, len(groups)) if len(heats) == 1 else len(groups)
            if place < len(groups) and heats[0].name not in {heat.name for heat in groups[place]}:
                headings[place] = headings[place] if headings[place] == section.title else ""
                groups[place] += heats
            elif heats:
                groups.append(heats)
                headings.append(section.title)
    if not groups:
        raise ConfigError(f"there is no map of weights to draw in {page.title!r}")
    return _arranged(groups, headings if len(set(headings)) > 1 else ())


def map_drawing(heat: Heat, scale: Scale, large: bool) -> Drawing:
    """Draw one map alone, without its name and its note, for a page that has them in its text."""
    drawing, shape = Drawing(), _Shape(replace(heat, name="", note=""), large)
    drawing.height = math.ceil(_map(drawing, shape, scale, (0, 0, shape.top))) + 1
    drawing.width = shape.width + 1
    return drawing


def scale_drawing(scale: Scale, masks: bool) -> Drawing:
    """Draw the scale of some maps alone.  masks: whether a mask hides some of their cells."""
    drawing = Drawing()
    drawing.height = math.ceil(_bar(drawing, scale, masks, (0, 1))) + 1
    return drawing


class _Shape:
    """The measures of one map, from what its labels need."""

    def __init__(self, heat: Heat, large: bool):
        self.heat, values = heat, np.asarray(heat.values)
        if values.shape != (len(heat.rows), len(heat.columns)) or not values.size:
            raise ConfigError(
                f"the map {heat.name!r} has values of shape {values.shape}: it needs one for each of its "
                f"{len(heat.rows)} rows and {len(heat.columns)} columns"
            )
        most = max(values.shape)
        least = np.clip(1200 // most, 5, 9)  # where a label can still be read
        self.cell = float(np.clip((620 if large else 230) // most, least, 34 if large else 20))
        self.font = float(np.clip(0.62 * self.cell, max(4, 0.75 * least), 12 if large else 9.5))
        self.left = math.ceil(max(text_width(seen(name)) for name in heat.rows) * self.font + 6)
        widths = [text_width(seen(name)) * self.font for name in heat.columns]
        self.leaning = max(widths) > self.cell - 2
        across, up = math.cos(math.radians(_ANGLE)), -math.sin(math.radians(_ANGLE))
        self.top = math.ceil((max(widths) * up + self.font if self.leaning else 1.3 * self.font) + 4)
        ends = [(column + 0.6) * self.cell + width * across for column, width in enumerate(widths)]
        inside = values.shape[1] * self.cell
        self.inside = inside, values.shape[0] * self.cell
        wanted = max(inside, *ends) if self.leaning else inside
        self.title = math.ceil(1.7 * _TITLE) if heat.name else 0
        self.width = max(self.left + wanted, text_width(seen(heat.name)) * _TITLE * 1.1)
        fit = int(max(self.width, 320) / (0.65 * _NOTE))  # letters of a middle width
        self.notes = wrapped(seen(heat.note), fit) if heat.note else []
        self.width = math.ceil(max(self.width, *(text_width(line) * _NOTE for line in self.notes), 0))


def _arranged(groups: Sequence[Sequence[Heat]], headings: Sequence[str] = ()) -> Drawing:
    """Draw groups of maps below each other, each with its scale, and a heading where it is not empty.

    Raises ConfigError for a map whose labels do not fit.
    """
    drawing, y = Drawing(), float(_MARGIN)
    for group, heading in zip(groups, headings or [""] * len(groups), strict=True):
        if heading:
            drawing.labels.append(Label(_MARGIN, y + _HEADING, seen(heading), _HEADING, bold=True))
            drawing.width, y = max(drawing.width, _MARGIN + text_width(heading) * _HEADING * 1.1), y + 2 * _HEADING
        y = _group(drawing, group, y) + _GAP
    drawing.width, drawing.height = math.ceil(drawing.width + _MARGIN), math.ceil(y - _GAP + _MARGIN)
    return drawing


def _group(drawing: Drawing, group: Sequence[Heat], y: float) -> float:
    """Draw the maps of a group in rows, from y downward, and their scale -> where they end."""
    shapes = [_Shape(heat, large=len(group) <= _FEW) for heat in group]
    scale, count = Scale.of(group), _side_by_side(shapes)
    right = 0.0
    for first in range(0, len(shapes), count):
        row, x = shapes[first : first + count], float(_MARGIN)
        title, top = max(shape.title for shape in row), max(shape.top for shape in row)
        bottom = y
        for shape in row:
            end = _map(drawing, shape, scale, (x, y + title - shape.title, y + title + top))
            x, bottom = x + shape.width + _GAP, max(bottom, end)
        right, y = max(right, x), bottom + _GAP
    drawing.width = max(drawing.width, right - _GAP)
    return _bar(drawing, scale, any(hidden(heat).any() for heat in group), (float(_MARGIN), y - 10))


def _side_by_side(shapes: Sequence[_Shape]) -> int:
    """Count the maps of a row: as many as fit, and in full rows if that is possible with nearly as many."""
    widest = max(shape.width for shape in shapes) + _GAP
    fit = int(max(1, min(len(shapes), max(_WIDEST // widest, math.sqrt(len(shapes))))))
    return next((count for count in range(fit, fit // 2, -1) if len(shapes) % count == 0), fit)


def _map(drawing: Drawing, shape: _Shape, scale: Scale, place: tuple[float, float, float]) -> float:
    """Draw a map; place: its left end, its upper end, and the upper end of its cells -> its lower end."""
    heat, (left, upper, y) = shape.heat, place
    x, cell, font, masked = left + shape.left, shape.cell, shape.font, hidden(heat)
    colors = scale.colors(heat.values)
    colors[masked] = _MASKED
    drawing.cells.append(Cells(x, y, cell, colors, np.asarray(heat.values), masked, heat.rows, heat.columns))
    drawing.boxes.append(Box(x, y, *shape.inside, stroke="#999999"))
    if heat.name:
        drawing.labels.append(Label(left, upper + _TITLE, seen(heat.name), _TITLE, bold=True))
    for row, name in enumerate(heat.rows):
        drawing.labels.append(Label(x - 5, y + (row + 0.5) * cell + 0.35 * font, seen(name), font, "end"))
    for column, name in enumerate(heat.columns):
        style = (font, "start", _ANGLE) if shape.leaning else (font, "middle")
        shift = 0.5 * cell + (0.3 * font if shape.leaning else 0)
        drawing.labels.append(Label(x + column * cell + shift, y - 5, seen(name), *style))
    if cell >= _NUMBERED:
        dark = colors @ np.array([0.299, 0.587, 0.114]) < 140  # the brightness of BT.601
        for row, column in np.argwhere(~masked):
            middle = x + (column + 0.5) * cell, y + (row + 0.5) * cell + 0.35 * _NUMBER
            tint = "#ffffff" if dark[row, column] else INK
            drawing.labels.append(Label(*middle, f"{heat.values[row, column]:.2f}", _NUMBER, "middle", color=tint))
    lower = y + shape.inside[1]
    for number, line in enumerate(shape.notes, start=1):
        drawing.labels.append(Label(left, lower + _LINE * number, line, _NOTE, color=PALE))
    return lower + _LINE * len(shape.notes)


def _bar(drawing: Drawing, scale: Scale, masks: bool, place: tuple[float, float]) -> float:
    """Draw a scale: colours with the numbers at both ends, and what grey means -> its lower end."""
    (x, y), width, steps = place, 120.0, 40
    low, high = scale.ends
    colors = scale.colors(np.linspace(low, high, steps))
    start = math.ceil(x + text_width(f"{low:.3g}") * _NUMBER + 6)
    for step in range(steps):
        fill = "#" + colors[step].tobytes().hex()
        drawing.boxes.append(Box(start + step * width / steps, y, width / steps, 9, fill))
    drawing.boxes.append(Box(start, y, width, 9, stroke="#999999"))
    drawing.labels.append(Label(x, y + 8.5, f"{low:.3g}", _NUMBER, color=PALE))
    end = start + width + 6
    drawing.labels.append(Label(end, y + 8.5, f"{high:.3g}", _NUMBER, color=PALE))
    if masks:
        end += 60
        drawing.boxes.append(Box(end, y, 9, 9, "#cdcdcd", "#999999"))
        drawing.labels.append(Label(end + 15, y + 8.5, "masked", _NUMBER, color=PALE))
        end += 60
    drawing.width = max(drawing.width, end + 40)
    return y + 9
