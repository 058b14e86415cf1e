"""The base text, which a language model reads before it learns to chat (base.txt).

Facts and sums as statements, thousands of people, each with a name of their own, who are spoken of more than once, and
questions with their answers on the next line. Documents are separated by an empty line.
"""

import unicodedata
from collections.abc import Callable
from random import Random

from data.chat import base_nepali, base_people, base_prose, base_questions

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
    (base_nepali.i_and_you, 900),
    (base_nepali.facts, 120),
)
# How often the whole of it is told, each time mixed anew.
WHOLE: tuple[tuple[Callable[[Random], list[str]], int], ...] = (
    (base_prose.mixed_facts, 20),
    (base_prose.facts_by_topic, 4),
    (base_prose.mixed_sums, 16),
    (base_prose.sum_rows, 2),
    (base_nepali.mixed_sums, 12),
)
QUESTIONS = 42_000  # with their answers


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
    """The documents, an empty line between them."""
    return "\n\n".join(documents()) + "\n"
