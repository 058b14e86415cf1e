"""toolkit models: what ships and what directories hold, a line each, without a look at the values."""

import json
import shutil

import numpy as np
import pytest

import toolkit
from toolkit.models import storage
from toolkit.models.storage import shipped_models
from toolkit.recipes.chat import Settings as Chat
from toolkit.recipes.language_model import Settings as Language
from toolkit.recipes.translation import Settings as Translation

SHIPPED = {
    "chat": "chat model      en, ne      3,117,504   6.3  93.4 % of replies right",
    "en-ne": "translator      en → ne     7,578,624  15.4  chrF 83.7 in validation",
    "en-ne-small": "translator      en → ne     1,181,696   2.4  chrF 99.3 on new sentences",
    "ne-en": "translator      ne → en     7,578,624  16.4  chrF 84.3 in validation",
    "stories": "language model  en            915,584   1.9  0.161 bits per byte",
    "stories-ne": "language model  ne            990,208   2.0  0.028 bits per byte",
}


@pytest.fixture
def shelf(tiny_model, tiny_gpt, tmp_path):
    """A directory with a translator, a run of a language model, and what is no model."""
    shutil.copytree(tiny_model, tmp_path / "translator")
    shutil.copytree(tiny_gpt, tmp_path / "run" / "step-000010")
    (tmp_path / "run" / "best").write_text("step-000010\n")
    (tmp_path / "notes").mkdir()
    return tmp_path


def test_what_ships_is_listed(run):
    lines = run("models").lines
    found = {line.split()[0]: line.split(maxsplit=1)[1] for line in lines[1:]}
    assert found.items() >= SHIPPED.items()
    assert sorted(found) == sorted(shipped_models())


def test_the_list_agrees_with_info_and_with_the_model(run, shelf):
    records = json.loads(run("models", shelf, "--json").out)["models"]
    assert [each["model"] for each in records] == [str(shelf / name) for name in ("run", "translator")]
    for record in records:
        facts = json.loads(run("info", record["model"], "--json").out)
        count = toolkit.load(record["model"]).model.parameter_count
        assert record["parameters"] == facts["parameters"]["total"] == count
        assert (record["kind"], record["bytes"]) == (facts["kind"], sum(facts["bytes"].values()))
    assert records[1]["scores"] == {"test": {"bleu": 0.5}}
    assert run("models", shelf / "run").lines[1].split() == run("models", shelf).lines[1].split()
    assert run("models", shelf / "run", shelf / "translator").lines == run("models", shelf).lines


def test_no_value_is_looked_at(run, shelf, monkeypatch):
    """A model of many gigabytes is listed as fast: its weights are mapped."""

    def fail(*_):
        raise AssertionError("values are read")

    for name in "check_arrays", "allocate", "load_arrays":
        monkeypatch.setattr(storage.Model, name, fail)
    monkeypatch.setattr(np, "isfinite", fail)
    assert len(run("models", shelf).lines) == 3


def test_what_is_damaged_is_told_and_the_others_are_listed(run, shelf):
    (shelf / "translator" / "model.safetensors").write_bytes(b"no")
    outcome = run("models", shelf)
    assert [line.split()[0] for line in outcome.lines[1:]] == [str(shelf / "run")]
    assert outcome.err.startswith(f"toolkit: {shelf / 'translator' / 'model.safetensors'} is damaged")
    assert "problem" in json.loads(run("models", shelf, "--json").out)["models"][1]
    unfit = {"notes": "has no models in it", "nowhere": "No such file or directory", "x" * 300: "File name too long"}
    unfit["translator"] = "is damaged"
    for name, words in unfit.items():
        assert words in run("models", shelf / name).sentence


@pytest.mark.parametrize(
    ("metrics", "languages", "score"),
    [
        ({}, "-", "-"),
        ({"languages": ["de", "fr"], "test": {"chrf": 51.26}}, "de → fr", "chrF 51.3 on new sentences"),
        ({"languages": "de", "test": [1], "validation": {"chrf": 12.0}}, "-", "chrF 12.0 in validation"),
        ({"languages": [1], "test": {"chrf": "high"}, "validation": {"loss": 2}}, "-", "loss 2.000 in validation"),
    ],
)
def test_languages_and_scores_are_those_that_are_recorded(run, shelf, metrics, languages, score):
    (shelf / "translator" / "metrics.json").write_text(json.dumps(metrics), encoding="utf-8")
    assert run("models", shelf / "translator").lines[1].split(maxsplit=2)[2].split("  ")[0] == languages
    assert run("models", shelf / "translator").lines[1].endswith(f"  {score}")


def test_recipes_know_languages_by_what_they_are_told(tmp_path):
    names = {name: (tmp_path / name,) for name in ("a.en", "a.ne", "a.txt", "b.txt", "b.en")}
    own = {"source": names["a.en"], "target": names["a.ne"]}
    for recipe, languages in (
        (Translation(), ("en", "ne")),
        (Translation(reverse=True), ("ne", "en")),
        (Translation(**own), ("en", "ne")),
        (Translation(source=(*names["a.en"], *names["a.ne"]), target=names["b.en"] * 2), ()),
        (Translation(source=names["a.txt"], target=names["b.txt"]), ()),
        (Translation(data=("pairs.tsv",), source_column="de", target_column="fr"), ("de", "fr")),
        (Translation(data=("pairs.tsv",), source_column="1", target_column="2"), ()),
        (Translation(**own, start="m", source_language="npi_Deva", target_language="fr"), ("npi", "fr")),
        (Language(language="both"), ("en", "ne")),
        (Language(language="ne"), ("ne",)),
        (Language(text=names["a.txt"]), ()),
        (Chat(), ("en", "ne")),
        (Chat(conversations=names["a.txt"]), ()),
    ):
        assert recipe.languages() == languages
