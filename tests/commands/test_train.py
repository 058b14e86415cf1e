"""The words with which a recipe is started, and the defaults that follow from them."""

import sys
from typing import Any, get_args

import pytest

from toolkit.cli import KINDS
from toolkit.commands.train import run_recipe, words_after
from toolkit.errors import ConfigError
from toolkit.recipes import Kind, recipe_of
from toolkit.recipes.residual_swish import Settings
from toolkit.training.run import Run


def defaults(kind: str, *words: str) -> Any:
    """What a recipe would do by itself, for these words."""
    settings = recipe_of(kind).Settings
    return settings.defaults(words_after(settings, words))


def test_the_word_after_each_deciding_flag_that_is_there() -> None:
    settings = recipe_of("language-model").Settings
    words = ["--run", "new", "--text", "a.txt", "b.txt", "--data=c=d.tsv", "--text", "e.txt", "--pairs", "f", "g"]
    assert words_after(settings, words) == {"text": "e.txt", "data": "c=d.tsv"}
    assert words_after(settings, []) == {}
    assert words_after(settings, ["text", "--texts", "a"]) == {}


@pytest.mark.parametrize(
    ("kind", "flag"),
    [
        *[("translation", flag) for flag in ("--source", "--data", "--weights", "--seeds", "--valid_source")],
        *[("language-model", flag) for flag in ("--text", "--data", "--pairs", "--preset")],
        *[("chat", flag) for flag in ("--conversations", "--valid-conversations")],
        ("preference", "--method"),
    ],
)
def test_no_recipe_takes_an_empty_list_for_what_is_embedded(kind: str, flag: str) -> None:
    for words in ([flag], [flag, "--quiet"], [f"{flag}="], [flag, ""], [f"{flag}=--run"]):
        with pytest.raises(ConfigError, match=f"^{flag} needs a value$"):
            defaults(kind, *words)


def test_each_method_has_its_own_training_by_default() -> None:
    found = {method: defaults("preference", "--method", method).training for method in ("reward", "dpo", "ppo")}
    assert len(set(found.values())) == 3
    assert defaults("preference", "--method=dpo").training == found["dpo"]
    ppo = defaults("preference")
    assert ppo.training == found["ppo"] == defaults("preference", "--method", "grpo").training
    assert ppo.training.updates % ppo.ppo.updates == ppo.training.validate_every % ppo.ppo.updates == 0


def test_the_preset_of_chat_brings_its_text_its_shape_and_its_training() -> None:
    recipe = defaults("language-model", "--preset", "chat")
    assert recipe.corpus == "chat"
    assert recipe.model == defaults("chat").model
    assert recipe.training.updates > defaults("language-model").training.updates
    assert defaults("language-model").corpus == "stories"


def test_every_kind_of_recipe_is_in_the_menu() -> None:
    assert tuple(KINDS) == get_args(Kind)


def test_a_recipe_ends_like_a_command(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    def train(recipe: Settings, command: str) -> Run:
        if recipe.length == 9:
            raise ConfigError("that does not go together")
        run = Run(recipe.run, {}, command)
        run.results = ["all is well"]
        return run

    monkeypatch.setattr("toolkit.recipes.residual_swish.train", train)
    for words, code, told in (
        (["--run", "a"], 0, "all is well\n"),
        (["--seeds", "1", "2"], 0, "all is well\n" * 2),
        (["--run"], 2, "toolkit: --run needs a value (see "),
        (["--help"], 0, f"usage: {sys.argv[0]} [options]"),
        (["--length", "9"], 2, "toolkit: that does not go together\n"),
    ):
        with pytest.raises(SystemExit) as caught:
            run_recipe("residual-swish", words)
        output = capsys.readouterr()
        assert (caught.value.code, (output.err or output.out)[: len(told)]) == (code, told)
