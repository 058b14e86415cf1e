"""One text through a model, step by step."""
