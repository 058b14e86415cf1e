"""Which pieces of a vocabulary a text can be cut into."""

from collections.abc import Collection, Iterable, Iterator

from toolkit.tokenization.normal_form import normal_form

SPACE_MARK = "\u2581"  # how SentencePiece writes a space; a piece has it in front, if at all

_WORDS_REMEMBERED = 1_000_000  # about 100 MB: texts have few new words after the first million


def occurring(pieces: Collection[str], texts: Iterable[str]) -> set[str]:
    """The pieces that occur anywhere in the texts, so that some segmentation may use them.

    `pieces` is looked up in, so give a set or the like. Every different word is searched once.
    """
    longest = max(map(len, pieces), default=0)
    found: set[str] = set()
    seen: set[str] = set()
    for text in texts:
        sections = normal_form(text).split(SPACE_MARK)  # a real ▁ is in no piece
        new = {word for section in sections for word in words(section) if word not in seen}
        for word in new:
            found.update(part for part in _parts(word, longest) if part in pieces)
        seen |= new
        if len(seen) > _WORDS_REMEMBERED:
            seen.clear()
    return found


def words(text: str) -> list[str]:
    """A text without a real ▁ as SentencePiece reads it, cut before every space: no piece reaches beyond."""
    return [word for word in text.replace(" ", f" {SPACE_MARK}").split(" ") if word]


def _parts(word: str, longest: int) -> Iterator[str]:
    """All substrings of at most `longest` characters."""
    for start in range(len(word)):
        for end in range(start + 1, min(start + longest, len(word)) + 1):
            yield word[start:end]
