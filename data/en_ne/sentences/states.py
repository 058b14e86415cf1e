"""How and where something is: छ at every person and level, past थियो. (Where one comes from is identity: हो.)"""

from data.en_ne.adjectives import ADJECTIVES, COLOURS, OF_PEOPLE, PARTICIPLES, STATES, Adjective
from data.en_ne.adverbs import PLACES, WHERE, Place
from data.en_ne.english import be_question, be_statement
from data.en_ne.nouns import NOUNS, OBLIQUE, Noun
from data.en_ne.people import EVERYONE, SPEAKERS, I, Person, kin_of_others, possessed, subjects
from data.en_ne.sentence import FORMS, Sentence, at, form_for, pair, put, words
from data.en_ne.verbs import Verb, be, equals


def agreed(subject: Person, quality: Adjective) -> str:
    return quality.agree(subject.female and not subject.many, subject.many)


def state(subject: Person, text: str, nepali: str, past: bool, form: str, parts, time=("", "")) -> Sentence:
    """Is, is not, is it?: with छ, at the subject's person and level."""
    negative, number = form == "negation", subject.number
    question = words(be_question(subject.english, number, past), text, time[0])
    statement = words(be_statement(subject.english, number, past, negative), text, time[0])
    ours = words(subject.nepali, time[1], nepali, be(subject.who, negative, past))
    return put(form, question, statement, ours, *parts)


def people_are(rng):
    """ "she is tall" उनी अग्ली छिन्, "my father was sick yesterday": adjectives of people, with छ."""
    times = {False: {"today": "आज", "now": "अहिले"}, True: {"yesterday": "हिजो", "last week": "गत हप्ता"}}
    while True:
        subject, quality = subjects(rng), rng.choice(list(OF_PEOPLE.values()))
        if (quality.english == "beautiful" and not subject.female) or (quality.english == "strong" and subject.female):
            continue
        past, form = rng.random() < 0.25 and quality.english not in ("old", "young"), form_for(subject, rng)
        time = rng.choice(list(times[past].items())) if quality.english in STATES and rng.random() < 0.4 else ("", "")
        very = rng.random() < 0.18 and form == "statement" and quality.comparative != "-"
        text = words("very" if very else "", quality.english)
        nepali = words("धेरै" if very else "", agreed(subject, quality))
        yield state(subject, text, nepali, past, form, [("quality", quality.english, subject.english)], time)


HOMES = {
    "Nepal": "नेपाल", "India": "भारत", "Kathmandu": "काठमाडौँ", "Pokhara": "पोखरा", "[the] village": "गाउँ",
    "[the] city": "सहर", "this city": "यस सहर",
}  # fmt: skip


def from_where(rng):
    """ "she is from India" उनी भारतबाट हुन्: one's origin is part of what one is, so हो."""
    for subject in (*EVERYONE[:14], *kin_of_others()):
        number = subject.number
        for place, ours in HOMES.items():
            for form in FORMS[: 2 + (subject is not I)]:
                if subject not in SPEAKERS and rng.random() < 0.75:
                    continue
                nepali = words(subject.nepali, ours + "बाट", equals(subject.who, form == "negation"))
                question = f"{be_question(subject.english, number)} from {place}"
                statement = f"{be_statement(subject.english, number, negative=form == 'negation')} from {place}"
                yield put(form, question, statement, nepali, ("place", subject.english, f"from {place}"))
        if subject is not I:
            text = f"where {be_question(subject.english, number)} from"
            nepali = f"{subject.nepali} कहाँबाट {equals(subject.who)}"
            yield pair(text, nepali, ("place", subject.english, "from where"), mark="?")


def tired(rng):
    """ "I am tired" म थाकेको छु: in Nepali one has become tired, so the verb shows person and level."""
    while True:
        subject, (english, infinitive) = subjects(rng), rng.choice(list(PARTICIPLES.items()))
        past, form, number = rng.random() < 0.3, form_for(subject, rng), subject.number
        time = rng.choice((("", ""), ("", ""), ("yesterday", "हिजो") if past else ("today", "आज")))
        very, ours_very = ("very", "धेरै") if form == "statement" and rng.random() < 0.3 else ("", "")
        negative = form == "negation"
        nepali = words(subject.nepali, time[1], ours_very, Verb(infinitive).perfect(subject.who, negative, past))
        question = words(be_question(subject.english, number, past), english, time[0])
        statement = words(be_statement(subject.english, number, past, negative), very, english, time[0])
        yield put(form, question, statement, nepali, ("quality", english, subject.english))


CHANGING = (
    "good", "bad", "beautiful", "expensive", "cheap", "hot", "cold", "tasty", "clean", "dirty", "easy", "difficult",
    "empty",
)  # fmt: skip


EXCESSIVE = ("big", "small", "expensive", "hot", "cold", "long", "short", "heavy", "difficult", "old", "dirty", "tall")


def things_are(rng):
    """ "the water is cold" पानी चिसो छ, "these houses are big" यी घरहरू ठूला छन्, "my room was dirty"."""
    while True:
        quality = rng.choice(list(ADJECTIVES.values()))
        noun = rng.choice(quality.nouns())
        thing, parts = thing_subject(noun, rng)
        past, form = quality.english in CHANGING and rng.random() < 0.3, form_for(thing, rng)
        very = form == "statement" and quality.english not in (*COLOURS, "empty") and rng.random() < 0.2
        much = rng.choice(("very", "too") if quality.english in EXCESSIVE else ("very",)) if very else ""
        nepali = words("धेरै" if very else "", quality.agree(many=thing.who == "they"))
        parts = [("quality", quality.english, noun.english), *parts]
        yield state(thing, words(much, quality.english), nepali, past, form, parts)


def thing_subject(noun: Noun, rng) -> tuple[Person, list]:
    """The thing as a subject: the, this, that, my; one or several."""
    many = not noun.mass and rng.random() < 0.22
    who, number = ("they", "p") if many else ("he", noun.number)
    name, ours = noun.forms(many)
    draw = rng.random()
    if "bare" in noun.tags:
        return Person(name, ours, who, number), []
    if draw > 0.75 and ("own" in noun.tags or "pet" in noun.tags):
        owner = rng.choice(SPEAKERS)
        owned = possessed(owner, noun, many=many)
        return Person(owned.english, owned.nepali, who, number), [("owner", owner.own, noun.english)]
    if draw > 0.5 and noun.number == "s":
        word, shown = rng.choice((("these", "यी"), ("those", "ती")) if many else (("this", "यो"), ("that", "त्यो")))
        return Person(f"{word} {name}", f"{shown} {ours}", who, number), []
    return Person(f"the {name}" if many else f"[the] {name}", ours, who, number), []


def people_at(rng):
    """ "my mother is at home" मेरी आमा घरमा हुनुहुन्छ: place, with छ."""
    times = {False: ("now", "अहिले"), True: ("yesterday", "हिजो")}
    while True:
        subject, place = subjects(rng), rng.choice(WHERE)
        text, nepali = at(place, rng)
        form, draw = form_for(subject, rng), rng.random()
        past = draw < 0.3
        time = times[past] if rng.random() < 0.25 else ("", "")
        parts = [("place", subject.english, place.key)]
        if draw > 0.88 and form != "question":
            negative, time = form == "negation", rng.choice((("tomorrow", "भोलि"), ("", "")))
            ours = words(subject.nepali, time[1], nepali, Verb("हुनु").future(subject.who, negative))
            text = words(be_statement(subject.english, subject.number, False, negative, True), text, time[0])
            yield pair(text, ours, *parts)
        else:
            yield state(subject, text, nepali, past, form, parts, time)


# Where things lie: English preposition, what follows the Nepali noun, and the supports it goes with.
OUTDOORS = ("house", "school", "temple", "river", "tree", "shop", "hospital", "market")
RELATIONS = (
    ("on", "मा", ("table", "chair", "bed")),
    ("under", "मुनि", ("table", "chair", "bed", "tree")),
    ("in", "मा", ("bag", "box", "room", "car", "basket", "kitchen")),
    ("near", "नजिक", ("door", "window", "table", "bed", *OUTDOORS)),
    ("behind", "को पछाडि", ("house", "door", "school", "temple", "shop", "tree")),
    ("in front of", "को अगाडि", ("house", "school", "temple", "shop", "hospital")),
    ("inside", "भित्र", ("room", "box", "bag")),
)
LYING = (
    "book", "bag", "pen", "phone", "key", "hat", "knife", "letter", "photo", "cup", "watch", "umbrella", "ball",
    "apple", "money", "newspaper", "ticket", "gift", "blanket", "bottle", "cat", "clothes", "shoes", "paper", "map",
)  # fmt: skip
PUBLIC = ("river", "hospital", "market", "school", "temple", "tree")  # nobody says "my river"
STANDING = ("dog", "cat", "car", "bicycle", "tree", "horse", "bus", "cow", "goat", "motorcycle")


def things_at(rng):
    """ "the book is on the table" किताब टेबलमा छ, "the cat is under this bed" बिरालो यस खाटमुनि छ."""
    while True:
        preposition, ending, supports = rng.choice(RELATIONS)
        support = NOUNS[rng.choice(supports)]
        noun = NOUNS[rng.choice(STANDING if support.english in OUTDOORS else LYING)]
        if noun == support:
            continue
        thing, parts = thing_subject(noun, rng)
        word, prefix = rng.choice(
            (("[the]", ""), ("[the]", ""), ("[the]", ""), ("this", OBLIQUE["this"]), ("my", "मेरो"))
        )
        if word == "my" and (thing.english.startswith("my ") or support.english in PUBLIC):
            continue
        text, ours = f"{preposition} {word} {support.english}", words(prefix, support.nepali + ending)
        parts = [*parts, (f"place {preposition}", noun.english, support.english)]
        yield state(thing, text, ours, rng.random() < 0.15, form_for(thing, rng), parts)


PLACES_SHOWN = (
    "school", "hospital", "market", "temple", "hotel", "bank", "library", "park", "shop", "office", "airport",
    "river",
)  # fmt: skip
BESIDE = (("near", "नजिक"), ("behind", "को पछाडि"), ("in front of", "को अगाडि"), ("far from", "बाट टाढा"))
AFAR = (("here", "यहाँ"), ("there", "त्यहाँ"), ("far", "टाढा"), ("very far", "धेरै टाढा"))


def places_at(rng):
    """ "the hospital is near the market" अस्पताल बजारनजिक छ; "is the temple far?" and so on."""
    while True:
        one, two = rng.sample(PLACES_SHOWN, 2)
        thing, draw = the_place(PLACES[one], rng), rng.random()
        if draw < 0.45:
            preposition, ending = rng.choice(BESIDE)
            text, ours = f"{preposition} [the] {two}", PLACES[two].nepali + ending
        elif draw < 0.7:
            text, ours = rng.choice(AFAR)
        else:
            quality = rng.choice([q for q in ADJECTIVES.values() if NOUNS.get(one) in q.nouns()] or [ADJECTIVES["big"]])
            text, ours = quality.english, quality.agree()
        parts = [("place of place", one, two if draw < 0.45 else text)]
        yield state(thing, text, ours, False, form_for(thing, rng), parts)


def the_place(place: Place, rng) -> Person:
    owner = rng.choice(SPEAKERS)
    if rng.random() < 0.7 or place.key not in ("school", "office", "shop", "hotel"):
        return Person(f"[the] {place.key}", place.nepali, "he", "s")
    return Person(f"{owner.own} {place.key}", f"{owner.of()} {place.nepali}", "he", "s")
