"""The English words that fill the slots of the plots: characters with their pronouns, things with their articles."""

from functools import cache

from data.en_ne.english import a, plural
from data.en_ne.nouns import tagged
from data.en_ne.people import NAMES
from data.stories.template import Entity

GIRLS = (*(name for name, _, female in NAMES if female), "Asha", "Rita", "Radha")
BOYS = (*(name for name, _, female in NAMES if not female), "Mohan", "Arjun", "Sagar")
# The hero of a story never has a friend's name: to follow two children, a small model then needs to tell apart two
# kinds of names, and not two names of one kind.
FRIEND_GIRLS, FRIEND_BOYS = ("Nisha", "Puja", "Mina"), ("Gopal", "Raju", "Nabin")

# The names of animals tell whether they are he or she, so that a reader (and the checker) can follow.
PET_NAMES = {"he": ("Kale", "Moti", "Tiku", "Bhote"), "she": ("Lali", "Chiku", "Puntu", "Seti")}
FOREST_ANIMALS = ("rabbit", "bear", "monkey", "squirrel", "deer")
PRONOUNS = {
    "he": {"he": "he", "his": "his", "him": "him", "himself": "himself", "kid": "boy", "child": "son"},
    "she": {"he": "she", "his": "her", "him": "her", "himself": "herself", "kid": "girl", "child": "daughter"},
}
ELDERS = {
    "mother": "she", "father": "he", "grandmother": "she", "grandfather": "he",
}  # fmt: skip
COLOURS = ("red", "blue", "green")


def someone(name: str, pronoun: str, **forms: str) -> Entity:
    """A character. The forms of the pronoun are named after those of "he": `{A.his}` is "her" for a girl."""
    return Entity({"name": name, **PRONOUNS[pronoun], **forms})


def thing(forms: dict[str, str]) -> Entity:
    """A thing; "a" is its name with the article, "many" its plural. Any column may be given by hand instead."""
    name = forms["name"]
    return Entity({"a": a(name), "many": plural(name), **forms})


CHILDREN = tuple(someone(name, "she") for name in GIRLS) + tuple(someone(name, "he") for name in BOYS)
FRIENDS = tuple(someone(name, "she") for name in FRIEND_GIRLS) + tuple(someone(name, "he") for name in FRIEND_BOYS)
CLASSES = {
    "child": CHILDREN,
    "friend": FRIENDS,
    "girl": CHILDREN[: len(GIRLS)],
    "boy": CHILDREN[len(GIRLS) :],
    "elder": tuple(someone(name, pronoun) for name, pronoun in ELDERS.items()),
    "parent": tuple(someone(name, ELDERS[name]) for name in ("mother", "father")),
    "grandparent": tuple(someone(name, ELDERS[name]) for name in ("grandmother", "grandfather")),
    "sibling": (someone("sister", "she"), someone("brother", "he")),
    "teacher": (someone("teacher", "she"), someone("teacher", "he")),
    "stranger": (
        someone("old woman", "she", young="woman"), someone("old man", "he", young="man"),
    ),
    "animal": tuple(
        someone(name, pronoun, kid=kind, species=kind)
        for pronoun, names in PET_NAMES.items() for name in names for kind in FOREST_ANIMALS
    ),
    "dog": tuple(someone(name, pronoun, kid="dog") for pronoun, names in PET_NAMES.items() for name in names),
    "colour": tuple(Entity({"name": colour}) for colour in COLOURS),
}  # fmt: skip
ALL_NAMES = frozenset((*GIRLS, *BOYS, *FRIEND_GIRLS, *FRIEND_BOYS, *PET_NAMES["he"], *PET_NAMES["she"]))


@cache
def entities(name: str) -> tuple[Entity, ...]:
    """The entities of a class, here or among the tags of the translator's nouns; none if there is no such class."""
    return CLASSES.get(name) or tuple(thing({"name": noun.english}) for noun in tagged(name) if noun.english != name)
