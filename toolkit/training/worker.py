"""The part of one worker in an update, in whichever process it runs: gradients, their sum, and a step of the optimizer.

A worker has some of the parts of a batch, whose gradients it computes one after the other, and some shards of the
parameter vector, over which it adds up everybody's gradients and which it then moves.
"""

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit import mpi
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.functional.tuning import fixed_choice
from toolkit.nn import memory
from toolkit.nn.memory import Pool
from toolkit.nn.module import Model, Parameter
from toolkit.nn.tape import Tape
from toolkit.training.exchange import BucketTape, Exchange, Sums, blocks_of, cut_into_buckets, owners_of, parameters_in
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


class Worker:
    """The part of one worker, in whichever process it runs; a spawned process or a rank makes it anew of its setup."""

    def __init__(self, setup: Setup, index: int):
        self._made_of = setup, index
        _, self.task, self.optimizer, self.ema, self.evaluator, *_ = setup
        self.model, self.memory = setup.build(), Pool()
        self.model.allocate()
        self.here = None if setup.raw else mpi.world()
        everywhere = [Schedule(shards) for shards in deal(setup.parts, setup.count)]
        machine = self.here.ranks_of_machine() if self.here else range(setup.count)
        buckets = cut_into_buckets(self.model, self.optimizer) if self.here and self.here.machines > 1 else []
        schedules = [everywhere[number] for number in machine]
        flags = self._share_memory(setup.raw, schedules, len(buckets))
        self._divide_gradients(schedules, machine.index(index))
        shards = partition(self.model, self.optimizer, setup.count, buckets)
        self.shards, self.exchange = shards[index], None
        if buckets:
            machines = (self.here.ranks_of_machine(number) for number in range(self.here.machines))
            nodes = [[node for rank in ranks for node, _ in everywhere[rank].held] for ranks in machines]
            sums = Sums(nodes, self.held, self.shared.gradients[0])
            self.exchange = Exchange(self.here, buckets, shards, sums, flags, self._of_ranks.sync)
            self._owners, self._inside = owners_of(self.model, buckets), parameters_in(self.model, buckets)

    def _share_memory(self, raw: list | None, schedules: Sequence[Schedule], buckets: int) -> Array | None:
        """Get the vectors in shared memory, and with several machines what ranks tell each other of buckets."""
        size, count = len(self.model.vector), 3 + (self.ema > 0) + max(1, sum(each.buffers for each in schedules))
        if raw is None:
            flags = len(schedules) * buckets
            self._of_ranks = mpi.SharedMemory(bytes_of(max(size, 2 * flags)), count + (buckets > 0))
            *raw, last = self._of_ranks.blocks if buckets else (*self._of_ranks.blocks, None)
        self.shared = _shared_vectors(raw, size, self.ema > 0)
        self.model.allocate(vector=self.shared.parameters)
        return np.frombuffer(last, np.int64, flags).reshape(-1, buckets) if buckets else None

    def _divide_gradients(self, schedules: Sequence[Schedule], own: int) -> None:
        """Give every worker of this machine its buffers, and find the sums that they will hold."""
        rest = iter(self.shared.gradients)
        buffers = [[next(rest) for _ in range(each.buffers)] for each in schedules]
        self.schedule, self.gradients = schedules[own], buffers[own]
        self.views = [self.model.views(gradient) for gradient in self.gradients]
        held = [(node, mine[i]) for each, mine in zip(schedules, buffers, strict=True) for node, i in each.held]
        self.held, self.adder = [vector for _, vector in held], Adder([node for node, _ in held])

    def __reduce__(self) -> tuple:
        return Worker, self._made_of

    def __call__(self, call: tuple[str, tuple]) -> Any:
        """Call a method, without warnings of overflow: the trainer tells once of a run that diverges.

        Whoever decodes in it does so by the kernels of all workers, not by those that are fastest on this machine.
        """
        name, arguments = call
        _ = self._limits
        with fixed_choice(), np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            return getattr(self, name)(*arguments)

    @cached_property
    def _limits(self) -> threadpool_limits:
        return threadpool_limits(1)  # in the process that works

    def gradient(self, parts: Sequence[Sequence[tuple[Share, Sequence[int]]]]) -> list[LossSums]:
        """Compute the gradients of parts, each a list of shares with the seeds of dropout masks -> the sums of each.

        The gradients of parts that stand side by side in the tree are added up.
        """
        sums, last = [], len(self.schedule.leaves) - 1
        if self.exchange:
            self.exchange.begin()
        for number, (leaf, shares) in enumerate(zip(self.schedule.leaves, parts, strict=True)):
            sums.append(self._part(self.views[leaf.buffer], shares, self.exchange is not None and number == last))
            if len(leaf.added) > 1:
                add_from_right([self.gradients[buffer] for buffer in leaf.added])
        if self.exchange:
            self.exchange.complete()
        return sums

    def _part(
        self, views: dict[Parameter, Array], shares: Sequence[tuple[Share, Sequence[int]]], is_last: bool
    ) -> LossSums:
        """Compute the gradient of a part.  is_last: what is complete of it can be sent while the rest is computed."""
        unwritten, sums = set(views), []
        if memory.poison:
            for view in views.values():
                view.fill(np.nan)

        def complete(bucket: int) -> None:
            self._clear(unwritten, views, self._inside[bucket])
            self.exchange.complete(bucket)

        for number, (share, seed) in enumerate(shares, 1):
            made = partial(BucketTape, self._owners, complete) if is_last and number == len(shares) else Tape
            tape = made(views, np.random.SFC64(seed), self.memory, unwritten=unwritten)
            sums.append(self.task.loss(self.model, share, tape))
        self._clear(unwritten, views)
        return add_sums(sums)

    @staticmethod
    def _clear(unwritten: set[Parameter], views: dict[Parameter, Array], bucket: set[Parameter] | None = None) -> None:
        """Fill the gradients of parameters, all or those of a bucket, that no share has used with zeros."""
        for parameter in list(unwritten if bucket is None else unwritten & bucket):
            views[parameter][...] = 0
            unwritten.remove(parameter)

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
        if self.exchange:
            return self.exchange.finish()
        squares, total = [], self.shared.gradients[0]
        for block in (block for stretch, _ in self.shards for block in blocks_of(stretch)):
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
        if self.exchange:
            self.exchange.gather(shared.parameters)

    def spread(self) -> None:
        """Take over the values that rank 0 has begun with."""
        self.exchange.copy(self.shared.parameters)
        if self.shared.average is not None:
            self.exchange.copy(self.shared.average)
        for moment in self.shared.moments:
            self.exchange.scatter(moment)

    def collect(self, moments: bool) -> None:
        """Gather the average on all machines, or on that of rank 0 the moments."""
        for vector in self.shared.moments if moments else (self.shared.average,):
            self.exchange.gather(vector, [0] if moments else None)

    def exchange_average(self) -> None:
        """Let the parameters and their average change places, once on each machine."""
        if self.here and self.here.machine.rank:
            return
        parameters, average = self.shared.parameters, self.shared.average
        for block in blocks_of(slice(0, len(average))):
            parameters[block], average[block] = average[block], parameters[block].copy()

    def leave(self) -> None:
        """Give up MPI's memory, as all ranks do together; the model keeps its values."""
        self.model.allocate(vector=self.shared.parameters.copy())
        if self.exchange:
            self.exchange.free()
        self.shared = self.views = self.held = self.gradients = self.exchange = None
        self._of_ranks.free()


def bytes_of(size: int) -> int:
    """Return the memory of a vector that may be moved to where a cache line begins."""
    return size * 4 + 64


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
