"""Tokenizers from elsewhere that are damaged in ways that their libraries do not tell, or tell by a panic."""

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sentencepiece import SentencePieceProcessor

import toolkit
from tests.conftest import ENGLISH
from tests.interop.foreign_models import edit, make_llama
from tests.system.mutations import fields_of, written_fields
from toolkit.errors import ModelError
from toolkit.interop import export_model, import_model
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.storage import save_model
from toolkit.tokenization import ByteTokenizer

PIECE, NORMALIZER = 1, 3  # numbers of fields in a SentencePiece model

SLOW = {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False}


@pytest.fixture
def damaged(tmp_path: Path, make_gpt: Callable[..., Path]) -> Callable[..., Path]:
    """damaged(**changes) of tokenizer.json in an exported model -> the directory, as if others had written it."""
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")

    def damage(**changes: Any) -> Path:
        export_model(make_gpt(tmp_path / "own", ByteTokenizer(), positions="learned", bias=True), tmp_path / "theirs")
        edit(tmp_path / "theirs", toolkit=None)
        (tmp_path / "theirs" / "generation_config.json").unlink()
        path = tmp_path / "theirs" / "tokenizer.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | changes))
        return tmp_path / "theirs"

    return damage


def test_a_map_of_characters_that_is_none(damaged, tmp_path, capfd) -> None:
    charsmap = base64.b64encode(b"\0\1").decode()
    directory = damaged(normalizer={"type": "Precompiled", "precompiled_charsmap": charsmap})
    with pytest.raises(ModelError, match=r"theirs/tokenizer\.json is damaged"):
        import_model(directory, tmp_path / "new")
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("decoder", [["a"], {"type": "Sequence", "decoders": [["a"]]}])
def test_a_list_that_the_library_takes_for_a_decoder(damaged, tmp_path, decoder) -> None:
    with pytest.raises(ModelError, match=r"theirs/tokenizer\.json is damaged: a decoder is no object"):
        import_model(damaged(decoder=decoder), tmp_path / "new")


def test_a_pattern_that_never_ends_stops_one_text_only(damaged, tmp_path, capfd) -> None:
    import_model(damaged(pre_tokenizer=SLOW), tmp_path / "new")
    model = toolkit.load(tmp_path / "new")
    with pytest.raises(ModelError, match=r"new/tokenizer\.json has rules by which this text cannot be cut"):
        model.generate("x" * 40, max_new_tokens=1)
    assert capfd.readouterr().err == ""
    assert isinstance(model.generate("hello", max_new_tokens=1), str)


def test_a_unigram_model_that_knows_nothing_unknown(damaged, tmp_path, capfd) -> None:
    content = damaged() / "tokenizer.json"
    vocabulary = json.loads(content.read_text())["model"]["vocab"]
    scored = [[name, -1.0] for name in sorted(vocabulary, key=vocabulary.__getitem__)]
    settings = json.loads(content.read_text()) | {"model": {"type": "Unigram", "unk_id": None, "vocab": scored}}
    content.write_text(json.dumps(settings))
    import_model(content.parent, tmp_path / "new")
    model = toolkit.load(tmp_path / "new")
    with pytest.raises(ModelError, match=r"new/tokenizer\.json has rules by which this text cannot be cut"):
        model.generate("क", max_new_tokens=1)
    assert capfd.readouterr().err == ""


def test_a_tokenizer_of_special_tokens_only(tmp_path) -> None:
    pytest.importorskip("tokenizers", reason="the optional extra hf is not installed")
    model = GPT(GPTConfig(vocab_size=272, d_model=16, num_heads=2, d_ff=16, layers=1, positions="learned", bias=True))
    model.allocate()
    (tmp_path / "own").mkdir()
    save_model(model, tmp_path / "own")
    ByteTokenizer().save(tmp_path / "own")
    export_model(tmp_path / "own", tmp_path / "theirs")
    _cut_to_special(tmp_path / "theirs")
    with pytest.raises(ModelError, match="theirs has no tokens but special ones"):
        import_model(tmp_path / "theirs", tmp_path / "new")


def _cut_to_special(directory: Path) -> None:
    """Leave the 16 special tokens of an export of ours, in the model and in its tokenizer."""
    from safetensors.numpy import load_file, save_file

    weights = load_file(directory / "model.safetensors")
    weights["transformer.wte.weight"] = weights["transformer.wte.weight"][:16].copy()
    save_file(weights, directory / "model.safetensors", {"format": "pt"})
    edit(directory, vocab_size=16)
    content = json.loads((directory / "tokenizer.json").read_text())
    vocabulary = content["model"]["vocab"]
    content["model"] |= {"vocab": {name: index for name, index in vocabulary.items() if index < 16}, "merges": []}
    content["model"]["byte_fallback"] = False
    (directory / "tokenizer.json").write_text(json.dumps(content))


def test_pieces_that_are_not_utf8(tmp_path) -> None:
    directory = make_llama(tmp_path / "theirs", ENGLISH)

    def spoil(fields: list) -> None:
        last = max(place for place, field in enumerate(fields) if field[0] == PIECE)
        fields[last] = *fields[last][:2], written_fields([(1, 2, b"\xff\xfe"), *list(fields_of(fields[last][2]))[1:]])

    _change(directory / "tokenizer.model", spoil)
    with pytest.raises(ModelError, match=r"theirs/tokenizer\.model is damaged"):
        import_model(directory, tmp_path / "new")


def test_a_model_that_leaves_out_how_it_normalises_is_exported(tmp_path) -> None:
    directory = make_llama(tmp_path / "theirs", ENGLISH)
    _change(directory / "tokenizer.model", lambda fields: [fields.remove(f) for f in [*fields] if f[0] == NORMALIZER])
    SentencePieceProcessor(model_file=str(directory / "tokenizer.model"))  # which reads it
    import_model(directory, tmp_path / "new")
    export_model(tmp_path / "new", tmp_path / "again")
    assert (tmp_path / "again" / "tokenizer.json").exists()


def _change(path: Path, how: Callable[[list], Any]) -> None:
    fields = list(fields_of(path.read_bytes()))
    how(fields)
    path.write_bytes(written_fields(fields))
