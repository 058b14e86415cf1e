"""How near a decoding comes to another output: the borders that its choices lie beside.

Scores of a row differ in their last digits with what else is in the batch, because BLAS adds in another order. Where a
choice lies within that of a border, the other token is as right; here the border is found, and shown.
"""

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from toolkit.decoding import Hypothesis, Observer, generate
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.continuous import Request
from toolkit.decoding.hypothesis import Ranking
from toolkit.functional.arrays import Array

# Of scores, and of probabilities: as far as the order of additions moves them.
ROUNDING = 1e-5


class Border(NamedTuple):
    """A border beside which a choice lay: of which sample, at which of its tokens, how far, and which numbers."""

    sample: int
    place: int
    distance: float
    words: str


class Borders(Observer):
    """Finds the nearest border of every choice while one text is decoded."""

    def __init__(self, request: Request):
        config = request.config
        self.config, self.found, self._step = config, [], 0
        keys = [(config.seed, request.number, sample) for sample in range(config.sequences_each)]
        self._generators = [np.random.default_rng(key) for key in keys] if config.samples else []
        self._uniform = np.empty((len(self._generators), 0))
        self._rows = np.arange(0)
        self.ids: dict[int, list[int]] = defaultdict(list)  # of each sample

    def scored(self, owners: Array, logits: Array, normalizers: Array) -> None:
        """Note which sequences the rows are."""
        self._rows = owners

    def constrained(self, logits: Array, normalizers: Array) -> None:
        """Find the borders of a step of greedy search or of sampling; the scores are those that are chosen by."""
        if self.config.num_beams > 1:
            return
        if self._generators and self._step >= self._uniform.shape[1]:
            more = np.array([each.random(64) for each in self._generators])
            self._uniform = np.hstack((self._uniform, more))
        for row, sample in enumerate(self._rows.tolist()):
            if self.config.samples:
                distance, words = nearest_border(logits[row], self._uniform[sample, self._step], self.config)
            else:
                first, second = np.sort(logits[row])[[-1, -2]].astype(float)
                distance, words = first - second, f"the best score {first:.7f}, the second {second:.7f}"
            self.found.append(Border(sample, self._step, float(distance), words))
        self._step += 1

    def chosen(self, tokens: Array) -> None:
        """Note what is written."""
        for sample, token in zip(self._rows.tolist(), tokens.tolist(), strict=True):
            self.ids[sample].append(token)

    def ranked(self, ranking: Ranking) -> None:
        """Find the two candidates of a step of beam search that are closest."""
        scores = ranking.scores[0][np.isfinite(ranking.scores[0])]
        if len(scores) > 1:
            gaps = scores[:-1] - scores[1:]
            place = int(gaps.argmin())
            words = f"the scores of two candidates {scores[place]:.7f}, {scores[place + 1]:.7f}"
            self.found.append(Border(0, self._step, float(gaps[place]), words))
        self._step += 1


def nearest_border(logits: Array, uniform: float, config: GenerationConfig) -> tuple[float, str]:
    """Find the border that is nearest to a draw: of the drawn token, or of what top-k, top-p and min-p keep."""
    order = np.argsort(-logits, kind="stable")
    scores = logits[order].astype(np.float64)
    near = []
    if 0 < config.top_k < len(scores):
        first, second = scores[config.top_k - 1 : config.top_k + 1]
        near.append((first - second, f"top-k keeps the score {first:.7f}, and not {second:.7f}"))
        order, scores = order[: config.top_k], scores[: config.top_k]
    weights = np.exp((scores - scores[0]) / config.temperature)
    if config.top_p < 1:
        sums = np.cumsum(weights) / weights.sum()
        place = int(np.abs(sums - config.top_p).argmin())
        near.append((abs(sums[place] - config.top_p), f"top-p keeps {config.top_p}, a sum is {sums[place]:.7f}"))
        weights[1:][sums[:-1] >= config.top_p] = 0
    if config.min_p > 0:
        place = int(np.abs(weights - config.min_p).argmin())
        near.append((abs(weights[place] - config.min_p), f"min-p keeps {config.min_p}, one has {weights[place]:.7f}"))
        weights[weights < config.min_p] = 0
    # Without top-k the tokens are drawn in their own order, with it in that of their scores.
    if not 0 < config.top_k < len(logits):
        back = np.empty_like(weights)
        back[order] = weights
        weights = back
    sums = np.cumsum(weights) / weights.sum()
    place = int(np.abs(sums[:-1] - uniform).argmin()) if len(sums) > 1 else 0
    near.append(
        (abs(sums[place] - uniform), f"the number {uniform:.7f} was drawn, a cumulative border is {sums[place]:.7f}")
    )
    return min(near)


def decoded_alone(model: object, request: Request, observer: Observer | None = None) -> list[Hypothesis]:
    """Decode a request as the library does, with nothing else in the batch."""
    prefixes = [request.prefix] if len(request.prefix) else None
    [found] = generate(
        model,
        [request.ids],
        request.config,
        prefixes=prefixes,
        numbers=[request.number],
        bad_words=request.bad_words,
        forced_bos=request.forced_bos,
        end=request.end,
        observer=observer,
    )
    return found


def explained(model: object, request: Request, together: Sequence[Hypothesis]) -> tuple[str, bool]:
    """Say beside which borders the first choices lay that were others alone, and if all are within rounding."""
    watch = Borders(request)
    decoded_alone(model, request, watch)
    if request.config.num_beams > 1:
        near = min(watch.found, key=lambda border: border.distance)
        return f"beams, the nearest border is at token {near.place}: {near.words}", near.distance < ROUNDING
    others, words, near = [each.ids for each in together], [], True
    for sample, ids in watch.ids.items():
        written = ids[:-1] if ids[-1] == request.end else ids
        if written in others:
            others.remove(written)
            continue
        place = max((_common(ids, other) for other in others), default=0)
        found = next(each for each in watch.found if (each.sample, each.place) == (sample, place))
        words.append(f"sample {sample}, token {place}: {found.words}, {found.distance:.1e} away")
        near = near and found.distance < ROUNDING
    return "; ".join(words) or "the same tokens end in other ways", near and bool(words)


def _common(ids: Sequence[int], others: Sequence[int]) -> int:
    """Count the ids that two outputs begin with."""
    pairs = enumerate(zip(ids, others, strict=False))
    return next((place for place, (one, two) in pairs if one != two), min(len(ids), len(others)))
