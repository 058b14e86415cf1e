"""The section on training with wrong gradients: what the curves show, in words that their numbers decide."""

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from toolkit.explain.gradients.wrong_training import LENGTH, PAIRS, SYMBOLS, Trial, guessing, losses
from toolkit.explain.pages.blocks import Curves, Section, Table, Text

RIGHT = "right"
_MEAN_OF = 10  # updates: what is told of a curve is a mean of so many, because every batch is another
_NEAR = 0.05  # of the loss of guessing: losses that differ by less count as equal

_TASK = (
    f"A sequence-to-sequence model of two layers on each side (D 32, 4 heads, F 64, norms after the residual sums and "
    f"ReLU, as in the founding documents 000 and 001) learns to write {LENGTH} random symbols of {SYMBOLS} backwards. "
    f"Every batch is {PAIRS} new pairs, so nothing can be learned by heart. It is trained by Adam with the right "
    f"gradients, and from the same initial values on the same batches with each wrong backward put in the right "
    f"one's place, where the model's own modules call it."
)
_LESSON = (
    "A falling curve is no proof of a gradient, and one that does not fall tells not where the fault is: the check "
    "does both, in milliseconds."
)


def training_sections(
    trials: Sequence[Trial],
    errors: Mapping[Callable, float],
    seed: int,
    updates: int,
    progress: Callable[[str], None],
) -> list[Section]:
    """What these wrong backwards do to training; no section where there are none.

    errors: what the check found of each.
    """
    if not trials:
        return []
    found = {}
    for count, trial in enumerate([None, *trials], start=1):
        name = trial.name if trial else RIGHT
        progress(f"training with gradients {count} of {len(trials) + 1}: {name}")
        found[name] = losses(trial, seed, updates)
    guess = f"Who guesses symbols, and knows where they end, has a loss of {guessing():.3f} nats per token."
    told = [Text(_sentence(trial, errors[trial.backward], found[trial.name], found[RIGHT])) for trial in trials]
    lines = {name: curve(of) for name, of in found.items()}
    curves = Curves(f"loss, mean of {_MEAN_OF} updates", lines, "updates", "nats per token")
    blocks = [Text(_TASK), Text(guess), _table(trials, errors, found), curves, *told, Text(_LESSON)]
    return [Section("What wrong gradients do to training", blocks)]


def curve(found: Sequence[float]) -> tuple[list[int], list[float]]:
    """The means of every so many losses, each where the last of them is."""
    stops = list(range(_MEAN_OF, len(found) + 1, _MEAN_OF))
    return stops, [float(np.mean(found[stop - _MEAN_OF : stop])) for stop in stops]


def _table(trials: Sequence[Trial], errors: Mapping[Callable, float], found: Mapping[str, Sequence[float]]) -> Table:
    updates = len(found[RIGHT])
    points = [max(_MEAN_OF, updates * part // 4) for part in (1, 2, 3, 4)]
    header = ("gradients", "largest relative error", *(f"loss at {point}" for point in points))
    of = {RIGHT: "", **{trial.name: f"{errors[trial.backward]:.1e}" for trial in trials}}
    rows = [(name, error, *(f"{_mean(found[name], point):.3f}" for point in points)) for name, error in of.items()]
    return Table(header, rows)


def _sentence(trial: Trial, error: float, found: Sequence[float], right: Sequence[float]) -> str:
    last, best = _mean(found, len(found)), _mean(right, len(right))
    printed = f" The founding document 001 says of it: “{trial.printed}”." if trial.printed else ""
    return (
        f"{trial.name[0].upper()}{trial.name[1:]}: it {verdict(last, best)} (loss {last:.3f}, with the right gradients "
        f"{best:.3f}; the check finds an error of {error:.1e}).{printed} {trial.why}"
    )


def verdict(last: float, right: float) -> str:
    """What the last loss says, beside that of the right gradients and that of guessing."""
    near = _NEAR * guessing()
    if not np.isfinite(last):
        return "diverges"
    if last <= right + near:
        return "learns as well as with the right gradients, and yet it is wrong"
    return "is no better than guessing" if last >= guessing() - near else "learns, but worse"


def _mean(found: Sequence[float], update: int) -> float:
    return float(np.mean(found[max(0, update - _MEAN_OF) : update]))
