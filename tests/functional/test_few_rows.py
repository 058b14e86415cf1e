"""Products in tiles are products."""

import numpy as np
import pytest

from toolkit.functional.linear import pack, product, product_calls

PACKED = {"packed": 64, "narrow": 32, "wide": 128, "in one piece": 0}


@pytest.mark.parametrize("rows", [0, 1, 2, 8, 9, 31, 32, 33, 37, 64, 97, 130])
@pytest.mark.parametrize(
    ("depth", "width"), [(16, 37), (256, 200), (488, 129), (600, 192), (1100, 70), (20, 2500), (3, 1)]
)
@pytest.mark.parametrize("layout", ["plain", "transposed", *PACKED])
def test_products_in_tiles_are_products(rows, depth, width, layout):
    generator = np.random.default_rng(rows + depth)
    x, weight = generator.standard_normal((rows, depth)), generator.standard_normal((depth, width))
    if layout == "transposed":
        weight = np.ascontiguousarray(weight.T).T
    wide = np.full((rows, width + 3), np.nan)
    out = wide[:, 1:-2]  # as a part of something wider too
    assert product(x, pack(weight, PACKED[layout]) if layout in PACKED else weight, out) is out
    np.testing.assert_allclose(out, x @ weight, rtol=1e-12, atol=1e-12 * depth)
    assert np.isnan(wide[:, [0, -2, -1]]).all()


@pytest.mark.parametrize("most", [1, 2, 7, 40])
def test_tiles_of_any_height_give_the_same_product(most):
    generator = np.random.default_rng(0)
    x, weight, out = generator.standard_normal((11, 50)), generator.standard_normal((50, 200)), np.empty((11, 200))
    for call in product_calls(x, pack(weight), out, most):
        call()
    np.testing.assert_allclose(out, x @ weight, rtol=1e-12, atol=1e-12)


def test_nothing_is_copied():
    generator = np.random.default_rng(0)
    x, out = generator.standard_normal((60, 256)), np.empty((60, 300))
    for weight in (generator.standard_normal((256, 300)), generator.standard_normal((300, 256)).T):
        calls = [call.args for call in product_calls(x, weight, out)]
        for views in calls:
            assert all(np.shares_memory(view, whole) for view, whole in zip(views, (x, weight, out), strict=True))
        assert sum(target.size for _, _, target in calls) == out.size
        assert len(calls) > 1
