"""The short form of kill_and_resume.py, which is a script to run for longer."""

from pathlib import Path

import pytest

from tests.system.kill_and_resume import differences, torture


def test_killed_runs_end_in_the_bits_of_one_left_alone(tmp_path: Path) -> None:
    assert len(torture(tmp_path, kills=2, seed=3, updates=15).kills) == 2


@pytest.mark.parametrize(
    "name", ["step-000010/model.safetensors", "step-000010/training/state.json", "log.jsonl", "last"]
)
def test_a_difference_is_noticed(tmp_path: Path, name: str) -> None:
    for run in ("one", "other"):
        path = tmp_path / run / name
        path.parent.mkdir(parents=True)
        path.write_text('{"update": 10, "seconds": 1.5}' if ".json" in path.suffix else "content")
    assert differences(tmp_path / "one", tmp_path / "other") == []
    path.write_text(path.read_text().replace("1", "2").replace("content", "other"))
    assert differences(tmp_path / "one", tmp_path / "other") == [name]
    path.unlink()
    assert differences(tmp_path / "one", tmp_path / "other") == [name]
