"""What tests of exchange share."""

import numpy as np
import pytest

from tests.checks import random_model
from toolkit.interop.hugging_face import write_hugging_face


@pytest.fixture
def write(tmp_path):
    """write(config) writes a random model -> it, and its directory."""

    def write(config, vocabulary=None, half=False, seed=0):
        model, directory = random_model(config, np.random.default_rng(seed), np.float32), tmp_path / "model"
        directory.mkdir(exist_ok=True)
        write_hugging_face(model, directory, vocabulary, half)
        return model, directory

    return write
