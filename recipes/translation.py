"""Train a translator: English–Nepali on the embedded corpus by default, any other pairs of sentences by flags.

    python recipes/translation.py                                  # the embedded corpus, under three minutes
    python recipes/translation.py --reverse                        # Nepali to English
    python recipes/translation.py --source my.en --target my.ne    # your own sentences
    python recipes/translation.py --data pairs.tsv                 # the same in a table

The result is a run: a directory of checkpoints that `toolkit translate --model RUN` reads.
"""

import functools
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.commands.console import emit
from toolkit.commands.recipe import carry_out, check_results, export, for_each_seed, opened, preparing, run_recipe, tell
from toolkit.data.embedded import embedded
from toolkit.data.filters import Filters
from toolkit.data.pair_corpus import PairCorpus
from toolkit.data.pairs import PairSource, open_sources, read_pairs
from toolkit.data.sentences import SubwordSampler, spaced
from toolkit.decoding import GenerationConfig
from toolkit.errors import ConfigError
from toolkit.evaluation.scores import Scores, bleu_chrf
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.tokenization import SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Evaluation, Trainer
from toolkit.training.translation import TranslationTask, describe
from toolkit.translator import Translator

Pairs = list[tuple[str, str]]

# For the embedded corpus, which is small and without noise: nothing has to be dropped out of it.
SMALL_MODEL = Seq2SeqConfig(
    vocab_size=2000,
    width=128,
    heads=4,
    feed_forward=512,
    encoder_layers=2,
    decoder_layers=2,
    norm="post",
    ignore_case=True,
    embedding_dropout=0.0,
    attention_dropout=0.0,
    activation_dropout=0.0,
    residual_dropout=0.0,
)
SHORT_TRAINING = TrainingConfig(
    updates=5000,
    tokens_per_batch=500,
    learning_rate=2.5e-3,
    warmup=250,
    label_smoothing=0.1,
    validate_every=1250,
    best_by="loss",
)

# For some thousand sentences that people wrote: a larger model, which only dropout and sampled subwords keep from
# learning them by heart.
OWN_MODEL = Seq2SeqConfig(
    vocab_size=2000,
    width=256,
    heads=8,
    feed_forward=1024,
    norm="pre",
    ignore_case=True,
    embedding_dropout=0.3,
    attention_dropout=0.1,
    activation_dropout=0.3,
    residual_dropout=0.3,
)
OWN_TRAINING = TrainingConfig(
    updates=1500, tokens_per_batch=2048, learning_rate=1e-3, validate_every=250, subword_alpha=0.2
)


@dataclass(frozen=True)
class Recipe:
    """Train a translator and show what it does with sentences it has never seen.

    With --source or --data, the defaults of --model and --training are those for a few thousand real sentences.
    """

    run: Path = Path("checkpoints/translation")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    source: tuple[Path, ...] = ()
    """Text files of source sentences, one a line. Default: the embedded English–Nepali corpus."""
    target: tuple[Path, ...] = ()
    """As many files with their translations, line by line."""
    data: tuple[str, ...] = ()
    """Tables of pairs (.tsv, .csv, .jsonl, .parquet), or data sets in the layout of the Hub: a directory or
    OWNER/NAME, either also as NAME:CONFIG:SPLIT."""
    source_column: str = "en"
    """Column of the source sentences in --data. 1, 2, ... count the columns of a table without a header."""
    target_column: str = "ne"
    """Column of their translations."""
    weights: tuple[float, ...] = ()
    """How often a pair is seen in an epoch, one number for each of --source and --data in turn. Default: once."""
    valid_source: tuple[Path, ...] = ()
    """Validation sentences. Default: pairs taken evenly out of the training pairs."""
    valid_target: tuple[Path, ...] = ()
    """Their translations."""
    valid_data: tuple[str, ...] = ()
    """Tables of validation pairs."""
    valid_lines: int = 200
    """How many pairs are taken out where no validation pairs are given."""
    seeds: tuple[int, ...] = ()
    """Train once with each of these seeds, in RUN/seed-1 and so on; `toolkit runs RUN` compares them."""
    export: Path | None = None
    """Directory for the best model by itself: in float16, without what only training needs."""
    reverse: bool = False
    """Translate from target to source."""
    tokenizer: Literal["unigram", "bpe"] = "unigram"
    """Subword algorithm, of SentencePiece."""
    quiet: bool = False
    """Print results only."""
    num_beams: int = 4
    """Beams of the final translations; validation decodes greedily."""
    filters: Filters = field(default_factory=Filters)
    model: Seq2SeqConfig = field(default_factory=lambda: SMALL_MODEL)
    training: TrainingConfig = field(default_factory=lambda: SHORT_TRAINING)


def defaults(arguments: Sequence[str]) -> Recipe:
    """Own sentences are fewer and noisier than the embedded ones, and have other defaults."""
    own = any(argument.split("=")[0] in ("--source", "--data") for argument in arguments)
    return Recipe(model=OWN_MODEL, training=OWN_TRAINING) if own else Recipe()


def main(recipe: Recipe) -> None:
    GenerationConfig(num_beams=recipe.num_beams)
    check_results(recipe.seeds, recipe.export)
    for_each_seed(recipe, train)


def train(recipe: Recipe) -> None:
    """One run, from texts to a model and its scores."""
    sources, valid_sources = open_corpus(recipe)
    with opened(recipe.run, settings_of(recipe, sources, valid_sources), recipe.resume) as (run, saved):
        with preparing(run):
            corpus, tokenizer = prepare(recipe, run, sources, valid_sources)
            trainer = make_trainer(recipe, run, corpus, tokenizer)
        size = f"{trainer.model.parameter_count:,} parameters, {tokenizer.vocab_size} tokens"
        tell(recipe.quiet, *corpus.describe(), describe(corpus.examples("train")), size)
        carry_out(trainer, saved, recipe.quiet)
        if recipe.source or recipe.data:
            valid = list(corpus.example_texts("valid"))
            finish(recipe, run, tokenizer, f"validation_beam_{recipe.num_beams}", valid)
        else:
            finish(recipe, run, tokenizer, "test", embedded_test(recipe.reverse))


def open_corpus(recipe: Recipe) -> tuple[list[PairSource], list[PairSource]]:
    """Where training and validation pairs are read from."""
    files = recipe.source, recipe.target, recipe.data
    valid_files = recipe.valid_source, recipe.valid_target, recipe.valid_data
    if not any(files):
        if any(valid_files):
            raise ConfigError("validation pairs are given without --source or --data: give the training pairs too")
        corpus = embedded("en_ne", recipe.quiet)
        files, valid_files = (([corpus / f"{name}.en"], [corpus / f"{name}.ne"], []) for name in ("train", "valid"))
    columns = recipe.source_column, recipe.target_column
    return open_sources(*files, *columns), open_sources(*valid_files, *columns)


def settings_of(recipe: Recipe, sources: list[PairSource], valid_sources: list[PairSource]) -> dict[str, Any]:
    """Everything that decides the result, the contents of the files included."""
    own = {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet", "export")}
    files = {name: own.pop(name) for name in ("source", "target", "valid_source", "valid_target")}
    own |= {name: [str(path) for path in paths] for name, paths in files.items()}
    own |= {"tables": own.pop("data"), "valid_tables": own.pop("valid_data")}
    return own | {"data": {source.name: source.fingerprint()[:16] for source in (*sources, *valid_sources)}}


def prepare(
    recipe: Recipe, run: Run, sources: list[PairSource], valid_sources: list[PairSource]
) -> tuple[PairCorpus, Tokenizer]:
    """The corpus and the tokenizer of a run, in RUN/data; what an earlier start has left there is used."""
    directory = run.path / "data"
    if PairCorpus.exists(directory):
        corpus = PairCorpus.open(directory)
    else:
        corpus = PairCorpus.build(
            directory, sources, valid_sources, recipe.filters, recipe.weights, recipe.valid_lines, recipe.reverse
        )
    if not corpus.encoded:
        texts = training_texts(corpus, recipe.model.ignore_case)
        tokenizer = SentencePieceTokenizer.train(texts, recipe.model.vocab_size, recipe.tokenizer, recipe.training.seed)
        tokenizer.save(directory)
        corpus.encode(tokenizer, recipe.model.max_length, recipe.model.ignore_case)
    return corpus, load_tokenizer(directory)


def training_texts(corpus: PairCorpus, ignore_case: bool) -> Iterator[str]:
    """All training sentences, sources as the model will read them."""
    for source, target in zip(corpus.texts("train", "source"), corpus.texts("train", "target"), strict=True):
        yield from (spaced(source, ignore_case), spaced(target))


def make_trainer(recipe: Recipe, run: Run, corpus: PairCorpus, tokenizer: Tokenizer) -> Trainer:
    evaluate = functools.partial(evaluate_pairs, tokenizer=tokenizer, pairs=corpus.example_texts("valid"))
    build = functools.partial(Seq2Seq, replace(recipe.model, vocab_size=tokenizer.vocab_size))
    task = make_task(recipe, corpus, tokenizer)
    return Trainer(build, task, recipe.training, run, tokenizer, evaluate, recipe.quiet)


def make_task(recipe: Recipe, corpus: PairCorpus, tokenizer: Tokenizer) -> TranslationTask:
    """The pairs as training reads them: with sampled subwords where that is asked for."""
    alpha, model, texts = recipe.training.subword_alpha, recipe.model, corpus.example_texts("train")
    sampler = SubwordSampler(tokenizer, texts, alpha, model.max_length, model.ignore_case) if alpha else None
    return TranslationTask(
        corpus.examples("train"),
        corpus.examples("valid"),
        tokenizer.vocab_size,
        recipe.training.label_smoothing,
        sampler=sampler,
        repeats=corpus.repeats(),
    )


def embedded_test(reverse: bool) -> Pairs:
    """Sentences of the embedded corpus whose combinations of words no training sentence has."""
    corpus = embedded("en_ne")
    pairs = read_pairs(corpus / "test.en", corpus / "test.ne")
    return [(target, source) for source, target in pairs] if reverse else pairs


def evaluate_pairs(model: Seq2Seq, tokenizer: Tokenizer, pairs: Sequence[tuple[str, str]]) -> Evaluation:
    """Scores on all pairs, translated greedily, and four of them to look at."""
    sources, targets = zip(*pairs, strict=True)
    translations = Translator(model, tokenizer).translate(sources)
    scores = bleu_chrf(targets, translations)
    step = max(1, len(pairs) // 4)
    samples = [f"{sources[i]} -> {translations[i]}" for i in range(step // 2, len(pairs), step)][:4]
    return Evaluation(scores.to_dict(), samples)


def finish(recipe: Recipe, run: Run, tokenizer: Tokenizer, name: str, pairs: Pairs) -> Scores:
    """Score the best checkpoint on pairs, record the scores with it under a name, and show some translations."""
    directory = run.named("best")
    model = load_model(directory)
    if recipe.export:
        model.vector[:] = model.vector.astype(np.float16)  # the scores below are then those of what is exported
    sources, targets = zip(*pairs, strict=True)
    translations = Translator(model, tokenizer).translate(sources, num_beams=recipe.num_beams)
    scores = bleu_chrf(targets, translations)
    metrics = read_metrics(directory) | {name: scores.to_dict()}
    save_metrics(directory, metrics)
    if recipe.export:
        export(recipe.export, model, metrics, tokenizer)
    lines = []
    for index in range(0, len(pairs), max(1, len(pairs) // 12)):
        verdict = "" if translations[index] == targets[index] else f"    (reference: {targets[index]})"
        lines += [sources[index], f"    {translations[index]}{verdict}"]
    figures = f"chrF {scores.chrf:.1f} ({scores.chrf_signature}), BLEU {scores.bleu:.1f} ({scores.bleu_signature})"
    lines.append(f"{len(pairs)} held-out sentences: exact match {scores.exact_match:.1f} %, {figures}")
    emit([*lines, f"translate with: toolkit translate --model {recipe.run}"])
    return scores


if __name__ == "__main__":
    run_recipe(defaults, main)
