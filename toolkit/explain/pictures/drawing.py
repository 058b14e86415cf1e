"""Pictures in files and notebooks: PNG and SVG, matplotlib where it is needed, fonts that have the letters of a text.

matplotlib is an optional library, and slow to import: only the functions that draw with it do so.
"""

import io
import unicodedata
import warnings
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from toolkit.errors import ConfigError
from toolkit.files import atomic_writer

FORMATS = ("png", "svg")
OLDEST = (3, 11)  # the first matplotlib that joins Devanagari letters as they must be
LATIN = "DejaVu Sans"  # comes with matplotlib
PIXELS_PER_INCH = 96  # of a picture in its own size; a PNG has twice as many
_MOST_PIXELS, _LONGEST_SIDE = 60_000_000, 60_000

# Fonts of the common systems, tried in this order before all others.
_DEVANAGARI_FONTS = (
    *("Noto Sans Devanagari", "Noto Sans Devanagari UI", "Mukta", "Kohinoor Devanagari", "Devanagari Sangam MN"),
    *("Nirmala UI", "Mangal", "Lohit Devanagari", "Lohit Nepali", "Noto Serif Devanagari", "FreeSans", "FreeSerif"),
)
_FIRST, _LAST = "\u0900", "\u097f"
_SAMPLE = "कर्षि"


class Picture(ABC):
    """Something to look at. A notebook shows it by itself; elsewhere, save it."""

    @property
    @abstractmethod
    def svg(self) -> str:
        """The picture as an SVG file, whose text is text."""

    @abstractmethod
    def png(self) -> bytes:
        """The picture as a PNG file. Raises ConfigError without matplotlib, or without a font that it needs."""

    def save(self, path: str | Path) -> None:
        """Write a file, PNG or SVG as its name ends, replaced whole.

        Raises ConfigError for a name with another end and as `png` does, DataError where it cannot be written.
        """
        kind = picture_format(path)
        content = self.png() if kind == "png" else self.svg.encode()
        with atomic_writer(path) as file:
            file.write(content)

    # No _repr_png_: a notebook would ask for both each time, and draw with a library that need not be there.
    def _repr_svg_(self) -> str:
        return self.svg


def picture_format(path: str | Path) -> str:
    """ "png" or "svg", as the name of a file ends.  Raises ConfigError for another end."""
    ending = Path(path).suffix.lower().removeprefix(".")
    if ending not in FORMATS:
        raise ConfigError(f"{path} is not the name of a picture: it must end with .png or .svg")
    return ending


def load_matplotlib() -> Any:
    """The library.  Raises ConfigError where it is not installed, or too old."""
    wanted = ".".join(map(str, OLDEST))
    advice = f"pip install 'matplotlib>={wanted}'"
    try:
        import matplotlib
    except ImportError as error:
        raise ConfigError(f"this picture needs the library matplotlib: {advice}") from error
    if matplotlib.__version_info__[:2] < OLDEST:
        raise ConfigError(f"this picture needs matplotlib {wanted}, and {matplotlib.__version__} is here: {advice}")
    return matplotlib


@contextmanager
def own_style(texts: Iterable[str] = ()) -> Iterator[None]:
    """Draw in one style, whatever the settings of the user, with fonts for these texts as far as there are any."""
    matplotlib = load_matplotlib()
    families = [LATIN]
    if any(map(_is_devanagari, texts)) and (font := devanagari_font()):
        families.append(font)
    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from font", category=UserWarning)
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(
            {"svg.fonttype": "none", "svg.hashsalt": "toolkit", "font.family": families, "font.size": 9}
        )
        yield


def figure_svg(figure: Any) -> str:
    """A matplotlib figure as SVG, the same characters every time."""
    page = io.StringIO()
    figure.savefig(page, format="svg", metadata={"Date": None})
    return page.getvalue()


def figure_png(figure: Any) -> bytes:
    """A matplotlib figure as PNG with twice the pixels of its size, or fewer where that were too many."""
    width, height = figure.get_size_inches() * PIXELS_PER_INCH
    scale = min(2, (_MOST_PIXELS / (width * height)) ** 0.5, _LONGEST_SIDE / max(width, height))
    page = io.BytesIO()
    figure.savefig(page, format="png", dpi=scale * PIXELS_PER_INCH)
    return page.getvalue()


def families(text: str) -> list[str]:
    """The fonts for a text, first choice first.  Raises ConfigError where it has Devanagari and no font has."""
    if not _is_devanagari(text):
        return [LATIN]
    font = devanagari_font()
    if font is None:
        raise ConfigError(
            "no font here has Devanagari letters: install one, such as Noto Sans Devanagari, or write an .svg file"
        )
    return [font, LATIN]


@cache
def devanagari_font() -> str | None:
    """The name of an installed font that has Devanagari, None where there is none."""
    load_matplotlib()
    from matplotlib import font_manager

    found = _first_font(font_manager.fontManager.ttflist)
    if found is None:  # matplotlib remembers the fonts of its first day
        known = {entry.fname for entry in font_manager.fontManager.ttflist}
        for path in set(font_manager.findSystemFonts()) - known:
            with warnings.catch_warnings(action="ignore"):
                try:
                    font_manager.fontManager.addfont(path)
                except (OSError, RuntimeError):  # a file that is no font that it can read
                    continue
        found = _first_font([entry for entry in font_manager.fontManager.ttflist if entry.fname not in known])
    return found


def _first_font(entries: Iterable[Any]) -> str | None:
    rank = {name: place for place, name in enumerate(_DEVANAGARI_FONTS)}
    entries = [entry for entry in entries if not entry.name.startswith("Last Resort")]  # boxes for all of Unicode
    for entry in sorted(entries, key=lambda entry: (rank.get(entry.name, len(rank)), entry.name)):
        if _has_sample(entry.fname):
            return entry.name
    return None


@cache
def _has_sample(path: str) -> bool:
    from matplotlib.font_manager import get_font

    try:
        letters = get_font(path).get_charmap()
    except (OSError, RuntimeError):
        return False
    return all(ord(letter) in letters for letter in _SAMPLE)


def _is_devanagari(text: str) -> bool:
    return any(_FIRST <= character <= _LAST for character in text)


def text_width(text: str) -> float:
    """About how wide a text is, in heights of its font: rather too much than too little."""
    return sum(map(_advance, text))


def _advance(character: str) -> float:
    kind = unicodedata.category(character)
    if kind in ("Mn", "Me", "Cf"):
        return 0.0
    if kind == "Mc":
        return 0.35
    if unicodedata.east_asian_width(character) in "WF":
        return 1.0
    if character in "iljtfrI.,:;'|!()[] ":
        return 0.4
    return 0.85 if character in "mwMW@%␣" else 0.7 if character.isupper() else 0.63
