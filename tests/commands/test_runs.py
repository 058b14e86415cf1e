import json
import shutil
from pathlib import Path

import pytest

from tests.training.small import make_runs
from toolkit.commands.runs import RunRecord, Runs, _lines


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


def shown(capsys: pytest.CaptureFixture, directory: Path, **flags) -> list[str]:
    Runs(directory, **flags).run()
    return capsys.readouterr().out.splitlines()


def test_a_table_of_runs(runs: Path, capsys: pytest.CaptureFixture) -> None:
    title, *rows = shown(capsys, runs)
    assert title.split("  ")[0] == "run"
    assert title.endswith("settings that differ")
    by_name = {row.split()[0]: row for row in rows}
    assert "stopped" in by_name["deeper/stopped"]
    assert "training.learning_rate=0.5" in by_name["deeper/stopped"]
    assert "3/6" in by_name["deeper/stopped"]
    assert "training.seed=2" in by_name["seed2"]
    (means,) = [row for row in rows if row.startswith("2 seeds, mean ± s.d.")]
    assert means.endswith("seed1, seed2")
    assert means.count("±") == 3  # the title, loss, chrF
    column = title.index("updates")
    assert all(row[column - 1] == " " != row[column] for row in rows if not row.startswith("2 seeds"))


@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("best", "x" * 256),
        ("best", "../../seed2/step-000006"),
        ("settings.json", '{"a":' * 900 + "1" + "}" * 900),
        ("step-000006/metrics.json", '{"validation": {"loss": 1' + "0" * 400 + "}}"),
    ],
    ids=["a long name", "a path", "depth", "metrics"],
)
def test_one_bad_run_leaves_the_others(runs: Path, tmp_path: Path, run, file: str, content: str) -> None:
    for name in "seed1", "seed2":
        shutil.copytree(runs / name, tmp_path / "runs" / name)
    (tmp_path / "runs" / "seed1" / "best").write_text("step-000006")
    (tmp_path / "runs" / "seed1" / file).write_text(content)
    _, bad, good, _, problem = run("runs", tmp_path / "runs").lines
    assert bad.split()[:2] == ["seed1", "damaged"]
    assert good.split()[:2] == ["seed2", "finished"]
    assert problem.startswith("seed1: ")
    assert str(Path("seed1") / file) in problem
    assert run("runs", tmp_path / "runs", "--json").code == 0


def test_one_run(runs: Path, capsys: pytest.CaptureFixture) -> None:
    title, row = shown(capsys, runs / "seed1")
    assert row.split()[:3] == [str(runs / "seed1"), "finished", "6/6"]
    assert "settings that differ" not in title


def test_of_many_settings_that_differ_the_first_are_shown() -> None:
    settings = {f"model.size_{number:02}": number for number in range(30)}
    row = _lines([RunRecord("mixed", "finished", settings=settings)], list(settings), [])[1]
    assert row.endswith("model.size_07=7  and 22 more: --json")


def test_json(runs: Path, capsys: pytest.CaptureFixture) -> None:
    (line,) = shown(capsys, runs, json=True)
    facts = json.loads(line)
    assert [run["name"] for run in facts["runs"]][-2:] == ["seed1", "seed2"]
    assert facts["seeds"][0]["names"] == ["seed1", "seed2"]
    assert "training.seed" in facts["differing"]


def test_a_damaged_run_has_a_row_and_a_reason(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture) -> None:
    shutil.copytree(runs / "seed1", tmp_path / "whole")
    shutil.copytree(runs / "seed2", tmp_path / "broken")
    (tmp_path / "broken" / "settings.json").write_text("{")
    lines = shown(capsys, tmp_path)
    assert len(lines) == 5
    assert lines[1].split()[:3] == ["broken", "damaged", "0/?"]
    assert lines[-1].startswith("broken: ")
    assert "settings.json is damaged" in lines[-1]


@pytest.mark.parametrize(
    ("log", "state"), [('{"update": 1, "diverged": 1}', "diverged"), ("[" * 60_000, "stopped"), ("3", "stopped")]
)
def test_the_end_of_the_log_tells_of_divergence(
    tmp_path: Path, capsys: pytest.CaptureFixture, log: str, state: str
) -> None:
    (tmp_path / "settings.json").write_text("{}")
    (tmp_path / "log.jsonl").write_text(log)
    assert state in shown(capsys, tmp_path)[1].split()
