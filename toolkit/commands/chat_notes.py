"""What a person should know about a reply beside its text."""

from toolkit.chat import Reply
from toolkit.display import counted, tell


class Notes:
    """Notes on standard error, in parentheses; none where `quiet`."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.left_out = 0  # exchanges that are known not to be sent any more

    def tell(self, text: str) -> None:
        if not self.quiet:
            tell(f"({text})")

    def about_end(self, reply: Reply) -> None:
        """Tell of a reply that says nothing, or did not end by itself."""
        if not reply.text.strip():
            self.tell("The model said nothing, and this is not remembered.")
        elif reply.finish_reason == "length":
            self.tell(f"The reply was cut off after {counted(reply.new_tokens, 'token')}.")

    def about_left_out(self, reply: Reply) -> None:
        """Tell what was left out of the prompt, once each time that it grows."""
        if reply.dropped > self.left_out:
            exchanges, fit, were = ("exchange", "fits", "was") if reply.dropped == 1 else ("exchanges", "fit", "were")
            first = "first" if reply.dropped == 1 else f"first {reply.dropped}"
            self.tell(f"The {first} {exchanges} no longer {fit} into what the model reads, and {were} left out.")
        self.left_out = reply.dropped
