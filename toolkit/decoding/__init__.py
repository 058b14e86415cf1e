"""Decoding: the KV cache, searches and samplers that write one token at a time, scores and alignments of outputs."""

from toolkit.decoding.config import ContinuationConfig, ContinuationSettings, GenerationConfig, GenerationSettings
from toolkit.decoding.generation import generate, stream
from toolkit.decoding.hypothesis import Hypothesis, Observer
from toolkit.decoding.scoring import cross_attention, score, word_alignment, words_of
from toolkit.decoding.state import PrefixCache

__all__ = [
    "ContinuationConfig",
    "ContinuationSettings",
    "GenerationConfig",
    "GenerationSettings",
    "Hypothesis",
    "Observer",
    "PrefixCache",
    "cross_attention",
    "generate",
    "score",
    "stream",
    "word_alignment",
    "words_of",
]
