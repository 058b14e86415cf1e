"""A model from elsewhere learns to converse: marks that it never had are read, written, and leave with it."""

import json
import math
from pathlib import Path

import pytest

import toolkit
from tests.interop.foreign_models import make_llama
from tests.system.damage.room import obey
from toolkit.interop import import_model
from toolkit.models.storage import model_directory, read_metrics

SAID = {"Hello.": "Hello to you.", "Bye.": "Goodbye.", "What does a cow say?": "Moo.", "And a cat?": "Meow."}

TRAINING = "--quiet --training.warmup 2 --training.workers 1 --training.tokens-per-batch 200 --style style.json"
CHAT = f"recipe-chat {TRAINING} --start imported --conversations talks.jsonl --valid-conversations talks.jsonl "
CHAT += "--tests asked.jsonl --training.updates 90 --training.validate-every 30 --training.learning-rate 0.02"
DPO = f"recipe-pref {TRAINING} --method dpo --start taught --preferences liked.jsonl --valid-preferences liked.jsonl "
DPO += "--tests asked.jsonl --samples 0 --training.updates 4 --training.validate-every 2 --run liked"


@pytest.fixture
def room(tmp_path, monkeypatch):
    """Files of four exchanges, and a Llama that was imported; the current directory."""

    def lines(name, *objects):
        (tmp_path / name).write_text("".join(f"{json.dumps(each)}\n" for each in objects))

    monkeypatch.chdir(tmp_path)
    asked = {text: [{"role": "user", "content": text}] for text in SAID}
    lines("talks.jsonl", *({"messages": [*asked[text], {"role": "assistant", "content": SAID[text]}]} for text in SAID))
    lines("asked.jsonl", *({"messages": asked[text], "kind": "fact", "accept": [SAID[text]]} for text in SAID))
    lines("liked.jsonl", *({"prompt": text, "chosen": SAID[text], "rejected": "No."} for text in SAID))
    Path("style.json").write_text(json.dumps({"openings": [], "closings": []}))
    import_model(make_llama(tmp_path / "llama", [*SAID, *SAID.values()]), "imported")
    return tmp_path


def validations(run):
    records = map(json.loads, Path(run, "log.jsonl").read_text().splitlines())
    return [record["validation"] for record in records if "validation" in record]


@pytest.mark.parametrize("template", ["control", "plain"])
def test_an_imported_model_learns_to_converse(room, template):
    assert obey(f"{CHAT} --template {template} --run taught") == 0
    found = [each["perplexity"] for each in validations("taught")]
    assert found == sorted(found, reverse=True)
    assert found[0] < len(toolkit.load("imported").tokenizer.pieces)  # what knows nothing has
    replies = read_metrics(model_directory(room / "taught"))["replies"]["all"]
    assert (replies["ended"], replies["exact"]) == (100, 100)
    assert toolkit.load("taught").chat().send("Bye.").text == "Goodbye."
    assert obey(DPO) == 0
    assert all(math.isfinite(each["loss"]) for each in validations("liked"))
