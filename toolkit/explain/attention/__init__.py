"""One text through a model, step by step."""

from toolkit import submodules

__getattr__ = submodules(__name__)
