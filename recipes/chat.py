"""Fine-tune a language model on conversations, so that it answers: the embedded ones by default, any others by flags.

    python recipes/language_model.py --preset chat --run checkpoints/base   # first what it should know
    python recipes/chat.py --start checkpoints/base                         # then how to converse
    python recipes/chat.py                                                  # or both at once, from nothing
    python recipes/chat.py --start checkpoints/base --conversations my.jsonl

The loss is on replies and their end markers alone. The result is a run: a directory of checkpoints that
`toolkit chat --model RUN` reads, and that recipes/preference.py goes on with.
"""

import functools
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from toolkit.api import load_language_model
from toolkit.commands.console import aligned, emit
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
from toolkit.data.conversation_corpus import ConversationCorpus
from toolkit.data.conversations import Question, read_conversations, read_tests
from toolkit.data.embedded import CORPORA, make_embedded
from toolkit.data.lines import digest_of_files, refuse_pipe
from toolkit.errors import ConfigError, DataError
from toolkit.evaluation.replies import (
    EvaluatedReply,
    Style,
    evaluate_replies,
    fitting_questions,
    generate_replies,
    one_line,
    summary,
    table,
)
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.nn.module import Model
from toolkit.tokenization import SentencePieceTokenizer, Tokenizer
from toolkit.tokenization.chat_template import ChatTemplate, make_template
from toolkit.training.config import TrainingConfig
from toolkit.training.language import LanguageTask, ReplyMask, begin_from
from toolkit.training.run import Run
from toolkit.training.trainer import Evaluation, Trainer

DATA = CORPORA / "chat"
EMBEDDED = DATA / "train-1.jsonl", DATA / "train-2.jsonl"

CHAT_TRAINING = TrainingConfig(
    updates=6000,
    tokens_per_batch=1024,
    optimizer="muon",
    learning_rate=8e-4,
    warmup=100,
    weight_decay=0.1,
    beta2=0.95,
    eps=1e-8,
    label_smoothing=0.0,
    validate_every=1000,
    best_by="loss",
)


@dataclass(frozen=True)
class Recipe:
    """Teach a language model to converse."""

    run: Path = Path("checkpoints/chat-model")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
    start: str = ""
    """Model to go on with: a directory, a run or the name of a shipped one. Default: begin from nothing."""
    conversations: tuple[Path, ...] = ()
    """JSON lines, {"messages": [...]} or prompt and completion. Default: the embedded dialogues."""
    valid_conversations: tuple[Path, ...] = ()
    """To validate on. Default: a part of the others."""
    valid_share: float = 0.05
    """How many of the conversations are taken out where none are given to validate on."""
    tests: Path | None = None
    """Questions with the replies that are right (JSON lines), asked at the end. Default: the embedded ones."""
    style: Path = DATA / "style.json"
    """Sentences that open and close a polite reply; the tests judge what is between them."""
    template: Literal["control", "plain"] = "control"
    """How a conversation is written: with control symbols, or as plain text, "User: ..." and "Assistant: ..."."""
    seeds: tuple[int, ...] = ()
    """Train once with each of these seeds, in RUN/seed-1 and so on; `toolkit runs RUN` compares them."""
    export: Path | None = None
    """Directory for the best model by itself: in float16, without what only training needs."""
    quiet: bool = False
    """Print results only."""
    model: GPTConfig = field(default_factory=lambda: PRESETS["chat"])
    training: TrainingConfig = field(default_factory=lambda: CHAT_TRAINING)


def defaults(arguments: Sequence[str]) -> Recipe:
    """The defaults, whatever the words. Raises ConfigError where files are asked for and none is named."""
    words_after(("--conversations", "--valid-conversations"), arguments)
    return Recipe()


def main(recipe: Recipe) -> None:
    check(recipe)
    for_each_seed(recipe, train)


def check(recipe: Recipe) -> None:
    """Raises ConfigError for settings that do not fit together."""
    check_results(recipe.seeds, recipe.export)
    if recipe.training.best_by != "loss":
        raise ConfigError("a chat model is compared by its loss: leave out --training.best-by")
    if recipe.training.subword_alpha:
        raise ConfigError("subwords are sampled for translation only: leave out --training.subword-alpha")
    if recipe.start and recipe.model != PRESETS["chat"]:
        raise ConfigError("the shape of a model that is given with --start is its own: leave out --model.*")
    if recipe.valid_conversations and not recipe.conversations:
        raise ConfigError("--valid-conversations is given without --conversations: give those to train on too")


def train(recipe: Recipe) -> None:
    """One run, from conversations to a model and what it replies."""
    before = load_language_model(recipe.start) if recipe.start else None
    given, valid, tests = sources_of(recipe)
    style = Style.read(recipe.style)
    with opened(recipe.run, settings_of(recipe, before, given, valid, tests), recipe.resume) as (run, saved):
        with preparing(run):
            tokenizer = before.tokenizer if before else learned_tokenizer(recipe, given)
            config = shape(recipe, before, tokenizer)
            template = make_template(recipe.template, tokenizer, config.begin)
            corpus = prepare(recipe, run, template, config, given, valid)
            questions = askable(recipe, template, config, tests) if tests else []
            evaluate = functools.partial(
                some_replies, template=template, questions=questions[:: len(questions) // 4 or 1][:4]
            )
            trainer = make_trainer(recipe, run, corpus, config, template, before, evaluate)
        tell(recipe.quiet, *corpus.describe(), f"{trainer.model.parameter_count:,} parameters")
        carry_out(trainer, saved, recipe.quiet)
        finish(recipe, run, trainer.task, template, questions, style)


def sources_of(recipe: Recipe) -> tuple[list[Path], list[Path], Path | None]:
    """Conversations to train and to validate on, and the questions that are asked at the end, if there are any.

    Raises DataError for what can be read only once.
    """
    given, valid, tests = list(recipe.conversations), list(recipe.valid_conversations), recipe.tests
    if not given:
        given, valid, tests = list(EMBEDDED), [DATA / "valid.jsonl"], tests or DATA / "test.jsonl"
    files = [*given, *valid, *([tests] if tests else []), recipe.style]
    make_embedded(files, recipe.quiet)
    for path in files:
        refuse_pipe(path)
    return given, valid, tests


def settings_of(
    recipe: Recipe, before: LanguageModel | None, given: list[Path], valid: list[Path], tests: Path | None
) -> dict[str, Any]:
    """Everything that decides the result, the contents of the files and the values of the first model included."""
    own = {key: value for key, value in asdict(recipe).items() if key not in ("run", "resume", "quiet", "export")}
    own |= {name: [str(path) for path in own.pop(name)] for name in ("conversations", "valid_conversations")}
    own |= {"tests": shown(tests) if tests else "", "style": shown(recipe.style)}
    if before:
        own.pop("model")  # it has its own
    files = [*given, *valid, *([tests] if tests else []), recipe.style]
    data = {shown(path): digest_of_files([path])[:16] for path in files}
    started = {"start": hashlib.sha256(before.model.vector).hexdigest()[:16]} if before else {}
    return own | {"data": data | started}


def shown(path: Path) -> str:
    """How a file is named in settings: those of this project without the directory that it lies in."""
    return f"data/chat/{path.name}" if path.parent == DATA else str(path)


def learned_tokenizer(recipe: Recipe, given: list[Path]) -> Tokenizer:
    """SentencePiece subwords of what is said in the conversations."""
    texts = (message.content for path in given for each in read_conversations(path) for message in each.messages)
    return SentencePieceTokenizer.train(texts, recipe.model.vocab_size, seed=recipe.training.seed)


def shape(recipe: Recipe, before: LanguageModel | None, tokenizer: Tokenizer) -> GPTConfig:
    """The settings of the model: those it had, or those of the recipe; and from now on it knows a template."""
    config = before.model.config if before else replace(recipe.model, vocab_size=tokenizer.vocab_size)
    return replace(config, template=recipe.template)


def prepare(
    recipe: Recipe, run: Run, template: ChatTemplate, config: GPTConfig, given: list[Path], valid: list[Path]
) -> ConversationCorpus:
    """The conversations of a run as ids, in RUN/data; what an earlier start has left there is used."""
    directory = run.path / "data"
    if ConversationCorpus.exists(directory):
        return ConversationCorpus.open(directory)
    return ConversationCorpus.build(
        directory,
        given,
        valid,
        template,
        config.max_length,
        valid_share=recipe.valid_share,
        seed=recipe.training.seed,
        quiet=recipe.quiet,
    )


def askable(recipe: Recipe, template: ChatTemplate, config: GPTConfig, tests: Path) -> list[Question]:
    """The questions of a file after which the model has room for a reply.  Raises DataError where there are none."""
    questions = list(read_tests(tests))
    found = fitting_questions(questions, template, config.max_length)
    if not found:
        raise DataError(f"{tests} has no question that leaves room for a reply: give shorter ones")
    if len(found) < len(questions):
        tell(recipe.quiet, f"{tests}: left out {len(questions) - len(found)} of {len(questions)} questions, too long")
    return found


def make_trainer(
    recipe: Recipe,
    run: Run,
    corpus: ConversationCorpus,
    config: GPTConfig,
    template: ChatTemplate,
    before: LanguageModel | None,
    evaluate: Callable[[Model], Evaluation],
) -> Trainer:
    task = LanguageTask(
        corpus.ids("train"),
        corpus.ids("valid"),
        config.max_length,
        smoothing=recipe.training.label_smoothing,
        vocab_size=config.vocab_size,
        valid_bytes=corpus.text_bytes("valid"),
        mask=ReplyMask(corpus.supervised("train"), corpus.supervised("valid")),
    )
    start = functools.partial(begin_from, before.model, template.special_ids, recipe.training.seed) if before else None
    build = functools.partial(GPT, config)
    return Trainer(build, task, recipe.training, run, template.tokenizer, evaluate, recipe.quiet, start)


def some_replies(model: GPT, template: ChatTemplate, questions: list[Question]) -> Evaluation:
    """What the model replies by now: nothing to score, something to look at."""
    found = generate_replies(model, template, [question.prompt for question in questions])
    pairs = zip(questions, found, strict=True)
    return Evaluation({}, [one_line(f"{question.prompt[-1].content} → {reply.text}") for question, reply in pairs])


def finish(
    recipe: Recipe, run: Run, task: LanguageTask, template: ChatTemplate, questions: list[Question], style: Style
) -> None:
    """Score the best checkpoint as it will be used, record that with it, and show what it replies."""
    directory = run.named("best")
    model = load_model(directory)
    if recipe.export:
        model.vector[:] = model.vector.astype(np.float16)  # the scores below are then those of what is exported
    scores = task.evaluated(model)
    metrics = read_metrics(directory) | {"validation_full": scores}
    lines = []
    if questions:
        results = evaluate_replies(model, template, questions, style)
        metrics["replies"] = summary(each.judgement for each in results)
        lines = [*shown_replies(results), "", *aligned(table(metrics["replies"]))]
    save_metrics(directory, metrics)
    if recipe.export:
        export(recipe.export, model, metrics, template.tokenizer)
    figures = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in scores.items())
    emit([*lines, f"validation, replies only: {figures}", f"talk with it: toolkit chat --model {recipe.run}"])


def shown_replies(results: list[EvaluatedReply]) -> list[str]:
    """A prompt of each kind with its reply."""
    first = {each.question.kind: each for each in reversed(results)}
    return [" → ".join(each.shown()) for each in first.values()]


if __name__ == "__main__":
    run_recipe(defaults, main)
