import subprocess
import sys
from pathlib import Path

import pytest

from tests.training.small import after_update, small_trainer
from toolkit import lock
from toolkit.commands.runs import read_run
from toolkit.errors import ConfigError
from toolkit.lock import is_locked, locked
from toolkit.training.run import Run


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lock, "_PATIENCE", 0.1)


def test_one_at_a_time(tmp_path: Path) -> None:
    with locked(tmp_path):
        assert is_locked(tmp_path)
        with pytest.raises(ConfigError, match="is being trained by another process"), locked(tmp_path):
            pass
    assert not is_locked(tmp_path)
    with locked(tmp_path):
        pass


def test_a_lock_ends_with_its_process(tmp_path: Path) -> None:
    script = "import sys, os, pathlib; from toolkit.lock import locked\n"
    script += "with locked(pathlib.Path(sys.argv[1])): print('locked', flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", script, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"locked\n"
        assert is_locked(tmp_path)
        process.kill()
    assert not is_locked(tmp_path)


def test_a_run_that_is_being_trained_is_not_resumed(tmp_path: Path) -> None:
    trainer, states = small_trainer(tmp_path / "run", workers=2), []

    def look() -> None:
        states.append(read_run(tmp_path / "run", "run").state)
        with pytest.raises(ConfigError, match="is being trained by another process"):
            Run(tmp_path / "run", trainer.run.settings).resume()

    after_update(trainer, 1, look)
    after_update(trainer, 3, look)
    trainer.train()
    assert states == ["running", "running"]
    assert read_run(tmp_path / "run", "run").state == "finished"
