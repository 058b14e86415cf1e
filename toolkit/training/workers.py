"""Workers: processes that share the parameters and divide the arithmetic of every update.

A worker's step is a function of (parameters, its shares, seeds) that leaves a gradient sum and returns loss sums. The
parameters, their average where there is one, the moments of the optimizer and one gradient vector a worker lie in
shared memory. An update is three messages to every worker: compute your gradient; add up your stretch of all gradients;
move your shards of the parameters. The main process is the first worker, and the only one where there is one.

Processes, not threads: every NumPy call takes the interpreter's lock again, and on short calls two threads wait for
each other longer than they work.
"""

import functools
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit import parallel
from toolkit.errors import ConfigError
from toolkit.functional.arrays import BLOCK_ELEMENTS, Array
from toolkit.functional.output_loss import LossSums
from toolkit.nn import memory
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, Map, Muon, move_average, partition, sum_of_squares
from toolkit.training.task import Evaluator, Share, Task, add_sums


class Shared(NamedTuple):
    """Vectors in shared memory, all divided like the model's parameters."""

    parameters: Array
    gradients: list[Array]  # one for each worker
    moments: tuple[Array, Array]
    average: Array | None  # of the parameters


class _Worker:
    """The part of one worker, in whichever process it runs; a spawned process makes it anew of its arguments."""

    def __init__(
        self,
        build: Callable[[], Model],
        task: Task,
        raw: list,
        optimizer: Adam | Muon,
        ema: float,
        evaluator: Evaluator,
        index: int,
    ):
        self._made_of = (build, task, raw, optimizer, ema, evaluator, index)
        self.task, self.optimizer, self.ema, self.evaluator, self.index = task, optimizer, ema, evaluator, index
        self.model, self.memory = build(), Pool()
        self.model.allocate()
        size = len(self.model.vector)
        self.shared = _shared_vectors(raw, size, ema > 0)
        self.model.allocate(vector=self.shared.parameters)
        self.views, count = self.model.views(self.shared.gradients[index]), len(self.shared.gradients)
        self.stretch = slice(size * index // count, size * (index + 1) // count)
        self.shards = partition(self.model, optimizer, count)[index]

    def __reduce__(self) -> tuple:
        return _Worker, self._made_of

    def __call__(self, call: tuple[str, tuple]) -> Any:
        """Call a method, without warnings of overflow: the trainer tells once of a run that diverges."""
        name, arguments = call
        _ = self._limits
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return getattr(self, name)(*arguments)

    @cached_property
    def _limits(self) -> threadpool_limits:
        return threadpool_limits(1)  # in the process that works

    def gradient(self, shares: Sequence[tuple[Share, Sequence[int]]]) -> LossSums:
        """Compute the gradient of shares, each with the seed of its dropout masks, and return their sums."""
        unwritten, sums = set(self.views), []
        if memory.poison:
            for view in self.views.values():
                view.fill(np.nan)
        for share, seed in shares:
            tape = Tape(self.views, np.random.SFC64(seed), self.memory, unwritten=unwritten)
            sums.append(self.task.loss(self.model, share, tape))
        for parameter in unwritten:  # that no share has used
            self.views[parameter][...] = 0
        return add_sums(sums)

    def evaluate(self, shares: Sequence[Share]) -> LossSums:
        return add_sums([self.task.loss(self.model, share, Tape(memory=self.memory)) for share in shares])

    def compute(self, name: str, share: Any) -> Any:
        return getattr(self.task, name)(self.model, share, self.memory)

    def answers(self, pieces: Sequence[Any]) -> list[Any]:
        return self.evaluator.answers(self.model, pieces) if pieces else []

    def reduce(self) -> float:
        """Add all workers' gradients over this worker's stretch, into the first; return its sum of squares."""
        first, *others = (gradient[self.stretch] for gradient in self.shared.gradients)
        total = 0.0
        for start in range(0, len(first), BLOCK_ELEMENTS):
            block = slice(start, start + BLOCK_ELEMENTS)
            for other in others:
                first[block] += other[block]
            total += sum_of_squares(first[block])
        return total

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move this worker's shards of the parameters, and of their average."""
        shared, model, maps = self.shared, self.model, []
        for stretch, parameter in self.shards:
            theta, gradient = shared.parameters[stretch], shared.gradients[0][stretch]
            moments = tuple(moment[stretch] for moment in shared.moments)
            if parameter is None:
                decayed = max(0, min(model.decayed, stretch.stop) - stretch.start)
                self.optimizer.update(theta, gradient, moments, step, learning_rate, scale, decayed)
            else:
                maps.append(Map(parameter, theta, gradient, moments[0]))
        if maps:
            self.optimizer.update_maps(maps, learning_rate, scale)
        if shared.average is not None:
            for stretch, _ in self.shards:
                move_average(shared.average[stretch], shared.parameters[stretch], step, self.ema)


class Workers:
    """The workers of a training run, as a context manager.

    build: makes the model, without values (called again in spawned processes). ema: decay of an average of the
    parameters; 0 for none. evaluator: see `answers`. The model in `self.model` is the caller's to read and write
    between calls: its vector is the shared one. Raises ConfigError where there is no room for shared memory.
    """

    def __init__(
        self,
        build: Callable[[], Model],
        task: Task,
        optimizer: Adam | Muon,
        count: int = 1,
        ema: float = 0.0,
        evaluator: Evaluator | None = None,
    ):
        model, self.count = build(), count
        model.allocate()
        raw = _raw_memory(len(model.vector) * 4 + 64, 3 + (ema > 0) + count, shared=count > 1)
        self._make = functools.partial(_Worker, build, task, raw, optimizer, ema, evaluator or Evaluator())
        self._local = self._make(0)
        self.model, self.shared = self._local.model, self._local.shared
        self._others: list[parallel.Process] = []

    def __repr__(self) -> str:
        return f"<Workers: {self.count}, {type(self.model).__name__}>"

    def __enter__(self) -> "Workers":
        self._limits = threadpool_limits(1)
        for index in range(1, self.count):
            advice = "continue with --resume, or train with fewer --training.workers"
            self._others.append(parallel.Process(self._make(index), advice))
        return self

    def __exit__(self, *_: object) -> None:
        parallel.close_all(self._others, patience=5)
        self._others = []
        self._limits.restore_original_limits()

    def gradient(self, shares: Sequence[Sequence[tuple[Share, Sequence[int]]]]) -> LossSums:
        """Compute the gradient of one list of (share, seed) for each worker -> the sums over all."""
        return add_sums(self._all("gradient", [(own,) for own in shares]))

    def evaluate(self, shares: Sequence[Sequence[Share]]) -> LossSums:
        """Compute one list of shares for each worker -> the sums over all, without gradients or dropout."""
        return add_sums(self._all("evaluate", [(own,) for own in shares]))

    def compute(self, name: str, shares: Sequence[Any]) -> list[Any]:
        """Call task.name(model, share, memory) with one share for each worker -> the results, in order."""
        return self._all("compute", [(name, own) for own in shares])

    def answers(self, pieces: Sequence[Any]) -> list[Any]:
        """Let the evaluator do pieces of its work, dealt in turn -> its answers, in the order of the pieces."""
        found = self._all("answers", [(pieces[index :: self.count],) for index in range(self.count)])
        return [found[place % self.count][place // self.count] for place in range(len(pieces))]

    def reduce(self) -> float:
        """Add all gradients up; return the norm of the sum."""
        return sum(self._all("reduce", [()] * self.count)) ** 0.5

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move all parameters."""
        self._all("update", [(step, learning_rate, scale)] * self.count)

    @contextmanager
    def averaged(self) -> Iterator[Array | None]:
        """Let the model hold the averaged parameters within the block -> the parameters themselves.

        Without an average nothing changes, and None is given.
        """
        parameters, average = self.shared.parameters, self.shared.average
        if average is None:
            yield None
            return

        def exchange() -> None:
            for start in range(0, len(average), BLOCK_ELEMENTS):
                block = slice(start, start + BLOCK_ELEMENTS)
                parameters[block], average[block] = average[block], parameters[block].copy()

        exchange()
        try:
            yield average
        finally:
            exchange()

    def _all(self, name: str, arguments: Sequence[tuple]) -> list[Any]:
        """Call a method of every worker, each with its own arguments, and collect what they return, in order."""
        for process, own in zip(self._others, arguments[1:], strict=True):
            process.send((name, own))
        results = [self._local((name, arguments[0]))]
        return results + [parallel.result_of(process.receive()) for process in self._others]


def _raw_memory(size: int, count: int, shared: bool) -> list:
    """Make blocks of memory that processes share; one worker does as well with memory of its own.

    Forked processes inherit it, so that it needs no file, whose disk may be full when it is written to; for spawned
    ones there is no other way. Raises ConfigError where the system has no room for it.
    """
    if not shared:
        return [np.zeros(size, np.uint8) for _ in range(count)]
    forked = parallel.START_METHOD == "fork"
    make = functools.partial(mmap.mmap, -1) if forked else functools.partial(parallel.context().RawArray, "b")
    try:
        return [make(size) for _ in range(count)]
    except OSError as error:
        raise ConfigError(
            f"there is no room for the memory that workers share, {count * size / 1e6:.0f} MB "
            f"({error.strerror or error}): make room, or train with --training.workers 1"
        ) from error


def _shared_vectors(raw: list, size: int, averaged: bool) -> Shared:
    """View the shared blocks as vectors that begin on a cache line."""
    vectors = []
    for block in raw:
        array = np.frombuffer(block, np.uint8)
        start = -array.ctypes.data % 64
        vectors.append(array[start : start + size * 4].view(np.float32))
    parameters, first, second, *others = vectors
    average = others.pop(0) if averaged else None
    return Shared(parameters, others, (first, second), average)
