"""From text to ids and back, without loss."""

from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.loader import load_tokenizer
from toolkit.tokenization.sentencepiece import SentencePieceTokenizer

__all__ = ["SentencePieceTokenizer", "Tokenizer", "load_tokenizer"]
