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
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, Muon, move_average, partition, sum_of_squares
from toolkit.training.task import Share, Task, add_sums


class Shared(NamedTuple):
    """Vectors in shared memory, all divided like the model's parameters."""

    parameters: Array
    gradients: list[Array]  # one for each worker
    moments: tuple[Array, Array]
    average: Array | None  # of the parameters


class _Worker:
    """The part of one worker, in whichever process it runs."""

    def __init__(self, index: int, model: Model, task: Task, shared: Shared, optimizer: Adam | Muon, ema: float):
        self.index, self.model, self.task, self.shared, self.optimizer = index, model, task, shared, optimizer
        self.ema = ema
        self.views = model.views(shared.gradients[index])
        self.memory = Pool()
        size = len(shared.parameters)
        count = len(shared.gradients)
        self.stretch = slice(size * index // count, size * (index + 1) // count)
        self.shards = partition(model, optimizer, count)[index]

    def gradient(self, shares: Sequence[tuple[Share, Sequence[int]]]) -> LossSums:
        """Return the sums over this worker's shares, each with the seed of its dropout masks; leave the gradient."""
        self.shared.gradients[self.index][:] = 0
        sums = [
            self.task.loss(self.model, share, Tape(self.views, np.random.SFC64(seed), self.memory))
            for share, seed in shares
        ]
        return add_sums(sums)

    def evaluate(self, shares: Sequence[Share]) -> LossSums:
        """Return the sums without gradients or dropout."""
        return add_sums([self.task.loss(self.model, share, Tape(memory=self.memory)) for share in shares])

    def compute(self, name: str, share: Any) -> Any:
        """Call a method of the task with this worker's share."""
        return getattr(self.task, name)(self.model, share, self.memory)

    def reduce(self) -> float:
        """Add all workers' gradients over this worker's stretch, into the first; return its sum of squares."""
        first, *others = (gradient[self.stretch] for gradient in self.shared.gradients)
        for other in others:
            first += other
        return sum_of_squares(first)

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move this worker's shards of the parameters, and of their average."""
        shared, model = self.shared, self.model
        for stretch, parameter in self.shards:
            theta, gradient = shared.parameters[stretch], shared.gradients[0][stretch]
            moments = tuple(moment[stretch] for moment in shared.moments)
            if parameter is None:
                decayed = max(0, min(model.decayed, stretch.stop) - stretch.start)
                self.optimizer.update(theta, gradient, moments, step, learning_rate, scale, decayed)
            else:
                self.optimizer.update_maps(parameter, theta, gradient, moments[0], learning_rate, scale)
            if shared.average is not None:
                move_average(shared.average[stretch], theta, step, self.ema)


class Workers:
    """The workers of a training run, as a context manager.

    build: makes the model, without values (called again in spawned processes). ema: decay of an average of the
    parameters; 0 for none. The model in `self.model` is the caller's to read and write between calls: its vector is
    the shared one. Raises ConfigError where there is no room for shared memory.
    """

    def __init__(
        self, build: Callable[[], Model], task: Task, optimizer: Adam | Muon, count: int = 1, ema: float = 0.0
    ):
        self.model, self.count = build(), count
        self.model.allocate()
        size = len(self.model.vector)
        raw = _raw_memory(size * 4 + 64, 3 + (ema > 0) + count, shared=count > 1)
        self.shared = _shared_vectors(raw, size, ema > 0)
        self.model.allocate(vector=self.shared.parameters)
        self._local = _Worker(0, self.model, task, self.shared, optimizer, ema)
        self._remote = functools.partial(_Remote, build, task, raw, optimizer, ema)
        self._others: list[parallel.Process] = []

    def __enter__(self) -> "Workers":
        self._limits = threadpool_limits(1)
        for index in range(1, self.count):
            self._others.append(parallel.Process(self._remote(index), _ADVICE))
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
        _exchange(parameters, average)
        try:
            yield average
        finally:
            _exchange(parameters, average)

    def _all(self, name: str, arguments: Sequence[tuple]) -> list[Any]:
        """Call a method of every worker, each with its own arguments, and collect what they return, in order."""
        for process, own in zip(self._others, arguments[1:], strict=True):
            process.send((name, own))
        with _quiet_arithmetic():
            results = [getattr(self._local, name)(*arguments[0])]
        return results + [process.receive().result() for process in self._others]


_ADVICE = "continue with --resume, or train with fewer --training.workers"


def _quiet_arithmetic() -> np.errstate:
    """Let the trainer tell once of a run that diverges, and no warnings of what overflows on the way."""
    return np.errstate(over="ignore", divide="ignore", invalid="ignore")


class _Remote:
    """A worker in a process of its own, which makes it when it is first called."""

    def __init__(self, build: Callable, task: Task, raw: list, optimizer: Adam | Muon, ema: float, index: int):
        self._made_of = (build, task, raw, optimizer, ema, index)

    def __call__(self, call: tuple[str, tuple]) -> Any:
        name, arguments = call
        with _quiet_arithmetic():
            return getattr(self._worker, name)(*arguments)

    @cached_property
    def _worker(self) -> _Worker:
        build, task, raw, optimizer, ema, index = self._made_of
        threadpool_limits(1)
        model = build()
        model.allocate(vector=None)
        shared = _shared_vectors(raw, len(model.vector), ema > 0)
        model.allocate(vector=shared.parameters)
        return _Worker(index, model, task, shared, optimizer, ema)


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


def _exchange(one: Array, other: Array) -> None:
    """Let two vectors change places."""
    for start in range(0, len(one), BLOCK_ELEMENTS):
        block = slice(start, start + BLOCK_ELEMENTS)
        kept = one[block].copy()
        one[block] = other[block]
        other[block] = kept


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
