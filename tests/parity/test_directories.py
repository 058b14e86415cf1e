"""A slice of what `directories.py` compares by the hundred."""

import pytest

pytest.importorskip("torch", reason="PyTorch, of the extra bench, is not installed")
pytest.importorskip("transformers", reason="transformers, of the extra bench, is not installed")


def test_directories_in_unusual_settings_are_equal_or_refused_by_name():
    from tests.parity.directories import outcomes

    found = outcomes(count=25, seed=20)
    assert [outcome for outcome in found if not outcome.is_right] == []
    assert {outcome.kind for outcome in found} == {"equal", "refused"}
