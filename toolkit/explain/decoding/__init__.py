"""How a translation or a continuation came about: candidates, the search as a tree, what was attended to."""

from toolkit import submodules

__getattr__ = submodules(__name__)
