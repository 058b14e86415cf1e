"""What comes to a person without being done: hunger, fever, pain, knowledge. मलाई भोक लागेको छ is "hunger has
struck me".
"""

from data.en_ne.people import WE, I, subjects
from data.en_ne.sentence import pair, words

# Feelings: English adjective or noun | what comes to the person.
FEELINGS = {
    "hungry": "भोक",
    "thirsty": "तिर्खा",
    "cold": "जाडो",
    "hot": "गर्मी",
    "sleepy": "निद्रा",
    "afraid": "डर",
    "ashamed": "लाज",
}
TIMES_OF_FEELING = {False: ("now", "अहिले"), True: ("yesterday", "हिजो")}


def feelings(rng):
    """ "I am hungry" मलाई भोक लागेको छ, "I felt hungry" मलाई भोक लाग्यो, "are you cold?" के तपाईंलाई जाडो लागेको छ?

    The feeling is the subject, so the verb is always third person singular.
    """
    be = {"i": ("am", "was"), "s": ("is", "was"), "p": ("are", "were")}
    while True:
        subject, (english, ours) = subjects(rng), rng.choice(list(FEELINGS.items()))
        form, kind = rng.choices(("statement", "negation", "question"), (50, 25, 25))[0], rng.random()
        parts = [("feeling", subject.english, english)]
        if form == "question" and subject is I:
            continue
        if kind < 0.2:
            nepali = words(subject.lai, ours, "लागेन" if form == "negation" else "लाग्यो")
            if form == "question":
                yield pair(f"did {subject.english} feel {english}", "के " + nepali, *parts, mark="?")
            else:
                text = (
                    f"{subject.english} did not feel {english}"
                    if form == "negation"
                    else f"{subject.english} felt {english}"
                )
                yield pair(text, nepali, *parts)
            continue
        past = kind < 0.42
        time = TIMES_OF_FEELING[past] if rng.random() < 0.2 else ("", "")
        very = "very" if form == "statement" and rng.random() < 0.25 else ""
        verb = {False: ("लागेको छ", "लागेको छैन"), True: ("लागेको थियो", "लागेको थिएन")}[past][form == "negation"]
        nepali = words(subject.lai, time[1], "धेरै" if very else "", ours, verb)
        is_ = be[subject.number][past]
        if form == "question":
            yield pair(words(is_, subject.english, english, time[0]), "के " + nepali, *parts, mark="?")
        else:
            not_ = "not" if form == "negation" else ""
            yield pair(words(subject.english, is_, not_, very, english, time[0]), nepali, *parts)


ILLS = {"a fever": "ज्वरो", "a cold": "रुघा", "a cough": "खोकी"}
BODY = {
    "head": "टाउको",
    "stomach": "पेट",
    "hand": "हात",
    "foot": "खुट्टा",
    "eye": "आँखा",
    "tooth": "दाँत",
    "ear": "कान",
    "back": "ढाड",
}


def health(rng):
    """ "she has a fever" उनलाई ज्वरो आएको छ, "my head hurts" मेरो टाउको दुखेको छ."""
    verbs = {"ज्वरो": "आएको", "रुघा": "लागेको", "खोकी": "लागेको"}
    while True:
        subject, past = subjects(rng), rng.random() < 0.25
        form = rng.choices(("statement", "negation", "question"), (55, 20, 25))[0]
        third, is_ = subject.number == "s", {True: ("थियो", "थिएन"), False: ("छ", "छैन")}[past][form == "negation"]
        do = "did" if past else "does" if third else "do"
        if form == "question" and subject is I:
            continue
        if rng.random() < 0.45:
            english, ours = rng.choice(list(ILLS.items()))
            nepali, parts = f"{subject.lai} {ours} {verbs[ours]} {is_}", [("feeling", subject.english, english)]
            if form == "question":
                yield pair(f"{do} {subject.english} have {english}", "के " + nepali, *parts, mark="?")
            elif form == "negation":
                yield pair(f"{subject.english} {do} not have {english}", nepali, *parts)
            else:
                yield pair(
                    f"{subject.english} {'had' if past else 'has' if third else 'have'} {english}", nepali, *parts
                )
            continue
        english, ours = rng.choice(list(BODY.items()))
        if (
            subject.many
            or (not subject.object_english and not subject.english.startswith(("my ", "your ")))
            or subject.english.startswith("my parents")
            or subject.english.endswith("s")
        ):
            continue
        owner = subject.own if subject.object_english else subject.english + "'s"
        nepali, parts = f"{subject.of()} {ours} दुखेको {is_}", [("hurts", subject.english, english)]
        if form == "question":
            yield pair(f"{'did' if past else 'does'} {owner} {english} hurt", "के " + nepali, *parts, mark="?")
        elif form == "negation":
            yield pair(f"{owner} {english} {'did' if past else 'does'} not hurt", nepali, *parts)
        else:
            yield pair(f"{owner} {english} {'hurt' if past else 'hurts'}", nepali, *parts)


KNOWN = {"": "", "this": "यो", "that": "त्यो", "the answer": "उत्तर", "the road": "बाटो",
         "my name": "मेरो नाम", "his name": "उसको नाम",
         "her name": "उनको नाम", "where he lives": "ऊ कहाँ बस्छ",
         "where she lives": "उनी कहाँ बस्छिन्", "where they live": "उनीहरू कहाँ बस्छन्",
         "what this is": "यो के हो", "who he is": "ऊ को हो", "who she is": "उनी को हुन्",
         "where the market is": "बजार कहाँ छ",
         "where the school is": "स्कूल कहाँ छ", "where the hospital is": "अस्पताल कहाँ छ", "the story": "कथा",
         "our house": "हाम्रो घर", "his house": "उसको घर"}  # fmt: skip


def knowing(rng):
    """ "I do not know" मलाई थाहा छैन: knowledge is with a person; "do you know where he lives?" के तपाईंलाई ऊ
    कहाँ बस्छ थाहा छ?
    """
    while True:
        subject, (text, ours) = subjects(rng), rng.choice(list(KNOWN.items()))
        form, past = rng.choices(("statement", "negation", "question"), (30, 40, 30))[0], rng.random() < 0.15
        if (form == "question" and subject is I) or (subject.own and subject.own + " " == text[: len(subject.own) + 1]):
            continue
        if (past and text.startswith(("where", "what", "who"))) or (
            text.startswith(("my", "our")) and subject in (I, WE)
        ):
            continue
        is_ = {True: ("थियो", "थिएन"), False: ("छ", "छैन")}[past][form == "negation"]
        do = "did" if past else "does" if subject.number == "s" else "do"
        nepali, parts = words(subject.lai, ours, "थाहा", is_), [("know", subject.english, text or "it")]
        if form == "question":
            yield pair(
                words(do, subject.english, "know", text.replace("the ", "[the] ")), "के " + nepali, *parts, mark="?"
            )
        elif form == "negation":
            yield pair(words(subject.english, do, "not know", text.replace("the ", "[the] ")), nepali, *parts)
        else:
            verb = "knew" if past else "knows" if subject.number == "s" else "know"
            yield pair(words(subject.english, verb, text.replace("the ", "[the] ")), nepali, *parts)
