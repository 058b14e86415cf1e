"""Mistakes of the user, as exceptions whose message is one sentence: what was wrong, where, and what to do.

The command line prints the sentence and ends with exit code 2; the library raises it. Anything else that
escapes is a fault of ours and keeps its traceback.
"""

from toolkit.display import sentence


class ToolkitError(Exception):
    """A mistake in what was given to us, told in one sentence.

    Names out of files are part of it: the message is one line without control characters, of 500 characters at most.
    """

    def __init__(self, message: object = ""):
        super().__init__(sentence(str(message)))


class DataError(ToolkitError):
    """A text file that is missing, wrongly encoded, of the wrong length or empty."""


class LengthError(DataError):
    """A text that is longer than a model reads at once."""


class ConfigError(ToolkitError):
    """A setting that does not exist or does not fit the others."""


class ModelError(ToolkitError):
    """A model directory that is missing, truncated, foreign or from another format version."""


class DivergenceError(ToolkitError):
    """The loss or the gradient is no longer a finite number."""
