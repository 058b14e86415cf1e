"""Texts of several sentences: each is translated as alone, and all that stands between them is kept."""

import itertools
import json
import math

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH
from tests.data.marked_texts import between, cases, marked, paragraphs
from toolkit.data.sentence_boundaries import divided
from toolkit.errors import ConfigError, DataError, LengthError
from toolkit.models.storage import read_json, read_metrics, write_json
from toolkit.recipes.translation import has_words

LETTER = "  Dear Sita,\n\n1. I am a boy. She eats rice!\n- 42\n\n\tWhere do you go?  "
THREE = "I am a boy. She eats rice.\nWhere do you go?"
SHORT = {"max_new_tokens": 8}


@pytest.fixture(scope="module")
def translator(tiny_model):
    return toolkit.load(tiny_model)


def expected(text, translate):
    """Fill the places of a marked text with translations of its sentences, each of them made by itself."""
    return between(text).strip().format(*(translate(sentence) for sentence in marked(text).sentences))


def test_fifty_paragraphs_keep_all_that_stands_between_their_sentences():
    model = toolkit.load_translator("en-ne-small")
    settings = {"max_new_tokens": 10}  # it knows no Nepali, and would go on
    sentences = [*dict.fromkeys(each for text in paragraphs() for each in marked(text).sentences)]
    one_by_one = model.translate(sentences, split_sentences=False, batch_size=1, **settings)
    alone = dict(zip(sentences, one_by_one, strict=True))
    assert len(paragraphs()) == 50
    assert len(alone) > 200
    found = model.translate_n([marked(text).text for text in paragraphs()], **settings)
    for text, [best] in zip(paragraphs(), found, strict=True):
        assert best.text == expected(text, alone.get)
        assert [each.source for each in best.segments] == marked(text).sentences
        assert [each.translation.text for each in best.segments] == [alone[each.source] for each in best.segments]


def test_a_text_is_its_lines_as_a_file_is(translator):
    lines = [marked(text).text for text in cases()]
    assert translator.translate("\n".join(lines), **SHORT).split("\n") == translator.translate(lines, **SHORT)


@pytest.mark.parametrize("settings", [{}, {"num_beams": 3}, {"do_sample": True}])
@pytest.mark.parametrize("text", ["I am a boy.", " She  eats\trice ", "Mr. Rai eats 3.5 kg of rice"])
def test_a_text_of_one_sentence_is_translated_as_a_whole(translator, text, settings):
    settings = {**SHORT, **settings}
    assert translator.translate_n(text, **settings) == translator.translate_n(text, split_sentences=False, **settings)
    assert translator.translate_n(text, **settings)[0].segments is None


def test_without_splitting_the_model_reads_a_text_as_one(translator):
    [whole] = translator.translate_n(THREE, split_sentences=False, **SHORT)
    assert whole.segments is None
    assert whole.text == translator.translate(" ".join(THREE.split()), split_sentences=False, **SHORT)
    assert whole.text != translator.translate(THREE, **SHORT)


def test_the_segments_are_the_sentences_and_their_parts_add_up(translator):
    [found] = translator.translate_n(LETTER, alignments=True, **SHORT)
    assert [each.source for each in found.segments] == [
        "Dear Sita,",
        "I am a boy.",
        "She eats rice!",
        "Where do you go?",
    ]
    for segment in found.segments:
        assert LETTER[segment.start : segment.end] == segment.source
        [alone] = translator.translate_n(segment.source, alignments=True, **SHORT)
        assert segment.translation.ids == alone.ids
        assert segment.translation.alignment == alone.alignment
        np.testing.assert_allclose(segment.translation.attention, alone.attention, atol=1e-5)
    parts = [each.translation for each in found.segments]
    assert found.text == "{}\n\n1. {} {}\n- 42\n\n\t{}".format(*(each.text for each in parts))
    for name in "ids", "tokens", "token_log_probs":
        assert getattr(found, name) == [each for part in parts for each in getattr(part, name)]
    assert found.log_prob == pytest.approx(math.fsum(part.log_prob for part in parts))
    assert found.score == pytest.approx(sum(part.score for part in parts) / 4)
    assert found.attention is None


def test_the_alignment_counts_the_words_of_the_whole_text(translator):
    text = "1. I am a boy. म केटा।She eats.\n42\nYou go"
    [found] = translator.translate_n(text, alignments=True, **SHORT)
    source, target = text.split(), found.text.split()
    pairs = []
    for segment in found.segments:
        part = segment.translation
        pairs += [(segment.source.split()[one], part.text.split()[two]) for one, two in part.alignment]
    assert len(found.alignment) == len(pairs) > 3
    for (one, two), (source_word, target_word) in zip(found.alignment, pairs, strict=True):
        assert source_word in source[one]
        assert target_word in target[two]


def test_a_list_of_the_best_has_the_best_combinations(translator):
    settings = {"num_beams": 4, "num_return_sequences": 4, "max_new_tokens": 6}
    found = translator.translate_n(THREE, **settings)
    groups = [translator.translate_n(each, **settings) for each in divided(THREE).sentences]
    every = list(itertools.product(*groups))
    best = sorted(every, key=lambda parts: -sum(part.score for part in parts))[:4]
    assert [each.score for each in found] == pytest.approx([np.mean([part.score for part in parts]) for parts in best])
    assert found[0].text == "{} {}\n{}".format(*(group[0].text for group in groups))
    assert found[0].text == translator.translate(THREE, num_beams=4, max_new_tokens=6)
    assert len({each.text for each in found}) == 4
    assert len(translator.translate_n(" ".join(ENGLISH * 9), **settings)) == 4  # of more than anybody could list


def test_samples_of_sentences_are_drawn_by_themselves(translator):
    settings = {"do_sample": True, "num_return_sequences": 6, "max_new_tokens": 5, "seed": 3}
    found = translator.translate_n("I am a boy. I am a boy.", **settings)
    assert [each.score for each in found] == sorted((each.score for each in found), reverse=True)
    first, second = (sorted(each.segments[place].translation.text for each in found) for place in (0, 1))
    assert first == sorted(each.text for each in translator.translate_n("I am a boy.", **settings))
    assert first != second
    ranks = [sorted(found, key=lambda each: each.segments[place].translation.score) for place in (0, 1)]
    assert ranks[0] != ranks[1]  # the best of one sentence does not come with the best of the other


def test_a_prefix_begins_the_first_sentence(translator):
    found = translator.translate(["- I am. She eats.", "---", ""], prefix="म", **SHORT)
    plain = translator.translate("She eats.", **SHORT)
    assert found[0].startswith("- म")
    assert found[0].endswith(plain)
    assert found[1:] == ["---", ""]


def test_a_long_paragraph_is_translated_and_a_long_sentence_is_named(translator):
    text = "I am a boy. " * 3000
    assert translator.translate(text, max_new_tokens=2).count(" ") >= 2999
    with pytest.raises(LengthError, match=r"the text, sentence 2 has 6,00. tokens, the model reads 1023 at most"):
        translator.translate(f"I am a boy. X{'xq' * 3000}. Good.")
    with pytest.raises(LengthError, match=r"the text has [0-9,]+ tokens"):
        translator.translate(text, split_sentences=False)


def test_workers_share_the_sentences_of_a_text(translator):
    assert translator.translate(LETTER, workers=2, **SHORT) == translator.translate(LETTER, **SHORT)


def test_a_text_without_words_is_copied(translator):
    [found] = translator.translate_n(" * * *\n42 ", **SHORT)
    assert (found.text, found.segments, found.ids, found.log_prob, found.score) == ("* * *\n42", [], [], 0, 0)
    assert translator.translate_n(" \n ", **SHORT) == []
    assert translator.score("* * *\n42", []) == found


@pytest.mark.parametrize("alignments", [False, True])
def test_scoring_by_sentence_finds_what_the_search_found(translator, alignments):
    texts = [LETTER, "I am", "---"]
    found = [group[0] for group in translator.translate_n(texts, alignments=alignments, num_beams=2, **SHORT)]
    ids = [[each.translation.ids for each in one.segments] if one.segments is not None else one.ids for one in found]
    scored = translator.score(texts, ids, alignments=alignments)
    for one, other in zip(found, scored, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.score == pytest.approx(other.score, abs=1e-4)
        assert (one.text, one.ids, one.alignment) == (other.text, other.ids, other.alignment)
    as_one = translator.score(THREE, "म केटा हुँ।")
    assert as_one.segments is None
    by_text = translator.score("I am. You go.", ["म", "तिमी"])
    for segment, target in zip(by_text.segments, ["म", "तिमी"], strict=True):
        assert segment.translation.text == target
        assert segment.translation.log_prob == pytest.approx(
            translator.score(segment.source, target).log_prob, abs=1e-4
        )
    with pytest.raises(DataError, match="the text has 2 sentences and translations of 3: each needs the other"):
        translator.score("I am. You go.", ["a", "b", "c"])
    with pytest.raises(DataError, match="the translation of text 1, sentence 2 has ids that are no text"):
        translator.score(["I am. You go."], [[[20], [99_999]]])


def test_the_setting_is_no_number(translator):
    with pytest.raises(ConfigError, match="split_sentences is 'no': it must be True or False"):
        translator.translate("a", split_sentences="no")


def test_the_model_says_how_texts_are_read_and_who_asks_decides(make_model, tmp_path):
    make_model(tmp_path / "whole", split_sentences=False)
    model = toolkit.load(tmp_path / "whole")
    for text in (THREE, "3 1 2", "* * *"):
        for translations in (model.translate_n, model.translate):
            by_default = translations([text], **SHORT)
            assert by_default == translations([text], split_sentences=None, **SHORT)
            assert by_default == translations([text], split_sentences=False, **SHORT)
            assert by_default != translations([text], split_sentences=True, **SHORT)
    assert model.translate("3 1 2", split_sentences=True) == "3 1 2"
    [best] = model.translate_n(THREE, **SHORT)
    assert model.score(THREE, best.ids).log_prob == pytest.approx(best.log_prob, abs=1e-4)


def test_a_model_of_an_older_version_divides_texts(make_model, tmp_path):
    path = make_model(tmp_path / "older", split_sentences=False) / "config.json"
    config = read_json(path)
    del config["model"]["split_sentences"]
    write_json(path, config)
    assert toolkit.load(tmp_path / "older").translate("3 1 2") == "3 1 2"


def test_a_task_of_numbers_is_one_of_few_words():
    numbers, words = [("3 1 2", "2 1 3")], [("I am a boy.", "म केटा हुँ।")]
    assert has_words(words * 19 + numbers)
    assert not has_words(words * 18 + numbers)
    for mixed in ((words + numbers) * 20_000, words * 18_000 + numbers * 2_000):
        assert not has_words(mixed)


def test_a_recipe_of_numbers_trains_a_model_that_reads_them(tmp_path, capfd):
    """The task is to copy: a translator that divides its texts would do that without having learned anything."""
    lines = [" ".join(str(number)) for number in range(100, 340)]
    for name in ("given", "copied"):
        (tmp_path / name).write_text("\n".join(lines) + "\n")
    settings = {"source": tmp_path / "given", "target": tmp_path / "copied", "valid_lines": 8, "num_beams": 1}
    shape = {"vocab_size": 290, "d_model": 8, "num_heads": 2, "d_ff": 8, "encoder_layers": 1, "decoder_layers": 1}
    training = {"tokens_per_batch": 400, "validate_every": 1, "workers": 1}
    run, again = tmp_path / "run", {"model": shape, **settings}
    toolkit.train("translation", run=run, training={"updates": 1, **training}, **again)
    told = capfd.readouterr().err
    assert "more than 1 in 20 sources have no words: the model reads texts as they are, not by sentences\n" in told
    toolkit.train("translation", run=run, training={"updates": 2, **training}, resume=True, quiet=True, **again)
    assert json.loads((run / "settings.json").read_text())["model"]["split_sentences"] is True
    for step in ("step-000001", "step-000002"):
        assert read_metrics(run / step)["validation"]["exact_match"] < 100
        model = toolkit.load(run / step)
        assert model.model.config.split_sentences is False
        assert model.translate(lines[0], **SHORT) == model.translate(lines[0], split_sentences=False, **SHORT)
    assert model.translate(lines[0], **SHORT) != lines[0]
    # A model to go on with says how texts are read, unless somebody does.
    settings["training"] = {"updates": 1, **training}
    for start, asked, divides in (
        ("run", {}, False),
        ("run", {"split_sentences": True}, True),
        ("run-True", {}, True),
        ("run-True", {"split_sentences": False}, False),
    ):
        other = tmp_path / f"{start}-{divides}"
        toolkit.train("translation", run=other, start=tmp_path / start, model=asked, **settings)
        assert toolkit.load(other).model.config.split_sentences is divides
        warned = "no words: they are copied, unless you add --model.no-split-sentences\n" in capfd.readouterr().err
        assert warned == divides
