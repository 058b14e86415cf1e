"""Names out of files and words of a command that would steer a terminal, make two lines of one, or never end.

Only where a sentence shows them without quotation marks: within them, Python writes control characters out.
"""

import json
from collections.abc import Iterator

import numpy as np

from tests.system.damage import exchange, exchange_ctranslate2, language, models
from tests.system.damage.room import RESUME, TABLE, TABLE_LM, Harm, Kind, arrays, edit, write

# Clears the screen, rings, turns the line around, ends it in five ways, and hides what follows.
EVIL = "a\x1b[2J\x07\x9b31m\x7f\u202e\u2066\u200f\u2028\x85\r\n\U000e0041\ufeffc"
WITHIN_A_LINE = EVIL.replace("\r\n", "")
LONG = EVIL + "x" * 1_000_000

HARMS: dict[str, tuple[str, str, Harm]] = {
    "a setting of a megabyte": ("info model", "which is unknown here", models.setting(**{LONG: 1})),
    "a thousand settings": (
        "info model",
        "which is unknown here",
        models.setting(**{f"{EVIL}{number}": 1 for number in range(1000)}),
    ),
    "a choice of a megabyte": ("info model", "model/config.json", models.setting(activation=LONG)),
    "an array": (
        "info model",
        "model/model.safetensors",
        models.tensors(lambda values: values.update({EVIL: np.zeros(3, np.float32)})),
    ),
    "an array of a megabyte": (
        language.GENERATE,
        "gpt/model.safetensors",
        language.tensors(lambda values: values.update({LONG: np.zeros(3, np.float32)})),
    ),
    "a class of transformers": (exchange.IMPORT, "marian", exchange.setting(architectures=[EVIL])),
    "an activation of transformers": (exchange.IMPORT, "marian", exchange.setting(activation_function=LONG)),
    "a tensor of transformers": (
        exchange.IMPORT,
        "has no place for",
        arrays(exchange.WEIGHTS, lambda values: values.update({EVIL: np.zeros(3, np.float32)})),
    ),
    "a variable of CTranslate2": (
        exchange_ctranslate2.IMPORT,
        "fast",
        exchange_ctranslate2.put(EVIL, np.zeros(3, np.float32)),
    ),
    "columns of a TSV": (f"{TABLE} pairs.tsv", "pairs.tsv", write("pairs.tsv", f"{WITHIN_A_LINE}\tb\nI\tम\n")),
    "columns of a CSV": (f"{TABLE} pairs.csv", "pairs.csv", write("pairs.csv", f'"{EVIL}",b\nI,म\n')),
    "fields of a table of texts": (TABLE_LM, "stories.jsonl", write("stories.jsonl", json.dumps({EVIL: "a"}) + "\n")),
    "a setting of a run": (RESUME, "run", edit("run/settings.json", lambda settings: settings.update({EVIL: LONG}))),
}

WORDS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "a flag": ("translate hello --model model", "there is no flag", (f"--{WITHIN_A_LINE}",)),
    "a word for a choice": ("export gpt new", r"--to is 'a\x1b[2J\x07", ("--to", EVIL)),
    "a file": ("translate --model model", "does not exist", ("--file", WITHIN_A_LINE)),
    "a model": ("translate hello --model model", "there is no model", ("--model", LONG)),
}


def kinds() -> Iterator[Kind]:
    for name, (command, says, harm) in HARMS.items():
        yield Kind(f"{name} that would steer a terminal", command, says, harm)
    for name, (command, says, flags) in WORDS.items():
        yield Kind(f"{name} that would steer a terminal", command, says, flags=flags)
