"""Definitions of ops: bad ones are refused, good ones work in every transform."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.core.axes import broadcast, elementwise1, elementwise2, moves, reduces
from pullback.core.calculus import linear, no_derivative, partials, rule
from pullback.core.lowering import scalar
from pullback.core.op import REGISTRY, alias, list_ops, op
from pullback.core.tensor import BY_KERNEL
from pullback.errors import DefinitionError, PullbackError, ShapeError, UnconnectedError

X = np.array([0.3, 0.7, 1.1])


@pytest.fixture(autouse=True)
def restore_registry() -> Iterator[None]:
    """Remove the ops that a test defines."""
    list_ops()  # imports those that would be removed as well if a test imported them
    registry, kernels, names = dict(REGISTRY), dict(BY_KERNEL), dict(vars(pb.Tensor))
    yield
    for table, before in ((REGISTRY, registry), (BY_KERNEL, kernels)):
        table.clear()
        table.update(before)
    for name in {*vars(pb.Tensor)} - {*names}:
        delattr(pb.Tensor, name)
    for name, value in names.items():
        if vars(pb.Tensor)[name] is not value:
            setattr(pb.Tensor, name, value)


def kernel(x: Any) -> Any:
    return x * x


# ------------------------------------------------------------------ refused


def one(x, /): ...
def two(x, y, /): ...
def with_axis(x, /, axis=None): ...
def open_ended(x): ...
def with_g(g, /): ...
def with_z(x, z, /): ...
def with_p(x, /, p=1): ...
def with_args(x, /, args=1): ...
def with_default(x=1.0, /): ...
def sin(x, /): ...


@pytest.mark.parametrize(
    ("doc", "d", "message"),
    [
        (one, partials(lambda w: w), "one: a rule has a parameter 'w', which is none of g, x, x_shape, z"),
        (one, partials(lambda g, y: g * y), "has a parameter 'y'"),
        (two, partials(lambda x: x, lambda axis: axis), "has a parameter 'axis'"),
        (with_axis, linear(lambda g, x_shape, keepdims: g), "has a parameter 'keepdims', which is none of axis, g, x"),
        (one, linear(lambda g, y_shape: g), "has a parameter 'y_shape'"),
        (one, linear(each=lambda g, x_shape: [g]), "has a parameter 'x_shape'"),
        (one, rule(lambda g: g, jvp=lambda dy: dy), "has a parameter 'dy', which is none of dx, g"),
        (two, partials(1), r"two: 2 inputs \('x', 'y'\) but 1 formulas"),
        (one, partials(1, 1), "1 inputs .* but 2 formulas"),
        (two, linear(lambda g: g), "2 inputs .* but 1 formulas"),
        (one, rule(jvp=lambda dx: dx), "1 inputs .* but 0 formulas"),
        (open_ended, partials(), "inputs come first, without defaults, and are closed by '/'"),
        (with_default, partials(1), "inputs come first, without defaults"),
        (with_g, partials(1), "reserved names"),
        (with_z, partials(1, 1), "'g', 'z', 'p' and 'args' are reserved names"),
        (with_p, partials(1), "reserved names"),
        (with_args, partials(1), "reserved names"),
        (sin, partials(1), "sin: defined twice; an op lives in exactly one place"),
    ],
)
def test_op_rejects_bad_definition(doc: Any, d: Any, message: str) -> None:
    before = dict(REGISTRY), dict(BY_KERNEL), {*vars(pb.Tensor)}
    with pytest.raises(DefinitionError, match=message) as caught:
        op(kernel, acts=elementwise2 if doc in (two, with_z) else elementwise1, d=d)(doc)
    assert isinstance(caught.value, PullbackError)
    assert isinstance(caught.value, TypeError)
    assert before == (dict(REGISTRY), dict(BY_KERNEL), {*vars(pb.Tensor)})


def test_op_rejects_kernel_of_another_op() -> None:
    with pytest.raises(DefinitionError, match="one: its kernel is already that of sin"):
        op(np.sin, acts=elementwise1, d=partials(1))(one)
    assert BY_KERNEL[np.sin] is REGISTRY["sin"]


def test_op_redefined_at_same_place_replaces_former() -> None:
    def cell(factor: float) -> Any:
        def scale_kernel(x: Any) -> Any:
            return x * factor

        @op(scale_kernel, acts=elementwise1, d=partials(lambda g: g * factor))
        def scale_here(x: Any, /) -> Any:
            """``x`` times a factor."""

        return scale_here

    cell(2.0)
    assert pb.grad(cell(3.0))(1.0) == 3
    assert (pb.tensor(1.0).scale_here().item(), REGISTRY["scale_here"].function(1.0)) == (3, 3)

    def scale_here(x: Any, /) -> Any:
        """Another function of the same name."""

    with pytest.raises(DefinitionError, match="scale_here: defined twice"):
        op(lambda x: x, acts=elementwise1, d=partials(1))(scale_here)


# ------------------------------------------------------------------ accepted


def cube(x: Any) -> Any:
    square = x * x  # used twice: on big arrays it must not be written over as a temporary
    more = square * (x - 1)
    return more + square


def cube_slope(g: Any, x: Any) -> Any:
    square = np.square(x)
    if len(x.shape) > 5:  # a formula that branches is called, not flattened
        return g
    twice = square + square
    return g * (twice + square)


def test_kernel_rereads_changed_closure() -> None:
    factor = [2.0]

    @op(lambda x: x * factor[0], acts=elementwise1, d=partials(1))
    def scale_by_variable(x: Any, /) -> Any:
        """Made for a test."""

    f = pb.value_and_grad(lambda x: np.sum(scale_by_variable(x)))
    assert f(X)[0] == np.sum(X * 2.0)
    factor[0] = 5.0
    assert f(X)[0] == np.sum(X * 5.0)


def check_derivatives(f: Any, x: Any, first: Any, second: Any) -> None:
    """Reverse, forward and second order agree with what they must be."""
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(f(x)))(x), first)
    np.testing.assert_allclose(pb.jvp(lambda x: np.sum(f(x)), [x], [np.ones_like(x)])[1], np.sum(first))
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(pb.grad(lambda x: np.sum(f(x)))(x)))(x), second)


@pytest.mark.parametrize(
    "d",
    [
        partials(lambda x: 3 * x * x),
        partials(lambda g, x: g * 3 * (x * x)),
        partials(lambda g, z, x: g * 3 * z / x),
        partials(cube_slope),
        rule(lambda g, x: 3 * g * x * x, jvp=lambda dx, x: 3 * dx * x * x),
    ],
)
@pytest.mark.parametrize("x", [X, np.float64(0.7), np.tile(X, 20_000)], ids=["small", "scalar", "big"])
def test_op_rule_in_reverse_forward_and_second_order(d: Any, x: Any) -> None:
    @op(cube, acts=elementwise1, d=d)
    def cube_here(x: Any, /) -> Any:
        """Made for a test."""

    assert type(cube_here(X)) is np.ndarray
    assert REGISTRY["cube_here"].function is cube_here
    check_derivatives(cube_here, x, 3 * x**2, 6 * x)
    check_derivatives(lambda x: x.cube_here(), x, 3 * x**2, 6 * x)


def test_numpy_function_dispatches_to_op_by_kernel() -> None:
    @op(np.spacing, acts=elementwise1, d=partials(lambda x: x), domain=(1.0, 2.0))
    def spacing_here(x: Any, /) -> Any:
        """Made for a test."""

    out = np.spacing(pb.tensor(X))
    assert isinstance(out, pb.Tensor)
    np.testing.assert_allclose(pb.grad(np.spacing)(X), X)


def test_compiled_op_of_ufunc_without_machine_code_is_run_by_numpy() -> None:
    @op(np.spacing, acts=elementwise1, d=no_derivative())
    def spacing_here(x, /): ...

    np.testing.assert_array_equal(pb.compile(lambda x: spacing_here(x) * 2)(X), np.spacing(X) * 2)


def test_numbers_and_none_as_partials() -> None:
    @op(lambda x, y: 3 * x + 0 * y, acts=elementwise2, d=partials(3, None))
    def three_of_the_first(x: Any, y: Any, /) -> Any:
        """Made for a test."""

    np.testing.assert_allclose(pb.grad(lambda x: three_of_the_first(x, x))(X), [3, 3, 3])
    assert pb.jvp(lambda x: three_of_the_first(x, x), [2.0], [1.0])[1] == 3.0
    with pytest.raises(UnconnectedError, match="three_of_the_first"):
        pb.grad(lambda y: three_of_the_first(X, y))(X)


def test_op_parameters_are_passed_to_rules() -> None:
    @op(lambda x, scale, by: x * scale + by, acts=elementwise1, d=partials(lambda scale: scale))
    def scale_here(x: Any, /, scale: float, by: float = 0.0) -> Any:
        """Made for a test."""

    for call in (
        lambda x: scale_here(x, 3.0),
        lambda x: scale_here(x, scale=3.0, by=1.0),
        lambda x: x.scale_here(3.0, 1),
    ):
        np.testing.assert_allclose(pb.grad(call)(X), [3, 3, 3])
        assert pb.jvp(call, [2.0], [1.0])[1] == 3.0
    with pytest.raises(TypeError, match="scale"):
        scale_here(X)


def test_op_with_list_of_inputs() -> None:
    @op(
        lambda xs: np.concatenate([*xs, *xs]),
        acts=moves(lambda *shapes: (2 * sum(s[0] for s in shapes),), []),
        d=linear(each=lambda g, xs_shapes: [g[:3] + g[5:8], g[3:5] + g[8:]]),
    )
    def join_twice(xs: Any, /) -> Any:
        """Made for a test."""

    w = np.arange(10.0)
    a, b = pb.grads(lambda a, b: np.sum(join_twice([a, b]) * w))([X, X[:2]])
    np.testing.assert_allclose(a, [5, 7, 9])
    np.testing.assert_allclose(b, [11, 13])
    np.testing.assert_allclose(pb.grad(lambda b: np.sum(join_twice([X, b]) * w))(X[:2]), [11, 13])


def test_op_with_three_broadcast_inputs() -> None:
    @op(
        lambda x, y, z_: x * y + z_,
        acts=broadcast("(),(),()->()"),
        d=partials(lambda y: y, lambda x: x, 1),
    )
    def times_plus(x: Any, y: Any, z_: Any, /) -> Any:
        """Made for a test."""

    x, y, z = np.ones((2, 3)), X, np.float64(2.0)
    dx, dy, dz = pb.grads(lambda *a: np.sum(times_plus(*a)))([x, y, z])
    np.testing.assert_allclose(dx, np.tile(X, (2, 1)))
    np.testing.assert_allclose(dy, [2, 2, 2])
    assert dz == 6
    with pytest.raises(ShapeError, match=r"times_plus: shapes \(2, 3\) and \(3,\) and \(2,\) do not broadcast"):
        times_plus(x, y, np.ones(2))


def test_constant_op_raises_unconnected_error_with_location() -> None:
    @op(np.rint, acts=elementwise1, d=no_derivative())
    def round_here(x: Any, /) -> Any:
        """Made for a test."""

    with pytest.raises(UnconnectedError, match=r"round_here \(test_definitions.py:\d+\)"):
        pb.grad(lambda x: round_here(x) * 2.0)(X)
    np.testing.assert_array_equal(pb.grad(lambda x: round_here(x) * x)(X), np.rint(X))


def test_reduction_op_with_axis_and_keepdims() -> None:
    @op(
        lambda x, axis=None, keepdims=False: np.sum(x * x, axis=axis, keepdims=keepdims),
        acts=reduces(),
        d=rule(
            lambda g, x, axis, keepdims: 2 * x * (g if keepdims or axis is None else np.expand_dims(g, axis)),
            jvp=lambda dx, x, axis, keepdims: np.sum(2 * x * dx, axis=axis, keepdims=keepdims),
        ),
    )
    def squares_here(x: Any, /, axis: Any = None, keepdims: bool = False) -> Any:
        """Made for a test."""

    x = np.outer(X, X)
    for params in ({}, {"axis": 0}, {"axis": -1, "keepdims": True}):
        np.testing.assert_allclose(pb.grad(lambda x, p=params: squares_here(x, **p))(x), 2 * x)
    with pytest.raises(ShapeError, match="squares_here: axis 2 is out of range for rank 2; use -2 to 1"):
        squares_here(x, axis=2)


def test_alias_is_same_function_and_method() -> None:
    other = alias("sine_here", pb.sin)
    assert other is pb.sin
    np.testing.assert_allclose(pb.tensor(X).sine_here().numpy(), np.sin(X))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_formula_of_operators_compiles_as_its_kernel(dtype: Any, tmp_path: Path) -> None:
    def emit(s: Any, x: Any) -> Any:
        inner = s.select((x == 2.0) | (x != x), 0.5 / x, s.select((x < 1.5) ^ (x > 2.5), 2.0 + x, 1.0 - x))
        return s.select((x <= 0.5) | (x >= 3.0), 3.0 * s.exp2(x), inner)

    def kernel(x: Any) -> Any:
        inner = np.where((x == 2.0) | (x != x), 0.5 / x, np.where((x < 1.5) ^ (x > 2.5), 2.0 + x, 1.0 - x))
        return np.where((x <= 0.5) | (x >= 3.0), 3.0 * np.exp2(x), inner)

    made = op(kernel, acts=elementwise1, d=no_derivative(), lower=scalar(emit))(one)
    x = np.array([0.25, 0.5, 1.0, 1.5, 1.75, 2.0, 2.25, 2.75, 3.0, 4.0, np.nan], dtype)
    np.testing.assert_allclose(pb.compile(made)(x), kernel(x), 1e-6)
    runtime = pytest.importorskip("onnxruntime")
    pb.save_onnx(made, tmp_path / "one.onnx", x)
    session = runtime.InferenceSession(tmp_path / "one.onnx", providers=["CPUExecutionProvider"])
    np.testing.assert_allclose(session.run(None, {"input_0": x})[0], kernel(x), 1e-6)
