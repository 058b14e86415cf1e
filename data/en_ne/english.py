"""The English verb: -s, -ed, -ing, and where do, be, have and will go in statements, negations and questions."""

from dataclasses import dataclass

TENSES = (
    "present", "past", "future", "continuous", "past continuous", "perfect", "past perfect", "used to", "can",
    "could", "want to", "wanted to", "must", "have to", "had to",
)  # fmt: skip


@dataclass(frozen=True)
class EnglishVerb:
    """eat, ate, eaten; whatever follows the verb proper ("up" in get up) stays in `particle`."""

    base: str
    past: str
    participle: str
    particle: str = ""

    @property
    def third(self) -> str:
        return third_person(self.base)

    @property
    def ing(self) -> str:
        return ing_form(self.base)

    def after(self, form: str) -> str:
        return f"{form} {self.particle}".strip()


def third_person(base: str) -> str:
    """eat eats, wash washes, carry carries, have has."""
    if base in ("have", "do", "go"):
        return {"have": "has", "do": "does", "go": "goes"}[base]
    if base.endswith(("s", "sh", "ch", "x", "z")):
        return base + "es"
    return base[:-1] + "ies" if base.endswith("y") and base[-2] not in "aeiou" else base + "s"


DOUBLED = ("sit", "get", "run", "cut", "swim", "put", "win", "forget")


def ing_form(base: str) -> str:
    """eat eating, make making, run running."""
    if base in DOUBLED:
        return base + base[-1] + "ing"
    return base[:-1] + "ing" if base.endswith("e") and not base.endswith("ee") else base + "ing"


def past_form(base: str) -> str:
    """The regular past: walk walked, love loved, carry carried."""
    if base.endswith("e"):
        return base + "d"
    return base[:-1] + "ied" if base.endswith("y") and base[-2] not in "aeiou" else base + "ed"


def plural(noun: str) -> str:
    """book books, box boxes, story stories, and the irregular ones."""
    irregular = {
        "child": "children", "man": "men", "woman": "women", "potato": "potatoes", "tomato": "tomatoes",
        "mango": "mangoes", "knife": "knives", "buffalo": "buffaloes",
    }  # fmt: skip
    *front, last = noun.split(" ")
    if last in irregular:
        return " ".join([*front, irregular[last]])
    if last.endswith(("s", "sh", "ch", "x")):
        return noun + "es"
    return noun[:-1] + "ies" if noun.endswith("y") and noun[-2] not in "aeiou" else noun + "s"


def a(noun: str) -> str:
    """a book, an apple; by sound: a university, an hour."""
    vowel = noun[0].lower() in "aeiou" and not noun.startswith(("uni", "one", "use"))
    return ("an " if vowel or noun.startswith(("hour", "honest")) else "a ") + noun


BE = {"i": ("am", "was"), "s": ("is", "was"), "p": ("are", "were")}  # by number: I; he, she, it; we, you, they


def verb_group(verb: EnglishVerb, tense: str, number: str) -> tuple[str, str]:
    """The helper that is inverted in questions and takes "not", and the rest: ("does", "eat"), ("is", "eating")."""
    third = number == "s"
    be = BE[number]
    base, participle, ing = verb.after(verb.base), verb.after(verb.participle), verb.after(verb.ing)
    do = "does" if third else "do"
    return {
        "present": (do, base),
        "past": ("did", base),
        "future": ("will", base),
        "continuous": (be[0], ing),
        "past continuous": (be[1], ing),
        "perfect": ("has" if third else "have", participle),
        "past perfect": ("had", participle),
        "used to": ("did", f"use to {base}"),
        "can": ("can", base),
        "could": ("could", base),
        "want to": (do, f"want to {base}"),
        "wanted to": ("did", f"want to {base}"),
        "must": ("must", base),
        "have to": (do, f"have to {base}"),
        "had to": ("did", f"have to {base}"),
    }[tense]


def without_do(verb: EnglishVerb, tense: str, number: str) -> str | None:
    """What an affirmative statement says instead of do + verb; None where the helper stays."""
    third = number == "s"
    base = verb.after(verb.base)
    return {
        "present": verb.after(verb.third) if third else base,
        "past": verb.after(verb.past),
        "used to": f"used to {base}",
        "want to": f"{'wants' if third else 'want'} to {base}",
        "wanted to": f"wanted to {base}",
        "have to": f"{'has' if third else 'have'} to {base}",
        "had to": f"had to {base}",
    }.get(tense)


def statement(
    subject: str, verb: EnglishVerb, tense: str, number: str, negative: bool = False, adverb: str = ""
) -> str:
    """ "she does not often eat": subject, helper, not, adverb, verb."""
    helper, rest = verb_group(verb, tense, number)
    alone = None if negative else without_do(verb, tense, number)
    if alone is not None:
        words = [subject, adverb, alone]
    else:
        words = [subject, "cannot" if negative and helper == "can" else helper]
        words += ["not"] if negative and helper != "can" else []
        words += [adverb, rest]
    return " ".join(word for word in words if word)


def looks_present(verb: EnglishVerb, tense: str, number: str, negative: bool) -> bool:
    """Whether a past statement reads like a present one: "they read", "I cut", "we put" (but "he read", "I did not
    read").
    """
    return tense == "past" and verb.base == verb.past and number != "s" and not negative


def question(subject: str, verb: EnglishVerb, tense: str, number: str, adverb: str = "") -> str:
    """ "does she often eat": the helper comes first."""
    helper, rest = verb_group(verb, tense, number)
    return " ".join(word for word in (helper, subject, adverb, rest) if word)


def be_statement(subject: str, number: str, past: bool = False, negative: bool = False, future: bool = False) -> str:
    """ "he is", "he was not", "he will be"."""
    if future:
        return f"{subject} will not be" if negative else f"{subject} will be"
    return f"{subject} {BE[number][past]}" + (" not" if negative else "")


def be_question(subject: str, number: str, past: bool = False) -> str:
    return f"{BE[number][past]} {subject}"
