"""What a user can tell about himself in English, and how it is told, asked for, answered and corrected.

A slot is one thing that can be told ("name", "place", "dog", "sister"). In its templates {v} is the value.
"""

from collections.abc import Callable
from dataclasses import dataclass

from data.chat import free_values, world
from data.chat.dialogue import Core, State


@dataclass(frozen=True)
class Slot:
    """One thing that a user can tell."""

    key: str
    draw: Callable[[State], str]
    weight: float
    mine: str  # "my name is {v}"
    yours: str  # "your name is {v}"
    theirs: str  # "the user's name is {v}", for system messages; "" if it is never said there
    tells: tuple[str, ...]  # whole messages
    asks: tuple[str, ...]
    corrections: tuple[str, ...]
    noted: Core  # the reply to a tell
    short: str  # the bare answer
    what: str  # "your name", "where you live": fits "I do not know {}"
    also: tuple[str, ...] = ()  # other right answers

    def answer(self, value: str) -> Core:
        return Core(capital(self.short.format(v=value)), capital(self.yours.format(v=value)) + self.mark)

    @property
    def mark(self) -> str:
        return "."

    @property
    def unknown(self) -> Core:
        return Core("I do not know.", f"I do not know {self.what}.")

    @property
    def told(self) -> tuple[str, ...]:
        """How it is told as a part of a longer sentence: "my name is {v}", "I'm {v}"."""
        parts = [text[0].lower() + text[1:-1] for text in self.tells if text.startswith("My ")]
        parts += [text[:-1] for text in self.tells if text.startswith(("I ", "I'm ")) and text.count(".") == 1]
        return (self.mine, self.mine, *parts)

    def note(self, value: str) -> Core:
        """The reply to a tell."""
        return Core(*(text.format(v=value) for text in self.noted))

    def understood(self, value: str) -> Core:
        """The reply to a correction."""
        return Core(
            f"Ah, {lower_preposition(self.short).format(v=value)}", f"I understand: {self.yours.format(v=value)}."
        )


def capital(text: str) -> str:
    return text[0].upper() + text[1:]


def lower_preposition(short: str) -> str:
    """ "In {v}." inside a sentence: "in {v}." """
    return short[0].lower() + short[1:]


def remembering(yours: str, short: str = "I see.") -> Core:
    return Core(short, f"I will remember that {yours}.")


NAME = Slot(
    "name", State.person, 3.0, "my name is {v}", "your name is {v}", "the user's name is {v}",
    (
        "My name is {v}.", "I am {v}.", "I'm {v}.", "Call me {v}.", "Hello, my name is {v}.", "Hi, I'm {v}.",
        "Hello, I am {v}.", "You can call me {v}.", "People call me {v}.", "My friends call me {v}.",
        "I am called {v}.",
        "Good morning, my name is {v}.", "Hi! My name is {v}.", "My name's {v}.", "This is {v} speaking.",
        "Let me introduce myself: I am {v}.", "Please call me {v}.", "Hey, it's {v}.", "Remember that my name is {v}.",
    ),
    (
        "What is my name?", "What's my name?", "Who am I?", "Do you remember my name?", "Do you know my name?",
        "Can you tell me my name?", "Tell me my name.", "What did I say my name was?", "Say my name.",
        "What am I called?",
        "So what is my name?", "What was my name again?", "Do you still know my name?", "Which name did I tell you?",
        "Can you remember my name?", "Please tell me my name.", "Do you know who I am?", "My name is?",
    ),
    (
        "Actually, my name is {v}.", "No, my name is {v}.", "Sorry, my name is {v}, not {old}.",
        "I am not {old}, I am {v}.",
        "My name is not {old}, it is {v}.", "Wait, my real name is {v}.", "Please call me {v} and not {old}.",
    ),
    Core("Hello, {v}.", "Nice to meet you, {v}."), "{v}.", "your name", ("You are {v}.", "You are called {v}."),
)  # fmt: skip

PLACE = Slot(
    "place", lambda state: free_values.place(state.split, state.rng), 1.4, "I live in {v}", "you live in {v}",
    "the user lives in {v}",
    (
        "I live in {v}.", "My home is in {v}.", "I am living in {v}.", "I live in {v} with my family.",
        "My house is in {v}.",
        "We live in {v}.", "I have lived in {v} for ten years.", "I moved to {v} last year.",
        "I live in beautiful {v}.",
    ),
    (
        "Where do I live?", "Which city do I live in?", "Do you remember where I live?", "Where is my home?",
        "Do you know where I live?", "Tell me where I live.", "In which place do I live?", "Where is my house?",
        "What did I say about where I live?", "Can you tell me where I live?", "Where did I say I live?",
    ),
    (
        "Actually, I live in {v}.", "No, I live in {v}.", "Sorry, I live in {v}, not in {old}.", "Now I live in {v}.",
        "I do not live in {old}, I live in {v}.", "I have moved from {old} to {v}.",
    ),
    remembering("you live in {v}"), "In {v}.", "where you live", ("{v}.",),
)  # fmt: skip

ORIGIN = Slot(
    "origin", lambda state: free_values.place(state.split, state.rng), 0.9, "I come from {v}", "you come from {v}",
    "the user comes from {v}",
    ("I come from {v}.", "I am from {v}.", "I'm from {v}.", "My family comes from {v}.", "I was born in {v}.",
     "I grew up in {v}.", "My home town is {v}."),
    ("Where do I come from?", "Where am I from?", "Do you remember where I am from?", "What is my home town?",
     "Tell me where I come from.", "Do you know where I come from?", "Which place am I from?"),
    ("Actually, I come from {v}.", "No, I am from {v}.", "Sorry, I come from {v}, not from {old}."),
    remembering("you come from {v}"), "From {v}.", "where you come from", ("{v}.", "You are from {v}."),
)  # fmt: skip

LIKE = Slot(
    "like", lambda state: free_values.like(state.split, state.rng), 1.2, "I like {v}", "you like {v}",
    "the user likes {v}",
    (
        "I like {v}.", "I love {v}.", "I really like {v}.", "I like {v} very much.", "I enjoy {v}.",
        "What I like best is {v}.", "I like {v} a lot.", "I am very fond of {v}.", "You should know that I like {v}.",
    ),
    (
        "What do I like?", "Do you remember what I like?", "What did I say I like?", "Tell me what I like.",
        "Do you know what I like?", "What do I love?", "Can you tell me what I like?", "What was it that I like?",
        "What am I fond of?", "What do I enjoy?",
    ),
    ("Actually, I like {v}.", "No, I like {v}.", "Sorry, I like {v}, not {old}.", "I do not like {old}, I like {v}."),
    remembering("you like {v}"), "{v}.", "what you like", (),
)  # fmt: skip

AGE = Slot(
    "age", lambda state: str(state.rng.choice(world.AGES)), 1.0, "I am {v} years old", "you are {v} years old",
    "the user is {v} years old",
    (
        "I am {v} years old.", "I'm {v} years old.", "I am {v}.", "My age is {v}.", "I turned {v} last week.",
        "I just turned {v}.", "Today I am {v} years old.", "I have been {v} years old since May.",
    ),
    (
        "How old am I?", "What is my age?", "Do you remember how old I am?", "Do you know my age?", "Tell me my age.",
        "How old did I say I am?", "Can you tell me how old I am?", "What age am I?", "How many years old am I?",
    ),
    ("Actually, I am {v} years old.", "No, I am {v}.", "Sorry, I am {v}, not {old}.",
     "I am not {old}, I am {v} years old."),
    remembering("you are {v} years old"), "{v}.", "how old you are", ("You are {v}.", "{v} years old."),
)  # fmt: skip

JOB = Slot(
    "job", lambda state: free_values.job(state.split, state.rng), 1.0, "I am {v}", "you are {v}", "the user is {v}",
    (
        "I am {v}.", "I'm {v}.", "I work as {v}.", "I am {v} by profession.", "My job is to be {v}.",
        "I have a job as {v}.", "I have become {v}.",
    ),
    (
        "What is my job?", "What do I do for a living?", "What is my work?", "Do you remember my job?",
        "What do I work as?", "Do you know what my job is?", "What's my job?", "Tell me my job.",
        "What is my profession?",
    ),
    ("Actually, I am {v}.", "No, I am {v}.", "Sorry, I am {v}, not {old}.", "I am no longer {old}, I am {v}."),
    remembering("you are {v}"), "{v}.", "what your job is", ("You work as {v}.",),
)  # fmt: skip

WORK = Slot(
    "work", lambda state: free_values.work(state.split, state.rng), 1.2, "I {v}", "you {v}", "",
    (
        "I {v}.", "I {v} for a living.", "For my work I {v}.", "My work is that I {v}.", "In my job I {v}.",
        "I {v}, that is my job.", "Every day I {v}.",
    ),
    (
        "What is my job?", "What do I do for a living?", "What is my work?", "Do you remember my job?",
        "Do you know what my job is?", "What's my job?", "Tell me what my work is.", "What do I do?",
        "Do you remember what I do?",
    ),
    ("Actually, I {v}.", "No, I {v}.", "Sorry, I {v} now.", "I no longer do that, I {v}."),
    remembering("you {v}"), "You {v}.", "what your job is", ("{v}.",),
)  # fmt: skip


def favourite(thing: str, values: tuple[str, ...], weight: float) -> Slot:
    """ "My favourite colour is blue." """
    mine = f"my favourite {thing} is {{v}}"
    return Slot(
        f"favourite {thing}", lambda state: state.rng.choice(values), weight, mine, mine.replace("my", "your", 1),
        f"the user's favourite {thing} is {{v}}",
        (
            f"My favourite {thing} is {{v}}.", f"The {thing} I like best is {{v}}.", f"{{v}} is my favourite {thing}.",
            f"Remember that my favourite {thing} is {{v}}.", f"For me the best {thing} is {{v}}.",
        ),
        (
            f"What is my favourite {thing}?", f"Which {thing} do I like best?", f"What's my favourite {thing}?",
            f"Do you remember my favourite {thing}?", f"Tell me my favourite {thing}.",
            f"What was my favourite {thing}?",
            f"Do you know my favourite {thing}?", f"Which is my favourite {thing}?",
        ),
        (
            f"Actually, my favourite {thing} is {{v}}.", f"No, my favourite {thing} is {{v}}.",
            f"Sorry, my favourite {thing} is {{v}}, not {{old}}.",
        ),
        remembering(f"your favourite {thing} is {{v}}"), "{v}.", f"your favourite {thing}",
    )  # fmt: skip


def named(
    thing: str, draw: Callable[[State], str], weight: float, tells: tuple[str, ...], asks: tuple[str, ...]
) -> Slot:
    """The name of somebody who belongs to the user: "My sister's name is Miko." """
    mine = f"my {thing}'s name is {{v}}"
    return Slot(
        thing, draw, weight, mine, mine.replace("my", "your", 1), f"the user's {thing} is called {{v}}",
        (
            f"My {thing}'s name is {{v}}.", f"My {thing} is called {{v}}.", f"The name of my {thing} is {{v}}.",
            f"My {thing} is named {{v}}.", f"{{v}} is the name of my {thing}.", f"{{v}} is my {thing}.", *tells,
        ),
        (
            f"What is my {thing}'s name?", f"What's my {thing}'s name?", f"What is the name of my {thing}?",
            f"What is my {thing} called?", f"Do you remember my {thing}'s name?", f"Tell me my {thing}'s name.",
            f"Do you know the name of my {thing}?", f"What did I say my {thing} is called?", *asks,
        ),
        (
            f"Actually, my {thing}'s name is {{v}}.", f"No, my {thing} is called {{v}}.",
            f"Sorry, my {thing}'s name is {{v}}, not {{old}}.", f"My {thing} is not called {{old}}, but {{v}}.",
        ),
        remembering(f"your {thing}'s name is {{v}}"), "{v}.", f"your {thing}'s name",
        (f"Your {thing} is called {{v}}.",),
    )  # fmt: skip


SEVERAL = ("sister", "brother", "friend", "cousin", "classmate", "son", "daughter", "uncle", "aunt")  # one has several
ONE = ("mother", "father", "teacher", "best friend")
WOMEN = ("sister", "daughter", "aunt", "mother")
MEN = ("brother", "son", "uncle", "father")


def relative(person: str) -> Slot:
    whose = f"an {person}" if person[0] in "aeiou" else f"a {person}"
    tells = (f"I have {whose} named {{v}}.", f"I have {whose} called {{v}}.") if person in SEVERAL else ()
    female = True if person in WOMEN else False if person in MEN else None
    return named(person, lambda state: state.person(female), 0.25, tells, (f"Who is my {person}?",))


def pet(animal: str) -> Slot:
    tells = (
        f"I have a {animal} named {{v}}.", f"I have a {animal} called {{v}}.", f"I have a {animal}. Its name is {{v}}.",
        f"We have a {animal} and call it {{v}}.", f"I named my {animal} {{v}}.",
    )  # fmt: skip
    return named(animal, State.pet, 0.2, tells, (f"What did I name my {animal}?", f"How do I call my {animal}?"))


FAVOURITES = (
    favourite("colour", world.COLOURS, 0.8),
    favourite("food", world.FOODS, 0.25),
    favourite("drink", world.DRINKS, 0.25),
    favourite("game", world.GAMES, 0.25),
    favourite("season", world.SEASONS, 0.15),
    favourite("day", world.DAYS, 0.15),
    favourite("month", world.MONTHS, 0.15),
)
RELATIVES = tuple(relative(person) for person in (*SEVERAL, *ONE))
PETS = tuple(pet(animal) for animal in world.PETS)
# Of these only one is told in a conversation: who has said "my puppy" may later say "my dog".
ONE_OF = (("job", "work"), ("dog", "puppy"), ("cat", "kitten"), ("horse", "pony"), ("friend", "best friend"))
SLOTS = {slot.key: slot for slot in (NAME, PLACE, ORIGIN, LIKE, AGE, JOB, WORK, *FAVOURITES, *RELATIVES, *PETS)}
