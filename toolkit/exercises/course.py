"""Keep a learner's directory: the files of the exercises, what is solved, and which hints have been read."""

import importlib.util
import json
import re
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path
from types import ModuleType

from toolkit.errors import ConfigError, DataError
from toolkit.exercises.attending import ATTENDING
from toolkit.exercises.exercise import Exercise
from toolkit.exercises.layering import LAYERING
from toolkit.exercises.learning import LEARNING
from toolkit.exercises.maps import MAPS
from toolkit.exercises.preferring import PREFERRING
from toolkit.exercises.rotating import ROTATING
from toolkit.exercises.writing import WRITING
from toolkit.files import atomic_writer

EXERCISES = (*MAPS, *LAYERING, *ATTENDING, *ROTATING, *LEARNING, *WRITING, *PREFERRING)
HINTS_READ = ".hints.json"
TOGETHER = "gpt.py"  # lies beside the exercises, and puts them together
_TASKS = files("toolkit.exercises") / "tasks"

README = """# Exercises

{count} functions of a transformer, each in a file of its own. Read the text at its beginning, put your lines in the
place of `raise NotImplementedError`, and ask:

    toolkit exercise check           the first that is not right yet: what is wrong with it
    toolkit exercise check NAME      this one
    toolkit exercise hint            a hint for it, one more each time
    toolkit exercise status          all of them

Everything is offline. The order is that of this list; a file may use the functions of those before it. When all are
right: `python gpt.py` puts them together to a small GPT that learns from stories, in three minutes, and writes some;
with `--check` the toolkit's model learns from them in the same way, and both losses are compared.

{rows}
"""


CHECKS = '''"""Check the exercises of a learner, for an autograder: pytest test_exercises.py [--junit-xml points.xml]

The learner's files are those in this directory, or in the one that the variable EXERCISES names.
"""

import os
from pathlib import Path

import pytest

from toolkit.exercises.course import EXERCISES, check

SEED = {seed}  # of the random numbers: the learner's own checks have seed 0
DIRECTORY = Path(os.environ.get("EXERCISES", Path(__file__).parent))


@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda each: f"{{each.name}}-{{each.points}}-points")
def test_exercise(exercise, record_property):
    problems = check(exercise, DIRECTORY, SEED)
    record_property("points", 0 if problems else exercise.points)
    assert not problems, "\\n".join(problems)
'''


def exercise(name: str) -> Exercise:
    """Find an exercise by name or number.  Raises ConfigError where there is none."""
    if name.isdigit() and 1 <= int(name) <= len(EXERCISES):
        return EXERCISES[int(name) - 1]
    found = [each for each in EXERCISES if each.name == name.removesuffix(".py")]
    if not found:
        raise ConfigError(f"there is no exercise {name!r}: give a number up to {len(EXERCISES)}, or one of the names "
                          "that `toolkit exercise status` shows")  # fmt: skip
    return found[0]


def start(directory: Path) -> list[Path]:
    """Write the files of the exercises, and the one that puts them together, but not over any that is there.

    Returns those that were written.  Raises DataError where the directory cannot be written.
    """
    rows = "\n".join(f"{number}. `{each.name}.py`: {each.title}" for number, each in enumerate(EXERCISES, 1))
    texts = {"README.md": README.format(count=len(EXERCISES), rows=rows)}
    names = [*(f"{each.name}.py" for each in EXERCISES), TOGETHER]
    texts |= {name: (_TASKS / name).read_text(encoding="utf-8") for name in names}
    written = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            if not (directory / name).exists():
                (directory / name).write_text(text, encoding="utf-8")
                written.append(directory / name)
    except OSError as error:
        raise DataError(f"{error.filename or directory} cannot be written: {error.strerror}") from error
    return written


def write_checks(directory: Path, seed: int) -> Path:
    """Write checks that pytest runs, with points and with random numbers of their own.

    Raises DataError where the directory cannot be written.
    """
    path = directory / "test_exercises.py"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path.write_text(CHECKS.format(seed=seed), encoding="utf-8")
    except OSError as error:
        raise DataError(f"{path} cannot be written: {error.strerror}") from error
    return path


def text(each: Exercise) -> str:
    """Return what stands at the beginning of the file of an exercise: what is to be found."""
    return (_TASKS / f"{each.name}.py").read_text(encoding="utf-8").split('"""')[1].strip()


def check(each: Exercise, directory: Path, seed: int = 0) -> list[str]:
    """Say what is wrong with an exercise; nothing if it is right.

    Raises DataError where its file is missing.
    """
    path = directory / f"{each.name}.py"
    if not path.exists():
        raise DataError(f"{path} is missing: toolkit exercise start {directory} writes what is not there")
    with _importing(directory):
        try:
            module = _load(path)
        except NotImplementedError:
            return ["it cannot be read yet: an exercise that it uses is not finished"]
        except SyntaxError as error:
            return [f"line {error.lineno} is not valid Python: {error.msg}"]
        except Exception as error:
            return [f"it cannot be imported: {type(error).__name__}: {error}"]
        problems = each.check(module, seed)
    if problems and "not finished" not in problems[0]:
        for used in re.findall(r"^from (\w+) import", path.read_text(encoding="utf-8"), re.MULTILINE):
            if any(one.name == used for one in EXERCISES) and check(exercise(used), directory, seed):
                return [f"{used}.py, which this one uses, is not right: toolkit exercise check {used}"]
    return problems


def first_unsolved(directory: Path) -> Exercise | None:
    """Find the first exercise that is not right; None if all are."""
    return next((each for each in EXERCISES if check(each, directory)), None)


def next_hint(each: Exercise, directory: Path) -> tuple[int, str]:
    """Read one more hint of an exercise -> its number from 1, and its text; the last one again where there is no other.

    Raises DataError where the directory cannot be written.
    """
    read = hints_read(directory)
    number = min(read.get(each.name, 0) + 1, len(each.hints))
    try:
        with atomic_writer(directory / HINTS_READ) as file:
            file.write(json.dumps(read | {each.name: number}).encode())
    except OSError as error:
        raise DataError(f"{directory / HINTS_READ} cannot be written: {error.strerror}") from error
    return number, each.hints[number - 1]


def hints_read(directory: Path) -> dict[str, int]:
    """Return how many hints of each exercise have been read; none where nobody knows."""
    try:
        value = json.loads((directory / HINTS_READ).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return {name: count for name, count in value.items() if isinstance(count, int)} if isinstance(value, dict) else {}


def _load(path: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None:
        raise DataError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@contextmanager
def _importing(directory: Path) -> Iterator[None]:
    """Let the files of a directory import each other, and forget them afterwards."""
    names: Sequence[str] = [each.name for each in EXERCISES]
    kept = {name: sys.modules.pop(name) for name in names if name in sys.modules}
    sys.path.insert(0, str(directory.resolve()))
    writes, sys.dont_write_bytecode = sys.dont_write_bytecode, True
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(directory.resolve()))
        for name in names:
            sys.modules.pop(name, None)
        sys.modules.update(kept)
