"""Having and there being.

मसँग किताब छ (a thing is with me), मेरा दुई जना भाइ छन् (kin are mine), टेबलमा किताब छ (there is).
"""

from data.en_ne import english
from data.en_ne.adjectives import described
from data.en_ne.adverbs import PLACES
from data.en_ne.nouns import NOUNS, Noun, Phrase, bare, count, counted, indefinite, mass_amount, some, tagged
from data.en_ne.people import NAMED, SPEAKERS, YOU, I, my, subjects
from data.en_ne.sentence import FORMS, at, form_for, pair, put, words
from data.en_ne.verbs import be

HAVE = english.EnglishVerb("have", "had", "had")
COUNTS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "ten", "twelve", "twenty")


def amount(noun: Noun, rng) -> Phrase:
    """a book, two books, many books, a red book, water."""
    phrase = described(noun, False, rng) if rng.random() < 0.18 else None
    if phrase and not phrase.english.startswith(("the ", "this", "that")):
        return phrase
    if noun.mass:
        return mass_amount(noun, rng, 0.15)
    draw = rng.random()
    if draw < 0.6:
        return indefinite(noun)
    return counted(noun, rng.choice(COUNTS)) if draw < 0.9 else some(noun, rng.choice(("some", "many", "a lot of")))


def owned_things() -> list[Noun]:
    things = tagged("own", "vehicle", "edible", "drink", "container", "grocery", "pet", "farm", "dish", "paper", "time")
    return [noun for noun in things if noun.english not in ("house", "shop", "room", "garden", "bus", "work")]


def have_things(rng):
    """ "I have a book" मसँग एउटा किताब छ; "he does not have money" ऊसँग पैसा छैन (a negation counts nothing: no एउटा)."""
    things = owned_things()
    while True:
        subject, noun = subjects(rng), rng.choice(things)
        form, tense = form_for(subject, rng), "past" if rng.random() < 0.2 else "present"
        negative, past, number = form == "negation", tense == "past", subject.number
        thing = amount(noun, rng) if not negative else bare(noun) if noun.mass else indefinite(noun, True)
        parts = [("owner", subject.english, noun.english)]
        if thing.quality:
            parts.append(("quality", thing.quality, noun.english))
        nepali = words(subject.sanga, thing.nepali, be("they" if thing.plural else "he", negative, past))
        asked = words(english.question(subject.english, HAVE, tense, number), thing.english)
        said = words(english.statement(subject.english, HAVE, tense, number, negative), thing.english)
        if negative and rng.random() < 0.3:  # "I have no money"
            said = words(english.statement(subject.english, HAVE, tense, number), "no", noun.english)
        yield put(form, asked, said, nepali, *parts)


KIN_HAD = ("brother", "sister", "son", "daughter", "friend", "older brother", "older sister", "uncle", "aunt")
KIN_OWNERS = (
    *SPEAKERS, *SPEAKERS, *NAMED,
    *(my(owner, name) for owner in (I, YOU) for name in ("brother", "sister", "friend")),
)  # fmt: skip


def have_kin(rng):
    """ "I have two brothers" मेरा दुई जना भाइ छन्, "she has a son" उनको एक जना छोरा छ: kin are one's, not "with" one."""
    while True:
        subject, noun = rng.choice(KIN_OWNERS), NOUNS[rng.choice(KIN_HAD)]
        form = form_for(subject, rng, (60, 18, 22))
        negative = form == "negation"
        word = "a" if negative else rng.choice(("one", "a", "a", "two", "two", "three", "four", "five", "many"))
        many = word not in ("one", "a")
        if subject not in SPEAKERS + NAMED and noun.english != "friend":
            continue
        name = noun.plural if many else noun.english
        text = english.a(name) if word == "a" else f"{word} {name}"
        who = "polite" if noun.person == "polite" else "they" if many else "she" if noun.female else "he"
        number = "" if negative else "धेरै" if word == "many" else count("one" if word == "a" else word, noun)
        nepali = words(subject.of(noun.female, many), number, noun.nepali, be(who, negative))
        parts = [("owner", subject.english, noun.english), ("number", word, noun.english)]
        asked = words(english.question(subject.english, HAVE, "present", subject.number), text)
        said = words(english.statement(subject.english, HAVE, "present", subject.number, negative), text)
        yield put(form, asked, said, nepali, *parts)


KIN_PAIRS = (("brother", "sister"), ("sister", "brother"), ("son", "daughter"), ("daughter", "son"))


def have_two_kin(rng):
    """ "I have two brothers and one sister" मेरा दुई जना भाइ र एक जना बहिनी छन्: together they are many, so मेरा and छन्."""
    while True:
        subject, pair_of_kin = rng.choice(SPEAKERS + NAMED), rng.choice(KIN_PAIRS)
        form, texts, counts, parts = form_for(subject, rng, (70, 0, 30)), [], [], []
        for noun in (NOUNS[name] for name in pair_of_kin):
            word = rng.choice(("one", "a", "two", "two", "three", "four", "five"))
            name = noun.english if word in ("one", "a") else noun.plural
            texts.append(english.a(name) if word == "a" else f"{word} {name}")
            counts.append(words(count("one" if word == "a" else word, noun), noun.nepali))
            parts += [("owner", subject.english, noun.english), ("number", word, noun.english)]
        text, nepali = " and ".join(texts), words(subject.of(False, True), " र ".join(counts), be("they"))
        asked = words(english.question(subject.english, HAVE, "present", subject.number), text)
        said = words(english.statement(subject.english, HAVE, "present", subject.number), text)
        yield put(form, asked, said, nepali, *parts)


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
    ("in [the] forest", "जङ्गलमा", "tree wild"),
    ("in [the] field", "खेतमा", "cow buffalo goat horse farmer bird"),
    ("in [the] village", "गाउँमा", "school temple shop house hospital farmer river doctor teacher"),
    ("in [the] city", "सहरमा", "hotel bank hospital park market library temple car shop"),
    ("at school", "स्कूलमा", "student teacher computer library garden boy girl"),
    ("in [the] market", "बजारमा", "shop fruit vegetables fish shopkeeper clothes flower man woman"),
    ("on [the] road", "बाटोमा", "car bus bicycle cow dog stone motorcycle man"),
    ("at home", "घरमा", "guest food rice milk television dog cat cow computer bicycle"),
    ("in [the] river", "नदीमा", "fish water stone"),
    ("near [the] house", "घरनजिक", "tree river temple shop school market park garden"),
    ("near [the] school", "स्कूलनजिक", "river temple shop market park hospital bank library tree"),
    ("near [the] hotel", "होटलनजिक", "river temple shop market park hospital bank garden"),
    ("near [the] market", "बजारनजिक", "river temple hotel park hospital bank school"),
    ("here", "यहाँ", "hotel hospital school teacher doctor book water temple bank shop"),
    ("in Kathmandu", "काठमाडौँमा", "temple hotel library hospital park school bank"),
    ("in Nepal", "नेपालमा", "mountain river temple village forest"),
)  # fmt: skip


def there_is(rng):
    """ "there are two books on the table" टेबलमा दुईवटा किताब छन्; "is there a bank here?" के यहाँ एउटा बैंक छ?"""
    while True:
        text, ours, tags = rng.choice(SCENES[:-1])
        noun = rng.choice(tagged(*tags.split()))
        form, past = rng.choices(FORMS, (55, 22, 23))[0], rng.random() < 0.18
        negative = form == "negation"
        thing = amount(noun, rng) if not negative else bare(noun) if noun.mass else indefinite(noun, True)
        who = "polite" if noun.person == "polite" else "they" if thing.plural else noun.person
        verb = english.BE["p" if thing.plural or noun.number == "p" else "s"][past]
        parts = [("there", text.replace("[the] ", ""), noun.english)]
        if thing.quality:
            parts.append(("quality", thing.quality, noun.english))
        what = f"no {noun.english}" if negative else thing.english
        nepali = words(ours, thing.nepali, be(who, negative, past))
        yield put(form, words(verb, "there", what, text), words("there", verb, what, text), nepali, *parts)


def how_many_there(rng):
    """ "how many books are there on the table?" टेबलमा कतिवटा किताब छन्?; of persons कति जना."""
    while True:
        draw, subject = rng.random(), rng.choice((YOU, YOU, YOU, *KIN_OWNERS))
        if draw < 0.45:
            text, ours, tags = rng.choice(SCENES)
            noun = rng.choice(tagged(*tags.split()))
            if not noun.mass and noun.person == "he":
                how, parts = "कति जना" if noun.human else "कतिवटा", ("there", text.replace("[the] ", ""), noun.english)
                yield pair(
                    f"how many {noun.plural} are there {text}", f"{ours} {how} {noun.several} छन्", parts, mark="?"
                )
            continue
        if subject is I:
            continue
        if draw < 0.65:
            noun = NOUNS[rng.choice(KIN_HAD[:5] if subject in SPEAKERS + NAMED else ("friend",))]
            nepali = f"{subject.of(noun.female, True)} कति जना {noun.nepali} छन्"
        else:
            noun = rng.choice([noun for noun in owned_things() if not noun.mass])
            nepali = f"{subject.sanga} कतिवटा {noun.several} छन्"
        text = f"how many {noun.plural} {'does' if subject.number == 's' else 'do'} {subject.english} have"
        yield pair(text, nepali, ("owner", subject.english, noun.english), mark="?")


VISITED = (
    "home", "school", "market", "office", "garden", "kitchen", "room", "hospital", "temple", "park", "here", "there",
    "outside",
)  # fmt: skip


def who_and_what_is_there(rng):
    """ "who is at home?" घरमा को छ?, "what is in the bag?" झोलामा के छ?, "what do you have?" तपाईंसँग के छ?"""
    for key in VISITED:
        text, ours = at(PLACES[key], rng)
        yield pair(f"who is {text}", f"{ours} को छ", ("question", "who is", key), mark="?")
        yield pair(f"who was {text}", f"{ours} को थियो", ("question", "who is", key), mark="?")
    for text, ours, _ in SCENES:
        if not text.startswith(("here", "near", "in Nepal", "at school")):
            yield pair(f"what is {text}", f"{ours} के छ", ("question", "what is", text), mark="?")
            yield pair(f"what was {text}", f"{ours} के थियो", ("question", "what is", text), mark="?")
    for subject in SPEAKERS[1:]:
        text = f"what {'does' if subject.number == 's' else 'do'} {subject.english} have"
        yield pair(text, f"{subject.sanga} के छ", ("owner", subject.english, "what"), mark="?")
    for noun in tagged("own", "money", "water", "salt"):
        if noun.english not in ("house", "room", "work"):
            thing = bare(noun) if noun.mass else indefinite(noun)
            yield pair(f"who has {thing.english}", f"कससँग {thing.nepali} छ", ("owner", "who", noun.english), mark="?")
