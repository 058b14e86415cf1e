"""The Nepali words that fill the slots of the plots: characters with their cases and their verbs.

Boys and animals take the plain level (ऊ, गयो), girls the middle one with feminine endings (उनी, गइन्), elders the
polite one (उहाँ, जानुभयो), as in the translator's corpus. A verb is a form of its subject: `{A.past:जानु}` is गयो for a
boy, गइन् for a girl and जानुभयो for a mother; the paradigms are those of data/en_ne/verbs.py.
"""

from dataclasses import dataclass
from functools import cache

from data.en_ne.people import NAMES
from data.en_ne.verbs import Verb, be
from data.stories.template import Entity

# माया is left out: it is also a word of the stories, love. So is पूजा elsewhere, but not in these plots.
GIRLS = (*(nepali for _, nepali, female in NAMES if female and nepali != "माया"), "आशा", "रीता", "राधा")
BOYS = (*(nepali for _, nepali, female in NAMES if not female), "मोहन", "अर्जुन", "सागर")
FRIEND_GIRLS, FRIEND_BOYS = ("निशा", "पूजा", "मीना"), ("गोपाल", "राजु", "नवीन")  # see words.py
ANIMAL_NAMES = ("काले", "मोती", "टिकु", "चन्दु", "लाली", "चिकु", "पुन्टु", "सेती")
FOREST_ANIMALS = ("खरायो", "भालु", "बाँदर", "लोखर्के", "मृग")

# pronoun, with ले, with लाई, possessive
PRONOUNS = {
    "he": ("ऊ", "उसले", "उसलाई", "उसको"), "she": ("उनी", "उनले", "उनलाई", "उनको"),
    "polite": ("उहाँ", "उहाँले", "उहाँलाई", "उहाँको"),
}  # fmt: skip
ELDERS = (
    ("आमा", True), ("बुबा", False), ("हजुरआमा", True), ("हजुरबुबा", False),
)  # fmt: skip
COLOURS = ("रातो", "निलो", "हरियो", "पहेँलो", "सेतो")


@dataclass(frozen=True)
class Person(Entity):
    """A character. `level` is a person of verbs.PERSONS."""

    level: str = "he"
    female: bool = False

    def form(self, form: str) -> str:
        """A form of the table, or "past:जानु" (a verb), or "o:सान" (an adjective in -ओ: सानो, सानी)."""
        kind, _, word = form.partition(":")
        if not word:
            return super().form(form)
        if kind == "o":
            return word + ("ी" if self.female else "ो")
        verb = Verb(word)
        tenses = {
            "past": lambda: verb.past(self.level),
            "not": lambda: verb.past(self.level, negative=True),
            "habit": lambda: verb.habit(self.level),
            "had": lambda: verb.perfect(self.level, past=True),
            "hadnot": lambda: verb.perfect(self.level, negative=True, past=True),
            "habitnot": lambda: verb.habit(self.level, negative=True),
            "doing": lambda: verb.continuous(self.level, past=True),
        }
        return tenses[kind]()


def someone(name: str, level: str, female: bool = False, **forms: str) -> Person:
    """A character with the cases of its name (le, lai, ko …) and of its pronoun (u, ule, ulai, uko)."""
    cases = {"name": name, "le": name + "ले", "lai": name + "लाई", "ko": name + "को", "sanga": name + "सँग"}
    pronoun = dict(zip(("u", "ule", "ulai", "uko"), PRONOUNS[level], strict=True))
    rest = {
        "kid": "केटी" if female else "केटा", "ek": "एउटी" if female else "एउटा", "own": "आफ्नी" if female else "आफ्नो",
        "was": be(level, past=True),
    }  # fmt: skip
    return Person(cases | pronoun | rest | forms, level, female)


def thing(forms: dict[str, str]) -> Entity:
    """A thing with its cases; only nouns that do not change before a postposition are in the plots."""
    name = forms["name"]
    return Entity({"le": name + "ले", "lai": name + "लाई", "ko": name + "को", "ma": name + "मा", **forms})


CHILDREN = tuple(someone(name, "she", True) for name in GIRLS) + tuple(someone(name, "he") for name in BOYS)
FRIENDS = (
    *(someone(name, "she", True) for name in FRIEND_GIRLS),
    *(someone(name, "he") for name in FRIEND_BOYS),
)
CLASSES = {
    "child": CHILDREN,
    "friend": FRIENDS,
    "elder": tuple(someone(name, "polite", female) for name, female in ELDERS),
    "parent": tuple(someone(name, "polite", female) for name, female in ELDERS[:2]),
    "grandparent": tuple(someone(name, "polite", female) for name, female in ELDERS[2:4]),
    "animal": tuple(someone(name, "he", kid=kind, species=kind) for name in ANIMAL_NAMES for kind in FOREST_ANIMALS),
    "colour": tuple(Entity({"name": colour}) for colour in COLOURS),
}
ALL_NAMES = frozenset((*GIRLS, *BOYS, *FRIEND_GIRLS, *FRIEND_BOYS, *ANIMAL_NAMES))


@cache
def entities(name: str) -> tuple[Entity, ...]:
    """The entities of a class; none if there is no such class."""
    return CLASSES.get(name, ())
