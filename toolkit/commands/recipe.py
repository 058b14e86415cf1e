"""How a recipe runs: flags from its dataclass, and mistakes told in one sentence."""

import sys
from collections.abc import Callable, Sequence
from typing import TypeVar

from toolkit.cli import reported
from toolkit.commands.flags import parse_flags

T = TypeVar("T")


def run_recipe(
    defaults: type[T] | Callable[[Sequence[str]], T], main: Callable[[T], None], arguments: Sequence[str] | None = None
) -> None:
    """Read the flags of a recipe and call `main`; ends the process with the command line's exit codes.

    defaults: the recipe's class, or a function that gives an instance with the defaults for the words that were given.
    arguments: by default those of the process.
    """
    program, *given = sys.argv
    words = given if arguments is None else list(arguments)

    def run() -> None:
        recipe = defaults if isinstance(defaults, type) else defaults(words)
        main(parse_flags(recipe, program, words))

    sys.exit(reported(run))
