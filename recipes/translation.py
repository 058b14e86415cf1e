"""Train a translator: English–Nepali on the embedded corpus by default, any two line-aligned files by flags.

    python recipes/translation.py                                  # the embedded corpus, about two minutes
    python recipes/translation.py --reverse                        # Nepali to English
    python recipes/translation.py --source my.en --target my.ne    # your own sentences

The result is a run: a directory of checkpoints that `toolkit translate --model RUN` reads.
"""

import functools
import shlex
import sys
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.commands.recipe import run_recipe
from toolkit.data.batches import encode_pairs
from toolkit.data.readers import read_pairs
from toolkit.data.sentences import sentence_ids, sentence_text, spaced
from toolkit.decoding import GenerationConfig, generate
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation.scores import Scores, bleu_chrf
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import load_model, read_metrics, replaced_directory, save_metrics, save_model
from toolkit.tokenization import SentencePieceTokenizer, Tokenizer, load_tokenizer
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Evaluation, Trainer
from toolkit.training.translation import TranslationTask, describe

CORPUS = Path(__file__).resolve().parent.parent / "data" / "en_ne"
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


@dataclass(frozen=True)
class Recipe:
    """Train a translator and show what it does with sentences it has never seen."""

    run: Path = Path("checkpoints/translation")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    source: Path | None = None
    """Source sentences, one a line. Default: the embedded English–Nepali corpus."""
    target: Path | None = None
    """Their translations, line by line."""
    valid_source: Path | None = None
    """Validation sentences. Default: lines taken evenly out of the training files."""
    valid_target: Path | None = None
    """Their translations."""
    valid_lines: int = 200
    """How many lines are taken out where no validation files are given."""
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
    model: Seq2SeqConfig = field(default_factory=lambda: SMALL_MODEL)
    training: TrainingConfig = field(default_factory=lambda: SHORT_TRAINING)


def main(recipe: Recipe) -> None:
    train, valid, test = read_corpus(recipe)
    run = Run(recipe.run, settings_of(recipe), shlex.join(["python", *sys.argv]))
    cases = (recipe.model.ignore_case, False)
    if recipe.resume:
        tokenizer = load_tokenizer(run.named("last"))
    else:
        texts = (spaced(text, ignore_case) for pair in train for text, ignore_case in zip(pair, cases, strict=True))
        tokenizer = SentencePieceTokenizer.train(texts, recipe.model.vocab_size, recipe.tokenizer, recipe.training.seed)
    model_config = replace(recipe.model, vocab_size=tokenizer.vocab_size)
    build = functools.partial(Seq2Seq, model_config)
    encode = functools.partial(
        encode_pairs, tokenizer=tokenizer, max_length=model_config.max_length, ignore_case=model_config.ignore_case
    )
    (examples, too_long), (valid_examples, _) = encode(train), encode(valid)
    task = TranslationTask(examples, valid_examples, tokenizer.vocab_size, recipe.training.label_smoothing)
    evaluate = functools.partial(evaluate_pairs, tokenizer=tokenizer, pairs=valid, num_beams=1)

    trainer = Trainer(build, task, recipe.training, run, tokenizer, evaluate, recipe.quiet)
    tell(recipe, f"{describe(examples)}; {too_long} pairs are too long; {trainer.model.parameter_count:,} parameters")
    if not recipe.resume:
        run.create()
    progress = trainer.train(run.resume() if recipe.resume else None)
    if trainer.interrupted:
        tell(recipe, f"stopped at update {progress.update}; add --resume to continue")
        return
    tell(recipe, f"trained {progress.update} updates in {progress.seconds:.0f} s; best: update {progress.best_update}")
    finish(recipe, run, tokenizer, test)


def settings_of(recipe: Recipe) -> dict[str, Any]:
    """Everything that decides the result."""
    own = {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet", "export")}
    return {key: str(value) if isinstance(value, Path) else value for key, value in own.items()}


def read_corpus(recipe: Recipe) -> tuple[Pairs, Pairs, Pairs]:
    """Training, validation and test pairs."""
    if recipe.source is None and recipe.target is None:
        sets = [read_pairs(CORPUS / f"{name}.en", CORPUS / f"{name}.ne") for name in ("train", "valid", "test")]
    elif recipe.source is None or recipe.target is None:
        raise ConfigError("--source and --target go together: give both files or neither")
    else:
        train = read_pairs(recipe.source, recipe.target)
        if recipe.valid_source and recipe.valid_target:
            valid = read_pairs(recipe.valid_source, recipe.valid_target)
        else:
            train, valid = take_out(train, recipe.valid_lines)
        sets = [train, valid, valid]
    if recipe.reverse:
        sets = [[(target, source) for source, target in pairs] for pairs in sets]
    return tuple(sets)


def take_out(pairs: Pairs, count: int) -> tuple[Pairs, Pairs]:
    """The pairs without `count` of them, evenly spaced, and those."""
    if count * 2 > len(pairs):
        raise DataError(f"{len(pairs)} pairs are too few to take {count} out for validation: lower --valid-lines")
    taken = {index * len(pairs) // count for index in range(count)}
    return [p for i, p in enumerate(pairs) if i not in taken], [pairs[i] for i in sorted(taken)]


def translate(model: Seq2Seq, tokenizer: Tokenizer, sentences: list[str], num_beams: int) -> list[str]:
    sources = sentence_ids(tokenizer, sentences, model.config.ignore_case)
    outputs = generate(model, sources, GenerationConfig(num_beams=num_beams))
    return [sentence_text(tokenizer, hypotheses[0].ids) for hypotheses in outputs]


def evaluate_pairs(model: Seq2Seq, tokenizer: Tokenizer, pairs: Pairs, num_beams: int) -> Evaluation:
    """Scores on all pairs, and four of them to look at."""
    translations = translate(model, tokenizer, [source for source, _ in pairs], num_beams)
    scores = bleu_chrf([target for _, target in pairs], translations)
    step = max(1, len(pairs) // 4)
    samples = [f"{pairs[i][0]} -> {translations[i]}" for i in range(step // 2, len(pairs), step)][:4]
    return Evaluation(scores.to_dict(), samples)


def finish(recipe: Recipe, run: Run, tokenizer: Tokenizer, test: Pairs) -> Scores:
    """Score the best checkpoint on the test pairs, record the scores with it, and show some translations."""
    directory = run.named("best")
    model = load_model(directory)
    if recipe.export:
        model.vector[:] = model.vector.astype(np.float16)  # the scores below are then those of what is exported
    translations = translate(model, tokenizer, [source for source, _ in test], recipe.num_beams)
    scores = bleu_chrf([target for _, target in test], translations)
    metrics = {"test": scores.to_dict(), **read_metrics(directory)}
    save_metrics(directory, metrics)
    if recipe.export:
        with replaced_directory(recipe.export) as new:
            save_model(model, new, metrics, half=True)
            tokenizer.save(new)
    for index in range(0, len(test), max(1, len(test) // 12)):
        source, target = test[index]
        verdict = "" if translations[index] == target else f"    (reference: {target})"
        print(f"{source}\n    {translations[index]}{verdict}")
    print(f"{len(test)} held-out sentences: exact match {scores.exact_match:.1f} %, ", end="")
    print(f"chrF {scores.chrf:.1f} ({scores.chrf_signature}), BLEU {scores.bleu:.1f} ({scores.bleu_signature})")
    print(f"translate with: toolkit translate --model {recipe.run}")
    return scores


def tell(recipe: Recipe, line: str) -> None:
    if not recipe.quiet:
        print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    run_recipe(Recipe, main)
