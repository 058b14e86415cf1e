"""Conversations on the disk: what is stored is what the template says, shortened in front where it is too long."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolkit.chat import make_template
from toolkit.data import conversation_corpus
from toolkit.data.conversation_corpus import ConversationCorpus, truncate
from toolkit.data.conversations import Conversation, Message, messages_to_json
from toolkit.errors import ConfigError, DataError
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer

TEMPLATES = [make_template(name, ByteTokenizer(), begin) for name in ("control", "plain") for begin in (True, False)]
CONTROL = TEMPLATES[0]


def talk(*lengths: int, system: int = 0) -> list[Message]:
    """A conversation of messages of so many letters, which say of which message they are."""
    messages = [Message(("user", "assistant")[index % 2], "abcdefgh"[index] * n) for index, n in enumerate(lengths)]
    return [Message("system", "s" * system), *messages] if system else messages


def numbered(count: int) -> list[list[Message]]:
    return [[Message("user", f"Number {number}?"), Message("assistant", f"{number} म.")] for number in range(count)]


@pytest.fixture
def write(tmp_path):
    def write(talks, name="c.jsonl"):
        lines = (json.dumps({"messages": messages_to_json(one)}) + "\n" for one in talks)
        (tmp_path / name).write_text("".join(lines))
        return tmp_path / name

    return write


@pytest.fixture
def build(tmp_path, write):
    def build(train, valid=(), template=CONTROL, max_length=100, **settings):
        """train, valid: conversations; without the second, some of the first are taken out."""
        paths = [write(talks, f"{name}.jsonl") for name, talks in (("train", train), ("valid", valid)) if talks]
        return ConversationCorpus.build(
            tmp_path / "corpus", paths[:1], paths[1:], template, max_length, **{"valid_share": 0.1, **settings}
        )

    return build


def stored(corpus, split):
    ids, supervised = corpus.ids(split), corpus.supervised(split)
    assert np.array_equal(ids.offsets, supervised.offsets)
    return [(one.tolist(), flags.astype(bool).tolist()) for one, flags in zip(ids, supervised, strict=True)]


def expected(messages, template, most):
    """What the words of `fitted` say, tried one exchange after the other."""
    system, turns = messages[: messages[0].role == "system"], messages[messages[0].role == "system" :]
    for dropped in range(len(turns) // 2):
        ids, supervised = template.encode([*system, *turns[2 * dropped :]])
        while not supervised[-1]:
            ids, supervised = ids[:-1], supervised[:-1]
        if len(ids) <= most:
            return ids, supervised, dropped
    return None


@given(
    lengths=st.lists(st.tuples(st.integers(1, 12), st.integers(1, 12)), min_size=1, max_size=4),
    system=st.integers(0, 5),
    template=st.sampled_from(TEMPLATES),
    most=st.integers(3, 120),
)
@settings(max_examples=150)
def test_the_oldest_exchanges_go_and_the_system_message_stays(lengths, system, template, most):
    messages = talk(*(length for exchange in lengths for length in exchange), system=system)
    (found,) = truncate([Conversation(messages, "x")], template, most)
    wanted = expected(messages, template, most)
    assert (found and (list(found.ids), list(found.supervised), found.dropped)) == wanted
    if found:
        begin = system and template.encode(messages[:1]).ids
        assert found.ids[: len(begin or [])] == (begin or [])
        assert found.supervised[-1]
        assert found.ids[-1] == template.end


@pytest.mark.parametrize("template", TEMPLATES)
def test_ids_and_flags_are_those_of_the_template(build, template):
    train, valid = [talk(3, 5, 2, 1, system=4), talk(1, 1), talk(9, 8, 7, 6)], [talk(2, 3, 4, 5)]
    corpus = build(train, valid, template)
    for split, talks in ("train", train), ("valid", valid):
        assert stored(corpus, split) == [expected(messages, template, 101)[:2] for messages in talks]
        replies = [one.content for messages in talks for one in messages if one.role == "assistant"]
        part = corpus.report[split]
        assert part["exchanges"] == len(replies)
        assert part["supervised"] == sum(map(len, replies)) + 2 * len(replies)  # a space before, an end marker after
        assert corpus.text_bytes(split) == sum(map(len, replies))
        assert part["tokens"] == len(corpus.ids(split).values)


def test_supervised_tokens_are_the_replies_and_their_ends(build):
    corpus = build([[Message("user", "तिमी?"), Message("assistant", "म।"), *talk(4, 2)]], talks := numbered(3))
    for split, wanted in ("train", ["म।", "bb"]), ("valid", [one[1].content for one in talks]):
        ids, flags = corpus.ids(split).values, corpus.supervised(split).values
        learned = [one for text in wanted for one in (*CONTROL.tokenizer.encode(f" {text}"), CONTROL.end)]
        assert ids[flags == 1].tolist() == learned
        assert set(flags.tolist()) == {0, 1}
        assert corpus.text_bytes(split) == sum(len(text.encode()) for text in wanted)


def test_what_is_too_long_is_shortened_or_left_out_and_counted(build):
    whole, long, longer, endless = talk(2, 2), talk(4, 4, 4, 4), talk(4, 4, 4, 4, 2, 2), talk(2, 2, 20, 20)
    corpus = build([whole, long, endless, longer, endless], [whole], max_length=16)
    assert [len(ids) for ids in corpus.ids("train")] == [11, 15, 11]  # <s>, and three ids around every message
    part = corpus.report["train"]
    name = str(corpus.directory.parent / "train.jsonl")
    assert part["shortened"] == {"conversations": 2, "exchanges": 3, "places": [f"{name}, line 2", f"{name}, line 4"]}
    assert part["left_out"] == {"conversations": 2, "exchanges": 4, "places": [f"{name}, line 3", f"{name}, line 5"]}
    assert (part["conversations"], part["exchanges"], corpus.text_bytes("train")) == (3, 3, 2 + 4 + 2)
    assert corpus.describe() == [
        f"training: 3 conversations of 3 exchanges, 37 tokens, {2 + 4 + 2 + 6} of them to be learned",
        "    2 conversations of more than 17 tokens have lost their oldest exchanges, 3 exchanges in all "
        f"({name}, line 2; {name}, line 4)",
        "    2 conversations are left out, whose last exchanges alone have more than 17 tokens "
        f"({name}, line 3; {name}, line 5)",
        "validation: 1 conversation of 1 exchange, 11 tokens, 4 of them to be learned",
    ]


def test_a_conversation_may_be_one_token_longer_than_what_a_model_reads(build):
    assert build([talk(2, 2)], [talk(1, 1)], max_length=10).report["train"]["shortened"]["conversations"] == 0
    with pytest.raises(DataError, match="no conversation that is short enough to train on: cut them shorter, or take"):
        build([talk(2, 2)], [talk(1, 1)], max_length=9)


def test_of_many_places_some_are_named(build):
    corpus = build([talk(4, 4, 4, 4)] * 5, [talk(1, 1)], max_length=16)
    assert len(corpus.report["train"]["shortened"]["places"]) == 3
    assert corpus.describe()[1].endswith("line 3; ...)")


@pytest.mark.parametrize("together", [1, 7, 256])
def test_one_of_every_ten_is_taken_out_by_the_seed(build, monkeypatch, together):
    monkeypatch.setattr(conversation_corpus, "_TOGETHER", together)
    talks = numbered(60)

    def taken(seed):
        corpus = build(talks, seed=seed)
        ids = {split: [one for one, _ in stored(corpus, split)] for split in ("train", "valid")}
        numbers = [index for index, one in enumerate(talks) if CONTROL.encode(one).ids in ids["valid"]]
        assert ids["train"] == [CONTROL.encode(one).ids for index, one in enumerate(talks) if index not in numbers]
        assert ids["valid"] == [CONTROL.encode(talks[index]).ids for index in numbers]
        assert corpus.report["valid"]["taken_out"]
        assert corpus.describe()[-1].endswith(", taken out of the training conversations")
        return numbers

    assert [number // 10 for number in taken(0)] == list(range(6))
    assert taken(0) == taken(0) != taken(1)


def test_an_opened_corpus_is_the_one_that_was_built(build):
    built = build(numbered(30), numbered(3))
    opened = ConversationCorpus.open(built.directory)
    assert ConversationCorpus.exists(built.directory)
    assert not ConversationCorpus.exists(built.directory.parent)
    assert opened.report == built.report
    assert opened.fingerprint == built.fingerprint == build(numbered(30), numbered(3)).fingerprint
    assert stored(opened, "train") == stored(built, "train")
    assert build(numbered(31), numbered(3)).fingerprint != opened.fingerprint
    assert build(numbered(30), numbered(3), TEMPLATES[2]).fingerprint != opened.fingerprint


def test_ids_are_narrow_where_the_vocabulary_is(build, monkeypatch):
    assert build(numbered(2), numbered(1)).ids("train").values.dtype == np.uint16
    monkeypatch.setattr("toolkit.data.corpus._NARROW", 271)
    corpus = build(numbered(2), numbered(1))
    assert corpus.ids("train").values.dtype == np.int32
    assert corpus.supervised("train").values.dtype == np.uint8
    assert isinstance(corpus.ids("train").values.base, np.memmap)


def test_several_files_follow_each_other(write, tmp_path):
    paths = [write(numbered(3), "a.jsonl"), write([talk(1, 1)], "b.jsonl")]
    corpus = ConversationCorpus.build(tmp_path / "corpus", paths, paths[1:], CONTROL, 100)
    talks = [*numbered(3), talk(1, 1)]
    assert [ids for ids, _ in stored(corpus, "train")] == [CONTROL.encode(one).ids for one in talks]
    assert [source["conversations"] for source in corpus.report["sources"]] == [1, 3, 1]
    assert corpus.describe()[1:3] == [f"    {paths[0]}: 3 conversations", f"    {paths[1]}: 1 conversation"]


def test_what_the_tokenizer_cannot_read_is_told_with_its_place(build):
    template = make_template("control", CharacterTokenizer.train(["abcdefgh "]), True)
    with pytest.raises(DataError, match=r"train\.jsonl, line 2: "):
        build([talk(1, 1), numbered(1)[0]], [talk(1, 1)], template)


@pytest.mark.parametrize("share", [0, -1, 0.51, float("nan")])
def test_settings_that_are_none_are_refused(build, share):
    with pytest.raises(ConfigError, match="valid_share is"):
        build(numbered(3), valid_share=share)
    with pytest.raises(ConfigError, match="max_length is 0"):
        build(numbered(3), max_length=0)


@pytest.mark.parametrize("seed", range(3))
def test_one_conversation_is_too_few_to_take_some_out(build, seed):
    with pytest.raises(DataError, match=r"there is no conversation to (train|validate) on: give more of them"):
        build(numbered(1), seed=seed, valid_share=0.5)


def test_a_failure_leaves_what_was_there(build, monkeypatch):
    corpus = build(numbered(3), numbered(1))
    before = stored(corpus, "train")
    for name in "finish_corpus", "truncate":
        with monkeypatch.context() as broken:
            broken.delattr(conversation_corpus, name)
            with pytest.raises(NameError):
                build(numbered(5), numbered(1))
    with pytest.raises(DataError, match="line 1 ends with a message of the user"):
        build([talk(1)], numbered(1))
    assert stored(ConversationCorpus.open(corpus.directory), "train") == before
    assert {path.name for path in corpus.directory.parent.iterdir()} == {"corpus", "train.jsonl", "valid.jsonl"}


@pytest.mark.parametrize("name", ["train.ids.values.npy", "valid.supervised.offsets.npy", "corpus.json"])
def test_damage_is_noticed(build, name):
    path = build(numbered(3), numbered(1)).directory / name
    data = bytearray(path.read_bytes())
    data[-2] ^= 1
    path.write_bytes(data)
    with pytest.raises(DataError, match=f"{name} is missing or damaged"):
        ConversationCorpus.open(path.parent)
    path.unlink()
    with pytest.raises(DataError, match=f"{name} is missing or damaged"):
        ConversationCorpus.open(path.parent)


def test_memory_does_not_grow_with_the_conversations(write, tmp_path, monkeypatch):
    monkeypatch.setattr(conversation_corpus, "_TOGETHER", 8)
    template = make_template("control", Hasty(), True)

    def peak(count):
        path = write([talk(5000, 5000)] * count)
        tracemalloc.start()
        ConversationCorpus.build(tmp_path / "corpus", [path], [path], template, 100)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    peak(1)  # what is imported
    assert peak(600) < 1.3 * peak(200)  # 6 MB and 2 MB, of which one is read at a time


class Hasty(ByteTokenizer):
    """Of every text the first bytes only, to be quick."""

    def encode_batch(self, texts, alpha=0.0, seed=None):
        return super().encode_batch((text[:9] for text in texts), alpha, seed)
