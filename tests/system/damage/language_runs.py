"""Runs of language models that are damaged, and disks that fail under them."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.system.damage.disks import failing, limited
from tests.system.damage.room import (
    RESUME_LM,
    TRAIN_LM,
    Harm,
    Kind,
    array,
    arrays,
    both,
    change,
    copy,
    cut,
    directory,
    edit,
    remove,
    write,
)
from tests.system.damage.runs import HARMS

STEP = "lm/step-000001"
STATE, MOMENTS = f"{STEP}/training/state.json", f"{STEP}/training/moments.safetensors"
DATA = "lm/data"
EXPORT = f"{TRAIN_LM} --export exported"
READERS = [
    "generate --max-new-tokens 3 --model lm She",
    "info lm",
    "perplexity --model lm story.txt",
]
FILES = [
    *("tokenizer.json", "corpus.json", "checksums.json"),
    *(f"{split}.{part}.npy" for split in ("train", "valid") for part in ("values", "offsets")),
]


def other_byte(name: str) -> Harm:
    """One bit is another one, in the middle of the file."""

    def flip(content: bytes) -> bytes:
        middle = len(content) // 2
        return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]

    return change(name, flip)


RUN: dict[str, tuple[Harm, str]] = {
    "no settings": (remove("lm/settings.json"), "lm is not a run: it has no settings.json"),
    "settings that are cut off": (cut("lm/settings.json", 0.5), "lm/settings.json is damaged: it is not JSON"),
    "settings of another recipe": (copy("lm/settings.json", "run/settings.json"), "lm was started with other settings"),
    "a text that has changed": (change("story.txt", lambda content: content.replace(b"rice", b"oats")), "other data"),
    "a text that has grown": (change("story.txt", lambda content: content + b"and so on\n"), "other data"),
    "a text that is gone": (remove("story.txt"), "story.txt does not exist"),
    "a text that is a folder of the same": (
        lambda room: [
            (content := (room / "story.txt").read_bytes()),
            directory("story.txt")(room),
            (room / "story.txt" / "b.txt").write_bytes(content[:40]),
            (room / "story.txt" / "a.txt").write_bytes(content[40:]),
        ],
        "other data",
    ),
    "a last checkpoint that is gone": (remove(STEP), "lm/step-000001 is named as the last checkpoint"),
    "a checkpoint that is a file": (write(STEP, "hello"), STEP),
    "no state": (remove(STATE), STEP),
    "a state that is cut off": (cut(STATE, 0.5), f"{STATE} is damaged: it is not JSON"),
    "a negative update": (edit(STATE, lambda state: state.update(update=-1)), f"{STATE} is damaged: update is -1"),
    "no moments": (remove(MOMENTS), "moments.safetensors"),
    "moments that are cut off": (cut(MOMENTS, 0.7), f"{MOMENTS} is damaged"),
    "moments that are NaN": (
        arrays(MOMENTS, lambda values: values.update(first=values["first"] * np.nan)),
        f"{MOMENTS} is damaged: 'first' is not",
    ),
    "moments of another size": (
        arrays(MOMENTS, lambda values: values.update(first=values["first"][:-1])),
        f"{MOMENTS} is damaged: 'first' is not",
    ),
    "moments of another run": (copy(MOMENTS, "run/step-000001/training/moments.safetensors"), f"{MOMENTS} is damaged"),
    "a model that is cut off": (cut(f"{STEP}/model.safetensors", 0.6), f"{STEP}/model.safetensors is damaged"),
    "a model of another kind": (
        both(*(copy(f"{STEP}/{name}", f"run/step-000001/{name}") for name in ("config.json", "model.safetensors"))),
        STEP,
    ),
    "a model of another context": (
        edit(f"{STEP}/config.json", lambda config: config["model"].update(max_length=32)),
        f"{STEP} belongs to another run",
    ),
    "a model without its config": (remove(f"{STEP}/config.json"), f"{STEP} is not a model"),
    "data that is a file": (write(DATA, "hello"), DATA),
    "data of translation": (both(remove(DATA), lambda room: (room / "run/data").rename(room / DATA)), DATA),
    "offsets that go back": (array(f"{DATA}/train.offsets.npy", lambda offsets: offsets[::-1]), DATA),
    "ids that the tokenizer does not have": (array(f"{DATA}/train.values.npy", lambda ids: ids + 1000), DATA),
    "a tokenizer of a setting more": (
        edit(f"{DATA}/tokenizer.json", lambda settings: settings.update(colour="red")),
        f"{DATA}/tokenizer.json is missing or damaged: delete lm/data to have it made again",
    ),
    "a tokenizer too many": (write(f"{DATA}/tokenizer.model", "hello"), "has both tokenizer.model and tokenizer.json"),
    "checksums of nothing": (write(f"{DATA}/checksums.json", "{}"), DATA),
    "checksums and a report of nothing": (
        both(write(f"{DATA}/checksums.json", "{}"), write(f"{DATA}/corpus.json", "{}")),
        DATA,
    ),
    "checksums of nothing, and ids that there are not": (
        both(
            write(f"{DATA}/checksums.json", "{}"), array(f"{DATA}/valid.values.npy", lambda ids: ids.astype(float) - 99)
        ),
        DATA,
    ),
}
MODEL: dict[str, tuple[Harm, str]] = {
    "a best checkpoint that is gone": (remove(STEP), "lm/step-000001 is not a model: it is not a directory"),
    "a best checkpoint elsewhere": (write("lm/best", "../run"), "lm/best is damaged"),
    "a best checkpoint without a tokenizer": (
        remove(f"{STEP}/tokenizer.json"),
        f"{STEP}/tokenizer.model does not exist, nor tokenizer.json",
    ),
    "a best checkpoint of a cut tokenizer": (cut(f"{STEP}/tokenizer.json", 0.5), f"{STEP}/tokenizer.json is damaged"),
    "a best checkpoint with the tokenizer of another": (copy(f"{STEP}/tokenizer.json", "bytes/tokenizer.json"), STEP),
    "a best checkpoint that is cut off": (cut(f"{STEP}/model.safetensors", 0.6), f"{STEP}/model.safetensors"),
}


def kinds() -> Iterator[Kind]:
    for name, (harm, says) in RUN.items():
        yield Kind(f"run: {name}", RESUME_LM, says, harm, needs="run")
    for number, file in enumerate(FILES):
        for name, harm in [*HARMS.items()][number % 2 :: 2]:
            yield Kind(f"run: {file} is {name}", RESUME_LM, DATA, harm(f"{DATA}/{file}"))
        yield Kind(f"run: {file} has another byte", RESUME_LM, DATA, other_byte(f"{DATA}/{file}"))
    for number, (name, (harm, says)) in enumerate(MODEL.items()):
        yield Kind(name, READERS[number % len(READERS)], says, harm, needs="run bytes")
    yield Kind(
        "a run of translation to resume", RESUME_LM, "run was started with other settings", flags=("--run", "run")
    )
    yield from _disks()


def _disks() -> Iterator[Kind]:
    for size in 100, 1000, 3000, 5000:
        yield Kind(
            f"no room for files of more than {size} bytes in a run",
            TRAIN_LM,
            "new",
            disk=lambda size=size: limited(size),
            leaves="new",
        )
    for size in 300, 3000:
        yield Kind(
            f"no room for more than {size} bytes to resume",
            RESUME_LM,
            "lm",
            disk=lambda size=size: limited(size),
            leaves="lm",
        )
    yield Kind(
        "a full disk, told on making a directory",
        TRAIN_LM,
        "new cannot be created",
        disk=failing(Path, "mkdir", errno.ENOSPC),
    )
    for after in 1, 12:
        yield Kind(
            f"a disk that fails, told on flushing after {after} others",
            TRAIN_LM,
            "new",
            disk=failing(os, "fsync", errno.EIO, after),
            leaves="new",
        )
    for after in 0, 2:
        yield Kind(
            f"a full disk, told on renaming after {after} others",
            EXPORT,
            "cannot be written",
            disk=failing(Path, "rename", errno.ENOSPC, after),
            leaves="new",
        )
