"""Carrying over what is not translated: numbers, times, addresses of mail and pages, and words never read before.

A translator that must copy "9841234567" digit by digit will one day write another number. So such parts of a sentence
are taken out of it, and marks stand in their places, tokens that training has taught it to put where they belong:

    Call John at 6:45.    ->  Call ⟨1⟩ at ⟨2⟩.    ->  ⟨1⟩लाई ⟨2⟩ मा फोन गर्नुहोस्।    ->  जोनलाई ६:४५ मा फोन गर्नुहोस्।

Then each gets back what it stands for: an address as it is, a number in the digits of the language, a word spelled in
its script. A mark is a letter of Unicode's private use area, which no text has.

Words are unknown where the sentences that a translator was trained on do not have them, nor a form of them that rules
know: endings in English, postpositions and endings of verbs in Nepali. Nepali is typed in many spellings (दिनुस् for
दिनुहोस्, तपाइ for तपाईं): an unknown word that is one of a single known one is read as that, and what is typed apart
(दाल मा, उठ्नु पर्छ) together. So are the short forms of English messages (u, pls).
"""

import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from toolkit.errors import ModelError
from toolkit.files import atomic_writer
from toolkit.tokenization.normal_form import normal_form
from toolkit.untrusted import VOCABULARY_BYTES, read_bytes

FILE = "words.txt"  # of a model directory: the script that is written, then the words that are known, one a line
FIRST_MARK, MARKS = "\ue000", 16
Script = Literal["latin", "devanagari"]
Listed = Callable[[str], bool]

_ADDRESS = r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+|(?:https?://|www\.)\S+[\w/]"
_NUMBER = r"\d(?:[\d,.:/]*\d)?"
_WORD = r"[A-Za-zÀ-ɏ]+|[\u0904-\u0939\u0958-\u0961\u0970-\u097f][\u0900-\u0963\u0970-\u097f\u200d]*"
_PART = re.compile(rf"(?P<address>{_ADDRESS})|(?P<number>{_NUMBER})|(?P<word>{_WORD})")
_LITERAL = re.compile(rf"{_ADDRESS}|{_NUMBER}")
_MARK = re.compile(f"[{FIRST_MARK}-{chr(ord(FIRST_MARK) + MARKS - 1)}]")
_NAMES = re.compile(rf"{_MARK.pattern}(?: (?:{_MARK.pattern}|[A-Z][a-z]+)(?!\w))*")  # with what else has a capital
_DIGITS = "०१२३४५६७८९"
_TO_LATIN, _TO_DEVANAGARI = str.maketrans(_DIGITS, "0123456789"), str.maketrans("0123456789", _DIGITS)

# What follows the stem of a noun, and what verbs end in: such words are inflected, and not strange.
_POSTPOSITIONS = (
    "हरू", "को", "का", "की", "लाई", "ले", "मा", "बाट", "सँग", "सम्म", "तिर", "भन्दा", "पनि", "नै", "जस्तो", "जस्तै", "द्वारा",
    "देखि", "प्रति", "बारे", "भित्र", "बाहिर", "माथि", "मुनि", "नजिक", "नजिकै", "पछि", "अगि", "बिना", "कै", "मै", "ज्यू",
)  # fmt: skip
_VERB = re.compile(
    "(?:नुहो|नुभ|नुहु|नुप|नुहुँ|न्छ|न्थ|र्छ|र्थ|ँछ|ँथ|ँद|्द[ैा]|[ेए]क[ोाी]|्यो$|ियो$|ायो$|[ेए]ँ$|ौँ$|िन्$|ेन$|एन$|िनँ$|दैन|[ेए]र$|"
    "नेछ|नु$|ने$|उन$|्न$|ोस्|्छ|्थ|ुँला|ौला|ौँला|न्जेल|ेपछि|ेसम्म|्दै)"
)
_ENDINGS = ("s", "es", "d", "ed", "ing", "er", "r", "ers", "est", "st", "ly", "y", "ness", "less", "ful", "n", "en")
_PLURAL = "s", "es"
_DOUBLING = "ed", "ing", "er", "ers", "est", "y", "en"  # before them a short stem doubles its last letter: big, bigger
# Of words typed wrongly: those of 3 letters are like too many others, with a letter too many and no list of names 6.
_SHORTEST, _LONG, _LETTERS = 4, 7, "abcdefghijklmnopqrstuvwxyz"
_DOUBLES = re.compile("[^aeiou]*[aeiou][^aeiouwxy]")  # such a stem
_INSIDE = re.compile(r"[\w,;][’']?\s+$")  # what stands before a word that does not begin a sentence


# Letters that are typed for one another, and those that are left out, in the spelling that all of them share.
_TYPED = str.maketrans("ीूईऊशषवणयङञळऐऔ", "िुइउससबनएननलएओ", "ँं‍्ः")
_LENGTHS = str.maketrans("ीूईऊ", "िुइउ")
_LEFT_OUT = str.maketrans("", "", "ँ्")
_SAID = (
    ("नुहोस", "नुस"), ("नुहुन", "नुन"), ("हरू", "हरु"), ("्य", "े"), ("क्ष", "छ"), ("ज्ञ", "ग"), ("ृ", "रि"), ("ै", "े"), ("ौ", "ो"),
)  # fmt: skip

# Forms of verbs as they are said: आको for आएको, गरिराको for गरिरहेको, रैछ for रहेछ, भैसक्यो for भइसक्यो.
_CLIPPED = re.compile(
    "(?:^(?P<verb>आ|खा|पा|ल्या)|(?:^|(?<=नु))(?P<short>भ|ग)ा|(?<=ि)(?P<going>रा))(?=क[ोाी])"
    "|^(?P<being>रै)(?=छ)|^(?P<begun>भ|ग)ै(?=स|र)"
)
_IN_FULL = {"verb": "ए", "short": "ए", "begun": "इ"}  # behind what stands there; the others are रहे

_PLURAL_TYPED = re.compile("(?<=.)हरु(?=(?:को|का|की|ला[ईइ]|ले|मा|बाट|स[ँं]ग|सम्म)?$)")

# What is typed apart and belongs together: दाल मा, साथी हरु, उठ्नु पर्छ, but not बस्नु हुँदैन. Of को, "who" too, see below.
_APART = re.compile(
    "(?<=[\u0900-\u0963])[ ]+(?!मामा)(?=(?:मा|ला[ईइ]|ले|बाट|स[ँं]ग|सम्म|हर[ूु])"
    "(?:को|का|की|लाई|ले|मा|बाट|सँग)?(?![\u0900-\u0963]))"
    "|(?<=नु)[ ]+(?=पर्|हुन्|भयो|भए|भा[कए]|होस्|होला)"
)
_OF_APART = re.compile(
    "(?<![\u0900-\u0963])(?P<whose>[\u0900-\u0963]+)(?<![ोे]) (?P<of>क[ोाी]) (?=(?P<next>[\u0900-\u0963]+))"
)
_NOT_OWNED = re.compile(
    "(?:को|हो|होला|हौ|हुँ|हुन्|छ.{0,2}|थि.*|पनि|[आगभ]यो|.+न|बन्द|सफा|यात्रा|मर्मत|प्रयोग|सुरु)$"
)  # behind a "who"

# Short forms of messages; those of one or two letters only in lower case, for R and UR may be a name.
_SHORT = {
    "u": "you", "r": "are", "ur": "your", "pls": "please", "plz": "please", "thx": "thanks", "thnx": "thanks",
    "thanx": "thanks", "tnx": "thanks", "cuz": "because", "coz": "because", "bcoz": "because", "bcuz": "because",
    "bcz": "because", "becoz": "because", "tmrw": "tomorrow", "tmr": "tomorrow", "gonna": "going to", "msg": "message",
    "wanna": "want to", "gotta": "have to", "gimme": "give me", "lemme": "let me", "ppl": "people",
    "idk": "I don't know",
}  # fmt: skip


class Carried(NamedTuple):
    """Stands behind a mark: a number or address, or a word."""

    text: str
    is_word: bool


class Masked(NamedTuple):
    """A sentence with marks, and what each stands for, the first mark's first."""

    text: str
    items: list[Carried]


def mark(number: int) -> str:
    """Give the mark of a number, from 0."""
    return chr(ord(FIRST_MARK) + number)


def has_marks(text: str) -> bool:
    """Say if marks stand in a text already, as in a pair that was trained on."""
    return bool(_MARK.search(text))


def masked_pair(source: str, target: str) -> tuple[str, str]:
    """Put the same marks in the places of the numbers and addresses that both sides of a pair have as often.

    Marks that stand there already stand for what they stood for. All are numbered as they come in the source, as in
    a sentence that is to be translated.
    """
    used = len({*_MARK.findall(source)})
    found: dict[str, list[re.Match]] = {}
    for match in _LITERAL.finditer(source):
        found.setdefault(match[0].translate(_TO_LATIN), []).append(match)
    theirs: dict[str, list[re.Match]] = {}
    for match in _LITERAL.finditer(target):
        theirs.setdefault(match[0].translate(_TO_LATIN), []).append(match)
    same = [key for key, matches in found.items() if len(matches) == len(theirs.get(key, ()))][: MARKS - used]
    marks = {key: mark(used + number) for number, key in enumerate(same)}
    source, target = _replaced(source, marks), _replaced(target, marks)
    in_order = {ord(old): mark(number) for number, old in enumerate(dict.fromkeys(_MARK.findall(source)))}
    return source.translate(in_order), target.translate(in_order)


def _replaced(text: str, marks: dict[str, str]) -> str:
    return _LITERAL.sub(lambda match: marks.get(match[0].translate(_TO_LATIN), match[0]), text)


def with_one_nasal(word: str) -> str:
    """Give what spellings of a Nepali word have in common that differ in the sign of a nasal vowel: छौं, छौँ."""
    return word.replace("ं", "ँ").replace("\u200d", "")


def with_one_length(word: str) -> str:
    """Give what spellings of a Nepali word have in common that differ in the length of a vowel too: जाउँ, जाऊँ."""
    return with_one_nasal(word).translate(_LENGTHS)


def with_no_marks(word: str) -> str:
    """Give what spellings of a Nepali word have in common that lack the sign of a nasal or a halanta too: खादै, छन."""
    return with_one_length(word).translate(_LEFT_OUT)


def with_one_sound(word: str) -> str:
    """Give what most spellings of a Nepali word have in common: short vowels for long ones, a letter for each sound."""
    for one, other in _SAID:
        word = word.replace(one, other)
    return word.translate(_TYPED)


_SPELLINGS_OF = with_one_nasal, with_one_length, with_no_marks, with_one_sound  # the nearest first


def _by_spelling(words: Iterable[str], spelling: Callable[[str], str]) -> dict[str, str]:
    found: dict[str, str] = {}
    several: dict[str, list[str]] = {}
    for word in words:
        other = found.setdefault(shared := spelling(word), word)
        if other is not word:
            several.setdefault(shared, [other]).append(word)
    for shared, theirs in several.items():
        marked = [word for word in theirs if word[-1] == "्"]
        found[shared] = marked[0] if len(marked) == 1 else ""
    return found


def _in_full(clipped: re.Match) -> str:
    part = clipped.lastgroup or ""
    return clipped[part] + _IN_FULL[part] if part in _IN_FULL else "रहे"


def words_of_text(text: str) -> list[str]:
    """List the words of a text as they are known: in lower case."""
    return [match["word"].lower() for match in _PART.finditer(text) if match["word"]]


@dataclass(frozen=True)
class Carrier:
    """Takes out of sentences what is carried over, and puts it back.

    known: the words of sources that training has met, in lower case. script: what translations are written in.
    """

    known: frozenset[str]
    script: Script

    @classmethod
    def of(cls, sources: Iterable[str], targets: Iterable[str]) -> "Carrier":
        """Learn the words of all sources, and the script that most letters of the targets belong to."""
        letters = latin = 0
        for text in targets:
            letters += len(text)
            latin += sum("a" <= letter <= "z" for letter in text.lower())
        return cls(frozenset(), "latin" if 2 * latin > letters else "devanagari").with_words(sources)

    def with_words(self, sources: Iterable[str]) -> "Carrier":
        """Give one that knows the words of these sources too: for a translator that goes on learning."""
        return Carrier(self.known.union(word for text in sources for word in words_of_text(text)), self.script)

    def masked(self, text: str, listed: Listed | None = None) -> Masked:
        """Put marks in the places of numbers, addresses and unknown words; what is more than the marks stays.

        A private mark of the text itself is left out: it would stand for something.

        listed: says if a list of names has an unknown word, which is no other word then, whatever it looks like.
        """
        items: list[Carried] = []
        places: dict[tuple[str, bool], int] = {}

        def replaced(match: re.Match) -> str:
            found, rest = match[0], ""
            if match["word"]:
                if (long := _SHORT.get(found if len(found) < 3 else found.lower())) and found not in self.known:
                    return long
                found, rest = (found, "") if self._is_name(match) else self._unknown(found, listed)
                if not found:
                    return rest
            key = found, bool(match["word"])
            if key not in places and len(items) == MARKS:
                return match[0]
            if key not in places:
                places[key] = len(items)
                items.append(Carried(*key))
            return mark(places[key]) + rest

        masked = _PART.sub(replaced, self._together(_MARK.sub("", normal_form(text))))
        return self._with_full_names(masked, items, listed) if self.script == "devanagari" else Masked(masked, items)

    def _with_full_names(self, masked: str, items: list[Carried], listed: Listed | None) -> Masked:
        """Put one mark for names that stand together, Tom and Baker: who has a full name is one thing in a sentence."""
        found: dict[Carried, int] = {}

        def joined(match: re.Match) -> str:
            pieces: list[Carried | str] = []
            for piece in match[0].split(" "):
                item = items[ord(piece) - ord(FIRST_MARK)] if _MARK.match(piece) else None
                text, before = item.text if item else piece, pieces[-1] if pieces else ""
                is_name = item.is_word if item else bool(listed and listed(text.lower()))
                if is_name and text[0].isupper() and isinstance(before, Carried) and before.text[0].isupper():
                    pieces[-1] = Carried(f"{before.text} {text}", True)
                else:
                    pieces.append(item or piece)
            return " ".join(one if isinstance(one, str) else mark(found.setdefault(one, len(found))) for one in pieces)

        return Masked(_NAMES.sub(joined, masked), list(found))

    def restored(self, text: str, items: list[Carried], spell: Callable[[str], str] | None = None) -> str:
        """Put back what marks stand for; spell: writes a word in the other script.  A mark of nothing is left out."""

        def back(match: re.Match) -> str:
            number = ord(match[0]) - ord(FIRST_MARK)
            if number >= len(items):
                return ""
            found, is_word = items[number]
            if is_word:
                in_script = (found[0] >= "\u0900") == (self.script == "devanagari")
                return " ".join(map(spell, found.split())) if spell and not in_script else found
            if not found[0].isdigit():  # an address
                return found
            return found.translate(_TO_DEVANAGARI if self.script == "devanagari" else _TO_LATIN)

        return _MARK.sub(back, text)

    def _is_name(self, match: re.Match) -> bool:
        """Say if a Latin word is the name of somebody, though it looks like a form of a known word: Mr Miller, Sandy.

        Within a sentence that has small letters, only names have capitals; of forms, Americans and Tuesdays have too.
        """
        word, before = match[0], match.string[: match.start()]
        inside = _INSIDE.search(before) and not word.isupper() and any(map(str.islower, match.string.split()))
        return bool(
            inside and word[0].isupper() and word.lower() not in self.known and not self._is_form(word.lower(), _PLURAL)
        )

    def _together(self, text: str) -> str:
        """Join the endings of Nepali words that are typed apart: राम को भाइ, but not "who" in यहाँ को आउँछ."""

        def owned(match: re.Match) -> str:
            whose = match["whose"] + match["of"]
            free = _NOT_OWNED.match(match["next"]) or _VERB.search(match["next"]) or whose not in self.known
            return match[0] if free else whose + " "

        return _OF_APART.sub(owned, _APART.sub("", text))

    def _unknown(self, word: str, listed: Listed | None) -> tuple[str, str]:
        """Divide a word that is not known into what is strange and what follows it.

        A word that is known, or is another spelling of a known one, has nothing strange and is given as what follows.
        """
        lower = word.lower()
        if lower in self.known or len(word) < 2:
            return "", word
        if lower.isascii() or lower[0] < "\u0900":
            if self._is_form(lower):
                return "", word
            name = listed(lower) if listed else not word.islower()  # a name has a capital
            meant = "" if name else self._meant(lower, listed)
            return ("", meant) if meant else (word, "")
        if (full := _CLIPPED.sub(_in_full, word)) in self.known:
            return "", full
        word = _PLURAL_TYPED.sub("हरू", word)
        stems = [word]
        for _ in range(3):
            stem = stems[-1]
            ending = next((each for each in _POSTPOSITIONS if stem.endswith(each) and len(stem) > len(each) + 1), "")
            if not ending:
                break
            stems.append(stem[: -len(ending)])
            if stems[-1] in self.known:
                return "", word
        for known, spelling in zip(self._spelled, _SPELLINGS_OF, strict=True):
            if stem := next((stem for stem in stems if known.get(spelling(stem))), ""):
                return "", known[spelling(stem)] + word[len(stem) :]
        if listed and (name := next(filter(listed, stems), "")):  # स्पेन is no verb, and टर्की has no ending
            return name, word[len(name) :]
        if _VERB.search(stems[-1]) or _VERB.search(word):
            return "", word
        return stems[-1], word[len(stems[-1]) :]

    @cached_property
    def _spelled(self) -> tuple[dict[str, str], ...]:
        """The known words in Devanagari by what they share with other spellings; "" where several share it.

        Of such as गरिन् and गरिनँ it is the first: a halanta is left out more often than a nasal.
        """
        words = [word for word in self.known if word[0] >= "\u0900"]
        return tuple(_by_spelling(words, spelling) for spelling in _SPELLINGS_OF)

    def _is_form(self, word: str, endings: tuple[str, ...] = _ENDINGS) -> bool:
        """Say if an English word is a known one with an ending: s, ed, ing, er, ly and the like; Peter is no pet."""
        stems = {(word[: -len(ending)], ending) for ending in endings if word.endswith(ending) and word != ending}
        doubled = {stem[:-1] for stem, _ in stems if len(stem) > 2 and stem[-1] == stem[-2]}  # stopped, bigger
        open_to = {stem for stem, ending in stems if ending not in _DOUBLING or not _DOUBLES.fullmatch(stem)}
        changed = {stem + "e" for stem, _ in stems} | {stem[:-1] + "y" for stem, _ in stems if stem.endswith("i")}
        return not self.known.isdisjoint(stem for stem in open_to | doubled | changed if len(stem) > 2)

    def _meant(self, word: str, listed: Listed | None) -> str:
        """Find the known word that one is in a hurry: a letter is written twice, or a double one once, or two are
        exchanged; or else one is left out, too many, or another. "" where there is none, or more than one.

        Names differ so from words too: without a list of them no letter is taken for another.
        """
        ends = [(word[:place], word[place:]) for place in range(1, len(word) + 1)]  # the first letter is right
        twice = {begin + end[1:] for begin, end in ends if end[:1] == begin[-1]}
        once = {begin + begin[-1] + end for begin, end in ends}
        exchanged = {begin + end[1::-1] + end[2:] for begin, end in ends}
        for found in (twice, once, exchanged) if len(word) >= _SHORTEST else ():
            if len(known := self.known & found) == 1:
                return next(iter(known))
        if len(word) <= _SHORTEST:
            return ""
        found = twice | exchanged | {begin + one + end for begin, end in ends for one in _LETTERS}
        if listed or len(word) >= _LONG:
            found |= {begin + end[1:] for begin, end in ends}
        if listed:
            found |= {begin + one + end[1:] for begin, end in ends for one in _LETTERS}
        known = self.known & found
        return next(iter(known)) if len(known) == 1 else ""

    def save(self, directory: str | os.PathLike[str]) -> None:
        """Write words.txt into a model directory."""
        with atomic_writer(Path(directory) / FILE) as file:
            file.write("".join(f"{line}\n" for line in (self.script, *sorted(self.known))).encode())

    @classmethod
    def load(cls, directory: str | os.PathLike[str]) -> "Carrier | None":
        """Read what belongs to a model; None where it carries nothing over.  Raises ModelError where it is damaged."""
        path = Path(directory) / FILE
        if not os.path.lexists(path):
            return None
        try:
            script, *words = read_bytes(path, VOCABULARY_BYTES).decode("utf-8").split("\n")
        except (OSError, ValueError) as error:
            raise ModelError(f"{path} is damaged: it is no list of words in UTF-8") from error
        if script not in ("latin", "devanagari"):
            raise ModelError(f"{path} is damaged: its first line is no script that is known here")
        return cls(frozenset(filter(None, words)), script)
