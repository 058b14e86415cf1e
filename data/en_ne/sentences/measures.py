"""Comparing, counting, prices and ages."""

from data.en_ne.adjectives import ADJECTIVES, COLOURS, OF_PEOPLE_COMPARED
from data.en_ne.complements import owner_for
from data.en_ne.english import BE, be_question, be_statement
from data.en_ne.nouns import DEMONSTRATIVES, NOUNS, NUMBERS, OBLIQUE, Noun, counted
from data.en_ne.people import NAMED, NAMES, SPEAKERS, YOU, I, Person, my, possessed, subjects
from data.en_ne.sentence import form_for, pair, put, words
from data.en_ne.sentences.states import agreed
from data.en_ne.verbs import Verb, be

COMPARABLE = [
    quality for quality in OF_PEOPLE_COMPARED.values() if quality.comparative != "-" and quality.english != "good"
]


def compared_with(subject: Person, rng) -> Person:
    """A pronoun, a name, a brother, sister or friend: never one's own child or parent."""
    draw = rng.random()
    if draw < 0.6:
        near = {"i": ("we",), "we": ("i",)}.get(subject.who, ())
        return rng.choice([p for p in SPEAKERS if p.who not in (subject.who, *near) and p.own != subject.own])
    if draw < 0.75:
        return rng.choice([person for person in NAMED if person != subject])
    owner, noun = owner_for(subject, rng), NOUNS[rng.choice(("brother", "sister", "friend"))]
    own = possessed(owner, noun, subject)
    return Person(own.english, own.nepali, noun.person, "s", noun.female)


def comparisons(rng):
    """ "she is taller than me" उनी मभन्दा अग्ली छिन्: भन्दा "than" follows the standard, the adjective stays as it is."""
    while True:
        subject, quality = subjects(rng), rng.choice(COMPARABLE)
        other = compared_with(subject, rng)
        if quality.english == "beautiful" and not (subject.female and other.female):
            continue
        if quality.english == "strong" and subject.female:
            continue
        form, past, number = form_for(subject, rng, (60, 18, 22)), rng.random() < 0.08, subject.number
        negative = form == "negation"
        nepali = words(subject.nepali, other.nepali + "भन्दा", agreed(subject, quality), be(subject.who, negative, past))
        text = words(quality.comparative, "than", other.object)
        parts = [("compared", subject.english, other.object), ("quality", quality.english, subject.english)]
        asked = f"{be_question(subject.english, number, past)} {text}"
        yield put(form, asked, f"{be_statement(subject.english, number, past, negative)} {text}", nepali, *parts)


# Things are compared with their like.
KINDS = (
    "fruit", "drink", "vehicle", "furniture", "building", "cloth", "animal", "land", "language", "subject", "read",
    "vegetable",
)  # fmt: skip


def thing_comparisons(rng):
    """ "this house is bigger than that house" यो घर त्यस घरभन्दा ठूलो छ, "the elephant is bigger than the horse"."""
    uncompared = ("empty", "tasty", *COLOURS)
    qualities = [q for q in ADJECTIVES.values() if q.comparative != "-" and q.english not in uncompared]
    while True:
        quality = rng.choice(qualities)
        nouns = [noun for noun in quality.nouns() if noun.number == "s" and noun.english != "news"]
        one, draw = rng.choice(nouns), rng.random()
        alike = [n for n in nouns if n != one and any(tag in n.tags and tag in one.tags for tag in KINDS)]
        parts = [("quality", quality.english, one.english)]
        if alike and (draw < 0.45 or one.mass):
            other = rng.choice(alike)
            left, right = _the(one), _the(other)
            parts.append(("compared", one.english, other.english))
        elif one.mass:
            continue
        elif draw < 0.75 or "own" not in one.tags:
            left = (f"this {one.english}", f"{DEMONSTRATIVES['this']} {one.nepali}")
            right = (f"that {one.english}", f"{OBLIQUE['that']} {one.nepali}")
        else:
            left, right = ((f"{p.own} {one.english}", f"{p.of()} {one.nepali}") for p in rng.sample(SPEAKERS, 2))
        form = form_for(YOU, rng, (60, 18, 22))
        nepali = words(left[1], right[1] + "भन्दा", quality.agree(), be("he", form == "negation"))
        text = words(quality.comparative, "than", right[0])
        said = f"{be_statement(left[0], 's', False, form == 'negation')} {text}"
        yield put(form, f"{be_question(left[0], 's')} {text}", said, nepali, *parts)


def _the(noun: Noun) -> tuple[str, str]:
    return (noun.english, noun.nepali) if "bare" in noun.tags else (f"[the] {noun.english}", noun.nepali)


SUPERLATIVES = {
    "big": "biggest", "small": "smallest", "good": "best", "old": "oldest", "new": "newest", "tall": "tallest",
    "long": "longest", "expensive": "most expensive", "beautiful": "most beautiful", "heavy": "heaviest",
    "cheap": "cheapest", "strong": "strongest",
}  # fmt: skip


def superlatives(rng):
    """ "this is the biggest house" यो सबैभन्दा ठूलो घर हो; "Ram is the tallest" राम सबैभन्दा अग्लो छ ("than all")."""
    while True:
        if rng.random() < 0.6:
            quality = ADJECTIVES[rng.choice(list(SUPERLATIVES))]
            noun, word = rng.choice([noun for noun in quality.nouns() if not noun.mass]), rng.choice(("this", "that"))
            nepali = f"{DEMONSTRATIVES[word]} सबैभन्दा {quality.agree()} {noun.nepali} हो"
            text = f"{word} is the {SUPERLATIVES[quality.english]} {noun.english}"
            yield pair(text, nepali, ("quality", quality.english, noun.english))
            continue
        subject, quality = subjects(rng), OF_PEOPLE_COMPARED[rng.choice(("tall", "old", "strong"))]
        if subject.number != "p" and not (quality.english == "strong" and subject.female):
            nepali = words(subject.nepali, "सबैभन्दा", agreed(subject, quality), be(subject.who))
            text = f"{subject.english} {BE[subject.number][0]} the {SUPERLATIVES[quality.english]}"
            yield pair(text, nepali, ("quality", quality.english, subject.english))


def counting(rng):
    """Bare counts: "three books" तीनवटा किताब, "two friends" दुई जना साथी."""
    nouns = [n for n in NOUNS.values() if not n.mass and ("count" in n.tags or (n.human and n.person != "polite"))]
    while True:
        noun, word = rng.choice(nouns), rng.choice(list(NUMBERS))
        phrase = counted(noun, word)
        yield pair(phrase.english, phrase.nepali, ("number", word, noun.english), mark="")


PRICED = (
    "book", "pen", "bag", "shirt", "umbrella", "ticket", "phone", "watch", "apple", "mango", "cup", "hat", "bicycle",
    "computer", "radio", "chair", "table", "knife", "map", "milk", "tea", "fish", "meat", "sugar", "coffee",
)  # fmt: skip
DEAR = ("phone", "watch", "bicycle", "chair", "table", "computer", "radio")
RUPEES = {
    "ten": "दस", "twenty": "बीस", "thirty": "तीस", "fifty": "पचास", "one hundred": "एक सय", "two hundred": "दुई सय",
    "five hundred": "पाँच सय", "one thousand": "एक हजार", "two thousand": "दुई हजार",
}  # fmt: skip


def prices(rng):
    """ "how much is this book?" यस किताबको कति हो?, "this pen costs ten rupees" यस कलमको दस रुपैयाँ पर्छ."""
    for word, ours in OBLIQUE.items():
        yield pair(f"how much is {word}", f"{ours}को कति हो", mark="?")
    while True:
        noun, word = NOUNS[rng.choice(PRICED)], rng.choice(("this", "that", "[the]"))
        (amount, rupees), thing = rng.choice(list(RUPEES.items())), words(OBLIQUE.get(word, ""), f"{noun.nepali}को")
        parts = [("price", word, noun.english)]
        if rng.random() < 0.35:
            yield pair(f"how much is {word} {noun.english}", f"{thing} कति हो", *parts, mark="?")
        elif ("thousand" in amount) == (noun.english in DEAR):
            parts.append(("rupees", amount, noun.english))
            yield pair(f"{word} {noun.english} costs {amount} rupees", f"{thing} {rupees} रुपैयाँ पर्छ", *parts)


AGES = ("five", "six", "seven", "eight", "nine", "ten", "twelve", "fifteen", "twenty", "thirty", "fifty")


def ages_and_names(rng):
    """ "he is ten years old" ऊ दस वर्षको भयो ("has become"), "my name is Ram" मेरो नाम राम हो."""
    mine = (my(I, name) for name in ("brother", "sister", "son", "daughter", "friend"))
    for subject in (*SPEAKERS, *mine, *(my(YOU, name) for name in ("brother", "son", "daughter"))):
        if subject.number == "p" and subject is not YOU:
            continue
        name = f"{subject.of()} नाम"
        yield pair(f"what is {subject.whose} name", f"{name} के हो", ("name", subject.english, "what"), mark="?")
        for english, nepali, female in NAMES:
            if subject in (I, YOU) or subject.female == female:
                yield pair(
                    f"{subject.whose} name is {english}", f"{name} {nepali} हो", ("name", subject.english, english)
                )
        for word in AGES:
            if (subject.nepali in ("म", "तपाईं") and AGES.index(word) < 7) or (
                word in ("thirty", "fifty") and subject.english.endswith(("son", "daughter"))
            ):
                continue  # small children do not talk like this, and children are not fifty
            years = f"{NUMBERS[word]} {'वर्षकी' if subject.female else 'वर्षको'}"
            text = f"{subject.english} {BE[subject.number][0]} {word} years old"
            yield pair(text, f"{subject.nepali} {years} {Verb('हुनु').past(subject.who)}", ("age", subject.english, word))
