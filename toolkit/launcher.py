"""Launchers: what has started this process together with others, such as mpiexec, and what may be amiss with it.

What launchers say stands in the environment; until there are ranks to speak of, nothing of MPI is imported.
"""

import os
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from toolkit import __version__
from toolkit.errors import ConfigError
from toolkit.process import ENDING

# What they say to each process: MPICH, Intel's and Microsoft's MPI and Slurm; Open MPI; whatever speaks PMIx.
_OPEN_MPI, _MPICH = "OMPI_COMM_WORLD_SIZE", "MPI_LOCALNRANKS"
_SIZES = "PMI_SIZE", _OPEN_MPI
_SIGNS = (*_SIZES, "PMIX_RANK")
_NUMBERS = "PMI_RANK", "PMIX_RANK", "OMPI_COMM_WORLD_RANK"
_NUMBERS_IN_MACHINE = "MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", "SLURM_LOCALID", *_NUMBERS
_TASKS, _TASK = "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"

_BEGINNING = 120  # seconds for all ranks to find each other: MPI would wait for ever for one that has ended
_WATCH = 0.5  # seconds
_SHARED_FILES = Path("/dev/shm")


def launched() -> bool:
    """Say if a launcher such as mpiexec has started this process; alone or with others."""
    return any(name in os.environ for name in _SIGNS)


_tells: bool | None = None  # what is otherwise than the numbers of ranks say


def tells() -> bool:
    """Say if it is for this process to tell what went wrong: where there are ranks, the first one does."""
    if _tells is not None:
        return _tells
    return _first(_NUMBERS) == 0 if launched() else _first([_TASK]) == 0 or _first([_TASKS], 1) == 1


def _first(names: Sequence[str], missing: int = 0) -> int:
    """Return the first number that the environment has by these names."""
    return next((int(os.environ[name]) for name in names if os.environ.get(name, "").isdigit()), missing)


def check_tasks() -> None:
    """Raise ConfigError where Slurm has started several processes that cannot know of each other.

    Each would do the whole work, and they would fight over one directory.
    """
    tasks = _first([_TASKS], 1)
    if tasks > 1 and not launched():
        raise ConfigError(
            f"srun has started {tasks} processes that do not know of each other: give it --mpi=pmix, or whatever "
            f"`srun --mpi=list` has for your MPI; or unset {_TASKS} where each has work of its own"
        )


def check_standard_input(instead: str) -> None:
    """Raise ConfigError under a launcher: what they hand on of standard input is cut off, or has no end.

    MPICH's ends everything where more than 64 KB are not read at once, Open MPI's 5.0 does not tell of the end.
    """
    if launched():
        raise ConfigError(f"launchers such as mpiexec do not hand standard input on as it is: give {instead}")


def find_mpi() -> Any:
    """Import MPI, and find the other ranks.

    Raises ConfigError where there is no mpi4py, which the first rank of each machine tells, or where it does not belong
    to the launcher.
    """
    global _tells
    try:
        import mpi4py

        mpi4py.rc.initialize, mpi4py.rc.finalize = False, True
        from mpi4py import MPI
    except (ImportError, RuntimeError) as error:  # RuntimeError: it finds no MPI
        where, _tells = "" if tells() else f"{socket.gethostname()}: ", _first(_NUMBERS_IN_MACHINE) == 0
        reason = str(error).split("\n")[0]
        raise ConfigError(
            f"{where}the launcher has started processes that need mpi4py to know of each other ({reason}): "
            "pip install mpi4py mpich, or start one process without the launcher"
        ) from None
    if not MPI.Is_initialized():
        is_open_mpi = "Open MPI" in MPI.Get_library_version()
        if (_MPICH if is_open_mpi else _OPEN_MPI) in os.environ:  # it would end the process, or not know of the others
            raise _other_library(MPI, _first(_SIZES), 1)
        with _at_most(_BEGINNING), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what mpi4py says of launchers is said below
            MPI.Init_thread(MPI.THREAD_FUNNELED)  # only the main thread calls it
    size, told = MPI.COMM_WORLD.size, _first([*_SIZES, _TASKS], MPI.COMM_WORLD.size)
    if size != told:
        raise _other_library(MPI, told, size)
    return MPI


def _other_library(MPI: Any, told: int, size: int) -> ConfigError:  # noqa: N803
    name = MPI.Get_library_version().split("\n")[0].split(",")[0].strip("\0 ")
    return ConfigError(
        f"the launcher has started {told} ranks and mpi4py sees {size}: its MPI is {' '.join(name.split())}, "
        "so take the mpiexec of that one"
    )


@contextmanager
def _at_most(seconds: int) -> Iterator[None]:
    """Let the system end the process where a block in which Python does not run takes longer, and at any signal."""
    if not hasattr(signal, "setitimer") or threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [number for number in ENDING if signal.getsignal(number) != signal.SIG_IGN]
    before = {number: signal.signal(number, signal.SIG_DFL) for number in (*numbers, signal.SIGALRM)}
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


def watch_parent() -> None:
    """End this process as soon as the one that has started it has gone: nobody would end it any more."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_WATCH)
        if (session := os.environ.get("PMIX_SERVER_TMPDIR", "")).endswith(f"ompi.{parent}"):
            import shutil  # here, because it is needed at such an end only

            shutil.rmtree(session, ignore_errors=True)  # Open MPI's launcher, killed, has left its files
        os._exit(1)

    threading.Thread(target=watch, name="parent", daemon=True).start()


def forget_names(machine: Any) -> None:
    """Take away the names of the memory in which MPI's messages travel: when a rank is killed, MPI leaves it for ever.

    machine: the communicator of the machine's ranks, which all call this. They keep the memory itself.
    """
    machine.alltoall([None] * machine.size)  # all have seen what all others have made
    with suppress(OSError):
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
        paths = {Path(line.split(maxsplit=5)[-1]) for line in lines}
        for path in (path for path in paths if path.parent == _SHARED_FILES and machine.rank == 0):
            path.unlink(missing_ok=True)
    machine.Barrier()


def fingerprint() -> tuple[str, str, dict[str, str]]:
    """Return what must be alike on all ranks, versions of the toolkit and of Python, and what equal bits depend on."""
    import numpy as np
    from threadpoolctl import threadpool_info

    found = {"numpy": np.__version__}
    for each in threadpool_info():
        if each["user_api"] == "blas":
            found["BLAS"] = f"{each['internal_api']} {each['version']}"
            found["BLAS kernel"] = str(each.get("architecture"))
    with suppress(ImportError, AttributeError):
        from numpy._core._multiarray_umath import __cpu_features__ as features

        found["SIMD"] = next((name for name in reversed(features) if features[name]), "none")
    return __version__, ".".join(map(str, sys.version_info[:2])), found


def compare(prints: Sequence[tuple[str, str, dict[str, str]]], names: Sequence[str]) -> str:
    """Compare the ranks' `fingerprint`s -> a line that says what differs and what that means; "" where nothing does.

    names: of the ranks. Raises ConfigError where versions differ that must be equal.
    """
    (toolkit, python, own), *_ = prints
    for (other, other_python, found), name in zip(prints, names, strict=True):
        if (other, other_python) != (toolkit, python):
            raise ConfigError(
                f"{names[0]} has toolkit {toolkit} and Python {python}, {name} has {other} and {other_python}: "
                "install the same on all machines"
            )
        for what in sorted(own.keys() | found.keys()):
            if own.get(what) != found.get(what):
                return (
                    f"{names[0]} has {what} {own.get(what)}, {name} has {found.get(what)}: this works, but the "
                    "last bits of results depend on which rank does what, so on the number of ranks, too"
                )
    return ""
