"""Training runs on the disk: a directory of model directories, of which `last` and `best` name one each.

    RUN/settings.json       what was asked for
    RUN/data/               what is trained on, as recipes prepare it
    RUN/log.jsonl           one JSON object a line: training and validation figures
    RUN/step-000400/        a model (see `toolkit.models.storage`) with training/ beside it
    RUN/last, RUN/best      one line each: the name of a step directory

A step directory is complete before it has its name, and is removed only when newer ones are safe on the disk. So after
an interruption at any moment the newest step directory is what the run continues from; everything that is computed
again comes out the same.
"""

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.files import (
    atomic_writer,
    check_path,
    flush_to_disk,
    is_leftover,
    remove_directory,
    remove_leftovers,
    replaced_directory,
)
from toolkit.functional.arrays import Array
from toolkit.lock import locked
from toolkit.models.storage import named_checkpoint, read_json, read_metrics, save_model, write_json
from toolkit.nn.module import Model
from toolkit.pages.blocks import Block, Code, Shown, Text
from toolkit.pages.drawing import Drawing
from toolkit.tokenization import Tokenizer
from toolkit.training.checkpoint import Checkpoint, TrainerState, read_checkpoint, read_state, write_training
from toolkit.training.config import UPDATES, describe_changes, flat_settings
from toolkit.training.optimizer import describe_extension
from toolkit.untrusted import LOG_BYTES, UnfitError, parse_json, read_bytes

SETTINGS_FILE, LOG_FILE, DATA = "settings.json", "log.jsonl", "data"
_PREPARED = DATA, LOG_FILE  # what there may be before the first checkpoint


class Run(Shown):
    """The directory of one run."""

    def __init__(self, path: Path, settings: dict[str, Any], command: str = ""):
        self.path, self.settings, self.command = path, settings, command
        self.origin: dict[str, Any] = {}  # metrics of all checkpoints: what the model that it goes on with passes on
        self._written = ""  # the step directory that this process wrote last
        self._held = self._created = False
        self.results: list[str] = []  # lines that say how well it did, once a recipe has scored it
        self._begun = False  # True once training has begun: `discard` does nothing then
        self._made: list[Path] = []  # directories that were not there before, the innermost first

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Run({str(self.path)!r}, {self._progress()})"

    def _shown(self) -> list[Block | Drawing]:
        """Show how far it has come, the curves of its log, and what it has scored."""
        from toolkit.training.logs import read_log, run_curves  # here, because they read runs

        log = read_log(self.path, self.path.name)
        curves = [run_curves([log])] if log.series else []  # before its first line there is nothing to draw
        return [Text(repr(self)), *curves, *([Code("\n".join(self.results))] if self.results else [])]

    def _progress(self) -> str:
        """Say how far the run has come, and what its best checkpoint has scored."""
        try:
            state = read_state(self.named("last"))
        except ModelError:
            return "no checkpoint yet"
        done = f"{state.update} of {flat_settings(self.settings).get(UPDATES, '?')} updates"
        try:
            found = read_metrics(self.named("best")).get("validation")
        except ModelError:  # stopped before the first validation
            return f"{done}, not validated yet"
        scores = found.items() if isinstance(found, dict) else ()
        told = ", ".join(f"{name} {value:.4g}" for name, value in scores if isinstance(value, float))
        return f"{done}, best at update {state.best_update}: {told}"

    @contextmanager
    def held(self, make: bool = False) -> Iterator[None]:
        """Keep the run to this process within the block; blocks within it change nothing.

        make: make the directory where there is none. Raises ConfigError where another process is at work on the run,
        or the directory cannot be made; ModelError where there is none and none is made.
        """
        if self._held:
            yield
            return
        with ExitStack() as stack:
            try:
                stack.enter_context(locked(self.path, self._make if make else None))
            except OSError as error:
                raise ConfigError(f"{self.path} cannot be created: {_reason(error)}") from None
            self._held = True
            try:
                yield
            finally:
                self._held = False

    def create(self) -> None:
        """Start a new run, in a directory with nothing in it but what interrupted writing has left.

        Raises ConfigError where the directory holds something, cannot be written, or another process is at work on it.
        """
        with self.held(make=True):
            if not self._is_blank():
                raise ConfigError(self._in_the_way())
            self._created = True
            try:
                self._clear()
                write_json(self.path / SETTINGS_FILE, self.settings)
            except (OSError, DataError) as error:
                self.discard()
                raise ConfigError(f"{self.path} cannot be created: {_reason(error)}") from None

    def resume(self) -> Checkpoint | None:
        """Continue from the newest whole checkpoint, with the log cut back to it; None where there was none yet.

        In that case the run is as `create` leaves it, and begins anew. What interrupted writing has left is removed.
        The run may be asked for another number of updates than before, larger than that of those it has made.
        Raises ConfigError where the run was made with other settings or data, has made as many updates already, or is
        being trained by another process; ModelError where there is no run or none of its checkpoints is whole.
        """
        with self.held():
            if not self.path.is_dir():
                raise ModelError(f"{self.path} is not a run: there is no such directory")
            if self._is_blank():
                self.create()
                return None
            if not (self.path / SETTINGS_FILE).exists():
                raise ModelError(f"{self.path} is not a run: it has no {SETTINGS_FILE}")
            self._clear()
            before, now = self._settings_before(), flat_settings(json.loads(json.dumps(self.settings)))
            same_end = type(before.get(UPDATES)) is not int or before[UPDATES] == now.get(UPDATES)
            changes = describe_changes(before if same_end else before | {UPDATES: now.get(UPDATES)}, now)
            if changes:
                raise ConfigError(
                    f"{self.path} was started with {changes}: resume with the same, or start another --run "
                    f"(--config {self.path} has them)"
                )
            saved = self._newest_whole()
            return self._continue_from(saved if same_end else _with_other_end(saved, before, now))

    def begin(self) -> None:
        """Begin to train: from now on the run is kept, and has the number of updates that it was resumed with."""
        self._begun = True
        if (before := self._settings_before()) and before.get(UPDATES) != flat_settings(self.settings).get(UPDATES):
            with self._writing(SETTINGS_FILE):
                write_json(self.path / SETTINGS_FILE, self.settings)

    def _settings_before(self) -> dict[str, Any]:
        """Read the settings on the disk by their full names; empty where there are none."""
        path = self.path / SETTINGS_FILE
        return flat_settings(read_json(path)) if path.exists() else {}

    def discard(self) -> None:
        """Undo `create` where this process did that and no checkpoint was written: the data turned out to be wrong.

        The settings go last: until then what is left can be resumed.
        """
        if self._begun or not self._created or self.steps():
            return
        with self.held(), suppress(OSError):  # what cannot be removed stays
            self._clear()
            for name in _PREPARED:
                remove_directory(self.path / name)
            if self._is_blank(SETTINGS_FILE):
                (self.path / SETTINGS_FILE).unlink(missing_ok=True)
            for path in self._made:
                path.rmdir()

    def _make(self) -> None:
        """Make the directory and those above it.  Raises OSError, or ConfigError where something is in the way."""
        check_path(self.path)
        if (self.path.exists() or self.path.is_symlink()) and not self.path.is_dir():
            raise ConfigError(self._in_the_way())
        if missing := [path for path in (self.path, *self.path.parents) if not path.exists()]:
            self._made = missing
            self.path.mkdir(parents=True, exist_ok=True)
            flush_to_disk(self.path.parent)

    def _clear(self) -> None:
        """Remove what interrupted writing has left of the run; not what is below another that lies within it."""
        remove_leftovers(self.path, deep=False)
        for path in (*self.steps(), self.path / DATA):
            remove_leftovers(path)

    def _is_blank(self, but: str = "") -> bool:
        """Say if there is nothing in the directory but what interrupted writing has left, and this name."""
        try:
            return all(is_leftover(path) or path.name == but for path in self.path.iterdir())
        except OSError:
            return False

    def _in_the_way(self) -> str:
        return f"{self.path} already exists: choose another --run, remove it, or continue with --resume"

    def roll_back(self) -> Checkpoint | None:
        """Go back to the newest checkpoint made at a validation, with the log cut back to it; None where there is none.

        Newer ones, made where somebody stopped the run, are removed: where it goes back to must not depend on that.
        """
        steps, newer = self.steps(), []
        while steps and not _is_regular(steps[-1]):
            newer.append(steps.pop())
        saved = self._continue_from(read_checkpoint(steps[-1]) if steps else None)
        for step in reversed(newer):
            remove_directory(step)
        self._written = ""
        return saved

    def steps(self) -> list[Path]:
        """List the step directories, oldest first."""
        return sorted(self.path.glob("step-*"), key=_order)

    def named(self, name: str) -> Path:
        """Find the step directory that `last` or `best` names."""
        try:
            return named_checkpoint(self.path / name)
        except OSError:
            raise ModelError(f"{self.path} has no checkpoint to continue from") from None

    def save(
        self,
        model: Model,
        tokenizer: Tokenizer | None,
        moments: tuple[Array, Array],
        state: TrainerState,
        *,
        raw: Array | None = None,
        is_best: bool = False,
        keep: int = 1,
    ) -> Path:
        """Write a checkpoint, make it the last one (and the best one), and remove those that are not kept.

        tokenizer: None where the model reads no text. raw: the parameters, where the model's are averages of them.
        keep: so many of the newest checkpoints are kept.
        Raises DataError, naming the last good checkpoint, where it cannot be written.
        """
        step = self.path / f"step-{state.update:06d}"
        with self._writing(step.name):
            if not (self.path / SETTINGS_FILE).exists():
                raise FileNotFoundError(None, "the directory of the run is gone")
            if step.name != self._written:
                with replaced_directory(step) as new:
                    metrics = {"update": state.update, "validation": state.scores, **self.origin}
                    save_model(model, new, {**metrics, "command": self.command, "settings": self.settings})
                    if tokenizer is not None:
                        tokenizer.save(new)
                    write_training(new, model, moments, state, raw)
                self._written = step.name
            for name in ("best", "last") if is_best else ("last",):
                self._point(name, step)
        self.remove_old(keep)
        return step

    def remove_old(self, keep: int) -> None:
        """Remove what is older than the last checkpoint, but for the best and the `keep` newest made at validations."""
        last = self.named("last")
        steps = [step for step in self.steps() if _order(step) <= _order(last)]
        kept = {last, *[step for step in steps if _is_regular(step)][-keep:]}
        if (self.path / "best").exists():
            kept.add(self.named("best"))
        for step in steps:
            if step not in kept:
                remove_directory(step)

    def log(self, record: dict[str, Any]) -> None:
        """Add a line to the log.  Raises DataError, naming the last good checkpoint, where that fails."""
        with self._writing(LOG_FILE), (self.path / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        """Tell of whatever keeps a file from being written, and of what can be continued from."""
        try:
            yield
        except (OSError, DataError) as error:
            whole = self.steps()
            good = f"the last good checkpoint is {whole[-1].name}" if whole else "there is no checkpoint yet"
            raise DataError(
                f"{self.path / name} cannot be written ({_reason(error)}): {good}; put that right and add --resume"
            ) from error

    def _point(self, name: str, step: Path | None) -> None:
        if step is None:
            (self.path / name).unlink(missing_ok=True)
            return
        with atomic_writer(self.path / name) as file:
            file.write(f"{step.name}\n".encode())

    def _newest_whole(self) -> Checkpoint | None:
        """Read the newest checkpoint that is whole; None where there is none at all."""
        damage: list[ModelError] = []
        for step in reversed(self.steps()):
            try:
                saved = read_checkpoint(step)
            except ModelError as error:
                damage.append(error)
                continue
            note = f"{damage[0]}: continuing from {step.name}, which is whole" if damage else ""
            return saved._replace(note=note)
        if damage:
            raise damage[0]
        if (self.path / "last").exists():
            raise ModelError(
                f"{self.named('last')} is named as the last checkpoint and is not there: start another run"
            )
        return None

    def _continue_from(self, saved: Checkpoint | None) -> Checkpoint | None:
        """Make a checkpoint the last one again, and forget what was logged after it: it will be logged again."""
        best = self.path / f"step-{saved.state.best_update:06d}" if saved else self.path / "none"
        with self._writing(LOG_FILE):
            self._cut_log(saved.state.update if saved else 0)
            self._point("best", best if best.is_dir() else None)  # what was best later comes again
            self._point("last", saved.directory if saved else None)
        return saved

    def _cut_log(self, update: int) -> None:
        path, kept = self.path / LOG_FILE, []
        for line in read_bytes(path, LOG_BYTES).splitlines(keepends=True) if path.exists() else ():
            try:
                record = parse_json(line) if line.endswith(b"\n") else None
            except UnfitError:
                record = None
            if isinstance(record, dict) and isinstance(record.get("update"), int) and record["update"] <= update:
                kept.append(line)
        with atomic_writer(path) as file:
            file.writelines(kept)


def _with_other_end(saved: Checkpoint | None, before: dict[str, Any], now: dict[str, Any]) -> Checkpoint | None:
    """Note what another number of updates means for a checkpoint that a run continues from.

    Raises ConfigError where it has as many already, or was the last one for another reason.
    """
    if saved is None:
        return None
    run, state, patience = saved.directory.parent, saved.state, now.get("training.patience", 0)
    if now[UPDATES] <= state.update:
        told = f"{run} has made {state.update} updates, and --{UPDATES} is {now[UPDATES]}"
        raise ConfigError(f"{told}: ask for more than it has made")
    if 0 < patience <= state.validations_without_gain:
        raise ConfigError(f"{run} was ended by --training.patience {patience}, not for want of updates")
    notes = [saved.note] * bool(saved.note) + [describe_extension(before, now, state.update)]
    return saved._replace(note="; ".join(notes))


def _order(step: Path) -> tuple[int, str]:
    return len(step.name), step.name  # step-1000000 comes after step-999999


def _is_regular(step: Path) -> bool:
    """Say if the checkpoint was made at a validation, and not where somebody stopped the run."""
    with suppress(ModelError):
        state = read_state(step)
        return state.validated == state.update > 0
    return False


def _reason(error: BaseException) -> str:
    cause = error.__cause__ if isinstance(error.__cause__, OSError) else error
    return getattr(cause, "strerror", None) or str(cause)


def find_runs(directory: Path) -> list[Path]:
    """Find the runs in a directory and in its sub-directories, or the directory itself if it is one, by name.

    Raises ModelError where there is none.
    """
    try:
        there = directory.is_dir()
    except OSError:  # of a name that is too long for a path
        there = False
    if not there:
        raise ModelError(f"{directory} is not a directory: give one that holds runs")
    if _is_run(directory):
        return [directory]
    found = [path for pattern in ("*", "*/*") for path in directory.glob(pattern) if _is_run(path)]
    if not found:
        raise ModelError(f"{directory} holds no runs: a run is a directory with {SETTINGS_FILE} in it")
    return sorted(found)


def _is_run(path: Path) -> bool:
    try:
        return (path / SETTINGS_FILE).exists()
    except OSError:  # of a directory that may not be looked into
        return False
