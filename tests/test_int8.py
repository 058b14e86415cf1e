"""int8 from the front door: the library, the verbs, worker processes, copies, and what is refused."""

import pickle
import shutil
import sys

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH
from toolkit.decoding.generation import _Worker
from toolkit.errors import ConfigError, ModelError
from toolkit.interop import export_model
from toolkit.models.storage import load_model, save_model

VERBS = ("translate", "generate", "chat", "score", "perplexity")


@pytest.fixture(scope="module")
def quantized(tiny_model):
    pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")
    return toolkit.load(tiny_model, dtype="int8")


def test_without_the_library_one_sentence_says_what_to_install(run, tiny_model, monkeypatch):
    monkeypatch.setitem(sys.modules, "numkong", None)
    found = run("translate", "--model", tiny_model, "--dtype", "int8", "I am a boy.")
    told = "int8 needs the library numkong: pip install 'numkong>=7.8,<8', the extra fast; float32 needs none"
    assert found.sentence == f"toolkit: {told}\n"
    assert run("translate", "--model", tiny_model, "--max-new-tokens", 4, "I am a boy.").out


@pytest.mark.parametrize("verb", VERBS)
def test_another_type_is_refused(run, tmp_path, verb):
    words = [tmp_path / "text.txt"] if verb == "perplexity" else []
    found = run(verb, "--dtype", "int4", *words)
    assert (
        found.sentence
        == f"toolkit: --dtype is 'int4': it must be one of auto, float32, int8 (see toolkit {verb} --help)\n"
    )


def test_the_library_refuses_another_type(tiny_model):
    with pytest.raises(ConfigError, match=r"dtype is 'float16': it must be one of auto, float32, int8$"):
        toolkit.load(tiny_model, dtype="float16")


def test_float32_is_what_is_loaded_by_itself(tiny_model):
    for model in (toolkit.load(tiny_model).model, toolkit.load_translator(tiny_model, dtype="float32").model):
        assert not model.output.table.quantized
        assert {type(value) for value in model.arrays().values()} == {np.ndarray}


def test_the_verbs_and_the_library_say_the_same(run, quantized, tiny_model):
    flags = "--model", tiny_model, "--dtype", "int8"
    told = run("translate", *flags, "--max-new-tokens", 8, stdin="\n".join(ENGLISH).encode()).lines
    assert told == quantized.translate(ENGLISH, max_new_tokens=8)
    assert quantized.translate(ENGLISH, max_new_tokens=8, workers=2) == told
    best = quantized.translate_n(ENGLISH[0], max_new_tokens=8)[0]
    again = quantized.score(ENGLISH[0], best.ids)
    assert again.log_prob == pytest.approx(best.log_prob, rel=1e-3)
    plain = toolkit.load(tiny_model).score(ENGLISH[0], best.ids).log_prob
    assert plain != again.log_prob
    assert plain == pytest.approx(again.log_prob, rel=0.05)
    row = run("score", *flags, stdin=f'{{"source": "{ENGLISH[0]}", "ids": {best.ids}}}'.encode()).out
    assert float(row.split("\t")[1]) == pytest.approx(again.log_prob, abs=1e-5)


def test_a_language_model_in_int8(run, tmp_path, make_gpt):
    pytest.importorskip("numkong", reason="numkong, which multiplies in int8, is not installed")
    directory = make_gpt(tmp_path / "model")
    flags = "--model", directory, "--dtype", "int8"
    model = toolkit.load_language_model(directory, dtype="int8")
    text = model.generate("abc", max_new_tokens=6, do_sample=False)
    assert run("generate", *flags, "--only-new", "--no-do-sample", "--max-new-tokens", 6, "abc").out == f"{text}\n"
    (tmp_path / "text.txt").write_text("abcabc", encoding="utf-8")
    measured = model.perplexity("abcabc").loss
    assert f"{measured:.4f}" in run("perplexity", *flags, tmp_path / "text.txt").out
    plain = toolkit.load_language_model(directory).perplexity("abcabc").loss
    assert plain != measured
    assert plain == pytest.approx(measured, rel=0.02)


def test_copies_and_other_processes_compute_the_same(quantized, tiny_model):
    """A pickled translator, and a worker that reads the model again, as where processes are not forked."""
    expected = quantized.translate_n(ENGLISH[:2], max_new_tokens=8)
    copy = pickle.loads(pickle.dumps(quantized))
    assert [[each.log_prob for each in group] for group in copy.translate_n(ENGLISH[:2], max_new_tokens=8)] == [
        [each.log_prob for each in group] for group in expected
    ]
    worker = pickle.loads(pickle.dumps(_Worker(quantized.model, str(tiny_model))))
    values = worker._model.arrays()
    for name, value in quantized.model.arrays().items():
        assert np.array_equal(np.asarray(values[name]), np.asarray(value))
    assert worker._model.output.table.quantized


def test_a_model_that_is_stored_in_int8_is_what_it_is_where_it_is_loaded_so(run, quantized, tiny_model, tmp_path):
    """By the library and the verbs, in other processes, and in floats without the library."""
    small, expected = tmp_path / "small", quantized.translate_n(ENGLISH, max_new_tokens=8)
    count = f"{toolkit.load(tiny_model).model.parameter_count:,}"
    told = run("export", tiny_model, small, "--dtype", "int8").lines
    assert told == [f"{small}: {count} parameters, as a model of this toolkit in int8"]
    stored = toolkit.load(small)
    found = stored.translate_n(ENGLISH, max_new_tokens=8)
    assert [[each.log_prob for each in group] for group in found] == [
        [each.log_prob for each in group] for group in expected
    ]
    lines = [best.text for best, *_ in expected]
    text = "\n".join(ENGLISH).encode()
    assert run("translate", "--model", small, "--max-new-tokens", 8, stdin=text).lines == lines
    assert stored.translate(ENGLISH, max_new_tokens=8, workers=2) == lines
    worker = pickle.loads(pickle.dumps(_Worker(stored.model, str(small))))
    assert worker._model.output.table.quantized
    floats = toolkit.load(small, dtype="float32")
    assert not floats.model.quantized
    best = expected[0][0]
    assert floats.score(ENGLISH[0], best.ids).log_prob == pytest.approx(best.log_prob, rel=0.01)
    assert pickle.loads(pickle.dumps(_Worker(floats.model, str(small))))._model.quantized is False
    assert f"{count}" in run("models", small).out
    told = run("info", small)
    assert "format 3" in told.out
    assert f"  total                 {count}\n" in told.out
    assert "weights as F32, I8" in told.out
    assert "I am a boy" in run("explain", "translate", "--model", small, ENGLISH[0]).out


def test_what_is_stored_in_int8_is_for_use_alone(run, quantized, tiny_model, make_gpt, tmp_path, monkeypatch):
    small, letters = tmp_path / "small", tmp_path / "letters"
    export_model(tiny_model, small, dtype="int8")
    export_model(make_gpt(tmp_path / "gpt"), letters, dtype="int8")
    text = toolkit.load(tmp_path / "gpt", dtype="int8").generate("abc", max_new_tokens=6, do_sample=False)
    assert toolkit.load(letters).generate("abc", max_new_tokens=6, do_sample=False) == text
    start = "train", "chat", "--start", letters, "--run", tmp_path / "run"
    for words in (
        ("export", small, tmp_path / "new"),
        ("average", small, small, "--output", tmp_path / "new"),
        ("train", "translation", "--start", small, "--run", tmp_path / "run"),
        start,
        ("train", "preference", "--method", "dpo", *start[2:]),
    ):
        assert "is stored in int8, which is neither trained, averaged nor exported: give" in run(*words).sentence
    for words, told in ((("--half",), "leave out --half"), (("--to", "hugging-face"), "transformers reads none")):
        assert told in run("export", tiny_model, tmp_path / "new", "--dtype", "int8", *words).sentence
    assert repr(toolkit.load(small)).endswith(" parameters, int8>")
    monkeypatch.setitem(sys.modules, "numkong", None)
    assert "int8 needs the library numkong" in run("export", tiny_model, tmp_path / "new", "--dtype", "int8").sentence
    assert "float32 needs none" in run("translate", "--model", small, ENGLISH[0]).sentence
    assert run("translate", "--model", small, "--dtype", "float32", "--max-new-tokens", 4, ENGLISH[0]).code == 0
    assert not (tmp_path / "new").exists()
    # What spells names is read into floats, however it is stored: nobody has to install a library for a word.
    carrying = shutil.copytree(tiny_model, tmp_path / "carrying")
    (carrying / "words.txt").write_text("devanagari\na\n")
    shutil.copytree(small, carrying / "names")
    assert toolkit.load(carrying).speller.spell("zq") == toolkit.load(small, dtype="float32").translate("z q")


def test_a_damaged_model_is_told_in_int8_too(quantized, tiny_model, tmp_path):
    """Overflow in the middle of a model must not disappear in a rounding."""
    model = load_model(tiny_model)
    for block in model.decoder.blocks:
        block.feed_forward.layer.up.weight.data[...] = 3e38
        block.feed_forward.layer.down.weight.data[...] = 3e38
    directory = tmp_path / "damaged"
    directory.mkdir()
    for path in tiny_model.iterdir():
        (directory / path.name).write_bytes(path.read_bytes())
    save_model(model, directory)
    for dtype in ("float32", "int8"):
        with pytest.raises(ModelError, match="computes numbers that are not finite"):
            toolkit.load(directory, dtype=dtype).translate(ENGLISH[0])
