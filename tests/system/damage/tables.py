"""Tables of pairs, which only the recipe reads."""

import gzip
import io
import json
from collections.abc import Iterator

import pyarrow
import pyarrow.parquet

from tests.system.damage.room import CARD, TABLE, Harm, Kind, both, change, cut, directory, remove, write
from tests.system.damage.texts import CONTENTS

HEADER = "en\tne\n"
ROW = "I am\tम\n"
OBJECT = '{"en": "I am", "ne": "म"}\n'

# What a file has become, and what is told of it.
TSV = {
    "a row with a column too few": (HEADER + ROW + "alone\n", "line 3 has 1 column, the first line has 2"),
    "a row with a column too many": (HEADER + ROW + "a\tb\tc\n", "line 3 has 3 columns, the first line has 2"),
    "a line without anything": (HEADER + "\n" + ROW, "line 2 is empty"),
    "column names only": (HEADER, "has column names and nothing below them"),
    "no column names": (ROW * 3, "has no column en, only I am, म"),
    "columns of other languages": ("de\tfr\n" + ROW, "has no column en, only de, fr"),
    "a column named twice": ("en\tne\ten\n" + "a\tb\tc\n", "has 2 columns named en"),
    "commas between the columns": ("en,ne\n" + "I am,म\n", "has no column en, only en,ne"),
    "a NUL character": (HEADER + "a\0\tb\n", "line 2 has a NUL character"),
    "a blank cell": (HEADER + ROW * 5 + "\tम\n", "line 7 has a blank source"),
    "a blank cell on the other side": (HEADER + ROW * 5 + "I am\t \n", "line 7 has a blank target"),
}
CSV = {
    "a quotation mark that is not closed": ('en,ne\n"I am,म\n', "line 2 begins a row that is not CSV"),
    "a quotation mark within quoted text": ('en,ne\n"I "am" so",म\n', "line 2 begins a row that is not CSV"),
    "a comma within plain text": ("en,ne\nI am, so,म\n", "line 2 has 3 columns, the first line has 2"),
    "semicolons between names, commas between texts": ("en;ne\nI am,म\n", "line 2 has 1 column, the first line has 2"),
    "bars between the columns": ("en|ne\nI am|म\n", "has no column en, only en|ne"),
}
JSONL = {
    "a line that is cut off": (OBJECT + '{"en": "I a', "line 2 is not JSON"),
    "an object over several lines": (json.dumps({"en": "I am", "ne": "म"}, indent=1), "line 1 is not JSON"),
    "quotation marks of Python": (OBJECT + "{'en': 'I am', 'ne': 'म'}\n", "line 2 is not JSON"),
    "a comma too many": ('{"en": "I am", "ne": "म",}\n', "line 1 is not JSON"),
    "a list instead of an object": (OBJECT + '["I am", "म"]\n', "line 2 is a list, not a JSON object"),
    "a text instead of an object": (OBJECT + '"I am"\n', "line 2 is text, not a JSON object"),
    "a number for a text": (OBJECT + '{"en": 7, "ne": "म"}\n', "line 2: en is of type int, not a text"),
    "null for a text": (OBJECT + '{"en": "I am", "ne": null}\n', "line 2: ne is null, not a text"),
    "a list for a text": (OBJECT + '{"en": ["I am"], "ne": "म"}\n', "line 2: en is of type list, not a text"),
    "NaN for a text": (OBJECT + '{"en": NaN, "ne": "म"}\n', "line 2: en is of type float, not a text"),
    "half a surrogate pair": (OBJECT + '{"en": "\\ud83d", "ne": "म"}\n', "line 2: en has half of a surrogate pair"),
    "an object without the text": (OBJECT + '{"en": "I am"}\n', "line 2 has no ne"),
    "objects of other languages": ('{"de": "ich", "fr": "je"}\n', "has no column en, only de, fr"),
    "an empty line": (OBJECT + "\n" + OBJECT, "line 2 is empty"),
    "CR between the lines": ('{"en": "I am", "ne": "म"}\r' * 2, "line 1 has a CR in the middle"),
    "brackets without end": ("[" * 90_000 + "\n", ""),
    "a number without end": ('{"en": ' + "1" * 90_000 + ', "ne": "म"}\n', "line 1"),
}
JSON = {
    "an empty list": ("[]", "holds an empty list"),
    "a list that is cut off": ('[{"en": "I am", "ne": "म"},', "is not JSON"),
    "a list of texts": ('["I am", "म"]', "row 1 is text, not a JSON object"),
    "a list of lists": ('[["I am", "म"]]', "row 1 is a list, not a JSON object"),
    "lists without end": ("[" * 90_000, "is not JSON (nested too deeply)"),
    "one object with lists": ('{"en": ["I am"], "ne": ["म"]}', "en is of type list"),
}


def parquet(columns: dict, **options: str) -> bytes:
    file = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), file, **options)
    return file.getvalue()


_GOOD = {"en": ["I am"] * 4, "ne": ["म"] * 4}
PARQUET = {
    "no rows": (parquet({"en": pyarrow.array([], "string"), "ne": pyarrow.array([], "string")}), "has no rows"),
    "columns of other names": (parquet({"de": ["ich"], "fr": ["je"]}), "has no column en, only de, fr"),
    "a null": (parquet({"en": ["I am", None], "ne": ["म", "म"]}), "row 2: en is null"),
    "numbers": (parquet({"en": [1, 2], "ne": ["म", "म"]}), "row 1: en is of type int"),
    "lists": (parquet({"en": [["I"], ["am"]], "ne": ["म", "म"]}), "row 1: en is of type list"),
    "bytes": (parquet({"en": [b"I", b"\xff"], "ne": ["म", "म"]}), "row 1: en is of type bytes"),
    "no bytes at all": (b"", ""),
    "text": (b"I am a text\n" * 9, ""),
    "the first half": (parquet(_GOOD)[:200], ""),
    "the second half": (parquet(_GOOD)[200:], ""),
    "no last byte": (parquet(_GOOD)[:-1], ""),
    "damaged pages": (b"PAR1" + bytes(60) + parquet(_GOOD)[64:], ""),
    "a damaged footer": (parquet(_GOOD)[:-60] + bytes(50) + parquet(_GOOD)[-10:], ""),
}
_ROWS = (HEADER + ROW * 500).encode()
COMPRESSED = {
    "gzip without its end": (gzip.compress(_ROWS)[:-20], "is cut off, damaged or not compressed by gzip"),
    "gzip of other contents than it says": (
        gzip.compress(_ROWS)[:-8] + bytes(8),
        "is cut off, damaged or not compressed by gzip",
    ),
    "gzip with damaged bytes": (
        gzip.compress(_ROWS)[:12] + bytes(9) + gzip.compress(_ROWS)[21:],
        "is cut off, damaged or not compressed by gzip",
    ),
    "text that is called gzip": (_ROWS, "is cut off, damaged or not compressed by gzip"),
    "gzip of nothing": (gzip.compress(b""), "is empty"),
}

HUB = "hub/data/train-00000-of-00001.parquet"
# What stands in a directory in the Hub's layout, what of it is asked for, and what is told.
DATASETS: dict[str, tuple[Harm, str, str]] = {
    "a directory without data": (remove(HUB), "hub", "hub"),
    "a directory with a description only": (both(remove(HUB), write("hub/README.md", "hello\n")), "hub", "hub"),
    "a description that is no YAML": (write("hub/README.md", "---\nconfigs: [\n---\n"), "hub", "hub"),
    "a description of files that are gone": (both(remove(HUB), write("hub/README.md", CARD)), "hub", "hub"),
    "data that is cut off": (cut(HUB, 0.5), "hub", "hub"),
    "data that is empty": (write(HUB, b""), "hub", "hub"),
    "data of other columns": (write(HUB, parquet({"de": ["ich"], "fr": ["je"]})), "hub", "hub has no column en"),
    "shards of different columns": (write("hub/data/train-00001-of-00002.parquet", parquet({"x": [1]})), "hub", "hub"),
    "a configuration that there is not": (write("hub/README.md", CARD), "hub:large", "large"),
    "a split that there is not": (write("hub/README.md", CARD), "hub:small:tests", "hub has no split tests"),
    "pictures": (both(remove(HUB), write("hub/data/1.png", b"\x89PNG")), "hub", "hub"),
}

# What --data is followed by, and what is told of it.
NAMES = {
    "a file of no known kind": ("lines.en", "lines.en is not a table"),
    "a table that does not exist": ("none.tsv", "none.tsv does not exist"),
    "no name": ("", "needs a value"),
    "a colon alone": (":", "does not exist"),
    "a configuration of a file": ("pairs.tsv:small", "leave out :small"),
    "a device": ("/dev/null", "/dev/null"),
    "a name without end": ("x" * 256 + ".tsv", "does not exist"),
    "a web address": ("https://example.org/pairs.tsv", "does not exist"),
}


def kinds() -> Iterator[Kind]:
    for suffix, table in ("tsv", TSV), ("csv", CSV), ("jsonl", JSONL), ("json", JSON), ("parquet", PARQUET):
        for name, (content, says) in table.items():
            file = f"pairs.{suffix}"
            yield Kind(f"{suffix}: {name}", f"{TABLE} {file}", says or file, write(file, content))
    for name, (content, says) in COMPRESSED.items():
        yield Kind(name, f"{TABLE} pairs.tsv.gz", f"pairs.tsv.gz {says}", write("pairs.tsv.gz", content))
    for number, (name, (how, *_)) in enumerate(CONTENTS.items()):
        table = ("pairs.tsv", "pairs.csv", "pairs.jsonl", "pairs.json")[number % 4]
        yield Kind(f"{table}: {name}", f"{TABLE} {table}", table, change(table, how))
    for name, (harm, asked, says) in DATASETS.items():
        yield Kind(name, f"{TABLE} hub", says, harm, flags=("--data", asked))
    for name, (asked, says) in NAMES.items():
        yield Kind(name, f"{TABLE} pairs.tsv", says, flags=("--data", asked))
    for name, says in (("a table that is a directory", "pairs.tsv"),):
        yield Kind(name, f"{TABLE} pairs.tsv", says, directory("pairs.tsv"))
    for name, flags, says in [
        ("one column by name, one by number", ("--source-column", "1"), "give both columns by name or both by number"),
        (
            "a column of a number that there is not",
            ("--source-column", "1", "--target-column", "3"),
            "pairs.tsv has 2 columns",
        ),
        ("a column of number zero", ("--source-column", "0", "--target-column", "1"), "pairs.tsv has 2 columns"),
        ("one column for both sides", ("--source-column", "ne"), "source and target column are both ne"),
        ("a column that does not exist", ("--target-column", "fr"), "pairs.tsv has no column fr"),
        ("a column without a name", ("--target-column", ""), "pairs.tsv has no column"),
        ("a negative weight", ("--weights", "-1"), "one of the weights is -1"),
        ("a weight of nothing", ("--weights", "0"), "one of the weights is 0"),
        ("a weight that is not a number", ("--weights", "nan"), "one of the weights is nan"),
        ("an endless weight", ("--weights", "inf"), "one of the weights is inf"),
        ("more weights than sources", ("--weights", "1", "2"), "the weights are 2 and the sources of training pairs 1"),
    ]:
        yield Kind(name, f"{TABLE} pairs.tsv", says, flags=flags)
