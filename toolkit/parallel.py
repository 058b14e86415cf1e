"""Worker processes: started, asked, answered and ended in one way, for training as for decoding.

`Process` is one of them. `in_order` divides a stream of jobs among several, with the results in the order of the jobs;
only a few are in memory at a time, so that input and output may be larger than it.
"""

import math
import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit import launcher, mpi
from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import blocked_signals, ignore_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection
    from multiprocessing.context import BaseContext
    from multiprocessing.process import BaseProcess

Job = TypeVar("Job")
Result = TypeVar("Result")

# Forked processes start at once and share what was read before; elsewhere than on Linux forking is unreliable.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
# Unasked, one process a core but not more than the first number, and none before the second number of jobs has come
# without a pause, which shows that it is worth it.
_MOST_UNASKED, _JOBS_ALONE = 4, 3


def available_cores() -> int:
    """Count the cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def context() -> "BaseContext":
    """Return the way in which processes are started here."""
    import multiprocessing  # here, because a short text is translated without it

    return multiprocessing.get_context(START_METHOD)


def started(owner: object, method: "BaseContext", target: Callable[..., None], arguments: tuple) -> "BaseProcess":
    """Start a process that is killed when its owner goes, or Python ends, at the latest.

    Signals that ask to end reach it when `target` has called `ignore_signals`, which is before they can do harm.
    """
    from multiprocessing.util import Finalize

    process = method.Process(target=target, args=arguments, daemon=True)
    with blocked_signals():
        process.start()
    # At its end Python asks processes to go, which they ignore, and waits for them: for ever, where nobody closes.
    Finalize(owner, _kill, (process,), exitpriority=0)
    return process


def _kill(process: "BaseProcess") -> None:
    with suppress(ValueError):  # it has ended, and was closed
        process.kill()


def result_of(answer: Any) -> Any:
    """Return the answer of a process, or raise the error that it is."""
    if isinstance(answer, Exception):
        raise answer
    return answer


class Process:
    """A process that answers jobs, one at a time, until it is closed or the main process goes away.

    work: what it does with a job; picklable where processes are spawned. advice: what to do where it dies, for the end
    of a sentence. What `work` raises is raised here: a ToolkitError as it is, anything else as a RuntimeError with its
    traceback.
    """

    def __init__(self, work: Callable[[Any], Any], advice: str):
        self.connection, theirs = context().Pipe()
        self.process = started(self, context(), _serve, (work, theirs, self.connection))
        self._advice = advice
        theirs.close()

    def send(self, job: Any) -> None:
        """Give it a job.  Raises ToolkitError where it has died."""
        try:
            self.connection.send(job)
        except OSError:
            raise self._died() from None

    def receive(self) -> Any:
        """Wait for the answer to a job, for `result_of`.  Raises ToolkitError where it has died."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            raise self._died() from None

    def _died(self) -> ToolkitError:
        self.process.join(timeout=1)
        code = self.process.exitcode
        return ToolkitError(f"a worker process has died (exit code {code}), perhaps for lack of memory: {self._advice}")


def close_all(processes: Sequence[Process], patience: float = 0.0) -> None:
    """End processes: those that are not done after `patience` seconds each are killed."""
    for each in processes:  # all before any is waited for: forked processes hold their elders' ends too
        each.connection.close()
    for each in processes:
        if patience:
            each.process.join(timeout=patience)
        each.process.kill()
    for each in processes:
        each.process.join()


def _serve(work: Callable[[Any], Any], connection: "Connection", other_end: "Connection") -> None:
    """Do jobs, as the process that was started for them, until nobody sends any."""
    other_end.close()
    ignore_signals()
    launcher.watch_parent()  # in the midst of a long job, too
    while True:
        try:
            job = connection.recv()
        except (EOFError, OSError):
            return
        answer = answer_of(work, job)
        try:
            connection.send(answer)
        except OSError:  # the main process has left without waiting
            return


def answer_of(work: Callable[[Any], Any], job: Any) -> Any:
    """Do a job -> its result, or the error that `result_of` raises."""
    try:
        return work(job)
    except ToolkitError as error:
        return error
    except Exception:
        return RuntimeError(f"a worker failed:\n{traceback.format_exc()}")


def in_order(work: Callable[[Job], Result], jobs: Iterable[Job | None], workers: int | None = None) -> Iterator[Result]:
    """Yield work(job) for each job, in order.  A `None` flushes: results so far are yielded before the next job.

    workers: how many processes; 1 is this one. By default this process does the first jobs, and others do the rest
        where there is one and more than one core. `work` must be picklable where processes are spawned. Where this
        process leads other ranks (see `toolkit.mpi`), all of them do the jobs, however many they are.

    What `work` raises is raised here, in its turn. Raises ConfigError for fewer than one worker, and ToolkitError where
    a process is ended from outside. No process outlives the iterator.
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}: it must be at least 1")
    if mpi.leading():
        yield from Ranks(work).in_order(jobs)
        return
    jobs, most = iter(jobs), workers or min(_MOST_UNASKED, available_cores())
    alone = math.inf if most == 1 else 0 if workers else _JOBS_ALONE
    in_a_row = 0
    for job in jobs if alone else ():
        if job is not None:
            yield work(job)
        in_a_row = 0 if job is None else in_a_row + 1
        if in_a_row == alone:
            break
    with closing(Processes(work, most)) as processes:
        yield from processes.in_order(jobs)


class Processes:
    """Up to `most` processes, each started when there is a job for it, that do one job at a time until `close`."""

    def __init__(self, work: Callable, most: int):
        self._work, self._most = work, most
        self._processes: list[Process] = []
        self._busy: dict[Connection, tuple[Process, int]] = {}  # with the job of this number
        self._answers: dict[int, Any] = {}  # to jobs whose turn has not come
        self._sent = self._yielded = 0

    def in_order(self, jobs: Iterable[Any]) -> Iterator[Any]:
        """Yield the result of each job, in order; a `None` among the jobs flushes."""
        for job in _with_error(jobs):
            if job is None or isinstance(job, ToolkitError):
                yield from self._results(0)
                if job is None:
                    continue
                raise job
            self._send(job)
            yield from self._results(2 * self._most)
        yield from self._results(0)

    def close(self) -> None:
        close_all(self._processes)

    def _send(self, job: Any) -> None:
        while len(self._busy) == self._most:
            self._collect()
        process = next((each for each in self._processes if each.connection not in self._busy), None)
        if process is None:
            process = Process(self._work, "try again with fewer --workers")
            self._processes.append(process)
        process.send(job)
        self._busy[process.connection] = process, self._sent
        self._sent += 1

    def _results(self, most: int) -> Iterator[Any]:
        """Yield the results whose turn it is, until at most `most` jobs are without theirs."""
        while self._yielded in self._answers or self._sent - self._yielded > most:
            while self._yielded not in self._answers:
                self._collect()
            self._yielded += 1
            yield result_of(self._answers.pop(self._yielded - 1))

    def _collect(self) -> None:
        """Wait until at least one process has done its job."""
        from multiprocessing.connection import wait

        for connection in wait(list(self._busy)):
            process, number = self._busy[connection]
            self._answers[number] = process.receive()
            del self._busy[connection]


# A rank has the next job before it has done the last one, or it would wait while this one works.
_AHEAD = 2


class Ranks(Processes):
    """All ranks, this one too, as processes that do jobs; the others have some ahead, so that they need not wait."""

    def __init__(self, work: Callable):
        here = mpi.world()
        super().__init__(work, _AHEAD * here.size)
        self._ranks = [mpi.Rank(number, work) for number in range(1, here.size)]
        self._jobs: dict[mpi.Rank, list[int]] = {rank: [] for rank in self._ranks}  # their numbers

    def _send(self, job: Any) -> None:
        self._take()
        rank = min(self._ranks, key=lambda each: each.open)
        if rank.open < _AHEAD:
            rank.send(job)
            self._jobs[rank].append(self._sent)
        else:
            self._answers[self._sent] = answer_of(self._work, job)
        self._sent += 1

    def _collect(self) -> None:
        mpi.world().wait(self._take)

    def _take(self) -> bool:
        """Take the answers that are there, and say if there were any."""
        before = len(self._answers)
        for rank, numbers in self._jobs.items():
            while numbers and rank.is_ready():
                self._answers[numbers.pop(0)] = rank.receive()
        return len(self._answers) > before


def _with_error(jobs: Iterable[Any]) -> Iterator[Any]:
    """Yield the jobs, and as the last one the error that ends them: what came before it is done first."""
    try:
        yield from jobs
    except ToolkitError as error:
        yield error
