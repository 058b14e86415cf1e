"""What tokens are called on a page."""

import unicodedata
from collections import Counter
from collections.abc import Iterable

from toolkit.explain.pages.writing import clipped
from toolkit.tokenization import Tokenizer
from toolkit.tokenization.tokenizer import LOST

SPACE = "␣"
LONGEST = 16  # cells

_NAMES = {" ": SPACE, "\n": "↵", "\t": "⇥"}
_CIRCLE = "◌"  # what a mark stands on that has no letter


def labels(tokenizer: Tokenizer, ids: Iterable[int]) -> list[str]:
    """A short name for every id: "␣boy", "</s>", "<E0 A4>" for bytes that are no character, "◌ा" for a mark alone.

    A space is ␣. Ids that would be called alike have their number behind the name, so that names tell ids apart.
    Raises IndexError for an id outside the vocabulary.
    """
    ids = [int(each) for each in ids]
    names = {each: _name(tokenizer, each) for each in set(ids)}
    times = Counter(names.values())
    return [f"{names[each]}#{each}" if times[names[each]] > 1 else names[each] for each in ids]


def _name(tokenizer: Tokenizer, token_id: int) -> str:
    content = tokenizer.surface(token_id)
    if content in (b"", LOST):
        return clipped(tokenizer.piece(token_id), LONGEST)
    try:
        text = content.decode()
    except UnicodeDecodeError:
        return clipped(f"<{content.hex(' ').upper()}>", LONGEST)
    name = "".join(_NAMES.get(each) or _seen(each) for each in text)
    return clipped(_CIRCLE + name if unicodedata.category(name[0]).startswith("M") else name, LONGEST)


def _seen(character: str) -> str:
    """A character, or its number if nobody could see it."""
    hidden = unicodedata.category(character) in ("Cc", "Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp")
    return f"<U+{ord(character):04X}>" if hidden else character
