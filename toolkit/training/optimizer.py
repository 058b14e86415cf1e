"""Optimizers over one flat vector, the averages that they keep, and their learning rate schedules.

Adam (Kingma and Ba 2015) and AdamW (Loshchilov and Hutter 2019) measure every weight by itself. Muon (Jordan et al.
2024) takes a weight matrix for the linear map that it is: all directions of its momentum are made equally long, so that
a step also goes where gradients are small. It is for the weights of linear maps; embeddings, gains and biases are left
to AdamW.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, NamedTuple, get_args, get_type_hints

import numpy as np

from toolkit.functional.arrays import BLOCK_ELEMENTS, Array, row_blocks
from toolkit.nn.module import Model, Parameter
from toolkit.training.config import UPDATES, TrainingConfig
from toolkit.training.orthogonalization import orthogonalized

# Maps that are made orthogonal together, which saves calls, have squares of about this many elements: 1 MB.
_STACKED = 262_144
# An orthogonal step has entries of root mean square 1 / √max(m, n), AdamW's about 0.2 (Liu et al. 2025, section 2.2).
_ADAM_SIZE = 0.2


@dataclass(frozen=True)
class Adam:
    """The rule by which a gradient moves the parameters.

        m ← β₁ m + (1 - β₁) g            v ← β₂ v + (1 - β₂) g²
        θ ← θ - lr · (m / (1 - β₁ᵗ)) / (√(v / (1 - β₂ᵗ)) + ε)

    eps_inside: ε stands inside the root, √(v / (1 - β₂ᵗ) + ε), as in the founding document 003: what ε is to the one,
    √ε is to the other.
    Weight decay is decoupled (AdamW: θ also shrinks by lr · λ θ) or not (Adam with L2 regularisation: λ θ is part of
    g), and applies to the leading, decayed part of the vector.
    """

    beta1: float = 0.9
    beta2: float = 0.98
    eps: float = 1e-9
    weight_decay: float = 0.0
    decoupled: bool = True
    eps_inside: bool = False

    def update(
        self,
        parameters: Array,
        gradient: Array,
        moments: tuple[Array, Array],
        step: int,
        learning_rate: float,
        scale: float,
        decayed: int,
    ) -> None:
        """Move a stretch of the parameter vector in place.

        All arrays are the same stretch of their vectors. step: counted from 1. scale: what the gradient is multiplied
        by first (1 / tokens, clipping). decayed: this many leading elements of the stretch take weight decay. The
        chain of operations runs block by block, so that each block is read from memory once.
        """
        scratch = np.empty(BLOCK_ELEMENTS, parameters.dtype), np.empty(BLOCK_ELEMENTS, parameters.dtype)
        # m̂ / (√v̂ + ε) with the corrections of both moments taken out of the loop: rate · m / (√v + floor), or where ε
        # stands inside, rate · m / √(v + floor).
        root = math.sqrt(1 - self.beta2**step)
        rate = learning_rate * root / (1 - self.beta1**step)
        floor = self.eps * (root * root if self.eps_inside else root)
        for start in range(0, len(parameters), BLOCK_ELEMENTS):
            block = slice(start, min(start + BLOCK_ELEMENTS, len(parameters)))
            theta, m, v = parameters[block], moments[0][block], moments[1][block]
            g, size = (part[: len(theta)] for part in scratch)
            decay_end = min(max(decayed - start, 0), len(theta)) if self.weight_decay else 0
            np.multiply(gradient[block], scale, out=g)
            if not self.decoupled:
                g[:decay_end] += self.weight_decay * theta[:decay_end]
            else:
                theta[:decay_end] *= 1 - learning_rate * self.weight_decay
            np.multiply(g, g, out=size)
            size *= 1 - self.beta2
            v *= self.beta2
            v += size
            g *= 1 - self.beta1
            m *= self.beta1
            m += g
            if self.eps_inside:
                np.sqrt(np.add(v, floor, out=size), out=size)
            else:
                np.sqrt(v, out=size)
                size += floor
            np.divide(m, size, out=size)
            size *= rate
            theta -= size


class Map(NamedTuple):
    """The weights of linear maps that stand side by side, with their stretches of the vectors."""

    parameter: Parameter
    theta: Array
    gradient: Array
    momentum: Array


@dataclass(frozen=True)
class Muon:
    """The rule by which a gradient moves the weights of a linear map, (m, n); `adam` moves everything else.

        u ← μ u + g            θ ← (1 - lr · λ) θ - lr · 0.2 √max(m, n) · orthogonal(g + μ u)

    with Nesterov's momentum, and steps as large as AdamW's, so that both take one learning rate and weight decay
    (Liu et al. 2025, eq. 4). Maps that stand side by side in one parameter are made orthogonal each by itself.
    """

    adam: Adam = field(default_factory=Adam)
    momentum: float = 0.95

    def update(self, *arguments: Any) -> None:
        """Move what is no linear map; see `Adam.update`."""
        self.adam.update(*arguments)

    def update_maps(self, maps: Iterable[Map], learning_rate: float, scale: float) -> None:
        """Move linear maps in place; their gradients are used up.

        scale: what the gradient is multiplied by first. A map moves by the same bits whichever others are given.
        """
        of_size: dict[int, list[tuple[Array, Array]]] = {}
        for parameter, theta, gradient, momentum in maps:
            self._accelerate(gradient, momentum, scale)
            views = (np.split(parameter.view(stretch), parameter.splits, axis=1) for stretch in (theta, gradient))
            for parts in zip(*views, strict=True):
                # The transpose becomes orthogonal with it, and lies in memory row after row.
                rows_first = tuple(part.T for part in parts) if parts[0].flags.f_contiguous else parts
                of_size.setdefault(min(parts[0].shape), []).append(rows_first)
        memory = np.empty(max(theta.size for pairs in of_size.values() for theta, _ in pairs), theta.dtype)
        for size, pairs in of_size.items():
            count = max(1, _STACKED // size**2)
            for start in range(0, len(pairs), count):
                self._move(pairs[start : start + count], learning_rate, memory)

    def _accelerate(self, gradient: Array, momentum: Array, scale: float) -> None:
        """Add a gradient to its momentum and make it Nesterov's: g ← scale · g, u ← μ u + g, g ← g + μ u."""
        scratch = np.empty(BLOCK_ELEMENTS, gradient.dtype)
        for start in range(0, len(gradient), BLOCK_ELEMENTS):
            g, u = (each[start : start + BLOCK_ELEMENTS] for each in (gradient, momentum))
            g *= scale
            u *= self.momentum
            u += g
            g += np.multiply(u, self.momentum, out=scratch[: len(g)])

    def _move(self, pairs: Sequence[tuple[Array, Array]], learning_rate: float, memory: Array) -> None:
        """Move maps, each with the direction that it takes once that is orthogonal."""
        shrink = 1 - learning_rate * self.adam.weight_decay
        lengths = [learning_rate * _ADAM_SIZE * max(theta.shape) ** 0.5 for theta, _ in pairs]
        steps = orthogonalized([direction for _, direction in pairs], lengths, memory)
        for (theta, _), step in zip(pairs, steps, strict=True):
            for rows in row_blocks(*theta.shape):
                theta[rows] *= shrink
                theta[rows] -= step[rows]


def make_optimizer(config: TrainingConfig) -> Adam | Muon:
    """Make the optimizer of a training run."""
    decoupled = config.optimizer != "adam"
    adam = Adam(config.beta1, config.beta2, config.eps, config.weight_decay, decoupled, config.eps_inside)
    return Muon(adam) if config.optimizer == "muon" else adam


class Shard(NamedTuple):
    """A stretch of the vector that one worker moves at once, and the parameter that it is if Muon moves it."""

    stretch: slice
    map: Parameter | None


def partition(
    model: Model, optimizer: Adam | Muon, count: int, buckets: Sequence[slice] | None = None
) -> list[list[Shard]]:
    """Divide the vector of a model into shards -> those of each of `count` workers, in the order of the vector.

    Muon's maps go to whoever has least to do, the largest first, and what lies between them is cut into stretches of
    whole blocks (of `BLOCK_ELEMENTS`, from where it begins), equally many for all. So the blocks, over which squares
    are added up, are the same for every number of workers. buckets: stretches each of which is divided equally by
    itself; they begin where blocks do.
    """

    def cost(parameter: Parameter) -> int:
        inputs, outputs = parameter.shape
        widths = np.diff([0, *parameter.splits, outputs]).tolist()
        return sum(min(inputs, width) ** 2 * (inputs + width) for width in widths)

    shards: list[list[Shard]] = [[] for _ in range(count)]
    work = [0] * count
    maps = maps_of(model, optimizer)
    for shard in sorted(maps, key=lambda shard: -cost(shard.map)):
        worker = work.index(min(work))
        shards[worker].append(shard)
        work[worker] += cost(shard.map)
    turn = 0
    for begin, end in gaps_between(maps, buckets or [slice(0, len(model.vector))]):
        blocks = -(-(end - begin) // BLOCK_ELEMENTS)
        bounds = [min(begin + blocks * i // count * BLOCK_ELEMENTS, end) for i in range(count + 1)]
        for i in range(count):
            if bounds[i] < bounds[i + 1]:
                shards[(i + turn) % count].append(Shard(slice(*bounds[i : i + 2]), None))
        turn += blocks % count  # or the last ones would get all the odd blocks
    return [sorted(own, key=lambda shard: shard.stretch.start) for own in shards]


def maps_of(model: Model, optimizer: Adam | Muon) -> list[Shard]:
    """Find the parameters that the optimizer moves as linear maps, in the order of the vector."""
    if isinstance(optimizer, Adam):
        return []
    places = [(each, begin) for each, begin in model.places() if each.splits is not None and min(each.shape) > 1]
    return sorted((Shard(slice(begin, begin + each.size), each) for each, begin in places), key=lambda x: x[0].start)


def gaps_between(maps: Sequence[Shard], buckets: Sequence[slice]) -> list[tuple[int, int]]:
    """Find the stretches of buckets in which no maps are."""
    found = []
    for bucket in buckets:
        begin = bucket.start
        inside = [shard.stretch for shard in maps if bucket.start <= shard.stretch.start < bucket.stop]
        for stretch in [*inside, slice(bucket.stop, bucket.stop)]:
            if begin < stretch.start:
                found.append((begin, stretch.start))
            begin = stretch.stop
    return found


def move_average(average: Array, parameters: Array, step: int, decay: float) -> None:
    """Move an exponential average of the parameters in place, after step t of the optimizer:

        d = min(decay, (1 + t) / (10 + t))            e ← d e + (1 - d) θ

    Both arrays are the same stretch of their vectors. The smaller decay of the first steps (as in TensorFlow's
    ExponentialMovingAverage) lets the average forget the initial values.
    """
    decay = min(decay, (1 + step) / (10 + step))
    scratch = np.empty(BLOCK_ELEMENTS, parameters.dtype)
    for start in range(0, len(parameters), BLOCK_ELEMENTS):
        e, theta = (vector[start : start + BLOCK_ELEMENTS] for vector in (average, parameters))
        e *= decay
        e += np.multiply(theta, 1 - decay, out=scratch[: len(theta)])


def sum_of_squares(x: Array) -> float:
    """Return Σ x², added up in float64 block by block, so that it neither overflows early nor loses small entries."""
    total = 0.0
    for start in range(0, len(x), BLOCK_ELEMENTS):
        block = x[start : start + BLOCK_ELEMENTS]
        total += float(np.vdot(block, block))
    return total


def clip_scale(norm: float, limit: float) -> float:
    """Return the factor that brings a gradient of this norm to a norm of at most `limit`; 0 means no limit."""
    return limit / norm if limit and norm > limit else 1.0


Schedule = Callable[[int], float]


def make_schedule(
    name: str, learning_rate: float, warmup: int, updates: int, final: float = 0.0, width: int = 512
) -> Schedule:
    """Make a schedule: a function from the number of the update, counted from 1, to its learning rate.

    All rise linearly over the first `warmup` updates.

    noam: learning_rate · D^-½ · min(t^-½, t · warmup^-1½) (Vaswani et al. 2017, eq. 3; here learning_rate is the
    paper's factor, about 1, and D is `width`).
    inverse_sqrt: up to learning_rate, then down with 1 / √t.
    cosine: up to learning_rate, then half a wave down to `final` at update `updates`.
    constant: up to learning_rate and on.
    Raises ValueError for another name.
    """

    def rate(update: int) -> float:
        ramp = min(update / warmup, 1.0) if warmup else 1.0
        if name == "noam":
            return learning_rate * width**-0.5 * min(update**-0.5, update * max(warmup, 1) ** -1.5)
        if name == "inverse_sqrt":
            return learning_rate * min(ramp, math.sqrt(max(warmup, 1) / update))
        if name == "constant" or update < warmup:
            return learning_rate * ramp
        progress = min((update - warmup) / max(updates - warmup, 1), 1.0)
        return final + (learning_rate - final) * 0.5 * (1 + math.cos(math.pi * progress))

    if name not in (schedules := get_args(get_type_hints(TrainingConfig)["schedule"])):
        raise ValueError(f"unknown schedule {name!r}: one of {', '.join(schedules)}")
    return rate


def describe_extension(before: Mapping[str, Any], now: Mapping[str, Any], done: int) -> str:
    """Say what becomes of the learning rate where a run of `done` updates gets another end.

    before, now: the settings by their full names. A schedule that falls until the end falls until the new one.
    """
    usual = asdict(TrainingConfig())
    names = "schedule", "learning_rate", "warmup", "updates", "final_learning_rate"
    was, will = (
        make_schedule(*(given.get(f"training.{name}", usual[name]) for name in names)) for given in (before, now)
    )
    updates = f"{now[UPDATES]} updates in place of {before[UPDATES]}"
    if all(was(update) == will(update) for update in range(1, done + 1)):
        every = before.get("training.validate_every", usual["validate_every"])
        but = f", but that it was validated at update {done} too" if done == before[UPDATES] and done % every else ""
        return f"{updates}: the result will be that of a run which was asked for them at once{but}"
    rates = f"was {was(done):.3g} at update {done} and is {will(done + 1):.3g} at the next"
    return f"{updates}: the learning rate, which falls until the last one, {rates}, as in no run of that length"
