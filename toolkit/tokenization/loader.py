"""The tokenizer of a model directory."""

import os

from toolkit.tokenization.base import Tokenizer
from toolkit.tokenization.sentencepiece import SentencePieceTokenizer


def load_tokenizer(directory: str | os.PathLike[str]) -> Tokenizer:
    """Read the tokenizer that lies in a model directory.

    Raises ModelError if there is none or it is damaged.
    """
    return SentencePieceTokenizer.load(directory)
