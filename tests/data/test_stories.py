"""The stories: the files are what the program writes, their text is right, the checker tells good from damaged."""

import random
import re
import unicodedata
from collections import Counter

import pytest

from data.en_ne.verbs import Verb
from data.stories import generate, words, words_ne
from data.stories.check import problems
from data.stories.plots import read_plots
from data.stories.template import parse, pattern, write
from toolkit.data.embedded import embedded

LANGUAGES = ("en", "ne")
SIDES = ("train", "valid")
SENTENCE = re.compile(r'[^ ].*?[.!?।]"?(?= [A-Z"]|$)')
THINGS = (
    "ball", "doll", "kite", "cup", "plate", "lamp", "tea", "soup", "mango", "apple", "potato", "umbrella", "purse",
    "ring", "goat", "jacket", "basket",
)  # fmt: skip
FLIPPED = {
    "he": "she",
    "she": "he",
    "his": "her",
    "him": "her",
    "her": "his",
    "himself": "herself",
    "herself": "himself",
}


@pytest.fixture(scope="module")
def stories():
    """The files: (side, language) -> stories."""
    folder = embedded("stories")
    return {(s, n): generate.read(folder / f"{s}.{n}.txt") for s in SIDES for n in LANGUAGES}


@pytest.fixture(scope="module")
def some():
    """Four English stories of every plot."""
    return [generate.story("en", number) for number in range(4 * len(read_plots("en")))]


# The files


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_story_occurs_twice(stories, language):
    everything = {story for side in SIDES for story in stories[side, language]}
    assert len(everything) == sum(generate.SIZES[language].values()), "a story occurs twice"
    for side in SIDES:
        assert len(stories[side, language]) == generate.SIZES[language][side]


def test_sizes(stories):
    size = {n: sum(len(story.encode()) for s in SIDES for story in stories[s, n]) for n in LANGUAGES}
    assert size["en"] >= 1_500_000
    assert size["ne"] >= 1_000_000
    assert sum(size.values()) < 12_000_000
    assert len(read_plots("en")) >= 25


@pytest.mark.parametrize("language", LANGUAGES)
def test_text(stories, language):
    allowed = re.compile(r"[A-Za-z' ,.?!:\"-]+" if language == "en" else r"[ऀ-॥ ,?!\"\u200d]+")
    least, most = generate.WORDS[language]
    for side in SIDES:
        for story in stories[side, language]:
            assert allowed.fullmatch(story), story
            assert unicodedata.is_normalized("NFC", story)
            assert least <= len(story.split()) <= most
            assert not re.search(r"  | [,.?!।]|[,.?!।]{2}|\"[,.?!।]|^ | $", story), story
            assert story.count('"') % 2 == 0


def test_nepali_spelling(stories):
    for side in SIDES:
        for story in stories[side, "ne"]:
            assert story.count("\u200d") == story.count("र्\u200dय"), story
            assert not re.search(r"हरु|तपाइ|तपाईँ|खुशी|रूख|मीठो|र्य", story), story


def test_nepali_verbs_agree_with_their_subject(stories):
    """What a girl says ends in a feminine verb, what a boy says in a plain one, what an elder says in a polite one."""
    girls, boys = "|".join(words_ne.GIRLS), "|".join(words_ne.BOYS)
    elders = "|".join(name for name, _ in words_ne.ELDERS)
    for side in SIDES:
        for story in stories[side, "ne"]:
            assert not re.search(rf"(?:^| )(?:{girls})ले (?:[^ ।]+ ){{0,2}}(?:भन्यो|सोध्यो|गर्‍यो|भन्नुभयो)", story), story
            assert not re.search(rf"(?:^| )(?:{boys})ले (?:[^ ।]+ ){{0,2}}(?:भनिन्|सोधिन्|गरिन्|भन्नुभयो)", story), story
            assert not re.search(rf"(?:^| )(?:{elders})ले (?:[^ ।]+ ){{0,2}}(?:भन्यो|भनिन्|सोध्यो|सोधिन्)", story), story
            assert not re.search(rf"(?:^| )(?:{girls}) (?:[^ ।]+ ){{0,2}}(?:गयो|भयो|आयो) ?।", story), story


# The program


def test_a_template_reads_what_it_writes():
    template = parse("{A} (ran|walked (slowly|)) with {A.his} {x}. {A.He} fell.")
    candidates = {"A": words.entities("child"), "x": (words.thing({"name": "ball"}),)}
    expression = re.compile(pattern(template, candidates))
    rng = random.Random(1)
    for _ in range(50):
        values = {variable: rng.choice(entities) for variable, entities in candidates.items()}
        text = write(template, values, rng)
        groups = expression.fullmatch(text).groups()
        assert groups == tuple(values[v].form(f) for v, f in (("A", "name"), ("A", "his"), ("x", "name"), ("A", "He")))


@pytest.mark.parametrize("text", ["a (b|c", "a) b", "{A} (b"])
def test_a_missing_bracket_is_an_error(text):
    with pytest.raises(ValueError, match="bracket"):
        parse(text)


def test_a_nepali_verb_is_a_form_of_its_subject():
    girl, boy, mother = words_ne.CHILDREN[0], words_ne.CHILDREN[-1], words_ne.entities("elder")[0]
    assert [who.form("past:जानु") for who in (girl, boy, mother)] == ["गइन्", "गयो", "जानुभयो"]
    assert [who.form("had:सुत्नु") for who in (girl, boy, mother)] == ["सुतेकी थिइन्", "सुतेको थियो", "सुत्नुभएको थियो"]
    assert [who.form("o:सान") for who in (girl, boy)] == ["सानी", "सानो"]
    assert boy.form("not:डराउनु") == Verb("डराउनु").past("he", negative=True) == "डराएन"


def test_names_tell_the_gender():
    assert not set(words.GIRLS) & set(words.BOYS)
    assert not set(words.PET_NAMES["he"]) & set(words.PET_NAMES["she"])


# The checker


def test_every_generated_story_is_consistent(some):
    assert not [(found, story) for story in some if (found := problems(story))]
    nepali = [generate.story("ne", number) for number in range(3 * len(read_plots("ne")))]
    assert not [(found, story) for story in nepali if (found := problems(story, "ne"))]


def swap(text, found, replacement, rng):
    """The text with one of the matches of a regular expression replaced; None if there is nothing to replace."""
    matches = list(re.finditer(found, text))
    if not matches:
        return None
    match = rng.choice(matches)
    new = replacement(match.group())
    return text[: match.start()] + (new.capitalize() if match.group()[0].isupper() else new) + text[match.end() :]


def damaged(kind, story, other, rng):
    if kind == "name":
        said = Counter(word for word in re.findall(r"\w+", story) if word in words.ALL_NAMES)
        there = [word for word, times in said.items() if times > 1]  # one that is said once may be anybody's
        others = [name for name in sorted(words.ALL_NAMES) if name not in said]
        return swap(story, rf"\b({'|'.join(sorted(there) or ['no name'])})\b", lambda name: rng.choice(others), rng)
    if kind == "pronoun":
        return swap(story, rf"(?i)\b({'|'.join(FLIPPED)})\b", lambda word: FLIPPED[word.lower()], rng)
    if kind == "object":
        expression = rf"\b({'|'.join(THINGS)})\b"
        return swap(story, expression, lambda word: rng.choice([t for t in THINGS if t != word]), rng)
    first, second = SENTENCE.findall(story), SENTENCE.findall(other)
    if kind == "mixed":
        return " ".join(first[: len(first) // 2] + second[len(second) // 2 :])
    return " ".join(first[:-2])


@pytest.mark.parametrize(
    ("kind", "rate"), [("name", 0.99), ("pronoun", 0.95), ("object", 0.97), ("mixed", 0.97), ("unfinished", 0.97)]
)
def test_damaged_stories_are_rejected(some, kind, rate):
    rng = random.Random(kind)
    plots = len(read_plots("en"))
    texts = [damaged(kind, story, some[(n + plots) % len(some)], rng) for n, story in enumerate(some)]
    texts = [text for text, story in zip(texts, some, strict=True) if text not in (None, story)]
    assert len(texts) > len(some) / 8
    assert sum(bool(problems(text)) for text in texts) / len(texts) >= rate


STORY = (
    "Once upon a time, there was a little girl named Sita. Her best toy was a red ball. One day, Sita could not find "
    "the ball. She looked everywhere, but she could not find it. Then Sita sat down and thought about the day before. "
    "Suddenly she remembered where she had played. And there it was, under the bed. From that day on, Sita always put "
    "the ball back in its place. Sita was very happy."
)


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("Sita was very happy", "Gita was very happy", "name: Gita"),
        ("a little girl", "a little boy", "name: Sita"),
        ("Her best", "His best", "pronoun: 'His'"),
        ("put the ball", "put the kite", "object: 'kite'"),
        ("put the ball", "put the sputnik", "unknown word: sputnik"),
        (STORY[STORY.index(" From that day") :], "", "unfinished"),
        ("looked everywhere", "looked at the moon", "no pattern"),
        ("very happy.", "very happy. She had a blue kite.", "after the end"),
    ],
)
def test_the_checker_says_what_is_wrong(old, new, says):
    assert problems(STORY) == []
    found = problems(STORY.replace(old, new))
    assert any(says in problem for problem in found), found


@pytest.mark.parametrize(
    "text", ["", "Hello", "Once upon a time", "Once upon a time, there was a little girl named Sita."]
)
def test_what_is_no_story_is_rejected(text):
    assert problems(text)
