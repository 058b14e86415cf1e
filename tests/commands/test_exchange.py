"""toolkit import and toolkit export: the same as the library does, in one line."""

import json
import shutil

import pytest
from safetensors.numpy import load_file, save_file

import toolkit
from tests.interop.foreign_models import make_llama
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


# What a language model from elsewhere ends its texts with


@pytest.fixture
def llama(tmp_path):
    """A model that soon writes what its texts begin with."""
    directory = make_llama(tmp_path / "llama", ["a boy and a girl", "an old tree"])
    tensors = load_file(directory / "model.safetensors")
    tensors["model.embed_tokens.weight"][1] *= 50
    save_file(tensors, directory / "model.safetensors", {"format": "pt"})
    return directory


def test_import_says_which_tokens_are_never_written_and_asks_what_ends_a_text(run, llama, tmp_path):
    there = run("import", llama, tmp_path / "own")
    note = (
        "toolkit: <unk>, <s>: never written here; if <s> stands between its texts, import it with --end-token '<s>'\n"
    )
    assert (there.code, there.err) == (0, note)
    ended = run("import", llama, tmp_path / "ended", "--end-token", "<s>")
    assert ended.err == "toolkit: <unk>: never written here\n"
    for name, reason in {"own": "length", "ended": "stop"}.items():
        assert {each["finish_reason"] for each in written(run, tmp_path / name)} == {reason}
    assert "--end-token '<s>'" in run("info", tmp_path / "ended").out
    run("export", tmp_path / "ended", tmp_path / "again")
    assert json.loads((tmp_path / "again" / "config.json").read_text())["eos_token_id"] == 1
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    run("import", tmp_path / "again", tmp_path / "back")
    assert written(run, tmp_path / "back") == written(run, tmp_path / "ended")


def written(run, model):
    (line,) = run("generate", "--model", model, "a boy", "--json", "--num-return-sequences", "3", "--min-p", "0").lines
    return json.loads(line)["continuations"]


def test_an_end_token_that_cannot_be(run, llama, tiny_model, tiny_gpt, tmp_path):
    run("export", tiny_gpt, tmp_path / "own")
    run("export", tiny_model, tmp_path / "translator", "--to", "ctranslate2")
    for source, token, words in [
        (llama, "<end>", "has no token '<end>', which its texts end with"),
        (tmp_path / "own", "<s>", "own has an end mark of its own: --end-token is for language models from elsewhere"),
        (tmp_path / "translator", "<s>", "translator has an end mark of its own"),
    ]:
        assert words in run("import", source, tmp_path / "new", "--end-token", token).sentence
    assert not (tmp_path / "new").exists()
