"""From text to ids and back, without loss."""

from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.byte_level import ByteTokenizer
from toolkit.tokenization.characters import CharacterTokenizer
from toolkit.tokenization.detokenizer import Detokenizer
from toolkit.tokenization.loader import load_tokenizer
from toolkit.tokenization.sentencepiece import SentencePieceTokenizer
from toolkit.tokenization.stopping import StopStrings

__all__ = [
    "ByteTokenizer",
    "CharacterTokenizer",
    "Detokenizer",
    "SentencePieceTokenizer",
    "StopStrings",
    "Tokenizer",
    "load_tokenizer",
]
