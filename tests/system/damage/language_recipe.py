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
DOCUMENTS = f"{TRAIN_LM} --documents blank --whole-documents"
VALIDATED = f"{TRAIN_LM} --valid-text lines.en --documents line"
FOLDER = TRAIN_LM.replace("story.txt", "tales lines.en")
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
    "one character": (write("story.txt", "a"), "less than two tokens of text is left to"),
    "three characters": (write("story.txt", "abc"), "less than two tokens of text is left to validate on"),
    "more characters than a vocabulary has": (
        write("story.txt", "".join(map(chr, [*range(32, 0xD800), *range(0x20000, 0x26000)])).encode()),
        "a character tokenizer takes 65520 at most",
    ),
    "a wrong byte in the middle": (
        change("story.txt", lambda content: content[:70] + b"\xff" + content[70:]),
        "story.txt, line 4 is not UTF-8 (byte 0xFF)",
    ),
    "half a character at the end": (
        change("story.txt", lambda content: content + "क".encode()[:2]),
        "is not UTF-8 (byte 0xE0)",
    ),
}
DOCUMENT_TEXTS: dict[str, tuple[Harm, str]] = {
    "no document": (write("story.txt", " \n\t\n\n"), "nothing is left to validate on: give more text"),
    "one document of one character": (write("story.txt", "\na\n"), "nothing is left to train on: give more text"),
}
VALIDATION_TEXTS: dict[str, tuple[Harm, str]] = {
    "no document to validate on": (write("lines.en", " \n\n"), "nothing is left to validate on: give more text"),
    "no document to train on": (write("story.txt", "\n\n"), "nothing is left to train on: give more text"),
}
SUBWORD_TEXTS: dict[str, tuple[Harm, str]] = {
    "too little text for so many subwords": (write("story.txt", "ab " * 40), "vocab_size 400 is too large"),
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
    "a story that is cut off": (ROW + '{"text": "She', "stories.jsonl, line 2 is not a JSON object"),
    "stories in Latin-1": (ROW.encode() + b'{"text": "caf\xe9"}\n', "stories.jsonl, line 2 is not UTF-8 (byte 0xE9)"),
    "no stories": ("", "stories.jsonl is empty"),
    "blank stories": ('{"text": " "}\n' * 9, "nothing is left to validate on: give more text"),
    "one story": (ROW, "is left to"),
}
TABLES = {
    "stories.tsv": (b"title\tstory\na\tb\n", "stories.tsv has no column text, only title, story"),
    "stories.csv": (b'text\n"She eats\n', "stories.csv"),
    "stories.json": (b'[{"text": "a"},', "stories.json is not JSON"),
    "stories.parquet": (parquet({"text": [1, 2]}), "stories.parquet, row 1: text is of type int"),
    "cut.parquet": (parquet({"text": ["a"] * 9})[:-9], "cut.parquet is cut off"),
}

FLAGS: dict[str, dict[str, tuple[str, str]]] = {
    TRAIN_LM: {
        "no text": ("--text", "--text needs a value"),
        "a text that there is not": ("--text none.txt", "none.txt does not exist: check the path"),
        "a second text that there is not": ("--text lines.en none.txt", "none.txt does not exist: check the path"),
        "a text below a file": ("--text lines.en/a.txt", "lines.en/a.txt cannot be read: Not a directory"),
        "a text of an endless name": (f"--text {'x' * 260}", "cannot be read: File name too long"),
        "a text without end": ("--text /dev/zero", "/dev/zero is a pipe or a device"),
        "a table for a story that there is not": ("--data none.jsonl", "none.jsonl does not exist"),
        "nothing to validate on": ("--valid-text none.txt", "none.txt does not exist"),
        "no share to validate on": ("--valid-share 0", "valid_share is 0"),
        "nearly all to validate on": ("--valid-share 0.9", "valid_share is 0.9"),
        "a negative share": ("--valid-share -0.1", "valid_share is -0.1"),
        "a share that is not a number": ("--valid-share nan", "valid_share is nan"),
        "a share in words": ("--valid-share some", "--valid-share is 'some': it must be a number"),
        "documents that there are not": ("--documents page", "--documents is 'page': it must be one of"),
        "whole documents where there are none": ("--documents none --whole-documents", "--whole-documents needs"),
        "a language that there is not": ("--language fr", "--language is 'fr': it must be one of en, ne, both"),
        "an unknown preset": ("--preset gpt5", "there is no preset 'gpt5': choose one of stories, nanogpt-cpu"),
        "an unknown preset after an equals sign": ("--preset=gpt5", "there is no preset 'gpt5'"),
        "a preset without a name": ("--preset", "--preset needs a value"),
        "a preset of no name": ("--preset=", "there is no preset ''"),
        "a flag for a preset": ("--preset --samples 1", "--preset needs a value"),
        "a flag that there is not": ("--colour red", "there is no flag --colour"),
        "a flag of the other recipe": ("--num-beams 2", "there is no flag --num-beams"),
        "a word for nobody": ("--quiet story.txt", "'story.txt' is a word too many"),
        "an unknown tokenizer": ("--tokenizer words", "--tokenizer is 'words'"),
        "no width": ("--model.width 0", "width is 0"),
        "heads that do not divide": ("--model.heads 3", "width 8 cannot be divided into 3 heads"),
        "no heads": ("--model.heads 0", "heads is 0"),
        "heads of odd width": ("--model.heads 8", "rotary positions need heads of even width"),
        "shares of no head": ("--model.key-value-heads 3", "2 heads cannot share 3 key_value_heads evenly"),
        "a negative share of heads": ("--model.key-value-heads -1", "2 heads cannot share -1 key_value_heads"),
        "no layers": ("--model.layers 0", "layers is 0"),
        "a context of nothing": ("--model.max-length 0", "max_length is 0"),
        "a context of one token": ("--model.max-length 1", "--prompt has 1 tokens"),
        "positions that there are not": ("--model.positions alibi", "--model.positions is 'alibi'"),
        "a wave of no length": ("--model.rotary-base 0", "rotary_base is 0"),
        "an eps that is not a number": ("--model.norm-eps nan", "norm_eps is nan"),
        "a flag that is on already": ("--model.tie", "there is no flag --model.tie: did you mean --model.no-tie?"),
        "dropout of everything": ("--model.residual-dropout 1", "residual_dropout is 1"),
        "a model wider than any memory": ("--model.width 1000000", "there is not enough memory"),
        "a model wider than any number": (f"--model.width {10**12}", "there is not enough memory"),
        "no updates": ("--training.updates 0", "updates is 0"),
        "batches of nothing": ("--training.tokens-per-batch 0", "tokens_per_batch is 0"),
        "a score of translations": ("--training.best-by bleu", "leave out --training.best-by"),
        "subwords that are drawn": ("--training.subword-alpha 0.1", "leave out --training.subword-alpha"),
        "a rate that is not a number": ("--training.learning-rate nan", "learning_rate is nan"),
        "a negative seed": ("--training.seed -1", "seed is -1"),
        "fewer samples than none": ("--samples -1", "--samples"),
        "a negative temperature": ("--temperature -1", "temperature"),
        "a temperature that is not a number": ("--temperature nan", "temperature is nan"),
        "an endless temperature": ("--temperature inf", "temperature is inf"),
        "a prompt of unknown characters": ("--prompt Ω", "--prompt cannot be read: the character 'Ω' (U+03A9)"),
        "a prompt longer than the context": (f"--prompt {'a' * 40}", "--prompt has 40 tokens"),
        "a prompt of a hundred thousand characters": (f"--prompt {'a' * 100_000}", "--prompt has 100000 characters"),
        "half a character for a prompt": ("--prompt caf\udce9", "--prompt cannot be read"),
        "a run that is there": ("--run hub", "hub already exists"),
        "a run that is a file": ("--run lines.en", "lines.en already exists"),
        "a run below a file": ("--run lines.en/run", "lines.en/run cannot be created: Not a directory"),
        "a run among the processes": ("--run /proc/run", "/proc/run cannot be created"),
        "a run of an endless name": (f"--run {'x' * 260}", "cannot be created"),
        "an export that is there": ("--export hub", "hub already exists: choose another --export"),
        "an export over a file": ("--export lines.en", "lines.en already exists"),
        "an export below a file": ("--export lines.en/exported", "lines.en/exported cannot be written"),
        "an export among the processes": ("--export /proc/exported", "/proc/exported cannot be written"),
        "an export of several": ("--seeds 1 2 --export exported", "--export takes one model and --seeds trains"),
        "the same seed twice": ("--seeds 1 1", "--seeds 1 1: give different ones"),
        "nothing to resume": ("--resume", "new is not a run: there is no such directory"),
        "resuming no run": ("--resume --run hub", "hub is not a run: it has no settings.json"),
    },
    SUBWORDS: {
        "a vocabulary of ten": ("--model.vocab-size 10", "vocab_size 10 is out of range"),
        "a vocabulary that is too small": ("--model.vocab-size 273", "vocab_size 273 is too small"),
        "a vocabulary that is too large": ("--model.vocab-size 5000", "vocab_size 5000 is too large"),
        "a vocabulary of billions": ("--model.vocab-size 9999999999", "vocab_size 9999999999 is out of range"),
        "a vocabulary that is too small for bpe": (
            "--tokenizer bpe --model.vocab-size 273",
            "vocab_size 273 is too small",
        ),
    },
    TABLE_LM: {
        "a column that there is not": ("--column story", "stories.jsonl has no column story, only text"),
        "a column of no name": ("--column=", "stories.jsonl has no column"),
        "validation by a table that there is not": ("--valid-data none.jsonl", "none.jsonl does not exist"),
    },
    RESUME_LM: {
        "resuming with another width": ("--model.width 16", "other settings (model.width: 8 → 16)"),
        "resuming with another seed": ("--training.seed 2", "training.seed: 1 → 2"),
        "resuming with another preset": ("--preset gpt2", "preset:  → gpt2"),
        "resuming with another text": ("--text lines.en", "other data"),
        "resuming with a table": ("--data stories.jsonl", "tables: [] → ['stories.jsonl']"),
        "resuming with documents": ("--documents line", "documents: none → line"),
        "resuming with bytes": ("--tokenizer byte", "tokenizer: character → byte"),
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
        (SUBWORDS, SUBWORD_TEXTS),
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
    for name, (asked, says) in NAMES.items():
        yield Kind(name, TABLE_LM, says.replace("leave out", "stories.jsonl"), flags=("--data", asked))
    for name, (harm, asked, says) in DATASETS.items():
        yield Kind(name, f"{TABLE_LM} hub --column en", says, harm, flags=("--data", asked))
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
