"""toolkit average: one model out of several checkpoints."""

import shlex
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import tyro
from tyro.conf import Positional

from toolkit.commands.console import emit
from toolkit.errors import ConfigError, ModelError
from toolkit.files import check_new_directory, new_directory
from toolkit.models.shelf import find_model, read_found
from toolkit.models.storage import save_model
from toolkit.nn.module import Model
from toolkit.training.averaging import average_models, tokenizer_files
from toolkit.training.run import SETTINGS_FILE, Run


@dataclass
class Average:
    """Average the weights of checkpoints that share their settings and tokenizer into one model.

    The checkpoints of one run (train with --training.keep 5 or so) average well; those of separate runs, whose initial
    values differ, do not.
    """

    models: Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="MODEL...")]]
    """Directories of models, or of runs: a run means all checkpoints that it has kept."""
    output: Path
    """Directory to write; it must not exist yet."""
    last: int = 0
    """Of a run, only so many of the newest checkpoints; 0: all."""
    half: bool = False
    """Store the weights in float16."""

    def run(self) -> None:
        if self.last < 0:
            raise ConfigError(f"--last is {self.last}: it must not be negative")
        check_new_directory(self.output, "--output")
        directories, model, files = read_found(self._find, _average)
        metrics = {"average_of": list(map(str, directories)), "command": shlex.join(["toolkit", *sys.argv[1:]])}
        with new_directory(self.output) as new:
            save_model(model, new, metrics, self.half)
            for name, content in files.items():
                (new / name).write_bytes(content)
        emit([f"{self.output}: the average of {len(directories)} checkpoints", *(f"    {d}" for d in directories)])

    def _find(self) -> list[Path]:
        """What is averaged.  Raises ConfigError where that is less than two models."""
        directories = [directory for name in self.models for directory in checkpoints(name, self.last)]
        if len(directories) < 2:
            given = f"{directories[0]} is one model" if directories else "no model is given"
            raise ConfigError(f"{given}: an average needs two or more")
        return directories


def _average(directories: list[Path]) -> tuple[list[Path], Model, dict[str, bytes]]:
    return directories, average_models(directories), tokenizer_files(directories[0])


def checkpoints(name: str, last: int) -> list[Path]:
    """The models that an argument means: the newest `last` checkpoints of a run (0: all), or one model.

    Raises ModelError where there is none.
    """
    path = Path(name)
    if not (path / SETTINGS_FILE).exists():
        return [find_model(name)]
    steps = Run(path, {}).steps()
    if not steps:
        raise ModelError(f"{path} is a run without checkpoints")
    return steps[-last:]
