"""Teach a chat model which replies are better: by a reward model and PPO, or directly by DPO.

    python recipes/preference.py --method reward --start checkpoints/chat-model --run checkpoints/reward
    python recipes/preference.py --method ppo --start checkpoints/chat-model --reward checkpoints/reward
    python recipes/preference.py --method dpo --start checkpoints/chat-model --run checkpoints/dpo

The embedded preferences rank polite answers above curt ones, and both above wrong ones. The result is a run, whose
log.jsonl has the curves; `toolkit chat --model RUN` talks with what PPO and DPO have made of the model.
"""

import functools
import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from toolkit.api import load_language_model
from toolkit.commands.console import aligned, emit
from toolkit.commands.recipe import carry_out, check_results, export, opened, preparing, run_recipe, tell, words_after
from toolkit.data.conversations import Question, read_tests
from toolkit.data.embedded import CORPORA, make_embedded
from toolkit.data.lines import digest_of_files, refuse_pipe
from toolkit.data.preferences import Preference, read_preferences
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.evaluation.replies import (
    EvaluatedReply,
    Style,
    evaluate_replies,
    fitting_questions,
    sampled_politeness,
    summary,
    table,
)
from toolkit.language_model import LanguageModel
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.reward import ActorCritic, RewardConfig, RewardModel, copy_values, settings_like
from toolkit.models.shelf import read_model
from toolkit.models.storage import load_model, read_metrics, save_metrics
from toolkit.preference import DPOConfig, DPOTask, Pairs, PPOConfig, PPOTask, PPOTrainer, RewardTask, normalized_score
from toolkit.preference.replies import divergence
from toolkit.tokenization import Tokenizer, load_tokenizer
from toolkit.tokenization.chat_template import ChatTemplate, make_template
from toolkit.training.config import TrainingConfig
from toolkit.training.run import Run
from toolkit.training.trainer import Trainer, no_more_scores

DATA = CORPORA / "chat"
Ids = list[int]

REWARD_TRAINING = TrainingConfig(
    updates=300,
    tokens_per_batch=8192,
    learning_rate=1e-3,
    warmup=50,
    weight_decay=0.01,
    beta2=0.95,
    eps=1e-8,
    label_smoothing=0.0,
    validate_every=100,
    best_by="loss",
)
TRAINING = {
    "reward": REWARD_TRAINING,
    "dpo": replace(REWARD_TRAINING, updates=150, learning_rate=5e-5),
    "ppo": replace(REWARD_TRAINING, updates=40 * 8, learning_rate=5e-5, warmup=16, validate_every=10 * 8),
}


@dataclass(frozen=True)
class Recipe:
    """Train a reward model, or a chat model by PPO or DPO, on pairs of better and worse replies."""

    method: Literal["reward", "ppo", "dpo"] = "ppo"
    """What is trained: a reward model; a chat model by what that says of its replies; or one by the pairs alone."""
    run: Path = Path("checkpoints/preference")
    """Directory of the run: checkpoints, log and settings."""
    resume: bool = False
    """Continue the run where it stopped."""
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
    export: Path | None = None
    """Directory for the trained model by itself: in float16, without what only training needs."""
    samples: int = 10
    """Replies before and after that are shown side by side at the end."""
    quiet: bool = False
    """Print results only."""
    ppo: PPOConfig = field(default_factory=PPOConfig)
    dpo: DPOConfig = field(default_factory=DPOConfig)
    training: TrainingConfig = field(default_factory=lambda: TRAINING["ppo"])


class Prepared(NamedTuple):
    """What training needs beside its settings."""

    reference: GPT  # the chat model before
    template: ChatTemplate
    train: Pairs
    valid: Pairs
    questions: list[Question]
    style: Style


def defaults(arguments: Sequence[str]) -> Recipe:
    """The defaults for the method that was asked for."""
    method = words_after(("--method",), arguments).get("--method", Recipe.method)
    return Recipe(training=TRAINING.get(method, TRAINING["ppo"]))


def main(recipe: Recipe) -> None:
    check(recipe)
    chat = load_language_model(recipe.start)
    if chat.model.config.template == "none":
        raise ModelError(f"{recipe.start} was not taught to converse: fine-tune it with recipes/chat.py first")
    template = make_template(chat.model.config.template, chat.tokenizer, chat.model.config.begin)
    judge = reward_model(recipe, chat) if recipe.method == "ppo" else None
    settings = settings_of(recipe, chat.model, judge)
    with opened(recipe.run, settings, recipe.resume) as (run, saved):
        with preparing(run):
            prepared = prepare(recipe, chat.model, template)
            trainer = make_trainer(recipe, run, prepared, judge)
        told = f"{len(prepared.train):,} pairs to train on, {len(prepared.valid):,} to validate on"
        tell(recipe.quiet, told, f"{trainer.model.parameter_count:,} parameters")
        carry_out(trainer, saved, recipe.quiet)
        finish(recipe, run, prepared)


def check(recipe: Recipe) -> None:
    """Raises ConfigError for settings that do not fit together."""
    check_results((), recipe.export)
    if recipe.training.best_by != "loss":
        raise ConfigError("preference tuning is compared by its loss: leave out --training.best-by")
    if recipe.training.subword_alpha or recipe.training.label_smoothing:
        raise ConfigError("pairs are taken as they are: leave out --training.subword-alpha and label-smoothing")
    if recipe.method == "ppo" and not recipe.reward:
        raise ConfigError("PPO needs a reward model: train one with --method reward and name its run with --reward")
    if recipe.method != "ppo" and recipe.reward:
        raise ConfigError(f"--reward is for PPO: leave it out with --method {recipe.method}")
    if recipe.method == "reward" and recipe.export:
        raise ConfigError("a reward model is not exported, for PPO reads its run: leave out --export")
    for name, given, default in ("ppo", recipe.ppo, PPOConfig()), ("dpo", recipe.dpo, DPOConfig()):
        if recipe.method != name and given != default:
            raise ConfigError(f"--{name}.* is for {name.upper()}: leave it out with --method {recipe.method}")
    if recipe.samples < 0:
        raise ConfigError(f"samples is {recipe.samples}: it must not be negative")


def reward_model(recipe: Recipe, chat: LanguageModel) -> RewardModel:
    """The judge of PPO.  Raises ModelError where it is another kind of model, of another shape, or reads other ids."""
    model, tokenizer = read_model(recipe.reward, functools.partial(read_reward_model, recipe))
    own, other = (vars(settings_like(GPTConfig, each.config, dropout=False)) for each in (model, chat.model))
    if differ := [name for name in own if own[name] != other[name]]:
        what = ", ".join(differ)
        raise ModelError(f"{recipe.reward} has another {what} than {recipe.start}: train it from the same model")
    readers = tokenizer, chat.tokenizer
    one, two = ([each.piece(token) for token in range(each.vocab_size)] for each in readers)
    if one != two:
        raise ModelError(f"{recipe.reward} reads other tokens than {recipe.start}: train it from the same model")
    return model


def read_reward_model(recipe: Recipe, directory: Path) -> tuple[RewardModel, Tokenizer]:
    model = load_model(directory)
    if not isinstance(model, RewardModel):
        raise ModelError(f"{recipe.reward} is no reward model: train one with --method reward")
    return model, load_tokenizer(directory)


def settings_of(recipe: Recipe, chat: GPT, judge: RewardModel | None) -> dict[str, Any]:
    """Everything that decides the result, contents of files and values of models included."""
    left_out = ("run", "resume", "quiet", "export", *({"ppo", "dpo"} - {recipe.method}))
    own = {key: value for key, value in asdict(recipe).items() if key not in left_out}
    files = {name: own.pop(name) for name in ("preferences", "valid_preferences", "tests", "style")}
    make_embedded(files.values(), recipe.quiet)
    for path in files.values():
        refuse_pipe(path)
    models = {"start": chat, **({"reward": judge} if judge else {})}
    digests = {name: hashlib.sha256(model.vector).hexdigest()[:16] for name, model in models.items()}
    return own | {"data": {name: digest_of_files([path])[:16] for name, path in files.items()} | digests}


def prepare(recipe: Recipe, chat: GPT, template: ChatTemplate) -> Prepared:
    """Files as ids."""
    parts = []
    for path in (recipe.preferences, recipe.valid_preferences):
        pairs = [pair_ids(template, preference) for preference in read_preferences(path)]
        fitting = [pair for pair in pairs if len(pair[0]) + max(map(len, pair[1:])) <= chat.config.max_length]
        if len(fitting) < len(pairs):
            told = f"{path}: left out {len(pairs) - len(fitting)} of {len(pairs)} pairs, longer than the model reads"
            tell(recipe.quiet, told)
        if not fitting:
            what = (
                "that the model can read: give shorter conversations" if pairs else "of which one is better: rank them"
            )
            raise DataError(f"{path} has no pair of replies {what}")
        parts.append(Pairs(fitting, chat.config.max_length))
    questions = fitting_questions(list(read_tests(recipe.tests)), template, chat.config.max_length)
    if not questions:
        raise DataError(f"{recipe.tests} has no question that leaves room for a reply: give shorter ones")
    return Prepared(chat, template, *parts, questions, Style.read(recipe.style))


def pair_ids(template: ChatTemplate, preference: Preference) -> tuple[Ids, Ids, Ids]:
    """A prompt, up to what opens the reply, and both replies with their end markers.

    Raises DataError, naming the place, for what the tokenizer cannot read.
    """
    try:
        replies = [[*template.content(text), template.end] for text in (preference.chosen, preference.rejected)]
        return template.prompt(preference.prompt), *replies
    except DataError as error:
        raise DataError(f"{preference.place}: {error}") from error


def make_trainer(recipe: Recipe, run: Run, prepared: Prepared, judge: RewardModel | None) -> Trainer:
    chat, config, tokenizer = prepared.reference, recipe.training, prepared.template.tokenizer
    if recipe.method == "ppo":
        prompts, end = prompts_of(prepared.train), prepared.template.end
        score = normalized_score(judge, chat, prompts, end, recipe.ppo, config.seed)
        task = PPOTask(prompts, prompts_of(prepared.valid), end, chat, score, recipe.ppo)
        return PPOTrainer(task, config, run, tokenizer, quiet=recipe.quiet)
    if recipe.method == "reward":
        build = functools.partial(RewardModel, settings_like(RewardConfig, chat.config))
        start, task = functools.partial(RewardModel.begin_from, language_model=chat), RewardTask(*prepared[2:4])
    else:
        build = functools.partial(GPT, settings_like(type(chat.config), chat.config, dropout=False))
        start = functools.partial(copy_values, chat)
        task = DPOTask(*prepared[2:4], chat, recipe.dpo, config.workers)
    return Trainer(build, task, config, run, tokenizer, no_more_scores, recipe.quiet, start)


def prompts_of(pairs: Pairs) -> list[np.ndarray]:
    """Every prompt once, in order."""
    return list({pair.prompt.tobytes(): pair.prompt for pair in pairs}.values())


def finish(recipe: Recipe, run: Run, prepared: Prepared) -> None:
    """Ask before and after, show both side by side, and record what was found with the best checkpoint."""
    directory = run.named("best")
    model, metrics = load_model(directory), read_metrics(directory)
    if recipe.method == "reward":
        figures = ", ".join(f"{name.replace('_', ' ')} {value:.4f}" for name, value in metrics["validation"].items())
        emit([f"validation: {figures}", f"next: --method ppo --reward {recipe.run}"])
        return
    if isinstance(model, ActorCritic):
        model = model.language_model()
    if recipe.export:
        model.vector[:] = model.vector.astype(np.float16)  # the figures below are then those of what is exported
    lines, found = compare(recipe, prepared, model)
    metrics |= found
    save_metrics(directory, metrics)
    if recipe.export:
        export(recipe.export, model, metrics, prepared.template.tokenizer)
    emit([*lines, f"talk with it: toolkit chat --model {recipe.run}"])


def compare(recipe: Recipe, prepared: Prepared, model: GPT) -> tuple[list[str], dict[str, Any]]:
    """The model before and after: what is told, and what is recorded."""
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
    return lines, found | {"polite_when_sampled": {"before": polite[0], "after": polite[1]}}


def side_by_side(results: list[list[EvaluatedReply]], count: int) -> list[str]:
    """Some questions of all kinds, each with the reply before and the one after."""
    before, after = results
    chosen = np.linspace(0, len(before) - 1, count).astype(int)
    rows = [["question", "before", "after"]]
    for index in chosen:
        rows.append([*before[index].shown(), after[index].shown()[1]])
    return aligned(rows, (0, 1, 2))


if __name__ == "__main__":
    run_recipe(defaults, main)
