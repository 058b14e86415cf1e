"""Templates of the base text: "[tea|milk]" is a choice, "{name}" a slot."""

import re
from collections.abc import Mapping
from random import Random

CHOICE = re.compile(r"\[([^\[\]]*)\]")


def write(template: str, values: Mapping[str, object], rng: Random) -> str:
    """Choose, from the inside out, and fill the slots."""
    while CHOICE.search(template):
        template = CHOICE.sub(lambda match: rng.choice(match[1].split("|")), template)
    return template.format_map(values)


def lines(text: str) -> tuple[str, ...]:
    """The templates of a list, one a line."""
    return tuple(line.strip() for line in text.strip().splitlines() if line.strip())


def blocks(text: str) -> tuple[str, ...]:
    """The templates of a list whose parts may have several lines; an empty line between two."""
    return tuple(" ".join(block.split()) for block in text.strip().split("\n\n"))
