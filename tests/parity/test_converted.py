"""A slice of what `converted.py` compares, family by family."""

import pytest

for library in ("torch", "transformers", "ctranslate2"):
    pytest.importorskip(library, reason=f"{library}, of the extra bench, is not installed")


def test_what_the_converter_writes_is_equal_or_refused_by_name():
    from tests.parity.converted import outcomes

    found = {outcome.family: outcome.kind for outcome in outcomes(["Marian", "M2M100", "OPT", "Qwen2", "BART"])}
    assert found == {**dict.fromkeys(("Marian", "M2M100", "OPT", "Qwen2"), "equal"), "BART": "refused"}
