"""The verbs for models as files: info, presets, average, import, export."""

import shlex
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from shutil import copytree
from typing import TYPE_CHECKING, Annotated, Any, Literal

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.commands.flags import ModelName
from toolkit.display import aligned, json_text, tell
from toolkit.errors import ConfigError, ModelError
from toolkit.files import check_new_directory, new_directory
from toolkit.models.autoencoder import AutoEncoder
from toolkit.models.gpt import GPT, GPTConfig
from toolkit.models.presets import PRESETS
from toolkit.models.storage import (
    CONFIG_FILE,
    WEIGHTS_FILE,
    described_model,
    find_model,
    holds_a_model,
    load_model,
    new_model,
    read_found,
    read_json,
    read_metrics,
    read_model,
    read_origin,
    save_model,
)
from toolkit.speller import NAMES
from toolkit.tensors import read_tensors
from toolkit.text_model import TextModel
from toolkit.tokenization import IdTokenizer, load_tokenizer

if TYPE_CHECKING:
    from toolkit.interop import Exchanged


@dataclass
class Info:
    """Show what a model is: kind, settings, parameters, size on disk, tokenizer, scores, and how it was trained."""

    examples = (
        "en-ne-small",
        "checkpoints/own --json",
    )

    model: Positional[ModelName]
    json: bool = False
    """Print one JSON object instead of text."""

    def run(self) -> None:
        facts = read_model(self.model, describe)
        emit([json_text(facts)] if self.json else _lines(facts))


def describe(directory: Path) -> dict[str, Any]:
    """Collect all facts about a model.  Raises ModelError where it is damaged: all of it is read."""
    config, metrics = read_json(directory / CONFIG_FILE), read_metrics(directory)
    load_model(directory, int8=False)
    model = described_model(directory)[0]
    tokenizer = None if isinstance(model, AutoEncoder) else load_tokenizer(directory)
    if tokenizer:
        TextModel(model, tokenizer, str(directory))  # which refuses a tokenizer of another model
    languages = tokenizer.languages if tokenizer else None
    parts: dict[str, int] = {}
    for name, parameter in model.parameters().items():
        part = name.removeprefix("trunk.").split(".")[0]
        parts[part] = parts.get(part, 0) + parameter.size * parameter.trained
    return {
        "model": str(directory),
        "kind": config["kind"],
        "format": config["format"],
        "parameters": {"total": model.parameter_count, **parts},
        "bytes": {path.name: path.stat().st_size for path in sorted(directory.iterdir()) if path.is_file()},
        "weights": ", ".join(sorted({tensor.dtype for tensor in read_tensors(directory / WEIGHTS_FILE).values()})),
        "tokenizer": tokenizer and {"kind": type(tokenizer).__name__, "vocab_size": tokenizer.vocab_size},
        "languages": languages and {"codes": sorted(languages.ids), "from": languages.source, "to": languages.target},
        "settings": asdict(model.config),
        "command": metrics.pop("command", None),
        "training": settings if isinstance(settings := metrics.pop("settings", {}), dict) else {},
        "metrics": metrics,
    }


def _lines(facts: dict[str, Any]) -> list[str]:
    sizes, parameters, tokenizer = facts["bytes"], facts["parameters"], facts["tokenizer"]
    reads = "none: it reads vectors" if tokenizer is None else f"{tokenizer['kind']}, {tokenizer['vocab_size']} tokens"
    if tokenizer and tokenizer["kind"] == IdTokenizer.__name__:
        reads = "none: it is used by ids (--ids)"
    lines = [
        f"model       {facts['model']}",
        f"kind        {facts['kind']}, format {facts['format']}",
        f"tokenizer   {reads}",
        f"on disk     {sum(sizes.values()) / 1e6:.2f} MB, weights as {facts['weights']}",
        f"made by     {facts['command'] or 'not recorded'}",
    ]
    if languages := facts["languages"]:
        usual = " ".join(f"{way} {languages[way]}" for way in ("from", "to") if languages[way])
        lines.append(f"languages   {' '.join(languages['codes'])}{usual and f' (unless told: {usual})'}")
    parts = {name: f"{count:,}" for name, count in parameters.items()}
    training = {name: value for name, value in facts["training"].items() if name != "model"}  # as under "settings"
    sections = {"parameters": parts, "settings": facts["settings"], "training": training, "metrics": facts["metrics"]}
    for title, values in sections.items():
        lines += ["", title, *_table(values)] if values else []
    return lines


def _table(values: dict[str, Any], prefix: str = "") -> list[str]:
    lines = []
    for name, value in values.items():
        if isinstance(value, dict):
            lines += _table(value, f"{prefix}{name}.")
        else:
            shown = f"{value:.4g}" if isinstance(value, float) else str(value)
            lines.append(f"  {prefix + name:20}  {shown}")
    return lines


_COLUMNS = ("preset", "parameters", "D", "layers", "heads", "context", "vocabulary", "settings")


@dataclass
class Presets:
    """Show the named shapes of language models: `toolkit train language-model --preset NAME` trains one.

    The vocabulary is that of the published model; training takes as many tokens as its tokenizer has, and the number
    of parameters follows. Heads are those of queries, and those of keys and values where they are fewer.
    """

    examples = (
        "",
        "--json",
    )

    json: bool = False
    """Print one JSON object, with every setting, instead of a table."""

    def run(self) -> None:
        counts = {name: GPT(config).parameter_count for name, config in PRESETS.items()}
        if self.json:
            facts = {name: {"parameters": counts[name], **asdict(config)} for name, config in PRESETS.items()}
            emit([json_text(facts)])
            return
        rows = [_COLUMNS, *(_row(name, config, counts[name]) for name, config in PRESETS.items())]
        emit(aligned(rows, left=(0, len(_COLUMNS) - 1)))


def _row(name: str, config: GPTConfig, count: int) -> tuple[str, ...]:
    heads = f"{config.num_heads}/{config.num_key_value_heads}" if config.num_key_value_heads else config.num_heads
    numbers = (f"{count:,}", config.d_model, config.layers, heads, config.max_length, f"{config.vocab_size:,}")
    own = asdict(config)
    dropout = max(own[f"{place}_dropout"] for place in ("embedding", "attention", "residual", "activation"))
    choices = [config.positions, f"{config.norm} norm", config.activation, f"F {config.d_ff}"]
    choices += ["biases" if config.bias else "no biases"] + ([] if config.tie else ["output not tied"])
    choices += [f"dropout {dropout:g}"] if dropout else []
    return (name, *map(str, numbers), ", ".join(choices))


@dataclass
class Average:
    """Average the weights of checkpoints that share their settings and tokenizer into one model.

    The checkpoints of one run (train with --training.keep 5 or so) average well, and a run with the model that it went
    on from; those of separate runs, whose initial values differ, do not. One that is given twice counts twice. What
    lies beside the weights, as the model that spells names, is that of the first; confidence is to be calibrated again.
    """

    examples = (
        "checkpoints/own --last 3 --output checkpoints/mean",
        "own/step-000400 own/step-000500 --output mean",
        "longer longer en-ne --half --output mean",
    )

    models: Positional[Annotated[tuple[str, ...], arg(metavar="MODEL...")]]
    """Directories of models, or of runs: a run means all checkpoints that it has kept."""
    output: Path
    """Directory to write; it must not exist yet."""
    last: int = 0
    """Of a run, only this number of its newest checkpoints; 0: all."""
    half: bool = False
    """Store the weights in float16."""

    def run(self) -> None:
        if self.last < 0:
            raise ConfigError(f"--last is {self.last}: it must not be negative")
        check_new_directory(self.output, "--output")
        from toolkit.training.checkpoint import average_models, tokenizer_files

        directories, model, files, origin = read_found(
            self._find,
            lambda found: (found, average_models(found), tokenizer_files(found[0]), read_origin(found[0])),
        )
        metrics = origin | {
            "average_of": list(map(str, directories)),
            "command": shlex.join(["toolkit", *sys.argv[1:]]),
        }
        with new_directory(self.output) as new:
            save_model(model, new, metrics, self.half)
            for name, content in files.items():
                (new / name).write_bytes(content)
            if holds_a_model(directories[0] / NAMES):
                copytree(directories[0] / NAMES, new / NAMES)
        emit([f"{self.output}: the average of {len(directories)} checkpoints", *(f"    {d}" for d in directories)])

    def _find(self) -> list[Path]:
        """Find the models to average.  Raises ConfigError where that is less than two models."""
        directories = [directory for name in self.models for directory in checkpoints(name, self.last)]
        if len(directories) < 2:
            given = f"{directories[0]} is one model" if directories else "no model is given"
            raise ConfigError(f"{given}: an average needs two or more")
        return directories


def checkpoints(name: str, last: int) -> list[Path]:
    """Find the models that an argument means: the newest `last` checkpoints of a run (0: all), or one model.

    Raises ModelError where there is none.
    """
    from toolkit.training.run import SETTINGS_FILE, Run

    path = Path(name)
    if not (path / SETTINGS_FILE).exists():
        return [find_model(name)]
    steps = Run(path, {}).steps()
    if not steps:
        raise ModelError(f"{path} is a run without checkpoints")
    return steps[-last:]


@dataclass
class ImportModel:
    """Make a model directory of this toolkit out of one that transformers or CTranslate2 has written.

    Of transformers: Marian, Pegasus and M2M100 (NLLB); GPT2, GPTBigCode, OPT, Llama, Mistral, Phi3, Qwen2, Qwen3 and
    Starcoder2, with weights in safetensors. Of CTranslate2: translators and language models of the same kinds,
    quantised ones too, with the files of their tokenizer beside them. Without any, a model is used by ids (--ids).
    Nothing is downloaded. Where the tokenizer is a tokenizer.json, its library must be installed: pip install
    tokenizers.
    """

    examples = (
        "opus-mt-en-ne checkpoints/imported",
        "gpt2 checkpoints/gpt2",
    )

    source: Positional[Annotated[Path, arg(metavar="SOURCE")]]
    """Directory of the model as it is. Which library wrote it is found out from its files."""
    directory: Positional[Annotated[Path, arg(metavar="DIRECTORY")]]
    """Directory to write; it must not exist yet."""
    end_token: str | None = None
    """Token that a language model ends its texts with, such as '<s>' where that stands between them. Default: what its
    files say."""

    def run(self) -> None:
        from toolkit.interop import import_model

        _report(self.directory, import_model(self.source, self.directory, self.end_token), "from")


@dataclass
class ExportModel:
    """Write a model, with its tokenizer, as another library reads it, or in int8.

    In transformers, AutoTokenizer and AutoModelForSeq2SeqLM or AutoModelForCausalLM then read DIRECTORY with
    from_pretrained, and compute the same; apply_chat_template writes a conversation as toolkit chat sends it. In
    CTranslate2, it is Translator(DIRECTORY) or Generator(DIRECTORY). What a text needs before its tokens are given to
    those is said at the end.
    """

    examples = (
        "en-ne-small exported",
        "stories exported --to ctranslate2",
        "checkpoints/own exported --half",
        "en-ne-small small --dtype int8",
    )

    model: Positional[Annotated[ModelName, arg(metavar="MODEL")]]
    directory: Positional[Annotated[Path, arg(metavar="DIRECTORY")]]
    """Directory to write; it must not exist yet."""
    to: Literal["hugging-face", "ctranslate2", "toolkit"] | None = None
    """Which library the model is for. Default: hugging-face, and with --dtype int8 this one."""
    half: bool = False
    """Store the weights in float16."""
    dtype: Literal["float32", "int8"] = "float32"
    """int8 stores matrices in a quarter of the size, for this toolkit or CTranslate2: a little less exact, and not to
    be trained any more. For this toolkit it needs the library numkong: pip install 'numkong>=7.8,<8'."""

    def run(self) -> None:
        from toolkit.interop import export_model

        _report(self.directory, export_model(self.model, self.directory, self.to, self.half, self.dtype), "as")


def _report(directory: Path, found: "Exchanged", how: str) -> None:
    count = new_model(found.model.config).parameter_count  # in int8, norms are parts of other parameters
    emit([f"{directory}: {count:,} parameters, {how} {found.name}"])
    for note in found.notes:
        tell(f"toolkit: {note}")
