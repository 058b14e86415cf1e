"""What something is: हो, and its past थियो. Roles, kin, things shown, adjectives before their nouns."""

from data.en_ne.adjectives import ADJECTIVES, OF_PEOPLE, qualities
from data.en_ne.english import EnglishVerb, a, be_question, be_statement, plural, question, statement
from data.en_ne.nouns import NOUNS
from data.en_ne.people import HE, NAMED, SHE, SPEAKERS, THEY, WE, YOU, I, Person, kin_of_others, my, possessed
from data.en_ne.sentence import FORMS, form_for, pair, put, words
from data.en_ne.verbs import Verb, equals, inflect

# What a person can be: the Nepali word for both sexes, or the masculine and the feminine one ("" if there is none).
UNISEX = {
    "student": "विद्यार्थी", "doctor": "डाक्टर", "farmer": "किसान", "driver": "ड्राइभर", "player": "खेलाडी",
    "shopkeeper": "पसले", "engineer": "इन्जिनियर", "soldier": "सैनिक", "child": "बच्चा",
    "guest": "पाहुना", "neighbor": "छिमेकी", "police officer": "प्रहरी", "worker": "मजदुर", "leader": "नेता",
}  # fmt: skip
ROLES = {role: (word, word) for role, word in UNISEX.items()} | {
    "boy": ("केटा", ""), "girl": ("", "केटी"), "woman": ("", "महिला"), "nurse": ("", "नर्स"),
    "teacher": ("शिक्षक", "शिक्षिका"), "singer": ("गायक", "गायिका"), "writer": ("लेखक", "लेखिका"),
}  # fmt: skip
WORK = tuple(role for role in ROLES if role not in ("boy", "girl", "woman", "child", "guest", "neighbor"))


def role_word(subject: Person, role: str) -> str:
    """The Nepali word, or nothing where the sex does not fit: a girl is not a boy."""
    male, female = ROLES[role]
    if subject in (I, WE, YOU, THEY):
        return male or female
    return female if subject.female else male


def with_article(noun: str) -> str:
    """An article that careless people leave out: "[a] boy"."""
    return "[" + a(noun).replace(" ", "] ", 1)


def role_subjects() -> list[Person]:
    kin = ("father", "mother", "brother", "sister", "friend", "son", "daughter", "uncle")
    return [*SPEAKERS * 3, *NAMED, *(my(owner, name) for owner in SPEAKERS for name in kin)]


def roles(rng):
    """ "I am a student" म विद्यार्थी हुँ: no article, हो, and the past थियो."""
    everyone = role_subjects()
    while True:
        subject, role = rng.choice(everyone), rng.choice(list(ROLES))
        name, number = role_word(subject, role), subject.number
        if not name or (role not in WORK and subject not in SPEAKERS):
            continue
        english_role = plural(role) if subject in (WE, THEY) else with_article(role)
        tense, form = rng.choices(("present", "past", "future"), (60, 25, 15))[0], rng.choices(FORMS, (50, 28, 22))[0]
        past, negative, parts = tense == "past", form == "negation", [("predicate", subject.english, role)]
        if tense != "future":
            asked = words(be_question(subject.english, number, past), english_role)
            said = words(be_statement(subject.english, number, past, negative), english_role)
            yield put(form, asked, said, words(subject.nepali, name, equals(subject.who, negative, past)), *parts)
        elif role in WORK and form != "question":
            text = be_statement(subject.english, number, False, negative, True)
            nepali = words(subject.nepali, name, Verb("हुनु").future(subject.who, negative))
            yield pair(words(text, english_role), nepali, *parts)


def boys_and_girls(rng):
    """The README's example and its neighbours: every pronoun with boy, girl, student, teacher, now and in the past."""
    for subject in SPEAKERS:
        for role in ("boy", "girl", "student", "teacher"):
            name = role_word(subject, role)
            english_role = plural(role) if subject in (WE, THEY) else with_article(role)
            for past, negative in ((False, False), (False, True), (True, False)):
                if name:
                    text = words(be_statement(subject.english, subject.number, past, negative), english_role)
                    nepali = words(subject.nepali, name, equals(subject.who, negative, past))
                    yield pair(text, nepali, ("predicate", subject.english, role))


def becoming(rng):
    """ "I want to be a doctor" म डाक्टर बन्न चाहन्छु, "he became a teacher" ऊ शिक्षक बन्यो."""
    nepali, be, became = Verb("बन्नु"), EnglishVerb("be", "was", "been"), EnglishVerb("become", "became", "become")
    while True:
        subject, role = rng.choice(role_subjects()), rng.choice(WORK)
        name = role_word(subject, role)
        if not name or subject.english.split(" ")[-1] in ("father", "mother", "uncle"):
            continue
        tense, form = rng.choice(("want to", "want to", "want to", "past")), form_for(subject, rng)
        if tense == "past" and form != "statement":
            continue
        verb = became if tense == "past" else rng.choice((be, be, became))
        negative, role_text = form == "negation", plural(role) if subject in (WE, THEY) else a(role)
        asked = words(question(subject.english, verb, tense, subject.number), role_text)
        said = words(statement(subject.english, verb, tense, subject.number, negative), role_text)
        ours = words(subject.nepali, name, inflect(nepali, tense, subject.who, negative))
        yield put(form, asked, said, ours, ("predicate", subject.english, role))


SHOWN = {"this": "यो", "that": "त्यो", "it": "यो", "these": "यी", "those": "ती"}
SEVERAL = {"this": "these", "that": "those"}


def this_is(rng):
    """ "this is a book" यो किताब हो, "that is not my bag" त्यो मेरो झोला होइन, "these are big houses" यी ठूला घरहरू हुन्."""
    things = [noun for noun in NOUNS.values() if not noun.human and {"bare", "many", "sky"}.isdisjoint(noun.tags)]
    while True:
        noun, word = rng.choice(things), rng.choice(("this", "that", "this", "that", "it"))
        many = not noun.mass and word != "it" and rng.random() < 0.2
        mine = any(tag in noun.tags for tag in ("own", "pet", "farm", "dish", "container", "edible", "drink"))
        kind = rng.choices(("plain", "mine", "quality"), (40, 30 if mine else 0, 30 if qualities(noun) else 0))[0]
        (name, ours), parts = noun.forms(many), [("shown", word, noun.english)]
        bare = noun.mass or many
        if kind == "mine":
            owner = rng.choice(SPEAKERS)
            owned = possessed(owner, noun, many=many)
            text, nepali = owned.english, owned.nepali
            parts.append(("owner", owner.own, noun.english))
        elif kind == "quality":
            quality = rng.choice(qualities(noun))
            text = f"{quality.english} {name}"
            text, nepali = text if bare else with_article(text), f"{quality.agree(many=many)} {ours}"
            parts.append(("quality", quality.english, noun.english))
        else:
            text, nepali = name if bare else with_article(name), ours
        yield _shown(rng, SEVERAL[word] if many else word, text, nepali, "they" if many else "he", parts)


def _shown(rng, word: str, text: str, nepali: str, who: str, parts):
    """This is, is not, is it?, was: with हो."""
    number = "p" if who == "they" else "s"
    form = rng.choices((*FORMS, "past"), (55, 20, 18, 7))[0]
    past, negative = form == "past", form == "negation"
    asked, said = words(be_question(word, number), text), words(be_statement(word, number, past, negative), text)
    return put(form, asked, said, words(SHOWN[word], nepali, equals(who, negative, past)), *parts)


KIN_SHOWN = (
    "father", "mother", "brother", "sister", "friend", "son", "daughter", "teacher", "uncle", "aunt", "grandfather",
    "grandmother", "neighbor",
)  # fmt: skip


def kin_shown(rng):
    """ "this is my brother", "she is my sister"; one's elders are उहाँ, whether English says this, he or she.

    A younger girl who is pointed at is यो … हो: she is not addressed.
    """
    for owner in SPEAKERS:
        for name in KIN_SHOWN:
            person = my(owner, name)
            polite, pronoun = person.who == "polite", SHE if person.female else HE
            for word in ("this", pronoun.english):
                if word != "this" and owner is pronoun:
                    continue
                who = "polite" if polite else "he" if word == "this" else pronoun.who
                shown = "उहाँ" if polite else "यो" if word == "this" else pronoun.nepali
                for form in FORMS:
                    negative = form == "negation"
                    asked, said = f"is {word} {person.english}", f"{word} is {'not ' * negative}{person.english}"
                    nepali = f"{shown} {person.nepali} {equals(who, negative)}"
                    yield put(form, asked, said, nepali, ("predicate", word, f"{owner.own} {name}"))


ATTRIBUTES = {
    "good": ("man", "woman", "friend", "boy", "girl", "student", "teacher"),
    "honest": ("man", "woman", "friend", "shopkeeper", "driver", "police officer", "leader"),
    "famous": ("singer", "writer", "player", "doctor", "leader", "engineer", "teacher"),
    "clever": ("man", "woman", "boy", "girl", "student", "driver"), "lazy": ("man", "woman", "boy", "girl", "student"),
    "rich": ("man", "woman", "farmer", "shopkeeper"), "poor": ("man", "woman", "farmer", "driver"),
    "young": ("man", "woman", "teacher", "doctor", "farmer", "singer"), "old": ("man", "woman", "teacher", "doctor"),
    "tall": ("man", "woman", "boy", "girl", "player"),
}  # fmt: skip
DESCRIBED = ROLES | {"man": ("मान्छे", ""), "friend": ("साथी", "साथी")}


def good_people(rng):
    """ "he is a good man" ऊ असल मान्छे हो, "she is a tall girl" उनी अग्ली केटी हुन्: adjective and noun agree."""
    while True:
        subject = rng.choice((HE, SHE, HE, SHE, I, YOU, *NAMED, *kin_of_others()[:6]))
        quality = OF_PEOPLE[rng.choice(list(ATTRIBUTES))]
        role = rng.choice(ATTRIBUTES[quality.english])
        male, female = DESCRIBED[role]
        name = (male or female) if subject in (I, YOU) else female if subject.female else male
        if not name or (subject not in SPEAKERS and role in ("boy", "girl")):
            continue
        form, number = form_for(subject, rng, (60, 20, 20)), subject.number
        text = with_article(f"{quality.english} {role}")
        parts = [("predicate", subject.english, role), ("quality", quality.english, role)]
        nepali = words(quality.agree(subject.female or not male), name, equals(subject.who, form == "negation"))
        asked = words(be_question(subject.english, number), text)
        said = words(be_statement(subject.english, number, False, form == "negation"), text)
        yield put(form, asked, said, f"{subject.nepali} {nepali}", *parts)


def noun_phrases(rng):
    """No verb at all: "a big house" एउटा ठूलो घर, "my red bag" मेरो रातो झोला, "big houses" ठूला घरहरू."""
    while True:
        quality, draw = rng.choice(list(ADJECTIVES.values())), rng.random()
        noun = rng.choice([n for n in quality.nouns() if n.number == "s"])
        if "bare" in noun.tags or "sky" in noun.tags:
            continue
        if noun.mass:
            text, nepali = f"{quality.english} {noun.english}", f"{quality.agree()} {noun.nepali}"
        elif draw < 0.4:
            text, nepali = f"{a(quality.english)} {noun.english}", f"एउटा {quality.agree()} {noun.nepali}"
        elif draw < 0.7 and ("own" in noun.tags or "pet" in noun.tags):
            owner = rng.choice(SPEAKERS)
            text = f"{owner.own} {quality.english} {noun.english}"
            nepali = f"{owner.of()} {quality.agree()} {noun.nepali}"
        else:
            name, ours = noun.forms(True)
            text, nepali = f"{quality.english} {name}", f"{quality.agree(many=True)} {ours}"
        yield pair(text, nepali, ("quality", quality.english, noun.english), mark="")
