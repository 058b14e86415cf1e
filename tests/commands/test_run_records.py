"""What became of runs, read from their directories."""

import json
import shutil
from dataclasses import asdict
from pathlib import Path

import pytest

from tests.training.small import make_runs
from toolkit.commands.runs import RunRecord, differing_settings, read_run, seed_groups
from toolkit.errors import ModelError
from toolkit.models.storage import read_metrics, save_metrics
from toolkit.training.run import Run, find_runs


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_runs(tmp_path_factory.mktemp("runs"))


def test_runs_are_found_one_and_two_levels_down(runs: Path) -> None:
    names = [str(path.relative_to(runs)) for path in find_runs(runs)]
    assert names == ["deeper/stopped", "diverged", "new", "patient", "seed1", "seed2"]
    assert find_runs(runs / "seed1") == [runs / "seed1"]


def test_a_directory_without_runs(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="holds no runs"):
        find_runs(tmp_path)
    with pytest.raises(ModelError, match="is not a directory"):
        find_runs(tmp_path / "nowhere")


@pytest.mark.parametrize(
    ("name", "state", "updates"),
    [
        ("seed1", "finished", 6),
        ("deeper/stopped", "stopped", 3),
        ("patient", "finished", 2),
        ("diverged", "diverged", 2),
        ("new", "stopped", 0),
    ],
)
def test_how_far_a_run_came(runs: Path, name: str, state: str, updates: int) -> None:
    record = read_run(runs / name, name)
    assert (record.state, record.updates, record.updates_asked) == (state, updates, 6)
    assert (record.seconds > 0) == (updates > 0)


def test_the_scores_are_those_of_the_best_checkpoint(runs: Path, tmp_path: Path) -> None:
    run = shutil.copytree(runs / "seed1", tmp_path / "run")
    best = Run(run, {}).named("best")
    save_metrics(best, {**read_metrics(best), "test": {"chrf": 61.5, "chrf_signature": "nrefs:1", "bleu": None}})
    record = read_run(run, "run")
    assert record.validation == read_metrics(best)["validation"]
    assert record.test == {"chrf": 61.5}


@pytest.mark.parametrize("damage", ["settings.json", "step-000006/training/state.json", "step-000006/metrics.json"])
@pytest.mark.parametrize("content", [b"{", b"\xff", b"[]"])
def test_a_damaged_run_says_so(runs: Path, tmp_path: Path, damage: str, content: bytes) -> None:
    run = shutil.copytree(runs / "seed1", tmp_path / "run")
    (run / "best").write_text("step-000006\n")
    (run / damage).write_bytes(content)
    record = read_run(run, "run")
    assert record.state == "damaged"
    assert damage.rsplit("/")[-1] in record.problem


@pytest.mark.parametrize("pointer", [None, b"", b"\xff"])
def test_a_run_whose_last_checkpoint_has_no_name(runs: Path, tmp_path: Path, pointer: bytes | None) -> None:
    run = shutil.copytree(runs / "seed1", tmp_path / "run")
    (run / "last").unlink() if pointer is None else (run / "last").write_bytes(pointer)
    assert read_run(run, "run").state == "damaged"


@pytest.mark.parametrize("line", [b"", b"[1]\n", b"3\n", b'{"update": 3, "div', b"\xff\n"])
def test_a_damaged_log_is_no_divergence(runs: Path, tmp_path: Path, line: bytes) -> None:
    run = shutil.copytree(runs / "deeper" / "stopped", tmp_path / "run")
    (run / "log.jsonl").write_bytes(line)
    assert read_run(run, "run").state == "stopped"


def test_settings_that_differ() -> None:
    settings = [{"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}, {}]
    records = [RunRecord(str(index), "finished", settings=own) for index, own in enumerate(settings)]
    assert differing_settings(records) == ["b", "c"]
    assert differing_settings(records[:1]) == []
    assert differing_settings([]) == []


def test_seeds_are_summed_up() -> None:
    def record(seed: int, chrf: float, width: int = 8, state: str = "finished", **test: float) -> RunRecord:
        settings = {"training.seed": seed, "model.d-model": width}
        return RunRecord(f"{width}-{seed}", state, validation={"chrf": chrf}, test=test, settings=settings)

    records = [record(1, 10.0, bleu=1), record(2, 12.0, bleu=3), record(3, 14.0)]
    records += [record(1, 50.0, width=9), record(2, 60.0, width=9, state="stopped")]
    (group,) = seed_groups(records)
    assert group.names == ["8-1", "8-2", "8-3"]
    assert group.validation == {"chrf": (12.0, 2.0)}
    assert group.test == {}
    assert json.loads(json.dumps(asdict(group)))["validation"] == {"chrf": [12.0, 2.0]}
