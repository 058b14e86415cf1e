"""The words with which a recipe is started, and the defaults that follow from them."""

from collections.abc import Callable

import pytest

from tests.system.damage.room import recipe
from toolkit.commands.recipe import words_after
from toolkit.errors import ConfigError


def test_the_word_after_each_flag_that_is_there() -> None:
    words = ["--run", "new", "--text", "a.txt", "b.txt", "--data=c=d.tsv", "--text", "e.txt"]
    assert words_after(("--text", "--data", "--pairs"), words) == {"--text": "e.txt", "--data": "c=d.tsv"}
    assert words_after(("--text",), []) == {}
    assert words_after(("--text",), ["text", "--texts", "a"]) == {}


@pytest.mark.parametrize("words", [["--text"], ["--text="], ["--text", ""], ["--text", "--run", "a"], ["--text=--run"]])
def test_a_flag_without_a_word_is_told(words: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^--text needs a value$"):
        words_after(("--text", "--run"), words)


@pytest.mark.parametrize(
    ("word", "flag"),
    [
        *[("recipe-lm", flag) for flag in ("--text", "--data", "--pairs", "--preset")],
        *[("recipe-chat", flag) for flag in ("--conversations", "--valid-conversations")],
        ("recipe-pref", "--method"),
    ],
)
def test_no_recipe_takes_an_empty_list_for_what_is_embedded(word: str, flag: str) -> None:
    for words in ([flag], [flag, "--quiet"], [f"{flag}="]):
        with pytest.raises(ConfigError, match=f"^{flag} needs a value$"):
            recipe(word).defaults(words)


@pytest.fixture
def defaults() -> Callable[..., object]:
    """defaults(word, *words): what a recipe would do by itself, for these words."""
    return lambda word, *words: recipe(word).defaults(words)


def test_each_method_has_its_own_training_by_default(defaults: Callable[..., object]) -> None:
    found = {method: defaults("recipe-pref", "--method", method).training for method in ("reward", "dpo", "ppo")}
    assert len(set(found.values())) == 3
    assert defaults("recipe-pref", "--method=dpo").training == found["dpo"]
    ppo = defaults("recipe-pref")
    assert ppo.training == found["ppo"] == defaults("recipe-pref", "--method", "grpo").training
    assert ppo.training.updates % ppo.ppo.updates == ppo.training.validate_every % ppo.ppo.updates == 0


def test_the_preset_of_chat_brings_its_text_its_shape_and_its_training(defaults: Callable[..., object]) -> None:
    recipe = defaults("recipe-lm", "--preset", "chat")
    assert recipe.corpus == "chat"
    assert recipe.model == defaults("recipe-chat").model
    assert recipe.training.updates > defaults("recipe-lm").training.updates
    assert defaults("recipe-lm").corpus == "stories"
