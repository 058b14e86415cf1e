"""Somebody does something: every verb through persons, tenses, polarity and questions; objects, places and times."""

from data.en_ne.adverbs import PLACES
from data.en_ne.complements import TIMELESS, allowed, complement, times_for
from data.en_ne.nouns import bare, tagged
from data.en_ne.people import EVERYONE, NAMED, SPEAKERS, THE_PEOPLE, YOU, I, Person, my, subjects
from data.en_ne.sentence import Clause, at, form_for
from data.en_ne.verb_table import ACTIONS, CORE, Action

COMMON_TENSES = ("present", "past", "future", "continuous", "past continuous", "perfect")
TENSE_WEIGHTS = {
    "present": 20, "past": 20, "future": 14, "continuous": 10, "past continuous": 7, "perfect": 9, "past perfect": 4,
    "used to": 7,
}  # fmt: skip
NOT_YET = (
    "arrive", "bring", "buy", "call", "clean", "close", "come", "cook", "cut", "drink", "eat", "finish", "go", "help",
    "learn", "make", "meet", "open", "pick", "plant", "play", "read", "repair", "return", "see", "sell", "send",
    "sing", "speak", "start", "study", "swim", "teach", "travel", "use", "wash", "watch", "win", "write",
)  # fmt: skip


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
    kin = tuple(my(I, name) for name in ("mother", "father", "brother", "sister"))
    for subject in (*SPEAKERS, *NAMED, *THE_PEOPLE[:8], *kin):
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
        action, subject, tense = rng.choice(everything), subjects(rng), rng.choices(tenses, weights)[0]
        if allowed(action, tense):
            form = form_for(subject, rng, (55, 25, 20))
            yield spoken(build(action, subject, tense, form == "negation", rng), form)


def build(action: Action, subject: Person, tense: str, negative: bool, rng) -> Clause:
    """A clause with its complement and one or no adverb, seldom a place and a time."""
    extra = complement(action, subject, negative, rng)
    draw, times = rng.random(), times_for(action, tense)
    if "place" not in extra and action.places and draw < 0.35:
        extra["place"] = at(PLACES[rng.choice(action.places)], rng)
    if times and 0.27 < draw < 0.75:
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
        if not clause.time_first and clause.frequency not in ("never", "often"):
            yield clause.ask()


def never_and_yet(rng):
    """ "I have never seen an elephant", "she has not eaten yet": कहिल्यै and अझै with a negative verb."""
    actions = [action for key, action in ACTIONS.items() if key in NOT_YET]
    while True:
        action, subject = rng.choice(actions), subjects(rng)
        extra = complement(action, subject, True, rng)
        if rng.random() < 0.5:
            yield Clause(subject, action, "perfect", frequency="never", **extra).say()
        else:
            yield Clause(subject, action, "perfect", negative=True, time=("yet", "अझै"), **extra).say()
