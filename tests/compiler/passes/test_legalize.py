"""Which nodes have machine code; slices of sums of products, and matrices of products in loops."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from exhaustive import sample

import pullback as pb
from pullback.compiler.builder import TYPES, Code, Value, code_of
from pullback.compiler.ir.graph import Node, is_number
from pullback.compiler.ir.kinds import LOOP, MAP
from pullback.compiler.ir.params import FrozenParams
from pullback.compiler.math.cost import count_instructions
from pullback.compiler.math.functions import VectorFunctions
from pullback.core import tree
from pullback.core.lowering import fold, scalar
from pullback.core.op import list_ops
from pullback.errors import ArgumentError, IndexRangeError


def gates(x: Any, w: Any, b: Any) -> Any:
    i, f = np.split(x @ w + b, 2, -1)
    return np.tanh(i) * pb.sigmoid(f)


def overlap(x: Any, w: Any, b: Any) -> Any:
    z = x @ w + b
    return np.tanh(z[:, :20]) * z[:, 12:]


def blocks(x: Any, w: Any, b: Any) -> Any:
    z = (x @ w + b).reshape(3, 2, 2, 16)
    return np.exp(z[:, :, 0]) - z[:, :, 1] * 2.0


def rows(x: Any, w: Any, b: Any) -> Any:
    z = x @ w * b
    return np.exp(z[:3]) - z[3:]


def whole(x: Any, w: Any, b: Any) -> Any:
    z = x @ w + b
    return np.tanh(z[:, :16]) * z[:, 16:], z


@pytest.mark.parametrize("f", [gates, overlap, blocks, rows, whole])
def test_slices_of_sum_equal_numpy(f: Any) -> None:
    rng = np.random.default_rng(0)
    x, w, b = rng.normal(size=(6, 5)), rng.normal(size=(5, 32)), rng.normal(size=32)
    for z, expected in zip(pb.compile(f)(x, w, b), f(x, w, b), strict=True):
        np.testing.assert_allclose(z, expected, rtol=1e-12)
    gradients = pb.grads(lambda *a: np.sum(f(*a)[0] ** 2))
    for z, expected in zip(pb.compile(gradients)([x, w, b]), gradients([x, w, b]), strict=True):
        np.testing.assert_allclose(z, expected, rtol=1e-10, atol=1e-12)


def test_matrix_in_loop_is_padded_to_avoid_shared_cache_lines() -> None:
    rng = np.random.default_rng(0)
    w, h, xs = rng.normal(size=(64, 128)) / 8, rng.normal(size=(8, 64)), rng.normal(size=(3, 8, 64))

    def f(w: Any, h: Any, xs: Any) -> Any:
        def step(h: Any, x: Any) -> Any:
            z = np.tanh(h @ w)
            return z[:, :64] * z[:, 64:] + x, None

        return np.sum(pb.scan(step, h, xs)[0])

    compiled = pb.compile(pb.value_and_grad(f, argnums=0))
    (value, dw), (expected, dw_expected) = compiled(w, h, xs), pb.value_and_grad(f, argnums=0)(w, h, xs)
    np.testing.assert_allclose(value, expected, rtol=1e-12)
    np.testing.assert_allclose(dw, dw_expected, rtol=1e-10, atol=1e-12)
    loops = [n for n in compiled.lower(w, h, xs).stages.legalized.nodes if n.kind is LOOP]
    assert any((64, 136) in [a.shape for a in n.args] for n in loops)


def sum_orders(x: Any) -> Any:
    return pb.scan(lambda c, y: (c + np.argsort(c * y), c.sum()), x, np.cos(np.arange(12.0)).reshape(4, 3))


def double_by_order(x: Any) -> Any:
    return pb.while_loop(lambda c: c.sum() < 50.0, lambda c: c * 2.0 + np.argsort(c), x)


def choose_order(x: Any) -> Any:
    return pb.cond(x[0] > 2.0, lambda y: np.argsort(y) * 1.0, lambda y: y * 3.0, x)


@pytest.mark.parametrize("f", [sum_orders, double_by_order, choose_order])
def test_host_op_in_body_of_loop_or_branch(f: Any) -> None:
    compiled = pb.compile(f, cache=False)
    for x in (np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 2.0])):
        for z, wanted in zip(tree.leaves(compiled(x)), tree.leaves(f(x)), strict=True):
            np.testing.assert_allclose(z, wanted)
    program = compiled.lower(np.ones(3))
    assert [k for k in program.kernels if k.endswith("by its NumPy kernel")]
    assert "np.argsort" in str(program)


NUMBERS = [0, 1, 2, 64, 65, -1, 0.5]  # instead of the first or the last argument


def agrees_with_emission(n: Node) -> bool:
    """Return whether the lowering of a node says that it has machine code if it can be emitted."""
    (op, params), dtypes = n.data, tuple(code_of(a.dtype) for a in n.args)
    numbers = tuple(a.data.item() if is_number(a) else None for a in n.args)
    count = count_instructions(op, dtypes, code_of(n.dtype), FrozenParams(params), numbers)
    return bool(op.lower.fits(dtypes, numbers) == (count is not None))


@pytest.mark.parametrize("op", [op for op in list_ops() if isinstance(op.lower, scalar)], ids=lambda op: op.name)
def test_scalar_op_has_machine_code_where_its_lowering_fits(op: Any) -> None:
    samples, params = op.acts.samples()[0]
    checked = 0
    for dtype in (None, *sample([*TYPES], 3, first=len(op.name) % 3)):
        arrays = [np.ones(7, dtype or (x.dtype if isinstance(x, np.ndarray | np.generic) else float)) for x in samples]
        cases = [arrays, *((x, *arrays[1:]) for x in NUMBERS), *((*arrays[:-1], x) for x in NUMBERS)]
        for args in cases if len(samples) > 1 else [arrays]:
            try:
                traced = pb.compile(lambda *xs: op.function(*xs, **params), backend="numpy").lower(*args).traced
            except (ArgumentError, IndexRangeError):  # the op is not for these dtypes
                continue
            for n in traced.nodes:
                if n.kind is MAP and all(code_of(x.dtype) in TYPES for x in (n, *n.args)):
                    assert agrees_with_emission(n), (str(n), args)
                    checked += 1
    assert checked


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("op", [op for op in list_ops() if isinstance(op.lower, fold)], ids=lambda op: op.name)
def test_fold_has_machine_code_for_all_dtypes(op: Any, dtype: str) -> None:
    code = Code()
    op.lower.emit(VectorFunctions(code), Value(code, "%x", dtype, 1), Value(code, "%y", dtype, 1))
    assert code.body
