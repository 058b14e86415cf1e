"""A sentence of the corpus, and the clause builder that most sentence families share."""

from dataclasses import dataclass, replace

from data.en_ne import english
from data.en_ne.adverbs import FREQUENCY, PAST_TIMES, Place
from data.en_ne.nouns import Phrase
from data.en_ne.people import Person
from data.en_ne.verb_table import Action
from data.en_ne.verbs import inflect, takes_le


@dataclass(frozen=True)
class Sentence:
    """One pair before surface variants are made.

    english: the full form ("I do not know."), its droppable articles in brackets ("I am [a] boy.").
    parts:   the combinations that it contains, such as ("object", "drink", "tea"); holdout.py decides by them.
    """

    english: str
    nepali: str
    parts: tuple[tuple[str, str, str], ...] = ()
    family: str = ""


SURELY_PAST = tuple(time for time in PAST_TIMES if time.startswith(("yesterday", "last")) or time.endswith("ago"))
Parts = tuple[tuple[str, str, str], ...]


def pair(english_text: str, nepali_text: str, *parts: tuple[str, str, str], mark: str = ".") -> Sentence:
    """Close a sentence: capital letter, final mark, and the same mark in Nepali (। for the full stop)."""
    start = 1 if english_text[0] == "[" else 0
    text = english_text[:start] + english_text[start].upper() + english_text[start + 1 :]
    return Sentence(text + mark, nepali_text + ("।" if mark == "." else mark), parts)


def words(*pieces: str) -> str:
    return " ".join(piece for piece in pieces if piece)


FORMS = ("statement", "negation", "question")


def form_for(subject: Person, rng, weights=(52, 25, 23)) -> str:
    """Said, denied or asked. Nobody asks others about himself, so "I" only says and denies."""
    form = rng.choices(FORMS, weights)[0]
    return "statement" if form == "question" and subject.who == "i" else form


def put(form: str, question: str, statement: str, nepali: str, *parts: tuple[str, str, str]) -> Sentence:
    """A yes/no question has के in front; a statement or a negation is said as it is."""
    return pair(question, "के " + nepali, *parts, mark="?") if form == "question" else pair(statement, nepali, *parts)


@dataclass(frozen=True)
class Clause:
    """Who does what to whom, when and where; `say` puts it into both languages.

    English: subject verb object place time.    Nepali: subject time frequency place object verb.
    """

    subject: Person
    action: Action
    tense: str
    negative: bool = False
    thing: Phrase | None = None
    person: Person | None = None
    place: tuple[str, str] | None = None  # (English, Nepali), as `at`, `to` and `origin` below give it
    time: tuple[str, str] | None = None
    frequency: str = ""
    time_first: bool = False

    def surely_past(self) -> bool:
        return bool(self.time) and self.time[0] in SURELY_PAST

    def subject_nepali(self) -> str:
        """With ले where the tense and the verb ask for it."""
        return self.subject.le if takes_le(self.tense, self.action.transitive) else self.subject.nepali

    def verb_nepali(self) -> str:
        negative = self.negative or self.frequency == "never"
        return inflect(self.action.nepali, self.tense, self.subject.who, negative)

    def object_english(self) -> str:
        return self.thing.english if self.thing else self.person.object if self.person else ""

    def object_nepali(self) -> str:
        if self.thing:
            return self.thing.nepali
        if not self.person:
            return ""
        return self.person.lai if self.action.person_case == "लाई" else self.person.sanga

    def parts(self) -> Parts:
        """The combinations by which this clause may be held out."""
        verb = self.action.key
        found = [(f"{self.tense} of a verb", self.subject.english, verb)]
        if self.thing:
            found.append(("object", verb, self.thing.key))
            if self.thing.quality:
                found.append(("quality", self.thing.quality, self.thing.key))
        if self.person:
            found.append(("object", verb, self.person.object))
        if self.place:
            found.append(("place", verb, self.place[0].replace("[the] ", "")))
        return tuple(found)

    def tail(self) -> str:
        time = "" if self.time_first or not self.time else self.time[0]
        return words(self.object_english(), self.place[0] if self.place else "", time)

    def nepali(self, before_object: str = "", before_verb: str = "") -> str:
        time = self.time[1] if self.time else ""
        place = self.place[1] if self.place else ""
        first, second = (time, self.subject_nepali()) if self.time_first else (self.subject_nepali(), time)
        often = FREQUENCY.get(self.frequency, "")
        return words(first, second, often, place, before_object, self.object_nepali(), before_verb, self.verb_nepali())

    def say(self) -> Sentence:
        ambiguous = english.looks_present(self.action.english, self.tense, self.subject.number, self.negative)
        if ambiguous and not self.surely_past():  # "I read a book" alone is taken for the present
            return replace(self, tense="present", time=None, time_first=False).say()
        start = self.time[0] + " " if self.time_first else ""
        subject, verb = self.subject, self.action.english
        text = english.statement(subject.english, verb, self.tense, subject.number, self.negative, self.frequency)
        return pair(words(start + text, self.tail()), self.nepali(), *self.parts())

    def ask(self) -> Sentence:
        """A yes/no question: the helper first in English, के first in Nepali."""
        if self.time_first:  # a question keeps its time at the end
            return replace(self, time_first=False).ask()
        verb = self.action.english
        text = english.question(self.subject.english, verb, self.tense, self.subject.number, self.frequency)
        return pair(words(text, self.tail()), "के " + self.nepali(), *self.parts(), mark="?")

    def ask_wh(self, word: str, nepali_word: str) -> Sentence:
        """A question with a word, which stands before the verb in Nepali: तपाईं कहाँ जानुहुन्छ?"""
        text = english.question(self.subject.english, self.action.english, self.tense, self.subject.number)
        parts = (*self.parts(), ("question", word, self.action.key))
        return pair(words(word, text, self.tail()), self.nepali(before_verb=nepali_word), *parts, mark="?")


def at(place: Place, rng) -> tuple[str, str]:
    return rng.choice(place.at), place.locative


def to(place: Place) -> tuple[str, str]:
    return place.to, place.nepali


def origin(place: Place) -> tuple[str, str]:
    return place.origin, place.nepali + "बाट"
