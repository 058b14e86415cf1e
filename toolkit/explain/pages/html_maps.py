"""Heat maps and bars as tables: every cell can be read, copied and pointed at."""

from collections.abc import Sequence

import numpy as np

from toolkit.explain.pages.blocks import Bars, Heat, Maps
from toolkit.explain.pages.html_parts import element, figure, label, number, scroll, signed, value_of
from toolkit.explain.pages.scale import Scale
from toolkit.explain.pages.writing import left_out, probability, sentences, shape_of, written

MOST_SIDE = 48  # rows and columns of one map
MOST_SMALL_SIDE = 32  # of several
MOST_CELLS = 20_000  # of several together: a page stays a few megabytes

_WRITTEN = 14  # columns of a map whose cells are wide enough for a number
_UPRIGHT = 60  # letters of all column labels together that stand upright beside each other


def heat(given: Heat) -> str:
    """One map, numbers in its cells where there is room."""
    scale = Scale.of([given])
    table = scroll(_table(given, scale, MOST_SIDE, len(given.columns) <= _WRITTEN), given.name)
    note = _notes([given], MOST_SIDE)
    return figure(given.name, table, _legend(scale), note=note, shape=shape_of(given.values), kind="map")


def maps(given: Maps) -> str:
    """Small maps beside each other, on one scale."""
    if len(given.maps) < 2:
        return "".join(map(heat, given.maps))
    scale, first = Scale.of(given.maps), given.maps[0]
    size = max(1, min(len(first.rows), MOST_SMALL_SIDE) * min(len(first.columns), MOST_SMALL_SIDE))
    shown = given.maps[: max(1, MOST_CELLS // size)]
    small = (
        figure(each.name, scroll(_table(each, scale, MOST_SMALL_SIDE, False), each.name), kind="small")
        for each in shown
    )
    note = sentences(_notes(given.maps, MOST_SMALL_SIDE), left_out(len(shown), len(given.maps), "maps"))
    return figure("", element("div", *small, Class="maps"), _legend(scale), note=note, kind="map")


def _table(given: Heat, scale: Scale, most: int, digits: bool) -> str:
    values = np.asarray(given.values)[:most, :most]
    hidden = np.zeros(values.shape, bool) if given.hidden is None else np.asarray(given.hidden)[:most, :most]
    rows, columns = list(map(str, given.rows))[:most], list(map(str, given.columns))[:most]
    turned = not digits or len("".join(columns)) > _UPRIGHT
    header = [element("th", element("span", label(each)), scope="col") for each in columns]
    lines = [element("tr", "<td></td>", *header)]
    for row, numbers, away in zip(rows, values.tolist(), hidden.tolist(), strict=False):
        cells = (
            _cell(value, f"{row} → {column}", dark, scale, digits)
            for value, column, dark in zip(numbers, columns, away, strict=False)
        )
        lines.append(element("tr", element("th", label(row), scope="row"), *cells))
    kind = f"heat{' turned' * turned}{'' if digits else ' tiny'}"
    return element("table", element("thead", lines[0]), element("tbody", *lines[1:]), Class=kind)


def _cell(value: float, place: str, hidden: bool, scale: Scale, digits: bool) -> str:
    if hidden:
        return element("td", Class="hidden", title=f"{place}: hidden by the mask", data_value=value_of(value))
    strength = scale.strength(value)
    kind = "h" + " cold" * (value < 0) + " strong" * (strength > 0.6) + " strongest" * (strength > 0.78)
    shown = signed(written(value, 2))
    title = f"{place}: {signed(written(value, 3))}"
    style = f"--v:{strength:.3f}"
    return element("td", shown * digits, data_value=value_of(value), Class=kind, style=style, title=title)


def _legend(scale: Scale) -> str:
    """What the colours mean: from 0 to the largest number, or from the most negative one over 0."""

    def end(value: float) -> str:
        return number(value, lambda each: f"{each:.0f}" if each == round(each) else written(each, 2), "span")

    most = max(scale.high, -scale.low)
    ends = (end(-most), element("span", "", Class="ramp both")) if scale.low < 0 else (end(0.0), _RAMP)
    return element("p", *ends, end(most), Class="legend", aria_label="Colour scale")


_RAMP = element("span", "", Class="ramp")


def _notes(maps: Sequence[Heat], most: int) -> str:
    first, notes = maps[0], [each.note for each in maps if each.note]
    if any(each.hidden is not None and np.any(each.hidden) for each in maps):
        notes.append("Hatched cells are hidden by the mask.")
    for labels, what in ((first.rows, "rows"), (first.columns, "columns")):
        notes.append(left_out(min(len(labels), most), len(labels), what))
    return sentences(*dict.fromkeys(notes))


def bars(given: Bars) -> str:
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
