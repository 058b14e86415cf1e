"""Work done by several processes is the work done by one, in order, whatever goes wrong on the way."""

import multiprocessing
import os
import signal
import subprocess
import sys
import time

import pytest

from toolkit import parallel
from toolkit.errors import ConfigError, DataError, ToolkitError
from toolkit.process import ENDING


class Work:
    """Doubles a number: the larger, the sooner. 7 is wrong, 8 a fault of ours, 9 ends the process."""

    def __init__(self):
        self.home = os.getpid()

    def __reduce__(self):  # what is not home is a worker, where processes are spawned as well
        return Work, ()

    def __call__(self, number):
        if number == 7:
            raise DataError("7 is wrong")
        if number == 8:
            raise KeyError("eight")
        if number == 9:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(max(0, 3 - number) / 100)
        return 2 * number, os.getpid()


def numbers_of(results):
    return [number for number, _ in results]


@pytest.fixture(autouse=True)
def _nothing_is_left():
    yield
    assert multiprocessing.active_children() == []


@pytest.mark.parametrize("workers", [1, 2, 3, None])
def test_results_come_in_order(workers):
    pieces = [0, None, 3, 1, None, None, 5, 2, 6, 4, 6, 5, None]
    results = list(parallel.in_order(Work(), pieces, workers))
    assert numbers_of(results) == [2 * piece for piece in pieces if piece is not None]
    assert numbers_of(parallel.in_order(Work(), [], workers)) == []


def test_spawned_processes_do_the_same(monkeypatch):
    monkeypatch.setattr(parallel, "START_METHOD", "spawn")
    assert list(parallel.in_order(abs, [-3, 1, -2], 2)) == [3, 1, 2]


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_a_signal_that_comes_while_a_process_begins_does_not_end_it(monkeypatch, method):
    if method not in multiprocessing.get_all_start_methods() or not hasattr(signal, "pthread_sigmask"):
        pytest.skip(f"this system does not {method} processes, or has no such signals")
    monkeypatch.setattr(parallel, "START_METHOD", method)
    process = parallel.Process(abs, "")
    for number in ENDING:
        os.kill(process.process.pid, number)
    process.send(-3)
    assert parallel.result_of(process.receive()) == 3
    parallel.close_all([process])
    assert not signal.pthread_sigmask(signal.SIG_BLOCK, []) & {*ENDING}


def test_so_many_processes_are_used_and_this_one_alone_for_short_work(monkeypatch):
    home = os.getpid()
    assert {process for _, process in parallel.in_order(Work(), [0, 1, 2, 0, 1], 1)} == {home}
    processes = {process for _, process in parallel.in_order(Work(), [0, 1, 2, 0, 1], 2)}
    assert len(processes) == 2
    assert home not in processes
    monkeypatch.setattr(parallel, "available_cores", lambda: 2)
    assert {process for _, process in parallel.in_order(Work(), [0, None, 1, 2, None, 0, 1, 5])} == {home}
    assert [process == home for _, process in parallel.in_order(Work(), [5] * 5)] == [True] * 3 + [False] * 2


@pytest.mark.parametrize("workers", [1, 2])
def test_an_error_comes_in_its_turn(workers):
    results = parallel.in_order(Work(), [0, 7, 1], workers)
    assert next(results)[0] == 0
    with pytest.raises(DataError, match="7 is wrong"):
        next(results)

    def broken():
        yield from (0, 1)
        raise DataError("no more")

    results = parallel.in_order(Work(), broken(), workers)
    assert [next(results)[0], next(results)[0]] == [0, 2]
    with pytest.raises(DataError, match="no more"):
        next(results)


def test_a_fault_of_ours_keeps_its_traceback():
    with pytest.raises(RuntimeError, match=r"(?s)test_parallel.*KeyError: 'eight'"):
        list(parallel.in_order(Work(), [0, 8], 2))


def test_a_process_that_dies_is_one_clear_error():
    with pytest.raises(ToolkitError, match=r"a worker process has died \(exit code -9\).*fewer --workers"):
        list(parallel.in_order(Work(), [0, 9, 1, 2], 2))


def test_whoever_leaves_early_leaves_no_process_behind():
    results = parallel.in_order(Work(), iter(range(10**9)), 2)
    next(results)
    assert multiprocessing.active_children()
    results.close()


AT_WORK = """
import os, time
from toolkit import parallel
def work(job):
    os.write(1, b"%d\\n" % os.getpid())  # in one piece, which no other process can write into
    time.sleep(600)
list(parallel.in_order(work, [0, 1], 2))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="parents that have gone are noticed in POSIX only")
def test_processes_end_in_the_midst_of_a_job_when_the_main_one_is_killed():
    with subprocess.Popen([sys.executable, "-c", AT_WORK], stdout=subprocess.PIPE) as main:
        workers = [int(main.stdout.readline()), int(main.stdout.readline())]
        main.kill()
        assert main.stdout.read() == b""  # which ends when nobody is left that could write
    assert len({*workers, main.pid}) == 3


def test_only_a_few_pieces_are_taken_in_advance():
    taken = []
    results = parallel.in_order(Work(), (taken.append(piece) or 5 for piece in range(1000)), 2)
    for count in range(20):
        next(results)
        assert len(taken) <= count + 6
    results.close()


def test_there_is_at_least_one_worker():
    with pytest.raises(ConfigError, match="workers is 0"):
        list(parallel.in_order(abs, [1], 0))
