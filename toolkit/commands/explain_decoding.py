"""toolkit explain translate and toolkit explain generate: the search and the sampling behind a text.

Apart from the other topics because their flags are those of decoding, which takes time to import.
"""

from dataclasses import dataclass, field

from tyro.conf import OmitArgPrefixes, Positional

from toolkit.api import load_language_model, load_translator
from toolkit.commands.explain import MappedExplanation
from toolkit.decoding import ContinuationConfig, GenerationConfig
from toolkit.explain.decoding import (
    CONTINUATION_CANDIDATES,
    NEW_TOKENS,
    TRANSLATION_CANDIDATES,
    generation_page,
    translation_page,
)
from toolkit.explain.pages.blocks import Page


@dataclass
class ExplainTranslate(MappedExplanation):
    """Show how a translation came about: tokens, candidates of every step, the beam as a tree, cross-attention.

    The flags of decoding are those of `toolkit translate`, with the same defaults: it is the same translation.
    """

    text: Positional[str]
    """The text to translate."""
    model: str = "en-ne"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    candidates: int = TRANSLATION_CANDIDATES
    """The number of candidates that are shown at every step."""
    layer: int | None = None
    """Show the maps of this decoder layer only, counted from 1."""
    head: int | None = None
    """Show the maps of this head only, counted from 1."""
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def page(self) -> Page:
        """Show the translation, step by step. Raises ToolkitError for what cannot be translated."""
        translator = load_translator(self.model, "toolkit explain generate")
        return translation_page(translator, self.text, self.generation, self.candidates, self.layer, self.head)


@dataclass
class ExplainGenerate(MappedExplanation):
    """Show how a text goes on: the next token's distribution before and after each stage of sampling, self-attention.

    The flags of decoding are those of `toolkit generate`, with the same defaults but for --max-new-tokens.
    """

    text: Positional[str]
    """The beginning of the text; an empty one lets the model begin."""
    model: str = "stories"
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    candidates: int = CONTINUATION_CANDIDATES
    """The number of candidates that are shown at every step."""
    layer: int | None = None
    """Show the maps of this layer only, counted from 1."""
    head: int | None = None
    """Show the maps of this head only, counted from 1."""
    generation: OmitArgPrefixes[ContinuationConfig] = field(
        default_factory=lambda: ContinuationConfig(max_new_tokens=NEW_TOKENS)
    )

    def page(self) -> Page:
        """Show the continuation, step by step. Raises ToolkitError for a prompt that cannot be continued."""
        model = load_language_model(self.model, "toolkit explain translate")
        return generation_page(model, self.text, self.generation, self.candidates, self.layer, self.head)
