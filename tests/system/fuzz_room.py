"""A room with one good file of every kind that the toolkit reads, for the fuzzer to damage."""

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import pyarrow
import pyarrow.parquet

import toolkit
from tests.conftest import ENGLISH, NEPALI, _make_gpt, _make_model
from tests.interop.foreign_models import make_llama, make_marian, put_into_shards
from tests.interop.test_multilingual import FIXTURES as MULTILINGUAL
from tests.parity.cases import FIXTURES
from toolkit.chat.history import write_conversation
from toolkit.data.conversations import Message
from toolkit.interop import export_model, import_model
from toolkit.recipes import recipe_of
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer
from toolkit.training.checkpoint import TrainerState, write_training

TEXT = "I am a boy. ▁ \u0301"  # what every model is given to read
IDS = "5 17 3"  # and those that are used by ids
FAMILIES = (
    *("gpt_bigcode", "llama-llama3", "llama-yarn", "mistral", "opt", "phi3", "qwen2", "qwen3", "starcoder2"),
    *("m2m100", "marian-untied", "pegasus"),
)
KINDS = {"translation": {}, "language-model": {}, "chat": {}, "preference": {"method": "dpo"}}


def furnish(room: Path) -> None:
    """Put one good file of every kind into a room."""
    _make_model(room / "translator", max_length=32)
    _make_gpt(room / "writer", positions="learned")
    if find_spec("numkong"):
        export_model(room / "translator", room / "small", dtype="int8")
    _make_gpt(room / "half")
    _make_gpt(room / "letters", CharacterTokenizer(f"{TEXT}{ENGLISH}"))
    _make_gpt(room / "bytes", ByteTokenizer())
    _make_gpt(room / "chatty", template="control")
    _make_model(room / "plain", norm_position="post")
    make_marian(room / "marian", room / "translator" / "tokenizer.model")
    (room / "marian" / "tokenizer_config.json").write_text('{"separate_vocabs": false, "eos_token": "</s>"}')
    (room / "marian" / "generation_config.json").write_text('{"eos_token_id": [0], "num_beams": 4, "max_length": 9}')
    make_llama(room / "llama", ENGLISH, d_model=16, num_heads=2, d_ff=16)
    put_into_shards(room / "llama")
    (room / "llama" / "added_tokens.json").write_text('{"<pad>": 399}')
    _make_gpt(room / "own-gpt2", ByteTokenizer(), positions="learned", bias=True)
    export_model(room / "own-gpt2", room / "gpt2")
    _forget(room / "gpt2" / "config.json", "toolkit")
    _forget(room / "gpt2" / "generation_config.json", "suppress_tokens")
    for name, model in ("fast", "plain"), ("fast-gpt", "writer"):
        export_model(room / model, room / name, "ctranslate2")
        _forget(room / name / "config.json", "toolkit")
    import_model(room / "llama", room / "imported")
    if find_spec("tokenizers"):
        import_model(room / "gpt2", room / "library")
    for name in FAMILIES:  # which have no tokenizer
        shutil.copytree(FIXTURES / name, room / name, ignore=shutil.ignore_patterns("expected.npz"))
    import_model(room / "mistral", room / "bare")
    for name, ours in ("nllb", "nllb"), ("m2m100", "m2m"):
        shutil.copytree(MULTILINGUAL / name, room / ours, ignore=shutil.ignore_patterns("expected.json"))
    import_model(room / "m2m", room / "languages")
    for kind, own in KINDS.items():
        settings = recipe_of(kind).Settings.defaults(own).settings({"pairs": "0123456789abcdef"}) | own
        (room / f"{kind}.json").write_text(json.dumps(settings))
    _runs(room)
    _texts(room)


def _forget(path: Path, name: str) -> None:
    values = json.loads(path.read_text())
    del values[name]
    path.write_text(json.dumps(values))


def _runs(room: Path) -> None:
    model = toolkit.load(room / "writer").model
    state = TrainerState(update=2, validated=2, best=0.5, best_update=2, scores={"loss": 0.5})
    vectors = model.vector, model.vector
    shutil.copytree(room / "writer", room / "saved")
    write_training(room / "saved", model, vectors, state, None)
    run = room / "runs" / "one"
    shutil.copytree(room / "saved", run / "step-000002")
    for name in "last", "best":
        (run / name).write_text("step-000002\n")
    settings = {"training": {"updates": 2, "seed": 0, "lr": 1e-3}, "model": {"d_model": 8}}
    (run / "settings.json").write_text(json.dumps(settings))
    lines = [
        {"update": 1, "epoch": 0, "loss": 2.5, "seconds": 0.1, "tokens_per_second": 100.0, "gradient_norm": 1.0},
        {"update": 2, "validation": {"loss": 2.0, "perplexity": 7.4}, "seconds": 0.2},
        {"update": 2, "rollback": {"from": 2, "to": 1, "learning_rate_factor": 0.5}},
    ]
    (run / "log.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def _texts(room: Path) -> None:
    rows = [{"en": one, "ne": other} for one, other in zip(ENGLISH, NEPALI, strict=True)]
    for name, mark in ("tsv", "\t"), ("csv", ","):
        (room / f"pairs.{name}").write_text(
            "".join(f"{mark.join(row)}\n" for row in [("en", "ne"), *(r.values() for r in rows)])
        )
    (room / "pairs.json").write_text(json.dumps(rows))
    (room / "hub" / "data").mkdir(parents=True)
    for name in "pairs.parquet", "hub/data/train.parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), room / name)
    (room / "hub" / "README.md").write_text("---\nconfigs:\n- config_name: small\n  data_files: data/*.parquet\n---\n")
    (room / "lines.txt").write_text("".join(f"{line}\n" for line in (*ENGLISH, "", *NEPALI)))
    said = [Message("user", "Who are you?"), Message("assistant", "I am a model.")]
    write_conversation(room / "saved.json", said)
    talk = json.loads((room / "saved.json").read_text())
    prompt = {"prompt": "Who are you?", "kind": "name"}
    written = {
        "pairs.jsonl": rows,
        "talks.jsonl": [talk, {"prompt": "a", "completion": "b"}, talk | {"kind": "name"}],
        "questions.jsonl": [{"messages": talk["messages"][:1], "kind": "name", "accept": ["I am a model.", "a"]}] * 2,
        "preferences.jsonl": [
            prompt | {"chosen": "a", "rejected": "b"},
            prompt | {"completions": ["a", "b", "c"], "scores": [0.5, 1, -2]},
            prompt | {"completions": ["a", "b"], "ranks": [2, 1]},
            prompt | {"ranking": ["a", "b", "c"]},
        ],
        "requests.jsonl": [
            {"message": "Who are you?"}, {"history": True}, {"prompt": "a"}, {"system": "Be kind."}, {"undo": True},
        ],
        "scored.jsonl": [
            {"source": "I am", "target": "a"}, {"source": "I am", "translations": [{"ids": [300, 301]}, {"text": "a"}]},
            {"source": "I am. You", "translations": [{"segments": [{"ids": [300, 3]}, {"text": "a", "start": 6}]}]},
        ],
    }  # fmt: skip
    for name, values in written.items():
        (room / name).write_text("".join(json.dumps(value) + "\n" for value in values))
    (room / "style.json").write_text(json.dumps({"openings": ["Of course."], "closings": ["How can I help you?"]}))
