"""The world of the conversations: names that are kept apart, facts that do not contradict each other, the base text."""

import re
import unicodedata
from collections import Counter
from random import Random

import pytest

from data.chat import base_nepali, free_names, names, nepali_names, unknowable, world
from data.chat.acts import slots_ne
from data.chat.dialogue_deck import read
from data.chat.facts import FACTS, SUMS, sums
from data.chat.facts_ne import FACTS_NE
from data.chat.style import core
from data.chat.writing import write
from data.en_ne.surface import fold_hard
from toolkit.data.embedded import CORPORA, embedded

SPLITS = ("train", "valid", "test")
OTHER_CORPORA = CORPORA / "en_ne" / "train.en", CORPORA / "stories" / "train.en.txt"
DEVANAGARI = re.compile(r"[ऀ-ॿ]")


@pytest.fixture(scope="module", autouse=True)
def _written():
    embedded("chat")
    embedded("stories")


@pytest.fixture(scope="module")
def text():
    """The base text."""
    return (CORPORA / "chat" / "base.txt").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def words(text):
    """Every word of the base text and of the two other corpora, in lower case."""
    everything = [text, *(path.read_text(encoding="utf-8") for path in OTHER_CORPORA)]
    return frozenset(re.findall(r"[a-z]+", " ".join(everything).lower()))


# Names


def test_there_are_more_names_than_can_be_learnt():
    assert len(names.all_made()) > 50_000
    assert len(names.seen_names()) == names.SEEN == len(set(names.seen_names()))
    for name in names.all_made()[::97]:
        assert re.fullmatch(r"[A-Z][a-z]{3,8}", name)


def test_people_and_pets_do_not_share_names():
    people = {*names.all_made(), *names.WOMEN, *names.MEN, *(roman for roman, *_ in names.NEPALI)}
    assert people.isdisjoint(names.all_pets())
    assert set(names.WOMEN).isdisjoint(names.MEN)


@pytest.mark.parametrize("draw", [names.name, names.made_name, names.pet_name])
@pytest.mark.parametrize("split", SPLITS)
def test_a_drawn_name_is_of_its_split(draw, split):
    rng = Random(5)
    drawn = [draw(split, rng) for _ in range(400)]
    assert {names.split_of(name) for name in drawn} == {split}
    assert all(names.is_test_name(name) == (split == "test") for name in drawn)


def test_names_of_any_make():
    """Hardly two are alike, and none is a word or what nobody wants to be called; one drawn name in five is one."""
    drawn = [free_names.free_name(Random(f"free {number}")) for number in range(3000)]
    assert len(set(drawn)) > 2900
    assert all(re.fullmatch(r"[A-Z][a-z]{3,9}", name) for name in drawn)
    assert free_names.known().isdisjoint(name.lower() for name in drawn)
    assert not any(free_names.OFFENSIVE.search(name.lower()) for name in drawn)
    listed = {*names.all_made(), *names.WOMEN, *names.MEN, *(roman for roman, *_ in names.NEPALI)}
    rng = Random(7)
    assert 0.15 < sum(names.name("train", rng) not in listed for _ in range(1000)) / 1000 < 0.25
    assert 0.2 < sum(names.pet_name("test", rng) not in names.all_pets() for _ in range(1000)) / 1000 < 0.3


def test_one_name_in_twelve_is_a_test_name():
    of = Counter(map(names.split_of, names.all_made()))
    assert of["test"] / of.total() == pytest.approx(1 / 12, rel=0.05)
    assert of["valid"] / of.total() == pytest.approx(1 / 24, rel=0.05)


def test_the_split_does_not_depend_on_the_program_or_the_case():
    assert [names.split_of(name) for name in ("Anna", "Peter", "Manoj", "Devi")] == ["train", "train", "test", "valid"]
    assert names.split_of("manoj") == "test"


def test_nepali_names():
    rng = Random(3)
    for split in SPLITS:
        for _ in range(50):
            roman, devanagari = names.nepali_name(split, rng)
            assert names.split_of(roman) == split
            assert all(map(DEVANAGARI.match, devanagari))
            assert unicodedata.is_normalized("NFC", devanagari)
            assert names.is_female(roman) == names.is_female(devanagari)
    assert len(names.NEPALI) >= 80
    for column in (0, 1):
        assert len({entry[column] for entry in names.NEPALI}) == len(names.NEPALI)


def test_a_test_name_is_in_no_training_text(words):
    every = {*names.all_made(), *names.all_pets(), *names.real("valid"), *names.real("test")}
    assert words.isdisjoint(name.lower() for name in every if names.split_of(name) != "train")


def test_no_test_name_is_in_the_nepali_texts(text):
    """Nor is a made name a word there; a word is a name if it is one with or without what is written to it."""
    other = ((path.parent / path.name.replace("en", "ne")).read_text(encoding="utf-8") for path in OTHER_CORPORA)
    kept = {devanagari for roman, devanagari, _ in names.NEPALI if names.split_of(roman) != "train"}
    kept |= {*nepali_names.made("valid"), *nepali_names.made("test")}
    assert kept.isdisjoint(stems(text))
    assert (kept | set(nepali_names.all_made())).isdisjoint(stems(" ".join(other)))


def stems(text):
    """All Nepali words of a text, as they are and without a postposition."""
    found = set(re.findall(r"[ऀ-ॣ\u200d]+", text))
    return found | {re.sub("(को|का|की|ले|लाई|मा|सँग|हरू|बाट)$", "", word) for word in found}


def test_made_nepali_names():
    made = nepali_names.all_made()
    assert len(set(made)) == len(made) > 20_000
    assert all(unicodedata.is_normalized("NFC", name) for name in made)
    for split in SPLITS:
        assert names.split_of(nepali_names.made_nepali_name(split, Random(4))) == split
    assert nepali_names.is_female("सीता")
    assert not nepali_names.is_female("राम")
    assert nepali_names.is_female("तोविना")
    assert not nepali_names.is_female("सेमुरन")


def test_a_made_name_is_no_word(text):
    """Not of the other corpora, of the facts, or of what people tell about themselves."""
    lists = [value for key, value in vars(world).items() if key.isupper() and key != "AGES"]
    told = " ".join(entry if isinstance(entry, str) else entry[1] for values in lists for entry in values)
    asked = " ".join(" ".join((*fact.questions, fact.full)) for fact in FACTS)
    strangers = " ".join(question for split in SPLITS for group in unknowable.questions(split) for question in group)
    corpora = " ".join(path.read_text(encoding="utf-8") for path in OTHER_CORPORA)
    known = set(re.findall(r"[a-z]+", " ".join((told, asked, strangers)).lower()))
    known |= set(re.findall(r"\b[a-z]+", corpora))  # the stories have made names too
    known -= {name.lower() for name in (*names.FAMILIAR, *names.PETS)}  # a pet may be called by a word
    assert known.isdisjoint(name.lower() for name in (*names.all_made(), *names.all_pets()))


# What is known, and what is not


@pytest.mark.parametrize("facts", [FACTS, FACTS_NE], ids=["english", "nepali"])
def test_a_question_has_one_answer(facts):
    questions = Counter(question.lower() for fact in facts for question in fact.questions)
    assert max(questions.values()) == 1
    for fact in facts:
        assert len(fact.questions) >= (3 if facts is FACTS else 2)
        assert all(question.endswith("?") for question in fact.questions)
        assert fact.short.lower() in fact.full.lower()
        assert fact.full.endswith("." if facts is FACTS else "।")
        assert fact.full[0].upper() == fact.full[0]
    assert len(facts) >= (200 if facts is FACTS else 25)


def test_sums_are_right():
    for one in SUMS:
        assert eval(one.signs.replace("x", "*")) == one.result >= 0
        assert one.words.split()[::2] == [str(one.a), str(one.b)]
    assert len(set(SUMS)) == len(SUMS) == 2 * 11 * 11 + 6 * 6
    a, op, b, result, said = sums(Random(1))
    assert (a, op, b, result, said) in SUMS


def test_what_cannot_be_known_is_kept_apart_by_split():
    of = {split: {q for group in unknowable.questions(split) for q in group} for split in SPLITS}
    assert min(len(questions) for questions in of.values()) > 100
    assert len(of["train"]) > 500
    known = {question for fact in FACTS for question in fact.questions}
    for split in SPLITS:
        assert known.isdisjoint(of[split])
        assert not any(of[split] & of[other] for other in SPLITS if other != split)
        assert unknowable.unknowable(split, Random(2)) in of[split]


# The base text


def test_the_text(text):
    assert 5_000_000 < len(text.encode()) < 9_000_000
    assert unicodedata.is_normalized("NFC", text)
    statements, questions = parts(text)
    assert len(set(statements)) > 0.9 * len(statements)
    allowed = re.compile(r"[ -~]+|[ऀ-ॿ ,?\"+-]+")
    for document in statements:
        assert allowed.fullmatch(document), document
        assert not re.search(r"  | [,.?!।]|[,.?!।]{2}|[{}\[\]|]|^ | $", document), document
        assert document.count('"') % 2 == 0, document
        assert document[-1] in '.?!"।', document
    allowed = re.compile("[ -~ऀ-ॿ‘’“”×÷−\u200d]+")
    for asked, answer in questions:
        assert allowed.fullmatch(asked), asked
        assert allowed.fullmatch(answer), answer
        assert not re.search(r"  |[{}\[\]|]|^ | $", f"{asked}\n{answer}"), asked
        assert answer[-1] in ".?!।", answer


def test_what_is_asked_can_be_answered(text):
    """Questions are the program's: what is translated is no sentence of the tests, and sums come out."""
    held_out = {fold_hard(pair.english) for split in ("valid", "test") for pair in read(split)}
    _, questions = parts(text)
    sums = quoted = 0
    for asked, answer in questions:
        for sentence in re.findall('["“]([^"“”]+)["”]', asked):
            assert fold_hard(sentence) not in held_out, asked
            quoted += 1
        if found := re.search(r"(\d+) (plus|minus|times) (\d+) is (\d+)\.$", core(answer)):
            one, how, two, result = found.groups()
            one, two = int(one), int(two)
            assert {"plus": one + two, "minus": one - two, "times": one * two}[how] == int(result), answer
            sums += 1
    assert sums > 200
    assert quoted > 2000


def parts(text):
    """Documents of one line, and those of two: (question, answer)."""
    documents = text.removesuffix("\n").split("\n\n")
    pairs = [tuple(document.split("\n")) for document in documents if "\n" in document]
    assert {len(pair) for pair in pairs} == {2}
    return [document for document in documents if "\n" not in document], pairs


def test_the_base_text_says_every_sum_and_fact_several_times(text):
    said = Counter(re.findall(r"\d+ (?:plus|minus|times) \d+ (?:is|makes) \d+", text))
    said.update(re.findall(r"\d+ [-+x*] \d+ = \d+", text))
    for one in SUMS:
        signs = {f"{one.signs} = {one.result}", f"{one.signs.replace('x', '*')} = {one.result}"}
        spoken = {f"{one.words} {verb} {one.result}" for verb in ("is", "makes")}
        assert sum(said[form] for form in signs | spoken) >= 4, one
    right = {f"{one.words} {verb} {one.result}" for one in SUMS for verb in ("is", "makes")}
    right |= {f"{one.signs.replace('x', sign)} = {one.result}" for one in SUMS for sign in "x*"}
    assert set(said) <= right
    assert all(text.count(fact.full) >= 8 for fact in FACTS)
    assert all(text.count(fact.full) >= 4 for fact in FACTS_NE)


def test_the_base_text_says_every_nepali_sum_several_times(text):
    said = Counter()
    for a, verb, b, result in re.findall(r"([०-९]+) (र|बाट) ([०-९]+) (?:जोड्दा|घटाउँदा) ([०-९]+) हुन्छ।", text):
        said[int(a), {"र": "+", "बाट": "-"}[verb], int(b), int(result)] += 1
    known = {(one.a, one.op, one.b, one.result) for one in SUMS if one.op != "x"}
    assert said.keys() == known
    assert min(said.values()) >= 4


def test_nobody_is_said_to_know_what_was_not_told():
    rng = Random(5)
    for _ in range(300):
        said, *unknown = re.split("मलाई ([^।?]+) थाहा छैन।", base_nepali.i_and_you(rng))
        for what in unknown[::2]:
            slot = next(slot for slot in slots_ne.SLOTS.values() if slot.what == what)
            value = f"(?:{'|'.join(slots_ne.JOBS)})" if slot is slots_ne.JOB else r"\S+(?: \S+)?"  # a name is no job
            told = [pattern.format(v=value) for pattern in slot.tells]
            assert not any(re.search(pattern, said) for pattern in told), said


def test_thousands_of_people_are_spoken_of_more_than_once(text):
    made = frozenset(names.all_made())
    again = set()
    for document in text.split("\n\n"):
        again.update(word for word, times in Counter(re.findall(r"[A-Z][a-z]+", document)).items() if times > 1)
    assert len(again & made) > 4000


def test_choices_are_made_from_the_inside():
    rng = Random(0)
    seen = {write("{who} [drinks [tea|milk]|sleeps].", {"who": "Anna"}, rng) for _ in range(60)}
    assert seen == {"Anna drinks tea.", "Anna drinks milk.", "Anna sleeps."}
