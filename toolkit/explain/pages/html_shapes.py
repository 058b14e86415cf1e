"""Trees as nested lists, and curves as SVG."""

from collections.abc import Iterator, Sequence

from toolkit.explain.pages.axes import Axis
from toolkit.explain.pages.blocks import Branch, Curves, Tree
from toolkit.explain.pages.html_parts import element, figure, label, number, scroll, text
from toolkit.explain.pages.writing import STATES, written

MOST_POINTS = 600  # of a line
_ROWS = 12  # of the table of values

_WIDTH, _HEIGHT = 600, 320
_LEFT, _RIGHT, _TOP, _BOTTOM = 84, 14, 12, 48
# One more than there are colours: the seventh line has the first colour and a dash of its own.
_DASHES = (None, "7 3", "2 3", "9 3 2 3", "12 4", "4 4", "14 3 2 3 2 3")


def tree(given: Tree) -> str:
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


def curves(given: Curves) -> str:
    """A plot with its legend above and its values in a table that opens."""
    across = Axis.of([x for x, _ in given.lines.values()], given.log_x)
    up = Axis.of([y for _, y in given.lines.values()], given.log_y)
    drawn = [_line(index, *line, across, up) for index, line in enumerate(given.lines.values())]
    about = f"{given.name}: {given.y or 'lines'} over {given.x or 'steps'}: {', '.join(given.lines)}"
    picture = element(
        "svg",
        *_grid(across, up),
        *drawn,
        *_titles(given.x, given.y),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
        aria_label=about,
        Class="plot",
    )
    return figure(given.name, _legend(given), scroll(picture, given.name), _values(given), note=_note(given))


def _legend(given: Curves) -> str:
    items = []
    for index, (name, (_, y)) in enumerate(given.lines.items()):
        swatch = element("line", x1=0, y1=5, x2=28, y2=5, Class=f"line c{index % 6}", stroke_dasharray=_dash(index))
        picture = element("svg", swatch, width=28, height=10, aria_hidden="true")
        last = [" ", number(float(y[-1]), Axis.label, "span", Class="last")] if len(y) else []
        items.append(element("li", picture, " ", label(name), *last))
    return element("ul", *items, Class="lines", aria_label="Lines, each with its last value")


def _dash(index: int) -> str | None:
    return _DASHES[index % len(_DASHES)]


def _x(place: float) -> float:
    return round(_LEFT + place * (_WIDTH - _LEFT - _RIGHT), 1)


def _y(place: float) -> float:
    return round(_HEIGHT - _BOTTOM - place * (_HEIGHT - _TOP - _BOTTOM), 1)


def _grid(across: Axis, up: Axis) -> Iterator[str]:
    for tick, place in zip(across.ticks(), across.places(across.ticks()), strict=True):
        yield element("line", x1=_x(place), y1=_y(0), x2=_x(place), y2=_y(1), Class="grid")
        yield number(tick, Axis.label, "text", x=_x(place), y=_y(0) + 20, text_anchor="middle")
    for tick, place in zip(up.ticks(), up.places(up.ticks()), strict=True):
        yield element("line", x1=_x(0), y1=_y(place), x2=_x(1), y2=_y(place), Class="grid")
        yield number(tick, Axis.label, "text", x=_x(0) - 7, y=_y(place) + 4, text_anchor="end")
    yield element("path", d=f"M{_x(0)} {_y(1)}V{_y(0)}H{_x(1)}", Class="axis")


def _titles(x: str, y: str) -> Iterator[str]:
    yield element("text", text(x), x=_x(0.5), y=_HEIGHT - 6, text_anchor="middle", Class="title")
    place = f"translate(13 {_y(0.5)}) rotate(-90)"
    yield element("text", text(y), transform=place, text_anchor="middle", Class="title")


def _line(index: int, x: Sequence[float], y: Sequence[float], across: Axis, up: Axis) -> str:
    """A line through the points that stand on both axes; some of them, where there are very many."""
    step = _step(len(x))
    places = [*zip(across.places(x), up.places(y), strict=True)]
    kept = places[::step] if (len(places) - 1) % step == 0 else [*places[::step], places[-1]]
    points = " ".join(f"{_x(a)},{_y(b)}" for a, b in kept if a == a and b == b)
    return element("polyline", points=points, Class=f"line c{index % 6}", stroke_dasharray=_dash(index))


def _step(count: int) -> int:
    return max(1, -(-count // MOST_POINTS))


def _note(given: Curves) -> str:
    most = max((len(x) for x, _ in given.lines.values()), default=0)
    return f"Of {most} points, one of every {_step(most)} is drawn." if _step(most) > 1 else ""


def _values(given: Curves) -> str:
    """Some of the points of each line in numbers, the last one always."""
    rows = []
    for name, (x, y) in given.lines.items():
        places = sorted({round(index * (len(x) - 1) / (_ROWS - 1)) for index in range(_ROWS)}) if len(x) else []
        for index in places:
            numbers = (number(float(each[index]), "{:.6g}".format) for each in (x, y))
            rows.append(element("tr", element("th", label(name), scope="row"), *numbers))
    header = (element("th", text(each), scope="col") for each in ("line", given.x or "x", given.y or "y"))
    table = element("table", element("thead", element("tr", *header)), element("tbody", *rows), Class="numbers")
    return element("details", element("summary", "Values"), scroll(table, f"{given.name}, values"))
