"""Models that come without a tokenizer are used by ids: those of the library that they come from, in and out.

What transformers and CTranslate2 said of the same ids lies in the fixtures, and the installed transformers is asked.
"""

import json
import shutil
from functools import cache

import numpy as np
import pytest

import toolkit
from tests.interop.foreign_models import make_llama
from tests.interop.test_ctranslate2 import FIXTURES as CTRANSLATE2
from tests.interop.test_ctranslate2 import expected as expected_of_ctranslate2
from tests.parity.cases import CASES, EXPECTED, FIXTURES, MAX_NEW_TOKENS, SEARCHES, searched
from tests.parity.ours import real
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.interop import export_model, import_model
from toolkit.tokenization import IdTokenizer, load_tokenizer

TRANSLATORS = ["marian", "pegasus"]
LANGUAGE_MODELS = ["gpt2", "llama", "starcoder2"]


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    """imported(name): a directory of ours made of the fixture of this name, which has no tokenizer."""

    @cache
    def imported(name):
        directory = tmp_path_factory.mktemp("ids") / name
        import_model(FIXTURES / name if name in CASES else CTRANSLATE2 / name, directory)
        return directory

    return imported


def text(ids):
    return " ".join(map(str, ids))


@pytest.mark.parametrize("search", [SEARCHES[0], SEARCHES[-1]], ids=str)
@pytest.mark.parametrize("name", TRANSLATORS + LANGUAGE_MODELS)
def test_ids_are_continued_and_translated_as_in_transformers(imported, name, search):
    """Exactly those ids are read, marks included, and the ids of transformers are written."""
    case, model = CASES[name], toolkit.load(imported(name))
    with np.load(FIXTURES / name / EXPECTED) as file:
        expected = dict(file)
    given = [*map(text, real(*searched(case, expected)))]
    settings = {"max_new_tokens": MAX_NEW_TOKENS, "forced_eos": case.forced_eos, **search.settings}
    if name in LANGUAGE_MODELS:  # the reference was told not to write its special tokens
        words = [*map(str, case.never_written)]
        found = model.generate_n(given, do_sample=False, bad_words=words, **settings)
    else:
        found = model.translate_n(given, **settings)
    wanted = expected["ids"][SEARCHES.index(search)]
    for group, rows in zip(found, wanted, strict=True):
        for each, row in zip(group, rows, strict=False):
            ids = row[row >= 0].tolist()
            assert each.text.split() == [*map(str, ids)]
            assert [index for index in each.ids if index != case.end_id] == ids
            assert each.tokens == [*map(str, each.ids)]


def test_languages_are_ids_too(imported):
    """What outputs are forced to begin with there is a prefix here; none is put there otherwise."""
    case, model = CASES["m2m100"], toolkit.load(imported("m2m100"))
    with np.load(FIXTURES / "m2m100" / EXPECTED) as file:
        given = [*map(text, real(*searched(case, file)))]
        wanted = [row[row >= 0].tolist() for row in file["ids"][0][:, 0]]
    settings = {"max_new_tokens": MAX_NEW_TOKENS - 1, "forced_eos": "none"}
    assert model.translate(given, prefix=str(case.forced_bos), **settings) == [*map(text, wanted)]
    assert {each[0] for each in wanted} == {case.forced_bos}
    with pytest.raises(ConfigError, match="source_language is 'ne', but a language is an id, too"):
        model.between("ne")


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_the_loss_of_ids_is_that_of_transformers(imported, name):
    case = CASES[name]
    with np.load(FIXTURES / name / EXPECTED) as file:
        texts, loss = real(file["texts"], file["text_mask"]), float(file["loss"])
    found = toolkit.load(imported(name)).perplexity([*map(text, texts)])
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert (found.bits_per_byte, found.tokens) == (None, sum(map(len, texts)) - len(texts))
    assert case.begin == (name == "llama")  # one of them begins its texts with a mark, which nobody adds here


@pytest.mark.parametrize("name", ["marian-int16", "pegasus-float32"])
def test_scores_of_ids_are_those_of_ctranslate2(imported, name):
    theirs = expected_of_ctranslate2(name)
    tokens = json.loads((CTRANSLATE2 / name / "shared_vocabulary.json").read_text())
    model = toolkit.load(imported(name))
    sources, targets = ([[*map(tokens.index, each)] for each in theirs[side]] for side in ("sources", "targets"))
    end = tokens.index("</s>")
    for wanted, source, target in zip(theirs["log_probs"], sources, targets, strict=True):
        for given in text(target), text([*target, end]), target, [*target, end]:
            scored = model.score(text(source), given)
            np.testing.assert_allclose(scored.token_log_probs, wanted, atol=1e-4)
            assert scored.ids == [*target, end]
            assert scored.tokens == [tokens[index] for index in scored.ids]


def test_ids_of_a_language_model_of_ctranslate2(imported):
    name = "llama-float32"
    theirs = expected_of_ctranslate2(name)
    tokens = json.loads((CTRANSLATE2 / name / "vocabulary.json").read_text())
    prompts = [text([tokens.index("<s>"), *map(tokens.index, each)]) for each in theirs["prompts"]]
    found = toolkit.load(imported(name)).generate(prompts, do_sample=False, max_new_tokens=12)
    assert [[tokens[int(word)] for word in each.split()] for each in found] == theirs["outputs"]["1"]


@pytest.mark.parametrize(("name", "to"), [
    ("marian", "hugging-face"), ("marian", "ctranslate2"), ("llama", "hugging-face"), ("llama", "ctranslate2"),
    ("marian-int16", "ctranslate2"), ("llama-float32", "hugging-face"), ("llama-float32", "ctranslate2"),
])  # fmt: skip
def test_what_has_no_tokenizer_goes_out_and_comes_back(imported, name, to, tmp_path):
    model = imported(name)
    export_model(model, tmp_path / "there", to)
    assert (tmp_path / "there" / "tokenizer.json").exists() == (to == "ctranslate2")
    import_model(tmp_path / "there", tmp_path / "back")
    one, other = (toolkit.load(each) for each in (model, tmp_path / "back"))
    assert one.tokenizer.rows == other.tokenizer.rows
    np.testing.assert_array_equal(one.model.vector, other.model.vector)


@pytest.mark.parametrize("class_name", ["GPT2LMHeadModel", "LlamaForCausalLM", "MarianMTModel"])
def test_random_models_write_what_transformers_writes(class_name, tmp_path):
    """No token is special to a language model but its end mark; to a translator also what it begins with."""
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    name = {"G": "gpt2", "L": "llama", "M": "marian"}[class_name[0]]
    torch.manual_seed(1)
    theirs = getattr(transformers, class_name)(transformers.AutoConfig.for_model(**CASES[name].config)).eval()
    with torch.no_grad():
        for parameter in theirs.parameters():
            parameter *= 30 if parameter.ndim > 1 and parameter.requires_grad else 1
        theirs.get_output_embeddings().weight[1] *= 2  # the begin mark of one of them is not rare
    theirs.save_pretrained(tmp_path / "there")
    import_model(tmp_path / "there", tmp_path / "own")
    ours, rng, written = toolkit.load(tmp_path / "own"), np.random.default_rng(0), set()
    for length in range(1, 12):
        given = rng.integers(0, CASES[name].config["vocab_size"], length).tolist()
        given += [CASES[name].end_id] * (name == "marian")
        suppressed = [CASES[name].padding] if name == "marian" else None
        with torch.no_grad():
            ids = torch.tensor([given])
            settings = {"max_new_tokens": 12, "do_sample": False, "suppress_tokens": suppressed}
            output = theirs.generate(ids, attention_mask=torch.ones_like(ids), **settings)[0].tolist()
        if name == "marian":
            (found,) = ours.translate_n(text(given), max_new_tokens=12)
            assert found.ids == output[1:]
        else:
            (found,) = ours.generate_n(text(given), do_sample=False, max_new_tokens=12)
            assert found.ids == output[length:]
        written.update(found.ids)
    assert len(written) > 10  # they say something, a language model its begin mark too
    assert name != "llama" or 1 in written


def test_special_tokens_that_are_never_written_there_are_not_written_here(imported, tmp_path):
    shutil.copytree(FIXTURES / "llama", tmp_path / "there")
    path = tmp_path / "there" / "generation_config.json"
    path.write_text(json.dumps({"eos_token_id": 2, "suppress_tokens": [1]}))
    import_model(tmp_path / "there", tmp_path / "own")
    assert toolkit.load(imported("llama")).tokenizer.rows[:4] == [-1, -1, -1, 2]
    assert toolkit.load(tmp_path / "own").tokenizer.rows[:4] == [-1, -1, 1, 2]
    path.write_text(json.dumps({"eos_token_id": 2, "suppress_tokens": [5]}))
    with pytest.raises(ModelError, match="forbids tokens that are written here"):
        import_model(tmp_path / "there", tmp_path / "other")


def test_what_ends_a_text_is_named_by_its_id(tmp_path):
    import_model(FIXTURES / "gpt2", tmp_path / "own", end_token="5")
    assert load_tokenizer(tmp_path / "own").rows[3] == 5
    with pytest.raises(ModelError, match="has no token '62', which its texts end with"):
        import_model(FIXTURES / "gpt2", tmp_path / "other", end_token="62")


# With a tokenizer, too


def test_a_model_with_a_tokenizer_is_used_by_the_ids_that_it_came_with(tmp_path):
    make_llama(tmp_path / "there", ["a boy and a girl", "an old tree"])
    import_model(tmp_path / "there", tmp_path / "own")
    (tmp_path / "there" / "tokenizer.model").unlink()
    import_model(tmp_path / "there", tmp_path / "bare")
    by_text, by_ids = (toolkit.load_language_model(tmp_path / "own", ids=ids) for ids in (None, True))
    bare = toolkit.load_language_model(tmp_path / "bare")
    ids = by_text.tokenizer.encode("a boy")
    foreign = [by_text.tokenizer.rows[index] for index in ids]
    (wanted,) = by_text.generate_n("a boy", do_sample=False)
    (found,) = by_ids.generate_n(text([1, *foreign]), do_sample=False)  # the begin mark is given, as there
    assert found.ids == [by_text.tokenizer.rows[index] for index in wanted.ids]
    assert found.tokens == wanted.tokens
    assert bare.generate(text([1, *foreign]), do_sample=False, bad_words=["0", "1"]) == found.text


def test_our_own_models_have_our_ids(tiny_model, tiny_gpt):
    for directory in tiny_model, tiny_gpt:
        by_text, by_ids = toolkit.load(directory), toolkit.load(directory, ids=True)
        if directory == tiny_model:
            (wanted,), (found,) = (each.translate_n(given) for each, given in (
                (by_text, "I am a boy."), (by_ids, text(by_text.tokenizer.encode(" I am a boy.")))
            ))  # fmt: skip
        else:
            (wanted,), (found,) = (each.generate_n(given, seed=3) for each, given in (
                (by_text, "I am"), (by_ids, text([2, *by_text.tokenizer.encode("I am")]))
            ))  # fmt: skip
        assert (found.ids, found.tokens, found.log_prob) == (wanted.ids, wanted.tokens, wanted.log_prob)


# Its file


def test_the_tokenizer_lies_in_the_directory_and_loses_nothing(tmp_path):
    rows = [7, -1, 7, 2, *[-1] * 12, 0, 1, 3, 4, 5, 6]
    tokenizer = IdTokenizer(rows)
    tokenizer.save(tmp_path)
    again = load_tokenizer(tmp_path)
    assert (type(again), again.rows, again.pieces) == (IdTokenizer, rows, tokenizer.pieces)
    assert tokenizer.encode("7 2  0\t5 2 ") == [0, 3, 16, 20, 3]
    assert tokenizer.decode(tokenizer.encode("7 2 0 5 2")) == " 7 2 0 5 2"
    assert tokenizer.shown_ids(tokenizer.given_ids([7, 2, 6])) == [7, 2, 6]
    assert tokenizer.pieces[1:4] == ["<unk>", "7", "2"]


@pytest.mark.parametrize("word", ["x", "-1", "1.0", "1_0", "१", "0x1", "9" * 5000, "1,2"])
def test_what_is_no_id_is_refused(word):
    tokenizer = IdTokenizer([-1, -1, -1, 0, *[-1] * 12, 1, 2])
    with pytest.raises(DataError, match=r"is no id: give whole numbers from 0 to 2, divided by spaces"):
        tokenizer.encode(f"1 {word} 2")
    with pytest.raises(DataError, match="3 is not one of the ids of the model: give whole numbers from 0 to 2"):
        tokenizer.encode("1 3")


@pytest.mark.parametrize(("name", "value"), [
    ("rows", [0] * 5), ("rows", "12"), ("rows", None), ("pieces", ["a"]), ("pieces", [1] * 22), ("pieces", None),
])  # fmt: skip
def test_a_damaged_file_of_ids_is_refused(name, value, tmp_path):
    IdTokenizer([7, -1, 7, 2, *[-1] * 12, 0, 1, 3, 4, 5, 6]).save(tmp_path)
    edit_tokenizer = json.loads((tmp_path / "tokenizer.json").read_text()) | {name: value}
    (tmp_path / "tokenizer.json").write_text(json.dumps(edit_tokenizer))
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        load_tokenizer(tmp_path)


def test_what_only_texts_have_is_refused(imported):
    model = toolkit.load_language_model(imported("gpt2"))
    with pytest.raises(ConfigError, match="stop strings are of texts"):
        model.generate("12 55", stop_strings=["5"])
    with pytest.raises(ConfigError, match="bad word 1 has the end mark in it"):
        model.generate("12 55", bad_words=["61"])
    with pytest.raises(DataError, match="bad word 2 cannot be read: 'x' is no id"):
        model.generate("12 55", bad_words=["6", "x"])
    with pytest.raises(ModelError, match="is used by ids, and converses in none"):
        model.chat(template="plain")
    with pytest.raises(DataError, match="prompt 2 is empty: give it an id to begin with"):
        model.generate(["12", " "])
    with pytest.raises(ModelError, match="gpt2 has no tokenizer: use it by ids, with --ids"):
        toolkit.load(imported("gpt2"), ids=False)
