import pytest

from toolkit.errors import ModelError
from toolkit.tokenization.library_surfaces import byte_characters, token_bytes


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
