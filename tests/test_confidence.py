"""Confidence: what probabilities mean, learned from translations of which it is known whether they are right."""

import json
import shutil

import numpy as np
import pytest

import toolkit
from toolkit.confidence import (
    Calibration,
    Confidence,
    Example,
    Line,
    by_tenths,
    joined_confidence,
    repeats,
    strangeness,
    sure_from,
)
from toolkit.errors import DataError, ModelError
from toolkit.models.storage import CONFIDENCE_FILE
from toolkit.speller import load_spellings


def test_the_regression_finds_the_line_that_drew_the_labels():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 2)) * [3.0, 0.1] + [5.0, -1.0]
    truth = Line([5.0, -1.0], [0.7, -9.0], 0.4)
    right = (rng.random(len(x)) < truth(x)).astype(float)
    found = Line.fit(x, right)
    assert found.weights == pytest.approx(truth.weights, rel=0.15)
    assert np.abs(found(x) - truth(x)).max() < 0.05


def test_the_regression_is_at_the_minimum_of_its_loss():
    rng = np.random.default_rng(2)
    x, right = rng.normal(size=(60, 3)), (rng.random(60) < 0.5).astype(float)
    found = Line.fit(x, right)
    scale = x.std(axis=0)
    p, w = found(x), np.array(found.weights) * scale
    gradient = ((x - x.mean(axis=0)) / scale).T @ (p - right) + w  # of the loss and of |w|² / 2
    assert np.abs(gradient).max() < 1e-6
    assert (p - right).sum() == pytest.approx(0, abs=1e-4)  # so that the mean confidence is the share that is right


def test_a_feature_that_is_always_the_same_has_no_weight():
    x = np.column_stack([np.arange(30.0), np.full(30, 7.0)])
    assert Line.fit(x, (np.arange(30) % 3 == 0).astype(float)).weights[1] == 0


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("a a a", True),
        ("x a b a b a b y", True),
        ("a a", False),
        ("बिस्तारै बिस्तारै जानुहोस्", False),
        ("a b a b a", False),
        ("a b c d a b c d a b c d", True),
        ("", False),
    ],
)
def test_a_repetition_is_three_times_the_same_in_a_row(words, expected):
    assert repeats(words.split()) is expected


def test_a_source_is_strange_as_far_as_it_is_spelled():
    assert strangeness(["▁my", "▁dog", "."]) == 0
    assert strangeness(["▁J", "o", "h", "n"]) == 1
    assert strangeness([]) == 0


def examples(count: int = 200) -> tuple[list[Example], list[bool]]:
    """Make sentences of three words, the more probable the more often right."""
    rng = np.random.default_rng(3)
    logs = -rng.exponential(0.5, size=(count, 4))
    right = rng.random(count) < np.exp(logs.sum(axis=1))
    made = [Example(["▁म", "▁घर", "▁जान्छु"], row.tolist(), ["▁i", "▁go"]) for row in logs]
    return made, right.tolist()


def test_a_calibration_is_as_sure_as_it_is_right(tmp_path):
    made, right = examples(2000)
    learned = Calibration.fit(made, right, [[each] * 3 for each in right])
    for tenth in learned.tenths:
        spread = (tenth["confidence"] * (1 - tenth["confidence"]) / tenth["sentences"]) ** 0.5
        assert abs(tenth["confidence"] - tenth["right"]) < 4 * spread + 0.05
    learned.save(tmp_path)
    assert Calibration.load(tmp_path) == learned
    (tmp_path / "none").mkdir()
    assert Calibration.load(tmp_path / "none") is None
    probable = learned.of(Example(made[0].tokens, [-0.001] * 4, made[0].source))
    improbable = learned.of(Example(made[0].tokens, [-3.0] * 4, made[0].source))
    assert probable.sentence > 0.8 > 0.1 > improbable.sentence
    assert len(probable.words) == 3
    assert not improbable.sure


def test_what_repeats_itself_is_never_sure():
    made, right = examples()
    learned = Calibration.fit(made, right, [[each] * 3 for each in right])
    found = learned.of(Example(["▁हुँ"] * 3, [-1e-6] * 3, ["▁i"]))
    assert found == Confidence(0.0, [0.0] * 3, False, True)
    assert found.to_dict() == {"confidence": 0.0, "sure": False, "word_confidence": [0.0] * 3, "repeats": True}


def test_too_little_to_learn_from_is_refused():
    made, right = examples(30)
    with pytest.raises(DataError, match="too few"):
        Calibration.fit(made[:19], right[:19], [[True] * 3] * 19)
    with pytest.raises(DataError, match="all 30 translations are wrong"):
        Calibration.fit(made, [False] * 30, [[False] * 3] * 30)


def test_sure_begins_where_the_share_of_right_ones_is_reached():
    confidence = np.linspace(0.99, 0.01, 100)
    assert sure_from(confidence, (np.arange(100) < 50).astype(float)) == pytest.approx(confidence[51])
    assert sure_from(confidence, np.zeros(100)) > 1
    assert sum(each["sentences"] for each in by_tenths(confidence, np.ones(100))) == 100


def test_sure_ends_before_too_many_of_the_wrong_ones_pass():
    confidence = np.linspace(0.99, 0.01, 400)
    right = (np.arange(400) % 20 != 9).astype(float)  # 95 of 100 are right everywhere: their share would let all pass
    assert sure_from(confidence, right) == pytest.approx(confidence[88])  # before the fifth of 20: (5 + 1) / 22 > 0.25


def test_a_text_is_as_sure_as_its_least_sure_sentence():
    one, two = Confidence(0.9, [0.9, 0.8], True), Confidence(0.4, [0.3], False)
    assert joined_confidence([one, two], 3) == Confidence(0.4, [0.9, 0.8, 0.3], False)
    assert joined_confidence([one, two], 4).words == []  # something was copied between them
    assert joined_confidence([one, None], 3) is None
    assert joined_confidence([], 0) is None


@pytest.fixture
def calibrated(make_model, tmp_path, run):
    """A tiny translator that was calibrated by the verb; every third of its translations is called right."""
    model = make_model(tmp_path / "model")
    sources = [f"I am {word}." for word in ["a", "boy", "girl", "she", "eats", "rice", "where", "you", "go", "man"]] * 3
    found = toolkit.load(model).translate(sources, max_new_tokens=6)
    (tmp_path / "s").write_text("\n".join(sources) + "\n")
    lines = [text if place % 3 else f"no\t{text}x" for place, text in enumerate(found)]
    (tmp_path / "r").write_text("\n".join(lines) + "\n")
    flags = ("--source", tmp_path / "s", "--reference", tmp_path / "r", "--max-new-tokens", 6)
    outcome = run("calibrate", "--model", model, *flags)
    assert outcome.lines[0] == "20 of 30 translations are right; by their confidence:"
    return model


def test_the_verb_gives_a_model_its_confidence(calibrated, run):
    translator = toolkit.load(calibrated)
    found = translator.translate_n(["I am a boy. She eats rice."], max_new_tokens=6)[0][0]
    parts = [segment.translation.confidence for segment in found.segments]
    assert found.confidence.sentence == min(each.sentence for each in parts)
    outcome = run("translate", "--model", calibrated, "--max-new-tokens", 6, "--json", "I am a boy. She eats rice.")
    record = json.loads(outcome.out)["translations"][0]
    assert record["confidence"] == round(found.confidence.sentence, 4)
    plain = run("translate", "--model", calibrated, "--max-new-tokens", 6, "--confidence", "I am a boy. She eats rice.")
    assert plain.lines[0].split("\t") == [f"{found.confidence.sentence:.3f}", found.text]


def test_a_model_without_calibration_says_so_and_a_damaged_one_is_refused(tiny_model, calibrated, run):
    outcome = run("translate", "--model", tiny_model, "--confidence", "I am")
    assert outcome.code == 2
    assert "was never calibrated" in outcome.err
    (calibrated / CONFIDENCE_FILE).write_text('{"sentence": {}}')
    with pytest.raises(ModelError, match=r"confidence\.json is damaged"):
        toolkit.load(calibrated)


def test_what_lies_beside_a_translator_is_exported_with_it(calibrated, tiny_model, tmp_path, run):
    shutil.copytree(tiny_model, calibrated / "names")
    (calibrated / "spellings.tsv").write_text("john\tजोन\n")
    assert run("export", calibrated, tmp_path / "half", "--to", "toolkit", "--half").code == 0
    assert Calibration.load(tmp_path / "half") == Calibration.load(calibrated)
    assert load_spellings(tmp_path / "half") == {"john": "जोन"}
    assert {path.name for path in (tmp_path / "half" / "names").iterdir()} == {
        path.name for path in tiny_model.iterdir()
    }
