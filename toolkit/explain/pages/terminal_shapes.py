"""Bars, trees and curves in a terminal."""

import math
from collections.abc import Iterator, Sequence

from toolkit.display import visible
from toolkit.explain.pages.axes import Axis
from toolkit.explain.pages.blocks import Bars, Branch, Curves, Tree
from toolkit.explain.pages.terminal_paint import BLUE, BOLD, DIM, GREEN, Paint, plain
from toolkit.explain.pages.writing import STATES, cells, clipped, padded, probability, wrapped, written

_STYLES = {"kept": "0", "dropped": DIM, "ended": BLUE, "chosen": f"{BOLD};{GREEN}"}
_EIGHTHS = " ▏▎▍▌▋▊▉█"
_MARKS = "*o+x#@%&"
_COLORS = ("36", "33", "35", "32", "34", "31")
_HEIGHT, _WIDEST = 14, 90  # of a plot


def bars_lines(block: Bars, width: int, brush: Paint = plain) -> list[str]:
    """A line for each candidate, with a bar and a number in each column."""
    labels = [visible(str(label)) for label in block.labels]
    beside = min(max(map(cells, labels), default=0), 24, width // 3)
    names = list(block.columns)
    most = max((value for column in block.columns.values() for value in column if value is not None), default=0)
    room = (width - beside - 2) // max(len(names), 1) - 10
    if len(names) > 1 and room < 6:  # one below the other instead
        parts = [
            Bars(f"{block.name}: {each}", block.labels, {each: block.columns[each]}, block.chosen) for each in names
        ]
        return [line for part in parts for line in bars_lines(part, width, brush)] + _note(block.note, width, brush)
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
    """In room + 10 cells: two spaces, the number, a space, the bar."""
    if value is None:
        return padded("       -  excluded", room + 10)
    eighths = round(8 * room * max(value, 0) / most) if most > 0 and math.isfinite(value) else 0
    bar = "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()
    return "  " + padded(probability(value), 6, right=True) + " " + padded(bar, room + 1)


def _note(note: str, width: int, brush: Paint) -> list[str]:
    return [brush(line, DIM) for line in wrapped(note, width, "  ")] if note else []


def tree_lines(block: Tree, width: int, brush: Paint = plain) -> list[str]:
    """A line for each branch, below the one that it grew from."""
    legend = "★ chosen · ■ ended · ✗ dropped; behind each, its score"
    return [*wrapped(block.name, width), *_branch_lines(block.root, "", "", width, brush), *_note(legend, width, brush)]


def _branch_lines(branch: Branch, lead: str, below: str, width: int, brush: Paint) -> Iterator[str]:
    """lead: what stands in front of the branch itself; below: in front of what grows from it."""
    score = written(branch.score, 3)
    if cells(lead) > width - 20:  # deeper than the terminal is wide
        lead = "… " + lead[-(width - 22) :].lstrip()
    label = clipped(visible(branch.label) or "(nothing)", max(4, width - cells(lead) - len(score) - 5))
    yield lead + brush(f"{STATES[branch.state]} {label}  {score}".lstrip(), _STYLES[branch.state])
    for index, each in enumerate(branch.branches, start=1):
        last = index == len(branch.branches)
        yield from _branch_lines(each, below + ("└ " if last else "├ "), below + ("  " if last else "│ "), width, brush)


def curves_lines(block: Curves, width: int, brush: Paint = plain) -> list[str]:
    """A plot, a mark for each line, and the last value of each."""
    across = Axis.of([x for x, _ in block.lines.values()], block.log_x)
    up = Axis.of([y for _, y in block.lines.values()], block.log_y)
    beside = max(cells(up.label(up.low)), cells(up.label(up.high)), cells(visible(block.y)))
    beside = min(beside, width // 3)
    columns = min(max(width - beside - 3, 8), _WIDEST)
    grid = [[" "] * columns for _ in range(_HEIGHT)]
    for index, (x, y) in enumerate(block.lines.values()):
        mark = brush(_MARKS[index % len(_MARKS)], _COLORS[index % len(_COLORS)])
        for column, row in _dots(across.places(x), up.places(y), columns):
            grid[_HEIGHT - 1 - row][column] = mark
    beneath = {0: up.label(up.high), 1: visible(block.y), _HEIGHT - 1: up.label(up.low)}
    plot = [f"{padded(beneath.get(at, ''), beside, True)} │{''.join(row).rstrip()}" for at, row in enumerate(grid)]
    first, last = across.label(across.low), across.label(across.high)
    name = clipped(visible(block.x), max(columns - cells(first) - cells(last) - 2, 1))
    scale = first + padded(f"  {name}", columns - cells(first) - cells(last)) + last
    legend = [_last(index, name, block.lines[name][1], width, brush) for index, name in enumerate(block.lines)]
    rule = " " * beside + " └" + "─" * columns
    return [*wrapped(block.name, width), *legend, *plot, rule, " " * (beside + 2) + scale]


def _last(index: int, name: str, y: Sequence[float], width: int, brush: Paint) -> str:
    mark = brush(_MARKS[index % len(_MARKS)], _COLORS[index % len(_COLORS)])
    end = f"  (last {float(y[-1]):.4g})" if len(y) else "  (no points)"
    return f"  {mark} {clipped(visible(name), width - 4 - len(end))}{end}"


def _dots(x: Sequence[float], y: Sequence[float], columns: int) -> Iterator[tuple[int, int]]:
    """The cells that a line goes through, from places between 0 and 1."""
    points = [(a * (columns - 1), b * (_HEIGHT - 1)) for a, b in zip(x, y, strict=True) if a == a and b == b]
    for (a, b), (c, d) in zip(points, points[1:] or points, strict=False):
        steps = max(1, math.ceil(abs(c - a)))
        for step in range(steps + 1):
            yield round(a + (c - a) * step / steps), round(b + (d - b) * step / steps)
