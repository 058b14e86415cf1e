"""Teach a chat model which replies are better: by a reward model and PPO, or directly by DPO.

    python recipes/preference.py --method reward --start checkpoints/chat-model --run checkpoints/reward
    python recipes/preference.py --method ppo --start checkpoints/chat-model --reward checkpoints/reward
    python recipes/preference.py --method dpo --start checkpoints/chat-model --run checkpoints/dpo

The embedded preferences rank polite answers above curt ones, and both above wrong ones. The result is a run, whose
log.jsonl has the curves; `toolkit chat --model RUN` talks with what PPO and DPO have made of the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from toolkit.api import load_language_model
from toolkit.commands.console import aligned
from toolkit.commands.recipe import (
    BY_LOSS,
    Recipe,
    digest_of_model,
    figures,
    preparing,
    refuse,
    run_recipe,
    words_after,
)
from toolkit.data.conversations import Question
from toolkit.data.embedded import CORPORA
from toolkit.data.preferences import Preference, read_preferences
from toolkit.errors import DataError, ModelError
from toolkit.evaluation.replies import (
    EvaluatedReply,
    Style,
    evaluate_replies,
    read_questions,
    sampled_politeness,
    summary,
    table,
)
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import RewardConfig, RewardModel, copy_values, settings_like
from toolkit.models.shelf import read_model
from toolkit.models.storage import load_model
from toolkit.preference import DPOConfig, DPOTask, Pairs, PPOConfig, PPOTask, PPOTrainer, RewardTask, normalized_score
from toolkit.preference.replies import divergence
from toolkit.tokenization import Tokenizer, load_tokenizer
from toolkit.tokenization.chat_template import ChatTemplate, make_template
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer

DATA = CORPORA / "chat"
Ids = list[int]

REWARD_TRAINING = replace(
    BY_LOSS, updates=300, tokens_per_batch=8192, learning_rate=1e-3, warmup=50, beta2=0.95, validate_every=100
)
TRAINING = {
    "reward": REWARD_TRAINING,
    "dpo": replace(REWARD_TRAINING, updates=150, learning_rate=5e-5),
    "ppo": replace(REWARD_TRAINING, updates=40 * 8, learning_rate=5e-5, warmup=16, validate_every=10 * 8),
}


@dataclass(frozen=True)
class Settings(Recipe):
    """Train a reward model, or a chat model by PPO or DPO, on pairs of better and worse replies."""

    run: Path = Path("checkpoints/preference")
    """Directory of the run: checkpoints, log and settings."""
    method: Literal["reward", "ppo", "dpo"] = "ppo"
    """What is trained: a reward model; a chat model by what that says of its replies; or one by the pairs alone."""
    start: str = "checkpoints/chat-model"
    """Chat model to begin with, and not to leave too far behind."""
    reward: str = ""
    """Run or directory of the reward model, for PPO."""
    preferences: Path = DATA / "preferences.train.jsonl"
    """Better and worse replies: JSON lines with chosen and rejected, or rankings."""
    valid_preferences: Path = DATA / "preferences.test.jsonl"
    """The same, to validate on."""
    tests: Path = DATA / "test.jsonl"
    """Questions with the replies that are right (JSON lines), asked before and after."""
    style: Path = DATA / "style.json"
    """Sentences that open and close a polite reply: a rule that training never sees."""
    samples: int = 10
    """Replies before and after that are shown side by side at the end."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    dpo: DPOConfig = field(default_factory=DPOConfig)
    training: TrainingConfig = field(default_factory=lambda: TRAINING["ppo"])

    def check(self) -> None:
        super().check()
        method, training = self.method, self.training
        changed = training.subword_alpha or training.label_smoothing
        refuse(
            (training.best_by != "loss", "preference tuning is compared by its loss: leave out --training.best-by"),
            (changed, "pairs are taken as they are: leave out --training.subword-alpha and label-smoothing"),
            (
                method == "ppo" and not self.reward,
                "PPO needs a reward model: train one with --method reward and name its run with --reward",
            ),
            (method != "ppo" and self.reward, f"--reward is for PPO: leave it out with --method {method}"),
            (
                method == "reward" and self.export,
                "a reward model is not exported, for PPO reads its run: leave out --export",
            ),
            *(
                (
                    method != name and given != default,
                    f"--{name}.* is for {name.upper()}: leave it out with --method {method}",
                )
                for name, given, default in (("ppo", self.ppo, PPOConfig()), ("dpo", self.dpo, DPOConfig()))
            ),
            (self.samples < 0, f"samples is {self.samples}: it must not be negative"),
        )


class Prepared(NamedTuple):
    """All that training needs beside its settings."""

    reference: GPT  # the chat model before
    template: ChatTemplate
    train: Pairs
    valid: Pairs
    questions: list[Question]
    style: Style


def defaults(arguments: Sequence[str]) -> Settings:
    """The defaults for the method that was asked for."""
    method = words_after(("--method",), arguments).get("--method", Settings.method)
    return Settings(training=TRAINING.get(method, TRAINING["ppo"]))


def train(recipe: Settings) -> None:
    """One run, from pairs of replies to a model, and how it replies before and after."""
    chat = load_language_model(recipe.start)
    if chat.model.config.template == "none":
        raise ModelError(f"{recipe.start} was not taught to converse: fine-tune it with recipes/chat.py first")
    template = make_template(chat.model.config.template, chat.tokenizer, chat.model.config.begin)
    judge = reward_model(recipe, chat) if recipe.method == "ppo" else None
    files = {name: getattr(recipe, name) for name in ("preferences", "valid_preferences", "tests", "style")}
    models = {"start": chat.model, **({"reward": judge} if judge else {})}
    digests = recipe.digests(files) | {name: digest_of_model(model) for name, model in models.items()}
    left_out = [*files, *({"ppo", "dpo"} - {recipe.method})]
    with recipe.opened(recipe.settings(digests, left_out)) as (run, saved):
        with preparing(run):
            prepared = prepare(recipe, chat.model, template)
            trainer = make_trainer(recipe, run, prepared, judge)
        told = f"{len(prepared.train):,} pairs to train on, {len(prepared.valid):,} to validate on"
        recipe.fit(trainer, saved, told, f"{trainer.model.parameter_count:,} parameters")
        recipe.finish(run, chat.tokenizer, partial(score, recipe, prepared))


def reward_model(recipe: Settings, chat: LanguageModel) -> RewardModel:
    """Read the judge of PPO.  Raises ModelError where it is another kind of model, of another shape, or reads other ids."""
    model, tokenizer = read_model(recipe.reward, partial(read_reward_model, recipe))
    own, other = (vars(settings_like(GPTConfig, each.config, dropout=False)) for each in (model, chat.model))
    if differ := [name for name in own if own[name] != other[name]]:
        what = ", ".join(differ)
        raise ModelError(f"{recipe.reward} has another {what} than {recipe.start}: train it from the same model")
    readers = tokenizer, chat.tokenizer
    one, two = ([each.piece(token) for token in range(each.vocab_size)] for each in readers)
    if one != two:
        raise ModelError(f"{recipe.reward} reads other tokens than {recipe.start}: train it from the same model")
    return model


def read_reward_model(recipe: Settings, directory: Path) -> tuple[RewardModel, Tokenizer]:
    model = load_model(directory)
    if not isinstance(model, RewardModel):
        raise ModelError(f"{recipe.reward} is no reward model: train one with --method reward")
    return model, load_tokenizer(directory)


def prepare(recipe: Settings, chat: GPT, template: ChatTemplate) -> Prepared:
    """Read the files as ids."""
    limit, parts = chat.config.max_length, []
    for path in (recipe.preferences, recipe.valid_preferences):
        pairs = [pair_ids(template, preference) for preference in read_preferences(path)]
        fitting = [pair for pair in pairs if len(pair[0]) + max(map(len, pair[1:])) <= limit]
        if len(fitting) < len(pairs):
            left_out = f"left out {len(pairs) - len(fitting)} of {len(pairs)} pairs"
            recipe.tell(f"{path}: {left_out}, longer than the model reads")
        if not fitting:
            what = (
                "that the model can read: give shorter conversations" if pairs else "of which one is better: rank them"
            )
            raise DataError(f"{path} has no pair of replies {what}")
        parts.append(Pairs(fitting, limit))
    questions, _ = read_questions(recipe.tests, template, limit)
    return Prepared(chat, template, *parts, questions, Style.read(recipe.style))


def pair_ids(template: ChatTemplate, preference: Preference) -> tuple[Ids, Ids, Ids]:
    """Encode a prompt, up to what opens the reply, and both replies with their end markers.

    Raises DataError, naming the place, for what the tokenizer cannot read.
    """
    try:
        replies = [[*template.content(text), template.end] for text in (preference.chosen, preference.rejected)]
        return template.prompt(preference.prompt), *replies
    except DataError as error:
        raise DataError(f"{preference.place}: {error}") from error


def make_trainer(recipe: Settings, run: Run, prepared: Prepared, judge: RewardModel | None) -> Trainer:
    chat, config, tokenizer = prepared.reference, recipe.training, prepared.template.tokenizer
    if recipe.method == "ppo":
        prompts, end = prompts_of(prepared.train), prepared.template.end
        score = normalized_score(judge, chat, prompts, end, recipe.ppo, config.seed)
        task = PPOTask(prompts, prompts_of(prepared.valid), end, chat, score, recipe.ppo)
        return PPOTrainer(task, config, run, tokenizer, quiet=recipe.quiet)
    if recipe.method == "reward":
        build = partial(RewardModel, settings_like(RewardConfig, chat.config))
        start, task = partial(RewardModel.begin_from, language_model=chat), RewardTask(prepared.train, prepared.valid)
    else:
        build = partial(GPT, settings_like(type(chat.config), chat.config, dropout=False))
        start = partial(copy_values, chat)
        task = DPOTask(prepared.train, prepared.valid, chat, recipe.dpo, config.workers)
    return Trainer(build, task, config, run, tokenizer, quiet=recipe.quiet, start=start)


def prompts_of(pairs: Pairs) -> list[np.ndarray]:
    """Take every prompt once, in order."""
    return list({pair.prompt.tobytes(): pair.prompt for pair in pairs}.values())


def score(
    recipe: Settings, prepared: Prepared, model: GPT | RewardModel, metrics: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """Ask before and after, and show both side by side; of a reward model, show its validation."""
    if recipe.method == "reward":
        return {}, [f"validation: {figures(metrics['validation'])}", f"next: --method ppo --reward {recipe.run}"]
    given = prepared.template, prepared.questions, prepared.style
    results = [evaluate_replies(who, *given) for who in (prepared.reference, model)]
    scores = [summary(each.judgement for each in result) for result in results]
    polite = [sampled_politeness(who, *given) for who in (prepared.reference, model)]
    prompts, end = prompts_of(prepared.valid), prepared.template.end
    moved = divergence(model, prepared.reference, prompts, end, recipe.ppo.max_new_tokens)
    lines = side_by_side(results, recipe.samples)
    for name, each in zip(("before", "after"), scores, strict=True):
        lines += ["", f"{name}:", *aligned(table(each))]
    drawn = f"polite when sampled: {polite[0]:.1f} % before, {polite[1]:.1f} % after"
    lines += ["", drawn, f"KL from the model before: {moved.kl:.2f} ± {moved.error:.2f} nats a reply"]
    found = {"replies_before": scores[0], "replies": scores[1], "kl": moved._asdict()}
    found["polite_when_sampled"] = {"before": polite[0], "after": polite[1]}
    return found, [*lines, f"talk with it: toolkit chat --model {recipe.run}"]


def side_by_side(results: list[list[EvaluatedReply]], count: int) -> list[str]:
    """Tabulate some questions of all kinds, each with the reply before and the one after."""
    before, after = results
    chosen = np.linspace(0, len(before) - 1, count).astype(int)
    rows = [["question", "before", "after"]]
    for index in chosen:
        rows.append([*before[index].shown(), after[index].shown()[1]])
    return aligned(rows, (0, 1, 2))


if __name__ == "__main__":
    run_recipe(defaults, train)
