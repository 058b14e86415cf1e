"""The short form of kill_ranks.py, which is a script to run for longer; and a signal that is passed on to ranks."""

import random
import signal
import sys
from pathlib import Path

import pytest

from tests.ranks import ENVIRONMENT, MPIEXEC, needs_mpi
from tests.system.kill_and_resume import cut_corpus
from tests.system.kill_ranks import RankTorture, torture
from tests.system.processes import wait_for

pytestmark = [needs_mpi, pytest.mark.skipif(sys.platform != "linux", reason="looks for processes in /proc")]


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)


def test_whatever_is_killed_all_end_and_the_run_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    done = torture(tmp_path, kills=1, seed=2, updates=10, mpiexec=MPIEXEC, counts=(1, 2))
    assert len(done.kills) == 1


def test_a_signal_to_mpiexec_saves_first(tmp_path: Path) -> None:
    """SIGUSR1, because Open MPI's kills at any other a quarter of a second later."""
    recipe = RankTorture(tmp_path, random.Random(0), updates=1_000_000, mpiexec=MPIEXEC, counts=(2,))
    cut_corpus(tmp_path)
    run = tmp_path / "run"
    process = recipe.start(run)
    wait_for(run / "last", process)
    process.send_signal(signal.SIGUSR1)
    assert process.wait() == 128 + signal.SIGUSR1
    last = int((run / "last").read_text().removeprefix("step-"))
    assert f"stopped at update {last}, go on with --resume\n" in (tmp_path / "stderr").read_text()
    assert recipe.processes() == []
