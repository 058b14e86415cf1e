"""toolkit export: a model of this toolkit for another library."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import tell
from toolkit.interop import export_model


@dataclass
class ExportModel:
    """Write a model, with its tokenizer, as another library reads it.

    In transformers, AutoTokenizer and AutoModelForSeq2SeqLM or AutoModelForCausalLM then read DIRECTORY with
    from_pretrained, and compute the same; apply_chat_template writes a conversation as toolkit chat sends it. In
    CTranslate2, it is Translator(DIRECTORY) or Generator(DIRECTORY). What a text needs before its tokens are given to
    those is said at the end.
    """

    model: Positional[Annotated[str, arg(metavar="MODEL")]]
    """Directory of a model or of a run, or the name of a model that comes with the toolkit."""
    directory: Positional[Annotated[Path, arg(metavar="DIRECTORY")]]
    """Directory to write; it must not exist yet."""
    to: Literal["hugging-face", "ctranslate2"] = "hugging-face"
    """Which library the model is for."""
    half: bool = False
    """Store the weights in float16."""

    def run(self) -> None:
        found = export_model(self.model, self.directory, self.to, self.half)
        emit([f"{self.directory}: {found.model.parameter_count:,} parameters, as {found.name}"])
        for note in found.notes:
            tell(f"toolkit: {note}")
