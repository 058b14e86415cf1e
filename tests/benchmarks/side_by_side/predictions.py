"""The tables of `many_machines.py --predict`: models of 1M to 1.5G parameters, 1 to 1,024 ranks, several networks."""

from collections.abc import Mapping, Sequence
from typing import Any

from .prediction import COLLECTIVES, Cost, Network, Shape, pairwise, speedup, tokens_needed, update

SHAPES = (
    Shape("1M", 4, 128, 2000, 128),
    Shape("10M", 6, 384, 65, 256),
    Shape("124M, as GPT-2", 12, 768, 50257, 1024),
    Shape("354M, as GPT-2 medium", 24, 1024, 50257, 1024),
    Shape("1.5G, as GPT-2 XL", 48, 1600, 50257, 1024),
)
MEASURED = {SHAPES[0]: (8, 15), SHAPES[1]: (4, 5), SHAPES[2]: (1, 2)}  # texts of a pass, and how often
NETWORKS = (
    Network("1 Gbit/s", 50e-6, 125e6),
    Network("10 Gbit/s", 20e-6, 1.25e9),
    Network("100 Gbit/s", 5e-6, 12.5e9),
)
INTERNET = Network("100 Mbit/s, 30 ms", 30e-3, 12.5e6)  # between households
RANKS = [2**number for number in range(11)]
WEAK, STRONG = 2048, 65536  # tokens of an update: of a rank, and of all
SHOWN = 16, 128, 1024  # ranks


def cost_of(shape: Shape, costs: Sequence[Cost]) -> Cost:
    """Return the cost measured at the greatest width that is not greater."""
    return max((cost for cost in costs if cost.width <= shape.width), key=lambda cost: cost.width)


def predict(costs: Sequence[Cost], networks: Sequence[Network] = NETWORKS) -> list[dict[str, Any]]:
    """Return for each model and network: speeds of one rank, speed-ups, and what the network asks of a batch."""
    rows = []
    for shape in SHAPES:
        cost = cost_of(shape, costs)
        for network in networks:
            given = (shape, cost, network)
            alone = update(*given, 1, WEAK).seconds
            row = {"model": shape.title, "parameters": shape.parameters, "network": network.title, "alone": alone}
            row["weak"] = [speedup(*given, ranks, WEAK, True) for ranks in RANKS]
            row["after"] = [speedup(*given, ranks, WEAK, True, overlap=False) for ranks in RANKS]
            row["strong"] = [speedup(*given, ranks, STRONG, False) for ranks in RANKS]
            row["accumulated"] = [speedup(*given, ranks, 8 * WEAK, True, parts=8) for ranks in RANKS]
            row["collectives"] = {
                name: speedup(*given, RANKS[-1], WEAK, True, collective=each) for name, each in COLLECTIVES.items()
            }
            rows.append(row)
    return rows


def batches(
    costs: Sequence[Cost], networks: Sequence[Network] = (*NETWORKS, INTERNET), ranks: int = 128
) -> list[dict[str, Any]]:
    """Return the tokens that a rank must have in an update for 0.9 of its speed, for each model and network."""
    found = []
    for shape in SHAPES:
        given = shape, cost_of(shape, costs)
        needed = {each.title: tokens_needed(*given, each, ranks, collective=pairwise) for each in networks}
        found.append({"model": shape.title, "ranks": ranks, "tokens": needed})
    return found


def prediction_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Markdown: speed-ups over one rank."""
    heads = ["model", "link", "one rank, s", *(f"weak, {ranks}" for ranks in SHOWN)]
    heads += [f"{SHOWN[-1]}: after backward", "accumulating 8", "ring", "halving", "binomial"]
    heads += [f"strong, {ranks}" for ranks in SHOWN]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    places = [RANKS.index(ranks) for ranks in SHOWN]
    for row in rows:
        figures = [row["alone"], *(row["weak"][place] for place in places), row["after"][-1], row["accumulated"][-1]]
        figures += [row["collectives"][name] for name in ("ring", "halving", "binomial")]
        figures += [row["strong"][place] for place in places]
        lines.append(f"| {' | '.join([row['model'], row['network'], *map(_rounded, figures)])} |")
    return lines


def _rounded(number: float) -> str:
    return f"{number:,.0f}" if number >= 100 else f"{number:.3g}"


def batch_table(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Markdown: tokens of a rank, and of all ranks, in an update."""
    heads = ["model", *rows[0]["tokens"]]
    lines = [f"| {' | '.join(heads)} |", f"|{' --- |' * len(heads)}"]
    for row in rows:
        cells = [f"{each:,.0f} ({_short(each * row['ranks'])})" for each in row["tokens"].values()]
        lines.append(f"| {' | '.join([row['model'], *cells])} |")
    return lines


def _short(number: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if number >= size:
            return f"{number / size:.3g}{letter}"
    return f"{number:.0f}"
