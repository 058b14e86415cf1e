"""MPI: processes that a launcher has started together, on one machine or on many. The first leads, the others serve.

    mpiexec -n 8 toolkit translate --file book.en --output book.ne

Every one of them, called a rank, runs the same program. Rank 0 does what the program says; the others wait for what it
sends them, and do nothing else: they are to it what worker processes are (see `toolkit.parallel`), by other messages.
Outside of a launcher nothing of this is imported.

Whoever waits here sleeps. MPI's own calls ask again and again, and where there are more ranks than cores they keep
those from working that are waited for.
"""

import itertools
import math
import os
import pickle
import socket
import sys
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from functools import cache, partial
from typing import Any, NoReturn, TypeVar

from toolkit import launcher
from toolkit.display import tell
from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import ENDING, Stopped, blocked_signals, ignored_signals, stoppable

Result = TypeVar("Result")

_JOBS, _ANSWERS, _IN_VAIN = 1, 2, 3  # tags of messages
# Seconds. A wait begins without a pause, for what is almost there; then pauses take a small part of the whole wait.
_AT_ONCE, _SHORTEST, _LONGEST, _PART = 100e-6, 20e-6, 2e-3, 1 / 32
_PATIENCE = 6.0  # seconds that ranks have to finish their work when the first one ends
_sessions = itertools.count(1)


class World:
    """All ranks.  Raises ConfigError as `launcher.find_mpi` does, and for ranks of different versions.

    Ranks of a machine follow each other, whatever order the launcher has chosen; rank 0 is the launcher's.
    """

    def __init__(self) -> None:
        everyone = launcher.find_mpi().COMM_WORLD
        launcher.watch_parent()
        with blocked_signals():
            self._find(everyone)
        if self.size > 1:
            sys.excepthook = partial(self._end_all, sys.excepthook)

    def _find(self, everyone: Any) -> None:
        MPI = launcher.find_mpi()  # noqa: N806
        machine = everyone.Split_type(MPI.COMM_TYPE_SHARED)
        launcher.forget_names(machine)
        first = machine.allreduce(everyone.rank, MPI.MIN)
        places = sorted(everyone.allgather((first, everyone.rank)))
        self.comm = everyone.Split(0, places.index((first, everyone.rank)))
        self.machine = self.comm.Split_type(MPI.COMM_TYPE_SHARED)
        self.rank, self.size = self.comm.rank, self.comm.size
        firsts = [first for first, _ in places]
        self.machine_of = [sorted(set(firsts)).index(first) for first in firsts]  # for each rank
        self.name = f"rank {everyone.rank} on {socket.gethostname()}"
        self.meanwhile: Callable[[], object] | None = None  # what is to be done now and then in a wait
        self.common: BaseException | None = None  # an error that all ranks have
        self._process = os.getpid()
        self._sent: list[Any] = []  # messages that may still be on their way
        found = self.comm.allgather((launcher.fingerprint(), self.name))
        self.unlike = launcher.compare(*zip(*found, strict=True))  # a line for the user, or ""

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

    def wait(self, test: Callable[[], Result]) -> Result:
        """Wait until a test gives something, and return that."""
        begin = time.monotonic()
        while not (found := test()):
            if self.meanwhile:
                self.meanwhile()
            waited = time.monotonic() - begin
            if waited > _AT_ONCE:
                time.sleep(min(max(waited * _PART, _SHORTEST), _LONGEST))
        return found

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

    def _end_all(self, print_error: Callable[..., None], kind: type, error: BaseException, trace: Any) -> None:
        """End all ranks where an exception that the others have not ends this one: they might wait for it."""
        if error is self.common:
            if self.rank == 0:
                print_error(kind, error, trace)
            return
        print_error(kind, error, trace)
        sys.stderr.flush()
        self.comm.Abort(130 if issubclass(kind, KeyboardInterrupt) else 1)

    def fail(self, sentence: str, code: int = 2) -> NoReturn:
        """End all ranks, with a sentence that names this one."""
        with suppress(OSError, ValueError):
            for line in f"toolkit: {self.name}: {sentence}".splitlines():
                tell(line)
            sys.stderr.flush()
        self.comm.Abort(code)
        raise SystemExit(code)  # where MPI has let it live


@cache
def world() -> World:
    """Return all ranks, as they are found at the first call, which all of them must make."""
    return World()


_led = False


def leading() -> bool:
    """Say if this process leads other ranks, which wait for work."""
    return _led and world().leads


def led(action: Callable[[], Result]) -> Result | None:
    """Do something on rank 0 while the others serve it -> its result, on all ranks.

    Outside of a launcher, and within another such action, it is just done. A ToolkitError that it raises is raised on
    all ranks; anything else ends the others without a word.
    """
    global _led
    if _led:
        return action()
    if not launcher.launched():
        launcher.check_tasks()
        return action()
    try:
        here = world()
    except ConfigError:
        if launcher.tells():
            raise
        raise SystemExit(2) from None
    if here.size == 1:
        return action()
    if here.rank:
        return _serve(here)
    result = error = None
    try:
        _led = True
        if here.unlike:
            tell(f"toolkit: {here.unlike}")
        result = action()
    except BaseException as raised:
        error = here.common = raised
        raise
    finally:
        _led = False
        _release(here, result, error)
    return result


def _release(here: World, result: Any, error: BaseException | None) -> None:
    """Let the others go when they have done their work; after an error, end those that do not come to an end of it."""
    for rank in range(1, here.size):
        here.send(None, rank, _IN_VAIN)
    if _in_work(here, time.monotonic() + _PATIENCE if error else math.inf):
        sys.stdout.flush()
        here.fail(*_said(error))
    told = error if error is None or isinstance(error, ToolkitError) else SystemExit(0)  # rank 0 gives the exit code
    for rank in range(1, here.size):
        here.send(("end", 0, (result, told)), rank, _JOBS)
    here.flush()


def _said(error: BaseException | None) -> tuple[str, int]:
    """Return what is to be told of an error that ends all ranks, and the exit code."""
    if isinstance(error, ToolkitError | MemoryError):
        return str(error) or "there is not enough memory", 2
    if isinstance(error, KeyboardInterrupt):
        return "interrupted", 130
    if isinstance(error, Stopped):
        return str(error) or f"ended by signal {error.number}", 128 + error.number
    if isinstance(error, BrokenPipeError):
        return "nobody reads the output any more", 141
    if isinstance(error, OSError):
        return f"{error.filename or 'a file'}: {error.strerror or error}", 2
    return "failed:\n" + "".join(traceback.format_exception(error)), 1


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
    work: Any = None  # what does jobs; or an answer to all of them
    together = False
    with ignored_signals():
        while True:
            kind, session, value = here.receive(0, _JOBS)
            if kind == "end":
                here.receive(0, _IN_VAIN)
                break
            if kind == "work":
                together, pickled = value
                work = _attempt(here, together, pickle.loads, pickled)
                if together:  # it is made by all at once: until then nobody may leave
                    here.send((-session, None), 0, _ANSWERS)
                continue
            if not together and here.is_there(0, _IN_VAIN):
                work = ToolkitError("nobody waits for it any more")
            try:
                with stoppable(() if together else ENDING):
                    answer = work if isinstance(work, Exception) else _attempt(here, together, work, value)
            except Stopped as stopped:  # rank 0 has the same signal, unless somebody has sent it to this one alone
                answer = work = ToolkitError(f"{here.name} was ended by signal {stopped.number}")
            here.send((session, answer), 0, _ANSWERS)
    result, here.common = value
    if here.common:
        raise here.common
    return result


def _attempt(here: World, together: bool, function: Callable[[Any], Any], value: Any) -> Any:
    """Call a function -> its result, or the error; in work that ranks do together an error ends all."""
    try:
        return function(value)
    except Exception as error:
        sentence, code = _said(error)
        is_made = function is pickle.loads  # models are read, which another machine may not have
        if (is_made or isinstance(error, OSError)) and code == 2 and here.machine_of[here.rank]:
            sentence += " (all machines must have models and data by the same names)"
        if together:
            here.fail(sentence, code)
        if isinstance(error, ToolkitError) and not is_made:
            return error
        return (ToolkitError if code == 2 else RuntimeError)(f"{here.name}: {sentence}")


class SharedMemory:
    """Blocks of memory that the ranks of a machine share; all ranks make it, and free it, together.

    Nothing is known of its values at first. Where a machine has no room for it, a sentence ends all ranks.
    """

    def __init__(self, size: int, count: int):
        here, MPI = world(), launcher.find_mpi()  # noqa: N806
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
        _open_jobs[number] = _open_jobs.get(number, 0) + together

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
