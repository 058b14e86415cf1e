"""toolkit explain: what a transformer does, number by number, one topic at a time."""

import os
import shutil
import sys
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from toolkit.commands.console import emit, emit_page
from toolkit.commands.flags import parse_flags
from toolkit.errors import ConfigError
from toolkit.files import atomic_writer

if TYPE_CHECKING:
    from toolkit.explain.pages.blocks import Page

# The topics, and what each shows; the class that does it is imported only when it is asked for.
TOPICS = {
    "attention": "One sentence through a model, step by step: formulas, shapes and numbers.",
    "translate": "How a translation came about: attention, candidates, the beam as a tree.",
    "generate": "How a text goes on: each next token's distribution, before and after sampling.",
    "training": "Teacher forcing on one pair of sentences, and one step of AdamW in numbers.",
    "parallel": "Why attention is parallel and long-range, and a recurrent network is neither.",
    "gradients": "Every derivative: formula, source, a live check; and the well-known wrong ones.",
}
_PIPE = (100, 24)  # columns and lines where nobody says how wide the terminal is


def explain(arguments: Sequence[str]) -> "Explanation | _Topics":
    """Read a topic and its flags; without a topic, the command lists them. Raises ConfigError for what is neither."""
    topic, *rest = arguments or ["--help"]
    if topic in TOPICS:
        command = getattr(import_module("toolkit.commands.explain_topics"), f"Explain{topic.title()}")
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
                *(f"  {topic:{width}}  {purpose}" for topic, purpose in TOPICS.items()),
                "",
                "`toolkit explain TOPIC --help` explains its flags; --html FILE writes a page for a browser.",
            ]
        )


@dataclass(kw_only=True)
class Explanation(ABC):
    """A topic. Its flags are those of the subclass, and where the page goes."""

    html: Path | None = None
    """Write one self-contained page to this file, for a browser, instead of printing."""

    @abstractmethod
    def page(self) -> "Page":
        """Make the page. Raises ToolkitError for what cannot be explained."""

    def run(self) -> None:
        """Print the page, or write it and tell where. Raises DataError where the file cannot be written."""
        if self.html is None:
            from toolkit.explain.pages.terminal import lines

            emit_page(lines(self.page(), shutil.get_terminal_size(_PIPE).columns, has_color()))
        else:
            self.written_page(self.html)

    def written_page(self, path: Path) -> "Page":
        """Write the page and return it.  Raises DataError before the work where the file cannot be written."""
        from toolkit.explain.pages.html import document

        check_writable(path)
        page = self.page()
        content = document(page).encode()
        with atomic_writer(path) as file:
            file.write(content)
        emit([f"{path}: open it in a browser"])
        return page


@dataclass(kw_only=True)
class MappedExplanation(Explanation):
    """A topic whose page has maps of attention, which can be a picture too."""

    picture: Path | None = None
    """Write the page's maps of attention to this file, .png or .svg, instead of printing."""

    def run(self) -> None:
        """Print or write the page, or draw its maps. Raises ConfigError where that is not possible."""
        if self.picture is None:
            super().run()
            return
        from toolkit.explain.pages.drawing import picture_format
        from toolkit.explain.pages.maps import page_picture

        picture_format(self.picture)
        if self.html and self.html.resolve() == self.picture.resolve():
            raise ConfigError(f"--html and --picture both name {self.picture}: give the page another file")
        check_writable(self.picture)
        page = self.page() if self.html is None else self.written_page(self.html)
        page_picture(page).save(self.picture)
        emit([f"{self.picture}: the maps of attention"])


class _NotYet(Exception):  # noqa: N818
    """Nothing is wrong; nothing is written either."""


def check_writable(path: Path) -> None:
    """Raise DataError where `atomic_writer` would, before the work whose result is to be written."""
    with suppress(_NotYet), atomic_writer(path):
        raise _NotYet


def has_color() -> bool:
    """Tell if standard output is a terminal with colours and nobody objects (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()
