"""What a fact is."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Fact:
    """One thing that is known: several ways to ask for it, the bare answer ("Paris") and the answer in a sentence."""

    questions: tuple[str, ...]
    short: str
    full: str
    topic: str

    @property
    def statement(self) -> str:
        """The fact as a sentence that needs no question before it."""
        return self.full


def read_facts(text: str) -> tuple[Fact, ...]:
    """Facts written as blocks: "topic > bare answer > sentence", then a question a line; an empty line between two."""
    facts = []
    for block in text.strip().split("\n\n"):
        head, *questions = (line.strip() for line in block.strip().splitlines())
        topic, short, full = head.split(" > ")
        facts.append(Fact(tuple(questions), short, full, topic))
    return tuple(facts)
