"""Comparing, counting, prices, the clock, the week and the weather."""

from data.en_ne.adjectives import ADJECTIVES, OF_PEOPLE_COMPARED
from data.en_ne.adverbs import HOURS, WEEKDAYS
from data.en_ne.english import BE, EnglishVerb, be_question, be_statement, question, statement
from data.en_ne.nouns import NOUNS, NUMBERS, Noun, counted
from data.en_ne.people import SPEAKERS, YOU, I, my, subjects
from data.en_ne.sentence import pair, words
from data.en_ne.sentences.clauses import person_for
from data.en_ne.sentences.states import agreed
from data.en_ne.verbs import Verb, be, inflect


def comparisons(rng):
    """ "she is taller than me" उनी म भन्दा अग्ली छिन्: भन्दा "than" follows the standard, and the adjective
    stays as it is.
    """
    while True:
        subject, quality = subjects(rng), rng.choice([q for q in OF_PEOPLE_COMPARED.values() if q.comparative != "-"])
        other = person_for(subject, rng)
        if (quality.english in ("beautiful",) and not subject.female) or (
            quality.english == "strong" and subject.female
        ):
            continue
        form, past = rng.choices(("statement", "negation", "question"), (60, 18, 22))[0], rng.random() < 0.08
        if form == "question" and subject is I:
            continue
        negative = form == "negation"
        nepali = words(subject.nepali, other.nepali, "भन्दा", agreed(subject, quality), be(subject.who, negative, past))
        text = words(quality.comparative, "than", other.object)
        parts = [("compared", subject.english, other.object), ("quality", quality.english, subject.english)]
        if form == "question":
            yield pair(f"{be_question(subject.english, subject.number, past)} {text}", "के " + nepali, *parts, mark="?")
        else:
            yield pair(f"{be_statement(subject.english, subject.number, past, negative)} {text}", nepali, *parts)


def thing_comparisons(rng):
    """ "this house is bigger than that house" यो घर त्यो घर भन्दा ठूलो छ, "the elephant is bigger than the horse"."""
    while True:
        quality = rng.choice(
            [q for q in ADJECTIVES.values() if q.comparative != "-" and q.english not in ("empty", *COLOUR_WORDS)]
        )
        nouns = [n for n in quality.nouns() if n.number == "s"]
        one, draw = rng.choice(nouns), rng.random()
        alike = [
            n
            for n in nouns
            if n != one
            and any(tag in n.tags and tag in one.tags for tag in KINDS)
            and "tasty" not in (*n.tags, *one.tags)
        ]
        parts = [("quality", quality.english, one.english)]
        if (draw < 0.45 and alike) or (one.mass and alike):
            other = rng.choice(alike)
            left, right = _the(one), _the(other)
            parts.append(("compared", one.english, other.english))
        elif one.mass:
            continue
        elif draw < 0.75:
            left, right = (f"this {one.english}", f"यो {one.nepali}"), (f"that {one.english}", f"त्यो {one.nepali}")
        else:
            mine, yours = rng.sample(SPEAKERS, 2)
            if "own" not in one.tags:
                continue
            left = (f"{mine.own} {one.english}", f"{mine.of()} {one.nepali}")
            right = (f"{yours.own} {one.english}", f"{yours.of()} {one.nepali}")
        form = rng.choices(("statement", "negation", "question"), (60, 18, 22))[0]
        nepali = words(left[1], right[1], "भन्दा", quality.agree(), be("he", form == "negation"))
        text = words(quality.comparative, "than", right[0])
        if form == "question":
            yield pair(f"{be_question(left[0], 's')} {text}", "के " + nepali, *parts, mark="?")
        else:
            yield pair(f"{be_statement(left[0], 's', False, form == 'negation')} {text}", nepali, *parts)


# Things are compared with their like.
KINDS = (
    "fruit",
    "edible",
    "drink",
    "vehicle",
    "furniture",
    "building",
    "cloth",
    "animal",
    "land",
    "language",
    "subject",
    "read",
    "vegetable",
)
COLOUR_WORDS = ("red", "black", "white", "blue", "green", "yellow")


def _the(noun: Noun) -> tuple[str, str]:
    return (noun.english, noun.nepali) if "bare" in noun.tags else (f"[the] {noun.english}", noun.nepali)


SUPERLATIVES = {"big": "biggest", "small": "smallest", "good": "best", "old": "oldest",
                "new": "newest", "tall": "tallest", "long": "longest",
                "expensive": "most expensive", "beautiful": "most beautiful", "heavy": "heaviest",
                "cheap": "cheapest", "strong": "strongest"}  # fmt: skip


def superlatives(rng):
    """ "this is the biggest house" यो सबैभन्दा ठूलो घर हो; "Ram is the tallest" राम सबैभन्दा अग्लो छ: सबैभन्दा
    is "than all".
    """
    while True:
        if rng.random() < 0.6:
            quality = ADJECTIVES[rng.choice(list(SUPERLATIVES))]
            noun = rng.choice([n for n in quality.nouns() if not n.mass])
            word, ours = rng.choice((("this", "यो"), ("that", "त्यो")))
            nepali = f"{ours} सबैभन्दा {quality.agree()} {noun.nepali} हो"
            yield pair(
                f"{word} is the {SUPERLATIVES[quality.english]} {noun.english}",
                nepali,
                ("quality", quality.english, noun.english),
            )
        else:
            subject, quality = subjects(rng), OF_PEOPLE_COMPARED[rng.choice(("tall", "good", "old", "strong"))]
            if subject.number == "p" or (quality.english == "strong" and subject.female):
                continue
            nepali = words(subject.nepali, "सबैभन्दा", agreed(subject, quality), be(subject.who))
            text = f"{subject.english} {BE[subject.number][0]} the {SUPERLATIVES[quality.english]}"
            yield pair(text, nepali, ("quality", quality.english, subject.english))


def counting(rng):
    """Bare counts: "three books" तीनवटा किताब, "two friends" दुई जना साथी."""
    nouns = [n for n in NOUNS.values() if not n.mass and ("count" in n.tags or (n.human and n.person != "polite"))]
    while True:
        noun, word = rng.choice(nouns), rng.choice([n for n in NUMBERS if n not in ("hundred",)])
        phrase = counted(noun, word)
        yield pair(phrase.english, phrase.nepali, ("number", word, noun.english), mark="")


PRICED = ("book", "pen", "bag", "shirt", "umbrella", "ticket", "phone", "watch", "apple", "mango",
          "cup", "hat", "bicycle", "computer", "radio", "chair", "table",
          "knife", "map", "rice", "milk", "tea", "fish", "meat", "sugar", "coffee")  # fmt: skip
DEAR = ("phone", "watch", "bicycle", "chair", "table", "computer", "radio")
RUPEES = {"ten": "दस", "twenty": "बीस", "thirty": "तीस", "fifty": "पचास", "one hundred": "एक सय",
          "two hundred": "दुई सय", "five hundred": "पाँच सय",
          "one thousand": "एक हजार", "two thousand": "दुई हजार"}  # fmt: skip


def prices(rng):
    """ "how much is this book?" यो किताबको कति हो?, "this pen costs ten rupees" यो कलमको दस रुपैयाँ पर्छ."""
    for word, ours in (("this", "यस"), ("that", "त्यस")):
        yield pair(f"how much is {word}", f"{ours}को कति हो", mark="?")
    while True:
        noun = NOUNS[rng.choice(PRICED)]
        word, ours, oblique = rng.choice((("this", "यो ", "यो "), ("that", "त्यो ", "त्यो "), ("[the]", "", "")))
        parts = [("price", word, noun.english)]
        if rng.random() < 0.35:
            yield pair(f"how much is {word} {noun.english}", f"{ours}{noun.nepali}को कति हो", *parts, mark="?")
            continue
        amount, rupees = rng.choice(list(RUPEES.items()))
        if ("thousand" in amount) != (noun.english in DEAR):
            continue
        parts.append(("rupees", amount, noun.english))
        yield pair(
            f"{word} {noun.english} costs {amount} rupees", f"{oblique}{noun.nepali}को {rupees} रुपैयाँ पर्छ", *parts
        )


def clock_and_week(rng):
    """ "it is ten o'clock" दस बजेको छ, "today is Sunday" आज आइतबार हो, "tomorrow is a holiday"."""
    for english, nepali in HOURS.items():
        yield pair(f"it is {english} o'clock", f"{nepali} बज्यो", ("clock", "now", english))
        yield pair(f"it is {english} o'clock now", f"अहिले {nepali} बज्यो", ("clock", "now", english))
        yield pair(f"is it {english} o'clock", f"के {nepali} बज्यो", ("clock", "ask", english), mark="?")
    days = (("today", "आज", "is", "हो"), ("tomorrow", "भोलि", "is", "हो"), ("yesterday", "हिजो", "was", "थियो"))
    for day, ours, verb, nepali_verb in days:
        for english, nepali in WEEKDAYS.items():
            yield pair(f"{day} {verb} {english}", f"{ours} {nepali} {nepali_verb}", ("weekday", day, english))
            yield pair(
                f"{verb} {day} {english}", f"के {ours} {nepali} {nepali_verb}", ("weekday ask", day, english), mark="?"
            )
            nepali_not = "होइन" if verb == "is" else "थिएन"
            yield pair(f"{day} {verb} not {english}", f"{ours} {nepali} {nepali_not}", ("weekday not", day, english))
        yield pair(f"what day {verb} {day}", f"{ours} कुन बार {nepali_verb}", mark="?")
        yield pair(f"{day} {verb} a holiday", f"{ours} बिदा {'थियो' if verb == 'was' else 'छ'}")
        yield pair(f"{verb} {day} a holiday", f"के {ours} बिदा {'थियो' if verb == 'was' else 'छ'}", mark="?")
        yield pair(f"{day} {verb} not a holiday", f"{ours} बिदा {'थिएन' if verb == 'was' else 'छैन'}")
        yield pair(f"{day} {verb} not my birthday", f"{ours} मेरो जन्मदिन {'थिएन' if verb == 'was' else 'होइन'}")
        for owner in (YOU, *SPEAKERS[3:5], *(my(I, kin) for kin in ("brother", "sister", "mother", "father"))):
            text = owner.own if owner.object_english else owner.english + "'s"
            yield pair(
                f"{day} {verb} {text} birthday",
                f"{ours} {owner.of()} जन्मदिन {nepali_verb}",
                ("birthday", day, owner.english),
            )
            yield pair(
                f"{verb} {day} {text} birthday",
                f"के {ours} {owner.of()} जन्मदिन {nepali_verb}",
                ("birthday", day, owner.english),
                mark="?",
            )
        yield pair(f"{day} {verb} my birthday", f"{ours} मेरो जन्मदिन {nepali_verb}")


# English adjective | Nepali noun; "it is hot today" आज गर्मी छ: it is not a thing, so Nepali has no "it".
WEATHER = {"hot": "गर्मी", "cold": "जाडो"}
WHEN = (("today", "आज"), ("now", "अहिले"), ("here", "यहाँ"), ("outside", "बाहिर"), ("in Kathmandu",
        "काठमाडौँमा"), ("in Pokhara", "पोखरामा"),
        ("in [the] village", "गाउँमा"), ("in India", "भारतमा"), ("there", "त्यहाँ"))  # fmt: skip
WAS_WHEN = (
    ("yesterday", "हिजो"),
    ("last week", "गत हप्ता"),
    ("last night", "हिजो राति"),
    ("in Pokhara", "पोखरामा"),
    ("last year", "गत वर्ष"),
)
RAIN_WHEN = {
    "present": (("every day", "हरेक दिन"), ("in Pokhara", "पोखरामा"), ("here", "यहाँ")),
    "past": (("yesterday", "हिजो"), ("last night", "हिजो राति"), ("last week", "गत हप्ता"),
    ("this morning", "आज बिहान"), ("", "")),
    "future": (("tomorrow", "भोलि"), ("today", "आज"), ("tonight", "आज राति"), ("soon", "चाँडै"), ("", "")),
    "continuous": (("now", "अहिले"), ("outside", "बाहिर"), ("in Kathmandu", "काठमाडौँमा"), ("there", "त्यहाँ"), ("", "")),
}  # fmt: skip


def weather(rng):
    """ "it is very hot today" आज धेरै गर्मी छ: heat is a thing that there is."""
    for english, ours in WEATHER.items():
        for past, times in ((False, WHEN), (True, WAS_WHEN)):
            for time, nepali_time in times:
                verb = "was" if past else "is"
                parts = [("weather", english, time)]
                for very, much in (("", ""), ("very", "धेरै")):
                    yield pair(
                        words("it", verb, very, english, time),
                        words(nepali_time, much, ours, be("he", False, past)),
                        *parts,
                    )
                yield pair(
                    words("it", verb, "not", english, time), words(nepali_time, ours, be("he", True, past)), *parts
                )
                yield pair(
                    words(verb, "it", english, time),
                    words("के", nepali_time, ours, be("he", False, past)),
                    *parts,
                    mark="?",
                )


def rain(rng):
    """ "it is raining" पानी पर्दै छ ("water is falling"), "it snowed yesterday" हिजो हिउँ पर्‍यो."""
    for english, ours in (("rain", "पानी पर्नु"), ("snow", "हिउँ पर्नु")):
        verb, nepali = EnglishVerb(english, english + "ed", english + "ed"), Verb(ours)
        for tense, times in RAIN_WHEN.items():
            for time, nepali_time in times:
                parts = [("weather", english, f"{tense} {time}")]
                for negative in (False, True):
                    yield pair(
                        words(statement("it", verb, tense, "s", negative), time),
                        words(nepali_time, inflect(nepali, tense, "he", negative)),
                        *parts,
                    )
                yield pair(
                    words(question("it", verb, tense, "s"), time),
                    words("के", nepali_time, inflect(nepali, tense, "he")),
                    *parts,
                    mark="?",
                )


AGES = {
    **{
        word: NUMBERS[word]
        for word in ("five", "six", "seven", "eight", "nine", "ten", "twelve", "fifteen", "twenty", "thirty", "fifty")
    }
}


def ages_and_names(rng):
    """ "he is ten years old" ऊ दस वर्षको भयो ("has become"), "my name is Ram" मेरो नाम राम हो, "what is her
    name?" उनको नाम के हो?
    """
    from data.en_ne.people import NAMES

    people = (
        *SPEAKERS,
        *(my(I, kin) for kin in ("brother", "sister", "son", "daughter", "friend")),
        *(my(YOU, kin) for kin in ("brother", "son", "daughter")),
    )
    for subject in people:
        owner = subject.own if subject.object_english else subject.english + "'s"
        if subject.number == "p" and subject is not YOU:
            continue
        yield pair(f"what is {owner} name", f"{subject.of()} नाम के हो", ("name", subject.english, "what"), mark="?")
        for english, nepali, female in NAMES:
            if subject in (I, YOU) or subject.female == female:
                yield pair(
                    f"{owner} name is {english}", f"{subject.of()} नाम {nepali} हो", ("name", subject.english, english)
                )
        for word, number in AGES.items():
            if word in ("thirty", "fifty") and subject.english.endswith(("son", "daughter")):
                continue
            text, aged = (
                f"{subject.english} {BE[subject.number][0]} {word} years old",
                "वर्षकी" if subject.female else "वर्षको",
            )
            yield pair(
                text, f"{subject.nepali} {number} {aged} {Verb('हुनु').past(subject.who)}", ("age", subject.english, word)
            )
