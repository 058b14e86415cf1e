"""Pack the programs that write the embedded corpora into a wheel, as toolkit/corpora/data.

The files that they write stay behind: whoever installs the wheel makes them on first use. An editable install needs
neither, because the clone has data/. (It could not have them: hatchling refuses modules that it would have to rename.)
"""

from pathlib import Path

from hatchling.builders.hooks.plugin.interface import BuildHookInterface


class Packing(BuildHookInterface):
    """The build hook that hatchling calls, named in pyproject.toml."""

    def initialize(self, version: str, build_data: dict) -> None:
        """Add what is packed to the files of a wheel."""
        if version == "editable":
            return
        root = Path(self.root)
        for path in sorted((root / "data").rglob("*")):
            if path.is_file() and path != Path(__file__) and "__pycache__" not in path.parts and not is_written(path):
                build_data["force_include"][str(path)] = f"toolkit/corpora/{path.relative_to(root).as_posix()}"


def is_written(path: Path) -> bool:
    """Does a program write this file?  Those files have checksums beside them; what is hidden is temporary."""
    checksums = path.parent / "SHA256SUMS"
    names = [line.split()[-1] for line in checksums.read_text("utf-8").splitlines()] if checksums.exists() else []
    return path.name in names or path.name.startswith(".")
