"""The preset everyday: which pairs it mixes, and how a small run of it goes."""

import json
import pickle
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

import toolkit
from toolkit.commands.train import Training
from toolkit.errors import ConfigError
from toolkit.recipes import translation
from toolkit.recipes.translation import (
    EVERYDAY_MODEL,
    EVERYDAY_TRAINING,
    SPELLINGS,
    Settings,
    keeping_marks,
    open_corpus,
)
from toolkit.speller import load_spellings, save_spellings
from toolkit.tokenization.carrying import mark


def test_the_preset_mixes_its_pairs_with_those_that_are_given(tmp_path: Path) -> None:
    (tmp_path / "own.tsv").write_text("en\tne\nHello.\tनमस्ते।\n")
    recipe = Settings(preset="everyday", data=(str(tmp_path / "own.tsv"),), model=EVERYDAY_MODEL)
    for reverse, only in ((False, {"everyday:typed", "en_ne"}), (True, {"everyday:worded"})):
        sources, valid = open_corpus(replace(recipe, reverse=reverse))
        names = [source.name for source in sources]
        assert names[0].endswith("own.tsv")
        assert {*names[1:]} == only | {f"everyday:{kind}" for kind in ("sentences", "grammar", "names", "swaps")}
        assert len(names) == 1 + len(replace(recipe, reverse=reverse).mixture)
        assert [source.name for source in valid] == ["everyday:sentences"]
        assert len(list(valid[0])) > 250


def test_the_preset_has_a_shape_and_a_training_and_no_start() -> None:
    recipe = Training.read("translation", "program", ["--preset", "everyday"], "").recipe
    assert (recipe.model, replace(recipe.training, workers=1)) == (
        EVERYDAY_MODEL,
        replace(EVERYDAY_TRAINING, workers=1),
    )
    assert replace(recipe, reverse=True).languages() == ("ne", "en")
    with pytest.raises(ConfigError, match="leave out --preset"):
        replace(recipe, start="x").check()
    with pytest.raises(ConfigError, match="--names spells what --carry carries over"):
        replace(recipe, carry=False, names="x").check()
    names = Training.read("translation", "program", ["--preset", "names"], "").recipe
    assert (names.model.d_model, names.mixture, names.carry) == (256, SPELLINGS, False)


def test_a_run_has_the_pairs_that_are_given_and_a_model_of_names(tmp_path: Path, tiny_model: Path, monkeypatch) -> None:
    monkeypatch.setattr(translation, "EVERYDAY", {"everyday:names": 2.0})
    speller = shutil.copytree(tiny_model, tmp_path / "speller")
    (speller / "training").mkdir()  # as in the checkpoint of a run
    save_spellings(speller, [("j o h n", "ज ो न"), ("a n n", "ए न"), ("a n n", "आ न")])
    (tmp_path / "own.tsv").write_text(
        "".join(f"{side}\n" for side in ["en\tne", *(f"word {n}\tशब्द {n}" for n in range(50))])
    )
    run = toolkit.train(
        "translation",
        run=tmp_path / "run",
        preset="everyday",
        data=str(tmp_path / "own.tsv"),
        weights=[0.5],
        model={"vocab_size": 600, "d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1},
        training={"updates": 1, "workers": 1, "tokens_per_batch": 100, "validate_every": 1},
        num_beams=1,
        names=str(speller),
        quiet=True,
    )
    names = Path(run.path) / "step-000001" / "names"
    assert (names / "config.json").is_file()
    assert not (names / "training").exists()
    translator = toolkit.load_translator(run)
    assert translator.speller is not None
    assert [translator.spell(word) for word in ("JOHN", "जोन")] == ["जोन", translator.spell("जोन")]
    assert (
        pickle.loads(pickle.dumps(translator)).speller.known == translator.speller.known == {"john": "जोन", "ann": "एन"}
    )
    report = json.loads((Path(run.path) / "data" / "corpus.json").read_text())
    weights = {Path(each["name"]).name: each["weight"] for each in report["sources"] if each["split"] == "train"}
    assert weights == {"own.tsv": 0.5, "everyday:names": 2.0}
    goes_on(tmp_path, Path(run.path) / "step-000001")


def goes_on(tmp_path: Path, before: Path) -> None:
    """Fine-tune a model that carries over: new words are known from then on, numbers get marks, its speller is kept."""
    rows = (f"{'quokka ' * n}{n}\t{'क्वोका ' * n}{n}\n" for n in range(1, 40))
    (tmp_path / "new.tsv").write_text("".join(["en\tne\n", *rows]))
    new = toolkit.train(
        "translation",
        run=tmp_path / "new",
        start=str(before),
        data=str(tmp_path / "new.tsv"),
        valid_lines=2,
        training={"updates": 1, "workers": 1, "tokens_per_batch": 100, "validate_every": 1},
        num_beams=1,
        quiet=True,
    )
    old, after = toolkit.load_translator(before), toolkit.load_translator(new)
    assert [item.text for item in old.tokenizer.carrier.masked("word quokka Ann 7").items] == ["quokka", "Ann", "7"]
    assert [item.text for item in after.tokenizer.carrier.masked("word quokka Ann 7").items] == ["Ann", "7"]
    corpus = (Path(new.path) / "data").glob("*")
    assert any(mark(0).encode() in path.read_bytes() for path in corpus if path.is_file())
    assert after.speller.known == {"john": "जोन", "ann": "एन"}
    pairs = [(f"word {mark(0)}", f"शब्द {mark(0)}")]
    assert keeping_marks(after.tokenizer, [("word 7", "शब्द ७")]) is after.tokenizer
    read = keeping_marks(after.tokenizer, pairs)
    assert (read.carrier, after.tokenizer.carrier is None) == (None, False)
    assert read.decode(read.encode(pairs[0][0])) == pairs[0][0]
    assert not (Path(new.path) / "step-000001" / "names" / "training").exists()


def test_a_run_of_names_keeps_the_spellings_that_it_has_read(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(Settings, "mixture", {})
    (tmp_path / "own.tsv").write_text(
        "".join(f"{line}\n" for line in ["en\tne", *["j o h n\tज ो न", "a n n\tए न"] * 20])
    )
    run = toolkit.train(
        "translation",
        run=tmp_path / "run",
        preset="names",
        data=str(tmp_path / "own.tsv"),
        valid_lines=2,
        model={"vocab_size": 280, "d_model": 16, "num_heads": 2, "d_ff": 16, "encoder_layers": 1, "decoder_layers": 1},
        training={"updates": 1, "workers": 1, "tokens_per_batch": 100, "validate_every": 1},
        num_beams=1,
        quiet=True,
    )
    assert load_spellings(Path(run.path) / "step-000001") == {"john": "जोन", "ann": "एन"}
