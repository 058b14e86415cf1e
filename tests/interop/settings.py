"""Changes to the settings of a model in Hugging Face's format."""

import json
from pathlib import Path
from typing import Any


def edit(directory: Path, **values: Any) -> None:
    """Change config.json."""
    path = directory / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | values))
