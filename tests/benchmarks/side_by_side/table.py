"""What was measured as tables."""

from collections.abc import Callable, Sequence
from typing import Any

from .rounds import ratio

Row = dict[str, Any]


def lines_of(row: Row) -> list[str]:
    """All figures of one row, as they come."""
    lines = [row["title"]]
    for name, speed in row["medians"].items():
        own = sorted(row["speeds"][name])
        more = [f"{row['memory'][name] / 1e6:.0f} MB"] if name in row.get("memory", ()) else []
        more += [f"same outputs {row['same_outputs'][name]:.0%}"] if "same_outputs" in row else []
        lines.append(f"  {name:18}{speed:>10,.0f} tokens/s  ({own[0]:,.0f} to {own[-1]:,.0f})  {'  '.join(more)}")
    padding = [f"{name.replace('_', ' ')} {row[name]:.1%}" for name in row if name.endswith("_padding")]
    return [*lines, "  " + "  ".join([f"waiting sides busy {row['idle']:.1%} of a core", *padding])]


def training_table(rows: Sequence[Row]) -> list[str]:
    """Milliseconds of an update, the ratio of the speeds, what bounds them, and memory above the imports."""
    heads = ("training", "toolkit", "PyTorch", "ratio", "products alone", "memory, toolkit", "memory, PyTorch")
    return _table(heads, [_training_cells(row) for row in rows])


def _training_cells(row: Row) -> list[str]:
    found = ratio(row, "toolkit", "torch")
    if not found:
        return [row["title"]]
    memory = [f"{row['memory'][found[side]] / 1e6:,.0f} MB" for side in ("ours", "theirs")]
    ours, theirs, products = (_update(row, found["ours"]), _update(row, found["theirs"]), _update(row, "products"))
    theirs = f"{theirs}, {found['theirs'].split()[1]}"
    return [row["title"], ours, theirs, _ratio(found), products, *memory]


def _update(row: Row, side: str) -> str:
    """How long an update takes, and where batches differ, how many real tokens a second are learned from."""
    if side not in row["medians"]:
        return "–"
    speed = row["medians"][side]
    return f"{speed:,.0f} tokens/s" if "target_padding" in row else f"{1e3 * row['tokens'] / speed:,.1f} ms"


def ctranslate2_table(rows: Sequence[Row]) -> list[str]:
    """Tokens a second, with the best layout of each (workers × threads); in int8 without it.

    Same outputs: those of CTranslate2 in float32, and of both in int8, as ours in float32.
    """
    heads = "decoding, tokens/s", "toolkit", "CTranslate2", "ratio", "int8", "CTranslate2 int8", "ratio", "same outputs"
    return _table(heads, [_cells(row, "ctranslate2", _int8_cells) for row in rows])


def _int8_cells(row: Row, found: Row) -> list[str]:
    int8 = ratio(row, "own-int8", "int8")
    same = [found["theirs"], *(int8[side] for side in ("ours", "theirs") if int8)]
    shares = " / ".join(f"{row['same_outputs'][name]:.0%}" for name in same)
    speeds = [f"{row['medians'][int8[side]]:,.0f}" for side in ("ours", "theirs") if int8]
    return [*(speeds or ["–", "–"]), _ratio(int8) if int8 else "–", shares]


def transformers_table(rows: Sequence[Row]) -> list[str]:
    """Tokens a second of one sequence, with the best number of threads of each, and weights read in a second."""
    heads = ("one sequence, tokens/s", "toolkit", "transformers", "ratio", "GB/s of weights", "same outputs")
    return _table(heads, [_cells(row, "transformers", _streaming_cells) for row in rows])


def _streaming_cells(row: Row, found: Row) -> list[str]:
    rates = [f"{row['medians'][found[side]] * row['streamed'] / 1e9:.1f}" for side in ("ours", "theirs")]
    return [" / ".join(rates), f"{row['same_outputs'][found['theirs']]:.0%}"]


def _cells(row: Row, theirs: str, more: Callable[[Row, Row], list[str]]) -> list[str]:
    found = ratio(row, "toolkit", theirs)
    if not found:
        return [row["title"]]
    speeds = []
    for side in ("ours", "theirs"):
        layout = found[side].partition(" ")[2]
        speeds.append(f"{row['medians'][found[side]]:,.0f}" + (f" ({layout})" if layout else ""))
    return [f"{row['title']}, {row['parameters'] / 1e6:.1f}M", *speeds, _ratio(found), *more(row, found)]


def _ratio(found: Row) -> str:
    low, high = found["range"]
    return f"{found['ratio']:.2f} ({low:.2f} to {high:.2f})"


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table; a dash stands for what a row lacks at its end."""
    if not rows:
        return []
    rows = [[*cells, *["–"] * (len(heads) - len(cells))] for cells in rows]
    return ["", *(f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * len(heads), *rows))]
