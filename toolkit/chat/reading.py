"""From what a model writes, part by part, to the content of its reply."""

from toolkit.chat.escaping import Unescaping


class Reading:
    """Takes the space in front away, and what escapes: all that `push` gives, and then `flush`, is the content."""

    def __init__(self, unescaping: Unescaping | None = None):
        self._unescaping, self._begun = unescaping, False

    def push(self, part: str) -> str:
        """Take the next part; gives what is certain now."""
        if part and not self._begun:
            part, self._begun = part.removeprefix(" "), True
        return self._unescaping.push(part) if self._unescaping else part

    def flush(self) -> str:
        """The reply has ended: gives the rest."""
        return self._unescaping.flush() if self._unescaping else ""
