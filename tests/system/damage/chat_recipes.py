"""The recipes for chat models and preferences: files that they cannot learn from, models that do not fit, folly."""

import errno
import gzip
import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.system.damage.disks import failing, limited
from tests.system.damage.language_recipe import pipe
from tests.system.damage.room import (
    Harm,
    Kind,
    arrays,
    both,
    change,
    copy,
    cut,
    directory,
    edit,
    obey,
    remove,
    stop_halfway,
    write,
)
from tests.system.damage.texts import PLACES
from toolkit.models.reward import RewardConfig, RewardModel, settings_like
from toolkit.models.storage import load_model, read_json, save_model
from toolkit.tokenization import load_tokenizer
from toolkit.tokenization.special import END

_TRAINING = "--training.updates 2 --training.validate-every 1 --training.keep 2 --training.workers 1 "
_TRAINING += "--training.tokens-per-batch 64 --quiet"
_SIZES = "--model.vocab-size 280 --model.width 8 --model.heads 2 --model.feed-forward 8 --model.layers 1 "
_SIZES += "--model.max-length 32"
CHAT = f"recipe-chat --run new {_TRAINING} --conversations talks.jsonl --tests asked.jsonl --valid-share 0.5"
ANEW = f"{CHAT} {_SIZES}"
TUNE = f"{CHAT} --style style.json --start gpt"
VALIDATED = f"{TUNE} --valid-conversations heard.jsonl"
RESUME_CHAT = f"{TUNE.replace('--run new', '--run talked')} --resume"

_FILES = "--tests asked.jsonl --style style.json --preferences liked.jsonl --valid-preferences judged.jsonl --samples 1"
REWARD = f"recipe-pref --run new {_TRAINING} {_FILES} --start chatty --method reward"
DPO = f"recipe-pref --run new {_TRAINING} {_FILES} --start chatty --method dpo"
PPO = f"recipe-pref --run new {_TRAINING} {_FILES} --start chatty --method ppo --reward judge --ppo.prompts 2 "
PPO += "--ppo.passes 1 --ppo.minibatches 1 --ppo.max-new-tokens 4"
RESUME_PPO = f"{PPO.replace('--run new', '--run tuned')} --resume"

PAIRS = "recipe-lm --run new --model.width 8 --model.heads 2 --model.feed-forward 8 --model.layers 1 "
PAIRS += f"--model.max-length 16 {_TRAINING} --samples 0 --tokenizer character --pairs lines.en lines.ne"

SAID = (("I am Ram.", "Hello, Ram."), ("Who am I?", "Ram."), ("म को हुँ?", "राम।"), ("Bye.", "Goodbye."))


def _prompt(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def _talk(text: str, reply: str) -> dict[str, Any]:
    return {"messages": [*_prompt(text), {"role": "assistant", "content": reply}]}


def _asked(text: str, *accept: str) -> dict[str, Any]:
    return {"messages": _prompt(text), "kind": "social", "accept": accept}


def _ranked(text: str, *replies: str) -> dict[str, Any]:
    return {"prompt": text, "ranking": replies}


GOOD_TALK, GOOD_QUESTION, GOOD_PAIR = _talk("Hi.", "Hello."), _asked("Hi.", "Hello."), _ranked("Hi.", "Hello.", "Bye.")


def lines(*objects: Any) -> str:
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)


def furnish(room: Path, make_gpt: Callable[..., Path]) -> None:
    """What is read, a model that has learned to end its replies, judges, and runs that were stopped halfway."""
    write("talks.jsonl", lines(*(_talk(*each) for each in SAID)))(room)
    write("talks.jsonl.gz", gzip.compress((room / "talks.jsonl").read_bytes()))(room)
    write("heard.jsonl", lines(GOOD_TALK))(room)
    write("asked.jsonl", lines(*(_asked(*each) for each in SAID)))(room)
    for name in "liked.jsonl", "judged.jsonl":
        write(name, lines(*(_ranked(text, f"Gladly. {reply}", reply) for text, reply in SAID)))(room)
    write("style.json", json.dumps({"openings": ["Gladly."], "closings": ["Take care!"]}))(room)
    make_gpt(room / "chatty", template="control", output_bias=True)
    chat = load_model(room / "chatty")
    chat.output_bias.data[END] += 6
    save_model(chat, room / "chatty")
    make_gpt(room / "wide", template="control", output_bias=True, width=24)
    for name, shape in ("judge", "chatty"), ("wide-judge", "wide"):
        like = load_model(room / shape)
        judge = RewardModel(settings_like(RewardConfig, like.config))
        judge.allocate()
        judge.begin_from(like)
        (room / name).mkdir()
        save_model(judge, room / name)
        load_tokenizer(room / shape).save(room / name)
    for command in RESUME_CHAT, RESUME_PPO:
        run = room / command.split()[2]
        assert obey(command.removesuffix(" --resume")) == 0
        stop_halfway(run)


# Conversations, of which there is one to train on at least, and what is told of the file.
TALKS: dict[str, tuple[Harm, str]] = {
    **{f"that is {name}": (how("talks.jsonl"), "talks.jsonl") for name, (how, _) in PLACES.items()},
    "that is a pipe": (pipe("talks.jsonl"), "talks.jsonl is a pipe or a device"),
    "of no bytes": (write("talks.jsonl", ""), "talks.jsonl is empty"),
    "of zeros": (write("talks.jsonl", bytes(999)), "talks.jsonl"),
    "in UTF-16": (change("talks.jsonl", lambda content: content.decode().encode("utf-16")), "talks.jsonl is UTF-16"),
    "in Latin-1": (
        write("talks.jsonl", '{"messages": "caf\xe9"}'.encode("latin-1")),
        "line 1 is not UTF-8 (byte 0xE9)",
    ),
    "that is cut off": (cut("talks.jsonl", 0.7), "talks.jsonl, line 3 is not JSON"),
    "of one list in lines": (write("talks.jsonl", "[]\n"), "talks.jsonl holds an empty list"),
    "of texts": (write("talks.jsonl", lines("Hi.", "Hello.")), "line 1 is text, not a JSON object"),
    "of translations": (copy("talks.jsonl", "pairs.jsonl"), "line 1 has no conversation, only en, ne"),
    "of preferences": (copy("talks.jsonl", "liked.jsonl"), "line 1 has no conversation, only prompt, ranking"),
    "of questions": (copy("talks.jsonl", "asked.jsonl"), "line 1 ends with a message of the user"),
    "of monologues": (
        write("talks.jsonl", lines({"messages": _prompt("a") * 2})),
        "line 1, message 2 is the second of",
    ),
    "with a blank reply": (write("talks.jsonl", lines(GOOD_TALK, _talk("Hi.", " "))), "line 2, message 2 is blank"),
    "with half a character": (
        write("talks.jsonl", json.dumps(_talk("\ud800", "a"))),
        "line 1, message 1 has half of a surrogate pair",
    ),
    "of one conversation": (write("talks.jsonl", lines(GOOD_TALK)), "talks.jsonl"),
    "of nothing short enough": (
        write("talks.jsonl", lines(*[_talk("xq" * 40, "a")] * 4)),
        "no conversation that is short enough",
    ),
}
HEARD: dict[str, tuple[Harm, str]] = {
    "that there is not": (remove("heard.jsonl"), "heard.jsonl does not exist"),
    "that is too long": (write("heard.jsonl", lines(_talk("xq" * 40, "a"))), "short enough to validate on"),
}
PACKED: dict[str, Harm] = {
    "without its end": cut("talks.jsonl.gz", 0.8),
    "that is text": copy("talks.jsonl.gz", "talks.jsonl"),
}
ASKED: dict[str, tuple[Harm, str]] = {
    "that are not there": (remove("asked.jsonl"), "asked.jsonl does not exist"),
    "without right replies": (write("asked.jsonl", lines(_asked("Hi."))), "line 1: accept is not a list of replies"),
    "that are conversations": (copy("asked.jsonl", "talks.jsonl"), "line 1 ends with a message of the assistant"),
    "that are cut off": (cut("asked.jsonl", 0.9), "asked.jsonl, line 4 is not JSON"),
    "none of which leaves room for a reply": (
        write("asked.jsonl", lines(_asked("xq" * 40, "a"))),
        "asked.jsonl has no question that leaves room for a reply",
    ),
}
STYLE: dict[str, tuple[Harm, str]] = {
    "that is not there": (remove("style.json"), "style.json cannot be read"),
    "that is a directory": (directory("style.json"), "style.json cannot be read"),
    "without closings": (write("style.json", '{"openings": []}'), "style.json is no style"),
    "of numbers": (write("style.json", '{"openings": [1], "closings": []}'), "style.json is no style"),
    "that is cut off": (cut("style.json", 0.5), "style.json is no style"),
    "nested without end": (write("style.json", "[" * 100_000), "style.json is no style"),
}
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
        write("liked.jsonl", lines({"chosen": _talk("a", "b")["messages"], "rejected": _talk("c", "d")["messages"]})),
        "differ before their last message",
    ),
    "of ties alone": (
        write("liked.jsonl", lines({"prompt": "Hi.", "completions": ["a", "b"], "scores": [1, 1]})),
        "liked.jsonl has no pair of replies",
    ),
    "that are too long": (write("liked.jsonl", lines(_ranked("xq" * 40, "a", "b"))), "liked.jsonl has no pair"),
}

NOT_TAUGHT = "gpt was not taught to converse: fine-tune it with recipes/chat.py first"
_UNKNOWN = lines(GOOD_TALK, _talk("Ω?", "a"))
# Words of a command, what they need, and what is told.
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    TUNE: {
        "a start that is not there": ("--start none", "there is no model 'none'"),
        "a start that translates": ("--start model", "model is a translator"),
        "a start that judges": ("--start judge", "judge is a reward model, which writes nothing"),
        "a start that is a text": ("--start lines.en", "there is no model 'lines.en'"),
        "a start of another shape": ("--model.width 16", "leave out --model."),
        "a template that the start cannot write": ("--start letters --template plain", "plain does not suit"),
        "conversations of unknown characters": ("--start letters", "talks.jsonl, line "),
        "no conversations": ("--conversations", "--conversations needs a value"),
        "a table of conversations": ("--conversations lines.en", "lines.en is no file of JSON or Parquet"),
        "the best by another score": ("--training.best-by bleu", "leave out --training.best-by"),
        "subwords drawn in a chat": ("--training.subword-alpha 0.1", "leave out --training.subword-alpha"),
        "no share of conversations": ("--valid-share 0", "valid_share is 0"),
        "all conversations to validate on": ("--valid-share 1", "valid_share is 1"),
        "a template without a name": ("--template none", "--template is 'none': it must be one of control, plain"),
        "a run of conversations that is there": ("--run talked", "talked already exists"),
        "an export of a chat that is there": ("--export gpt", "gpt already exists: choose another --export"),
        "an export of a chat below a file": ("--export lines.en/x", "lines.en/x cannot be written"),
        "an export of several chats": ("--seeds 1 2 --export x", "--export takes one model"),
        "the same seed twice": ("--seeds 1 1", "give different ones"),
        "no run to resume in a chat": ("--resume", "new is not a run"),
    },
    ANEW: {
        "a context too small for any conversation": ("--model.max-length 3", "no conversation that is short enough"),
        "a vocabulary too small for conversations": ("--model.vocab-size 20", "vocab_size 20 is out of range"),
        "letters that do not fit": ("--model.heads 3", "width 8 cannot be divided into 3 heads"),
    },
    RESUME_CHAT: {
        "resuming a chat in other words": ("--template plain", "other settings (template: control → plain)"),
        "resuming a chat from another start": ("--start plain", "talked was started with"),
        "resuming a chat with other conversations": ("--conversations heard.jsonl", "talked was started with"),
        "resuming a chat with other questions": ("--tests heard.jsonl", "heard.jsonl, line 1"),
        "resuming preferences as a chat": ("--run tuned", "tuned was started with other settings"),
    },
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
        "an export of DPO below a file": ("--export lines.en/x", "lines.en/x cannot be written"),
    },
    PPO: {
        "PPO of what was not taught to converse": ("--start gpt", NOT_TAUGHT),
        "PPO without a judge": ("--reward=", "PPO needs a reward model"),
        "a judge that is not there": ("--reward none", "there is no model 'none'"),
        "a judge that writes": ("--reward chatty", "chatty is no reward model"),
        "a judge that translates": ("--reward model", "model is no reward model"),
        "a judge of another width": ("--reward wide-judge", "wide-judge has another shape than chatty"),
        "a judge that is a run of PPO": ("--reward tuned", "tuned is no reward model"),
        "updates that cut an iteration": ("--ppo.passes 2 --training.updates 3", "updates is 3: it must be a multiple"),
        "a validation that cuts an iteration": ("--ppo.passes 2", "validate_every is 1: it must be a multiple"),
        "more minibatches than prompts": ("--ppo.minibatches 3", "2 prompts cannot be divided into 3 minibatches"),
        "no prompts": ("--ppo.prompts 0", "prompts is 0"),
        "batches summed up": ("--training.accumulation 2", "accumulation is 2"),
        "replies longer than the context": ("--ppo.max-new-tokens 30", "shorten it, or lower max_new_tokens"),
        "a clip of nothing": ("--ppo.clip 0", "clip is 0"),
        "a discount above one": ("--ppo.discount 1.5", "discount is 1.5"),
    },
    RESUME_PPO: {
        "resuming with a dearer reference": ("--ppo.beta 0.5", "other settings (ppo.beta: 0.05 → 0.5)"),
        "resuming PPO as DPO": ("--method dpo --reward=", "tuned was started with other settings"),
        "resuming with other preferences": ("--preferences judged.jsonl --valid-preferences more.jsonl", "more.jsonl"),
        "resuming a chat as preferences": ("--run talked", "talked was started with other settings"),
    },
    PAIRS: {
        "a text without its translation": ("--pairs lines.en", "1 files of pairs are given"),
        "three files of pairs": ("--pairs lines.en lines.ne lines.en", "3 files of pairs are given"),
        "no pairs": ("--pairs", "--pairs needs a value"),
        "pairs of unequal length": ("--pairs lines.en story.txt", "has no translation"),
        "pairs of a table": ("--pairs pairs.parquet lines.ne", "pairs.parquet"),
        "pairs that are not there": ("--pairs lines.en none.ne", "none.ne does not exist: check the path"),
        "pairs in a directory": ("--pairs tales lines.ne", "tales is a directory"),
        "pairs without end": ("--pairs /dev/zero lines.ne", "/dev/zero is a pipe or a device"),
        "pairs validated by nothing": ("--valid-text none.txt", "none.txt does not exist"),
        "a corpus that there is not": ("--corpus chats", "--corpus is 'chats': it must be one of stories, chat"),
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
        "judge reads other tokens than chatty",
    ),
    "that reads other tokens": (
        lambda room: _another_tokenizer(room / "judge", room / "chatty"),
        "judge reads other tokens than chatty",
    ),
    "that was taught another template": (
        edit("judge/config.json", lambda config: config["model"].update(template="plain")),
        "judge has another shape than chatty",
    ),
    "that is cut off": (cut("judge/model.safetensors", 0.6), "judge/model.safetensors is damaged"),
    "that is not finite": (
        arrays("judge/model.safetensors", lambda values: {name: value * np.nan for name, value in values.items()}),
        "judge",
    ),
    "without its config": (remove("judge/config.json"), "judge is not a model"),
}

STEP = "talked/step-000001"
RUN: dict[str, tuple[str, Harm, str]] = {
    "settings that are cut off": (RESUME_CHAT, cut("talked/settings.json", 0.5), "talked/settings.json is damaged"),
    "conversations that have changed": (
        RESUME_CHAT,
        change("talks.jsonl", lambda content: content.replace(b"Ram", b"Hari")),
        "other data",
    ),
    "another style": (RESUME_CHAT, change("style.json", lambda content: content.replace(b"Take", b"A")), "other data"),
    "a start that has changed": (
        RESUME_CHAT,
        arrays("gpt/model.safetensors", lambda values: {name: value * 2 for name, value in values.items()}),
        "other data",
    ),
    "conversations without their ids": (RESUME_CHAT, remove("talked/data/train.ids.values.npy"), "talked/data"),
    "conversations of which others are to be learned": (
        RESUME_CHAT,
        copy("talked/data/train.supervised.values.npy", "talked/data/valid.supervised.values.npy"),
        "talked/data",
    ),
    "conversations that are a file": (RESUME_CHAT, write("talked/data", "hello"), "talked/data"),
    "a model of another template": (
        RESUME_CHAT,
        edit(f"{STEP}/config.json", lambda config: config["model"].update(template="plain")),
        f"{STEP} belongs to another run",
    ),
    "no last checkpoint of a chat": (RESUME_CHAT, remove(STEP), f"{STEP} is named as the last checkpoint"),
    "preferences that have changed": (
        RESUME_PPO,
        change("liked.jsonl", lambda content: content.replace(b"Ram", b"Hari")),
        "other data",
    ),
    "a judge that has changed": (
        RESUME_PPO,
        arrays("judge/model.safetensors", lambda values: {name: value * 2 for name, value in values.items()}),
        "other data",
    ),
    "a critic that is cut off": (
        RESUME_PPO,
        cut("tuned/step-000001/model.safetensors", 0.6),
        "tuned/step-000001/model.safetensors is damaged",
    ),
    "a policy without its critic": (
        RESUME_PPO,
        arrays(
            "tuned/step-000001/model.safetensors",
            lambda values: {name: value for name, value in values.items() if not name.startswith("critic")},
        ),
        "tuned/step-000001",
    ),
    "a chat for a policy": (
        RESUME_PPO,
        both(
            *(
                copy(f"tuned/step-000001/{name}", f"chatty/{name}")
                for name in ("config.json", "model.safetensors", "tokenizer.model")
            )
        ),
        "tuned/step-000001",
    ),
    "moments of a chat": (
        RESUME_PPO,
        copy(
            "tuned/step-000001/training/moments.safetensors",
            f"{STEP}/training/moments.safetensors",
        ),
        "tuned/step-000001/training/moments.safetensors is damaged",
    ),
}


def _another_tokenizer(judge: Path, chat: Path) -> None:
    """As many tokens as before, and other ones."""
    from toolkit.tokenization import SentencePieceTokenizer

    size = read_json(chat / "config.json")["model"]["vocab_size"]
    text = ["".join(map(chr, range(0x4E00 + number, 0x4E40 + number))) for number in range(0, 6400, 16)]
    SentencePieceTokenizer.train(text, size).save(judge)


def kinds() -> Iterator[Kind]:
    for command, what, table in (
        (TUNE, "a file of conversations", TALKS),
        (VALIDATED, "a file to validate on", HEARD),
        (TUNE, "questions", ASKED),
        (DPO, "questions, before and after,", ASKED),
        (TUNE, "a style", STYLE),
        (DPO, "preferences", LIKED),
        (PPO, "a judge", JUDGE),
    ):
        for name, (harm, says) in table.items():
            yield Kind(f"{what} {name}", command, says, harm, needs="pairs.jsonl liked.jsonl talks.jsonl asked.jsonl")
    for name, harm in PACKED.items():
        command = TUNE.replace("talks.jsonl", "talks.jsonl.gz")
        yield Kind(
            f"packed conversations {name}", command, "talks.jsonl.gz is cut off, damaged or", harm, needs="talks.jsonl"
        )
    yield Kind(
        "a question of unknown characters",
        TUNE.replace("--start gpt", "--start letters").replace("talks.jsonl", "heard.jsonl"),
        "asked.jsonl, line 2: the character",
        both(
            write("heard.jsonl", lines(*[_talk("She", "eats")] * 4)),
            write("asked.jsonl", lines(_asked("I", "a"), _asked("Ω", "a"))),
        ),
    )
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")), needs=words)
    for name, (command, harm, says) in RUN.items():
        yield Kind(f"run: {name}", command, says, harm, needs="talked chatty")
    yield from _alone()
    yield from _disks()


def _alone() -> Iterator[Kind]:
    """What is wrong with a few words by themselves."""
    yield Kind(
        "conversations to validate on alone",
        "recipe-chat",
        "--valid-conversations is given without --conversations",
        flags=("--valid-conversations", "heard.jsonl"),
    )
    yield Kind(
        "no model that converses",
        "recipe-pref",
        "there is no model 'none'",
        flags=("--method", "dpo", "--start", "none"),
    )


def _disks() -> Iterator[Kind]:
    for command, size in (TUNE, 100), (TUNE, 3000), (PPO, 3000):
        yield Kind(
            f"no room for files of more than {size} bytes in a chat",
            command,
            "new",
            disk=lambda size=size: limited(size),
            leaves="new",
        )
    yield Kind(
        "a full disk, told on flushing a chat",
        TUNE,
        "new",
        disk=failing(os, "fsync", errno.ENOSPC, 12),
        leaves="new",
    )
    for command in TUNE, DPO:
        yield Kind(
            "a full disk, told on renaming an export",
            f"{command} --export exported",
            "cannot be written",
            disk=failing(Path, "rename", errno.ENOSPC, 2),
            leaves="new",
        )
