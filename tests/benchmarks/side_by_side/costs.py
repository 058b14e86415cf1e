"""What a rank's arithmetic costs here, for `prediction`: two workers at once, of models of several widths."""

import statistics
import time
from collections.abc import Callable
from functools import partial
from types import SimpleNamespace

import numpy as np

from toolkit.models.gpt import GPT, GPTConfig
from toolkit.training.language import LanguageTask
from toolkit.training.optimizer import Adam
from toolkit.training.task import Share
from toolkit.training.workers import Workers

from .prediction import ADAM_PASSES, CORES, Cost, Shape


def measure_cost(shape: Shape, texts: int, repeats: int) -> Cost:
    """Measure a pass of each worker over one text of length/8, and over `texts` whole ones; adding up; moving."""
    config = GPTConfig(
        vocab_size=shape.vocabulary,
        d_model=shape.width,
        layers=shape.layers,
        num_heads=max(shape.width // 64, 1),
        d_ff=4 * shape.width,
        positions="learned",
        activation="gelu",
        bias=False,
        max_length=shape.length,
    )
    few, many = (
        _times(config, length, number, repeats) for length, number in ((shape.length // 8, 1), (shape.length, texts))
    )
    attention = 6 * shape.layers * shape.width
    flops = [
        n * (6 * shape.parameters + attention * length)
        for n, length in ((shape.length // 8, shape.length // 8), (shape.length * texts, shape.length))
    ]
    rate = (flops[1] - flops[0]) / (many[0] - few[0])
    here = shape.parameters / CORES
    adding, moving = ((few[place] + many[place]) / 2 for place in (1, 2))
    return Cost(
        shape.width,
        rate,
        max(0.0, few[0] - flops[0] / rate) / shape.parameters,
        adding / here / (CORES + 1),
        moving / here / ADAM_PASSES,
    )


def _times(config: GPTConfig, length: int, texts: int, repeats: int) -> tuple[float, float, float]:
    """Return the median seconds of gradients, of adding them up and of moving the parameters."""
    stream = np.random.default_rng(1).integers(config.vocab_size, size=1 << 14, dtype=np.int32)
    store = SimpleNamespace(values=stream)
    task = LanguageTask(store, store, length, whole=False)
    share = Share("train", np.arange(texts * CORES) * (len(stream) // 2 // (texts * CORES)))
    times = []
    with Workers(partial(GPT, config), task, Adam(), CORES) as workers:
        workers.model.initialize(np.random.default_rng(0))
        for number in range(repeats + 1):
            parts = [[(part, [1, number, index])] for index, part in enumerate(task.split(share, CORES))]
            calls: tuple[Callable, ...] = (
                partial(workers.gradient, parts),
                workers.reduce,
                partial(workers.update, number + 1, 1e-5, 1e-3),
            )
            times.append([_seconds(call) for call in calls])
    return tuple(map(statistics.median, zip(*times[1:], strict=True)))


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
