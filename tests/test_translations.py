"""What is shown of a translation fits together, and scoring it finds what the search found."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import toolkit
from toolkit.confidence import Calibration, Line
from toolkit.data.sentences import sentence_ids, sentence_text
from toolkit.decoding import GenerationConfig, Hypothesis, generate
from toolkit.errors import ConfigError, DataError
from toolkit.models.seq2seq import Seq2Seq, Seq2SeqConfig
from toolkit.models.storage import save_model
from toolkit.outputs import rounded_rows
from toolkit.tokenization import SentencePieceTokenizer
from toolkit.tokenization.carrying import MARKS, Carrier, mark

TEXTS = ["I am a boy.", " ", "She eats rice."]


@pytest.fixture(scope="module")
def translator(tiny_model):
    return toolkit.load(tiny_model)


@given(rows=st.lists(st.lists(st.floats(1e-6, 1), min_size=4, max_size=4), min_size=1, max_size=5))
def test_rounded_rows_still_sum_to_1(rows):
    rows = np.array(rows)
    rows /= rows.sum(axis=1, keepdims=True)
    rounded = rounded_rows(rows.astype(np.float32))
    np.testing.assert_allclose(rounded.sum(axis=1), 1, atol=1e-12)
    np.testing.assert_allclose(rounded, rows, atol=1.01e-4)
    np.testing.assert_allclose(rounded, np.round(rounded, 4), atol=1e-12)


def test_the_first_translation_is_the_one_that_translate_gives(translator):
    settings = {"num_beams": 3, "max_new_tokens": 10}
    found = translator.translate_n(TEXTS, num_return_sequences=2, **settings)
    assert [group[0].text if group else "" for group in found] == translator.translate(TEXTS, **settings)
    assert [len(group) for group in found] == [2, 0, 2]
    assert found[0][0].attention is None


@pytest.mark.parametrize("text", TEXTS[::2])
def test_scoring_the_ids_finds_the_score_of_the_search(translator, text):
    [group] = translator.translate_n([text], num_beams=3, num_return_sequences=3)
    scored = translator.score([text] * len(group), [each.ids for each in group], batch_size=2)
    for one, other in zip(group, scored, strict=True):
        assert one.log_prob == pytest.approx(other.log_prob, abs=1e-4)
        assert one.token_log_probs == pytest.approx(other.token_log_probs, abs=1e-4)
        assert (one.ids, one.tokens, one.text) == (other.ids, other.tokens, other.text)


def test_the_translations_of_a_search_have_different_texts(translator):
    """Pieces, bytes and spaces spell many a text in several ways, and the short outputs of a random model are such."""
    settings = GenerationConfig(num_beams=40, num_return_sequences=40, max_new_tokens=2)
    [hypotheses] = generate(translator.model, sentence_ids(translator.tokenizer, ["one"]), settings)
    texts = [sentence_text(translator.tokenizer, each.ids) for each in hypotheses]
    assert len({*texts}) < len(texts)
    [group] = translator.translate_n(["one"], num_beams=40, num_return_sequences=5, max_new_tokens=2)
    assert [each.text for each in group] == list(dict.fromkeys(texts))[:5]
    assert [each.score for each in group] == sorted((each.score for each in group), reverse=True)


def test_alignments_fit_the_words(translator):
    groups = translator.translate_n(TEXTS, alignments=True, max_new_tokens=9, batch_size=1)
    for text, group in zip(TEXTS, groups, strict=True):
        for each in group:
            assert each.attention.shape == (len(each.tokens), len(each.source_tokens))
            np.testing.assert_allclose(each.attention.sum(axis=1), 1, atol=1e-5)
            assert all(source < len(text.split()) for source, _ in each.alignment)
            assert {target for _, target in each.alignment} == set(range(len(each.text.split())))


def test_prefixes_are_one_for_all_or_one_for_each(translator):
    settings = {"max_new_tokens": 4}
    both = translator.translate(["I", "You"], prefix="म", **settings)
    assert all(text.startswith("म") for text in both)
    assert translator.translate(["I", "You"], prefix=["म", ""], **settings) == [
        both[0],
        translator.translate("You", **settings),
    ]
    with pytest.raises(DataError, match="prefix is a list of 3 for 2 texts"):
        translator.translate(["I", "You"], prefix=["a", "b", "c"])


def test_what_cannot_be_scored_is_named(translator):
    with pytest.raises(DataError, match="2 sources and 1 target are given"):
        translator.score(["a", "b"], ["c"])
    with pytest.raises(DataError, match="text 2 has a blank source"):
        translator.score(["a", " "], ["b", "c"])
    with pytest.raises(DataError, match="the translation of text 1 has ids"):
        translator.score(["a"], [[-1]])
    with pytest.raises(ConfigError, match="num_return_sequences"):
        translator.translate_n(["a"], num_return_sequences=0)


@pytest.fixture
def carrying(make_model, tmp_path):
    """A random translator that carries over numbers, addresses and unknown words."""
    directory = make_model(tmp_path / "carries")
    texts = [f"call {mark(number)} {number}" for number in range(4)] * 5
    tokenizer = SentencePieceTokenizer.train(texts, 400, split_digits=True)
    tokenizer.carrier = Carrier.of(["call at"], ["मा"])
    model = Seq2Seq(Seq2SeqConfig(tokenizer.vocab_size, 16, 2, 32, encoder_layers=1, decoder_layers=1))
    model.allocate()
    model.initialize(np.random.default_rng(0))
    save_model(model, directory)
    tokenizer.save(directory)
    return toolkit.load(directory)


def test_what_a_translation_lacks_is_searched_for_with_more_beams(carrying, monkeypatch):
    """Of two sentences one lacks its number: it alone is searched again, and the best with the number comes first."""
    encode = carrying.tokenizer.encode
    without, whole = encode("call"), encode(f"call {mark(0)}")
    asked = []

    def found(workers, sentences, config, *others):
        asked.append((len(sentences), config.num_beams, config.num_return_sequences))
        first = [[whole], [without]] if len(asked) == 1 else [[without, encode("call call"), whole, whole]]
        return [[Hypothesis(ids, -1.0, -1.0, True, [-1.0] * len(ids)) for ids in group] for group in first]

    monkeypatch.setattr(carrying, "_generate", found)
    assert carrying.translate(["call 5", "call 6"]) == ["call ५", "call ६"]
    assert asked == [(2, 1, 1), (1, 4, 4)]
    asked.clear()
    assert [group[0].text for group in carrying.translate_n(["call 5", "call 6"], num_beams=6)] == ["call ५", "call ६"]
    assert asked == [(2, 6, 1), (1, 6, 6)]
    asked.clear()
    assert carrying.translate(["call 5", "call 6"], do_sample=True, seed=1) == ["call ५", "call"]  # what was drawn
    assert asked == [(2, 1, 1)]


def test_of_several_translations_those_with_everything_come_first(carrying):
    encode = carrying.tokenizer.encode
    groups = [[Hypothesis(encode(text), -1.0, -1.0, True, [-1.0]) for text in ("call", f"call {mark(0)}", "call call")]]
    prepared = carrying.read(["call 5"], str)[0]
    whole = carrying.prepared(["call 5"], GenerationConfig(), "text {}".format)
    assert carrying.lost(whole, groups) == [0]
    ordered = carrying.completed(whole, groups, {})
    assert [carrying.tokenizer.decode(each.ids) for each in ordered[0]] == [f"call {mark(0)}", "call", "call call"]
    assert carrying.lost(whole, ordered) == []
    assert prepared.carried == whole.carried


def test_numbers_and_unknown_words_stand_in_the_translation_again(carrying):
    """The model here writes what it likes; of what it writes every mark becomes what it stands for."""
    translator, tokenizer = carrying, carrying.tokenizer
    marked = [tokenizer.encode(mark(number))[0] for number in range(3)]
    translator.spell = lambda word: {"Lena": "लेना"}.get(word, word)
    text = "Call Lena at 6:45."
    prepared = translator.read([text], str)[0]
    assert [item.text for item in prepared.carried[0]] == ["Lena", "6:45"]
    assert marked[0] in prepared.ids[0]
    forced = translator.translate(text, prefix=f"{mark(1)} {mark(0)} {mark(2)}", max_new_tokens=12)
    assert forced.startswith("६:४५ लेना")
    assert not any(mark(number) in forced for number in range(MARKS))
    (best,) = translator.translate_n([text], prefix=f"{mark(1)} {mark(0)} {mark(2)}", max_new_tokens=12)[0]
    assert best.text == forced
    score = translator.score(text, "६:४५ लेना")
    assert marked[1] in score.ids
    assert marked[0] in score.ids
    assert pickle.loads(pickle.dumps(tokenizer)).carrier == tokenizer.carrier
    line = Line([0.0] * 6, [0.0] * 6, 3.0)
    translator.calibration = Calibration(line, Line([0.0] * 5, [0.0] * 5, 3.0), 0.5, 30, [])
    whole = translator.translate_n(text, prefix=f"{mark(1)} {mark(0)}", max_new_tokens=4)[0].confidence
    assert (whole.lost, whole.sentence > 0.9, whole.sure) == (False, True, True)
    small = translator.translate_n(text.lower(), prefix=f"{mark(1)} {mark(0)}", max_new_tokens=4)[0].confidence
    assert (small.sentence, small.sure) == (whole.sentence, False)  # an unknown word that is hardly a name
    written = translator.translate_n("Call Lena at 6:45 or 7:15.", prefix=f"{mark(1)} {mark(0)}", max_new_tokens=4)[0]
    lost = mark(2) not in written.text and "७:१५" not in written.text
    assert (written.confidence.lost, written.confidence.sentence == 0) == (lost, lost)
    assert "lost" in written.confidence.to_dict() or not lost
