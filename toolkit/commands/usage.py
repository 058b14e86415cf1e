"""The `--help` of a command: what tyro knows of its flags, laid out for the terminal that it is read on."""

import re
import shutil
from bisect import bisect
from collections.abc import Iterator
from dataclasses import fields
from textwrap import TextWrapper
from typing import NamedTuple

_WIDEST, _NARROWEST = 100, 40  # columns of the page: longer lines are hard to follow
_NAMES = 26  # columns of the names of flags, where what they are for stands beside them
_TYPES = {"STR", "PATH", "INT", "FLOAT"}
# Defaults that say no more than the flag itself does.
_SILENT = re.compile(r" ?\(default: (?:None|False|''|)\)")


class Group(NamedTuple):
    """Flags that tyro puts into one box, with what it says of all of them."""

    title: str
    about: list[str]  # paragraphs
    entries: list[tuple[str, str]]  # how a flag is written, what it is for


def groups_of(page: str) -> list[Group]:
    """The boxes of one of tyro's help pages, which must be so wide that no line of it is broken."""
    columns: dict[int, list[tuple[str, list[str]]]] = {}  # of boxes, by where they begin in a line
    for line in page.splitlines():
        for found in re.finditer(r"[╭│][ ─](.*?)\s*[╮│]", line):
            if found[0][0] == "╭":
                columns.setdefault(found.start(), []).append((found[1].strip("─ "), []))
            elif columns:  # letters of no or of double width may have moved it a little
                starts = sorted(columns)
                _, lines = columns[starts[max(bisect(starts, found.start() + 2) - 1, 0)]][-1]
                lines.append(found[1])
    return [_group(title, lines) for boxes in columns.values() for title, lines in boxes]


def _group(title: str, lines: list[str]) -> Group:
    """What stands in a box: paragraphs above a rule, if there is one, and flags with what they are for."""
    rule = next((number for number, line in enumerate(lines) if line.startswith("──")), -1)
    entries: list[tuple[str, str]] = []
    for line in lines[rule + 1 :]:
        if line[:1].strip():
            name, _, purpose = line.partition("  ")
            entries.append((name, purpose.strip()))
        elif entries:
            name, purpose = entries[-1]
            entries[-1] = name, f"{purpose} {line.strip()}".strip()
    return Group(title.removesuffix(" options"), "\n".join(lines[: max(rule, 0)]).split("\n\n"), entries)


def help_page(page: str, program: str, command: type) -> list[str]:
    """The lines of the help of a command, from tyro's own page of it; see `groups_of`."""
    groups = groups_of(page)
    flags = {name for group in groups for shown, _ in group.entries for name in re.findall(r"--[\w.-]+", shown)}
    names = [each.name for each in fields(command) if f"--{each.name.replace('_', '-')}" not in flags]
    for number, group in enumerate(groups):
        if group.title.startswith("positional"):
            named = zip(group.entries, names, strict=False)
            entries = [(_word(shown, name), purpose) for (shown, purpose), name in named]
            groups[number] = Group("arguments", group.about, entries)
    width = max(min(shutil.get_terminal_size((_WIDEST, 24)).columns, _WIDEST), _NARROWEST)
    given = [shown for group in groups if group.title == "arguments" for shown, _ in group.entries]
    about = page[page.find("\n") : page.find("╭")].strip().split("\n\n")
    lines = _wrapped(" ".join(["usage:", program, "[options]", *given]), width)
    lines += [line for paragraph in about for line in ("", *_wrapped(paragraph, width))]
    for group in groups:
        lines += ["", f"{group.title}:", *_shown(group, width)]
    return lines


def _shown(group: Group, width: int) -> Iterator[str]:
    """What is said of a group: its first paragraph, its flags, and what else there is to know."""
    first, *others = group.about
    yield from _wrapped(first, width, 2)
    for shown, purpose in group.entries:
        shown, lines = f"  {_flag(shown)}", _wrapped(_SILENT.sub("", purpose), width, _NAMES)
        if lines and len(shown) <= _NAMES - 2:
            lines[0] = shown + lines[0][len(shown) :]
        else:
            yield shown
        yield from lines
    for paragraph in others:
        yield ""
        yield from _wrapped(paragraph, width, 2)


def _wrapped(text: str, width: int, indent: int = 0) -> list[str]:
    """A paragraph in lines of at most so many columns; names of flags stay whole."""
    space = " " * indent
    return TextWrapper(width, space, space, break_on_hyphens=False).wrap(text)


def _flag(shown: str) -> str:
    """How a flag is written, with both spellings of one that is on or off as one: --[no-]json."""
    pair = re.fullmatch(r"--([\w.-]*?)([\w-]+), --\1no-\2", shown)
    return f"--{pair[1]}[no-]{pair[2]}" if pair else _value(shown)


def _value(shown: str) -> str:
    """A flag or word with what it takes: no {None}|PATH for a PATH that may be left out, one [INT ...] for several."""
    shown = re.sub(r"\{None\}\|\{?([\w ]+)\}?", r"\1", shown)
    return re.sub(r"\[+(\w+) \[\1 \.\.\.\]+", r"[\1 ...]", shown)


def _word(shown: str, name: str) -> str:
    """A word of a command by its name, where tyro calls it by its type."""
    return re.sub(r"\w+", lambda kind: name.upper() if kind[0] in _TYPES else kind[0], _value(shown))
