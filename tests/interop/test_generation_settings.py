"""What generation_config.json says of decoding: named with our flags and written again, or refused."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.checks import small_config, small_gpt_config
from tests.interop.foreign_models import edit, make_marian
from toolkit.errors import ModelError
from toolkit.interop import export_model, import_model
from toolkit.interop.hugging_face import HuggingFaceModel

IDS = {"pad_token_id": 29, "bos_token_id": 29, "decoder_start_token_id": 29, "eos_token_id": 0}
OPUS = {"num_beams": 4, "length_penalty": 0.6, "max_length": 64, "bad_words_ids": [[29]], "forced_eos_token_id": 0}
TASTE = {"do_sample": True, "temperature": 0.5, "top_k": 10, "max_length": 64, "no_repeat_ngram_size": 3}


def put(directory: Path, **values: Any) -> None:
    (directory / "generation_config.json").write_text(json.dumps(values))


@pytest.mark.parametrize(("config", "values", "words"), [
    (small_config(norm="post"), OPUS, "--num-beams 4, --length-penalty 0.6, --max-new-tokens 63"),
    (small_gpt_config(), TASTE, "--temperature 0.5, --top-k 10, --no-repeat-ngram-size 3, max_length 64, prompt"),
    (small_gpt_config(), {"num_beams": 2}, "--no-do-sample, --num-beams 2"),
    (small_config(norm="pre"), {"do_sample": True, "min_length": 5, "typical_p": 0.9}, "--do-sample, --min-new-to"),
])  # fmt: skip
@pytest.mark.parametrize("file", ["generation_config.json", "config.json"])
def test_matters_of_taste_are_named_with_our_flags(write, config, values, words, file):
    _, directory = write(config)
    edit(directory, toolkit=None, **IDS, **(values if file == "config.json" else {}))
    (directory / "generation_config.json").unlink()
    if file != "config.json":
        put(directory, **values)
    found = HuggingFaceModel(directory)
    found.read(found.vocabulary())
    (note,) = found.notes
    assert note.startswith(f"its authors decode with {words}")
    assert ("typical_p 0.9, which has no flag here" in note) == ("typical_p" in values)


@pytest.mark.parametrize("values", [
    {"forced_bos_token_id": 20},
    {"forced_eos_token_id": 20},
    {"suppress_tokens": [20]},
    {"suppress_tokens": [0]},
    {"begin_suppress_tokens": [29, 20]},
    {"bad_words_ids": [[29], [20, 21]]},
    {"bad_words_ids": 3},
    {"sequence_bias": [[[20], -1.0]]},
    {"encoder_no_repeat_ngram_size": 2},
    {"guidance_scale": 1.5},
    {"stop_strings": ["x"]},
    {"exponential_decay_length_penalty": [3, 1.1]},
])  # fmt: skip
def test_what_must_or_must_not_be_written_is_refused(write, values):
    _, directory = write(small_config(norm="post"))
    edit(directory, toolkit=None, **IDS)
    put(directory, **values)
    found = HuggingFaceModel(directory)
    (name,) = values
    with pytest.raises(ModelError, match=re.escape(f"generation_config.json has {name} ")):
        found.read(found.vocabulary())


def test_what_nothing_here_writes_anyway_may_be_forbidden(write):
    _, directory = write(small_config(norm="post"))
    edit(directory, toolkit=None, **IDS)
    put(directory, suppress_tokens=[29], bad_words_ids=[[29]], guidance_scale=1.0, sequence_bias={}, stop_strings=[])
    found = HuggingFaceModel(directory)
    found.read(found.vocabulary())
    assert found.notes == []


def test_they_are_written_again(tiny_model, tmp_path):
    marian = make_marian(tmp_path / "there", tiny_model / "tokenizer.model")
    put(marian, **OPUS | {"bad_words_ids": None})
    import_model(marian, tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "again")
    found = json.loads((tmp_path / "again" / "generation_config.json").read_text())
    wanted = {name: value for name, value in OPUS.items() if name != "bad_words_ids"}
    assert {name: found[name] for name in wanted} == wanted
    notes = import_model(tmp_path / "again", tmp_path / "own-again").notes
    assert notes == import_model(marian, tmp_path / "own-too").notes
