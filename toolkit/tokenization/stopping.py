"""Stop strings, found in a text that arrives piece by piece."""

from collections.abc import Sequence

from toolkit.errors import ConfigError
from toolkit.tokenization.normal_form import normal_form, text_list


class StopStrings:
    """Lets a text through up to the first stop string in it; nothing of a stop string ever gets out.

    The text that is let through is text[:begin], where `begin` is the smallest of `text.find(stop)` over all stop
    strings that occur, however the text is cut into pushes. So of two that overlap the one that begins first counts,
    and where two begin together, it makes no difference which. A stop that is whole is not final while another that
    began before it may still become whole.

    Stop strings are put into Unicode normal form C, which is what tokenizers write, and compared code point by code
    point: "e" is not found in "é", and क is found in कि.
    """

    def __init__(self, stops: Sequence[str]):
        """Raises ConfigError for a stop string that is empty and for what is no list, DataError for what is no text."""
        stops = text_list(stops, "stop strings", "stop string {}".format)
        if not all(stops):
            raise ConfigError("a stop string is empty: leave it out, or say what should end the text")
        self._stops = tuple(map(normal_form, stops))
        self._longest = max(map(len, self._stops), default=1)
        self.reset()

    def reset(self) -> None:
        """Forget the text so far: the next push begins another one."""
        self._held = ""  # what could begin a stop string; shorter than the longest of them
        self._reached = False

    def push(self, text: str) -> tuple[str, bool]:
        """Take the next part of the text; gives what can be let through now, and whether a stop string was reached.

        Once one was reached, everything that follows is dropped.
        """
        if self._reached or not self._stops:
            return ("", True) if self._reached else (text, False)
        self._held += text
        found, possible = self._first_whole(), self._first_begun()
        self._reached = found <= possible and found < len(self._held)
        return self._release(min(found, possible)), self._reached

    def flush(self) -> tuple[str, bool]:
        """The text has ended: gives the rest of what can be let through, and whether a stop string was reached."""
        found = self._first_whole()
        self._reached |= found < len(self._held)
        released, reached = self._release(found), self._reached
        self.reset()
        return released, reached

    def _first_whole(self) -> int:
        """Where the first stop string begins in what is held, else its length."""
        return min((begin for stop in self._stops if (begin := self._held.find(stop)) >= 0), default=len(self._held))

    def _first_begun(self) -> int:
        """Where the first stop string begins of which more may follow, else the length of what is held."""
        end = len(self._held)
        for begin in range(max(0, end - self._longest + 1), end):
            tail = self._held[begin:]
            if any(stop.startswith(tail) for stop in self._stops):
                return begin
        return end

    def _release(self, end: int) -> str:
        released, self._held = self._held[:end], "" if self._reached else self._held[end:]
        return released
