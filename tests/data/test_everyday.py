"""The everyday corpus: various, rightly written, and without anything that it is tested on."""

import json
import random
import re
import shutil
import subprocess
import sys
import unicodedata
from itertools import chain
from pathlib import Path

import pytest

from data.en_ne.surface import fold, fold_nepali
from data.everyday import check, generate, glossary, real, swaps, tables
from data.everyday.generate import FEW, MARK, rare_names, with_marks, without
from data.everyday.tables import Entry, HeldOut, Name
from toolkit.data.embedded import embedded
from toolkit.data.lines import read_lines
from toolkit.speller import load_spellings, save_spellings
from toolkit.tokenization.carrying import Carrier, has_marks

KINDS = ("sentences", "typed", "worded", "swaps", "grammar", "names")


@pytest.fixture(scope="module")
def folder() -> Path:
    return embedded("everyday", quiet=True)


def pairs(folder: Path, kind: str) -> list[tuple[str, str]]:
    return list(zip(read_lines(folder / f"{kind}.en"), read_lines(folder / f"{kind}.ne"), strict=True))


def test_the_sentences_are_no_template_filled_in():
    found = check.report(tables.sentences(), one_in=5)  # neighbours take seconds: a sample has the same share
    assert found.masked > 0.9 * found.rows
    assert found.near < 0.05 * found.compared
    assert found.beginnings[0][1] < 0.01 * found.rows


def test_the_sentences_are_rightly_written():
    assert list(check.problems(tables.sentences())) == []
    for name in "test", "valid":
        entries = tables.held_out(name)
        assert len(entries) >= 250
        assert all(len(entry.nepali) > 1 and len({*entry.nepali}) == len(entry.nepali) for entry in entries)
        assert list(check.problems([Entry([], entry.nepali, entry.topic) for entry in entries])) == []


@pytest.mark.parametrize(
    ("entry", "problem"),
    [
        (Entry(["Five."], ["पाँच"], "x"), "no final mark"),
        (Entry(["At 5"], ["६ बजे"], "x"), "other digits"),
        (Entry(["They"], ["उनीहरु"], "x"), "हरु"),
        (Entry(["a|b"], ["क"], "x"), "signs"),
        (Entry(["a"], ["क\u200dख"], "x"), "signs"),
    ],
)
def test_mistakes_of_writing_are_found(entry, problem):
    (found,) = check.problems([entry])
    assert problem in found


def test_templates_filled_in_would_be_found():
    words = ["book", "pen", "table", "chair", "window", "door"]
    filled = check.report([Entry([f"Where is the {word}?"], ["?"], "x") for word in words])
    assert (filled.rows, filled.masked, filled.beginnings[0][0]) == (6, 1, "where is the book")
    three = ["where is the red book", "where is the red books", "it rains"]
    assert [check.near_ones(three, one_in) for one_in in (1, 2, 3)] == [1, 1, 0]


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_taught_that_is_tested(folder, kind):
    taught = pairs(folder, kind)
    assert len(taught) > 1000
    english = {fold(pair[0]) for pair in taught}
    nepali = {fold_nepali(pair[1]) for pair in taught}
    for entry in tables.held_out("test") + tables.held_out("valid"):
        assert english.isdisjoint(map(fold, entry.english))
        assert fold_nepali(entry.nepali[0]) not in nepali


def test_the_names_of_the_test_stand_nowhere_else(folder):
    tested = json.loads((folder / "names-test.json").read_text("utf-8"))
    names = {name["latin"].lower() for name in tested}
    english = set(tables.english_names())
    foreign = {name["latin"] for name in tested[: 3 * tables.HELD_NAMES]}
    assert len(english) == tables.HELD_NAMES
    assert len(names) == 2 * tables.HELD_NAMES + len(english - foreign)
    for kind in KINDS:
        for text, _ in pairs(folder, kind):
            assert names.isdisjoint(tables.words(text)), text
    for name, english, nepali in zip(
        tested, *(read_lines(folder / f"names-test.{side}") for side in ("en", "ne")), strict=True
    ):
        assert name["latin"] in english
        assert name["devanagari"][0] in nepali


def test_sources_and_references_of_a_test_belong_together(folder):
    for name in "test", "valid":
        for side in "en", "ne":
            sources, references = (
                read_lines(folder / f"{name}.{side}"),
                read_lines(folder / f"{name}.references.{side}"),
            )
            assert [line.split("\t")[0] for line in references] == sources
    listed, judged = (read_lines(folder / f"valid.{kind}.en") for kind in ("references", "judged"))
    assert sum(len(line.split("\t")) for line in judged) == sum(len(line.split("\t")) for line in listed) + 108
    assert all(ours.startswith(theirs) for ours, theirs in zip(judged, listed, strict=True))


def test_numbers_and_addresses_are_changed_on_both_sides():
    given = [
        ("Call 9841234567 at 6:45.", "६:४५ मा ९८४१२३४५६७ मा फोन गर्नुहोस्।"),
        ("Write to a@b.com.", "a@b.com मा लेख्नुहोस्।"),
    ]
    found = generate.with_other_numbers([*given, ("Go.", "जाऊ।")], random.Random(1))
    assert len(found) == 2 * generate.OTHER_NUMBERS
    for english, nepali in found:
        assert sorted(generate.NUMBER.findall(generate.ADDRESS.sub("", english))) == sorted(
            generate.NUMBER.findall(generate.ADDRESS.sub("", nepali.translate(tables.DEVANAGARI_DIGITS)))
        )
        assert generate.ADDRESS.findall(english) == generate.ADDRESS.findall(nepali)
    assert len({*found}) > len(given)


def test_what_is_held_out_is_found_however_it_is_written():
    held = HeldOut(
        [Entry(["I'm full.", "I am not hungry."], ["मलाई पुग्यो।", "म अघाएँ।"], "x")], [Name("given", "Lena", ["लेना"])]
    )
    assert held.has("im full", "x")
    assert held.has("I am not hungry!", "x")
    assert held.has("x", "मलाई पुग्यो")
    assert held.has("This is Lena's book.", "x")
    assert not held.has("I am hungry.", "म अघाएँ।")


def test_a_table_with_a_mistake_is_refused(tmp_path):
    (tmp_path / "x.tsv").write_text("a\tb\n# note\n\na\n")
    with pytest.raises(ValueError, match=r"x\.tsv:4 has 1 cells, 2 are needed"):
        list(tables.cells(tmp_path / "x.tsv", 2))


def test_real_text_is_joined_without_what_is_tested(tmp_path):
    lines = [f"This is the real line of number {number} about {number * 7919 % 101} mountains." for number in range(40)]
    (tmp_path / "m.en").write_text("".join(f"{line}\n" for line in lines))
    (tmp_path / "m.ne").write_text("".join(f"पङ्क्ति {number}\n" for number in range(40)))
    rows = [
        ("en", "ne"),
        (lines[19].upper(), "फेरि"),
        ("Something else entirely.", "अर्कै कुरा।"),
        ("Something else entirely.", "अर्कै कुरा।"),
    ]
    (tmp_path / "t.tsv").write_text("".join("\t".join(row) + "\n" for row in rows))
    command = [sys.executable, "-m", "data.everyday.real", "--out", tmp_path / "out", "--table", tmp_path / "t.tsv"]
    command += ["--lines", tmp_path / "m.en", tmp_path / "m.ne"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "'there before': 1" in done.stdout
    assert read_lines(tmp_path / "out" / "long.en") == [lines[19], lines[39]]
    kept = read_lines(tmp_path / "out" / "real.tsv")
    assert kept[1] == "Something else entirely.\tअर्कै कुरा।"
    assert not any(real.fold(lines[place]) in map(real.fold, kept) for place in (19, 39))
    # What is remembered is the translation of another pair, and of a less similar one the second time.
    subprocess.run([*command, "--memory"], capture_output=True, check=True)
    pairs, (first, *rows) = [line.split("\t") for line in kept[1:]], read_lines(tmp_path / "out" / "memory.tsv")
    read, targets = zip(*(row.split("\t") for row in rows), strict=True)
    assert (first, list(targets)) == ("en\tne", [nepali for _, nepali in pairs] * 2)
    remembered = [text.split(real.REMEMBERED) for text in read]
    assert [english for english, _ in remembered] == [english for english, _ in pairs] * 2
    assert all(nepali in {"", *targets} - {own} for (_, nepali), own in zip(remembered, targets, strict=True))
    near, far = ([nepali for _, nepali in half] for half in (remembered[: len(pairs)], remembered[len(pairs) :]))
    assert near != far
    assert [line.split(real.REMEMBERED)[0] for line in read_lines(tmp_path / "out" / "memory.long.en")] == [
        lines[19],
        lines[39],
    ]
    assert len(read_lines(tmp_path / "out" / "memory.valid.tsv")) == len(read_lines(tmp_path / "out" / "valid.tsv"))
    missing = subprocess.run([*command[:-1], tmp_path / "none"], capture_output=True, text=True, check=False)
    assert (missing.returncode, missing.stderr.count("\n")) == (2, 1)


def test_the_glossary_has_nouns_as_nepalis_call_them():
    nouns = glossary.read_glossary()
    assert len(nouns) == len(tables.HERE.joinpath("glossary.tsv").read_text("utf-8").splitlines()) - 1
    for noun, nepali in nouns.items():
        assert re.fullmatch("[a-z]+", noun), noun
        assert re.fullmatch("[\u0904-\u0939][\u0900-\u094d\u0960\u200d -]*", nepali), noun
        assert unicodedata.is_normalized("NFC", nepali), noun


def test_a_translator_looks_up_nouns_that_it_hardly_knows(tiny_model, tmp_path):
    name = tables.names()[0].latin.lower()
    every = glossary.read_glossary()
    rare = next(iter(glossary.to_look_up(every, every.keys())))  # stands in few sentences
    nouns = {rare: every[rare], "zyzzyva": "कीरो", "water": "पानी", name: "नाम"}
    assert glossary.to_look_up(nouns, {rare, "water"}) == {rare: every[rare], "zyzzyva": "कीरो"}
    directory = Path(shutil.copytree(tiny_model, tmp_path / "model"))
    Carrier(frozenset([rare, "water", "the"]), "devanagari").save(directory)
    shutil.copytree(tiny_model, directory / "names")
    (directory / "names" / "spellings.tsv").write_text("zoe\tजोई\nzq\t\n")
    command = [sys.executable, "-m", "data.everyday.glossary", "--model"]
    done = subprocess.run([*command, directory], capture_output=True, text=True, check=True)
    assert re.fullmatch(r"[\d,]+ nouns are looked up; the model knew 1 of them\n", done.stdout)
    assert Carrier.load(directory).known == {"water", "the"}
    spellings = load_spellings(directory / "names")
    assert (spellings[rare], spellings["zoe"], spellings["zq"]) == (every[rare], "जोई", "")
    for missing in tiny_model, tmp_path / "none":
        failed = subprocess.run([*command, missing], capture_output=True, text=True, check=False)
        assert (failed.returncode, failed.stderr.count("\n")) == (2, 1)


def test_things_are_exchanged_for_others_of_their_kind_on_both_sides():
    every = [
        swaps.Thing("apple", "स्याउ", "food", True),
        swaps.Thing("egg", "अण्डा", "food", True),
        swaps.Thing("salt", "नुन", "food", False),
        swaps.Thing("bus", "बस", "vehicle", True),
        swaps.Thing("taxi", "ट्याक्सी", "vehicle", True),
    ]
    say, rng = swaps.Swaps(every).of, random.Random(1)
    assert say("I left an apple here.", "मैले यहाँ एउटा स्याउ छोडेँ।", rng) in (
        None,
        ("I left an egg here.", "मैले यहाँ एउटा अण्डा छोडेँ।"),
    )
    found = {say("We go by bus.", "हामी बसमा जान्छौँ।", random.Random(seed)) for seed in range(9)}
    assert found == {None, ("We go by taxi.", "हामी ट्याक्सीमा जान्छौँ।")}
    for english, nepali in (
        ("Two apples.", "दुईवटा स्याउ।"),  # several
        ("An apple is an apple.", "स्याउ स्याउ हो।"),  # twice
        ("Sit on the bus.", "बसमा बस्नुहोस्।"),  # not in Nepali by itself
        ("Salt, please.", "कृपया नुन।"),  # no other of its kind
    ):
        pairs = {say(english, nepali, random.Random(seed)) for seed in range(9)}
        assert pairs <= {None, ("Sit on the taxi.", "ट्याक्सीमा बस्नुहोस्।")}


def test_nepali_is_said_in_words_that_others_use():
    synonyms = swaps.Synonyms()

    def said(english, nepali):
        return {synonyms.of(english, nepali, random.Random(seed)) for seed in range(300)}

    assert said("Give her the book.", "उनलाई किताब दिनुहोस्।") == {
        f"{her} {book} दि{give}।"
        for her in ("उनलाई", "तिनलाई")
        for book in ("किताब", "पुस्तक")
        for give in ("नुहोस्", "नुस्")
    }
    assert said("The friends of the teacher came.", "शिक्षकका साथीहरू आए।") == {
        f"{teacher}का {friends} आए।"
        for teacher in ("शिक्षक", "टिचर", "मास्टर", "अध्यापक")
        for friends in ("साथीहरू", "मित्रहरू")
    }
    assert said("Mrs. Rai came.", "श्रीमती राई आइन्।") == {"श्रीमती राई आइन्।"}  # nobody's wife
    assert said("My parents live here.", "मेरा आमाबुबा यहाँ बस्नुहुन्छ।") >= {"मेरा मातापिता यहाँ बस्नुहुन्छ।"}
    assert "मेरा मम्मीबुबा यहाँ बस्नुहुन्छ।" not in said("My mother and father live here.", "मेरा आमाबुबा यहाँ बस्नुहुन्छ।")


def test_two_statements_become_one_and_keep_what_they_say():
    entries = [
        Entry(["I know."], ["मलाई थाहा छ।"], "x"),
        Entry(["It rains a lot."], ["धेरै पानी पर्छ।"], "x"),
        Entry(["Does it?"], ["हो र?"], "x"),
        Entry(["Here it rains. Go."], ["यहाँ पानी पर्छ। जाऊ।"], "x"),
    ]
    found = {*swaps.joined(entries, 60, random.Random(1))}
    assert ("I know, but it rains a lot.", "मलाई थाहा छ, तर धेरै पानी पर्छ।") in found
    assert ("It rains a lot because I know.", "धेरै पानी पर्छ किनभने मलाई थाहा छ।") in found
    assert len(found) == 2 * len(swaps.CONJUNCTIONS)


def test_several_sentences_are_typed_in_one_breath_and_all_of_them_translated():
    entries = [
        Entry(["I don't know.", "No idea."], ["मलाई थाहा छैन।", "थाहा छैन।"], "x"),
        Entry(["Is it far?"], ["के टाढा छ?"], "x"),
        Entry([f"{MARK} is here."], [f"{MARK} यहाँ छ।"], "names"),
        Entry(["Yes. Come in."], ["हो। भित्र आउनुहोस्।"], "x"),  # is two already
        Entry(["It is " + "very " * 9 + "far."], ["धेरै टाढा छ।"], "x"),  # too long for one breath
    ]
    found = swaps.run_on(entries, 400, random.Random(1))
    assert {len(re.findall("[।?]", nepali)) + 1 for _, nepali in found} == {2, 3}
    for english, nepali in found:
        assert english[-1] not in ".?"
        assert nepali[-1] not in "।?"
        assert "very" not in english
        assert "Come" not in english
        assert sorted(filter(has_marks, english)) == sorted(filter(has_marks, nepali))
        assert ("far" in english) == ("के टाढा छ" in nepali)
        assert "। थाहा" not in nepali
    assert {"i dont know and is it far", "No idea, Is it far"} <= {english for english, _ in found}
    assert dict(found)["is it far i don't know"] == "के टाढा छ? मलाई थाहा छैन"
    found = swaps.run_on(entries[:2], 400, random.Random(1), nepali=True)
    assert {"के टाढा छ अनि थाहा छैन", "थाहा छैन, के टाढा छ"} <= {nepali for _, nepali in found}
    assert {english for english, nepali in found if nepali == "के टाढा छ थाहा छैन"} == {"Is it far? I don't know"}


def test_a_name_that_few_sentences_have_gives_way_to_a_mark():
    names = [Name("given", "Peter", ["पिटर"]), Name("given", "Hope", ["होप"]), Name("place", "Rome", ["रोम"])]
    entries = [
        Entry(["Call Peter.", "Ring Peter up."], ["पिटरलाई फोन गर्नुहोस्।", "पिटर दाइलाई फोन गर्नुहोस्।"], "phone"),
        Entry(["I hope so, Hope."], ["आशा छ, होप।"], "feelings"),
        Entry(["Rome is old.", "It is an old city."], ["रोम पुरानो छ।", "यो सहर पुरानो छ।"], "travel"),
        Entry(["Stop!", "Stop, Peter!"], ["रोक!"], "travel"),
        Entry(["Peter is here."], ["पिटरसन यहाँ छ।"], "family"),
    ]
    found = without(rare_names(entries, names, []), entries)
    assert found == [
        Entry([f"Call {MARK}.", f"Ring {MARK} up."], [f"{MARK}लाई फोन गर्नुहोस्।", f"{MARK} दाइलाई फोन गर्नुहोस्।"], "phone"),
        entries[1],
        Entry([f"{MARK} is old."], [f"{MARK} पुरानो छ।"], "travel"),
        Entry(["Stop!"], ["रोक!"], "travel"),
    ]
    assert without(rare_names(entries, names, ["Peter!"] * FEW), entries)[0] == entries[0]


def test_each_rare_name_of_a_sentence_has_a_mark_of_its_own():
    names = [Name("given", "Emma", ["एमा"]), Name("place", "Berlin", ["बर्लिन"]), Name("place", "Canada", ["क्यानडा"])]
    entries = [
        Entry(["I'm Emma from Berlin.", "Emma is from Berlin."], ["म बर्लिनकी एमा हुँ।"], "names"),
        Entry(["I'm Emma from Canada."], ["म क्यानडाकी एमा हुँ।"], "names"),
    ]
    one, two = MARK, chr(ord(MARK) + 1)
    found = without(rare_names(entries, names, ["Canada"] * FEW), entries)
    assert found == [
        Entry([f"I'm {one} from {two}.", f"{one} is from {two}."], [f"म {two}की {one} हुँ।"], "names"),
        Entry([f"I'm {one} from Canada."], [f"म क्यानडाकी {one} हुँ।"], "names"),
    ]
    assert with_marks([], names, generate.said(found)) == [(f"I'm {one} from {two}.", f"म {two}की {one} हुँ।")]
    several = with_marks([], names, [("I'm Emma from Berlin.", "म बर्लिनकी एमा हुँ।")])
    assert several == [
        (f"I'm {one} from Berlin.", f"म बर्लिनकी {one} हुँ।"),
        (f"I'm Emma from {one}.", f"म {one}की एमा हुँ।"),
        (f"I'm {one} from {two}.", f"म {two}की {one} हुँ।"),
    ]


def test_what_is_joined_does_not_share_a_mark():
    entries = [
        Entry([f"{MARK} sleeps."], [f"{MARK} सुत्छ।"], "names"),
        Entry([f"I see {MARK}."], [f"म {MARK} देख्छु।"], "names"),
    ]
    for english, nepali in swaps.joined(entries, 20, random.Random(0)):
        assert sorted(filter(has_marks, english)) == sorted(filter(has_marks, nepali)) == [MARK, chr(ord(MARK) + 1)]


def test_nothing_is_spelled_that_is_written_like_a_name_of_the_test():
    every = tables.only_spelled([])
    name, word = every[0], every[-1]
    assert (word.kind, name.kind in (*tables.FOREIGN, *tables.NEPALI)) == ("word", True)
    held = [Name("given", "Else", word.devanagari), Name("given", name.latin.upper(), ["अर्कै"])]
    others = tables.only_spelled(held)
    assert len(every) - 10 < len(others) < len(every)
    assert name not in others
    assert all(each.devanagari != word.devanagari for each in others)


def test_the_first_spelling_is_the_one_of_the_table(folder, tmp_path):
    save_spellings(tmp_path, pairs(folder, "english-spellings"))
    every = (each for each in tables.names("further-names.tsv") if each.language == "E" and len(each.devanagari) > 1)
    name = next(every)
    assert load_spellings(tmp_path)[name.latin.lower()] == name.devanagari[0]
    save_spellings(tmp_path, [pair[::-1] for pair in pairs(folder, "english-spellings")])
    assert load_spellings(tmp_path)["जोन"] == "john"  # and not Jon: names are in the order of how common they are


def test_every_name_that_is_taught_has_a_language(folder):
    tested = {name["latin"] for name in json.loads((folder / "names-test.json").read_text("utf-8"))}
    for name in chain(tables.names(), tables.only_spelled([])):
        kinds = [kind for kind, languages in generate.SPELLED.items() if name.language in [*languages]]
        assert len(kinds) == (name.latin not in tested), name
        assert not kinds or (kinds == ["nepali"]) == (name.kind in tables.NEPALI), name


def test_the_names_that_are_only_spelled_are_others_and_written_right():
    table = tables.names("further-names.tsv")
    known = {name.latin.lower() for name in tables.names()}
    assert known.isdisjoint(name.latin.lower() for name in table)
    for name in table:
        assert re.fullmatch("[A-Za-zÀ-ɏ]+", name.latin), name
        for each in name.devanagari:
            assert re.fullmatch("[\u0904-\u0939\u0960][\u0900-\u094d\u0960\u200d]*", each), name
            assert unicodedata.is_normalized("NFC", each), name
