"""The clock, the week and the weather."""

from data.en_ne.adverbs import HOURS, WEEKDAYS
from data.en_ne.english import EnglishVerb, question, statement
from data.en_ne.people import SPEAKERS, YOU, I, my
from data.en_ne.sentence import FORMS, pair, put, words
from data.en_ne.verbs import Verb, be, equals, inflect

DAYS = (("today", "आज", False), ("tomorrow", "भोलि", False), ("yesterday", "हिजो", True))


def clock_and_week(rng):
    """ "it is ten o'clock" दस बज्यो ("ten has struck"), "today is Sunday" आज आइतबार हो, but "a holiday" बिदा छ."""
    for english, nepali in HOURS.items():
        yield pair(f"it is {english} o'clock", f"{nepali} बज्यो", ("clock", "now", english))
        yield pair(f"it is {english} o'clock now", f"अहिले {nepali} बज्यो", ("clock", "now", english))
        yield pair(f"is it {english} o'clock", f"के {nepali} बज्यो", ("clock", "ask", english), mark="?")
    owners = (I, YOU, *SPEAKERS[3:5], *(my(I, name) for name in ("brother", "sister", "mother", "father")))
    for day, ours, past in DAYS:
        verb = "was" if past else "is"
        yield pair(f"what day {verb} {day}", f"{ours} कुन बार {equals('he', False, past)}", mark="?")
        said = [(english, nepali, ("weekday", day, english), equals) for english, nepali in WEEKDAYS.items()]
        said += [(f"{p.whose} birthday", f"{p.of()} जन्मदिन", ("birthday", day, p.english), equals) for p in owners]
        for text, nepali, part, is_ in (*said, ("a holiday", "बिदा", ("holiday", day, ""), be)):
            for form in FORMS if part[0] != "birthday" or "my b" in text else FORMS[::2]:
                negative = form == "negation"
                statement_ = f"{day} {verb} {'not ' * negative}{text}"
                yield put(
                    form, f"{verb} {day} {text}", statement_, f"{ours} {nepali} {is_('he', negative, past)}", part
                )


# English adjective | Nepali noun; "it is hot today" आज गर्मी छ: it is not a thing, so Nepali has no "it".
WEATHER = {"hot": "गर्मी", "cold": "जाडो"}
WHEN = {
    False: (("today", "आज"), ("now", "अहिले"), ("here", "यहाँ"), ("outside", "बाहिर"), ("in Kathmandu", "काठमाडौँमा"),
            ("in Pokhara", "पोखरामा"), ("in [the] village", "गाउँमा"), ("in India", "भारतमा"), ("there", "त्यहाँ")),
    True: (("yesterday", "हिजो"), ("last week", "गत हप्ता"), ("last night", "हिजो राति"), ("in Pokhara", "पोखरामा"),
           ("last year", "गत वर्ष")),
}  # fmt: skip


def weather(rng):
    """ "it is very hot today" आज धेरै गर्मी छ: heat is a thing that there is."""
    for english, ours in WEATHER.items():
        for past, times in WHEN.items():
            for time, nepali_time in times:
                verb, part = "was" if past else "is", ("weather", english, time)
                for very, much in (("", ""), ("very", "धेरै")):
                    nepali = words(nepali_time, much, ours, be("he", False, past))
                    yield pair(words("it", verb, very, english, time), nepali, part)
                yield pair(f"it {verb} not {english} {time}", words(nepali_time, ours, be("he", True, past)), part)
                yield pair(
                    f"{verb} it {english} {time}", words("के", nepali_time, ours, be("he", False, past)), part, mark="?"
                )


RAIN_WHEN = {
    "present": (("every day", "हरेक दिन"), ("in Pokhara", "पोखरामा"), ("here", "यहाँ")),
    "past": (("yesterday", "हिजो"), ("last night", "हिजो राति"), ("last week", "गत हप्ता"), ("this morning", "आज बिहान"),
             ("", "")),
    "future": (("tomorrow", "भोलि"), ("today", "आज"), ("tonight", "आज राति"), ("next week", "अर्को हप्ता"), ("", "")),
    "continuous": (("now", "अहिले"), ("outside", "बाहिर"), ("in Kathmandu", "काठमाडौँमा"), ("there", "त्यहाँ"), ("", "")),
}  # fmt: skip


def rain(rng):
    """ "it is raining" पानी पर्दै छ ("water is falling"), "it snowed yesterday" हिजो हिउँ पर्‍यो."""
    for english, ours in (("rain", "पानी पर्नु"), ("snow", "हिउँ पर्नु")):
        verb, nepali = EnglishVerb(english, english + "ed", english + "ed"), Verb(ours)
        for tense, times in RAIN_WHEN.items():
            for time, nepali_time in times:
                for form in FORMS:
                    negative = form == "negation"
                    asked = words(question("it", verb, tense, "s"), time)
                    said = words(statement("it", verb, tense, "s", negative), time)
                    falls = inflect(nepali, tense, "he", negative)
                    yield put(form, asked, said, words(nepali_time, falls), ("weather", english, f"{tense} {time}"))
