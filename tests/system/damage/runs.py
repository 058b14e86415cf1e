"""Runs that are damaged: met by those who continue them, and by those who use them as models."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tests.system.damage.models import smaller_tokenizer
from tests.system.damage.room import (
    RESUME,
    Harm,
    Kind,
    array,
    arrays,
    both,
    change,
    cut,
    directory,
    edit,
    remove,
    write,
)

STEP = "run/step-000001"
STATE, MOMENTS = f"{STEP}/training/state.json", f"{STEP}/training/moments.safetensors"
AVERAGE = "average run run/step-000001 --output mean"
READERS = [
    "translate --max-new-tokens 2 hello --model run",
    "info run",
    "score --source lines.en --target lines.ne --model run",
]


def state(**values: Any) -> Harm:
    return edit(STATE, lambda progress: progress.update(values))


def moments(how: Callable[[dict[str, np.ndarray]], Any]) -> Harm:
    return arrays(MOMENTS, how)


def first(how: Callable[[np.ndarray], np.ndarray]) -> Harm:
    return moments(lambda values: values.update(first=how(values["first"])))


def spoil(values: np.ndarray) -> np.ndarray:
    values[7] = np.nan
    return values


def report(**values: Any) -> Harm:
    return edit("run/data/corpus.json", lambda report: report.update(values))


# What is wrong with a run, for those who continue it.
RUN: dict[str, tuple[Harm, str]] = {
    "no settings": (remove("run/settings.json"), "run is not a run: it has no settings.json"),
    "settings that are cut off": (cut("run/settings.json", 0.5), "run/settings.json is damaged: it is not JSON"),
    "settings that are a list": (write("run/settings.json", "[]"), "run/settings.json is damaged"),
    "settings that are nested without end": (write("run/settings.json", "[" * 100_000), "run/settings.json is damaged"),
    "settings that are a directory": (directory("run/settings.json"), "run/settings.json cannot be read"),
    "settings in UTF-16": (write("run/settings.json", "{}".encode("utf-16")), "run/settings.json is damaged"),
    "settings of another recipe": (write("run/settings.json", "{}"), "run was started with other settings"),
    "data that has changed": (change("lines.en", lambda content: content.replace(b"rice", b"oats")), "other data"),
    "data that has grown": (
        both(*(change(f"lines.{end}", lambda content: content + b"and so on\n") for end in ("en", "ne"))),
        "other data",
    ),
    "data that is gone": (remove("lines.ne"), "lines.ne does not exist"),
    "a log that is a directory": (directory("run/log.jsonl"), "run/log.jsonl cannot be written"),
    "a last checkpoint that is gone": (
        remove(STEP),
        "run/step-000001 is named as the last checkpoint and is not there",
    ),
    "a checkpoint that is a file": (write(STEP, "hello"), "run/step-000001"),
    "an empty checkpoint": (both(remove(STEP), directory(STEP)), "run/step-000001"),
    "no state": (remove(STATE), STATE.rpartition("/")[0]),
    "a state that is cut off": (cut(STATE, 0.5), f"{STATE} is damaged: it is not JSON"),
    "a state that is a list": (write(STATE, "[]"), f"{STATE} is damaged"),
    "a state with an unknown key": (
        state(colour="red"),
        f"{STATE} is damaged: it has 'colour', which is unknown here",
    ),
    "a state without its update": (edit(STATE, lambda progress: [progress.pop("update"), None][1]), "it has no update"),
    "a negative update": (state(update=-1), f"{STATE} is damaged: update is -1"),
    "a fraction of an update": (state(update=1.5), f"{STATE} is damaged: update is 1.5"),
    "an update in words": (state(update="one"), f'{STATE} is damaged: update is "one"'),
    "a best score that is not a number": (state(best=float("nan")), f"{STATE} is damaged: best is NaN"),
    "scores that are a list": (state(scores=[1]), f"{STATE} is damaged: scores is [1], not an object"),
    "no moments": (remove(MOMENTS), "moments.safetensors"),
    "moments that are cut off": (cut(MOMENTS, 0.7), f"{MOMENTS} is damaged"),
    "moments that are a directory": (directory(MOMENTS), MOMENTS),
    "moments that are NaN in one place": (first(spoil), f"{MOMENTS} is damaged: 'first' is not"),
    "moments of another size": (first(lambda values: values[:-1]), f"{MOMENTS} is damaged: 'first' is not"),
    "moments of another type": (
        first(lambda values: values.astype(np.float64)),
        f"{MOMENTS} is damaged: 'first' is not",
    ),
    "moments without the second": (moments(lambda values: [values.pop("second"), None][1]), f"{MOMENTS} is damaged"),
    "moments with a third": (moments(lambda values: values.update(third=values["first"])), f"{MOMENTS} is damaged"),
    "averages that nobody asked for": (
        moments(lambda values: values.update(parameters=values["first"])),
        "run/step-000001",
    ),
    "a model that is cut off": (cut(f"{STEP}/model.safetensors", 0.6), f"{STEP}/model.safetensors is damaged"),
    "a model without its config": (remove(f"{STEP}/config.json"), f"{STEP} is not a model"),
    "data that is a file": (write("run/data", "hello"), "run/data"),
    "no ids": (
        both(remove("run/data/ids"), directory("run/data/ids"), write("run/data/ids/corpus.json", "{}")),
        "run/data/ids",
    ),
    "a corpus without its sources": (report(sources=[]), "run/data/corpus.json"),
    "a corpus whose sources are numbers": (report(sources=[1]), "run/data/corpus.json"),
    "a corpus whose sources begin nowhere": (report(sources=[{"name": "x"}]), "run/data/corpus.json"),
    "a corpus without limits": (
        edit("run/data/corpus.json", lambda report: [report.pop("limits"), None][1]),
        "run/data/corpus.json",
    ),
    "a corpus that is a list": (write("run/data/corpus.json", "[]"), "run/data/corpus.json"),
    "a corpus of findings that are none": (
        edit("run/data/corpus.json", lambda report: report["train"].update(findings={"odd": 1})),
        "run/data/corpus.json",
    ),
    "rows that are not there": (array("run/data/train.npy", lambda rows: rows + 1000), "run/data"),
    "rows of validation that are not there": (array("run/data/valid.npy", lambda rows: rows + 1000), "run/data"),
    "negative rows": (array("run/data/ids/valid.rows.npy", lambda rows: -1 - rows), "run/data"),
    "rows of examples that are not there": (array("run/data/ids/valid.rows.npy", lambda rows: rows + 99), "run/data"),
    "fewer rows than examples": (array("run/data/ids/valid.rows.npy", lambda rows: rows[:-1]), "run/data"),
    "rows in fractions": (array("run/data/ids/valid.rows.npy", lambda rows: rows + 0.5), "run/data"),
    "offsets that go back": (
        array("run/data/source.offsets.npy", lambda offsets: offsets[[0, 2, 1, *range(3, 7)]]),
        "run/data",
    ),
    "offsets in fractions": (array("run/data/ids/train.target.offsets.npy", lambda offsets: offsets + 0.0), "run/data"),
    "offsets in two dimensions": (array("run/data/target.offsets.npy", lambda offsets: offsets[:, None]), "run/data"),
    "ids that the tokenizer does not have": (
        array("run/data/ids/train.target.values.npy", lambda ids: ids + 10**6),
        "run/data",
    ),
    "negative ids": (array("run/data/ids/valid.source.values.npy", lambda ids: -1 - ids), "run/data"),
    "ids in fractions": (array("run/data/ids/train.source.values.npy", lambda ids: ids + 0.5), "run/data"),
    "texts that are not UTF-8": (array("run/data/source.values.npy", lambda values: values | 0x80), "run/data"),
    "more sources than targets": (
        both(
            array("run/data/ids/train.source.offsets.npy", lambda offsets: offsets[[0, *range(2, len(offsets))]]),
        ),
        "run/data",
    ),
    "ids without an account of them": (cut("run/data/ids/corpus.json", 0.5), "run/data/ids/corpus.json is missing or"),
    "a corpus that is cut off": (cut("run/data/corpus.json", 0.5), "run/data/corpus.json is missing or damaged"),
    "a tokenizer of another data set": (change("run/data/tokenizer.model", smaller_tokenizer), "run"),
}
FILES = [
    *("source.values.npy", "source.offsets.npy", "target.values.npy", "lines.npy", "train.npy", "valid.npy"),
    *("ids/train.source.values.npy", "ids/train.target.offsets.npy", "ids/valid.rows.npy"),
    *("tokenizer.model", "checksums.json", "ids/checksums.json"),
]
HARMS: dict[str, Callable[[str], Harm]] = {
    "gone": remove,
    "empty": lambda name: write(name, b""),
    "cut off": lambda name: cut(name, 0.8),
    "all zeros": lambda name: change(name, lambda content: bytes(len(content))),
    "text": lambda name: write(name, "hello\n"),
    "a directory": directory,
}
# What is wrong with a run, for those who use it as a model.
MODEL: dict[str, tuple[Harm, str]] = {
    "a best checkpoint that is gone": (remove(STEP), "run/step-000001 is not a model: it is not a directory"),
    "a best checkpoint of no name": (write("run/best", ""), "run/best is damaged: it does not name a checkpoint"),
    "a best checkpoint of zeros": (write("run/best", bytes(12)), "run/best is damaged"),
    "a best checkpoint of an endless name": (write("run/best", "x" * 3000), "run/best is damaged"),
    "a best checkpoint elsewhere": (write("run/best", "../other"), "run/best is damaged"),
    "a best checkpoint of another number": (write("run/best", "step-000009"), "run/step-000009 is not a model"),
    "a run without checkpoints": (both(remove(STEP), remove("run/best"), remove("run/last")), "run is not a model"),
    "a best checkpoint without a tokenizer": (
        remove(f"{STEP}/tokenizer.model"),
        f"{STEP}/tokenizer.model does not exist",
    ),
}


def kinds() -> Iterator[Kind]:
    for name, (harm, says) in RUN.items():
        yield Kind(f"run: {name}", RESUME, says, harm)
    for number, file in enumerate(FILES):
        for name, harm in [*HARMS.items()][number % 3 :: 3] if number else HARMS.items():
            yield Kind(f"run: {file} is {name}", RESUME, "run/data", harm(f"run/data/{file}"))
    for number, (name, (harm, says)) in enumerate(MODEL.items()):
        yield Kind(name, READERS[number % len(READERS)], says, harm)
    for name, harm in {
        "a run without checkpoints to average": remove(STEP),
        "a checkpoint to average that is cut off": cut(f"{STEP}/model.safetensors", 0.6),
        "a checkpoint to average without a tokenizer": remove(f"{STEP}/tokenizer.model"),
    }.items():
        yield Kind(name, AVERAGE, "run", harm)
