"""toolkit import: a model of another library becomes one of this toolkit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import tell
from toolkit.interop import import_model


@dataclass
class ImportModel:
    """Make a model directory of this toolkit out of one that transformers or CTranslate2 has written.

    Of transformers: MarianMTModel, PegasusForConditionalGeneration, GPT2LMHeadModel, LlamaForCausalLM and
    Starcoder2ForCausalLM, with weights in safetensors. Of CTranslate2: translators and language models of the same
    kinds, quantised ones too, with the files of their tokenizer beside them. Nothing is downloaded. Where the tokenizer
    is a tokenizer.json, its library must be installed: pip install tokenizers.
    """

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """Directory of the model as it is. Which library wrote it is found out from its files."""
    directory: Positional[Annotated[Path, arg(metavar="DIRECTORY")]]
    """Directory to write; it must not exist yet."""
    end_token: str | None = None
    """Token that a language model ends its texts with, such as '<s>' where that stands between them. Default: what its
    files say."""

    def run(self) -> None:
        found = import_model(self.source, self.directory, self.end_token)
        emit([f"{self.directory}: {found.model.parameter_count:,} parameters, from {found.name}"])
        for note in found.notes:
            tell(f"toolkit: {note}")
