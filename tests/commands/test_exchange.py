"""toolkit import and toolkit export: the same as the library does, in one line."""

import shutil

import pytest

import toolkit
from tests.preference.small import random_values
from toolkit.models.reward import ActorCriticConfig, RewardConfig, settings_like
from toolkit.models.storage import load_model, save_model


@pytest.fixture
def make_tuned(tiny_gpt, tmp_path):
    """make_tuned(settings class) writes what preference tuning makes of the tiny language model, and returns it."""

    def make(kind):
        directory = shutil.copytree(tiny_gpt, tmp_path / kind.__name__)
        save_model(random_values(settings_like(kind, load_model(tiny_gpt).config)), directory)
        return directory

    return make


def test_out_and_in_again(run, tiny_model, tmp_path):
    count = f"{load_model(tiny_model).parameter_count:,}"
    there, back = tmp_path / "there", tmp_path / "back"
    assert run("export", tiny_model, there).lines == [
        f"{there}: {count} parameters, as PegasusForConditionalGeneration"
    ]
    assert run("import", there, back).lines == [f"{back}: {count} parameters, from PegasusForConditionalGeneration"]
    assert toolkit.load(back).translate("I am a boy.") == toolkit.load(tiny_model).translate("I am a boy.")


def test_for_ctranslate2_in_half_precision(run, make_model, tmp_path):
    own = make_model(tmp_path / "own", ignore_case=True)
    outcome = run("export", own, tmp_path / "there", "--to", "ctranslate2", "--half")
    assert outcome.lines[0].endswith("as ctranslate2.Translator")
    assert outcome.err == "toolkit: a source begins with a space: its tokens are those of ' ' + text.lower()\n"
    assert run("import", tmp_path / "there", tmp_path / "back").lines[0].endswith("from ctranslate2.Translator")
    assert "ctranslate2.Translator" in run("info", tmp_path / "back").out


def test_a_mistake_is_told_in_one_sentence(run, tiny_model, make_gpt, tmp_path):
    odd = make_gpt(tmp_path / "odd", norm="rms")
    for arguments, words in [
        (("import", tmp_path / "nowhere", tmp_path / "new"), "nowhere is not a directory"),
        (("import", tiny_model, tmp_path / "new"), "is a model of this toolkit already"),
        (("import", tiny_model), "directory is missing"),
        (("export", "no-such-model", tmp_path / "new"), "there is no model 'no-such-model'"),
        (("export", tiny_model, odd), "odd already exists: choose another DIRECTORY"),
        (("export", odd, tmp_path / "new"), "no class of transformers computes what this model does"),
        (("export", tiny_model, tmp_path / "new", "--to", "onnx"), "--to is 'onnx': it must be one of"),
    ]:
        assert words in run(*arguments).sentence
    assert not (tmp_path / "new").exists()


def test_a_model_from_elsewhere_is_said_to_need_import(run, tiny_model, tmp_path):
    run("export", tiny_model, tmp_path / "there")
    assert "toolkit import" in run("info", tmp_path / "there").sentence


@pytest.mark.parametrize("to", ["hugging-face", "ctranslate2"])
def test_a_reward_model_is_refused_and_of_ppo_the_language_model_leaves(run, make_tuned, tmp_path, to):
    reward, both = make_tuned(RewardConfig), make_tuned(ActorCriticConfig)
    assert "is a reward model, and there is no class that has its head" in (
        run("export", reward, tmp_path / "new", "--to", to).sentence
    )
    assert not (tmp_path / "new").exists()
    outcome = run("export", both, tmp_path / "new", "--to", to)
    assert "the critic, which only PPO needs, is left out" in outcome.err
    assert run("import", tmp_path / "new", tmp_path / "back").code == 0
    before, after = (toolkit.load(each).generate("I am", max_new_tokens=8) for each in (both, tmp_path / "back"))
    assert before == after
