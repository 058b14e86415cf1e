"""The English words that fill the slots of the plots: characters with their pronouns, things with their articles."""

from functools import cache
from pathlib import Path
from random import Random

from data.chat import free_names, names
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
# Half of the stories are of anybody and anything: more names and things than a small model can learn by heart, so that
# it goes on with those that a prompt names. Made names (Tolavir, Bep, Rusk) may be a girl's or a boy's; most are of any
# make and short, as real ones are: who has read long ones alone makes Jim a Jimal.
MADE_NAMES, SYLLABLE_WEIGHTS = 12_000, (40, 45, 14, 1)
THINGS = "object", "creature", "sight"  # kinds of things, each with a list of its own in things/
# What stands before a thing in half of the first sentences, so that a model learns which word is the thing.
QUALITIES = (
    "old", "new", "small", "little", "big", "large", "tiny", "huge", "beautiful", "pretty", "lovely", "strange",
    "odd", "funny", "famous", "wonderful", "perfect", "special", "secret", "magic", "golden", "silver", "white",
    "black", "red", "blue", "green", "yellow", "brown", "grey", "purple", "pink", "orange", "dark", "bright", "pale",
    "dirty", "dusty", "muddy", "wet", "cold", "warm", "lost", "forgotten", "unusual", "curious", "curly", "round",
    "crooked", "ordinary", "rare", "fine", "splendid", "ugly", "plain", "striped", "spotted", "colourful", "enormous",
    "giant", "real", "mysterious", "frozen", "good", "poor", "broken", "wooden", "rusty", "heavy", "light", "shiny",
    "soft", "hard", "empty", "thin", "thick", "paper", "glass", "plastic", "stone", "stolen", "missing", "hidden",
    "flat", "long", "short", "wide", "tall", "high", "deep", "narrow", "clean", "sticky", "precious", "useless",
    "expensive", "borrowed", "painted", "sleepy", "angry", "proud", "shy", "brave", "lazy", "naughty", "clever",
    "wild", "young", "fat", "friendly", "lonely", "noisy", "quiet", "stubborn", "gentle", "cheeky", "greedy", "tired",
    "fluffy", "hairy", "fast", "slow", "talking", "playful", "grumpy", "nervous", "busy", "silent", "gloomy", "sunny",
    "ancient", "modern", "haunted", "peaceful", "grand", "royal",
)  # fmt: skip


def someone(name: str, pronoun: str, **forms: str) -> Entity:
    """A character. The forms of the pronoun are named after those of "he": `{A.his}` is "her" for a girl."""
    return Entity({"name": name, **PRONOUNS[pronoun], **forms})


def thing(forms: dict[str, str]) -> Entity:
    """A thing; "a" is its name with the article, "many" its plural. Any column may be given by hand instead."""
    name = forms["name"]
    return Entity({"a": a(name), "many": plural(name), **forms})


CHILDREN = tuple(someone(name, "she") for name in GIRLS) + tuple(someone(name, "he") for name in BOYS)
FRIENDS = tuple(someone(name, "she") for name in FRIEND_GIRLS) + tuple(someone(name, "he") for name in FRIEND_BOYS)


def made_names() -> list[str]:
    """Made names that are kept for no test: one in four of regular syllables, the others of any make."""
    rng = Random("made names of stories")
    regular = [name for name in names.all_made() if names.split_of(name) == "train"]
    drawn = dict.fromkeys(rng.sample(regular, MADE_NAMES // 4))
    words = {word for kind in THINGS for entity in read_things(kind) for word in entity.name.split()} | names.NOT_NAMES
    while len(drawn) < MADE_NAMES:
        name = "".join(free_names.syllables(rng, SYLLABLE_WEIGHTS))
        usable = 2 < len(name) < 9 and name not in words and not free_names.OFFENSIVE.search(name)
        if usable and names.split_of(name.capitalize()) == "train":
            drawn[name.capitalize()] = None
    return list(drawn)


def anybody() -> tuple[Entity, ...]:
    """Real names of children, and twice as many made ones; none is kept for the tests of the conversations."""
    rng, drawn = Random("names of stories"), dict.fromkeys(made_names())
    made = {name: rng.random() < 0.5 for name in drawn}
    real = {name: names.genders()[name] for name in names.real("train")}
    taken = {*FRIEND_GIRLS, *FRIEND_BOYS}
    return tuple(
        someone(name, "she" if female else "he") for name, female in (made | real).items() if name not in taken
    )


def read_things(kind: str) -> tuple[Entity, ...]:
    """The things of a kind, from its list."""
    lines = (Path(__file__).parent / "things" / f"{kind}.txt").read_text(encoding="utf-8").splitlines()
    return tuple(thing({"name": line}) for line in lines if line)


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
    if name == "anybody":
        return anybody()
    if name in THINGS:
        return read_things(name)
    if name == "quality":  # a "wooden block" is one thing
        begun = {thing.name.partition(" ")[0] for kind in THINGS for thing in read_things(kind)}
        return tuple(thing({"name": each}) for each in QUALITIES if each not in begun)
    return CLASSES.get(name) or tuple(thing({"name": noun.english}) for noun in tagged(name) if noun.english != name)
