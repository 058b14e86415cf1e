"""toolkit explain gradients: the formula, the source and a live check of every derivative; and wrong ones."""

import sys
from dataclasses import dataclass
from typing import Annotated

import tyro
from tyro.conf import Positional

from toolkit.commands.explaining import Explanation
from toolkit.display import tell
from toolkit.explain.gradients import gradients_page
from toolkit.explain.pages.blocks import Page


@dataclass(kw_only=True)
class ExplainGradients(Explanation):
    """Every derivative of the toolkit: formula, source, and a check against finite differences that is run now.

    The well-known wrong ones are run beside the right ones: the error that each makes, and what it does to training.
    """

    pairs: Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="PAIR...")]] = ()
    """Which pairs to show, such as layer_norm. By default all."""
    seed: int = 0
    """Of the random arguments, and of the models that are trained."""

    def page(self) -> Page:
        return gradients_page(self.pairs, self.seed, progress=_tell)


def _tell(doing: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        tell(f"{doing} …")
