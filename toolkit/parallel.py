"""Work that comes in pieces, done by several processes, with the results in the order of the pieces.

Only a few pieces are in memory at a time, so input and output may be larger than it.
"""

import os
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from typing import TYPE_CHECKING, Any, TypeVar

from toolkit.errors import ConfigError, ToolkitError
from toolkit.process import ignore_signals

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

Piece = TypeVar("Piece")
Result = TypeVar("Result")

# Forked processes start at once and share the model; elsewhere than on Linux forking is unreliable.
START_METHOD = "fork" if sys.platform == "linux" else "spawn"
# Unasked, one process a core but not more than this, and none before so many pieces in a row show that it is worth it.
_MOST_UNASKED, _PIECES_ALONE = 4, 3


def in_order(
    work: Callable[[Piece], Result], pieces: Iterable[Piece | None], workers: int | None = None
) -> Iterator[Result]:
    """work(piece) for each piece, in order.  None among the pieces says that the next may be long in coming.

    workers: how many processes; 1 is this one. By default this process does the first pieces, and others do the rest
        where there is one and more than one core. `work` must be picklable where processes are spawned.

    What `work` raises is raised here, in its turn. Raises ConfigError for fewer than one worker, and ToolkitError where
    a process is ended from outside. No process outlives the iterator.
    """
    if workers is not None and workers < 1:
        raise ConfigError(f"workers is {workers}: it must be at least 1")
    pieces = iter(pieces)
    if workers is None:
        workers = min(_MOST_UNASKED, _cores())
        yield from _here(work, _first(pieces))
    if workers == 1:
        yield from _here(work, pieces)
    else:
        with closing(Processes(work, workers)) as processes:
            yield from processes.in_order(pieces)


def _first(pieces: Iterator[Piece | None]) -> Iterator[Piece | None]:
    """The pieces up to the point where so many have come without a pause that more are to be expected."""
    in_a_row = 0
    while in_a_row < _PIECES_ALONE:
        try:
            piece = next(pieces)
        except StopIteration:
            return
        yield piece
        in_a_row = 0 if piece is None else in_a_row + 1


def _here(work: Callable[[Piece], Result], pieces: Iterable[Piece | None]) -> Iterator[Result]:
    return (work(piece) for piece in pieces if piece is not None)


def _cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Processes:
    """Up to `most` processes, each started when there is a piece for it, that do one piece at a time until `close`."""

    def __init__(self, work: Callable, most: int):
        import multiprocessing  # here, because a short text is translated without it

        self._work, self._most = work, most
        self._context = multiprocessing.get_context(START_METHOD)
        self._processes: dict[Connection, Any] = {}
        self._busy: dict[Connection, int] = {}  # with which piece
        self._results: dict[int, tuple[bool, Any]] = {}  # of pieces whose turn has not come
        self._sent = self._told = 0

    def in_order(self, pieces: Iterable[Any]) -> Iterator[Any]:
        for piece in _with_error(pieces):
            if piece is None or isinstance(piece, ToolkitError):
                yield from self._told_until(0)
                if piece is None:
                    continue
                raise piece
            while len(self._busy) == self._most:
                self._collect()
            self._send(piece)
            yield from self._told_until(2 * self._most)
        yield from self._told_until(0)

    def close(self) -> None:
        for connection, process in self._processes.items():
            connection.close()
            process.kill()
        for process in self._processes.values():
            process.join()

    def _send(self, piece: Any) -> None:
        connection = next((each for each in self._processes if each not in self._busy), None) or self._start()
        try:
            connection.send(piece)
        except OSError:
            raise self._died(connection) from None
        self._busy[connection] = self._sent
        self._sent += 1

    def _start(self) -> "Connection":
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_serve, args=(self._work, theirs, ours), daemon=True)
        process.start()
        theirs.close()
        self._processes[ours] = process
        return ours

    def _told_until(self, most: int) -> Iterator[Any]:
        """The results whose turn it is, until at most so many pieces are still to be told."""
        while self._told in self._results or self._sent - self._told > most:
            while self._told not in self._results:
                self._collect()
            failed, result = self._results.pop(self._told)
            self._told += 1
            if failed:
                raise result
            yield result

    def _collect(self) -> None:
        """Wait until at least one process has done its piece."""
        from multiprocessing.connection import wait

        for connection in wait(list(self._busy)):
            try:
                self._results[self._busy[connection]] = connection.recv()
            except (EOFError, OSError):
                raise self._died(connection) from None
            del self._busy[connection]

    def _died(self, connection: "Connection") -> ToolkitError:
        process = self._processes[connection]
        process.join(timeout=1)
        return ToolkitError(
            f"a worker process has died (exit code {process.exitcode}), perhaps for lack of memory: "
            "try again with fewer --workers"
        )


def _with_error(pieces: Iterable[Any]) -> Iterator[Any]:
    """The pieces, and as the last one the error that ends them: what came before it is done first."""
    try:
        yield from pieces
    except ToolkitError as error:
        yield error


def _serve(work: Callable, connection: "Connection", other_end: "Connection") -> None:
    """The loop of a process: do pieces until nobody sends any."""
    other_end.close()
    ignore_signals()
    while True:
        try:
            piece = connection.recv()
        except (EOFError, OSError):
            return
        try:
            answer = (False, work(piece))
        except ToolkitError as error:
            answer = (True, error)
        except Exception:
            answer = (True, RuntimeError(f"a worker failed:\n{traceback.format_exc()}"))
        try:
            connection.send(answer)
        except OSError:  # the main process has left without waiting
            return
