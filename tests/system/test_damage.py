"""Hundreds of kinds of damage and folly: each is told in one clear sentence, with exit code 2, and nothing is lost."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.system.damage import (
    chat,
    chat_recipes,
    disks,
    exchange,
    exchange_ctranslate2,
    exchange_words,
    explain,
    flags,
    language,
    language_recipe,
    language_runs,
    models,
    names,
    preference_recipe,
    runs,
    symbols,
    tables,
    texts,
    untrusted,
    vectors,
)
from tests.system.damage.room import RECIPES, TRAIN, TRAIN_LM, Kind, contents, obey

GROUPS = (
    *(texts, tables, models, language, chat, symbols, flags, runs, disks),
    *(language_recipe, language_runs, chat_recipes, preference_recipe),
    *(exchange, exchange_ctranslate2, exchange_words),
    *(explain, vectors, names, untrusted),
)
KINDS = [kind for group in GROUPS for kind in group.kinds()]

# One sentence of ours: no traceback, no warning, no name of a Python class, no object shown as Python shows it.
SENTENCE = re.compile(r"toolkit: \S[^\n]{8,500}\n")
# What a sentence has none of, whatever the names in it: characters that steer a terminal. Joiners do not.
STEERING = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\U000e0000-\U000e007f]")
FOREIGN = re.compile(r"Traceback|Warning|\b[A-Z]\w*(?:Error|Exception)\b|Errno|<class|object at 0x|\bNone\b|b'")


@pytest.mark.parametrize("kind", KINDS, ids=[kind.id for kind in KINDS])
def test_damage_is_told_in_one_sentence_and_nothing_is_lost(kind: Kind, room, capfd) -> None:
    here = room(kind.command, *kind.flags, kind.needs)
    if kind.harm:
        kind.harm(here)
    before = contents(here)
    capfd.readouterr()
    with kind.disk():
        code = obey(kind.command, *kind.flags)
    out, err = capfd.readouterr()
    assert (code, out) == (2, "")
    assert SENTENCE.fullmatch(err), err
    assert not FOREIGN.search(err), err
    assert not STEERING.search(err), ascii(err)
    assert kind.says in err
    after = contents(here)
    assert not [name for name in after if ".toolkit" in name]
    if kind.leaves:
        for name in [name for name in after if name.split("/")[0] == kind.leaves]:
            added = after.pop(name)
            if name in before:  # a log may have grown
                assert added.startswith(before.pop(name)), name
    assert after == before
    if kind.leaves and (here / kind.leaves).exists():  # with room on the disk again
        assert obey(kind.command, *kind.flags, "--resume") == 0


GOOD = sorted({kind.command for kind in KINDS if " " in kind.command})


@pytest.mark.parametrize("command", GOOD, ids=[f"{number} {command.split()[0]}" for number, command in enumerate(GOOD)])
def test_without_damage_all_is_well(command: str, room, capfd) -> None:
    room(command)
    assert obey(command) == 0, capfd.readouterr().err


def test_there_are_two_hundred_kinds() -> None:
    ids = [kind.id for kind in KINDS]
    assert len({kind.name for kind in KINDS}) >= 200
    assert sorted(ids) == sorted(set(ids))


@pytest.mark.skipif(sys.platform != "linux", reason="needs names of files that are any bytes")
@pytest.mark.parametrize(
    ("command", "file"), [(TRAIN, "lines.en"), (TRAIN_LM, "story.txt")], ids=["recipe", "recipe-lm"]
)
def test_a_name_that_is_not_unicode_is_a_name_as_good_as_any(command: str, file: str, room, capfd) -> None:
    name = os.fsdecode(b"caf\xe9.txt")
    room(command).joinpath(file).rename(name)
    command = command.replace(file, name)
    for words in command, f"{command} --resume", "info new", "runs .", f"average new new --output {name}.mean":
        assert obey(words) == 0, capfd.readouterr().err
    if file == "story.txt":
        assert obey(f"perplexity --model new {name}") == 0
        assert "caf\\udce9.txt" in capfd.readouterr().out


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
@pytest.mark.parametrize(
    "command", ["score --model model < scored.jsonl", "info model", TRAIN, TRAIN_LM], ids=lambda c: c.split()[0]
)
def test_a_full_disk_behind_standard_output(command: str, room) -> None:
    here = room(command)
    text, _, given = command.partition(" < ")
    verb, *words = text.split()
    program = [str(RECIPES[verb])] if verb in RECIPES else ["-m", "toolkit", verb]
    with (
        Path("/dev/full").open("wb") as full,
        (here / given if given else Path(os.devnull)).open("rb") as standard_input,
    ):
        done = subprocess.run(
            [sys.executable, *program, *words], stdin=standard_input, stdout=full, stderr=subprocess.PIPE, check=False
        )
    assert done.returncode == 2
    assert done.stderr.decode() == "toolkit: standard output cannot be written: No space left on device\n"
