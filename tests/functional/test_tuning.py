"""Kernels are measured once, and remembered where that is possible; nothing that is in the way is an error."""

import json
import os
import time

import numpy as np
import pytest

from toolkit.errors import ConfigError
from toolkit.functional import tuning
from toolkit.functional.tuning import FIXED, Choice, choice_file, choose

OTHER = Choice("vecdot", "packed", 0)
WRONG = ({"columns": 7}, {"columns": "64"}, {"columns": False}, {"one": "packed"}, {"few": ["vecdot"]}, {"more": 1})
HOSTILE = [
    *(b"", b"{", b"\xff\xfe", b"null", b"[]", b'"one"', b"[" * 100_000, b"{}"),
    *(json.dumps(OTHER._asdict() | wrong).encode() for wrong in WRONG),
]


@pytest.fixture
def measured(tmp_path, monkeypatch):
    """Measurements are made, in an empty cache directory, and always find the same; returns how many were."""
    monkeypatch.delenv("TOOLKIT_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    counted = []
    monkeypatch.setattr(tuning, "_measured", lambda *_: counted.append(1) or OTHER)
    return counted


def in_a_new_process(source):
    tuning._read_or_measured.cache_clear()
    return choose(source)


def test_a_choice_is_measured_once_and_then_read(measured):
    assert [in_a_new_process("memory") for _ in range(3)] == [OTHER] * 3
    assert len(measured) == 1
    assert in_a_new_process("cache") == OTHER
    assert len(measured) == 2
    assert [path.name for path in choice_file("memory").parent.iterdir() if path.suffix != ".json"] == []


@pytest.mark.parametrize("content", HOSTILE, ids=range(len(HOSTILE)))
def test_what_is_no_choice_is_measured_anew(measured, content):
    path = choice_file("cache")
    path.parent.mkdir(parents=True)
    path.write_bytes(content)
    assert [in_a_new_process("cache") for _ in range(2)] == [OTHER] * 2
    assert len(measured) == 1


@pytest.mark.parametrize("source", ["memory", "cache"])
@pytest.mark.parametrize("hindrance", ["a file", "a directory", "a pipe", "no home"])
def test_where_nothing_can_be_written_the_choice_is_fixed_and_not_measured(measured, source, hindrance, monkeypatch):
    path = choice_file(source)
    if hindrance == "a file":
        path.parent.parent.write_text("not a directory")
    elif hindrance == "a directory":
        path.mkdir(parents=True)
    elif hindrance == "a pipe":
        if not hasattr(os, "mkfifo"):
            pytest.skip("the system has no named pipes")
        path.parent.mkdir(parents=True)
        os.mkfifo(path)
    else:
        monkeypatch.delenv("XDG_CACHE_HOME")
        monkeypatch.setattr(tuning.Path, "home", lambda: (_ for _ in ()).throw(RuntimeError("no home")))
    assert in_a_new_process(source) == FIXED[source]
    assert measured == []


def test_the_environment_can_fix_the_choice(measured, monkeypatch):
    monkeypatch.setenv("TOOLKIT_KERNELS", "fixed")
    assert in_a_new_process("memory") == FIXED["memory"]
    assert measured == []
    assert not choice_file("memory").exists()


def test_the_environment_can_ask_for_nothing_else(measured, monkeypatch):
    monkeypatch.setenv("TOOLKIT_KERNELS", "foo")
    with pytest.raises(ConfigError, match="TOOLKIT_KERNELS is 'foo': it must be fixed, or not set"):
        in_a_new_process("memory")


def test_a_relative_cache_directory_counts_as_none(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.setattr(tuning.Path, "home", lambda: tmp_path)
    assert choice_file("memory").parent == tmp_path / ".cache" / "toolkit"


def test_another_processor_or_library_has_a_file_of_its_own(monkeypatch):
    names = {choice_file("memory"), choice_file("cache")}
    monkeypatch.setattr(tuning, "machine", lambda: ("A processor / of tomorrow", "openblas 9 Haswell"))
    names.add(choice_file("memory"))
    monkeypatch.setattr(np, "__version__", "9.9")
    names.add(choice_file("memory"))
    assert len(names) == 4
    assert len({path.parent for path in names}) == 1


@pytest.mark.parametrize(("seconds", "expected"), [(0.8, "other"), (0.97, "fixed"), (2.0, "fixed")])
def test_only_a_clear_gain_is_chosen(monkeypatch, seconds, expected):
    now = [0.0]
    monkeypatch.setattr(time, "perf_counter", lambda: now[0])

    def taking(seconds):
        def prepare(*_):
            now[0] += 5.0  # preparing does not count
            return lambda: now.__setitem__(0, now[0] + seconds)

        return prepare

    matrices = np.ones((3, tuning._DEPTH * tuning._WIDTH), np.float32)
    assert tuning._fastest(matrices, 1, {"fixed": taking(1.0), "other": taking(seconds)}, "fixed") == expected


def test_all_kernels_give_the_same_product():
    generator = np.random.default_rng(0)
    for rows in (1, tuning.FEW, 16):
        more = [(tuning._rows, lambda flat: flat.reshape(-1, tuning._WIDTH))] if rows == 1 else []
        x = generator.standard_normal((rows, tuning._DEPTH))
        for prepare, as_matrix in (
            *more,
            (tuning._vecdot, lambda flat: flat.reshape(tuning._WIDTH, -1).T),
            (tuning._matmul, lambda flat: flat.reshape(tuning._WIDTH, -1).T),
            (lambda *given: tuning._packed(*given, 0), lambda flat: flat.reshape(-1, tuning._WIDTH)),
            (
                lambda *given: tuning._packed(*given, 64),
                lambda flat: np.concatenate([*flat.reshape(-1, tuning._DEPTH, 64)], axis=1),
            ),
        ):
            flat, y = generator.standard_normal(tuning._DEPTH * tuning._WIDTH), np.full((rows, tuning._WIDTH), np.nan)
            prepare(x, flat, y)()
            np.testing.assert_allclose(y, x @ as_matrix(flat), rtol=1e-9, atol=1e-9)


def test_a_real_measurement_ends_in_a_choice(tmp_path, monkeypatch):
    monkeypatch.delenv("TOOLKIT_KERNELS", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    chosen = in_a_new_process("cache")
    assert chosen.one in ("vecdot", "matmul", "rows")
    assert chosen.few in ("vecdot", "packed")
    assert json.loads(choice_file("cache").read_bytes()) == chosen._asdict()
