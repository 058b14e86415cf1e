"""A transformer toolkit in NumPy, every derivative written by hand."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit.api import LanguageModel, Translator, load, load_language_model, load_translator

_API = ("LanguageModel", "Translator", "load", "load_language_model", "load_translator")
__all__ = ["LanguageModel", "Translator", "__version__", "load", "load_language_model", "load_translator"]
__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    """Import the library when it is first used: the command line should not wait for what a verb does not need."""
    if name in _API:
        from toolkit import api

        return getattr(api, name)
    raise AttributeError(f"module 'toolkit' has no attribute {name!r}")
