"""Signals that end a process, a standard error that is full or closed, and others that ask for the same run."""

import os
import re
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
from toolkit.training import lock

ENDLESS = "--training.updates 1000000"
STOPPED = "stopped at update {}, go on with --resume\n"


@contextmanager
def started(command: str, **streams: object) -> Iterator[subprocess.Popen]:
    """A recipe as a process of its own, which has come to its end after the block."""
    verb, *words = command.split()
    command = [sys.executable, str(RECIPES[verb]), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, **streams) as process:
        try:
            yield process
        except BaseException:
            process.kill()
            raise


def wait_for(path: Path, process: subprocess.Popen | None = None) -> None:
    while not path.exists():
        assert process is None or process.poll() is None
        time.sleep(0.001)


@contextmanager
def ctrl_c_at_the_first_checkpoint() -> Iterator[None]:
    def press() -> None:
        wait_for(Path("new/last"))
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    thread.start()
    yield
    thread.join()


def last_update() -> int:
    return int(Path("new/last").read_text().removeprefix("step-"))


@pytest.mark.parametrize("command", [TRAIN, TRAIN_LM, TUNE, REWARD, DPO, PPO, ENCODER, SWISH])
def test_training_that_is_interrupted_says_where_also_with_quiet(command: str, room: Callable, capfd) -> None:
    room(command)
    with ctrl_c_at_the_first_checkpoint():
        assert obey(f"{command} {ENDLESS}") == 130
    assert capfd.readouterr() == ("", STOPPED.format(last_update()))


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="needs signals that this system has not")
@pytest.mark.parametrize(("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129)])
def test_other_signals_end_training_as_ctrl_c_does(name: str, code: int, room: Callable) -> None:
    """They reach the workers, too, where a whole session ends."""
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
    assert sorted(os.listdir("new")) == ["settings.json"]  # noqa: PTH208


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


def test_a_run_that_is_being_prepared_is_left_alone(room: Callable, capfd, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a second start and by --resume; both are told who has it, and it comes to its end."""
    monkeypatch.setattr(lock, "_PATIENCE", 0.1)
    here = room(TRAIN)
    with started(TRAIN, stderr=subprocess.PIPE) as process:
        wait_for(here / "new" / "settings.json", process)
        process.send_signal(signal.SIGSTOP)
        time.sleep(0.01)
        assert not (here / "new" / "last").exists()
        for words in TRAIN, f"{TRAIN} --resume":
            assert obey(words) == 2
            expected = rf"toolkit: new is being trained by another process(, number {process.pid})?: wait for it, or "
            assert re.match(expected, capfd.readouterr().err)
        process.send_signal(signal.SIGCONT)
        assert process.stderr.read() == b""
    assert process.returncode == 0
    assert last_update() == 2


def test_the_first_of_two_starts_fails_and_the_second_has_the_directory(room: Callable, capfd) -> None:
    """Its clean-up, for its data are wrong, takes nothing from the one that waits for the directory."""
    here = room(TRAIN)
    with started(TRAIN.replace("--model.vocab-size 400", "--model.vocab-size 300"), stderr=subprocess.PIPE) as process:
        wait_for(here / "new" / "settings.json", process)
        process.send_signal(signal.SIGSTOP)
        threading.Timer(0.5, process.send_signal, [signal.SIGCONT]).start()
        assert obey(TRAIN) == 0, capfd.readouterr().err
        assert b"vocab_size 300 is too small" in process.stderr.read()
    assert process.returncode == 2
    assert last_update() == 2
