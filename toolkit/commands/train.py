"""The verb that trains, and what the scripts in recipes/ call: flags in, a run and the lines of its scores out."""

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import pairwise
from typing import get_origin

from toolkit.cli import reported
from toolkit.commands.console import emit
from toolkit.commands.flags import parse_flags
from toolkit.errors import ConfigError
from toolkit.recipes import Kind, recipe_of, runs_of
from toolkit.recipes.recipe import Recipe
from toolkit.recipes.settings import defaults_for, of_own_length
from toolkit.training.config import UPDATES

_WITHOUT_TESTS = "--tests", "None"


@dataclass
class Training:
    """A recipe with its settings, as flags have given them."""

    kind: Kind
    recipe: Recipe
    command: str

    @classmethod
    def read(cls, kind: Kind, program: str, arguments: Sequence[str], command: str) -> "Training":
        """Read the flags of a recipe.  Raises ConfigError as `parse_flags` does."""
        settings = recipe_of(kind).Settings
        defaults = defaults_for(settings, words_after(settings, arguments))
        if hasattr(defaults, "tests"):
            arguments = [each for word in arguments for each in (_WITHOUT_TESTS if word == "--no-tests" else (word,))]
        recipe = parse_flags(defaults, program, arguments)
        is_given = any(word.split("=")[0] == f"--{UPDATES}" for word in arguments)
        return cls(kind, recipe if is_given else of_own_length(recipe), command)

    def run(self) -> None:
        """Train, and print how well each run did."""
        for run in runs_of(self.kind, self.recipe, self.command):
            emit(run.results)


def run_recipe(kind: Kind, arguments: Sequence[str] | None = None) -> None:
    """Do as a script what `toolkit train` does, and end the process with the command line's exit codes.

    arguments: by default those of the process.
    """
    program, arguments = sys.argv[0], sys.argv[1:] if arguments is None else arguments
    command = shlex.join(["python", program, *arguments])
    sys.exit(reported(lambda: Training.read(kind, program, arguments, command).run()))


def words_after(settings: type[Recipe], arguments: Sequence[str]) -> dict[str, str]:
    """Find those settings among the arguments on which defaults depend, each with the first word after its flag.

    Raises ConfigError where there is none after one of them, or after a flag of several values: an empty list would
    mean what is embedded, and whoever gives the flag does not mean that.
    """
    several = [field.name for field in fields(settings) if get_origin(field.type) is tuple]
    looked_at = "config", *settings.deciding
    names = {f"--{name.replace('_', '-')}": name for name in (*several, *looked_at)}
    words = [word for argument in arguments for word in argument.split("=", 1)]
    found = {}
    for flag, word in pairwise([*words, ""]):
        if name := names.get(flag.replace("_", "-")):
            if not word or word.startswith("--"):
                raise ConfigError(f"{flag} needs a value")
            found[name] = word
    return {name: word for name, word in found.items() if name in looked_at}
