"""Decoding: the KV cache, and searches and samplers that write one token at a time."""

from toolkit.decoding.config import GenerationConfig
from toolkit.decoding.generate import generate
from toolkit.decoding.hypothesis import Hypothesis

__all__ = ["GenerationConfig", "Hypothesis", "generate"]
