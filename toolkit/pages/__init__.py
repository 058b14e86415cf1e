"""Pages: their blocks, written for a terminal and for a browser, and drawings of maps and curves."""

from toolkit import submodules

__getattr__ = submodules(__name__)
