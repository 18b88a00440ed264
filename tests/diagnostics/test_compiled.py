"""debug_nans and strong_zero around calls of compiled functions."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

import pullback as pb

BACKENDS = pytest.mark.parametrize("backend", ["llvm", "numpy"])
AT_ZERO = np.array([0.0, 4.0])


def loss(w: Any) -> Any:
    return pb.mean(pb.log(w - 1.0))


def guarded_root(x: Any) -> Any:
    return pb.sum(pb.where(x > 0, pb.sqrt(x), 0.0))


@BACKENDS
def test_debug_nans_compiled_error_equals_eager_error(backend: str) -> None:
    f = pb.compile(pb.grad(loss), backend=backend)
    good, bad = np.array([2.0, 3.0]), np.array([3.0, 1.0])
    assert np.isinf(f(bad)[1])  # compiled already, and called the quick way
    with pb.debug_nans():
        np.testing.assert_allclose(f(good), [0.5, 0.25])
        with pytest.raises(pb.errors.NanError) as compiled:
            f(bad)
        with pytest.raises(pb.errors.NanError) as eager:
            pb.grad(loss)(bad)
    assert str(compiled.value) == str(eager.value)
    assert compiled.value.report.op == "log"
    assert compiled.value.report.index == (1,)
    assert np.isinf(f(bad)[1])


@pytest.mark.parametrize(
    ("f", "args", "kwargs"),
    [
        (lambda x: pb.log(x), (0.0,), {}),
        (lambda x: {"a": [x, pb.sqrt(x)]}, (pb.tensor([4.0, -1.0]),), {}),
        (lambda x, *, by: x / by, (1.0,), {"by": 0.0}),
        (lambda x: pb.cumsum(pb.log(x)), (AT_ZERO,), {}),
        (lambda tree: tree["x"] / tree["y"], ({"x": 1.0, "y": 0.0},), {}),
    ],
    ids=["number", "tensor", "by name", "several pieces", "tree"],
)
def test_debug_nans_checks_compiled_calls(f: Any, args: Any, kwargs: Any) -> None:
    with pb.debug_nans(), pytest.raises(pb.errors.NanError, match=r"It began in the program, with (log|sqrt|div) at"):
        pb.compile(f)(*args, **kwargs)


def test_debug_nans_compiled_ignores_nonfinite_inputs() -> None:
    f = pb.compile(lambda x: x * 2.0)
    with pb.debug_nans():
        np.testing.assert_array_equal(f(np.array([np.nan, np.inf, 1.0])), [np.nan, np.inf, 2.0])


def test_debug_nans_compiled_checks_assigned_variables() -> None:
    w = pb.variable(np.array([1.0, 4.0]), name="spoilt")

    @pb.compile
    def step(rate: Any) -> Any:
        value, grads = pb.variable_grads(lambda: pb.sum(pb.sqrt(w)))
        w.assign(w - rate * grads["spoilt"])
        return value

    with pb.debug_nans():
        step(2.0)
        np.testing.assert_allclose(w.numpy(), [0.0, 3.5])
        with pytest.raises(pb.errors.NanError, match="derivative of sqrt") as error:
            step(2.0)
    assert error.value.report.op == "sqrt"
    assert type(w.read()) is pb.Tensor
    assert w.numpy()[0] == -np.inf  # assigned as without the block


def test_debug_nans_block_allows_tracing() -> None:
    w = pb.variable(np.array([1.0, 4.0]), name="first seen")
    with pb.debug_nans():
        f = pb.compile(lambda x: pb.variable_grads(lambda: pb.sum(w * w * x)).value)
        assert f.lower(2.0).kernels
        assert f(2.0) == 34.0


@BACKENDS
def test_strong_zero_is_part_of_cache_key(backend: str) -> None:
    f = pb.compile(pb.grad(guarded_root), backend=backend)
    for _ in range(2):
        np.testing.assert_array_equal(f(AT_ZERO), [np.nan, 0.25])
        with pb.strong_zero():
            np.testing.assert_array_equal(f(AT_ZERO), [0.0, 0.25])
            np.testing.assert_array_equal(f(AT_ZERO), [0.0, 0.25])
    assert len(f.programs) == 2
    strong_first = pb.compile(pb.grad(guarded_root), backend=backend)
    with pb.strong_zero():
        np.testing.assert_array_equal(strong_first(AT_ZERO), [0.0, 0.25])
    np.testing.assert_array_equal(strong_first(AT_ZERO), [np.nan, 0.25])


def test_debug_nans_compiled_other_threads() -> None:
    f = pb.compile(pb.grad(guarded_root))
    found: list[Any] = []
    with pb.strong_zero(), pb.debug_nans():
        t = threading.Thread(target=lambda: found.extend(f(AT_ZERO) for _ in range(2)))
        t.start()
        t.join()
        np.testing.assert_array_equal(f(AT_ZERO), [0.0, 0.25])
    np.testing.assert_array_equal(found, [[np.nan, 0.25]] * 2)
