"""Training by the verb, by the script and by `toolkit.train` is the same training; the library raises what it tells."""

import json
import multiprocessing
import shlex
import signal
from pathlib import Path

import pytest

import toolkit
from tests.system.damage.room import obey
from toolkit.cli import main
from toolkit.errors import ConfigError
from toolkit.models.storage import read_metrics
from toolkit.process import Stopped
from toolkit.training.run import Run

TEXT = "".join(f"The {who} {what}.\n\n" for who in ("cat", "dog", "hen", "cow") for what in ("eats", "runs", "sits"))
WORDS = "--text tale.txt --tokenizer character --samples 1 --model.d-model 8 --model.num-heads 2 --model.layers 1 "
WORDS += "--training.updates 2 --training.workers 2 --training.tokens-per-batch 64 --quiet"
KEYWORDS = {
    "text": "tale.txt",
    "tokenizer": "character",
    "samples": 1,
    "quiet": True,
    "model": {"d_model": 8, "num_heads": 2, "layers": 1},
    "training": {"updates": 2, "workers": 2, "tokens_per_batch": 64},
}


@pytest.fixture(autouse=True)
def room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A directory with a text, which is the current one."""
    (tmp_path / "tale.txt").write_text(TEXT)
    monkeypatch.chdir(tmp_path)


def test_three_ways_and_a_file_of_settings_give_the_same_bits(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["train", "language-model", "--run", "verb", *WORDS.split()]) == 0
    printed = capsys.readouterr().out.replace("verb", "library")
    assert obey(f"recipe-lm --run script {WORDS}") == 0
    assert main(["train", "language-model", "--run", "again", "--config", "verb", "--quiet"]) == 0
    capsys.readouterr()
    run = toolkit.train("language-model", run="library", **KEYWORDS)
    assert capsys.readouterr() == ("", "")
    assert "".join(f"{line}\n" for line in run.results) == printed
    ways = [Path(name) for name in ("verb", "script", "again", "library")]
    for file in ("settings.json", "step-000002/model.safetensors", "step-000002/training/moments.safetensors"):
        assert len({(way / file).read_bytes() for way in ways}) == 1
    commands = [read_metrics(way / "step-000002")["command"] for way in ways]
    assert commands[0] == f"toolkit train language-model --run verb {WORDS}"
    assert shlex.split(commands[1])[0] == "python"
    assert commands[3] == (
        "toolkit.train('language-model', run='library', text=['tale.txt'], tokenizer='character', samples=1, "
        f"quiet=True, model={KEYWORDS['model']}, training={KEYWORDS['training']})"
    )
    assert toolkit.load(run).generate("The", max_new_tokens=2) == toolkit.load("verb").generate("The", max_new_tokens=2)
    assert repr(run).startswith("Run('library', 2 of 2 updates, best at update 2: loss ")


def test_several_seeds_are_several_runs_and_one_goes_on() -> None:
    runs = toolkit.train("language-model", run="many", seeds=[2, 3], **KEYWORDS)
    assert [str(run.path) for run in runs] == ["many/seed-2", "many/seed-3"]
    assert [json.loads((run.path / "settings.json").read_text())["training"]["seed"] for run in runs] == [2, 3]
    longer = KEYWORDS | {"training": KEYWORDS["training"] | {"updates": 3, "seed": 2}}
    assert toolkit.train("language-model", run=runs[0], resume=True, **longer).steps()[-1].name == "step-000003"


def test_who_resumes_a_run_and_says_no_length_goes_on_to_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    toolkit.train("language-model", run="many", seeds=[2], **KEYWORDS)
    settings = Path("many/seed-2/settings.json").read_bytes()
    words = WORDS.replace("--training.updates 2 ", "").replace("--quiet", "--resume")
    assert main(["train", "language-model", "--run", "many", "--seeds", "2", *words.split()]) == 0
    assert main(["train", "language-model", "--run", "many/seed-2", "--training.seed", "2", *words.split()]) == 0
    assert "in place of" not in capsys.readouterr().err
    own = KEYWORDS | {"training": {"workers": 2, "tokens_per_batch": 64, "seed": 2}, "resume": True}
    assert toolkit.train("language-model", run="many/seed-2", **own).steps()[-1].name == "step-000002"
    assert Path("many/seed-2/settings.json").read_bytes() == settings


def test_other_data_than_those_of_the_file_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    toolkit.train("language-model", run="run", **KEYWORDS)
    Path("moved.txt").write_text(TEXT)
    Path("tale.txt").write_text(TEXT.replace("cat", "rat"))
    for run, text, told in (("a", {}, True), ("b", {"text": "moved.txt"}, False)):
        toolkit.train("language-model", run=run, config="run", training={"updates": 1}, **text)
        assert capsys.readouterr().err.startswith("the data are not those of run: tale.txt\n") == told


def test_what_is_wrong_is_raised_before_anything_is_made() -> None:
    with pytest.raises(ConfigError, match=r"there is no recipe 'translate': did you mean translation\?"):
        toolkit.train("translate")
    with pytest.raises(TypeError, match=r"there is no setting 'epochs'"):
        toolkit.train("translation", epochs=3)
    with pytest.raises(ConfigError, match=r"--export takes one model and --seeds trains several"):
        toolkit.train("language-model", export="x", seeds=(1, 2), **KEYWORDS)
    assert [path.name for path in Path().iterdir()] == ["tale.txt"]


def test_an_interruption_is_one_of_python(monkeypatch: pytest.MonkeyPatch) -> None:
    def stop(*_: object) -> Run:
        raise Stopped(signals[-1], "stopped at update 1, go on with --resume")

    monkeypatch.setattr("toolkit.recipes.chat.train", stop)
    signals = []
    for number, kind in ((signal.SIGINT, KeyboardInterrupt), (signal.SIGTERM, Stopped)):
        signals.append(number)
        with pytest.raises(kind, match=r"^stopped at update 1, go on with --resume$"):
            toolkit.train("chat")


def test_a_worker_that_imports_the_script_again_does_not_train(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(SystemExit, match="put what trains under if __name__ == '__main__'"):
        toolkit.train("chat")
