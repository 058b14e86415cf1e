"""The embedded English–Nepali corpus: its program, its paradigms, and what must be true of every line."""

import re
import unicodedata
from itertools import chain

import pytest

from data.en_ne import generate
from data.en_ne.english import EnglishVerb, a, ing_form, plural, question, statement, third_person
from data.en_ne.holdout import TAUGHT, TESTED, held_out
from data.en_ne.surface import fold, fold_hard, fold_nepali, variant
from data.en_ne.verbs import PERSONS, Verb, be, equals, inflect
from toolkit.data.embedded import embedded
from toolkit.data.sentence_boundaries import divided

SIDES = ("train", "valid", "test")


@pytest.fixture(scope="module")
def pairs():
    """The files: side -> list of (English, Nepali)."""
    read, folder = {}, embedded("en_ne")
    for side in SIDES:
        columns = [(folder / f"{side}.{language}").read_text(encoding="utf-8").split("\n") for language in ("en", "ne")]
        assert columns[0][-1] == columns[1][-1] == ""
        read[side] = list(zip(columns[0][:-1], columns[1][:-1], strict=True))
    return read


@pytest.fixture(scope="module")
def everything(pairs):
    return list(chain.from_iterable(pairs.values()))


# The program


def test_sizes(pairs):
    train = {fold(english) for english, _ in pairs["train"]}
    assert len(train) >= 22_000
    assert len(pairs["test"]) >= 900
    assert len(pairs["valid"]) >= 450
    assert len({word for sentence in train for word in sentence.split()}) >= 700
    assert len({word for _, nepali in pairs["train"] for word in fold_nepali(nepali).split()}) >= 700
    assert len(generate.read_phrases()) >= 800


def test_a_sentence_has_one_translation(everything):
    meaning = {}
    for english, nepali in everything:
        assert meaning.setdefault(fold(english), fold_nepali(nepali)) == fold_nepali(nepali), english


def test_every_line_is_one_sentence(everything):
    """A translator that is taught these reads one sentence at a time, and that is how texts are given to it."""
    lines = {*chain.from_iterable(everything)}
    assert [line for line in lines if divided(line).sentences != [line]] == []


def test_every_phrase_is_taught(pairs):
    train = set(pairs["train"])
    assert all((phrase.english, phrase.nepali) in train for phrase in generate.read_phrases())


def test_the_words_of_the_grammar_are_common(pairs):
    """A word that occurs seldom comes from the hand-written phrases."""
    phrases = {word for phrase in generate.read_phrases() for word in fold(phrase.english).split()}
    count = {}
    for english, _ in pairs["train"]:
        for word in fold(english).split():
            count[word] = count.get(word, 0) + 1
    rare = [word for word, times in count.items() if times < 8 and word not in phrases]
    assert not rare


# The hold-out


@pytest.mark.parametrize("side", ["valid", "test"])
def test_nothing_held_out_is_taught(pairs, side):
    english = {fold_hard(line) for line, _ in pairs["train"]}
    nepali = {fold_nepali(line) for _, line in pairs["train"]}
    for line, translation in pairs[side]:
        assert fold_hard(line) not in english, line
        assert fold_nepali(translation) not in nepali, translation


def test_valid_and_test_are_apart(pairs):
    assert not {fold_hard(line) for line, _ in pairs["valid"]} & {fold_hard(line) for line, _ in pairs["test"]}


def test_every_word_of_the_test_is_taught(pairs):
    english = {word for line, _ in pairs["train"] for word in fold(line).split()}
    nepali = {word for _, line in pairs["train"] for word in fold_nepali(line).split()}
    for line, translation in pairs["valid"] + pairs["test"]:
        assert set(fold(line).split()) <= english, line
        assert set(fold_nepali(translation).split()) <= nepali, translation


def test_i_am_a_boy_is_held_out_and_its_neighbours_are_taught(pairs):
    train, test = (
        {fold(english): fold_nepali(nepali) for english, nepali in pairs[side]} for side in ("train", "test")
    )
    assert test["i am a boy"] == "म केटा हुँ"
    assert not {"i am a boy", "i am boy", "i am not a boy"} & set(train)
    for sentence in ("i am a girl", "he is a boy", "you are a boy", "i am a student"):
        assert sentence in train


def test_holding_out_depends_on_the_combination_alone():
    assert all(held_out(part) == "test" for part in TESTED)
    assert not any(held_out(part) for part in TAUGHT)
    some = [("object", "drink", f"drink {n}") for n in range(4000)]
    assert 0.02 < sum(bool(held_out(part)) for part in some) / len(some) < 0.08


# The surface


def test_folding():
    for text in ("I'm a boy.", "im a boy", "I am a boy", "i'm a boy!"):
        assert fold(text) == "i am a boy"
    for text in ("I do not know.", "I don't know", "i dont know"):
        assert fold(text) == "i do not know"
    assert fold("He can't come.") == fold("he cannot come") == fold("he can not come")
    assert fold_hard("I am boy") == fold_hard("I am a boy.")


def test_variants_fold_to_the_same_sentence():
    import random

    rng = random.Random(1)
    seen = {variant("I am not a doctor.", "म डाक्टर होइनँ।", rng) for _ in range(300)}
    assert {fold(english) for english, _ in seen} == {"i am not a doctor"}
    assert {"I'm not a doctor.", "i am not a doctor", "im not a doctor"} <= {english for english, _ in seen}
    assert all(nepali.endswith("।") == english.endswith(".") for english, nepali in seen)


def test_every_kind_of_variant_is_there(pairs):
    english = [line for line, _ in pairs["train"]]
    shares = {
        "no mark": sum(line[-1] not in ".?!" for line in english),
        "lower case": sum(line == line.lower() for line in english),
        "contraction": sum("'" in line for line in english),
    }
    assert all(0.1 < number / len(english) < 0.7 for number in shares.values()), shares
    assert any(re.search(r"\b(dont|doesnt|im|cant)\b", line) for line in english)


# The text


def test_characters(everything):
    devanagari = re.compile(r"[ऀ-॥०-ॿ ,?!\u200d]+")
    for english, nepali in everything:
        assert re.fullmatch(r"[A-Za-z' ,.?!-]+", english), english
        assert devanagari.fullmatch(nepali), nepali
        for line in (english, nepali):
            assert unicodedata.is_normalized("NFC", line), line
            assert line == " ".join(line.split(" ")).strip(), line
            assert "  " not in line, line


def test_the_joiner_stands_only_in_the_eyelash_ra(everything):
    for _, nepali in everything:
        assert nepali.count("\u200d") == nepali.count("र्\u200dय"), nepali
        assert "र्य" not in nepali or "कार्य" in nepali or "पर्य" in nepali or "सूर्य" in nepali, nepali


def test_spelling(everything):
    for _, nepali in everything:
        assert not re.search(r"हरु|तपाइ|तपाईँ|काठमाडौं|हुँन|छैन्", nepali), nepali


def test_marks_are_mirrored(everything):
    mark = {".": "।", "?": "?", "!": "!"}
    for english, nepali in everything:
        assert mark.get(english[-1], "") == (nepali[-1] if nepali[-1] in "।?!" else ""), (english, nepali)
        assert " ।" not in nepali
        assert " ?" not in nepali
        assert " ," not in nepali


# Agreement, as properties of all lines. A clause ends at the sentence's end or before a conjunction.


def simple(english: str, nepali: str) -> bool:
    return (
        "," not in english
        and not re.search(r"\b(and|but|because|if|or)\b", english.lower())
        and not re.search(r"भने|थाहा", nepali)
    )


ENDINGS = {
    "म": r"(ँ|छु|[िे]नँ|इनँ|ऊँ|रूँ)$",
    "हामी": r"(ँ|औँ)$",
    "तपाईं": r"(नुहुन्छ|नुहुन्न|हुनुहुन्छ|हुनुहुन्न|नुभयो|नुभएन|नुहुनेछ|नुहुनेछैन|नुहुन्थ्यो|नुहुन्नथ्यो|छ|छैन|थियो|थिएन|हो)$",
    "उनी": r"(न्|िन्)$",
    "उनीहरू": r"(न्|े|ए)$",
}


@pytest.mark.parametrize("subject", list(ENDINGS))
def test_the_verb_agrees_with_a_pronoun(everything, subject):
    checked = 0
    for english, nepali in everything:
        words = fold_nepali(nepali).removeprefix("के ").split()
        if words[0] == subject and simple(english, nepali) and len(words) > 2 and "पनि" not in words:
            checked += 1
            assert re.search(ENDINGS[subject], words[-1]), nepali
    assert checked > 300


def test_a_polite_clause_never_ends_in_a_plain_verb(everything):
    for english, nepali in everything:
        words = fold_nepali(nepali).removeprefix("के ").split()
        if (
            words[0] in ("तपाईं", "तपाईंले", "शिक्षक", "डाक्टर")
            and simple(english, nepali)
            and words[-1] in ("छ", "छैन", "थियो", "थिएन")
        ):
            assert "भएको" in words[-2], nepali  # गर्नुभएको छ


def test_le_and_lai(everything):
    """मैले and उसले, never मले or ऊले; मलाई and उसलाई, never मैलाई or ऊलाई."""
    wrong = re.compile(r"(^| )(मले|ऊले|उनीले|तँले|मैलाई|ऊलाई|उनीलाई|मको|ऊको|उनीको|हामीको|तिमीको|उसँग|मैँले)( |$)")
    for _, nepali in everything:
        assert not wrong.search(fold_nepali(nepali)), nepali


def test_nouns_in_o_have_a_plural_in_a(everything):
    """दुईवटा बिराला, साँचाहरू; not in foreign words: फोटोहरू."""
    for _, nepali in everything:
        assert not re.search(r"(बिरालो|साँचो|डोको|बाटो)हरू|[^ट]वटा (बिरालो|साँचो|डोको)( |$)", fold_nepali(nepali)), nepali


def test_this_and_that_change_before_a_postposition(everything):
    for _, nepali in everything:
        assert not re.search(r"(^| )(यो|त्यो) (?!सबै)\S+(भन्दा|मुनि|भित्र|नजिक)( |$)", fold_nepali(nepali)), nepali


def test_postpositions_are_joined_to_their_noun(everything):
    """In the grammar's sentences; भित्र and नजिक are also adverbs."""
    phrases = {fold(phrase.english) for phrase in generate.read_phrases()}
    for english, nepali in everything:
        apart = re.search(r" (भन्दा|बिना|मुनि|मा|लाई|सँग|बाट|सम्म|ले) ", f" {fold_nepali(nepali)} ")
        assert not apart or fold(english) in phrases, nepali


def test_a_person_who_pleases_shows_his_level(everything):
    for _, nepali in everything:
        assert not re.search(r"(तपाईं|आमा|बुबा|शिक्षक|डाक्टर|पाहुना) मन (पर्छ|पर्दैन|पर्‍यो|परेन)( |$)", fold_nepali(nepali)), (
            nepali
        )
        assert not re.search(r"(^| )(म|हामी|उनी|उनीहरू) मन (पर्छ|पर्दैन)( |$)", fold_nepali(nepali)), nepali


def test_one_who_is_called_by_name_is_timi(everything):
    name = r"(राम|हरि|सीता|माया|गीता|विकास|मेरो साथी|साथी|भाइ|बहिनी|बच्चाहरू)"
    for english, nepali in everything:
        if re.match(rf"{name}, ", nepali) and "?" not in english:
            assert not re.search(r"तपाईं(ले|को|की|का)? |नुहोस्", fold_nepali(nepali) + " "), nepali


def test_who_sleeps_lies_sleeping(everything):
    assert not any("सुत्दै" in nepali.split() for _, nepali in everything)
    assert any("सुतिरहनुभएको छ" in nepali for _, nepali in everything)


TRANSITIVE_PAST = (
    r"(खाएँ|पिएँ|गरेँ|पढेँ|लेखेँ|किनेँ|देखेँ|धोएँ|दिएँ|बनाएँ|खायो|पियो|गर्‍यो|पढ्यो|लेख्यो|किन्यो|खाइन्|पिइन्|गरिन्|पढिन्|लेखिन्|खाए|पिए|गरे|पढे)$"
)
INTRANSITIVE_PAST = r"(गएँ|आएँ|सुतेँ|बसेँ|उठेँ|गयो|आयो|सुत्यो|गइन्|आइन्|सुतिन्|गए|आए|सुते)$"


def test_the_doer_in_the_past_takes_le_if_the_verb_is_transitive(everything):
    seen = 0
    for english, nepali in everything:
        if not simple(english, nepali):
            continue
        words = fold_nepali(nepali).split()
        if re.fullmatch(TRANSITIVE_PAST, words[-1]) and "मन" not in words:
            seen += 1
            assert any(word.endswith("ले") for word in words), nepali
        if re.fullmatch(INTRANSITIVE_PAST, words[-1]):
            assert not any(word in ("मैले", "उसले", "उनले", "हामीले", "उनीहरूले") for word in words), nepali
    assert seen > 300


def test_counted_nouns_have_no_plural(everything):
    for _, nepali in everything:
        assert not re.search(r"(वटा|जना) \w*हरू", nepali), nepali


def test_possessives_agree_with_female_kin(everything):
    female = "(आमा|बहिनी|छोरी|दिदी|काकी|हजुरआमा)"
    for _, nepali in everything:
        assert not re.search(rf"(मेरो|हाम्रो|तपाईंको|उसको|आफ्नो) {female}( |ल|स|क|$)", fold_nepali(nepali)), nepali
        assert not re.search(r"(मेरी|हाम्री|तपाईंकी|आफ्नी) (बुबा|भाइ|छोरा|दाइ|साथी|किताब|घर)( |$)", fold_nepali(nepali)), (
            nepali
        )


# The verb engine against the paradigms, typed out: i, we, low, familiar, polite, he, she, they.

PARADIGMS = {
    ("गर्नु", "present"): "गर्छु गर्छौँ गर्छस् गर्छौ गर्नुहुन्छ गर्छ गर्छिन् गर्छन्",
    ("गर्नु", "present not"): "गर्दिनँ गर्दैनौँ गर्दैनस् गर्दैनौ गर्नुहुन्न गर्दैन गर्दिनन् गर्दैनन्",
    ("गर्नु", "past"): "गरेँ गर्‍यौँ गरिस् गर्‍यौ गर्नुभयो गर्‍यो गरिन् गरे",
    ("गर्नु", "past not"): "गरिनँ गरेनौँ गरिनस् गरेनौ गर्नुभएन गरेन गरिनन् गरेनन्",
    ("गर्नु", "future"): "गर्नेछु गर्नेछौँ गर्नेछस् गर्नेछौ गर्नुहुनेछ गर्नेछ गर्नेछिन् गर्नेछन्",
    ("गर्नु", "used to"): "गर्थेँ गर्थ्यौँ गर्थिस् गर्थ्यौ गर्नुहुन्थ्यो गर्थ्यो गर्थिन् गर्थे",
    ("जानु", "present"): "जान्छु जान्छौँ जान्छस् जान्छौ जानुहुन्छ जान्छ जान्छिन् जान्छन्",
    ("जानु", "present not"): "जाँदिनँ जाँदैनौँ जाँदैनस् जाँदैनौ जानुहुन्न जाँदैन जाँदिनन् जाँदैनन्",
    ("जानु", "past"): "गएँ गयौँ गइस् गयौ जानुभयो गयो गइन् गए",
    ("जानु", "past not"): "गइनँ गएनौँ गइनस् गएनौ जानुभएन गएन गइनन् गएनन्",
    ("खानु", "present"): "खान्छु खान्छौँ खान्छस् खान्छौ खानुहुन्छ खान्छ खान्छिन् खान्छन्",
    ("खानु", "past"): "खाएँ खायौँ खाइस् खायौ खानुभयो खायो खाइन् खाए",
    ("खानु", "past not"): "खाइनँ खाएनौँ खाइनस् खाएनौ खानुभएन खाएन खाइनन् खाएनन्",
    ("आउनु", "present"): "आउँछु आउँछौँ आउँछस् आउँछौ आउनुहुन्छ आउँछ आउँछिन् आउँछन्",
    ("आउनु", "present not"): "आउँदिनँ आउँदैनौँ आउँदैनस् आउँदैनौ आउनुहुन्न आउँदैन आउँदिनन् आउँदैनन्",
    ("आउनु", "past"): "आएँ आयौँ आइस् आयौ आउनुभयो आयो आइन् आए",
    ("पिउनु", "past"): "पिएँ पियौँ पिइस् पियौ पिउनुभयो पियो पिइन् पिए",
    ("धुनु", "past"): "धोएँ धोयौँ धोइस् धोयौ धुनुभयो धोयो धोइन् धोए",
    ("बिर्सनु", "present"): "बिर्सन्छु बिर्सन्छौँ बिर्सन्छस् बिर्सन्छौ बिर्सनुहुन्छ बिर्सन्छ बिर्सन्छिन् बिर्सन्छन्",
    ("बिर्सनु", "past"): "बिर्सेँ बिर्स्यौँ बिर्सिस् बिर्स्यौ बिर्सनुभयो बिर्स्यो बिर्सिन् बिर्से",
}


@pytest.mark.parametrize(("infinitive", "tense"), list(PARADIGMS))
def test_verb_paradigm(infinitive, tense):
    forms = [inflect(Verb(infinitive), tense.removesuffix(" not"), who, tense.endswith(" not")) for who in PERSONS]
    assert forms == PARADIGMS[infinitive, tense].split()


def test_to_be():
    table = {
        (be, False, False): "छु छौँ छस् छौ हुनुहुन्छ छ छिन् छन्",
        (be, True, False): "छैनँ छैनौँ छैनस् छैनौ हुनुहुन्न छैन छैनन् छैनन्",
        (be, False, True): "थिएँ थियौँ थिइस् थियौ हुनुहुन्थ्यो थियो थिइन् थिए",
        (be, True, True): "थिइनँ थिएनौँ थिइनस् थिएनौ हुनुहुन्नथ्यो थिएन थिइनन् थिएनन्",
        (equals, False, False): "हुँ हौँ होस् हौ हुनुहुन्छ हो हुन् हुन्",
        (equals, True, False): "होइनँ होइनौँ होइनस् होइनौ हुनुहुन्न होइन होइनन् होइनन्",
    }
    for (form, negative, past), expected in table.items():
        assert [form(who, negative, past) for who in PERSONS] == expected.split()


def test_compound_tenses_and_modals():
    do, go, eat = Verb("गर्नु"), Verb("जानु"), Verb("खानु")
    assert inflect(eat, "continuous", "i") == "खाँदै छु"
    assert inflect(do, "past continuous", "they") == "गर्दै थिए"
    sleep = Verb("सुत्नु")
    lies = ["सुतिरहेको छु", "सुतिरहेका छौँ", "सुतिरहेको छ", "सुतिरहेकी छिन्", "सुतिरहेका छन्", "सुतिरहनुभएको छ"]
    assert [inflect(sleep, "continuous", who) for who in ("i", "we", "he", "she", "they", "polite")] == lies
    perfect = [inflect(do, "perfect", who) for who in ("i", "we", "he", "she", "they", "polite")]
    assert perfect == ["गरेको छु", "गरेका छौँ", "गरेको छ", "गरेकी छिन्", "गरेका छन्", "गर्नुभएको छ"]
    assert inflect(go, "can", "he", True) == "जान सक्दैन"
    assert inflect(go, "want to", "i") == "जान चाहन्छु"
    assert inflect(go, "have to", "she") == "जानुपर्छ"
    assert inflect(do, "had to", "i") == "गर्नुपर्‍यो"
    assert [verb.let_us() for verb in (do, go, eat, Verb("आउनु"))] == ["गरौँ", "जाऔँ", "खाऔँ", "आऔँ"]
    levels = ("low", "familiar", "polite")
    expected = {
        "गर्नु": "गर् गर गर्नुहोस्", "जानु": "जा जाऊ जानुहोस्", "खानु": "खा खाऊ खानुहोस्", "आउनु": "आइज आऊ आउनुहोस्",
        "दिनु": "दे देऊ दिनुहोस्", "पढ्नु": "पढ् पढ पढ्नुहोस्",
    }  # fmt: skip
    for infinitive, forms in expected.items():
        assert [Verb(infinitive).command(level) for level in levels] == forms.split()
    assert do.command("polite", True) == "नगर्नुहोस्"
    assert Verb("काम गर्नु").command("familiar", True) == "काम नगर"


def test_english():
    assert [third_person(verb) for verb in ("eat", "wash", "carry", "play", "go", "have")] == [
        "eats",
        "washes",
        "carries",
        "plays",
        "goes",
        "has",
    ]
    assert [ing_form(verb) for verb in ("make", "run", "see", "study")] == ["making", "running", "seeing", "studying"]
    assert [a(noun) for noun in ("egg", "university", "honest")] == ["an egg", "a university", "an honest"]
    assert [plural(noun) for noun in ("box", "story", "older brother", "child")] == [
        "boxes",
        "stories",
        "older brothers",
        "children",
    ]
    go = EnglishVerb("go", "went", "gone")
    assert statement("he", go, "past", "s", True) == "he did not go"
    assert statement("he", go, "present", "s") == "he goes"
    assert question("you", go, "perfect", "p") == "have you gone"
    assert statement("I", go, "can", "i", True) == "I cannot go"
