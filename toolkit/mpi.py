"""MPI: processes that a launcher has started together, on one machine or on many. The first leads, the others serve.

    mpiexec -n 8 toolkit translate --file book.en --output book.ne

Every one of them, called a rank, runs the same program. Rank 0 does what the program says; the others wait for what it
sends them, and do nothing else: they are to it what worker processes are (see `toolkit.parallel`), by other messages.
Outside of a launcher nothing of this is imported.

Whoever waits here sleeps. MPI's own calls ask again and again, and where there are more ranks than cores they keep
those from working that are waited for.
"""

import itertools
import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from typing import Any, NoReturn, TypeVar

from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import ignore_signals

Result = TypeVar("Result")

# What launchers say to each process: MPICH, Intel's and Microsoft's MPI and Slurm; Open MPI; whatever speaks PMIx.
_SIZES = "PMI_SIZE", "OMPI_COMM_WORLD_SIZE"
_SIGNS = (*_SIZES, "PMIX_RANK")
_NUMBERS = "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"
_JOBS, _ANSWERS = 1, 2  # tags of messages
# Seconds. A wait begins without a pause, for what is almost there; then pauses take a small part of the whole wait.
_AT_ONCE, _SHORTEST, _LONGEST, _PART = 100e-6, 20e-6, 2e-3, 1 / 32
_PATIENCE = 3.0  # seconds that ranks have to finish their work when the first one ends
_sessions = itertools.count(1)


def launched() -> bool:
    """Say if a launcher such as mpiexec has started this process; alone or with others."""
    return any(name in os.environ for name in _SIGNS)


class World:
    """All ranks.  Raises ConfigError where there is no mpi4py, or it does not belong to the launcher.

    Ranks of a machine follow each other, whatever order the launcher has chosen; rank 0 is the launcher's.
    """

    def __init__(self) -> None:
        MPI = _library()  # noqa: N806
        everyone = MPI.COMM_WORLD
        self._check_size(everyone.size)
        machine = everyone.Split_type(MPI.COMM_TYPE_SHARED)
        first = machine.allreduce(everyone.rank, MPI.MIN)
        places = sorted(everyone.allgather((first, everyone.rank)))
        self.comm = everyone.Split(0, places.index((first, everyone.rank)))
        self.machine = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.rank, self.size = self.comm.rank, self.comm.size
        firsts = [first for first, _ in places]
        self.machine_of = [sorted(set(firsts)).index(first) for first in firsts]  # for each rank
        self.name = f"rank {everyone.rank} on {socket.gethostname()}"
        self.meanwhile: Callable[[], object] | None = None  # what is to be done now and then in a wait
        self._process, self._parent = os.getpid(), os.getppid()
        self._sent: list[Any] = []  # messages that may still be on their way

    def __repr__(self) -> str:
        return f"<World: {self.name}, of {self.size}>"

    def ranks_of_machine(self, number: int | None = None) -> list[int]:
        """List the ranks of a machine, by default of this one."""
        number = self.machine_of[self.rank] if number is None else number
        return [rank for rank, machine in enumerate(self.machine_of) if machine == number]

    @property
    def machines(self) -> int:
        return self.machine_of[-1] + 1

    @property
    def leads(self) -> bool:
        """True on the first of several ranks; not in a process that it has started."""
        return self.size > 1 and self.rank == 0 and os.getpid() == self._process

    def _check_size(self, size: int) -> None:
        told = [int(os.environ[name]) for name in _SIZES if os.environ.get(name, "").isdigit()]
        if told and told[0] != size:
            library = _library().Get_library_version().split("\n")[0].strip("\0 ")
            raise ConfigError(
                f"the launcher has started {told[0]} ranks and mpi4py sees {size}: its MPI is {library}, "
                "so take the mpiexec of that one"
            )

    def wait(self, test: Callable[[], Result]) -> Result:
        """Wait until a test gives something, and return that."""
        begin, looked = time.monotonic(), 0.0
        while not (found := test()):
            if self.meanwhile:
                self.meanwhile()
            waited = time.monotonic() - begin
            if waited > _AT_ONCE:
                time.sleep(min(max(waited * _PART, _SHORTEST), _LONGEST))
            if waited > looked + 0.25:
                looked = waited
                self._check_parent()
        return found

    def _check_parent(self) -> None:
        """End at once where the launcher has gone: nobody would end this process any more."""
        if os.getppid() != self._parent:
            os._exit(1)

    def send(self, message: Any, to: int, tag: int) -> None:
        self._sent = [each for each in self._sent if not each.Test()]
        self._sent.append(self.comm.isend(message, to, tag))

    def receive(self, source: int, tag: int) -> Any:
        """Wait for a message."""
        return self.wait(lambda: self.comm.improbe(source, tag)).recv()

    def is_there(self, source: int, tag: int) -> bool:
        """Say if a message has come."""
        return self.comm.iprobe(source, tag)

    def flush(self) -> None:
        """Wait until all messages have been taken."""
        self.wait(lambda: all(each.Test() for each in self._sent))
        self._sent = []

    def fail(self, sentence: str, code: int = 2) -> NoReturn:
        """End all ranks, with a sentence that names this one."""
        with suppress(OSError, ValueError):
            tell(f"toolkit: {self.name}: {sentence}")
            sys.stderr.flush()
        self.comm.Abort(code)
        raise SystemExit(code)  # where MPI has let it live


def _library() -> Any:
    try:
        import mpi4py

        mpi4py.rc.thread_level = "funneled"  # only the main thread calls it
        from mpi4py import MPI
    except ImportError as error:
        raise ConfigError(
            f"the launcher has started several processes that need mpi4py to know of each other ({error}): install it "
            "with the extra mpi, or start one process without the launcher"
        ) from None
    return MPI


@cache
def world() -> World:
    """Return all ranks, as they are found at the first call, which all of them must make."""
    return World()


_led = False


def leading() -> bool:
    """Say if this process leads other ranks, which wait for work."""
    return _led and world().leads


def tells() -> bool:
    """Say if it is for this process to tell what went wrong: where there are ranks, the first one does."""
    return not any(int(os.environ.get(name, "0")) for name in _NUMBERS)


def led(action: Callable[[], Result]) -> Result | None:
    """Do something on rank 0 while the others serve it -> its result, on all ranks.

    Outside of a launcher, and within another such action, it is just done. A ToolkitError that it raises is raised on
    all ranks; anything else ends the others by a SystemExit.
    """
    global _led
    if _led or not launched():
        return action()
    here = world()
    if here.size == 1:
        return action()
    if here.rank:
        return _serve(here)
    _led, result, error = True, None, None
    try:
        result = action()
    except BaseException as raised:
        error = raised
        raise
    finally:
        _led = False
        _release(here, result, error)
    return result


def _release(here: World, result: Any, error: BaseException | None) -> None:
    """Let the others go, at the end of what they have served; those that do not come to one are ended."""
    if _in_work(here, time.monotonic() + _PATIENCE):
        sys.stdout.flush()
        sys.stderr.flush()
        here.comm.Abort(2 if isinstance(error, ToolkitError) else 1)
    told = error if error is None or isinstance(error, ToolkitError) else SystemExit(1)
    for rank in range(1, here.size):
        here.send(("end", 0, (result, told)), rank, _JOBS)
    here.flush()


_open_jobs: dict[int, int] = {}  # how many of each rank have no answer yet


def _in_work(here: World, deadline: float) -> bool:
    """Say if a rank is still at work after some time."""
    for rank in range(1, here.size):
        while _open_jobs.get(rank):
            if here.is_there(rank, _ANSWERS):
                here.receive(rank, _ANSWERS)
                _open_jobs[rank] -= 1
            elif time.monotonic() > deadline:
                return True
            else:
                time.sleep(0.01)
    return False


def _serve(here: World) -> Any:
    """Do what rank 0 sends until it ends."""
    ignore_signals()
    work: Callable[[Any], Any] | None = None
    together = False
    while True:
        kind, session, value = here.receive(0, _JOBS)
        if kind == "end":
            result, error = value
            if error:
                raise error
            return result
        if kind == "work":
            together, pickled = value
            work = _attempt(here, together, pickle.loads, pickled)
        else:
            answer = work if isinstance(work, Exception) else _attempt(here, together, work, value)
            here.send((session, answer), 0, _ANSWERS)


def _attempt(here: World, together: bool, function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function -> its result, or the error; in work that ranks do together an error ends all."""
    try:
        return function(value)
    except ToolkitError as error:
        if together:
            here.fail(str(error))
        return error
    except Exception as error:
        if together:
            here.fail(f"failed:\n{traceback.format_exc()}", 1)
        if isinstance(error, OSError):
            return ToolkitError(f"{here.name}: {error}")
        return RuntimeError(f"{here.name} failed:\n{traceback.format_exc()}")


class SharedMemory:
    """Blocks of memory that the ranks of a machine share; all ranks make it, and free it, together.

    Nothing is known of its values at first. Where a machine has no room for it, a sentence ends all ranks.
    """

    def __init__(self, size: int, count: int):
        here, MPI = world(), _library()  # noqa: N806
        if here.machine.rank == 0 and (free := _free_shared_memory()) < size * count:
            here.fail(
                f"there is no room for the memory that ranks share, {size * count / 1e6:.0f} MB of {free / 1e6:.0f}"
            )
        self._window = MPI.Win.Allocate_shared(size * count if here.machine.rank == 0 else 0, 1, comm=here.machine)
        self._window.Lock_all(MPI.MODE_NOCHECK)  # so that `sync` may be called
        memory = memoryview(self._window.Shared_query(0)[0])
        self.blocks = [memory[number * size : (number + 1) * size] for number in range(count)]

    def free(self) -> None:
        """Give it back: nobody may look at it any more."""
        self.blocks = []
        self._window.Unlock_all()
        self._window.Free()

    def sync(self) -> None:
        """Make visible to each other what ranks have written, on processors that would leave it open when."""
        self._window.Sync()


def _free_shared_memory() -> float:
    """Return the bytes that are free where Linux keeps shared memory; elsewhere there is no such limit."""
    try:
        found = os.statvfs("/dev/shm")
    except (AttributeError, OSError):
        return float("inf")
    return found.f_bavail * found.f_frsize


class Rank:
    """Another rank at some work, for rank 0: jobs are sent to it, and answers come in the same order.

    work: what it does with a job; pickled, it is made anew there. together: the ranks need each other in it, so that an
    error of one ends all.
    """

    def __init__(self, number: int, work: Callable[[Any], Any], together: bool = False):
        self._here, self.number, self._session = world(), number, next(_sessions)
        self._here.send(("work", self._session, (together, pickle.dumps(work))), number, _JOBS)
        self.open = 0  # jobs without an answer

    def send(self, job: Any) -> None:
        """Give it a job."""
        self._here.send(("job", self._session, job), self.number, _JOBS)
        self.open += 1
        _open_jobs[self.number] = _open_jobs.get(self.number, 0) + 1

    def is_ready(self) -> bool:
        """Say if there is an answer, perhaps to a job of earlier work, which `receive` passes over."""
        return self._here.is_there(self.number, _ANSWERS)

    def receive(self) -> Any:
        """Wait for the answer to a job, for `parallel.result_of`."""
        while True:
            session, answer = self._here.receive(self.number, _ANSWERS)
            _open_jobs[self.number] -= 1
            if session == self._session:
                self.open -= 1
                return answer
