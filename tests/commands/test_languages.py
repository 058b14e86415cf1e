"""--source-language and --target-language, for a model that transformers has written (see tests/interop)."""

import json
import unicodedata

import pytest

from tests.interop.test_multilingual import FIXTURES, stored
from toolkit.interop import import_model

LENGTH = ("--max-new-tokens", 14, "--forced-eos", "none")


@pytest.fixture(scope="module")
def m2m100(tmp_path_factory):
    """An M2M100 between the languages of its fixture."""
    directory = tmp_path_factory.mktemp("languages") / "m2m100"
    import_model(FIXTURES / "m2m100", directory)
    return directory


def flags(source, target):
    return "--source-language", source, "--target-language", target


@pytest.mark.parametrize("source", ["en", "ne"])
def test_the_command_translates_what_transformers_translates(run, m2m100, source):
    target = {"en": "ne", "ne": "en"}[source]
    chosen = [each for each in stored("m2m100") if each["source_language"] == source]
    lines = "".join(f"{each['text']}\n" for each in chosen).encode()
    found = run("translate", "--model", m2m100, *flags(source, target), *LENGTH, stdin=lines).lines
    assert found == [unicodedata.normalize("NFC", each["greedy"]["text"]) for each in chosen]


def test_what_is_written_is_scored_alike(run, m2m100):
    command = ("--model", m2m100, *flags("eng", "npi"), "--json")
    [line] = run("translate", *command, "This is a book", *LENGTH).lines
    [scored] = run("score", *command, stdin=line.encode()).lines
    one, other = (json.loads(each)["translations"][0] for each in (line, scored))
    assert (one["ids"], one["tokens"]) == (other["ids"], other["tokens"])
    assert one["token_log_probs"] == pytest.approx(other["token_log_probs"], abs=2e-6)
    assert (one["tokens"][0], one["token_log_probs"][0]) == ("__ne__", 0)


def test_a_direction_is_asked_for_in_one_sentence(run, m2m100, tiny_model):
    asked = "say from which to which, by target_language (--target-language)"
    assert asked in run("translate", "--model", m2m100, "a").sentence
    assert "did you mean eng" not in run("translate", "--model", m2m100, *flags("xx", "ne"), "a").sentence
    for verb in ("translate", "score"):
        sentence = run(verb, "--model", tiny_model, "--target-language", "ne", stdin=b"a\n").sentence
        assert "target_language is 'ne', but" in sentence
        assert "has no languages to choose: leave it out" in sentence


def test_it_is_explained_and_described(run, m2m100):
    page = "\n".join(run("explain", "translate", "--model", m2m100, *flags("en", "ne"), "I am a boy").lines)
    assert "The first is its language." in " ".join(page.split())  # wherever lines of this terminal end
    assert "__en__" in page
    for topic, texts in (("attention", ["I am a boy"]), ("training", ["I am a boy", "म केटा हुँ"])):
        page = "\n".join(run("explain", topic, "--model", m2m100, *flags("en", "ne"), *texts).lines)
        assert "__ne__" in page
    assert (
        "language model, which translates nothing"
        in run("explain", "attention", "--model", "stories", *flags("en", "ne")).sentence
    )
    assert "--documents has a model" in run("explain", "attention", "--documents", "--target-language", "ne").sentence
    [line] = [line for line in run("info", m2m100).lines if line.startswith("languages ")]
    assert line.split()[1:4] == ["af", "am", "ar"]
    assert json.loads(run("info", m2m100, "--json").out)["languages"]["to"] is None
