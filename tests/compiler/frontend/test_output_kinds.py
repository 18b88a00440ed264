"""Types of results: a compiled function returns tensors, arrays, numbers and lists where the function does."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core.weak import WeakInt

SQUARES = lambda x: pb.sum(x * x)
CAPTURED, ARRAY = pb.tensor([2.0, 3.0]), np.ones(2, "f4")
FUNCTIONS = {
    "itself": lambda x: x, "operators": lambda x: (x * 2, x / 3 + 1), "op": pb.sin, "fold": pb.sum,
    "tensor": lambda x: pb.ones((2,)), "array": lambda x: [np.ones(2), 1.5], "captured": lambda x: x * CAPTURED,
    "several": lambda x: {"a": x, "b": pb.exp(x), "c": [np.float32(2) * 1.0]}, "grad": pb.grad(SQUARES),
    "value and grad": pb.value_and_grad(SQUARES), "captured grad": pb.grad(lambda x: pb.sum(x * CAPTURED)),
    "jvp": lambda x: pb.jvp(SQUARES, [x], [x]), "vjp": lambda x: pb.vjp(SQUARES, x)[0],
    "hessian": pb.hessian(lambda x: pb.sum(x**3)), "grad of op": lambda x: pb.grad(SQUARES)(pb.cos(x)),
    "vmap": lambda x: pb.vmap(pb.sin)(pb.stack([x, x])),
}  # fmt: skip
GIVEN = {
    "float": 3.0, "int": 3, "list": [1.0, 2.0], "scalar": np.float64(3), "array": np.ones(2), "tensor": CAPTURED,
    "tensor of rank 0": pb.tensor(3.0), "single": np.ones(2, "f4"), "integers": np.arange(2),
    "integer tensor": pb.tensor(np.arange(2)),
}  # fmt: skip
NOT_OPS_OF_LISTS = ("operators", "captured")  # Python's own, or refused


def describe(x: Any) -> Any:
    parts = pb.core.tree.get_branches(x)
    if parts is not None:
        return type(x), [describe(y) for y in parts[0]]
    kind = np.int64 if type(x) is WeakInt else type(x)  # compiled integers of Python numbers alone are not weak
    return kind, getattr(x, "dtype", None), getattr(x, "shape", None)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("backend", ["llvm", "numpy"])
@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_result_types_match_eager(name: str, given: str, backend: str) -> None:
    if given == "list" and name in NOT_OPS_OF_LISTS:
        pytest.skip("what Python does with a list")
    f, x = FUNCTIONS[name], GIVEN[given]
    compiled = pb.compile(f, backend=backend)
    expected = f(x)
    for _ in range(2):  # traced, and called by the native entry
        found = compiled(x)
        assert describe(found) == describe(expected)
        for a, b in zip(pb.core.tree.leaves(found), pb.core.tree.leaves(expected), strict=True):
            np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=1e-6)


@pytest.mark.parametrize(
    "given", [np.ones((2, 3)), np.ones((2, 3), "u1"), np.arange(3), np.zeros((0, 3)), np.array([1j])]
)
@pytest.mark.parametrize("make", [np.asarray, pb.tensor])
def test_result_types_of_integers_zeros_and_empty_arrays(make: Any, given: Any) -> None:
    def f(x: Any) -> Any:
        zeros = [np.zeros_like(x), np.ones_like(x) + x, np.full_like(x, 2) * x, pb.zeros_like(x), np.zeros_like(x) + 1]
        return zeros, np.exp(x * 0.1), np.sum(x * 0.5), x.T, x[::-1], np.concatenate([x, x])

    compiled = pb.compile(f)
    for _ in range(2):
        assert describe(compiled(make(given))) == describe(f(make(given)))


def test_result_type_depends_on_its_own_arguments() -> None:
    f = pb.compile(lambda x, y, s: (x * 2.0, y * 2.0, x * y, s * 2.0, y * s))
    for x, y in ((CAPTURED, ARRAY), (ARRAY, CAPTURED), (ARRAY, ARRAY)):
        assert [type(z) for z in f(x, y, 0.5)] == [type(z) for z in (x, y, x * y, 0.5, y)]
    assert len(f.programs) == 1


def test_result_types_without_arguments() -> None:
    v = pb.variable([1.0, 2.0], name="without arguments")
    assert type(pb.compile(lambda: v * 2.0)()) is pb.Tensor
    assert type(pb.compile(lambda: np.ones(2))()) is np.ndarray
    assert type(pb.compile(lambda: pb.variable_grads(lambda: pb.sum(v * v)).value)()) is pb.Tensor


def test_python_number_is_float64_in_grad_and_weak_otherwise() -> None:
    single = np.ones(3, "f4")
    f = pb.compile(lambda s: (pb.grad(lambda s: pb.sum(s * single))(s), s * single))
    slope, scaled = f(0.1)
    assert (slope, scaled.dtype) == (3.0, np.float32)
    assert pb.compile(pb.grad(lambda x: pb.sum(x / 3.0)))([1.0, 2.0]) == [1 / 3, 1 / 3]


def test_compile_function_with_attributes() -> None:
    def f(x: Any) -> Any:
        return x * 2.0

    f.mode = f.form = "its own"  # type: ignore[attr-defined]
    assert pb.compile(f)(2.0) == 4.0


def test_first_trace_in_process_equals_second() -> None:
    """The first op of a process is traced as the second is: a square as a square."""
    code = (
        "import numpy as np, pullback as pb\n"
        "f = pb.grad(lambda x: pb.sum((1 - x) ** 2 + x**0.5))\n"
        "first, second = (str(pb.compile(f).lower(np.ones(3)).traced) for _ in range(2))\n"
        "assert first == second, first\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=600, check=False)
    assert not done.returncode, done.stderr
