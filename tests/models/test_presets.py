import pytest

from toolkit.models.gpt import GPT
from toolkit.models.presets import PRESETS


@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("tinystories-260k", 260_032),
        # nanoGPT tells 0.80M and 10.65M, because it does not count positions: 64 · 128 and 256 · 384.
        ("nanogpt-cpu", 795_904 + 64 * 128),
        ("nanogpt-gpu", 10_646_784 + 256 * 384),
    ],
)
def test_parameter_counts_are_the_published_ones(name: str, count: int) -> None:
    assert GPT(PRESETS[name]).parameter_count == count


def test_presets_have_one_table_and_heads_that_fit() -> None:
    for name, config in PRESETS.items():
        assert "output.table" not in GPT(config).parameters(), name
        assert config.d_model // config.num_heads in (8, 16, 32, 64), name
