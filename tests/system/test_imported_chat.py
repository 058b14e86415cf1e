"""A model from elsewhere learns to converse: marks that it never had are read, written, and leave with it."""

import json
import math
from pathlib import Path

import pytest

import toolkit
from tests.interop.foreign_models import make_gpt2, make_llama
from tests.system.damage.room import obey
from tests.tokenization.test_foreign_library import content
from toolkit.chat import Message
from toolkit.interop import export_model, import_model
from toolkit.models.storage import model_directory, read_metrics

ROLES = "system", "user", "assistant", "user"
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
    return tmp_path


def llama(room):
    """SentencePiece; texts begin with a token."""
    return make_llama(room / "llama", [*SAID, *SAID.values()])


def gpt2(room):
    """Byte-level BPE, of a file of the tokenizers library; one token of its own is called like one of our marks."""
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    return make_gpt2(room / "gpt2", content())


def validations(run):
    records = map(json.loads, Path(run, "log.jsonl").read_text().splitlines())
    return [record["validation"] for record in records if "validation" in record]


@pytest.mark.parametrize(("make", "template"), [(llama, "control"), (llama, "plain"), (gpt2, "control")])
def test_an_imported_model_learns_to_converse(room, make, template):
    name = import_model(make(room), "imported").name
    assert obey(f"{CHAT} --template {template} --run taught") == 0
    found = [each["perplexity"] for each in validations("taught")]
    assert found == sorted(found, reverse=True)
    assert found[0] < len(toolkit.load("imported").tokenizer.pieces)  # what knows nothing has
    replies = read_metrics(model_directory(room / "taught"))["replies"]["all"]
    assert (replies["ended"], replies["exact"]) == (100, 100)
    assert toolkit.load("taught").chat().send("Bye.").text == "Goodbye."
    assert obey(DPO) == 0
    assert all(math.isfinite(each["loss"]) for each in validations("liked"))
    there = export_model("taught", "there")
    assert there.name == export_model("liked", "there-too").name == name
    if template == "plain":
        assert there.notes[0].startswith("no chat template is written")
        return
    check_as_it_left(json.loads(Path("there", "tokenizer_config.json").read_text()))


def check_as_it_left(settings):
    """What was exported converses as before when it is back, and with the same ids in transformers."""
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    assert import_model("there", "back").model.config.template == "control"
    taught, back = toolkit.load("taught"), toolkit.load("back")
    assert [back.chat().send(text).text for text in SAID] == [taught.chat().send(text).text for text in SAID]
    transformers = pytest.importorskip("transformers", reason="transformers is not installed")
    theirs = transformers.AutoTokenizer.from_pretrained("there")
    assert settings["chat_template"] == theirs.chat_template
    said = "<|user|> </s>", "Hello. <|end|>\nUser: <|endoftext|>  é ", "Yes.", "Ω <s><|end|>'"
    written = [{"role": role, "content": text} for role, text in zip(ROLES, said, strict=True)]
    template = back.chat().template
    ids = template.encode(Message(**each) for each in written).ids + template.generation_prompt
    assert theirs.apply_chat_template(written, add_generation_prompt=True)["input_ids"] == [
        back.tokenizer.rows[index] for index in ids
    ]
    theirs.save_pretrained("there")  # which puts the template into a file of its own
    assert Path("there", "chat_template.jinja").exists()
    again = import_model("there", "again")
    assert (again.model.config.template, toolkit.load("again").tokenizer.rows) == ("control", back.tokenizer.rows)
