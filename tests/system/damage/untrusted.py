"""Files that are made to do harm: numbers beyond all bounds, pipes and giants, settings that lead elsewhere."""

import json
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from tests.system.damage import exchange, exchange_ctranslate2, models, runs
from tests.system.damage.chat import SAY
from tests.system.damage.preference_recipe import REWARD
from tests.system.damage.room import RESUME, TABLE, Harm, Kind, both, change, edit, fresh, write
from tests.system.mutations import fields_of, written_fields
from toolkit.interop.ctranslate2_file import Variables, read_variables, write_variables

READ = "translate --max-new-tokens 2 --model model hello"


def pipe(name: str) -> Harm:
    """Nobody writes to it: who waits for it waits for ever."""
    return lambda room: os.mkfifo(fresh(room / name))


def sparse(name: str, size: int) -> Harm:
    """The file has a size, and next to nothing on the disk."""
    return lambda room: os.truncate(room / name, size)


def stored(dtype: str, width: int) -> Harm:
    """All weights are of another type, and lie where they should."""

    def how(content: bytes) -> bytes:
        (length,) = struct.unpack("<Q", content[:8])
        header, end = json.loads(content[8 : 8 + length]), 0
        for entry in header.values():
            first, end = end, end + width * int(np.prod(entry["shape"]))
            entry |= {"dtype": dtype, "data_offsets": [first, end]}
        text = json.dumps(header).encode()
        return struct.pack("<Q", len(text)) + text + bytes(end)

    return change(models.WEIGHTS, how)


def raw(name: str, key: str, text: str) -> Harm:
    """A key of JSON, which is there already or new, has this for its value, as it stands."""

    def how(content: bytes) -> bytes:
        value = json.loads(content)
        return json.dumps(value | {key: "@"}).replace('"@"', text).encode()

    return change(name, how)


def entry(name: str, **values: Any) -> Harm:
    """One tensor of a safetensors file of others."""

    def how(header: dict[str, Any]) -> bytes:
        header[max(header)] |= values
        return json.dumps(header).replace('"1e999"', "1e999").encode()

    return models.header(how, name)


def fractions(key: str) -> Harm:
    """The numbers under a key of one tensor are the right ones, with a point."""

    def how(header: dict[str, Any]) -> None:
        entry = header["model.shared.weight"]
        entry[key] = [*map(float, entry[key])]

    return models.header(how, SHAPE)


def asks_for_positions(room: Path) -> None:
    """A table is wide and has no rows, and what is in proportion to its width is left to whoever reads it."""
    specification, revision, arrays, aliases = read_variables(room / exchange_ctranslate2.MODEL)
    arrays = {name: array for name, array in arrays.items() if "position_encodings" not in name}
    arrays["decoder/embeddings/weight"] = np.zeros((0, 10**6), np.float32)
    aliases = {alias: name for alias, name in aliases.items() if name in arrays}
    write_variables(room / exchange_ctranslate2.MODEL, Variables(specification, revision, arrays, aliases))


def pieces(name: str, how: Callable[[list], Any]) -> Harm:
    """The fields of a SentencePiece model are changed by `how`."""

    def changed(content: bytes) -> bytes:
        fields = list(fields_of(content))
        how(fields)
        return written_fields(fields)

    return change(name, changed)


def not_utf8(fields: list) -> None:
    number, kind, value = fields[300]
    inner = list(fields_of(value))
    inner[0] = (1, 2, b"\xff\xfe")
    fields[300] = number, kind, written_fields(inner)


DIGITS = "9" * 5_000
SHAPE, INDEX = exchange.WEIGHTS, exchange.INDEX
CARD = "---\nconfigs:\n- config_name: small\n  data_files: {}\n---\n"

# What is done, the command that meets it, and what it tells.
KINDS: dict[str, tuple[str, Harm, str]] = {
    "weights of brain floats": (READ, stored("BF16", 2), "is stored as BF16, and here this toolkit writes F32"),
    "weights of eight bits": (READ, stored("F8_E4M3", 1), "is stored as F8_E4M3, and here this toolkit writes F32"),
    **{
        f"a context of {number} tokens": (READ, models.setting(max_length=number), "at most 1,048,576 tokens")
        for number in (10**7, 10**9, 2**62)
    },
    **{
        f"waves of a million positions, for {format}": (
            f"export gpt out --to {format}",
            edit("gpt/config.json", lambda config: config["model"].update(positions="sinusoidal", max_length=1 << 20)),
            "a table of its 1,048,576 positions would be larger than the model",
        )
        for format in ("hugging-face", "ctranslate2")
    },
    "a context beyond 64 bits": (READ, models.setting(max_length=2**64), "it has a number of 20 digits"),
    "a score of 400 digits": ("info model", raw(models.METRICS, "test", "9" * 400), "it has a number of 400 digits"),
    "figures nested 900 deep": ("info model", raw(models.METRICS, "test", "[" * 900 + "]" * 900), "nested too deeply"),
    "a tokenizer that is a pipe": (READ, pipe(models.TOKENIZER), "tokenizer.model cannot be read: it is a pipe"),
    "weights that are a pipe": (READ, pipe(models.WEIGHTS), "model.safetensors cannot be read: it is a pipe"),
    "settings that are a pipe": (READ, pipe(models.CONFIG), "config.json cannot be read: it is a pipe"),
    "settings of 20 MB that are nothing": (READ, sparse(models.CONFIG, 20 << 20), "at most 16,777,216"),
    "a best score of 400 digits": (RESUME, raw(runs.STATE, "best", "9" * 400), "it has a number of 400 digits"),
    "a state that is a pipe": (RESUME, pipe(runs.STATE), "state.json cannot be read: it is a pipe"),
    "a log that is a pipe": (RESUME, pipe("run/log.jsonl"), "log.jsonl cannot be written (it is a pipe"),
    "preferences of 400 digits": (
        REWARD,
        write("liked.jsonl", f'{{"prompt": "a", "completions": ["b", "c"], "scores": [{"9" * 400}, 0.5]}}\n'),
        "liked.jsonl, line 1 is not JSON (it has a number of 400 digits)",
    ),
    "a sentence file that is a pipe": (f"{READ.rsplit(' ', 1)[0]} --file lines.en", pipe("lines.en"), "is a pipe or"),
    "scored lines that are a pipe": (
        "score --model model --source lines.en --target lines.ne",
        pipe("lines.ne"),
        "lines.ne is a pipe or a device",
    ),
    "a shape in fractions": (exchange.IMPORT, fractions("shape"), "shape[0] is"),
    "offsets in fractions": (exchange.IMPORT, fractions("data_offsets"), "data_offsets[0] is"),
    "an added id of 5,000 digits": (
        exchange.IMPORT,
        write("marian/tokenizer_config.json", json.dumps({"added_tokens_decoder": {DIGITS: "a"}})),
        "tokenizer_config.json is damaged: it has no number for an added token, but '9999",
    ),
    "a table that asks for eight gigabytes": (
        "import fast new",
        asks_for_positions,
        "too small for decoder/embeddings/weight of shape (0, 1000000)",
    ),
    "a shape beyond all": (exchange.IMPORT, entry(SHAPE, shape=["1e999"]), "shape[0] is Infinity, not a whole number"),
    "an added id that is negative": (exchange.IMPORT, write("marian/added_tokens.json", '{"a": -5}'), "a is -5, not a"),
    "a piece that is not UTF-8": (exchange.IMPORT, pieces(exchange.SOURCE, not_utf8), "holds no SentencePiece model"),
    "an index that is a pipe": (exchange.SHARDS, pipe(INDEX), "index.json cannot be read: it is a pipe"),
    "a shard that is a pipe": (exchange.SHARDS, pipe(exchange.SHARD), "cannot be read: it is a pipe"),
    "an index that names a pipe": (
        exchange.SHARDS,
        both(pipe("shards/x"), edit(INDEX, lambda index: index["weight_map"].update(more="x"))),
        "shards/x cannot be read: it is a pipe",
    ),
    "variables that are a pipe": ("import fast new", pipe(exchange_ctranslate2.MODEL), "cannot be read: it is a pipe"),
    "a layer of 5,000 digits": (
        "import fast new",
        exchange_ctranslate2.put(f"encoder/layer_{DIGITS}/x", np.zeros(1, np.float32)),
        "fast/model.bin",
    ),
    "an epsilon of 400 digits": (
        "import fast new",
        raw("fast/config.json", "layer_norm_epsilon", "9" * 400),
        "a number of 400 digits",
    ),
    **{
        f"a data set whose settings name {name}": (f"{TABLE} hub", write("hub/README.md", CARD.format(place)), says)
        for name, place, says in (
            ("what lies above it", "../pairs.csv", "names data outside of hub ('../pairs.csv')"),
            ("what lies above it, among others", "[data/*.parquet, ../pairs.csv]", "names data outside of hub"),
            ("an address", "https://example.org/a.csv", "names data outside of hub ('https://example.org/a.csv')"),
        )
    },
    "a data set whose settings name a path from the root": (
        f"{TABLE} hub",
        lambda room: (room / "hub/README.md").write_text(CARD.format(room / "pairs.csv")),
        "names data outside of hub ('/",
    ),
    "a data set whose other settings lead out": (
        f"{TABLE} hub",
        write("hub/.huggingface.yaml", CARD.format("../pairs.csv").replace("---\n", "")),
        ".huggingface.yaml names data outside of hub",
    ),
    "a data set with a link that leads out": (
        f"{TABLE} hub",
        lambda room: (room / "hub/data/train-2.parquet").symlink_to("../../pairs.parquet"),
        "hub/data/train-2.parquet is a link that leads out of hub",
    ),
    "a data set with a pipe": (f"{TABLE} hub", pipe("hub/data/train.csv"), "is a pipe, a device or a link to nothing"),
}


def kinds() -> Iterator[Kind]:
    for name, (command, harm, says) in KINDS.items():
        yield Kind(name, command, says, harm, needs="pairs.csv pairs.parquet" if "hub" in command else "")
    yield Kind(
        "a conversation that is a pipe",
        SAY,
        "talk.json cannot be read: it is a",
        pipe("talk.json"),
        ("--load", "talk.json"),
    )
