"""Models that are only read, and that can be sent to other processes."""

from toolkit.models.storage import new_model
from toolkit.nn.module import Model


class Frozen:
    """A model as its settings and its vector, which is how it is pickled where processes are spawned."""

    def __init__(self, model: Model):
        self.model = model

    def __reduce__(self) -> tuple:
        return _thawed, (self.model.config, self.model.vector)


def _thawed(config, vector) -> Frozen:
    model = new_model(config)
    model.allocate(vector.dtype.type, vector)
    return Frozen(model)
