"""The recipe for chat models, and pairs for language models: files that teach nothing, words that do not fit."""

import errno
import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.system.damage.disks import failing, limited
from tests.system.damage.language_recipe import pipe
from tests.system.damage.room import (
    Harm,
    Kind,
    arrays,
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

TRAINING = "--training.updates 2 --training.validate-every 1 --training.keep 2 --training.workers 1 "
TRAINING += "--training.tokens-per-batch 64 --quiet"
_SIZES = "--model.vocab-size 310 --model.d-model 8 --model.num-heads 2 --model.d-ff 8 --model.layers 1 "
_SIZES += "--model.max-length 32"
CHAT = f"recipe-chat --run new {TRAINING} --conversations talks.jsonl --tests asked.jsonl --valid-share 0.5"
ANEW = f"{CHAT} {_SIZES}"
TUNE = f"{CHAT} --style style.json --start gpt"
VALIDATED = f"{TUNE} --valid-conversations heard.jsonl"
RESUME_CHAT = f"{TUNE.replace('--run new', '--run talked')} --resume"

PAIRS = "recipe-lm --run new --model.d-model 8 --model.num-heads 2 --model.d-ff 8 --model.layers 1 "
PAIRS += f"--model.max-length 16 {TRAINING} --samples 0 --tokenizer character --pairs lines.en lines.ne"

SAID = (("I am Ram.", "Hello, Ram."), ("Who am I?", "Ram."), ("म को हुँ?", "राम।"), ("Bye.", "Goodbye."))


def prompt(text: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": text}]


def talk(text: str, reply: str) -> dict[str, Any]:
    return {"messages": [*prompt(text), {"role": "assistant", "content": reply}]}


def asked(text: str, *accept: str) -> dict[str, Any]:
    return {"messages": prompt(text), "kind": "social", "accept": accept}


GOOD_TALK = talk("Hi.", "Hello.")


def lines(*objects: Any) -> str:
    return "".join(f"{json.dumps(each, ensure_ascii=False)}\n" for each in objects)


def furnish(room: Path) -> None:
    """What is read, and a run that was stopped halfway; the room has its models already."""
    write("talks.jsonl", lines(*(talk(*each) for each in SAID)))(room)
    write("talks.jsonl.gz", gzip.compress((room / "talks.jsonl").read_bytes()))(room)
    write("heard.jsonl", lines(*[talk("She eats", "rice.")] * 4))(room)
    write("easy.jsonl", lines(asked("She eats", "rice")))(room)
    write("asked.jsonl", lines(*(asked(*each) for each in SAID)))(room)
    write("style.json", json.dumps({"openings": ["Gladly."], "closings": ["Take care!"]}))(room)
    assert obey(RESUME_CHAT.removesuffix(" --resume")) == 0
    stop_halfway(room / "talked")


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
        write("talks.jsonl", lines({"messages": prompt("a") * 2})),
        "line 1, message 2 is the second of",
    ),
    "with a blank reply": (write("talks.jsonl", lines(GOOD_TALK, talk("Hi.", " "))), "line 2, message 2 is blank"),
    "with half a character": (
        write("talks.jsonl", json.dumps(talk("\ud800", "a"))),
        "line 1, message 1 has half of a surrogate pair",
    ),
    "of one conversation": (write("talks.jsonl", lines(GOOD_TALK)), "no conversation to train on"),
    "of nothing short enough": (
        write("talks.jsonl", lines(*[talk("xq" * 40, "a")] * 4)),
        "no conversation that is short enough",
    ),
}
HEARD: dict[str, tuple[Harm, str]] = {
    "that there is not": (remove("heard.jsonl"), "heard.jsonl does not exist"),
    "that is too long": (write("heard.jsonl", lines(talk("xq" * 40, "a"))), "short enough to validate on"),
}
PACKED: dict[str, Harm] = {
    "without its end": cut("talks.jsonl.gz", 0.8),
    "that is text": copy("talks.jsonl.gz", "talks.jsonl"),
}
ASKED: dict[str, tuple[Harm, str]] = {
    "that are not there": (remove("asked.jsonl"), "asked.jsonl does not exist"),
    "without right replies": (write("asked.jsonl", lines(asked("Hi."))), "line 1: accept is not a list of replies"),
    "that are conversations": (copy("asked.jsonl", "talks.jsonl"), "line 1 ends with a message of the assistant"),
    "that are cut off": (cut("asked.jsonl", 0.9), "asked.jsonl, line 4 is not JSON"),
    "none of which leaves room for a reply": (
        write("asked.jsonl", lines(asked("xq" * 40, "a"))),
        "asked.jsonl has no question that leaves room for a reply",
    ),
}
STYLE: dict[str, tuple[Harm, str]] = {
    "that is not there": (remove("style.json"), "style.json cannot be read"),
    "that is a directory": (directory("style.json"), "style.json"),
    "that is a pipe": (pipe("style.json"), "style.json is a pipe or a device"),
    "without closings": (write("style.json", '{"openings": []}'), "style.json is no style"),
    "of numbers": (write("style.json", '{"openings": [1], "closings": []}'), "style.json is no style"),
    "that is cut off": (cut("style.json", 0.5), "style.json is no style"),
    "nested without end": (write("style.json", "[" * 100_000), "style.json is no style"),
}
# Words of a command, what they need, and what is told.
FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    TUNE: {
        "a start that is not there": ("--start none", "there is no model 'none'"),
        "a start that translates": ("--start model", "model is a translator"),
        "a start that judges": ("--start judge", "judge is a reward model, which writes nothing"),
        "a start that is a text": ("--start lines.en", "there is no model 'lines.en'"),
        "a start of another shape": ("--model.layers 1", "leave out --model."),
        "a template that the start cannot write": ("--start letters --template plain", "plain does not suit"),
        "conversations of unknown characters": (
            "--start letters --tests easy.jsonl",
            "talks.jsonl, line 2: the character",
        ),
        "a question of unknown characters": (
            "--start letters --conversations heard.jsonl",
            "asked.jsonl, line 1: the character",
        ),
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
        "letters that do not fit": ("--model.num-heads 3", "d_model 8 cannot be divided into 3 heads"),
    },
    RESUME_CHAT: {
        "resuming a chat in other words": ("--template plain", "other settings (template: control → plain)"),
        "resuming a chat from another start": ("--start plain", "talked was started with"),
        "resuming a chat with other conversations": ("--conversations heard.jsonl", "talked was started with"),
        "resuming a chat with other questions": ("--tests easy.jsonl", "(tests: asked.jsonl → easy.jsonl)"),
        "resuming preferences as a chat": ("--run tuned", "tuned was started with other settings"),
    },
    PAIRS: {
        "a text without its translation": ("--pairs lines.en", "the files of pairs are odd in number (1)"),
        "three files of pairs": ("--pairs lines.en lines.ne lines.en", "the files of pairs are odd in number (3)"),
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

STEP = "talked/step-000001"
RUN: dict[str, tuple[Harm, str]] = {
    "settings that are cut off": (cut("talked/settings.json", 0.5), "talked/settings.json is damaged"),
    "conversations that have changed": (
        change("talks.jsonl", lambda content: content.replace(b"Ram", b"Hari")),
        "other data",
    ),
    "another style": (change("style.json", lambda content: content.replace(b"Take", b"A")), "other data"),
    "a start that has changed": (
        arrays("gpt/model.safetensors", lambda values: {name: value * 2 for name, value in values.items()}),
        "other data",
    ),
    "conversations without their ids": (remove("talked/data/train.ids.values.npy"), "talked/data"),
    "conversations of which others are to be learned": (
        copy("talked/data/train.supervised.values.npy", "talked/data/valid.supervised.values.npy"),
        "talked/data",
    ),
    "conversations that are a file": (write("talked/data", "hello"), "talked/data"),
    "a model of another template": (
        edit(f"{STEP}/config.json", lambda config: config["model"].update(template="plain")),
        f"{STEP} belongs to another run",
    ),
    "no last checkpoint of a chat": (remove(STEP), f"{STEP} is named as the last checkpoint"),
}


def kinds() -> Iterator[Kind]:
    for command, what, table in (
        (TUNE, "a file of conversations", TALKS),
        (VALIDATED, "a file to validate on", HEARD),
        (TUNE, "questions", ASKED),
        (TUNE, "a style", STYLE),
    ):
        for name, (harm, says) in table.items():
            yield Kind(f"{what} {name}", command, says, harm, needs="pairs.jsonl liked.jsonl talks.jsonl asked.jsonl")
    for name, harm in PACKED.items():
        command = TUNE.replace("talks.jsonl", "talks.jsonl.gz")
        yield Kind(
            f"packed conversations {name}", command, "talks.jsonl.gz is cut off, damaged or", harm, needs="talks.jsonl"
        )
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")), needs=words)
    for name, (harm, says) in RUN.items():
        yield Kind(f"run: {name}", RESUME_CHAT, says, harm, needs="talked")
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


def _disks() -> Iterator[Kind]:
    for size in 100, 3000:
        yield Kind(
            f"no room for files of more than {size} bytes in a chat",
            TUNE,
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
    yield Kind(
        "a full disk, told on renaming an export",
        f"{TUNE} --export exported",
        "cannot be written",
        disk=failing(Path, "rename", errno.ENOSPC, 2),
        leaves="new",
    )
