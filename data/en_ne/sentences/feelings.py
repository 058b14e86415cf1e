"""What comes to a person without being done: hunger, fever, pain, knowledge ("hunger has struck me")."""

from data.en_ne.english import EnglishVerb, be_question, be_statement, question, statement
from data.en_ne.people import HE, SHE, THEY, WE, I, Person, subjects
from data.en_ne.sentence import form_for, put, words

# Feelings: English adjective | what comes to the person.
FEELINGS = {
    "hungry": "भोक", "thirsty": "तिर्खा", "cold": "जाडो", "hot": "गर्मी", "sleepy": "निद्रा", "afraid": "डर",
    "ashamed": "लाज", "worried": "चिन्ता",
}  # fmt: skip
TIMES_OF_FEELING = {False: ("now", "अहिले"), True: ("yesterday", "हिजो")}
FEEL, HAVE, HURT = (
    EnglishVerb("feel", "felt", "felt"), EnglishVerb("have", "had", "had"), EnglishVerb("hurt", "hurt", "hurt"),
)  # fmt: skip
KNOW = EnglishVerb("know", "knew", "known")


def there(past: bool, form: str) -> str:
    """The feeling is the subject, so the verb is always third person singular."""
    return {True: ("थियो", "थिएन"), False: ("छ", "छैन")}[past][form == "negation"]


def feelings(rng):
    """ "I am hungry" मलाई भोक लागेको छ, "I felt hungry" मलाई भोक लाग्यो, "are you cold?" के तपाईंलाई जाडो लागेको छ?"""
    while True:
        subject, (english, ours) = subjects(rng), rng.choice(list(FEELINGS.items()))
        form, kind, number = form_for(subject, rng), rng.random(), subject.number
        negative, part = form == "negation", ("feeling", subject.english, english)
        if kind < 0.2:
            nepali = words(subject.lai, ours, "लागेन" if negative else "लाग्यो")
            asked = words(question(subject.english, FEEL, "past", number), english)
            yield put(
                form, asked, words(statement(subject.english, FEEL, "past", number, negative), english), nepali, part
            )
            continue
        past = kind < 0.42
        time = TIMES_OF_FEELING[past] if rng.random() < 0.2 else ("", "")
        very, ours_very = ("very", "धेरै") if form == "statement" and rng.random() < 0.25 else ("", "")
        nepali = words(subject.lai, time[1], ours_very, ours, "लागेको", there(past, form))
        asked = words(be_question(subject.english, number, past), english, time[0])
        said = words(be_statement(subject.english, number, past, negative), very, english, time[0])
        yield put(form, asked, said, nepali, part)


ILLS = {"a fever": "ज्वरो आएको", "a cold": "रुघा लागेको", "a cough": "खोकी लागेको"}
BODY = {
    "head": "टाउको", "stomach": "पेट", "hand": "हात", "foot": "खुट्टा", "eye": "आँखा", "tooth": "दाँत", "ear": "कान",
    "back": "ढाड",
}  # fmt: skip


def health(rng):
    """ "she has a fever" उनलाई ज्वरो आएको छ, "my head hurts" मेरो टाउको दुखेको छ."""
    while True:
        subject, tense = subjects(rng), "past" if rng.random() < 0.25 else "present"
        form, number = form_for(subject, rng, (55, 20, 25)), subject.number
        negative, is_ = form == "negation", there(tense == "past", form)
        if rng.random() < 0.45:
            english, ours = rng.choice(list(ILLS.items()))
            asked = words(question(subject.english, HAVE, tense, number), english)
            said = words(statement(subject.english, HAVE, tense, number, negative), english)
            yield put(form, asked, said, words(subject.lai, ours, is_), ("feeling", subject.english, english))
        elif subject.object_english or (number == "s" and subject.english.startswith(("my ", "your "))):
            if subject.many:
                continue
            english, ours = rng.choice(list(BODY.items()))
            aching = f"{subject.whose} {english}"
            asked, said = question(aching, HURT, tense, "s"), statement(aching, HURT, tense, "s", negative)
            yield put(form, asked, said, f"{subject.of()} {ours} दुखेको {is_}", ("hurts", subject.english, english))


# What is known | in Nepali | whom it is about: nobody is asked whether he knows where he lives.
KNOWN = (
    ("", "", None), ("this", "यो", None), ("that", "त्यो", None), ("[the] answer", "उत्तर", None),
    ("[the] road", "बाटो", None), ("[the] story", "कथा", None), ("my name", "मेरो नाम", I),
    ("his name", "उसको नाम", HE), ("her name", "उनको नाम", SHE), ("our house", "हाम्रो घर", WE),
    ("his house", "उसको घर", HE), ("what this is", "यो के हो", None), ("where he lives", "ऊ कहाँ बस्छ", HE),
    ("where she lives", "उनी कहाँ बस्छिन्", SHE), ("where they live", "उनीहरू कहाँ बस्छन्", THEY),
    ("who he is", "ऊ को हो", HE), ("who she is", "उनी को हुन्", SHE), ("where [the] market is", "बजार कहाँ छ", None),
    ("where [the] school is", "स्कूल कहाँ छ", None), ("where [the] hospital is", "अस्पताल कहाँ छ", None),
)  # fmt: skip


def about_oneself(subject: Person, known: Person | None) -> bool:
    return known is not None and (subject.own == known.own or {subject, known} == {I, WE})


def knowing(rng):
    """ "I do not know" मलाई थाहा छैन, "do you know where he lives?" के तपाईंलाई ऊ कहाँ बस्छ थाहा छ?"""
    while True:
        subject, (text, ours, known) = subjects(rng), rng.choice(KNOWN)
        form, tense = form_for(subject, rng, (30, 40, 30)), "past" if rng.random() < 0.15 else "present"
        if about_oneself(subject, known) or (tense == "past" and text.startswith(("where", "what", "who"))):
            continue
        nepali = words(subject.lai, ours, "थाहा", there(tense == "past", form))
        asked = words(question(subject.english, KNOW, tense, subject.number), text)
        said = words(statement(subject.english, KNOW, tense, subject.number, form == "negation"), text)
        yield put(form, asked, said, nepali, ("know", subject.english, text.replace("[the]", "the") or "it"))
