import os
import subprocess
import sys
from pathlib import Path

import pytest

from toolkit.data.filters import Filters
from toolkit.data.pair_corpus import PairCorpus
from toolkit.data.pairs import LineFiles, Located, open_sources
from toolkit.errors import ConfigError, DataError


def open_data(*data, columns=("en", "ne")):
    return open_sources([], [], [str(one) for one in data], *columns)


def test_lines_stand_side_by_side_again_and_again(write):
    source = LineFiles(write("my.en", "a\n\ncafe\u0301\r\n"), write("my.ne", "क\nख\n "))
    pairs = [Located("a", "क", 1), Located("", "ख", 2), Located("caf\u00e9", " ", 3)]
    assert list(source) == pairs
    iterator = iter(source)
    assert next(iterator) == pairs[0]
    assert list(source) == pairs  # from the beginning, whatever another iteration does
    assert source.place(7) == f"{source.name}, line 7"
    assert source.name.endswith("my.en")


@pytest.mark.parametrize("longer", [0, 1])
def test_unequal_files_are_refused_before_anything_is_read(write, longer):
    texts = ["a\nb\nc\n", "\xff\n"] if longer == 0 else ["a\n", "b\nc\n"]
    paths = [write("my.en", texts[0]), write("my.ne", texts[1])]
    long, short = paths[longer], paths[1 - longer]
    with pytest.raises(DataError, match=rf"{short.name} has 1 line, .*: line 2 of .*{long.name} has no translation"):
        LineFiles(*paths)


def test_files_that_change_while_they_are_read_are_noticed(write):
    source = LineFiles(write("my.en", "a\nb\n"), write("my.ne", "क\nख\n"))
    write("my.ne", "क\n")
    with pytest.raises(DataError, match="changed while they were read"):
        list(source)


def test_what_is_wrong_with_a_file_is_told_when_it_is_opened_or_reached(tmp_path, write):
    good = write("good.en", "a\nb\n")
    with pytest.raises(DataError, match=r"none\.ne does not exist"):
        LineFiles(good, tmp_path / "none.ne")
    with pytest.raises(DataError, match="is a directory"):
        LineFiles(tmp_path, good)
    with pytest.raises(DataError, match=r"bad\.ne, line 2 is not UTF-8"):
        list(LineFiles(good, write("bad.ne", b"x\n\xe9\n")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")
@pytest.mark.parametrize("name", ["pipe", "pipe.tsv"])
def test_a_pipe_is_refused_instead_of_waited_for(tmp_path, write, name):
    os.mkfifo(tmp_path / name)
    with pytest.raises(DataError, match="is a pipe or a device"):
        LineFiles(tmp_path / name, write("my.ne", "a\n"))
    if name.endswith(".tsv"):
        with pytest.raises(DataError, match="is a pipe or a device"):
            open_data(tmp_path / name)


def test_sources_come_in_the_order_of_the_arguments(write):
    lines = [(write(f"{name}.en", f"{name}\n"), write(f"{name}.ne", "क\n")) for name in ("one", "two")]
    tables = [write("three.tsv", "en\tne\nthree\tक\n"), write("four.jsonl", '{"en": "four", "ne": "क"}\n')]
    sources = open_sources(*zip(*lines, strict=True), [str(table) for table in tables], "en", "ne")
    assert [text for source in sources for text, _, _ in source] == ["one", "two", "three", "four"]
    assert [Path(source.name).name for source in sources] == ["one.en", "two.en", "three.tsv", "four.jsonl"]
    assert [source.place(line).rpartition(", ")[2] for source in sources for _, _, line in source] == [
        "line 1",
        "line 1",
        "line 2",
        "line 1",
    ]
    assert open_sources([], [], [], "en", "ne") == []


def test_arguments_that_do_not_fit_together(write):
    with pytest.raises(ConfigError, match="2 source and 1 target files"):
        open_sources([Path("a"), Path("b")], [Path("c")], [], "en", "ne")
    with pytest.raises(ConfigError, match="source and target column are both en"):
        open_data(write("p.tsv", "en\tne\na\tb\n"), columns=("en", "en"))


def test_datasets_and_their_parts_are_named_with_colons(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    for name in ("corpus", "with:colon"):
        (tmp_path / name / "data").mkdir(parents=True)
        for split in ("train", "test"):
            table = pa.table({"en": [f"{name} {split}"], "ne": ["क"]})
            pq.write_table(table, tmp_path / name / "data" / f"{split}-00000-of-00001.parquet")
    texts = {"corpus": "corpus train", "corpus:default": "corpus train", "corpus::test": "corpus test"}
    texts |= {"corpus:default:test": "corpus test", "with:colon": "with:colon train"}
    for name, text in texts.items():
        (source,) = open_data(tmp_path / name)
        assert list(source) == [Located(text, "क", 1)]
        assert source.place(1) == f"{source.name}, row 1"
    with pytest.raises(DataError, match="has no split valid, only train, test"):
        open_data(f"{tmp_path / 'corpus'}::valid")


def test_names_of_nothing_are_told_apart(tmp_path, write, monkeypatch):
    def dataset_info(self, name, timeout):
        raise OSError(f"asked for {name}")

    monkeypatch.setattr("huggingface_hub.HfApi.dataset_info", dataset_info)
    monkeypatch.chdir(tmp_path)
    text = write("pairs.txt", "a\n")
    table = write("pairs.tsv", "en\tne\na\tb\n")
    sentences = {
        "someone/corpus": r"\(asked for someone/corpus\)",
        "someone/corpus:config:test": r"\(asked for someone/corpus\)",
        "data/none.tsv": r"^data/none\.tsv does not exist",
        "data/none.jsonl.gz": "does not exist",
        "none": "^none does not exist: give a table",
        "./some/thing": "does not exist",
        "a/b/c": "does not exist",
        "": "does not exist",
        "x" * 5000: "does not exist",
        str(text): r"pairs\.txt is not a table",
        f"{table}:config": "is a file, which has no configurations and splits: leave out :config",
    }
    for name, sentence in sentences.items():
        with pytest.raises(DataError, match=sentence):
            open_data(name)


@pytest.mark.parametrize("kind", ["lines", "tsv", "dataset"])
def test_a_fingerprint_follows_the_contents_and_not_the_name(tmp_path, write, kind):
    import pyarrow as pa
    import pyarrow.parquet as pq

    def fingerprint(name: str, source: str, target: str) -> str:
        if kind == "lines":
            return LineFiles(write(f"{name}.en", f"{source}\n"), write(f"{name}.ne", f"{target}\n")).fingerprint()
        if kind == "tsv":
            return open_data(write(f"{name}.tsv", f"en\tne\n{source}\t{target}\n"))[0].fingerprint()
        (tmp_path / name / "data").mkdir(parents=True)
        pq.write_table(pa.table({"en": [source], "ne": [target]}), tmp_path / name / "data" / "train-0.parquet")
        return open_data(tmp_path / name)[0].fingerprint()

    first = fingerprint("a", "one", "two")
    assert fingerprint("b", "one", "two") == first
    changed = [fingerprint("c", "onet", "wo"), fingerprint("d", "two", "one"), fingerprint("e", "one", "two ")]
    assert len({first, *changed}) == 4
    assert all(int(digest, 16) >= 0 and len(digest) == 64 for digest in changed)


def test_line_aligned_text_needs_no_heavy_library(write):
    paths = [write("my.en", "a\n"), write("my.ne", "क\n")]
    script = (
        "import sys; from pathlib import Path; from toolkit.data.pairs import open_sources\n"
        "source, = open_sources([Path(sys.argv[1])], [Path(sys.argv[2])], [], 'en', 'ne')\n"
        "assert len(list(source)) == 1\n"
        "assert not {'datasets', 'pyarrow', 'pandas', 'huggingface_hub'} & set(sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", script, *map(str, paths)], check=True, timeout=60)


@pytest.mark.parametrize("missing", ["datasets", "huggingface_hub"])
def test_without_datasets_only_parquet_and_its_layout_are_out_of_reach(tmp_path, write, monkeypatch, missing):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, missing, None)  # as where it is not installed
    write("pairs.parquet", b"PAR1 PAR1")
    (tmp_path / "corpus").mkdir()
    write("corpus/train.csv", "en,ne\na,b\n")
    for name in ("pairs.parquet", "corpus"):
        with pytest.raises(DataError, match=rf"^{name} cannot be read without the library datasets: pip install "):
            open_data(name)
    write("pairs.csv", "en,ne\na,b\n")
    write("pairs.jsonl", '{"en": "a", "ne": "b"}\n')
    for name in ("pairs.csv", "pairs.jsonl"):
        assert [texts for *texts, _ in open_data(name)[0]] == [["a", "b"]]
    if missing == "huggingface_hub":
        with pytest.raises(DataError, match=r"^someone/corpus cannot be read without the library datasets"):
            open_data("someone/corpus")


def test_a_fingerprint_knows_where_one_file_ends(write):
    def fingerprint(source: str, target: str) -> str:
        return LineFiles(write("my.en", source), write("my.ne", target)).fingerprint()

    assert fingerprint("a\nb", "c\nd") != fingerprint("a\nbc", "\nd")


@pytest.fixture
def embedded_pairs(tmp_path, monkeypatch):
    """A small corpus where the embedded one would be."""
    folder = tmp_path / "embedded"
    folder.mkdir()
    for name in "train", "valid":
        for side in "en", "ne":
            (folder / f"{name}.{side}").write_text("".join(f"{name} {side} {number}\n" for number in range(20)))
    monkeypatch.setattr("toolkit.data.pairs.embedded", lambda _name: folder)
    monkeypatch.chdir(tmp_path)


def test_the_embedded_pairs_have_a_name(tmp_path, embedded_pairs):
    (there,) = open_sources([], [], ["en_ne"], "en", "ne")
    assert (there.name, next(iter(there))) == ("en_ne", ("train en 0", "train ne 0", 1))
    (back,) = open_sources([], [], ["en_ne"], "ne", "en", "valid")
    assert next(iter(back)) == ("valid ne 0", "valid en 0", 1)
    with pytest.raises(ConfigError, match=r"^en_ne has the columns en and ne, not 'en' and 'de'$"):
        open_sources([], [], ["en_ne"], "en", "de")
    (tmp_path / "en_ne").mkdir()  # a directory at hand comes first
    with pytest.raises(DataError, match="en_ne"):
        open_sources([], [], ["en_ne"], "en", "ne")


def test_what_is_validated_on_is_taken_out_of_the_other_pairs(tmp_path, embedded_pairs):
    for side in "en", "ne":
        (tmp_path / f"new.{side}").write_text("".join(f"new {side} {number}\n" for number in range(10)))
    new = [tmp_path / "new.en"], [tmp_path / "new.ne"]
    sources = open_sources(*new, ["en_ne"], "en", "ne")
    corpus = PairCorpus.build(tmp_path / "corpus", sources, [], Filters(), (1, 0.5), valid_lines=4)
    assert [source for source, _ in corpus.pairs("valid")] == ["new en 0", "new en 2", "new en 5", "new en 7"]
    assert len(corpus.pairs("train")) == 26
    alone = PairCorpus.build(tmp_path / "alone", sources[1:], [], Filters(), valid_lines=4)
    assert [source for source, _ in alone.pairs("valid")] == [f"train en {number}" for number in (0, 5, 10, 15)]
