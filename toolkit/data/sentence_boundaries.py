"""Sentence boundaries: a text is divided into the sentences that a translator reads and what stands between them.

The rules look at characters and their neighbours, for Latin and Devanagari letters at once, so that no language has to
be named. Where these cannot tell, as after "U.S.", the more frequent case decides. Among the languages without spaces,
Chinese and Japanese are divided at their full stops.
"""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from toolkit.tokenization.normal_form import normal_form

# Marks that end a sentence where white space follows, and those that do wherever they stand.
_BEFORE_SPACE, _ANYWHERE = ".!?…؟۔", "।॥。！？｡"
_MARKS, _OPENERS, _CLOSERS = _BEFORE_SPACE + _ANYWHERE, "\"'“‘„«‹([{*_¿¡", "\"'”’»›)]}*_"
_BREAKS = "\r\n\u2028\u2029"

_END = rf"(?<![{_MARKS}])[{_MARKS}]++[{re.escape(_CLOSERS)}]*+"
_NEXT = rf"\s*+(?:[-–—•·*]\s++(?=[^\W_]))?+[{re.escape(_OPENERS)}]*+\s*+(\S?)"
_WORD_BREAK = rf"[\s?!…{_ANYWHERE}]"
_GLUED = r"[a-z]{3}[.?!][A-Z][a-z]*[\s,]"
_LINE = rf"[^{_BREAKS}]+"

# Signs that may divide a text, or stand before or after its sentence.
_SIGNS = frozenset(f'{_MARKS}{_BREAKS}"“”()[]«»:@' + "".join(map(chr, range(0x2000, 0x2018))))
_LETTERS_END = "\u2190"  # before arrows, pictures, and scripts without spaces

_pattern = cache(re.compile)  # of the expressions here: it takes a while, and most texts that are typed need none


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


# English abbreviations, without the last point and in lower case, and words of other languages that look like them.
# A sentence never ends with one of these,
_TITLES = _words(
    """adm asst bros brig capt cf cmdr col comdr cpl dept dr eg esp est et gen gov govt hon ie incl insp lt maj messrs
    mlle mm mme mr mrs ms msgr mx pres prof pvt rev rs sen sgt supt univ viz vs w.r.t approx"""
)
# nor with one of these where a number follows,
_OF_NUMBERS = _words(
    "app apt art ch chap ed eq eqs fig figs max min no nos op p para pg pl pp pt ref sec tel ver vol vols"
)
# and with one of these, with initials, and with letters like "U.S." only if the next word begins sentences often.
_PERHAPS = _words(
    "apr aug ave blvd co corp dec feb fri hwy inc jan jr jul jun ltd mon mt nov oct rd sep sept sr st thu thurs tue"
)
_FIRST_WORDS = _words(
    """A After All Also An And Are As At Because Before But By Can Come Could Did Do Does Each Even Every Everyone For
    From Give Go Had Has Have He Her Here His How However I I'd I'll I'm I've If In Is It It's Its Just Later Let Let's
    Many May Most My Next No Not Now On One Or Our Perhaps Please She She's He's Should Since So Some Take Tell That
    That's The Their Then There There's These They They're This Those Though To Today Tomorrow Was We We'll We're Were
    What When Where Which While Who Why Will With Would Yes Yesterday Yet You You're Your"""
)
_SMALL_PARTS = r"(?:[a-z]\.)+[a-z]|[a-hj-z]"
_SHORT_PARTS = r"(?:[^\W\d_]{1,3}\.)*[A-Z]|(?:[^\W\d_]{1,3}\.)+[^\W\d_]{1,3}"

# Nepali abbreviations, and the names of English letters as initials have them: no sentence ends with these, nor with
# parts like वि.सं., nor with a single letter and its vowel sign, unless that is a word.
_NEPALI = _words(
    """अधि इन्जि एक्स एच एड एन एन् एफ एम एम् एल एल् एस एस् कर्णेल क्या क्यू क्र टेलि डब्लु डब्ल्यु प्रा प्रो फोन ब्रि मोबा
    वाई श्री श्रीमती सुश्री स्व जेड आई आर आर् भी"""
)
_LETTER = r"[\u0904-\u0939\u0958-\u0961][\u0900-\u0903\u093a-\u094c\u0962\u0963]*"
_LETTER_WORDS = _words("आ ऊ खा गो छ छु छे छै छौ जा त थे दे न नि भो म रे ल ले है हो हौ")

# Whoever has said what a quotation says is named after it, in the same sentence.
_SPEECH = (
    r"\W*(?:[^\s.?!।]+\s+){0,3}?(?:said|says|asked|asks|replied|answered|told|shouted|cried|whispered|added|"
    r"भन|सोध|चिच्या|करा|बोल|जवाफ)"
)

# The number or letter of an item in a list, which no initial follows.
_ITEM = (
    r"(?:\(?(?:[0-9]{1,3}|[०-९]{1,3}|[ivx]{1,4}|[a-zA-Zक-ह])\)|(?:[0-9]{1,3}|[०-९]{1,3}|[a-hक-ङ])\.|[०-९]{1,3}।)"
    r"(?=\s)(?!\s+\w\.\s)"
)
_BULLETS = "-*•–—·+>#~|‣⁃"
_ADDRESS = r"(?:https?://|www\.)\S+|[^\s@]+@[^\s@]+\.[^\s@]+"
_OPENING, _CLOSING = '“([«"', '”)]»"'
_PARTNERS = {**dict(zip(_OPENING, _CLOSING, strict=True)), **dict(zip(_CLOSING, _OPENING, strict=True))}


class DividedText(NamedTuple):
    """A text, and where its sentences begin and end; all else stands between them, and is not translated."""

    text: str
    spans: tuple[tuple[int, int], ...]

    @property
    def sentences(self) -> list[str]:
        """The sentences, in order."""
        return [self.text[begin:end] for begin, end in self.spans]

    @property
    def is_whole(self) -> bool:
        """True where the text is one sentence, but for white space at its ends."""
        if len(self.spans) != 1:
            return False
        [(begin, end)] = self.spans
        return end - begin == len(self.text.strip())

    def parts(self, sentences: Sequence[str] | None = None) -> list[str]:
        """Give what stands before the first sentence, the first sentence, what follows it, and so on, to the end.

        sentences: others, in the places of the text's own.
        """
        ends = [0, *(place for span in self.spans for place in span), len(self.text)]
        parts = [self.text[begin:end] for begin, end in pairwise(ends)]
        if sentences is not None:
            parts[1::2] = sentences
        return parts

    def joined(self, translations: Sequence[str]) -> str:
        """Put translations in the places of the sentences, and leave out white space at the ends of the whole."""
        return normal_form(translations[0] if self.is_whole else "".join(self.parts(translations)).strip())


def divided(text: str, split: bool = True) -> DividedText:
    """Divide a text into sentences; without `split`, it is one as a whole.

    A line break always divides. Beside white space, this stands between sentences: bullets and numbers of lists;
    rows of signs, numbers without words, addresses of pages and of mail; emoji; and a quotation mark or a bracket whose
    partner is in another sentence.
    """
    stripped = text.strip()
    if not stripped:
        return DividedText(text, ())
    if not split or _is_one(stripped):
        begin = text.index(stripped[0]) if len(stripped) < len(text) else 0
        return DividedText(text, ((begin, begin + len(stripped)),))
    return DividedText(text, tuple(_spans(text)))


def sentence_names(texts: Sequence[DividedText], where: Callable[[int], str]) -> Callable[[int], str]:
    """Make the function that names each sentence of all texts by its number, from the one that names the texts.

    Numbers begin at 1. The only sentence of a text has the name of the text.
    """

    names: list[tuple[int, str]] = []

    def name(number: int) -> str:
        if not names:  # which most callers never need
            for text, each in enumerate(texts, start=1):
                several = len(each.spans) > 1
                names.extend((text, f", sentence {place}" if several else "") for place, _ in enumerate(each.spans, 1))
        text, place = names[number - 1]
        return where(text) + place

    return name


def _is_one(text: str) -> bool:
    """Say if a text is plainly one sentence, as most are: a letter first, no mark but at the end, and no such sign."""
    body = text[:-1] if text[-1] in _MARKS else text
    return text[0].isalpha() and max(body) < _LETTERS_END and _SIGNS.isdisjoint(body)


def _spans(text: str) -> Iterator[tuple[int, int]]:
    for found in _pattern(_LINE).finditer(text):
        line = found[0].rstrip()
        begin = 0
        for end in [*_ends(line), len(line)]:
            place = _to_translate(line, begin, end)
            if place:
                yield found.start() + place[0], found.start() + place[1]
            begin = end


def _ends(line: str) -> Iterator[int]:
    """Yield the places in a line where a sentence ends and another follows."""
    sure, uncertain = [], []
    for found in _pattern(_END).finditer(line):
        following = _pattern(_NEXT).match(line, found.end())
        if following[1] and _is_end(line, found, following.start(1), has_capitals=False):
            is_sure = not following[1].islower() or _is_end(line, found, following.start(1), has_capitals=True)
            (sure if is_sure else uncertain).append(found.end())
    begin = 0
    for end in [*sure, len(line)]:
        part = uncertain and line[begin:end]
        if part and part == part.lower():
            yield from uncertain[bisect_right(uncertain, begin) : bisect_left(uncertain, end)]
        if end < len(line):
            yield end
        begin = end


def _is_end(line: str, found: re.Match[str], place: int, has_capitals: bool) -> bool:
    """Say if a sentence ends with the marks that were found; the next letter or sign stands at `place`.

    has_capitals: it is written with capital letters, so that a small one says that the sentence goes on.
    """
    marks, beside, first = found[0].rstrip(_CLOSERS), line[found.end()], line[place]
    # The mark that says most: a danda with a point after it is a danda.
    last = next((each for kind in (_ANYWHERE, "?!؟") for each in marks if each in kind), marks[-1])
    is_quotation = len(marks) < len(found[0])
    if not beside.isspace():  # none is usual there, or it was forgotten
        runs_on = last in _ANYWHERE or (last in "?!" and _is_devanagari(first))
        if not (runs_on and first.isalnum()) and not _is_forgotten(line, found.start(), place):
            return False
    if first in _MARKS + _CLOSERS.translate({ord(each): None for each in _OPENERS}):
        return False
    if is_quotation and _pattern(_SPEECH).match(line, found.end(), found.end() + 80):
        return False
    if last in _ANYWHERE:
        return not _pattern(_ITEM).fullmatch(line, max(0, found.start() - 3), found.end())
    word = _word_at(line, place)
    goes_on = first.islower() and has_capitals and word not in ("i", "i'm", "i'll", "i've")
    if last in "?!؟":
        return not (goes_on and is_quotation)
    if goes_on or first in "-–—":
        return False
    if marks != "." and first.isalpha() and first == first.swapcase():
        return False  # three points, and a script without capitals: they are a pause more often than an end
    return marks != "." or not _is_abbreviation(_word_before(line, found.start()), word)


def _is_forgotten(line: str, end: int, place: int) -> bool:
    """Say if a space is missing after the mark at `end`, and no name of a file or an address has it in the middle."""
    if not _pattern(_GLUED).match(line, max(0, end - 3)):
        return False
    return _word_at(line, place) in _FIRST_WORDS or (
        _word_before(line, end).islower() and line[place : place + 24].split()[0].isalpha()
    )


def _is_abbreviation(word: str, following: str) -> bool:
    """Say if the point after a word is its own, and the sentence goes on with the word that follows."""
    known = word.lower()
    if known in ("a.m", "p.m", "etc"):
        return False
    if known in _TITLES or word in _NEPALI or _pattern(_SMALL_PARTS).fullmatch(word):
        return True
    if known in _OF_NUMBERS and following[:1].isdigit():
        return True
    if known in _PERHAPS or _pattern(_SHORT_PARTS).fullmatch(word):
        return following not in _FIRST_WORDS
    if word and _is_devanagari(word[0]):
        return "." in word or (bool(_pattern(_LETTER).fullmatch(word)) and word not in _LETTER_WORDS)
    return False


def _word_before(line: str, end: int) -> str:
    """Give the word that ends at a place, of which no more than the last letters count."""
    words = _pattern(_WORD_BREAK).split(line[max(0, end - 24) : end])
    return words[-1].lstrip(_OPENERS)


def _word_at(line: str, begin: int) -> str:
    [word, *_] = line[begin : begin + 24].split(maxsplit=1)
    return word.rstrip(",;:.!?").replace("’", "'")


def _is_devanagari(letter: str) -> bool:
    return "\u0900" <= letter <= "\u097f"


def _to_translate(line: str, begin: int, end: int) -> tuple[int, int] | None:
    """Find what is to be translated of a part of a line, without what only stands before and after it."""
    counts = {mark: line.count(mark, begin, end) for mark in _PARTNERS}

    def is_lonely(mark: str) -> bool:
        return counts['"'] % 2 == 1 if mark == '"' else not counts[_PARTNERS[mark]]

    while begin < end:
        item = _pattern(_ITEM).match(line, begin, end)
        after = item.end() if item else begin + 1
        if item or line[begin].isspace() or _is_picture(line[begin]) or _is_bullet(line[begin : begin + 2]):
            pass
        elif line[begin] not in _OPENING or not is_lonely(line[begin]):
            break
        for mark in counts.keys() & {*line[begin:after]}:
            counts[mark] -= 1
        begin = after
    while begin < end:
        mark = line[end - 1]
        if not (mark.isspace() or _is_picture(mark) or (mark in _CLOSING and is_lonely(mark))):
            break
        if mark in counts:
            counts[mark] -= 1
        end -= 1
    return (begin, end) if any(map(_has_words, line[begin:end].split())) else None


def _is_bullet(pair: str) -> bool:
    return pair[:1] in _BULLETS and pair[1:].isspace()


def _is_picture(letter: str) -> bool:
    """Say if this is a sign that no sentence needs: an emoji, a box, an arrow."""
    return letter > "\x7f" and (letter in "→\ufe0f\u200d" or unicodedata.category(letter) == "So")


def _has_words(word: str) -> bool:
    """Say if there is something to translate in what stands between spaces: a letter, and no address."""
    return any(map(str.isalpha, word)) and not _pattern(_ADDRESS).fullmatch(word.strip(_OPENERS + _CLOSERS + ".,;"))
