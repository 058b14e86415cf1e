"""toolkit explain parallel: why attention is parallel and long-range, measured beside a recurrent network."""

import sys
from collections.abc import Iterable
from dataclasses import dataclass

from tyro.conf import Positional

from toolkit.api import load_language_model
from toolkit.commands.explaining import Explanation
from toolkit.explain.pages.blocks import Page
from toolkit.explain.parallel.page import LENGTHS, parallel_page


@dataclass(kw_only=True)
class ExplainParallel(Explanation):
    """All positions at once against one at a time: the same numbers, timed by length, and how far each can look back.

    Times are of this machine, on one core, and differ from run to run.
    """

    text: Positional[str] = ""
    """What the model reads in both ways. By default the beginning of a story in English or
    Nepali, whichever the model knows better."""
    model: str = "stories"
    """Directory of a language model or of a run, or the name of one that comes with the toolkit."""
    lengths: tuple[int, ...] = LENGTHS
    """Tokens of the texts that are timed."""
    quiet: bool = False
    """Show no progress."""

    def page(self) -> Page:
        instead = "toolkit explain training, which shows a translator both ways"
        return parallel_page(load_language_model(self.model, instead), self.text, self.lengths, self._shown)

    def _shown(self, lengths: Iterable[int]) -> Iterable[int]:
        """The lengths, with a bar on the terminal."""
        if self.quiet or sys.stderr is None or not sys.stderr.isatty():
            return lengths
        from tqdm import tqdm

        return tqdm(lengths, unit="length", file=sys.stderr, dynamic_ncols=True, leave=False)
