"""Models: blocks put together, each with the dataclass that describes it."""
