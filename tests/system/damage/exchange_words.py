"""What is to be imported or exported, and where to: words that mean nothing, and places where nothing can be."""

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.system.damage.disks import failing, limited
from tests.system.damage.models import smaller_tokenizer
from tests.system.damage.room import Harm, Kind, arrays, change, write

IMPORT, EXPORT = "import marian new", "export model new"

# Where the result should go, for both verbs.
PLACES: dict[str, tuple[Harm | None, str, str]] = {
    "a directory with something in it": (write("new/letter.txt", "mine"), "new", "new already exists"),
    "a file": (write("new", "mine"), "new", "new already exists: choose another DIRECTORY"),
    "below a file": (write("new", "mine"), "new/there", "new/there cannot be written (new is a file)"),
    "where the command runs": (None, ".", ". already exists"),
    "among the processes": (None, "/proc/new", "/proc/new cannot be written"),
    "of an endless name": (None, "x" * 260, "cannot be written"),
}
WORDS: dict[str, tuple[str, tuple[str, ...], str]] = {
    "nothing to import": ("import", (), "source and directory are missing"),
    "nowhere to import to": ("import", ("marian",), "directory is missing"),
    "two models to import": (IMPORT, ("theirs",), "'theirs' is a word too many"),
    "an import of nowhere": ("import", ("nowhere", "new"), "nowhere is not a directory"),
    "an import of a shipped model": ("import", ("en-ne-small", "new"), "en-ne-small is not a directory"),
    "an import of a file": ("import", ("old.txt", "new"), "old.txt is not a directory"),
    "an import of texts": ("import", ("tales", "new"), "tales is not a model: it has no config.json"),
    "an import of a model of ours": ("import", ("model", "new"), "model is a model of this toolkit already"),
    "a flag of the other verb": (IMPORT, ("--half",), "there is no flag --half"),
    "nothing to export": ("export", (), "model and directory are missing"),
    "nowhere to export to": ("export", ("model",), "directory is missing"),
    "an export to a library that there is not": (EXPORT, ("--to", "onnx"), "--to is 'onnx': it must be one of"),
    "an export to no library": (EXPORT, ("--to",), "--to needs a value"),
    "an export of no model": ("export", ("no-such-model", "new"), "there is no model 'no-such-model'"),
    "an export of texts": ("export", ("tales", "new"), "tales is not a model"),
    "an export of a model of theirs": ("export", ("theirs", "new"), "toolkit import"),
    "an export of what no class is": ("export", ("odd", "new"), "no class of transformers computes"),
}


def large(room: Path) -> None:
    """Weights that float16 does not hold."""
    arrays("model/model.safetensors", lambda values: {name: value * 1e9 for name, value in values.items()})(room)


def kinds() -> Iterator[Kind]:
    for verb, source in ("import", "marian"), ("export", "model"):
        for name, (harm, place, says) in PLACES.items():
            yield Kind(f"a place for a model: {name}", verb, says, harm, (source, place))
        for name, disk in _disks().items():
            yield Kind(f"a place for a model: {name}", f"{verb} {source} new", "new cannot be written", disk=disk)
    for name, (command, words, says) in WORDS.items():
        yield Kind(name, command, says, None, words)
    for to in "hugging-face", "ctranslate2":
        words = ("model", "new", "--half", "--to", to)
        yield Kind(f"too large for float16: {to}", "export", "too large for float16", large, words)
    broken = arrays("model/model.safetensors", lambda values: [values.popitem(), None][1])
    yield Kind("an export of a damaged model", EXPORT, "model/model.safetensors", broken)
    tokenizer = change("model/tokenizer.model", smaller_tokenizer)
    yield Kind("an export with another tokenizer", EXPORT, "model has a tokenizer of", tokenizer)


def _disks() -> dict[str, Callable[[], Any]]:
    return {
        "full": failing(os, "fsync", errno.ENOSPC),
        "full after three files": failing(os, "fsync", errno.ENOSPC, 3),
        "of which nothing may be made": failing(Path, "mkdir", errno.EACCES),
        "that may only be read": failing(Path, "rename", errno.EROFS),
        "of 1000 bytes": lambda: limited(1000),
        "of 20000 bytes": lambda: limited(20_000),
    }
