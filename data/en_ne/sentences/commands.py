"""Requests and orders.

Without a name they are polite (गर्नुहोस्); a vocative sets the level: "Ram, ..." गर, "kitty, ..." गर्, "sir, ..."
गर्नुहोस्. Please, at either end, is कृपया at the beginning of the Nepali sentence.
"""

from data.en_ne.adverbs import PLACES
from data.en_ne.complements import complement
from data.en_ne.nouns import NOUNS
from data.en_ne.people import FAMILIAR, LOW, YOU, Person
from data.en_ne.sentence import Clause, at, pair, words
from data.en_ne.verb_table import ACTIONS, Action

ASKED_FOR = (
    "eat", "drink", "go", "come", "read", "write", "buy", "sleep", "work", "play", "speak", "learn", "sit", "cook",
    "make", "wash", "open", "close", "look at", "listen to", "help", "call", "wait for", "bring", "send", "take",
    "clean", "get up", "study", "wear", "dance", "sing", "run", "walk", "talk to", "look for", "return", "use",
    "start", "finish", "count", "carry", "cut", "repair", "invite", "thank", "rest", "stay", "teach", "tell", "plant",
    "watch", "remember",
)  # fmt: skip
FORBIDDEN = (
    "eat", "drink", "go", "come", "read", "write", "buy", "sleep", "work", "play", "speak", "sit", "cook", "make",
    "wash", "open", "close", "look at", "listen to", "help", "call", "wait for", "bring", "send", "take", "use",
    "start", "run", "dance", "sing", "talk to", "cut", "invite", "tell", "watch", "wear", "forget", "cry", "laugh",
    "fall", "throw", "sell", "trust", "lose", "carry", "pick",
)  # fmt: skip
TO_ELDERS = (
    "come", "sit", "eat", "drink", "rest", "wait for", "wait", "look at", "listen to", "read", "open", "close",
    "help", "call", "tell", "take", "talk to", "watch", "go", "bring", "buy", "stay", "return", "invite", "forget",
    "write", "use",
)  # fmt: skip
TO_ANIMALS = ("come", "go", "sit", "eat", "sleep", "get up", "run", "play", "drink", "dance")
MOMENTARY = ("sit", "remember", "forget", "fall", "lose", "trust", "get up", "stay")  # not "tomorrow"

# English | Nepali | level
VOCATIVES = (
    ("Ram", "राम", "familiar"), ("Hari", "हरि", "familiar"), ("Sita", "सीता", "familiar"),
    ("Maya", "माया", "familiar"), ("Gita", "गीता", "familiar"), ("Bikash", "विकास", "familiar"),
    ("my friend", "मेरो साथी", "familiar"), ("friend", "साथी", "familiar"), ("little brother", "भाइ", "familiar"),
    ("little sister", "बहिनी", "familiar"), ("kids", "बच्चाहरू", "familiar"), ("kitty", "पुसी", "low"),
    ("doggy", "कुकुर", "low"), ("Mother", "आमा", "polite"), ("Father", "बुबा", "polite"), ("sir", "सर", "polite"),
    ("Grandmother", "हजुरआमा", "polite"), ("Grandfather", "हजुरबुबा", "polite"), ("Uncle", "काका", "polite"),
)  # fmt: skip
HEARERS = {"familiar": FAMILIAR, "low": LOW, "polite": YOU}


def request(action: Action, negative: bool, hearer: Person, rng) -> tuple[str, str, tuple]:
    """The order without a vocative, in both languages."""
    clause = Clause(hearer, action, "present", negative, **complement(action, hearer, negative, rng))
    place, draw = clause.place or ("", ""), rng.random()
    if not clause.place and action.places and draw < 0.3:
        place = at(PLACES[rng.choice(action.places)], rng)
    timed = draw > 0.85 and action.key not in MOMENTARY
    time = rng.choice((("now", "अहिले"), ("today", "आज"), ("tomorrow", "भोलि"))) if timed else ("", "")
    text = words("do not" if negative else "", action.key, clause.object_english(), place[0], time[0])
    nepali = words(time[1], place[1], clause.object_nepali(), action.nepali.command(hearer.who, negative))
    return text, nepali, tuple(part for part in clause.parts() if part[0] in ("object", "place"))


def requests(rng):
    """ "open the door" ढोका खोल्नुहोस्, "please wait here" कृपया यहाँ पर्खनुहोस्, "do not run" नदौडनुहोस्."""
    while True:
        negative = rng.random() < 0.28
        action = ACTIONS[rng.choice(FORBIDDEN if negative else ASKED_FOR)]
        text, nepali, parts = request(action, negative, YOU, rng)
        please = rng.choice(("", "", "before", "after", "before"))
        if please:
            text, nepali = (f"please {text}" if please == "before" else f"{text}, please"), f"कृपया {nepali}"
        yield pair(text, nepali, ("command", "not" if negative else "do", action.key), *parts)


def to_animal(key: str, rng) -> tuple[str, str, tuple]:
    """ "eat fish", "sit here": orders to a cat or a dog."""
    verb = ACTIONS[key].nepali.command("low")
    if key in ("eat", "drink"):
        thing = rng.choice(("milk", "water") if key == "drink" else ("fish", "meat", "rice", "food"))
        return f"{key} {thing}", f"{NOUNS[thing].nepali} {verb}", ()
    places = (("", ""),) if key in ("get up", "go") else (("", ""), ("here", "यहाँ"), ("outside", "बाहिर"))
    place = rng.choice(places)
    return words(key, place[0]), words(place[1], verb), ()


def called(rng):
    """ "Ram, come here." राम, यहाँ आऊ।; at the end as well: "Do not cry, my friend." नरोऊ, मेरो साथी।"""
    while True:
        name, ours, who = rng.choice(VOCATIVES)
        negative = rng.random() < 0.25 and who != "low"
        keys = TO_ANIMALS if who == "low" else FORBIDDEN if negative else ASKED_FOR
        key = rng.choice([key for key in keys if who != "polite" or key in TO_ELDERS])
        action = ACTIONS[key]
        text, nepali, parts = to_animal(key, rng) if who == "low" else request(action, negative, HEARERS[who], rng)
        if rng.random() < 0.65:
            text, nepali = f"{name}, {text}", f"{ours}, {nepali}"
        else:
            text, nepali = f"{text}, {name}", f"{nepali}, {ours}"
        yield pair(text, nepali, ("vocative", name, key), *parts)


TOLD = (
    "eat", "drink", "go", "come", "read", "write", "play", "speak", "sleep", "work", "see", "buy", "learn", "cook",
    "sing",
)  # fmt: skip
PETS = ("eat", "drink", "go", "come", "sleep", "play", "run", "see")


def told(rng):
    """The level in statements and questions: "my friend, where are you going?" मेरो साथी, तिमी कहाँ जाँदै छौ?"""
    while True:
        name, ours, who = rng.choice([vocative for vocative in VOCATIVES if vocative[0] != "kids"])
        keys = PETS if who == "low" else [key for key in TOLD if who == "familiar" or key not in ("play", "learn")]
        hearer, action = HEARERS[who], ACTIONS[rng.choice(keys)]
        tense, draw = rng.choice(("present", "past", "future", "continuous")), rng.random()
        if action.state and tense == "continuous":
            continue
        clause = Clause(hearer, action, tense, **(complement(action, hearer, False, rng) if who != "low" else {}))
        parts = [("vocative", name, action.key), *clause.parts()[1:]]
        if draw < 0.5:
            sentence = clause.ask()
        elif draw < 0.7 and action.things() and action.key not in ("speak", "play"):
            sentence = Clause(hearer, action, tense).ask_wh("what", "के")
        elif 0.7 <= draw < 0.85 and action.key in ("go", "sleep", "play", "work"):
            sentence = Clause(hearer, action, tense).ask_wh("where", "कहाँ")
        elif draw >= 0.85 and who != "low" and tense != "past":
            sentence = clause.say()
        else:
            continue
        text, nepali = sentence.english[0].lower() + sentence.english[1:-1], sentence.nepali[:-1]
        yield pair(f"{name}, {text}", f"{ours}, {nepali}", *parts, mark=sentence.english[-1])
