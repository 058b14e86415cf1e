"""The worked example of the founding document 004, and the errors of all founding documents."""

from toolkit import submodules

__getattr__ = submodules(__name__)
