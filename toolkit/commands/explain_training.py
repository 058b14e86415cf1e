"""toolkit explain training: what one pair of sentences, or one text, teaches a model."""

from dataclasses import dataclass
from typing import Annotated

import tyro
from tyro.conf import Positional

from toolkit.api import load
from toolkit.commands.explaining import MappedExplanation
from toolkit.errors import ConfigError
from toolkit.explain.pages.blocks import Page
from toolkit.explain.training.page import training_page
from toolkit.models.shelf import find_model
from toolkit.models.storage import read_metrics


@dataclass(kw_only=True)
class ExplainTraining(MappedExplanation):
    """Teacher forcing on one pair of sentences, or one text: the loss of every token, and a step of AdamW in numbers.

    The step is that of a first update, with the settings that the model was trained with. It moves a copy: the model
    on the disk is not changed.
    """

    texts: Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="TEXT...")]] = ()
    """A sentence and its translation; for a language model one text. By default "I am a boy" and म केटा हुँ, or the
    beginning of a story in English or Nepali, whichever the model knows better."""
    model: str = "en-ne"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    learning_rate: float | None = None
    """Of the step. By default that of the first update of the model's own training."""

    def page(self) -> Page:
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise ConfigError(f"learning_rate is {self.learning_rate}: it must be a number above 0")
        metrics = read_metrics(find_model(self.model))
        return training_page(load(self.model), self.texts, metrics, self.learning_rate)
