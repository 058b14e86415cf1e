"""What a conversation is made of: exchanges, the state that they leave behind, and replies in two styles.

An act (acts/) looks at the state and says one exchange: what the user types and the cores that are right as an answer.
The style of the reply is drawn here, anew for every reply, by nothing but a coin: an exchange knows nothing about it.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import NamedTuple

from data.chat.dialogue_deck import Deck, Pair
from data.chat.names import Split, genders, name, nepali_name, pet_name, seen_name
from data.chat.nepali_names import made_nepali_name

REAL_NEPALI = 0.4  # of the names in Devanagari
SEEN = 0.25  # of the training names are drawn from a small list: a name may also be known
TRIES = 100  # for a name that is still free
LOWER, BARE = 0.14, 0.16  # how often users type without capitals, and without the final mark

# What may stand around the core, by the tone of the act. A tone without openings only has closings.
ANSWER = ("Of course.", "Certainly!", "Gladly.", "With pleasure.", "Happy to help!")
MORE = ("I hope that helps.", "Just ask if you want to know more.", "Is there anything else I can do for you?")
MANNERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "answer": (ANSWER, (*MORE, "What else would you like to know?", "I am happy to help.")),
    "translation": (ANSWER, MORE),
    "told": (("Thank you for telling me.",), ("How can I help you?", "Is there anything else I can do for you?")),
    "untold": (("I am sorry.",), ("Please tell me, and I will remember it.",)),
    "unknowable": (("I am sorry.",), ("Is there anything else I can do for you?", "What else would you like to know?")),
    "greeting": ((), ("How can I help you?", "I am happy to help.")),
    "asked": (("Thank you for asking.",), ("How can I help you?", "Just ask if you want to know more.")),
    "thanked": (("Gladly.", "With pleasure."), ("I am happy to help.", "Just ask if you want to know more.")),
    "parting": ((), ("Take care!",)),
    "ne answer": (("अवश्य।", "खुसीसाथ।"), ("अरू केही चाहिए भन्नुहोस्।", "अरू के जान्न चाहनुहुन्छ?")),
    "ne told": (("धन्यवाद।",), ("म तपाईंलाई कसरी मद्दत गरूँ?", "अरू केही चाहिए भन्नुहोस्।")),
    "ne unknown": (("माफ गर्नुहोस्।",), ("अरू केही चाहिए भन्नुहोस्।", "अरू के जान्न चाहनुहुन्छ?")),
    "ne greeting": ((), ("म तपाईंलाई कसरी मद्दत गरूँ?",)),
    "ne asked": (("धन्यवाद।",), ("म तपाईंलाई कसरी मद्दत गरूँ?", "अरू के जान्न चाहनुहुन्छ?")),
    "ne parting": ((), ("आफ्नो ख्याल राख्नुहोस्।",)),
}


class Core(NamedTuple):
    """An answer without manners: as short as can be, and in a sentence."""

    short: str
    full: str


class Exchange(NamedTuple):
    """What the user types and how it is answered."""

    user: str
    kind: str
    tone: str
    core: Core
    also: tuple[str, ...] = ()  # other right cores
    wrong: tuple[Core, ...] = ()  # answers that somebody could mistake for right

    @property
    def accept(self) -> list[str]:
        """All cores that are right."""
        return list(dict.fromkeys((*self.core, *self.also)))


def polite(core: str, tone: str, rng: Random) -> str:
    """A core with an opening, a closing or both."""
    openings, closings = MANNERS[tone]
    which = rng.choice(("opening", "opening", "closing", "both", "both")) if openings else "closing"
    opening = rng.choice(openings) + " " if which != "closing" else ""
    closing = " " + rng.choice(closings) if which != "opening" else ""
    return opening + core + closing


def reply(exchange: Exchange, rng: Random) -> str:
    """The answer in a style drawn by a coin: curt and short, or polite and in a sentence."""
    return polite(exchange.core.full, exchange.tone, rng) if rng.random() < 0.5 else exchange.core.short


@dataclass
class State:
    """What has been said so far, as far as later answers depend on it."""

    split: Split
    rng: Random
    deck: Deck  # sentences to be translated
    nepali: bool = False
    values: dict[str, str] = field(default_factory=dict)  # slot -> what the user has told
    old: dict[str, str] = field(default_factory=dict)  # slot -> what he had told before he corrected it
    told_at: dict[str, int] = field(default_factory=dict)  # slot -> number of the exchange
    asked: Counter[str] = field(default_factory=Counter)  # slot -> how often the user has asked for it
    count: int = 0  # exchanges so far
    names: set[str] = field(default_factory=set)
    last_kind: str = ""
    last_slot: str = ""
    sentence: Pair | None = None  # the last statement of the user that can be translated
    sentence_at: int = -1  # number of its exchange
    last: Exchange | None = None

    def fresh(self, draw: Callable[[], str]) -> str:
        """A name that nobody in this conversation has, as long as there is one."""
        for _ in range(TRIES):
            found = draw()
            if found not in self.names:
                break
        self.names.add(found)
        return found

    def person(self, female: bool | None = None) -> str:
        """A name; where it is said whose, no real name of the other gender."""
        seen = self.split == "train" and self.rng.random() < SEEN
        while True:
            found = self.fresh(lambda: seen_name(self.rng) if seen else name(self.split, self.rng))
            if female is None or genders().get(found, female) == female:
                return found

    def pet(self) -> str:
        return self.fresh(lambda: pet_name(self.split, self.rng))

    def nepali_person(self, fits: Callable[[str], bool] = lambda name: True) -> str:
        """A Nepali name in Devanagari that fits (a woman's, for instance)."""
        for _ in range(TRIES):
            real = self.rng.random() < REAL_NEPALI
            found = nepali_name(self.split, self.rng)[1] if real else made_nepali_name(self.split, self.rng)
            if fits(found) and found not in self.names:
                break
        self.names.add(found)
        return found


def typed(template: str, rng: Random, **values: str) -> str:
    """A template as somebody types it: now and then without capitals, now and then without its final mark. What is
    filled in stays as it is.
    """
    text, lower = template, rng.random() < LOWER
    if lower:
        text = text.lower()
    if rng.random() < BARE and text[-1] in ".?!।":
        text = text[:-1].rstrip()
    text = text.format(**values)
    return text if lower else text[0].upper() + text[1:]
