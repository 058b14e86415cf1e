"""Two clauses in one sentence: र (and), तर (but), किनभने (because), … भने (if), … -एपछि (after) and -नु अगि (before)."""

from data.en_ne import english
from data.en_ne.adjectives import OF_PEOPLE
from data.en_ne.people import SPEAKERS, Person, my, subjects
from data.en_ne.sentence import Clause, Sentence, pair, words
from data.en_ne.sentences.clauses import complement, in_general
from data.en_ne.sentences.feelings import FEELINGS
from data.en_ne.sentences.states import agreed
from data.en_ne.verb_table import ACTIONS
from data.en_ne.verbs import Verb, be, inflect, takes_le

SIMPLE = ("eat", "drink", "go", "write", "sleep", "work", "cook", "sing", "dance", "buy", "study",
          "play", "wash", "run", "come", "watch",
          "learn", "clean", "rest")  # fmt: skip


def plain(sentence: Sentence) -> tuple[str, str]:
    """A sentence without its mark and capital letter, to be put into another one."""
    text = sentence.english[:-1]
    return (
        text
        if text.startswith(("I ", "Ram", "Sita", "Hari", "Maya", "Gita", "Anita", "Bikash", "Suresh"))
        else _lower(text)
    ), sentence.nepali[:-1]


def _lower(text: str) -> str:
    return "[" + text[1].lower() + text[2:] if text[0] == "[" else text[0].lower() + text[1:]


def small_clause(subject: Person, tense: str, rng, negative: bool = False) -> Sentence:
    action = ACTIONS[rng.choice(SIMPLE)]
    extra = complement(action, subject, negative, rng)
    if "thing" in extra and rng.random() < 0.5:
        extra = {"thing": in_general(action, rng)}
    return Clause(subject, action, tense, negative, **extra).say()


def and_but(rng):
    """ "I drink tea and he drinks milk" म चिया पिउँछु र ऊ दूध पिउँछ; "I eat meat but she does not eat meat": र, तर."""
    while True:
        one, two = subjects(rng), subjects(rng)
        tense = rng.choice(("present", "present", "past", "past", "future", "continuous"))
        if one == two or {one.who, two.who} == {"i", "we"}:
            continue
        joint, ours = rng.choice((("and", "र"), ("but", "तर")))
        action = ACTIONS[rng.choice([key for key in SIMPLE if key not in ("clean", "rest")])]
        extra = {"thing": in_general(action, rng)} if action.things() else complement(action, one, False, rng)
        again = {"thing": in_general(action, rng)} if joint == "and" and action.things() else extra
        left = plain(Clause(one, action, tense, **extra).say())
        right = plain(Clause(two, action, tense, joint == "but", **again).say())
        if joint == "and" and again == extra:
            continue
        parts = (("joined", one.english, two.english),)
        yield pair(f"{left[0]} {joint} {right[0]}", f"{left[1]} {ours} {right[1]}", *parts)


def two_subjects(rng):
    """ "my brother and I go to school" म र मेरो भाइ स्कूल जान्छौँ; two others are उनीहरू: राम र सीता जान्छन्."""
    from data.en_ne.people import NAMED, I, the

    others = (
        *NAMED,
        my(I, "brother"),
        my(I, "sister"),
        my(I, "friend"),
        my(I, "son"),
        my(I, "daughter"),
        the("boy"),
        the("girl"),
    )
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


def two_things(rng):
    """ "I eat rice and meat" म भात र मासु खान्छु."""
    while True:
        key = rng.choice(
            ("eat", "drink", "buy", "sell", "cook", "bring", "read", "plant", "study", "play", "wear", "wash")
        )
        action, subject = ACTIONS[key], subjects(rng)
        one, two = rng.sample([noun for noun in action.things() if noun.english not in ("name", "television")], 2)
        tense = rng.choice(("present", "past", "future", "continuous", "perfect", "want to", "can"))
        if action.state and tense == "continuous":
            continue
        negative = rng.random() < 0.15
        if english.looks_present(action.english, tense, subject.number, negative):
            continue
        doer = subject.le if takes_le(tense, True) else subject.nepali
        nepali = words(doer, one.nepali, "र", two.nepali, inflect(action.nepali, tense, subject.who, negative))
        text = english.statement(subject.english, action.english, tense, subject.number, negative)
        parts = (
            ("object", key, one.english),
            ("object", key, two.english),
            (f"{tense} of a verb", subject.english, key),
        )
        yield pair(
            f"{text} {one.plural} {'or' if negative else 'and'} {two.plural}",
            nepali.replace(" र ", " वा ", 1) if negative else nepali,
            *parts,
        )


REASONS = {"hungry": ("eat",), "thirsty": ("drink",), "sleepy": ("sleep",), "sick": ("go", "come",
           "work", "play", "eat", "dance"),
           "busy": ("come", "go", "play", "cook", "sleep", "watch"), "happy": ("dance", "sing",
           "laugh"), "sad": ("cry",),
           "lazy": ("work", "study", "wash", "run", "clean"), "poor": ("buy",), "afraid": ("run",
           "cry"), "cold": ("go", "swim")}  # fmt: skip
HINDRANCES = ("sick", "busy", "lazy", "poor", "cold")  # why one does not; of the others one does


def because(rng):
    """ "I did not go because I was sick" म गइनँ किनभने म बिरामी थिएँ."""
    while True:
        subject, tense, reason = (
            subjects(rng),
            rng.choice(("past", "past", "present", "future")),
            rng.choice(list(REASONS)),
        )
        negative, past, keys = reason in HINDRANCES, tense == "past", REASONS[reason]
        action = ACTIONS[rng.choice(keys)]
        things = {"thing": in_general(action, rng)} if action.things() else complement(action, subject, negative, rng)
        left = plain(Clause(subject, action, tense, negative, **things).say())
        again = pronoun_of(subject)
        is_ = english.BE[again.number][past]
        if reason in FEELINGS:
            right, nepali = (
                f"{again.english} {is_} {reason}",
                f"{again.lai} {FEELINGS[reason]} लागेको {'थियो' if past else 'छ'}",
            )
        else:
            quality = OF_PEOPLE[reason]
            right, nepali = (
                f"{again.english} {is_} {quality.english}",
                f"{again.nepali} {agreed(again, quality)} {be(again.who, False, past)}",
            )
        yield pair(
            f"{left[0]} because {right}",
            f"{left[1]} किनभने {nepali}",
            ("because", subject.english, right.split(" ")[-1]),
        )


def pronoun_of(subject: Person) -> Person:
    """How the same person is named the second time: my mother ... she. A respected person is then उहाँ, polite again."""
    if subject in SPEAKERS:
        return subject
    if subject.who == "polite":
        word = "they" if subject.number == "p" else "she" if subject.female else "he"
        return Person(word, "उहाँहरू" if word == "they" else "उहाँ", "polite", subject.number, subject.female)
    return next(
        p for p in SPEAKERS if p.who == ("they" if subject.number == "p" else "she" if subject.female else "he")
    )


def if_clauses(rng):
    """ "if it rains, I will stay at home" पानी पर्‍यो भने म घरमा बस्नेछु: the condition is in the past form,
    followed by भने.
    """
    rain = [("it rains", "पानी पर्‍यो"), ("it snows", "हिउँ पर्‍यो"), ("it is hot", "गर्मी भयो"), ("it is cold", "जाडो भयो")]
    while True:
        one, two = rng.choice(SPEAKERS), subjects(rng)
        if rng.random() < 0.4:
            condition, ours, key = *rng.choice(rain), "weather"
        else:
            if one == two:
                continue
            action = ACTIONS[rng.choice(("come", "go", "help", "call", "eat", "sing", "read", "work"))]
            clause = Clause(one, action, "present", **complement(action, one, False, rng))
            doer = one.le if action.transitive else one.nepali
            condition = plain(clause.say())[0]
            verb = inflect(action.nepali, "past", one.who)
            ours = words(doer, clause.place[1] if clause.place else "", clause.object_nepali(), verb)
            key = one.english
        text, nepali = plain(small_clause(two, "future", rng, rng.random() < 0.25))
        if rng.random() < 0.6:
            yield pair(f"if {condition}, {text}", f"{ours} भने {nepali}", ("if", key, two.english))
        else:
            yield pair(f"{text} if {condition}", f"{ours} भने {nepali}", ("if", key, two.english))


def before_and_after(rng):
    """ "I wash my hands before eating" म खानु अगि हात धुन्छु; "he sleeps after eating" ऊ खाएपछि सुत्छ."""
    keys = ("eat", "work", "study", "play", "sleep", "dance", "run", "read")
    while True:
        subject, key, tense = subjects(rng), rng.choice(keys), rng.choice(("present", "past", "future"))
        action = ACTIONS[
            rng.choice(
                [
                    k
                    for k in ("sleep", "rest", "work", "study", "play", "drink", "watch", "wash", "sing", "go")
                    if k != key
                ]
            )
        ]
        extra = complement(action, subject, False, rng)
        clause = Clause(subject, action, tense, **extra)
        first: Verb = ACTIONS[key].nepali
        after = rng.random() < 0.5
        ours = first.front + first.before_vowel("एपछि") if after else f"{first.infinitive} अगि"
        place = clause.place[1] if clause.place else ""
        nepali = words(clause.subject_nepali(), ours, place, clause.object_nepali(), clause.verb_nepali())
        text = f"{plain(clause.say())[0]} {'after' if after else 'before'} {english.ing_form(key)}"
        yield pair(text, nepali, ("after" if after else "before", key, action.key), *clause.parts()[:1])
