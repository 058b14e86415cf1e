"""Decoding: the KV cache, searches and samplers that write one token at a time, and what they wrote, looked at."""

from toolkit.decoding.alignment import cross_attention, word_alignment, words_of
from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.generate import generate
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.scoring import score

__all__ = ["GenerationConfig", "Hypothesis", "cross_attention", "generate", "score", "word_alignment", "words_of"]
