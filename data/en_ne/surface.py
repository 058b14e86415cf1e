"""English as people type it, and the folding that makes all these forms one again.

A sentence of the grammar is written in full: "I am [a] boy." In the corpus it may appear as "I'm a boy.", "i am a boy",
"im a boy" or, without the bracketed word, "I am boy". The Nepali side never changes, except that the final mark is
mirrored.
"""

import re
from functools import cache

# Full form | contraction. Pronoun + verb on the left of the bar in PRONOUN, verb + not in NOT; a sentence uses one of
# the two.
PRONOUN = {
    "I am": "I'm", "you are": "you're", "he is": "he's", "she is": "she's", "it is": "it's", "we are": "we're",
    "they are": "they're", "I will": "I'll", "you will": "you'll", "he will": "he'll", "she will": "she'll",
    "we will": "we'll", "they will": "they'll", "I have": "I've", "you have": "you've", "we have": "we've",
    "they have": "they've", "what is": "what's", "where is": "where's", "who is": "who's", "that is": "that's",
    "let us": "let's", "there is": "there's",
}  # fmt: skip
NOT = {
    "do not": "don't", "does not": "doesn't", "did not": "didn't", "is not": "isn't", "are not": "aren't",
    "was not": "wasn't", "were not": "weren't", "will not": "won't", "cannot": "can't", "could not": "couldn't",
    "have not": "haven't", "has not": "hasn't", "had not": "hadn't",
}  # fmt: skip
# Without their apostrophes these are no other English word, so they can be typed that way ("its", "well", "were" are
# left out).
AMBIGUOUS = ("its", "well", "were", "hell", "shell", "ill")
BARE = {
    form.replace("'", "").lower(): full
    for full, form in (PRONOUN | NOT).items()
    if form.replace("'", "").lower() not in AMBIGUOUS
}
WHOLE = {form.lower(): full.lower() for full, form in (PRONOUN | NOT).items()} | {
    bare: full.lower() for bare, full in BARE.items()
}
WHOLE |= dict.fromkeys(("cannot", "can't", "cant"), "can not")
PUNCTUATION = re.compile(r"[.?!,;:\"()।]")


@cache
def fold(text: str) -> str:
    """Case, punctuation and contractions away: "I'm a boy." and "im a boy" are both "i am a boy"."""
    words = PUNCTUATION.sub(" ", text.lower().replace("’", "'")).split()
    return " ".join(WHOLE.get(word) or word.replace("'", "") for word in words)


@cache
def fold_hard(text: str) -> str:
    """`fold` without articles: by this measure "I am boy" is "I am a boy"."""
    return " ".join(word for word in fold(text).split() if word not in ("a", "an", "the"))


@cache
def fold_nepali(text: str) -> str:
    return " ".join(PUNCTUATION.sub(" ", text).split())


def full(english: str) -> str:
    """The sentence with all its words."""
    return english.replace("[", "").replace("]", "")


def without_article(english: str) -> str:
    """The sentence as one types it who forgets the bracketed articles: "I am boy.", "where is market?"."""
    text = re.sub(r"\[\w+\] ", "", english)
    return text[0].upper() + text[1:]


def _finder(table: dict[str, str]) -> re.Pattern:
    """Matches the full forms, but not before the end of the sentence: nobody writes "where I'm?"."""
    return re.compile(r"\b(" + "|".join(table) + r")\b(?=\s\w)", re.IGNORECASE)


# "I have" is "I've" only before a participle ("I've eaten"); before a thing it is a verb of its own.
HAVE = re.compile(
    r"\w+ have (?:not |never )?"
    r"(?:\w+(?:ed|en|wn|ne|ght|ung|ade|ept|ent|old|orn|ost)|read|met|sat|cut|run|come|drunk|swum|won)\b",
    re.IGNORECASE,
)
FINDERS = (_finder(PRONOUN), _finder(NOT))
SHORT = {full.lower(): form for full, form in (PRONOUN | NOT).items()}


def contract(text: str, rng) -> str:
    """One contraction where there is a place for it: the pronoun's ("he's not") or the negation's ("he isn't")."""
    finders = FINDERS if rng.random() < 0.5 else FINDERS[::-1]
    for finder in finders:
        found = finder.search(text)
        if found and not (found.group().lower().endswith(" have") and not HAVE.match(text, found.start())):
            short = SHORT[found.group().lower()]
            short = short[0].upper() + short[1:] if found.group()[0].isupper() else short
            return text[: found.start()] + short + text[found.end() :]
    return text


def variant(english: str, nepali: str, rng) -> tuple[str, str]:
    """One way to type the pair. About half keep the mark, two in five are all lower case, two in five are contracted
    where possible.
    """
    text = without_article(english) if "[" in english and rng.random() < 0.12 else full(english)
    if rng.random() < 0.42:
        text = contract(text, rng)
    if rng.random() < 0.42:
        text = text.lower()
        if rng.random() < 0.5:
            text = text.replace(", please", " please")
        if rng.random() < 0.3 and text.replace("'", "") != text:
            text = " ".join(
                w.replace("'", "") if w.strip(".?!,").replace("'", "") in BARE else w for w in text.split(" ")
            )
    if text[-1] in ".?!" and rng.random() < 0.45:
        text, nepali = text[:-1], nepali[:-1]
    return text, nepali
