"""toolkit explain: what a transformer does, number by number, one topic at a time."""

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Protocol

from toolkit.commands.console import emit
from toolkit.commands.flags import parse_flags
from toolkit.errors import ConfigError

# What each topic shows, and the class that does it, imported only when it is asked for.
TOPICS = {
    "attention": ("ExplainAttention", "One sentence through a model, step by step: formulas, shapes and numbers."),
    "translate": ("ExplainTranslate", "How a translation came about: attention, candidates, the beam as a tree."),
    "generate": (
        "ExplainGenerate",
        "How a text goes on: each next token's distribution, before and after sampling.",
    ),
    "training": ("ExplainTraining", "Teacher forcing on one pair of sentences, and one step of AdamW in numbers."),
    "parallel": ("ExplainParallel", "Why attention is parallel and long-range, and a recurrent network is neither."),
    "gradients": (
        "ExplainGradients",
        "Every derivative: formula, source, a live check; and the well-known wrong ones.",
    ),
}


class Command(Protocol):
    """What a verb does when its flags are read."""

    def run(self) -> None: ...


def explain(arguments: Sequence[str]) -> Command:
    """Read a topic and its flags; without a topic, the command lists them. Raises ConfigError for what is neither."""
    topic, *rest = arguments or ["--help"]
    if topic in TOPICS:
        command = getattr(import_module(f"toolkit.commands.explain_{topic}"), TOPICS[topic][0])
        return parse_flags(command, f"toolkit explain {topic}", rest)
    if topic in ("-h", "--help"):
        return _Topics()
    kind = "flag" if topic.startswith("-") else "topic"
    raise ConfigError(f"there is no {kind} {topic!r}: it is toolkit explain TOPIC, with a topic of {', '.join(TOPICS)}")


@dataclass
class _Topics:
    """List the topics."""

    def run(self) -> None:
        width = max(map(len, TOPICS))
        emit(
            [
                "usage: toolkit explain TOPIC ...",
                "",
                *(f"  {topic:{width}}  {purpose}" for topic, (_, purpose) in TOPICS.items()),
                "",
                "`toolkit explain TOPIC --help` explains its flags; --html FILE writes a page for a browser.",
            ]
        )
