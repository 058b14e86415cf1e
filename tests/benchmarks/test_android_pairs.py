"""Pairs out of resource files: what Android means by them, what is left out, and what is held out."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks import android_pairs
from tests.benchmarks.android_pairs import named_pairs, near, split, triples

HEAD = '<?xml version="1.0" encoding="utf-8"?><resources xmlns:xliff="urn:oasis:names:tc:xliff:document:1.2">'

# What is kept: name, how it is written in each language, and the text that is meant.
FIT = (
    ('name="tea"', "Drink  your\n    tea", "आफ्नो चिया   पिउनुहोस्", "Drink your tea", "आफ्नो चिया पिउनुहोस्"),
    ('name="can"', r"I can\'t read it", r"म \"यो\" पढ्न सक्दिनँ", "I can't read it", 'म "यो" पढ्न सक्दिनँ'),
    ('name="and"', "Tea &amp; milk", "चिया तथा दूध", "Tea & milk", "चिया तथा दूध"),
    ('name="all"', '"All my books"', r"मेरा सबै\u0020किताब", "All my books", "मेरा सबै किताब"),
    ('name="cat" product="phone"', "See a cat", "बिरालो हेर्नुहोस्", "See a cat", "बिरालो हेर्नुहोस्"),
    ('name="cat" product="tablet"', "See two cats", "दुई बिराला हेर्नुहोस्", "See two cats", "दुई बिराला हेर्नुहोस्"),
)  # fmt: skip
# What is not, by the reason that is told.
UNFIT = {
    "empty": ("", "चिया पिउनुहोस्"),
    "with a place to be filled in": ('Read <xliff:g id="N">%d</xliff:g> books', "किताब पढ्नुहोस्"),
    "with markup, an address or a reference": ("Read <b>this</b> book", "यो किताब पढ्नुहोस्"),
    "of several lines": (r"Read this\nand that", "यो र त्यो पढ्नुहोस्"),
    "not translated": ("Read this book", "Read this book"),
    "of too few or too many words": ("Read", "पढ्नुहोस्"),
    "of very unequal length": ("Read this long and heavy book about cats", "पढ"),
}


def write(directory: Path, source: str, target: str) -> Path:
    for folder, body in (("values", source), ("values-ne", target)):
        (directory / folder).mkdir(parents=True)
        (directory / folder / "strings.xml").write_text(f"{HEAD}{body}</resources>", "utf-8")
    return directory


def string(name: str, text: str) -> str:
    return f"<string {name}>{text}</string>"


def run(*arguments: object) -> subprocess.CompletedProcess:
    argv = [sys.executable, android_pairs.__file__, *map(str, arguments)]
    return subprocess.run(argv, capture_output=True, text=True)


def test_strings_are_read_as_they_are_meant_and_the_rest_is_counted(tmp_path):
    unfit = [(f'name="{number}"', *texts) for number, texts in enumerate(UNFIT.values())]
    rows = [row[:3] for row in FIT] + unfit
    once_more = string('name="again"', "See a cat"), string('name="again"', "बिरालो हेर्नुहोस्")
    source, target = ("".join(string(row[0], row[side]) for row in rows) + once_more[side - 1] for side in (1, 2))
    write(tmp_path / "app" / "res", source + string('name="only" translatable="false"', "Not to be read"), target)
    done = run(tmp_path / "app", "--output", tmp_path / "out", "--valid", 2)
    assert (done.returncode, done.stderr) == (0, "")
    found = {name: Path(f"{tmp_path}/out.{name}").read_text("utf-8").splitlines() for name in
             ("train.en", "train.ne", "valid.en", "valid.ne")}  # fmt: skip
    pairs = [*zip(found["train.en"] + found["valid.en"], found["train.ne"] + found["valid.ne"], strict=True)]
    assert sorted(pairs) == sorted(row[3:] for row in FIT)
    assert len(found["valid.en"]) == 2
    told = dict(reversed(line.split(maxsplit=1)) for line in done.stdout.splitlines()[1:])
    assert told == {**dict.fromkeys(UNFIT, "1"), "the same pair again": "1", NEAR_ONES: "0"}


NEAR_ONES = "in training, near to one that is held out"


def test_plurals_and_arrays_are_paired_by_quantity_and_place(tmp_path):
    plural = '<plurals name="p"><item quantity="{0}">{1}</item><item quantity="other">{2}</item></plurals>'
    array = '<string-array name="a"><item>{0}</item><item>{1}</item></string-array>'
    source = plural.format("one", "one cat", "many cats") + array.format("first row", "second row")
    target = plural.format("few", "केही", "धेरै बिराला") + array.format("पहिलो पङ्क्ति", "दोस्रो पङ्क्ति")
    expected = [("many cats", "धेरै बिराला"), ("first row", "पहिलो पङ्क्ति"), ("second row", "दोस्रो पङ्क्ति")]
    assert list(named_pairs(write(tmp_path / "res", source, target))) == expected


def test_what_is_held_out_has_nothing_near_it_in_training_and_is_always_the_same():
    pairs = [(f"{word} the {place}{mark}", f"{word} {place}") for word in ("Open", "Close", "Lock", "Paint")
             for place in ("door", "red window", "garden gate") for mark in ("", "!", "...")]  # fmt: skip
    train, valid = split(pairs, 5)
    assert (train, valid) == split(pairs, 5)
    assert len(valid) == 5
    assert not any(near(triples(one), triples(other)) for one, _ in train for other, _ in valid)
    assert len(train) == len(pairs) - 3 * 5  # of each that is held out, the two that differ in a mark
    with pytest.raises(ValueError, match="too few to hold out 50"):
        split(pairs, 50)


@pytest.mark.parametrize(
    ("source", "sentence"), [("<string", "is not XML"), (None, "has no values"), ("", "0 pairs are fit, too few")]
)
def test_what_cannot_be_read_is_told(tmp_path, source, sentence):
    if source is not None:
        write(tmp_path / "res", source, "")
    done = run(tmp_path, "--output", tmp_path / "out")
    assert done.returncode == 2
    assert sentence in done.stderr
    assert not list(tmp_path.glob("out*"))
