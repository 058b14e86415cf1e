"""A room in which everything is good, made once, and copied for whoever does harm in it."""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.system.damage import chat_recipes, exchange, exchange_ctranslate2, preference_recipe
from tests.system.damage.room import furnish


@pytest.fixture(scope="session")
def good_room(
    tmp_path_factory: pytest.TempPathFactory, make_model: Callable[..., Path], make_gpt: Callable[..., Path]
) -> Path:
    """Where nothing is wrong. Not to be changed: `room` is a copy of what a command needs of it."""
    room = tmp_path_factory.mktemp("good")
    before = Path.cwd()
    os.chdir(room)
    try:
        furnish(room, make_model, make_gpt)
        exchange.furnish(room, make_gpt)
        exchange_ctranslate2.furnish(room)
        chat_recipes.furnish(room)
        preference_recipe.furnish(room, make_gpt)
    finally:
        os.chdir(before)
    return room


@pytest.fixture
def room(good_room: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Path]:
    """room(words) puts what the words name into the current directory, which was empty."""
    monkeypatch.chdir(tmp_path)

    def enter(*words: str) -> Path:
        named = {part for word in words for part in re.split(r"[\s/:]", word)}
        for path in good_room.iterdir():
            if path.name in named:
                (shutil.copytree if path.is_dir() else shutil.copyfile)(path, tmp_path / path.name)
        return tmp_path

    return enter
