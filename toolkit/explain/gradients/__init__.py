"""Every derivative of the toolkit: its source, its check against finite differences, and well-known wrong ones."""

from toolkit import submodules

__getattr__ = submodules(__name__)
