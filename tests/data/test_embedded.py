"""The embedded corpora are made on first use, whole or not at all, and are what their checksums say."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from data import command
from toolkit.data import embedded as module
from toolkit.data.embedded import embedded, make_embedded
from toolkit.errors import ConfigError, DataError

PROGRAM = """
import sys, time
from pathlib import Path
time.sleep(0.2)
with (Path(__file__).parent / "runs").open("a") as file:
    file.write("x")
(Path(sys.argv[2]) / "a.txt").write_text("hello\\n")
"""
SUM = sha256(b"hello\n").hexdigest()


@pytest.fixture
def corpora(tmp_path, monkeypatch) -> Path:
    """Folders of corpora whose program writes one file, and counts how often it has run."""
    root = tmp_path / "data"
    for name in ("en_ne", "everyday", "stories", "chat"):
        (root / name).mkdir(parents=True)
        (root / name / "generate.py").write_text(PROGRAM)
        (root / name / "SHA256SUMS").write_text(f"{SUM}  a.txt\n")
    monkeypatch.setattr(module, "CORPORA", root)
    return root


def runs(folder: Path) -> int:
    return len((folder / "runs").read_text()) if (folder / "runs").exists() else 0


@pytest.mark.parametrize("name", ["en_ne", "everyday", "stories", "chat"])
def test_the_files_are_what_the_checksums_say_and_are_ignored_by_git(name):
    folder = embedded(name, quiet=True)
    sums = command.read_sums(folder)
    assert {file: sha256((folder / file).read_bytes()).hexdigest() for file in sums} == sums
    if (folder.parents[1] / ".git").exists():
        listed = subprocess.run(["git", "ls-files", *sums], cwd=folder, capture_output=True, check=True)
        assert listed.stdout == b""


def test_files_are_made_once_with_those_of_the_corpus_that_is_read(corpora, capsys):
    assert embedded("chat") == corpora / "chat" == embedded("chat")
    assert (runs(corpora / "chat"), runs(corpora / "en_ne"), runs(corpora / "stories")) == (1, 1, 0)
    assert capsys.readouterr().err.count("once: this takes some seconds") == 2
    assert sorted(path.name for path in (corpora / "chat").iterdir()) == ["SHA256SUMS", "a.txt", "generate.py", "runs"]


def test_only_what_is_missing_is_made(corpora, tmp_path, capsys):
    make_embedded([tmp_path / "own.txt", corpora / "en_ne" / "generate.py"])
    assert runs(corpora / "en_ne") == 0
    make_embedded([corpora / "stories" / "a.txt"], quiet=True)
    assert (runs(corpora / "stories"), runs(corpora / "en_ne")) == (1, 0)
    assert capsys.readouterr().err == ""


def test_two_at_once_make_them_once(corpora):
    program = f"from toolkit.data import embedded as e; e.CORPORA = e.Path({str(corpora)!r}); e.embedded('en_ne')"
    root = Path(module.__file__).parents[2]
    both = [subprocess.Popen([sys.executable, "-c", program], env=os.environ | {"PYTHONPATH": str(root)}) for _ in "12"]
    assert [one.wait() for one in both] == [0, 0]
    assert runs(corpora / "en_ne") == 1


def test_what_is_wrong_is_one_sentence(corpora):
    folder = corpora / "en_ne"
    with pytest.raises(ConfigError, match="there is no embedded corpus 'en'"):
        embedded("en")
    embedded("en_ne")
    (folder / "a.txt").write_text("hell\n")
    with pytest.raises(DataError, match=r"a\.txt is not what its program wrote: delete it, to have it made again$"):
        embedded("en_ne")
    (folder / "a.txt").unlink()
    (folder / "SHA256SUMS").write_text(f"{'0' * 64}  a.txt\n")
    with pytest.raises(DataError, match=r"wrote another a\.txt than SHA256SUMS lists: if the program was changed"):
        embedded("en_ne")
    (folder / "generate.py").write_text("raise ValueError('no words')")
    with pytest.raises(DataError, match=r"generate\.py failed \(ValueError: no words\)"):
        embedded("en_ne")
    (folder / "SHA256SUMS").unlink()
    with pytest.raises(DataError, match="SHA256SUMS is missing or damaged"):
        embedded("en_ne")
    assert not list(folder.glob(".toolkit-*"))


def test_an_installed_package_has_its_programs_copied(corpora, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "_PACKAGE", tmp_path / "toolkit")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    (tmp_path / "toolkit" / "corpora").mkdir(parents=True)
    corpora.rename(tmp_path / "toolkit" / "corpora" / "data")
    home = module._corpora()
    assert home.parents[1] == tmp_path / "cache" / "toolkit"
    monkeypatch.setattr(module, "CORPORA", home)
    make_embedded([home / "stories" / "generate.py"])  # what is written by hand is copied too
    assert (home / "stories" / "generate.py").exists()
    assert not (home / "stories" / "a.txt").exists()
    assert (embedded("chat") / "a.txt").read_text() == "hello\n"
    assert not (tmp_path / "toolkit" / "corpora" / "data" / "chat" / "a.txt").exists()
