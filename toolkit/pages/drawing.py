"""Drawings: cells, boxes, lines and labels, laid out once in pixels, and written as SVG, into a page, or as PNG.

matplotlib is an optional library, and slow to import: only a PNG needs it.
"""

import base64
import io
import struct
import unicodedata
import warnings
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import numpy as np

from toolkit.display import short_repr, visible
from toolkit.errors import ConfigError
from toolkit.files import atomic_writer
from toolkit.functional.arrays import Array
from toolkit.tokenization.normal_form import normal_form

FORMATS = ("png", "svg")
OLDEST = (3, 11)  # the first matplotlib that joins Devanagari letters as they must be
LATIN = "DejaVu Sans"  # comes with matplotlib
INK, PALE, GRID = "#222222", "#666666", "#e3e3e3"
_INCH = 96  # pixels of a drawing in its own size; a PNG has twice as many
_MOST_PIXELS, _LONGEST_SIDE = 60_000_000, 60_000
_MOST_CELLS = 10_000  # of a map whose cells are shapes with their numbers; of a larger one they are pixels
_LINED = 7  # from this size on, cells have lines between them

# A viewer takes the first that it has; letters that it lacks come from the others.
FONTS = (
    "'Noto Sans', 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans Devanagari', 'Kohinoor Devanagari', "
    "'Nirmala UI', Mangal, 'Lohit Devanagari', sans-serif"
)
# Fonts of the common systems, tried in this order before all others.
_DEVANAGARI_FONTS = (
    *("Noto Sans Devanagari", "Noto Sans Devanagari UI", "Mukta", "Kohinoor Devanagari", "Devanagari Sangam MN"),
    *("Nirmala UI", "Mangal", "Lohit Devanagari", "Lohit Nepali", "Noto Serif Devanagari", "FreeSans", "FreeSerif"),
)
_FIRST, _LAST = "\u0900", "\u097f"
_SAMPLE = "कर्षि"


@dataclass(frozen=True)
class Cells:
    """A map: the colour of each of its cells, (T, S, 3) uint8, and its value, (T, S)."""

    x: float
    y: float
    size: float
    colors: Array
    values: Array
    hidden: Array  # (T, S), true for a cell that shows no number
    rows: Sequence[str]
    columns: Sequence[str]

    def svg(self, full: bool) -> list[str]:
        """Write the elements.  full: with every value to its last digit."""
        rows, columns, _ = self.colors.shape
        size = f'width="{_number(self.size)}" height="{_number(self.size)}"'
        if rows * columns > _MOST_CELLS:
            address = f"data:image/png;base64,{base64.b64encode(png_bytes(self.colors)).decode()}"
            return [
                f'<image x="{_number(self.x)}" y="{_number(self.y)}" width="{_number(columns * self.size)}" '
                f'height="{_number(rows * self.size)}" preserveAspectRatio="none" image-rendering="pixelated" '
                f'href="{address}"/>'
            ]
        lines = ['<g stroke="#ffffff">' if self.size >= _LINED else "<g>"]
        names = [escape(seen(name)) for name in self.columns]
        at = [_number(self.x + column * self.size) for column in range(columns)]
        fills = iter(self.colors.reshape(-1, 3).tolist())
        for row, (values, dark) in enumerate(zip(self.values.tolist(), self.hidden.tolist(), strict=True)):
            place, label = f'y="{_number(self.y + row * self.size)}" {size}', escape(seen(self.rows[row]))
            for x, name, value, masked in zip(at, names, values, dark, strict=True):
                exact = f' data-value="{value!r}"' if full else ""
                number = "masked" if masked else f"{value:.4f}"
                fill = bytes(next(fills)).hex()
                title = f"<title>{label} → {name}: {number}</title>"
                lines.append(f'<rect x="{x}" {place} fill="#{fill}"{exact}>{title}</rect>')
        return [*lines, "</g>"]

    def draw(self, axes: Any) -> None:
        """Draw it by matplotlib."""
        rows, columns, _ = self.colors.shape
        right, bottom = self.x + columns * self.size, self.y + rows * self.size
        axes.imshow(self.colors, extent=(self.x, right, bottom, self.y), interpolation="nearest")
        if self.size >= _LINED:
            style = {"color": "white", "linewidth": 0.75}
            axes.vlines(np.arange(self.x, right, self.size)[1:], self.y, bottom, **style)
            axes.hlines(np.arange(self.y, bottom, self.size)[1:], self.x, right, **style)


@dataclass(frozen=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float
    fill: str = "none"
    stroke: str = "none"

    def svg(self, full: bool) -> list[str]:
        """Write the element."""
        place = f'x="{self.x:g}" y="{self.y:g}" width="{self.width:g}" height="{self.height:g}"'
        return [f'<rect {place} fill="{self.fill}" stroke="{self.stroke}"/>']

    def draw(self, axes: Any) -> None:
        """Draw it by matplotlib."""
        from matplotlib.patches import Rectangle

        style = {"facecolor": self.fill, "edgecolor": self.stroke, "linewidth": 0.75}
        axes.add_patch(Rectangle((self.x, self.y), self.width, self.height, **style))


@dataclass(frozen=True)
class Line:
    """Straight lines from point to point; filled: the area inside of them instead."""

    points: Sequence[tuple[float, float]]
    color: str
    width: float = 1
    dash: tuple[float, ...] = ()
    opacity: float = 1
    filled: bool = False

    def svg(self, full: bool) -> list[str]:
        """Write the element."""
        points = " ".join(f"{_number(x)},{_number(y)}" for x, y in self.points)
        if self.filled:
            return [f'<polygon points="{points}" fill="{self.color}"/>']
        style = f' stroke-dasharray="{" ".join(map(_number, self.dash))}"' if self.dash else ""
        style += f' opacity="{_number(self.opacity)}"' if self.opacity < 1 else ""
        line = f'stroke="{self.color}" stroke-width="{_number(self.width)}" stroke-linejoin="round"{style}'
        return [f'<polyline points="{points}" fill="none" {line}/>']

    def draw(self, axes: Any) -> None:
        """Draw it by matplotlib."""
        x, y = zip(*self.points, strict=True)
        if self.filled:
            axes.fill(x, y, color=self.color, linewidth=0, snap=False, zorder=2)
            return
        width = self.width * 72 / _INCH
        style = (0, tuple(each / self.width for each in self.dash)) if self.dash else "solid"
        axes.plot(x, y, color=self.color, linewidth=width, linestyle=style, alpha=self.opacity, scalex=False)


@dataclass(frozen=True)
class Label:
    """A line of text; (x, y) is on its baseline, at its start, middle or end."""

    x: float
    y: float
    text: str
    size: float
    anchor: str = "start"
    angle: float = 0
    color: str = INK
    bold: bool = False

    def svg(self, full: bool) -> list[str]:
        """Write the element."""
        x, y = _number(self.x), _number(self.y)
        return [
            f'<text x="{x}" y="{y}" font-size="{_number(self.size)}" text-anchor="{self.anchor}" fill="{self.color}" '
            'xml:space="preserve"'
            + (' font-weight="bold"' if self.bold else "")
            + (f' transform="rotate({self.angle} {x} {y})"' if self.angle else "")
            + f">{escape(self.text)}</text>"
        ]

    def draw(self, axes: Any) -> None:
        """Draw it by matplotlib.  Raises ConfigError without a font that it needs."""
        axes.text(
            *(self.x, self.y, self.text),
            size=self.size * 72 / _INCH,
            family=families(self.text),
            color=self.color,
            weight="bold" if self.bold else "normal",
            ha={"start": "left", "middle": "center", "end": "right"}[self.anchor],
            va="baseline",
            rotation=-self.angle,
            rotation_mode="anchor",
            parse_math=False,
        )


@dataclass
class Drawing:
    """Shapes on a white ground, in the order of their lists. A notebook shows it by itself; elsewhere, save it."""

    width: float = 0
    height: float = 0
    cells: list[Cells] = field(default_factory=list)
    boxes: list[Box] = field(default_factory=list)
    lines: list[Line] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)

    __repr__ = short_repr

    @property
    def svg(self) -> str:
        """The drawing as an SVG file, whose text is text."""
        size = f"{self.width:.0f}", f"{self.height:.0f}"
        head = (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
            f'viewBox="0 0 {size[0]} {size[1]}" role="img" font-family="{FONTS}">\n'
            '<rect width="100%" height="100%" fill="#ffffff"/>\n'
        )
        return head + "\n".join([*self._elements(full=False), "</svg>\n"])

    def inline(self, about: str, kind: str) -> str:
        """Write the drawing as a part of a page, with every value in full; the style sheet scales its `--width`.

        about: the description for who cannot see it; kind: the class of the element beside "drawing".
        """
        size = f'style="--width:{self.width:.0f}" viewBox="0 0 {self.width:.0f} {self.height:.0f}"'
        head = f'<svg class="drawing {kind}" {size} role="group" aria-label={quoteattr(seen(about))}>'
        return "\n".join([head, *self._elements(full=True), "</svg>"])

    def _elements(self, full: bool) -> Iterable[str]:
        shapes = (*self.cells, *self.boxes, *self.lines, *self.labels)
        return (line for shape in shapes for line in shape.svg(full))

    def figure(self) -> Any:
        """Draw it as a figure of matplotlib, to be changed or shown by its means. Raises ConfigError as `png` does."""
        load_matplotlib()
        from matplotlib.figure import Figure

        figure = Figure(figsize=(self.width / _INCH, self.height / _INCH))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.axis("off")
        for shape in (*self.cells, *self.boxes, *self.lines, *self.labels):
            shape.draw(axes)
        axes.set(xlim=(0, self.width), ylim=(self.height, 0), aspect="auto")
        return figure

    def png(self) -> bytes:
        """Draw it as a PNG file with twice the pixels of its size, or fewer where that were too many.

        Raises ConfigError without matplotlib, or without a font that it needs.
        """
        matplotlib = load_matplotlib()
        scale = min(2, (_MOST_PIXELS / (self.width * self.height)) ** 0.5, _LONGEST_SIDE / max(self.width, self.height))
        content = io.BytesIO()
        with matplotlib.rc_context(), warnings.catch_warnings():  # the same whatever the settings of the user
            warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
            matplotlib.rcdefaults()
            self.figure().savefig(content, format="png", dpi=scale * _INCH)
        return content.getvalue()

    def save(self, path: str | Path) -> None:
        """Write a file, PNG or SVG as its name ends, replaced whole.

        Raises ConfigError for a name with another end and as `png` does, DataError where it cannot be written.
        """
        content = self.png() if picture_format(path) == "png" else self.svg.encode()
        with atomic_writer(path) as file:
            file.write(content)

    # No _repr_png_: a notebook would ask for both each time, and draw with a library that need not be there.
    def _repr_svg_(self) -> str:
        return self.svg


def picture_format(path: str | Path) -> str:
    """Read "png" or "svg" from the end of a file's name.  Raises ConfigError for another end."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ConfigError(f"{path} is not the name of a picture: it must end with .png or .svg")
    return ending


def png_bytes(pixels: Array) -> bytes:
    """Write pixels as a PNG file (ISO 15948), without a library.  pixels: (height, width, 3), uint8."""
    height, width, _ = pixels.shape
    no_filter = np.zeros((height, 1), np.uint8)  # of each row, in front of it
    rows = np.concatenate([no_filter, pixels.reshape(height, 3 * width)], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = (b"IHDR", header), (b"IDAT", zlib.compress(rows.tobytes(), 9)), (b"IEND", b"")
    written = (
        struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        for name, content in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + b"".join(written)


def load_matplotlib() -> Any:
    """Import the library.  Raises ConfigError where it is not installed, or too old."""
    wanted = ".".join(map(str, OLDEST))
    advice = f"pip install 'matplotlib>={wanted}'"
    try:
        import matplotlib
    except ImportError as error:
        raise ConfigError(f"this picture needs the library matplotlib: {advice}") from error
    if matplotlib.__version_info__[:2] < OLDEST:
        raise ConfigError(f"this picture needs matplotlib {wanted}, and {matplotlib.__version__} is here: {advice}")
    return matplotlib


def families(text: str) -> list[str]:
    """Choose the fonts for a text, first choice first.  Raises ConfigError where it has Devanagari and no font has."""
    if not any(_FIRST <= character <= _LAST for character in text):
        return [LATIN]
    font = devanagari_font()
    if font is None:
        raise ConfigError(
            "no font here has Devanagari letters: install one, such as Noto Sans Devanagari, or write an .svg file"
        )
    return [font, LATIN]


@cache
def devanagari_font() -> str | None:
    """Find an installed font that has Devanagari: its name, None where there is none."""
    load_matplotlib()
    from matplotlib import font_manager

    found = _first_font(font_manager.fontManager.ttflist)
    if found is None:  # matplotlib remembers the fonts of its first day
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        for path in set(font_manager.findSystemFonts()) - known:
            with warnings.catch_warnings(action="ignore"):
                try:
                    font_manager.fontManager.addfont(path)
                except (OSError, RuntimeError):  # a file that is no font that it can read
                    continue
        found = _first_font([entry for entry in font_manager.fontManager.ttflist if entry.fname not in known])
    return found


def _first_font(entries: Iterable[Any]) -> str | None:
    rank = {name: place for place, name in enumerate(_DEVANAGARI_FONTS)}
    entries = [entry for entry in entries if not entry.name.startswith("Last Resort")]  # boxes for all of Unicode
    for entry in sorted(entries, key=lambda entry: (rank.get(entry.name, len(rank)), entry.name)):
        if _has_sample(entry.fname):
            return entry.name
    return None


@cache
def _has_sample(path: str) -> bool:
    from matplotlib.font_manager import get_font

    try:
        letters = get_font(path).get_charmap()
    except (OSError, RuntimeError):
        return False
    return all(ord(letter) in letters for letter in _SAMPLE)


def text_width(text: str) -> float:
    """Estimate the width of a text in heights of its font: rather too much than too little."""
    return sum(map(_advance, text))


def _advance(character: str) -> float:
    kind = unicodedata.category(character)
    if kind in ("Mn", "Me", "Cf"):
        return 0.0
    if kind == "Mc":
        return 0.35
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.4
    return 0.85 if character in "mwMW@%␣" else 0.7 if character.isupper() else 0.63


def seen(text: str) -> str:
    """Write a text as it stands in a drawing: composed, and without what an SVG cannot hold."""
    composed = visible(normal_form(text))
    return "".join("\ufffd" if unicodedata.category(each) == "Cn" else each for each in composed)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
