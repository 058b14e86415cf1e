"""Decoding: the KV cache, and searches and samplers that write one token at a time."""
