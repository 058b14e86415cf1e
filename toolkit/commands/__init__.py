"""The verbs of the `toolkit` command, one file each: a dataclass whose fields are the flags and whose `run` does it."""
