"""Having and there being: मसँग किताब छ (a thing is with me), मेरा दुई जना भाइ छन् (kin are mine), टेबलमा किताब
छ (there is).
"""

from data.en_ne import english
from data.en_ne.adjectives import described
from data.en_ne.adverbs import PLACES
from data.en_ne.nouns import NOUNS, Noun, Phrase, bare, count, counted, indefinite, some, tagged
from data.en_ne.people import SPEAKERS, YOU, I, subjects
from data.en_ne.sentence import at, pair, words
from data.en_ne.verbs import be

HAVE = english.EnglishVerb("have", "had", "had")


def amount(noun: Noun, rng) -> Phrase:
    """a book, two books, many books, water."""
    phrase = described(noun, False, rng) if rng.random() < 0.18 else None
    if phrase and not phrase.english.startswith(("the ", "this", "that")):
        return phrase
    if noun.mass:
        return bare(noun)
    draw = rng.random()
    if draw < 0.6:
        return indefinite(noun)
    if draw < 0.9:
        return counted(
            noun,
            rng.choice(("one", "two", "three", "four", "five", "six", "seven", "eight", "ten", "twelve", "twenty")),
        )
    return some(noun, rng.choice(("some", "many", "a lot of")))


def is_there(number: str, negative: bool = False, past: bool = False) -> str:
    """What exists decides the verb; counted things stay singular in everyday Nepali only when they are things:
    दुईवटा किताब छन्.
    """
    return be("they" if number == "p" else "he", negative, past)


def have_things(rng):
    """ "I have a book" मसँग एउटा किताब छ; "he does not have money" ऊसँग पैसा छैन (a negation counts nothing: no एउटा)."""
    things = tagged(
        "own", "vehicle", "edible", "drink", "container", "grocery", "pet", "farm", "dish", "money", "paper", "time"
    )
    things = [noun for noun in things if noun.english not in ("house", "shop", "room", "garden", "bus")]
    while True:
        subject, noun = subjects(rng), rng.choice(things)
        form, past = rng.choices(("statement", "negation", "question"), (50, 25, 25))[0], rng.random() < 0.2
        if form == "question" and subject is I:
            continue
        thing = amount(noun, rng)
        plain = thing.english.startswith(("a ", "an ")) and not thing.english.startswith("a lot")
        if form == "negation" and not (plain or noun.mass):
            continue
        parts = [("owner", subject.english, noun.english)]
        if thing.quality:
            if form == "negation":
                continue
            parts.append(("quality", thing.quality, noun.english))
        ours = noun.nepali if form == "negation" else thing.nepali
        several = "p" if thing.plural and not noun.mass else "s"
        nepali = words(subject.sanga, ours, is_there(several, form == "negation", past))
        tense = "past" if past else "present"
        if form == "question":
            yield pair(
                words(english.question(subject.english, HAVE, tense, subject.number), thing.english),
                "के " + nepali,
                *parts,
                mark="?",
            )
        else:
            text = english.statement(subject.english, HAVE, tense, subject.number, form == "negation")
            what = thing.english
            if form == "negation" and rng.random() < 0.3:  # "I have no money"
                text, what = english.statement(subject.english, HAVE, tense, subject.number), f"no {noun.english}"
            yield pair(words(text, what), nepali, *parts)


def have_kin(rng):
    """ "I have two brothers" मेरा दुई जना भाइ छन्, "she has a son" उनको एक जना छोरा छ: kin are not "with" one
    but one's own.
    """
    kin = ("brother", "sister", "son", "daughter", "friend", "uncle", "aunt", "older brother", "older sister")
    while True:
        subject, noun, word = (
            subjects(rng),
            NOUNS[rng.choice(kin)],
            rng.choice(("one", "a", "a", "two", "two", "three", "four", "five", "many")),
        )
        form, many = rng.choices(("statement", "negation", "question"), (60, 18, 22))[0], word not in ("one", "a")
        if (form == "question" and subject is I) or (form == "negation" and word != "a"):
            continue
        if noun.english in ("son", "daughter") and any(
            young in subject.english for young in ("child", "boy", "girl", "student")
        ):
            continue
        name = noun.plural if many else noun.english
        text = english.a(name) if word == "a" else f"{word} {name}"
        who = "polite" if noun.person == "polite" else "they" if many else "she" if noun.female else "he"
        number = "" if form == "negation" else "धेरै" if word == "many" else count("one" if word == "a" else word, noun)
        nepali = words(subject.of(noun.female, many), number, noun.nepali, be(who, form == "negation"))
        parts = [("owner", subject.english, noun.english), ("number", word, noun.english)]
        if form == "question":
            yield pair(
                words(english.question(subject.english, HAVE, "present", subject.number), text),
                "के " + nepali,
                *parts,
                mark="?",
            )
        else:
            yield pair(
                words(english.statement(subject.english, HAVE, "present", subject.number, form == "negation"), text),
                nepali,
                *parts,
            )


# Where things are found: place phrase in both languages, and the tags of what is there.
SCENES = (
    ("on [the] table", "टेबलमा", "dish book pen phone key newspaper fruit bread map photo letter knife bottle"),
    ("in [the] bag", "झोलामा", "book pen pencil phone key ticket money umbrella bottle clothes"),
    ("in [the] box", "बाकसमा", "book photo letter clothes gift shoes ball"),
    ("in [the] room", "कोठामा", "table chair bed mirror lamp television computer boy girl student guest box"),
    ("in [the] kitchen", "भान्सामा", "dish food water vegetables knife milk salt sugar egg potato onion tomato rice"),
    ("in [the] garden", "बगैँचामा", "tree flower dog bird cow child chair goat"),
    ("under [the] tree", "रुखमुनि", "dog cow chair stone boy child goat horse man"),
    ("under [the] table", "टेबलमुनि", "cat dog ball box bag shoes"),
    ("in [the] forest", "जङ्गलमा", "tree bird tiger monkey elephant animal"), ("in [the] field",
    "खेतमा", "cow buffalo goat horse farmer bird"),
    ("in [the] village", "गाउँमा", "school temple shop house hospital farmer river doctor teacher"),
    ("in [the] city", "सहरमा", "hotel bank hospital park market library temple car shop"),
    ("at school", "स्कूलमा", "student teacher computer library garden boy girl"),
    ("in [the] market", "बजारमा", "shop fruit vegetables fish shopkeeper clothes flower man woman"),
    ("on [the] road", "बाटोमा", "car bus bicycle cow dog stone motorcycle man"),
    ("at home", "घरमा", "guest food rice milk television dog cat cow computer bicycle"),
    ("in [the] river", "नदीमा", "fish water stone bridge"), ("near [the] house", "घर नजिक",
    "tree river temple shop school market park garden"),
    ("near [the] school", "स्कूल नजिक", "river temple shop market park hospital bank library tree"),
    ("near [the] hotel", "होटल नजिक", "river temple shop market park hospital bank garden"),
    ("near [the] market", "बजार नजिक", "river temple hotel park hospital bank school"),
    ("here", "यहाँ", "hotel hospital school teacher doctor book water temple bank shop toilet"),
    ("in Kathmandu", "काठमाडौँमा", "temple hotel library hospital park school bank"), ("in Nepal",
    "नेपालमा", "mountain river temple village forest"),
)  # fmt: skip


def there_is(rng):
    """ "there are two books on the table" टेबलमा दुईवटा किताब छन्; "is there a bank here?" के यहाँ एउटा बैंक छ?"""
    while True:
        text, ours, tags = rng.choice(SCENES)
        nouns = tagged(*tags.split())
        noun = rng.choice([n for n in nouns if n.english != "bridge" or text != "in [the] river"])
        form, past = rng.choices(("statement", "negation", "question"), (55, 22, 23))[0], rng.random() < 0.18
        thing = amount(noun, rng)
        plain = (thing.english.startswith(("a ", "an ")) and not thing.english.startswith("a lot")) or noun.mass
        if form == "negation" and not plain:
            continue
        several = thing.plural and not noun.mass
        who = "polite" if noun.person == "polite" else "they" if several else noun.person
        name = noun.nepali if form == "negation" else thing.nepali
        number = "p" if several or noun.number == "p" else "s"
        nepali = words(ours, name, be(who, form == "negation", past))
        verb = english.BE[number][past]
        parts = [("there", text.replace("[the] ", ""), noun.english)]
        if thing.quality:
            if form == "negation":
                continue
            parts.append(("quality", thing.quality, noun.english))
        if form == "question":
            yield pair(words(verb, "there", thing.english, text), "के " + nepali, *parts, mark="?")
        elif form == "negation":
            nothing = "no " + noun.english
            yield pair(words("there", verb, nothing, text), nepali, *parts)
        else:
            yield pair(words("there", verb, thing.english, text), nepali, *parts)


def how_many_there(rng):
    """ "how many books are there on the table?" टेबलमा कतिवटा किताब छन्?; "how many brothers do you have?"
    तपाईंका कति जना भाइ छन्?
    """
    while True:
        draw = rng.random()
        if draw < 0.45:
            text, ours, tags = rng.choice(SCENES)
            noun = rng.choice(tagged(*tags.split()))
            if noun.mass or noun.person != "he":
                continue
            how = "कति जना" if noun.human else "कतिवटा"
            parts = [("there", text.replace("[the] ", ""), noun.english)]
            yield pair(f"how many {noun.plural} are there {text}", f"{ours} {how} {noun.nepali} छन्", *parts, mark="?")
            continue
        subject = rng.choice((YOU, YOU, YOU, subjects(rng)))
        do = "does" if subject.number == "s" else "do"
        if subject is I:
            continue
        if draw < 0.65:
            noun = NOUNS[rng.choice(("brother", "sister", "son", "daughter", "friend"))]
            nepali = f"{subject.of(noun.female, True)} कति जना {noun.nepali} छन्"
        else:
            noun = rng.choice([n for n in tagged("own", "pet", "farm", "dish") if not n.mass and n.english != "house"])
            nepali = f"{subject.sanga} कतिवटा {noun.nepali} छन्"
        yield pair(
            f"how many {noun.plural} {do} {subject.english} have",
            nepali,
            ("owner", subject.english, noun.english),
            mark="?",
        )


def who_and_what_is_there(rng):
    """ "who is at home?" घरमा को छ?, "what is in the bag?" झोलामा के छ?, "what do you have?" तपाईंसँग के छ?"""
    for key in (
        "home",
        "school",
        "market",
        "office",
        "garden",
        "kitchen",
        "room",
        "hospital",
        "temple",
        "park",
        "here",
        "there",
        "outside",
    ):
        text, ours = at(PLACES[key], rng)
        yield pair(f"who is {text}", f"{ours} को छ", ("question", "who is", key), mark="?")
        yield pair(f"who was {text}", f"{ours} को थियो", ("question", "who is", key), mark="?")
    for text, ours, _ in SCENES:
        if not text.startswith(("here", "near", "in Nepal")):
            yield pair(f"what is {text}", f"{ours} के छ", ("question", "what is", text), mark="?")
            yield pair(f"what was {text}", f"{ours} के थियो", ("question", "what is", text), mark="?")
    for subject in SPEAKERS[1:]:
        do = "does" if subject.number == "s" else "do"
        yield pair(
            f"what {do} {subject.english} have", f"{subject.sanga} के छ", ("owner", subject.english, "what"), mark="?"
        )
    for noun in tagged("own", "money", "water", "salt"):
        if noun.english != "house":
            text = noun.english if noun.mass else english.a(noun.english)
            ours = noun.nepali if noun.mass else f"एउटा {noun.nepali}"
            yield pair(f"who has {text}", f"कससँग {ours} छ", ("owner", "who", noun.english), mark="?")
