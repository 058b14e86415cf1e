"""The recipe of a model that converses: on the embedded dialogues by default, on any others by settings.

It goes on with a language model, or begins from nothing. The loss is on replies and their end markers alone. The run is
a directory of checkpoints that `toolkit chat --model RUN` reads, and that the recipe of preferences goes on with.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

from toolkit.data.conversation_corpus import ConversationCorpus
from toolkit.data.conversations import Question, read_conversations
from toolkit.data.embedded import CORPORA
from toolkit.display import aligned, short_repr
from toolkit.evaluation import replies
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.recipes.recipe import OF_LANGUAGE, Recipe, figures, refuse
from toolkit.recipes.start import read_start
from toolkit.tokenization import SentencePieceTokenizer, Tokenizer
from toolkit.tokenization.chat_template import ChatTemplate, make_template
from toolkit.training.config import TrainingConfig
from toolkit.training.language import LanguageTask, ReplyMask, begin_from
from toolkit.training.run import Run
from toolkit.training.task import Evaluation, Undivided
from toolkit.training.trainer import Trainer

DATA = CORPORA / "chat"
SPLITS = "train", "valid"
EMBEDDED = DATA / "train-1.jsonl", DATA / "train-2.jsonl"

TRAINING = replace(OF_LANGUAGE, updates=9000, optimizer="muon", learning_rate=8e-4, validate_every=1000)


@dataclass(frozen=True)
class Settings(Recipe):
    """Teach a language model to converse."""

    examples = (
        "",
        "--start chat --conversations my.jsonl --run talk",
    )

    run: Path = Path("checkpoints/chat-model")
    start: str = ""
    """Model to go on with: a directory, a run or the name of a shipped one. Default: begin from nothing."""
    conversations: tuple[Path, ...] = ()
    """JSON lines, {"messages": [...]} or prompt and completion. Default: the embedded dialogues."""
    valid_conversations: tuple[Path, ...] = ()
    """To validate on. Default: a part of the others."""
    valid_share: float = 0.05
    """Share of the conversations that is taken out where none are given to validate on."""
    tests: Path | None = DATA / "test.jsonl"
    """Questions with the replies that are right (JSON lines), asked at the end; none with --no-tests, and by default
    none after own --conversations."""
    style: Path = DATA / "style.json"
    """Sentences that open and close a polite reply; the tests judge what is between them."""
    template: Literal["control", "plain"] = "control"
    """Form of a conversation: with control symbols, or as plain text, "User: ..." and "Assistant: ..."."""
    model: GPTConfig = field(default_factory=lambda: PRESETS["chat"])
    training: TrainingConfig = field(default_factory=lambda: TRAINING)

    deciding: ClassVar = ("conversations",)

    __repr__ = short_repr

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> "Settings":
        """Give the defaults: own conversations have no answers to the embedded questions."""
        return cls(tests=None) if given else cls()

    def languages(self) -> tuple[str, ...]:
        """Name those of the embedded dialogues; of others nothing is known."""
        return () if self.conversations else ("en", "ne")

    def check(self) -> None:
        super().check()
        training, alone = self.training, self.valid_conversations and not self.conversations
        shaped = self.start and self.model != PRESETS["chat"]
        refuse(
            (training.best_by != "loss", "a chat model is compared by its loss: leave out --training.best-by"),
            (training.subword_alpha, "subwords are sampled for translation only: leave out --training.subword-alpha"),
            (shaped, "the shape of a model that is given with --start is its own: leave out --model.*"),
            (alone, "--valid-conversations is given without --conversations: give those to train on too"),
        )


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from conversations to a model and its replies."""
    before = read_start(recipe.start, GPTConfig) if recipe.start else None
    given, valid, tests = recipe.conversations, recipe.valid_conversations, recipe.tests
    if not given:
        given, valid = EMBEDDED, (DATA / "valid.jsonl",)
    recipe.make_ready([recipe.style])
    style = replies.Style.read(recipe.style)
    files = {shown(path): path for path in (*given, *valid, *([tests] if tests else []), recipe.style)}
    digests = recipe.digests(files, **({"start": before.model} if before else {}))
    changed = {"tests": shown(tests) if tests else "", "style": shown(recipe.style)}
    with recipe.opened(recipe.settings(digests, ["model"] if before else [], **changed), command) as (run, saved):
        # Replies end with another mark than the texts for which its authors have set how they decode.
        run.origin = {name: value for name, value in before.origin.items() if name != "generation"} if before else {}
        tokenizer = before.tokenizer if before else learned_tokenizer(recipe, given)
        config = before.model.config if before else replace(recipe.model, vocab_size=tokenizer.vocab_size)
        config = replace(config, template=recipe.template)  # from now on it knows one
        template = make_template(recipe.template, tokenizer, config.begin)
        settings = {"valid_share": recipe.valid_share, "seed": recipe.training.seed, "quiet": recipe.quiet}
        places = run.path / "data", given, valid
        corpus = ConversationCorpus.made(*places, template, config.max_length, **settings)
        questions, left_out = replies.read_questions(tests, template, config.max_length) if tests else ([], 0)
        if left_out:
            recipe.tell(f"{tests}: left out {left_out} of {left_out + len(questions)} questions, too long")
        sets, labels = map(corpus.ids, SPLITS), (recipe.training.label_smoothing, config.vocab_size)
        mask = ReplyMask(*map(corpus.supervised, SPLITS))
        task = LanguageTask(*sets, config.max_length, True, *labels, corpus.text_bytes("valid"), mask)
        evaluator = Undivided(partial(some_replies, template, questions[:: len(questions) // 4 or 1][:4]))
        start = partial(begin_from, before.model, template.special_ids, recipe.training.seed) if before else None
        build = partial(GPT, config)
        trainer = Trainer(build, task, recipe.training, run, tokenizer, evaluator, recipe.quiet, start)
        recipe.fit(trainer, saved, *corpus.describe())
        asked = template, questions, style
        recipe.finish(run, tokenizer, lambda model, _: score(recipe, model, task, asked))
    return run


def shown(path: Path) -> str:
    """Name a file as settings do: those of this project without the directory that it lies in."""
    return f"data/chat/{path.name}" if path.parent == DATA else str(path)


def learned_tokenizer(recipe: Settings, given: Sequence[Path]) -> Tokenizer:
    """Learn SentencePiece subwords from the messages of the conversations."""
    texts = (message.content for path in given for each in read_conversations(path) for message in each.messages)
    return SentencePieceTokenizer.train(texts, recipe.model.vocab_size, seed=recipe.training.seed)


def some_replies(template: ChatTemplate, questions: list[Question], model: GPT) -> Evaluation:
    """Write some replies of the model by now: nothing to score, something to look at."""
    found = replies.generate_replies(model, template, [question.prompt for question in questions])
    asked = (question.prompt[-1].content for question in questions)
    lines = [f"{question} → {reply.text}" for question, reply in zip(asked, found, strict=True)]
    return Evaluation({}, list(map(replies.one_line, lines)))


def score(recipe: Settings, model: GPT, task: LanguageTask, asked: tuple) -> tuple[dict[str, Any], list[str]]:
    """Score a model on the validation set and by its replies, and show one of each kind."""
    scores, found, lines = task.evaluated(model), {}, []
    if asked[1]:  # questions, beside the template and the style
        results = replies.evaluate_replies(model, *asked)
        found["replies"] = replies.summary(each.judgement for each in results)
        first = {each.question.kind: " → ".join(each.shown()) for each in reversed(results)}
        lines = [*first.values(), "", *aligned(replies.table(found["replies"]))]
    lines += [f"validation, replies only: {figures(scores)}", f"talk with it: toolkit chat --model {recipe.run}"]
    return {"validation_full": scores, **found}, lines
