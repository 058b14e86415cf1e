"""toolkit explain attention: one text through a model, number by number."""

from dataclasses import dataclass

from tyro.conf import Positional

from toolkit.commands.explaining import MappedExplanation
from toolkit.errors import ConfigError
from toolkit.explain.pages.blocks import Page


@dataclass(kw_only=True)
class ExplainAttention(MappedExplanation):
    """Follow one text through a model, step by step: formula, shapes and numbers, read from one real pass.

    Without --model the numbers are those of the founding document 004, with its errors beside what is right, and after
    them the known errors of the other documents.
    """

    text: Positional[str] = "I am boy"
    """The text: what a translator translates, or how a text begins. The document's example knows I, am and boy."""
    model: str | None = None
    """Directory of a trained model or of a run, or the name of one that comes with the toolkit, such as en-ne."""
    target: str | None = None
    """What the decoder of a translator reads. By default the model's own translation; in the document's example, म."""
    layer: int = 1
    """The layer to show, from 1; a side of a translator that has fewer shows its last."""
    head: int = 1
    """The head to show, from 1. The maps of the others stand beside it."""

    def page(self) -> Page:
        if self.model is None:
            if (self.layer, self.head) != (1, 1):
                raise ConfigError(
                    "the document's example has one layer and one head: choose a trained model with --model"
                )
            from toolkit.explain.worked.page import worked_page

            return worked_page(self.text, self.target)
        from toolkit.api import load
        from toolkit.explain.attention.page import attention_page

        return attention_page(load(self.model), self.text, self.target, self.layer, self.head)
