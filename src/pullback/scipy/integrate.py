"""``scipy.integrate``: sums over samples, integrals of functions, differential equations.

Where SciPy chooses nodes or steps adaptively, it runs on plain numbers; the sums and steps at the chosen places are
then repeated with traced values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import Tensor, concrete, strip
from pullback.display.progress import report_progress
from pullback.errors import ArgumentError, ConvergenceError, NoRuleError
from pullback.names.scipy import FUNCTIONS
from pullback.scipy.arguments import apply_linear, as_float, as_operand, is_traced, list_functions, load, make_fallback

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from pullback.typing import Array, ArrayLike, Function, Nested, Operand, TensorLike, Value

NAMES = FUNCTIONS["integrate"]


__getattr__ = partial(make_fallback, "integrate")
__dir__ = partial(list_functions, "integrate")


# ---- of samples


def _measure_steps(y: Value, x: TensorLike | None, dx: TensorLike, axis: int) -> Any:
    """Return the distances of the samples along an axis, shaped to multiply with them."""
    if x is None:
        return as_float(dx)
    h = np.diff(as_float(x), axis=-1 if as_float(x).ndim == 1 else axis)
    if h.ndim == 1:
        return np.reshape(h, [-1 if i == axis % y.ndim else 1 for i in range(y.ndim)])
    return h


def _cut(y: Any, axis: int, *where: slice) -> list[Any]:
    rows = np.moveaxis(y, axis, 0)
    return [np.moveaxis(rows[part], 0, axis) for part in where]


def trapezoid(y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by the trapezoidal rule.

    >>> float(trapezoid([1.0, 2.0, 3.0]))
    4.0
    """
    y = as_float(y)
    a, b = _cut(y, axis, slice(None, -1), slice(1, None))
    return np.sum(_measure_steps(y, x, dx, axis) * (a + b) / 2, axis)


def cumulative_trapezoid(
    y: TensorLike, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1, initial: float | None = None
) -> Any:
    """Return the cumulative integral of samples by the trapezoidal rule."""
    y = as_float(y)
    a, b = _cut(y, axis, slice(None, -1), slice(1, None))
    return _begin_with(initial, np.cumsum(_measure_steps(y, x, dx, axis) * (a + b) / 2, axis), axis)


def _begin_with(initial: float | None, sums: Value, axis: int) -> Any:
    """Return a running integral with its value at the beginning in front, if that is given."""
    if initial is None:
        return sums
    shape = list(sums.shape)
    shape[axis] = 1
    return np.concatenate([np.full(shape, float(initial)), sums], axis)


def _integrate_pairs(y: Value, h: Value) -> Any:
    """Return Simpson's rule of samples along axis 0, an odd number of them, with distances ``h``."""
    y0, y1, y2 = y[:-2:2], y[1:-1:2], y[2::2]
    h0, h1 = h[::2], h[1::2]
    both: Any = h0 + h1
    ratio: Any = h0 / h1
    return np.sum(both / 6 * (y0 * (2 - 1 / ratio) + y1 * (both * both / (h0 * h1)) + y2 * (2 - ratio)), 0)


def simpson(y: TensorLike, x: TensorLike | None = None, *, dx: TensorLike = 1.0, axis: int = -1) -> Any:
    """Return the integral of samples by Simpson's rule, with a correction where their number is even."""
    y = as_float(y)
    n = y.shape[axis]
    h = _measure_steps(y, x, dx, axis)
    rows = np.moveaxis(y, axis, 0)
    if h.ndim != y.ndim:
        h = np.broadcast_to(h, (n - 1, *(1,) * (y.ndim - 1)))
    else:
        h = np.moveaxis(h, axis, 0)
    if n % 2:
        return _integrate_pairs(rows, h)
    if n == 2:
        return 0.5 * h[-1] * (rows[-1] + rows[-2])
    a, b = h[-2], h[-1]
    area = _integrate_pairs(rows[:-1], h[:-1])
    alpha, beta = (2 * b**2 + 3 * a * b) / (6 * (a + b)), (b**2 + 3 * a * b) / (6 * a)
    return area + alpha * rows[-1] + beta * rows[-2] - b**3 / (6 * a * (a + b)) * rows[-3]


def romb(y: TensorLike, dx: TensorLike = 1.0, axis: int = -1, show: bool = False) -> Any:
    """Return Romberg's integral of samples."""
    y = as_float(y)
    area = apply_linear(lambda e: load("integrate").romb(e, axis=0)[None], y, axis)
    return np.squeeze(area, axis) * as_float(dx)


def cumulative_simpson(
    y: TensorLike, *, x: TensorLike | None = None, dx: TensorLike = 1.0, axis: int = -1, initial: float | None = None
) -> Any:
    """Return the running integral of samples by Simpson's rule; differentiable by ``y``."""
    y = as_float(y)
    if is_traced(x, dx, initial):
        raise NoRuleError("pb.scipy.integrate.cumulative_simpson: only y has a derivative, not x, dx or initial.")

    def run(e: Any, initial: Any = None) -> Any:
        return load("integrate").cumulative_simpson(e, x=x, dx=dx, axis=0, initial=initial)

    sums = apply_linear(lambda e: np.stack([run(column) for column in e.T], 1), y, axis)
    return _begin_with(initial, sums if initial is None else sums + initial, axis)


# ---- of functions

NODES, WEIGHTS = np.polynomial.legendre.leggauss(21)


def _as_plain_float(x: TensorLike) -> float:
    return float(np.asarray(concrete(as_operand(x))))


def quad(
    func: Callable[..., Any], a: TensorLike, b: TensorLike, args: object = (), full_output: int = 0,
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50, **options: object,
) -> Any:  # fmt: skip
    """Return the integral of a function and an estimate of its error.

    It is differentiable by the limits, by ``args`` and by values that the function captures: SciPy divides the interval
    with plain values, and Gauss's rule is applied to these parts.

    >>> round(pb.grad(lambda b: quad(lambda x: x**2, 0.0, b)[0])(2.0), 6)
    4.0
    >>> round(pb.grad(lambda k: quad(lambda x, k: np.exp(-k * x), 0.0, np.inf, args=(k,))[0])(2.0), 6)
    -0.25
    """
    idle = ("limlst", "maxp1")
    chosen: dict[str, Any] = {k: v for k, v in options.items() if v is not None and v is not False and k not in idle}
    args = args if isinstance(args, tuple) else (args,)
    if chosen.keys() == {"points"} and not full_output:
        ends = pairwise(_list_ends(a, b, chosen["points"]))
        parts = [quad(func, *pair, args, 0, epsabs, epsrel, limit) for pair in ends]
        return sum(value for value, _ in parts), sum(error for _, error in parts)
    if chosen:
        if is_traced(a, b, args, func((_as_plain_float(a) + _as_plain_float(b)) / 2, *args)):
            raise NoRuleError(f"pb.scipy.integrate.quad: {', '.join(chosen)} is not differentiable here.")
        return make_fallback("integrate", "quad")(func, a, b, args, full_output, epsabs, epsrel, limit, **options)
    low, high = _as_plain_float(a), _as_plain_float(b)
    result = load("integrate").quad(lambda x: _as_plain_float(func(x, *args)), low, high, (), 1, epsabs, epsrel, limit)
    value, error, info = result[:3]
    total = _sum_parts(func, args, a, b, low, high, info)
    if isinstance(total, Tensor) and is_traced(total):
        value = value + (total - strip(total))
    return (value, error, *result[2:]) if full_output else (value, error)


def _list_ends(a: TensorLike, b: TensorLike, points: Iterable[TensorLike]) -> list[TensorLike]:
    """Return the limits of an integral and the points between them, in the order from ``a`` to ``b``."""
    low, high = sorted((_as_plain_float(a), _as_plain_float(b)))
    inner = sorted(p for p in map(_as_plain_float, points) if low < p < high)
    return [a, *(inner if _as_plain_float(a) < _as_plain_float(b) else inner[::-1]), b]


def _sum_parts(
    func: Function,
    args: tuple[object, ...],
    a: Any,
    b: Any,
    low: float,
    high: float,
    info: Mapping[str, Any],
) -> Any:
    """Return the sum of Gauss's rule over the parts of the interval that SciPy found."""
    last = info["last"]
    starts, ends = info["alist"][:last], info["blist"][:last]
    total: Any = 0.0
    infinite = np.isinf(low) or np.isinf(high)
    if not infinite and low == high:
        return (b - a) * as_operand(func(a, *args))
    for start, end in zip(starts, ends, strict=True):
        places = (start + end) / 2 + (end - start) / 2 * NODES
        weights = abs(end - start) / 2 * WEIGHTS  # the sign is that of b - a
        for t, w in zip(places, weights, strict=True):
            if infinite:
                total = total + w / (t * t) * _evaluate_at_infinity(func, args, a, b, low, high, (1 - t) / t)
            else:
                share = (t - low) / (high - low)
                total = total + w / abs(high - low) * (b - a) * as_operand(func(a + (b - a) * share, *args))
    return total


def _evaluate_at_infinity(
    func: Function, args: tuple[object, ...], a: Operand, b: Operand, low: float, high: float, far: float
) -> Any:
    if np.isinf(low) and np.isinf(high):
        ends = as_operand(func(far, *args)) + as_operand(func(-far, *args))
        return ends if high > low else -ends
    if np.isinf(high):
        return as_operand(func(a + far, *args)) if high > 0 else -as_operand(func(a - far, *args))
    return as_operand(func(b - far, *args)) if low < 0 else -as_operand(func(b + far, *args))


def dblquad(
    func: Callable[..., Any], a: TensorLike, b: TensorLike, gfun: Function | float, hfun: Function | float,
    args: tuple[object, ...] = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> Any:  # fmt: skip
    """Return the integral of ``func(y, x)`` over ``x`` from a to b and ``y`` between two functions of ``x``."""

    def inner(x: Operand) -> Any:
        low, high = (f(x) if callable(f) else f for f in (gfun, hfun))
        return quad(lambda y: func(y, x, *args), low, high, epsabs=epsabs, epsrel=epsrel)[0]

    return quad(inner, a, b, epsabs=epsabs, epsrel=epsrel)


def fixed_quad(
    func: Callable[..., Any], a: TensorLike, b: TensorLike, args: tuple[object, ...] = (), n: int = 5
) -> Any:
    """Return Gauss's rule of order ``n``, and None."""
    x, w = np.polynomial.legendre.leggauss(n)
    a, b = as_float(a), as_float(b)
    y = (b - a) * (x + 1) / 2 + a
    return (b - a) / 2 * np.sum(w * as_operand(func(y, *args)), -1), None


# ---- differential equations

EXPLICIT = ("RK23", "RK45", "DOP853")
MOST_STEPS = 100_000


def solve_ivp(
    fun: Callable[..., Any], t_span: Sequence[Any], y0: TensorLike, method: str | type = "RK45",
    t_eval: ArrayLike | Nested | None = None, dense_output: bool = False,
    events: Function | Sequence[Function] | None = None, vectorized: bool = False, args: object = None,
    **options: object,
) -> Any:  # fmt: skip
    """Solve ``dy/dt = fun(t, y, *args)``; the result is SciPy's, with ``y`` (and ``t``) differentiable.

    It is differentiable by ``y0``, by ``args`` and values that ``fun`` captures, by ``t_span`` and ``t_eval``.  SciPy
    chooses the steps with plain values; an explicit method then repeats the same steps with traced values, so that
    gradients are exact for the returned numbers.  For an implicit method (Radau, BDF, LSODA) the values are SciPy's,
    and the derivatives are those of DOP853 with a tight tolerance.

    >>> def end(k):
    ...     return solve_ivp(lambda t, y: -k * y, (0.0, 1.0), [2.0], rtol=1e-8, atol=1e-10).y[0, -1]
    >>> round(pb.grad(end)(1.0), 6)  # of 2 exp(-k)
    -0.735759
    """
    args = () if args is None else args if isinstance(args, tuple) else (args,)
    integrate = load("integrate")

    def plain(t: float, y: Array) -> Any:
        return np.asarray(concrete(as_operand(fun(t, y, *args))), float)

    start, end = (_as_plain_float(t) for t in t_span)
    state = np.asarray(concrete(as_float(y0)), float)
    times = None if t_eval is None else np.asarray(concrete(as_float(t_eval)), float)
    with report_progress("solve_ivp") as shown:

        def count(t: float, y: Array) -> Any:
            shown.step()
            return plain(t, y)

        found = integrate.solve_ivp(
            count, (start, end), state, method, times, dense_output, events, vectorized=False, **options
        )
        shown.close({"t": found.t[-1]} if len(found.t) else {})
    probe = as_operand(fun(t_span[0], as_float(y0), *args))
    if not is_traced(probe, y0, t_span, t_eval):
        return found
    if events is not None or dense_output:
        raise NoRuleError("pb.scipy.integrate.solve_ivp: events and dense_output are not differentiable here.")
    name = method if isinstance(method, str) else method.__name__
    is_exact = name in EXPLICIT  # otherwise another method, with a tight tolerance, gives the derivatives
    name, options = (name, options) if is_exact else ("DOP853", _tighten(options))
    ends_steps = is_exact and t_eval is None  # the times of the result are the ends of the steps
    steps = found.t if ends_steps else _find_steps(plain, start, end, state, name, options)
    t, y = _repeat_steps(
        lambda t, y: as_operand(fun(t, y, *args)), t_span, (start, end), as_float(y0), steps,
        getattr(integrate, name), found.t if t_eval is None else t_eval, ends_steps,
    )  # fmt: skip
    found.t, found.y = t, y if is_exact else found.y + (y - strip(y))
    return found


def _tighten(options: Mapping[str, object]) -> dict[str, object]:
    """Return the options of a solver with a tolerance at which its steps stand for the exact solution."""
    kept = {k: v for k, v in options.items() if k in ("max_step", "first_step")}
    return {**kept, "rtol": 1e-10, "atol": 1e-12}


def _find_steps(
    function: Function, start: float, end: float, y0: Array, name: str, options: Mapping[str, object]
) -> Any:
    found = load("integrate").solve_ivp(function, (start, end), y0, name, **options)
    if not found.success:
        raise ConvergenceError(f"solve_ivp: {found.message}")
    if len(found.t) > MOST_STEPS:
        raise ConvergenceError(
            f"solve_ivp: {len(found.t)} steps of {name} are too many to differentiate; at most {MOST_STEPS}."
        )
    return found.t


def _repeat_steps(
    f: Function,
    t_span: Sequence[Any],
    plain_span: tuple[float, float],
    y: Value,
    steps: Array,
    method: Any,
    wanted: ArrayLike | Nested,
    at_steps: bool,
) -> tuple[Any, Any]:
    """Return times and states: the steps of an explicit method, and the states it interpolates between them."""
    start, end = plain_span
    shares = (np.asarray(steps) - start) / (end - start)
    times = [t_span[0] + (t_span[1] - t_span[0]) * s for s in shares]
    states, pieces, slope = [y], [], f(times[0], y)
    for t, following in pairwise(times):
        h = following - t
        new, new_slope, stages = _take_step(f, t, y, slope, h, method)
        pieces.append((t, h, y, new, stages))
        y, slope = new, new_slope
        states.append(y)
    if at_steps:
        moving = is_traced(*t_span)
        return (np.stack([as_operand(t) for t in times]) if moving else np.asarray(steps)), np.stack(states, -1)
    places = np.asarray(concrete(as_float(wanted)), np.float64)
    sign = 1.0 if end >= start else -1.0
    index = np.clip(np.searchsorted(sign * np.asarray(steps), sign * places, side="left") - 1, 0, len(pieces) - 1)
    found = []
    dense: dict[int, Any] = {}
    for k, i in enumerate(index):
        if int(i) not in dense:
            dense[int(i)] = _make_dense(f, *pieces[int(i)], method)
        t, h, *_ = pieces[int(i)]
        found.append(dense[int(i)]((as_float(wanted)[k] - t) / h))
    return wanted, np.stack(found, -1)


def _take_step(f: Function, t: Operand, y: Value, slope: Value, h: Operand, method: Any) -> tuple[Any, Any, list[Any]]:
    """Return the state after a step of Runge and Kutta, the slope there, and the slopes of its stages."""
    stages = [slope]
    for a, c in zip(method.A[1:], method.C[1:], strict=True):
        stages.append(f(t + c * h, y + h * _combine(a[: len(stages)], stages)))
    new = y + h * _combine(method.B, stages)
    last = f(t + h, new)
    return new, last, [*stages, last]


def _combine(weights: Sequence[float], stages: list[Any]) -> Any:
    total: Any = 0.0
    for w, k in zip(weights, stages, strict=False):
        if w:
            total = total + float(w) * k
    return total


def _make_dense(f: Function, t: Operand, h: Operand, y: Value, new: Value, stages: list[Any], method: Any) -> Any:
    """Return the state within a step, as a function of the share of it."""
    if method.__name__ != "DOP853":
        rows = [_combine(column, stages) for column in method.P.T]

        def interpolate(x: Operand) -> Any:
            total: Any = 0.0
            power: Any = x
            for row in rows:
                total, power = total + row * power, power * x
            return y + h * total

        return interpolate
    every = [*stages]
    for a, c in zip(method.A_EXTRA, method.C_EXTRA, strict=True):
        every.append(f(t + c * h, y + h * _combine(a, every)))
    apart = new - y
    parts = [apart, h * stages[0] - apart, 2 * apart - h * (stages[-1] + stages[0])]
    parts += [h * _combine(row, every) for row in method.D]

    def interpolate_high(x: Operand) -> Any:
        total: Any = 0.0
        for i, part in enumerate(reversed(parts)):
            total = (total + part) * (x if i % 2 == 0 else 1 - x)
        return total + y

    return interpolate_high


def odeint(
    func: Callable[..., Any], y0: TensorLike, t: TensorLike, args: tuple[object, ...] = (), *, tfirst: bool = False,
    rtol: float | None = None, atol: float | None = None, **options: object,
) -> Any:  # fmt: skip
    """Return the solution of ``dy/dt = func(y, t, *args)`` at times ``t``, one per row; see ``solve_ivp``.

    >>> round(pb.grad(lambda k: odeint(lambda y, t: -k * y, [1.0], [0.0, 1.0])[-1, 0])(1.0), 6)
    -0.367879
    """
    refused = {k for k, v in options.items() if v not in (None, 0, False) and k not in ("mxstep", "hmax", "h0", "hmin")}
    if refused:
        raise ArgumentError(f"pb.scipy.integrate.odeint: the arguments {sorted(refused)} are not supported.")

    def fun(t: Operand, y: Value) -> Any:
        return func(t, y, *args) if tfirst else func(y, t, *args)

    times = as_float(t)
    tolerance: Any = {"rtol": 1.49012e-8 if rtol is None else rtol, "atol": 1.49012e-8 if atol is None else atol}
    span = (times[0], times[-1])
    found = solve_ivp(fun, span, np.atleast_1d(as_float(y0)), "LSODA", times, **tolerance)
    return np.transpose(found.y)
