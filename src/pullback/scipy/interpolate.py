"""``scipy.interpolate``: piecewise polynomials and RBFs, differentiable by the evaluation points and by the data."""

from __future__ import annotations

import math
from functools import partial
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.tensor import all_values, call_unfollowed, strip
from pullback.errors import ArgumentError, NoRuleError, ShapeError
from pullback.names.scipy import FUNCTIONS
from pullback.ops import gathering, linalg
from pullback.scipy.arguments import as_float, is_traced, list_functions, load, make_fallback

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pullback.typing import Array, TensorLike, Value

NAMES = FUNCTIONS["interpolate"]


__getattr__ = partial(make_fallback, "interpolate")
__dir__ = partial(list_functions, "interpolate")


def _find_intervals(breaks: Array, x: Value) -> Any:
    """Return which piece each place is in; those outside are in the first or the last."""
    return call_unfollowed(lambda b, x: np.clip(np.searchsorted(b, x, side="right") - 1, 0, len(b) - 2), breaks, x)


def _pick(values: Value, at: Array) -> Any:
    """Return rows of an array; the positions may be traced where the array is not."""
    return gathering.take(values, at, 0)


def _expand(x: Value, count: int) -> Any:
    return np.reshape(x, (*x.shape, *(1,) * count))


class PPoly:
    """A piecewise polynomial: ``c[k]`` are the coefficients of falling powers of ``x - breaks``.

    >>> PPoly([[1.0, 2.0], [0.0, 1.0]], [0.0, 1.0, 2.0])(1.5)
    np.float64(2.0)
    """

    def __init__(self, c: TensorLike, x: TensorLike, extrapolate: bool | str | None = None, axis: int = 0) -> None:
        self.c, self.x, self.axis = as_float(c), as_float(x), axis
        self.extrapolate = True if extrapolate is None else extrapolate
        if self.c.ndim < 2 or self.x.ndim != 1 or self.c.shape[1] != self.x.shape[0] - 1:
            raise ShapeError(f"PPoly: coefficients of shape {self.c.shape} for breakpoints of shape {self.x.shape}.")

    def __call__(self, x: TensorLike, nu: int = 0, extrapolate: bool | str | None = None) -> Any:
        if nu:
            return self.derivative(nu)(x, 0, extrapolate)
        x = as_float(x)
        extrapolate = self.extrapolate if extrapolate is None else extrapolate
        if extrapolate == "periodic":
            first, last = self.x[0], self.x[-1]
            x = x - call_unfollowed(lambda x, a, b: np.floor((x - a) / (b - a)), x, first, last) * (last - first)
        at = _find_intervals(self.x, x)
        rest = self.c.ndim - 2
        t = _expand(x - _pick(self.x, at), rest)
        y: Any = _pick(self.c[0], at)
        for k in range(1, self.c.shape[0]):
            y = y * t + _pick(self.c[k], at)
        if extrapolate is False:
            inside = _expand((x >= self.x[0]) & (x <= self.x[-1]), rest)
            y = np.where(inside, y, np.nan)
        # the axis of the data comes where the places are
        order = [*range(x.ndim, x.ndim + self.axis), *range(x.ndim), *range(x.ndim + self.axis, y.ndim)]
        return np.transpose(y, order) if self.axis else y

    def _like(self, c: Value) -> PPoly:
        return PPoly(c, self.x, self.extrapolate, self.axis)

    def derivative(self, nu: int = 1) -> PPoly:
        """Return the derivative of order ``nu``."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            n = c.shape[0] - 1
            powers = np.arange(n, 0, -1.0).reshape(-1, *(1,) * (c.ndim - 1))
            c = c[:-1] * powers if n else np.zeros_like(c)
        return self._like(c)

    def antiderivative(self, nu: int = 1) -> PPoly:
        """Return the integral from the first breakpoint on, ``nu`` times."""
        if nu < 0:
            return self.derivative(-nu)
        c = self.c
        for _ in range(nu):
            n = c.shape[0]
            powers = np.arange(n, 0, -1.0).reshape(-1, *(1,) * (c.ndim - 1))
            c = c / powers
            h = _expand(self.x[1:] - self.x[:-1], c.ndim - 2)
            whole: Any = 0.0
            for k in range(n):
                whole = (whole + c[k]) * h
            start = np.concatenate([np.zeros((1, *whole.shape[1:])), np.cumsum(whole, 0)[:-1]])
            c = np.concatenate([c, np.expand_dims(start, 0)])
        return self._like(c)

    def integrate(self, a: TensorLike, b: TensorLike, extrapolate: bool | str | None = None) -> Any:
        """Return the integral from ``a`` to ``b``."""
        whole = self.antiderivative()
        return whole(b, 0, extrapolate) - whole(a, 0, extrapolate)


def _prepare(x: TensorLike, y: TensorLike, axis: int) -> tuple[Any, Any, int]:
    """Return places, data with their axis first, and that axis."""
    x, y = as_float(x), as_float(y)
    axis = axis % y.ndim
    y = np.moveaxis(y, axis, 0)
    if x.ndim != 1 or x.shape[0] != y.shape[0] or x.shape[0] < 2:
        raise ShapeError(
            f"scipy.interpolate: x must be a vector with one number for each of y, two at least; got shapes "
            f"{x.shape} and {y.shape}."
        )
    if np.any(all_values(np.diff(x) <= 0)):
        raise ArgumentError("scipy.interpolate: x must be strictly increasing.")
    return x, y, axis


def _make_hermite_pieces(x: Value, y: Value, slopes: Value) -> Any:
    """Return the coefficients of the cubic pieces with these values and slopes."""
    h = _expand(np.diff(x), y.ndim - 1)
    rise = np.diff(y, axis=0) / h
    t = (slopes[:-1] + slopes[1:] - 2 * rise) / h
    return np.stack([t / h, (rise - slopes[:-1]) / h - t, slopes[:-1], y[:-1]])


class CubicHermiteSpline(PPoly):
    """Cubic pieces with given values and slopes."""

    def __init__(
        self, x: TensorLike, y: TensorLike, dydx: TensorLike, axis: int = 0, extrapolate: bool | str | None = None
    ) -> None:
        x, y, axis = _prepare(x, y, axis)
        super().__init__(_make_hermite_pieces(x, y, np.moveaxis(as_float(dydx), axis, 0)), x, extrapolate, axis)


class CubicSpline(PPoly):
    """A cubic spline with two continuous derivatives through the data, differentiable by evaluation points and data.

    >>> spline = CubicSpline(np.arange(4.0), np.array([0.0, 1.0, 8.0, 27.0]))
    >>> float(spline(1.5).round(6)), round(pb.grad(spline)(1.5), 6)
    (3.375, 6.75)
    """

    def __init__(
        self,
        x: TensorLike,
        y: TensorLike,
        axis: int = 0,
        bc_type: str | Sequence[Any] | None = "not-a-knot",
        extrapolate: bool | str | None = None,
    ) -> None:
        x, y, axis = _prepare(x, y, axis)
        slopes = _solve_slopes(x, y, bc_type)
        if extrapolate is None and bc_type == "periodic":
            extrapolate = "periodic"
        super().__init__(_make_hermite_pieces(x, y, slopes), x, extrapolate, axis)


def _solve_slopes(x: Value, y: Value, bc_type: Any) -> Any:
    """Return the slopes at the data with which the second derivative is continuous."""
    n, h = x.shape[0], np.diff(x)
    rise = np.diff(y, axis=0) / _expand(h, y.ndim - 1)
    periodic = isinstance(bc_type, str) and bc_type == "periodic"
    if periodic:
        return _solve_periodic(n, h, rise)
    ends = (bc_type, bc_type) if isinstance(bc_type, str) else tuple(bc_type)
    if n == 2 and ends == ("not-a-knot", "not-a-knot"):
        return np.concatenate([rise, rise])
    if n == 3 and ends == ("not-a-knot", "not-a-knot"):  # a parabola
        rows: list[Any] = [[1.0, 1.0, 0.0], [h[1], 2 * (h[0] + h[1]), h[0]], [0.0, 1.0, 1.0]]
        right = [2 * rise[0], 3 * (h[0] * rise[1] + h[1] * rise[0]), 2 * rise[1]]
        return _solve_rows(rows, right)
    if n == 2:
        ends = tuple((1, rise[0]) if e == "not-a-knot" else e for e in ends)
    rows, right = [], []
    first, value = _make_end_equation(ends[0], h, rise, 1)
    rows.append(np.concatenate([first, np.zeros(n - 2)]))
    right.append(value)
    for i in range(1, n - 1):
        middle = np.stack([h[i], 2 * (h[i - 1] + h[i]), h[i - 1]])
        rows.append(np.concatenate([np.zeros(i - 1), middle, np.zeros(n - i - 2)]))
        right.append(3 * (h[i] * rise[i - 1] + h[i - 1] * rise[i]))
    last, value = _make_end_equation(ends[1], h[::-1], rise[::-1], -1)
    rows.append(np.concatenate([np.zeros(n - 2), last[::-1]]))
    right.append(value)
    return _solve_rows(rows, right)


def _solve_rows(rows: list[Any], right: list[Any]) -> Any:
    system = np.stack([np.stack([as_float(v) for v in row]) if isinstance(row, list) else row for row in rows])
    b = np.stack(right)
    return np.reshape(linalg.solve(system, np.reshape(b, (b.shape[0], -1))), b.shape)


def _make_end_equation(kind: Any, h: Value, rise: Value, side: int) -> tuple[Any, Any]:
    """Return the equation at an end: the factors of the two slopes nearest to it, and the right side."""
    if kind == "not-a-knot":
        d = h[0] + h[1]
        return np.stack([h[1], d]), ((h[0] + 2 * d) * h[1] * rise[0] + h[0] ** 2 * rise[1]) / d
    if isinstance(kind, str):
        if kind not in ("natural", "clamped"):
            raise ArgumentError(f"CubicSpline: unknown bc_type {kind!r}.")
        kind = (2, 0.0) if kind == "natural" else (1, 0.0)
    order, value = kind
    if order == 1:
        return np.array([1.0, 0.0]), as_float(value) + 0.0 * rise[0]
    # the second derivative at this end is the given one
    return np.array([2.0, 1.0]), 3 * rise[0] - side * as_float(value) * h[0] / 2


def _solve_periodic(n: int, h: Value, rise: Value) -> Any:
    if n == 2:
        return np.zeros((2, *rise.shape[1:]))
    count, rows, right = n - 1, [], []
    for i in range(count):
        row: list[Any] = [0.0] * count
        for place, factor in ((i - 1) % count, h[i]), (i, 2 * (h[i - 1] + h[i])), ((i + 1) % count, h[i - 1]):
            row[place] = row[place] + factor
        rows.append(row)
        right.append(3 * (h[i] * rise[i - 1] + h[i - 1] * rise[i]))
    slopes = _solve_rows(rows, right)
    return np.concatenate([slopes, slopes[:1]])


def _find_end_slope(h0: Value, h1: Value, m0: Value, m1: Value) -> Any:
    weight: Any = 2 * h0 + h1
    d = (weight * m0 - h0 * m1) / (h0 + h1)
    against = np.sign(d) != np.sign(m0)
    steep = (np.sign(m0) != np.sign(m1)) & (np.abs(d) > 3 * np.abs(m0))
    steepest: Any = 3 * m0
    return np.where(against, 0.0, np.where(steep, steepest, d))


class PchipInterpolator(PPoly):
    """A monotone cubic interpolator (PCHIP), differentiable by evaluation points and data."""

    def __init__(self, x: TensorLike, y: TensorLike, axis: int = 0, extrapolate: bool | str | None = None) -> None:
        x, y, axis = _prepare(x, y, axis)
        h = _expand(np.diff(x), y.ndim - 1)
        m = np.diff(y, axis=0) / h
        if x.shape[0] == 2:
            slopes = np.concatenate([m, m])
        else:
            flat = (np.sign(m[1:]) != np.sign(m[:-1])) | (m[1:] == 0) | (m[:-1] == 0)
            w1, w2 = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
            before, after = np.where(flat, 1.0, m[:-1]), np.where(flat, 1.0, m[1:])
            inner = np.where(flat, 0.0, (w1 + w2) / (w1 / before + w2 / after))
            first = np.expand_dims(_find_end_slope(h[0], h[1], m[0], m[1]), 0)
            last = np.expand_dims(_find_end_slope(h[-1], h[-2], m[-1], m[-2]), 0)
            slopes = np.concatenate([first, inner, last])
        super().__init__(_make_hermite_pieces(x, y, slopes), x, extrapolate, axis)


class Akima1DInterpolator(PPoly):
    """Akima's cubic interpolator, which is robust to outliers, differentiable by evaluation points and data."""

    def __init__(
        self,
        x: TensorLike,
        y: TensorLike,
        axis: int = 0,
        *,
        method: str = "akima",
        extrapolate: bool | str | None = None,
    ) -> None:
        if method != "akima":
            raise NoRuleError(
                f"pb.scipy.interpolate.Akima1DInterpolator: method={method!r} is not differentiable here."
            )
        x, y, axis = _prepare(x, y, axis)
        m = np.diff(y, axis=0) / _expand(np.diff(x), y.ndim - 1)
        if x.shape[0] == 2:
            slopes = np.concatenate([m, m])
        else:
            left, right = 2 * m[:1] - m[1:2], 2 * m[-1:] - m[-2:-1]
            m = np.concatenate([2 * left - m[:1], left, m, right, 2 * right - m[-1:]])
            change = np.abs(np.diff(m, axis=0))
            f1, f2 = change[2:], change[:-2]
            both = f1 + f2
            level = both <= 1e-9 * np.max(strip(both), initial=-np.inf)
            steep = (f1 * m[1:-2] + f2 * m[2:-1]) / np.where(level, 1.0, both)
            slopes = np.where(level, 0.5 * (m[3:] + m[:-3]), steep)
        super().__init__(_make_hermite_pieces(x, y, slopes), x, False if extrapolate is None else extrapolate, axis)


def pchip_interpolate(xi: TensorLike, yi: TensorLike, x: TensorLike, der: int = 0, axis: int = 0) -> Any:
    """Return ``PchipInterpolator(xi, yi)(x)``, or a derivative of it."""
    return PchipInterpolator(xi, yi, axis)(x, der)


# ---- B-splines


class BSpline:
    """A sum of B-splines of degree ``k`` over constant knots ``t``, differentiable by places and coefficients."""

    def __init__(
        self, t: TensorLike, c: TensorLike, k: int, extrapolate: bool | str | None = True, axis: int = 0
    ) -> None:
        if is_traced(t):
            raise NoRuleError("pb.scipy.interpolate.BSpline: knots are constants; a derivative by them would be lost.")
        self.t, self.c, self.k, self.extrapolate, self.axis = np.asarray(t, float), as_float(c), k, extrapolate, axis
        self.c = np.moveaxis(self.c, axis, 0)
        self._pieces = self._make_pieces()

    def _make_pieces(self) -> PPoly:
        """Return the spline as polynomials between the knots; their coefficients are linear in those of the spline."""
        n = len(self.t) - self.k - 1
        inner = np.unique(self.t[self.k : n + 1])
        units = load("interpolate").BSpline(self.t, np.eye(n), self.k)
        rows = [units(inner[:-1], m) / math.factorial(m) for m in range(self.k, -1, -1)]
        flat = np.reshape(self.c[:n], (n, -1))
        c = np.stack([np.reshape(np.matmul(row, flat), (len(inner) - 1, *self.c.shape[1:])) for row in rows])
        return PPoly(c, inner, self.extrapolate, self.axis)

    def __call__(self, x: TensorLike, nu: int = 0, extrapolate: bool | str | None = None) -> Any:
        return self._pieces(x, nu, extrapolate)

    def derivative(self, nu: int = 1) -> PPoly | BSpline:
        """Return the derivative, as a piecewise polynomial."""
        return self._pieces.derivative(nu) if nu >= 0 else self.antiderivative(-nu)

    def antiderivative(self, nu: int = 1) -> PPoly | BSpline:
        """Return the integral from the first knot on, where every B-spline begins with 0."""
        if nu < 0:
            return self.derivative(-nu)
        t, c, k = self.t, self.c[: len(self.t) - self.k - 1], self.k
        for _ in range(nu):
            spans: Any = t[k + 1 :] - t[: -k - 1]
            widths = _expand(spans / (k + 1), c.ndim - 1)
            c = np.concatenate([np.zeros((1, *c.shape[1:])), np.cumsum(c * widths, axis=0)])
            t, k = np.concatenate([t[:1], t, t[-1:]]), k + 1
        extrapolate = False if self.extrapolate == "periodic" else self.extrapolate
        return BSpline(t, np.moveaxis(c, 0, self.axis), k, extrapolate, self.axis)

    def integrate(self, a: TensorLike, b: TensorLike, extrapolate: bool | str | None = None) -> Any:
        """Return the integral from ``a`` to ``b``."""
        return self._pieces.integrate(a, b, extrapolate)


def make_interp_spline(
    x: TensorLike, y: TensorLike, k: int = 3, t: TensorLike | None = None, bc_type: str | Sequence[Any] | None = None,
    axis: int = 0, check_finite: bool = True,
) -> BSpline:  # fmt: skip
    """Return the B-spline through the data, differentiable by the data; places and knots are constants."""
    if is_traced(x, t):
        raise NoRuleError("pb.scipy.interpolate.make_interp_spline: x is a constant; a derivative by it would be lost.")
    if bc_type is not None and not isinstance(bc_type, str) and not all(isinstance(b, str) for b in bc_type):
        raise NoRuleError("pb.scipy.interpolate.make_interp_spline: give bc_type by name ('natural', 'clamped', …).")
    y = np.moveaxis(as_float(y), axis, 0)
    x = np.asarray(x, float)
    units = load("interpolate").make_interp_spline(x, np.eye(len(x)), k, t, bc_type)
    flat = np.matmul(units.c, np.reshape(y, (y.shape[0], -1)))
    c = np.reshape(flat, (units.c.shape[0], *y.shape[1:]))
    extrapolate = "periodic" if bc_type == "periodic" else True
    return BSpline(units.t, np.moveaxis(c, 0, axis), units.k, extrapolate, axis)


def splev(x: TensorLike, tck: BSpline | tuple[Any, Any, int], der: int = 0, ext: int = 0) -> Any:
    """Return a B-spline ``(t, c, k)``, or a derivative of it, at places ``x``."""
    if ext != 0:
        return make_fallback("interpolate", "splev")(x, tck, der, ext)
    t, c, k = tck if isinstance(tck, tuple | list) else (tck.t, tck.c, tck.k)
    return BSpline(t, c, k)(x, der)


# ---- lines


class interp1d:  # noqa: N801
    """Linear, nearest or spline interpolation of data, as ``scipy.interpolate.interp1d``.

    >>> f = interp1d(np.array([0.0, 1.0, 3.0]), np.array([0.0, 2.0, 6.0]))
    >>> f(0.5), pb.grad(f)(0.5)
    (array(1.), 2.0)
    """

    def __init__(
        self, x: TensorLike, y: TensorLike, kind: str | int = "linear", axis: int = -1, copy: bool = True,
        bounds_error: bool | None = None, fill_value: Any = np.nan, assume_sorted: bool = False,
    ) -> None:  # fmt: skip
        x, y = as_float(x), as_float(y)
        self.axis = axis % y.ndim
        y = np.moveaxis(y, self.axis, 0)
        if not assume_sorted:
            order = call_unfollowed(lambda x: np.argsort(x, kind="mergesort"), x)
            x, y = np.take(x, order, 0), np.take(y, order, 0)
        self.x, self.y, self._kind = x, y, kind
        self.extends = isinstance(fill_value, str) and fill_value == "extrapolate"
        self.fill_value = fill_value
        self.bounds_error = bounds_error if bounds_error is not None else not self.extends and _is_nan(fill_value)
        self.spline = self._make_spline()

    def _make_spline(self) -> BSpline | None:
        degrees = {"zero": 0, "slinear": 1, "quadratic": 2, "cubic": 3}
        k = self._kind if isinstance(self._kind, int) else degrees.get(self._kind)
        if k is None:
            if self._kind not in ("linear", "nearest", "nearest-up", "previous", "next"):
                raise ArgumentError(f"interp1d: unknown kind {self._kind!r}.")
            return None
        if k == 0:
            self._kind = "previous"
            return None
        return make_interp_spline(self.x, self.y, k)

    def __call__(self, x: TensorLike) -> Any:
        x = as_float(x)
        low, high = x < self.x[0], x > self.x[-1]
        if self.bounds_error and np.any(all_values(low | high)):
            raise ArgumentError("interp1d: a point is outside the data. See fill_value='extrapolate'.")
        y = self._evaluate(x)
        if not self.extends:
            below, above = self.fill_value if isinstance(self.fill_value, tuple) else (self.fill_value,) * 2
            rest = self.y.ndim - 1
            y = np.where(_expand(low, rest), below, np.where(_expand(high, rest), above, y))
        if not self.axis:
            return y
        order = [*range(x.ndim, x.ndim + self.axis), *range(x.ndim), *range(x.ndim + self.axis, y.ndim)]
        return np.transpose(y, order)

    def _evaluate(self, x: Value) -> Any:
        if self.spline is not None:
            return self.spline(x)
        n = self.x.shape[0]
        if self._kind == "linear":
            at = call_unfollowed(lambda b, x: np.clip(np.searchsorted(b, x), 1, len(b) - 1), self.x, x)
            x0, x1 = _pick(self.x, at - 1), _pick(self.x, at)
            y0, y1 = _pick(self.y, at - 1), _pick(self.y, at)
            rest = self.y.ndim - 1
            return y0 + (y1 - y0) / _expand(x1 - x0, rest) * _expand(x - x0, rest)
        if self._kind in ("nearest", "nearest-up"):
            side: Any = "left" if self._kind == "nearest" else "right"
            at = call_unfollowed(lambda b, x: np.searchsorted((b[1:] + b[:-1]) / 2, x, side=side), self.x, x)
        elif self._kind == "previous":
            at = call_unfollowed(lambda b, x: np.searchsorted(b, x, side="right") - 1, self.x, x)
        else:
            at = call_unfollowed(lambda b, x: np.searchsorted(b, x, side="left"), self.x, x)
        return _pick(self.y, np.clip(at, 0, n - 1))


def _is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


class RegularGridInterpolator:
    """Interpolation in any number of axes over a grid: ``"linear"`` or ``"nearest"``.

    It is differentiable by the evaluation points, the values and the grid.

    >>> f = RegularGridInterpolator(([0.0, 1.0], [0.0, 2.0]), np.array([[0.0, 2.0], [1.0, 3.0]]))
    >>> pb.grad(lambda x: f(x)[0])(np.array([[0.5, 1.0]]))
    array([[1., 1.]])
    """

    def __init__(
        self, points: list[TensorLike] | tuple[TensorLike, ...], values: TensorLike, method: str = "linear",
        bounds_error: bool = True, fill_value: Any = np.nan, **options: object,
    ) -> None:  # fmt: skip
        if method not in ("linear", "nearest"):
            raise NoRuleError(f"pb.scipy.interpolate.RegularGridInterpolator: method={method!r} is not differentiable.")
        self.grid, self.values, self.method = tuple(as_float(p) for p in points), as_float(values), method
        self.bounds_error, self.fill_value = bounds_error, fill_value

    def __call__(self, xi: TensorLike, method: str | None = None) -> Any:
        count = len(self.grid)
        if isinstance(xi, tuple):
            xi = np.stack(np.broadcast_arrays(*(as_float(x) for x in xi)), -1)
        xi = as_float(xi)
        if xi.ndim == 1 and count > 1:
            xi = np.expand_dims(xi, 0)
        elif xi.ndim == 1:
            xi = np.expand_dims(xi, -1)
        if xi.shape[-1] != count:
            raise ShapeError(f"RegularGridInterpolator: places of {xi.shape[-1]} numbers for a grid of {count} axes.")
        outside: Any = False
        choices: list[list[tuple[Any, Any]]] = []
        for axis, grid in enumerate(self.grid):
            x = xi[..., axis]
            outside = outside | (x < grid[0]) | (x > grid[-1])
            at = _find_intervals(grid, x)
            low = _pick(grid, at)
            t = (x - low) / (_pick(grid, at + 1) - low)
            if (method or self.method) == "nearest":
                choices.append([(at + np.where(strip(t) <= 0.5, 0, 1), None)])
            else:
                choices.append([(at, 1 - t), (at + 1, t)])
        if self.bounds_error and np.any(all_values(outside)):
            raise ArgumentError("RegularGridInterpolator: a point is outside the grid; see fill_value.")
        rest = self.values.ndim - count
        total: Any = 0.0
        for parts in product(*choices):
            term = self.values[tuple(index for index, _ in parts)]
            for _, w in parts:
                term = term if w is None else term * _expand(w, rest)
            total = total + term
        if self.fill_value is None or self.bounds_error:
            return total
        return np.where(_expand(outside, rest), self.fill_value, total)


def interpn(
    points: list[TensorLike] | tuple[TensorLike, ...],
    values: TensorLike,
    xi: TensorLike,
    method: str = "linear",
    bounds_error: bool = True,
    fill_value: Any = np.nan,
) -> Any:
    """Return values over a grid at places between."""
    return RegularGridInterpolator(points, values, method, bounds_error, fill_value)(xi)


KERNELS: dict[str, Any] = {  # by the square of the distance, which is not 0
    "linear": lambda s: -np.sqrt(s),
    "thin_plate_spline": lambda s: 0.5 * s * np.log(s),
    "cubic": lambda s: s * np.sqrt(s),
    "quintic": lambda s: -s * s * np.sqrt(s),
    "multiquadric": lambda s: -np.sqrt(s + 1),
    "inverse_multiquadric": lambda s: 1 / np.sqrt(s + 1),
    "inverse_quadratic": lambda s: 1 / (s + 1),
    "gaussian": lambda s: np.exp(-s),
}
AT_ZERO = {"multiquadric": -1.0, "inverse_multiquadric": 1.0, "inverse_quadratic": 1.0, "gaussian": 1.0}
LEAST_DEGREES = {"multiquadric": 0, "linear": 0, "thin_plate_spline": 1, "cubic": 1, "quintic": 2}


class RBFInterpolator:
    """Interpolation of scattered data by radial basis functions and a polynomial.

    It is differentiable by the evaluation points, the data and the data points.

    >>> f = RBFInterpolator([[0.0], [1.0], [3.0]], [1.0, 2.0, 4.0])
    >>> f([[2.0]]).round(6)
    array([3.])
    """

    def __init__(
        self, y: TensorLike, d: TensorLike, neighbors: int | None = None, smoothing: Any = 0.0,
        kernel: str = "thin_plate_spline", epsilon: Any = None, degree: int | None = None,
    ) -> None:  # fmt: skip
        if neighbors is not None:
            raise NoRuleError("pb.scipy.interpolate.RBFInterpolator: neighbors is not differentiable here.")
        if kernel not in KERNELS:
            raise ArgumentError(f"RBFInterpolator: kernel must be one of {', '.join(KERNELS)}; got {kernel!r}.")
        if epsilon is None and kernel in AT_ZERO:
            raise ArgumentError(f"RBFInterpolator: kernel={kernel!r} needs epsilon.")
        self.y, self.d, self.kernel = as_float(y), as_float(d), kernel
        if self.y.ndim != 2 or self.d.ndim < 1 or self.d.shape[0] != self.y.shape[0]:
            raise ShapeError(f"RBFInterpolator: data of shape {self.d.shape} at places of shape {self.y.shape}.")
        self.epsilon = as_float(1.0 if epsilon is None else epsilon)
        n, dims = self.y.shape
        degree = max(LEAST_DEGREES.get(kernel, -1), 0) if degree is None else int(degree)
        self._powers = [p for p in product(range(degree + 1), repeat=dims) if sum(p) <= degree]
        tail = self._evaluate_powers(self.y)
        count = len(self._powers)
        smooth = np.broadcast_to(as_float(smoothing), (n,))
        top = np.concatenate([self._evaluate_kernel(self.y) + np.eye(n) * smooth, tail], 1)
        below = np.concatenate([np.swapaxes(tail, 0, 1), np.zeros((count, count))], 1)
        data = np.reshape(self.d, (n, -1))
        right = np.concatenate([data, np.zeros((count, data.shape[1]))])
        self._coefficients = linalg.solve(np.concatenate([top, below]), right)

    def _evaluate_kernel(self, x: Value) -> Any:
        apart = np.expand_dims(x * self.epsilon, 1) - np.expand_dims(self.y * self.epsilon, 0)
        square = np.sum(apart * apart, -1)
        same = square == 0
        return np.where(same, AT_ZERO.get(self.kernel, 0.0), KERNELS[self.kernel](np.where(same, 1.0, square)))

    def _evaluate_powers(self, x: Value) -> Any:
        points: Any = x
        columns = [np.prod(np.stack([points[:, i] ** k for i, k in enumerate(p)], -1), -1) for p in self._powers]
        return np.stack(columns, 1) if columns else np.zeros((x.shape[0], 0))

    def __call__(self, x: TensorLike) -> Any:
        x = as_float(x)
        if x.ndim != 2 or x.shape[1] != self.y.shape[1]:
            raise ShapeError(f"RBFInterpolator: places of shape {x.shape} for data at {self.y.shape}.")
        basis = np.concatenate([self._evaluate_kernel(x), self._evaluate_powers(x)], 1)
        return np.reshape(basis @ self._coefficients, (x.shape[0], *self.d.shape[1:]))
