"""Two clauses in one sentence: र (and), तर (but), किनभने (because), … भने (if), … -एपछि (after) and -नु अगि (before)."""

from dataclasses import replace

from data.en_ne import english
from data.en_ne.adjectives import OF_PEOPLE
from data.en_ne.adverbs import PLACES
from data.en_ne.complements import complement, in_general, phrase_for
from data.en_ne.nouns import NOUNS, tagged
from data.en_ne.people import NAMED, SPEAKERS, I, Person, my, subjects, the
from data.en_ne.sentence import Clause, Sentence, pair, to, words
from data.en_ne.sentences.feelings import FEELINGS
from data.en_ne.sentences.states import agreed
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import be, inflect, takes_le

SIMPLE = (
    "eat", "drink", "go", "write", "sleep", "work", "cook", "sing", "dance", "buy", "study", "play", "wash", "run",
    "come", "watch", "learn", "clean", "rest",
)  # fmt: skip
CAPITAL = ("I ", *(person.english for person in NAMED))


def plain(sentence: Sentence) -> tuple[str, str]:
    """A sentence without its mark and capital letter, to be put into another one."""
    text, start = sentence.english[:-1], 1 if sentence.english[0] == "[" else 0
    if not text.startswith(CAPITAL):
        text = text[:start] + text[start].lower() + text[start + 1 :]
    return text, sentence.nepali[:-1]


def generally(key: str, subject: Person, rng) -> dict:
    """ "eats apples", "goes to school": the verb with a thing in general, or with its goal."""
    action = ACTIONS[key]
    if action.things() and not action.person_case:
        return {"thing": in_general(key, rng)}
    return complement(action, subject, False, rng)


def small_clause(subject: Person, tense: str, rng, negative: bool = False) -> Sentence:
    key = rng.choice(SIMPLE)
    extra = generally(key, subject, rng) if rng.random() < 0.6 else complement(ACTIONS[key], subject, negative, rng)
    return Clause(subject, ACTIONS[key], tense, negative, **extra).say()


def and_but(rng):
    """ "I drink tea and he drinks milk" म चिया पिउँछु र ऊ दूध पिउँछ; "I eat meat but she does not eat meat": र, तर."""
    keys = [key for key in SIMPLE if key not in ("clean", "rest", "wash")]
    while True:
        one, two = subjects(rng), subjects(rng)
        tense = rng.choice(("present", "present", "past", "past", "future", "continuous"))
        if one == two or {one.who, two.who} == {"i", "we"}:
            continue
        joint, ours = rng.choice((("and", "र"), ("but", "तर")))
        key = rng.choice(keys)
        extra = generally(key, one, rng)
        again = extra if joint == "but" else generally(key, two, rng)
        if joint == "and" and again == extra:
            continue
        left = plain(Clause(one, ACTIONS[key], tense, **extra).say())
        right = plain(Clause(two, ACTIONS[key], tense, joint == "but", **again).say())
        yield pair(
            f"{left[0]} {joint} {right[0]}", f"{left[1]} {ours} {right[1]}", ("joined", one.english, two.english)
        )


def two_subjects(rng):
    """ "my brother and I go to school" मेरो भाइ र म स्कूल जान्छौँ; two others are उनीहरू: राम र सीता जान्छन्."""
    kin = (my(I, name) for name in ("brother", "sister", "friend", "son", "daughter"))
    others = (*NAMED, *kin, the("boy"), the("girl"))
    while True:
        one, two = rng.sample(others, 2)
        with_me = rng.random() < 0.35
        if with_me:
            both = Person(f"{one.english} and I", f"{one.nepali} र म", "we", "p", own="our")
        else:
            both = Person(f"{one.english} and {two.english}", f"{one.nepali} र {two.nepali}", "they", "p", own="their")
        tense = rng.choice(("present", "past", "future", "continuous", "perfect"))
        sentence = small_clause(both, tense, rng, rng.random() < 0.2)
        nepali = sentence.nepali.replace(" र मले ", " र मैले ", 1)  # म is मैले here as well
        yield Sentence(sentence.english, nepali, (("joined", one.english, "I" if with_me else two.english),))


# What one does to two kinds of things at once.
PAIRS = {
    "eat": ("fruit", "meal", "meat", "fish", "bread", "egg", "vegetables", "yogurt", "tomato"), "drink": ("drink",),
    "buy": ("fruit", "grocery", "vegetable", "milk", "meat", "fish"), "sell": ("fruit", "vegetable", "fish", "milk"),
    "cook": ("rice", "meat", "fish", "vegetables", "egg", "potato"),
    "bring": ("book", "pen", "paper", "pencil", "newspaper"),
    "read": ("book", "newspaper", "letter", "story", "poem"),
    "plant": ("tree", "flower", "potato", "tomato", "onion"), "study": ("language", "subject"), "play": ("sport",),
    "wear": ("cloth",), "wash": ("dish",),
}  # fmt: skip


def two_things(rng):
    """ "I eat rice and meat" म भात र मासु खान्छु; in a negation "or" वा."""
    while True:
        key = rng.choice(list(PAIRS))
        action, subject = ACTIONS[key], subjects(rng)
        one, two = rng.sample([noun for noun in tagged(*PAIRS[key]) if noun.english not in ("clothes", "food")], 2)
        if "fruit" in (one.english, two.english) and {"fruit"} & {*one.tags, *two.tags}:
            continue  # apples are fruit
        tense, negative = (
            rng.choice(("present", "past", "future", "continuous", "perfect", "want to", "can")),
            rng.random() < 0.15,
        )
        past_unseen = english.looks_present(action.english, tense, subject.number, negative)
        if past_unseen or (action.state and tense == "continuous"):
            continue
        doer = subject.le if takes_le(tense, True) else subject.nepali
        joint, ours = ("or", "वा") if negative else ("and", "र")
        nepali = words(doer, one.nepali, ours, two.nepali, inflect(action.nepali, tense, subject.who, negative))
        text = english.statement(subject.english, action.english, tense, subject.number, negative)
        parts = (*(("object", key, noun.english) for noun in (one, two)), (f"{tense} of a verb", subject.english, key))
        yield pair(f"{text} {one.plural} {joint} {two.plural}", nepali, *parts)


REASONS = {
    "hungry": ("eat",), "thirsty": ("drink",), "sleepy": ("sleep",),
    "sick": ("go", "come", "work", "play", "eat", "dance"), "busy": ("come", "go", "play", "cook", "sleep", "watch"),
    "happy": ("dance", "sing", "laugh"), "sad": ("cry",), "lazy": ("work", "study", "wash", "run", "clean"),
    "poor": ("buy",), "afraid": ("run", "cry"), "cold": ("go", "swim"),
}  # fmt: skip
HINDRANCES = ("sick", "busy", "lazy", "poor", "cold")  # why one does not; of the others one does


def because(rng):
    """ "I did not go because I was sick" म गइनँ किनभने म बिरामी थिएँ."""
    while True:
        subject, tense = subjects(rng), rng.choice(("past", "past", "present", "future"))
        reason = rng.choice(list(REASONS))
        key, past, again = rng.choice(REASONS[reason]), tense == "past", pronoun_of(subject)
        action, negative = ACTIONS[key], reason in HINDRANCES
        left = plain(Clause(subject, action, tense, negative, **generally(key, subject, rng)).say())
        if reason in FEELINGS:
            nepali = f"{again.lai} {FEELINGS[reason]} लागेको {be('he', False, past)}"
        else:
            nepali = f"{again.nepali} {agreed(again, OF_PEOPLE[reason])} {be(again.who, False, past)}"
        right = f"{again.english} {english.BE[again.number][past]} {reason}"
        yield pair(f"{left[0]} because {right}", f"{left[1]} किनभने {nepali}", ("because", subject.english, reason))


def pronoun_of(subject: Person) -> Person:
    """How the same person is named the second time: my mother ... she. A respected person is then उहाँ, polite again."""
    if subject in SPEAKERS:
        return subject
    if subject.who == "polite":
        word = "they" if subject.number == "p" else "she" if subject.female else "he"
        return Person(word, "उहाँहरू" if word == "they" else "उहाँ", "polite", subject.number, subject.female)
    who = "they" if subject.number == "p" else "she" if subject.female else "he"
    return next(person for person in SPEAKERS if person.who == who)


# In bad weather some things are done, and others are not.
SKIES = {
    "it rains": "पानी पर्‍यो", "it snows": "हिउँ पर्‍यो", "it is hot": "गर्मी भयो", "it is cold": "जाडो भयो",
}  # fmt: skip
INDOORS, OUTDOORS = ("rest", "sleep", "watch", "drink", "stay", "cook"), ("go", "come", "play", "work", "run")
CONSEQUENCES = (
    "come", "go", "help", "cook", "sing", "dance", "stay", "talk to", "wait for", "eat", "bring", "make", "call",
)  # fmt: skip


def consequence(subject: Person, key: str, negative: bool, rng) -> tuple[str, str]:
    """What will happen: "I will stay at home", "she will not come"."""
    if key == "stay":
        extra = {"place": ("at home", "घरमा")}
    elif key in ("bring", "make"):
        noun = NOUNS[rng.choice(("tea", "coffee") if key == "make" else ("water", "food", "tea", "book", "money"))]
        extra = {"thing": phrase_for(noun, subject, negative, rng, key)}
    else:
        extra = {} if key == "come" else generally(key, subject, rng)
    return plain(Clause(subject, ACTIONS[key], "future", negative, **extra).say())


def condition(subject: Person, rng) -> tuple[Clause, tuple[str, str]]:
    """ "if you come here": what happens first is past to Nepali, तपाईं यहाँ आउनुभयो भने."""
    action = ACTIONS[rng.choice(("come", "go", "help", "call"))]
    extra = {"place": to(PLACES["here"])} if action.key == "come" else complement(action, subject, False, rng)
    clause = Clause(subject, action, "present", **extra)
    return clause, (plain(clause.say())[0], replace(clause, tense="past").nepali())


def if_clauses(rng):
    """ "if it rains, I will stay at home" पानी पर्‍यो भने म घरमा बस्नेछु: the condition is in the past form, then भने."""
    here = SPEAKERS[:3]
    while True:
        one, two = rng.choice(SPEAKERS), subjects(rng)
        if rng.random() < 0.45:
            negative, part, (text, ours) = rng.random() < 0.5, "weather", rng.choice(list(SKIES.items()))
            then = consequence(two, rng.choice(OUTDOORS if negative else INDOORS), negative, rng)
        else:
            clause, (text, ours) = condition(one, rng)
            others = [person for person in (one, two, clause.person or I) if person not in here]
            if one.own == two.own or {one, two} == set(here[:2]) or len(others) > 1:
                continue  # "if she comes, Sita will ..." is not clear
            part, then = one.english, consequence(two, rng.choice(CONSEQUENCES), rng.random() < 0.15, rng)
        whole = f"if {text}, {then[0]}" if rng.random() < 0.6 else f"{then[0]} if {text}"
        yield pair(whole, f"{ours} भने {then[1]}", ("if", part, two.english))


def before_and_after(rng):
    """ "I drink tea before working" म काम गर्नु अगि चिया पिउँछु; "he sleeps after eating" ऊ खाएपछि सुत्छ."""
    firsts = ("eat", "work", "study", "play", "sleep", "dance", "run", "read")
    thens = ("sleep", "rest", "work", "study", "play", "drink", "watch", "wash", "sing", "go")
    while True:
        subject, first, tense = subjects(rng), rng.choice(firsts), rng.choice(("present", "past", "future"))
        key, after = rng.choice([key for key in thens if key != first]), rng.random() < 0.5
        if {first, key} in ({"sleep", "rest"}, {"read", "study"}) or (first == "sleep" and after):
            continue
        clause, verb = Clause(subject, ACTIONS[key], tense, **generally(key, subject, rng)), ACTIONS[first].nepali
        ours = verb.front + verb.before_vowel("एपछि") if after else f"{verb.infinitive} अगि"
        place = clause.place[1] if clause.place else ""
        nepali = words(clause.subject_nepali(), ours, place, clause.object_nepali(), clause.verb_nepali())
        joint = "after" if after else "before"
        text = f"{plain(clause.say())[0]} {joint} {english.ing_form(first)}"
        yield pair(text, nepali, (joint, first, key), *clause.parts()[:1])
