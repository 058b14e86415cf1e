import errno
import json
import pickle
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import pytest

from tests.checks import encode_pairs
from tests.conftest import ENGLISH, NEPALI
from toolkit.data import pair_corpus as module
from toolkit.data.batches import epoch_batches, split_batch
from toolkit.data.filters import Filters
from toolkit.data.pair_corpus import PairCorpus
from toolkit.data.pairs import Located
from toolkit.data.sentences import SubwordSampler
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization import ByteTokenizer, SentencePieceTokenizer

TOKENIZER = SentencePieceTokenizer.train([*ENGLISH, *NEPALI] * 5, 400)


@dataclass
class Memory:
    """Pairs in memory as a source; line numbers begin with 2, as below a header."""

    pairs: list[tuple[str, str]]
    name: str = "my.tsv"
    iterations: int = field(default=0)

    def __iter__(self) -> Iterator[Located]:
        self.iterations += 1
        return (Located(*pair, line) for pair, line in zip(self.pairs, count(2), strict=False))

    def place(self, line: int, side: str = "source") -> str:
        return f"{self.name}, line {line}"

    def fingerprint(self) -> str:
        return ""


def numbered(size, prefix=""):
    return [(f"{prefix}source {number}", f"{prefix}target {number}") for number in range(size)]


@pytest.fixture
def build(tmp_path):
    def build(train, valid=(("valid", "valid"),), filters=None, **settings):
        sources = [source if isinstance(source, Memory) else Memory(source) for source in train]
        valid = [Memory(list(valid), "valid.tsv")] if valid else []
        return PairCorpus.build(tmp_path / "corpus", sources, valid, filters or Filters(), **settings)

    return build


def snapshot(directory):
    return {path.relative_to(directory): path.read_bytes() for path in directory.rglob("*") if path.is_file()}


def test_texts_are_kept_in_order_tidied_and_composed(build):
    corpus = build([[(" a\tb ", "e\u0301"), ("b  c", "म")], [("d\r", "ट")]])
    assert corpus.pairs("train") == [("a b", "\u00e9"), ("b c", "म"), ("d", "ट")]
    assert list(corpus.texts("train", "target")) == ["\u00e9", "म", "ट"]
    assert corpus.pairs("valid") == [("valid", "valid")]


def test_every_source_is_read_once(build):
    sources = [Memory(numbered(5)), Memory(numbered(5, "other "))]
    build(sources)
    assert [source.iterations for source in sources] == [1, 1]


@pytest.mark.parametrize(("size", "lines"), [(10, 3), (10, 5), (1000, 200), (2, 1)])
def test_without_validation_pairs_some_are_taken_out_evenly(build, size, lines):
    pairs = numbered(size)
    corpus = build([pairs], valid=(), valid_lines=lines)
    taken = [index * size // lines for index in range(lines)]
    assert corpus.pairs("valid") == [pairs[index] for index in taken]
    assert corpus.pairs("train") == [pair for index, pair in enumerate(pairs) if index not in taken]
    assert corpus.report["valid"]["taken_out"] == lines


def test_copies_of_what_was_taken_out_are_not_trained_on(build):
    corpus = build([numbered(10) * 3], valid=(), valid_lines=5)
    held_out = {source for source, _ in corpus.pairs("valid")}
    assert held_out.isdisjoint(corpus.texts("train", "source"))
    assert corpus.report["train"]["findings"]["overlap"]["pairs"] == 30 - 5 - len(corpus.pairs("train"))


@pytest.mark.parametrize(
    ("pair", "side"), [((" ", "b"), "source"), (("a", "\u2003\t"), "target"), (("", ""), "source")]
)
@pytest.mark.parametrize("reverse", [False, True])
def test_a_blank_side_is_refused_with_its_place(build, pair, side, reverse):
    with pytest.raises(DataError, match=f"^my.tsv, line 5 has a blank {side}: "):
        build([[*numbered(3), pair]], reverse=reverse)


def test_blank_sides_are_dropped_on_request_in_both_sets(build):
    blank = [("", "b"), ("a", " ")]
    corpus = build([[*blank, *numbered(3), *blank]], valid=[("v", "v"), *blank], filters=Filters(empty="drop"))
    assert corpus.pairs("train") == numbered(3)
    assert corpus.pairs("valid") == [("v", "v")]
    finding = corpus.report["train"]["findings"]["empty"]
    assert finding == {
        "pairs": 4,
        "dropped": True,
        "places": ["my.tsv, line 2", "my.tsv, line 3", "my.tsv, line 7"],
    }
    assert corpus.report["valid"]["findings"]["empty"]["places"] == ["valid.tsv, line 3", "valid.tsv, line 4"]


def test_lengths_and_ratios_are_counted_by_kind_and_only_in_training(build):
    odd = [("a", "abc"), ("abcdef" * 3, "abcdef" * 3), ("abc", "abcdefgh")]
    filters = Filters(min_characters=2, max_characters=15, max_ratio=2)
    corpus = build([[*numbered(4), *odd]], valid=odd, filters=filters)
    assert corpus.pairs("train") == numbered(4)
    assert corpus.pairs("valid") == odd
    found = {kind: finding["places"] for kind, finding in corpus.report["train"]["findings"].items()}
    assert found == {"short": ["my.tsv, line 6"], "long": ["my.tsv, line 7"], "ratio": ["my.tsv, line 8"]}


@pytest.mark.parametrize("decision", ["keep", "drop"])
def test_duplicates_are_reported_and_the_first_stays(build, decision):
    first = [("a", "x"), ("a", "y"), ("b", "x"), ("a ", " x")]
    corpus = build([first, Memory([("b", "x"), ("c", "x")], "other")], filters=Filters(duplicates=decision))
    finding = corpus.report["train"]["findings"]["duplicate"]
    assert finding == {"pairs": 2, "dropped": decision == "drop", "places": ["my.tsv, line 5", "other, line 2"]}
    every = [("a", "x"), ("a", "y"), ("b", "x"), ("a", "x"), ("b", "x"), ("c", "x")]
    assert corpus.pairs("train") == ([*every[:3], every[5]] if decision == "drop" else every)


@pytest.mark.parametrize("decision", ["keep", "drop"])
def test_sources_of_validation_are_reported_whatever_their_case_and_translation(build, decision):
    pairs = [("Held out", "x"), ("new", "y"), ("held  OUT", "z")]
    corpus = build([pairs], valid=[("held out", "v")], filters=Filters(overlap=decision))
    finding = corpus.report["train"]["findings"]["overlap"]
    assert finding == {"pairs": 2, "dropped": decision == "drop", "places": ["my.tsv, line 2", "my.tsv, line 4"]}
    assert len(corpus.pairs("train")) == (1 if decision == "drop" else 3)


def test_reversed_pairs_are_swapped_before_they_are_compared(build):
    corpus = build([[("a", "same"), ("b", "other")]], valid=[("v", "same")], reverse=True)
    assert corpus.pairs("train") == [("other", "b")]
    assert corpus.pairs("valid") == [("same", "v")]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"train": [[("a", "b")]], "filters": Filters(min_characters=3)}, "left to train on: the filters left out 1"),
        ({"train": [[("Valid", "b")]]}, "nothing is left to train on.*1 pair whose source is also a validation source"),
        ({"train": [[]]}, "nothing is left to train on: the sources have no pairs"),
        ({"train": []}, "nothing is left to train on"),
        ({"train": [[("a", "b")]], "valid": [("", "")], "filters": Filters(empty="drop")}, "left to validate on"),
        ({"train": [numbered(9)], "valid": (), "valid_lines": 5}, "9 pairs are too few to take 5 out"),
        ({"train": [[("\ud800", "b")]]}, "my.tsv, line 2 has half of a surrogate pair"),
    ],
)
def test_what_leaves_nothing_is_refused(build, settings, words):
    with pytest.raises(DataError, match=words):
        build(**settings)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weights": [1.0]}, "the weights are 1 and the sources of training pairs 2"),
        ({"weights": [1.0, 0.0]}, "the weights is 0"),
        ({"weights": [1.0, -1]}, "the weights is -1"),
        ({"weights": [float("nan"), 1]}, "the weights is nan"),
        ({"weights": [float("inf"), 1]}, "the weights is inf"),
        ({"valid": (), "valid_lines": 0}, "valid_lines is 0"),
    ],
)
def test_settings_that_mean_nothing_are_refused(build, settings, words):
    with pytest.raises(ConfigError, match=words):
        build([numbered(3), numbered(3)], **settings)


def test_weights_become_repeats_of_the_encoded_pairs(build):
    long = [("source " * 40, "target")]
    corpus = build([numbered(3), [], [*long, *numbered(2, "b ")], numbered(1, "c ")], weights=[1, 7, 0.5, 3])
    corpus.encode(TOKENIZER, 60, ignore_case=False)
    assert corpus.repeats().tolist() == [1, 1, 1, 0.5, 0.5, 3]
    assert [source["kept"] for source in corpus.report["sources"]] == [1, 3, 0, 3, 1]


def test_weights_of_one_are_no_weights(build):
    corpus = build([numbered(3), numbered(2)], weights=[1, 1.0])
    corpus.encode(TOKENIZER, 60, ignore_case=False)
    assert corpus.repeats() is None


@pytest.mark.parametrize("ignore_case", [False, True])
def test_ids_are_those_of_the_texts_and_long_pairs_are_named(build, ignore_case):
    pairs = [*zip(ENGLISH, NEPALI, strict=True), ("He drinks. " * 20, "x"), *numbered(3), ("x", "म " * 60)]
    corpus = build([pairs])
    assert not corpus.encoded
    corpus.encode(TOKENIZER, 40, ignore_case)
    expected, dropped = encode_pairs(corpus.pairs("train"), TOKENIZER, 40, ignore_case)
    examples = corpus.examples("train")
    assert [tuple(side.tolist() for side in example) for example in examples] == [
        tuple(side.tolist() for side in example) for example in expected
    ]
    finding = corpus.report["train"]["findings"]["tokens"]
    assert finding == {"pairs": dropped, "dropped": True, "places": ["my.tsv, line 8", "my.tsv, line 12"]}
    assert list(corpus.example_texts("train")) == [*pairs[:6], *pairs[7:10]]
    assert len(corpus.examples("valid")) == 1


def test_sources_are_read_by_what_reads_sources(build):
    class Pair(ByteTokenizer):
        source = TOKENIZER

    corpus = build([[("one boy", "one boy")]])
    corpus.encode(Pair(), 60, ignore_case=False)
    [example] = corpus.examples("train")
    assert example.source.tolist() == TOKENIZER.encode(" one boy")
    assert example.target.tolist() == ByteTokenizer().encode(" one boy")


def test_the_end_mark_counts_towards_the_length(build):
    text = "म " * 10
    corpus = build([[("a", text)]])
    length = len(TOKENIZER.encode(f" {text.strip()}"))
    assert length > len(TOKENIZER.encode(" valid"))
    corpus.encode(TOKENIZER, length + 1, ignore_case=False)
    assert len(corpus.examples("train")) == 1
    with pytest.raises(DataError, match=f"every training pair has a side of more than {length - 1} tokens"):
        corpus.encode(TOKENIZER, length, ignore_case=False)
    assert len(corpus.examples("train")) == 1  # the earlier ids are still there


def test_batches_of_stored_pairs_are_those_of_pairs_in_memory(build):
    rng = np.random.default_rng(0)
    pairs = [("a " * a, "b " * b) for a, b in rng.integers(1, 20, (300, 2)).tolist()]
    corpus = build([pairs])
    corpus.encode(TOKENIZER, 100, ignore_case=False)
    stored = corpus.examples("train")
    listed, _ = encode_pairs(corpus.pairs("train"), TOKENIZER, 100)
    both = [epoch_batches(examples, 100, np.random.default_rng(1)) for examples in (stored, listed)]
    assert [batch.tolist() for batch in both[0]] == [batch.tolist() for batch in both[1]]
    for batch in both[0][:20]:
        parts = [split_batch(batch, examples, 2) for examples in (stored, listed)]
        assert all(np.array_equal(one, other) for one, other in zip(*parts, strict=True))


def test_stored_pairs_can_be_sampled_in_another_process(build):
    corpus = build([list(zip(ENGLISH, NEPALI, strict=True))])
    corpus.encode(TOKENIZER, 60, ignore_case=True)
    examples = corpus.examples("train")
    sampler = SubwordSampler(TOKENIZER, corpus.example_texts("train"), 0.1, 60, ignore_case=True)
    copy, examples_copy = pickle.loads(pickle.dumps((sampler, examples)))
    for index in (5, 0):
        (here,) = sampler.sample([index], [examples[index]], (1, index))
        (there,) = copy.sample([index], [examples_copy[index]], (1, index))
        assert here.source.tolist() == there.source.tolist()
        assert TOKENIZER.decode(here.target).strip() == NEPALI[index]


def test_a_corpus_is_opened_again_with_all_it_knows(build, tmp_path):
    built = build([Memory([*numbered(3), ("x " * 90, "y")], "a"), Memory(numbered(3, "b "), "b")], weights=[2, 1])
    built.encode(TOKENIZER, 60, ignore_case=False)
    opened = PairCorpus.open(tmp_path / "corpus")
    assert (opened.report, opened.describe(), opened.fingerprint) == (
        built.report,
        built.describe(),
        built.fingerprint,
    )
    assert opened.pairs("train") == built.pairs("train")
    assert np.array_equal(opened.repeats(), built.repeats())
    opened.encode(TOKENIZER, 60, ignore_case=False)
    assert opened.report == built.report
    assert json.loads(json.dumps(opened.report)) == opened.report


def test_the_description_says_what_was_read_and_left_out(build):
    pairs = [*numbered(3), ("", "x"), ("valid", "x"), ("x " * 90, "y")]
    corpus = build([pairs, Memory(numbered(2), "more.tsv")], filters=Filters(empty="drop"), weights=[1, 0.5])
    corpus.encode(TOKENIZER, 60, ignore_case=False)
    assert corpus.describe() == [
        "training pairs: 8 read, 6 kept",
        "    my.tsv: 6 read, 4 kept",
        "    more.tsv: 2 read, 2 kept, weight 0.5",
        "    1 pair with a blank side is left out (my.tsv, line 5)",
        "    2 pairs equal to one before are kept (more.tsv, line 2; more.tsv, line 3)",
        "    1 pair whose source is also a validation source is left out (my.tsv, line 6)",
        "    1 pair with a side of more than 59 tokens is left out (my.tsv, line 7)",
        "validation pairs: 1 read, 1 kept",
    ]


def test_the_fingerprint_is_of_what_was_kept(build):
    first = build([[*numbered(3), ("", "")]], filters=Filters(empty="drop")).fingerprint
    assert build([numbered(3)]).fingerprint == first
    others = [
        build([numbered(3)[::-1]]).fingerprint,
        build([numbered(4)]).fingerprint,
        build([numbered(3)], reverse=True).fingerprint,
        build([numbered(3)], valid=[("v", "w")]).fingerprint,
    ]
    assert len({first, *others}) == 5


class Broken(Memory):
    def __iter__(self) -> Iterator[Located]:
        yield Located("a", "b", 1)
        raise DataError("my.tsv, line 2 is not UTF-8")


def test_a_failure_leaves_the_earlier_corpus_as_it_was(build, tmp_path, monkeypatch):
    build([numbered(3)]).encode(TOKENIZER, 60, ignore_case=False)
    before = snapshot(tmp_path)
    with pytest.raises(DataError, match="line 2 is not UTF-8"):
        build([Broken([])])

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(module.RaggedWriter, "extend", full)
    encode = lambda: PairCorpus.open(tmp_path / "corpus").encode(TOKENIZER, 60, False)  # noqa: E731
    for action in (lambda: build([numbered(4)]), encode):
        with pytest.raises(DataError, match=r"corpus(/ids)? cannot be written: No space left on device"):
            action()
    assert snapshot(tmp_path) == before


@pytest.mark.parametrize("name", ["corpus.json", "train.npy", "lines.npy", "source.values.npy"])
def test_a_damaged_corpus_is_named(build, tmp_path, name):
    build([numbered(3)])
    path = tmp_path / "corpus" / name
    path.write_bytes(path.read_bytes()[:20])
    with pytest.raises(DataError, match=f"{name} is missing or damaged"):
        PairCorpus.open(tmp_path / "corpus")


def test_what_is_not_there_is_named(build, tmp_path):
    with pytest.raises(DataError, match="missing or damaged"):
        PairCorpus.open(tmp_path / "nowhere")
    with pytest.raises(DataError, match="missing or damaged"):
        build([numbered(3)]).examples("train")


def test_memory_does_not_grow_with_the_texts(build):
    """32 MB of text pass through a few chunks; a pair leaves some dozen bytes."""

    class Long(Memory):
        def __iter__(self) -> Iterator[Located]:
            return (Located(f"{number:0999} ", f"{number:1000}", number) for number in range(1, 16_000))

    tracemalloc.start()
    build([Long([])])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 14e6
