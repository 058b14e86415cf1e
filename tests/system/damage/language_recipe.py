"""The recipe for language models: texts and tables that it cannot train on, and flags that mean nothing to it."""

import gzip
import os
from collections.abc import Iterator

from tests.system.damage.room import (
    RESUME_LM,
    TABLE_LM,
    TRAIN_LM,
    Harm,
    Kind,
    both,
    change,
    cut,
    directory,
    fresh,
    write,
)
from tests.system.damage.tables import DATASETS, NAMES, parquet
from tests.system.damage.texts import CONTENTS, EMPTY, LINES, PLACES, zipped

SUBWORDS = TRAIN_LM.replace("--tokenizer character", "--tokenizer unigram --model.vocab-size 400")
DOCUMENTS = f"{TRAIN_LM} --documents blank --whole-documents --samples 3 --temperature 0"
VALIDATED = f"{TRAIN_LM} --valid-text lines.en --documents line"
FOLDER = TRAIN_LM.replace("story.txt", "tales lines.en")
DATASET = TABLE_LM.replace("stories.jsonl", "hub --column en")
PACKED = f"{TRAIN_LM}.gz"
# Every way to read a text; the file that each reads.
READERS = [
    ("story.txt", TRAIN_LM),
    ("lines.en", VALIDATED),
    ("story.txt", DOCUMENTS),
    ("tales/one.txt", FOLDER),
    ("story.txt", SUBWORDS),
]


def pipe(name: str) -> Harm:
    return lambda room: os.mkfifo(fresh(room / name))


# What is nothing wrong with a text that is not read line by line, or is told otherwise of one in a folder.
_FINE = ("an enormous line", "a directory")
_NOT_IN_A_FOLDER = ("no bytes", *PLACES)

TEXTS: dict[str, tuple[Harm, str]] = {
    "a pipe": (pipe("story.txt"), "story.txt is a pipe or a device"),
    "a folder for a text": (directory("story.txt"), "story.txt has no text in it: a folder holds files whose names"),
    "a folder of texts that are links to nothing": (
        both(directory("story.txt"), lambda room: (room / "story.txt" / "a.txt").symlink_to("nowhere")),
        "story.txt has no text in it",
    ),
    "a folder of one picture": (
        both(directory("story.txt"), write("story.txt/a.txt", b"\x89PNG\r\n\x1a\n" + bytes(64))),
        "story.txt/a.txt is full of NUL bytes",
    ),
    "nothing but line feeds": (write("story.txt", "\n" * 3), "is left to validate on: give more text"),
    "one character": (write("story.txt", "a"), "nothing is left to train on: give more text"),
    "a run in an empty directory": (both(directory("new"), write("story.txt", "abc")), "is left to validate on"),
    "no line feed, with which samples begin": (
        write("story.txt", "She eats rice. " * 9),
        "--prompt is empty, and this",
    ),
    "three characters": (write("story.txt", "abc"), "less than two tokens of text is left to validate on"),
    "more characters than a vocabulary has": (
        write("story.txt", "".join(map(chr, [*range(32, 0xD800), *range(0x20000, 0x26000)])).encode()),
        "a character tokenizer takes 65520 at most",
    ),
    "a wrong byte in the middle": (
        change("story.txt", lambda content: content.replace(b"girl", b"g\xffrl")),
        "story.txt, line 4 is not UTF-8 (byte 0xFF)",
    ),
    "half a character at the end": (
        change("story.txt", lambda content: content + "क".encode()[:2]),
        "is not UTF-8 (byte 0xE0)",
    ),
}
DOCUMENT_TEXTS: dict[str, tuple[Harm, str]] = {
    "no document": (write("story.txt", " \n\t\n\n"), "the tokenizer has no text to learn from"),
    "one document of one character": (write("story.txt", "\na\n"), "nothing is left to train on: give more text"),
}
VALIDATION_TEXTS: dict[str, tuple[Harm, str]] = {
    "no document to validate on": (write("lines.en", " \n\n"), "nothing is left to validate on: give more text"),
    "no document to train on": (write("story.txt", "\n\n"), "nothing is left to train on: give more text"),
}
GZIP: dict[str, Harm] = {
    "without its end": cut("story.txt.gz", 0.8),
    "of other contents than it says": change("story.txt.gz", lambda content: content[:-8] + bytes(8)),
    "with damaged bytes": change("story.txt.gz", lambda content: content[:30] + bytes(9) + content[39:]),
    "that is text": write("story.txt.gz", "She eats rice. " * 99),
    "that is zip": write("story.txt.gz", zipped()),
}
GZIP_CONTENTS = {
    "of nothing": (b"", "story.txt.gz is empty"),
    "of UTF-16": ("She eats rice.".encode("utf-16"), "story.txt.gz is UTF-16"),
    "of gzip": (gzip.compress(b"She eats rice."), "story.txt.gz is compressed (gzip)"),
}

ROW = '{"text": "She eats rice."}\n'
JSONL = {
    "a row without the text": (ROW + '{"title": "x"}\n', "stories.jsonl, line 2 has no text"),
    "rows of other columns": ('{"title": "x"}\n' * 3, "stories.jsonl has no column text, only title"),
    "a number for a story": (ROW + '{"text": 7}\n', "stories.jsonl, line 2: text is of type int, not a text"),
    "null for a story": (ROW + '{"text": null}\n', "stories.jsonl, line 2: text is null, not a text"),
    "a list for a story": (ROW + '{"text": ["a"]}\n', "stories.jsonl, line 2: text is of type list, not a text"),
    "half a pair of a story": (ROW + '{"text": "\\ud83d"}\n', "half of a surrogate pair"),
    "a story that is cut off": (ROW + '{"text": "She', "stories.jsonl, line 2 is not JSON"),
    "stories in Latin-1": (ROW.encode() + b'{"text": "caf\xe9"}\n', "stories.jsonl, line 2 is not UTF-8 (byte 0xE9)"),
    "no stories": ("", "stories.jsonl is empty"),
    "blank stories": ('{"text": " "}\n' * 9, "the tokenizer has no text to learn from"),
}
TABLES = {
    "stories.tsv": (b"title\tstory\na\tb\n", "stories.tsv has no column text, only title, story"),
    "stories.csv": (b'text\n"She eats\n', "stories.csv"),
    "stories.json": (b'[{"text": "a"},', "stories.json, line 1 is not JSON"),
    "stories.parquet": (parquet({"text": [1, 2]}), "stories.parquet, row 1: text is of type int"),
    "cut.parquet": (parquet({"text": ["a"] * 9})[:-9], "cut.parquet is cut off"),
}

FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    TRAIN_LM: {
        "no text": ("--text", "--text needs a value"),
        "a text of no name": ("--text=", "--text needs a value"),
        "no table": ("--data", "--data needs a value"),
        "a text that there is not": ("--text none.txt", "none.txt does not exist: check the path"),
        "a text of an endless name": (f"--text {'x' * 260}", "cannot be read: File name too long"),
        "a text without end": ("--text /dev/zero", "/dev/zero is a pipe or a device"),
        "a table for a story that there is not": ("--data none.jsonl", "none.jsonl does not exist"),
        "nothing to validate on": ("--valid-text none.txt", "none.txt does not exist"),
        "no share to validate on": ("--valid-share 0", "valid_share is 0"),
        "nearly all to validate on": ("--valid-share 0.9", "valid_share is 0.9"),
        "a share that is not a number": ("--valid-share nan", "valid_share is nan"),
        "documents that there are not": ("--documents page", "--documents is 'page': it must be one of"),
        "whole documents where there are none": ("--documents none --whole-documents", "--whole-documents needs"),
        "a language that there is not": ("--language fr", "--language is 'fr': it must be one of en, ne, both"),
        "an unknown preset": ("--preset gpt5", "there is no preset 'gpt5': choose one of stories, "),
        "a preset without a name": ("--preset", "--preset needs a value"),
        "a preset of no name": ("--preset=", "--preset needs a value"),
        "a flag for a preset": ("--preset --samples 1", "--preset needs a value"),
        "heads that do not divide": ("--model.num-heads 3", "d_model 8 cannot be divided into 3 heads"),
        "heads of odd width": ("--model.num-heads 8", "rotary positions need heads of even width"),
        "shares of no head": ("--model.num-key-value-heads 3", "2 heads cannot share 3 num_key_value_heads evenly"),
        "no layers": ("--model.layers 0", "layers is 0"),
        "a context of nothing": ("--model.max-length 0", "max_length is 0"),
        "a context of one token": ("--model.max-length 1", "--prompt has 1 token,"),
        "positions that there are not": ("--model.positions alibi", "--model.positions is 'alibi'"),
        "a model wider than any memory": ("--model.d-model 1000000", "there is not enough memory"),
        "no updates": ("--training.updates 0", "updates is 0"),
        "a score of translations": ("--training.best-by bleu", "leave out --training.best-by"),
        "subwords that are drawn": ("--training.subword-alpha 0.1", "leave out --training.subword-alpha"),
        "fewer samples than none": ("--samples -1", "samples is -1"),
        "a negative temperature": ("--temperature -1", "temperature"),
        "a temperature that is not a number": ("--temperature nan", "temperature is nan"),
        "an endless temperature": ("--temperature inf", "temperature is inf"),
        "a prompt of unknown characters": ("--prompt Ω", "--prompt cannot be read: the character 'Ω' (U+03A9)"),
        "a prompt longer than the context": (f"--prompt {'a' * 40}", "--prompt has 40 tokens"),
        "a prompt of a hundred thousand characters": (f"--prompt {'a' * 100_000}", "--prompt has 100000 characters"),
        "half a character for a prompt": ("--prompt caf\udce9", "--prompt cannot be read"),
        "a run that is there": ("--run hub", "hub already exists"),
        "a run below a file": ("--run lines.en/run", "lines.en/run cannot be created: Not a directory"),
        "an export that is there": ("--export hub", "hub already exists: choose another --export"),
        "an export below a file": ("--export lines.en/exported", "lines.en/exported cannot be written"),
        "an export among the processes": ("--export /proc/exported", "/proc/exported cannot be written"),
        "the first of two seeds": ("--seeds 1 2 --prompt Ω", "--prompt cannot be read"),
        "a run below directories that there are not": ("--run new/er --prompt Ω", "--prompt cannot be read"),
        "nothing to resume": ("--resume", "new is not a run: there is no such directory"),
        "resuming no run": ("--resume --run hub", "hub is not a run: it has no settings.json"),
    },
    SUBWORDS: {
        "a vocabulary of ten": ("--model.vocab-size 10", "vocab_size 10 is out of range"),
        "a vocabulary that is too small": ("--model.vocab-size 273", "vocab_size 273 is too small"),
        "a vocabulary that is too small for bpe": (
            "--tokenizer bpe --model.vocab-size 273",
            "vocab_size 273 is too small",
        ),
    },
    TABLE_LM: {
        "a column that there is not": ("--column story", "stories.jsonl has no column story, only text"),
        "validation by a table that there is not": ("--valid-data none.jsonl", "none.jsonl does not exist"),
    },
    RESUME_LM: {
        "resuming with another width": ("--model.d-model 16", "other settings (model.d_model: 8 → 16)"),
        "resuming with another preset": ("--preset gpt2", "(model.activation: gelu → gelu_tanh, "),
        "resuming with another text": ("--text lines.en", "other data"),
        "resuming with a table": ("--data stories.jsonl", "tables: [] → ['stories.jsonl']"),
        "resuming with documents": ("--documents line", "documents: none → line"),
        "resuming with other validation": ("--valid-text lines.en", "other data"),
    },
}
WHOLE = {
    "validation without training": ("recipe-lm --valid-text lines.en --run new", "give the training text too"),
    "validation by a table alone": ("recipe-lm --valid-data pairs.jsonl --run new", "give the training text too"),
}


def kinds() -> Iterator[Kind]:
    yield from _texts()
    for command, table in (
        (TRAIN_LM, TEXTS),
        (DOCUMENTS, DOCUMENT_TEXTS),
        (VALIDATED, VALIDATION_TEXTS),
    ):
        for name, (harm, says) in table.items():
            yield Kind(name, command, says, harm)
    for name, harm in GZIP.items():
        yield Kind(f"packed text {name}", PACKED, "story.txt.gz is cut off, damaged or not compressed by gzip", harm)
    for name, (content, says) in GZIP_CONTENTS.items():
        yield Kind(f"packed text {name}", PACKED, says, write("story.txt.gz", gzip.compress(content)))
    for name, (content, says) in JSONL.items():
        yield Kind(name, TABLE_LM, says, write("stories.jsonl", content))
    for name, (content, says) in TABLES.items():
        yield Kind(f"a table of stories: {name}", TABLE_LM, says, write(name, content), ("--data", name))
    for name, (asked, says) in [*NAMES.items()][:4]:
        yield Kind(name, TABLE_LM, says if asked else "--data needs a value", flags=("--data", asked))
    for name, (harm, asked, says) in DATASETS.items():
        yield Kind(name, DATASET, says, harm, flags=("--data", asked))
    for command, table in FLAGS.items():
        for name, (words, says) in table.items():
            yield Kind(name, command, says, flags=tuple(words.split(" ")))
    for name, (words, says) in WHOLE.items():
        verb, *rest = words.split(" ")
        yield Kind(name, verb, says, flags=tuple(rest))


def _texts() -> Iterator[Kind]:
    """What no command can read, met by every way to read a text."""
    harms = [(name, lambda file, line=line: _first(file, line), says) for name, (line, says, *_) in LINES.items()]
    harms += [(name, lambda file, how=how: change(file, how), says) for name, (how, says, *_) in CONTENTS.items()]
    harms += [(name, lambda file, content=content: write(file, content), "is empty") for name, content in EMPTY.items()]
    harms += [(name, how, says) for name, (how, says) in PLACES.items()]
    for number, (name, harm, says) in enumerate(one for one in harms if one[0] not in _FINE):
        file, command = READERS[number % len(READERS)]
        if command == FOLDER and name in _NOT_IN_A_FOLDER:
            file, command = READERS[0]
        yield Kind(f"{name}, to train on", command, says, harm(file))


def _first(file: str, line: bytes) -> Harm:
    return change(file, lambda content: line + b"\n" + content.partition(b"\n")[2])
