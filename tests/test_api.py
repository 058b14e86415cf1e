"""The library's front door: load a directory, text in, text out."""

import shutil
import subprocess
import sys
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController, threadpool_limits

import toolkit
from toolkit import api
from toolkit.decoding import GenerationConfig
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.models import storage
from toolkit.models.reward import ActorCritic, ActorCriticConfig, RewardConfig, RewardModel, settings_like
from toolkit.models.storage import load_model, save_model
from toolkit.tokenization import SentencePieceTokenizer
from toolkit.translation_reader import READING_LIMIT

ENGLISH = ("I am a boy.", "She eats rice.", "Where do you go?", "He drinks water, and she drinks tea.")


@pytest.fixture(scope="module")
def translator(tiny_model):
    return toolkit.load(tiny_model)


def test_a_text_gives_a_text_and_a_list_a_list(translator):
    assert toolkit.load is api.load
    one = translator.translate(ENGLISH[0])
    assert isinstance(one, str)
    assert one
    assert translator.translate([ENGLISH[0]]) == [one]
    assert translator.translate([]) == []


@pytest.mark.parametrize("options", [{}, {"num_beams": 3}, {"num_beams": 2, "length_penalty": 0.0}])
def test_a_list_equals_its_texts_one_by_one_for_every_batch_size(translator, options):
    texts = [*ENGLISH, "", "I", " \t ", *ENGLISH[::-1]]
    alone = [translator.translate(text, max_new_tokens=8, **options) for text in texts]
    for batch_size in (1, 3, 64):
        assert translator.translate(texts, max_new_tokens=8, batch_size=batch_size, **options) == alone


def test_samples_depend_on_the_seed_alone(translator):
    options = {"do_sample": True, "max_new_tokens": 12}
    first = translator.translate(ENGLISH, seed=1, **options)
    assert translator.translate(ENGLISH, seed=1, batch_size=2, **options) == first
    assert translator.translate(ENGLISH, seed=2, **options) != first
    assert translator.translate(ENGLISH, temperature=0.0, **options) == translator.translate(ENGLISH, max_new_tokens=12)


@pytest.mark.parametrize("blank", ["", " ", "\t\n", "\u3000", "\r\n"])
def test_a_blank_text_has_an_empty_translation(translator, blank):
    assert translator.translate(blank, num_beams=2) == ""


@given(text=st.text(max_size=40))
@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_has_one_translation_in_normal_form_c(translator, text):
    translation = translator.translate(text, max_new_tokens=4)
    assert unicodedata.is_normalized("NFC", translation)
    assert translator.translate(unicodedata.normalize("NFD", text), max_new_tokens=4) == translation
    assert translator.translate(f" {text}\n", max_new_tokens=4) == translation


def test_settings_are_those_of_a_config_or_change_one(translator):
    sampled = translator.translate(ENGLISH, do_sample=True, seed=3, max_new_tokens=9)
    config = GenerationConfig(do_sample=True, seed=5, max_new_tokens=9)
    assert translator.translate(ENGLISH, config, seed=3) == sampled != translator.translate(ENGLISH, config)
    with pytest.raises(ConfigError, match="num_return_sequences is 2: translate_n gives several"):
        translator.translate(ENGLISH, num_beams=2, num_return_sequences=2)


def test_a_translation_has_no_bad_word():
    model = toolkit.load("en-ne-small")
    free = model.translate("I am a boy", num_beams=2)
    assert "केटा" in free
    for chosen in {}, {"num_beams": 2}, {"do_sample": True}:
        assert "केटा" not in model.translate("I am a boy", bad_words=["केटा"], **chosen)
    (records,) = model.translate_n(["I am a boy"], num_beams=2, num_return_sequences=2, bad_words=["केटा"])
    assert not any("केटा" in each.text for each in records)
    assert model.translate("I am a boy", num_beams=2, bad_words=["घोडा"]) == free


@pytest.mark.parametrize("wrong", [{"num_beams": 0}, {"top_p": 2.0}, {"batch_size": 0}, {"max_new_tokens": 0}])
def test_a_setting_out_of_range_is_named(translator, wrong):
    with pytest.raises(ConfigError, match=next(iter(wrong))):
        translator.translate("a", **wrong)


def test_a_misspelt_setting_is_named_with_the_right_one(translator):
    with pytest.raises(TypeError, match="there is no setting 'num_beam': did you mean 'num_beams'"):
        translator.translate("a", num_beam=4)
    with pytest.raises(TypeError, match="there is no setting 'bad_word': did you mean 'bad_words'"):
        translator.translate_n("a", bad_word=["b"])
    with pytest.raises(TypeError, match="config is 'b': give a GenerationConfig"):
        translator.translate("a", "b")


def test_learned_positions_read_exactly_what_they_know(make_model, tmp_path):
    translator = toolkit.load(make_model(tmp_path / "learned", positions="learned", max_length=12))
    text = "I"
    while len(translator.tokenizer.encode(f" {text}")) < 11:  # the twelfth position is the end mark's
        text += "x"
    assert translator.translate(["a", text], max_new_tokens=12)[1]
    with pytest.raises(DataError, match=r"text 2 has 12 tokens, the model reads 11"):
        translator.translate(["a", text + "x"])


def test_positions_without_end_read_more_than_was_trained_on_up_to_a_limit(make_model, tmp_path):
    translator = toolkit.load(make_model(tmp_path / "waves", max_length=8))
    assert translator.translate("xq" * 40, max_new_tokens=2)
    for text in ("xq" * READING_LIMIT, "x" * 10_000_000):
        with pytest.raises(DataError, match=r"the text has .*: divide it"):
            translator.translate(text)


def test_a_prefix_and_a_bad_word_that_no_output_could_hold_are_refused_by_their_length(translator):
    long = "a\u0301\u0323" * 300_000
    for words, told in [({"prefix": long}, "the prefix of the text"), ({"bad_words": ["a", long]}, "bad word 2")]:
        with pytest.raises(DataError, match=f"{told} has 900000 characters, more than the model reads"):
            translator.translate("a", **words)


def test_half_a_surrogate_pair_is_not_text(translator):
    with pytest.raises(DataError, match="surrogate"):
        translator.translate("a\ud800")


def test_the_callers_blas_threads_are_left_as_they_were(translator):
    with threadpool_limits(2, user_api="blas"):
        before = ThreadpoolController().info()
        translator.translate("a", max_new_tokens=2)
        assert ThreadpoolController().info() == before


def test_a_run_is_loaded_by_what_best_names_and_else_last(tiny_model, tmp_path):
    for step in ("step-1", "step-2"):
        shutil.copytree(tiny_model, tmp_path / step)
    (tmp_path / "last").write_text("step-2\n")
    assert storage.find_model(tmp_path) == tmp_path / "step-2"
    (tmp_path / "best").write_text("step-1\n")
    assert storage.find_model(str(tmp_path)) == tmp_path / "step-1"
    for foolish, problem in ("step-3", "is not a model"), ("", "best is damaged"), ("\udcff", "best is damaged"):
        (tmp_path / "best").write_text(foolish, errors="surrogateescape")
        with pytest.raises(ModelError, match=problem):
            toolkit.load(tmp_path)


@pytest.mark.parametrize("place", ["checkpoints", "toolkit/checkpoints"], ids=["clone", "wheel"])
def test_a_shipped_model_is_found_by_name(tiny_model, tmp_path, monkeypatch, place):
    (tmp_path / "toolkit").mkdir()
    shutil.copytree(tiny_model, tmp_path / place / "en-ne")
    monkeypatch.setattr(storage, "__file__", str(tmp_path / "toolkit" / "models" / "storage.py"))
    monkeypatch.chdir(tmp_path)
    assert storage.find_model("en-ne") == tmp_path / place / "en-ne"
    with pytest.raises(ModelError, match=r"no model 'ne-en'.*\(en-ne\)"):
        toolkit.load("ne-en")
    shutil.copytree(tiny_model, "en-ne")  # what the caller has at hand comes before what is shipped
    assert storage.find_model("en-ne") == Path("en-ne")


def test_a_directory_of_runs_is_no_model_and_none_is_named_so(tiny_model, tmp_path, monkeypatch):
    shelf_of = tmp_path / "checkpoints"
    for path in shelf_of / "en-ne", shelf_of / "run" / "step-1", shelf_of / "seeds" / "seed-1":
        shutil.copytree(tiny_model, path)
    (shelf_of / "run" / "best").write_text("step-1\n")
    (shelf_of / "empty").mkdir()
    monkeypatch.setattr(storage, "__file__", str(tmp_path / "toolkit" / "models" / "storage.py"))
    with pytest.raises(ModelError, match=r"no model 'seeds'.*\(en-ne, run\)"):
        toolkit.load("seeds")
    with pytest.raises(ModelError, match=r"seeds is not a model, but has some in it: give one of them, such as .*"):
        toolkit.load(shelf_of / "seeds")


def test_a_directory_that_is_no_model_is_said_to_be_none(tmp_path):
    with pytest.raises(ModelError, match=r"is not a model: it has no config\.json"):
        toolkit.load(tmp_path)


def test_a_tokenizer_of_another_model_is_refused(tiny_model, tmp_path):
    directory = shutil.copytree(tiny_model, tmp_path / "mixed")
    SentencePieceTokenizer.train(["a b c"], vocab_size=300).save(directory)
    with pytest.raises(ModelError, match="copy both"):
        toolkit.load(directory)


def test_loading_changes_nothing_of_a_model(tiny_model, translator):
    again = toolkit.load(str(tiny_model))
    for name, value in again.model.arrays().items():
        np.testing.assert_array_equal(value, translator.model.arrays()[name])


# Models that are made on the way to others


def rewarding(tiny_gpt, directory):
    """A reward model and an actor-critic of the shape of a language model, each as a directory."""
    chat = load_model(tiny_gpt)
    reward = RewardModel(settings_like(RewardConfig, chat.config))
    reward.allocate()
    reward.begin_from(chat)
    both = ActorCritic(settings_like(ActorCriticConfig, chat.config))
    both.allocate()
    both.begin_from(chat, reward)
    for name, model in ("reward", reward), ("both", both):
        shutil.copytree(tiny_gpt, directory / name)
        save_model(model, directory / name)
    return directory / "reward", directory / "both"


def test_a_reward_model_writes_nothing(tiny_gpt, tmp_path):
    reward, _ = rewarding(tiny_gpt, tmp_path)
    for read in api.load, api.load_language_model, api.load_translator:
        with pytest.raises(ModelError, match="reward is a reward model, which writes nothing"):
            read(reward)


def test_what_ppo_has_trained_is_loaded_as_its_policy(tiny_gpt, tmp_path):
    _, both = rewarding(tiny_gpt, tmp_path)
    found, chat = toolkit.load(both), toolkit.load(tiny_gpt)
    assert isinstance(found, toolkit.LanguageModel)
    assert found.model.config == chat.model.config
    for name, value in chat.model.arrays().items():
        np.testing.assert_array_equal(found.model.arrays()[name], value)
    assert found.generate("She", temperature=0.0) == chat.generate("She", temperature=0.0)
    with pytest.raises(ModelError, match="is a language model, which translates nothing"):
        api.load_translator(both)


def test_a_policy_with_the_tokenizer_of_another_is_refused(tiny_gpt, tmp_path):
    _, both = rewarding(tiny_gpt, tmp_path)
    SentencePieceTokenizer.train(["a b c"], vocab_size=300).save(both)
    with pytest.raises(ModelError, match="copy both"):
        toolkit.load(both)


def test_a_program_that_leaves_its_workers_open_ends():
    program = "import toolkit; model = toolkit.load('en-ne-small'); print(model.translate(['a', 'b'], workers=2))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.startswith("[")
