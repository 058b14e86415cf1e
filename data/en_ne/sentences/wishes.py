"""What one can, wants, must, needs and likes.

English makes the person the subject of all of these. Nepali does so with सक्नु and चाहनु (म जान सक्छु), puts ले on the
one who must (मैले जानुपर्छ), and lets needs and likes come *to* a person: मलाई पानी चाहिन्छ, मलाई चिया मन पर्छ.
"""

from data.en_ne.adjectives import described
from data.en_ne.adverbs import PLACES, TIMES
from data.en_ne.complements import complement, in_general, person_for
from data.en_ne.english import EnglishVerb, question, statement
from data.en_ne.nouns import Noun, Phrase, bare, definite, indefinite, mass_amount, tagged
from data.en_ne.people import SPEAKERS, WE, I, Person, possessed, subjects
from data.en_ne.sentence import Clause, Sentence, at, form_for, pair, put, words
from data.en_ne.sentences.clauses import spoken
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import Verb, inflect

UNWISHED = ("lose", "fall", "know", "cry", "arrive", "forget", "find", "carry", "love", "laugh", "smile", "throw",
            "trust")  # fmt: skip
MODALS = {"can": 26, "could": 9, "want to": 30, "wanted to": 8, "must": 8, "have to": 14, "had to": 7}


def modal_clauses(rng):
    """ "I want to drink tea" म चिया पिउन चाहन्छु, "he could not come" ऊ आउन सकेन, "I must go" मैले जानुपर्छ."""
    actions = [action for key, action in ACTIONS.items() if key not in UNWISHED]
    tenses, weights = list(MODALS), list(MODALS.values())
    while True:
        action, subject, tense = rng.choice(actions), subjects(rng), rng.choices(tenses, weights)[0]
        form = "question" if subject is I and tense == "can" and rng.random() < 0.2 else form_for(subject, rng)
        if (tense == "must" and form != "statement") or (tense in ("could", "had to") and form == "question"):
            continue
        extra, draw = complement(action, subject, form == "negation", rng), rng.random()
        if action.places and "place" not in extra and draw < 0.25:
            extra["place"] = at(PLACES[rng.choice(action.places)], rng)
        elif draw > 0.72 and action.key not in ("live", "understand"):
            extra["time"] = rng.choice(list(TIMES[tense].items()))
        yield spoken(Clause(subject, action, tense, form == "negation", **extra), form)


NEEDED = ("food", "drink", "grocery", "own", "ticket", "money", "medicine", "edible", "paper", "dish", "soap")
UNWANTED = ("bad", "dirty", "empty", "difficult", "heavy")
NEED, WANT, LIKE = (
    EnglishVerb(base, past, past) for base, past in (("need", "needed"), ("want", "wanted"), ("like", "liked"))
)


def object_of_wish(noun: Noun, negative: bool, rng) -> Phrase:
    """a book, the book, a red book, water."""
    phrase = described(noun, negative, rng) if rng.random() < 0.15 else None
    if phrase and phrase.quality not in UNWANTED:
        return phrase
    if noun.mass:
        if rng.random() < 0.8 or "bare" in noun.tags:
            return bare(noun) if negative else mass_amount(noun, rng)
        return definite(noun)
    return indefinite(noun, negative) if rng.random() < 0.7 else definite(noun)


def needs(rng):
    """ "I need water" मलाई पानी चाहिन्छ, "do you want tea?" के तपाईंलाई चिया चाहिन्छ? Wanting a thing is needing it."""
    things = [noun for noun in tagged(*NEEDED) if noun.english not in ("name", "moon")]
    while True:
        subject, noun, verb = subjects(rng), rng.choice(things), rng.choice((NEED, WANT))
        form, tense = form_for(subject, rng), "past" if rng.random() < 0.12 else "present"
        negative = form == "negation"
        thing = object_of_wish(noun, negative, rng)
        time = ("now", "अहिले") if tense == "present" and rng.random() < 0.08 else ("", "")
        needed = inflect(Verb("चाहिनु"), "used to" if tense == "past" else "present", "he", negative)
        parts = [("need", subject.english, noun.english)]
        parts += [("quality", thing.quality, noun.english)] if thing.quality else []
        nepali = words(subject.lai, time[1], thing.nepali, needed)
        yield _comes(subject, verb, tense, words(thing.english, time[0]), nepali, form, parts)


def _comes(subject: Person, verb: EnglishVerb, tense: str, text: str, nepali: str, form: str, parts) -> Sentence:
    """The English with do-support, the Nepali as given."""
    asked = words(question(subject.english, verb, tense, subject.number), text)
    said = words(statement(subject.english, verb, tense, subject.number, form == "negation"), text)
    return put(form, asked, said, nepali, *parts)


LIKEABLE = (
    "edible", "drink", "language", "subject", "sport", "animal", "cloth", "vehicle", "city", "village", "river",
    "mountain", "garden", "book", "newspaper", "story", "poem", "song", "movie", "game", "television", "music",
    "school", "work", "house", "flower", "picture", "photo", "radio", "phone", "market", "temple", "park", "sugar",
)  # fmt: skip
LIKED = (
    "read", "dance", "sing", "play", "cook", "walk", "swim", "travel", "sleep", "watch", "learn", "drink", "eat",
    "write", "listen to", "run", "speak", "go", "study", "teach",
)  # fmt: skip


def likes(rng):
    """ "he does not like milk" उसलाई दूध मन पर्दैन, "I like to read" मलाई पढ्न मन पर्छ.

    What pleases is the subject, and a person shows his level: "I like you" मलाई तपाईं मन पर्नुहुन्छ.
    """
    things, please = tagged(*LIKEABLE), Verb("मन पर्नु")
    while True:
        subject, tense, draw = subjects(rng), "past" if rng.random() < 0.12 else "present", rng.random()
        form, who = form_for(subject, rng), "he"
        if draw < 0.62:
            noun = rng.choice(things)
            thing = liked_thing(noun, subject, tense == "past", rng)
            text, ours, key = thing.english, thing.nepali, noun.english
        elif draw < 0.8:
            person = person_for(subject, rng)
            text, ours, key, who = person.object, person.nepali, person.object, person.who
        else:
            text, ours, key = liked_action(subject, rng)
        nepali = words(subject.lai, ours, inflect(please, tense, who, form == "negation"))
        yield _comes(subject, LIKE, tense, text, nepali, form, [("like", subject.english, key)])


def liked_thing(noun: Noun, subject: Person, past: bool, rng) -> Phrase:
    """One likes apples, but liked the apple."""
    if "bare" in noun.tags or not (past or rng.random() < 0.35):
        return bare(noun)
    if "own" in noun.tags and rng.random() < 0.33:
        return possessed(rng.choice([person for person in SPEAKERS if person.own != subject.own]), noun)
    return definite(noun)


def liked_action(subject: Person, rng) -> tuple[str, str, str]:
    """One likes to read books, not "a book"."""
    action = ACTIONS[rng.choice(LIKED)]
    extra = complement(action, subject, False, rng)
    if "thing" in extra:
        extra = {"thing": in_general(action.key, rng)}
    clause = Clause(subject, action, "present", **extra)
    place = clause.place or ("", "")
    text = words("to", action.key, clause.object_english(), place[0])
    return text, words(place[1], clause.object_nepali(), action.nepali.to()), action.key


PROPOSED = (
    "eat", "drink", "cook", "buy", "read", "study", "write", "learn", "speak", "watch", "look at", "listen to",
    "sing", "play", "wash", "clean", "open", "close", "make", "repair", "bring", "send", "cut", "plant", "pick",
    "ask", "start", "finish", "meet", "help", "call", "wait for", "wait", "invite", "talk to", "go", "sleep",
    "get up", "sit", "stay", "walk", "run", "dance", "work", "swim", "rest", "travel", "return", "think", "thank",
    "use", "sell", "look for", "ride",
)  # fmt: skip


def let_us(rng):
    """ "let us go home" घर जाऔँ, "let us not eat meat" मासु नखाऔँ."""
    while True:
        action, negative = ACTIONS[rng.choice(PROPOSED)], rng.random() < 0.18
        clause = Clause(WE, action, "future", **complement(action, WE, negative, rng))
        place = clause.place or ("", "")
        if not clause.place and action.places and rng.random() < 0.3:
            place = at(PLACES[rng.choice(action.places)], rng)
        time = rng.choice((("", ""), ("", ""), ("", ""), ("now", "अहिले"), ("today", "आज"), ("tomorrow", "भोलि")))
        text = words("let us", "not" if negative else "", action.key, clause.object_english(), place[0], time[0])
        nepali = words(time[1], place[1], clause.object_nepali(), action.nepali.let_us(negative))
        yield pair(text, nepali, *clause.parts()[1:])
