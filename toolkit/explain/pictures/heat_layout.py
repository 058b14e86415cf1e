"""Where everything stands in a picture of maps of weights. Lengths are in pixels of the picture in its own size."""

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from toolkit.display import visible
from toolkit.errors import ConfigError
from toolkit.explain.pages.blocks import Heat
from toolkit.explain.pages.scale import Scale, hidden
from toolkit.explain.pictures.drawing import text_width
from toolkit.functional.arrays import Array
from toolkit.tokenization.normal_form import normal_form

_MARGIN, _GAP = 16, 26
_HEADING, _TITLE, _NOTE, _SMALL = 16.0, 13.0, 11.0, 10.0  # sizes of fonts
_LINE = 16  # from one line of a note to the next
_WIDEST = 1800  # what a row of maps grows to before another begins
_FEW = 3  # so many maps of a group are drawn large
_NUMBERED = 30  # cells so large have their number in them
_LINED = 7  # and so large have lines between them
_ANGLE = -50  # degrees of the names of columns that do not fit above their cells

# The colours: from nothing to much, and from negative to positive (both of ColorBrewer, Harrower and Brewer 2003).
_BLUES = ("f7fbff", "deebf7", "c6dbef", "9ecae1", "6baed6", "4292c6", "2171b5", "08519c", "08306b")
_BOTH = ("2166ac", "4393c3", "92c5de", "d1e5f0", "f7f7f7", "fddbc7", "f4a582", "d6604d", "b2182b")
_MASKED = (205, 205, 205)
_INK, _PALE = "#222222", "#666666"


@dataclass(frozen=True)
class Cells:
    """A map: the colour of each of its cells."""

    x: float
    y: float
    size: float
    colors: Array  # (T, S, 3), uint8
    heat: Heat
    hidden: Array  # (T, S)

    @property
    def lined(self) -> bool:
        return self.size >= _LINED

    def told(self, row: int, column: int) -> str:
        """What a viewer says of a cell under the pointer."""
        value = "masked" if self.hidden[row, column] else f"{self.heat.values[row, column]:.4f}"
        return f"{seen(self.heat.rows[row])} → {seen(self.heat.columns[column])}: {value}"


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = "none"


@dataclass(frozen=True)
class Label:
    """A line of text; (x, y) is on its baseline, at its start, middle or end."""

    x: float
    y: float
    text: str
    size: float
    anchor: str = "start"
    angle: float = 0
    color: str = _INK
    bold: bool = False


@dataclass
class Drawing:
    """All that is drawn, the cells first, the texts last."""

    width: float = 0
    height: float = 0
    cells: list[Cells] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    texts: list[Label] = field(default_factory=list)


def colored(scale: Scale, values: Array) -> Array:
    """The colours of numbers.  (...) -> (..., 3), uint8."""
    low, high = scale.ends
    names = _BOTH if low < 0 else _BLUES
    stops = np.array([[*bytes.fromhex(name)] for name in names], dtype=np.float64)
    shares = np.clip((np.nan_to_num(values) - low) / (high - low), 0, 1) * (len(stops) - 1)
    channels = [np.interp(shares, np.arange(len(stops)), stops[:, channel]) for channel in range(3)]
    return np.rint(np.stack(channels, axis=-1)).astype(np.uint8)


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
        self.notes = _wrapped(seen(heat.note), max(self.width, 320) / _NOTE)
        self.width = math.ceil(max(self.width, *(text_width(line) * _NOTE for line in self.notes), 0))


def arranged(groups: Sequence[Sequence[Heat]], headings: Sequence[str] = ()) -> Drawing:
    """Groups of maps below each other, each with its scale, and a heading where it is not empty.

    Raises ConfigError for a map whose labels do not fit.
    """
    drawing, y = Drawing(), float(_MARGIN)
    for group, heading in zip(groups, headings or [""] * len(groups), strict=True):
        if heading:
            drawing.texts.append(Label(_MARGIN, y + _HEADING, seen(heading), _HEADING, bold=True))
            drawing.width, y = max(drawing.width, _MARGIN + text_width(heading) * _HEADING * 1.1), y + 2 * _HEADING
        y = _group(drawing, group, y) + _GAP
    drawing.width, drawing.height = math.ceil(drawing.width + _MARGIN), math.ceil(y - _GAP + _MARGIN)
    return drawing


def _group(drawing: Drawing, group: Sequence[Heat], y: float) -> float:
    """Draw the maps of a group in rows, from y downward -> where they end."""
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
    return _bar(drawing, scale, any(hidden(heat).any() for heat in group), y - 10)


def _side_by_side(shapes: Sequence[_Shape]) -> int:
    """How many maps stand in a row: as many as fit, and in full rows if that is possible with nearly as many."""
    widest = max(shape.width for shape in shapes) + _GAP
    fit = int(max(1, min(len(shapes), max(_WIDEST // widest, math.sqrt(len(shapes))))))
    return next((count for count in range(fit, fit // 2, -1) if len(shapes) % count == 0), fit)


def _map(drawing: Drawing, shape: _Shape, scale: Scale, place: tuple[float, float, float]) -> float:
    """Draw a map; place: its left end, its upper end, and the upper end of its cells -> its lower end."""
    heat, (left, upper, y) = shape.heat, place
    x, cell, font, masked = left + shape.left, shape.cell, shape.font, hidden(heat)
    colors = colored(scale, np.asarray(heat.values, dtype=np.float64))
    colors[masked] = _MASKED
    drawing.cells.append(Cells(x, y, cell, colors, heat, masked))
    drawing.boxes.append(Box(x, y, *shape.inside, stroke="#999999"))
    if heat.name:
        drawing.texts.append(Label(left, upper + _TITLE, seen(heat.name), _TITLE, bold=True))
    for row, name in enumerate(heat.rows):
        drawing.texts.append(Label(x - 5, y + (row + 0.5) * cell + 0.35 * font, seen(name), font, "end"))
    for column, name in enumerate(heat.columns):
        style = (font, "start", _ANGLE) if shape.leaning else (font, "middle")
        shift = 0.5 * cell + (0.3 * font if shape.leaning else 0)
        drawing.texts.append(Label(x + column * cell + shift, y - 5, seen(name), *style))
    if cell >= _NUMBERED:
        _numbers(drawing, heat, masked, colors, (x, y, cell))
    lower = y + shape.inside[1]
    for number, line in enumerate(shape.notes, start=1):
        drawing.texts.append(Label(left, lower + _LINE * number, line, _NOTE, color=_PALE))
    return lower + _LINE * len(shape.notes)


def _numbers(drawing: Drawing, heat: Heat, masked: Array, colors: Array, place: tuple[float, float, float]) -> None:
    x, y, cell = place
    dark = colors @ np.array([0.299, 0.587, 0.114]) < 140  # the brightness of BT.601
    for row, column in np.argwhere(~masked):
        middle = x + (column + 0.5) * cell, y + (row + 0.5) * cell + 0.35 * _SMALL
        tint = "#ffffff" if dark[row, column] else _INK
        drawing.texts.append(Label(*middle, f"{heat.values[row, column]:.2f}", _SMALL, "middle", color=tint))


def _bar(drawing: Drawing, scale: Scale, masks: bool, y: float) -> float:
    """The scale of a group: colours with the numbers at both ends, and what grey means -> its lower end."""
    x, width, steps = float(_MARGIN), 120.0, 40
    low, high = scale.ends
    colors = colored(scale, np.linspace(low, high, steps))
    start = math.ceil(x + text_width(f"{low:.3g}") * _SMALL + 6)
    for step in range(steps):
        fill = "#" + colors[step].tobytes().hex()
        drawing.boxes.append(Box(start + step * width / steps, y, width / steps, 9, fill))
    drawing.boxes.append(Box(start, y, width, 9, stroke="#999999"))
    drawing.texts.append(Label(x, y + 8.5, f"{low:.3g}", _SMALL, color=_PALE))
    end = start + width + 6
    drawing.texts.append(Label(end, y + 8.5, f"{high:.3g}", _SMALL, color=_PALE))
    if masks:
        end += 60
        drawing.boxes.append(Box(end, y, 9, 9, "#cdcdcd", "#999999"))
        drawing.texts.append(Label(end + 15, y + 8.5, "masked", _SMALL, color=_PALE))
        end += 60
    drawing.width = max(drawing.width, end + 40)
    return y + 9


def _wrapped(text: str, width: float) -> list[str]:
    """Lines of a text, none wider than so many heights of its font if its words are not."""
    lines: list[str] = []
    for word in text.split():
        if lines and text_width(f"{lines[-1]} {word}") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def seen(text: str) -> str:
    """A text as it is written in a picture: composed, and without what an SVG cannot hold."""
    composed = visible(normal_form(text))
    return "".join("\ufffd" if unicodedata.category(each) == "Cn" else each for each in composed)
