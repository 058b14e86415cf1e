"""The recipe for preferences: pairs that say nothing, judges that do not fit, settings that a method does not have."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.system.damage.chat_recipes import ASKED, SAID, TRAINING, lines, talk
from tests.system.damage.disks import failing, limited
from tests.system.damage.room import (
    Harm,
    Kind,
    arrays,
    both,
    change,
    copy,
    cut,
    edit,
    obey,
    remove,
    stop_halfway,
    write,
)
from toolkit.models.reward import RewardConfig, RewardModel, settings_like
from toolkit.models.storage import load_model, save_model
from toolkit.tokenization import load_tokenizer
from toolkit.tokenization.special import END

_FILES = "--tests asked.jsonl --style style.json --preferences liked.jsonl --valid-preferences judged.jsonl --samples 1"
REWARD = f"recipe-pref --run new {TRAINING} {_FILES} --start chatty --method reward"
DPO = f"recipe-pref --run new {TRAINING} {_FILES} --start chatty --method dpo"
PPO = f"recipe-pref --run new {TRAINING} {_FILES} --start chatty --method ppo --reward judge --ppo.prompts 2 "
PPO += "--ppo.ppo-epochs 1 --ppo.minibatches 1 --ppo.max-new-tokens 4"
RESUME_PPO = f"{PPO.replace('--run new', '--run tuned')} --resume"


def _ranked(text: str, *replies: str) -> dict[str, Any]:
    return {"prompt": text, "ranking": replies}


GOOD_PAIR = _ranked("Hi.", "Hello.", "Bye.")


def furnish(room: Path, make_gpt: Callable[..., Path]) -> None:
    """Pairs, a model that has learned to end its replies, judges, and a run of PPO that was stopped halfway."""
    for name in "liked.jsonl", "judged.jsonl":
        write(name, lines(*(_ranked(text, f"Gladly. {reply}", reply) for text, reply in SAID)))(room)
    make_gpt(room / "chatty", template="control", output_bias=True)
    chat = load_model(room / "chatty")
    chat.output.bias.data[END] += 6
    save_model(chat, room / "chatty")
    make_gpt(room / "wide", template="control", output_bias=True, d_model=24)
    for name, shape in ("judge", "chatty"), ("wide-judge", "wide"):
        like = load_model(room / shape)
        judge = RewardModel(settings_like(RewardConfig, like.config))
        judge.allocate()
        judge.begin_from(like)
        (room / name).mkdir()
        save_model(judge, room / name)
        load_tokenizer(room / shape).save(room / name)
    assert obey(RESUME_PPO.removesuffix(" --resume")) == 0
    stop_halfway(room / "tuned")


LIKED: dict[str, tuple[Harm, str]] = {
    "that are not there": (remove("liked.jsonl"), "liked.jsonl does not exist"),
    "of no bytes": (write("liked.jsonl", ""), "liked.jsonl is empty"),
    "that are cut off": (cut("liked.jsonl", 0.9), "liked.jsonl, line 4 is not JSON"),
    "that are conversations": (copy("liked.jsonl", "talks.jsonl"), "line 1 has no preference, only messages"),
    "of one reply": (write("liked.jsonl", lines(_ranked("Hi.", "a"))), "line 1: ranking has 1 of the two"),
    "of two replies that are the same": (
        write("liked.jsonl", lines(GOOD_PAIR, _ranked("Hi.", "a", "a"))),
        "line 2, reply 1 and reply 2 are the same",
    ),
    "without what was rejected": (
        write("liked.jsonl", lines({"prompt": "Hi.", "chosen": "a"})),
        "line 1 has no rejected",
    ),
    "of replies to different prompts": (
        write("liked.jsonl", lines({"chosen": talk("a", "b")["messages"], "rejected": talk("c", "d")["messages"]})),
        "differ before their last message",
    ),
    "of ties alone": (
        write("liked.jsonl", lines({"prompt": "Hi.", "completions": ["a", "b"], "scores": [1, 1]})),
        "liked.jsonl has no pair of replies of which one is better",
    ),
    "that are too long": (write("liked.jsonl", lines(_ranked("xq" * 40, "a", "b"))), "liked.jsonl has no pair"),
}


NOT_TAUGHT = "gpt was not taught to converse: fine-tune it with toolkit train chat first"
# Words of a command, what they need, and what is told.
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    REWARD: {
        "a judge of what was not taught to converse": ("--start gpt", NOT_TAUGHT),
        "a judge that begins as a translator": ("--start model", "model is a translator"),
        "a judge to make a judge": ("--reward judge", "--reward is for PPO: leave it out with --method reward"),
        "an export of a judge": ("--export x", "leave out --export"),
        "an export that is there, of a judge": ("--export gpt", "--export"),
        "the best judge by another score": ("--training.best-by chrf", "leave out --training.best-by"),
        "a smooth judge": ("--training.label-smoothing 0.1", "leave out --training.subword-alpha and label-smoothing"),
        "negative samples": ("--samples -1", "samples is -1"),
        "a method that there is not": ("--method grpo", "--method is 'grpo': it must be one of reward, ppo, dpo"),
        "a method without a name": ("--method", "--method"),
        "a run of preferences that is there": ("--run tuned", "tuned already exists"),
        "validation by what is not there": ("--valid-preferences none.jsonl", "none.jsonl does not exist"),
        "settings of PPO for a judge": ("--ppo.clip 0.1", "--ppo.* is for PPO: leave it out with --method reward"),
        "settings of DPO for a judge": ("--dpo.beta 0.2", "--dpo.* is for DPO: leave it out with --method reward"),
    },
    DPO: {
        "DPO of what was not taught to converse": ("--start gpt", NOT_TAUGHT),
        "DPO of a judge": ("--start judge", "judge is a reward model"),
        "a β of nothing": ("--dpo.beta 0", "beta is 0"),
        "a β that is not a number": ("--dpo.beta nan", "beta is nan"),
        "a weight below nothing": ("--dpo.supervised -1", "supervised is -1"),
        "an export of DPO below a file": ("--export lines.en/x", "lines.en/x cannot be written"),
    },
    PPO: {
        "PPO of what was not taught to converse": ("--start gpt", NOT_TAUGHT),
        "PPO without a judge": ("--reward=", "PPO needs a reward model"),
        "a judge that is not there": ("--reward none", "there is no model 'none'"),
        "a judge that writes": ("--reward chatty", "chatty is no reward model"),
        "a judge that translates": ("--reward model", "model is no reward model"),
        "a judge of another width": ("--reward wide-judge", "wide-judge has another d_model than chatty"),
        "a judge that is a run of PPO": ("--reward tuned", "tuned is no reward model"),
        "updates that cut an iteration": (
            "--ppo.ppo-epochs 2 --training.updates 3",
            "updates is 3: it must be a multiple",
        ),
        "a validation that cuts an iteration": ("--ppo.ppo-epochs 2", "validate_every is 1: it must be a multiple"),
        "more minibatches than prompts": ("--ppo.minibatches 3", "2 prompts cannot be divided into 3 minibatches"),
        "no prompts": ("--ppo.prompts 0", "prompts is 0"),
        "batches summed up": ("--training.accumulation 2", "accumulation is 2"),
        "replies longer than the context": ("--ppo.max-new-tokens 30", "shorten it, or lower max_new_tokens"),
        "a clip of nothing": ("--ppo.clip 0", "clip is 0"),
        "a discount above one": ("--ppo.gamma 1.5", "gamma is 1.5"),
    },
    RESUME_PPO: {
        "resuming with a dearer reference": ("--ppo.kl-coef 0.9", "other settings (ppo.kl_coef: "),
        "resuming PPO as DPO": ("--method dpo --reward=", "--ppo.* is for PPO"),
        "resuming with other preferences": ("--preferences judged.jsonl --valid-preferences more.jsonl", "more.jsonl"),
        "resuming a chat as preferences": ("--run talked", "talked was started with other settings"),
    },
}

JUDGE: dict[str, tuple[Harm, str]] = {
    "of another vocabulary": (
        both(
            edit("judge/config.json", lambda config: config["model"].update(vocab_size=300)),
            arrays(
                "judge/model.safetensors",
                lambda values: {n: value[:300] if "embedding" in n else value for n, value in values.items()},
            ),
        ),
        "judge has another vocab_size than chatty",
    ),
    "that reads other tokens": (
        both(remove("judge/tokenizer.model"), copy("judge/tokenizer.json", "letters/tokenizer.json")),
        "judge reads other tokens than chatty",
    ),
    "that was taught another template": (
        edit("judge/config.json", lambda config: config["model"].update(template="plain")),
        "judge has another template than chatty",
    ),
    "that is cut off": (cut("judge/model.safetensors", 0.6), "judge/model.safetensors is damaged"),
    "that is not finite": (
        arrays("judge/model.safetensors", lambda values: {name: value * np.nan for name, value in values.items()}),
        "judge",
    ),
    "without its config": (remove("judge/config.json"), "judge is not a model"),
}

RUN: dict[str, tuple[Harm, str]] = {
    "preferences that have changed": (
        change("liked.jsonl", lambda content: content.replace(b"Ram", b"Hari")),
        "other data",
    ),
    "a judge that has changed": (
        arrays("judge/model.safetensors", lambda values: {name: value * 2 for name, value in values.items()}),
        "other data",
    ),
    "a critic that is cut off": (
        cut("tuned/step-000001/model.safetensors", 0.6),
        "tuned/step-000001/model.safetensors is damaged",
    ),
    "a policy without its critic": (
        arrays(
            "tuned/step-000001/model.safetensors",
            lambda values: {name: value for name, value in values.items() if not name.startswith("critic")},
        ),
        "tuned/step-000001",
    ),
    "a chat for a policy": (
        both(
            *(
                copy(f"tuned/step-000001/{name}", f"chatty/{name}")
                for name in ("config.json", "model.safetensors", "tokenizer.model")
            )
        ),
        "tuned/step-000001",
    ),
    "moments of a chat": (
        copy(
            "tuned/step-000001/training/moments.safetensors",
            "talked/step-000001/training/moments.safetensors",
        ),
        "tuned/step-000001/training/moments.safetensors is damaged",
    ),
}


def kinds() -> Iterator[Kind]:
    for command, what, table in (
        (DPO, "questions, before and after,", ASKED),
        (DPO, "preferences", LIKED),
        (PPO, "a judge", JUDGE),
        (RESUME_PPO, "run:", RUN),
    ):
        for name, (harm, says) in table.items():
            yield Kind(f"{what} {name}", command, says, harm, needs="talks.jsonl letters talked")
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")), needs=words)
    yield Kind(
        "no room for files of more than 3000 bytes in preferences",
        PPO,
        "new",
        disk=lambda: limited(3000),
        leaves="new",
    )
    yield Kind(
        "a full disk, told on flushing preferences",
        PPO,
        "new",
        disk=failing(os, "fsync", errno.ENOSPC, 12),
        leaves="new",
    )
    yield Kind(
        "a full disk, told on renaming an export",
        f"{DPO} --export exported",
        "cannot be written",
        disk=failing(Path, "rename", errno.ENOSPC, 2),
        leaves="new",
    )
