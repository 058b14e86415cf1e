"""A room in which everything is good, ways to harm it, and what is asked of whoever meets the harm."""

import gzip
import io
import json
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pyarrow
import pyarrow.parquet
from safetensors.numpy import load_file, save_file

from tests.conftest import ENGLISH, NEPALI
from toolkit.cli import main
from toolkit.commands.flags import parse_flags
from toolkit.commands.train import run_recipe
from toolkit.interop import export_model
from toolkit.tokenization import ByteTokenizer, CharacterTokenizer

# The kinds of recipes by the words that stand for them in a command, and their scripts.
KINDS = {
    "recipe": "translation",
    "recipe-lm": "language-model",
    "recipe-chat": "chat",
    "recipe-pref": "preference",
    "recipe-ae": "autoencoder",
    "recipe-swish": "residual-swish",
}
SCRIPTS = Path(__file__).resolve().parents[3] / "recipes"
RECIPES = {word: SCRIPTS / f"{kind.replace('-', '_')}.py" for word, kind in KINDS.items()}

CARD = "---\nconfigs:\n- config_name: small\n  data_files: data/*.parquet\n---\n"

Harm = Callable[[Path], Any]


@dataclass(frozen=True)
class Kind:
    """One kind of damage or folly, and the command that meets it.

    command: words that succeed in a good room; `recipe`, `recipe-lm` and so on stand for the recipes, and `< FILE` for
    standard input. harm: what is done to the room first. flags: more words, which are the folly where nothing is
    harmed. says: words of the one sentence that is told. leaves: a directory that may be there afterwards, because it
    can be continued. needs: what the harm needs of the good room beside what the command names.
    """

    name: str
    command: str
    says: str
    harm: Harm | None = None
    flags: tuple[str, ...] = ()
    leaves: str = ""
    needs: str = ""
    disk: Callable[[], AbstractContextManager] = nullcontext

    @property
    def id(self) -> str:
        """What a failing test shows: the kind, who met it, and the last flag by which."""
        verb, *words = self.command.split()
        last = max((place for place, word in enumerate(words) if word[0] in "-<"), default=0)
        return " ".join([self.name, "|", verb, *words[last:]])


# Harm that is done to one file


def write(name: str, content: str | bytes) -> Harm:
    """The file has other content, or is there at all."""
    return lambda room: fresh(room / name).write_bytes(content.encode() if isinstance(content, str) else content)


def change(name: str, how: Callable[[bytes], bytes]) -> Harm:
    """The file has other bytes, made from its own."""
    return lambda room: (room / name).write_bytes(how((room / name).read_bytes()))


def cut(name: str, keep: float) -> Harm:
    """Only this part of the file is left: so many bytes, or a share of them below 1."""
    return change(name, lambda content: content[: int(keep if keep >= 1 else keep * len(content))])


def remove(name: str) -> Harm:
    return lambda room: fresh(room / name)


def directory(name: str) -> Harm:
    """A directory stands where a file should be."""
    return lambda room: fresh(room / name).mkdir()


def link(name: str, to: str) -> Harm:
    return lambda room: fresh(room / name).symlink_to(to)


def copy(name: str, of: str) -> Harm:
    """The file is another one."""
    return lambda room: shutil.copyfile(room / of, room / name)


def edit(name: str, how: Callable[[Any], Any]) -> Harm:
    """The JSON in the file is changed by `how`, or is what it returns."""

    def harm(room: Path) -> None:
        value = json.loads((room / name).read_text(encoding="utf-8"))
        changed = how(value)
        text = json.dumps(value if changed is None else changed, ensure_ascii=False)
        (room / name).write_text(text, encoding="utf-8")

    return harm


def arrays(name: str, how: Callable[[dict[str, np.ndarray]], Any]) -> Harm:
    """The arrays in a safetensors file are changed by `how`, or are what it returns."""

    def harm(room: Path) -> None:
        values = load_file(room / name)
        changed = how(values)
        save_file(values if changed is None else changed, room / name)

    return harm


def array(name: str, how: Callable[[np.ndarray], np.ndarray]) -> Harm:
    """The array in a .npy file is another one."""
    return lambda room: np.save(room / name, how(np.load(room / name)))


def both(*harms: Harm) -> Harm:
    return lambda room: [harm(room) for harm in harms]


def fresh(path: Path) -> Path:
    """A path with nothing at its end."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


# The good room, and those who work in it


def obey(command: str, *flags: str) -> int:
    """Do what the words say, within this process and the current directory -> the exit code."""
    text, _, given = command.partition(" < ")
    verb, *words = [*text.split(), *flags]
    kept = sys.stdin, sys.argv
    sys.stdin = io.TextIOWrapper(io.BytesIO(Path(given).read_bytes() if given else b""), encoding="utf-8")
    sys.argv = [f"recipes/{RECIPES[verb].name}", *words] if verb in RECIPES else ["toolkit", verb, *words]
    try:
        # Reading the same flags again and again would take longer than all the rest.
        with (
            patch("toolkit.commands.flags.parse_flags", _parsed),
            patch("toolkit.commands.train.parse_flags", _parsed),
        ):
            if verb not in RECIPES:
                return main([verb, *words])
            run_recipe(KINDS[verb], words)
    except SystemExit as leaving:
        return leaving.code
    finally:
        sys.stdin, sys.argv = kept


def _parsed(defaults: Any, program: str, words: Sequence[str]) -> Any:
    return _parsed_once(defaults, program, tuple(words))


_parsed_once = cache(parse_flags)


def contents(room: Path) -> dict[str, bytes]:
    """What every name in a room stands for: the bytes of a file, the end of a link, or nothing, for a directory."""
    return {str(path.relative_to(room)): _content(path) for path in sorted(room.rglob("*"))}


def _content(path: Path) -> bytes:
    if path.is_symlink():
        return f"link to {path.readlink()}".encode()
    return path.read_bytes() if path.is_file() else b""


def furnish(room: Path, make_model: Callable[..., Path], make_gpt: Callable[..., Path]) -> None:
    """Put into a room what the commands read: texts, tables, models and a run; it is the current directory.

    All names are relative, so that a run in a copy of the room is still the run of its data.
    """
    write("lines.en", "".join(f"{line}\n" for line in ENGLISH))(room)
    write("lines.ne", "".join(f"{line}\n" for line in NEPALI))(room)
    pairs = [{"en": one, "ne": other} for one, other in zip(ENGLISH, NEPALI, strict=True)]
    write("pairs.jsonl", "".join(f"{json.dumps(pair)}\n" for pair in pairs))(room)
    write("pairs.json", json.dumps(pairs))(room)
    write("scored.jsonl", "".join(json.dumps({"source": pair["en"], "target": pair["ne"]}) + "\n" for pair in pairs))(
        room
    )
    for name, mark in ("pairs.tsv", "\t"), ("pairs.csv", ","):
        write(
            name, "".join(f"{one}{mark}{other}\n" for one, other in [("en", "ne"), *zip(ENGLISH, NEPALI, strict=True)])
        )(room)
    write("valid.en", "".join(f"{line}\n" for line in ENGLISH))(room)
    write("valid.ne", "".join(f"{line}\n" for line in NEPALI))(room)
    table = pyarrow.table({"en": ENGLISH, "ne": NEPALI})
    for name in "pairs.parquet", "hub/data/train-00000-of-00001.parquet":
        pyarrow.parquet.write_table(table, fresh(room / name))
    write("hub/README.md", CARD)(room)
    write("pairs.tsv.gz", gzip.compress((room / "pairs.tsv").read_bytes()))(room)
    write("old.txt", "precious\n")(room)
    make_model(room / "model")
    make_model(room / "other", norm_position="post")
    if find_spec("numkong"):
        export_model(room / "model", room / "small", dtype="int8")
    make_gpt(room / "gpt")
    make_gpt(room / "plain", begin=False)
    write("tales/one.txt", "She eats rice.\n\nI am a boy.\n")(room)
    story = "\n\n".join(f"{one}\n{other}" for one, other in zip(ENGLISH, NEPALI, strict=True)) + "\n"
    write("story.txt", story)(room)
    write("story.txt.gz", gzip.compress(story.encode()))(room)
    write("stories.jsonl", "".join(json.dumps({"text": line}) + "\n" for line in (*ENGLISH, *NEPALI)))(room)
    make_gpt(room / "letters", CharacterTokenizer(story), begin=False)
    make_gpt(room / "bytes", ByteTokenizer())
    for word, run in (TRAIN, "run"), (TRAIN_LM, "lm"):
        assert obey(word.replace("--run new", f"--run {run}")) == 0
        stop_halfway(room / run)


def stop_halfway(run: Path) -> None:
    """Make a run of two updates one that was stopped after the first: there is something left to train."""
    shutil.rmtree(run / "step-000002")
    for name in "last", "best":
        (run / name).write_text("step-000001\n")
    lines = (run / "log.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    (run / "log.jsonl").write_text("".join(line for line in lines if json.loads(line)["update"] == 1))


# Commands that succeed in a good room

_SIZES = "--model.vocab-size 400 --model.d-model 8 --model.num-heads 2 --model.d-ff 8 --model.encoder-layers 1 "
_SIZES += "--model.decoder-layers 1 --training.updates 2 --training.validate-every 1 --training.keep 2 "
_SIZES += "--training.workers 1 --valid-lines 2 --num-beams 1 --quiet"
TRAIN = f"recipe --run new {_SIZES} --source lines.en --target lines.ne"
VALIDATED = f"{TRAIN} --filters.overlap keep --valid-source valid.en --valid-target valid.ne"
RESUME = f"{TRAIN.replace('--run new', '--run run')} --resume"
TABLE = f"recipe --run new {_SIZES} --data"

_LM_SIZES = "--model.d-model 8 --model.num-heads 2 --model.d-ff 8 --model.layers 1 --model.max-length 16 "
_LM_SIZES += "--training.updates 2 --training.validate-every 1 --training.keep 2 --training.workers 1 "
_LM_SIZES += "--training.tokens-per-batch 64 --samples 1 --quiet --tokenizer character"
TRAIN_LM = f"recipe-lm --run new {_LM_SIZES} --text story.txt"
RESUME_LM = f"{TRAIN_LM.replace('--run new', '--run lm')} --resume"
TABLE_LM = f"recipe-lm --run new {_LM_SIZES} --data stories.jsonl"
