"""toolkit explain translate: how a translation came about."""

from dataclasses import dataclass, field

from tyro.conf import OmitArgPrefixes, Positional

from toolkit.api import load_translator
from toolkit.commands.explaining import MappedExplanation
from toolkit.decoding import GenerationConfig
from toolkit.explain.decoding.translation import CANDIDATES, translation_page
from toolkit.explain.pages.blocks import Page


@dataclass
class ExplainTranslate(MappedExplanation):
    """Show how a translation came about: tokens, candidates of every step, the beam as a tree, cross-attention.

    The flags of decoding are those of `toolkit translate`, with the same defaults: it is the same translation.
    """

    text: Positional[str]
    """What to translate."""
    model: str = "en-ne"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    candidates: int = CANDIDATES
    """How many candidates are shown at every step."""
    layer: int | None = None
    """Show the maps of this decoder layer only, counted from 1."""
    head: int | None = None
    """Show the maps of this head only, counted from 1."""
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def page(self) -> Page:
        """The translation, step by step. Raises ToolkitError for what cannot be translated."""
        translator = load_translator(self.model, "toolkit explain generate")
        return translation_page(translator, self.text, self.generation, self.candidates, self.layer, self.head)
