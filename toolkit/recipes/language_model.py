"""The recipe of a language model: on the embedded stories by default, on any other text by settings.

The run is a directory of checkpoints that `toolkit generate --model RUN` reads.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from toolkit.data.embedded import embedded, make_embedded
from toolkit.data.text_corpus import TextCorpus
from toolkit.data.texts import TextSource, open_texts
from toolkit.decoding import ContinuationConfig
from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.models.reward import copy_values
from toolkit.recipes.recipe import OF_LANGUAGE, Recipe, figures, refuse
from toolkit.recipes.start import can_end, check_shape, config_of_start, read_start, strange_tokens, tuned
from toolkit.tokenization import Tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.language import FirstLineMask, LanguageTask
from toolkit.training.run import Run
from toolkit.training.task import Evaluation, Undivided
from toolkit.training.trainer import Trainer

STORY_TRAINING = replace(OF_LANGUAGE, updates=4000, learning_rate=7e-3, validate_every=800)

# What a chat model should know before it learns to converse.
CHAT_TRAINING = replace(STORY_TRAINING, optimizer="muon", updates=9000, learning_rate=5e-3, validate_every=2250)

# nanoGPT's recipe for one core or two: four layers on the characters of a text, 12 windows of 64 an update.
NANOGPT = {"updates": 2000, "tokens_per_batch": 12 * 64, "learning_rate": 1e-3, "final_learning_rate": 1e-4}
NANOGPT_TRAINING = replace(STORY_TRAINING, beta2=0.99, validate_every=250, **NANOGPT)


# For a model that knows how to write already, and some pages of text.
FINE_TUNING = replace(STORY_TRAINING, updates=500, learning_rate=1e-3, warmup=50, validate_every=125)


@dataclass(frozen=True)
class Settings(Recipe):
    """Train a language model and show what it writes.

    With --start, with --preset, and with --text or --data, other defaults hold for what follows them here.
    """

    examples = (
        "",
        "--run ne --language ne",
        "--run book --text book.txt",
        "--run tuned --start stories --text book.txt",
    )

    run: Path = Path("checkpoints/language-model")
    start: str = ""
    """Language model to go on with: a directory, a run, the name of a shipped one. It keeps its vocabulary and its
    shape, and its texts begin as before. Default: begin from nothing."""
    corpus: Literal["stories", "chat"] = "stories"
    """Embedded text, where no other is given: stories; or facts, profiles and translations, for a chat model."""
    language: Literal["en", "ne", "both"] = "en"
    """Language of the stories."""
    text: tuple[Path, ...] = ()
    """Text files in UTF-8, or folders of .txt files. Default: the embedded stories."""
    data: tuple[str, ...] = ()
    """Tables (.tsv, .csv, .jsonl, .parquet) or data sets in the layout of the Hub, each row a document."""
    column: str = "text"
    """Column of the text in --data."""
    pairs: tuple[Path, ...] = ()
    """Line-aligned files, in turn a text and its translation; each pair of lines is a document."""
    documents: Literal["none", "file", "line", "blank"] = "blank"
    """Documents of --text: none (one text without marks), a file, a line, or text between blank lines."""
    whole_documents: bool = True
    """No text of a batch has parts of two documents; otherwise windows are cut anywhere."""
    first_line: Literal["learn", "read"] = "learn"
    """The first line of a document of several is predicted too, or only read, as a prompt for the rest."""
    valid_text: tuple[Path, ...] = ()
    """Text to validate on. Default: a part of the training text."""
    valid_data: tuple[str, ...] = ()
    """Tables to validate on."""
    valid_share: float = 0.1
    """Share of the text that is taken out where none is given to validate on, 2 MB at most."""
    tokenizer: Literal["unigram", "bpe", "character", "byte"] = "unigram"
    """SentencePiece subwords of either kind, characters, or bytes."""
    prompt: str = ""
    """Beginning of the samples that are shown."""
    samples: int = 10
    """Number of samples at the end; at every validation, two."""
    temperature: float = 0.7
    """Temperature of the samples."""
    preset: str = ""
    """Shape of a known model (see `toolkit presets`); flags of --model still change it."""
    model: GPTConfig = field(default_factory=lambda: PRESETS["stories"])
    training: TrainingConfig = field(default_factory=lambda: STORY_TRAINING)

    deciding: ClassVar = ("start", "text", "data", "preset")

    __repr__ = short_repr

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> "Settings":
        """Give the defaults: a preset has a shape, own text is no story."""
        recipe = cls()
        if "text" in given or "data" in given:
            recipe = replace(recipe, documents="none" if "text" in given else "blank", whole_documents=False)
        if name := given.get("preset"):
            if name not in PRESETS:
                raise ConfigError(f"there is no preset {name!r}: choose one of {', '.join(PRESETS)}")
            recipe = replace(recipe, model=PRESETS[name])
            if name.startswith("nanogpt"):
                recipe = replace(recipe, tokenizer="character", training=NANOGPT_TRAINING)
            if name == "chat":
                recipe = replace(recipe, corpus="chat", first_line="read", training=CHAT_TRAINING)
        if name := given.get("start"):
            config = config_of_start(name, GPTConfig)
            documents = "file" if config.begin and recipe.documents == "none" else recipe.documents
            recipe = replace(recipe, start=name, documents=documents, model=config, training=tuned(FINE_TUNING, config))
        return recipe

    def languages(self) -> tuple[str, ...]:
        """Name those of the embedded texts; of others nothing is known."""
        if self.text or self.data or self.pairs:
            return ()
        return ("en", "ne") if self.corpus == "chat" or self.language == "both" else (self.language,)

    @property
    def has_documents(self) -> bool:
        """Say if texts begin and end with marks."""
        return bool(self.data or self.pairs) or self.documents != "none"

    def check(self) -> None:
        super().check()
        training, cut, read = self.training, not self.whole_documents, self.first_line == "read"
        undivided = self.whole_documents and not self.has_documents
        refuse(
            (undivided, "--whole-documents needs documents: choose --documents file, line or blank"),
            (read and cut, "--first-line read is for whole documents: add --whole-documents"),
            (training.best_by != "loss", "a language model is compared by its loss: leave out --training.best-by"),
            (training.subword_alpha, "subwords are sampled for translation only: leave out --training.subword-alpha"),
            (self.samples < 0, f"samples is {self.samples}: it must not be negative"),
            (self.start and self.preset, "--start has a shape of its own: leave out --preset"),
            (
                self.start and self.tokenizer != Settings.tokenizer,
                "the vocabulary of a model that is given with --start is its own: leave out --tokenizer",
            ),
            (
                self.start and read and not self.model.begin,
                "--first-line read is for models whose texts begin with <s>, and this one's do not: leave it out",
            ),
        )
        sampling(self, 1)
        if self.start:
            check_shape(self.start, self.model)


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from texts to a model and its scores."""
    before = read_start(recipe.start, GPTConfig) if recipe.start else None
    no_end = before and recipe.has_documents and not can_end(before.model)
    refuse((no_end, f"{recipe.start} has no token that ends a text: add --documents none"))
    sources, valid_sources = open_corpus(recipe)
    digests = {each.name: each.fingerprint()[:16] for each in (*sources, *valid_sources)}
    digests |= recipe.digests({}, start=before.model) if before else {}
    with recipe.opened(recipe.settings(digests), command) as (run, saved):
        run.origin = before.origin if before else {}
        tokens = before.tokenizer if before else recipe.tokenizer, recipe.model.vocab_size
        settings = {"valid_share": recipe.valid_share, "seed": recipe.training.seed, "quiet": recipe.quiet}
        settings |= {"marks": recipe.has_documents, "begin": recipe.model.begin or not before}
        corpus = TextCorpus.made(run.path / "data", sources, valid_sources, *tokens, **settings)
        tokenizer, sets = corpus.tokenizer, map(corpus.documents, ("train", "valid"))
        begin = recipe.model.begin if before else recipe.has_documents
        config = replace(recipe.model, vocab_size=tokenizer.vocab_size, begin=begin)
        mask = FirstLineMask(tokenizer) if recipe.first_line == "read" else None
        shape = config.max_length, recipe.whole_documents, recipe.training.label_smoothing, config.vocab_size
        task = LanguageTask(*sets, *shape, 0 if mask else corpus.text_bytes("valid"), mask)
        two = Undivided(partial(some_samples, recipe, tokenizer))
        given = partial(GPT, config), task, recipe.training, run, tokenizer
        start = partial(copy_values, before.model) if before else None
        trainer = Trainer(*given, two, recipe.quiet, start)
        if recipe.samples:  # better told now than when the first is due
            writer = LanguageModel(trainer.model, tokenizer)
            writer.encode([recipe.prompt], sampling(recipe, 1), lambda _: "--prompt")
        asked = recipe.model.vocab_size
        few = recipe.tokenizer in ("unigram", "bpe") and config.vocab_size < asked  # never with --start
        why = f", because the text has no more than {config.vocab_size:,} tokens where {asked:,} were asked for"
        texts = {"training text": corpus.documents("train")} if before else {}
        told = *corpus.describe(), *strange_tokens(tokenizer, texts)
        recipe.fit(trainer, saved, *told, size=why if few else "")
        first = before and before.model
        recipe.finish(run, tokenizer, lambda model, _: score(recipe, model, task, tokenizer, first))
    return run


def open_corpus(recipe: Settings) -> tuple[list[TextSource], list[TextSource]]:
    """Find where training and validation text is read from."""
    given, valid = (recipe.text, recipe.data, recipe.pairs), (recipe.valid_text, recipe.valid_data, ())
    if not any(given):
        mistake = "validation text is given without --text, --data or --pairs: give the training text too"
        refuse((any(valid), mistake))
        given, valid = (embedded_texts(recipe, split) for split in ("train", "valid"))
    make_embedded((*recipe.text, *recipe.pairs, *recipe.valid_text), recipe.quiet)
    return tuple(
        open_texts(texts, data, recipe.column, recipe.documents, pairs=pairs) for texts, data, pairs in (given, valid)
    )


def embedded_texts(recipe: Settings, split: str) -> tuple[list[Path], list[str], list[Path]]:
    """Name the texts, tables and pairs of a split of the embedded corpus."""
    if recipe.corpus == "chat":
        base = [embedded("chat", recipe.quiet) / "base.txt"] if split == "train" else []
        pairs = embedded("en_ne", recipe.quiet)
        return base, [], [pairs / f"{split}.en", pairs / f"{split}.ne"]
    languages = ("en", "ne") if recipe.language == "both" else (recipe.language,)
    stories = embedded("stories", recipe.quiet)
    return [stories / f"{split}.{language}.txt" for language in languages], [], []


def written(recipe: Settings, tokenizer: Tokenizer, count: int, model: GPT) -> list[str]:
    """Write some texts by the model, each on a line."""
    if count == 0:
        return []
    found = LanguageModel(model, tokenizer).generate_n(recipe.prompt, sampling(recipe, count))
    return [(recipe.prompt + each.text).replace("\n", " ⏎ ") for each in found]


def some_samples(recipe: Settings, tokenizer: Tokenizer, model: GPT) -> Evaluation:
    """Write two texts of the model by now, unless fewer are wanted: nothing to score, something to look at."""
    return Evaluation({}, written(recipe, tokenizer, min(recipe.samples, 2), model))


def sampling(recipe: Settings, count: int) -> ContinuationConfig:
    """Make the settings of the samples.  Raises ConfigError for a temperature that is out of range."""
    count = count if recipe.temperature else 1  # without chance, all are the same
    return ContinuationConfig(num_return_sequences=count, temperature=recipe.temperature, seed=recipe.training.seed)


def score(
    recipe: Settings, model: GPT, task: LanguageTask, tokenizer: Tokenizer, before: GPT | None
) -> tuple[dict[str, Any], list[str]]:
    """Score a model on the validation set, and one before, and show what it writes."""
    found = {"validation_full": task.evaluated(model)} | (
        {"validation_before": task.evaluated(before)} if before else {}
    )
    lines = [line for sample in written(recipe, tokenizer, recipe.samples, model) for line in (sample, "")]
    told = {"validation_full": "validation", "validation_before": "before"}
    lines += [f"{told[name]}: {figures(scores)}" for name, scores in found.items()]
    use = "talk with it: toolkit chat" if model.config.template != "none" else "write more with: toolkit generate"
    return found, [*lines, f"{use} --model {recipe.run}"]
