"""Answer English questions in Nepali, where the system message asks for that.

What is known of both languages is put together here: the slots that have a Nepali sentence, and the facts. A
name stays in the letters in which the user has written it.
"""

from collections.abc import Callable
from dataclasses import dataclass, fields

from data.chat import world
from data.chat.acts import slots, slots_ne
from data.chat.acts.slots import Slot
from data.chat.acts.slots_ne import DIGITS
from data.chat.dialogue import Core, State
from data.chat.fact import Fact
from data.chat.facts import FACTS
from data.chat.facts_ne import FACTS_NE


@dataclass(frozen=True)
class SlotInNepali(Slot):
    """A slot that is told and asked for in English, and answered by the sentences of a Nepali one."""

    nepali: Slot = slots_ne.NAME
    spelled: Callable[[str], str] = str  # a value as it stands in the answer

    @property
    def mark(self) -> str:
        return "।"

    @property
    def unknown(self) -> Core:
        return self.nepali.unknown

    def answer(self, value: str) -> Core:
        return self.nepali.answer(self.spelled(value))

    def understood(self, value: str) -> Core:
        return self.nepali.understood(self.spelled(value))

    def note(self, value: str) -> Core:
        return self.nepali.note(self.spelled(value))


def both(english: Slot, nepali: Slot, spelled: Callable[[str], str], draw: Callable[[State], str]) -> SlotInNepali:
    values = {each.name: getattr(english, each.name) for each in fields(Slot)} | {"draw": draw, "also": ()}
    return SlotInNepali(**values, nepali=nepali, spelled=spelled)


def of_table(english: Slot, nepali: Slot, table: tuple[tuple[str, str], ...]) -> SlotInNepali:
    """A slot whose values are those that a table has in both languages."""
    spelled = {word: devanagari for devanagari, word in table}
    return both(english, nepali, spelled.__getitem__, lambda state: state.rng.choice(table)[1])


COLOUR = next(slot for slot in slots.FAVOURITES if slot.key == "favourite colour")
SLOTS = {
    slot.key: slot
    for slot in (
        both(slots.NAME, slots_ne.NAME, str, State.person),
        of_table(slots.PLACE, slots_ne.PLACE, world.PLACES_NE),
        of_table(slots.LIKE, slots_ne.LIKE, world.LIKES_NE),
        both(slots.AGE, slots_ne.AGE, lambda value: value.translate(DIGITS), slots.AGE.draw),
        of_table(COLOUR, slots_ne.COLOUR, world.COLOURS_NE),
    )
}

# The Nepali facts that have an English one, by its sentence.
IN_ENGLISH = {
    "नेपालको राजधानी काठमाडौँ हो।": "The capital of Nepal is Kathmandu.",
    "भारतको राजधानी नयाँ दिल्ली हो।": "The capital of India is New Delhi.",
    "चीनको राजधानी बेइजिङ हो।": "The capital of China is Beijing.",
    "संसारको सबैभन्दा अग्लो हिमाल सगरमाथा हो।": "The highest mountain in the world is Mount Everest.",
    "नेपालको राष्ट्रिय जनावर गाई हो।": "The national animal of Nepal is the cow.",
    "नेपालको राष्ट्रिय चरा डाँफे हो।": "The national bird of Nepal is the danphe.",
    "नेपालको राष्ट्रिय फूल लालीगुराँस हो।": "The national flower of Nepal is the rhododendron.",
    "नेपालको सबैभन्दा लामो नदी कर्णाली हो।": "The longest river of Nepal is the Karnali.",
    "बुद्धको जन्म लुम्बिनीमा भएको थियो।": "The Buddha was born in Lumbini.",
    "फेवाताल पोखरामा छ।": "Phewa Lake is in Pokhara.",
    "नेपाल एसियामा छ।": "Nepal is in Asia.",
    "एक हप्तामा सात दिन हुन्छन्।": "There are seven days in a week.",
    "एक वर्षमा बाह्र महिना हुन्छन्।": "There are twelve months in a year.",
    "एक दिनमा चौबीस घण्टा हुन्छन्।": "There are 24 hours in a day.",
    "एक घण्टामा साठी मिनेट हुन्छन्।": "There are 60 minutes in an hour.",
    "आइतबारपछि सोमबार आउँछ।": "Monday comes after Sunday.",
    "शुक्रबारपछि शनिबार आउँछ।": "Saturday comes after Friday.",
    "दूधको रङ सेतो हुन्छ।": "Milk is white.",
    "घाँसको रङ हरियो हुन्छ।": "Grass is green.",
    "रगतको रङ रातो हुन्छ।": "Blood is red.",
    "गाईका चार खुट्टा हुन्छन्।": "A cow has four legs.",
    "चराका दुई खुट्टा हुन्छन्।": "A bird has two legs.",
    "एउटा हातमा पाँच औँला हुन्छन्।": "A hand has five fingers.",
    "मानिसका दुई आँखा हुन्छन्।": "A person has two eyes.",
    "माछा पानीमा बस्छ।": "Fish live in water.",
    "घाम पूर्वमा झुल्किन्छ।": "The sun rises in the east.",
    "ठूलोको उल्टो सानो हो।": "The opposite of big is small.",
    "तातोको उल्टो चिसो हो।": "The opposite of hot is cold.",
}


def facts() -> tuple[Fact, ...]:
    """The facts that are known in both languages: asked in English, answered in Nepali."""
    english = {fact.full: fact for fact in FACTS}
    return tuple(
        Fact(english[IN_ENGLISH[fact.full]].questions, fact.short, fact.full, fact.topic)
        for fact in FACTS_NE
        if IN_ENGLISH.get(fact.full) in english
    )


FACTS_IN_NEPALI = facts()
