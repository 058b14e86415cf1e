"""How and where something is: छ at every person and level, and its past थियो. (Where one comes from is
identity: हो.)
"""

from data.en_ne.adjectives import ADJECTIVES, OF_PEOPLE, PARTICIPLES, STATES, Adjective
from data.en_ne.adverbs import PLACES, WHERE, Place
from data.en_ne.english import be_question, be_statement
from data.en_ne.nouns import NOUNS, Noun
from data.en_ne.people import EVERYONE, SPEAKERS, I, Person, kin_of_others, possessed, subjects
from data.en_ne.sentence import at, pair, words
from data.en_ne.verbs import Verb, be, equals


def people_are(rng):
    """ "she is tall" उनी अग्ली छिन्, "my father was sick yesterday": adjectives of people, with छ."""
    times = {False: {"today": "आज", "now": "अहिले"}, True: {"yesterday": "हिजो", "last week": "गत हप्ता"}}
    while True:
        subject = subjects(rng)
        quality = rng.choice(list(OF_PEOPLE.values()))
        if (quality.english == "beautiful" and not subject.female) or (quality.english == "strong" and subject.female):
            continue
        past, form = rng.random() < 0.25, rng.choices(("statement", "negation", "question"), (50, 28, 22))[0]
        if form == "question" and subject is I:
            continue
        time = rng.choice(list(times[past].items())) if quality.english in STATES and rng.random() < 0.4 else ("", "")
        very = rng.random() < 0.18 and form == "statement" and quality.comparative != "-"
        text, nepali = (
            words("very" if very else "", quality.english),
            words("धेरै" if very else "", agreed(subject, quality)),
        )
        parts = [("quality", quality.english, subject.english)]
        yield state(subject, text, nepali, past, form, parts, time)


def agreed(subject: Person, quality: Adjective) -> str:
    return quality.agree(subject.female and not subject.many, subject.many)


def state(subject: Person, text: str, nepali: str, past: bool, form: str, parts, time=("", "")):
    """Is, is not, is it?: with छ, at the subject's person and level."""
    negative = form == "negation"
    ours = words(subject.nepali, time[1], nepali, be(subject.who, negative, past))
    if form == "question":
        return pair(
            words(be_question(subject.english, subject.number, past), text, time[0]), "के " + ours, *parts, mark="?"
        )
    return pair(words(be_statement(subject.english, subject.number, past, negative), text, time[0]), ours, *parts)


def from_where(rng):
    """ "she is from India" उनी भारतबाट हुन्: one's origin is part of what one is, so हो."""
    places = (("Nepal", "नेपाल"), ("India", "भारत"), ("Kathmandu", "काठमाडौँ"), ("Pokhara", "पोखरा"),
              ("[the] village", "गाउँ"), ("this city", "यस सहर"),
              ("[the] city", "सहर"))  # fmt: skip
    everyone = [*EVERYONE[:14], *kin_of_others()]
    for subject in everyone:
        for place, ours in places:
            parts = [("place", subject.english, f"from {place}")]
            for form in ("statement", "negation", "question"):
                if rng.random() < 0.6 or (form == "question" and subject is I):
                    continue
                nepali = words(subject.nepali, ours + "बाट", equals(subject.who, form == "negation"))
                if form == "question":
                    yield pair(
                        f"{be_question(subject.english, subject.number)} from {place}", "के " + nepali, *parts, mark="?"
                    )
                else:
                    text = be_statement(subject.english, subject.number, negative=form == "negation")
                    yield pair(f"{text} from {place}", nepali, *parts)
        text = f"where {be_question(subject.english, subject.number)} from"
        if subject is not I:
            yield pair(
                text,
                f"{subject.nepali} कहाँबाट {equals(subject.who)}",
                ("place", subject.english, "from where"),
                mark="?",
            )


def tired(rng):
    """ "I am tired" म थाकेको छु: in Nepali one has become tired, so the verb shows person and level."""
    while True:
        subject, (english, infinitive) = subjects(rng), rng.choice(list(PARTICIPLES.items()))
        past, form = rng.random() < 0.3, rng.choices(("statement", "negation", "question"), (50, 28, 22))[0]
        if form == "question" and subject is I:
            continue
        time = rng.choice((("", ""), ("", ""), ("yesterday", "हिजो") if past else ("today", "आज")))
        very = form == "statement" and rng.random() < 0.3
        ours = words(
            subject.nepali,
            time[1],
            "धेरै" if very else "",
            Verb(infinitive).perfect(subject.who, form == "negation", past),
        )
        parts = [("quality", english, subject.english)]
        if form == "question":
            text = words(be_question(subject.english, subject.number, past), english, time[0])
            yield pair(text, "के " + ours, *parts, mark="?")
        else:
            text = words(
                be_statement(subject.english, subject.number, past, form == "negation"),
                "very" if very else "",
                english,
                time[0],
            )
            yield pair(text, ours, *parts)


def things_are(rng):
    """ "the water is cold" पानी चिसो छ, "these houses are big" यी घरहरू ठूला छन्, "my house was small"."""
    while True:
        quality = rng.choice(list(ADJECTIVES.values()))
        noun = rng.choice(quality.nouns())
        thing, parts = thing_subject(noun, rng)
        past, form = rng.random() < 0.18, rng.choices(("statement", "negation", "question"), (55, 25, 20))[0]
        very = form == "statement" and rng.random() < 0.2
        text, nepali = (
            words(rng.choice(("very", "very", "too")) if very else "", quality.english),
            words("धेरै" if very else "", quality.agree(many=thing.who == "they")),
        )
        yield state(thing, text, nepali, past, form, [("quality", quality.english, noun.english), *parts])


def thing_subject(noun: Noun, rng) -> tuple[Person, list]:
    """The thing as a subject: the, this, that, my; one or several."""
    many = not noun.mass and rng.random() < 0.22
    who, number = ("they", "p") if many else ("he", noun.number)
    name, ours = (noun.plural, noun.plural_nepali) if many else (noun.english, noun.nepali)
    draw = rng.random()
    if "bare" in noun.tags:
        return Person(name, ours, who, number), []
    if draw < 0.5 or (noun.number == "p" and draw < 0.75):
        return Person(f"[the] {name}", ours, who, number), []
    if draw < 0.75 or ("own" not in noun.tags and "pet" not in noun.tags):
        word, shown = rng.choice((("these", "यी"), ("those", "ती")) if many else (("this", "यो"), ("that", "त्यो")))
        if noun.number == "p":
            return Person(f"[the] {name}", ours, who, number), []
        return Person(f"{word} {name}", f"{shown} {ours}", who, number), []
    owner = rng.choice(SPEAKERS)
    owned = possessed(owner, noun, many=many)
    return Person(owned.english, owned.nepali, who, number), [("owner", owner.own, noun.english)]


def people_at(rng):
    """ "my mother is at home" मेरी आमा घरमा हुनुहुन्छ: place, with छ."""
    times = {False: ("now", "अहिले"), True: ("yesterday", "हिजो")}
    while True:
        subject, place = subjects(rng), rng.choice(WHERE)
        text, nepali = at(place, rng)
        form, draw = rng.choices(("statement", "negation", "question"), (50, 25, 25))[0], rng.random()
        if form == "question" and subject is I:
            continue
        past = draw < 0.3
        time = times[past] if rng.random() < 0.25 else ("", "")
        parts = [("place", subject.english, place.key)]
        if draw > 0.88 and form != "question":
            negative, time = form == "negation", rng.choice((("tomorrow", "भोलि"), ("", "")))
            ours = words(subject.nepali, time[1], nepali, Verb("हुनु").future(subject.who, negative))
            yield pair(
                words(be_statement(subject.english, subject.number, negative=negative, future=True), text, time[0]),
                ours,
                *parts,
            )
        else:
            yield state(subject, text, nepali, past, form, parts, time)


# Where things lie: English preposition, what is joined to the Nepali noun, and the supports it goes with.
RELATIONS = (
    ("on", "मा", ("table", "chair", "bed", "box")), ("under", "मुनि", ("table", "chair", "bed", "tree")),
    ("in", "मा", ("bag", "box", "room", "car", "basket", "kitchen")), ("near", " नजिक", ("door",
    "window", "house", "school", "temple",
     "river", "tree", "table", "bed", "shop", "hospital", "market")), ("behind", "को पछाडि",
     ("house", "door", "school", "temple", "shop", "tree")),
    ("in front of", "को अगाडि", ("house", "school", "temple", "shop", "hospital")), ("inside",
    "भित्र", ("house", "room", "box", "bag")),
)  # fmt: skip
LYING = ("book", "bag", "pen", "phone", "key", "hat", "knife", "letter", "photo", "cup", "watch",
         "umbrella", "ball", "apple", "money",
         "newspaper", "ticket", "gift", "blanket", "bottle", "cat", "clothes", "shoes", "paper", "map")  # fmt: skip
PUBLIC = ("river", "hospital", "market", "school", "temple", "tree")  # nobody says "my river"
STANDING = ("dog", "cat", "car", "bicycle", "tree", "horse", "bus", "cow", "goat", "motorcycle")


def things_at(rng):
    """ "the book is on the table" किताब टेबलमा छ, "the cat is under the bed" बिरालो खाटमुनि छ."""
    while True:
        preposition, ending, supports = rng.choice(RELATIONS)
        support = NOUNS[rng.choice(supports)]
        outdoors = support.english in ("house", "school", "temple", "river", "tree", "shop", "hospital", "market")
        noun = NOUNS[rng.choice(STANDING if outdoors and preposition != "in" else LYING)]
        if noun == support or (preposition == "inside" and noun.english in STANDING[2:]):
            continue
        thing, parts = thing_subject(noun, rng)
        form = rng.choices(("statement", "negation", "question"), (55, 20, 25))[0]
        support_text, prefix = rng.choice(
            (("[the] ", ""), ("[the] ", ""), ("[the] ", ""), ("this ", "यस "), ("my ", "मेरो "))
        )
        if prefix and (thing.english.split(" ")[0] == "my" or (support_text == "my " and support.english in PUBLIC)):
            continue
        text, ours = f"{preposition} {support_text}{support.english}", f"{prefix}{support.nepali}{ending}"
        parts = [*parts, (f"place {preposition}", noun.english, support.english)]
        yield state(thing, text, ours, rng.random() < 0.15, form, parts)


def places_at(rng):
    """ "the hospital is near the market" अस्पताल बजार नजिक छ; "is the temple far?" and so on."""
    keys = (
        "school",
        "hospital",
        "market",
        "temple",
        "hotel",
        "bank",
        "library",
        "park",
        "shop",
        "office",
        "airport",
        "river",
    )
    while True:
        one, two = rng.sample(keys, 2)
        thing = the_place(PLACES[one], rng)
        form = rng.choices(("statement", "negation", "question"), (50, 20, 30))[0]
        draw = rng.random()
        if draw < 0.45:
            preposition, ending = rng.choice(
                (("near", " नजिक"), ("behind", "को पछाडि"), ("in front of", "को अगाडि"), ("far from", "बाट टाढा"))
            )
            text, ours = f"{preposition} [the] {two}", PLACES[two].nepali + ending
        elif draw < 0.7:
            text, ours = rng.choice(
                (("here", "यहाँ"), ("there", "त्यहाँ"), ("near", "नजिक"), ("far", "टाढा"), ("very far", "धेरै टाढा"))
            )
            if text == "near":
                continue
        else:
            quality = rng.choice([q for q in ADJECTIVES.values() if NOUNS.get(one) in q.nouns()] or [ADJECTIVES["big"]])
            text, ours = quality.english, quality.agree()
        yield state(thing, text, ours, False, form, [("place of place", one, two if draw < 0.45 else text)])


def the_place(place: Place, rng) -> Person:
    owner = rng.choice(SPEAKERS)
    if rng.random() < 0.7 or place.key not in ("school", "office", "shop", "hotel"):
        return Person(f"[the] {place.key}", place.nepali, "he", "s")
    return Person(f"{owner.own} {place.key}", f"{owner.of()} {place.nepali}", "he", "s")
