"""Pictures without another library: maps of attention as PNG or SVG, and the curves of training runs with one."""

from toolkit import submodules

__getattr__ = submodules(__name__)
