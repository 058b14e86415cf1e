"""Write the embedded corpus of conversations.

    python -m data.chat.generate    write the text to read first, train, valid, test and the preferences

See data/command.py. The sentences that are translated are those of data/en_ne, whose files have to be there.
"""

import json
import sys
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from itertools import islice
from pathlib import Path

from data import command
from data.chat.base import base_text
from data.chat.dialogue_program import conversations
from data.chat.dialogue_prompts import TEST_SIZES, preferences, tests
from data.chat.names import Split

HERE = Path(__file__).parent

PART = 11_000  # conversations of a file to train on


@cache
def taught(split: Split, count: int) -> list[dict]:
    """The first conversations of a split."""
    return [{"messages": messages} for messages, _ in islice(conversations(split), count)]


# File -> its lines, one after the other, and how many are taken.
FILES: dict[str, tuple[Callable[[], Iterable[dict]], int]] = {
    "train-1.jsonl": (lambda: taught("train", 2 * PART)[:PART], PART),
    "train-2.jsonl": (lambda: taught("train", 2 * PART)[PART:], PART),
    "valid.jsonl": (lambda: taught("valid", 300), 300),
    "valid.questions.jsonl": (lambda: tests("valid"), 2 * sum(TEST_SIZES.values())),
    "test.jsonl": (lambda: tests("test"), 2 * sum(TEST_SIZES.values())),
    "preferences.train.jsonl": (lambda: preferences("train"), 5000),
    "preferences.valid.jsonl": (lambda: preferences("valid"), 500),
    "preferences.test.jsonl": (lambda: preferences("test"), 500),
}


def lines(name: str) -> Iterator[str]:
    """The lines of a file, made one by one."""
    make, size = FILES[name]
    for record in islice(make(), size):
        yield unicodedata.normalize("NFC", json.dumps(record, ensure_ascii=False)) + "\n"


def texts() -> Iterator[tuple[str, str]]:
    """The name and the contents of every file."""
    yield "base.txt", base_text()
    for name in FILES:
        yield name, "".join(lines(name))


if __name__ == "__main__":
    sys.exit(command.run(HERE, texts))
