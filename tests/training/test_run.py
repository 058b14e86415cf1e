"""A run on disk: what is written when, what is kept, what is refused, and what survives an interruption."""

import contextlib
import errno
import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from tests.training.small import after_update, bits, named, press_ctrl_c, small_trainer, steps, timeless_log
from toolkit.commands.runs import read_run
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.models.storage import load_model
from toolkit.training import run as run_module
from toolkit.training.checkpoint import read_checkpoint
from toolkit.training.run import Run
from toolkit.training.task import Evaluation

FULL = OSError(errno.ENOSPC, "No space left on device")


class Killed(BaseException):
    """Stands for kill -9: nothing after it is carried out that matters."""


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory):
    """A run of six updates that nobody has interrupted. Not to be changed: copy it."""
    trainer = small_trainer(tmp_path_factory.mktemp("runs") / "whole", dropout=0.2, keep=2)
    trainer.train()
    return trainer


def resume(path: Path, **settings):
    trainer = small_trainer(path, dropout=0.2, keep=2, create=False, **settings)
    trainer.train(trainer.run.resume())
    return trainer


def assert_same(trainer, whole) -> None:
    """The same bits, on disk too, and nothing beside them."""
    assert bits(trainer) == bits(whole)
    ours, theirs = trainer.run.path, whole.run.path
    assert named(ours) == named(theirs)
    assert sorted(p.name for p in ours.iterdir()) == sorted(p.name for p in theirs.iterdir())
    assert timeless_log(ours) == timeless_log(theirs)
    for step in steps(ours):
        one, other = read_checkpoint(ours / step), read_checkpoint(theirs / step)
        assert one.model.vector.tobytes() == other.model.vector.tobytes()
        for state in one.state, other.state:
            state.seconds = 0
            state.averages.pop("seconds", None)
        assert one.state == other.state


# Every call by which a checkpoint gets onto the disk, killed before and after it, at the second checkpoint.
MOMENTS = ["save_model", "write_training", "atomic_writer", "replaced_directory", "remove_directory"]


@pytest.mark.parametrize("name", [*MOMENTS, "rename", "replace", "unlink", "fsync"])
@pytest.mark.parametrize("call", [0, 1, 2, 3, 5])
def test_killed_while_writing(tmp_path: Path, whole, monkeypatch, name: str, call: int) -> None:
    trainer = small_trainer(tmp_path / "run", dropout=0.2, keep=2)
    home = {"rename": Path, "replace": Path, "unlink": Path, "fsync": os}.get(name, run_module)
    original, count = getattr(home, name), []

    def die(*arguments, **named_arguments):
        if trainer.state.update >= 4:
            count.append(1)
            if len(count) == call + 1:
                raise Killed
        return original(*arguments, **named_arguments)

    monkeypatch.setattr(home, name, die)
    # What a process that is killed cannot do any more.
    monkeypatch.setattr("toolkit.files.shutil.rmtree", lambda *_, **__: None)
    with contextlib.suppress(Killed):
        trainer.train()
    monkeypatch.undo()
    assert_same(resume(tmp_path / "run"), whole)


def test_killed_before_the_first_checkpoint(tmp_path: Path, whole) -> None:
    trainer = small_trainer(tmp_path / "run", dropout=0.2, keep=2)
    after_update(trainer, 1, lambda: (press_ctrl_c(), press_ctrl_c()))
    with pytest.raises(KeyboardInterrupt):
        trainer.train()
    assert small_trainer(tmp_path / "run", create=False).run.resume() is None
    assert_same(resume(tmp_path / "run"), whole)


@pytest.mark.parametrize("leftover", [None, ".toolkit-0a1b.tmp", ".toolkit-step-000002.0a1b.tmp/training"])
def test_killed_before_anything_was_written(tmp_path: Path, whole, leftover: str | None) -> None:
    (tmp_path / "run").mkdir()
    if leftover:
        (tmp_path / "run" / leftover).mkdir(parents=True)
    assert_same(resume(tmp_path / "run"), whole)


def test_killed_between_the_last_checkpoint_and_the_removal_of_older_ones(tmp_path: Path, whole) -> None:
    path = tmp_path / "run"
    shutil.copytree(whole.run.path, path)
    shutil.copytree(path / "step-000006", path / "step-000001")
    expected = {"step-000004", "step-000006", named(path)[1]}
    resume(path)
    assert set(steps(path)) == expected


def test_there_must_be_something_to_resume(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="is not a run: there is no such directory"):
        Run(tmp_path / "nowhere", {}).resume()
    (tmp_path / "letter.txt").write_text("mine")
    with pytest.raises(ModelError, match=r"is not a run: it has no settings\.json"):
        Run(tmp_path, {}).resume()
    assert (tmp_path / "letter.txt").read_text() == "mine"


def test_resuming_forgets_what_was_logged_after_the_checkpoint(tmp_path: Path, whole) -> None:
    shutil.copytree(whole.run.path, tmp_path / "run")
    path = tmp_path / "run" / "log.jsonl"
    lines = path.read_bytes()
    later = json.dumps({"update": 7, "validation": {}}).encode() + b"\n"
    path.write_bytes(lines + later + b"[" * 100_000 + b'\n\xff\x00\n[1]\n{"a": 1}\n{"update": 8, "valid')
    small_trainer(tmp_path / "run", create=False, keep=2).run.resume()
    assert path.read_bytes() == lines


def test_resuming_with_other_settings_is_refused(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run", updates=1).train()
    other = small_trainer(tmp_path / "run", updates=1, learning_rate=0.5, workers=2, create=False)
    expected = r"started with other settings \(learning_rate: 0\.001 → 0\.5, workers: 1 → 2\): resume with the same, or"
    with pytest.raises(ConfigError, match=expected):
        other.run.resume()


def test_resuming_with_other_data_is_refused(tmp_path: Path) -> None:
    settings = {"data": {"train": "ab", "valid": "cd"}, "seed": 1}
    Run(tmp_path / "run", settings).create()
    changed = {**settings, "data": {"train": "ff", "valid": "cd"}}
    expected = r"started with other data \(the data has changed since: train\): resume with the same"
    with pytest.raises(ConfigError, match=expected):
        Run(tmp_path / "run", changed).resume()
    expected = r"other settings \(seed: 1 → 2\) and other data"
    with pytest.raises(ConfigError, match=expected):
        Run(tmp_path / "run", {**changed, "seed": 2}).resume()
    assert Run(tmp_path / "run", settings).resume() is None


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:40])


def change_state(**changes):
    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    return change


def without_update(path: Path) -> None:
    state = json.loads(path.read_text())
    del state["update"]
    path.write_text(json.dumps(state))


DAMAGE = {
    "moments cut": ("training/moments.safetensors", cut),
    "moments gone": ("training/moments.safetensors", Path.unlink),
    "another model's weights as moments": (
        "training/moments.safetensors",
        lambda path: shutil.copy(path.parent.parent / "model.safetensors", path),
    ),
    "weights cut": ("model.safetensors", cut),
    "config gone": ("config.json", Path.unlink),
    "state cut": ("training/state.json", cut),
    "state without a field": ("training/state.json", without_update),
    "state with a foreign field": ("training/state.json", change_state(nonsense=1)),
    "state with a wrong type": ("training/state.json", change_state(epoch="2")),
    "state with a negative number": ("training/state.json", change_state(batch=-1)),
    "state with a number of 400 digits": ("training/state.json", change_state(best=10**400)),
    "state with an average in words": ("training/state.json", change_state(averages={"loss": "1.5"})),
    "state with less than no tokens": ("training/state.json", change_state(averages={"tokens": -3})),
    "state with no number": ("training/state.json", change_state(best=float("nan"))),
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_an_older_checkpoint_stands_in_for_a_damaged_one(tmp_path: Path, whole, capsys, damage) -> None:
    path = tmp_path / "run"
    shutil.copytree(whole.run.path, path)
    name, change = damage
    change(path / "step-000006" / name)
    trainer = small_trainer(path, dropout=0.2, keep=2, create=False)
    trainer._quiet = False
    trainer.train(trainer.run.resume())
    assert "continuing from step-000004, which is whole" in capsys.readouterr().err
    assert_same(trainer, whole)


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
def test_without_another_one_damage_is_told(tmp_path: Path, damage) -> None:
    trainer = small_trainer(tmp_path / "run", updates=1)
    trainer.train()
    name, change = damage
    change(tmp_path / "run" / "step-000001" / name)
    with pytest.raises(ModelError) as told:
        trainer.run.resume()
    assert "step-000001" in str(told.value)
    assert "\n" not in str(told.value)


def test_a_state_from_before_averages_were_kept(tmp_path: Path, whole) -> None:
    trainer = small_trainer(tmp_path / "run", dropout=0.2, keep=2)
    after_update(trainer, 3, press_ctrl_c)
    trainer.train()
    state = tmp_path / "run" / "step-000003" / "training" / "state.json"
    values = json.loads(state.read_text())
    assert values.pop("averages")["updates"] == 3
    state.write_text(json.dumps(values))
    assert bits(resume(tmp_path / "run")) == bits(whole)


@pytest.mark.parametrize("there", [True, False], ids=["in a directory that was there", "in a new one"])
@pytest.mark.parametrize("name", ["rename", "unlink", "rmtree"])
@pytest.mark.parametrize("call", range(3))
def test_killed_while_a_run_is_discarded(tmp_path: Path, whole, monkeypatch, name: str, call: int, there: bool) -> None:
    """What is left can be resumed, and where it cannot, begun anew."""
    path = tmp_path / "deeper" / "run"
    if there:
        path.mkdir(parents=True)
    trainer = small_trainer(path, dropout=0.2, keep=2)
    for inner in "data/ids", ".toolkit-data.0a1b.tmp":
        (path / inner).mkdir(parents=True)
    home = shutil if name == "rmtree" else Path
    original, count = getattr(home, name), []

    def die(*arguments, **options):
        count.append(1)
        if len(count) > call:
            raise Killed
        return original(*arguments, **options)

    monkeypatch.setattr(home, name, die)
    with contextlib.suppress(Killed):
        trainer.run.discard()
    monkeypatch.undo()
    again = small_trainer(path, dropout=0.2, keep=2, create=not path.exists())
    again.train(again.run.resume() if path.exists() else None)
    assert bits(again) == bits(whole)


def test_a_run_within_another_is_left_alone(tmp_path: Path) -> None:
    """By whoever gives the outer one up, or resumes it while the inner one writes."""
    outer = Run(tmp_path / "outer", {})
    outer.create()
    small_trainer(outer.path / "inner").train()
    writing = outer.path / "inner" / ".toolkit-step-000008.0a1b.tmp"
    writing.mkdir()
    Run(outer.path, {}).resume()
    outer.discard()
    assert writing.exists()
    assert load_model(outer.path / "inner" / "step-000006")
    assert Run(outer.path, {}).resume() is None


@pytest.mark.parametrize("name", ["last", "best"])
@pytest.mark.parametrize("content", [None, b"", b"\xff\n", b"step-000099\n"])
def test_a_damaged_pointer_is_put_right(tmp_path: Path, whole, name: str, content: bytes | None) -> None:
    path = tmp_path / "run"
    shutil.copytree(whole.run.path, path)
    (path / name).unlink() if content is None else (path / name).write_bytes(content)
    assert_same(resume(path), whole)


def test_a_last_checkpoint_that_is_gone_is_told(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", updates=1)
    trainer.train()
    shutil.rmtree(tmp_path / "run" / "step-000001")
    with pytest.raises(ModelError, match="step-000001 is named as the last checkpoint and is not there"):
        trainer.run.resume()


def test_a_checkpoint_of_another_model_is_told(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", updates=1)
    trainer.train()
    config = tmp_path / "run" / "step-000001" / "config.json"
    config.write_text(config.read_text().replace('"max_length": ', '"max_length": 1'))
    with pytest.raises(ModelError, match="belongs to another run"):
        small_trainer(tmp_path / "run", updates=1, create=False).train(trainer.run.resume())


def test_a_new_run_does_not_overwrite_an_old_one(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run")
    with pytest.raises(ConfigError, match="already exists"):
        small_trainer(tmp_path / "run")
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="already exists"):
        small_trainer(tmp_path / "file")
    with pytest.raises(ConfigError, match="file/run cannot be created: Not a directory"):
        small_trainer(tmp_path / "file" / "run")


@pytest.mark.parametrize(("keep", "kept"), [(1, [3, 6]), (3, [3, 4, 5, 6])])
def test_the_last_checkpoints_and_the_best_are_kept(tmp_path: Path, keep: int, kept: list[int]) -> None:
    scores = iter([1.0, 2.0, 9.0, 3.0, 4.0, 5.0])
    settings = {"keep": keep, "validate_every": 1, "best_by": "chrf"}
    small_trainer(tmp_path / "run", evaluate=lambda _: Evaluation({"chrf": next(scores)}, []), **settings).train()
    assert steps(tmp_path / "run") == [f"step-00000{number}" for number in kept]


def test_where_somebody_stopped_does_not_count_among_the_kept(tmp_path: Path, whole) -> None:
    trainer = small_trainer(tmp_path / "run", dropout=0.2, keep=2)
    after_update(trainer, 5, press_ctrl_c)
    trainer.train()
    assert steps(tmp_path / "run")[-3:] == ["step-000002", "step-000004", "step-000005"]
    assert_same(resume(tmp_path / "run"), whole)


def test_a_run_says_how_far_it_has_come_before_it_is_validated_too(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run", validate_every=4)
    assert "no checkpoint yet" in repr(trainer.run)
    after_update(trainer, 1, press_ctrl_c)
    trainer.train()
    assert "1 of 6 updates, not validated yet" in repr(trainer.run)


@pytest.mark.parametrize("fails", ["log", "checkpoint", "pointer"])
def test_a_full_disk_is_told_and_the_run_continues_when_there_is_room(
    tmp_path: Path, whole, monkeypatch, fails: str
) -> None:
    trainer = small_trainer(tmp_path / "run", dropout=0.2, keep=2)

    def fill_up() -> None:
        def full(*_, **__):
            raise FULL

        names = {
            "log": (Path, "open"),
            "checkpoint": (run_module, "write_training"),
            "pointer": (run_module.Run, "_point"),
        }
        monkeypatch.setattr(*names[fails], full)

    after_update(trainer, 4, fill_up)
    with pytest.raises(DataError) as told:
        trainer.train()
    monkeypatch.undo()
    good = "step-000004" if fails == "pointer" else "step-000002"
    name = "log.jsonl" if fails == "log" else "step-000004"
    assert str(told.value) == (
        f"{tmp_path / 'run' / name} cannot be written (No space left on device): "
        f"the last good checkpoint is {good}; put that right and add --resume"
    )
    assert np.isfinite(load_model(tmp_path / "run" / named(tmp_path / "run")[0]).vector).all()
    assert_same(resume(tmp_path / "run"), whole)


def test_a_directory_that_vanishes_is_told_and_not_made_again(tmp_path: Path) -> None:
    trainer = small_trainer(tmp_path / "run")
    after_update(trainer, 2, lambda: shutil.rmtree(tmp_path / "run"))
    with pytest.raises(DataError, match=r"log\.jsonl cannot be written .*: there is no checkpoint yet"):
        trainer.train()
    assert not (tmp_path / "run").exists()
    with pytest.raises(DataError, match="the directory of the run is gone"):
        trainer._save(is_best=False)
    assert not (tmp_path / "run").exists()


def more(path: Path, updates: int, schedule: str):
    """Go on with a run to another number of updates."""
    trainer = small_trainer(path, create=False, updates=updates, schedule=schedule)
    saved = trainer.run.resume()
    trainer.train(saved)
    return trainer, saved.note


@pytest.mark.parametrize("schedule", ["constant", "inverse_sqrt", "noam", "cosine"])
@pytest.mark.parametrize("stop", [None, 3])
def test_a_run_goes_on_to_more_updates(tmp_path: Path, schedule: str, stop: int | None) -> None:
    """As one that was asked for them at once, unless its learning rate falls until the end."""
    at_once = small_trainer(tmp_path / "at once", updates=12, schedule=schedule)
    at_once.train()
    first = small_trainer(tmp_path / "run", schedule=schedule)
    if stop:
        after_update(first, stop, press_ctrl_c)
    first.train()
    shutil.copytree(tmp_path / "run", tmp_path / "copy")
    trainer, note = more(tmp_path / "run", 12, schedule)
    assert named(tmp_path / "run")[0] == "step-000012"
    assert read_run(tmp_path / "run", "run").updates_asked == 12
    assert (bits(trainer) == bits(at_once)) == (schedule != "cosine")
    if schedule != "cosine":
        assert note.startswith("12 updates in place of 6: the result will be that of a run which was asked for them")
        logs = (timeless_log(tmp_path / name) for name in ("run", "at once"))
        found, expected = ([each for each in log if "validation" in each] for log in logs)
        assert found == expected  # of means since the last line, there is a line more where the run had ended
    else:
        assert "the learning rate, which falls until the last one, was" in note
        cut = small_trainer(tmp_path / "copy", create=False, updates=12, schedule=schedule)
        after_update(cut, 9, press_ctrl_c)
        cut.train(cut.run.resume())
        again = small_trainer(tmp_path / "copy", create=False, updates=12, schedule=schedule)
        again.train(again.run.resume())
        assert bits(again) == bits(trainer)


def test_a_validation_that_a_run_at_once_would_not_have_made_is_told(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run", schedule="constant", validate_every=4).train()
    trainer = small_trainer(tmp_path / "run", create=False, updates=8, schedule="constant", validate_every=4)
    assert trainer.run.resume().note.endswith("at once, but that it was validated at update 6 too")


def test_no_schedule_falls_before_it_has_risen(tmp_path: Path) -> None:
    """Stopped while its learning rate rose, a run is what one of any length would have been."""
    at_once = small_trainer(tmp_path / "at once", updates=8, warmup=4)
    at_once.train()
    first = small_trainer(tmp_path / "run", warmup=4)
    after_update(first, 3, press_ctrl_c)
    first.train()
    trainer = small_trainer(tmp_path / "run", create=False, updates=8, warmup=4)
    trainer.train(trainer.run.resume())
    assert bits(trainer) == bits(at_once)


@pytest.mark.parametrize("moment", ["before", "after"])
def test_killed_while_the_settings_are_written_again(tmp_path: Path, monkeypatch, moment: str) -> None:
    small_trainer(tmp_path / "run").train()
    shutil.copytree(tmp_path / "run", tmp_path / "whole")
    expected, _ = more(tmp_path / "whole", 8, "cosine")
    original = run_module.write_json

    def die(*arguments) -> None:
        if moment == "after":
            original(*arguments)
        raise Killed

    monkeypatch.setattr(run_module, "write_json", die)
    with pytest.raises(Killed):
        more(tmp_path / "run", 8, "cosine")
    monkeypatch.undo()
    assert read_run(tmp_path / "run", "run").updates_asked == {"before": 6, "after": 8}[moment]
    trainer = small_trainer(tmp_path / "run", create=False, updates=8)
    trainer.train(trainer.run.resume())
    assert bits(trainer) == bits(expected)
    assert timeless_log(tmp_path / "run") == timeless_log(tmp_path / "whole")


def test_no_run_goes_back_to_fewer_updates_nor_on_where_patience_ended_it(tmp_path: Path) -> None:
    small_trainer(tmp_path / "run").train()
    impatient = {"patience": 1, "best_by": "chrf", "updates": 40}  # whose chrF never changes
    small_trainer(tmp_path / "early", **impatient).train()
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for updates in 4, 5:
        with pytest.raises(ConfigError, match=rf"has made 6 updates, and --training.updates is {updates}: ask for"):
            small_trainer(tmp_path / "run", create=False, updates=updates).run.resume()
    with pytest.raises(ConfigError, match=r"was ended by --training.patience 1, not for want of updates"):
        small_trainer(tmp_path / "early", create=False, **impatient | {"updates": 50}).run.resume()
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before
