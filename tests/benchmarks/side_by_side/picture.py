"""The pictures of `scaling.py` and `many_machines.py`."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, NullLocator, StrMethodFormatter

WHOLE, PRODUCTS, GREY = "#1b4965", "#9fc5de", "#5f6b73"
_MODELS = ("#9fc5de", "#5a9bc4", "#1b4965", "#c9803a", "#8c2f39")
TITLES = {
    "length": {"training": "tokens in a text", "decoding": "tokens in the cache"},
    "batch": {"training": "texts in a batch", "decoding": "texts written together"},
    "width": {"training": "width D", "decoding": "width D"},
}


def picture(points: Sequence[Any], best: float) -> Figure:
    """points: of `scaling.Point`.  best: FLOP a second that the core reaches."""
    works = list(dict.fromkeys(point.work for point in points))
    figure = Figure(figsize=(11, 3.4 * len(works)), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(len(works), 3, squeeze=False)
    for row, work in zip(panels, works, strict=True):
        for axes, varied in zip(row, TITLES, strict=True):
            _panel(axes, [point for point in points if (point.work, point.varied) == (work, varied)], best)
            axes.set_xlabel(TITLES[varied][work], color=GREY)
        named = {"training": "one update, ms", "decoding": "one step, ms"}[work]
        row[0].set_ylabel(named, color=GREY)
    panels[0][0].legend(loc="upper left", frameon=False, fontsize=9)
    figure.suptitle(
        "Time of a step, the part of it in matrix products, and the share of the core's peak (%)", fontsize=12
    )
    return figure


def _panel(axes: Axes, points: Sequence[Any], best: float) -> None:
    """Both scales are logarithmic: what grows in proportion is a straight line of the slope that the dots have."""
    values = [getattr(point, point.varied) for point in points]
    whole, products = [1e3 * point.seconds for point in points], [1e3 * point.products for point in points]
    axes.plot(values, whole, "o-", color=WHOLE, label="whole")
    axes.plot(values, products, "o-", color=PRODUCTS, label="of it, matrix products", zorder=1)
    axes.plot(values, [whole[0] * value / values[0] for value in values], ":", color=GREY, label="in proportion")
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xticks(values, [str(value) for value in values], minor=False)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_formatter(NullFormatter())
    for value, height, point in zip(values, whole, points, strict=True):
        share = point.flops / point.seconds / best
        beside = {"textcoords": "offset points", "ha": "right", "fontsize": 9}
        axes.annotate(f"{share:.0%}", (value, height), (-3, 6), **beside)
    axes.margins(x=0.2, y=0.14)
    axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=GREY)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)


def prediction_picture(rows: Sequence[Mapping[str, Any]], ranks: Sequence[int]) -> Figure:
    """Draw the efficiency of `predictions.predict`: a column for each network, weak scaling above strong.

    A line is a model; a thin one is the same where messages leave after backward.
    """
    networks = list(dict.fromkeys(row["network"] for row in rows))
    figure = Figure(figsize=(11, 6.8), layout="constrained", facecolor="white")
    FigureCanvasAgg(figure)
    panels = figure.subplots(2, len(networks), sharex=True, sharey=True, squeeze=False)
    for line, kinds in zip(panels, (("weak", "after"), ("strong",)), strict=True):
        for axes, network in zip(line, networks, strict=True):
            for number, row in enumerate(each for each in rows if each["network"] == network):
                for kind in kinds:
                    style = {"label": row["model"]} if kind != "after" else {"linewidth": 0.8, "linestyle": ":"}
                    shares = [each / count for each, count in zip(row[kind], ranks, strict=True)]
                    axes.plot(ranks, shares, color=_MODELS[number], **style)
            axes.set_title(f"{network}, {kinds[0]} scaling", fontsize=10, color=GREY)
            axes.set_xscale("log", base=2)
            axes.set_xticks(ranks[::2], [str(count) for count in ranks[::2]])
            axes.set_ylim(0, 1.1)
            axes.grid(axis="y", color="#e3e7ea", linewidth=0.8)
            axes.tick_params(colors=GREY)
            for side in ("top", "right"):
                axes.spines[side].set_visible(False)
    for axes in panels[1]:
        axes.set_xlabel("ranks, two on a machine", color=GREY)
    for line in panels:
        line[0].set_ylabel("speed of a rank, of one that is alone", color=GREY)
    panels[1][-1].legend(loc="lower left", frameon=False, fontsize=9)
    return figure
