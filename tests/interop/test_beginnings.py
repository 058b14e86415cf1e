"""What a text of an imported language model begins with, and what is read where a text names a special token."""

import json
import shutil

import pytest

import toolkit
from tests.interop.foreign_models import edit
from tests.interop.test_ctranslate2 import FIXTURES
from tests.tokenization.test_foreign import trained
from tests.tokenization.test_foreign_library import content as byte_level
from toolkit.interop import export_model, import_model
from toolkit.models.gpt import GPTConfig
from toolkit.tokenization.special import BOS

tokenizers = pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")

LLAMA = {"d_model": 16, "num_heads": 2, "layers": 1, "d_ff": 16, "norm": "rms", "activation": "swiglu"}
NAMING = ["a <s> b", "</s>", "x<unk>", "<s><s>"]


def flags(index, name):
    return {"id": index, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False}


def tokenizer(model, special, post_processor, **steps):
    added = [flags(index, name) | {"special": True} for name, index in special.items()]
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": added,
        "normalizer": None,
        "pre_tokenizer": None,
        "post_processor": post_processor,
        "decoder": None,
        "model": model,
        **steps,
    }


def unigram(post_processor, unk_id=2):
    """Unigram pieces, special tokens among them, as where SentencePiece's models have been put into the format."""
    pieces = ["<s>", "</s>", "<unk>", "▁", "a", "b", "o", "y", "▁bo", "x", "<", ">", "s", "/", "▁a", "<pad>"]
    space = {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": False}
    model = {"type": "Unigram", "unk_id": unk_id, "vocab": [[piece, -1.0] for piece in pieces], "byte_fallback": False}
    special = {name: pieces.index(name) for name in ("<s>", "</s>", "<unk>", "<pad>")}
    return tokenizer(model, special, post_processor, pre_tokenizer=space, decoder=space)


def words(post_processor):
    """Whole words, and what is not among them."""
    names = ["<s>", "</s>", "<unk>", "a", "b", "boy", *map(str, range(12))]
    model = {"type": "WordLevel", "vocab": {name: index for index, name in enumerate(names)}, "unk_token": "<unk>"}
    special = {name: names.index(name) for name in ("<s>", "</s>", "<unk>")}
    return tokenizer(model, special, post_processor, pre_tokenizer={"type": "WhitespaceSplit"})


def bpe(post_processor):
    return byte_level(post_processor=post_processor)


def template(name, index):
    parts = [{"SpecialToken": {"id": name, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]
    special = {name: {"id": name, "ids": [index], "tokens": [name]}}
    return {"type": "TemplateProcessing", "single": parts, "pair": parts, "special_tokens": special}


TRIM = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
LAST = {
    "nothing": lambda name, index: None,
    "offsets": lambda name, index: TRIM,
    "the begin token": template,
    "both": lambda name, index: {"type": "Sequence", "processors": [TRIM, template(name, index)]},
}
KINDS = {"unigram": (unigram, "<s>", 0), "words": (words, "<s>", 0), "bpe": (bpe, "<|endoftext|>", 262)}


@pytest.fixture
def make_llama(write):
    """make_llama(content, tokenizer settings, config) writes a LlamaForCausalLM with a tokenizer.json."""

    def make(content, settings=None, **config):
        model = content["model"]["vocab"]
        size = len({each[0] for each in model} if isinstance(model, list) else model)
        _, directory = write(GPTConfig(vocab_size=size, **LLAMA))
        edit(directory, toolkit=None, **{"bos_token_id": None, "eos_token_id": 1, "pad_token_id": None} | config)
        (directory / "generation_config.json").unlink()
        (directory / "tokenizer.json").write_text(json.dumps(content))
        settings = {"tokenizer_class": "PreTrainedTokenizerFast", "split_special_tokens": True} | (settings or {})
        (directory / "tokenizer_config.json").write_text(json.dumps(settings))
        return directory

    return make


def read(model, text):
    """The foreign ids of what the model reads, from its beginning on."""
    begin = [BOS] if model.model.config.begin else []
    return [model.tokenizer.rows[index] for index in begin + model.tokenizer.encode(text)]


@pytest.mark.parametrize("settings", [{}, {"add_bos_token": True}, {"add_bos_token": False}, {"bos": False}], ids=str)
@pytest.mark.parametrize("last", LAST)
@pytest.mark.parametrize("kind", KINDS)
def test_texts_begin_as_they_do_in_transformers(kind, last, settings, make_llama, tmp_path):
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    make, name, index = KINDS[kind]
    named = {"bos_token": name} if settings.get("bos", True) else {}
    given = {key: value for key, value in settings.items() if key != "bos"} | named
    directory = make_llama(make(LAST[last](name, index)), given)
    import_model(directory, tmp_path / "own")
    theirs, ours = transformers.AutoTokenizer.from_pretrained(directory), toolkit.load(tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "there")
    import_model(tmp_path / "there", tmp_path / "back")
    again = toolkit.load(tmp_path / "back")
    for text in ("a b", "boy", ""):
        assert read(ours, text) == theirs(text)["input_ids"] == read(again, text)


def test_the_token_in_front_is_the_templates(make_llama, tmp_path):
    """Whatever config.json calls the begin token; and where a template adds nothing, nothing does."""
    for number, (last, expected) in enumerate([(template("<pad>", 15), [15, 14]), (None, [14])]):
        directory = make_llama(unigram(last), {"bos_token": "<s>"}, bos_token_id=0)
        import_model(directory, tmp_path / f"own-{number}")
        assert read(toolkit.load(tmp_path / f"own-{number}"), "a") == expected


def test_nothing_begins_with_a_token_that_there_is_not(make_llama, tmp_path):
    """Though most models of the class begin their texts."""
    directory = make_llama(unigram(None))
    (directory / "tokenizer.json").unlink()
    (directory / "tokenizer.model").write_bytes(trained(["abcdefgh ij"], bos_id=-1, model_type="char"))
    import_model(directory, tmp_path / "own")
    own = toolkit.load(tmp_path / "own")
    assert (own.tokenizer.rows[BOS], own.model.config.begin) == (-1, False)
    assert own.generate("a", max_new_tokens=2)


@pytest.mark.parametrize("settings", [{}, {"bos_token": "<s>", "eos_token": "</s>", "unk_token": "<pad>"}], ids=str)
def test_the_name_of_a_special_token_is_unknown_text(settings, make_llama, tmp_path):
    """And what that is, the tokenizer's model says."""
    directory = make_llama(unigram(None), settings)
    import_model(directory, tmp_path / "own")
    own = toolkit.load(tmp_path / "own")
    theirs = tokenizers.Tokenizer.from_file(str(directory / "tokenizer.json"))
    theirs.encode_special_tokens = True
    for text in NAMING:
        pieces = theirs.encode(text).ids
        assert {0, 1, 2} & {*pieces}
        assert read(own, text) == [2 if index in (0, 1) else index for index in pieces]
        assert own.model.arrays()["trunk.input.embedding.table"][own.tokenizer.encode(text)].any(axis=1).all()
    assert read(own, "z") == [3, 2]


def test_where_there_is_no_unknown_token_such_a_name_is_refused(make_llama, run, tmp_path):
    directory = make_llama(unigram(None, unk_id=None))
    assert run("import", directory, tmp_path / "own").code == 0
    sentence = run("generate", "--model", tmp_path / "own", "a </s>").sentence
    assert "'</s>' is no text to this model, and it has no token for what it does not know" in sentence


def test_characters_never_seen_cost_what_they_cost_there_whatever_pads(make_llama, run, tmp_path):
    """Many models are padded with what they do not know."""
    (tmp_path / "text").write_text("a z b zz", encoding="utf-8")
    found = []
    for number, pad in enumerate((None, 2)):
        import_model(make_llama(unigram(None), pad_token_id=pad), tmp_path / f"own-{number}")
        (line,) = run("perplexity", tmp_path / "text", "--model", tmp_path / f"own-{number}", "--json").lines
        found.append(json.loads(line)["loss"])
    assert found[0] == pytest.approx(found[1])
    assert found[0] < 20


@pytest.mark.parametrize(("last", "first"), [(None, []), (template("<s>", 1), [1]), (template("w5", 5), [5])])
def test_texts_of_a_converted_model_begin_as_the_tokenizer_beside_it_says(last, first, tmp_path):
    """CTranslate2's own files say only which token it would be."""
    directory = shutil.copytree(FIXTURES / "llama-float32", tmp_path / "llama")
    names = json.loads((directory / "vocabulary.json").read_text())
    model = {"type": "WordLevel", "vocab": {name: index for index, name in enumerate(names)}, "unk_token": "<unk>"}
    special = {name: names.index(name) for name in ("<s>", "</s>", "<unk>", "w5")}
    content = tokenizer(model, special, last, pre_tokenizer={"type": "WhitespaceSplit"})
    (directory / "tokenizer.json").write_text(json.dumps(content))
    import_model(directory, tmp_path / "own")
    assert read(toolkit.load(tmp_path / "own"), "w7 w8") == [*first, 7, 8]
