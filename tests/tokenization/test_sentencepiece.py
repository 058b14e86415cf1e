import io
import pickle
import subprocess
import sys
import unicodedata
from typing import get_args

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sentencepiece import SentencePieceTrainer

from tests.tokenization.traps import CORPUS, TEXTS, TRAPS
from toolkit.errors import ConfigError, DataError, ModelError
from toolkit.tokenization import SentencePieceTokenizer, load_tokenizer, special
from toolkit.tokenization.subword_training import ModelType

TOKENIZERS = {kind: SentencePieceTokenizer.train(CORPUS, 400, kind) for kind in get_args(ModelType)}


@pytest.fixture(params=sorted(TOKENIZERS), scope="module")
def tokenizer(request):
    return TOKENIZERS[request.param]


@settings(deadline=None, max_examples=300)
@given(text=TEXTS)
def test_every_text_comes_back_and_yields_no_special_id(tokenizer, text):
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == unicodedata.normalize("NFC", text)
    assert all(len(special.SPECIAL_TOKENS) <= index < tokenizer.vocab_size for index in ids)


@pytest.mark.parametrize("text", [*TRAPS, "".join(TRAPS), "", "नमस्ते " * 20_000])
def test_every_trap_comes_back(tokenizer, text):
    assert tokenizer.decode(tokenizer.encode(text)) == unicodedata.normalize("NFC", text)


@pytest.mark.parametrize("corpus", [["ab"] * 3, ["▁"] * 3 + ["x"], ["12345"]])
@pytest.mark.parametrize("kind", get_args(ModelType))
def test_a_space_is_no_mark_even_if_training_saw_no_space(corpus, kind):
    tokenizer = SentencePieceTokenizer.train(corpus, 400, kind)
    assert tokenizer.decode(tokenizer.encode(" ▁ a ▁▁")) == " ▁ a ▁▁"


@settings(deadline=None)
@given(texts=st.lists(TEXTS, max_size=6))
def test_a_batch_is_its_texts_one_by_one(tokenizer, texts):
    assert tokenizer.encode_batch(texts) == [tokenizer.encode(text) for text in texts]
    assert tokenizer.encode_batch(iter(texts)) == tokenizer.encode_batch(texts)


@settings(max_examples=200)
@given(texts=st.lists(TEXTS, max_size=4), alpha=st.sampled_from([0.05, 0.3, 1.0]), seed=st.integers(0, 2**70))
def test_sampled_ids_spell_the_same_text(tokenizer, texts, alpha, seed):
    sampled = tokenizer.encode_batch(texts, alpha, seed)
    assert [tokenizer.decode(ids) for ids in sampled] == [unicodedata.normalize("NFC", text) for text in texts]
    assert tokenizer.encode_batch(texts, alpha, seed) == sampled
    possible = {*tokenizer.possible_ids(texts).tolist(), *(i for ids in tokenizer.encode_batch(texts) for i in ids)}
    assert {index for ids in sampled for index in ids} <= possible


def test_a_seed_decides_and_no_seed_draws_anew(tokenizer):
    drawn = [tokenizer.encode_batch(CORPUS, 0.1, seed) for seed in (0, [0, 1], [1, 0], None, None)]
    assert all(one != other for number, one in enumerate(drawn) for other in drawn[:number])
    assert drawn[0] != tokenizer.encode_batch(CORPUS) == tokenizer.encode_batch(CORPUS, 0.0, 3)


def test_samples_are_the_same_in_every_process(tokenizer):
    code = (
        "import pickle, sys; tokenizer, texts = pickle.load(sys.stdin.buffer);"
        "sys.stdout.write(str(tokenizer.encode_batch(texts, 0.1, [7, 1])))"
    )
    data = pickle.dumps((tokenizer, CORPUS))
    found = subprocess.run([sys.executable, "-c", code], input=data, capture_output=True, check=True).stdout
    assert found.decode() == str(tokenizer.encode_batch(CORPUS, 0.1, [7, 1]))


@pytest.mark.parametrize("alpha", [-0.1, float("nan"), float("inf")])
def test_an_alpha_that_means_nothing_is_refused(tokenizer, alpha):
    with pytest.raises(ConfigError, match="alpha is"):
        tokenizer.encode_batch(["a"], alpha)


def test_a_probability_above_one_is_refused_and_a_sharp_distribution_is_not():
    with pytest.raises(ConfigError, match=r"alpha is 1\.5.*at most 1"):
        TOKENIZERS["bpe"].encode_batch(["a"], 1.5)
    assert TOKENIZERS["unigram"].encode_batch(CORPUS, 300.0, 1) == TOKENIZERS["unigram"].encode_batch(CORPUS)


def test_possible_ids_are_the_pieces_of_the_text(tokenizer):
    pieces = {tokenizer.piece(index) for index in tokenizer.possible_ids(["I am\ta boy"])}
    assert {"I", "▁", "b", "o", "y"} <= pieces
    assert all(piece in "I▁am\ta▁boy" for piece in pieces)
    assert tokenizer.possible_ids(["▁", ""]).tolist() == []


def test_canonically_equal_texts_have_equal_ids(tokenizer):
    assert tokenizer.encode("cafe\u0301") == tokenizer.encode("caf\u00e9")


def test_decode_takes_numpy_integers_and_skips_control_ids(tokenizer):
    ids = tokenizer.encode("म केटा हुँ ▁")
    framed = [special.BOS, *ids[:-1], special.PAD, special.USER, *ids[-1:], special.EOS, *special.SPARE]
    for kind in (np.int32, np.int64, np.uint16):
        assert tokenizer.decode(np.array(framed, dtype=kind)) == "म केटा हुँ ▁"
        assert tokenizer.decode(list(np.array(framed, dtype=kind))) == "म केटा हुँ ▁"


def test_decode_shows_what_is_lost(tokenizer):
    assert tokenizer.decode([special.UNK]) == "\ufffd"
    assert "\ufffd" in tokenizer.decode(tokenizer.encode("▁")[:2])


@pytest.mark.parametrize("beyond", [-1, 10**6])
def test_decode_refuses_ids_outside_the_vocabulary(tokenizer, beyond):
    with pytest.raises(IndexError):
        tokenizer.decode([beyond])


def test_special_tokens_have_their_fixed_ids(tokenizer):
    assert [tokenizer.piece(index) for index in range(16)] == list(special.SPECIAL_TOKENS)
    assert (special.PAD, special.UNK, special.BOS, special.EOS) == (0, 1, 2, 3)
    assert [
        special.SPECIAL_TOKENS[index] for index in (special.SYSTEM, special.USER, special.ASSISTANT, special.END)
    ] == [
        "<|system|>",
        "<|user|>",
        "<|assistant|>",
        "<|end|>",
    ]
    assert [special.SPECIAL_TOKENS[index] for index in special.SPARE] == [f"<|spare_{index}|>" for index in range(8)]


@pytest.mark.parametrize("kind", get_args(ModelType))
@pytest.mark.parametrize("after", ["", " ", "।", ".", ", "])
def test_a_frequent_word_becomes_one_piece_whatever_always_follows_it(kind, after):
    corpus = [f"{n} पढ्छ{after}{n * n if after.endswith(' ') else ''}" for n in range(200)]
    tokenizer = SentencePieceTokenizer.train(corpus, 320, kind)
    assert [tokenizer.piece(index) for index in tokenizer.encode(" पढ्छ")] == ["▁पढ्छ"]


@pytest.mark.parametrize("kind", get_args(ModelType))
def test_training_twice_gives_the_same_file(kind, tmp_path):
    for name in ("first", "second"):
        SentencePieceTokenizer.train(iter(CORPUS), 350, kind).save(tmp_path / name)
    first, second = ((tmp_path / name / "tokenizer.model").read_bytes() for name in ("first", "second"))
    assert first == second


def test_the_seed_decides_which_lines_are_sampled(tmp_path):
    texts = [f"{number} {number * number}" for number in range(300)]
    models = []
    for seed in (0, 0, 1):
        SentencePieceTokenizer.train(texts, 300, seed=seed, sample=30).save(tmp_path)
        models.append((tmp_path / "tokenizer.model").read_bytes())
    assert models[0] == models[1] != models[2]


@pytest.mark.parametrize("kind", get_args(ModelType))
def test_a_long_line_is_learned_from(kind):
    tokenizer = SentencePieceTokenizer.train(["short"] * 5 + ["word " * 3000], 400, kind)
    assert [tokenizer.piece(index) for index in tokenizer.encode(" word")] == ["▁word"]


def test_a_vocabulary_larger_than_the_corpus_supports_becomes_smaller():
    tokenizer = SentencePieceTokenizer.train(["one two"] * 3, 5000)
    assert 273 < tokenizer.vocab_size < 400
    assert max(tokenizer.encode("one two three ▁ \n")) < tokenizer.vocab_size


def test_the_vocabulary_is_as_large_as_asked_where_the_corpus_supports_it():
    assert SentencePieceTokenizer.train(CORPUS, 340, "bpe").vocab_size == 340
    assert SentencePieceTokenizer.train(CORPUS, 340, "unigram").vocab_size == 340


def test_a_vocabulary_too_small_is_told_the_size_that_fits():
    with pytest.raises(ConfigError, match=r"vocab_size 280 is too small: .* alone need \d+$") as caught:
        SentencePieceTokenizer.train(CORPUS, 280)
    needed = int(str(caught.value).split()[-1])
    assert SentencePieceTokenizer.train(CORPUS, needed).vocab_size == needed


@pytest.mark.parametrize("size", [-1, 0, 272, 10**10])
def test_an_impossible_vocabulary_is_refused(size):
    with pytest.raises(ConfigError, match="choose 273 to 1000000"):
        SentencePieceTokenizer.train(CORPUS, size)


def test_unknown_model_types_and_empty_samples_are_refused():
    with pytest.raises(ConfigError, match="'word' does not exist: choose one of unigram, bpe"):
        SentencePieceTokenizer.train(CORPUS, 400, "word")
    with pytest.raises(ConfigError, match="sample is 0"):
        SentencePieceTokenizer.train(CORPUS, 400, sample=0)


@pytest.mark.parametrize("texts", [[], [""], ["\n"], ["▁", "\0"]])
@pytest.mark.parametrize("kind", get_args(ModelType))
def test_nothing_to_learn_from_is_refused(texts, kind):
    with pytest.raises(DataError, match="no text to learn from"):
        SentencePieceTokenizer.train(texts, 400, kind)


def test_half_a_surrogate_pair_is_refused_by_name(tokenizer):
    with pytest.raises(DataError, match=r"character 3 of 'ab\\ud800' is half of a surrogate pair"):
        tokenizer.encode("ab\ud800")
    with pytest.raises(DataError, match="surrogate"):
        SentencePieceTokenizer.train(["fine", "ab\ud800"], 400)


def test_saved_and_loaded_it_is_the_same(tokenizer, tmp_path):
    tokenizer.save(tmp_path / "new" / "model")
    loaded = load_tokenizer(tmp_path / "new" / "model")
    assert loaded.vocab_size == tokenizer.vocab_size
    assert loaded.encode("".join(TRAPS)) == tokenizer.encode("".join(TRAPS))
    assert [loaded.piece(index) for index in range(loaded.vocab_size)] == [
        tokenizer.piece(index) for index in range(tokenizer.vocab_size)
    ]


def test_saving_below_a_file_is_refused(tokenizer, tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(DataError, match="cannot be made a directory"):
        tokenizer.save(tmp_path / "file" / "model")


def test_a_missing_tokenizer_is_named(tmp_path):
    with pytest.raises(ModelError, match=r"tokenizer\.model does not exist"):
        load_tokenizer(tmp_path)
    (tmp_path / "tokenizer.model").mkdir()
    with pytest.raises(ModelError, match=r"tokenizer\.model cannot be read"):
        load_tokenizer(tmp_path)


def test_a_truncated_tokenizer_is_refused_wherever_it_ends(tokenizer, tmp_path):
    tokenizer.save(tmp_path)
    path = tmp_path / "tokenizer.model"
    whole = path.read_bytes()
    for size in [*range(0, len(whole), 97), *range(len(whole) - 60, len(whole))]:
        path.write_bytes(whole[:size])
        with pytest.raises(ModelError, match=r"tokenizer\.model is damaged"):
            load_tokenizer(tmp_path)


LOSSLESS = {
    "normalization_rule_name": "identity",
    "remove_extra_whitespaces": False,
    "add_dummy_prefix": False,
    "byte_fallback": True,
    "required_chars": "▁",
}


@pytest.mark.parametrize("settings", [{}, LOSSLESS], ids=["defaults", "lossless"])
def test_a_foreign_sentencepiece_model_is_refused(settings, tmp_path):
    model = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter(CORPUS),
        model_writer=model,
        vocab_size=330 if settings else 70,
        minloglevel=2,
        **settings,
    )
    (tmp_path / "tokenizer.model").write_bytes(model.getvalue())
    with pytest.raises(ModelError, match="not a tokenizer of this toolkit"):
        load_tokenizer(tmp_path)


@pytest.mark.parametrize("kind", get_args(ModelType))
def test_training_prints_nothing(kind):
    program = (
        "from toolkit.tokenization import SentencePieceTokenizer\n"
        f"SentencePieceTokenizer.train(['one two', 'three'] * 9, 9000, {kind!r}).encode('x')"
    )  # in a process of its own: the library's log level is one for all that run in a process
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ("", "")


def test_importing_the_package_does_not_import_the_library():
    program = "import sys, toolkit.tokenization, toolkit.data, toolkit.evaluation; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert {"sentencepiece", "sacrebleu", "datasets"}.isdisjoint(done.stdout.split())
    assert "toolkit.tokenization.sentencepiece" in done.stdout.split()


@pytest.mark.parametrize("kind", get_args(ModelType))
def test_digits_stand_alone_where_that_is_asked_for(kind):
    lines = [f"call {number} at {number % 12}:45, {number} देखि ५००{number % 7}" for number in range(1000, 1200)] + [
        "a@b"
    ]
    together, apart = (
        SentencePieceTokenizer.train(lines, 400, kind, split_digits=split_digits) for split_digits in (False, True)
    )
    assert any(len(piece.strip("▁")) > 1 and piece.strip("▁").isdigit() for piece in together.pieces)
    assert [piece for piece in apart.pieces[272:] if any(map(str.isdigit, piece)) and len(piece) > 1] == []
    text = " call 9841234567 at 6:45 ५०० a@b"
    shown = [apart.piece(each) for each in apart.encode(text)]
    assert apart.decode(apart.encode(text)) == text
    assert [each for each in shown if each.isdigit()] == list("9841234567645५००")
    assert "@" in shown  # a sign that occurs once has a piece too, and is not spelled in bytes
