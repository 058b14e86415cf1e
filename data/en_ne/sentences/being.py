"""What something is: हो, and its past थियो. Roles, kin, things shown, adjectives before their nouns."""

from data.en_ne.adjectives import ADJECTIVES, OF_PEOPLE
from data.en_ne.english import a, be_question, be_statement, plural
from data.en_ne.nouns import NOUNS
from data.en_ne.people import EVERYONE, HE, SHE, SPEAKERS, THEY, WE, YOU, I, Person, kin_of_others, my, possessed
from data.en_ne.sentence import pair, words
from data.en_ne.verbs import Verb, equals

# What a person can be: masculine and feminine word ("=" the same).
ROLES = {
    "boy": ("केटा", ""), "girl": ("", "केटी"), "student": ("विद्यार्थी", "विद्यार्थी"), "teacher": ("शिक्षक", "शिक्षिका"),
    "doctor": ("डाक्टर", "डाक्टर"), "farmer": ("किसान", "किसान"), "driver": ("ड्राइभर", "ड्राइभर"), "nurse": ("", "नर्स"),
    "singer": ("गायक", "गायिका"), "writer": ("लेखक", "लेखिका"), "player": ("खेलाडी", "खेलाडी"),
    "shopkeeper": ("पसले", "पसले"),
    "engineer": ("इन्जिनियर", "इन्जिनियर"), "lawyer": ("वकिल", "वकिल"), "soldier": ("सैनिक",
    "सैनिक"), "child": ("बच्चा", "बच्चा"),
    "woman": ("", "महिला"), "guest": ("पाहुना", "पाहुना"), "neighbor": ("छिमेकी", "छिमेकी"),
    "police officer": ("प्रहरी", "प्रहरी"),
    "worker": ("मजदुर", "मजदुर"), "leader": ("नेता", "नेता"),
}  # fmt: skip
HAVE_BEEN = ("student", "teacher", "doctor", "farmer", "driver", "singer", "writer", "player",
             "shopkeeper", "engineer", "lawyer",
             "soldier", "leader", "nurse", "worker", "police officer")  # fmt: skip


def role_word(subject: Person, role: str) -> str:
    """The Nepali word, or nothing where the sex does not fit: a girl is not a boy."""
    male, female = ROLES[role]
    if subject in (I, WE, YOU, THEY):
        return male or female
    return female if subject.female else male


def role_subjects() -> list[Person]:
    kin = [
        my(owner, name)
        for owner in SPEAKERS
        for name in ("father", "mother", "brother", "sister", "friend", "son", "daughter", "uncle")
    ]
    return [*SPEAKERS, *SPEAKERS, *SPEAKERS, *EVERYONE[6:14], *kin]


def roles(rng):
    """ "I am a student" म विद्यार्थी हुँ: no article, हो, and the past थियो."""
    everyone = role_subjects()
    while True:
        subject, role = rng.choice(everyone), rng.choice(list(ROLES))
        name = role_word(subject, role)
        person = subject.english.split(" ")[-1]
        if not name or (role not in HAVE_BEEN and subject not in SPEAKERS) or person in ("teacher",):
            continue
        english_role = plural(role) if subject in (WE, THEY) else "[" + a(role).replace(" ", "] ", 1)
        parts = [("predicate", subject.english, role)]
        tense = rng.choices(("present", "past", "future"), (60, 25, 15))[0]
        form = rng.choices(("statement", "negation", "question"), (50, 28, 22))[0]
        past, negative = tense == "past", form == "negation"
        if tense == "future":
            if role not in HAVE_BEEN or form == "question":
                continue
            text = be_statement(subject.english, subject.number, negative=negative, future=True)
            yield pair(
                words(text, english_role), words(subject.nepali, name, Verb("हुनु").future(subject.who, negative)), *parts
            )
        elif form == "question":
            nepali = words("के", subject.nepali, name, equals(subject.who, past=past))
            yield pair(
                words(be_question(subject.english, subject.number, past), english_role), nepali, *parts, mark="?"
            )
        else:
            nepali = words(subject.nepali, name, equals(subject.who, negative, past))
            yield pair(
                words(be_statement(subject.english, subject.number, past, negative), english_role), nepali, *parts
            )


def boys_and_girls(rng):
    """The README's example and all its neighbours: every pronoun with boy, girl, student, teacher, in the
    present and the past.
    """
    for subject in SPEAKERS:
        for role in ("boy", "girl", "student", "teacher"):
            name = role_word(subject, role)
            english_role = plural(role) if subject in (WE, THEY) else "[" + a(role).replace(" ", "] ", 1)
            for past, negative in ((False, False), (False, True), (True, False)):
                if name:
                    text = words(be_statement(subject.english, subject.number, past, negative), english_role)
                    yield pair(
                        text,
                        words(subject.nepali, name, equals(subject.who, negative, past)),
                        ("predicate", subject.english, role),
                    )


def becoming(rng):
    """ "I want to be a doctor" म डाक्टर बन्न चाहन्छु, "he became a teacher" ऊ शिक्षक बन्यो."""
    become, want = Verb("बन्नु"), Verb("चाहनु")
    while True:
        subject, role = rng.choice(role_subjects()), rng.choice(HAVE_BEEN)
        name = role_word(subject, role)
        if not name or subject.english.split(" ")[-1] in ("father", "mother", "uncle"):
            continue
        role_text = plural(role) if subject in (WE, THEY) else a(role)
        parts, third = [("predicate", subject.english, role)], subject.number == "s"
        draw = rng.random()
        if draw < 0.4:
            verb = rng.choice(("be", "become"))
            nepali = f"{subject.nepali} {name} {become.to()} {want.present(subject.who)}"
            yield pair(f"{subject.english} {'wants' if third else 'want'} to {verb} {role_text}", nepali, *parts)
        elif draw < 0.6:
            nepali = f"{subject.nepali} {name} {become.to()} {want.present(subject.who, True)}"
            yield pair(f"{subject.english} {'does' if third else 'do'} not want to be {role_text}", nepali, *parts)
        elif draw < 0.8:
            yield pair(
                f"{subject.english} became {role_text}", f"{subject.nepali} {name} {become.past(subject.who)}", *parts
            )
        elif subject is not I:
            nepali = f"के {subject.nepali} {name} {become.to()} {want.present(subject.who)}"
            yield pair(
                f"{'does' if third else 'do'} {subject.english} want to be {role_text}", nepali, *parts, mark="?"
            )


SHOWN = {"this": "यो", "that": "त्यो", "it": "यो"}


def this_is(rng):
    """ "this is a book" यो किताब हो, "that is not my bag" त्यो मेरो झोला होइन, "these are big houses" यी ठूला घरहरू हुन्."""
    things = [noun for noun in NOUNS.values() if not noun.human and "bare" not in noun.tags]
    while True:
        noun, word, draw = rng.choice(things), rng.choice(("this", "that", "this", "that", "it")), rng.random()
        many = not noun.mass and draw < 0.2
        qualities = [q for q in ADJECTIVES.values() if noun in q.nouns()]
        mine = any(tag in noun.tags for tag in ("own", "pet", "farm", "dish", "container", "edible", "drink"))
        kind = rng.choices(("plain", "mine", "quality"), (40, 30 if mine else 0, 30 if qualities else 0))[0]
        if noun.number == "p" or (many and word == "it"):
            continue
        name, ours = (noun.plural, noun.plural_nepali) if many else (noun.english, noun.nepali)
        parts = [("shown", word, noun.english)]
        article = "" if noun.mass or many else "[" + a(noun.english).split(" ")[0] + "]"
        text, nepali = words(article, name), ours
        if kind == "mine":
            owner = rng.choice(SPEAKERS)
            owned = possessed(owner, noun, many=many)
            text, nepali = owned.english, owned.nepali
            parts.append(("owner", owner.own, noun.english))
        elif kind == "quality":
            quality = rng.choice(qualities)
            text = words(
                "" if noun.mass or many else "[" + a(quality.english).split(" ")[0] + "]", quality.english, name
            )
            nepali = f"{quality.agree(many=many)} {ours}"
            parts.append(("quality", quality.english, noun.english))
        shown, ours_shown = (
            ({"this": "these", "that": "those"}[word], {"this": "यी", "that": "ती"}[word])
            if many
            else (word, SHOWN[word])
        )
        yield _said(rng, shown, ours_shown, text, nepali, "they" if many else "he", parts)


def _said(rng, subject: str, ours: str, text: str, nepali: str, who: str, parts):
    """Is, is not, is it?, was: with हो."""
    number = "p" if who == "they" else "s"
    form = rng.choices(("statement", "negation", "question", "past"), (55, 20, 18, 7))[0]
    if form == "question":
        return pair(words(be_question(subject, number), text), words("के", ours, nepali, equals(who)), *parts, mark="?")
    past, negative = form == "past", form == "negation"
    return pair(
        words(be_statement(subject, number, past, negative), text),
        words(ours, nepali, equals(who, negative, past)),
        *parts,
    )


def kin_shown(rng):
    """ "this is my mother" (polite: हुनुहुन्छ), "she is my sister", "he is our teacher"."""
    names = (
        "father",
        "mother",
        "brother",
        "sister",
        "friend",
        "son",
        "daughter",
        "teacher",
        "uncle",
        "aunt",
        "grandfather",
        "neighbor",
    )
    for owner in SPEAKERS:
        for name in names:
            person = my(owner, name)
            for word, ours in (("this", "यो"), ("she" if person.female else "he", "उनी" if person.female else "ऊ")):
                # "this" of a younger girl stays यो … हो: what is pointed at is not addressed
                who = (
                    ("polite" if person.who == "polite" else "he")
                    if word == "this"
                    else "she"
                    if person.female
                    else "he"
                )
                if word != "this" and (
                    person.who == "polite" or (owner in (HE, SHE) and owner.own == ("her" if person.female else "his"))
                ):
                    continue
                shown = "यहाँ" if word == "this" and who == "polite" else ours
                if shown == "यहाँ":
                    shown = "उहाँ"  # a person to be respected is not pointed at with यो
                parts = [("predicate", word, f"{owner.own} {name}")]
                text, nepali = person.english, person.nepali
                yield pair(f"{word} is {text}", f"{shown} {nepali} {equals(who)}", *parts)
                yield pair(f"{word} is not {text}", f"{shown} {nepali} {equals(who, True)}", *parts)
                yield pair(f"is {word} {text}", f"के {shown} {nepali} {equals(who)}", *parts, mark="?")


def good_people(rng):
    """ "he is a good man" ऊ राम्रो मान्छे हो, "she is an honest teacher" उनी इमानदार शिक्षिका हुन्: adjective
    and noun agree.
    """
    attributes = ("good", "young", "old", "rich", "poor", "honest", "famous", "clever", "tall", "lazy")
    unsaid = ("boy", "girl", "woman", "guest", "soldier", "worker")
    roles_ = {**{role: names for role, names in ROLES.items() if role not in unsaid},
              "man": ("मान्छे", ""), "woman": ("", "महिला"), "friend": ("साथी", "साथी"),
              "boy": ("केटा", ""), "girl": ("", "केटी")}  # fmt: skip
    while True:
        subject = rng.choice((HE, SHE, HE, SHE, I, YOU, *EVERYONE[6:14], *kin_of_others()[:6]))
        role, quality = rng.choice(list(roles_)), OF_PEOPLE[rng.choice(attributes)]
        male, female = roles_[role]
        name = (male or female) if subject in (I, YOU) else female if subject.female else male
        if (
            not name
            or subject.english.split(" ")[-1] == "teacher"
            or (subject not in SPEAKERS and role in ("boy", "girl", "child"))
        ):
            continue
        form = rng.choices(("statement", "negation", "question"), (60, 20, 20))[0]
        text = "[" + a(quality.english).split(" ")[0] + f"] {quality.english} {role}"
        ours = f"{quality.agree(subject.female or not male)} {name}"
        parts = [("predicate", subject.english, role), ("quality", quality.english, role)]
        negative = form == "negation"
        nepali = words(subject.nepali, ours, equals(subject.who, negative))
        if form == "question":
            yield pair(words(be_question(subject.english, subject.number), text), "के " + nepali, *parts, mark="?")
        else:
            yield pair(words(be_statement(subject.english, subject.number, False, negative), text), nepali, *parts)


def noun_phrases(rng):
    """No verb at all: "a big house", "my red bag", "two black dogs"."""
    while True:
        quality, draw = rng.choice(list(ADJECTIVES.values())), rng.random()
        noun = rng.choice([n for n in quality.nouns() if n.number == "s"])
        parts = [("quality", quality.english, noun.english)]
        if "bare" in noun.tags or noun.mass:
            yield pair(f"{quality.english} {noun.english}", f"{quality.agree()} {noun.nepali}", *parts, mark="")
        elif draw < 0.4:
            yield pair(f"{a(quality.english)} {noun.english}", f"एउटा {quality.agree()} {noun.nepali}", *parts, mark="")
        elif draw < 0.7:
            owner = rng.choice(SPEAKERS)
            yield pair(
                f"{owner.own} {quality.english} {noun.english}",
                f"{owner.of()} {quality.agree()} {noun.nepali}",
                *parts,
                mark="",
            )
        else:
            yield pair(
                f"{quality.english} {noun.plural}", f"{quality.agree(many=True)} {noun.plural_nepali}", *parts, mark=""
            )
