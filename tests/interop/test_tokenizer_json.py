import json
import re
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.interop.plain_library import PlainTokenizer
from tests.tokenization.traps import CORPUS, TEXTS, TRAPS
from toolkit.data.sentences import sentence_text, spaced
from toolkit.interop.tokenizer_json import MARK, cuts, own_content
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, SentencePieceTokenizer
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS

# The second corpus has pieces across the places where names would be cut first.
MARKED_UP = ["<b>ab</b> </s> </i> <s>x</s> <0x41> 0x41 <pad>"] * 5
TOKENIZERS = {
    "unigram": SentencePieceTokenizer.train(CORPUS, 400),
    "unigram of marked-up text": SentencePieceTokenizer.train(MARKED_UP + CORPUS, 420),
    "bpe": SentencePieceTokenizer.train(CORPUS, 400, "bpe"),
    "byte": ByteTokenizer(),
}
LATIN = CharacterTokenizer(map(chr, range(0x20, 0x250)))
CONFIGS = {
    "model that begins": GPTConfig(),
    "model without marks": GPTConfig(begin=False),
    "translator": Seq2SeqConfig(),
    "translator that ignores case": Seq2SeqConfig(ignore_case=True),
}


def expected(tokenizer, config, text):
    if isinstance(config, Seq2SeqConfig):
        return [*tokenizer.encode(spaced(text, config.ignore_case)), EOS]
    return [BOS] * config.begin + tokenizer.encode(text)


@pytest.fixture(params=sorted(TOKENIZERS), scope="module")
def tokenizer(request):
    return TOKENIZERS[request.param]


@pytest.fixture(params=sorted(CONFIGS), scope="module")
def config(request):
    return CONFIGS[request.param]


@pytest.fixture(scope="module")
def plain(tokenizer, config):
    return PlainTokenizer(json.loads(json.dumps(own_content(tokenizer, config))))


def comparable(text, plain):
    """Without what the export says to be different."""
    text = text.replace("Σ", "")
    return text if plain.is_unigram else text.replace("▁", "")


@settings(max_examples=30)
@given(text=TEXTS)
def test_every_text_has_the_same_ids(tokenizer, config, plain, text):
    text = comparable(text, plain)
    assert plain.encode(text) == expected(tokenizer, config, text)


@pytest.mark.parametrize("text", [*TRAPS, "".join(TRAPS), " a ▁<0xE2>\u2126▁", "", *CORPUS[:7]])
def test_every_trap_has_the_same_ids(tokenizer, config, plain, text):
    text = comparable(text, plain)
    assert plain.encode(text) == expected(tokenizer, config, text)


@given(text=st.text(alphabet=st.characters(min_codepoint=0x20, max_codepoint=0x17F, exclude_characters="İ")))
def test_known_characters_have_the_same_ids(config, text):
    plain = PlainTokenizer(own_content(LATIN, config))
    assert plain.encode(text) == expected(LATIN, config, text)


def test_a_character_that_is_refused_here_is_unknown_there():
    plain = PlainTokenizer(own_content(CharacterTokenizer("ab"), GPTConfig(begin=False)))
    assert plain.pieces[plain.encode("abcab")[2]] == "<unk>"


def test_ids_are_called_what_they_are_called_here(tokenizer, plain):
    assert plain.pieces == [tokenizer.piece(index) for index in range(tokenizer.vocab_size)]
    added = [(token["id"], token["content"]) for token in plain.content["added_tokens"]]
    assert added == [*enumerate(SPECIAL_TOKENS)]
    assert all(token["special"] for token in plain.content["added_tokens"])


@pytest.mark.parametrize(("pieces", "is_cut"), [(["x"], True), (["<s"], True), (["s>"], True), (["<s", "as>"], False)])
def test_a_name_is_cut_where_no_piece_reaches_across(pieces, is_cut):
    pattern = re.compile(cuts(pieces)[0]["pattern"]["Regex"])
    assert bool(pattern.search("a<s>b")) == is_cut
    assert not pattern.search(f"a{MARK}<s>b")


def library(tokenizer, config):
    tokenizers = pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    found = tokenizers.Tokenizer.from_str(json.dumps(own_content(tokenizer, config)))
    found.encode_special_tokens = True  # what split_special_tokens means
    return found


@settings(max_examples=30)
@given(text=TEXTS)
def test_the_library_gives_the_same_ids_and_texts(tokenizer, config, plain, text):
    # Newer versions of Unicode have more letters that can be put into lower case.
    text = "".join(c for c in comparable(text, plain) if unicodedata.category(c) != "Cn")
    theirs, ids = library(tokenizer, config), expected(tokenizer, config, text)
    assert theirs.encode(text).ids == ids
    is_translator = isinstance(config, Seq2SeqConfig)
    assert theirs.decode(ids) == (sentence_text(tokenizer, ids) if is_translator else tokenizer.decode(ids))
