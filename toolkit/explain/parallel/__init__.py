"""All positions at once against one at a time: attention beside a recurrent network."""

from toolkit import submodules

__getattr__ = submodules(__name__)
