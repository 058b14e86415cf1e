"""Questions with a word: what, who, whom, whose, where, when, why, how, which, how many, how much, what time.

In Nepali the word stands directly before the verb, or before the noun it asks about: तपाईं के खानुहुन्छ?,
तपाईंले कुन किताब पढ्नुभयो?
"""

from data.en_ne import english
from data.en_ne.adverbs import PLACES, TIMES
from data.en_ne.nouns import NOUNS, Phrase, tagged
from data.en_ne.people import HE, SHE, SPEAKERS, YOU, I, Person, my, subjects
from data.en_ne.sentence import Clause, pair, words
from data.en_ne.sentences.clauses import allowed, complement
from data.en_ne.verb_table import ACTIONS, EVERY_ACTION
from data.en_ne.verbs import equals

ASKED_WHAT = ("eat", "drink", "buy", "read", "write", "cook", "see", "learn", "make", "bring",
              "sell", "watch", "find", "look for",
              "study", "teach", "wash", "send", "listen to", "sing", "open", "wear", "repair", "do",
              "do", "do", "say", "say")  # fmt: skip
WITH_GOAL = ("go", "come", "return")
TENSES = ("present", "present", "past", "past", "future", "continuous", "past continuous", "perfect", "can")
# Who eats: the answer is not known, so the verb is plain; in the past of a transitive verb को becomes कसले.
WHO = Person("who", "को", "he", "s")
OTHER_WORDS = {"where": "कहाँ", "when": "कहिले", "why": "किन", "how": "कसरी"}


def asked(rng) -> Person:
    """Whom one asks about: mostly "you"."""
    return rng.choice((YOU, YOU, YOU, HE, SHE, subjects(rng), subjects(rng)))


def time_for(tense: str, rng, chance: float = 0.35):
    times = TIMES.get(tense)
    return rng.choice(list(times.items())) if times and rng.random() < chance else None


def what(rng):
    """ "what did you eat today?" तपाईंले आज के खानुभयो?"""
    while True:
        action, subject, tense = EVERY_ACTION[rng.choice(ASKED_WHAT)], asked(rng), rng.choice((*TENSES, "want to"))
        if (subject is I and tense != "can") or not allowed(action, tense):
            continue
        clause = Clause(subject, action, tense, time=time_for(tense, rng))
        yield clause.ask_wh("what", "के")


def where_when_why_how(rng):
    while True:
        word = rng.choice(list(OTHER_WORDS))
        action, subject = rng.choice(list(ACTIONS.values())), asked(rng)
        tense = rng.choice(("present", "past", "future", "past") if word == "when" else TENSES)
        if not allowed(action, tense) or (subject is I and word != "where"):
            continue
        if word == "where":
            if (not action.places and action.key not in WITH_GOAL) or action.key in ("cry", "trust", "do"):
                continue
            extra = (
                {} if action.key in (*WITH_GOAL, "live") or action.alone else complement(action, subject, False, rng)
            )
        elif word == "how" and action.key not in (
            "go",
            "make",
            "cook",
            "open",
            "repair",
            "learn",
            "find",
            "write",
            "come",
            "use",
            "win",
        ):
            continue
        else:
            extra = complement(action, subject, False, rng)
        if word == "why" and action.key in ("sleep", "get up", "rest", "see", "find", "walk", "win"):
            continue
        if word == "when" and action.state and action.key not in ("see", "find", "lose", "arrive", "win"):
            continue
        time = None if word == "when" or action.state else time_for(tense, rng, 0.15)
        yield Clause(subject, action, tense, time=time, **extra).ask_wh(word, OTHER_WORDS[word])


def what_time(rng):
    """ "what time do you get up?" तपाईं कति बजे उठ्नुहुन्छ?; "when will he come?" is in the family above."""
    keys = ("get up", "sleep", "go", "come", "eat", "return", "work", "study", "open", "arrive")
    while True:
        action, subject, tense = ACTIONS[rng.choice(keys)], asked(rng), rng.choice(("present", "past", "future"))
        if subject is I or not allowed(action, tense):
            continue
        extra = complement(action, subject, False, rng)
        yield Clause(subject, action, tense, **extra).ask_wh("what time", "कति बजे")


def who_does(rng):
    """ "who eats rice?" भात को खान्छ?; "who ate the rice?" भात कसले खायो?"""
    while True:
        action, tense = (
            rng.choice(list(ACTIONS.values())),
            rng.choice(("present", "past", "past", "future", "continuous", "can", "want to")),
        )
        if not allowed(action, tense) or action.key in ("live", "fall", "lose", "trust", "get up", "sleep"):
            continue
        extra = complement(action, WHO, False, rng)
        clause = Clause(WHO, action, tense, time=None if action.state else time_for(tense, rng, 0.25), **extra)
        doer = "कसले" if clause.subject_nepali() == "कोले" else "को"
        text = english.statement("who", action.english, tense, "s")
        time = clause.time[1] if clause.time else ""
        place = clause.place[1] if clause.place else ""
        nepali = words(time, place, clause.object_nepali(), doer, clause.verb_nepali())
        yield pair(words(text, clause.tail()), nepali, *clause.parts(), mark="?")


def whom(rng):
    """ "who did you meet yesterday?" तपाईंले हिजो कसलाई भेट्नुभयो?"""
    keys = [key for key, action in ACTIONS.items() if action.person_case and key not in ("thank",)]
    while True:
        action, subject, tense = ACTIONS[rng.choice(keys)], asked(rng), rng.choice(TENSES)
        if subject is I or not allowed(action, tense):
            continue
        word = "कससँग" if action.person_case == "सँग" else "कसलाई"
        yield Clause(subject, action, tense, time=None if action.state else time_for(tense, rng)).ask_wh("who", word)


def which_and_how_many(rng):
    """कुन किताब, कतिवटा किताब, कति जना साथी, कति दूध: here the word goes before its noun."""
    while True:
        action, subject = rng.choice(list(ACTIONS.values())), asked(rng)
        tense = rng.choice(("present", "past", "past", "future", "want to"))
        things = [noun for noun in action.things() if "bare" not in noun.tags and "many" not in noun.tags]
        if not things or subject is I or not allowed(action, tense):
            continue
        noun = rng.choice(things)
        if rng.random() < 0.5 and not noun.mass:
            thing = Phrase(f"which {noun.english}", f"कुन {noun.nepali}", noun.english)
        elif noun.mass and noun.english not in ("news", "moon", "fruit"):
            thing = Phrase(f"how much {noun.english}", f"कति {noun.nepali}", noun.english)
        elif "count" in noun.tags:
            thing = Phrase(f"how many {noun.plural}", f"कतिवटा {noun.nepali}", noun.english)
        else:
            continue
        clause = Clause(subject, action, tense, thing=thing)
        text = english.question(subject.english, action.english, tense, subject.number)
        yield pair(words(thing.english, text), clause.nepali(), *clause.parts(), mark="?")


def which_subject(rng):
    """ "which boy went home?" कुन केटा घर गयो?"""
    while True:
        noun = NOUNS[rng.choice(("boy", "student", "child", "driver", "farmer", "girl", "woman"))]
        subject = Person(f"which {noun.english}", f"कुन {noun.nepali}", noun.person, "s", noun.female)
        action, tense = rng.choice(list(ACTIONS.values())), rng.choice(("present", "past", "future", "can"))
        if not allowed(action, tense):
            continue
        clause = Clause(subject, action, tense, **complement(action, subject, False, rng))
        text = english.statement(subject.english, action.english, tense, "s")
        yield pair(words(text, clause.tail()), clause.nepali(), *clause.parts(), mark="?")


def whose(rng):
    """ "whose book is this?" यो कसको किताब हो?"""
    for noun in tagged("own", "vehicle", "dish", "animal"):
        verb = "are" if noun.number == "p" else "is"
        this, that = ("these", "those") if verb == "are" else ("this", "that")
        yield pair(
            f"whose {noun.english} {verb} {this}",
            f"यो कसको {noun.nepali} हो",
            ("whose", "this", noun.english),
            mark="?",
        )
        yield pair(
            f"whose {noun.english} {verb} {that}",
            f"त्यो कसको {noun.nepali} हो",
            ("whose", "that", noun.english),
            mark="?",
        )


def where_is(rng):
    """ "where is the market?" बजार कहाँ छ?; people at their level: "where is your mother?" तपाईंकी आमा कहाँ हुनुहुन्छ?"""
    for key in ("market", "hospital", "shop", "temple", "school", "office", "hotel", "library",
                "park", "bank", "airport", "kitchen",
                "bus", "key", "book", "phone", "bag", "money", "ticket", "dog", "cat", "umbrella",
                "door", "map"):  # fmt: skip
        noun = NOUNS.get(key)
        name = noun.nepali if noun else PLACES[key].nepali
        yield pair(f"where is [the] {key}", f"{name} कहाँ छ", ("question", "where is", key), mark="?")
        yield pair(f"where was [the] {key}", f"{name} कहाँ थियो", ("question", "where is", key), mark="?")
    for owner in SPEAKERS:
        for key in (
            "book",
            "bag",
            "phone",
            "house",
            "key",
            "pen",
            "school",
            "office",
            "village",
            "umbrella",
            "room",
            "dog",
        ):
            name = NOUNS[key].nepali if key in NOUNS else PLACES[key].nepali
            yield pair(
                f"where is {owner.own} {key}",
                f"{owner.of()} {name} कहाँ छ",
                ("question", f"where is {owner.own}", key),
                mark="?",
            )


def who_or_what_is(rng):
    """Who is that, what is this: तपाईं को हुनुहुन्छ?, यो के हो?"""
    for word, ours in (("this", "यो"), ("that", "त्यो")):
        yield pair(f"what is {word}", f"{ours} के हो", mark="?")
        yield pair(f"who is {word}", f"{ours} को हो", mark="?")
        for key in ("man", "woman", "boy", "girl", "child", "student", "farmer", "driver"):
            name = NOUNS[key].nepali
            yield pair(f"who is {word} {key}", f"{ours} {name} को हो", ("question", f"who is {word}", key), mark="?")
    for subject in SPEAKERS[2:] + tuple(
        my(owner, kin) for owner in (YOU, HE, SHE) for kin in ("friend", "teacher", "father", "brother")
    ):
        text = f"who {english.BE[subject.number][0]} {subject.english}"
        parts = ("question", "who is", subject.english)
        yield pair(text, f"{subject.nepali} को {equals(subject.who)}", parts, mark="?")
