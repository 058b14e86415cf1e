import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.outcome import Outcome
from tests.training.run_logs import training, validation, write_log
from tests.training.small import trainer_with_settings


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of the trainer, two whose logs are written by hand, and one that has not begun."""
    home = tmp_path_factory.mktemp("runs")
    trainer_with_settings(home / "trained").train()
    for seed in (1, 2):
        write_log(home / "seeds" / f"seed-{seed}", training(20), validation(20), training(40 * seed))
    write_log(home / "new")
    return home


@pytest.fixture
def plot(run):
    """Run `toolkit plot`."""
    pytest.importorskip("matplotlib")
    return lambda *arguments: run("plot", *arguments)


def test_the_log_of_the_trainer(runs: Path, plot, tmp_path: Path) -> None:
    output = tmp_path / "curves.svg"
    metrics = "negative_log_likelihood, loss, perplexity, chrf, learning_rate, gradient_norm, tokens_per_second"
    assert plot(runs / "trained", "--output", output) == Outcome(0, f"{output}: 1 run: {metrics}\n", "")
    assert output.read_text(encoding="utf-8").count(">training<") == 1


def test_runs_of_a_directory(runs: Path, plot, tmp_path: Path) -> None:
    output = tmp_path / "curves.svg"
    output.write_text("old")
    done = plot(runs, "--output", output, "--x", "tokens", "--metrics", "chrf", "loss")
    assert done == Outcome(0, f"{output}: 3 runs: chrf, loss\n", f"toolkit: no figures yet: {runs / 'new'}\n")
    svg = output.read_text(encoding="utf-8")
    assert all(f">{name}<" in svg for name in ("seeds/seed-1", "seeds/seed-2", "trained", "tokens", "chrF"))
    assert [path.name for path in tmp_path.iterdir()] == ["curves.svg"]


def test_a_png_in_this_directory_by_default(runs: Path, plot, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plot(runs / "trained", "--metrics", "loss").out == "curves.png: 1 run: loss\n"
    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def test_mistakes_are_told_in_a_sentence_and_nothing_is_written(runs: Path, plot, tmp_path: Path) -> None:
    damaged = tmp_path / "damaged"
    shutil.copytree(runs / "trained", damaged)
    (damaged / "log.jsonl").write_text(json.dumps({"update": "one"}) + "\n")
    output = tmp_path / "out.png"
    output.write_text("old")
    for arguments, sentence in (
        ((runs / "new", "--output", output), "new has no figures in its log.jsonl yet: train it further"),
        ((damaged, "--output", output), "log.jsonl, line 1 is damaged: it is not a record of an update"),
        ((runs / "trained", "--metrics", "los", "--output", output), "there is no metric 'los' in these logs"),
        ((runs / "none", "--output", output), "none is not a directory"),
        ((tmp_path, "--output", tmp_path / "out.pdf"), "out.pdf is not the name of a picture: it must end with .png"),
        ((runs / "trained", "--output", tmp_path / "no" / "out.png"), "out.png cannot be written"),
        (("--output", output), "RUN is missing"),
    ):
        done = plot(*arguments)
        assert (done.code, done.out) == (2, "")
        assert done.err.count("\n") == 1
        assert sentence in done.err
    assert output.read_text() == "old"


def test_maps_of_an_explanation(run, tiny_model: Path, tmp_path: Path) -> None:
    for name in ("map.svg", "page.html"):
        (tmp_path / name).write_text("old")
    words = ("explain", "translate", "I am a boy.", "--model", tiny_model, "--picture", tmp_path / "map.svg")
    done = run(*words, "--html", tmp_path / "page.html")
    assert done.code == 0
    assert done.out.splitlines()[-1] == f"{tmp_path / 'map.svg'}: the maps of attention"
    assert ">layer 1, head 1</text>" in (tmp_path / "map.svg").read_text(encoding="utf-8")
    assert (tmp_path / "page.html").read_text(encoding="utf-8").startswith("<!")
    wrong = run(*words[:-1], tmp_path / "map.gif")
    assert (wrong.code, wrong.out) == (2, "")
    assert "map.gif is not the name of a picture" in wrong.err


def test_matplotlib_is_imported_for_pictures_that_need_it_only(tmp_path: Path) -> None:
    code = (
        "import sys, numpy, toolkit.commands.runs; from toolkit.pages.maps import picture; "
        "from toolkit.pages.blocks import Heat; picture(Heat('', numpy.ones((1, 1)), 'a', 'b')).svg; "
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)
