"""Curves: their axes, in a terminal, and laid out as a drawing."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from toolkit.display import visible
from toolkit.pages.blocks import Curves
from toolkit.pages.drawing import GRID, PALE, Drawing, Label, Line, seen
from toolkit.pages.writing import Paint, cells, clipped, padded, plain, wrapped

# Colours that colour-blind readers tell apart (Okabe and Ito 2008), and more.
COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5C5C5C", "#A6761D", "#B2182B")
# One more than a page's colours: the seventh line has the first colour and a dash of its own.
_DASHES = ((), (7, 3), (2, 3), (9, 3, 2, 3), (12, 4), (4, 4), (14, 3, 2, 3, 2, 3))
_PAGE_COLORS = 6

# In a terminal.
_MARKS = "*o+x#@%&"
_TERMINAL_COLORS = ("36", "33", "35", "32", "34", "31")
_HEIGHT, _WIDEST = 14, 90  # of a plot

# In a drawing, in pixels of its own size.
_TEXT, _TITLE = 12.0, 13.0  # sizes of fonts
_LEFT, _RIGHT, _TOP, _BOTTOM = 62, 14, 12, 26  # of the axes
_NAMED = 22  # more of them where an axis or the plot has a name

_LEAST = 1e-100  # no logarithmic axis begins below it
Place = tuple[float, float, float, float]


@dataclass(frozen=True)
class Axis:
    """From low to high; with `log`, equal factors are equally far apart, and only numbers above 0 stand on it."""

    low: float
    high: float
    log: bool = False

    @classmethod
    def of(cls, numbers: Sequence[Sequence[float]], log: bool = False) -> "Axis":
        """Reach from the smallest to the largest number; over 1, or a factor of 10, where that would be nothing."""
        every = np.concatenate([np.asarray(each, float) for each in numbers] or [np.zeros(0)])
        every = every[np.isfinite(every) & ((every > _LEAST) | (not log))]
        low, high = (float(every.min()), float(every.max())) if every.size else (1.0, 1.0)
        size = max(abs(low), abs(high), 1e-280)
        if high - low > 1e-12 * size:  # else they are the same but for rounding
            return cls(low, high, log)
        half = max(0.5, 1e-6 * size)
        return cls(low, low * 10, log) if log else cls(low - half, low + half)

    def widened(self, share: float) -> "Axis":
        """Add a share of its length at both ends."""
        if self.log:
            factor = (self.high / self.low) ** share
            return Axis(self.low / factor, self.high * factor, log=True)
        more = share * (self.high - self.low)
        return Axis(self.low - more, self.high + more)

    def places(self, numbers: Sequence[float]) -> list[float]:
        """Place numbers, 0 at the low end and 1 at the high one; nan for those that do not stand on it."""
        values = np.asarray(numbers, float)
        ok = np.isfinite(values) & ((values > 0) | (not self.log))
        values = np.where(ok, values, np.nan)
        low, high = self.low, self.high
        if self.log:
            values, low, high = np.log(values), math.log(low), math.log(high)
        return ((values - low) / (high - low)).tolist()

    def ticks(self, most: int = 6) -> list[float]:
        """Choose round numbers between the ends: 1, 2 or 5 times a power of ten; on a log axis, powers of ten."""
        if self.log:
            powers = range(math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9) + 1)
            found = [10.0**power for power in powers[:: max(1, math.ceil(len(powers) / most))]]
            if len(found) < 3:
                finer = (factor * 10.0**power for power in range(powers.start - 1, powers.stop) for factor in (1, 2, 5))
                found = [each for each in finer if self.low <= each <= self.high]
            return found if len(found) > 1 else [self.low, self.high]
        rough = (self.high - self.low) / most
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(factor * power for factor in (1, 2, 5, 10) if factor * power >= rough * (1 - 1e-9))
        first = math.ceil(self.low / step - 1e-9)
        return [index * step for index in range(first, math.floor(self.high / step + 1e-9) + 1)]

    def marks(self) -> Iterator[tuple[str, float]]:
        """Give the label and the place of every tick."""
        names = (self.label(tick).replace("-", "\u2212") for tick in self.ticks())
        return zip(names, self.places(self.ticks()), strict=True)

    @staticmethod
    def label(number: float) -> str:
        """Write a number on an axis, short: "0.002", "1e-05", "30000"."""
        if number and not 1e-4 <= abs(number) < 1e6:
            mantissa, power = f"{number:.2e}".split("e")
            return f"{mantissa.rstrip('0').rstrip('.')}e{int(power)}"
        return f"{number:.4g}" if abs(number) < 1e4 else f"{number:.0f}"


def axes_of(block: Curves) -> tuple[Axis, Axis]:
    """Find the axes of curves: across and up."""
    x, y = zip(*block.lines.values(), strict=True) if block.lines else ((), ())
    return Axis.of(x, block.log_x), Axis.of(y, block.log_y)


def curves_lines(block: Curves, width: int, brush: Paint = plain) -> list[str]:
    """Write a plot for a terminal: a mark for each line, and the last value of each."""
    across, up = axes_of(block)
    beside = max(cells(up.label(up.low)), cells(up.label(up.high)), cells(visible(block.y)))
    beside = min(beside, width // 3)
    columns = min(max(width - beside - 3, 8), _WIDEST)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    legend = []
    for index, (name, (x, y)) in enumerate(block.lines.items()):
        mark = brush(_MARKS[index % len(_MARKS)], _TERMINAL_COLORS[index % len(_TERMINAL_COLORS)])
        for column, row in _dots(across.places(x), up.places(y), columns):
            grid[_HEIGHT - 1 - row][column] = mark
        end = f"  (last {float(y[-1]):.4g})" if len(y) else "  (no points)"
        legend.append(f"  {mark} {clipped(visible(name), width - 4 - len(end))}{end}")
    beneath = {0: up.label(up.high), 1: visible(block.y), _HEIGHT - 1: up.label(up.low)}
    plot = [f"{padded(beneath.get(at, ''), beside, True)} │{''.join(row).rstrip()}" for at, row in enumerate(grid)]
    first, last = across.label(across.low), across.label(across.high)
    name = clipped(visible(block.x), max(columns - cells(first) - cells(last) - 2, 1))
    scale = first + padded(f"  {name}", columns - cells(first) - cells(last)) + last
    rule = " " * beside + " └" + "─" * columns
    return [*wrapped(block.name, width), *legend, *plot, rule, " " * (beside + 2) + scale]


def _dots(x: Sequence[float], y: Sequence[float], columns: int) -> Iterator[tuple[int, int]]:
    """Give the cells that a line goes through, from places between 0 and 1."""
    points = [(a * (columns - 1), b * (_HEIGHT - 1)) for a, b in zip(x, y, strict=True) if a == a and b == b]
    for (a, b), (c, d) in zip(points, points[1:] or points, strict=False):
        steps = max(1, math.ceil(abs(c - a)))
        for step in range(steps + 1):
            yield round(a + (c - a) * step / steps), round(b + (d - b) * step / steps)


@dataclass(frozen=True)
class Style:
    """The look of a line of a drawing."""

    color: str
    dash: tuple[float, ...] = ()
    width: float = 1.8
    opacity: float = 1.0
    dots: float = 0.0  # the radius of a dot at every point

    @classmethod
    def of(cls, index: int) -> "Style":
        """Choose that of a page's line, by its number."""
        return cls(COLORS[index % _PAGE_COLORS], _DASHES[index % len(_DASHES)])

    def drawn(self, points: Sequence[tuple[float, float]]) -> Iterator[Line]:
        """Draw a line through points."""
        if len(points) > 1:
            yield Line(points, self.color, self.width, self.dash, self.opacity)
        radius = self.dots or (2.0 if len(points) == 1 else 0)
        for x, y in points if radius else ():
            angles = [math.pi * corner / 5 for corner in range(10)]
            around = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
            yield Line(around, self.color, filled=True)


def plot(
    drawing: Drawing,
    block: Curves,
    place: Place,
    axes: tuple[Axis, Axis] | None = None,
    styles: Sequence[Style] = (),
) -> Place:
    """Draw curves and their axes into a part of a drawing: its left and upper end, its width and height.

    A number that does not stand on an axis is a gap. axes: across and up, if not those of the curves; styles: of the
    lines, if not those of a page. Returns the frame of the axes: left, top, right, bottom.
    """
    (x, y, width, height), (across, up) = place, axes or axes_of(block)
    left, right = x + _LEFT + (_NAMED if block.y else 0), x + width - _RIGHT
    top, bottom = y + _TOP + (_NAMED if block.name else 0), y + height - _BOTTOM - (_NAMED if block.x else 0)
    for name, share in across.marks():
        at = left + share * (right - left)
        drawing.lines.append(Line([(at, top), (at, bottom)], GRID))
        drawing.labels.append(Label(at, bottom + 18, name, _TEXT, "middle", color=PALE))
    for name, share in up.marks():
        at = bottom - share * (bottom - top)
        drawing.lines.append(Line([(left, at), (right, at)], GRID))
        drawing.labels.append(Label(left - 7, at + 4, name, _TEXT, "end", color=PALE))
    drawing.lines.append(Line([(left, top), (left, bottom), (right, bottom)], PALE, 1.2))
    for index, line in enumerate(block.lines.values()):
        look, points = styles[index] if styles else Style.of(index), []
        for share, height_share in (*zip(across.places(line[0]), up.places(line[1]), strict=True), (math.nan, 0.0)):
            if math.isfinite(share + height_share):
                points.append((left + share * (right - left), bottom - height_share * (bottom - top)))
            else:
                drawing.lines += look.drawn(points)
                points = []
    names = (
        Label((left + right) / 2, y + height - 6, seen(block.x), _TITLE, "middle"),
        Label(x + 13, (top + bottom) / 2, seen(block.y), _TITLE, "middle", -90),
        Label(left, top - 9, seen(block.name), _TITLE),
    )
    drawing.labels += [name for name in names if name.text]
    return left, top, right, bottom


def swatch(style: Style) -> Drawing:
    """Draw a short piece of a line, for a legend."""
    return Drawing(28, 10, lines=[*style.drawn([(0, 5), (28, 5)])])
