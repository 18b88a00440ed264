"""The check of CPython's and NumPy's memory layout, and the calls through ctypes where it fails."""

from __future__ import annotations

import subprocess
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.abi import layout
from pullback.compiler.runtime.llvm import llvm_available

usual = sys.implementation.name == "cpython" and layout.is_layout_known()
pytestmark = pytest.mark.skipif(not usual, reason="the native entry is not used on this interpreter")


@pytest.mark.parametrize("field", layout.OFFSETS)
def test_layout_check_finds_moved_field(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert layout.find_mismatch() is None
    monkeypatch.setitem(layout.OFFSETS, field, layout.OFFSETS[field] + 8)
    assert layout.find_mismatch() is not None


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ("object", SimpleNamespace(__basicsize__=24), "an object, bytes, list or tuple of"),
        ("sys", SimpleNamespace(byteorder="big"), "an address of 8 bytes, the lowest first,"),
        ("np", SimpleNamespace(ndarray=SimpleNamespace(__basicsize__=80)), "an array of 96 bytes, but of 80,"),
    ],
)
def test_layout_check_finds_other_sizes(place: str, value: Any, message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, place, value, raising=False)
    assert (layout.find_mismatch() or "").startswith(message)


@pytest.mark.parametrize("place", ["sys.implementation.name", "sys.platform"])
def test_layout_of_unsupported_interpreter_is_unknown_without_warning(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "win32" if place == "sys.platform" else "pypy")
    assert not layout.is_layout_known.__wrapped__()


def test_unknown_layout_warns_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layout, "find_mismatch", lambda: "the items of a list")
    check = layout.is_layout_known.__wrapped__
    with pytest.warns(RuntimeWarning, match=r"does not have the items of a list where it should be: compiled programs"):
        assert not check()


@pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
def test_compiled_program_runs_through_ctypes_when_layout_is_unknown() -> None:
    code = (
        "import warnings; warnings.simplefilter('ignore')\n"
        "from pullback.compiler.runtime.abi import layout; layout.OFFSETS['ARRAY_DATA'] += 8\n"
        "import numpy as np, pullback as pb\n"
        "f = pb.compile(lambda x, s: {'y': [x @ x, np.exp(x) * s]}, backend='llvm')\n"
        "for _ in range(3): out = f(np.eye(3), 2.0)\n"
        "np.testing.assert_allclose(out['y'][1], np.exp(np.eye(3)) * 2.0)\n"
        "print(np.sum(out['y'][0]), layout.is_layout_known())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=600)
    assert done.stdout.split() == ["3.0", "False"]


@pytest.mark.skipif(not llvm_available(), reason="llvmlite is not installed")
def test_entry_takes_and_builds_every_container() -> None:
    f = pb.compile(lambda tree, n: {"sum": tree["a"][0] + tree["b"][1] * n, "list": [tree["a"][0]], "pair": (n, None)})
    tree = {"a": [np.arange(3.0)], "b": (None, np.ones(3, "f4"))}
    for n in (2.0, 3.0):
        out = f(tree, n)
        np.testing.assert_array_equal(out["sum"], np.arange(3.0) + n)
        np.testing.assert_array_equal(out["list"][0], np.arange(3.0))
        assert out["pair"] == (n, None)
