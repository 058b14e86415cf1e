"""What a page is made of, and how it is shown in a terminal and in a browser."""

from toolkit import submodules

__getattr__ = submodules(__name__)
