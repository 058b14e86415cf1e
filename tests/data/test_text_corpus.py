import json
import tracemalloc
from dataclasses import dataclass

import numpy as np
import pytest

from toolkit.data import text_corpus
from toolkit.data.text_corpus import TextCorpus
from toolkit.data.texts import Piece, divided_documents
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization import ByteTokenizer
from toolkit.tokenization.special import BOS, EOS


@dataclass
class Memory:
    """A text in memory as a source, in pieces of a few characters."""

    text: str
    documents: str = "none"
    size: int = 7
    name: str = "my.txt"

    @property
    def bytes(self):
        return None

    @property
    def separator(self):
        return {"line": "\n", "blank": "\n\n", "none": ""}[self.documents]

    def __iter__(self):
        pieces = (self.text[begin : begin + self.size] for begin in range(0, len(self.text), self.size))
        if self.documents == "none":
            return (Piece(piece, False) for piece in pieces)
        return divided_documents(pieces, self.documents)

    def fingerprint(self):
        return ""


@pytest.fixture
def build(tmp_path):
    def build(*train, valid=(), tokenizer="byte", vocab_size=300, marks=None, **settings):
        marks = train[0].documents != "none" if marks is None else marks
        return TextCorpus.build(tmp_path / "corpus", train, valid, tokenizer, vocab_size, marks, **settings)

    return build


def texts(corpus, split):
    return [corpus.tokenizer.decode(ids) for ids in corpus.documents(split)]


def snapshot(directory):
    """All that is not about the time it took."""
    return {
        path.name: path.read_bytes() for path in directory.iterdir() if not path.name.startswith(("corpus", "check"))
    }


def numbered(count):
    return [f"the story of number {number} म" for number in range(count)]


@pytest.mark.parametrize("size", [20, 99, 1000, 1001])
@pytest.mark.parametrize("tokenizer", ["byte", "character"])
def test_of_one_text_the_first_nine_tenths_are_trained_on(build, size, tokenizer):
    text = ("नेपाल and text. " * size)[:size]
    corpus = build(Memory(text), tokenizer=tokenizer)
    assert texts(corpus, "train") == [text[: int(0.9 * size)]]
    assert texts(corpus, "valid") == [text[int(0.9 * size) :]]
    assert corpus.report["valid"]["taken_out"]


def test_files_without_documents_follow_each_other(build):
    corpus = build(Memory("one text, "), Memory("goes on"), valid=[Memory("valid"), Memory("ation")])
    assert texts(corpus, "train") == ["one text, goes on"]
    assert texts(corpus, "valid") == ["validation"]
    assert BOS not in corpus.documents("train")[0]


@pytest.mark.parametrize("documents", ["line", "blank"])
@pytest.mark.parametrize("tokenizer", ["byte", "character", "unigram", "bpe"])
def test_documents_stand_between_marks(build, documents, tokenizer):
    source = Memory((Memory("", documents).separator).join(numbered(30)), documents)
    corpus = build(source, tokenizer=tokenizer, vocab_size=310)
    taken = [numbered(30)[index] for index in (9, 19, 29)]
    assert texts(corpus, "valid") == taken
    assert texts(corpus, "train") == [text for text in numbered(30) if text not in taken]
    for split in "train", "valid":
        assert all(ids[0] == BOS and ids[-1] == EOS for ids in corpus.documents(split))
    assert texts(build(source, valid=[source]), "valid") == texts(build(source, valid=[source]), "train")


def test_documents_without_marks_are_sequences_too(build):
    corpus = build(Memory("one\ntwo", "line"), valid=[Memory("three", "line")], marks=False)
    assert [ids.tolist() for ids in corpus.documents("train")] == [ByteTokenizer().encode(t) for t in ("one", "two")]


def test_bytes_are_those_of_the_text_with_what_stood_between_documents(build):
    text = "\n\n".join(numbered(4))
    corpus = build(Memory(text, "blank"), valid=[Memory("é\n\nb", "blank")])
    assert corpus.text_bytes("train") == len((text + "\n\n").encode())
    assert corpus.text_bytes("valid") == 2 + 2 + 1 + 2
    assert build(Memory(text), valid=[Memory("é")]).text_bytes("train") == len(text.encode())


def test_little_is_taken_out_of_much(build, monkeypatch):
    monkeypatch.setattr(text_corpus, "LARGEST_VALIDATION", 100)
    corpus = build(Memory("\n".join(numbered(400)), "line"))
    assert 50 <= corpus.report["valid"]["bytes"] <= 110
    taken = texts(corpus, "valid")
    assert numbered(400).index(taken[1]) - numbered(400).index(taken[0]) > 50  # spread over all of it
    corpus = build(Memory("x" * 5000))
    assert [corpus.report[split]["tokens"] for split in ("train", "valid")] == [4900, 100]
    corpus = build(Memory("x" * 3000 + "\n" + "y" * 2000, "line"))  # no document is small enough: the end of the text
    assert [corpus.report[split]["tokens"] for split in ("train", "valid")] == [4900 + 4, 100 + 2]


@pytest.mark.parametrize(("vocabulary", "dtype"), [("byte", np.uint16), ("character", np.uint16)])
def test_ids_are_narrow(build, vocabulary, dtype):
    corpus = build(Memory("text " * 9), tokenizer=vocabulary)
    assert corpus.documents("train").values.dtype == dtype
    assert isinstance(corpus.documents("train").values.base, np.memmap)


def test_large_vocabularies_are_stored_in_whole_words(build, monkeypatch):
    monkeypatch.setattr("toolkit.data.corpus._NARROW", 271)
    assert build(Memory("text " * 9)).documents("train").values.dtype == np.int32


def test_a_vocabulary_is_not_learned_from_what_is_taken_out(build):
    lines = [f"{'zebra' if number % 10 == 9 else 'horse'} runs" for number in range(50)]
    corpus = build(Memory("\n".join(lines), "line"), tokenizer="unigram", vocab_size=300)
    pieces = {corpus.tokenizer.piece(index) for index in range(corpus.tokenizer.vocab_size)}
    assert not any("z" in piece for piece in pieces if not piece.startswith("<"))
    corpus = build(Memory("horse " * 9 + "z"), tokenizer="bpe", vocab_size=300)
    pieces = {corpus.tokenizer.piece(index) for index in range(corpus.tokenizer.vocab_size)}
    assert not any("z" in piece for piece in pieces if not piece.startswith("<"))


def test_a_character_vocabulary_has_all_characters_of_both_sets(build):
    corpus = build(Memory("abc"), valid=[Memory("déf")], tokenizer="character")
    assert corpus.tokenizer.vocab_size == 16 + 6
    assert texts(corpus, "valid") == ["déf"]


def test_a_sample_of_much_text_is_learned_from(build, monkeypatch):
    monkeypatch.setattr(text_corpus, "_SAMPLE", 3 * text_corpus.SLICE)
    words = " ".join(f"word{number}" for number in range(30_000))
    learned = []
    train = text_corpus.SentencePieceTokenizer.train
    monkeypatch.setattr(
        text_corpus.SentencePieceTokenizer,
        "train",
        lambda texts, *rest: train(learned.extend(texts) or list(learned), *rest),
    )
    first = build(Memory(words, size=50_000), tokenizer="bpe")
    assert 2 * text_corpus.SLICE < sum(map(len, learned)) < 4 * text_corpus.SLICE
    assert all(text in words for text in learned)
    files = snapshot(first.directory)
    learned.clear()
    assert snapshot(build(Memory(words, size=50_000), tokenizer="bpe").directory) == files
    learned.clear()
    assert snapshot(build(Memory(words, size=50_000), tokenizer="bpe", seed=1).directory) != files


def test_an_opened_corpus_is_the_one_that_was_built(build):
    built = build(Memory("\n".join(numbered(30)), "line"), tokenizer="unigram", vocab_size=310)
    opened = TextCorpus.open(built.directory)
    assert opened.report == built.report
    assert opened.fingerprint == built.fingerprint
    assert texts(opened, "train") == texts(built, "train")
    assert opened.tokenizer.vocab_size == built.report["tokenizer"]["vocab_size"]
    other = build(Memory("\n".join(numbered(31)), "line"), tokenizer="unigram", vocab_size=310)
    assert other.fingerprint != opened.fingerprint


def test_what_was_read_is_described(build):
    corpus = build(Memory("\n".join(numbered(30)), "line"))
    first, second, third = corpus.describe()
    assert first.startswith(f"training text: 27 documents, {corpus.text_bytes('train'):,} bytes, ")
    assert second.startswith("validation text: 3 documents, ")
    assert second.endswith(", taken out of the training text")
    assert third.startswith("tokenizer: byte, 272 tokens; ")


@pytest.mark.parametrize(
    ("train", "valid", "problem"),
    [("", "valid", "nothing is left to train on"), ("train", " \n", "nothing is left to validate on")],
)
def test_nothing_to_learn_or_to_validate_is_refused(build, train, valid, problem):
    with pytest.raises(DataError, match=problem):
        build(Memory(train, "line"), valid=[Memory(valid, "line")])
    with pytest.raises(DataError, match="less than two tokens"):
        build(Memory("abcde"))


@pytest.mark.parametrize("share", [0, -1, 0.51, float("nan")])
def test_a_share_that_is_none_is_refused(build, share):
    with pytest.raises(ConfigError, match="valid_share is"):
        build(Memory("some text"), valid_share=share)


def test_a_failure_leaves_what_was_there(build, monkeypatch):
    corpus = build(Memory("some text " * 9))
    before = snapshot(corpus.directory)
    for patch in ("finish_corpus", "_encode"):
        with monkeypatch.context() as broken:
            broken.delattr(text_corpus, patch)
            with pytest.raises(NameError):
                build(Memory("other text " * 9))
    with pytest.raises(DataError):
        build(Memory(""))
    assert snapshot(corpus.directory) == before
    assert [path.name for path in corpus.directory.parent.iterdir()] == ["corpus"]


@pytest.mark.parametrize("name", ["train.values.npy", "valid.offsets.npy", "tokenizer.json", "corpus.json"])
def test_damage_is_noticed(build, name):
    directory = build(Memory("some text " * 9)).directory
    path = directory / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{name} is missing or damaged"):
        TextCorpus.open(directory)


def test_memory_does_not_grow_with_the_text(build):
    class Endless(Memory):
        def __iter__(self):
            line = " ".join(f"word{number} नेपाल" for number in range(6000))
            return (Piece(line, False) for _ in range(int(self.text)))

    def peak(pieces):
        tracemalloc.start()
        build(Endless(pieces), tokenizer="character")
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    assert peak("60") < 1.2 * peak("6")


def test_the_report_is_json(build):
    corpus = build(Memory("some text " * 9))
    assert json.loads((corpus.directory / "corpus.json").read_text())["train"] == {
        "documents": 1,
        "characters": 81,
        "bytes": 81,
        "tokens": 81,
        "taken_out": False,
    }
