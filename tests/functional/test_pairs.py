"""What holds for every pair of the calculus."""

import importlib
import pkgutil
import zlib

import numpy as np
import pytest

import toolkit.functional
from toolkit.functional import output_loss as output_loss_module
from toolkit.functional.arrays import row_blocks, sum_rows
from toolkit.proof import CASES, Case

every_case = pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)


def generator(case: Case) -> np.random.Generator:
    return np.random.default_rng(zlib.crc32(case.name.encode()))


@pytest.fixture(params=["one block", "several blocks"])
def _blocks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks smaller than the arrays of the cases, with a shorter one at the end, as large arrays have them."""
    if request.param == "several blocks":
        monkeypatch.setattr(row_blocks, "__defaults__", (11,))
        monkeypatch.setattr(output_loss_module, "_CHUNK_ELEMENTS", 20)


@every_case
@pytest.mark.usefixtures("_blocks")
def test_gradients_are_the_slopes_of_the_forward(case: Case) -> None:
    report = case.check()
    assert report.passed, str(report)


def test_every_backward_is_checked() -> None:
    public = set()
    for module_info in pkgutil.iter_modules(toolkit.functional.__path__):
        module = importlib.import_module(f"toolkit.functional.{module_info.name}")
        names = (name for name in vars(module) if name.endswith("_backward") and not name.startswith("_"))
        public |= {getattr(module, name) for name in names}
    assert len(public) >= 8
    assert public == {case.backward for case in CASES}


@every_case
@pytest.mark.usefixtures("_blocks")
def test_nobody_writes_to_an_argument(case: Case) -> None:
    arguments, backward = case.arguments(generator(case), np.float64), case.adapted(case.backward)
    given = [each for each in arguments if isinstance(each, np.ndarray)]
    kept = [array.copy() for array in given]
    output, saved = case.forward(*arguments)
    cotangent = np.random.default_rng(0).standard_normal(np.shape(output)) if np.ndim(output) else 0.7
    kept_output, kept_cotangent = np.copy(output), np.copy(cotangent)
    backward(cotangent, saved)
    for array, before in zip([*given, output, cotangent], [*kept, kept_output, kept_cotangent], strict=True):
        np.testing.assert_array_equal(array, before)


@every_case
def test_float32_stays_float32(case: Case) -> None:
    output, saved = case.forward(*case.arguments(generator(case), np.float32))
    assert isinstance(output, float) or output.dtype == np.float32
    kept = saved if isinstance(saved, tuple) else (saved,)
    assert not [x for x in kept if isinstance(x, np.ndarray | np.generic) and x.dtype == np.float64]
    cotangent = 0.5 if isinstance(output, float) else np.full_like(output, 0.5)
    gradients = case.adapted(case.backward)(cotangent, saved)
    assert {gradient.dtype for gradient in gradients if gradient is not None} == {np.dtype(np.float32)}


@every_case
def test_float32_agrees_with_float64(case: Case) -> None:
    results = []
    for dtype in (np.float32, np.float64):
        output, saved = case.forward(*case.arguments(generator(case), dtype))
        cotangent = 1.5 if isinstance(output, float) else np.full_like(output, 1.5)
        results.append([output, *case.adapted(case.backward)(cotangent, saved)])
    for single, double in zip(*results, strict=True):
        if single is double is None:  # of a bias that is not there
            continue
        np.testing.assert_allclose(single, double, rtol=1e-3, atol=2e-3 if "large" in case.name else 1e-5)


@pytest.mark.parametrize(("rows", "width"), [(0, 3), (1, 100), (7, 3), (8, 4)])
def test_blocks_cover_every_row_once(rows: int, width: int) -> None:
    blocks = list(row_blocks(rows, width, 12))
    assert [row for block in blocks for row in range(block.start, block.stop)] == list(range(rows))
    assert all((block.stop - block.start) * width <= max(12, width) for block in blocks)


def test_sum_rows() -> None:
    x = np.random.default_rng(0).standard_normal((7, 3))
    np.testing.assert_allclose(sum_rows(x), x.sum(axis=0), rtol=1e-14)
