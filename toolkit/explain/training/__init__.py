"""What one pair of sentences, or one text, teaches a model: teacher forcing, and one step of AdamW."""

from toolkit import submodules

__getattr__ = submodules(__name__)
