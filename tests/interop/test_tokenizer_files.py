import json
from types import SimpleNamespace

import pytest
from sentencepiece import SentencePieceProcessor

from tests.interop.plain_library import PlainTokenizer
from tests.tokenization.test_foreign import BYTES, SOURCE, TARGET, pieces_of, trained
from tests.tokenization.test_foreign_library import content
from tests.tokenization.traps import CORPUS
from toolkit.errors import ModelError
from toolkit.interop.ctranslate2 import pieces_tokenizer
from toolkit.interop.hugging_face_files import ForeignSettings
from toolkit.interop.tokenizer_json import fields
from toolkit.interop.tokenizer_reading import read_tokenizer
from toolkit.interop.tokenizer_writing import write_tokenizer
from toolkit.interop.vocabulary import Vocabulary
from toolkit.models.gpt import GPTConfig
from toolkit.models.seq2seq import Seq2SeqConfig
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer, IdTokenizer, SentencePieceTokenizer
from toolkit.tokenization.special import BOS, EOS, PAD, SPECIAL_TOKENS, UNK

OWN = {"toolkit": {}}


def write(directory, **files):
    for name, value in files.items():
        path = directory / name.replace("__", ".")
        path.write_bytes(value if isinstance(value, bytes) else json.dumps(value).encode())


def opened(directory, config, size):
    write(directory, config__json=config)
    return read_tokenizer(ForeignSettings(directory), size)


def read(path):
    return json.loads(path.read_text())


@pytest.fixture
def marian(tmp_path):
    """Pieces of two models, a language and padding; the end mark is the first."""
    pieces = [piece for piece in pieces_of(SOURCE, TARGET) if piece not in ("<unk>", "<s>", "</s>")]
    ids = {piece: index for index, piece in enumerate(["</s>", "<unk>", *pieces, ">>nep<<", "<pad>"])}
    write(tmp_path, source__spm=SOURCE, target__spm=TARGET, vocab__json=ids)
    size = len(ids)
    special = {"pad_token_id": size - 1, "eos_token_id": 0, "decoder_start_token_id": size - 1}
    return SimpleNamespace(path=tmp_path, ids=ids, size=size, config={"is_encoder_decoder": True, **special})


def foreign(found, text):
    """The foreign ids of a source."""
    return found.vocabulary.foreign(found.tokenizer.source.encode(text))


def test_marians_pieces_are_looked_up_in_its_vocabulary(marian):
    found = opened(marian.path, marian.config, marian.size)
    source, target = (SentencePieceProcessor(model_proto=model) for model in (SOURCE, TARGET))
    expected = [marian.ids.get(piece, 1) for piece in source.encode("I am a boy म", out_type=str)]
    assert foreign(found, ">>nep<< I am a boy म") == [marian.ids[">>nep<<"], *expected]
    written = found.tokenizer.encode("म केटा हुँ।")
    expected = [marian.ids[piece] for piece in target.encode("म केटा हुँ।", out_type=str)]
    assert found.vocabulary.foreign(written) == expected
    assert found.vocabulary.foreign([PAD, UNK, BOS, EOS]) == [marian.size - 1, 1, marian.size - 1, 0]
    assert found.tokenizer.vocab_size == found.vocabulary.size
    assert found.begin is None


def test_a_translator_from_elsewhere_gets_its_files_back(marian, tmp_path):
    found = opened(marian.path, marian.config, marian.size)
    new = tmp_path / "new"
    new.mkdir()
    write_tokenizer(found.tokenizer, new, Seq2SeqConfig())
    assert (new / "source.spm").read_bytes() == SOURCE
    assert (new / "target.spm").read_bytes() == TARGET
    assert read(new / "vocab.json") == marian.ids
    settings = read(new / "tokenizer_config.json")
    assert settings["tokenizer_class"] == "MarianTokenizer"
    assert [settings[f"{role}_token"] for role in ("pad", "eos", "unk")] == ["<pad>", "</s>", "<unk>"]
    again = opened(new, marian.config, marian.size)
    assert again.vocabulary == found.vocabulary
    assert again.tokenizer.pieces == found.tokenizer.pieces


def test_two_vocabularies_are_refused(marian):
    write(marian.path, tokenizer_config__json={"separate_vocabs": True})
    with pytest.raises(ModelError, match="one vocabulary for sources and one for targets"):
        opened(marian.path, marian.config, marian.size)


def test_a_vocabulary_of_another_model_is_refused(marian):
    with pytest.raises(ModelError, match=rf"vocab\.json has '<pad>' as token {marian.size - 1}, but the model has"):
        opened(marian.path, marian.config, marian.size - 1)
    write(marian.path, vocab__json={"a": "b"})
    with pytest.raises(ModelError, match=r"vocab\.json is damaged: a is \"b\", not a whole number"):
        opened(marian.path, marian.config, marian.size)
    write(marian.path, vocab__json={"</s>": 0, "<unk>": 1})
    with pytest.raises(ModelError, match=f"has 2 tokens and the model {marian.size}: they belong to different models"):
        opened(marian.path, marian.config, marian.size)


def test_outputs_without_a_begin_are_refused(marian):
    config = marian.config | {"decoder_start_token_id": None}
    with pytest.raises(ModelError, match="has no decoder_start_token_id: every output must begin with a token"):
        opened(marian.path, config, marian.size)
    assert opened(marian.path, config | {"bos_token_id": 5}, marian.size).vocabulary.foreign([BOS]) == [5]


def test_pieces_of_pegasus_are_moved(tmp_path):
    model = trained(CORPUS[:4], pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    pieces = SentencePieceProcessor(model_proto=model)
    write(tmp_path, spiece__model=model, tokenizer_config__json={"offset": 5})
    config = {"model_type": "pegasus", "pad_token_id": 0, "eos_token_id": 1, "decoder_start_token_id": 0}
    found = opened(tmp_path, config, pieces.vocab_size() + 5)
    assert foreign(found, "I am a boy.") == [index + 5 for index in pieces.encode("I am a boy.")]
    assert found.vocabulary.foreign([PAD, UNK, BOS, EOS]) == [0, 7, 0, 1]
    assert found.tokenizer.pieces[16:21] == [f"<extra_{index}>" for index in range(2, 7)]
    with pytest.raises(ModelError, match=r"spiece\.model has .* as token .*: they belong to different models"):
        opened(tmp_path, config, pieces.vocab_size() + 4)


LLAMA = {"model_type": "llama", "bos_token_id": 1, "eos_token_id": [2, 5], "pad_token_id": -1}


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_pieces_of_llama_are_those_of_its_model_in_and_out(kind, tmp_path):
    settings = {"byte_fallback": True, "normalization_rule_name": "identity", "remove_extra_whitespaces": False}
    model = trained(CORPUS[:3], model_type=kind, **settings)
    pieces = SentencePieceProcessor(model_proto=model)
    size = pieces.vocab_size() + 2
    write(tmp_path, tokenizer__model=model, added_tokens__json={"<tool>": size - 2})
    found = opened(tmp_path, LLAMA, size)
    texts = ["I am a boy.", " two  spaces ", "म", "a <0x41> b"]
    assert [foreign(found, text) for text in texts] == [pieces.encode(text) for text in texts]
    assert found.vocabulary.foreign([PAD, UNK, BOS, EOS]) == [-1, 0, 1, 2]
    assert found.begin
    assert found.tokenizer.pieces[-2:] == ["<tool>", f"<extra_{size - 1}>"]
    assert found.tokenizer.decode([found.tokenizer.vocab_size - 2]) == ""
    write_tokenizer(found.tokenizer, tmp_path, GPTConfig())
    plain = PlainTokenizer(read(tmp_path / "tokenizer.json"))
    assert [plain.encode(text) for text in texts] == [[1, *pieces.encode(text)] for text in texts]
    assert len(plain.pieces) == size
    assert "pad_token" not in read(tmp_path / "tokenizer_config.json")


def test_a_setting_decides_whether_texts_begin_with_the_mark(tmp_path):
    write(tmp_path, tokenizer__model=BYTES, tokenizer_config__json={"add_bos_token": False})
    assert opened(tmp_path, LLAMA, 400).begin is False


def test_what_normalises_a_text_is_read_from_a_model():
    settings = dict(fields(dict(fields(SOURCE))[3]))
    assert settings[1] == b"nmt_nfkc"
    assert len(settings[2]) > 1000
    assert dict(fields(dict(fields(BYTES))[3]))[3] == 0  # no space in front


@pytest.mark.parametrize(
    "tokenizer",
    [SentencePieceTokenizer.train(CORPUS, 400), CharacterTokenizer("abcनमे \n"), ByteTokenizer()],
    ids=["pieces", "characters", "bytes"],
)
def test_our_own_come_back_as_they_were(tokenizer, tmp_path):
    write_tokenizer(tokenizer, tmp_path, Seq2SeqConfig(max_length=300))
    found = opened(tmp_path, OWN, tokenizer.vocab_size)
    assert type(found.tokenizer) is type(tokenizer)
    assert found.tokenizer.encode("abc नमे") == tokenizer.encode("abc नमे")
    assert found.vocabulary == Vocabulary.own(tokenizer.vocab_size)
    settings = read(tmp_path / "tokenizer_config.json")
    assert {settings[f"{role}_token"] for role in ("pad", "unk", "bos", "eos")} == set(SPECIAL_TOKENS[:4])
    assert settings["model_max_length"] == 1024
    assert settings["split_special_tokens"]


def test_without_a_tokenizer_texts_are_ids_and_with_a_part_of_one_it_is_refused(tmp_path):
    assert isinstance(opened(tmp_path, {}, 10).tokenizer, IdTokenizer)
    write(tmp_path, merges__txt=b"a b")
    with pytest.raises(ModelError, match="has no tokenizer that the toolkit can read"):
        opened(tmp_path, {}, 10)
    write(tmp_path, tokenizer__model=b"not a model")
    with pytest.raises(ModelError, match=r"tokenizer\.model is damaged"):
        opened(tmp_path, {}, 10)
    write(tmp_path, tokenizer_config__json=[])
    with pytest.raises(ModelError, match=r"tokenizer_config\.json is damaged"):
        opened(tmp_path, {}, 10)


def test_beside_tokens_that_are_known_lie_their_models(tmp_path):
    tokens = pieces_of(BYTES)
    vocabulary = Vocabulary.plan(len(tokens), None, 0, 1, 2)
    write(tmp_path, tokenizer__model=BYTES)
    tokenizer = pieces_tokenizer(tmp_path, tokens, vocabulary)
    expected = SentencePieceProcessor(model_proto=BYTES).encode("I am म")
    assert vocabulary.foreign(tokenizer.encode("I am म")) == expected
    with pytest.raises(ModelError, match="does not exist"):
        pieces_tokenizer(tmp_path / "none", tokens, Vocabulary.own(len(tokens)))


GPT2 = {"model_type": "gpt2", "bos_token_id": 262, "eos_token_id": 262}


@pytest.mark.parametrize("has_one_file", [True, False])
def test_byte_level_bpe_is_read_from_one_file_or_two(has_one_file, tmp_path):
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    model = content()["model"]
    if has_one_file:
        write(tmp_path, tokenizer__json=content())
    else:
        merges = "#version: 0.2\n" + "".join(f"{first} {second}\n" for first, second in model["merges"])
        write(tmp_path, vocab__json=model["vocab"], merges__txt=merges.encode())
    write(tmp_path, special_tokens_map__json={"eos_token": {"content": "<|endoftext|>"}, "unk_token": "<|endoftext|>"})
    found = opened(tmp_path, GPT2, 265)
    assert [found.tokenizer.piece(index) for index in found.tokenizer.encode("a boy")] == ["a", "Ġboy"]
    assert foreign(found, "a boy") == [model["vocab"]["a"], model["vocab"]["Ġboy"]]
    assert found.tokenizer.decode(found.tokenizer.encode("<|endoftext|>")) == "<|endoftext|>"
    assert found.vocabulary.foreign([PAD, UNK, BOS, EOS]) == [-1, -1, 262, 262]
    assert not found.begin
    new = tmp_path / "new"
    new.mkdir()
    write_tokenizer(found.tokenizer, new, GPTConfig(begin=False))
    again = opened(new, GPT2, 265)
    assert again.vocabulary == found.vocabulary
    assert again.tokenizer.encode_batch(CORPUS) == found.tokenizer.encode_batch(CORPUS)
    assert read(new / "tokenizer_config.json")["eos_token"] == "<|endoftext|>"
