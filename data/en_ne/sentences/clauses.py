"""Somebody does something: every verb through persons, tenses, polarity and questions, with objects, places
and times.
"""

from data.en_ne.adjectives import described
from data.en_ne.adverbs import GOALS, ORIGINS, PLACES, TIMES
from data.en_ne.nouns import NOUNS, Noun, Phrase, bare, counted, definite, demonstrative, indefinite, some, tagged
from data.en_ne.people import (
    EVERYONE,
    NAMED,
    SPEAKERS,
    THE_PEOPLE,
    YOU,
    I,
    Person,
    my,
    possessed,
    subjects,
)  # fmt: skip
from data.en_ne.sentence import Clause, at, origin, to
from data.en_ne.verb_table import ACTIONS, CORE, Action

COMMON_TENSES = ("present", "past", "future", "continuous", "past continuous", "perfect")
TENSE_WEIGHTS = {
    "present": 20, "past": 20, "future": 14, "continuous": 10, "past continuous": 7, "perfect": 9,
    "past perfect": 4, "used to": 7,
}  # fmt: skip
COUNTABLE = (
    "eat",
    "buy",
    "sell",
    "read",
    "write",
    "see",
    "bring",
    "make",
    "count",
    "wash",
    "sing",
    "plant",
    "pick",
    "carry",
    "send",
    "find",
    "take",
    "cut",
    "throw",
    "tell",
    "cook",
    "repair",
    "open",
)  # done to two or many things at a time
SUDDEN = (
    "find",
    "lose",
    "fall",
    "arrive",
    "finish",
    "win",
)  # done in a moment: no "every day", no "used to", no continuous
TIMELESS = ("live", "know", "trust", "love", "understand")
UNSAID = (
    "walk",
    "cry",
    "sleep",
    "smile",
    "laugh",
    "get up",
    "wear",
    "sit",
    "say",
    "fall",
    "rest",
    "stay",
    "throw",
    "talk to",
    "live",
)
ALWAYS_THE = ("moon", "news", "radio")
OTHER_OWNERS = {"i": SPEAKERS[2:], "we": SPEAKERS[2:], "polite": (SPEAKERS[0], *SPEAKERS[3:])}


def owner_for(subject: Person, rng) -> Person:
    """Whose thing it is: mostly the subject's own, else that of somebody who cannot be mistaken for the subject."""
    own = next((person for person in SPEAKERS if person.own == subject.own), None)
    if own and rng.random() < 0.5:
        return own
    if subject in SPEAKERS[:3]:
        return rng.choice(OTHER_OWNERS[subject.who])
    return rng.choice(SPEAKERS[:3])


POINTED = (("this", "यो"), ("that", "त्यो"), ("it", "यो"))


def phrase_for(noun: Noun, subject: Person, negative: bool, rng, countable: bool = True) -> Phrase:
    """The noun with an article, a number, an owner or nothing. In a negation "a book" is just किताब: none is
    counted.
    """
    if "bare" in noun.tags:
        return bare(noun)
    if noun.english in ALWAYS_THE:
        return definite(noun)
    phrase = described(noun, negative, rng) if rng.random() < 0.14 else None
    if phrase:
        return phrase
    draw = rng.random()
    if draw < 0.13 and "own" in noun.tags:
        return possessed(owner_for(subject, rng), noun, subject, many=not noun.mass and rng.random() < 0.2)
    if noun.english == "name":
        return possessed(rng.choice([p for p in SPEAKERS if p.own != subject.own]), noun)
    if noun.mass:
        return bare(noun) if draw < 0.75 else definite(noun)
    if draw < 0.45:
        phrase = indefinite(noun)
        return Phrase(phrase.english, noun.nepali, noun.english, noun.human) if negative else phrase
    if draw < 0.66:
        return definite(noun, many=rng.random() < 0.2)
    if draw < 0.82:
        return bare(noun)
    if draw < 0.92:
        return demonstrative(noun, rng.choice(("this", "that", "these", "those")))
    if negative or "count" not in noun.tags or not countable:
        return definite(noun)
    if rng.random() < 0.6:
        return counted(noun, rng.choice(("one", "two", "two", "three", "four", "five")))
    return some(noun, rng.choice(("some", "many", "a lot of", "all the")))


def person_for(subject: Person, rng) -> Person:
    """Somebody else: a pronoun, a relative, a named person. The subject's own relatives are आफ्नो."""
    draw = rng.random()
    if draw < 0.5:
        near = {"i": ("we",), "we": ("i",)}.get(subject.who, ())
        return rng.choice([p for p in SPEAKERS if p.who not in (subject.who, *near) and p.own != subject.own])
    if draw < 0.8:
        owner = owner_for(subject, rng)
        name = rng.choice(("father", "mother", "brother", "sister", "friend", "son", "daughter", "teacher"))
        person = my(owner, name)
        if owner.own != subject.own:
            return person
        own = possessed(owner, NOUNS[name], subject)
        return Person(person.english, own.nepali, person.who, person.number, person.female, "", person.own)
    return rng.choice([p for p in (*NAMED, *THE_PEOPLE) if p != subject])


def goal_for(action: Action, rng) -> tuple[str, str]:
    """go to school, come from school, return home, arrive at the market."""
    key = action.key
    if key == "arrive":
        place = rng.choice([p for p in GOALS if p.key not in ("there", "river")])
        return (rng.choice(place.at), place.nepali)
    if key == "come" and rng.random() < 0.3:
        return to(PLACES["here"])
    if key in ("come", "return") and rng.random() < 0.5:
        return origin(rng.choice(ORIGINS))
    return to(rng.choice(GOALS))


def complement(action: Action, subject: Person, negative: bool, rng) -> dict:
    """What the verb needs to make sense: a thing, a person, a goal."""
    things = action.things()
    if "g" in action.flags:
        return {"place": goal_for(action, rng)}
    if action.key == "watch" and rng.random() < 0.3:
        return {"thing": Phrase("television", "टिभी", "television")}
    if action.person_case and (not things or rng.random() < 0.4):
        return {"person": person_for(subject, rng)}
    if things and not (action.alone and rng.random() < 0.25):
        if action.key in COUNTABLE and rng.random() < 0.06:
            word, ours = rng.choice(POINTED)
            return {"thing": Phrase(word, ours, word)}
        return {"thing": phrase_for(rng.choice(things), subject, negative, rng, action.key in COUNTABLE)}
    if action.key == "live":
        return {"place": at(PLACES[rng.choice(action.places)], rng)}
    return {}


def in_general(action: Action, rng) -> Phrase | None:
    """What the verb is done to, in general: "apples", "milk"; nothing if it needs no thing."""
    things = [noun for noun in action.things() if noun.english not in ("name", "television", "answer")]
    return bare(rng.choice(things)) if things else None


def allowed(action: Action, tense: str) -> bool:
    if action.state and "continuous" in tense:
        return False
    if action.key == "understand" and tense == "present":
        return False  # one says "I have understood": मैले बुझेँ
    return (
        action.key not in SUDDEN
        or tense in ("past", "future", "perfect", "past perfect", "could")
        or (tense == "can" and action.key not in ("lose", "fall"))
    )


def spoken(clause: Clause, form: str):
    return clause.ask() if form == "question" else clause.say()


def core_paradigms(rng):
    """Every common verb with every pronoun in the six common tenses: said, denied and asked."""
    for key in CORE:
        action = ACTIONS[key]
        for subject in SPEAKERS + (rng.choice(EVERYONE[6:]),) * (rng.random() < 0.5):
            for tense in (t for t in COMMON_TENSES if allowed(action, t)):
                for form in ("statement", "negation", "question"):
                    if form == "question" and subject is I and tense not in ("past", "future"):
                        continue
                    negative = form == "negation"
                    extra = complement(action, subject, negative, rng)
                    yield spoken(Clause(subject, action, tense, negative, **extra), form)


def third_persons(rng):
    """Every verb in the third person singular of the present, where English has its -s and Nepali tells he from she."""
    for action in ACTIONS.values():
        others = (rng.choice(NAMED[:4]), rng.choice(NAMED[4:]), my(I, "brother"), my(I, "mother"), my(I, "father"))
        for subject in (*SPEAKERS[3:5], *others, rng.choice(THE_PEOPLE[:12])):
            if allowed(action, "present"):
                yield Clause(subject, action, "present", **complement(action, subject, False, rng)).say()


def understanding(rng):
    """ "I understand Nepali" म नेपाली बुझ्छु: of languages the present is said; of all else मैले बुझेँ, "I have understood"."""
    for subject in (
        *SPEAKERS,
        *NAMED,
        *THE_PEOPLE[:8],
        my(I, "mother"),
        my(I, "father"),
        my(I, "brother"),
        my(I, "sister"),
    ):
        for noun in tagged("language"):
            for form in ("statement", "negation", "question"):
                if form != "question" or subject is not I:
                    clause = Clause(subject, ACTIONS["understand"], "present", form == "negation", bare(noun))
                    yield spoken(clause, form)


def clauses(rng):
    """Endless: any subject, verb and tense, with a time, a place or a frequency, or none."""
    tenses, weights = list(TENSE_WEIGHTS), list(TENSE_WEIGHTS.values())
    everything = list(ACTIONS.values())
    while True:
        action, subject = rng.choice(everything), subjects(rng)
        tense = rng.choices(tenses, weights)[0]
        if not allowed(action, tense):
            continue
        form = rng.choices(("statement", "negation", "question"), (55, 25, 20))[0]
        if form == "question" and subject is I:
            continue
        yield spoken(build(action, subject, tense, form == "negation", rng), form)


def build(action: Action, subject: Person, tense: str, negative: bool, rng) -> Clause:
    """A clause with its complement and one or no adverb, seldom a place and a time."""
    extra = complement(action, subject, negative, rng)
    draw = rng.random()
    if "place" not in extra and action.places and draw < 0.35:
        extra["place"] = at(PLACES[rng.choice(action.places)], rng)
    times = TIMES.get(tense, {})
    if action.state:  # nobody trusts "at one o'clock"
        times = {
            word: ours
            for word, ours in times.items()
            if "o'clock" not in word and word not in ("at night", "every evening")
        }
    if action.key in UNSAID:  # nor does anybody get up "last year"
        times = {word: ours for word, ours in times.items() if not word.endswith(("week", "month", "year", "ago"))}
    if times and 0.27 < draw < 0.75 and action.key not in TIMELESS:
        extra["time"] = rng.choice(list(times.items()))
        extra["time_first"] = rng.random() < 0.18
    elif tense == "present" and draw > 0.7 and not negative and action.key not in TIMELESS:
        extra["frequency"] = rng.choice(("always", "often", "sometimes", "never"))
    return Clause(subject, action, tense, negative, **extra)


def timed_questions(rng):
    """ "did you go to school yesterday?": yes/no questions with an adverb, mostly to "you"."""
    while True:
        action, subject = rng.choice(list(ACTIONS.values())), rng.choice((YOU, YOU, YOU, subjects(rng)))
        tense = rng.choice(("past", "past", "present", "future", "continuous", "perfect"))
        if subject is I or not allowed(action, tense):
            continue
        clause = build(action, subject, tense, False, rng)
        if clause.time_first or clause.frequency in ("never", "often"):
            continue
        yield clause.ask()


def never_and_yet(rng):
    """ "I have never seen an elephant", "she has not eaten yet": कहिल्यै and अझै with a negative verb."""
    while True:
        action, subject = rng.choice(list(ACTIONS.values())), subjects(rng)
        if (action.state and action.key not in ("see", "find", "understand")) or action.key in UNSAID:
            continue
        extra = complement(action, subject, True, rng)
        if rng.random() < 0.5:
            yield Clause(subject, action, "perfect", frequency="never", **extra).say()
        else:
            yield Clause(subject, action, "perfect", negative=True, time=("yet", "अझै"), **extra).say()
