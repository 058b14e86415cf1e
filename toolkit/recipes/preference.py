"""The recipe of preference tuning: a reward model, and a chat model by PPO or DPO.

The embedded preferences rank polite answers above curt ones, and both above wrong ones. The run's log.jsonl has the
curves; `toolkit chat --model RUN` talks with what PPO and DPO have made of the model.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from toolkit.api import load_language_model
from toolkit.data.conversations import Question
from toolkit.data.embedded import CORPORA
from toolkit.data.preferences import read_preferences
from toolkit.display import aligned, short_repr
from toolkit.errors import ModelError
from toolkit.evaluation import replies
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT
from toolkit.models.reward import RewardConfig, RewardModel, copy_values, settings_like
from toolkit.models.storage import read_model, read_origin, refuse_int8
from toolkit.preference import DPOConfig, DPOTask, Pairs, PPOConfig, PPOTask, PPOTrainer, RewardTask, normalized_score
from toolkit.preference.pairs import by_length, pair_rewards
from toolkit.preference.replies import divergence
from toolkit.preference.reward import read_judge
from toolkit.recipes.recipe import BY_LOSS, Recipe, figures, refuse
from toolkit.tokenization.chat_template import ChatTemplate, make_template
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer

DATA = CORPORA / "chat"
HELD_OUT = 20  # of so many own prompts, one is validated on where no others are given
NO_JUDGE = "PPO needs a reward model: train one with --method reward and name its run with --reward"
NO_EXPORT = "a reward model is not exported, for PPO reads its run: leave out --export"

REWARD_TRAINING = replace(
    BY_LOSS, updates=300, tokens_per_batch=8192, learning_rate=1e-3, warmup=50, beta2=0.95, validate_every=100
)
TRAINING = {
    "reward": REWARD_TRAINING,
    "dpo": replace(REWARD_TRAINING, updates=150, learning_rate=5e-5),
    "ppo": replace(REWARD_TRAINING, updates=15 * 8, learning_rate=5e-5, warmup=16, validate_every=5 * 8),
}


@dataclass(frozen=True)
class Settings(Recipe):
    """Train a reward model, or a chat model by PPO or DPO, on pairs of better and worse replies."""

    examples = (
        "--method reward --start chat --run reward",
        "--method ppo --start chat --reward reward --run ppo",
        "--method dpo --start chat --run dpo",
    )

    run: Path = Path("checkpoints/preference")
    method: Literal["reward", "ppo", "dpo"] = "ppo"
    """Train a reward model; a chat model by the rewards of its replies; or one by the pairs alone."""
    start: str = "checkpoints/chat-model"
    """Chat model to begin with, and not to leave too far behind."""
    reward: str = ""
    """Run or directory of the reward model, for PPO."""
    preferences: Path = DATA / "preferences.train.jsonl"
    """Better and worse replies: JSON lines with chosen and rejected, or rankings."""
    valid_preferences: Path | None = DATA / "preferences.valid.jsonl"
    """The same, to validate on. By default, one in 20 prompts of own --preferences is taken out."""
    tests: Path | None = DATA / "test.jsonl"
    """Questions with the replies that are right (JSON lines), asked before and after; none with --no-tests, and by
    default none after own --preferences."""
    style: Path = DATA / "style.json"
    """Sentences that open and close a polite reply: a rule that training never sees."""
    samples: int = 10
    """Replies before and after that are shown side by side at the end: to the tests, or to prompts validated on."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    dpo: DPOConfig = field(default_factory=DPOConfig)
    training: TrainingConfig = field(default_factory=lambda: TRAINING["ppo"])

    deciding: ClassVar = ("method", "preferences")

    __repr__ = short_repr

    @classmethod
    def defaults(cls, given: Mapping[str, Any]) -> "Settings":
        """Give the defaults for a method; with own preferences nothing embedded is validated on, or asked."""
        recipe = cls(training=TRAINING.get(given.get("method", cls.method), TRAINING["ppo"]))
        return replace(recipe, valid_preferences=None, tests=None) if "preferences" in given else recipe

    def check(self) -> None:
        super().check()
        method, training = self.method, self.training
        changed = training.subword_alpha or training.label_smoothing
        refuse(
            (training.best_by != "loss", "preference tuning is compared by its loss: leave out --training.best-by"),
            (changed, "pairs are taken as they are: leave out --training.subword-alpha and label-smoothing"),
            (method == "ppo" and not self.reward, NO_JUDGE),
            (method != "ppo" and self.reward, f"--reward is for PPO: leave it out with --method {method}"),
            (method == "reward" and self.export, NO_EXPORT),
            (method != "ppo" and self.ppo != PPOConfig(), f"--ppo.* is for PPO: leave it out with --method {method}"),
            (method != "dpo" and self.dpo != DPOConfig(), f"--dpo.* is for DPO: leave it out with --method {method}"),
            (self.samples < 0, f"samples is {self.samples}: it must not be negative"),
        )


def train(recipe: Settings, command: str = "") -> Run:
    """Train once: from pairs of replies to a model, and how it replies before and after."""
    read_model(recipe.start, refuse_int8)
    chat = load_language_model(recipe.start)
    if chat.model.config.template == "none":
        raise ModelError(f"{recipe.start} was not taught to converse: fine-tune it with toolkit train chat first")
    template = make_template(chat.model.config.template, chat.tokenizer, chat.model.config.begin)
    judge = read_judge(recipe.reward, chat, recipe.start) if recipe.method == "ppo" else None
    files = {name: getattr(recipe, name) for name in ("preferences", "valid_preferences", "tests", "style")}
    read = {name: path for name, path in files.items() if path and (recipe.tests or name != "style")}
    digests = recipe.digests(read, start=chat.model, **({"reward": judge} if judge else {}))
    left_out = [*files, *({"ppo", "dpo"} - {recipe.method})]
    with recipe.opened(recipe.settings(digests, left_out), command) as (run, saved):
        run.origin = read_model(recipe.start, read_origin)
        limit = chat.model.config.max_length
        pairs = read_pairs(recipe, template, limit)
        if recipe.tests:
            asked = replies.read_questions(recipe.tests, template, limit)[0], replies.Style.read(recipe.style)
        else:
            asked = validation_prompts(recipe, template, pairs[1]), None
        trainer = make_trainer(recipe, run, chat, template.end, pairs, judge)
        told = f"{len(pairs[0]):,} pairs to train on, {len(pairs[1]):,} to validate on"
        recipe.fit(trainer, saved, told)
        recipe.finish(run, chat.tokenizer, partial(score, recipe, chat.model, template, asked, pairs[1]))
    return run


def read_pairs(recipe: Settings, template: ChatTemplate, limit: int) -> list[Pairs]:
    """Read the pairs to train and to validate on."""
    pairs = Pairs.read(recipe.preferences, template, limit, recipe.tell)
    if not recipe.valid_preferences:
        return list(pairs.parted(HELD_OUT))
    return [pairs, Pairs.read(recipe.valid_preferences, template, limit, recipe.tell)]


def validation_prompts(recipe: Settings, template: ChatTemplate, pairs: Pairs) -> list[Question]:
    """Take the prompts that are validated on as questions, to which no reply is known to be right."""
    read, found = {prompt.tobytes() for prompt in pairs.prompts()}, {}
    for each in read_preferences(recipe.valid_preferences or recipe.preferences):
        found.setdefault(np.array(template.prompt(each.prompt), np.int32).tobytes(), each)
    return [Question(each.prompt, each.kind, (), each.place) for ids, each in found.items() if ids in read]


def make_trainer(
    recipe: Settings, run: Run, chat: LanguageModel, end: int, pairs: list[Pairs], judge: RewardModel | None
) -> Trainer:
    """Choose the model, the task and the trainer of a method."""
    model, config, tokenizer = chat.model, recipe.training, chat.tokenizer
    if recipe.method == "ppo":
        prompts, valid_prompts = (each.prompts() for each in pairs)
        scale = normalized_score(judge, model, prompts, end, recipe.ppo, config.seed)
        task = PPOTask(prompts, valid_prompts, end, model, scale, recipe.ppo)
        return PPOTrainer(task, config, run, tokenizer, quiet=recipe.quiet)
    if recipe.method == "reward":
        build = partial(RewardModel, settings_like(RewardConfig, model.config))
        start, task = partial(RewardModel.begin_from, language_model=model), RewardTask(*pairs)
    else:
        build = partial(GPT, settings_like(type(model.config), model.config, dropout=False))
        start, task = partial(copy_values, model), DPOTask(*pairs, model, recipe.dpo, config.workers)
    return Trainer(build, task, config, run, tokenizer, quiet=recipe.quiet, start=start)


def score(
    recipe: Settings,
    before: GPT,
    template: ChatTemplate,
    asked: tuple[list[Question], replies.Style | None],
    pairs: Pairs,
    model: GPT | RewardModel,
    metrics: dict,
) -> tuple[dict[str, Any], list[str]]:
    """Ask before and after, and show both side by side; of a reward model, show if it has only learned lengths."""
    if recipe.method == "reward":
        found = by_length(pairs, pair_rewards(model, pairs))
        lines = [f"validation: {figures(metrics['validation'])}", found.told()]
        return {"by_length": found._asdict()}, [*lines, f"next: --method ppo --reward {recipe.run}"]
    questions, style = asked
    numbers = np.linspace(0, len(questions) - 1, min(recipe.samples, len(questions))).astype(int)
    if style:
        results = [replies.evaluate_replies(who, template, questions, style) for who in (before, model)]
        written = [[each[number].reply for number in numbers] for each in results]
        found, lines = judged(results, [replies.sampled_manners(who, template, *asked) for who in (before, model)])
    else:
        said = [questions[number].prompt for number in numbers]
        written = [replies.generate_replies(who, template, said) for who in (before, model)]
        found, lines = {}, [""]
    last = [questions[number].prompt[-1].content for number in numbers]
    shown = zip(last, *([reply.text for reply in each] for each in written), strict=True)
    rows = [list(map(replies.one_line, row)) for row in shown]
    table = aligned([["question", "before", "after"], *rows], (0, 1, 2)) if rows else []
    moved = divergence(model, before, pairs.prompts(), template.end, recipe.ppo.max_new_tokens)
    lines += [f"KL from the model before: {moved.kl:.2f} ± {moved.error:.2f} nats a reply"]
    return found | {"kl": moved._asdict()}, [*table, *lines, f"talk with it: toolkit chat --model {recipe.run}"]


def judged(
    results: list[list[replies.EvaluatedReply]], sampled: list[replies.Manners]
) -> tuple[dict[str, Any], list[str]]:
    """Sum up the verdicts on replies before and after, and how many samples are polite, and how long."""
    scores, lines = [replies.summary(each.judgement for each in result) for result in results], []
    for name, each in zip(("before", "after"), scores, strict=True):
        lines += ["", f"{name}:", *aligned(replies.table(each))]
    before, after = sampled
    shares = f"polite {before.polite:.1f} % before, {after.polite:.1f} % after"
    lines += ["", f"sampled: {shares}; {before.letters:.1f} and {after.letters:.1f} letters a reply"]
    both = {"before": before._asdict(), "after": after._asdict()}
    return {"replies_before": scores[0], "replies": scores[1], "sampled": both}, lines
