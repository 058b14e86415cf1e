"""M2M100 and NLLB: their languages, and what transformers translates with them.

The fixtures were written by transformers, with what it says of some sentences: see `multilingual_live.py`.
"""

import copy
import json
import pickle
import shutil
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file

import toolkit
from tests.checks import random_model, small_config
from tests.interop.foreign_models import edit
from toolkit.decoding import GenerationConfig, generate
from toolkit.errors import ConfigError, ModelError
from toolkit.interop import export_model, import_model
from toolkit.interop.hugging_face import write_hugging_face
from toolkit.models.seq2seq import Seq2Seq
from toolkit.tokenization import load_tokenizer
from toolkit.tokenization.languages import Languages
from toolkit.tokenization.special import EOS
from toolkit.translator import Translator

FIXTURES = Path(__file__).parent / "fixtures" / "multilingual"
NAMES = ["nllb", "m2m100"]
SEARCH = {"num_beams": 3, "num_return_sequences": 3, "early_stopping": True}
LENGTH = {"max_new_tokens": 14, "forced_eos": "none"}  # as in what is stored
SETTINGS = "tokenizer_config.json"


def stored(name: str) -> list[dict[str, Any]]:
    return json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module", params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    if request.param == "nllb":
        pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    return request.param


@pytest.fixture(scope="module")
def own(name: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The fixture, imported."""
    directory = tmp_path_factory.mktemp("multilingual") / name
    import_model(FIXTURES / name, directory)
    return directory


@pytest.fixture
def changed(tmp_path: Path) -> Callable[..., Path]:
    """changed(name, file, **values) -> a copy of a fixture, these values in one of its JSON files."""

    def change(name: str, file: str = SETTINGS, **values: Any) -> Path:
        directory = tmp_path / name
        shutil.copytree(FIXTURES / name, directory)
        content = json.loads((directory / file).read_text(encoding="utf-8")) | values
        (directory / file).write_text(json.dumps(content), encoding="utf-8")
        return directory

    return change


def directed(translator: Translator, each: dict[str, Any]) -> Translator:
    return translator.between(each["source_language"], each["target_language"])


def translated(directory: Path, name: str) -> list[str]:
    found = toolkit.load_translator(directory)
    return [directed(found, each).translate(each["text"], **LENGTH) for each in stored(name)]


def nfc(text: str) -> str:
    return unicodedata.normalize("NFC", text)


def in_float64(model: Seq2Seq) -> Seq2Seq:
    """A copy without rounding to speak of: two of the beams are 3e-6 apart, which float32 may take for either order."""
    found, given = Seq2Seq(model.config), model.arrays()
    found.allocate(np.float64)
    for name, values in found.arrays().items():
        values[...] = given[name]
    return found


def test_it_translates_what_transformers_translates(own: Path, name: str) -> None:
    """The ids that are read, all ids of greedy search and of every beam, their texts, and the scores of beams."""
    translator, rows = toolkit.load_translator(own), load_tokenizer(own).rows
    for each in stored(name):
        reader = directed(translator, each)
        [ids] = reader.encode([each["text"]], str)
        assert [rows[index] for index in [*ids, EOS]] == each["source"]
        [greedy], forced = reader.translate_n(each["text"], **LENGTH), reader.language("target")
        assert [rows[index] for index in greedy.ids] == each["greedy"]["ids"]
        assert greedy.text == nfc(each["greedy"]["text"])
        config = GenerationConfig(**LENGTH, **SEARCH)
        [beams] = generate(in_float64(translator.model), [ids], config, forced_bos=forced)
        wanted = [one["ids"] if one["ids"][-1] != 2 else one["ids"][:-1] for one in each["beams"]]
        assert [[rows[index] for index in one.ids] for one in beams] == wanted
        np.testing.assert_allclose([one.score for one in beams], [one["score"] for one in each["beams"]], atol=1e-4)
        assert {one.token_log_probs[0] for one in [greedy, *beams]} == {0}
        [best, *_] = reader.translate_n(each["text"], **LENGTH, **SEARCH)
        assert best.text == nfc(each["beams"][0]["text"])


def test_in_a_batch_or_alone_by_code_or_by_a_shorter_name(own: Path, name: str) -> None:
    translator, sentences = toolkit.load_translator(own), [each for each in stored(name) if each["text"].isascii()]
    texts = [each["text"] for each in sentences if each["source_language"].startswith("en")]
    alone = [each["greedy"]["text"] for each in sentences if each["source_language"].startswith("en")]
    found = translator.translate(texts, source_language="en", target_language="ne", **LENGTH)
    assert found == [nfc(text) for text in alone]
    assert found == translator.between("eng", "npi").translate(texts, **LENGTH)
    assert found == translator.between("eng_Latn", "npi_Deva").translate(texts, **LENGTH)  # M2M100 has no scripts
    assert found != translator.translate(
        texts, source_language="en", target_language="deu" if name == "nllb" else "de", **LENGTH
    )


def test_a_direction_is_kept_by_pickle_and_copy(own: Path) -> None:
    translator = toolkit.load_translator(own)
    names = sorted(translator.tokenizer.languages.ids)
    directed = translator.between(names[0], names[-1])
    wanted = directed.translate("I am a boy", **LENGTH)
    for same in pickle.loads(pickle.dumps(directed)), copy.deepcopy(directed), copy.copy(directed):
        assert same.translate("I am a boy", **LENGTH) == wanted
    for strange in 5, ["en"], b"en":
        with pytest.raises(ConfigError, match=r"source_language is .*: it must be a text, the code of a language"):
            translator.between(strange)


def test_by_ids_languages_are_given_as_what_they_are(own: Path, name: str) -> None:
    """What transformers read and wrote, in its own ids: the language that was forced there is a prefix here."""
    translator = toolkit.load_translator(own, ids=True)
    for each in stored(name):
        source, wanted = " ".join(map(str, each["source"])), each["greedy"]["ids"]
        (found,) = translator.translate_n(source, prefix=str(wanted[0]), max_new_tokens=13, forced_eos="none")
        assert found.ids == wanted


def test_scores_are_those_of_the_search_with_or_without_the_language(own: Path) -> None:
    translator = toolkit.load_translator(own).between("en", "ne")
    for text in ("I am a boy", "This is a book"):
        for each in translator.translate_n(text, num_beams=3, num_return_sequences=3):
            if each.finished:
                for ids in (each.ids, each.ids[1:], each.ids[1:-1]):
                    scored = translator.score(text, ids)
                    assert scored.ids == each.ids
                    assert scored.score == pytest.approx(each.score, abs=1e-5)
    blank = translator.score("I am a boy", "")
    assert blank.ids == [translator.language("target"), EOS]
    assert blank.token_log_probs[0] == 0


def test_a_prefix_follows_the_language_which_is_no_word(own: Path) -> None:
    translator = toolkit.load_translator(own).between("en", "ne")
    [found] = translator.translate_n("I am a boy", prefix="यो किताब", alignments=True, max_new_tokens=3)
    assert found.text.startswith("यो किताब")
    assert found.ids[0] == translator.language("target")
    assert found.source_tokens[0] == translator.tokenizer.piece(translator.language("source"))
    assert found.attention.shape == (len(found.tokens), len(found.source_tokens))
    assert [target for _, target in found.alignment] == list(range(len(found.text.split())))
    assert all(source < len(["I", "am", "a", "boy"]) for source, _ in found.alignment)


@pytest.mark.parametrize("to", ["hugging-face", "ctranslate2"])
def test_it_leaves_and_returns(own: Path, name: str, tmp_path: Path, to: Any) -> None:
    export_model(own, tmp_path / "there", to)
    import_model(tmp_path / "there", tmp_path / "back")
    assert translated(tmp_path / "back", name) == [nfc(each["greedy"]["text"]) for each in stored(name)]
    assert load_tokenizer(tmp_path / "back").languages == load_tokenizer(own).languages


def test_without_a_tokenizer_it_leaves_for_ctranslate2_and_returns(own: Path, tmp_path: Path) -> None:
    there, by_ids, back, again = (tmp_path / name for name in ("there", "by_ids", "back", "again"))
    export_model(own, there, "ctranslate2")
    for path in [*there.glob("tokenizer*"), *there.glob("*.spm")]:
        path.unlink()
    edit(there, toolkit=None)  # as the other library writes it
    import_model(there, by_ids)
    export_model(by_ids, back, "ctranslate2")
    import_model(back, again)
    first, second = toolkit.load_translator(by_ids), toolkit.load_translator(again)
    assert second.by_ids
    np.testing.assert_array_equal(second.model.vector, first.model.vector)


def test_it_leaves_for_transformers_as_it_came(own: Path, name: str, tmp_path: Path) -> None:
    there = tmp_path / "there"
    assert export_model(own, there).name == "M2M100ForConditionalGeneration"
    before, after = (json.loads((each / "config.json").read_text()) for each in (FIXTURES / name, there))
    told = ("vocab_size", "d_model", "activation_function", "scale_embedding", "decoder_start_token_id", "pad_token_id")
    assert {setting: after[setting] for setting in told} == {setting: before[setting] for setting in told}
    one, other = (load_file(each / "model.safetensors") for each in (FIXTURES / name, there))
    assert all(np.array_equal(other[tensor], value) for tensor, value in one.items())
    one, other = (json.loads((each / SETTINGS).read_text()) for each in (FIXTURES / name, there))
    assert other["tokenizer_class"] == one["tokenizer_class"]
    files = {"nllb": ["tokenizer.json"], "m2m100": ["vocab.json"]}[name]
    for file in files:
        one, other = (json.loads((each / file).read_text("utf-8")) for each in (FIXTURES / name, there))
        assert one == other
    if name == "m2m100":
        model = "sentencepiece.bpe.model"
        assert (there / model).read_bytes() == (FIXTURES / name / model).read_bytes()


def test_the_languages_are_those_that_the_files_say(changed: Callable[..., Path], name: str, tmp_path: Path) -> None:
    """From src_lang and forced_bos_token_id, which export writes again."""
    source, target = {"nllb": ("deu_Latn", "npi_Deva"), "m2m100": ("de", "ne")}[name]
    each = next(each for each in stored(name) if (each["source_language"], each["target_language"]) == (source, target))
    directory = changed(name, src_lang=source, tgt_lang=None)
    edit(directory, forced_bos_token_id=each["greedy"]["ids"][0])
    generation = directory / "generation_config.json"
    generation.unlink()
    import_model(directory, tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "back")
    import_model(tmp_path / "back", tmp_path / "again")
    for own in (tmp_path / "own", tmp_path / "again"):
        assert toolkit.load_translator(own).translate(each["text"], **LENGTH) == nfc(each["greedy"]["text"])


def test_a_tokenizer_with_languages_can_be_pickled(own: Path) -> None:
    tokenizer = load_tokenizer(own)
    for each in (tokenizer, tokenizer.source):
        again = pickle.loads(pickle.dumps(each))
        assert again.languages == each.languages
        assert again.encode(" I am a boy") == each.encode(" I am a boy")
        assert again.decode([*again.languages.ids.values()]) == ""


def test_a_direction_holds_in_several_processes(own: Path, name: str) -> None:
    translator = toolkit.load_translator(own).between("en", "ne")
    texts = [each["text"] for each in stored(name) if each["source_language"].startswith("en")]
    assert translator.translate(texts, workers=2, **LENGTH) == translator.translate(texts, **LENGTH)
    translator.close()


def test_our_own_order_of_tokens_has_padding_elsewhere(tmp_path: Path) -> None:
    """Positions would be counted from another number there."""
    model = random_model(small_config(positions="sinusoidal_fairseq"), np.random.default_rng(0), np.float32)
    with pytest.raises(ModelError, match=r"M2M100ForC.* has token 1 as padding, and this model has its padding at 0"):
        write_hugging_face(model, tmp_path)


LANGUAGES = Languages({"eng_Latn": 20, "npi_Deva": 21, "zho_Hans": 22, "zho_Hant": 23, "est_Latn": 24})


@pytest.mark.parametrize(
    ("name", "code"),
    [("en", "eng_Latn"), ("eng", "eng_Latn"), ("ne", "npi_Deva"), ("nep", "npi_Deva"), ("zho_Hant", "zho_Hant")],
)
def test_names_of_languages(name: str, code: str) -> None:
    assert LANGUAGES.code(name) == code


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("npi_Dev", "did you mean npi_Deva"),
        ("zho", "could be zho_Hans or zho_Hant: choose one"),
        ("es", "knows no language 'es': it has eng_Latn, est_Latn"),  # Spanish, which no beginning of a code is
        ("eng_Arab", "did you mean eng_Latn"),
        ("", "knows no language ''"),
        ("Nepali", "it has eng_Latn, est_Latn, npi_Deva"),
    ],
)
def test_languages_that_there_are_not(name: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        LANGUAGES.code(name)


def test_many_languages_are_counted() -> None:
    many = Languages({f"{chr(97 + index // 26)}{chr(97 + index % 26)}": 20 + index for index in range(202)})
    with pytest.raises(
        ConfigError, match=r"between 202 languages \(aa, ab, .*toolkit info lists them\): say from whic"
    ):
        many.token("source")


def test_what_must_be_said_and_what_cannot(own: Path, name: str, tiny_model: Path) -> None:
    translator = toolkit.load_translator(own)
    bare = Translator(
        translator.model, translator.tokenizer.with_languages(Languages(translator.tokenizer.languages.ids))
    )
    for call in (lambda: bare.translate("I am a boy"), lambda: bare.score("I am a boy", "घर")):
        with pytest.raises(
            ConfigError, match=r"by source_language and target_language \(--source-language --target-lan"
        ):
            call()
    with pytest.raises(ConfigError, match=r"by target_language \(--target-language\)"):
        bare.translate("I am a boy", source_language="en")
    with pytest.raises(ConfigError, match="knows no language 'xx'"):
        bare.translate("I am a boy", source_language="en", target_language="xx")
    one_way = toolkit.load_translator(tiny_model)
    assert one_way.between() is one_way
    for setting in ("source_language", "target_language"):
        with pytest.raises(ConfigError, match=f"{setting} is 'ne', but .* has no languages to choose: leave it out"):
            one_way.translate("I am a boy", **{setting: "ne"})


REFUSED = [
    ("nllb", {"legacy_behaviour": True}, "has legacy_behaviour true, which puts a source's language behind"),
    ("nllb", {"tokenizer_class": "SMALL100Tokenizer"}, "tokenizer_class 'SMALL100Tokenizer': of an m2m_100, NllbTok"),
    ("nllb", {"tokenizer_class": ["NllbTokenizer"]}, "has tokenizer_class"),
    ("m2m100", {"language_codes": "mars"}, "has language_codes 'mars': m2m100, wmt21"),
    ("m2m100", {"language_codes": ["m2m100"]}, "has language_codes"),
]


@pytest.mark.parametrize(("name", "values", "words"), REFUSED)
def test_tokenizers_that_are_refused(
    changed: Callable[..., Path], tmp_path: Path, name: str, values: dict[str, Any], words: str
) -> None:
    with pytest.raises(ModelError, match=words):
        import_model(changed(name, **values), tmp_path / "own")
    assert not (tmp_path / "own").exists()


SPECIAL = [
    ({"decoder_start_token_id": 114}, "has a language, npi_Deva, as <s>.*forced_bos_token_id says their language"),
    ({"pad_token_id": 114}, "has pad_token_id 114, .* must be 1"),
    ({"decoder_start_token_id": 1}, "has decoder_start_token_id 1, which is padding"),
    ({"forced_bos_token_id": 20}, "has forced_bos_token_id 20, but here outputs are forced to begin with a language"),
    ({"forced_bos_token_id": [114, 3]}, "has forced_bos_token_id"),
    ({"model_type": "nllb-moe", "architectures": ["NllbMoeForConditionalGeneration"]}, "NllbMoe.*: this toolkit reads"),
]


@pytest.mark.parametrize(("values", "words"), SPECIAL, ids=lambda value: "" if isinstance(value, str) else str(value))
def test_models_that_are_refused(
    changed: Callable[..., Path], tmp_path: Path, values: dict[str, Any], words: str
) -> None:
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    directory = changed("nllb")
    (directory / "generation_config.json").unlink()
    edit(directory, **values)
    with pytest.raises(ModelError, match=words):
        import_model(directory, tmp_path / "own")


def test_settings_of_a_wrong_kind_say_nothing(changed: Callable[..., Path], tmp_path: Path) -> None:
    import_model(changed("m2m100", src_lang=["en"], tgt_lang="xx"), tmp_path / "own")
    languages = load_tokenizer(tmp_path / "own").languages
    assert (languages.source, languages.target) == (None, None)


def test_without_the_files_of_a_tokenizer_with_languages(changed: Callable[..., Path], tmp_path: Path) -> None:
    directory = changed("m2m100")
    (directory / "vocab.json").unlink()
    with pytest.raises(
        ModelError, match=r"has no tokenizer that .* an M2M100Tokenizer's vocab.json and sentencepiece.b"
    ):
        import_model(directory, tmp_path / "own")


DAMAGE: list[Callable[[dict[str, Any]], Any]] = [
    lambda found: found["ids"].update(xx=10**6),
    lambda found: found["ids"].update(xx=3),
    lambda found: found["ids"].update(xx=found["ids"]["en"]),
    lambda found: found["ids"].update(xx="20"),
    lambda found: found["ids"].clear(),
    lambda found: found.update(source="xx"),
    lambda found: found.update(target=7),
    lambda found: found.update(other=None),
    lambda found: found.pop("ids"),
]


@pytest.mark.parametrize("change", DAMAGE)
def test_damaged_languages(tmp_path: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    import_model(FIXTURES / "m2m100", tmp_path / "own")
    path = tmp_path / "own" / "tokenizer.json"
    content = json.loads(path.read_text("utf-8"))
    change(content["languages"])
    path.write_text(json.dumps(content))
    with pytest.raises(ModelError, match="is damaged or is not a tokenizer of this toolkit"):
        toolkit.load(tmp_path / "own")
