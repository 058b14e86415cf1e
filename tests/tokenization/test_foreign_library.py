"""Tokenizers of the tokenizers library under our ids, and the bytes of their tokens."""

import builtins
import json
import pickle

import pytest
from hypothesis import given

from tests.tokenization.traps import CORPUS, TEXTS
from toolkit.errors import DataError, ModelError
from toolkit.tokenization import Detokenizer, load_tokenizer
from toolkit.tokenization.foreign_library import LibraryTokenizer, byte_characters, token_bytes
from toolkit.tokenization.special import SPECIAL_TOKENS, UNK

MERGES = [("Ġ", "a"), ("b", "o"), ("bo", "y"), ("à", "¤"), ("Ġ", "boy")]


def content(**changes):
    """Byte-level BPE of GPT-2's kind: the end mark, 256 bytes, five merges, and a token that was added."""
    step = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    flags = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False}
    tokens = ["<|end|>", *byte_characters().values(), *map("".join, MERGES), "<|endoftext|>", "user:"]
    settings = {"dropout": None, "unk_token": None, "continuing_subword_prefix": "", "end_of_word_suffix": ""}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [
            {"id": len(tokens) - 2, "content": "<|endoftext|>", "special": True, **flags},
            {"id": len(tokens) - 1, "content": "user:", "special": False, **flags},
        ],
        "normalizer": None,
        "pre_tokenizer": step,
        "post_processor": step,
        "decoder": step,
        "model": {
            "type": "BPE",
            **settings,
            "fuse_unk": False,
            "vocab": {token: index for index, token in enumerate(tokens)},
            "merges": [list(pair) for pair in MERGES],
        },
        **changes,
    }


SIZE = len(content()["model"]["vocab"])
END = SIZE - 2
ROWS = [-1, -1, END, END, *[-1] * 12, *range(END), SIZE - 1, SIZE, SIZE + 1]  # two rows more than tokens


@pytest.fixture(scope="module")
def tokenizer():
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    return LibraryTokenizer(content(), ROWS)


@given(text=TEXTS)
def test_every_text_comes_back(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == text
    assert all(index >= len(SPECIAL_TOKENS) for index in ids)
    detokenizer = Detokenizer(tokenizer)
    assert "".join([*map(detokenizer.push, ids), detokenizer.flush()]) == text


def test_pieces_are_those_of_the_library(tokenizer):
    assert [tokenizer.piece(index) for index in tokenizer.encode("a boy user: <|endoftext|>")][:3] == ["a", "Ġboy", "Ġ"]
    assert [tokenizer.piece(index) for index in tokenizer.encode("user: boy")] == ["user:", "Ġboy"]
    assert tokenizer.surface(tokenizer.encode("user:")[0]) == b"user:"
    assert tokenizer.piece(16) == "<|end|>'"  # one of ours is called so
    assert tokenizer.pieces[-2:] == [f"<extra_{SIZE}>", f"<extra_{SIZE + 1}>"]
    assert tokenizer.surface(tokenizer.vocab_size - 1) == b""
    assert len(set(tokenizer.pieces)) == tokenizer.vocab_size == len(ROWS)


def test_a_copy_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    for copy in (load_tokenizer(tmp_path), pickle.loads(pickle.dumps(tokenizer))):
        assert copy.rows == tokenizer.rows
        assert copy.encode_batch(CORPUS) == tokenizer.encode_batch(CORPUS)
        assert copy.pieces == tokenizer.pieces


def test_a_limit_in_the_file_cuts_nothing_off():
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    limit = {"direction": "Right", "max_length": 2, "strategy": "LongestFirst", "stride": 0}
    limited = LibraryTokenizer(content(truncation=limit), ROWS)
    assert limited.decode(limited.encode("a long text")) == "a long text"


def test_what_a_text_cannot_have_is_unknown():
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    model = {"type": "WordLevel", "vocab": {"?": 0, "a": 1}, "unk_token": "?"}
    words = {**content(), "added_tokens": [], "model": model, "decoder": None, "pre_tokenizer": {"type": "Whitespace"}}
    tokenizer = LibraryTokenizer(words, [-1, 0, *[-1] * 14, 1])
    assert tokenizer.encode("a b") == [16, UNK]
    assert tokenizer.decode([16, UNK]) == " a\ufffd"


def test_what_is_no_text_is_refused(tokenizer):
    with pytest.raises(DataError, match="half of a surrogate pair"):
        tokenizer.encode("a\ud800")


def write(directory, **changes):
    settings = {"version": 1, "kind": "tokenizers", "rows": ROWS, "tokenizer": content(), **changes}
    (directory / "tokenizer.json").write_text(json.dumps(settings))


@pytest.mark.parametrize(
    "changes",
    [{"rows": rows} for rows in (None, [], ROWS[:16], [*ROWS, 10**12], [*ROWS[:-1], -1], [*ROWS[:-1], 0.5], ROWS[:40])]
    + [{"tokenizer": None}, {"more": 1}],
)
def test_a_damaged_file_is_refused(changes, tmp_path):
    write(tmp_path, **changes)
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        load_tokenizer(tmp_path)


def test_content_that_the_library_does_not_understand_is_refused(tmp_path):
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    write(tmp_path, tokenizer={"model": {"type": "Mystery"}})
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged, or of a later version"):
        load_tokenizer(tmp_path)


def test_a_missing_library_is_named(tmp_path, monkeypatch):
    def missing(name, *arguments, **settings):
        if name == "tokenizers":
            raise ModuleNotFoundError(name)
        return real(name, *arguments, **settings)

    real = builtins.__import__
    monkeypatch.setattr(builtins, "__import__", missing)
    write(tmp_path)
    with pytest.raises(ModelError, match=r"pip install tokenizers"):
        load_tokenizer(tmp_path)


def test_byte_characters_are_all_different_and_visible():
    characters = byte_characters()
    assert sorted(characters) == [*range(256)]
    assert len(set(characters.values())) == 256
    assert all(character.isprintable() and not character.isspace() for character in characters.values())
    assert [characters[ord(character)] for character in "a !\n"] == ["a", "Ġ", "!", "Ċ"]


@pytest.mark.parametrize(
    ("decoder", "token", "surface"),
    [
        ({"type": "ByteLevel"}, "Ġnaï", b" na\xef"),
        ({"type": "ByteLevel"}, "▁म", "▁म".encode()),  # not of this alphabet: an added token
        ({"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always"}, "▁a", b" a"),
        ({"type": "WordPiece", "prefix": "##", "cleanup": True}, "##s", b"s"),
        ({"type": "WordPiece", "prefix": "##", "cleanup": True}, "word", b" word"),
        ({"type": "BPEDecoder", "suffix": "</w>"}, "word</w>", b"word "),
        ({"type": "BPEDecoder", "suffix": "</w>"}, "word", b"word"),
        (None, "word", b" word"),
    ],
)
def test_a_token_has_the_bytes_that_its_decoder_gives(decoder, token, surface):
    assert token_bytes(decoder)(token) == surface


@pytest.mark.parametrize(
    ("token", "surface"), [("▁a", b" a"), ("<0x0A>", b"\n"), ("<0xE0>", b"\xe0"), ("<0xE>", b"<0xE>")]
)
def test_steps_follow_one_another_up_to_that_which_joins_them(token, surface):
    steps = [
        {"type": "Replace", "pattern": {"String": "▁"}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
        {"type": "Strip", "content": " ", "start": 1, "stop": 0},
    ]
    assert token_bytes({"type": "Sequence", "decoders": steps})(token) == surface


@pytest.mark.parametrize(
    "decoder", [{"type": "CTC"}, {}, {"type": "Replace", "pattern": {"Regex": "a"}, "content": ""}]
)
def test_another_decoder_is_named(decoder):
    with pytest.raises(ModelError, match="shows its tokens by a decoder"):
        token_bytes(decoder)
