"""The adjectives: those in -ओ agree with their noun, all others never change.

ठूलो घर (a thing, a male person), ठूली छोरी (a female person), ठूला घरहरू (several): राम्रो, राम्री, राम्रा; but सुन्दर, always.
A row: English | comparative | Nepali | what it is said of (tags or nouns of nouns.py).
"""

from dataclasses import dataclass
from functools import cache

from data.en_ne.english import a
from data.en_ne.nouns import Noun, Phrase, tagged

THING_ADJECTIVES = """
big | bigger | ठूलो | kitchen building furniture container vehicle animal tree stone ball fruit garden village city river mountain potato map
small | smaller | सानो | kitchen building furniture container vehicle animal tree stone ball fruit garden village city river cloth knife
good | better | राम्रो | book phone computer building vehicle movie story song school watch game lesson work answer question cloth hotel village
bad | worse | नराम्रो | movie news road story game
new | newer | नयाँ | book phone computer vehicle cloth house furniture watch bag song movie umbrella pen hospital bridge school radio television
old | older | पुरानो | book phone computer vehicle cloth house furniture watch bag song movie temple bridge radio map blanket picture letter
beautiful | more beautiful | सुन्दर | flower garden house village city mountain river temple picture song bird poem moon photo lamp
expensive | more expensive | महँगो | book phone computer vehicle cloth house furniture watch bag fruit meat fish ticket hotel medicine gift television
cheap | cheaper | सस्तो | book phone cloth vegetable fruit bag pen umbrella soap plate ticket hotel basket
hot | hotter | तातो | water tea milk coffee food rice
cold | colder | चिसो | water milk tea juice food room
tasty | tastier | मिठो | fruit food rice meat fish bread tea yogurt tomato egg
sweet | sweeter | गुलियो | tea fruit milk juice
clean | cleaner | सफा | room house kitchen dish cloth table water hotel city road window
dirty | dirtier | फोहोर | kitchen room house kitchen dish cloth table water river hotel city road window mirror
long | longer | लामो | road river bridge letter story table movie lesson song
short | shorter | छोटो | road letter story lesson song poem
heavy | heavier | गह्रौँ | container stone table computer book basket
easy | easier | सजिलो | lesson question work answer language subject game
difficult | more difficult | गाह्रो | lesson question work answer language subject
strong | stronger | बलियो | table chair bridge door horse elephant tiger box house
empty | emptier | खाली | container cup glass room plate house bus
red | redder | रातो | apple flower cloth bag car door umbrella pen ball tomato
black | blacker | कालो | cloth bag car dog cat goat umbrella hen horse phone
white | whiter | सेतो | cloth flower car cow horse house paper hen plate cat
blue | bluer | नीलो | cloth bag car door pen umbrella ball
green | greener | हरियो | cloth bag door tree umbrella apple
yellow | yellower | पहेँलो | cloth flower bag banana mango house
tall | taller | अग्लो | tree mountain house temple
"""  # noqa: E501 (a table)
COLOURS = ("red", "black", "white", "blue", "green", "yellow")

# Said of people: a good person is असल (राम्रो would be good-looking). English participles are verbs in Nepali: "I am
# tired" is थाकेको छु, "I have tired", polite थाक्नुभएको छ.
PEOPLE_ADJECTIVES = """
tall | taller | अग्लो
short | shorter | होचो
good | better | असल
young | younger | जवान
old | older | बूढो
rich | richer | धनी
poor | poorer | गरिब
happy | happier | खुसी
sad | sadder | दुखी
sick | - | बिरामी
busy | busier | व्यस्त
strong | stronger | बलियो
honest | more honest | इमानदार
clever | cleverer | चलाख
lazy | lazier | अल्छी
famous | more famous | प्रसिद्ध
ready | - | तयार
alone | - | एक्लै
thin | thinner | दुब्लो
fat | fatter | मोटो
beautiful | more beautiful | सुन्दर
"""
# Of age, people are compared in other words: जेठो "first-born", कान्छो "last-born".
COMPARED = {"old": "जेठो", "young": "कान्छो"}
STATES = ("happy", "sad", "sick", "busy", "ready", "alone")  # of a moment: they go with "today" and "now"
PARTICIPLES = {"tired": "थाक्नु", "angry": "रिसाउनु"}


@dataclass(frozen=True)
class Adjective:
    english: str
    comparative: str
    nepali: str
    of: tuple[str, ...]

    def agree(self, female: bool = False, many: bool = False) -> str:
        """ठूलो, ठूली, ठूला."""
        if not self.nepali.endswith("ो"):
            return self.nepali
        return self.nepali[:-1] + ("ा" if many else "ी" if female else "ो")

    def nouns(self) -> tuple[Noun, ...]:
        return tagged(*self.of)


def _rows(table: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.split("|")] for line in table.strip().splitlines()]


ADJECTIVES = {e: Adjective(e, c, n, tuple(of.split())) for e, c, n, of in _rows(THING_ADJECTIVES)}
OF_PEOPLE_COMPARED = {e: Adjective(e, c, COMPARED.get(e, n), ("human",)) for e, c, n in _rows(PEOPLE_ADJECTIVES)}
OF_PEOPLE = {e: Adjective(e, c, n, ("human",)) for e, c, n in _rows(PEOPLE_ADJECTIVES)}


@cache
def qualities(noun: Noun) -> tuple[Adjective, ...]:
    """The adjectives that can be said of a thing."""
    return tuple(quality for quality in ADJECTIVES.values() if noun in quality.nouns())


def described(noun: Noun, negative: bool, rng) -> Phrase | None:
    """The noun with an adjective: "a red shirt" एउटा रातो कमिज, "cold water" चिसो पानी; in a negation without एउटा."""
    if not qualities(noun) or "bare" in noun.tags:
        return None
    quality = rng.choice(qualities(noun))
    english, nepali = f"{quality.english} {noun.english}", f"{quality.agree()} {noun.nepali}"
    draw = rng.random()
    if draw < 0.25:
        english = f"the {english}"
    elif draw < 0.4 and noun.number == "s":
        word, ours = rng.choice((("this", "यो"), ("that", "त्यो")))
        english, nepali = f"{word} {english}", f"{ours} {nepali}"
    elif not noun.mass:
        english, nepali = a(english), nepali if negative else f"एउटा {nepali}"
    return Phrase(english, nepali, noun.english, quality=quality.english)
