"""Requests and orders. Without a name they are polite (गर्नुहोस्); a vocative sets the level: "Ram, ..." गर,
"kitty, ..." गर्, "sir, ..." गर्नुहोस्.

Please at either end is कृपया at the beginning of the Nepali sentence.
"""

from data.en_ne.adverbs import PLACES
from data.en_ne.nouns import NOUNS
from data.en_ne.people import FAMILIAR, LOW, YOU, I, Person, my
from data.en_ne.sentence import Clause, at, pair, words
from data.en_ne.sentences.clauses import complement
from data.en_ne.verb_table import ACTIONS, Action

ASKED_FOR = ("eat", "drink", "go", "come", "read", "write", "buy", "sleep", "work", "play", "speak",
             "learn", "sit", "cook", "make", "wash",
             "open", "close", "look at", "listen to", "help", "call", "wait for", "bring", "send",
             "take", "clean", "get up", "study",
             "wear", "dance", "sing", "run", "walk", "talk to", "look for", "return", "use", "start",
             "finish", "count", "carry", "cut",
             "repair", "invite", "thank", "rest", "stay", "teach", "tell", "plant", "watch", "remember")  # fmt: skip
FORBIDDEN = (*ASKED_FOR, "forget", "cry", "laugh", "fall", "throw", "sell", "trust", "lose")
FORBIDDEN = tuple(key for key in FORBIDDEN if key not in ("remember", "thank", "rest", "repair"))

# English | Nepali | level
VOCATIVES = (
    ("Ram", "राम", "familiar"), ("Hari", "हरि", "familiar"), ("Sita", "सीता", "familiar"), ("Maya", "माया", "familiar"),
    ("Gita", "गीता", "familiar"), ("Bikash", "विकास", "familiar"), ("my friend", "मेरो साथी",
    "familiar"), ("friend", "साथी", "familiar"),
    ("little brother", "भाइ", "familiar"), ("little sister", "बहिनी", "familiar"), ("kids", "बच्चाहरू", "familiar"),
    ("kitty", "पुसी", "low"), ("doggy", "कुकुर", "low"), ("Mother", "आमा", "polite"), ("Father",
    "बुबा", "polite"), ("sir", "सर", "polite"),
    ("Grandmother", "हजुरआमा", "polite"), ("Grandfather", "हजुरबुबा", "polite"), ("Uncle", "काका", "polite"),
)  # fmt: skip
TO_ANIMALS = ("come", "go", "sit", "eat", "sleep", "get up", "run", "play", "drink", "dance")
SPEAKER_LIKE = Person("you", "तपाईं", "polite", "p", False, "you", "your")


def request(action: Action, negative: bool, who: str, rng, hearer: Person = YOU) -> tuple[str, str, tuple]:
    """The order without a vocative, in both languages."""
    extra = complement(action, hearer, negative, rng)
    if extra.get("person") and extra["person"].own == hearer.own:
        extra["person"] = my(I, "friend")
    clause = Clause(hearer, action, "present", negative, **extra)
    place, draw = clause.place or ("", ""), rng.random()
    if not clause.place and action.places and draw < 0.3:
        place = at(PLACES[rng.choice(action.places)], rng)
    time = rng.choice((("now", "अहिले"), ("today", "आज"), ("tomorrow", "भोलि"))) if draw > 0.85 else ("", "")
    text = words("do not" if negative else "", action.key, clause.object_english(), place[0], time[0])
    nepali = words(time[1], place[1], clause.object_nepali(), action.nepali.command(who, negative))
    return text, nepali, tuple(part for part in clause.parts() if part[0] in ("object", "place"))


def requests(rng):
    """ "open the door" ढोका खोल्नुहोस्, "please wait here" कृपया यहाँ पर्खनुहोस्, "do not run" नदौडनुहोस्."""
    while True:
        negative = rng.random() < 0.28
        action = ACTIONS[rng.choice(FORBIDDEN if negative else ASKED_FOR)]
        text, nepali, parts = request(action, negative, "polite", rng)
        please = rng.choice(("", "", "before", "after", "before"))
        if please:
            text, nepali = (f"please {text}" if please == "before" else f"{text}, please"), f"कृपया {nepali}"
        yield pair(text, nepali, ("command", "not" if negative else "do", action.key), *parts)


def called(rng):
    """ "Ram, come here." राम, यहाँ आऊ।; at the end as well: "Do not cry, my friend." नरोऊ, मेरो साथी।"""
    while True:
        name, ours, who = rng.choice(VOCATIVES)
        negative = rng.random() < 0.25 and who != "low"
        action = ACTIONS[rng.choice(TO_ANIMALS if who == "low" else FORBIDDEN if negative else ASKED_FOR)]
        if who == "low" and action.key in ("drink", "eat"):
            thing = (
                rng.choice(("milk", "water")) if action.key == "drink" else rng.choice(("fish", "meat", "rice", "food"))
            )
            nepali_verb = {"eat": "खा", "drink": "पी"}[action.key]
            text, nepali, parts = f"{action.key} {thing}", f"{NOUNS[thing].nepali} {nepali_verb}", ()
        elif who == "low":
            place = (
                rng.choice((("", ""), ("here", "यहाँ"), ("outside", "बाहिर")))
                if action.key not in ("get up", "go")
                else ("", "")
            )
            text, nepali, parts = words(action.key, place[0]), words(place[1], action.nepali.command("low")), ()
        else:
            text, nepali, parts = request(action, negative, who, rng, FAMILIAR if who == "familiar" else SPEAKER_LIKE)
        if rng.random() < 0.65:
            yield pair(f"{name}, {text}", f"{ours}, {nepali}", ("vocative", name, action.key), *parts)
        else:
            yield pair(f"{text}, {name}", f"{nepali}, {ours}", ("vocative", name, action.key), *parts)


TOLD = (
    "eat",
    "drink",
    "go",
    "come",
    "read",
    "write",
    "play",
    "speak",
    "sleep",
    "work",
    "see",
    "buy",
    "learn",
    "cook",
    "sing",
)
PETS = ("eat", "drink", "go", "come", "sleep", "play", "run", "see")


def told(rng):
    """The level in statements and questions: "my friend, where are you going?" मेरो साथी, तिमी कहाँ जाँदै छौ?"""
    while True:
        name, ours, who = rng.choice([v for v in VOCATIVES if v[0] != "kids"])
        hearer = {"familiar": FAMILIAR, "low": LOW, "polite": SPEAKER_LIKE}[who]
        action, tense = (
            ACTIONS[rng.choice(PETS if who == "low" else TOLD)],
            rng.choice(("present", "past", "future", "continuous")),
        )
        if action.state and tense == "continuous":
            continue
        extra = complement(action, hearer, False, rng) if who != "low" else {}
        clause = Clause(hearer, action, tense, **extra)
        parts = [("vocative", name, action.key), *clause.parts()[1:]]
        draw = rng.random()
        if draw < 0.5:
            sentence = clause.ask()
        elif draw < 0.7 and action.key in ("eat", "drink", "read", "write", "see", "buy", "learn", "cook"):
            sentence = Clause(hearer, action, tense).ask_wh("what", "के")
        elif draw < 0.85 and action.key in ("go", "sleep", "play", "work"):
            sentence = Clause(hearer, action, tense).ask_wh("where", "कहाँ")
        elif who != "low" and tense != "past":
            sentence = clause.say()
        else:
            continue
        text, nepali = sentence.english[0].lower() + sentence.english[1:-1], sentence.nepali[:-1]
        yield pair(f"{name}, {text}", f"{ours}, {nepali}", *parts, mark=sentence.english[-1])
