"""toolkit explain: what a transformer does, number by number: the flags of each topic, and the page that it makes."""

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import tyro
from tyro.conf import OmitArgPrefixes, Positional

from toolkit.api import load, load_language_model, load_translator
from toolkit.commands.console import emit, emit_page
from toolkit.commands.flags import ModelName, Quiet, SourceLanguage, TargetLanguage
from toolkit.decoding import ContinuationConfig, GenerationConfig
from toolkit.display import progress_bar, tell
from toolkit.errors import ConfigError
from toolkit.explain.decoding import (
    CONTINUATION_CANDIDATES,
    NEW_TOKENS,
    TRANSLATION_CANDIDATES,
    generation_page,
    translation_page,
)
from toolkit.files import atomic_writer, check_writable
from toolkit.models.seq2seq import Seq2Seq
from toolkit.pages.blocks import Page

if TYPE_CHECKING:
    from toolkit.language_model import LanguageModel
    from toolkit.translator import Translator

_PIPE = (100, 24)  # columns and lines where nobody says how wide the terminal is


@dataclass(kw_only=True)
class Explanation(ABC):
    """A topic. Its flags are those of the subclass, and where the page goes."""

    html: Path | None = None
    """Write one self-contained page to this file, for a browser, instead of printing."""

    @abstractmethod
    def page(self) -> Page:
        """Make the page. Raises ToolkitError for what cannot be explained."""

    def run(self) -> None:
        """Print the page, or write it and tell where. Raises DataError where the file cannot be written."""
        if self.html is None:
            from toolkit.pages.terminal import lines

            emit_page(lines(self.page(), shutil.get_terminal_size(_PIPE).columns, has_color()))
        else:
            self.written_page(self.html)

    def written_page(self, path: Path) -> Page:
        """Write the page and return it.  Raises DataError before the work where the file cannot be written."""
        from toolkit.pages.html import document

        check_writable(path)
        page = self.page()
        content = document(page).encode()
        with atomic_writer(path) as file:
            file.write(content)
        emit([f"{path}: open it in a browser"])
        return page


@dataclass(kw_only=True)
class MappedExplanation(Explanation):
    """A topic whose page has maps of attention, which can be a picture too."""

    picture: Path | None = None
    """Write the page's maps of attention to this file, .png or .svg, instead of printing."""

    def run(self) -> None:
        """Print or write the page, or draw its maps. Raises ConfigError where that is not possible."""
        if self.picture is None:
            super().run()
            return
        from toolkit.pages.drawing import picture_format
        from toolkit.pages.maps import page_picture

        picture_format(self.picture)
        if self.html and self.html.resolve() == self.picture.resolve():
            raise ConfigError(f"--html and --picture both name {self.picture}: give the page another file")
        check_writable(self.picture)
        page = self.page() if self.html is None else self.written_page(self.html)
        page_picture(page).save(self.picture)
        emit([f"{self.picture}: the maps of attention"])


@dataclass(kw_only=True)
class DirectedExplanation(MappedExplanation):
    """A topic on a translator, which may know several languages."""

    source_language: SourceLanguage = None
    target_language: TargetLanguage = None

    def directed(self, model: "Translator | LanguageModel") -> "Translator | LanguageModel":
        """Give the model for these languages.  Raises ConfigError where it has none to choose."""
        if isinstance(model.model, Seq2Seq):
            return model.between(self.source_language, self.target_language)
        if self.source_language is not None or self.target_language is not None:
            flag = "--source-language" if self.source_language is not None else "--target-language"
            raise ConfigError(f"{flag} is given, but {self.model} is a language model, which translates nothing")
        return model


def has_color() -> bool:
    """Tell if standard output is a terminal with colours and nobody objects (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()


@dataclass(kw_only=True)
class ExplainAttention(DirectedExplanation):
    """Follow one text through a model, step by step: formula, shapes and numbers, read from one real pass.

    With --documents the numbers are those of the founding document 004, with its errors beside what is right, and after
    them the known errors of the other documents.
    """

    examples = (
        "",
        '"She is a doctor." --layer 2 --head 3',
        '"I am a boy" --html attention.html',
        "--documents",
    )

    text: Positional[str | None] = None
    """The text: what a translator translates, or how a text begins. By default "I am a boy", or the beginning of a
    story in English or Nepali, whichever a language model knows better. The document's example knows I, am and boy."""
    model: str | None = None
    """Directory of a model or of a run, or the name of a model that comes with the toolkit. By default en-ne-small."""
    target: str | None = None
    """The text that a translator's decoder reads. By default the model's own; in the document's example, म."""
    layer: int = 1
    """The layer to show, from 1; a side of a translator that has fewer shows its last."""
    head: int = 1
    """The head to show, from 1. The maps of the others stand beside it."""
    documents: bool = False
    """Show the example of the founding documents, and their known errors, instead of a trained model."""

    def page(self) -> Page:
        if not self.documents:
            from toolkit.explain.attention import attention_page

            return attention_page(
                self.directed(load(self.model or "en-ne-small", dtype="float32")),
                self.text,
                self.target,
                self.layer,
                self.head,
            )
        from toolkit.explain.worked import EXAMPLE, worked_page

        if self.source_language is not None or self.target_language is not None:
            raise ConfigError("--documents has a model of its own: leave out --source-language and --target-language")
        if self.model is not None or (self.layer, self.head) != (1, 1):
            raise ConfigError(
                "--documents has a model of its own, of one layer and one head: leave out --model, --layer and --head"
            )
        return worked_page(EXAMPLE if self.text is None else self.text, self.target)


@dataclass
class ExplainTranslate(DirectedExplanation):
    """Show how a translation came about: tokens, candidates of every step, the beam as a tree, cross-attention.

    The flags of decoding are those of `toolkit translate`, with the same defaults: it is the same translation.
    """

    examples = (
        '"I am a boy." --num-beams 4',
        '"I am a boy." --picture attention.png',
    )

    text: Positional[str]
    """The sentence to translate; of several, the first is explained."""
    model: ModelName = "en-ne-small"
    candidates: int = TRANSLATION_CANDIDATES
    """The number of candidates that are shown at every step."""
    layer: int | None = None
    """Show the maps of this decoder layer only, counted from 1."""
    head: int | None = None
    """Show the maps of this head only, counted from 1."""
    generation: OmitArgPrefixes[GenerationConfig] = field(default_factory=GenerationConfig)

    def page(self) -> Page:
        translator = self.directed(load_translator(self.model, "toolkit explain generate", dtype="float32"))
        return translation_page(translator, self.text, self.generation, self.candidates, self.layer, self.head)


@dataclass
class ExplainGenerate(MappedExplanation):
    """Show how a text goes on: the next token's distribution before and after each stage of sampling, self-attention.

    The flags of decoding are those of `toolkit generate`, with the same defaults but for --max-new-tokens.
    """

    examples = (
        '"Once upon a time" --seed 2',
        '"One day" --temperature 1.2 --html written.html',
    )

    text: Positional[str]
    """The beginning of the text; an empty one lets the model begin."""
    model: ModelName = "stories"
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
        from toolkit.commands.generate import load_writer

        model = load_writer(self.model, "toolkit explain translate", dtype="float32")
        return generation_page(model, self.text, self.generation, self.candidates, self.layer, self.head)


@dataclass(kw_only=True)
class ExplainTraining(DirectedExplanation):
    """Teacher forcing on one pair of sentences, or one text: the loss of every token, and a step of AdamW in numbers.

    The step is that of a first update, with the settings that the model was trained with. It moves a copy: the model
    on the disk is not changed.
    """

    examples = (
        "",
        '"I am a boy." "म केटा हुँ।"',
        '--model stories "Once upon a time"',
    )

    texts: Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[TEXT ...]")]] = ()
    """A sentence and its translation; for a language model one text. By default "I am a boy" and म केटा हुँ, or the
    beginning of a story in English or Nepali, whichever the model knows better."""
    model: ModelName = "en-ne-small"
    learning_rate: float | None = None
    """Of the step. By default that of the first update of the model's own training."""

    def page(self) -> Page:
        if self.learning_rate is not None and not 0 < self.learning_rate < float("inf"):
            raise ConfigError(f"learning_rate is {self.learning_rate}: it must be a number above 0")
        from toolkit.explain.training import training_page
        from toolkit.models.storage import find_model, read_metrics

        metrics = read_metrics(find_model(self.model))
        return training_page(self.directed(load(self.model, dtype="float32")), self.texts, metrics, self.learning_rate)


@dataclass(kw_only=True)
class ExplainParallel(Explanation):
    """All positions at once against one at a time: the same numbers, timed by length, and how far each can look back.

    Times are of this machine, on one core, and differ from run to run.
    """

    examples = (
        "",
        "--lengths 16 64 256 --html parallel.html",
    )

    text: Positional[str] = ""
    """The text that the model reads in both ways. By default the beginning of a story in English or
    Nepali, whichever the model knows better."""
    model: str = "stories"
    """Directory of a language model or of a run, or the name of one that comes with the toolkit."""
    lengths: tuple[int, ...] = field(default_factory=lambda: import_module("toolkit.explain.parallel").LENGTHS)
    """Tokens of the texts that are timed."""
    quiet: Quiet = False

    def page(self) -> Page:
        from toolkit.explain.parallel import parallel_page

        def shown(lengths: Iterable[int]) -> Iterable[int]:
            return progress_bar(self.quiet, iterable=lengths, unit="length", dynamic_ncols=True, leave=False)

        model = load_language_model(
            self.model, "toolkit explain training, which shows a translator both ways", dtype="float32"
        )
        return parallel_page(model, self.text, self.lengths, shown)


@dataclass(kw_only=True)
class ExplainGradients(Explanation):
    """Every derivative of the toolkit: formula, source, and a check against finite differences that is run now.

    The well-known wrong ones are run beside the right ones: the error that each makes, and what it does to training.
    """

    examples = (
        "layer_norm",
        "attention dropout --html gradients.html",
    )

    pairs: Positional[Annotated[tuple[str, ...], tyro.conf.arg(metavar="[PAIR ...]")]] = ()
    """The pairs to show, such as layer_norm. By default all."""
    seed: int = 0
    """Of the random arguments, and of the models that are trained."""

    def page(self) -> Page:
        from toolkit.explain.gradients import gradients_page

        return gradients_page(self.pairs, self.seed, progress=_tell)


def _tell(doing: str) -> None:
    if sys.stderr is not None and sys.stderr.isatty():
        tell(f"{doing} …")
