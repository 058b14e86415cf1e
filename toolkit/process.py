"""The system and a process at work: signals that ask it to end, a standard error that is full or gone."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TextIO

# Ctrl-C; `kill`, and a system that shuts down; a terminal that is closed; a batch system that warns, as it is asked to.
_NAMES = "SIGINT", "SIGTERM", "SIGHUP", "SIGUSR1"
ENDING = [getattr(signal, name) for name in _NAMES if hasattr(signal, name)]


class Stopped(BaseException):
    """A signal has asked the process to end: what is temporary is cleared away on the way out.

    number: of the signal. The message, where there is one, is for the user.
    """

    def __init__(self, number: int, message: str = ""):
        super().__init__(message)
        self.number = number


@contextmanager
def stoppable(numbers: Iterable[int] | None = None) -> Iterator[None]:
    """Within the block SIGTERM, SIGHUP and SIGUSR1, or signals of these numbers, raise Stopped.

    By default not those that the process was started to ignore (`nohup`), or that somebody else handles; Ctrl-C raises
    KeyboardInterrupt.
    """

    def stop(number: int, _: Any) -> None:
        raise Stopped(number)

    if numbers is None:
        numbers = [number for number in ENDING if signal.getsignal(number) == signal.SIG_DFL]
    with _handling(stop, numbers):
        yield


@contextmanager
def postponed(stop: Callable[[int], None]) -> Iterator[None]:
    """Within the block Ctrl-C, and each other signal that would raise an exception, calls `stop` with its number."""
    raising = [number for number in ENDING if number == signal.SIGINT or callable(signal.getsignal(number))]
    with _handling(lambda number, _: stop(number), raising):
        yield


@contextmanager
def blocked_signals() -> Iterator[None]:
    """Within the block signals that ask to end wait, and for a process that is started in it until it ignores them."""
    if not hasattr(signal, "pthread_sigmask"):  # elsewhere than in POSIX
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ignore_signals() -> None:
    """Leave it to the main process, which they reach too, what signals mean for its workers."""
    for number in ENDING:
        signal.signal(number, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, ENDING)


@contextmanager
def ignored_signals() -> Iterator[None]:
    """Within the block signals that ask to end mean nothing to this process."""
    with _handling(signal.SIG_IGN, ENDING):
        yield


@contextmanager
def _handling(handler: Callable[[int, Any], None] | signal.Handlers, numbers: Iterable[int]) -> Iterator[None]:
    """Handle signals within the block; only the main thread can."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, handler) for number in numbers}
    try:
        yield
    finally:
        for number, earlier in before.items():
            signal.signal(number, earlier)


@contextmanager
def stderr_or_nowhere() -> Iterator[None]:
    """Within the block there is a standard error, and after it nothing is left that it has not taken.

    A process that is started without one would give its number to the next file that it opens; and with something left
    that cannot be written, Python would end with an exit code of its own.
    """
    if sys.stderr is None:
        sys.stderr = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115  (as long as the process lives)
    try:
        yield
    finally:
        try:
            sys.stderr.flush()
        except OSError:
            discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Send what is left to nowhere: Python flushes once more when it ends, and would complain about the same error."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
