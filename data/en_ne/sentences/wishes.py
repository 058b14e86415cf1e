"""What one can, wants, must, needs and likes.

English makes the person the subject of all of these. Nepali does so with सक्नु and चाहनु (म जान सक्छु), puts ले
on the one who must
(मैले जानुपर्छ), and lets needs and likes come *to* a person: मलाई पानी चाहिन्छ, मलाई चिया मन पर्छ.
"""

from data.en_ne.adjectives import described
from data.en_ne.adverbs import PLACES, TIMES
from data.en_ne.english import a
from data.en_ne.nouns import Noun, bare, definite, tagged
from data.en_ne.people import SPEAKERS, WE, I, Person, possessed, subjects
from data.en_ne.sentence import Clause, at, pair, words
from data.en_ne.sentences.clauses import complement, in_general, person_for, spoken
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import Verb

UNWISHED = ("lose", "fall", "know", "cry", "arrive", "forget", "find", "carry", "love", "laugh", "smile", "throw")
MODALS = {"can": 26, "could": 9, "want to": 30, "wanted to": 8, "must": 8, "have to": 14, "had to": 7}


def modal_clauses(rng):
    """ "I want to drink tea" म चिया पिउन चाहन्छु, "he could not come" ऊ आउन सकेन, "I must go" मैले जानुपर्छ."""
    actions = [action for key, action in ACTIONS.items() if key not in UNWISHED]
    tenses, weights = list(MODALS), list(MODALS.values())
    while True:
        action, subject, tense = rng.choice(actions), subjects(rng), rng.choices(tenses, weights)[0]
        form = rng.choices(("statement", "negation", "question"), (55, 23, 22))[0]
        if (tense == "must" and form != "statement") or (tense in ("could", "had to") and form == "question"):
            continue
        if form == "question" and subject is I and tense != "can":
            continue
        extra = complement(action, subject, form == "negation", rng)
        draw = rng.random()
        if action.key == "live":
            draw = 0.5
        if action.places and "place" not in extra and draw < 0.25:
            extra["place"] = at(PLACES[rng.choice(action.places)], rng)
        elif draw > 0.72:
            extra["time"] = rng.choice(list(TIMES[tense].items()))
        yield spoken(Clause(subject, action, tense, form == "negation", **extra), form)


NEEDED = ("food", "drink", "grocery", "own", "ticket", "money", "medicine", "edible", "paper", "dish", "soap")


def object_of_wish(noun: Noun, negative: bool, rng) -> tuple[str, str, str]:
    """a book, the book, a red book, water; last its quality."""
    phrase = described(noun, negative, rng) if rng.random() < 0.15 else None
    if phrase:
        return phrase.english, phrase.nepali, phrase.quality
    if noun.mass:
        phrase = bare(noun) if rng.random() < 0.8 or "bare" in noun.tags else definite(noun)
        return phrase.english, phrase.nepali, ""
    if rng.random() < 0.7:
        return a(noun.english), noun.nepali if negative else f"एउटा {noun.nepali}", ""
    return f"[the] {noun.english}", noun.nepali, ""


# What comes to a person: English third person, Nepali positive, negative, past, past negative.
NEED = {"need": ("चाहिन्छ", "चाहिँदैन", "चाहिन्थ्यो", "चाहिँदैनथ्यो"), "want": ("चाहिन्छ", "चाहिँदैन", "चाहिन्थ्यो", "चाहिँदैनथ्यो")}


def needs(rng):
    """ "I need water" मलाई पानी चाहिन्छ, "do you want tea?" के तपाईंलाई चिया चाहिन्छ? Wanting a thing is needing it."""
    things = [noun for noun in tagged(*NEEDED) if noun.english not in ("name", "moon")]
    while True:
        subject, noun, verb = subjects(rng), rng.choice(things), rng.choice(("need", "want"))
        form, past = rng.choices(("statement", "negation", "question"), (50, 25, 25))[0], rng.random() < 0.12
        if form == "question" and subject is I:
            continue
        parts = [("need", subject.english, noun.english)]
        text, ours, quality = object_of_wish(noun, form == "negation", rng)
        parts += [("quality", quality, noun.english)] if quality else []
        nepali = words(subject.lai, ours, NEED[verb][2 * past + (form == "negation")])
        time = ("now", "अहिले") if not past and rng.random() < 0.08 else ("", "")
        if time[0]:
            nepali = nepali.replace(subject.lai, subject.lai + " " + time[1], 1)
        yield _comes(subject, verb, words(text, time[0]), nepali, form, past, parts)


def _comes(subject: Person, verb: str, text: str, nepali: str, form: str, past: bool, parts):
    """English with do-support, Nepali as given."""
    third = subject.number == "s"
    do = "did" if past else "does" if third else "do"
    if form == "question":
        return pair(words(do, subject.english, verb, text), "के " + nepali, *parts, mark="?")
    if form == "negation":
        return pair(words(subject.english, do, "not", verb, text), nepali, *parts)
    alone = (verb + ("d" if verb.endswith("e") else "ed")) if past else verb + "s" if third else verb
    return pair(words(subject.english, alone, text), nepali, *parts)


def likes(rng):
    """ "he does not like milk" उसलाई दूध मन पर्दैन, "do you like this song?", "I like to read" मलाई पढ्न मन पर्छ."""
    forms = (("पर्छ", "पर्दैन"), ("पर्‍यो", "परेन"))
    things = tagged(*LIKEABLE)
    while True:
        subject, form, past = (
            subjects(rng),
            rng.choices(("statement", "negation", "question"), (50, 27, 23))[0],
            rng.random() < 0.12,
        )
        draw = rng.random()
        if form == "question" and subject is I:
            continue
        if draw < 0.62:
            noun = rng.choice(things)
            thing = bare(noun)
            if rng.random() < 0.35 and "bare" not in noun.tags:
                owner = rng.choice([person for person in SPEAKERS if person.own != subject.own])
                thing = rng.choice(
                    (definite(noun), definite(noun), possessed(owner, noun) if "own" in noun.tags else definite(noun))
                )
            text, ours, key = thing.english, thing.nepali, noun.english
        elif draw < 0.8:
            person = person_for(subject, rng)
            text, ours, key = person.object, person.nepali, person.object
        else:
            text, ours, key = liked_action(subject, rng)
        nepali = words(subject.lai, ours, "मन", forms[past][form == "negation"])
        yield _comes(subject, "like", text, nepali, form, past, [("like", subject.english, key)])


LIKEABLE = (
    "edible",
    "drink",
    "language",
    "subject",
    "sport",
    "animal",
    "cloth",
    "vehicle",
    "city",
    "village",
    "river",
    "mountain",
    "garden",
    "book",
    "newspaper",
    "story",
    "poem",
    "song",
    "movie",
    "game",
    "television",
    "music",
    "school",
    "work",
    "house",
    "flower",
    "picture",
    "photo",
    "radio",
    "phone",
    "market",
    "temple",
    "park",
    "sugar",
)
LIKED = ("read", "dance", "sing", "play", "cook", "walk", "swim", "travel", "sleep", "watch",
         "learn", "drink", "eat", "write", "listen to",
         "run", "speak", "go", "study", "teach")  # fmt: skip


def liked_action(subject: Person, rng) -> tuple[str, str, str]:
    action = ACTIONS[rng.choice(LIKED)]
    extra = complement(action, subject, False, rng)
    if "thing" in extra:  # one likes to read books, not "a book"
        extra = {"thing": in_general(action, rng)}
    clause = Clause(subject, action, "present", **extra)
    place = clause.place or ("", "")
    text = words("to", action.key, clause.object_english(), place[0])
    return text, words(place[1], clause.object_nepali(), action.nepali.to()), action.key


def let_us(rng):
    """ "let us go home" घर जाऔँ, "let us not eat meat" मासु नखाऔँ."""
    keys = [
        k
        for k in ACTIONS
        if k not in (*UNWISHED, "live", "see", "trust", "thank", "come", "win", "tell", "work", "teach")
    ] + ["work"]
    while True:
        action = ACTIONS[rng.choice(keys)]
        negative = rng.random() < 0.18
        clause = Clause(WE, action, "future", **complement(action, WE, negative, rng))
        place = clause.place or ("", "")
        if not clause.place and action.places and rng.random() < 0.3:
            place = at(PLACES[rng.choice(action.places)], rng)
        time = rng.choice((("", ""), ("", ""), ("", ""), ("now", "अहिले"), ("today", "आज"), ("tomorrow", "भोलि")))
        verb: Verb = action.nepali
        text = words("let us", "not" if negative else "", action.key, clause.object_english(), place[0], time[0])
        yield pair(text, words(time[1], place[1], clause.object_nepali(), verb.let_us(negative)), *clause.parts()[1:])
