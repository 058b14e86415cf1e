"""Signals that end a process, and a standard error that is full or closed."""

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.system.damage.chat_recipes import TUNE
from tests.system.damage.preference_recipe import DPO, PPO, REWARD
from tests.system.damage.room import RECIPES, TRAIN, TRAIN_LM, contents, obey
from tests.system.damage.vectors import ENCODER, SWISH
from tests.system.processes import last_update, started, wait_for

ENDLESS = "--training.updates 1000000"
STOPPED = "stopped at update {}, go on with --resume\n"


@contextmanager
def ctrl_c_at_the_first_checkpoint() -> Iterator[None]:
    def press() -> None:
        wait_for(Path("new/last"))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    yield
    thread.join()


@pytest.mark.parametrize("command", [TRAIN, TRAIN_LM, TUNE, REWARD, DPO, PPO, ENCODER, SWISH])
def test_training_that_is_interrupted_says_where_also_with_quiet(command: str, room: Callable, capfd) -> None:
    room(command)
    with ctrl_c_at_the_first_checkpoint():
        assert obey(f"{command} {ENDLESS}") == 130
    assert capfd.readouterr() == ("", STOPPED.format(last_update()))


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals that this system has not")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGUSR1", 138)])
def test_other_signals_end_training_as_ctrl_c_does(name: str, code: int, room: Callable) -> None:
    """They reach the workers, too, where a whole session ends."""
    if signal.getsignal(getattr(signal, name)) == signal.SIG_IGN:
        pytest.skip("the tests were started to ignore this signal, by nohup for example")
    here = room(TRAIN)
    command = f"{TRAIN} {ENDLESS} --training.workers 2"
    with started(command, stderr=subprocess.PIPE, start_new_session=True) as process:
        wait_for(here / "new" / "last", process)
        os.killpg(process.pid, getattr(signal, name))
        told = process.stderr.read().decode()
    assert process.returncode == code
    assert told == STOPPED.format(last_update())
    assert not [path for path in contents(here) if ".toolkit" in path]


def test_a_signal_before_training_leaves_nothing_temporary(room: Callable) -> None:
    """While the corpus is written, under a name of its own."""
    here = room(TRAIN)
    (here / "lines.en").write_text("".join(f"This is sentence number {n}.\n" for n in range(50_000)))
    (here / "lines.ne").write_text("".join(f"यो वाक्य नम्बर {n} हो।\n" for n in range(50_000)))
    with started(TRAIN, stderr=subprocess.DEVNULL) as process:
        wait_for(here / "new" / "settings.json", process)
        while not list((here / "new").glob(".toolkit-data.*")):
            time.sleep(0.001)
        process.send_signal(signal.SIGTERM)
    assert process.returncode == 143
    assert not list((here / "new").glob(".toolkit-*"))


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_standard_error_that_is_full_or_closed_ends_nothing(room: Callable) -> None:
    here = room(TRAIN)
    told = TRAIN.replace(" --quiet", "")
    with Path("/dev/full").open("wb") as full, started(told, stderr=full) as process:
        pass
    assert process.returncode == 0
    again = [sys.executable, str(RECIPES["recipe"]), *told.split()[1:]]
    done = subprocess.run(["sh", "-c", 'exec "$@" 2>&-', "sh", *again], stdout=subprocess.PIPE, check=False)
    assert (done.returncode, done.stdout) == (2, b"")  # there is a run by now
    assert last_update() == 2
    assert (here / "new" / "step-000002").is_dir()
