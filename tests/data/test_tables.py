import csv
import gzip
import json
import logging
import os
import sys
import tempfile
import unicodedata
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.data.hub import batches_of
from toolkit.data.lines import LONGEST_LINE
from toolkit.data.objects import table_suffix
from toolkit.data.tables import open_dataset, open_table
from toolkit.errors import ConfigError, DataError

NAMES = ("en", "ne")
# What readers of tables like to change: missing values, numbers, dates, quotes, spaces, line separators of Unicode.
PAIRS = [
    ("NA", "null"),
    ("007", "1e5"),
    ("2020-01-01", "2020-01-01 10:00:00"),
    ('half " quoted', '"whole"'),
    ("", " "),
    ("#x", "True"),
    ("a\u2028b\u0085c", "क\u200dख"),
    ("nan", "-"),
]


def write_table(path: Path, pairs: list[tuple[str, str]], header: tuple[str, str] | None = NAMES) -> Path:
    """Write a table in the format that its suffix names, with a column before and one after those of the pairs."""
    rows = [(str(number), *pair, "more") for number, pair in enumerate(pairs)]
    if header:
        rows.insert(0, ("id", *header, "note"))
    suffix = table_suffix(path)
    if suffix == ".parquet":
        return write_parquet(path, {name: [pair[side] for pair in pairs] for side, name in enumerate(header)})
    with (gzip.open if path.name.endswith(".gz") else open)(path, "wt", encoding="utf-8", newline="") as file:
        if suffix == ".tsv":
            file.writelines("\t".join(row) + "\n" for row in rows)
        elif suffix == ".csv":
            csv.writer(file).writerows(rows)
        else:
            objects = [dict(zip(rows[0], row, strict=True)) for row in rows[1:]]
            lines = [json.dumps(one, ensure_ascii=index % 2 == 0) for index, one in enumerate(objects)]
            file.write(json.dumps(objects) if suffix == ".json" else "\n".join(lines))
    return path


def write_parquet(path: Path, columns: dict[str, list]) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table(columns), path)
    return path


def read(path: Path, columns=NAMES) -> list[tuple[str, str, int]]:
    return list(open_table(path, columns))


def texts(path: Path, columns=NAMES) -> list[tuple[str, str]]:
    return [row[:2] for row in read(path, columns)]


def refusal(path: Path, columns=NAMES) -> str:
    """The sentence with which a table is refused, before or while it is read; without the directory's name."""
    with pytest.raises(DataError) as caught:
        read(path, columns)
    sentence = str(caught.value)
    assert sentence.startswith(str(path))
    assert "\n" not in sentence
    return sentence.removeprefix(f"{path.parent}{os.sep}")


@pytest.mark.parametrize(
    "name", ["p.tsv", "p.csv", "p.jsonl", "p.ndjson", "P.TSV", "p.tsv.gz", "p.csv.gz", "p.jsonl.gz"]
)
def test_a_text_is_what_stands_in_its_row(tmp_path, name):
    assert texts(write_table(tmp_path / name, PAIRS)) == PAIRS


@pytest.mark.parametrize("name", ["p.json", "p.parquet"])
def test_a_text_is_what_stands_in_its_list_or_column(tmp_path, name):
    assert texts(write_table(tmp_path / name, PAIRS)) == PAIRS


TEXT = st.text(st.characters(codec="utf-8", exclude_characters="\0\t\n\r"), max_size=8)


@given(
    pairs=st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=5), name=st.sampled_from(["p.tsv", "p.csv", "p.jsonl"])
)
@settings(max_examples=30)
def test_any_text_survives_any_format(tmp_path_factory, pairs, name):
    path = write_table(tmp_path_factory.mktemp("any") / name, pairs)
    assert texts(path) == [tuple(unicodedata.normalize("NFC", text) for text in pair) for pair in pairs]


@pytest.mark.parametrize(("name", "first"), [("p.tsv", 2), ("p.csv", 2), ("p.jsonl", 1)])
def test_rows_are_numbered_by_their_line(tmp_path, name, first):
    table = open_table(write_table(tmp_path / name, PAIRS), NAMES)
    assert [number for *_, number in table] == list(range(first, first + len(PAIRS)))
    assert table.place(7) == f"{tmp_path / name}, line 7"


def test_rows_over_several_lines_are_numbered_by_the_line_that_they_begin_in(write):
    path = write("p.csv", 'en,ne\n"a\nb",क\nc,"ख, ""ग"""\n')
    assert read(path) == [("a\nb", "क", 2), ("c", 'ख, "ग"', 4)]
    assert open_table(path, NAMES).place(2) == f"{path}, line 2"
    assert read(write("p.csv", b'en,ne\r\n"a\r\nb",x\r\nc,d\r\n')) == [("a\r\nb", "x", 2), ("c", "d", 4)]


def test_many_rows_keep_their_order_and_number(tmp_path):
    pairs = [(f"sentence {number}", f"वाक्य {number}") for number in range(2500)]
    for name in ("p.tsv", "p.jsonl"):
        rows = read(write_table(tmp_path / name, pairs))
        assert [row[:2] for row in rows] == pairs
        assert rows[-1][2] - rows[0][2] == 2499


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_and_marks_are_no_part_of_a_text(write, name, mark, end):
    between = "\t" if name == "p.tsv" else ","
    lines = [between.join(cells) for cells in (("en", "ne"), ("a", "क"), ("b", ""))]
    assert read(write(name, mark + end.join(lines) + end)) == [("a", "क", 2), ("b", "", 3)]
    lines[0] = between.join(("y", "x"))  # with numbers there are no names
    assert read(write(name, mark + end.join(lines)), ("2", "1")) == [("x", "y", 1), ("क", "a", 2), ("", "b", 3)]


@pytest.mark.parametrize("sign", [";", "\t"])
def test_a_csv_with_other_signs_between_its_columns_is_read(write, sign):
    lines = ["en;ne;note", "Yes, I am.;हो;1,5", '"a; b";"c"""; ']
    content = "\n".join(lines).replace(";", sign)
    expected = [("Yes, I am.", "हो", 2), (f"a{sign} b", 'c"', 3)]
    assert read(write("p.csv", content)) == expected
    content = "\n".join(["x;y;z", *lines[1:]]).replace(";", sign)
    assert read(write("p.csv", content), ("1", "2")) == [("x", "y", 1), *expected]


@pytest.mark.parametrize("name", ["p.tsv", "p.csv"])
def test_names_of_columns_are_no_pair(write, name):
    between = "\t" if name == "p.tsv" else ","
    for names in ("en", "ne"), ("English", "Nepali"), ("source", "target"):
        path = write(name, "".join(f"{between.join(cells)}\n" for cells in (names, ("a", "क"))))
        assert refusal(path, ("1", "2")).startswith(f"{name}, line 1 has names of columns, {', '.join(names)}, where")
        assert read(path, names) == [("a", "क", 2)]


def test_a_lone_cr_stays_in_its_text(write):
    assert read(write("p.tsv", "en\tne\na\rb\tc\n")) == [("a\rb", "c", 2)]
    assert read(write("p.jsonl", '{"en": "a",\r"ne": "b"}\n')) == [("a", "b", 1)]
    two = '{"en": "a", "ne": "b"}\r{"en": "c", "ne": "d"}\r'
    assert refusal(write("p.jsonl", two)).startswith("p.jsonl, line 1 has a CR in the middle")


def test_a_greek_question_mark_separates_no_columns(write):
    assert read(write("p.csv", "en;ne\nwhat\u037e;x\n")) == [("what;", "x", 2)]


def test_columns_of_json_may_be_in_translation_with_others_of_any_type(write):
    lines = [
        {"id": None, "translation": {"en": "a", "ne": "क"}},
        {"id": "x", "translation": {"de": "?", "ne": "ख", "en": "b"}},
        {"id": [1], "note": 5, "translation": {"ne": "ग", "en": "2020-01-01"}},
    ]
    expected = [("a", "क"), ("b", "ख"), ("2020-01-01", "ग")]
    assert texts(write("p.jsonl", "\n".join(map(json.dumps, lines)))) == expected
    assert texts(write("p.jsonl", "\ufeff" + "\r\n".join(map(json.dumps, lines)) + "\r\n")) == expected


def test_columns_of_parquet_may_be_in_translation(tmp_path):
    path = write_parquet(tmp_path / "p.parquet", {"id": [1, 2], "translation": [{"en": "a", "ne": "क"}, {"en": "b"}]})
    table = open_table(path, NAMES)
    assert table.place(2) == f"{path}, row 2"
    rows = iter(table)
    assert next(rows) == ("a", "क", 1)
    with pytest.raises(DataError, match="row 2: ne is null, not a text"):
        next(rows)


@pytest.mark.parametrize("name", ["p.tsv", "p.csv", "p.jsonl", "p.json", "p.parquet"])
def test_a_missing_column_is_told_with_those_there_are(tmp_path, name):
    sentence = refusal(write_table(tmp_path / name, [("a", "b")], ("en", "hi")))
    assert sentence.startswith(f"{name} has no column ne, only ")
    assert "en, hi" in sentence
    assert texts(tmp_path / name, ("hi", "en")) == [("b", "a")]


def test_a_file_without_column_names_is_understood(write):
    path = write("p.tsv", "I am a boy\tम केटा हुँ\n")
    assert "has no column en, only I am a boy, म केटा हुँ: name the columns" in refusal(path)
    assert "p.tsv has 2 columns: there are no columns 1 and 3" in refusal(path, ("1", "3"))
    assert "there are no columns 0 and 1" in refusal(path, ("0", "1"))
    with pytest.raises(ConfigError, match="both columns by name or both by number"):
        open_table(path, ("en", "2"))


def test_a_column_named_twice_is_refused(write):
    assert "p.csv has 2 columns named en" in refusal(write("p.csv", "en,en,ne\na,b,c\n"))


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("p.tsv", "en\tne\na\tb\nc\nd\te\n", "line 3 has 1 column, the first line has 2"),
        ("p.tsv", "en\tne\na\tb\tc\n", "line 2 has 3 columns, the first line has 2"),
        ("p.tsv", "en\tne\na\tb\n\n", "line 3 is empty"),
        ("p.tsv", "en\tne\n", "has column names and nothing below"),
        ("p.tsv", "\na\tb\n", "has no column en, only (no name)"),
        ("p.csv", "\n", "has no column en, only (none)"),
        ("p.tsv", "en\tne\na\0\tb\n", "line 2 has a NUL character"),
        ("p.tsv", b"en\tne\na\tb\xe9\n", "line 2 is not UTF-8"),
        ("p.tsv", "en\tne\n".encode("utf-16"), "is UTF-16"),
        ("p.tsv", "", "is empty"),
        ("p.tsv", "en\tne\na\t" + "b" * 10**6, "line 2 has more than 100,000 characters"),
        ("p.tsv.gz", "en\tne\na\tb\n", "not compressed by gzip"),
        ("p.tsv.gz", gzip.compress(b"en\tne\na\tb\n" * 100, mtime=0)[:-9], "is cut off, damaged or"),
        ("p.csv", 'en,ne\na,"b\nc,d\ne,f\n', "line 2 begins a row that is not CSV"),
        ("p.csv", 'en,ne\na,b\n"a"b,c\n', "line 3 begins a row that is not CSV"),
        ("p.csv", "en,ne\na\rb,c\n", "line 2 begins a row that is not CSV"),
        ("p.csv", 'en,ne\n"a\nb",c\nd,e,f\n', "line 4 has 3 columns"),
        ("p.csv", "en,ne\na,b\n\nc,d\n", "line 3 is empty"),
        ("p.csv", 'en,ne\n"' + "a b c\n" * 30_000 + '",x\n', "line 2 begins a row that is not CSV (field larger"),
        ("p.jsonl", '{"en": "a", "ne": "b"}\n{"en": "a"', "line 2 is not JSON"),
        ("p.jsonl", '{"en": "a", "ne": "b"}\n["a", "b"]\n', "line 2 is a list, not a JSON object"),
        ("p.jsonl", '{"en": "a", "ne": "b"}\n\n{"en": "a", "ne": "b"}\n', "line 2 is empty"),
        ("p.jsonl", '{"en": "a", "ne": "b"}\n{"en": 5, "ne": "b"}\n', "line 2: en is of type int, not a text"),
        ("p.jsonl", '{"en": "a", "ne": null}\n', "line 1: ne is null, not a text"),
        ("p.jsonl", '{"en": "a", "ne": "b"}\n{"ne": "b"}\n', "line 2 has no en"),
        ("p.jsonl", '{"translation": {"en": "a", "ne": "b"}}\n{"translation": null}', "line 2 has no translation.en"),
        ("p.jsonl", '{"en": "\\ud800", "ne": "b"}\n', "line 1: en has half of a surrogate pair"),
        ("p.jsonl", "[" * 90_000, "nested too deeply"),
        ("p.jsonl", '{"a": ' + "[" * 90_000, "line 1 is not JSON"),
        ("p.json", '{\n"data": []}', "line 1 is not JSON"),
        ("p.json", '[\n{"en": "a", "ne": "b"},\n{"en": }]', "line 3 is not JSON"),
        ("p.json", '[{"en": "a", "ne": "b"}, "c"]', "row 2 is text, not a JSON object"),
        ("p.json", "[]", "holds an empty list"),
        ("p.json", b'[{"en": "a",\n"ne": "\xff"}]', "line 2 is not UTF-8"),
        ("p.json", json.dumps([{"en": "a", "ne": "b" * (LONGEST_LINE + 1)}]), "row 1: ne has more than 100,000"),
        ("p.parquet", b"", "is not a Parquet file"),
        ("p.parquet", b"PAR1 and nothing of the kind", "is not a Parquet file"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(write, name, content, problem):
    assert problem in refusal(write(name, content))


def test_the_limit_of_fields_that_the_whole_process_has_is_left_as_it_was(write):
    before = csv.field_size_limit()
    open_table(write("p.csv", "en,ne\na,b\n"), ("en",))
    assert csv.field_size_limit() == before
    refusal(write("q.csv", 'en,ne\na,"b\nc,d\n'))
    assert csv.field_size_limit() == before


def test_values_of_parquet_that_are_no_texts_are_refused(tmp_path):
    for value, kind in ((5, "type int"), (None, "null"), (["a"], "type list"), (b"a", "type bytes")):
        path = write_parquet(tmp_path / "p.parquet", {"en": [value], "ne": ["b"]})
        assert f"row 1: en is {'of ' if value else ''}{kind}, not a text" in refusal(path)
    path = write_parquet(tmp_path / "p.parquet", {"en": ["a", "b" * (LONGEST_LINE + 1)], "ne": ["b", "c"]})
    assert "row 2: en has more than 100,000 characters" in refusal(path)
    assert "has no rows" in refusal(write_parquet(path, {"en": [], "ne": []}))


def test_missing_files_and_strange_names(tmp_path):
    with pytest.raises(DataError, match=r"none\.tsv does not exist"):
        open_table(tmp_path / "none.tsv", NAMES)
    for name in ("a[1].tsv", "a*.tsv", "with space.tsv", ".hidden.tsv", "अ.csv", "a:b.jsonl"):
        assert texts(write_table(tmp_path / name, [("a", name)])) == [("a", name)]


@pytest.fixture
def hub_layout(tmp_path) -> Path:
    """A dataset as the Hub stores it: configurations in the README, a file for each split."""
    directory = tmp_path / "corpus"
    for config, text in (("plain", "a"), ("short", "b")):
        for split in ("train", "validation"):
            pairs = [{"en": f"{text} {split} {row}", "ne": "क"} for row in range(3)]
            write_parquet(directory / config / f"{split}-00000-of-00001.parquet", {"translation": pairs})
    configs = "".join(
        f"- config_name: {config}\n  data_files:\n"
        + "".join(f"  - split: {split}\n    path: {config}/{split}-*\n" for split in ("train", "validation"))
        + ("  default: true\n" if config == "plain" else "")
        for config in ("plain", "short")
    )
    (directory / "README.md").write_text(f"---\nconfigs:\n{configs}---\n# A corpus\n")
    return directory


@pytest.mark.parametrize(
    ("config", "split", "first"),
    [("", "train", "a train 0"), ("", "validation", "a validation 0"), ("short", "train", "b train 0")],
)
def test_configurations_and_splits_of_a_dataset(hub_layout, config, split, first):
    table = open_dataset(str(hub_layout), config, split, NAMES)
    assert next(iter(table)) == (first, "क", 1)
    assert table.place(3) == f"{hub_layout}, row 3"


def test_what_a_dataset_lacks_is_named(hub_layout, tmp_path):
    with pytest.raises(DataError, match="has no split test, only train, validation"):
        open_dataset(str(hub_layout), "", "test", NAMES)
    with pytest.raises(DataError, match=r"cannot be read as a dataset .*long.*plain.*short"):
        open_dataset(str(hub_layout), "long", "train", NAMES)
    with pytest.raises(DataError, match="has no column hi, only en, ne"):
        open_dataset(str(hub_layout), "", "train", ("en", "hi"))
    (tmp_path / "nothing").mkdir()
    with pytest.raises(DataError, match="cannot be read as a dataset"):
        open_dataset(str(tmp_path / "nothing"), "", "train", NAMES)


def test_a_dataset_without_a_readme_is_read_by_the_names_of_its_files(tmp_path):
    write_parquet(tmp_path / "data" / "train-00000-of-00002.parquet", {"en": ["a"], "ne": ["क"]})
    write_parquet(tmp_path / "data" / "train-00001-of-00002.parquet", {"en": ["b"], "ne": ["ख"]})
    assert list(open_dataset(str(tmp_path), "", "train", NAMES)) == [("a", "क", 1), ("b", "ख", 2)]


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (OSError("no network\nat all."), "no directory here, and the Hub cannot be asked for it (no network at all)"),
        (None, "neither a directory here nor a public dataset on the Hub"),
    ],
)
def test_the_hub_is_asked_once_and_its_silence_is_one_sentence(monkeypatch, answer, sentence):
    from huggingface_hub.errors import RepositoryNotFoundError

    def dataset_info(self, name, timeout):
        assert timeout <= 10
        raise answer or RepositoryNotFoundError.__new__(RepositoryNotFoundError)

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)
    monkeypatch.setattr("datasets.load_dataset", lambda *_, **__: pytest.fail("it would try for long"))
    with pytest.raises(DataError) as caught:
        open_dataset("someone/corpus", "", "train", NAMES)
    assert sentence in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nobody_is_told_about_files_that_are_read_here(tmp_path, hub_layout, monkeypatch):
    asked = []

    def getaddrinfo(*names, **_):
        asked.append(names)
        raise OSError

    monkeypatch.setattr("socket.getaddrinfo", getaddrinfo)
    for name in ("p.tsv", "p.jsonl", "p.parquet"):
        texts(write_table(tmp_path / name, PAIRS))
    open_dataset(str(hub_layout), "", "train", NAMES)
    assert asked == []


def test_what_fails_while_rows_are_read_is_one_sentence():
    class Broken:
        def iter(self, batch_size):
            yield {"en": ["a"] * batch_size}
            raise RuntimeError("first line\n  second line.")

    batches = batches_of(Broken(), "corpus", 5)
    assert next(batches) == {"en": ["a"] * 5}
    with pytest.raises(
        DataError, match=r"^corpus, after row 5 cannot be read \(first line second line\): is it damaged\?$"
    ):
        next(batches)


def test_reading_is_quiet_and_leaves_no_files(tmp_path, monkeypatch, capfd):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    (tmp_path / "own").mkdir()
    texts(write_table(tmp_path / "own" / "p.tsv", PAIRS))
    refusal(tmp_path / "own" / "p.tsv", ("en", "hi"))
    (tmp_path / "own" / "p.parquet").write_bytes(b"no parquet")
    refusal(tmp_path / "own" / "p.parquet")
    assert logging.getLogger("datasets").level > logging.ERROR
    assert capfd.readouterr() == ("", "")
    assert list((tmp_path / "temporary").iterdir()) == []
    assert sorted(path.name for path in (tmp_path / "own").iterdir()) == ["p.parquet", "p.tsv"]
    assert "datasets" in sys.modules
