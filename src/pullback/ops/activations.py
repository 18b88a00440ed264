"""Activation functions of neural networks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core.accelerate import run_compiled_if, run_elements
from pullback.core.axes import Sample, elementwise1, elementwise2, keeps_shape, moves
from pullback.core.calculus import partials, rule
from pullback.core.lowering import made_of, scalar
from pullback.core.memory import Scratch, make_scratch, unwrap_scratch
from pullback.core.op import alias, method, op
from pullback.core.residuals import find_residual, keep_residual
from pullback.core.tensor import RAW
from pullback.errors import ArgumentError
from pullback.numerics.adjoints import find_repeated, make_zero_cotangent, select
from pullback.numerics.axis_arguments import resolve_axes
from pullback.numerics.dtypes import make_dtype
from pullback.numerics.small_arrays import max_quickly, sum_quickly

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.core.tensor import Tensor
    from pullback.typing import Array, ArrayOrNumber, Axis, TensorLike, Value

__all__ = [
    "relu", "relu6", "leaky_relu", "prelu", "elu", "selu", "step",
    "sigmoid", "log_sigmoid", "softplus", "swish", "silu", "softmax", "log_softmax",
]  # fmt: skip

FLOATS = [make_dtype(t) for t in ("f4", "f8")]
ZERO = {t: np.zeros((), t) for t in FLOATS}  # quicker than a Python 0
# exp(top) is finite
ONE_AND_TOP = {t: (np.ones((), t), np.array(np.floor(np.log(np.finfo(t).max)), t)) for t in FLOATS}
quick_exp = run_elements(np.exp)
MIN_COMPILED = 1 << 16  # elements from which machine code is worth compiling
MAX_SLOW = 1024  # elements up to which NumPy's logaddexp is used, which takes 20 ns for each
SELU_SCALE = 1.0507009873554805
SELU_DEPTH = SELU_SCALE * 1.6732632423543772  # the limit to the left is -SELU_DEPTH


# ---- with a kink at 0


def _check_ordered(name: str, x: Value) -> int:
    """Return 0 for dtypes that are not in ZERO; raise for complex numbers, which have no order."""
    if x.dtype.kind == "c":
        raise ArgumentError(f"{name}: complex numbers have no order; take x.real or pb.abs(x) first.")
    return 0


def _relu(x: Array) -> Any:
    zero = ZERO.get(x.dtype)
    return np.maximum(x, _check_ordered("relu", x) if zero is None else zero)


def _pull_relu(g: Any, z: Any) -> Any:
    """Return ``g`` where the result is positive, 0 where it is 0, and NaN where it is NaN."""
    return g * np.sign(z)


_pull_relu_quickly = run_compiled_if(lambda g, z: True, _pull_relu)


def _pull_relu_by_size(g: Any, z: Any) -> Any:
    if z.size >= MIN_COMPILED:
        cotangent, result = unwrap_scratch(g), unwrap_scratch(z)
        if type(cotangent) is type(result) is ndarray:
            return _pull_relu_quickly(find_repeated(cotangent), result)
    return _pull_relu(g, z)


@op(
    _relu,
    acts=elementwise1,
    d=partials(lambda g, z: _pull_relu_by_size(g, z)),
    run=run_elements(_relu),
    lower=scalar(lambda s, x: s.maximum(x, 0)),
)
def relu(x: TensorLike, /) -> Any:
    """Return the rectified linear unit, ``maximum(x, 0)``; its derivative at 0 is 0.

    x: a tensor, an array or a number.

    >>> pb.relu(np.array([-1.0, 2.0]))
    array([0., 2.])
    """


def _relu6(x: Array) -> Any:
    zero = ZERO.get(x.dtype)
    return np.minimum(np.maximum(x, _check_ordered("relu6", x) if zero is None else zero), 6)


@op(
    _relu6,
    acts=elementwise1,
    d=partials(lambda g, x: g * ((x > 0) & (x <= 6))),
    lower=scalar(lambda s, x: s.minimum(s.maximum(x, 0), 6)),
)
def relu6(x: TensorLike, /) -> Any:
    """Return ``x`` clipped to the range from 0 to 6.

    >>> pb.relu6(np.array([-1.0, 2.0, 8.0]))
    array([0., 2., 6.])
    """


def _choose_alpha(alpha: Any, otherwise: float) -> float:
    return otherwise if alpha is None else float(alpha)


def _leaky_relu(x: Array, alpha: ArrayOrNumber | None = 0.2) -> Any:
    a = _choose_alpha(alpha, 0.2)
    if x.dtype not in ZERO:
        _check_ordered("leaky_relu", x)
    return np.maximum(x, x * a) if 0 < a <= 1 else select(x > 0, x, x * a)


@op(
    _leaky_relu,
    acts=keeps_shape({}, {"alpha": 0.1}, {"alpha": 2.0}),
    d=partials(lambda g, x, alpha: select(x > 0, g, g * _choose_alpha(alpha, 0.2))),
    lower=scalar(lambda s, x, alpha: s.select(s.greater(x, 0), x, x * _choose_alpha(alpha, 0.2))),
)
def leaky_relu(x: TensorLike, /, alpha: float = 0.2) -> Any:
    """Return ``x`` where it is positive, else ``alpha * x``.

    x: a tensor, an array or a number.
    alpha: the slope for negative inputs.

    >>> pb.leaky_relu(np.array([-1.0, 2.0]))
    array([-0.2,  2. ])
    """


def _prelu(x: ArrayOrNumber, alpha: ArrayOrNumber) -> Any:
    product: Any = x * alpha
    if product.dtype not in ZERO:
        _check_ordered("prelu", product)
    return select(np.less(x, 0), product, x)


@op(
    _prelu,
    acts=elementwise2,
    d=partials(lambda g, x, alpha: select(x > 0, g, g * alpha), lambda g, x: select(x > 0, 0, g * x)),
    lower=scalar(lambda s, x, alpha: s.select(s.less(x, 0), x * alpha, x)),
)
def prelu(x: TensorLike, alpha: TensorLike, /) -> Any:
    """Return ``leaky_relu`` with a tensor of slopes, which can be trained.

    x: a tensor, an array or a number.
    alpha: the slopes for negative inputs, broadcast against ``x``.

    >>> pb.prelu(np.array([-1.0, 2.0]), np.array([0.5, 0.5]))
    array([-0.5,  2. ])
    """


def _elu(x: Array) -> Any:
    zero: Any = ZERO.get(x.dtype)
    if zero is None:
        zero = _check_ordered("elu", x)
    return np.maximum(x, zero) + np.expm1(np.minimum(x, zero))


@op(
    _elu,
    acts=elementwise1,
    d=partials(lambda g, z: g + g * np.minimum(z, 0)),
    lower=scalar(lambda s, x: s.select(s.greater(x, 0), x, s.expm1(s.minimum(x, 0)))),
    run=run_elements(_elu),
)
def elu(x: TensorLike, /) -> Any:
    """Return the exponential linear unit: ``x`` where it is positive, else ``exp(x) - 1``.

    >>> pb.elu(np.array([-100.0, 2.0]))
    array([-1.,  2.])
    """


def _selu(x: Array) -> Any:
    zero: Any = ZERO.get(x.dtype)
    if zero is None:
        zero, x = _check_ordered("selu", x), x if x.dtype.kind == "f" else x.astype(float)
    return np.maximum(x, zero) * SELU_SCALE + np.expm1(np.minimum(x, zero)) * SELU_DEPTH


@op(
    _selu,
    acts=elementwise1,
    d=partials(lambda g, z: select(z > 0, g * SELU_SCALE, g * (z + SELU_DEPTH))),
    lower=scalar(lambda s, x: s.select(s.greater(x, 0), x * SELU_SCALE, s.expm1(s.minimum(x, 0)) * SELU_DEPTH)),
    run=run_elements(_selu),
)
def selu(x: TensorLike, /) -> Any:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1 through a network.

    x: a tensor, an array or a number.

    >>> pb.selu(np.array([-1.0, 1.0]))
    array([-1.11133074,  1.05070099])
    """


def _step(x: Value, alpha: Any = 0.0) -> Any:
    z = select(np.isnan(x), x, select(x > _check_ordered("step", x), 1, _choose_alpha(alpha, 0.0)))
    return z.astype(x.dtype) if x.dtype.kind == "f" else z


@op(
    _step,
    acts=keeps_shape({}, {"alpha": 0.5}),
    d=partials(lambda g: make_zero_cotangent(g)),
    lower=scalar(
        lambda s, x, alpha: s.select(s.isnan(x), x, s.select(s.greater(x, 0), 1.0, _choose_alpha(alpha, 0.0)))
    ),
)
def step(x: TensorLike, /, alpha: float = 0.0) -> Any:
    """Return 1 where ``x`` is positive, else ``alpha``; its derivative is 0.

    >>> pb.step(np.array([-1.0, 2.0]), 0.5)
    array([0.5, 1. ])
    """


# ---- smooth


def _sigmoid(x: Array) -> Any:
    known = ONE_AND_TOP.get(x.dtype)
    if known is None:
        if x.dtype.kind == "c":
            return _complex_sigmoid(x)
        z = _sigmoid(x.astype(np.result_type(x.dtype, np.float32)))
        return z.astype(x.dtype) if x.dtype.kind == "f" else z
    one, top = known
    e = np.exp(np.minimum(x, top))  # no overflow to the right, full precision to the left
    return e / (e + one)


def _complex_sigmoid(x: Array) -> Any:
    right = x.real >= 0
    e = np.exp(select(right, -x, x))  # of the side on which it does not overflow
    return select(right, 1, e) / (e + 1)


def _convert_odds(e: Any) -> Any:
    return e / (e + 1)


@op(
    _sigmoid,
    acts=elementwise1,
    d=partials(lambda z: z - z * z),
    lower=scalar(lambda s, x: _convert_odds(s.exp(s.minimum(x, 40)))),  # from there on it is 1
    run=run_elements(_sigmoid),
)
def sigmoid(x: TensorLike, /) -> Any:
    """Return ``1 / (1 + exp(-x))``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.sigmoid(np.array([-1000.0, 0.0, 1000.0]))
    array([0. , 0.5, 1. ])
    """


def _softplus(x: Array) -> Any:
    return np.logaddexp(x, _check_ordered("softplus", x) if x.dtype not in ZERO else ZERO[x.dtype])


@op(
    _softplus,
    acts=elementwise1,
    d=partials(lambda g, z: -(g * np.expm1(-z))),
    lower=scalar(lambda s, x: s.maximum(x, 0) + s.log1p(s.exp(-s.absolute(x)))),
    run=run_elements(_softplus, MAX_SLOW),
)
def softplus(x: TensorLike, /) -> Any:
    """Return ``log(1 + exp(x))``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.softplus(np.array([-1000.0, 0.0, 1000.0]))
    array([0.00000000e+00, 6.93147181e-01, 1.00000000e+03])
    """


def _log_sigmoid(x: Array) -> Any:
    return -np.logaddexp(-x, _check_ordered("log_sigmoid", x) if x.dtype not in ZERO else ZERO[x.dtype])


@op(
    _log_sigmoid,
    acts=elementwise1,
    d=partials(lambda g, z: -(g * np.expm1(z))),
    lower=scalar(lambda s, x: -(s.maximum(-x, 0) + s.log1p(s.exp(-s.absolute(x))))),
    run=run_elements(_log_sigmoid, MAX_SLOW),
)
def log_sigmoid(x: TensorLike, /) -> Any:
    """Return ``log(sigmoid(x))``, without overflow.

    x: a tensor, an array or a number.

    >>> pb.log_sigmoid(np.array([-1000.0, 0.0]))
    array([-1.00000000e+03, -6.93147181e-01])
    """


@method
def swish(x: TensorLike) -> Any:
    """Return ``x * sigmoid(x)``.

    x: a tensor, an array or a number.

    >>> pb.swish(np.array([-1000.0, 0.0, 3.0]))
    array([-0.        ,  0.        ,  2.85772238])
    """
    return np.multiply(x, sigmoid(x))


# ---- over an axis


def _choose_axis(dim: int | None, axis: int | None = None) -> Any:
    return axis if axis is not None else -1 if dim is None else dim


def _sum_keeping_axis(x: Value, axis: int) -> Any:
    if type(x) is ndarray:
        return sum_quickly(x, axis, True)
    return np.sum(x, axis=axis, keepdims=True) if x.shape else x


def _subtract_max(x: Array, axis: int) -> Any:
    """Return ``x`` minus its maximum, so that exp cannot overflow."""
    if type(x) is not ndarray or not x.size:
        return x - x if x.dtype.kind == "f" else x * 0.0
    if x.dtype.kind != "f":
        x = x * 1.0  # bools do not subtract, unsigned integers wrap around
    return x - max_quickly(x, axis, True)


def _softmax(x: Array, dim: int | None = -1, axis: int | None = None) -> Any:
    axis = _choose_axis(dim, axis)
    e = quick_exp(_subtract_max(x, axis))
    return np.divide(e, _sum_keeping_axis(e, axis), out=e if type(e) is ndarray else None)


def _act_along_axis(name: str) -> moves:
    def shape(s: Any, dim: int | None = None, axis: int | None = None) -> Any:
        resolve_axes(len(s) or 1, _choose_axis(dim, axis), name)
        return s

    samples: list[Sample] = [(((),), {}), (((4,),), {}), (((0, 3),), {}), (((3, 0),), {}), (((2, 3, 4),), {"axis": 1})]

    def batch(op: Op, args: list[Any], on: Sequence[bool], params: dict[str, Any]) -> Any:
        (x,) = args
        axes = tuple(
            a + 1 for a in resolve_axes(x.ndim - 1 or 1, _choose_axis(params.get("dim"), params["axis"]), name)
        )
        shifted = {**params, "axis": axes if len(axes) > 1 else axes[0]}
        return op.call([x], shifted) if x.ndim > 1 else op.call([x[:, None]], shifted)[:, 0]

    return moves(shape, samples, batch)


def _compose_subtract_max(x: Tensor, axis: int) -> Any:
    x = x if x.dtype.kind == "f" else x * 1.0
    return x - np.max(x, axis=axis, keepdims=True) if x.size and x.ndim else x - x


def _compose_softmax(x: Tensor, dim: int, axis: int | None) -> Any:
    axis = _choose_axis(dim, axis)
    e = np.exp(_compose_subtract_max(x, axis))
    return e * (1.0 / _sum_keeping_axis(e, axis))  # a division for each row


def _compose_log_softmax(x: Tensor, axis: int) -> Any:
    y = _compose_subtract_max(x, _choose_axis(axis))
    return y - np.log(_sum_keeping_axis(np.exp(y), _choose_axis(axis)))


def _has_many(x: Array, dim: int | None = -1, axis: int | None = None) -> bool:
    return x.size >= MIN_COMPILED and type(_choose_axis(dim, axis)) is int


def _has_numbers(z: Array, x: Array, dim: int | None = -1, axis: int | None = None) -> bool:
    """Return whether no first result along the axis is NaN; where one is NaN, all are."""
    return not np.isnan(np.take(z, 0, _choose_axis(dim, axis))).any()


def _pull_softmax(g: Value, z: Value, axis: int) -> Any:
    return (g - _sum_keeping_axis(g * z, axis)) * z


_pull_softmax_quickly = run_compiled_if(lambda g, z, axis: _has_many(g, axis), _pull_softmax)


def _choose_pull_softmax(g: Value, z: Value, dim: int, axis: int | None) -> Any:
    cotangent, result = unwrap_scratch(g), unwrap_scratch(z)
    if type(cotangent) is type(result) is ndarray:
        return _pull_softmax_quickly(cotangent, result, _choose_axis(dim, axis))
    return _pull_softmax(g, z, _choose_axis(dim, axis))


@op(
    _softmax,
    acts=_act_along_axis("softmax"),
    d=partials(_choose_pull_softmax),
    run=run_compiled_if(_has_many, _softmax, is_finite=_has_numbers),
    lower=made_of(_compose_softmax),
)
def softmax(logits: TensorLike, /, dim: int = -1, axis: Axis = None) -> Any:
    """Return ``exp(logits)`` divided by its sum over ``dim``; ``axis`` is another name for ``dim``.

    logits: scores, whose exponentials are proportional to probabilities.
    dim: the axis of the classes.
    axis: the axis; a negative one counts from the last.

    >>> pb.softmax(np.array([1000.0, 1000.0]))
    array([0.5, 0.5])
    """


def _log_softmax(x: Array, axis: int | None = -1, saves: bool = False) -> Any:
    axis = _choose_axis(axis)
    y = _subtract_max(x, axis)
    if not y.size:
        return y
    e = quick_exp(y)
    s = _sum_keeping_axis(e, axis)
    z = np.subtract(y, np.log(s), out=y if type(y) is ndarray else None)
    if saves:
        keep_residual(z, (e, s))
    return z


def _pull_log_softmax(g: Any, logits: Value, axis: int) -> Any:
    return g - softmax(logits, axis=axis) * _sum_keeping_axis(g, axis)


_pull_log_softmax_quickly = run_compiled_if(lambda g, logits, axis: _has_many(g, axis), _pull_log_softmax)


def _choose_pull_log_softmax(g: Any, logits: Value, z: Any, axis: int | None) -> Any:
    """Return the cotangent, from the exponentials of the forward pass where these were saved."""
    axis = _choose_axis(axis)
    kept = find_residual(unwrap_scratch(z))
    is_plain = isinstance(g, RAW) or type(g) is Scratch
    if kept is not None and is_plain:
        e, s = kept
        return g - (make_scratch(e, z.meta) if type(z) is Scratch else e) * (_sum_keeping_axis(g, axis) / s)
    cotangent, x = unwrap_scratch(g), unwrap_scratch(logits)
    if type(cotangent) is type(x) is ndarray and x.dtype == cotangent.dtype:
        return _pull_log_softmax_quickly(cotangent, x, axis)
    return g - _compute_softmax(logits, z, axis) * _sum_keeping_axis(g, axis)


def _compute_softmax(logits: Value, z: Any, axis: int | None) -> Any:
    """Return the softmax, from its logarithm ``z``; in compiled code from the exponentials in ``z``."""
    plain = isinstance(z, RAW) or type(z) is Scratch
    return np.exp(z) if plain or logits.dtype.kind != "f" else softmax(logits, axis=_choose_axis(axis))


@op(
    _log_softmax,
    acts=_act_along_axis("log_softmax"),
    d=rule(
        lambda g, logits, z, axis: _choose_pull_log_softmax(g, logits, z, axis),
        jvp=lambda dlogits, logits, z, axis: (
            dlogits - _sum_keeping_axis(_compute_softmax(logits, z, axis) * dlogits, _choose_axis(axis))
        ),
    ),
    run=run_compiled_if(_has_many, _log_softmax, is_finite=_has_numbers),
    saving=run_compiled_if(_has_many, _log_softmax, lambda x, axis: _log_softmax(x, axis, saves=True), _has_numbers),
    lower=made_of(_compose_log_softmax),
)
def log_softmax(logits: TensorLike, /, axis: Axis = -1) -> Any:
    """Return the logarithm of ``softmax``, accurate where the softmax is near 0.

    logits: scores, whose exponentials are proportional to probabilities.
    axis: the axis; a negative one counts from the last.

    >>> pb.log_softmax(np.array([0.0, 1000.0]))
    array([-1000.,     0.])
    """


# ---- other names

silu = alias("silu", swish)
