"""A transformer toolkit in NumPy, every derivative written by hand.

    model = toolkit.load("en-ne")              a shipped model, a model directory or a run, to translate with
    model.translate("I am a boy.")             a text, or a list of them
    model.translate_n(text, alignments=True)   with tokens, probabilities and attention

    stories = toolkit.load("stories")          a language model
    stories.generate("Once upon a time")
    toolkit.load("chat").chat().send("Hi!")    a conversation, which is remembered

    run = toolkit.train("translation", source="my.en", target="my.ne", run="own")      help(toolkit.train)
    toolkit.load(run)                          its best checkpoint

    toolkit.plain                              the whole transformer on a page, forward and backward
    toolkit.functional                         every operation with its derivative, and its formula
    toolkit.proof.check(forward, backward, arrays)      a derivative beside finite differences, yours too
    toolkit.explain                            pages that show what a model does, number by number

In a notebook models, translations, runs and pages show themselves. What the command does is in `toolkit.commands`.
"""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from toolkit import (
        chat,
        data,
        decoding,
        errors,
        evaluation,
        explain,
        functional,
        interop,
        models,
        nn,
        pages,
        plain,
        preference,
        proof,
        recipes,
        tokenization,
        training,
    )
    from toolkit.api import load, load_language_model, load_translator
    from toolkit.language_model import LanguageModel
    from toolkit.recipes import train
    from toolkit.translator import Translator

_HOMES = {
    **dict.fromkeys(("load", "load_language_model", "load_translator"), "toolkit.api"),
    "LanguageModel": "toolkit.language_model",
    "Translator": "toolkit.translator",
    "train": "toolkit.recipes",
}
__all__ = [
    "LanguageModel",
    "Translator",
    "__version__",
    "chat",
    "data",
    "decoding",
    "errors",
    "evaluation",
    "explain",
    "functional",
    "interop",
    "load",
    "load_language_model",
    "load_translator",
    "models",
    "nn",
    "pages",
    "plain",
    "preference",
    "proof",
    "recipes",
    "tokenization",
    "train",
    "training",
]
__version__ = "0.1.0"


def submodules(package: str) -> Callable[[str], Any]:
    """Make the `__getattr__` of a package whose modules are imported when they are first used, and not with it."""

    def imported(name: str) -> Any:
        module = f"{package}.{name}"
        try:
            return import_module(module)
        except ModuleNotFoundError as error:
            if error.name != module:
                raise
        raise AttributeError(f"module {package!r} has no attribute {name!r}")

    return imported


def __dir__() -> list[str]:
    return __all__


if not TYPE_CHECKING:  # where it would give every name that is misspelt a type

    def __getattr__(name: str) -> Any:
        """Import the library when it is first used: the command line should not wait for what a verb does not need."""
        return getattr(import_module(_HOMES[name]), name) if name in _HOMES else submodules("toolkit")(name)
