"""The front door: `load` a model directory as what can translate, or continue a text."""

import os
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from toolkit.errors import ConfigError, ModelError
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.gpt import GPT
from toolkit.models.reward import ActorCritic, RewardModel
from toolkit.models.seq2seq import Seq2Seq
from toolkit.models.storage import holds_a_model, load_model, read_model
from toolkit.nn.module import Model
from toolkit.speller import NAMES, Speller
from toolkit.tokenization import IdTokenizer, load_tokenizer

# The numbers that linear maps, embeddings and outputs are computed with; "auto": as they are stored.
Dtype = Literal["auto", "float32", "int8"]

if TYPE_CHECKING:
    from toolkit.language_model import LanguageModel
    from toolkit.translator import Translator


def load(
    path_or_name: str | os.PathLike[str], ids: bool | None = None, dtype: Dtype = "auto"
) -> "Translator | LanguageModel":
    """Read a model from a directory, from a run (its best checkpoint), or by the name of a shipped one ("en-ne").

    What it is turns out when it is read; `load_translator` and `load_language_model` know it before, and so does an
    editor.

    ids: its texts are ids, divided by spaces, in and out (see `IdTokenizer`); a language model reads them as they are,
    without BOS before them. None: a model that has no tokenizer is used so, and no other; False: it is refused.
    dtype: "int8" is faster, and a little less exact: matrices are quantised once they are read, and then take a quarter
    of the memory. It needs the library numkong, and such a model cannot be trained. "auto": "int8" for a model that is
    stored so, which "float32" reads without the library, and "float32" for any other.

    Raises ModelError where there is none of that name, where it is damaged or foreign, and for what writes no text: a
    reward model or an auto-encoder; ConfigError for another dtype, and where the library is missing.
    """
    if dtype not in get_args(Dtype):
        raise ConfigError(f"dtype is {dtype!r:.40}: it must be one of {', '.join(get_args(Dtype))}")
    return read_model(path_or_name, lambda directory: _read(directory, path_or_name, ids, dtype))


def _read(
    directory: Path, path_or_name: str | os.PathLike[str], ids: bool | None, dtype: Dtype
) -> "Translator | LanguageModel":
    found = with_tokenizer(load_model(directory, int8=dtype != "float32"), directory, path_or_name, ids)
    if dtype == "int8":
        found.model.quantize()
    return found


def with_tokenizer(
    model: Model, directory: Path, path_or_name: str | os.PathLike[str], ids: bool | None = None
) -> "Translator | LanguageModel":
    """Join a model that was read from a directory, if without its values, with the tokenizer that lies there.

    Raises ModelError, in which it is called `path_or_name`, as `load` does.
    """
    if isinstance(model, AutoEncoder):
        raise ModelError(f"{path_or_name} is an auto-encoder, which reads vectors and writes no text: see toolkit info")
    tokenizer = load_tokenizer(directory)
    if isinstance(model, RewardModel):
        raise ModelError(f"{path_or_name} is a reward model, which writes nothing: PPO takes it as --reward")
    if isinstance(model, ActorCritic):
        model = model.language_model()
    if ids is False and isinstance(tokenizer, IdTokenizer):
        raise ModelError(f"{path_or_name} has no tokenizer: use it by ids, with --ids")
    if ids and not isinstance(tokenizer, IdTokenizer):
        tokenizer = IdTokenizer.of(tokenizer)
    if isinstance(tokenizer, IdTokenizer) and isinstance(model, GPT):
        model.config = replace(model.config, begin=False)
    if isinstance(model, Seq2Seq):
        from toolkit.translator import Translator as Kind  # imported for what is there: a verb should start at once
    else:
        from toolkit.language_model import LanguageModel as Kind
    found = Kind(model, tokenizer, str(directory))
    if isinstance(model, Seq2Seq):
        from toolkit.confidence import Calibration

        found.calibration = Calibration.load(directory)
        if tokenizer.carrier and holds_a_model(directory / NAMES):
            # In floats, however it is stored: a word at a time, int8 is no faster, and nobody has to install a library.
            found.speller = Speller(directory / NAMES, partial(load_translator, dtype="float32"))
    return found


def load_translator(
    path_or_name: str | os.PathLike[str],
    instead: str = "toolkit generate",
    ids: bool | None = None,
    dtype: Dtype = "auto",
) -> "Translator":
    """Read a model as `load` does.  Raises ModelError for one of another kind: its message says to use `instead`."""
    found = load(path_or_name, ids, dtype)
    if not isinstance(found.model, Seq2Seq):
        raise ModelError(f"{path_or_name} is a language model, which translates nothing: use {instead}")
    return found


def load_language_model(
    path_or_name: str | os.PathLike[str],
    instead: str = "toolkit translate",
    ids: bool | None = None,
    dtype: Dtype = "auto",
) -> "LanguageModel":
    """Read a model as `load` does.  Raises ModelError for one of another kind: its message says to use `instead`."""
    found = load(path_or_name, ids, dtype)
    if isinstance(found.model, Seq2Seq):
        raise ModelError(f"{path_or_name} is a translator, which continues no text: use {instead}")
    return found
