"""Whole models, with their tokenizers, out to other libraries and in again."""

import json
import shutil

import numpy as np
import pytest

import toolkit
from tests.conftest import ENGLISH
from tests.interop.foreign_models import edit, make_marian
from toolkit.data.sentences import sentence_ids
from toolkit.decoding import GenerationConfig, generate
from toolkit.errors import ConfigError, ModelError, ToolkitError
from toolkit.interop import export_model, import_model
from toolkit.models.storage import load_model, read_metrics
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, load_tokenizer
from toolkit.tokenization.special import BOS, EOS

FORMATS = ["hugging-face", "ctranslate2"]
PROMPTS = ["I am a", "She eats", ""]


@pytest.fixture
def marian(tmp_path, tiny_model):
    """A MarianMTModel of somebody else: SentencePiece models, and ids of its own."""
    return make_marian(tmp_path / "marian", tiny_model / "tokenizer.model")


@pytest.mark.parametrize("to", FORMATS)
def test_a_translator_comes_back_as_it_was(tiny_model, tmp_path, to):
    there = export_model(tiny_model, tmp_path / "there", to)
    back = import_model(tmp_path / "there", tmp_path / "back")
    assert there.model.parameter_count == back.model.parameter_count
    before, after = toolkit.load(tiny_model), toolkit.load(tmp_path / "back")
    assert after.translate(list(ENGLISH)) == before.translate(list(ENGLISH))
    scores = [model.score(ENGLISH, ENGLISH) for model in (before, after)]
    np.testing.assert_allclose(*([each.score for each in found] for found in scores), rtol=1e-4)
    assert read_metrics(tmp_path / "back")["command"].startswith("toolkit import ")


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("begin", [True, False])
def test_a_language_model_comes_back_as_it_was(make_gpt, tmp_path, to, begin):
    own = make_gpt(tmp_path / "own", begin=begin)
    export_model(own, tmp_path / "there", to)
    import_model(tmp_path / "there", tmp_path / "back")
    before, after = toolkit.load(own), toolkit.load(tmp_path / "back")
    assert after.model.config.begin == begin
    assert after.generate(PROMPTS, max_new_tokens=12) == before.generate(PROMPTS, max_new_tokens=12)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("tokenizer", [ByteTokenizer(), CharacterTokenizer.train(ENGLISH)], ids=["byte", "character"])
def test_with_other_tokenizers(make_gpt, tmp_path, to, tokenizer):
    own = make_gpt(tmp_path / "own", tokenizer)
    export_model(own, tmp_path / "there", to)
    import_model(tmp_path / "there", tmp_path / "back")
    before, after = toolkit.load(own), toolkit.load(tmp_path / "back")
    assert type(after.tokenizer) is type(tokenizer)
    assert after.generate("I am", max_new_tokens=12) == before.generate("I am", max_new_tokens=12)


@pytest.mark.parametrize("to", FORMATS)
@pytest.mark.parametrize("name", ["en-ne-small", "stories", "stories-ne"])
def test_every_model_that_ships_leaves_and_returns(tmp_path, name, to):
    there = export_model(name, tmp_path / "there", to)
    classes = {"en-ne-small": ("MarianMTModel", "ctranslate2.Translator")}
    expected = classes.get(name, ("Starcoder2ForCausalLM", "ctranslate2.Generator"))
    assert there.name == expected[FORMATS.index(to)]
    import_model(tmp_path / "there", tmp_path / "back")
    before, after = toolkit.load(name), toolkit.load(tmp_path / "back")
    if name == "en-ne-small":
        texts = ["I am a boy.", "Where is my book?"]
        assert after.translate(texts) == before.translate(texts)
    else:
        prompt = "एकादेशमा" if name == "stories-ne" else "Once upon a time"
        assert after.generate(prompt, max_new_tokens=20) == before.generate(prompt, max_new_tokens=20)


@pytest.mark.parametrize("to", FORMATS)
def test_half_precision(tiny_gpt, tmp_path, to):
    for name, half in (("whole", False), ("half", True)):
        export_model(tiny_gpt, tmp_path / name, to, half)
        import_model(tmp_path / name, tmp_path / f"{name}-back")
    sizes = [sum(path.stat().st_size for path in (tmp_path / name).glob("model.*")) for name in ("whole", "half")]
    assert sizes[1] < 0.7 * sizes[0]
    whole, half = (load_model(tmp_path / f"{name}-back").arrays() for name in ("whole", "half"))
    for name, value in whole.items():
        np.testing.assert_array_equal(half[name], value.astype(np.float16).astype(np.float32))


def test_a_model_from_elsewhere_translates_and_goes_on(marian, tmp_path):
    found = import_model(marian, tmp_path / "own")
    assert (found.name, found.model.config.output_bias) == ("MarianMTModel", True)
    own = toolkit.load(tmp_path / "own")
    translations = own.translate(list(ENGLISH), max_new_tokens=9)
    assert all(translations)
    sources = sentence_ids(own.tokenizer.source, ENGLISH)
    assert sources != sentence_ids(own.tokenizer, ENGLISH)
    found = generate(own.model, sources, GenerationConfig(max_new_tokens=9))
    assert [own.tokenizer.decode(group[0].ids).strip() for group in found] == translations
    for to in FORMATS:
        export_model(tmp_path / "own", tmp_path / to, to)
    import_model(tmp_path / "hugging-face", tmp_path / "back")
    assert toolkit.load(tmp_path / "back").translate(list(ENGLISH), max_new_tokens=9) == translations


def test_it_is_told_what_tokens_ctranslate2_must_be_given(make_model, make_gpt, marian, tmp_path):
    """It is not told where our tokenizer does that itself, or there is nothing to do."""
    import_model(marian, tmp_path / "theirs")
    for number, (own, words) in enumerate([
        (make_model(tmp_path / "one", ignore_case=True), ["those of ' ' + text.lower()"]),
        (make_model(tmp_path / "two"), ["those of ' ' + text"]),
        (make_gpt(tmp_path / "three"), ["a prompt begins with the token <s>"]),
        (make_gpt(tmp_path / "four", begin=False), []),
        (tmp_path / "theirs", []),
    ]):  # fmt: skip
        notes = export_model(own, tmp_path / f"there-{number}", "ctranslate2").notes
        assert len(notes) == len(words)
        assert all(note.endswith(word) or note.startswith(word) for note, word in zip(notes, words, strict=True))
        assert export_model(own, tmp_path / f"hf-{number}").notes == []


def test_of_a_length_that_nobody_says_it_is_told(make_gpt, tmp_path):
    export_model(make_gpt(tmp_path / "own"), tmp_path / "there", "ctranslate2")
    assert import_model(tmp_path / "there", tmp_path / "back").notes == []
    edit(tmp_path / "there", toolkit=None)
    notes = import_model(tmp_path / "there", tmp_path / "new").notes
    assert notes[0] == "nothing says how long its texts may be: 2048 tokens at most"


def test_of_ctranslate2_too_it_is_told_what_is_never_written_and_an_end_can_be_chosen(make_gpt, tmp_path):
    export_model(make_gpt(tmp_path / "own", positions="learned"), tmp_path / "there", "ctranslate2")
    edit(tmp_path / "there", toolkit=None)
    (note,) = import_model(tmp_path / "there", tmp_path / "new").notes
    assert note.startswith("<pad>, <unk>, <s>: never written here; if <s> stands between its texts, import it with ")
    model = import_model(tmp_path / "there", tmp_path / "ended", end_token="<s>").model
    rows = load_tokenizer(tmp_path / "ended").rows
    assert (rows[EOS], rows[BOS], model.config.begin) == (BOS, BOS, True)


# What goes wrong leaves nothing behind


@pytest.mark.parametrize("to", FORMATS)
def test_an_existing_directory_is_not_replaced(tiny_gpt, tmp_path, to):
    (tmp_path / "there").mkdir()
    (tmp_path / "there" / "letter.txt").write_text("mine")
    with pytest.raises(ConfigError, match="there already exists: choose another DIRECTORY"):
        export_model(tiny_gpt, tmp_path / "there", to)
    with pytest.raises(ConfigError, match="there already exists"):
        import_model(tiny_gpt, tmp_path / "there")
    assert [path.name for path in tmp_path.rglob("*")] == ["there", "letter.txt"]


def test_a_model_that_nobody_else_has_leaves_nothing(make_gpt, tmp_path):
    own = make_gpt(tmp_path / "own", norm="rms")
    with pytest.raises(ModelError, match="no class of transformers computes what this model does"):
        export_model(own, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["own"]


def test_a_format_that_there_is_not_and_a_tokenizer_of_another_model(tiny_gpt, tmp_path):
    with pytest.raises(ConfigError, match="to is 'onnx': it must be one of hugging-face, ctranslate2"):
        export_model(tiny_gpt, tmp_path / "there", "onnx")
    mixed = shutil.copytree(tiny_gpt, tmp_path / "mixed")
    (mixed / "tokenizer.model").unlink()
    ByteTokenizer().save(mixed)
    with pytest.raises(ModelError, match="mixed has a tokenizer of 272 tokens and a model of 337: copy both from one"):
        export_model(mixed, tmp_path / "there")
    assert [path.name for path in tmp_path.iterdir()] == ["mixed"]


def remove(name):
    return lambda directory: (directory / name).unlink()


def other_vocabulary(directory):
    (directory / "vocab.json").write_text(json.dumps({"</s>": 0, "<unk>": 1, "x": 5000}))


SPOILED = {
    "no settings": (remove("config.json"), "it has no config.json"),
    "no weights": (remove("model.safetensors"), "has no weights"),
    "no tokenizer": (remove("vocab.json"), "no tokenizer that the toolkit can read"),
    "another tokenizer": (other_vocabulary, "they belong to different models"),
    "a broken tokenizer": (lambda path: (path / "target.spm").write_bytes(b"x"), "holds no SentencePiece model"),
}


@pytest.mark.parametrize("name", SPOILED)
def test_a_damaged_source_leaves_nothing(marian, tmp_path, name):
    spoil, words = SPOILED[name]
    spoil(marian)
    with pytest.raises(ModelError, match=words):
        import_model(marian, tmp_path / "own")
    assert [path.name for path in tmp_path.iterdir()] == ["marian"]


def test_what_is_no_source(tiny_model, tmp_path):
    for source, words in [
        (tmp_path / "nowhere", "nowhere is not a directory: give one that transformers or CTranslate2 has written"),
        (tiny_model / "config.json", "config.json is not a directory"),
        (tiny_model, "is a model of this toolkit already: there is nothing to import"),
        (tmp_path, "it has no config.json"),
    ]:
        with pytest.raises(ToolkitError, match=words):
            import_model(source, tmp_path / "own")


def test_every_end_of_a_file_is_noticed(tiny_gpt, tmp_path):
    """Cut off anywhere, a file of an export is refused in a sentence or gives the same model."""
    export_model(tiny_gpt, tmp_path / "there")
    before = load_model(tiny_gpt).arrays()
    for path in sorted((tmp_path / "there").iterdir()):
        whole = path.read_bytes()
        for keep in {0, 9, len(whole) // 2, len(whole) - 1}:
            path.write_bytes(whole[:keep])
            try:
                import_model(tmp_path / "there", tmp_path / "back")
            except ToolkitError:
                pass
            else:
                after = load_model(tmp_path / "back").arrays()
                assert all((before[name] == after[name]).all() for name in before)
                assert load_tokenizer(tmp_path / "back").vocab_size == load_tokenizer(tiny_gpt).vocab_size
                shutil.rmtree(tmp_path / "back")
        path.write_bytes(whole)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
