"""The short form of two_at_once.py, which is a script to run for longer; and what one process does to another."""

import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.damage.room import TRAIN, obey
from tests.system.processes import last_update, started, wait_for
from tests.system.two_at_once import Pairs, run_pairs
from toolkit import lock


def test_of_two_at_once_one_wins_and_the_other_says_so(tmp_path: Path) -> None:
    kinds = Pairs.two_starts, Pairs.two_exports, Pairs.two_exports
    pairs = run_pairs(tmp_path, 3, seed=15, updates=5, kinds=kinds)  # which draws the same moment for both
    assert sum(pairs.told.values()) == 3


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


def test_the_first_of_two_starts_fails_and_the_second_has_the_directory(
    room: Callable, capfd, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its clean-up, for its data are wrong, takes nothing from the one that waits for the directory."""
    monkeypatch.setattr(lock, "_PATIENCE", 60)  # on a loaded machine
    here = room(TRAIN)
    with started(TRAIN.replace("--model.vocab-size 400", "--model.vocab-size 300"), stderr=subprocess.PIPE) as process:
        wait_for(here / "new" / "settings.json", process)
        process.send_signal(signal.SIGSTOP)
        threading.Timer(0.5, process.send_signal, [signal.SIGCONT]).start()
        assert obey(TRAIN) == 0, capfd.readouterr().err
        assert b"vocab_size 300 is too small" in process.stderr.read()
    assert process.returncode == 2
    assert last_update() == 2


# A checkpoint is replaced by the next in the moment in which its config is opened, however that is done.
REPLACED = """
import os, shutil, sys

def replace(event, arguments):
    if event == "open" and str(arguments[0]).endswith("step-000001/config.json") and os.path.isdir("run/step-000001"):
        shutil.copytree("run/step-000002", "run/step-000003")
        for name in "best", "last":
            with open(f"run/{name}", "w") as pointer:
                pointer.write("step-000002")
        shutil.rmtree("run/step-000001")

sys.addaudithook(replace)
from toolkit.cli import main
sys.exit(main())
"""


@pytest.mark.parametrize(
    "verb", ["translate --model run hello", "info run", "export run out", "average run --output out"]
)
def test_a_checkpoint_that_is_replaced_while_it_is_read(room: Callable, verb: str) -> None:
    here = room("run")
    shutil.copytree(here / "run" / "step-000001", here / "run" / "step-000002")
    done = subprocess.run([sys.executable, "-c", REPLACED, *verb.split()], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not (here / "run" / "step-000001").exists()
