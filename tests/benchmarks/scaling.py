"""How cost grows: a training update and a decoding step against sequence length, batch and width, on one core.

    python tests/benchmarks/scaling.py --json scaling.json --picture scaling

Of each point: the whole time, the part of it that is spent in matrix products, and how much of the core's peak the
whole reaches; of a decoding step also how fast weights and cache are read, which is what bounds it. The peak is that of
a large product, measured before and after; the products are those of the real pass, timed where it calls them.
"""

import argparse
import json
import os
import statistics
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from side_by_side.machine import describe, in_words
from side_by_side.picture import picture
from threadpoolctl import threadpool_limits

from toolkit.decoding.state import GPTState
from toolkit.models.gpt import GPT, GPTConfig, text_batch
from toolkit.nn.memory import Pool
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, sum_of_squares

VOCABULARY = 4000
LENGTHS, WIDTHS = (64, 128, 256, 512, 1024), (64, 128, 256, 512, 768)
BATCHES = {"training": (1, 2, 4, 8, 16, 32), "decoding": (1, 2, 4, 8, 16, 32, 64)}
MIDDLE = {"length": 256, "batch": 8, "width": 256}  # of what does not vary


class Point(NamedTuple):
    """What was measured of one shape."""

    work: str  # "training" or "decoding"
    varied: str  # "length", "batch" or "width"
    length: int  # of the texts; of a decoding step, what has been read before
    batch: int
    width: int
    tokens: int  # of one step
    seconds: float  # of one step, the median
    products: float  # of them in matrix products
    flops: int  # of the products of one step
    streamed: int  # bytes of weights and cache that a decoding step reads; 0 for training


class Products:
    """Times every product and counts its arithmetic, while it stands in for the two functions that compute them."""

    NAMES = ("matmul", "vecdot")

    def __init__(self) -> None:
        self.seconds, self.flops = 0.0, 0

    def _counted(self, function: Callable) -> Callable:
        def call(a: np.ndarray, b: np.ndarray, *rest: Any, **named: Any) -> np.ndarray:
            begin = time.perf_counter()
            result = function(a, b, *rest, **named)
            self.seconds += time.perf_counter() - begin
            self.flops += 2 * result.size * a.shape[-1]
            return result

        return call

    @contextmanager
    def counting(self):
        kept = {name: getattr(np, name) for name in self.NAMES}
        for name, function in kept.items():
            setattr(np, name, self._counted(function))
        try:
            yield self
        finally:
            for name, function in kept.items():
                setattr(np, name, function)


def build(length: int, width: int) -> GPT:
    """Four layers with heads of 32, and a feed-forward network of four times the width."""
    heads = max(width // 32, 1)
    sizes = {"vocab_size": VOCABULARY, "d_model": width, "num_heads": heads, "d_ff": 4 * width, "layers": 4}
    model = GPT(GPTConfig(**sizes, positions="learned", max_length=length))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    return model


def training(length: int, batch: int, width: int) -> tuple[Callable[[], None], int, int]:
    """An update, its tokens, and nothing that is only read."""
    model, optimizer, memory = build(length, width), Adam(), Pool()
    gradient, *moments = (np.zeros_like(model.vector) for _ in range(3))
    texts = list(np.random.default_rng(1).integers(16, VOCABULARY, (batch, length + 1)))

    def update() -> None:
        gradient[:] = 0
        tape = Tape(model.views(gradient), memory=memory)
        model.loss(text_batch(texts), tape)
        model.backward(tape)
        scale = 1 / (sum_of_squares(gradient) ** 0.5 + 1)
        optimizer.update(model.vector, gradient, tuple(moments), 1, 1e-4, scale, model.decayed)

    return update, batch * length, 0


def decoding(length: int, batch: int, width: int, room: int) -> tuple[Callable[[], None], int, int]:
    """A step over the cache, its tokens, and the bytes of weights and cache that it reads.  room: steps to be made."""
    model = build(length + room, width)
    rng = np.random.default_rng(1)
    session = GPTState(model, rng.integers(16, VOCABULARY, (batch, length)).tolist(), Pool(), new_tokens=room)
    ids = session.begin

    def step() -> None:
        session.logits(ids).argmax(axis=1)

    cache = 2 * 4 * batch * length * width * model.config.layers
    return step, batch, 4 * (model.parameter_count - (length + room) * width) + cache


def measure(work: str, varied: str, seconds: float, **shape: int) -> Point:
    """The median of the steps made in so many seconds, then of some whose products are timed."""
    most = 1000
    products = Products()
    with products.counting():  # from the beginning: a step may keep the function that it will call
        step, tokens, streamed = training(**shape) if work == "training" else decoding(**shape, room=most)
        step()
        whole, of_products, flops, end = [], [], 0, time.perf_counter() + seconds
        while len(whole) < 3 or (time.perf_counter() < end and len(whole) < most - 1):
            products.seconds, products.flops = 0.0, 0
            begin = time.perf_counter()
            step()
            whole.append(time.perf_counter() - begin)
            of_products.append(products.seconds)
            flops = products.flops
    return Point(work, varied, *shape.values(), tokens, *map(statistics.median, (whole, of_products)), flops, streamed)


def peak(size: int = 1536) -> float:
    """FLOP a second of a large product, the best of ten."""
    a, b = (np.random.default_rng(0).random((size, size), np.float32) for _ in range(2))
    out, times = np.empty_like(a), []
    for _ in range(10):
        begin = time.perf_counter()
        np.matmul(a, b, out=out)
        times.append(time.perf_counter() - begin)
    return 2 * size**3 / min(times)


def table(points: list[Point], best: float) -> list[str]:
    heads = ("work", "length", "batch", "width", "ms", "tokens/s", "in products", "GFLOP/s", "of the peak", "GB/s")
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for p in points:
        shape = [f"**{n}**" if p.varied == k else str(n) for k, n in zip(MIDDLE, p[2:5], strict=True)]
        rate = p.flops / p.seconds
        figures = [f"{1e3 * p.seconds:.2f}", f"{p.tokens / p.seconds:,.0f}", f"{p.products / p.seconds:.0%}"]
        figures += [f"{rate / 1e9:.1f}", f"{rate / best:.0%}"]
        figures.append(f"{p.streamed / p.seconds / 1e9:.1f}" if p.streamed else "–")
        lines.append(f"| {' | '.join([p.work, *shape, *figures])} |")
    return lines


def draw(points: list[Point], best: float, path: Path) -> None:
    """`path`.svg and `path`.png: a row for training and one for decoding, a column for what varies."""
    figure = picture(points, best)
    for ending in ("svg", "png"):
        figure.savefig(path.with_suffix(f".{ending}"), dpi=160)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=2.0, help="time for each point")
    parser.add_argument("--work", choices=list(BATCHES), nargs="+", default=list(BATCHES))
    parser.add_argument("--json", type=Path, help="write everything measured to this file")
    parser.add_argument("--picture", type=Path, help="draw it, as this name with .svg and .png")
    arguments = parser.parse_args()
    points, machine, loads = [], describe(1), []
    with threadpool_limits(1, user_api="blas"):
        best = peak()
        for work in arguments.work:
            for varied, values in {"length": LENGTHS, "batch": BATCHES[work], "width": WIDTHS}.items():
                loads.append(os.getloadavg()[0])
                for value in values:
                    points.append(measure(work, varied, arguments.seconds, **(MIDDLE | {varied: value})))
                    print(".", end="", flush=True)
        best = max(best, peak())
    print(f"\n{in_words(machine, [*loads, os.getloadavg()[0]])}\n\none core, peak {best / 1e9:.0f} GFLOP/s\n")
    print("\n".join(table(points, best)))
    if arguments.json:
        found = {"machine": machine, "loads": loads, "peak": best, "points": [point._asdict() for point in points]}
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if arguments.picture:
        draw(points, best, arguments.picture)


if __name__ == "__main__":
    main()
