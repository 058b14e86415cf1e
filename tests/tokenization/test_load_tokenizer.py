import json

import pytest

from toolkit.errors import ModelError
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer, load_tokenizer

ALPHABET = CharacterTokenizer("abcनमे \n")


@pytest.fixture
def path(tmp_path):
    ALPHABET.save(tmp_path)
    return tmp_path / "tokenizer.json"


def test_two_tokenizers_in_one_directory_are_refused(path):
    SentencePieceTokenizer.train(["one two"] * 3, 300).save(path.parent)
    with pytest.raises(ModelError, match=r"has both tokenizer\.model and tokenizer\.json"):
        load_tokenizer(path.parent)
    path.unlink()
    assert isinstance(load_tokenizer(path.parent), SentencePieceTokenizer)


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer\.model does not exist, nor tokenizer\.json"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.json").mkdir()
    with pytest.raises(ModelError, match=r"tokenizer\.json cannot be read"):
        load_tokenizer(tmp_path)


def test_a_file_that_is_cut_off_is_refused_wherever_it_ends(path):
    whole = path.read_bytes()
    for size in range(len(whole.rstrip())):
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
            load_tokenizer(path.parent)


def changed(**values):
    return json.dumps({"version": 1, "kind": "character", "characters": "abc", **values})


@pytest.mark.parametrize(
    "content",
    [
        "null",
        "[]",
        "[" * 100_000,
        '{"version": 1}',
        '{"model": {"type": "BPE"}, "version": "1.0"}',
        '{"version": 1, "kind": "character"}',
        '{"version": 1, "kind": "byte", "characters": "abc"}',
        changed(kind=["character"]),
        *(changed(characters=value) for value in ("", "acb", "aab", ["a"], 3, None, "a\ud800")),
        changed(merges=[]),
        "\x00" * 40,
    ],
)
def test_a_foreign_or_damaged_file_is_refused(path, content):
    path.write_text(content)
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged or is not a tokenizer of this toolkit"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize("content", [changed().encode("utf-16"), b'{"kind": "caf\xe9"}'])
def test_another_encoding_is_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(ModelError, match="is damaged"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize("version", [0, 2, "1", True, None, [1]])
def test_another_version_is_named(path, version):
    path.write_text(changed(version=version))
    with pytest.raises(ModelError, match=r"has (no )?format version.*reads version 1"):
        load_tokenizer(path.parent)


def test_an_unknown_kind_is_named(path):
    path.write_text(changed(kind="word"))
    with pytest.raises(ModelError, match=r"kind 'word', this toolkit has character, byte"):
        load_tokenizer(path.parent)


@pytest.mark.parametrize("kind", [CharacterTokenizer, ByteTokenizer])
def test_a_tokenizer_of_the_other_kind_is_not_taken_for_this(kind, tmp_path):
    (ByteTokenizer() if kind is CharacterTokenizer else ALPHABET).save(tmp_path)
    with pytest.raises(ModelError, match="is damaged or is not"):
        kind.load(tmp_path)


def test_saving_twice_gives_the_same_file(path):
    first = path.read_bytes()
    load_tokenizer(path.parent).save(path.parent)
    assert path.read_bytes() == first
    assert "नमे" in first.decode()  # for people to read
