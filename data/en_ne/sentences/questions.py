"""Questions with a word: what, who, whom, whose, where, when, why, how, which, how many, how much, what time.

In Nepali the word stands directly before the verb, or before the noun it asks about: तपाईं के खानुहुन्छ?, तपाईंले कुन
किताब पढ्नुभयो?
"""

from data.en_ne import english
from data.en_ne.adverbs import PLACES
from data.en_ne.complements import allowed, complement, times_for
from data.en_ne.nouns import DEMONSTRATIVES, NOUNS, Phrase, tagged
from data.en_ne.people import HE, SHE, SPEAKERS, YOU, I, Person, my, subjects
from data.en_ne.sentence import Clause, pair, words
from data.en_ne.verb_table import ACTIONS, EVERY_ACTION, Action
from data.en_ne.verbs import equals

ASKED_WHAT = (
    "eat", "drink", "buy", "read", "write", "cook", "see", "learn", "make", "bring", "sell", "watch", "find",
    "look for", "study", "teach", "wash", "send", "listen to", "sing", "open", "wear", "repair", "do", "do", "do",
    "say", "say",
)  # fmt: skip
ASKED_WHEN = (
    "arrive", "buy", "call", "clean", "come", "cook", "eat", "find", "finish", "go", "help", "learn", "lose", "make",
    "meet", "open", "plant", "play", "read", "repair", "return", "sell", "send", "sing", "sleep", "start", "study",
    "teach", "travel", "wash", "watch", "win", "work", "write", "get up", "talk to",
)  # fmt: skip
ASKED_WHY = (
    "ask", "bring", "buy", "call", "carry", "clean", "close", "come", "cry", "cut", "dance", "drink", "eat", "go",
    "help", "invite", "laugh", "learn", "live", "make", "open", "plant", "read", "repair", "return", "run", "sell",
    "send", "sing", "stay", "study", "take", "teach", "throw", "travel", "trust", "wait", "wash", "watch", "wear",
    "work", "write", "talk to", "look for", "wait for",
)  # fmt: skip
ASKED_HOW = ("go", "make", "cook", "open", "repair", "learn", "find", "write", "come", "use", "win")
ASKED_WHERE = (
    "buy", "come", "cook", "cut", "dance", "drink", "eat", "find", "go", "help", "learn", "live", "lose", "make",
    "meet", "plant", "play", "rest", "return", "run", "sell", "sing", "sit", "sleep", "speak", "stay", "study",
    "swim", "teach", "throw", "travel", "wait", "walk", "wash", "watch", "work", "write",
)  # fmt: skip
GOING = ("go", "come", "return")
TENSES = ("present", "present", "past", "past", "future", "continuous", "past continuous", "perfect", "can")
# Who eats: the answer is not known, so the verb is plain; in the past of a transitive verb को becomes कसले.
WHO = Person("who", "को", "he", "s")


def asked(rng) -> Person:
    """Whom one asks about: mostly "you"."""
    return rng.choice((YOU, YOU, YOU, HE, SHE, subjects(rng), subjects(rng)))


def time_for(action: Action, tense: str, rng, chance: float = 0.35):
    times = times_for(action, tense)
    return rng.choice(list(times.items())) if times and not action.state and rng.random() < chance else None


def what(rng):
    """ "what did you eat today?" तपाईंले आज के खानुभयो?"""
    while True:
        action, subject, tense = EVERY_ACTION[rng.choice(ASKED_WHAT)], asked(rng), rng.choice((*TENSES, "want to"))
        if (subject is not I or tense == "can") and allowed(action, tense):
            yield Clause(subject, action, tense, time=time_for(action, tense, rng)).ask_wh("what", "के")


def where_when_why_how(rng):
    """ "where do you work?" तपाईं कहाँ काम गर्नुहुन्छ?; a movement is asked where to without naming the goal."""
    kinds = {
        "where": ("कहाँ", ASKED_WHERE, TENSES), "when": ("कहिले", ASKED_WHEN, ("present", "past", "future", "past")),
        "why": ("किन", ASKED_WHY, TENSES), "how": ("कसरी", ASKED_HOW, TENSES),
    }  # fmt: skip
    actions = list(ACTIONS.values())
    while True:
        word = rng.choice(list(kinds))
        ours, keys, tenses = kinds[word]
        action, subject, tense = rng.choice(actions), asked(rng), rng.choice(tenses)
        if action.key not in keys or not allowed(action, tense) or (subject is I and word != "where"):
            continue
        placed = word == "where" and (action.key in (*GOING, "live") or action.alone)
        extra = {} if placed else complement(action, subject, False, rng)
        time = None if word == "when" else time_for(action, tense, rng, 0.15)
        yield Clause(subject, action, tense, time=time, **extra).ask_wh(word, ours)


def what_time(rng):
    """ "what time do you get up?" तपाईं कति बजे उठ्नुहुन्छ?; "when will he come?" is in the family above."""
    keys = ("get up", "sleep", "go", "come", "eat", "return", "work", "study", "open", "arrive")
    shop, meals = NOUNS["shop"], ("food", "rice")
    while True:
        action, subject, tense = ACTIONS[rng.choice(keys)], asked(rng), rng.choice(("present", "past", "future"))
        if subject is I or not allowed(action, tense):
            continue
        if action.key == "open":
            extra = {"thing": Phrase("the shop", shop.nepali, "shop")}
        elif action.key == "eat":
            noun = NOUNS[rng.choice(meals)]
            extra = {"thing": Phrase(noun.english, noun.nepali, noun.english)}
        else:
            extra = {} if action.alone else complement(action, subject, False, rng)
        yield Clause(subject, action, tense, **extra).ask_wh("what time", "कति बजे")


def who_does(rng):
    """ "who eats rice?" भात को खान्छ?; "who ate the rice?" भात कसले खायो?"""
    unasked, tenses = (
        ("live", "fall", "lose", "get up", "sleep", "know", "wear"),
        (*TENSES[1:6], "can", "want to"),
    )
    actions = [action for key, action in ACTIONS.items() if key not in unasked]
    while True:
        action, tense = rng.choice(actions), rng.choice(tenses)
        if not allowed(action, tense):
            continue
        extra = complement(action, WHO, False, rng)
        clause = Clause(WHO, action, tense, time=time_for(action, tense, rng, 0.25), **extra)
        doer = "कसले" if clause.subject_nepali() == "कोले" else "को"
        time, place = clause.time[1] if clause.time else "", clause.place[1] if clause.place else ""
        text = words(english.statement("who", action.english, tense, "s"), clause.tail())
        nepali = words(time, place, clause.object_nepali(), doer, clause.verb_nepali())
        yield pair(text, nepali, *clause.parts(), mark="?")


def whom(rng):
    """ "who did you meet yesterday?" तपाईंले हिजो कसलाई भेट्नुभयो?"""
    actions = [action for key, action in ACTIONS.items() if action.person_case and key not in ("thank", "look for")]
    while True:
        action, subject, tense = rng.choice(actions), asked(rng), rng.choice(TENSES)
        if subject is I or not allowed(action, tense) or (action.key in ("love", "trust") and tense == "can"):
            continue
        word = "कससँग" if action.person_case == "सँग" else "कसलाई"
        yield Clause(subject, action, tense, time=time_for(action, tense, rng)).ask_wh("who", word)


def which_and_how_many(rng):
    """कुन किताब, कतिवटा किताब, कति जना साथी, कति दूध: here the word goes before its noun."""
    uncounted = ("news", "moon", "fruit", "name", "work")
    while True:
        action, subject = rng.choice(list(ACTIONS.values())), asked(rng)
        tense = rng.choice(("present", "past", "past", "future", "want to"))
        things = [noun for noun in action.things() if "bare" not in noun.tags and noun.number == "s"]
        if not things or subject is I or not allowed(action, tense):
            continue
        noun = rng.choice([noun for noun in things if noun.english != "television"])
        if rng.random() < 0.5 and not noun.mass:
            thing = Phrase(f"which {noun.english}", f"कुन {noun.nepali}", noun.english)
        elif noun.mass and noun.english not in uncounted:
            thing = Phrase(f"how much {noun.english}", f"कति {noun.nepali}", noun.english)
        elif "count" in noun.tags:
            thing = Phrase(f"how many {noun.plural}", f"कतिवटा {noun.several}", noun.english)
        else:
            continue
        clause = Clause(subject, action, tense, thing=thing)
        text = words(thing.english, english.question(subject.english, action.english, tense, subject.number))
        yield pair(text, clause.nepali(), *clause.parts(), mark="?")


def which_subject(rng):
    """ "which boy went home?" कुन केटा घर गयो?"""
    unasked = ("rest", "stay", "throw", "trust", "drive", "make", "wear", "remember", "invite", "thank", "forget",
               "think", "smile", "fall")  # fmt: skip
    actions = [action for key, action in ACTIONS.items() if key not in unasked]
    while True:
        noun = NOUNS[rng.choice(("boy", "student", "child", "driver", "farmer", "girl", "woman"))]
        subject = Person(f"which {noun.english}", f"कुन {noun.nepali}", noun.person, "s", noun.female)
        action, tense = rng.choice(actions), rng.choice(("present", "past", "future", "can"))
        if allowed(action, tense):
            clause = Clause(subject, action, tense, **complement(action, subject, False, rng))
            text = words(english.statement(subject.english, action.english, tense, "s"), clause.tail())
            yield pair(text, clause.nepali(), *clause.parts(), mark="?")


def whose(rng):
    """ "whose book is this?" यो कसको किताब हो? Clothes and shoes are one stuff: यो कसको जुत्ता हो?"""
    for noun in tagged("own", "vehicle", "dish", "pet", "farm"):
        for near, many in (("this", "these"), ("that", "those")):
            text = f"is {near}" if noun.number == "s" else f"are {many}"
            nepali = f"{DEMONSTRATIVES[near]} कसको {noun.nepali} हो"
            yield pair(f"whose {noun.english} {text}", nepali, ("whose", near, noun.english), mark="?")


LOOKED_FOR = (
    "market", "hospital", "shop", "temple", "school", "office", "hotel", "library", "park", "bank", "airport",
    "kitchen", "bus", "key", "book", "phone", "bag", "money", "ticket", "dog", "cat", "umbrella", "door", "map",
)  # fmt: skip
MINE = ("book", "bag", "phone", "house", "key", "pen", "school", "office", "village", "umbrella", "room", "dog")


def where_is(rng):
    """ "where is the market?" बजार कहाँ छ?, "where is my bag?" मेरो झोला कहाँ छ?"""
    for key in LOOKED_FOR:
        name = (NOUNS.get(key) or PLACES[key]).nepali
        yield pair(f"where is [the] {key}", f"{name} कहाँ छ", ("question", "where is", key), mark="?")
        yield pair(f"where was [the] {key}", f"{name} कहाँ थियो", ("question", "where is", key), mark="?")
    for owner in SPEAKERS:
        for key in MINE:
            name, part = (NOUNS.get(key) or PLACES[key]).nepali, ("question", f"where is {owner.own}", key)
            yield pair(f"where is {owner.own} {key}", f"{owner.of()} {name} कहाँ छ", part, mark="?")


def who_or_what_is(rng):
    """Who is that, what is this: तपाईं को हुनुहुन्छ?, यो के हो?"""
    for word, ours in (("this", "यो"), ("that", "त्यो")):
        yield pair(f"what is {word}", f"{ours} के हो", mark="?")
        yield pair(f"who is {word}", f"{ours} को हो", mark="?")
        for key in ("man", "woman", "boy", "girl", "child", "student", "farmer", "driver"):
            name, part = NOUNS[key].nepali, ("question", f"who is {word}", key)
            yield pair(f"who is {word} {key}", f"{ours} {name} को हो", part, mark="?")
    kin = tuple(my(owner, name) for owner in (YOU, HE, SHE) for name in ("friend", "teacher", "father", "brother"))
    for subject in SPEAKERS[2:] + kin:
        text, part = f"who {english.BE[subject.number][0]} {subject.english}", ("question", "who is", subject.english)
        yield pair(text, f"{subject.nepali} को {equals(subject.who)}", part, mark="?")
