"""Recipes: how each kind of model is trained, from settings to a run with its scores.

A recipe is a module with a dataclass `Settings`, which says what is needed and what is the default, and a function
`train`, which takes the settings and returns the run. The verb `toolkit train`, the scripts in recipes/ and
`toolkit.train` are three ways to the same functions, and give the same bits.
"""

import multiprocessing
import signal
from collections.abc import Iterator, Sequence
from functools import partial
from importlib import import_module
from types import ModuleType
from typing import Any, Literal, get_args, overload

from toolkit import mpi, submodules
from toolkit.display import meant
from toolkit.errors import ConfigError
from toolkit.process import Stopped
from toolkit.recipes.recipe import Recipe
from toolkit.recipes.settings import settings_of
from toolkit.training.run import Run

Kind = Literal["translation", "language-model", "chat", "preference", "autoencoder", "residual-swish"]

__getattr__ = submodules(__name__)


def recipe_of(kind: Kind) -> ModuleType:
    """Import the module of a recipe, which is called "language-model" as a word and language_model as a module."""
    return import_module(f"toolkit.recipes.{kind.replace('-', '_')}")


def runs_of(kind: Kind, recipe: Recipe, command: str) -> Iterator[Run]:
    """Train once, or once for each seed, and yield each run when it is finished.

    command: what has asked for it, in the user's words. Raises ConfigError where the settings do not fit together.
    """
    recipe.check()
    for each in recipe.of_each_seed():
        yield recipe_of(kind).train(each, command)


@overload
def train(kind: Kind, *, seeds: None = None, **settings: Any) -> Run: ...


@overload
def train(kind: Kind, *, seeds: Sequence[int], **settings: Any) -> list[Run]: ...


def train(kind: Kind, *, seeds: Sequence[int] | None = None, **settings: Any) -> Run | list[Run]:
    """Train a model as `toolkit train KIND` does with the same settings, to the same bits.

    settings: by the names of the recipe's `Settings` (`toolkit train KIND --help` explains them); a group is a mapping
    or its dataclass: training={"updates": 200}. A path may be text, and one stand where several are taken.

    Returns the run, whose best model `toolkit.load(run)` reads, and whose `results` are the lines that the verb prints;
    with seeds a list, one for each. Progress goes to standard error, unless quiet=True. Ctrl-C finishes the update,
    saves, and raises KeyboardInterrupt; resume=True goes on.

    Raises TypeError for a name that there is not, and ToolkitErrors as the verb tells them, which call settings by
    their flags.
    """
    _refuse_second_import()
    if kind not in get_args(Kind):
        near = meant(str(kind), get_args(Kind))
        raise ConfigError(f"there is no recipe {kind!r:.60}: did you mean {near or ', '.join(get_args(Kind))}?")
    given = settings if seeds is None else {**settings, "seeds": seeds}
    return mpi.led(partial(_trained, kind, given))


def _trained(kind: Kind, given: dict[str, Any]) -> Run | list[Run]:
    recipe = settings_of(recipe_of(kind).Settings, given)
    named = ", ".join([repr(kind), *(f"{name}={value!r}" for name, value in recipe.as_given(given).items())])
    try:
        runs = list(runs_of(kind, recipe, f"toolkit.train({named})"))
    except Stopped as stopped:
        if stopped.number == signal.SIGINT:
            raise KeyboardInterrupt(str(stopped)) from None
        raise
    return runs if "seeds" in given else runs[0]


def _refuse_second_import() -> None:
    """End a worker process that imports the script which has started it, where processes are not forked."""
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        raise SystemExit("toolkit: a worker imports this script again: put what trains under if __name__ == '__main__'")
