"""What a command leaves behind."""

from typing import NamedTuple


class Outcome(NamedTuple):
    """Exit code, standard output and standard error of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self):
        """What it printed, where it went well."""
        assert self.code == 0, self.err
        assert not self.out or self.out.endswith("\n")
        return self.out.split("\n")[:-1]

    @property
    def sentence(self):
        """The one sentence that a mistake of the user is told in, and nothing else."""
        assert self.code == 2
        assert self.out == ""
        assert self.err.startswith("toolkit: ")
        assert self.err.count("\n") == 1
        return self.err
