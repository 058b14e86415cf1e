"""What all topics of `toolkit explain` share: a page, which is printed or written to a file."""

import os
import shutil
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from toolkit.commands.console import emit, emit_page
from toolkit.errors import ConfigError
from toolkit.explain.pages.blocks import Page
from toolkit.files import atomic_writer

_PIPE = (100, 24)  # columns and lines where nobody says how wide the terminal is


@dataclass(kw_only=True)
class Explanation(ABC):
    """A topic. Its flags are those of the subclass, and where the page goes."""

    html: Path | None = None
    """Write one self-contained page to this file, for a browser, instead of printing."""

    @abstractmethod
    def page(self) -> Page:
        """What there is to show. Raises ToolkitError for what cannot be explained."""

    def run(self) -> None:
        """Print the page, or write it and tell where. Raises DataError where the file cannot be written."""
        if self.html is None:
            from toolkit.explain.pages.terminal import lines

            emit_page(lines(self.page(), shutil.get_terminal_size(_PIPE).columns, has_color()))
        else:
            self.written_page(self.html)

    def written_page(self, path: Path) -> Page:
        """The page, which has been written; a name that cannot be is told before the work."""
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
        """As every topic, or draw the maps. Raises ConfigError where that is not possible."""
        if self.picture is None:
            super().run()
            return
        from toolkit.explain.pictures.drawing import picture_format
        from toolkit.explain.pictures.maps import page_picture

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
    """Before the work whose result is to be written. Raises DataError where `atomic_writer` would."""
    with suppress(_NotYet), atomic_writer(path):
        raise _NotYet


def has_color() -> bool:
    """Whether standard output is a terminal with colours and nobody objects (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()
