"""toolkit plot: the training curves of runs, as a picture."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from tyro.conf import Positional, arg

from toolkit.commands.console import emit
from toolkit.display import tell
from toolkit.errors import ConfigError
from toolkit.explain.logs import find_logs, panels, run_curves
from toolkit.explain.pages.drawing import picture_format
from toolkit.files import check_writable


@dataclass
class Plot:
    """Draw what runs have logged: losses, scores, learning rate, speed; a panel for each, a colour for each run.

    Training loss and validation loss share a panel. Where a run diverged and went back, its panels have a dashed line.
    A run may still be training. For a PNG the library matplotlib must be installed: pip install 'matplotlib>=3.11'.
    """

    runs: Positional[Annotated[tuple[Path, ...], arg(metavar="RUN [RUN ...]")]]
    """Runs, or directories that hold runs, such as those of several seeds."""
    output: Path = Path("curves.png")
    """The picture to write, .png or .svg; an older one is replaced."""
    metrics: tuple[str, ...] = ()
    """Draw only these, in this order; the names are those in log.jsonl, such as loss, learning_rate or chrf."""
    x: Literal["updates", "tokens", "seconds"] = "updates"
    """The axis: updates, tokens trained on (a preference run counts pairs), or seconds spent in updates."""

    def run(self) -> None:
        if not self.runs:
            raise ConfigError("RUN is missing: give the directory of a run, or one that holds runs")
        picture_format(self.output)
        check_writable(self.output)
        logs, empty = find_logs(self.runs)
        metrics = [panel.metric for panel in panels(logs, self.metrics)]
        run_curves(logs, metrics, self.x).save(self.output)
        if empty:
            tell(f"toolkit: no figures yet: {', '.join(empty)}")
        emit([f"{self.output}: {len(logs)} {'run' if len(logs) == 1 else 'runs'}: {', '.join(metrics)}"])
