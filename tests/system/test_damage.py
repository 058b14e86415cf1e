"""Two hundred kinds of damage and folly."""
import os, re, shutil
from pathlib import Path
import pytest
from tests.system.damage import texts
from tests.system.damage.room import digests, furnish, obey

KINDS = [*texts.kinds()]

@pytest.fixture(scope="session")
def good_room(tmp_path_factory, make_model):
    room = tmp_path_factory.mktemp("good")
    before = Path.cwd(); os.chdir(room)
    try: furnish(room, make_model)
    finally: os.chdir(before)
    return room

@pytest.fixture
def room(good_room, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    def enter(command, flags=()):
        words = " ".join((command, *flags)).split()
        for path in good_room.iterdir():
            if any(w.split("/")[0]==path.name for w in words):
                (shutil.copytree if path.is_dir() else shutil.copyfile)(path, tmp_path / path.name)
        return tmp_path
    return enter

@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.id)
def test_damage(kind, room, capfd):
    here = room(kind.command, kind.flags)
    if kind.harm: kind.harm(here)
    before = digests(here)
    code = obey(kind.command, *kind.flags)
    out, err = capfd.readouterr()
    with open("/tmp/w/damage/said.txt","a") as f: f.write(f"{kind.id}\n    {code} {out!r:.100} {err}")
    assert code == 2
    assert out == ""
    assert re.fullmatch(r"toolkit: [^\n]{10,400}\n", err)
    assert kind.says in err
    assert digests(here)==before
