"""Text as a model writes it, id by id: only whole letters come out, and nothing of a stop string.

A token may end within a character (bytes) or within a letter (क without its vowel sign ि). Two stages hold such ends
back: bytes wait until they are a character, and the last letter waits until the next one begins.

A letter is what a reader sees as one: marks, vowel signs, conjuncts and joined emoji belong to what they follow. The
rules are those of extended grapheme clusters (Unicode Standard Annex 29, GB6 to GB13), told from the end of a text and
a little more generous: where the annex joins only some consonants across a virama, all are joined here, so that a
letter may wait for the next one without need, and is not cut. Signs that are written in front of what they belong to
(GB9b, a few Arabic ones for numbers) are letters of their own.
"""

import codecs
import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from toolkit.display import short_repr
from toolkit.errors import ConfigError
from toolkit.tokenization.normal_form import normal_form, text_list
from toolkit.tokenization.tokenizer import Tokenizer, replace_invalid

LONGEST_LETTER = 32  # code points: longer ones are no writing (Unicode's stream-safe format allows 30 marks)

_FIRST_SCRIPT_WITH_MARKS = "\u0590"  # from Hebrew on; in front of it, normal form C has a code point for most letters
_JOINER = "\u200d"
_EMOJI_PUNCTUATION = "‼⁉〰"  # punctuation that becomes a picture with U+FE0F
_NEVER_GROWS = frozenset(("Zs", "Zl", "Zp", "Pc", "Pd", "Ps", "Pe", "Pi", "Pf", "Po", "Nd", "Nl", "No", "Sc", "Cc"))
# Joiners; Thai and Lao am, letters by category that are written into the one in front; skin tones; tags (the flag of
# Scotland).
_EXTENDERS = re.compile("[\u200c\u200d\u0e33\u0eb3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
_REGIONALS = re.compile("[\U0001f1e6-\U0001f1ff]*\\Z")
# Of Korean syllables, written whole or in parts: the first consonant joins all, and vowel and last consonant join any.
_FIRST, _INNER = "\u1100-\u115f\ua960-\ua97c", "\u1160-\u11ff\ud7b0-\ud7ff"
_KOREAN = re.compile(f"[{_FIRST}][{_FIRST}{_INNER}\uac00-\ud7a3]|[{_FIRST}{_INNER}\uac00-\ud7a3][{_INNER}]")


class Detokenizer:
    """Incremental decoding: all that `push` gives, and then `flush`, is together `tokenizer.decode` of all ids.

    With stop strings, it is that up to the first one, and `stopped` says whether one was reached.

    Work and memory per token are bounded, however long the text becomes. Text in Latin, Greek, Cyrillic or Armenian
    script never waits, nor do digits, spaces and punctuation; a letter of another script or a symbol comes out when the
    next token shows that it is whole. (A mark that follows a Latin letter comes out after it: normal form C has a code
    point for nearly every such pair.)
    """

    __repr__ = short_repr

    def __init__(self, tokenizer: Tokenizer, stops: Sequence[str] = ()):
        """Begin a text. Raises as `StopStrings` for stop strings that are none."""
        self._surface = tokenizer.surface
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._held = ""
        self._stops = StopStrings(stops)
        self.stopped = False

    def push(self, token_id: int) -> str:
        """Take the next id; return the text that is certain and whole now, often none. Raises as `decode`."""
        text = self._held + replace_invalid(self._decoder.decode(self._surface(token_id)))
        begin = last_letter(text)
        self._held = text[begin:]
        text, self.stopped = self._stops.push(text[:begin])
        return text

    def flush(self) -> str:
        """End the text: return what was held back, and be ready for another text."""
        text, stopped = self._stops.push(self._held + replace_invalid(self._decoder.decode(b"", final=True)))
        self._held = ""
        rest, at_end = self._stops.flush()
        self.stopped |= stopped or at_end
        return text + rest

    def ends_with(self, token_id: int) -> bool:
        """Take the next id, and say whether the text ends with it."""
        self.push(token_id)
        return self.stopped

    def parts(self, ids: Iterable[int]) -> Iterator[str]:
        """Yield the text of ids whenever there is more of it; ids after a stop string are not asked for."""
        for token_id in ids:
            if part := self.push(token_id):
                yield part
            if self.stopped:
                break
        if rest := self.flush():
            yield rest


class StopStrings:
    """Lets a text through up to the first stop string in it; nothing of a stop string ever gets out.

    The text that is let through is text[:begin], where `begin` is the smallest of `text.find(stop)` over all stop
    strings that occur, however the text is cut into pushes. So of two that overlap the one that begins first counts,
    and where two begin together, it makes no difference which. A stop that is whole is not final while another that
    began before it may still become whole.

    Stop strings are put into Unicode normal form C, which is what tokenizers write, and compared code point by code
    point: "e" is not found in "é", and क is found in कि.
    """

    __repr__ = short_repr

    def __init__(self, stops: Sequence[str]):
        """Take stop strings. Raises ConfigError for an empty one and for no list, DataError for what is no text."""
        stops = text_list(stops, "stop strings", "stop string {}".format)
        if not all(stops):
            raise ConfigError("a stop string is empty: leave it out, or say what should end the text")
        self._stops = tuple(map(normal_form, stops))
        self._longest = max(map(len, self._stops), default=1)
        self.reset()

    def reset(self) -> None:
        """Forget the text so far: the next push begins another one."""
        self._held = ""  # what could begin a stop string; shorter than the longest of them
        self._reached = False

    def push(self, text: str) -> tuple[str, bool]:
        """Take the next part of the text; return what can be let through now, and whether a stop string was reached.

        Once one was reached, everything that follows is dropped.
        """
        if self._reached or not self._stops:
            return ("", True) if self._reached else (text, False)
        self._held += text
        found, possible = self._first_whole(), self._first_begun()
        self._reached = found <= possible and found < len(self._held)
        return self._release(min(found, possible)), self._reached

    def flush(self) -> tuple[str, bool]:
        """End the text: return the rest of what can be let through, and whether a stop string was reached."""
        found = self._first_whole()
        self._reached |= found < len(self._held)
        released, reached = self._release(found), self._reached
        self.reset()
        return released, reached

    def _first_whole(self) -> int:
        """Find where the first stop string begins in the held text, else the length of that."""
        return min((begin for stop in self._stops if (begin := self._held.find(stop)) >= 0), default=len(self._held))

    def _first_begun(self) -> int:
        """Find where the first stop string begins of which more may follow, else the length of the held text."""
        end = len(self._held)
        for begin in range(max(0, end - self._longest + 1), end):
            tail = self._held[begin:]
            if any(stop.startswith(tail) for stop in self._stops):
                return begin
        return end

    def _release(self, end: int) -> str:
        released, self._held = self._held[:end], "" if self._reached else self._held[end:]
        return released


def last_letter(text: str) -> int:
    """Find where the last letter of a text begins, if more could belong to it; else its length, as for an endless one.

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
    """Say whether the character at `index`, not the first, belongs to the same letter as the one in front of it."""
    before, character = text[index - 1], text[index]
    if _extends(character) or before == _JOINER:
        return True
    if _extends(before) and unicodedata.category(character).startswith("L"):
        return _has_virama(text, index)
    if "\U0001f1e6" <= character <= "\U0001f1ff":  # regional indicators, of which two make a flag
        return len(_REGIONALS.search(text, 0, index)[0]) % 2 == 1
    return bool(_KOREAN.fullmatch(before + character))


def _extends(character: str) -> bool:
    return bool(_EXTENDERS.match(character)) or unicodedata.category(character).startswith("M")


def _has_virama(text: str, index: int) -> bool:
    """Say whether one of the marks in front of `index` takes the vowel away, so that the next consonant joins."""
    while index and _extends(text[index - 1]):
        index -= 1
        if unicodedata.combining(text[index]) == 9:  # the class of viramas
            return True
    return False
