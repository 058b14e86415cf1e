"""NLLB and M2M100 against transformers and CTranslate2 themselves, by hand, where the extra `bench` is installed.

    python tests/interop/multilingual_live.py               # import, export and back: the same translations there?
    python tests/interop/multilingual_live.py --fixtures    # write tests/interop/fixtures/multilingual anew

The fixtures are directories that `save_pretrained` has written, of random models with small tokenizers, with what
transformers then translates: the ordinary tests read them without it.
"""

import argparse
import io
import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import ctranslate2
import numpy as np
import torch
from ctranslate2.converters import TransformersConverter
from sentencepiece import SentencePieceProcessor, SentencePieceTrainer
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    M2M100Config,
    M2M100ForConditionalGeneration,
    M2M100Tokenizer,
    NllbTokenizer,
)
from transformers.utils import logging

import toolkit
from toolkit.interop import export_model, import_model
from toolkit.interop.tokenizer_json import merges_of

FIXTURES = Path(__file__).parent / "fixtures" / "multilingual"
ENGLISH = ["I am a boy", "The house is big", "Where do you live", "This is a book", "She reads two books"]
NEPALI = ["म केटा हुँ", "घर ठूलो छ", "तिमी कहाँ बस्छौ", "यो किताब हो", "उनी दुई किताब पढ्छिन्"]
GERMAN = ["Ich bin ein Junge", "Das Haus ist groß", "Wo wohnst du", "Das ist ein Buch", "Sie liest zwei Bücher"]
LANGUAGES = ["deu_Latn", "eng_Latn", "npi_Deva"]
CODES = {
    "nllb": dict(zip(["de", "en", "ne"], LANGUAGES, strict=True)),
    "m2m100": {code: code for code in ("de", "en", "ne")},
}
DIRECTIONS = [("en", "ne", ENGLISH), ("ne", "en", NEPALI), ("de", "ne", GERMAN)]
SEARCH = {"num_beams": 3, "num_return_sequences": 3, "early_stopping": True}
NEW = 14
SEEDS = {"nllb": 1, "m2m100": 8}


def pieces_model() -> bytes:
    """A SentencePiece model as both have it: BPE, with only the dummy prefix of its normalisation, to be small."""
    file = io.BytesIO()
    SentencePieceTrainer.train(
        sentence_iterator=iter([*ENGLISH, *NEPALI, *GERMAN] * 2),
        model_writer=file,
        vocab_size=110,
        model_type="bpe",
        character_coverage=1.0,
        normalization_rule_name="identity",
        hard_vocab_limit=False,
        minloglevel=2,
    )
    return file.getvalue()


def save_nllb(directory: Path, pieces: list[str]) -> int:
    """Write an NllbTokenizer -> the number of rows."""
    ids = {piece: index for index, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    tokenizer = NllbTokenizer(vocab=ids, merges=merges_of(pieces), extra_special_tokens=LANGUAGES, src_lang="eng_Latn")
    tokenizer.save_pretrained(directory)
    return len(tokenizer) + 2  # rows to spare, as NLLB has


def save_m2m100(directory: Path, pieces: list[str], model: bytes) -> int:
    """Write an M2M100Tokenizer, which names its languages as those that are published do -> the number of rows."""
    ids = {piece: index for index, piece in enumerate(["<s>", "<pad>", "</s>", "<unk>", *pieces])}
    (directory / "sentencepiece.bpe.model").write_bytes(model)
    (directory / "vocab.json").write_text(json.dumps(ids))
    files = [str(directory / name) for name in ("vocab.json", "sentencepiece.bpe.model")]
    tokenizer = M2M100Tokenizer(*files)
    tokenizer.save_pretrained(directory)
    settings = json.loads((directory / "tokenizer_config.json").read_text())
    named = {"additional_special_tokens": [*tokenizer.lang_token_to_id]}
    del settings["extra_special_tokens"]
    (directory / "tokenizer_config.json").write_text(json.dumps(settings | named, indent=2) + "\n")
    return len(ids) + len(tokenizer.lang_token_to_id) + tokenizer.num_madeup_words


def save_model(directory: Path, size: int, seed: int) -> None:
    """Write a model with random weights, norms too; rows that no token has are never written."""
    config = M2M100Config(
        vocab_size=size,
        d_model=16,
        encoder_layers=2,
        decoder_layers=2,
        encoder_attention_heads=4,
        decoder_attention_heads=4,
        encoder_ffn_dim=24,
        decoder_ffn_dim=24,
        max_position_embeddings=64,
    )
    model, rng = M2M100ForConditionalGeneration(config), np.random.default_rng(seed)
    with torch.no_grad():
        for name, tensor in model.named_parameters():
            values = torch.from_numpy(rng.standard_normal(tensor.shape)).float()
            is_table = "shared" in name or "embed_tokens" in name
            scale = 0.7 if is_table else 3 / tensor.shape[-1] ** 0.5
            tensor.copy_(values * scale if tensor.dim() > 1 else values * 0.25 + name.endswith("norm.weight"))
        model.lm_head.weight[2] *= 2.5
        model.lm_head.weight[[1, 3]] = 0
    model.half().save_pretrained(directory)


def make(name: str) -> None:
    """Write a fixture: the directory, and what transformers translates."""
    directory = FIXTURES / name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    model = pieces_model()
    own = SentencePieceProcessor(model_proto=model)
    pieces = [own.id_to_piece(index) for index in range(3, own.vocab_size())]
    size = save_nllb(directory, pieces) if name == "nllb" else save_m2m100(directory, pieces, model)
    save_model(directory, size, SEEDS[name])
    found = [*translations(directory, name)]
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in found)
    (directory / "expected.json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    for path in directory.iterdir():
        path.chmod(0o644)
    lengths = sorted({len(each["greedy"]["ids"]) for each in found})
    print(f"{name}: {sum(path.stat().st_size for path in directory.iterdir()):,} bytes, outputs of {lengths} tokens")


def translations(directory: Path, name: str) -> Iterator[dict[str, Any]]:
    """What transformers translates: the ids of sources, of greedy search and of beams, texts and scores."""
    tokenizer, codes = AutoTokenizer.from_pretrained(directory), CODES[name]
    model = AutoModelForSeq2SeqLM.from_pretrained(directory, dtype=torch.float32).eval()
    for source, target, texts in DIRECTIONS:
        tokenizer.src_lang = codes[source]
        token = codes[target] if name == "nllb" else tokenizer.get_lang_token(codes[target])
        forced = tokenizer.convert_tokens_to_ids(token)
        for text in texts:
            given = tokenizer(text, return_tensors="pt")
            settings = {"forced_bos_token_id": forced, "suppress_tokens": [1, 3], "max_new_tokens": NEW}
            with torch.no_grad():
                greedy = model.generate(**given, **settings)[0].tolist()[1:]
                beams = model.generate(**given, **settings, **SEARCH, output_scores=True, return_dict_in_generate=True)
            hypotheses = zip(beams.sequences.tolist(), beams.sequences_scores.tolist(), strict=True)
            yield {
                "source_language": codes[source],
                "target_language": codes[target],
                "text": text,
                "source": given.input_ids[0].tolist(),
                "greedy": {"ids": greedy, "text": shown(tokenizer, greedy)},
                "beams": [
                    {"ids": unpadded(ids), "text": shown(tokenizer, ids), "score": score}
                    for ids, score in ((ids[1:], score) for ids, score in hypotheses)
                ],
            }


def unpadded(ids: list[int]) -> list[int]:
    return ids[: ids.index(2) + 1] if 2 in ids else ids


def shown(tokenizer: Any, ids: list[int]) -> str:
    return " ".join(tokenizer.decode(ids, skip_special_tokens=True).split())


def compare(name: str, scratch: Path) -> bool:
    """Import a fixture, export it for both libraries and import it again: the same translations everywhere."""
    stored = json.loads((FIXTURES / name / "expected.json").read_text(encoding="utf-8"))
    results = {"stored": [*translations(FIXTURES / name, name)] == stored}
    import_model(FIXTURES / name, scratch / "own")
    export_model(scratch / "own", scratch / "back")
    again = [*translations(scratch / "back", name)]
    for one, other in zip(again, stored, strict=True):
        for found, wanted in zip(one["beams"], other["beams"], strict=True):
            found["score"] = wanted["score"] if np.isclose(found["score"], wanted["score"], atol=1e-5) else None
    results["exported to transformers"] = again == stored
    export_model(scratch / "own", scratch / "fast", to="ctranslate2")
    results["exported to CTranslate2"] = in_ctranslate2(scratch / "fast", scratch / "own", stored)
    TransformersConverter(str(FIXTURES / name)).convert(str(scratch / "theirs"))
    for file in ("tokenizer.json", "sentencepiece.bpe.model"):
        if (FIXTURES / name / file).exists():
            shutil.copy(FIXTURES / name / file, scratch / "theirs")
    import_model(scratch / "theirs", scratch / "from-fast")
    results["converted by CTranslate2, imported"] = texts_of(scratch / "from-fast", stored) == [
        each["greedy"]["text"] for each in stored
    ]
    for what, is_right in results.items():
        print("     " if is_right else "WRONG", f"{name}: {what}")
    return all(results.values())


def texts_of(directory: Path, stored: list[dict[str, Any]]) -> list[str]:
    translator = toolkit.load_translator(directory)
    return [
        translator.between(each["source_language"], each["target_language"]).translate(
            each["text"], max_new_tokens=NEW, forced_eos="none"
        )
        for each in stored
    ]


def in_ctranslate2(directory: Path, own: Path, stored: list[dict[str, Any]]) -> bool:
    """Whether CTranslate2 translates so, given the tokens of our tokenizer and the target's language as a prefix."""
    translator = toolkit.load_translator(own)
    tokenizer, theirs = translator.tokenizer, ctranslate2.Translator(str(directory), compute_type="float32")
    ids = {tokenizer.piece(index): index for index in range(tokenizer.vocab_size)}
    found = []
    for each in stored:
        reader = translator.between(each["source_language"], each["target_language"])
        [source] = reader.encode([each["text"]], str)
        prefix = tokenizer.piece(reader.language("target"))
        [result] = theirs.translate_batch(
            [[*map(tokenizer.piece, source)]],
            target_prefix=[[prefix]],
            beam_size=1,
            max_decoding_length=NEW,
            suppress_sequences=[["<pad>"], ["<s>"]],
            disable_unk=True,
        )
        found.append([ids[token] for token in result.hypotheses[0]])
    wanted = [[index for index in each["greedy"]["ids"] if index != 2] for each in stored]
    return [[tokenizer.rows[index] for index in each] for each in found] == wanted


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fixtures", action="store_true", help="write the fixtures anew")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    if arguments.fixtures:
        for name in CODES:
            make(name)
        return
    right = []
    for name in CODES:
        with tempfile.TemporaryDirectory() as scratch:
            right.append(compare(name, Path(scratch)))
    raise SystemExit(int(not all(right)))


if __name__ == "__main__":
    main()
