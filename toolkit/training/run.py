"""A training run on disk: a directory of model directories, of which `last` and `best` name one each.

    RUN/settings.json       what was asked for
    RUN/log.jsonl           one JSON object a line: training and validation figures
    RUN/step-000400/        a model (see `toolkit.models.storage`) with training/ beside it
    RUN/last, RUN/best      one line each: the name of a step directory

A step directory is complete before a name points to it, and is removed only when none does any more.
"""

import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save

from toolkit.errors import ConfigError, ModelError
from toolkit.files import atomic_writer
from toolkit.models.storage import load_model, read_json, replaced_directory, save_model, write_json
from toolkit.nn.module import Model
from toolkit.tokenization import Tokenizer

SETTINGS_FILE, LOG_FILE = "settings.json", "log.jsonl"
_MOMENTS_FILE, _STATE_FILE = "training/moments.safetensors", "training/state.json"


class Saved(NamedTuple):
    """What a run continues from."""

    model: Model
    moments: tuple[np.ndarray, np.ndarray]
    state: dict[str, Any]


class Run:
    """The directory of one run."""

    def __init__(self, path: Path, settings: dict[str, Any], command: str = ""):
        self.path, self.settings, self.command = path, settings, command

    def create(self) -> None:
        """Start a new run.  Raises ConfigError where the directory already holds something."""
        if self.path.exists() and (not self.path.is_dir() or any(self.path.iterdir())):
            raise ConfigError(f"{self.path} already exists: choose another --run, remove it, or continue with --resume")
        try:
            self.path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(f"{self.path} cannot be created: {error.strerror}") from None
        write_json(self.path / SETTINGS_FILE, self.settings)

    def resume(self) -> Saved:
        """The last checkpoint, and the log cut back to it.

        Raises ConfigError where the run was made with other settings, ModelError where nothing whole is there.
        """
        self._check_settings()
        directory = self.named("last")
        state = read_json(directory / _STATE_FILE)
        try:
            moments = load_file(directory / _MOMENTS_FILE)
        except (OSError, SafetensorError) as error:
            raise ModelError(f"{directory / _MOMENTS_FILE} cannot be read: {error}") from None
        self._cut_log(state["update"])
        return Saved(load_model(directory), (moments["first"], moments["second"]), state)

    def named(self, name: str) -> Path:
        """The step directory that `last` or `best` names."""
        try:
            return self.path / (self.path / name).read_text(encoding="utf-8").strip()
        except OSError:
            raise ModelError(f"{self.path} has no checkpoint to continue from") from None

    def save(
        self,
        model: Model,
        tokenizer: Tokenizer,
        moments: tuple[np.ndarray, np.ndarray],
        state: dict[str, Any],
        metrics: dict[str, Any],
        is_best: bool,
    ) -> Path:
        """Write a checkpoint, make it the last one (and the best one), and remove those that are neither."""
        step = self.path / f"step-{state['update']:06d}"
        if not step.exists():  # or it was written before an interruption, with the same contents
            with replaced_directory(step) as new:
                save_model(model, new, {**metrics, "command": self.command, "settings": self.settings})
                tokenizer.save(new)
                (new / "training").mkdir()
                (new / _MOMENTS_FILE).write_bytes(save({"first": moments[0], "second": moments[1]}))
                write_json(new / _STATE_FILE, state)
        for name in ("last", "best") if is_best else ("last",):
            _write(self.path / name, f"{step.name}\n")
        self._remove_unnamed()
        return step

    def log(self, record: dict[str, Any]) -> None:
        with (self.path / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record, ensure_ascii=False) + "\n")

    def _remove_unnamed(self) -> None:
        keep = {(self.path / name).read_text(encoding="utf-8").strip() for name in ("last", "best") if self._has(name)}
        for directory in self.path.glob("step-*"):
            if directory.name not in keep:
                shutil.rmtree(directory, ignore_errors=True)

    def _has(self, name: str) -> bool:
        return (self.path / name).exists()

    def _check_settings(self) -> None:
        if not (self.path / SETTINGS_FILE).exists():
            raise ModelError(f"{self.path} is not a run: it has no {SETTINGS_FILE}")
        before, now = _flat(read_json(self.path / SETTINGS_FILE)), _flat(json.loads(json.dumps(self.settings)))
        changed = sorted(key for key in before.keys() | now.keys() if before.get(key) != now.get(key))
        if changed:
            raise ConfigError(
                f"{self.path} was started with other settings ({', '.join(changed)}): resume with the same"
            )

    def _cut_log(self, update: int) -> None:
        """Forget what was logged after the checkpoint: it will be logged again."""
        path = self.path / LOG_FILE
        lines = path.read_text(encoding="utf-8").splitlines(keepends=True) if path.exists() else []
        kept = [line for line in lines if line.endswith("\n") and json.loads(line)["update"] <= update]
        _write(path, "".join(kept))


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by their full names: {"training": {"seed": 1}} becomes {"training.seed": 1}."""
    flat = {}
    for name, value in settings.items():
        flat |= _flat(value, f"{prefix}{name}.") if isinstance(value, dict) else {prefix + name: value}
    return flat


def _write(path: Path, text: str) -> None:
    with atomic_writer(path) as file:
        file.write(text.encode())
