"""Write base.txt: the text that a language model reads before it learns to chat.

python -m data.chat.base            write the file
python -m data.chat.base --check    compare with the file that is here; write nothing

Facts and sums as statements, thousands of people, each with a name of their own, who are spoken of more than once, and
questions with their answers on the next line. Documents are separated by an empty line.
"""

import argparse
import sys
import unicodedata
from collections.abc import Callable
from pathlib import Path
from random import Random

from data.chat import base_nepali, base_people, base_prose, base_questions

FILE = Path(__file__).parent / "base.txt"
SEED = "chat base 1"

# How many documents of a kind; each is drawn anew.
SINGLE: tuple[tuple[Callable[[Random], str], int], ...] = (
    (base_people.portrait, 2400),
    (base_people.i_and_you, 1600),
    (base_people.two_people, 700),
    (base_prose.story, 700),
    (base_prose.everyday, 260),
    (base_prose.told_sum, 400),
    (base_nepali.portrait, 330),
    (base_nepali.i_and_you, 330),
    (base_nepali.facts, 120),
)
# How often the whole of it is told, each time mixed anew.
WHOLE: tuple[tuple[Callable[[Random], list[str]], int], ...] = (
    (base_prose.mixed_facts, 20),
    (base_prose.facts_by_topic, 4),
    (base_prose.mixed_sums, 16),
    (base_prose.sum_rows, 2),
)
QUESTIONS = 32_000  # with their answers


def documents() -> list[str]:
    """All documents, mixed. Each kind has a generator of its own, so that a change of one leaves the others alone."""
    texts = []
    for write, times in SINGLE:
        rng = Random(f"{SEED} {write.__module__} {write.__name__}")
        texts += [write(rng) for _ in range(times)]
    for write_all, times in WHOLE:
        rng = Random(f"{SEED} {write_all.__module__} {write_all.__name__}")
        texts += [text for _ in range(times) for text in write_all(rng)]
    texts += base_questions.questions(f"{SEED} questions", QUESTIONS)
    Random(SEED).shuffle(texts)
    return [unicodedata.normalize("NFC", text) for text in texts]


def base_text() -> str:
    return "\n\n".join(documents()) + "\n"


def main() -> int:
    parser = argparse.ArgumentParser(description="Write the base text of the chat models.")
    parser.add_argument("--out", type=Path, default=FILE, help="file to write (default: base.txt next to this program)")
    parser.add_argument("--check", action="store_true", help="compare with the file that is there; write nothing")
    arguments = parser.parse_args()
    text = base_text()
    if not arguments.check:
        arguments.out.write_bytes(text.encode())
    elif not arguments.out.exists() or arguments.out.read_bytes() != text.encode():
        print(f"data.chat: {arguments.out} is out of date; run `python -m data.chat.base`", file=sys.stderr)
        return 2
    print(f"{arguments.out.name}: {text.count(chr(10) * 2) + 1} documents, {len(text.encode()) / 1e6:.2f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
