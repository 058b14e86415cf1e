"""Contents in the plain form: no line of what somebody says can be taken for the beginning of the next message.

A line that begins with a role's name and a colon gets a backslash in front, and one that begins so after backslashes
gets one more, which makes it reversible. A line is whatever a reader may see as one: it begins after any of the breaks
that Unicode has.
"""

import re

NAMES = {"system": "System", "user": "User", "assistant": "Assistant"}

_MARKS = tuple(f"{name}:" for name in NAMES.values())
_BREAKS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"  # those of str.splitlines
_BEGINS = rf"(?<![^{_BREAKS}])"  # of a line, the first one as well
_MARKED = rf"(?=\\*(?:{'|'.join(_MARKS)}))"
_TO_ESCAPE = re.compile(_BEGINS + _MARKED)
_ESCAPED = re.compile(rf"{_BEGINS}\\{_MARKED}")


def escape(text: str) -> str:
    r"""The text with one more backslash in every line that begins with backslashes, if any, and a role: \User: …"""
    return _TO_ESCAPE.sub(r"\\", text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPED.sub("", text)


class Unescaping:
    """`unescape` of a text that comes part by part: all that `push` gives, and then `flush`, is together the whole."""

    def __init__(self) -> None:
        self._held = ""  # the beginning of a line that may turn out to be escaped
        self._before = "\n"  # stands for what is in front of it: a break, or anything else

    def push(self, part: str) -> str:
        """Take the next part; gives what is certain now."""
        text = self._held + part
        begin = _last_line(self._before + text) - 1
        if begin < 0 or not _may_be_escaped(text[begin:]):
            begin = len(text)
        return self._release(text[:begin], text[begin:])

    def flush(self) -> str:
        """The text has ended: gives the rest."""
        return self._release(self._held, "")

    def _release(self, text: str, held: str) -> str:
        released = unescape(self._before + text)[1:]
        if text:
            self._before = "\n" if text[-1] in _BREAKS else " "
        self._held = held
        return released


def _last_line(text: str) -> int:
    """Where the last line begins, counted from 0."""
    return 1 + max(map(text.rfind, _BREAKS))


def _may_be_escaped(line: str) -> bool:
    """Whether the line is the beginning of one that is escaped, and not yet all of its mark."""
    rest = line.lstrip("\\")
    return line.startswith("\\") and any(mark != rest and mark.startswith(rest) for mark in _MARKS)
