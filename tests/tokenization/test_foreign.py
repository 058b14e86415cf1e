import base64
import io
import json
import pickle

import pytest
from hypothesis import given
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer

from tests.tokenization.traps import CORPUS, TEXTS
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.tokenization import Detokenizer, load_tokenizer
from toolkit.tokenization.foreign import ForeignSentencePieceTokenizer, piece_names
from toolkit.tokenization.special import BOS, EOS, SPECIAL_TOKENS, UNK

ENGLISH, NEPALI = ([line for line in CORPUS if line.isascii() == is_ascii] for is_ascii in (True, False))


def trained(texts, **settings):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(texts),
        model_writer=model,
        vocab_size=300,
        hard_vocab_limit=False,
        minloglevel=2,
        **settings,
    )
    return model.getvalue()


SOURCE, TARGET = trained(ENGLISH), trained(NEPALI)
BYTES = trained(ENGLISH, byte_fallback=True, add_dummy_prefix=False, normalization_rule_name="identity")


def pieces_of(*models):
    processors = [SentencePieceProcessor(model_proto=model) for model in models]
    return list(dict.fromkeys(each.id_to_piece(index) for each in processors for index in range(each.vocab_size())))


def made(*models, more=()):
    """A tokenizer for the pieces of models, whose foreign ids are <unk>, <s>, </s>, and all others after them."""
    tokens = [*pieces_of(*models), *more]
    rows = [-1, 0, 1, 2, *[-1] * 12, *range(3, len(tokens))]
    return ForeignSentencePieceTokenizer(piece_names(tokens, rows), rows, *models)


ALONE, PAIR, LOSSLESS = made(SOURCE), made(TARGET, SOURCE, more=[">>nep<<", "<mask_1>"]), made(BYTES)


@pytest.fixture(params=[ALONE, PAIR, PAIR.source, LOSSLESS], ids=["alone", "target", "source", "bytes"])
def tokenizer(request):
    return request.param


MODELS = [
    (tokenizer, SentencePieceProcessor(model_proto=model), set(tokenizer.pieces) - set(SPECIAL_TOKENS))
    for tokenizer, model in ((ALONE, SOURCE), (PAIR, TARGET), (PAIR.source, SOURCE), (LOSSLESS, BYTES))
]


@given(text=TEXTS)
def test_pieces_are_those_of_the_model(text):
    for tokenizer, model, known in MODELS:
        expected = [piece if piece in known else "<unk>" for piece in model.encode(text, out_type=str)]
        assert [tokenizer.piece(index) for index in tokenizer.encode(text)] == expected


@given(text=TEXTS)
def test_no_text_yields_a_special_id(text):
    for tokenizer in (ALONE, PAIR, PAIR.source, LOSSLESS):
        assert all(index == UNK or index >= len(SPECIAL_TOKENS) for index in tokenizer.encode(text))


@given(text=TEXTS)
def test_tokens_one_by_one_give_the_decoded_text(text):
    for tokenizer in (ALONE, PAIR, PAIR.source, LOSSLESS):
        ids = tokenizer.encode(text)
        detokenizer = Detokenizer(tokenizer)
        assert "".join([*map(detokenizer.push, ids), detokenizer.flush()]) == tokenizer.decode(ids)


def test_a_sentence_comes_back_with_a_space_in_front():
    assert ALONE.decode(ALONE.encode("I am a boy.")) == " I am a boy."
    assert PAIR.decode([BOS, *PAIR.encode("म केटा हुँ।"), EOS]) == " म केटा हुँ।"
    assert LOSSLESS.decode(LOSSLESS.encode("I am\na म.")) == "I am\na म."


def test_sources_and_targets_have_the_same_ids_for_the_same_pieces():
    assert UNK in PAIR.encode("boy")
    assert UNK in PAIR.source.encode("केटा")
    assert PAIR.encode(",") == PAIR.source.encode(",")
    assert UNK not in PAIR.encode(",")
    assert ALONE.source.encode("I am") == ALONE.encode("I am")


def test_a_language_in_front_of_a_source_is_one_token():
    language, text = PAIR.pieces.index(">>nep<<"), PAIR.source.encode("I am")
    assert PAIR.source.encode(" >>nep<< I am") == PAIR.source.encode(">>nep<<I am") == [language, *text]
    assert PAIR.source.encode(">>xyz<< I am") == [UNK, *text]
    assert language not in PAIR.source.encode("I am >>nep<<")
    assert language not in PAIR.encode(">>nep<< I am")
    assert len(ALONE.source.encode(">>nep<< I am")) > len(text) + 1  # it knows no languages
    assert PAIR.decode([language, PAIR.pieces.index("<mask_1>")]) == ""


def test_a_copy_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    loaded, sent = load_tokenizer(tmp_path), pickle.loads(pickle.dumps(tokenizer))
    for text in [*CORPUS[:7], ">>nep<< boy"]:
        assert sent.encode(text) == tokenizer.encode(text)
        assert loaded.source.encode(text) == tokenizer.source.encode(text)
    assert loaded.rows == sent.rows == tokenizer.rows
    assert [loaded.surface(index) for index in range(loaded.vocab_size)] == [
        tokenizer.surface(index) for index in range(tokenizer.vocab_size)
    ]


def test_names_are_all_different():
    pieces = piece_names(["<unk>", "a", "<s>", "a'", None, "a"], [*[-1] * 16, *range(6)])
    assert pieces[16:] == ["<unk>'", "a", "<s>'", "a'", "<extra_4>", "a''"]


def test_nothing_is_sampled(tokenizer):
    assert tokenizer.encode_batch(CORPUS[:3]) == [tokenizer.encode(text) for text in CORPUS[:3]]
    assert tokenizer.possible_ids(CORPUS).size == 0
    with pytest.raises(ConfigError, match=r"alpha is 0\.1"):
        tokenizer.encode_batch(CORPUS, 0.1)


def test_what_is_no_text_and_no_id_is_refused(tokenizer):
    with pytest.raises(DataError, match="half of a surrogate pair"):
        tokenizer.encode("a\ud800")
    for index in (-1, tokenizer.vocab_size):
        with pytest.raises(IndexError, match=f"id {index} is outside"):
            tokenizer.decode([index])


@pytest.mark.parametrize(
    "changes",
    [
        {"target": None},
        {"target": "?"},
        {"target": ""},
        {"source": 3},
        {"source": base64.b64encode(b"no model").decode()},
        {"rows": [0]},
        {"rows": None},
        {"pieces": ["a"]},
        {"pieces": None},
        {"more": 1},
    ],
)
def test_a_damaged_file_is_refused(changes, tmp_path):
    PAIR.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | changes))
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("piece", ["<s>", "a", "\ud800"])
def test_pieces_that_no_export_writes_are_refused(piece, tmp_path):
    PAIR.save(tmp_path)
    path = tmp_path / "tokenizer.json"
    settings = json.loads(path.read_text())
    settings["pieces"][17] = settings["pieces"][18] if piece == "a" else piece
    path.write_text(json.dumps(settings))
    with pytest.raises(ModelError, match=r"tokenizer\.json is damaged"):
        load_tokenizer(tmp_path)
