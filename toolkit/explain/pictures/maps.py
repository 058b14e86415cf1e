"""Maps of weights, such as those of attention, as pictures: SVG of our own, PNG by matplotlib, from one layout.

>>> picture(heat)                   # in a notebook, shows itself
>>> picture(heat).save("map.png")   # or "map.svg"
"""

from collections.abc import Sequence
from functools import cached_property
from typing import Any
from xml.sax.saxutils import escape

import numpy as np

from toolkit.errors import ConfigError
from toolkit.explain.pages.blocks import Heat, Maps, Page
from toolkit.explain.pictures.drawing import PIXELS_PER_INCH, Picture, families, figure_png, own_style
from toolkit.explain.pictures.heat_layout import Cells, Drawing, arranged
from toolkit.explain.pictures.tiny_png import data_address

# A viewer takes the first that it has; letters that it lacks come from the others.
_FONTS = (
    "'Noto Sans', 'Segoe UI', 'Helvetica Neue', Arial, 'DejaVu Sans', 'Noto Sans Devanagari', 'Kohinoor Devanagari', "
    "'Nirmala UI', Mangal, 'Lohit Devanagari', sans-serif"
)
_MOST_CELLS = 10_000  # of a map whose cells are shapes with their numbers; of a larger one they are pixels


def picture(blocks: Heat | Maps | Sequence[Heat | Maps]) -> "HeatPicture":
    """A picture of one map, or of several below each other; those of a `Maps` stand side by side.

    Raises ConfigError where there is none, or where the labels of a map are not as many as its rows and columns.
    """
    groups = [blocks] if isinstance(blocks, Heat | Maps) else list(blocks)
    if not groups:
        raise ConfigError("there is no map of weights to draw")
    return HeatPicture([group.maps if isinstance(group, Maps) else [group] for group in groups])


def page_picture(page: Page) -> "HeatPicture":
    """All maps of an explanation as one picture, under the titles of their sections.

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
    return HeatPicture(groups, headings if len(set(headings)) > 1 else ())


class HeatPicture(Picture):
    """Maps of weights, group by group; each group has one scale of colours, and may have a heading."""

    def __init__(self, groups: Sequence[Sequence[Heat]], headings: Sequence[str] = ()):
        self.groups, self.headings = groups, headings
        self._drawing  # noqa: B018  (what does not fit together is told where the picture is asked for)

    @cached_property
    def _drawing(self) -> Drawing:
        return arranged(self.groups, self.headings)

    @property
    def svg(self) -> str:
        drawing = self._drawing
        size = f"{drawing.width:.0f}", f"{drawing.height:.0f}"
        return "\n".join(
            [
                f'<svg xmlns="http://www.w3.org/2000/svg" width="{size[0]}" height="{size[1]}" '
                f'viewBox="0 0 {size[0]} {size[1]}" role="img" font-family="{_FONTS}">',
                '<rect width="100%" height="100%" fill="#ffffff"/>',
                *(line for cells in drawing.cells for line in _cells_svg(cells)),
                *(
                    f'<rect x="{box.x:g}" y="{box.y:g}" width="{box.width:g}" height="{box.height:g}" '
                    f'fill="{box.fill}" stroke="{box.stroke}"/>'
                    for box in drawing.boxes
                ),
                *(
                    f'<text x="{_number(text.x)}" y="{_number(text.y)}" font-size="{_number(text.size)}" '
                    f'text-anchor="{text.anchor}" fill="{text.color}" xml:space="preserve"'
                    + (' font-weight="bold"' if text.bold else "")
                    + (f' transform="rotate({text.angle} {_number(text.x)} {_number(text.y)})"' if text.angle else "")
                    + f">{escape(text.text)}</text>"
                    for text in drawing.texts
                ),
                "</svg>\n",
            ]
        )

    def png(self) -> bytes:
        with own_style():
            return figure_png(self._figure())

    def _figure(self) -> Any:
        from matplotlib.figure import Figure
        from matplotlib.patches import Rectangle

        drawing, inch = self._drawing, PIXELS_PER_INCH
        figure = Figure(figsize=(drawing.width / inch, drawing.height / inch))
        axes = figure.add_axes((0, 0, 1, 1))
        axes.axis("off")
        for cells in drawing.cells:
            right, bottom = cells.x + cells.colors.shape[1] * cells.size, cells.y + cells.colors.shape[0] * cells.size
            axes.imshow(cells.colors, extent=(cells.x, right, bottom, cells.y), interpolation="nearest")
            if cells.lined:
                style = {"color": "white", "linewidth": 0.75}
                axes.vlines(np.arange(cells.x, right, cells.size)[1:], cells.y, bottom, **style)
                axes.hlines(np.arange(cells.y, bottom, cells.size)[1:], cells.x, right, **style)
        for box in drawing.boxes:
            place = (box.x, box.y), box.width, box.height
            axes.add_patch(Rectangle(*place, facecolor=box.fill, edgecolor=box.stroke, linewidth=0.75))
        for text in drawing.texts:
            axes.text(
                *(text.x, text.y, text.text),
                size=text.size * 72 / inch,
                family=families(text.text),
                color=text.color,
                weight="bold" if text.bold else "normal",
                ha={"start": "left", "middle": "center", "end": "right"}[text.anchor],
                va="baseline",
                rotation=-text.angle,
                rotation_mode="anchor",
                parse_math=False,
            )
        axes.set(xlim=(0, drawing.width), ylim=(drawing.height, 0), aspect="auto")
        return figure


def _cells_svg(cells: Cells) -> list[str]:
    rows, columns, _ = cells.colors.shape
    size = _number(cells.size)
    if rows * columns > _MOST_CELLS:
        return [
            f'<image x="{_number(cells.x)}" y="{_number(cells.y)}" width="{_number(columns * cells.size)}" '
            f'height="{_number(rows * cells.size)}" preserveAspectRatio="none" image-rendering="pixelated" '
            f'href="{data_address(cells.colors)}"/>'
        ]
    line = ' stroke="#ffffff"' if cells.lined else ""
    lines = [f"<g{line}>"]
    for row in range(rows):
        y = _number(cells.y + row * cells.size)
        for column in range(columns):
            fill = "#" + cells.colors[row, column].tobytes().hex()
            lines.append(
                f'<rect x="{_number(cells.x + column * cells.size)}" y="{y}" width="{size}" height="{size}" '
                f'fill="{fill}"><title>{escape(cells.told(row, column))}</title></rect>'
            )
    return [*lines, "</g>"]


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
