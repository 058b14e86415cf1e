"""Read the flags of a command or a recipe, by tyro; and tell a mistake in one sentence."""

import io
import os
import re
import sys
from ast import literal_eval
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from dataclasses import MISSING, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

from tyro.conf import UseAppendAction, arg

from toolkit.commands.console import emit
from toolkit.errors import ConfigError

if TYPE_CHECKING:
    from toolkit.commands.help import Group

T = TypeVar("T")

# Flags of several verbs, with what `--help` says of them.
ModelName = Annotated[
    str, arg(help="Directory of a model or of a run, or the name of a model that comes with the toolkit.")
]
Workers = Annotated[
    int | None,
    arg(help="Processes. By default one, and for long input one a core. Changes the speed, not the result."),
]
Ids = Annotated[
    bool,
    arg(
        help="Texts are ids, divided by spaces, in and out: those of the library that the model comes from. A language "
        "model reads them as they are, a translator with the end mark, given or not."
    ),
]
Dtype = Annotated[
    Literal["auto", "float32", "int8"],
    arg(
        help="Numbers that matrices are multiplied in. int8 is faster and a little less exact; it needs the library "
        "numkong: pip install 'numkong>=7.8,<8'. auto: as the model is stored."
    ),
]
Output = Annotated[
    Path | None,
    arg(
        help="File to write instead of standard output (-); it takes its name when it is whole. Until then, and if "
        "work is interrupted, what is done is in FILE.part."
    ),
]
Resume = Annotated[
    bool,
    arg(
        help="Go on with the .part of --output, by the same flags, where work was interrupted. The lines that are done "
        "must be as they were, and a pipe gives them again; later ones may have changed. Without a .part, begin."
    ),
]
Quiet = Annotated[bool, arg(help="Show no progress.")]
BadWords = Annotated[
    UseAppendAction[tuple[str, ...]],
    arg(help="Not to be written, as it is tokenized with and without a space in front; may be given several times."),
]
SourceLanguage = Annotated[
    str | None, arg(help="What is read, for a model that knows several languages: its code there, or en, ne.")
]
TargetLanguage = Annotated[str | None, arg(help="What is written, for such a model.")]
Alignments = Annotated[
    bool, arg(help="With --json: which source words each word comes from, and the attention that says so.")
]

# The items of a list of numbers, by tyro's name of them.
_SEVERAL = {"INT": (int, "whole numbers"), "FLOAT": (float, "numbers")}

# What Python says of a word that is no number, and what is meant.
_NUMBERS = (("invalid literal for int", "a whole number"), ("could not convert string to float", "a number"))


def parse_flags(command: type[T] | T, program: str, arguments: Sequence[str]) -> T:
    """Make an instance of the dataclass `command` from flags; `--help` prints what they are and ends the process.

    What is on or off has two spellings: --json and --no-json, --model.tie and --model.no-tie (or --no-model.tie).

    command: the class, or an instance that gives the defaults.

    Raises ConfigError for a flag that does not exist, a value that does not fit, and one that is missing.
    """
    try:
        with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()):
            return _read(command, program, arguments)
    except SystemExit as leaving:
        asked_for_help = not leaving.code
    from toolkit.commands.help import flags_of, groups_of, help_page  # here, because few commands end like this

    # Once more for the words, on a page so wide that none of them is broken; nor is a line by what is in them.
    arguments = [" ".join(word.splitlines()) for word in arguments]
    with _wide_page():
        page = _printed(redirect_stdout, command, program, ["--help"])
        complaint = "" if asked_for_help else _printed(redirect_stderr, command, program, arguments)
    if asked_for_help:
        emit(help_page(page, program, command if isinstance(command, type) else type(command)))
        sys.exit(0)
    complaint = "\n".join(line.strip("│| ") for line in complaint.splitlines() if re.search(r"\w", line))
    raise ConfigError(f"{_sentence(complaint, flags_of(groups_of(page)), command, arguments)} (see {program} --help)")


def flag_groups(command: type) -> "list[Group]":
    """List the flags and words of a command, as its help page has them."""
    from toolkit.commands.help import groups_of

    with _wide_page():
        return groups_of(_printed(redirect_stdout, command, "toolkit", ["--help"]))


def _read(command: type[T] | T, program: str, arguments: Sequence[str]) -> T:
    import tyro

    defaults = {} if isinstance(command, type) else {"default": command}
    command = command if isinstance(command, type) else type(command)
    return tyro.cli(command, prog=program, args=[*map(_spelled, arguments)], **defaults)


def _spelled(word: str) -> str:
    """Write --no-model.tie as tyro does: --model.no-tie."""
    return re.sub(r"^--no-([\w-]+\.)(?=[\w-]+$)", r"--\1no-", word)


@contextmanager
def _wide_page() -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(COLUMNS="100000", TERM="dumb")
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _printed(redirect: Callable, command: type, program: str, arguments: Sequence[str]) -> str:
    """Return what tyro prints to one of the streams."""
    page = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)  # in which tyro draws its boxes
    with redirect(page), suppress(SystemExit):
        _read(command, program, arguments)
    return page.buffer.getvalue().decode()


def _sentence(complaint: str, flags: list[str], command: type, arguments: Sequence[str]) -> str:
    """Say what is wrong, in our words where the complaint is one that we know.

    A flag that there is not comes first: tyro then misses or misreads the words after it.
    """
    words = [word for word in map(_spelled, arguments) if re.match(r"--\w", word)]
    if strange := [word for word in words if word.partition("=")[0].replace("_", "-") not in flags]:
        return _unknown(strange, flags)
    if found := re.search(r"^Unrecognized.*?: *(.+)", complaint, re.MULTILINE):
        return _unknown(found[1].split(", "), flags)
    if found := re.search(r"invalid choice '(.*)' for argument '(.*?)'\. Expected one of (.+)\.", complaint):
        choices = ", ".join(each for each in re.findall("'(.*?)'", found[3]) if each != "None")  # the default
        return f"{found[2]} is {found[1]!r}: it must be one of {choices}"
    if found := re.search(r"Missing value for argument '(.*?)'", complaint):
        return f"{found[1]} needs a value"
    if "Missing from" in complaint:
        missing = _missing(complaint, flags, command)
        return f"{' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} missing"
    if found := re.search(r"Error parsing (\S+): (.+)", complaint):
        return _misread(found[1], found[2], complaint)
    lines = [line for line in complaint.splitlines() if "full helptext" not in line]
    return " ".join(lines) or "the flags cannot be read"


def _misread(flag: str, reason: str, complaint: str) -> str:
    """Say which kind of value a flag has; of several kinds the last."""
    for words, kind in _NUMBERS:
        if found := re.search(rf"{words}.*?: ('.*'|\".*\")", complaint):
            return f"{flag} is {found[1]}: it must be {kind}"
    if found := re.search(rf"for arguments: (\[.+\])\n.*\n{re.escape(flag)} \[({'|'.join(_SEVERAL)}) ", complaint):
        number, kind = _SEVERAL[found[2]]
        return f"{flag} has {_unreadable(number, literal_eval(found[1]))!r} in it: give {kind}"
    if found := re.search(r"no type matching .*\{(\w+(?: \w+)+)\}", reason):  # such as {None}|{PATH PATH}
        return f"{flag} needs {len(found[1].split())} values"
    return f"{flag} cannot be read: {reason.rstrip('.')}"


def _unreadable(number: Callable[[str], float], words: list[str]) -> str:
    """Find the first of the words that is not such a number."""
    for word in words:
        try:
            number(word)
        except ValueError:
            return word
    return " ".join(words)


def _missing(complaint: str, flags: list[str], command: type) -> list[str]:
    """Name the flags and words that must be given and are not: of words, those are the last ones."""
    needed = [field.name for field in fields(command) if field.default is field.default_factory is MISSING]
    words = [name for name in needed if f"--{name.replace('_', '-')}" not in flags]
    missing = re.findall(r"^(--[\w.-]+)", complaint, re.MULTILINE)
    count = complaint.count("(required)") - len(missing)
    return (words[-count:] if count > 0 else []) + missing


def _unknown(words: list[str], flags: list[str]) -> str:
    """Name the first word that is no flag, and the flag that it resembles."""
    unknown = next((word.partition("=")[0] for word in words if word.startswith("-")), None)
    if unknown is None:
        switch = ": a flag is on by itself, and off as --no-…" if words[0].lower() in ("true", "false") else ""
        return f"{words[0]!r} is a word too many{switch}"
    from toolkit.training.config import RENAMED  # here, because it is needed for mistakes only

    renamed = f"--{RENAMED.get(unknown.removeprefix('--').replace('-', '_'), '').replace('_', '-')}"
    if renamed in flags:
        return f"there is no flag {unknown} any more: it is called {renamed} now"
    meant = max(flags, key=lambda flag: _likeness(unknown, flag), default="")
    if not meant or _likeness(unknown, meant) < 0.7:
        return f"there is no flag {unknown}"
    return f"there is no flag {unknown}: did you mean {meant}?"


def _likeness(unknown: str, flag: str) -> float:
    """Compare two names, from 0 to 1.

    A flag may be written without its group (--updates for --training.updates), or be cut short: to its first letters
    (--training.lr) or its beginning (--learning for --training.learning-rate).
    """
    from difflib import SequenceMatcher

    unknown = unknown.replace("_", "-").lower()
    group, _, name = unknown.removeprefix("--").rpartition(".")
    own_group, _, own = flag.removeprefix("--").rpartition(".")
    if group not in ("", own_group):
        return SequenceMatcher(None, unknown, flag).ratio()
    if name == "".join(word[:1] for word in own.split("-")):
        return 1.0
    if len(name) > 2 and own.startswith(name):
        return 0.9 + len(name) / len(own) / 10
    return SequenceMatcher(None, name, own).ratio()
