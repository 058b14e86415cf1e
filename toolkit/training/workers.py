"""Workers: processes that share the parameters and divide the arithmetic of every update.

A worker's step is a function of (parameters, its parts of a batch, seeds) that leaves gradient sums and returns loss
sums. The parameters, their average where there is one, the moments of the optimizer and the gradients of the workers
lie in shared memory. An update is three messages to every worker: compute your gradients; add up your shards of all
gradients; move your shards of the parameters. The main process is the first worker, perhaps the only one.

Under MPI the workers are the ranks: the same messages travel otherwise, the shared memory is MPI's, and each machine
has its own; what machines tell each other is in `toolkit.training.exchange`.

Processes, not threads: every NumPy call takes the interpreter's lock again, and on short calls two threads wait for
each other longer than they work.
"""

import functools
import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit import mpi, parallel
from toolkit.errors import ConfigError
from toolkit.functional.arrays import BLOCK_ELEMENTS, Array
from toolkit.functional.output_loss import LossSums
from toolkit.nn import memory
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model, Parameter
from toolkit.nn.tape import Tape
from toolkit.training.optimizer import Adam, Map, Muon, move_average, partition, sum_of_squares
from toolkit.training.shards import Adder, Schedule, add_from_right, deal
from toolkit.training.task import Evaluator, Share, Task, add_sums


class Shared(NamedTuple):
    """Vectors in memory that the workers of a machine share, all divided like the model's parameters."""

    parameters: Array
    moments: tuple[Array, Array]
    average: Array | None  # of the parameters
    gradients: list[Array]  # sums over some parts of a batch, of one worker after the other; after `reduce`, of all


class Setup(NamedTuple):
    """Everything that a worker is made of, in whichever process, but its number."""

    build: Callable[[], Model]
    task: Task
    optimizer: Adam | Muon
    ema: float
    evaluator: Evaluator
    parts: int  # of a batch
    count: int  # of workers
    raw: list | None  # memory that worker processes share; ranks have MPI's


class _Worker:
    """The part of one worker, in whichever process it runs; a spawned process or a rank makes it anew of its setup."""

    def __init__(self, setup: Setup, index: int):
        self._made_of = setup, index
        _, self.task, self.optimizer, self.ema, self.evaluator, *_ = setup
        self.model, self.memory = setup.build(), Pool()
        self.model.allocate()
        schedules, own = [Schedule(shards) for shards in deal(setup.parts, setup.count)], index
        if setup.raw is None:
            here = mpi.world()
            schedules, own = [schedules[rank] for rank in here.of_this_machine], here.machine.rank
        size, count = len(self.model.vector), 3 + (self.ema > 0) + max(1, sum(each.buffers for each in schedules))
        self._memory_of_ranks = None if setup.raw else mpi.SharedMemory(_bytes(size), count)
        raw = setup.raw or self._memory_of_ranks.blocks
        self.shared = _shared_vectors(raw, size, self.ema > 0)
        self.model.allocate(vector=self.shared.parameters)
        rest = iter(self.shared.gradients)
        gradients = [[next(rest) for _ in range(each.buffers)] for each in schedules]
        self.schedule, self.gradients = schedules[own], gradients[own]
        self.views = [self.model.views(gradient) for gradient in self.gradients]
        held = [(node, vectors[i]) for each, vectors in zip(schedules, gradients, strict=True) for node, i in each.held]
        self.held, self.adder = [vector for _, vector in held], Adder([node for node, _ in held])
        self.shards = partition(self.model, self.optimizer, setup.count)[index]

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

    def gradient(self, parts: Sequence[Sequence[tuple[Share, Sequence[int]]]]) -> list[LossSums]:
        """Compute the gradients of parts, each a list of shares with the seeds of dropout masks -> the sums of each.

        The gradients of parts that stand side by side in the tree are added up.
        """
        sums = []
        for leaf, shares in zip(self.schedule.leaves, parts, strict=True):
            sums.append(self._part(self.views[leaf.buffer], shares))
            if len(leaf.added) > 1:
                add_from_right([self.gradients[buffer] for buffer in leaf.added])
        return sums

    def _part(self, views: dict[Parameter, Array], shares: Sequence[tuple[Share, Sequence[int]]]) -> LossSums:
        unwritten, sums = set(views), []
        if memory.poison:
            for view in views.values():
                view.fill(np.nan)
        for share, seed in shares:
            tape = Tape(views, np.random.SFC64(seed), self.memory, unwritten=unwritten)
            sums.append(self.task.loss(self.model, share, tape))
        for parameter in unwritten:  # that no share has used
            views[parameter][...] = 0
        return add_sums(sums)

    def evaluate(self, parts: Sequence[Sequence[Share]]) -> list[LossSums]:
        def loss(share: Share) -> LossSums:
            return self.task.loss(self.model, share, Tape(memory=self.memory))

        return [add_sums([loss(share) for share in shares]) for shares in parts]

    def compute(self, name: str, parts: Sequence[Any]) -> list[Any]:
        return [getattr(self.task, name)(self.model, part, self.memory) for part in parts]

    def answers(self, pieces: Sequence[Any]) -> list[Any]:
        return self.evaluator.answers(self.model, pieces) if pieces else []

    def reduce(self) -> list[float]:
        """Add up the gradients over this worker's shards, into the first -> the sums of squares of their blocks."""
        squares, total = [], self.shared.gradients[0]
        for stretch, _ in self.shards:
            for start in range(stretch.start, stretch.stop, BLOCK_ELEMENTS):
                block = slice(start, min(start + BLOCK_ELEMENTS, stretch.stop))
                self.adder.add([vector[block] for vector in self.held], whole=True)
                squares.append(sum_of_squares(total[block]))
        return squares

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

    def leave(self) -> None:
        """Give up MPI's memory, as all ranks do together; the model keeps its values."""
        self.model.allocate(vector=self.shared.parameters.copy())
        self.shared = self.views = self.held = self.gradients = None
        self._memory_of_ranks.free()


class _Elsewhere(NamedTuple):
    """A worker that is yet to be made, by whoever unpickles it."""

    setup: Setup
    index: int

    def __reduce__(self) -> tuple:
        return _Worker, tuple(self)


class Workers:
    """The workers of a training run, as a context manager.

    build: makes the model, without values (called again in spawned processes and ranks). count: worker processes; where
    this process leads ranks, they are the workers. ema: decay of an average of the parameters; 0 for none. evaluator:
    see `answers`. shards: parts that a batch is divided into, so that no bit depends on the number of workers; 0 for
    one part a worker.

    The model in `self.model` is the caller's to read and write between calls: its vector is the shared one. `parts` is
    the number of parts that calls take shares for. Raises ConfigError where there is no room for shared memory.
    """

    def __init__(
        self,
        build: Callable[[], Model],
        task: Task,
        optimizer: Adam | Muon,
        count: int = 1,
        ema: float = 0.0,
        evaluator: Evaluator | None = None,
        shards: int = 0,
    ):
        self._on_ranks = mpi.leading()
        self.count = mpi.world().size if self._on_ranks else count
        self.parts = shards or self.count
        setup = Setup(build, task, optimizer, ema, evaluator or Evaluator(), self.parts, self.count, None)
        self._others: list[parallel.Process] | list[mpi.Rank] = []
        if self._on_ranks:
            for index in range(1, self.count):
                self._others.append(mpi.Rank(index, _Elsewhere(setup, index), together=True))
        else:
            model = build()
            model.allocate()
            buffers = sum(Schedule(shards).buffers for shards in deal(self.parts, count))
            setup = setup._replace(raw=_raw_memory(_bytes(len(model.vector)), 3 + (ema > 0) + buffers, count > 1))
        self._make = functools.partial(_Worker, setup)
        self._local = self._make(0)
        self.model, self.shared = self._local.model, self._local.shared

    def __repr__(self) -> str:
        return f"<Workers: {self.count}, {type(self.model).__name__}>"

    def __enter__(self) -> "Workers":
        self._limits = threadpool_limits(1)
        for index in range(1, 1 if self._on_ranks else self.count):
            advice = "continue with --resume, or train with fewer --training.workers"
            self._others.append(parallel.Process(self._make(index), advice))
        return self

    def __exit__(self, *_: object) -> None:
        if self._on_ranks:
            self._leave()
        else:
            parallel.close_all(self._others, patience=5)
        self._others = []
        self._limits.restore_original_limits()

    def _leave(self) -> None:
        """Let the ranks give up their memory, unless something has gone wrong that ends them all."""
        if not any(rank.open for rank in self._others):
            self._all("leave", [()] * self.count)

    def gradient(self, parts: Sequence[Sequence[tuple[Share, Sequence[int]]]]) -> LossSums:
        """Compute the gradient of a list of (share, seed) for each part -> the sums over all."""
        return add_sums(self._of_parts("gradient", parts))

    def evaluate(self, parts: Sequence[Sequence[Share]]) -> LossSums:
        """Compute a list of shares for each part -> the sums over all, without gradients or dropout."""
        return add_sums(self._of_parts("evaluate", parts))

    def compute(self, name: str, parts: Sequence[Any]) -> list[Any]:
        """Call task.name(model, part, memory) for each part -> the results, in order."""
        return self._of_parts("compute", parts, name)

    def answers(self, pieces: Sequence[Any]) -> list[Any]:
        """Let the evaluator do pieces of its work, dealt in turn -> its answers, in the order of the pieces."""
        found = self._all("answers", [(pieces[index :: self.count],) for index in range(self.count)])
        return [found[place % self.count][place // self.count] for place in range(len(pieces))]

    def reduce(self) -> float:
        """Add all gradients up; return the norm of the sum."""
        # A correctly rounded sum, which does not depend on who has which blocks.
        return math.sqrt(math.fsum(chain(*self._all("reduce", [()] * self.count))))

    def update(self, step: int, learning_rate: float, scale: float) -> None:
        """Move all parameters."""
        self._all("update", [(step, learning_rate, scale)] * self.count)

    def _of_parts(self, name: str, parts: Sequence[Any], *others: Any) -> list[Any]:
        """Call a method of every worker with its parts -> the results for all parts."""
        dealt = deal(self.parts, self.count)
        return list(chain(*self._all(name, [(*others, [parts[i] for i in own]) for own in dealt])))

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
        for worker, own in zip(self._others, arguments[1:], strict=True):
            worker.send((name, own))
        results = [self._local((name, arguments[0]))]
        return results + [parallel.result_of(worker.receive()) for worker in self._others]


def _bytes(size: int) -> int:
    """Return the memory of a vector that may be moved to where a cache line begins."""
    return size * 4 + 64


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
    return Shared(parameters, (first, second), average, others)
