"""How a recipe runs: flags from its dataclass, and mistakes told in one sentence."""

import sys
from collections.abc import Callable
from typing import TypeVar

from toolkit.cli import reported

T = TypeVar("T")


def run_recipe(recipe_class: type[T], main: Callable[[T], None]) -> None:
    """Read the flags of `recipe_class` and call `main`; ends the process with the command line's exit codes."""
    import tyro

    def run() -> None:
        main(tyro.cli(recipe_class, config=(tyro.conf.FlagCreatePairsOff,)))

    sys.exit(reported(run))
