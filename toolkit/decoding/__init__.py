"""Decoding: the KV cache, searches and samplers that write one token at a time, and what they wrote, looked at."""

from toolkit.decoding.alignment import cross_attention, word_alignment, words_of
from toolkit.decoding.config import ContinuationConfig, ContinuationSettings, GenerationConfig, GenerationSettings
from toolkit.decoding.continuation import continue_prompts, stream_prompt
from toolkit.decoding.generate import generate
from toolkit.decoding.hypothesis import Hypothesis
from toolkit.decoding.kept import KeptPrompt
from toolkit.decoding.observer import Observer
from toolkit.decoding.scoring import score

__all__ = [
    "ContinuationConfig",
    "ContinuationSettings",
    "GenerationConfig",
    "GenerationSettings",
    "Hypothesis",
    "KeptPrompt",
    "Observer",
    "continue_prompts",
    "cross_attention",
    "generate",
    "score",
    "stream_prompt",
    "word_alignment",
    "words_of",
]
