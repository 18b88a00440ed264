"""The steps of compiled programs, with what they move and take of the time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.compiler.runtime.llvm import llvm_available
from pullback.errors import ArgumentError, CompileError

pytestmark = pytest.mark.skipif(not llvm_available(), reason="machine code needs llvmlite")


def loss(w: np.ndarray, x: np.ndarray) -> np.ndarray:
    h = np.tanh(x @ w)
    order = np.linalg.eigvalsh(h.T @ h)
    return np.sum(h * h) + np.sum(order)


def test_profile_has_every_step_with_ops_lines_and_bytes() -> None:
    w, x = np.ones((3, 2)), np.arange(12.0).reshape(4, 3)
    compiled = pb.compile(pb.value_and_grad(loss, argnums=0))
    profile = compiled.profile(w, x, rounds=2)
    product = profile.steps[0]
    assert product.ops == ("product",)
    assert (product.bytes_read, product.bytes_written, product.bytes_moved) == (8 * 18, 8 * 8, 8 * 26)
    assert any(line.startswith("test_profile.py:") for line in product.lines)
    assert {"tanh", "sum"} <= {op for step in profile.steps for op in step.ops}
    assert sum(step.share for step in profile.steps) == pytest.approx(1.0)
    assert all(step.seconds > 0 for step in profile.steps)
    assert len(profile.steps) == len(compiled.lower(w, x).stages.scheduled)
    assert str(profile).count("\n") == len(profile.steps) + 1


def test_profile_does_not_change_variables() -> None:
    v = pb.variable(np.ones(3))
    compiled = pb.compile(lambda x: v.assign(v * x))
    compiled.profile(np.full(3, 2.0), rounds=3)
    np.testing.assert_array_equal(v.numpy(), 1.0)


def test_profile_page_has_source_and_steps(tmp_path: Path) -> None:
    page = pb.compile(loss).profile(np.ones((3, 2)), np.ones((4, 3)), rounds=1).to_html(tmp_path / "page.html")
    text = page.read_text("utf-8")
    assert "h = np.tanh(x @ w)" in text
    assert "share of the time" in text
    assert "http" not in text


def test_profile_page_of_function_without_source(tmp_path: Path) -> None:
    names: dict[str, Any] = {"np": np}
    exec("def made_by_exec(x):\n    return np.sum(np.tanh(x))", names)
    for f in (names["made_by_exec"], np.sum):
        text = pb.compile(f).profile(np.ones(3), rounds=1).to_html(tmp_path / "page.html").read_text("utf-8")
        assert "share of the time" in text
        assert "np.tanh" not in text


def test_profile_rejects_numpy_backend_and_zero_rounds() -> None:
    with pytest.raises(CompileError, match="profile: sum is not machine code here"):
        pb.compile(np.sum, backend="numpy").profile(np.ones(3))
    with pytest.raises(ArgumentError, match="profile: rounds must be 1 or more, got 0"):
        pb.compile(np.sum).profile(np.ones(3), rounds=0)
