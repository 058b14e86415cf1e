"""The recipe of a translator: English–Nepali on the embedded corpus by default, any other pairs by settings.

The run is a directory of checkpoints that `toolkit translate --model RUN` reads.
"""

import re
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from random import Random
from shutil import copytree, ignore_patterns
from typing import Any, ClassVar, Literal

from toolkit.data.embedded import embedded
from toolkit.data.filters import Filters
from toolkit.data.lines import read_pairs
from toolkit.data.pair_corpus import PairCorpus
from toolkit.data.pairs import CarriedPairs, PairSource, open_sources
from toolkit.data.sentence_boundaries import divided
from toolkit.data.sentences import SubwordSampler, spaced
from toolkit.decoding import GenerationConfig
from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.evaluation.scores import bleu_chrf
from toolkit.models.reward import copy_values
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import read_model
from toolkit.recipes.recipe import Recipe, refuse
from toolkit.recipes.start import (
    Start,
    check_shape,
    config_of_start,
    read_start,
    samples_subwords,
    strange_tokens,
    tuned,
)
from toolkit.speller import NAMES, save_spellings
from toolkit.tokenization import SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.tokenization.carrying import Carrier, has_marks
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.task import Evaluation, Evaluator
from toolkit.training.trainer import Trainer
from toolkit.training.translation import TranslationTask, describe
from toolkit.translator import Translator

Pairs = Sequence[tuple[str, str]]

# For some thousand sentences that people wrote: a large model, which only dropout and sampled subwords keep from
# learning them by heart.
OWN_MODEL = Seq2SeqConfig(
    vocab_size=2000, ignore_case=True, embedding_dropout=0.3, activation_dropout=0.3, residual_dropout=0.3
)
OWN_TRAINING = TrainingConfig(updates=1500, validate_every=250, subword_alpha=0.2)

# For the embedded corpus, which is small and without noise: nothing has to be dropped out of it.
NO_DROPOUT = dict.fromkeys(("embedding_dropout", "attention_dropout", "activation_dropout", "residual_dropout"), 0.0)
SMALL_SHAPE = {"d_model": 128, "num_heads": 4, "d_ff": 512, "encoder_layers": 2, "decoder_layers": 2}
SMALL_MODEL = replace(OWN_MODEL, norm_position="post", **SMALL_SHAPE, **NO_DROPOUT)
SHORT_TRAINING = TrainingConfig(
    updates=5000, tokens_per_batch=500, learning_rate=2.5e-3, warmup=250, validate_every=1250, best_by="loss"
)


# For everyday English and Nepali: what people say, written by hand, with grammars, names and numbers.
EVERYDAY_MODEL = Seq2SeqConfig(
    vocab_size=8000, ignore_case=True, embedding_dropout=0.1, activation_dropout=0.1, residual_dropout=0.1
)
EVERYDAY_TRAINING = TrainingConfig(
    updates=6600,
    tokens_per_batch=2000,
    optimizer="muon",
    learning_rate=5e-3,
    warmup=200,
    validate_every=1650,
    subword_alpha=0.3,
    best_by="chrf",
)
# Its kinds of pairs, and how often each is seen in an epoch; what was typed in a hurry is only read.
_BOTH = {"everyday:sentences": 3.0, "everyday:swaps": 1.0, "everyday:grammar": 1.0, "everyday:names": 2.0}
EVERYDAY, EVERYDAY_REVERSE = _BOTH | {"everyday:typed": 1.5, "en_ne": 2.0}, _BOTH | {"everyday:worded": 3.0}

# For names and other unknown words, spelled letter by letter. Of four names one is Nepali: it is seen oftener.
SPELLINGS = {"everyday:english-spellings": 1.0, "everyday:foreign-spellings": 1.0, "everyday:nepali-spellings": 1.5}
NAMES_SHAPE = {"d_model": 256, "num_heads": 8, "d_ff": 1024, "encoder_layers": 3, "decoder_layers": 3}
NAMES_MODEL = replace(OWN_MODEL, vocab_size=420, split_sentences=False, **NAMES_SHAPE)
NAMES_MODEL = replace(NAMES_MODEL, **NO_DROPOUT | {"activation_dropout": 0.05, "residual_dropout": 0.05})
NAMES_TRAINING = replace(
    EVERYDAY_TRAINING, updates=7000, warmup=100, validate_every=1750, subword_alpha=0.0, best_by="chrf"
)

NOT_NAMES = ignore_patterns("training")  # what a checkpoint keeps for going on

# For some hundred sentences, in a model that is to keep what it has learned before.
FINE_TUNING = TrainingConfig(updates=600, tokens_per_batch=1000, learning_rate=3e-3, warmup=50, validate_every=200)

# A task of numbers or signs is one where more of the sources than this have no words; of real texts, 1 in 4,000 do.
WITHOUT_WORDS = 1 / 20
_LOOKED_AT = 10_000  # sources

# Pairs that are translated together at a validation: more take less time, and fewer are divided among more workers.
_PIECE = 32


@dataclass(frozen=True)
class Settings(Recipe):
    """Train a translator and show what it does with sentences it has never seen.

    With --source or --data, the defaults of --model and --training are those for a few thousand real sentences; with
    --start, those for some hundred, and --model is that model's.
    """

    examples = (
        "",
        "--run own --source my.en --target my.ne",
        "--run back --data pairs.tsv --reverse",
        "--start en-ne-small --source my.en --target my.ne",
    )

    run: Path = Path("checkpoints/translation")
    start: str = ""
    """Translator to go on with: a directory, a run, the name of a shipped one. It keeps its vocabulary and its shape.
    Default: begin from nothing."""
    source: tuple[Path, ...] = ()
    """Text files of source sentences, one a line. Default: the embedded English–Nepali corpus."""
    target: tuple[Path, ...] = ()
    """As many files with their translations, line by line."""
    data: tuple[str, ...] = ()
    """Tables of pairs (.tsv, .csv, .jsonl, .parquet), or data sets in the layout of the Hub: a directory or
    OWNER/NAME, either also as NAME:CONFIG:SPLIT. en_ne: the embedded corpus, to be mixed with others."""
    source_column: str = "en"
    """Column of the source sentences in --data. 1, 2, ... count the columns of a table without a header."""
    target_column: str = "ne"
    """Column of their translations."""
    preset: Literal["", "everyday", "names"] = ""
    """everyday: the translator for everyday life, which takes an hour; names: the small one that spells what it does
    not know. --source and --data then add to their pairs."""
    weights: tuple[float, ...] = ()
    """Times that a pair is seen in an epoch, one number for each of --source and --data in turn. Default: once."""
    valid_source: tuple[Path, ...] = ()
    """Validation sentences. Default: pairs taken evenly out of the training pairs."""
    valid_target: tuple[Path, ...] = ()
    """Their translations."""
    valid_data: tuple[str, ...] = ()
    """Tables of validation pairs."""
    valid_lines: int = 200
    """Number of pairs that are taken out where no validation pairs are given."""
    reverse: bool = False
    """Translate from target to source."""
    source_language: str = ""
    """Language that it reads, such as npi_Deva, npi or ne, where --start knows several. Default: that model's."""
    target_language: str = ""
    """Language that it writes, likewise."""
    tokenizer: Literal["unigram", "bpe"] = "unigram"
    """Subword algorithm, of SentencePiece."""
    carry: bool = False
    """Carry over numbers, addresses of mail and pages, and words that no training pair has, in place of translating
    them. Then every character has a token of its own."""
    names: str = ""
    """With --carry, the model that spells unknown words in the other script (see --preset names): it is copied into the
    best checkpoint."""
    num_beams: int = 4
    """Beams of the final translations; validation decodes greedily."""
    filters: Filters = field(default_factory=Filters)
    model: Seq2SeqConfig = field(default_factory=lambda: SMALL_MODEL)
    training: TrainingConfig = field(default_factory=lambda: SHORT_TRAINING)

    deciding: ClassVar = ("start", "source", "data", "preset")

    __repr__ = short_repr

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> "Settings":
        """Give the defaults: own sentences are fewer and noisier than the embedded ones, and have other defaults."""
        if name := given.get("start"):
            config, alpha = config_of_start(name, Seq2SeqConfig), 0.2 if samples_subwords(name) else 0.0
            training = replace(tuned(FINE_TUNING, config), subword_alpha=alpha)
            return cls(start=name, model=config, training=training, valid_lines=50)
        if given.get("preset") == "everyday":
            return cls(preset="everyday", carry=True, model=EVERYDAY_MODEL, training=EVERYDAY_TRAINING)
        if given.get("preset"):
            return cls(preset="names", model=NAMES_MODEL, training=NAMES_TRAINING)
        return cls(model=OWN_MODEL, training=OWN_TRAINING) if given else cls()

    @property
    def mixture(self) -> dict[str, float]:
        """The kinds of embedded pairs that a preset mixes with those that are given, and their weights."""
        everyday = EVERYDAY_REVERSE if self.reverse else EVERYDAY
        return {"": {}, "everyday": everyday, "names": SPELLINGS}[self.preset]

    def languages(self) -> tuple[str, ...]:
        """Name them by the settings, the ends of file names, as in my.en and my.ne, or the names of columns."""
        if self.source_language and self.target_language:
            return self.source_language.split("_")[0], self.target_language.split("_")[0]
        if self.source:
            sides = [{path.suffix.removeprefix(".") for path in paths} for paths in (self.source, self.target)]
        else:  # the embedded pairs have the names that are the defaults of columns
            sides = [{self.source_column}, {self.target_column}]
        names = [next(iter(side)) for side in sides if len(side) == 1]
        if len({*names}) < 2 or not all(re.fullmatch("[a-z]{2}", name) for name in names):
            return ()
        return tuple(names[::-1] if self.reverse else names)

    def check(self) -> None:
        GenerationConfig(num_beams=self.num_beams)
        super().check()
        learned = self.start and (self.tokenizer != Settings.tokenizer or self.carry)
        both = self.start and self.preset
        named = not self.start and (self.source_language or self.target_language)
        refuse(
            (self.names and not self.carry, "--names spells what --carry carries over: give both, or none"),
            (both, "--start has a shape and pairs of its own: leave out --preset, and name its pairs by --data"),
            (
                learned,
                "the vocabulary of a model that is given with --start is its own: leave out --tokenizer and --carry",
            ),
            (named, "--source-language and --target-language are for a model that --start gives: leave them out"),
        )
        if self.start:
            check_shape(self.start, self.model)


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from texts to a model and its scores."""
    before = opened_start(recipe) if recipe.start else None
    carry = recipe.carry or bool(before and before.tokenizer.carrier)
    sources, valid_sources = open_corpus(recipe, carry)
    digests = {each.name: each.fingerprint()[:16] for each in (*sources, *valid_sources)}
    digests |= recipe.digests({}, start=before.model) if before else {}
    with recipe.opened(recipe.settings(digests), command) as (run, saved):
        run.origin = before.origin if before else {}
        corpus, tokenizer = prepare(recipe, run, sources, valid_sources, before and before.tokenizer)
        words = has_words(corpus.example_texts("train"))
        split = recipe.model.split_sentences and (words or before is not None)
        build = partial(Seq2Seq, replace(recipe.model, vocab_size=tokenizer.vocab_size, split_sentences=split))
        held_out = corpus.example_texts("valid")
        evaluator = PairEvaluator(keeping_marks(tokenizer, held_out), held_out)
        task = make_task(recipe, corpus, tokenizer)
        begin = partial(copy_values, before.model) if before else None
        trainer = Trainer(build, task, recipe.training, run, tokenizer, evaluator, recipe.quiet, begin)
        told = [*corpus.describe(), describe(corpus.examples("train"))]
        if before:  # of what is validated on too: old pairs among those to train on hide what the new ones are like
            told += strange_tokens(tokenizer, corpus.stores("train") | corpus.stores("valid"))
        if recipe.model.split_sentences and not words:
            what = "the model reads texts as they are, not by sentences"
            what = "they are copied, unless you add --model.no-split-sentences" if split else what
            told.append(f"more than 1 in 20 sources have no words: {what}")
        recipe.fit(trainer, saved, *told, size=f", {tokenizer.vocab_size} tokens")
        if recipe.source or recipe.data or recipe.preset:
            name, pairs = f"validation_beam_{recipe.num_beams}", list(held_out)
        else:
            corpus, sides = embedded("en_ne", recipe.quiet), ("ne", "en") if recipe.reverse else ("en", "ne")
            name, pairs = "test", read_pairs(*(corpus / f"test.{side}" for side in sides))
        first = Translator(before.model, keeping_marks(before.tokenizer, pairs)) if before else None
        reads = keeping_marks(tokenizer, pairs)
        recipe.finish(run, tokenizer, lambda model, _: score(recipe, Translator(model, reads), name, pairs, first))
        for directory in filter(None, (run.named("best"), recipe.export)):
            if recipe.preset == "names":
                save_spellings(directory, chain(*map(corpus.example_texts, ("train", "valid"))))
            if names := recipe.names or (before and before.names):
                read_model(names, partial(copytree, dst=directory / NAMES, dirs_exist_ok=True, ignore=NOT_NAMES))
    return run


def opened_start(recipe: Settings) -> Start:
    """Read the model to go on with, for the languages that are asked for."""
    found = read_start(recipe.start, Seq2SeqConfig)
    if recipe.training.subword_alpha and not isinstance(found.tokenizer, SentencePieceTokenizer):
        told = f"subwords are sampled by tokenizers that were made here, and {recipe.start} has another"
        raise ConfigError(f"{told}: leave out --training.subword-alpha")
    asked, languages = (recipe.source_language or None, recipe.target_language or None), found.tokenizer.languages
    if languages is None:
        refuse(
            (any(asked), f"{recipe.start} has no languages to choose: leave out --source-language, --target-language")
        )
        return found
    languages = languages.between(*asked)
    for side in ("source", "target"):
        languages.token(side)  # which raises where it must be said
    return found._replace(tokenizer=found.tokenizer.with_languages(languages))


def open_corpus(recipe: Settings, carry: bool = False) -> tuple[list[PairSource], list[PairSource]]:
    """Find where training and validation pairs are read from; carry: put marks where numbers are carried over."""
    files = recipe.source, recipe.target, (*recipe.data, *recipe.mixture)
    valid_files = recipe.valid_source, recipe.valid_target, recipe.valid_data
    if recipe.preset == "everyday" and not any(valid_files):
        valid_files = (), (), ("everyday:sentences",)
    if not any(files):
        mistake = "validation pairs are given without --source or --data: give the training pairs too"
        refuse((any(valid_files), mistake))
        corpus = embedded("en_ne", recipe.quiet)
        files, valid_files = (([corpus / f"{name}.en"], [corpus / f"{name}.ne"], []) for name in ("train", "valid"))
    columns = recipe.source_column, recipe.target_column
    sources = open_sources(*files, *columns)
    return [*map(CarriedPairs, sources)] if carry else sources, open_sources(*valid_files, *columns, "valid")


def prepare(
    recipe: Settings, run: Run, sources: list[PairSource], valid_sources: list[PairSource], tokenizer: Tokenizer | None
) -> tuple[PairCorpus, Tokenizer]:
    """Make the corpus and the tokenizer of a run, in RUN/data; what an earlier start has left there is used.

    tokenizer: one to use in place of a new one.
    """
    directory, model = run.path / "data", recipe.model
    weights = recipe.weights or ((1.0,) * (len(sources) - len(recipe.mixture)) if recipe.preset else ())
    given = recipe.filters, (*weights, *recipe.mixture.values()), recipe.valid_lines, recipe.reverse
    corpus = PairCorpus.made(directory, sources, valid_sources, *given)
    if not corpus.encoded:
        if tokenizer is None:
            pairs = zip(corpus.texts("train", "source"), corpus.texts("train", "target"), strict=True)
            texts = (text for one, two in pairs for text in (spaced(one, model.ignore_case), spaced(two)))
            kind = model.vocab_size, recipe.tokenizer, recipe.training.seed
            tokenizer = SentencePieceTokenizer.train(texts, *kind, split_digits=recipe.carry)
            if recipe.carry:
                tokenizer.carrier = Carrier.of(*(corpus.texts("train", side) for side in ("source", "target")))
        elif tokenizer.carrier:
            tokenizer = copy(tokenizer)
            tokenizer.carrier = tokenizer.carrier.with_words(corpus.texts("train", "source"))
        tokenizer.save(directory)
        corpus.encode(tokenizer, model.max_length, model.ignore_case)
    return corpus, load_tokenizer(directory)


def keeping_marks(tokenizer: Tokenizer, pairs: Pairs) -> Tokenizer:
    """Give the tokenizer by which pairs are translated: of those with marks in them nothing is carried over again."""
    if not tokenizer.carrier or not any(has_marks(source) for source, _ in pairs):
        return tokenizer
    found = copy(tokenizer)
    found.carrier = None
    return found


def has_words(pairs: Pairs) -> bool:
    """Say if the sources are sentences: a task of numbers or signs would only be copied by who divides its texts.

    Of many pairs some are looked at, the same ones each time.
    """
    places = Random(0).sample(range(len(pairs)), min(len(pairs), _LOOKED_AT))
    return sum(not divided(pairs[place][0]).spans for place in places) <= len(places) * WITHOUT_WORDS


def make_task(recipe: Settings, corpus: PairCorpus, tokenizer: Tokenizer) -> TranslationTask:
    """Take the pairs as training reads them: with sampled subwords where that is asked for."""
    alpha, model, texts = recipe.training.subword_alpha, recipe.model, corpus.example_texts("train")
    sampler = SubwordSampler(tokenizer, texts, alpha, model.max_length, model.ignore_case) if alpha else None
    sets, smoothing = map(corpus.examples, ("train", "valid")), recipe.training.label_smoothing
    return TranslationTask(*sets, tokenizer.vocab_size, smoothing, sampler=sampler, repeats=corpus.repeats())


class PairEvaluator(Evaluator):
    """Scores all pairs, translated greedily, and picks four of them to look at."""

    def __init__(self, tokenizer: Tokenizer, pairs: Pairs):
        self._tokenizer, self._pairs = tokenizer, pairs

    def pieces(self) -> list[list[int]]:
        """Cut the numbers of the pairs, longest sources first, which are translated in about as many steps."""
        order = sorted(range(len(self._pairs)), key=lambda number: -len(self._pairs[number][0]))
        return [order[begin : begin + _PIECE] for begin in range(0, len(order), _PIECE)]

    def answers(self, model: Seq2Seq, pieces: Sequence[Sequence[int]]) -> list[list[str]]:
        translator = Translator(model, self._tokenizer)
        return [translator.translate([self._pairs[number][0] for number in piece]) for piece in pieces]

    def result(self, answers: Sequence[list[str]]) -> Evaluation:
        numbers, (sources, targets) = chain.from_iterable(self.pieces()), zip(*self._pairs, strict=True)
        found = dict(zip(numbers, chain.from_iterable(answers), strict=True))
        translations = [found[number] for number in range(len(found))]
        step = max(1, len(found) // 4)
        samples = [f"{sources[i]} -> {translations[i]}" for i in range(step // 2, len(found), step)][:4]
        return Evaluation(bleu_chrf(targets, translations).to_dict(), samples)


def score(
    recipe: Settings, translator: Translator, name: str, pairs: Pairs, before: Translator | None
) -> tuple[dict[str, Any], list[str]]:
    """Score translations of pairs, record the scores under a name, and show some; with those of a model before."""
    sources, targets = zip(*pairs, strict=True)
    translations = translator.translate(sources, num_beams=recipe.num_beams)
    scores, lines = bleu_chrf(targets, translations), []
    found = {name: scores.to_dict()}
    for index in range(0, len(pairs), max(1, len(pairs) // 12)):
        verdict = "" if translations[index] == targets[index] else f"    (reference: {targets[index]})"
        lines += [sources[index], f"    {translations[index]}{verdict}"]
    figures = f"chrF {scores.chrf:.1f} ({scores.chrf_signature}), BLEU {scores.bleu:.1f} ({scores.bleu_signature})"
    lines.append(f"{len(pairs)} held-out sentences: exact match {scores.exact_match:.1f} %, {figures}")
    if before:
        first = bleu_chrf(targets, before.translate(sources, num_beams=recipe.num_beams))
        found[f"{name}_before"] = first.to_dict()
        lines.append(f"before: exact match {first.exact_match:.1f} %, chrF {first.chrf:.1f}, BLEU {first.bleu:.1f}")
    return found, [*lines, f"translate with: toolkit translate --model {recipe.run}"]
