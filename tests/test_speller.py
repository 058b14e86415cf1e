"""A model of names is read when it is needed, and says then what is wrong with it."""

import pickle
import shutil
from pathlib import Path

import pytest

import toolkit
from toolkit.errors import ModelError
from toolkit.speller import SPELLINGS, Speller, load_spellings, save_spellings

WORDS = [("j o h n", "ज ो न"), ("a n n", "ए न"), ("a n n", "आ न")]


def test_it_is_read_at_the_first_word_that_needs_it(tiny_model: Path, tmp_path: Path):
    directory, read = Path(shutil.copytree(tiny_model, tmp_path / "names")), []
    save_spellings(directory, WORDS)

    def reading(path: Path) -> toolkit.Translator:
        read.append(path)
        return toolkit.load_translator(path)

    speller = Speller(directory, reading)
    assert [speller.spell(word) for word in ("John", "ANN")] == ["जोन", "एन"]
    assert read == []  # both are on the list
    unknown = speller.spell("zq")
    assert (speller.spell("zq"), read) == (unknown, [directory])


def test_a_word_that_is_listed_without_its_spelling_is_known_and_spelled_by_the_model(tiny_model: Path, tmp_path: Path):
    directory = Path(shutil.copytree(tiny_model, tmp_path / "names"))
    (directory / SPELLINGS).write_bytes(b"zq\t\n")
    listed, unlisted = (Speller(each, toolkit.load_translator) for each in (directory, tiny_model))
    assert "zq" in listed.known
    assert listed.spell("zq") == unlisted.spell("zq") != ""


def test_it_goes_to_another_process_before_and_after_it_is_read(tiny_model: Path, tmp_path: Path):
    directory = Path(shutil.copytree(tiny_model, tmp_path / "names"))
    save_spellings(directory, WORDS)
    speller = Speller(directory, toolkit.load_translator)
    assert pickle.loads(pickle.dumps(speller)).spell("john") == "जोन"
    there, unknown = pickle.loads(pickle.dumps(speller)), speller.spell("zq")
    assert there.spell("zq") == unknown
    after = pickle.dumps(speller)
    shutil.rmtree(directory)
    assert pickle.loads(after).spell("zq") == unknown  # it took with it what it had read


def test_a_damaged_model_is_refused_where_it_is_needed(tiny_model: Path, tmp_path: Path):
    directory = Path(shutil.copytree(tiny_model, tmp_path / "names"))
    (directory / "model.safetensors").write_bytes(b"no model")
    with pytest.raises(ModelError, match=r"names.* damaged"):
        Speller(directory, toolkit.load_translator).spell("zq")


def test_a_damaged_list_of_spellings_is_refused(tmp_path: Path):
    assert load_spellings(tmp_path) == {}
    for damage in b"john\n", b"a\tb\tc\n", b"\xff\n":
        (tmp_path / SPELLINGS).write_bytes(damage)
        with pytest.raises(ModelError, match=r"spellings\.tsv is damaged"):
            load_spellings(tmp_path)
