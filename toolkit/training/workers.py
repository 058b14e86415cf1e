"""Workers: processes that share the parameters and divide the arithmetic of every update.

A worker's step is a function of (parameters, its shares, seeds) that leaves a gradient sum and returns loss sums. The
parameters, their average where there is one, the moments of the optimizer and one gradient vector a worker lie in
shared memory. An update is three messages to every worker: compute your gradient; add up your stretch of all gradients;
move your pieces of the parameters. The main process is the first worker, and the only one where there is one.

Processes, not threads: every NumPy call takes the interpreter's lock again, and on short calls two threads wait for
each other longer than they work.
"""

import functools
import mmap
import multiprocessing
import sys
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, Protocol

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit.errors import ConfigError, ToolkitError
from toolkit.functional.arrays import BLOCK_ELEMENTS, Array
from toolkit.functional.output_loss import LossSums
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model
from toolkit.nn.tape import Tape
from toolkit.process import ignore_signals
from toolkit.training.muon import Muon, divided
from toolkit.training.optimizer import Adam, move_average, sum_of_squares

# Forked processes start at once and share what was read before; elsewhere than on Linux forking is unreliable.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"


class Task(Protocol):
    """What is trained on: knows its examples and the loss of some of them.  Pickled where processes are spawned.

    `Trainer` calls all five methods, a worker process only `loss`. What a batch is, and a share of one, is the task's
    own affair: a batch goes to `split`, a share to `loss`, and through a pipe to another process.
    """

    def batches(self, epoch: int, tokens_per_batch: int, seed: int) -> Sequence[Any]:
        """The batches of one epoch, counted from 0, of about `tokens_per_batch` tokens each; at least one.

        The same arguments give the same batches, so that a resumed run sees them again.
        """

    def validation_batches(self, tokens_per_batch: int) -> Sequence[Any]:
        """Batches that cover the validation set once, always the same. They may be larger: there is no backward."""

    def split(self, batch: Any, parts: int) -> list[Any]:
        """The shares of `parts` workers, as many as that, of about equal work; some may be empty."""

    def loss(self, model: Model, share: Any, tape: Tape) -> LossSums:
        """The loss sums of a share, zeros of an empty one; where the tape keeps, the backward pass too.

        Sums may be of a type of the task's own whose first three fields are those of `LossSums`. Gradients are sums as
        well: the trainer divides by the tokens of the whole update.
        """

    def scores(self, sums: LossSums) -> dict[str, float]:
        """What the sums over all validation batches say, by name; "loss" is one of them, and what is to be lowered."""


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
        self.pieces = divided(model, optimizer, count)[index]

    def gradient(self, shares: Sequence[tuple[Any, Sequence[int]]]) -> LossSums:
        """The sums over this worker's shares, each with the seed of its dropout masks; leaves the gradient sum."""
        self.shared.gradients[self.index][:] = 0
        sums = [
            self.task.loss(self.model, share, Tape(self.views, np.random.SFC64(seed), self.memory))
            for share, seed in shares
        ]
        return add_sums(sums)

    def evaluate(self, shares: Sequence[Any]) -> LossSums:
        """The sums without gradients or dropout."""
        return add_sums([self.task.loss(self.model, share, Tape(memory=self.memory)) for share in shares])

    def compute(self, name: str, share: Any) -> Any:
        """What a method of the task finds for this worker's share."""
        return getattr(self.task, name)(self.model, share, self.memory)

    def reduce(self) -> float:
        """Add all workers' gradients over this worker's stretch, into the first; returns its sum of squares."""
        first, *others = (gradient[self.stretch] for gradient in self.shared.gradients)
        for other in others:
            first += other
        return sum_of_squares(first)

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move this worker's pieces of the parameters, and of their average."""
        shared, model = self.shared, self.model
        for stretch, parameter in self.pieces:
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
        self._task, self._build, self._optimizer, self._count, self._ema = task, build, optimizer, count, ema
        self.model = build()
        self.model.allocate()
        size = len(self.model.vector)
        context = multiprocessing.get_context(START_METHOD)
        raw = _raw_memory(context, size * 4 + 64, 3 + (ema > 0) + count, shared=count > 1)
        self.shared = _shared_vectors(raw, size, ema > 0)
        self.model.allocate(vector=self.shared.parameters)
        self._local = _Worker(0, self.model, task, self.shared, optimizer, ema)
        self._context, self._raw = context, raw
        self._others: list[tuple[Any, Connection]] = []

    def __enter__(self) -> "Workers":
        self._limits = threadpool_limits(1)
        for index in range(1, self._count):
            ours, theirs = self._context.Pipe()
            arguments = (index, self._build, self._task, self._raw, self._optimizer, self._ema, theirs, ours)
            process = self._context.Process(target=_serve, args=arguments, daemon=True)
            process.start()
            theirs.close()
            self._others.append((process, ours))
        return self

    def __exit__(self, *_: object) -> None:
        for _, connection in self._others:  # all before any is waited for: forked workers hold their elders' ends too
            connection.close()
        for process, _ in self._others:
            process.join(timeout=5)
            if process.is_alive():
                process.kill()
                process.join()
        self._others = []
        self._limits.restore_original_limits()

    @property
    def count(self) -> int:
        return self._count

    def gradient(self, shares: Sequence[Sequence[tuple[Any, Sequence[int]]]]) -> LossSums:
        """One list of (share, seed) for each worker -> the sums over all."""
        return add_sums(self._all("gradient", [(own,) for own in shares]))

    def evaluate(self, shares: Sequence[Sequence[Any]]) -> LossSums:
        """One list of shares for each worker -> the sums over all, without gradients or dropout."""
        return add_sums(self._all("evaluate", [(own,) for own in shares]))

    def compute(self, name: str, shares: Sequence[Any]) -> list[Any]:
        """One share for each worker -> what task.name(model, share, memory) finds for each, in order."""
        return self._all("compute", [(name, own) for own in shares])

    def reduce(self) -> float:
        """Add all gradients up; returns the norm of the sum."""
        return sum(self._all("reduce", [()] * self._count)) ** 0.5

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move all parameters."""
        self._all("update", [(step, learning_rate, scale)] * self._count)

    @contextmanager
    def averaged(self) -> Iterator[Array | None]:
        """Within the block the model holds the averaged parameters -> the parameters themselves.

        Without an average nothing changes, and there is nothing to give.
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
        for (process, connection), own in zip(self._others, arguments[1:], strict=True):
            try:
                connection.send((name, own))
            except OSError:
                raise _died(process) from None
        with _quiet_arithmetic():
            results = [getattr(self._local, name)(*arguments[0])]
        for process, connection in self._others:
            try:
                failed, result = connection.recv()
            except (EOFError, OSError):
                raise _died(process) from None
            if failed:
                raise RuntimeError(f"a worker failed:\n{result}")
            results.append(result)
        return results


def _quiet_arithmetic() -> np.errstate:
    """A run that diverges is told once, by the trainer, and not by warnings about what overflows on the way."""
    return np.errstate(over="ignore", divide="ignore", invalid="ignore")


def _died(process: Any) -> ToolkitError:
    process.join(timeout=1)
    return ToolkitError(
        f"a worker process has died (exit code {process.exitcode}), perhaps for lack of memory: "
        "continue with --resume, or train with fewer --training.workers"
    )


def _serve(index, build, task, raw, optimizer, ema, connection, other_end) -> None:
    """The loop of a worker process: answer calls until the main process goes away."""
    other_end.close()
    ignore_signals()
    threadpool_limits(1)
    model = build()
    model.allocate(vector=None)
    shared = _shared_vectors(raw, len(model.vector), ema > 0)
    model.allocate(vector=shared.parameters)
    worker = _Worker(index, model, task, shared, optimizer, ema)
    while True:
        try:
            name, arguments = connection.recv()
        except (EOFError, OSError):
            return
        try:
            with _quiet_arithmetic():
                answer = (False, getattr(worker, name)(*arguments))
        except Exception:
            answer = (True, traceback.format_exc())
        try:
            connection.send(answer)
        except OSError:  # the main process has left without waiting
            return


def _raw_memory(context: Any, size: int, count: int, shared: bool) -> list:
    """Blocks of memory that processes share; one worker does as well with memory of its own.

    Forked processes inherit it, so that it needs no file, whose disk may be full when it is written to; for spawned
    ones there is no other way. Raises ConfigError where the system has no room for it.
    """
    if not shared:
        return [np.zeros(size, np.uint8) for _ in range(count)]
    make = functools.partial(mmap.mmap, -1) if START_METHOD == "fork" else functools.partial(context.RawArray, "b")
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
    """The shared blocks as vectors that begin on a cache line."""
    vectors = []
    for block in raw:
        array = np.frombuffer(block, np.uint8)
        start = -array.ctypes.data % 64
        vectors.append(array[start : start + size * 4].view(np.float32))
    parameters, first, second, *others = vectors
    average = others.pop(0) if averaged else None
    return Shared(parameters, others, (first, second), average)


def add_sums(sums: Sequence[LossSums]) -> LossSums:
    """The sums of several batches, of whatever kind the task gives: the fields of `LossSums` come first."""
    counted = [each for each in sums if each.tokens]  # a worker without a share gives plain zeros
    if not counted:
        return LossSums(0.0, 0.0, 0)
    return type(counted[0])(*(sum(column) for column in zip(*counted, strict=True)))
