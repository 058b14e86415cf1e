"""What the assistant knows: some 270 facts that are sure and stable, and the sums it can do.

Facts of one kind share their wordings; those that stand alone are in single_facts.py.
"""

from random import Random
from typing import NamedTuple

from data.chat.fact import Fact
from data.chat.single_facts import SINGLE
from data.chat.world import DAYS, MONTHS

CAPITALS = """
    Afghanistan Kabul, Algeria Algiers, Argentina Buenos Aires, Australia Canberra, Austria Vienna, Bangladesh Dhaka,
    Belgium Brussels, Bhutan Thimphu, Brazil Brasilia, Bulgaria Sofia, Cambodia Phnom Penh, Canada Ottawa,
    Chile Santiago, China Beijing, Colombia Bogota, Croatia Zagreb, Cuba Havana, Denmark Copenhagen, Ecuador Quito,
    Egypt Cairo, England London, Ethiopia Addis Ababa, Finland Helsinki, France Paris, Germany Berlin, Ghana Accra,
    Greece Athens, Hungary Budapest, Iceland Reykjavik, India New Delhi, Iran Tehran, Iraq Baghdad, Ireland Dublin,
    Italy Rome, Japan Tokyo, Kenya Nairobi, Malaysia Kuala Lumpur, Mexico Mexico City, Mongolia Ulaanbaatar,
    Morocco Rabat, Nepal Kathmandu, Nigeria Abuja, Norway Oslo, Pakistan Islamabad, Peru Lima, Poland Warsaw,
    Portugal Lisbon, Romania Bucharest, Russia Moscow, Senegal Dakar, Serbia Belgrade, Spain Madrid, Sweden Stockholm,
    Thailand Bangkok, Tunisia Tunis, Turkey Ankara, Uganda Kampala, Ukraine Kyiv, Vietnam Hanoi, Zambia Lusaka
"""
CONTINENTS = {
    "Asia": "Nepal India China Japan Thailand Vietnam Mongolia", "Europe": "France Germany Italy Spain Poland Norway",
    "Africa": "Kenya Ghana Nigeria Ethiopia Morocco", "South America": "Brazil Peru Argentina Chile",
    "North America": "Canada Mexico",
}  # fmt: skip
OPPOSITES = """
    hot cold, big small, up down, day night, fast slow, happy sad, open closed, full empty, wet dry, long short,
    rich poor, early late, clean dirty, thick thin, first last, inside outside, loud quiet, strong weak, near far,
    good bad
"""
YOUNG = """
    dog puppy, cat kitten, cow calf, horse foal, sheep lamb, goat kid, duck duckling, hen chick, lion cub, frog tadpole,
    pig piglet, goose gosling
"""
SOUNDS = "dog woof, cat meow, cow moo, sheep baa, duck quack, pig oink, bee buzz, lion roar, mouse squeak"
HOMES = "bird nest, bee hive, spider web, rabbit burrow, horse stable"
LEGS = {"dog": "four", "cow": "four", "bird": "two", "hen": "two", "spider": "eight", "ant": "six", "bee": "six"}
COLOURS = {
    "snow": "white", "grass": "green", "milk": "white", "blood": "red", "coal": "black", "a ripe banana": "yellow",
    "a ripe lemon": "yellow", "a ripe tomato": "red", "the sky on a clear day": "blue", "an elephant": "grey",
}  # fmt: skip
UNITS = (
    ("seconds", "a minute", "60"), ("minutes", "an hour", "60"), ("hours", "a day", "24"), ("days", "a week", "seven"),
    ("months", "a year", "twelve"), ("weeks", "a year", "52"), ("days", "a year", "365"),
    ("days", "a leap year", "366"),
    ("years", "a century", "100"), ("centimetres", "a metre", "100"), ("metres", "a kilometre", "1000"),
    ("grams", "a kilogram", "1000"), ("millimetres", "a centimetre", "ten"), ("eggs", "a dozen", "twelve"),
    ("seasons", "a year", "four"), ("days", "April", "30"), ("days", "January", "31"),
    ("letters", "the English alphabet", "26"),
)  # fmt: skip


def a(noun: str) -> str:
    return f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}"


def pairs(text: str) -> list[tuple[str, str]]:
    """ "cat kitten, cow calf" -> (cat, kitten), (cow, calf)."""
    return [tuple(entry.strip().split(maxsplit=1)) for entry in text.split(",")]


def fact(topic: str, questions: str, full: str, short: str, **words: str) -> Fact:
    """A fact from its patterns; the questions are separated by |, and each slot is one of the words."""
    words["short"] = short
    asked = tuple(question.strip().format(**words) for question in questions.split("|"))
    sentence = full.format(**words)
    return Fact(asked, short, sentence[0].upper() + sentence[1:], topic)


CAPITAL = """What is the capital of {country}? | Which city is the capital of {country}?
    | Can you tell me the capital of {country}? | Do you know the capital of {country}?
    | What is {country}'s capital?"""
CONTINENT = """Which continent is {country} in? | On which continent is {country}? | What continent is {country} in?
    | Do you know which continent {country} is in?"""
OPPOSITE = """What is the opposite of {word}? | What is the opposite of the word {word}?
    | Can you tell me the opposite of {word}? | Which word means the opposite of {word}?"""
CHILD = """What is a young {animal} called? | What do you call a baby {animal}? | What is the young of {one} called?
    | What is a baby {animal} called?"""
SOUND = """What does {one} say? | What sound does {one} make? | Which noise does {one} make? | How does {one} sound?"""
HOME = """Where does {one} live? | Where does {one} have its home? | Do you know where {one} lives?
    | In what does {one} live?"""
LEG = """How many legs does {one} have? | How many legs has {one}? | On how many legs does {one} walk?
    | Do you know how many legs {one} has?"""
COLOUR = """What colour is {thing}? | Which colour is {thing}? | What is the colour of {thing}?
    | Can you tell me what colour {thing} is?"""
UNIT = """How many {parts} are there in {whole}? | How many {parts} are in {whole}?
    | How many {parts} does {whole} have? | Do you know how many {parts} are in {whole}?"""
AFTER = """Which {unit} comes after {given}? | What comes after {given}? | What {unit} is after {given}?
    | Which {unit} follows {given}?"""
BEFORE = """Which {unit} comes before {given}? | What comes before {given}? | What {unit} is before {given}?
    | Which {unit} is just before {given}?"""


def about_countries() -> list[Fact]:
    capitals = [
        fact("capital", CAPITAL, "The capital of {country} is {short}.", city, country=country)
        for country, city in pairs(CAPITALS)
    ]
    continents = [
        fact("continent", CONTINENT, "{country} is in {short}.", continent, country=country)
        for continent, countries in CONTINENTS.items()
        for country in countries.split()
    ]
    return capitals + continents


def about_order() -> list[Fact]:
    """What comes after and before each day, and after each month."""
    facts = []
    for unit, names in (("day", DAYS), ("month", MONTHS)):
        for one, other in zip(names, (*names[1:], names[0]), strict=True):
            facts.append(fact(unit, AFTER, "{short} comes after {given}.", other, unit=unit, given=one))
            if unit == "day":
                facts.append(fact(unit, BEFORE, "{short} comes before {given}.", one, unit=unit, given=other))
    return facts


def about_words() -> list[Fact]:
    both = [pair for one, other in pairs(OPPOSITES) for pair in ((one, other), (other, one))]
    return [fact("opposite", OPPOSITE, "The opposite of {word} is {short}.", other, word=one) for one, other in both]


def about_animals() -> list[Fact]:
    young = "A young {animal} is called {short}."
    return [
        *(fact("young", CHILD, young, a(child), animal=animal, one=a(animal)) for animal, child in pairs(YOUNG)),
        *(fact("sound", SOUND, "{one} says {short}.", sound, one=a(animal)) for animal, sound in pairs(SOUNDS)),
        *(fact("home", HOME, "{one} lives {short}.", f"in {a(home)}", one=a(animal)) for animal, home in pairs(HOMES)),
        *(fact("legs", LEG, "{one} has {short} legs.", legs, one=a(animal)) for animal, legs in LEGS.items()),
    ]


def about_things() -> list[Fact]:
    return [
        *(fact("colour", COLOUR, "{thing} is {short}.", colour, thing=thing) for thing, colour in COLOURS.items()),
        *(
            fact("unit", UNIT, "There are {short} {parts} in {whole}.", number, parts=parts, whole=whole)
            for parts, whole, number in UNITS
        ),
    ]


FACTS = (*about_countries(), *about_order(), *about_words(), *about_animals(), *about_things(), *SINGLE)


class Sum(NamedTuple):
    """7 plus 5: `op` is +, - or x, `words` is the sum as it is said."""

    a: int
    op: str
    b: int
    result: int
    words: str

    @property
    def signs(self) -> str:
        return f"{self.a} {self.op} {self.b}"


def make_sum(a: int, op: str, b: int) -> Sum:
    result, word = {"+": (a + b, "plus"), "-": (a - b, "minus"), "x": (a * b, "times")}[op]
    return Sum(a, op, b, result, f"{a} {word} {b}")


# Few enough to be known by heart: a model of this size does not reckon.
SUMS = (
    *(make_sum(a, "+", b) for a in range(11) for b in range(11)),
    *(make_sum(a + b, "-", b) for a in range(11) for b in range(11)),
    *(make_sum(a, "x", b) for a in range(6) for b in range(6)),
)


def sums(rng: Random) -> Sum:
    """Any sum; unpacks as (a, op, b, result, words)."""
    return rng.choice(SUMS)
