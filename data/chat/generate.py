"""Write the embedded corpus of conversations.

python -m data.chat.generate              write train, valid, test and the preferences next to this program
python -m data.chat.generate --out DIR    write them elsewhere
python -m data.chat.generate --check      compare with the files that are here; write nothing
"""

import argparse
import json
import sys
import unicodedata
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

from data.chat.dialogue_program import conversations
from data.chat.dialogue_prompts import TEST_SIZES, preferences, tests
from data.chat.names import Split

HERE = Path(__file__).parent


PART = 7200  # conversations of a file to train on: more would be too much for one file in a repository


def taught(split: Split, left_out: int = 0) -> Iterator[dict]:
    """The conversations of a split, without end and without so many at the beginning."""
    return ({"messages": messages} for messages, _ in islice(conversations(split), left_out, None))


# File -> its lines, one after the other, and how many are taken.
FILES: dict[str, tuple[Callable[[], Iterator[dict]], int]] = {
    "train-1.jsonl": (lambda: taught("train"), PART),
    "train-2.jsonl": (lambda: taught("train", PART), PART),
    "valid.jsonl": (lambda: taught("valid"), 300),
    "valid.questions.jsonl": (lambda: tests("valid"), sum(TEST_SIZES.values())),
    "test.jsonl": (lambda: tests("test"), sum(TEST_SIZES.values())),
    "preferences.train.jsonl": (lambda: preferences("train"), 5000),
    "preferences.test.jsonl": (lambda: preferences("test"), 500),
}


def lines(name: str, count: int | None = None) -> Iterator[str]:
    """The first lines of a file (default: all), made one by one."""
    make, size = FILES[name]
    for record in islice(make(), size if count is None else count):
        yield unicodedata.normalize("NFC", json.dumps(record, ensure_ascii=False)) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the embedded corpus of conversations.")
    parser.add_argument("--out", type=Path, default=HERE, help="directory to write to (default: next to this program)")
    parser.add_argument("--check", action="store_true", help="compare with the files that are there; write nothing")
    arguments = parser.parse_args()
    different = []
    for name in FILES:
        path, text = arguments.out / name, "".join(lines(name))
        if arguments.check:
            if not path.exists() or path.read_bytes() != text.encode():
                different.append(name)
        else:
            arguments.out.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        print(f"{name}: {text.count(chr(10))} lines, {len(text.encode()) / 1e6:.2f} MB")
    if different:
        print(f"data.chat: out of date: {', '.join(different)}; run `python -m data.chat.generate`", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
