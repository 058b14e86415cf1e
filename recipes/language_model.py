"""Train a language model: on the embedded stories by default, on any other text by flags.

    python recipes/language_model.py                                   # little stories in English, under five minutes
    python recipes/language_model.py --language ne                     # in Nepali
    python recipes/language_model.py --text my.txt                     # your own text: a file, several, a folder
    python recipes/language_model.py --preset nanogpt-cpu --text shakespeare.txt
    python recipes/language_model.py --preset chat --run checkpoints/base   # what recipes/chat.py goes on with

The result is a run: a directory of checkpoints that `toolkit generate --model RUN` reads.
"""

import functools
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.commands.console import emit
from toolkit.commands.recipe import (
    carry_out,
    check_results,
    export,
    for_each_seed,
    opened,
    preparing,
    run_recipe,
    tell,
    words_after,
)
from toolkit.data.embedded import embedded
from toolkit.data.text_corpus import TextCorpus
from toolkit.data.texts import TextSource, open_texts
from toolkit.decoding import ContinuationConfig
from toolkit.errors import ConfigError
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.tokenization import Tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.language import FirstLineMask, LanguageTask
from toolkit.training.run import Run
from toolkit.training.trainer import Evaluation, Trainer

STORY_TRAINING = TrainingConfig(
    updates=4000,
    tokens_per_batch=1024,
    learning_rate=7e-3,
    warmup=100,
    weight_decay=0.1,
    beta2=0.95,
    eps=1e-8,
    label_smoothing=0.0,
    validate_every=800,
    best_by="loss",
)

# What a chat model should know before it learns to converse.
CHAT_TRAINING = replace(STORY_TRAINING, optimizer="muon", updates=9000, learning_rate=5e-3, validate_every=2250)

# nanoGPT's recipe for one core or two: four layers on the characters of a text, 12 windows of 64 an update.
NANOGPT_TRAINING = replace(
    STORY_TRAINING,
    updates=2000,
    tokens_per_batch=12 * 64,
    learning_rate=1e-3,
    final_learning_rate=1e-4,
    beta2=0.99,
    validate_every=250,
)


@dataclass(frozen=True)
class Recipe:
    """Train a language model and show what it writes.

    With --preset, and with --text or --data, other defaults hold for what follows them here.
    """

    run: Path = Path("checkpoints/language-model")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    corpus: Literal["stories", "chat"] = "stories"
    """Embedded text, where no other is given: stories; or facts, profiles and translations, for a chat model."""
    language: Literal["en", "ne", "both"] = "en"
    """Of the stories."""
    text: tuple[Path, ...] = ()
    """Text files in UTF-8, or folders of .txt files. Default: the embedded stories."""
    data: tuple[str, ...] = ()
    """Tables (.tsv, .csv, .jsonl, .parquet) or data sets in the layout of the Hub, each row a document."""
    column: str = "text"
    """Column of the text in --data."""
    pairs: tuple[Path, ...] = ()
    """Line-aligned files, in turn a text and its translation; each pair of lines is a document."""
    documents: Literal["none", "file", "line", "blank"] = "blank"
    """What is a document in --text: nothing (one text without marks), a file, a line, or text between blank lines."""
    whole_documents: bool = True
    """Whether no text of a batch has parts of two documents; otherwise windows are cut anywhere."""
    first_line: Literal["learn", "read"] = "learn"
    """Whether the first line of a document of several is predicted too, or only read, as a prompt for the rest."""
    valid_text: tuple[Path, ...] = ()
    """Text to validate on. Default: a part of the training text."""
    valid_data: tuple[str, ...] = ()
    """Tables to validate on."""
    valid_share: float = 0.1
    """How much of the text is taken out where none is given to validate on, 2 MB at most."""
    seeds: tuple[int, ...] = ()
    """Train once with each of these seeds, in RUN/seed-1 and so on; `toolkit runs RUN` compares them."""
    export: Path | None = None
    """Directory for the best model by itself: in float16, without what only training needs."""
    tokenizer: Literal["unigram", "bpe", "character", "byte"] = "unigram"
    """SentencePiece subwords of either kind, characters, or bytes."""
    prompt: str = ""
    """What the samples that are shown begin with."""
    samples: int = 10
    """How many are shown at the end; at every validation, two."""
    temperature: float = 0.7
    """Of the samples."""
    quiet: bool = False
    """Print results only."""
    preset: str = ""
    """Shape of a known model (see `toolkit presets`); flags of --model still change it."""
    model: GPTConfig = field(default_factory=lambda: PRESETS["stories"])
    training: TrainingConfig = field(default_factory=lambda: STORY_TRAINING)


def defaults(arguments: Sequence[str]) -> Recipe:
    """The defaults for the words that were given: a preset has a shape, own text is no story."""
    recipe = Recipe()
    given = words_after(("--text", "--data", "--pairs", "--preset"), arguments)
    if "--text" in given or "--data" in given:
        recipe = replace(recipe, documents="none" if "--text" in given else "blank", whole_documents=False)
    if name := given.get("--preset"):
        if name not in PRESETS:
            raise ConfigError(f"there is no preset {name!r}: choose one of {', '.join(PRESETS)}")
        recipe = replace(recipe, model=PRESETS[name])
        if name.startswith("nanogpt"):
            recipe = replace(recipe, tokenizer="character", training=NANOGPT_TRAINING)
        if name == "chat":
            recipe = replace(recipe, corpus="chat", first_line="read", training=CHAT_TRAINING)
    return recipe


def main(recipe: Recipe) -> None:
    check(recipe)
    for_each_seed(recipe, train)


def check(recipe: Recipe) -> None:
    """Raises ConfigError for settings that do not fit together."""
    check_results(recipe.seeds, recipe.export)
    if recipe.whole_documents and not has_documents(recipe):
        raise ConfigError("--whole-documents needs documents: choose --documents file, line or blank")
    if recipe.first_line == "read" and not recipe.whole_documents:
        raise ConfigError("--first-line read is for whole documents: add --whole-documents")
    if recipe.training.best_by != "loss":
        raise ConfigError("a language model is compared by its loss: leave out --training.best-by")
    if recipe.training.subword_alpha:
        raise ConfigError("subwords are sampled for translation only: leave out --training.subword-alpha")
    if recipe.samples < 0:
        raise ConfigError(f"samples is {recipe.samples}: it must not be negative")
    sampling(recipe, 1)


def train(recipe: Recipe) -> None:
    """One run, from texts to a model and its scores."""
    sources, valid_sources = open_corpus(recipe)
    with opened(recipe.run, settings_of(recipe, sources, valid_sources), recipe.resume) as (run, saved):
        with preparing(run):
            corpus = prepare(recipe, run, sources, valid_sources)
            trainer = make_trainer(recipe, run, corpus)
            if recipe.samples:  # better told now than when the first is due
                writer = LanguageModel(trainer.model, corpus.tokenizer)
                writer.encode([recipe.prompt], sampling(recipe, 1), lambda _: "--prompt")
        tell(recipe.quiet, *corpus.describe(), size_of(recipe, trainer.model))
        carry_out(trainer, saved, recipe.quiet)
        finish(recipe, run, trainer.task, corpus.tokenizer)


def size_of(recipe: Recipe, model: GPT) -> str:
    """How large the model has become, and why its vocabulary is not what was asked for."""
    asked, size = recipe.model.vocab_size, model.config.vocab_size
    learned = recipe.tokenizer in ("unigram", "bpe") and size < asked
    told = f", because the text has no more than {size:,} tokens where {asked:,} were asked for" if learned else ""
    return f"{model.parameter_count:,} parameters{told}"


def open_corpus(recipe: Recipe) -> tuple[list[TextSource], list[TextSource]]:
    """Where training and validation text is read from."""
    given = recipe.text, recipe.data, recipe.pairs
    valid = recipe.valid_text, recipe.valid_data, ()
    if not any(given):
        if any(valid):
            raise ConfigError("validation text is given without --text, --data or --pairs: give the training text too")
        given, valid = (embedded_texts(recipe, split) for split in ("train", "valid"))
    parts = (given, valid)
    return tuple(open_texts(texts, data, recipe.column, recipe.documents, pairs=pairs) for texts, data, pairs in parts)


def embedded_texts(recipe: Recipe, split: str) -> tuple[list[Path], list[str], list[Path]]:
    """Texts, tables and pairs of a split of the embedded corpus."""
    if recipe.corpus == "chat":
        base = [embedded("chat", recipe.quiet) / "base.txt"] if split == "train" else []
        pairs = embedded("en_ne", recipe.quiet)
        return base, [], [pairs / f"{split}.en", pairs / f"{split}.ne"]
    languages = ("en", "ne") if recipe.language == "both" else (recipe.language,)
    stories = embedded("stories", recipe.quiet)
    return [stories / f"{split}.{language}.txt" for language in languages], [], []


def settings_of(recipe: Recipe, sources: list[TextSource], valid_sources: list[TextSource]) -> dict[str, Any]:
    """Everything that decides the result, the contents of the files included."""
    own = {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet", "export")}
    own |= {name: [str(path) for path in own.pop(name)] for name in ("text", "valid_text", "pairs")}
    own |= {"tables": own.pop("data"), "valid_tables": own.pop("valid_data")}
    return own | {"data": {source.name: source.fingerprint()[:16] for source in (*sources, *valid_sources)}}


def prepare(recipe: Recipe, run: Run, sources: list[TextSource], valid_sources: list[TextSource]) -> TextCorpus:
    """The tokens of a run and their tokenizer, in RUN/data; what an earlier start has left there is used."""
    directory = run.path / "data"
    if TextCorpus.exists(directory):
        return TextCorpus.open(directory)
    return TextCorpus.build(
        directory,
        sources,
        valid_sources,
        recipe.tokenizer,
        recipe.model.vocab_size,
        marks=has_documents(recipe),
        valid_share=recipe.valid_share,
        seed=recipe.training.seed,
        quiet=recipe.quiet,
    )


def has_documents(recipe: Recipe) -> bool:
    """Whether texts begin and end with marks."""
    return bool(recipe.data or recipe.pairs) or recipe.documents != "none"


def make_trainer(recipe: Recipe, run: Run, corpus: TextCorpus) -> Trainer:
    config = replace(recipe.model, vocab_size=corpus.tokenizer.vocab_size, begin=has_documents(recipe))
    masked = recipe.first_line == "read"
    task = LanguageTask(
        corpus.documents("train"),
        corpus.documents("valid"),
        config.max_length,
        recipe.whole_documents,
        recipe.training.label_smoothing,
        config.vocab_size,
        valid_bytes=0 if masked else corpus.text_bytes("valid"),
        mask=FirstLineMask(corpus.tokenizer) if masked else None,
    )
    evaluate = functools.partial(two_samples, recipe=recipe, tokenizer=corpus.tokenizer)
    build = functools.partial(GPT, config)
    return Trainer(build, task, recipe.training, run, corpus.tokenizer, evaluate, recipe.quiet)


def two_samples(model: GPT, recipe: Recipe, tokenizer: Tokenizer) -> Evaluation:
    """What the model writes by now: nothing to score, something to look at."""
    return Evaluation({}, written(recipe, model, tokenizer, min(recipe.samples, 2)))


def written(recipe: Recipe, model: GPT, tokenizer: Tokenizer, count: int) -> list[str]:
    """Some texts by the model, each on a line."""
    if count == 0:
        return []
    found = LanguageModel(model, tokenizer).generate_n(recipe.prompt, sampling(recipe, count))
    return [(recipe.prompt + each.text).replace("\n", " ⏎ ") for each in found]


def sampling(recipe: Recipe, count: int) -> ContinuationConfig:
    """How samples are drawn.  Raises ConfigError for a temperature that is out of range."""
    count = count if recipe.temperature else 1  # without chance, all are the same
    return ContinuationConfig(num_return_sequences=count, temperature=recipe.temperature, seed=recipe.training.seed)


def finish(recipe: Recipe, run: Run, task: LanguageTask, tokenizer: Tokenizer) -> None:
    """Score the best checkpoint as it will be used, record that with it, and show what it writes."""
    directory = run.named("best")
    model = load_model(directory)
    if recipe.export:
        model.vector[:] = model.vector.astype(np.float16)  # the scores below are then those of what is exported
    scores = task.evaluated(model)
    metrics = read_metrics(directory) | {"validation_full": scores}
    save_metrics(directory, metrics)
    if recipe.export:
        export(recipe.export, model, metrics, tokenizer)
    figures = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
    lines = [line for sample in written(recipe, model, tokenizer, recipe.samples) for line in (sample, "")]
    emit([*lines, f"validation: {figures}", f"write more with: toolkit generate --model {recipe.run}"])


if __name__ == "__main__":
    run_recipe(defaults, main)
