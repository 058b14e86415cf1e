"""Where a letter ends, as a reader sees it: marks, vowel signs, conjuncts and joined emoji belong to what they follow.

The rules are those of extended grapheme clusters (Unicode Standard Annex 29, GB6 to GB13), told from the end of a text
and a little more generous: where the annex joins only some consonants across a virama, all are joined here, so that a
letter may wait for the next one without need, and is not cut. Signs that are written in front of what they belong to
(GB9b, a few Arabic ones for numbers) are letters of their own.
"""

import unicodedata

LONGEST_LETTER = 32  # code points: longer ones are no writing (Unicode's stream-safe format allows 30 marks)

_FIRST_SCRIPT_WITH_MARKS = "\u0590"  # from Hebrew on; in front of it, normal form C has a code point for most letters
_JOINER = "\u200d"
_EMOJI_PUNCTUATION = "‼⁉〰"  # punctuation that becomes a picture with U+FE0F
_NEVER_GROWS = frozenset(("Zs", "Zl", "Zp", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Nd", "Nl", "No", "Sc", "Cc"))
_VOWEL_LETTERS = "\u0e33\u0eb3"  # Thai and Lao am: letters by category, and written into the one in front


def last_letter(text: str) -> int:
    """Where the last letter of a text begins, if more could belong to it; else, and for an endless one, its length.

    The text should begin with a letter, so that flags can be told apart. What is below U+0590 is always complete.
    """
    if not text or not _may_grow(text[-1]):
        return len(text)
    first = max(0, len(text) - LONGEST_LETTER)
    begin = len(text) - 1
    while begin > first and _is_joined(text, begin):
        begin -= 1
    return len(text) if len(text) - begin >= LONGEST_LETTER else begin


def _may_grow(character: str) -> bool:
    if character < _FIRST_SCRIPT_WITH_MARKS:
        return False
    return unicodedata.category(character) not in _NEVER_GROWS or character in _EMOJI_PUNCTUATION


def _is_joined(text: str, index: int) -> bool:
    """Whether the character at `index`, not the first, belongs to the same letter as the one in front of it."""
    before, character = text[index - 1], text[index]
    if _extends(character):
        return True
    if before == _JOINER:
        return True
    if _extends(before) and unicodedata.category(character).startswith("L"):
        return _has_virama(text, index)
    if _is_regional(before) and _is_regional(character):  # two make a flag
        return (index - _regionals_begin(text, index)) % 2 == 1
    return _is_korean(before) and _is_korean(character) and (_is_initial(before) or _is_inner(character))


def _extends(character: str) -> bool:
    return (
        unicodedata.category(character).startswith("M")
        or character in "\u200c\u200d"
        or character in _VOWEL_LETTERS
        or "\U0001f3fb" <= character <= "\U0001f3ff"  # skin tones
        or "\U000e0020" <= character <= "\U000e007f"  # tags: the flag of Scotland
    )


def _has_virama(text: str, index: int) -> bool:
    """Whether one of the marks in front of `index` takes the vowel away, so that the next consonant joins."""
    while index and _extends(text[index - 1]):
        index -= 1
        if unicodedata.combining(text[index]) == 9:  # the class of viramas
            return True
    return False


def _is_regional(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _regionals_begin(text: str, index: int) -> int:
    while index and _is_regional(text[index - 1]):
        index -= 1
    return index


def _is_korean(character: str) -> bool:
    """Whether it is a Korean syllable or a part of one."""
    return _is_initial(character) or _is_inner(character) or "\uac00" <= character <= "\ud7a3"


def _is_initial(character: str) -> bool:
    """Whether it is the consonant that a Korean syllable begins with."""
    return "\u1100" <= character <= "\u115f" or "\ua960" <= character <= "\ua97c"


def _is_inner(character: str) -> bool:
    """Whether it is the vowel or the last consonant of a Korean syllable."""
    return "\u1160" <= character <= "\u11ff" or "\ud7b0" <= character <= "\ud7ff"
