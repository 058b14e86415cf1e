"""Recipes: how each kind of model is trained, from settings to a run with its scores.

A recipe is a module with a dataclass `Settings`, which says what is needed and what is the default, and a function
`train`, which takes the settings and returns the run. The verb `toolkit train`, the scripts in recipes/ and
`toolkit.train` are three ways to the same functions, and give the same bits.
"""

from collections.abc import Iterator
from importlib import import_module
from types import ModuleType
from typing import Literal

from toolkit.recipes.recipe import Recipe
from toolkit.training.run import Run

Kind = Literal["translation", "language-model", "chat", "preference", "autoencoder", "residual-swish"]


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
