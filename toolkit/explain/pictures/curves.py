"""Training curves of one run or several: a panel for each figure, a colour for each run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toolkit.display import visible
from toolkit.errors import ConfigError
from toolkit.explain.pages.writing import clipped
from toolkit.explain.pictures.drawing import Picture, figure_png, figure_svg, load_matplotlib, own_style
from toolkit.explain.pictures.logs import TRAINING, VALIDATION, RunLog, Series
from toolkit.functional.arrays import Array

LOSS, LIKELIHOOD, SPEED = "loss", "negative_log_likelihood", "tokens_per_second"

# What comes first and what comes last among the panels; all others stand between, as the logs have them.
_FIRST = (
    *("reward", "kl_to_reference", LIKELIHOOD, LOSS, "validation_loss"),
    *("perplexity", "bits_per_byte", "chrf", "bleu", "accuracy"),
)
_LAST = ("learning_rate", "gradient_norm", SPEED)
_TITLES = {
    LIKELIHOOD: "negative log-likelihood",
    "chrf": "chrF",
    "bleu": "BLEU",
    SPEED: "tokens / s",
    "kl_to_reference": "KL to the reference",
    "approx_kl": "approximate KL of an update",
    "ended": "share ended",
    "reward_std": "reward, standard deviation",
}
_LOG_WORDS = ("loss", LIKELIHOOD, "perplexity", "gradient_norm", "error", "mse")
_LOG_FROM = 4.0  # the ratio of the largest to the smallest value from which on an axis is logarithmic

_COLORS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F3C8D", "#5C5C5C", "#A6761D", "#B2182B")
_WIDTH, _HEIGHT = 4.2, 2.7  # inches of a panel
_LONGEST_NAME = 60  # cells


@dataclass(frozen=True)
class Panel:
    """One metric, and who has it: the number of the run, the part of its log, the values."""

    metric: str
    lines: Sequence[tuple[int, str, Series]]


def metric_names(logs: Sequence[RunLog]) -> list[str]:
    """The names of all figures in the logs, in the order of the panels."""
    names = list(dict.fromkeys(name for log in logs for _, name in log.series))
    between = [name for name in names if name not in _FIRST and name not in _LAST]
    return [*(n for n in _FIRST if n in names), *between, *(n for n in _LAST if n in names)]


def panels(logs: Sequence[RunLog], metrics: Sequence[str] = ()) -> list[Panel]:
    """What is drawn: the metrics asked for, or all of them that say something of their own.

    The loss of validation stands beside the training's negative log-likelihood, where that has a panel and is the same
    quantity (training's loss may be smoothed), and else beside its loss.

    Raises ConfigError for a metric that no log has.
    """
    known = metric_names(logs)
    unknown = [name for name in metrics if name not in known]
    if unknown:
        raise ConfigError(f"there is no metric {unknown[0]!r} in these logs: choose from {', '.join(known)}")
    if not metrics and not any(map(_likelihood_differs, logs)):
        known = [name for name in known if name != LIKELIHOOD]
    chosen = list(dict.fromkeys(metrics)) or known
    return [Panel(metric, _lines(logs, metric, LIKELIHOOD in chosen)) for metric in chosen]


def _lines(logs: Sequence[RunLog], metric: str, has_likelihood: bool) -> list[tuple[int, str, Series]]:
    lines = []
    for number, log in enumerate(logs):
        moved = has_likelihood and (VALIDATION, "perplexity") in log.series
        for (part, name), series in log.series.items():
            shown = LIKELIHOOD if moved and (part, name) == (VALIDATION, LOSS) else name
            if shown == metric:
                lines.append((number, part, series))
    return lines


def _likelihood_differs(log: RunLog) -> bool:
    loss, likelihood = log.series.get((TRAINING, LOSS)), log.series.get((TRAINING, LIKELIHOOD))
    if likelihood is None:
        return False
    return loss is None or not np.array_equal(loss.values, likelihood.values, equal_nan=True)


class CurvePicture(Picture):
    """Training curves, drawn by matplotlib.

    axis: "updates", "tokens" or "seconds" (spent in updates). Raises ConfigError without matplotlib, and as `panels`.
    """

    def __init__(self, logs: Sequence[RunLog], metrics: Sequence[str] = (), axis: str = "updates"):
        load_matplotlib()
        self.logs, self.axis, self.panels = logs, axis, panels(logs, metrics)

    @property
    def svg(self) -> str:
        with own_style(log.name for log in self.logs):
            return figure_svg(self.figure())

    def png(self) -> bytes:
        with own_style(log.name for log in self.logs):
            return figure_png(self.figure())

    def figure(self) -> Any:
        """A figure of matplotlib, to be changed or shown by its means."""
        from matplotlib.figure import Figure

        count = len(self.panels)
        columns = next((width for width in (1, 2, 3) if count <= width * width), 4)
        rows, scale = -(-count // columns), 1.5 if columns == 1 else 1
        figure = Figure(figsize=(columns * _WIDTH * scale, rows * _HEIGHT * scale + 0.5), layout="constrained")
        unit, label = self._unit()
        for place, panel in enumerate(self.panels, start=1):
            self._draw(figure.add_subplot(rows, columns, place), panel, unit)
        figure.supxlabel(label, fontsize=9)
        self._legend(figure, columns)
        return figure

    def _x(self, number: int, series: Series, unit: float) -> Array:
        return self.logs[number].at(series.updates, self.axis) / unit

    def _unit(self) -> tuple[float, str]:
        """What one on the axis stands for, and what it is called."""
        if self.axis != "seconds":
            return 1, self.axis
        longest = max(log.clock[-1, 2] for log in self.logs)
        unit, name = (3600, "hours") if longest > 7200 else (60, "minutes") if longest > 180 else (1, "seconds")
        return unit, f"{name} in updates"

    def _draw(self, axes: Any, panel: Panel, unit: float) -> None:
        from matplotlib.ticker import EngFormatter, FuncFormatter

        axes.set_title(title(panel), fontsize=10, loc="left", parse_math=False)
        axes.grid(color="#e3e3e3", linewidth=0.6)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        short = (
            EngFormatter(sep="")
            if panel.metric == SPEED
            else FuncFormatter(lambda value, _: f"{value:g}".replace("-", "−"))
        )
        axes.yaxis.set_major_formatter(short)
        if any(part == VALIDATION for _, part, _ in panel.lines):
            axes.margins(y=0.08)
        for number, part, series in panel.lines:
            x = self._x(number, series, unit)
            axes.plot(x, series.values, color=color(number, len(self.logs)), **_style(part, len(x)))
        _scale(axes, panel)
        runs = {number for number, _, _ in panel.lines}
        for number in runs:
            self._mark_events(axes, number, unit)
        longest = max(
            self._x(number, each, unit).max() for number in runs for each in self.logs[number].series.values()
        )
        axes.set_xlim(-0.02 * longest, 1.02 * longest or 1)

    def _mark_events(self, axes: Any, number: int, unit: float) -> None:
        log, top = self.logs[number], axes.get_xaxis_transform()
        places = [(to, "v") for _, to in log.rollbacks] + ([] if log.diverged is None else [(log.diverged, "X")])
        for update, marker in places:
            x = float(log.at(np.array([update]), self.axis)[0]) / unit
            tint = color(number, len(self.logs))
            axes.axvline(x, color=tint, linewidth=0.9, linestyle=(0, (4, 3)), alpha=0.7)
            axes.plot([x], [1], marker=marker, color=tint, markersize=6, transform=top, clip_on=False)

    def _legend(self, figure: Any, columns: int) -> None:
        from matplotlib.lines import Line2D

        entries = [(log.name, {"color": color(n, len(self.logs)), "linewidth": 3}) for n, log in enumerate(self.logs)]
        parts = {part for panel in self.panels for _, part, _ in panel.lines}
        if VALIDATION in parts and len(parts) > 1:
            others = " and ".join(sorted(parts - {VALIDATION}, key=lambda part: (part != TRAINING, part)))
            entries += [(name, {"color": "#444444", **_style(p, 2)}) for name, p in ((others, ""), (VALIDATION,) * 2)]
        if any(log.rollbacks for log in self.logs):
            told = [f"back from update {old} to {new}" for log in self.logs for old, new in log.rollbacks]
            entries.append((told[0] if len(told) == 1 else "rollback", {**_EVENT, "marker": "v"}))
        if any(log.diverged is not None for log in self.logs):
            entries.append(("diverged", {**_EVENT, "marker": "X"}))
        legend = figure.legend(
            [Line2D([], [], **style) for _, style in entries],
            [" "] * len(entries),
            loc="outside upper left",
            ncols=max(3, columns + 1),
            frameon=False,
        )
        for text, (name, _) in zip(legend.get_texts(), entries, strict=True):
            text.set_parse_math(False)
            text.set_text(_shown(name))


_EVENT = {"color": "#444444", "linewidth": 0.9, "linestyle": (0, (4, 3)), "markersize": 6}


def title(panel: Panel) -> str:
    """What a panel is called: the name of its metric, in words."""
    if panel.metric == LOSS and all(part == TRAINING for _, part, _ in panel.lines):
        return "training loss"
    return _TITLES.get(panel.metric) or _shown(panel.metric.replace("_", " "))


def _shown(name: str) -> str:
    """The name of a run or a figure, which may have any characters and any length."""
    return clipped(visible(name), _LONGEST_NAME)


def color(number: int, count: int) -> Any:
    """The colour of a run, the same in all panels."""
    if count <= len(_COLORS):
        return _COLORS[number]
    from matplotlib import colormaps

    return colormaps["turbo"](0.05 + 0.9 * number / (count - 1))


def _style(part: str, points: int) -> dict[str, Any]:
    if part == VALIDATION:
        return {"linewidth": 1.6, "marker": "o", "markersize": 3.5 if points <= 40 else 2}
    return {"linewidth": 1.2, "alpha": 0.6} | ({"marker": "."} if points == 1 else {})


def _scale(axes: Any, panel: Panel) -> None:
    """A logarithmic axis, where a figure falls or rises by a factor; else one that shows zero if that is near."""
    values = np.concatenate([series.values for _, _, series in panel.lines])
    values = values[np.isfinite(values)]
    if not len(values):
        return
    if is_logarithmic(panel.metric, values):
        from matplotlib.ticker import LogLocator, NullFormatter

        formatter = axes.yaxis.get_major_formatter()
        axes.set_yscale("log")
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5) if values.max() < 1000 * values.min() else (1,)))
        axes.yaxis.set_major_formatter(formatter)
        axes.yaxis.set_minor_formatter(NullFormatter())
    elif values.min() >= 0 and (values.min() <= 0.4 * values.max() or panel.metric == "learning_rate"):
        axes.set_ylim(bottom=-0.02 * values.max())


def is_logarithmic(metric: str, values: Array) -> bool:
    """Does a logarithmic axis show these values better?  values: (N,), finite, N > 0."""
    named = any(word in metric for word in _LOG_WORDS)
    return bool(named and values.min() > 0 and values.max() > _LOG_FROM * values.min())
