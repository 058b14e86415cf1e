"""What all topics of `toolkit explain` share: a page, which is printed or written to a file."""

import os
import shutil
import sys
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path

from toolkit.commands.console import emit
from toolkit.explain.blocks import Page
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
            from toolkit.explain.terminal import lines

            emit(lines(self.page(), shutil.get_terminal_size(_PIPE).columns, has_color()))
        else:
            self.written_page(self.html)

    def written_page(self, path: Path) -> Page:
        """The page, which has been written."""
        from toolkit.explain.html import document

        with atomic_writer(path) as file:  # a name that cannot be written is told before the work
            page = self.page()
            file.write(document(page).encode())
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
        from toolkit.explain.drawing import picture_format
        from toolkit.explain.pictures import page_picture

        picture_format(self.picture)
        page = self.page() if self.html is None else self.written_page(self.html)
        page_picture(page).save(self.picture)
        emit([f"{self.picture}: the maps of attention"])


def has_color() -> bool:
    """Whether standard output is a terminal with colours and nobody objects (https://no-color.org)."""
    wanted = not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    return wanted and sys.stdout is not None and sys.stdout.isatty()
