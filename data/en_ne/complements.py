"""What a verb needs to make sense (a thing, a person, a goal), and which tenses and times it goes with."""

from data.en_ne.adjectives import described
from data.en_ne.adverbs import GOALS, ORIGINS, PLACES, TIMES
from data.en_ne.nouns import (
    NOUNS,
    Noun,
    Phrase,
    bare,
    counted,
    definite,
    demonstrative,
    indefinite,
    some,
    tagged,
)
from data.en_ne.people import NAMED, SPEAKERS, THE_PEOPLE, WE, YOU, I, Person, my, possessed
from data.en_ne.sentence import at, origin, to
from data.en_ne.verb_table import ACTIONS, Action

# Done to two or many things at a time ("three letters"), and to things in general ("I write letters").
COUNTABLE = (
    "buy", "bring", "carry", "cook", "count", "cut", "eat", "find", "make", "open", "pick", "plant", "read", "repair",
    "sell", "send", "sing", "take", "tell", "throw", "wash", "write",
)  # fmt: skip
GENERIC = (
    "bring", "buy", "cook", "count", "cut", "drink", "eat", "learn", "make", "pick", "plant", "play", "read",
    "repair", "see", "sell", "send", "sing", "speak", "study", "teach", "use", "wash", "wear", "write", "listen to",
    "look at",
)  # fmt: skip
DEAR = ("house", "car", "bus", "motorcycle", "bicycle", "computer", "television", "bed")  # one buys them one by one
MOSTLY_OWN = ("lose", "find", "forget", "use", "carry", "look for")
# Done in a moment: no "every day", no "used to", no continuous.
SUDDEN = ("find", "lose", "fall", "arrive", "finish", "win")
TIMELESS = ("live", "know", "trust", "love", "understand")
CLOCKED = (
    "arrive", "bring", "call", "clean", "close", "come", "cook", "dance", "drink", "eat", "finish", "go", "help",
    "listen", "meet", "open", "play", "read", "rest", "return", "run", "sing", "sleep", "start", "study", "teach",
    "wait", "walk", "wash", "watch", "work", "write", "get up", "listen to", "talk to",
)  # fmt: skip
SELDOM = (
    "arrive", "buy", "call", "clean", "come", "cook", "dance", "find", "finish", "go", "help", "learn", "lose",
    "make", "meet", "plant", "play", "read", "repair", "return", "sell", "send", "sing", "start", "study", "swim",
    "teach", "travel", "wash", "watch", "win", "work", "write",
)  # fmt: skip
POINTED = (("this", "यो"), ("that", "त्यो"), ("it", "यो"))
YOUNG = (
    "boy", "girl", "child", "student", "son", "daughter", "boys", "girls", "children", "students", "sons",
    "daughters",
)  # fmt: skip
KIN_MET = ("father", "mother", "brother", "sister", "friend", "son", "daughter", "teacher")


def allowed(action: Action, tense: str) -> bool:
    if action.state and "continuous" in tense:
        return False
    if action.key == "know":  # "I knew him" is another verb: मैले उसलाई चिनेँ says that I recognised him
        return tense == "present"
    if action.key == "understand" and tense == "present":
        return False  # one says "I have understood": मैले बुझेँ
    if action.key in SUDDEN:
        can = tense == "can" and action.key not in ("lose", "fall")
        return can or tense in ("past", "future", "perfect", "past perfect", "could")
    return True


def times_for(action: Action, tense: str) -> dict[str, str]:
    """The adverbs of time that the verb goes with: nobody gets up "last year" or loves "at one o'clock"."""
    if action.key in TIMELESS:
        return {}
    times = dict(TIMES.get(tense, {}))
    for word in list(times):
        long = word.endswith(("week", "month", "year", "days ago", "years ago"))
        exact = "o'clock" in word or word == "an hour ago"
        dull = action.state and word in ("at night", "every evening")
        if (long and action.key not in SELDOM) or (exact and action.key not in CLOCKED) or dull:
            del times[word]
    return times


def owner_for(subject: Person, rng) -> Person:
    """Whose thing it is: the subject's own, or that of somebody who cannot be mistaken for the subject."""
    own = next((person for person in SPEAKERS if person.own == subject.own), None)
    if own and rng.random() < 0.5:
        return own
    if subject.english.startswith(("my ", "our ")):
        return YOU
    others = {"i": SPEAKERS[2:], "we": SPEAKERS[2:], "polite": (I, *SPEAKERS[3:]), "familiar": (I, *SPEAKERS[3:])}
    if subject.own in ("my", "our", "your"):
        return rng.choice(others[subject.who])
    return rng.choice((I, WE) if subject.english.startswith("your ") else (I, WE, YOU))


def person_for(subject: Person, rng) -> Person:
    """Somebody else: a pronoun, a relative, a named person. The subject's own relatives are आफ्नो."""
    draw = rng.random()
    if draw < 0.5:
        near = {"i": ("we",), "we": ("i",)}.get(subject.who, ())
        return rng.choice([p for p in SPEAKERS if p.who not in (subject.who, *near) and p.own != subject.own])
    if draw < 0.8:
        owner, young = owner_for(subject, rng), subject.english.split(" ")[-1] in YOUNG
        name = rng.choice([name for name in KIN_MET if not (young and name in YOUNG)])
        person = my(owner, name)
        if owner.own != subject.own:
            return person
        own = possessed(owner, NOUNS[name], subject)
        return Person(person.english, own.nepali, person.who, person.number, person.female, "", person.own)
    return rng.choice([p for p in (*NAMED, *THE_PEOPLE) if p != subject])


def phrase_for(noun: Noun, subject: Person, negative: bool, rng, verb: str) -> Phrase:
    """The noun with an article, a number, an owner or nothing, as suits what is done to it."""
    if "bare" in noun.tags:
        return bare(noun)
    if noun.english in ("moon", "news", "radio"):
        return definite(noun)
    if noun.english == "work" and verb in ("do", "forget"):
        return rng.choice((definite(noun), possessed(owner_for(subject, rng), noun, subject)))
    phrase = described(noun, negative, rng) if rng.random() < 0.14 else None
    if phrase:
        return phrase
    if "own" in noun.tags and rng.random() < (0.45 if verb in MOSTLY_OWN else 0.13):
        many = not noun.mass and verb not in MOSTLY_OWN and rng.random() < 0.2
        return possessed(owner_for(subject, rng), noun, subject, many)
    if noun.english == "name":
        return possessed(rng.choice([p for p in SPEAKERS if p.own != subject.own]), noun)
    if noun.mass:
        return bare(noun) if noun.english == "work" or rng.random() < 0.8 else definite(noun)
    return _countable_phrase(noun, negative, rng, verb)


def _countable_phrase(noun: Noun, negative: bool, rng, verb: str) -> Phrase:
    draw = rng.random()
    if draw < 0.4:
        return indefinite(noun, negative)
    if draw < 0.66:
        return definite(noun, many=rng.random() < 0.2)
    if draw < 0.82:
        return bare(noun) if verb in GENERIC and noun.english not in DEAR else definite(noun)
    if draw < 0.92:
        return demonstrative(noun, rng.choice(("this", "that", "these", "those")))
    if negative or "count" not in noun.tags or verb not in COUNTABLE:
        return definite(noun)
    if rng.random() < 0.6:
        return counted(noun, rng.choice(("one", "two", "two", "three", "four", "five")))
    return some(noun, rng.choice(("some", "many", "a lot of", "all the")))


def goal_for(action: Action, rng) -> tuple[str, str]:
    """go to school, come from school, return home, arrive at the market."""
    key = action.key
    if key == "arrive":
        place = rng.choice([place for place in GOALS if place.key != "there"])
        return place.at[-1], place.nepali
    if key == "come" and rng.random() < 0.3:
        return to(PLACES["here"])
    if key in ("come", "return") and rng.random() < 0.5:
        return origin(rng.choice(ORIGINS))
    return to(rng.choice(GOALS))


def complement(action: Action, subject: Person, negative: bool, rng) -> dict:
    """What the verb needs to make sense, as arguments of a Clause."""
    things = action.things()
    if "g" in action.flags:
        return {"place": goal_for(action, rng)}
    if action.key == "live":
        return {"place": at(PLACES[rng.choice(action.places)], rng)}
    if action.key == "watch":
        if rng.random() < 0.3:
            return {"thing": Phrase("television", "टिभी", "television")}
        things = [noun for noun in things if noun.english != "television"]
    if action.person_case and (not things or rng.random() < 0.4):
        return {"person": person_for(subject, rng)}
    if not things or (action.alone and rng.random() < 0.25):
        return {}
    if action.key in COUNTABLE and rng.random() < 0.06:
        word, ours = rng.choice(POINTED)
        return {"thing": Phrase(word, ours, word)}
    return {"thing": phrase_for(rng.choice(things), subject, negative, rng, action.key)}


IN_GENERAL = {
    "wash": ("cup", "plate", "glass", "spoon", "clothes"), "clean": ("room", "window", "shoes"),
    "buy": ("fruit", "vegetable", "grocery", "book", "flower", "clothes", "milk", "medicine"),
}  # fmt: skip


def in_general(key: str, rng) -> Phrase | None:
    """What the verb is done to, in general: "apples", "milk"; nothing if it needs no thing."""
    if key in IN_GENERAL:
        return bare(rng.choice(tagged(*IN_GENERAL[key])))
    things = [noun for noun in ACTIONS[key].things() if noun.english not in ("name", "television", "answer", "news")]
    return bare(rng.choice(things)) if things else None
