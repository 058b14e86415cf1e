"""toolkit explain generate: how a text goes on."""

from dataclasses import dataclass, field

from tyro.conf import OmitArgPrefixes, Positional

from toolkit.api import load_language_model
from toolkit.commands.explaining import MappedExplanation
from toolkit.decoding import ContinuationConfig
from toolkit.explain.decoding.generation import CANDIDATES, NEW_TOKENS, generation_page
from toolkit.explain.pages.blocks import Page


@dataclass
class ExplainGenerate(MappedExplanation):
    """Show how a text goes on: the next token's distribution before and after each stage of sampling, self-attention.

    The flags of decoding are those of `toolkit generate`, with the same defaults but for --max-new-tokens.
    """

    text: Positional[str]
    """How the text begins; an empty one lets the model begin."""
    model: str = "stories"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    candidates: int = CANDIDATES
    """How many candidates are shown at every step."""
    layer: int | None = None
    """Show the maps of this layer only, counted from 1."""
    head: int | None = None
    """Show the maps of this head only, counted from 1."""
    generation: OmitArgPrefixes[ContinuationConfig] = field(
        default_factory=lambda: ContinuationConfig(max_new_tokens=NEW_TOKENS)
    )

    def page(self) -> Page:
        """The continuation, step by step. Raises ToolkitError for a prompt that cannot be continued."""
        model = load_language_model(self.model, "toolkit explain translate")
        return generation_page(model, self.text, self.generation, self.candidates, self.layer, self.head)
