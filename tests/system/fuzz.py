"""Does any file, however damaged, make a reader raise anything but the toolkit's own errors?

    python tests/system/fuzz.py --cases 20000 --seed 1

Every case takes one of the files that the toolkit reads, damages it, and has it read by whoever does: a model is loaded
and used, what is imported is exported again, a run is listed and drawn. A case fails with an exception that is not of
`toolkit.errors`, with a warning, after five seconds of the processor's time, or where it takes more than 500 MB; a
reader that ends the process or never returns is noticed from outside. A case depends on its number and the seed alone:
`--only NUMBER` runs it again and shows where it failed.
"""

import argparse
import contextlib
import io
import os
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from multiprocessing import get_context
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import toolkit
from tests.system.fuzz_room import FAMILIES, IDS, KINDS, TEXT, furnish
from tests.system.mutations import (
    Mutation,
    bytes_of_any_file,
    either,
    fields_of_protobuf,
    forms_of_tensors,
    header_of_tensors,
    lines_of_json,
    values_of_json,
)
from toolkit.chat.history import read_conversation
from toolkit.cli import main
from toolkit.commands.chat import answer_requests
from toolkit.data.conversations import read_conversations, read_tests
from toolkit.data.lines import arriving_bytes
from toolkit.data.pairs import open_sources
from toolkit.data.preferences import read_preferences
from toolkit.data.texts import open_texts
from toolkit.errors import ToolkitError
from toolkit.evaluation.replies import Style
from toolkit.interop import export_model, import_model
from toolkit.interop.ctranslate2_file import Variables, read_variables, write_variables
from toolkit.recipes import recipe_of
from toolkit.recipes.settings import defaults_for
from toolkit.training.checkpoint import read_checkpoint
from toolkit.training.logs import find_logs

SECONDS, MEGABYTES, SILENCE = 5, 500, 30
_ANY, _JSON = bytes_of_any_file, either(values_of_json, values_of_json, values_of_json, bytes_of_any_file)
_LINES, _PIECES = either(lines_of_json, lines_of_json, bytes_of_any_file), either(fields_of_protobuf, bytes_of_any_file)
_TENSORS = either(header_of_tensors, forms_of_tensors, forms_of_tensors, bytes_of_any_file)


def variables(content: bytes, rng: random.Random) -> bytes:
    """A variable of a model for CTranslate2 is another, is gone or has another name, and the file a good one."""
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        path = Path(file.name)
        path.write_bytes(content)
        specification, revision, arrays, aliases = read_variables(path)
        arrays = {name: array.copy() for name, array in arrays.items()}
        for name in rng.sample(sorted(arrays), rng.choice((1, 1, 2))):
            array = arrays[name]
            match rng.randrange(5):
                case 0:
                    del arrays[name]
                case 1:
                    other = rng.choice((name.replace("layer_0", f"layer_{'9' * 5_000}"), "layer_1/x", name + "_scale"))
                    arrays[other] = arrays.pop(name)
                case 2:
                    shapes = (0, 10**6), (0, *array.shape[1:]), (*array.shape[:-1], 0), (1, 10**5), (), (1,)
                    arrays[name] = np.zeros(rng.choice(shapes), array.dtype)
                case 3:
                    number = rng.choice((0, -1, 1, 3, 127, 1e9, 1e30, np.nan, np.inf))
                    with np.errstate(all="ignore"):
                        arrays[name] = np.full(array.shape, number, rng.choice((array.dtype, np.float32)))
                case 4:
                    arrays[name] = array.astype(rng.choice(("i1", "i2", "i4", "f2")))
        named = {alias: name for alias, name in aliases.items() if name in arrays}
        write_variables(path, Variables(specification, revision, arrays, named))
        return path.read_bytes()


@dataclass(frozen=True)
class Target:
    """A file, how it is damaged, and who reads it.  weight: how often it is chosen, beside others."""

    file: str
    damage: Mutation
    read: Callable[[Path], Any]
    weight: int = 10

    @property
    def root(self) -> str:
        return self.file.split("/")[0]


# The readers. Each is given what lies in the room under the first name of the file.


def use_model(path: Path) -> None:
    model = toolkit.load(path)
    text = IDS if model.by_ids else TEXT
    if languages := model.tokenizer.languages:
        model = model.between(min(languages.ids), max(languages.ids))
    if isinstance(model, toolkit.Translator):
        model.translate(text, num_beams=1, max_new_tokens=2)
    else:
        model.generate(text, max_new_tokens=2)


def import_and_export(path: Path) -> None:
    with tempfile.TemporaryDirectory(dir=path.parent) as place:
        import_model(path, Path(place) / "own")
        use_model(Path(place) / "own")
        for to in ("hugging-face", "ctranslate2"):
            with contextlib.suppress(ToolkitError):
                export_model(Path(place) / "own", Path(place) / to, to)


def show_runs(path: Path) -> None:
    silently(["runs", str(path)], ["runs", "--json", str(path)])
    find_logs([path])  # as `plot` does


def show_model(path: Path) -> None:
    silently(["info", str(path)], ["info", "--json", str(path)])


def silently(*commands: list[str]) -> None:
    """Raises ValueError for a command that does not end well, or with one sentence."""
    for command in commands:
        out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main(command)
            err.flush()
        told = err.buffer.getvalue().decode()
        if code not in (0, 2) or (code and told.count("\n") != 1):
            raise ValueError(f"{command} gave {code}: {told}")


def chat(path: Path) -> None:
    requests = arriving_bytes(io.BytesIO(path.read_bytes()), "standard input", "write one JSON object a line")
    with contextlib.redirect_stdout(io.TextIOWrapper(io.BytesIO(), encoding="utf-8")):
        answer_requests(toolkit.load(path.parent / "chatty").chat(max_new_tokens=1), requests)


def score(path: Path) -> None:
    kept = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(path.read_bytes()))
    try:
        silently(["score", "--json", "--model", str(path.parent / "translator")])
    finally:
        sys.stdin = kept


def as_config(path: Path) -> None:
    """Take settings.json for the defaults of a run, as --config does."""
    defaults_for(recipe_of(path.stem).Settings, {"config": path}).check()


def read_all(opened: Callable[[Path], Any]) -> Callable[[Path], None]:
    def read(path: Path) -> None:
        for _ in opened(path):
            pass

    return read


def pairs(path: Path) -> Iterator[Any]:
    return (pair for source in open_sources([], [], [str(path)], "en", "ne") for pair in source)


def aligned(path: Path) -> Iterator[Any]:
    return (pair for source in open_sources([path], [path], [], "en", "ne") for pair in source)


def texts(path: Path) -> Iterator[Any]:
    return (piece for source in open_texts([path], [], "text", "blank") for piece in source)


# What the library tokenizers, an optional one, has a part in reading.
_LIBRARY = (
    *(Target(f"gpt2/{name}", _JSON, import_and_export) for name in ("config.json", "tokenizer.json")),
    Target("gpt2/generation_config.json", _JSON, import_and_export),
    Target("library/tokenizer.json", _JSON, use_model, 15),
    *(Target(f"nllb/{name}.json", _JSON, import_and_export, 8) for name in (
        "config", "tokenizer", "tokenizer_config", "generation_config"
    )),
)  # fmt: skip
_LIBRARY = _LIBRARY if find_spec("tokenizers") else ()
_INT8 = (Target("small/config.json", _JSON, use_model), Target("small/model.safetensors", _TENSORS, use_model, 20))
_INT8 = _INT8 if find_spec("numkong") else ()
_VARIABLES = either(variables, variables, bytes_of_any_file)
TARGETS = (
    *(Target(f"{model}/config.json", _JSON, use_model, 20) for model in ("translator", "writer")),
    *(Target(f"{model}/model.safetensors", _TENSORS, use_model, 20) for model in ("translator", "writer", "half")),
    Target("translator/tokenizer.model", _PIECES, use_model, 30),
    *(Target(f"{model}/tokenizer.json", _JSON, use_model, 15) for model in ("letters", "bytes", "imported")),
    Target("translator/metrics.json", _JSON, show_model),
    Target("writer/config.json", _JSON, show_model),
    *(Target(f"saved/training/{name}", how, read_checkpoint, 15) for name, how in (
        ("state.json", _JSON), ("moments.safetensors", _TENSORS)
    )),
    *(Target(f"marian/{name}", how, import_and_export) for name, how in (
        ("config.json", _JSON), ("vocab.json", _JSON), ("source.spm", _PIECES), ("target.spm", _PIECES),
        ("model.safetensors", _TENSORS), ("tokenizer_config.json", _JSON), ("generation_config.json", _JSON),
    )),
    *(Target(f"llama/{name}", how, import_and_export) for name, how in (
        ("config.json", _JSON), ("tokenizer.model", _PIECES), ("model.safetensors.index.json", _JSON),
        ("model-00001-of-00002.safetensors", _TENSORS), ("added_tokens.json", _JSON),
    )),
    *_LIBRARY,
    *_INT8,
    *(Target(f"{family}/config.json", _JSON, import_and_export, 6) for family in FAMILIES),
    *(Target(f"{family}/model.safetensors", _TENSORS, import_and_export, 2) for family in FAMILIES),
    Target("bare/tokenizer.json", _JSON, use_model),
    *(Target(f"m2m/{name}", how, import_and_export, 6) for name, how in (
        ("config.json", _JSON), ("vocab.json", _JSON), ("tokenizer_config.json", _JSON),
        ("sentencepiece.bpe.model", _PIECES),
    )),
    Target("languages/tokenizer.json", _JSON, use_model),
    *(Target(f"{kind}.json", _JSON, as_config, 5) for kind in KINDS),
    *(Target(f"fast/{name}", how, import_and_export) for name, how in (
        ("config.json", _JSON), ("model.bin", _VARIABLES), ("shared_vocabulary.json", _JSON),
    )),
    Target("fast-gpt/model.bin", _VARIABLES, import_and_export),
    *(Target(f"pairs.{end}", how, read_all(pairs), weight) for end, how, weight in (
        ("tsv", _ANY, 8), ("csv", _ANY, 8), ("json", _JSON, 8), ("jsonl", _LINES, 8), ("parquet", _ANY, 3),
    )),
    Target("hub/README.md", _ANY, read_all(pairs), 2),
    Target("hub/data/train.parquet", _ANY, read_all(pairs), 1),
    *(Target("lines.txt", _ANY, read_all(how)) for how in (aligned, texts)),
    Target("talks.jsonl", _LINES, read_all(read_conversations)),
    Target("questions.jsonl", _LINES, read_all(read_tests)),
    Target("preferences.jsonl", _LINES, read_all(read_preferences), 15),
    Target("saved.json", _JSON, read_conversation),
    Target("style.json", _JSON, Style.read, 5),
    Target("requests.jsonl", _LINES, chat, 15),
    Target("scored.jsonl", _LINES, score, 10),
    *(Target(f"runs/one/{name}", how, show_runs, 3) for name, how in (
        ("log.jsonl", _LINES), ("settings.json", _JSON), ("last", _ANY), ("step-000002/training/state.json", _JSON),
        ("step-000002/metrics.json", _JSON),
    )),
)  # fmt: skip


class TooSlowError(BaseException):
    """A case that took too long; no reader may catch it."""


def _ring(*_: object) -> None:
    raise TooSlowError(f"more than {SECONDS} seconds")


@dataclass
class Fuzzer:
    """A room of one's own, and what happened to the cases in it."""

    room: Path
    seed: int

    def target(self, number: int) -> tuple[Target, random.Random]:
        rng = random.Random(f"{self.seed} {number}")
        return rng.choices(TARGETS, [target.weight for target in TARGETS])[0], rng

    def run(self, number: int) -> str:
        """What is wrong with a case; nothing, as a rule."""
        target, rng = self.target(number)
        path = self.room / target.file
        good = path.read_bytes()
        path.write_bytes(target.damage(good, rng))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        try:
            target.read(self.room / target.root if target.read is not show_runs else self.room / "runs" / "one")
        except ToolkitError as error:
            if not str(error) or "\n" in str(error):
                return f"{target.file}: not one sentence: {error!r:.300}"
        except BaseException as error:
            if isinstance(error, KeyboardInterrupt):
                raise
            return f"{target.file}: {_place(error)}"
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            path.write_bytes(good)
        grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024
        return f"{target.file}: {grown} MB of memory" if grown > MEGABYTES else ""


def _place(error: BaseException) -> str:
    frames = [each for each in traceback.extract_tb(error.__traceback__) if "/toolkit/" in each.filename]
    at = f"{Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else "?"
    return f"{type(error).__name__} at {at}: {str(error)[:200]}"


def work(room: Path, seed: int, numbers: range, told: Any, done: Any) -> None:
    """Run cases in a process of their own.  told: a queue of (number, what is wrong). done: the number at work."""
    warnings.simplefilter("error")
    np.seterr(all="ignore")
    signal.signal(signal.SIGPROF, _ring)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    fuzzer = Fuzzer(room, seed)
    for number in numbers:
        done.value = number
        if wrong := fuzzer.run(number):
            told.put((number, wrong))
    done.value = -1


def fuzz(cases: int, seed: int, workers: int) -> list[tuple[int, str]]:
    """The numbers of the cases that failed, and how."""
    context, failures = get_context("fork"), []
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir="/dev/shm" if Path("/dev/shm").is_dir() else None) as place:
        good = Path(place) / "good"
        good.mkdir()
        furnish(good)
        read_all(pairs)(good / "pairs.parquet")  # so that what reads it is imported before there are workers
        told = context.SimpleQueue()
        waiting = [range(first, cases, workers) for first in range(workers)]
        running: list[tuple[Any, Any, range, list[float]]] = []
        while waiting or running:
            while waiting:
                numbers = waiting.pop()
                room = Path(tempfile.mkdtemp(dir=place)) / "room"
                shutil.copytree(good, room)
                done = context.Value("q", numbers[0], lock=False)
                process = context.Process(target=work, args=(room, seed, numbers, told, done))
                process.start()
                running.append((process, done, numbers, [numbers[0], time.monotonic()]))
            time.sleep(0.05)
            while not told.empty():
                failures.append(told.get())
            for one in list(running):
                process, done, numbers, last = one
                if done.value != last[0]:
                    last[:] = [done.value, time.monotonic()]
                hangs = process.is_alive() and time.monotonic() - last[1] > SILENCE
                if hangs:
                    process.kill()
                    process.join()
                if not process.is_alive():
                    process.join()
                    running.remove(one)
                    if done.value >= 0:  # it did not come to its end
                        number = done.value
                        how = "hangs" if hangs else f"ends the process with {process.exitcode}"
                        failures.append((number, f"{Fuzzer(good, seed).target(number)[0].file}: {how}"))
                        if rest := numbers[numbers.index(number) + 1 :]:
                            waiting.append(rest)
        while not told.empty():
            failures.append(told.get())
    return sorted(failures)


def show(number: int, seed: int) -> None:
    """Run one case, with everything that it says."""
    signal.signal(signal.SIGPROF, _ring)
    with tempfile.TemporaryDirectory(prefix="fuzz-") as place:
        fuzzer = Fuzzer(Path(place), seed)
        furnish(fuzzer.room)
        target, rng = fuzzer.target(number)
        content = target.damage((fuzzer.room / target.file).read_bytes(), rng)
        print(f"{target.file}: {content[:2000]!r}")
        (fuzzer.room / target.file).write_bytes(content)
        target.read(fuzzer.room / target.root if target.read is not show_runs else fuzzer.room / "runs" / "one")


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--only", type=int, help="run this case again, and show what it does")
    return parser.parse_args()


if __name__ == "__main__":
    asked = parse()
    if asked.only is not None:
        show(asked.only, asked.seed)
        sys.exit()
    began = time.monotonic()
    found = fuzz(asked.cases, asked.seed, asked.workers)
    for number, wrong in found:
        print(f"{number}\t{wrong}")
    kinds = Counter(wrong.split(": ")[0] for _, wrong in found)
    print(
        f"{asked.cases} cases of seed {asked.seed} in {time.monotonic() - began:.0f} s, {len(found)} failed",
        *kinds.items(),
    )
    sys.exit(bool(found))
