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

import math
import mmap
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

from toolkit import mpi, parallel
from toolkit.errors import ConfigError
from toolkit.functional.arrays import Array
from toolkit.functional.output_loss import LossSums
from toolkit.nn.module import Model
from toolkit.training.optimizer import Adam, Muon
from toolkit.training.shards import Schedule, deal
from toolkit.training.task import Evaluator, Share, Task, add_sums
from toolkit.training.worker import Setup, Worker, bytes_of


class _Elsewhere(NamedTuple):
    """A worker that is yet to be made, by whoever unpickles it."""

    setup: Setup
    index: int

    def __reduce__(self) -> tuple:
        return Worker, tuple(self)


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
            setup = setup._replace(raw=_raw_memory(bytes_of(len(model.vector)), 3 + (ema > 0) + buffers, count > 1))
        self._make = partial(Worker, setup)
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
        if self.shared.average is None:
            yield None
            return
        self._on_machines("collect", False)
        self._exchange_average()
        try:
            yield self.shared.average
        finally:
            self._exchange_average()

    def _exchange_average(self) -> None:
        self._local(("exchange_average", ())) if self._local.exchange is None else self._on_machines("exchange_average")

    def spread(self) -> None:
        """Give the values of the vectors, which the caller has set, to all machines."""
        self._on_machines("spread")

    def collect(self) -> None:
        """Get the moments of all machines, for the caller to read."""
        self._on_machines("collect", True)

    def _on_machines(self, name: str, *arguments: Any) -> None:
        """Let all workers do something that is needed where there are several machines."""
        if self._local.exchange:
            self._all(name, [arguments] * self.count)

    def _all(self, name: str, arguments: Sequence[tuple]) -> list[Any]:
        """Call a method of every worker, each with its own arguments, and collect what they return, in order."""
        for worker, own in zip(self._others, arguments[1:], strict=True):
            worker.send((name, own))
        results = [self._local((name, arguments[0]))]
        return results + [parallel.result_of(worker.receive()) for worker in self._others]


def _raw_memory(size: int, count: int, shared: bool) -> list:
    """Make blocks of memory that processes share; one worker does as well with memory of its own.

    Forked processes inherit it, so that it needs no file, whose disk may be full when it is written to; for spawned
    ones there is no other way. Raises ConfigError where the system has no room for it.
    """
    if not shared:
        return [np.zeros(size, np.uint8) for _ in range(count)]
    forked = parallel.START_METHOD == "fork"
    make = partial(mmap.mmap, -1) if forked else partial(parallel.context().RawArray, "b")
    try:
        return [make(size) for _ in range(count)]
    except OSError as error:
        raise ConfigError(
            f"there is no room for the memory that workers share, {count * size / 1e6:.0f} MB "
            f"({error.strerror or error}): make room, or train with --training.workers 1"
        ) from error
