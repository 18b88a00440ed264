"""NumPy's functions on Tensors: the values are NumPy's own, the gradients are correct, and none is silently lost."""

from __future__ import annotations

import itertools
import math
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from differences import gradient

import pullback as pb
from pullback.errors import (
    ArgumentError,
    DataError,
    IndexRangeError,
    NoRuleError,
    ShapeError,
    SymbolValueError,
    TracedValueError,
    UnconnectedError,
)

rng = np.random.default_rng(7)
A, B, D = rng.normal(size=(3, 3, 3))
V, W = rng.normal(size=(2, 4))
P = np.abs(A) + 0.5
Q = P.T + 0.3
T = rng.normal(size=(2, 3, 4))
HOLES = np.where(np.arange(9).reshape(3, 3) % 4 == 1, np.nan, A)
ORDER = np.argsort(B, axis=1)
XP = np.arange(-4.0, 5.0)

MATRICES = hasattr(np, "matvec")  # NumPy 2.2, whose trim_zeros takes them

Case = tuple[Callable[..., Any], *tuple[np.ndarray, ...]]


def each(names: str, *arrays: np.ndarray) -> dict[str, Case]:
    return {name: (operator.attrgetter(name)(np), *arrays) for name in names.split()}


# Calls as NumPy's users write them, and the points to make them at.
CASES: dict[str, Case] = {
    **each("sin cos tan sinh cosh tanh arcsinh arctan exp exp2 expm1 square negative positive absolute fabs", A),
    **each("sinc deg2rad rad2deg degrees radians conjugate real cbrt nan_to_num", A),
    **each("log log2 log10 log1p sqrt reciprocal arctan", P),
    **each("arcsin arccos arctanh", A / 4),
    **each("add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2", P, Q),
    **each("float_power power fmod remainder divmod", P, Q),
    **each("copysign matmul dot inner outer vdot kron cross linalg.cross linalg.matmul linalg.vecdot", A, B),
    **each("sum mean prod max min amax amin var std ptp median average cumsum cumprod", A),
    **each("nansum nanmean nanprod nanmax nanmin nanvar nanstd nancumsum nancumprod cov corrcoef", A),
    **each("ravel transpose permute_dims matrix_transpose linalg.matrix_transpose flip fliplr flipud rot90 diag", A),
    **each("diagonal linalg.diagonal trace linalg.trace diagflat tril triu squeeze sort unique diff ediff1d", A),
    **each("gradient trapezoid copy modf linalg.norm linalg.vector_norm linalg.matrix_norm vstack hstack dstack", A),
    **each("atleast_1d atleast_2d atleast_3d column_stack unstack", A),
    **each("vander", V),
    **each("convolve correlate polyval", V, W),
    **each("vecdot", A, B),
    **({"matvec": (np.matvec, A, B[0]), **each("vecmat", A[0], B)} if MATRICES else {}),
    "arccosh": (np.arccosh, P + 1),
    **{
        f"{name} with where": (lambda x, name=name: getattr(np, name)(x, axis=0, where=B > -0.9, keepdims=True), A)
        for name in ["sum", "prod", "mean", "var", "std", "nansum", "nanmean", "nanvar", "nanstd"]
    },
    "nansum with where of holes": (lambda x: np.nansum(np.where(np.isnan(HOLES), np.nan, x), where=B > 0), A),
    **{
        f"{name} with where and initial": (
            lambda x, name=name: getattr(np, name)(x, axis=1, where=B > 0, initial=0.25),
            A,
        )
        for name in ["sum", "prod", "max", "min"]
    },
    "max with initial": (lambda x: np.max(x, axis=0, initial=0.4), A),
    "max of nothing with initial": (lambda x: np.max(x[:, :0], axis=1, initial=2.0) * x[:, 0], A),
    "var with mean": (lambda x: np.var(x, axis=0, mean=np.mean(x, axis=0, keepdims=True)), A),
    "std with ddof and where": (lambda x: np.std(x, axis=1, ddof=1, where=B > -5), A),
    "sum with dtype": (lambda x: np.sum(x, axis=0, dtype=np.float64), A),
    "add.reduce with where": (lambda x: np.add.reduce(x, where=B > 0, initial=1.0), A),
    "ufunc with dtype and order": (lambda x: np.multiply(x, 2.0, dtype=np.float64, order="F", casting="safe"), A),
    "concatenate with dtype": (lambda x, y: np.concatenate([x, y], dtype=np.float64), A, B),
    "ravel in order F": (lambda x: np.ravel(x, order="F"), T),
    "reshape in order F": (lambda x: np.reshape(x, (4, 6), order="F"), T),
    "sort with kind": (lambda x: np.sort(x, axis=0, kind="stable"), A),
    "copy with order": (lambda x: np.copy(x, order="F"), A),
    **each("polyadd polysub polymul polydiv", V, W[:3]),
    **each("polyder polyint poly", V),
    "polyder twice": (lambda p: np.polyder(p, 2), V),
    "polyint with constants": (lambda p, k: np.polyint(p, 2, k), V, W[:2]),
    "polydiv by a longer one": (lambda u, v: np.polydiv(u, v)[1], V[:2], W),
    "roots": (lambda p: np.sort(np.roots(p).real), np.array([1.0, -6.0, 11.0, -6.0])),
    "roots with zeros at both ends": (
        lambda p: np.sort(np.roots(np.concatenate([np.zeros(1), p, np.zeros(2)])).real),
        np.array([1.0, -3.0, 2.0]),
    ),
    "polyfit": (lambda x, y: np.polyfit(x, y, 2), V, W),
    "polyfit with covariance": (lambda y: np.polyfit(np.arange(4.0), y, 1, cov=True)[1], V),
    "polyfit with residuals": (lambda y: np.polyfit(np.arange(4.0), y, 1, full=True)[1], V),
    "polyfit with weights": (lambda y, w: np.polyfit(np.arange(4.0), y, 1, w=w), V, np.abs(W)),
    **{
        f"quantile, method {m}": (lambda x, q, m=m: np.quantile(x, q, axis=1, method=m), A, np.array([0.3, 0.6]))
        for m in ("weibull", "hazen", "median_unbiased", "normal_unbiased", "interpolated_inverted_cdf")
    },
    **{
        f"quantile, method {m}": (lambda x, m=m: np.quantile(x, [0.2, 0.7], axis=1, method=m), A)
        for m in ("lower", "higher", "midpoint", "nearest")
    },
    "nanmedian of holes": (lambda x: np.nanmedian(np.where(np.isnan(HOLES), np.nan, x), axis=1), A),
    "nanquantile of holes": (
        lambda x, q: np.nanquantile(np.where(np.isnan(HOLES), np.nan, x), q, axis=0),
        A,
        np.array([[0.2], [0.9]]),
    ),
    "nanpercentile": (lambda x: np.nanpercentile(x, 30, keepdims=True), A),
    "unwrap": (lambda x: np.unwrap(9 * x), V),
    "trim_zeros": (lambda x: np.trim_zeros(np.concatenate([np.zeros(2), x, np.zeros(1)])), V),
    "histogram of weights": (lambda w: np.histogram(V, 3, weights=w)[0], W),
    "histogram edges": (lambda x: np.histogram(x, 3)[1], V),
    "histogram density": (lambda x, w: np.histogram(x, 3, weights=w, density=True)[0], V, np.abs(W)),
    "array like a tensor": (lambda x: np.array([x[0], 2.0 * x[1]], like=x) * np.asarray(x, like=x)[:2], V),
    "full like a tensor": (lambda x: np.full((2, 4), x, like=x), V),
    "histogramdd of weights": (lambda x, w: np.histogramdd(x, 2, weights=w)[0] * x[0, 0], A, B[0]),
    "histogram2d density": (lambda x, y, w: np.histogram2d(x, y, 2, density=True, weights=w)[0], V, W, np.abs(V)),
    "gradient of second order at the ends": (lambda x, h: np.gradient(x, np.sort(h), edge_order=2), V, W),
    "interp with a period": (lambda x, f: np.interp(x, np.array([0.1, 0.7, 1.1], f.dtype), f, period=1.5), V, A[0]),
    "linspace along another axis": (lambda x, y: np.linspace(x, y, 3, axis=1), V, W),
    "subtract.reduce": (lambda x: np.subtract.reduce(x, axis=1, keepdims=True), A),
    "hypot.reduce with where": (lambda x: np.hypot.reduce(x, axis=(0, 1), where=B > 0, initial=0.5), P),
    "divide.accumulate": (lambda x: np.divide.accumulate(x, axis=1), P),
    "add.reduceat": (lambda x: np.add.reduceat(x, [0, 2, 1], axis=1), A),
    "sum method with NumPy's keywords": (lambda x: x.sum(axis=0, where=B > 0, initial=2.0, dtype=np.float64), A),
    "frexp": (lambda x: np.frexp(x)[0], P),
    "scimath": (lambda x: np.imag(np.lib.scimath.sqrt(x)), A),
    "scimath of two": (
        lambda x, y: [
            np.lib.scimath.power(x, y),
            np.lib.scimath.logn(y + 1, x),
            np.abs(np.lib.scimath.power(-x, 0.5)),
            np.imag(np.lib.scimath.sqrt(x * 1j)),
            np.lib.scimath.power(x, -2),
        ],
        P,
        Q,
    ),
    "trim_zeros of a matrix": (lambda x: np.trim_zeros(np.pad(x, 1) if MATRICES else x[0]) * 2.0, A),
    "nan_to_num in place": (lambda x: (lambda y: (np.nan_to_num(y, copy=False), y)[1])(x * 1.0), A),
    "unique_counts": (lambda x: np.unique_counts(x).values, V),
    "ix_": (lambda x, y: np.ix_(x, y)[0] * np.ix_(x, y)[1], V, W),
    "sinc near 0": (np.sinc, np.array([0.0, 1e-9, 1e-3, 0.0159, 0.0160, 1.0])),
    "fmod of both signs": (lambda x, y: np.fmod(x, y), 7 * A + 0.1, Q),
    "heaviside": (lambda x, h: np.heaviside(np.float32([-1, 0, 0, 2]), h) * x, V, W),
    "copysign": (np.copysign, A, B),
    "ldexp": (lambda x: np.ldexp(x, np.array([1, 2, -3])), A),
    "fix": (lambda x: x * np.fix(9 * x), A),
    "real_if_close": (lambda x: np.real_if_close(x) ** 2, A),
    "sliding_window_view": (lambda x: np.lib.stride_tricks.sliding_window_view(x, 2, axis=1) * x[:, :2, None], A),
    "sliding_window_view of two axes": (lambda x: np.lib.stride_tricks.sliding_window_view(x, (2, 2)) ** 2, A),
    "trunc, rint, round": (lambda x: x * (np.trunc(9 * x) + np.rint(9 * x) + np.round(x, 1)), A),
    "mT": (lambda x: x.mT, T),
    "fmax of holes": (lambda x: np.fmax(HOLES, x) + np.fmin(x, HOLES), B),
    # reductions
    "sum, keepdims": (lambda x: np.sum(x, axis=(0, -1), keepdims=True), T),
    "sum by position": (lambda x: np.sum(x, 1, None, None, True), T),
    "max by position": (lambda x: np.max(x, 1, None, True), T),
    "std by position": (lambda x: np.std(x, 0, None, None, 1), A),
    "std, correction": (lambda x: np.std(x, axis=1, correction=1, keepdims=True), A),
    "var, ddof": (lambda x: np.var(x, axis=(0, 1), ddof=2), T),
    "defaults given": (lambda x: np.sum(x, axis=0, dtype=None, out=None) + np.mean(x, axis=0, where=np._NoValue), A),
    "average": (lambda x, w: np.average(x, axis=1, weights=w[0]), A, P),
    "average, returned": (lambda x, w: np.average(x, weights=w, axis=0, returned=True, keepdims=True), A, P),
    "quantile": (lambda x: np.quantile(x, [0.3, 0.75], axis=1), T),
    "quantile by q": (lambda x, q: np.quantile(x, q, axis=(0, 2), keepdims=True), T, np.array([0.31, 0.72])),
    "percentile": (lambda x: np.percentile(x, 40, axis=-1, keepdims=True), T),
    "median, axis": (lambda x: np.median(x, axis=(0, 2)), T),
    "cov, y": (lambda x, y: np.cov(x, y, rowvar=False, ddof=0), A, B),
    "cov, bias": (lambda x: np.cov(x, bias=True), V),
    "corrcoef, y": (lambda x, y: np.corrcoef(x, y), V, W),
    "nan*": (lambda x: [f(x + HOLES, axis=0) for f in (np.nansum, np.nanprod, np.nanmax, np.nanmin, np.nanmean)], B),
    "nanvar": (lambda x: [f(x + HOLES, axis=1, ddof=1) for f in (np.nanvar, np.nanstd)], B),
    "cumsum, axis": (lambda x: np.cumsum(x, axis=1), T),
    "cumprod, axis": (lambda x: np.cumprod(x, 1), T),
    "cumulative": (lambda x: [f(x, axis=0, include_initial=True) for f in (np.cumulative_sum, np.cumulative_prod)], A),
    "add.reduce": (lambda x: np.add.reduce(x, axis=1) + np.add.reduce(x, axis=1, keepdims=True)[:, 0], T),
    "add.reduce, first axis": (np.add.reduce, T),
    "multiply.reduce": (lambda x: np.multiply.reduce(x, 1), T),
    "max.reduce": (lambda x: np.maximum.reduce(x) + np.minimum.reduce(x, axis=None), T),
    "fmax.reduce": (lambda x: np.fmax.reduce(x + HOLES, axis=1), B),
    "logaddexp.reduce": (lambda x: np.logaddexp.reduce(x, 1), T),
    "accumulate": (lambda x: np.add.accumulate(x) + np.multiply.accumulate(x, axis=1), A),
    "accumulate extremes": (lambda x: [f.accumulate(x, axis=a) for f in (np.maximum, np.minimum) for a in (0, -1)], T),
    "outer": (lambda x, y: np.multiply.outer(x, y) + np.hypot.outer(x, y[0]).sum(), A, T),
    # shapes
    "reshape": (lambda x: np.reshape(x, (4, -1)), T),
    "moveaxis": (lambda x: np.moveaxis(x, [0, 1], [-1, 0]), T),
    "rollaxis": (lambda x: [np.rollaxis(x, 2), np.rollaxis(x, 0, 3), np.rollaxis(x, -1, 1)], T),
    "swapaxes": (lambda x: np.swapaxes(x, 0, 2), T),
    "transpose, axes": (lambda x: np.transpose(x, axes=(1, -1, 0)), T),
    "expand_dims": (lambda x: np.expand_dims(x, (0, -1)), A),
    "squeeze": (lambda x: np.squeeze(x[:, :1], axis=1), A),
    "broadcast_to": (lambda x: np.broadcast_to(x, (2, 4)), V),
    "broadcast_arrays": (lambda x, y: np.broadcast_arrays(x, y[:, None]), V, W),
    "tile": (lambda x: np.tile(x, (2, 1, 2)), A),
    "repeat": (lambda x: np.repeat(x, 2), A),
    "repeat each": (lambda x: np.repeat(x, [1, 0, 3], axis=1), A),
    "roll": (lambda x: [np.roll(x, 5), np.roll(x, (1, -1), (0, 1))], A),
    "rot90": (lambda x: [np.rot90(x, k, axes=(1, 2)) for k in (-1, 0, 1, 2)], T),
    "pad": (lambda x: np.pad(x, ((1, 0), (2, 1)), constant_values=((1, 2), (3, 4))), A),
    "pad by axis": (lambda x: [np.pad(x, {1: (1, 2)}), np.pad(x, {-2: 1}, mode="edge")], A),
    "pad modes": (lambda x: [np.pad(x, ((0, 0), (2, 4)), mode=m) for m in ("edge", "reflect", "symmetric", "wrap")], A),
    "concatenate": (lambda x, y: np.concatenate([x, B, y, [[1.0, 2.0, 3.0]]], axis=0), A, B),
    "concatenate, flat": (lambda x, y: np.concatenate((x, y), axis=None), A, V),
    "concat": (lambda x: np.concat([x, x], 1), A),
    "stack": (lambda x, y: np.stack([x, B, y, x], axis=-1), A, D),
    "vstack": (lambda x, y: np.vstack([x, y[0]]), A, B),
    "hstack": (lambda x, y: [np.hstack([x, y]), np.hstack((x[0], 1.0))], A, B),
    "dstack": (lambda x, y: np.dstack([x, y, B]), A, D),
    "linalg.outer": (np.linalg.outer, V, W),
    "column_stack": (lambda x, y: np.column_stack([x, y, x[:, :2]]), A, V[:3]),
    "block": (lambda x, y: np.block([[x, y], [B, x]]), A, D),
    "append": (lambda x, y: np.append(x, y, axis=0), A, B),
    "split": (lambda x: [*np.split(x, 3, axis=1), *np.split(x, [1, 2]), *np.array_split(x, 2)], A),
    "hsplit": (lambda x: [*np.hsplit(x, [1]), *np.vsplit(x, 3), *np.hsplit(x[0], 3)], A),
    "dsplit": (lambda x: np.dsplit(x, 2), T),
    "unstack": (lambda x: np.unstack(x, axis=1), T),
    "atleast": (lambda x, y: np.atleast_2d(x, y, x[0]), V, A),
    "meshgrid": (lambda x, y: np.meshgrid(x, y), V, A[0]),
    "meshgrid, ij": (lambda x, y: np.meshgrid(x, y, indexing="ij", sparse=True), V, W),
    # elements
    "take": (lambda x: [np.take(x, [0, 2, 2], axis=1), np.take(x, 4), np.take(x, [-5, 7], mode="wrap", axis=0)], A),
    "take, clip": (lambda x: np.take(x, [[5], [-2]], 0, mode="clip"), A),
    "take_along_axis": (lambda x: np.take_along_axis(x, ORDER, axis=1), A),
    "delete": (lambda x: [np.delete(x, 1, axis=0), np.delete(x, [0, 3])], A),
    "compress": (lambda x: [np.compress([1, 0, 1], x, axis=1), np.extract(B > 0, x)], A),
    "diag": (lambda x: [np.diag(x, 1), np.diag(x[0], -2), np.diagonal(x, -1)], A),
    "diagonal": (lambda x: np.diagonal(x, 1, 2, 0), T),
    "trace": (lambda x: np.trace(x, 1, 1, 2), T),
    "tril": (lambda x: [np.tril(x, -1), np.triu(x, 1)], T),
    "sort": (lambda x: [np.sort(x, axis=0), np.sort(x, axis=None)], A),
    "partition of all": (lambda x: np.partition(x, 4, axis=None)[4], A),
    "partition": (lambda x: np.partition(x, 1, axis=0)[1], A),
    "unique": (lambda x: np.unique(np.stack([x, x]), return_index=True)[0], V),
    "where": (lambda x, y: np.where(x > 0, x, y * 2), A, B),
    "where, array": (lambda x: np.where(B > 0, x, 0.0), A),
    "select": (lambda x: np.select([x > 0, x < -0.5], [x, 2 * x * x], default=1.0), A),
    "piecewise of one": (lambda x: np.piecewise(x, W > 0, [np.sin]) + np.piecewise(x, [*(W < 0)], [np.cos, 1.0]), V),
    "piecewise of rows": (lambda x: np.piecewise(x, np.stack([W > 0, W < -1]), [np.sin, np.cos]), V),
    "piecewise": (lambda x: np.piecewise(x, [x < 0, x > 0.5], [lambda z: -z * z, np.log, 3.0]), A),
    "clip": (lambda x: np.clip(x, -0.5, 0.5), A),
    "clip, bounds": (lambda x, y: np.clip(x, a_min=y, a_max=None) + np.clip(x, max=y), A, B),
    "nan_to_num": (lambda x: np.nan_to_num(x + HOLES, nan=2.0), B),
    "full_like": (lambda x: np.full_like(x, x[0, 0]) + np.ones_like(x) * x + np.zeros_like(x), A),
    "linspace": (lambda x, y: [np.linspace(x, y, 4), np.linspace(0.0, x[0, 0], num=3, endpoint=False)], A, B),
    "only an option": (
        lambda x: [
            np.average([1.0, 2.0, 3.0], weights=x[0]),
            np.clip(A, x, 5.0),
            np.clip(A, None, x[0]),
            np.trapezoid(A, x),
            np.cov(V[:3], x[1]),
            np.diff(A, prepend=x[:, :1]),
            np.quantile(A, x[0, 0]),
            np.gradient(A[0], x[1, 1]),
            np.polyval(x[0], 2.0),
            np.interp([0.5, 1.5], [0.0, 1.0, 2.0], x[0]),
        ],
        P / 3,
    ),
    "names": (
        lambda x: (
            np.sum(a=x, axis=0) + np.dot(a=x, b=B) + np.reshape(x, shape=(3, 3)) + np.take(a=x, indices=[0, 1, 2])
        ),
        A,
    ),
    # products
    "dot": (lambda x, y: [np.dot(x, y[0]), np.dot(2.0, x), np.dot(y, [1.0, 2.0, 3.0])], T[:, :, :3], A),
    "dot, high": (lambda x, y: np.dot(x, y), A, T),
    "matmul": (np.matmul, T, W),
    "inner": (np.inner, T, V),
    "tensordot": (lambda x, y: [np.tensordot(x, y), np.tensordot(x, y, axes=([0], [1]))], A, B),
    "linalg.tensordot": (lambda x, y: np.linalg.tensordot(x, y, axes=1), T, W[:, None]),
    "vecdot, axis": (lambda x, y: np.vecdot(x, y, axis=0) + np.linalg.vecdot(x, y, axis=0), A, B),
    "kron": (np.kron, V, A),
    "cross": (lambda x, y: np.cross(x, y, axis=0), A, B),
    "axis of a number": (lambda x: [np.sum(x[0, 0], axis=0), np.max(x[0, 1], axis=-1), np.prod(x[1, 1], 0)], A),
    "delete nothing": (lambda x: [np.delete(x, [], 0), np.insert(x, [], [], 1), np.delete(x, [])], A),
    "cross, one": (lambda x: np.cross(x, [1.0, 2.0, 3.0]), A),
    "einsum": (
        lambda x, y: [
            np.einsum("ij,kj->ik", x, y),
            np.einsum("ii", x),
            np.einsum("ii->i", y),
            np.einsum("...j->...", x),
        ],
        A,
        B,
    ),
    "einsum, lists": (lambda x, y: np.einsum(x, [0, 1], y, [1, 2], [2, 0]) + np.einsum(x, [0, 1], y, [1, 2]).T, A, B),
    "einsum, optimize": (lambda x, y: np.einsum("ij,jk,k->i", x, y, [1.0, 2.0, 3.0], optimize=True), A, B),
    "multi_dot": (lambda x, y: np.linalg.multi_dot([x, y, x, V[:3]]), A, B),
    "matrix_power": (lambda x: [np.linalg.matrix_power(x, n) for n in (0, 1, 3, 6)], A),
    "norm, ord": (lambda x: [np.linalg.norm(x, ord=o) for o in (None, "fro", 1, -1, np.inf, -np.inf)], A),
    "norm, axis": (lambda x: [np.linalg.norm(x, o, 1) for o in (None, 0, 1, 2, 3, -1.5, np.inf, -np.inf)], T),
    "norm, axes": (lambda x: [np.linalg.norm(x, 1, axis=(2, 0)), np.linalg.norm(x, axis=(0, 1), keepdims=True)[0]], T),
    "norm, keepdims": (lambda x: np.linalg.norm(x, np.inf, (0, 1), keepdims=True), T),
    "vector_norm": (
        lambda x: [np.linalg.vector_norm(x, axis=(0, 2), ord=3), np.linalg.vector_norm(x, ord=1, keepdims=True)],
        T,
    ),
    "matrix_norm": (lambda x: [np.linalg.matrix_norm(x, ord=o, keepdims=True) for o in ("fro", 1, np.inf)], T),
    "polyval": (lambda x: np.polyval([1.0, -2.0, 3.0], x), A),
    "vander": (lambda x: np.vander(x, 3, increasing=True), V),
    "convolve": (lambda x, y: [np.convolve(x, y[:k], m) for k in (2, 3) for m in ("full", "same", "valid")], V, W),
    "convolve, longer": (lambda x, y: [np.convolve(x[:2], y, m) for m in ("full", "same", "valid")], V, W),
    "correlate": (
        lambda x, y: [
            np.correlate(x[:j], y[:k], m) for j, k in ((4, 2), (2, 4), (4, 3)) for m in ("full", "same", "valid")
        ],
        V,
        W,
    ),
    "interp": (
        lambda x, y: [np.interp(x, XP, y), np.interp(9 * x, XP, y, left=1.0), np.interp(0.3, XP + x[0, 0], y)],
        A,
        XP**2,
    ),
    "diff": (lambda x: [np.diff(x, 2, axis=0), np.diff(x, prepend=0.0, append=x[:, :1])], A),
    "ediff1d": (lambda x: np.ediff1d(x, to_end=[1.0, 2.0], to_begin=x[0]), A),
    "trapezoid": (
        lambda y, x: [np.trapezoid(y, x[0]), np.trapezoid(y, dx=0.5, axis=0), np.trapezoid(y, x, axis=0)],
        A,
        B,
    ),
    "gradient": (lambda x: [*np.gradient(x, 0.5, [0.0, 1.0, 3.0, 4.0], axis=(1, 2)), np.gradient(x, axis=2)], T),
    "insert": (lambda x, y: [np.insert(x, 1, y[0]), np.insert(x, [0, 2], y[:2]), np.insert(x, slice(0, 2), 7.0)], V, W),
    "insert, axis": (lambda x, y: [np.insert(x, i, y, axis=1) for i in (1, -1)] + [np.insert(x, [0, 2], 5.0, 0)], A, B),
    "insert into an array": (lambda x: np.insert(np.arange(4, dtype=x.dtype), 1, x), V),
    "resize": (lambda x: [np.resize(x, 7), np.resize(x, (2, 1)), np.resize(x[:0], 3)], V),
    "choose": (lambda x, y: [np.choose(B > 0, [x, y]), np.choose([5, -1, 0], [x, 1.0], mode="wrap")], A, D),
    "logspace": (lambda x: [np.logspace(0.0, x, 5), np.logspace(x[0], x[1], 3, endpoint=False, base=2.0)], V),
    "geomspace": (lambda x: [np.geomspace(1.0, x, 5), np.geomspace(-x[0], -x[1], 3, endpoint=False)], P),
    "apply_over_axes": (lambda x: [np.apply_over_axes(np.sum, x, [0, 2]), np.apply_over_axes(np.prod, x, 1)], T),
    "cumulative of vector": (lambda x: np.cumulative_sum(x) + np.cumulative_prod(x), V),
    "tensorsolve with axes": (
        lambda a, b: np.linalg.tensorsolve(a, b, axes=(0,)),
        rng.normal(size=(6, 2, 3)),
        rng.normal(size=(2, 3)),
    ),
    "apply_along_axis": (
        lambda x: [
            *(np.apply_along_axis(f, i, x) for f in (np.sum, np.diag) for i in (0, 1, -1)),
            np.apply_along_axis(lambda r, n, by=1.0: r[:n] * by, 0, x, 1, by=3.0),
        ],
        T,
    ),
    # operators with NumPy's values on the left
    "operators": (lambda x: B * x + (B @ x) - (B - x) / P + P**x + B // x + B % x, P),
    "scalars": (
        lambda x: [np.float64(2) ** x, np.int64(3) * x, np.float32(2) - x, np.float64(1) / x, np.bool_(True) + x],
        P,
    ),
    "lists": (lambda x: np.multiply([0.1, 0.2, 0.3], x) + np.add(x, [[1], [2], [3]]), A),
}


def parts(result: Any) -> list[Any]:
    return list(result) if isinstance(result, list | tuple) else [result]


def projected(f: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> Callable[..., Any]:
    """Return a scalar of everything ``f`` gives, each element with its own weight."""
    weights = [np.random.default_rng(i).normal(size=np.shape(y)) for i, y in enumerate(parts(f(*arrays)))]
    return lambda *xs: sum((np.sum(y * w) for y, w in zip(parts(f(*xs)), weights, strict=True)), np.float64(0))


def slope(f: Callable[..., Any], arrays: Any, directions: Any, h: float = 1e-6) -> Any:
    """Return the change of ``f`` in a direction, by central differences."""
    there, here = ([x + s * h * d for x, d in zip(arrays, directions, strict=True)] for s in (1, -1))
    return (f(*there) - f(*here)) / (2 * h)


def directions(arrays: Any) -> list[np.ndarray]:
    return [np.random.default_rng(9).normal(size=x.shape) for x in arrays]


@pytest.mark.parametrize("name", CASES)
def test_numpy_function_values_match_numpy(name: str) -> None:
    f, *arrays = CASES[name]
    for ours, theirs in zip(parts(f(*map(pb.tensor, arrays))), parts(f(*arrays)), strict=True):
        assert isinstance(ours, pb.Tensor)
        assert ours.shape == np.shape(theirs)
        assert ours.dtype == theirs.dtype
        np.testing.assert_allclose(ours.numpy(), theirs, rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("name", CASES)
def test_numpy_function_gradients_match_finite_differences(name: str) -> None:
    f, *arrays = CASES[name]
    y, moved = projected(f, tuple(arrays)), directions(arrays)
    found = pb.grads(y, unconnected="zero")(arrays)
    along = sum(np.sum(g * d) for g, d in zip(found, moved, strict=True))
    np.testing.assert_allclose(along, slope(y, arrays, moved), rtol=2e-6, atol=2e-7)
    _, forward = pb.jvp(y, arrays, moved)
    np.testing.assert_allclose(forward, along, rtol=1e-9, atol=1e-10)


# depend on values
SIZES = {
    "unique", "polydiv", "roots", "roots with zeros at both ends", "trim_zeros", "trim_zeros of a matrix", "scimath",
    "unique_counts", "scimath of two",
}  # fmt: skip


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", [n for n in CASES if n not in SIZES])
def test_vmap_of_numpy_functions_matches_loop(name: str) -> None:
    """With examples in any of the arrays; the gradient too, inside ``vmap`` and outside it."""
    f, *arrays = CASES[name]
    y = projected(f, tuple(arrays))
    for on in itertools.product((False, True), repeat=len(arrays)):
        if not any(on):
            continue
        args = [np.stack([x, 0.98 * x]) if b else x for x, b in zip(arrays, on, strict=True)]
        axes = [0 if b else None for b in on]
        each = [[a[i] if b else a for a, b in zip(args, on, strict=True)] for i in range(2)]
        made = parts(pb.vmap(lambda *xs: tuple(parts(f(*xs))), axes)(*args))
        loop = [parts(f(*map(pb.tensor, xs))) for xs in each]
        for ours, *theirs in zip(made, *loop, strict=True):
            np.testing.assert_allclose(ours, np.stack([z.numpy() for z in theirs]), rtol=1e-9, atol=1e-12)
        pull = lambda *xs: pb.grads(y, unconnected="zero")(xs)
        slopes = [np.stack(rows) for rows in zip(*(pull(*xs) for xs in each), strict=True)]
        for inside, want in zip(pb.vmap(pull, axes)(*args), slopes, strict=True):
            np.testing.assert_allclose(inside, want, rtol=1e-8, atol=1e-10)
        outside = pb.grads(lambda *xs, axes=axes: np.sum(pb.vmap(y, axes)(*xs)), unconnected="zero")(args)
        for got, want, b in zip(outside, slopes, on, strict=True):
            np.testing.assert_allclose(got, want if b else want.sum(axis=0), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(
    "name",
    [
        "hypot",
        "logaddexp",
        "logaddexp2",
        "log2",
        "log10",
        "cbrt",
        "sinc",
        "sinc near 0",
        "fmod of both signs",
        "exp2",
        "std, correction",
        "quantile",
        "cov, y",
        "corrcoef, y",
        "nanvar",
        "kron",
        "cross",
        "norm, axis",
        "norm, ord",
        "convolve",
        "interp",
        "gradient",
        "piecewise",
        "average",
        "logaddexp.reduce",
        "matrix_power",
        "pad modes",
        "trapezoid",
    ],
)
def test_numpy_functions_second_order(name: str) -> None:
    f, *arrays = CASES[name]
    y, moved = projected(f, tuple(arrays)), directions(arrays)
    first = lambda *xs: sum(
        np.sum(g * d) for g, d in zip(pb.grads(y, unconnected="zero")(list(xs)), moved, strict=True)
    )
    found = pb.grads(first, unconnected="zero")(arrays)
    along = sum(np.sum(g * d) for g, d in zip(found, moved, strict=True))
    np.testing.assert_allclose(along, slope(first, arrays, moved), rtol=1e-5, atol=1e-6)


WIDER = {  # NumPy itself makes these float64
    "float_power", "scalars", "sum with dtype", "ufunc with dtype and order", "concatenate with dtype",
    "roots with zeros at both ends", "polyfit with weights", "polyfit with covariance", "polyfit with residuals",
    "trim_zeros", "scimath of two",
}  # fmt: skip


@pytest.mark.parametrize("name", [name for name in CASES if name not in WIDER])
def test_numpy_functions_of_float32_are_float32(name: str) -> None:
    f, *arrays = CASES[name]
    narrow = [x.astype(np.float32) for x in arrays]
    constants = any(isinstance(c, np.ndarray) and c.dtype == float for c in captured(getattr(f, "__code__", None)))
    results = parts(f(*map(pb.tensor, narrow)))
    assert constants or {y.dtype for y in results} <= {np.dtype(np.float32), np.dtype(np.int64)}
    for g in pb.grads(lambda *xs: sum(np.sum(y) for y in parts(f(*xs))), unconnected="zero")(narrow):
        assert g.dtype == np.float32


def captured(code: Any) -> list[Any]:
    """Return the arrays of this file that a case names; they are float64."""
    inside = [c for c in getattr(code, "co_consts", ()) if hasattr(c, "co_names")]
    return [globals().get(n) for n in getattr(code, "co_names", ())] + [a for c in inside for a in captured(c)]


# ---- nothing is lost in silence


def traced(f: Callable[[Any], Any], x: Any = A) -> Any:
    """Return what ``f`` gives while the gradient by ``x`` is being taken."""
    kept = []

    def run(t: Any) -> Any:
        kept.append(f(t))
        return np.sum(t)

    pb.grad(run)(x)
    return kept[0]


def into(x: Any, index: Any, value: Any) -> None:
    x[index] = value


ADDED = np.frompyfunc(lambda x, y: x + y, 2, 1)  # a ufunc of two arguments without a rule

LOST: dict[str, tuple[Callable[[Any], Any], type[Exception], str]] = {
    "asarray": (np.asarray, TracedValueError, r"np.asarray\(\) of a traced tensor of shape \(3, 3\) would lose"),
    "asarray, advice": (np.asarray, TracedValueError, r"x itself for np.asarray\(x\), x.copy\(\) for np.array"),
    "array of rows": (lambda t: np.array([t[0], t[1]]), TracedValueError, "would lose its gradient.*np.stack joins"),
    "array of floats": (lambda t: np.array([t[0, 0], 1.0], float), TracedValueError, "np.array without a dtype"),
    "float": (lambda t: float(t[0, 0]), TracedValueError, r"float\(\) of .* shape \(\).*x itself for float"),
    "item": (lambda t: t[0, 0].item(), TracedValueError, r"item\(\) of a traced tensor.*x itself for x.item"),
    "int": (lambda t: int(t[0, 0]), TracedValueError, r"int\(\) of a traced"),
    "complex": (lambda t: complex(t[0, 0]), TracedValueError, r"complex\(\) of a traced|float\(\) of a traced"),
    "math": (lambda t: math.sin(t[0, 0]), TracedValueError, r"float\(\) of a traced"),
    "np.float32": (lambda t: np.float32(t[0, 0]), TracedValueError, "of a traced"),
    "setitem": (
        lambda t: into(np.zeros(3), 0, t[0, 0]),
        TracedValueError,
        r'test_numpy.py.*pb.zeros\(shape, "float64"',
    ),
    "setitem of rows": (
        lambda t: into(np.zeros((3, 3)), 0, t[0]),
        TracedValueError,
        r"out\[...\] = x at test_numpy.py",
    ),
    "dlpack": (np.from_dlpack, TracedValueError, "DLPack export"),
    "generator": (lambda t: np.random.default_rng(0).normal(t), TracedValueError, "would lose its gradient"),
    "*=": (lambda t: operator.imul(np.ones((3, 3)), t), NoRuleError, r"np.multiply\(out=\).*x = x \+ t, .*pb.zeros"),
    "@=": (lambda t: operator.imatmul(np.ones((3, 3)), t), NoRuleError, r"np.matmul\(axes=, out=\)"),
    "out": (
        lambda t: np.exp(t, out=np.empty((3, 3))),
        NoRuleError,
        r"np.exp\(out=\) of a traced Tensor.*use the result",
    ),
    "out of a function": (lambda t: np.sum(t, axis=0, out=np.empty(3)), NoRuleError, r"np.sum\(out=\)"),
    "out by position": (lambda t: np.sum(t, 0, None, np.empty(3)), NoRuleError, r"np.sum\(out=\)"),
    "out of tensor and array": (
        lambda t: np.modf(t, out=(t, np.empty((3, 3)))),
        ArgumentError,
        r"np.modf\(out=\): write the result into",
    ),
    "out of clip": (lambda t: np.clip(t, 0, 1, out=np.empty((3, 3))), NoRuleError, r"np.clip\(out=\)"),
    "out of reduce": (lambda t: np.add.reduce(t, out=np.empty(3)), NoRuleError, r"np.add.reduce\(out=\)"),
    "where": (lambda t: np.exp(t, where=B > 0), NoRuleError, r"np.exp\(where=\).*np.where instead"),
    "no rule for a ufunc": (np.spacing, NoRuleError, "np.spacing has no rule"),
    "no rule for reduce": (lambda t: ADDED.reduce(t), NoRuleError, "reduce has no rule"),
    "no rule for accumulate": (lambda t: ADDED.accumulate(t), NoRuleError, "accumulate has no rule"),
    "reduce along two axes": (lambda t: np.subtract.reduce(t, (0, 1)), ArgumentError, "axis must be one axis"),
    "no rule for reduceat": (lambda t: ADDED.reduceat(t, [0, 2]), NoRuleError, "reduceat has no rule"),
    "reduce with where": (
        lambda t: np.subtract.reduce(t, where=B > 0),
        ArgumentError,
        "subtract.reduce: where= needs initial= as well",
    ),
    "reduce of nothing": (lambda t: np.subtract.reduce(t[:0]), ValueError, "no elements along axis 0"),
    "no rule for outer": (lambda t: ADDED.outer(t, t), NoRuleError, "outer has no rule"),
    "frompyfunc": (lambda t: np.frompyfunc(lambda x: x * x, 1, 1)(t), NoRuleError, "has no rule"),
    "pad mode": (lambda t: np.pad(t, 1, mode="mean"), NoRuleError, r"np.pad\(mode='mean'\).*There are constant, edge"),
    "pad reflect_type": (
        lambda t: np.pad(t, 1, "reflect", reflect_type="odd"),
        NoRuleError,
        r"np.pad\(reflect_type=\)",
    ),
    "gradient edge": (lambda t: np.gradient(t, edge_order=3), ValueError, "edge_order must be 1 or 2"),
    "norm of three axes": (
        lambda t: np.linalg.norm(np.stack([t, t]), 1),
        ArgumentError,
        r"ord=1 is for vectors and matrices",
    ),
    "matrix ord": (lambda t: np.linalg.norm(t, "fro", 0), ArgumentError, "ord='fro' is for matrices"),
    "quantile out of range": (lambda t: np.percentile(t, 101), ArgumentError, "q must be from 0 to 100"),
    "average": (
        lambda t: np.average(t, axis=0, weights=V),
        ValueError,
        r"weights of shape \(4,\) do not fit a of shape \(3, 3\)",
    ),
    "diag": (lambda t: np.diag(np.stack([t, t])), ValueError, r"one or two axes, got shape \(2, 3, 3\)"),
    "select": (lambda t: np.select([t > 0], [t, t]), ValueError, "1 conditions, but 2 choices"),
    "piecewise": (lambda t: np.piecewise(t, [t > 0], []), ValueError, "1 conditions, but 0 functions"),
    "cross": (lambda t: np.cross(t[:, :1], t), ValueError, "two or three components, got 1 and 3"),
    "meshgrid": (lambda t: np.meshgrid(t[0], indexing="yx"), ArgumentError, "'xy' or 'ij', got 'yx'"),
    "convolve": (lambda t: np.convolve(t[0], t[1], "some"), ArgumentError, "got 'some'"),
    "convolve nothing": (lambda t: np.convolve(t[0], []), ValueError, "an argument is empty"),
    "diff": (lambda t: np.diff(t, -1), ArgumentError, "got -1"),
    "gradient": (lambda t: np.gradient(t, 1.0, 2.0, 3.0), ArgumentError, "3 spacings for 2 axes"),
    "gradient of one": (lambda t: np.gradient(t[:1], axis=0), ValueError, "less than the length of axis 0"),
    "cumulative_sum": (np.cumulative_sum, ArgumentError, "axis must be given"),
    "split": (lambda t: np.split(t, 2), ValueError, "equal division"),
    "where of max": (lambda t: np.max(t, where=B > 0), ArgumentError, "where= needs initial= as well"),
    "casting": (lambda t: np.add(t, 1.0, dtype=np.float32, casting="safe"), ArgumentError, "cannot cast float64"),
    "order of reshape": (lambda t: np.reshape(t, 9, order="A"), NoRuleError, r"np.reshape\(order=\) of a traced"),
    "order of layout": (lambda t: np.ravel(t, order="K"), ArgumentError, "order must be 'C' or 'F'"),
    "no rule": (np.spacing, NoRuleError, "has no rule.*pb.custom_gradient, or use stop_gradient"),
    "view": (lambda t: t.view(np.int64), ArgumentError, "x.astype"),
    "astype": (lambda t: t.astype(np.float32, casting="safe"), ArgumentError, "cannot be cast to that"),
    "histogram bins": (lambda t: np.histogram(t, "auto"), ArgumentError, "bins='auto' has no derivative"),
    "quantile method": (lambda t: np.quantile(t, 0.5, method="x"), ArgumentError, "method must be one of"),
    "polyint": (lambda t: np.polyint(t[0], 3, [1.0, 2.0]), ArgumentError, "k has 2 constants for m=3"),
}


@pytest.mark.parametrize("name", LOST)
def test_unsupported_numpy_call_raises(name: str) -> None:
    f, kind, message = LOST[name]
    with pytest.raises(kind, match=message):
        traced(f)


def test_cross_of_vectors_of_two_components() -> None:
    """NumPy still has them, with a warning, and so do programs of plane geometry."""

    def f(x: Any) -> Any:
        return np.cross(x[:, :2], B[:, 1:]).sum() + (np.cross(x[:, :2], B) * B).sum()

    def g(x: Any) -> Any:
        flat = x * [1.0, 1.0, 0.0]
        return (x[:, 0] * B[:, 2] - x[:, 1] * B[:, 1]).sum() + (np.cross(flat, B) * B).sum()

    np.testing.assert_allclose(pb.grad(f)(A), pb.grad(g)(A))


WRITING: dict[str, Callable[[Any, Any], Any]] = {
    "np.copyto": lambda y, x: np.copyto(y, x**3),
    "np.copyto where": lambda y, x: np.copyto(y, x**3, where=x > 0),
    "np.fill_diagonal": lambda y, x: np.fill_diagonal(y, x[0, 0] ** 2),
    "np.fill_diagonal wrap": lambda y, x: np.fill_diagonal(y.T, x[0, :2] ** 2, wrap=True),
    "np.put": lambda y, x: np.put(y, [0, -1, 2], x[:, 0] ** 2),
    "np.put clip": lambda y, x: np.put(y, [0, 99], x[0, :2], mode="clip"),
    "np.putmask": lambda y, x: np.putmask(y, B > 0, x[0] ** 2),
    "np.place": lambda y, x: np.place(y, B > 0, x[0, :2] ** 2),
    "np.put_along_axis of all": lambda y, x: np.put_along_axis(y, np.array([4, -1]), x[0, :2] ** 2, None),
    "np.put_along_axis": lambda y, x: np.put_along_axis(y, ORDER[:, :1], x[:, :1] ** 2, 1),
    "np.add.at": lambda y, x: np.add.at(y, ([0, 0, 1], [1, 1, 0]), x[0, :3] ** 2),
    "np.subtract.at": lambda y, x: np.subtract.at(y, [0, 0], x[0] ** 2),
    "np.multiply.at": lambda y, x: np.multiply.at(y, [1, 0], x[:2] ** 2),
    "np.negative.at": lambda y, x: np.negative.at(y, [1]),
    "x.fill": lambda y, x: y[1:].fill(2.5),
    "x.sort": lambda y, x: y.sort(axis=0),
    "row.sort": lambda y, x: y[1].sort(),
}


@pytest.mark.parametrize("name", WRITING)
def test_numpy_writes_into_tensor_match_numpy(name: str) -> None:
    def f(x: Any) -> Any:
        y = x * 1.5
        assert WRITING[name](y, x) is None
        return np.sum(y * y * np.arange(y.size).reshape(y.shape))

    value, slope = pb.value_and_grad(f)(A)
    np.testing.assert_allclose(value, f(A))
    np.testing.assert_allclose(slope, gradient(f, A), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(pb.compile(pb.grad(f))(A), pb.grad(f)(A), rtol=1e-9)


@pytest.mark.parametrize("name", ["np.copyto", "np.put", "np.add.at"])
def test_numpy_writes_of_tensor_into_array_raise(name: str) -> None:
    with pytest.raises(ArgumentError, match=f"{name} writes into a NumPy array here"):
        traced(lambda x: WRITING[name](np.zeros(A.shape), x))


@pytest.mark.parametrize("name", ["np.copyto", "np.put", "np.add.at"])
def test_numpy_writes_of_untraced_tensor_into_array(name: str) -> None:
    y, z = A.copy(), A.copy()
    WRITING[name](y, pb.tensor(A))
    WRITING[name](z, A)
    np.testing.assert_allclose(y, z)


def test_place_with_computed_mask_under_vmap_and_compile() -> None:
    def f(x: Any) -> Any:
        y = x * 1
        np.place(y, y > 0, [x[0], 5.0])
        return y

    np.testing.assert_array_equal(pb.vmap(f)(A), [f(row) for row in A])
    np.testing.assert_array_equal(pb.compile(f)(A[1]), f(A[1]))


def test_triu_tril_diag_indices_under_vmap_and_compile() -> None:
    for f in (np.triu_indices_from, np.tril_indices_from, np.diag_indices_from):
        np.testing.assert_array_equal(pb.vmap(lambda x, f=f: x[f(x)])(A[None]), [A[f(A)]])
        np.testing.assert_array_equal(pb.compile(lambda x, f=f: x[f(x)])(A), A[f(A)])


def test_unravel_index_of_computed_index() -> None:
    def largest(x: Any) -> Any:
        return x[np.unravel_index(np.argmax(x), x.shape)] ** 2

    for run in (lambda x: largest(pb.tensor(x)), pb.compile(largest), lambda x: pb.vmap(largest)(x[None])[0]):
        np.testing.assert_allclose(run(A), A.max() ** 2)
    np.testing.assert_allclose(pb.compile(pb.grad(largest))(A), 2 * A * (A.max() == A))
    at = np.array([[5, 22], [13, 1]])
    places = pb.compile(lambda i: np.unravel_index(i, (2, 3, 4), order="F"))(at)
    np.testing.assert_array_equal(places, np.unravel_index(at, (2, 3, 4), order="F"))
    with pytest.raises(ValueError, match="out of bounds"):
        np.unravel_index(pb.tensor(np.array(9)), (3, 3))


def test_ldexp_frexp_and_modf_of_extreme_numbers() -> None:
    x, n = np.array([0.0, 1, -3, 5e-324, 1e308]), np.array([2000, -1060, 3, 2097, -2000])
    np.testing.assert_array_equal(np.ldexp(pb.tensor(x), n), np.ldexp(x, n))
    np.testing.assert_array_equal(np.frexp(pb.tensor(x))[0], np.frexp(x)[0])
    x = np.array([np.inf, -np.inf, -3.0, 2.5, -0.0])
    np.testing.assert_array_equal(np.modf(pb.tensor(x)), np.modf(x))
    assert np.signbit(np.modf(pb.tensor(x))[0]).tolist() == np.signbit(np.modf(x)[0]).tolist()


def test_gradient_has_dtype_of_array() -> None:
    for spacing in (1, 0.5, np.array([0, 1, 3])):
        assert np.gradient(pb.tensor(V[:3].astype(np.float32)), spacing).dtype == np.float32


def test_poly_of_real_matrix_is_real() -> None:
    np.testing.assert_allclose(np.poly(pb.tensor(A)), np.poly(A))
    assert np.poly(pb.tensor(A)).dtype == np.float64


def test_histogram2d_of_integer_weights_does_not_overflow() -> None:
    weights = np.full(4, 100, np.int8)
    made = np.histogram2d(pb.tensor(V), pb.tensor(W), bins=1, weights=weights)[0]
    np.testing.assert_array_equal(made, [[400.0]])


def test_interp_with_repeated_last_point() -> None:
    x, xp, fp = np.array([-0.5, 0.0, 1.0]), np.array([-1.0, 0, 0]), np.array([0.0, 2, 1])
    for f in (np.interp, pb.compile(np.interp)):
        np.testing.assert_allclose(f(pb.tensor(x), xp, fp), np.interp(x, xp, fp))
    assert np.isfinite(pb.grad(lambda x: np.interp(x, xp, fp))(x)).all()


def test_interp_of_unequal_lengths_raises() -> None:
    with pytest.raises(ValueError, match="vectors of one length"):
        np.interp(pb.tensor(V), np.arange(2.0), np.arange(3.0))


def test_piecewise_of_number_and_of_no_elements() -> None:
    np.testing.assert_array_equal(np.piecewise(6.0, [pb.tensor(True)], [lambda x: x * 2, 1]), 12.0)
    empty = np.zeros((0, 2))
    assert pb.compile(lambda x: np.piecewise(x, [x > 0], [lambda x: x * 2, 1]))(empty).shape == (0, 2)


def test_lstsq_with_negative_rcond_means_machine_precision() -> None:
    np.testing.assert_allclose(np.linalg.lstsq(pb.tensor(A), A[0], rcond=-1)[0], np.linalg.lstsq(A, A[0], rcond=-1)[0])


def test_diff_of_bools() -> None:
    x = np.array([True, False, False])
    np.testing.assert_array_equal(np.diff(pb.tensor(x)), np.diff(x))


REPEATED = [0, 2, 0, 0, 3]
EVERY_TRANSFORM: dict[str, Callable[..., Any]] = {
    "grad": lambda f, x: pb.grad(f)(x),
    "forward": lambda f, x: np.array([pb.jvp(f, [x], [way])[1] for way in np.eye(len(x))]),
    "vmap": lambda f, x: pb.vmap(pb.grad(f))(np.stack([x, x]))[1],
    "compile": lambda f, x: pb.compile(pb.grad(f))(x),
}


def at(ufunc: Any) -> Callable[..., Any]:
    def run(x: Any) -> Any:
        y = x * 1.0
        ufunc.at(y, REPEATED, np.exp(x[REPEATED]) * np.arange(1.0, 6.0))
        return np.sum(y * np.arange(1.0, 5.0))

    return run


def write_parts(x: Any) -> Any:
    z = x * (1 + 2j)
    z.real = x**2
    z.imag[::2] = 0.0
    z.imag = z.imag * x[0]
    return np.sum(np.abs(z) ** 2 * np.arange(1.0, 5.0))


PROGRAMS: dict[str, Callable[..., Any]] = {
    "multiply.at": at(np.multiply),
    "maximum.at": at(np.maximum),
    "divide.at": at(np.divide),
    "add.at": at(np.add),
    "real and imag": write_parts,
    "where= of a sum of constants": lambda x: np.sum(W, where=x > 0) * np.sum(x**2),
    "where= of a method of constants": lambda x: (W.sum(where=x > 0) + np.add.reduce(W, where=x > 0)) * np.sum(x**2),
    "clip of constants": lambda x: np.sum(W.clip(None, x) * W.clip(x, 2.0)),
    "polyfit of integers": lambda x: np.sum(np.polyfit(np.arange(4), x, 2) ** 2),
    "polyfit of a list": lambda x: np.sum(np.polyfit([0, 1, 2, 3], x, 1) ** 2),
    "matrix_rank": lambda x: np.sum(x) * np.sum(np.linalg.matrix_rank(np.outer(x, x), tol=[0.1, 1e9])),
    "matrix_rank of a vector": lambda x: np.sum(x) * np.linalg.matrix_rank(x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_numpy_program_under_transforms(name: str) -> None:
    f = PROGRAMS[name]
    expected = gradient(f, V)
    for transform, run in EVERY_TRANSFORM.items():
        np.testing.assert_allclose(run(f, V), expected, rtol=1e-5, atol=1e-6, err_msg=transform)


def test_ufunc_at_with_computed_indices_matches_numpy() -> None:
    def f(x: Any, at: Any) -> Any:
        rows, one = np.zeros_like(x, shape=(5, 3)), np.zeros_like(x, shape=(5, 2))
        np.add.at(rows, at, x[:, None] * np.arange(3.0))
        np.subtract.at(one, (at, at % 2), x**2)
        np.maximum.at(one, at, x[:, None])
        np.minimum.at(one, (at, 0), x)
        sums, counts = np.bincount(at + 5, x, minlength=10), np.bincount(at + 5, minlength=10)
        return np.sum(rows**3) + np.sum(one**2) + np.sum(sums**2 * counts)

    compiled = pb.compile(pb.value_and_grad(f, argnums=0))
    for at in np.array([[0, 1, -2, 3], [4, -4, 4, 4]]):
        value, slope = compiled(V, at)
        np.testing.assert_allclose(value, f(V, at))
        np.testing.assert_allclose(slope, gradient(lambda x, at=at: f(x, at), V), rtol=1e-5)
    with pytest.raises(IndexError, match="5 is out of range"):
        compiled(V, np.array([0, 1, 5, 3]))


@pytest.mark.parametrize("number", [-1, 3])
def test_compiled_bincount_rejects_numbers_outside_minlength(number: int) -> None:
    with pytest.raises(IndexError, match=r"out of range for an axis of length 3. \(test_numpy.py:\d+\)"):
        pb.compile(lambda at: np.bincount(at, minlength=3))(np.array([0, number]))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize(("n", "k"), [(5, 2), (5, 3), (3, 6), (300, 90)])
def test_convolve_of_each_mode_matches_numpy(n: int, k: int, mode: Any) -> None:
    a, v = np.sin(np.arange(float(n))), np.cos(np.arange(float(k)))
    for function in (np.convolve, np.correlate):
        np.testing.assert_allclose(function(pb.tensor(a), v, mode), function(a, v, mode), rtol=1e-9, atol=1e-12)


def test_matrix_rank_op_rejects_several_limits() -> None:
    with pytest.raises(ArgumentError, match=r"rtol must be one number, got shape \(2,\)"):
        pb.linalg.matrix_rank(A, rtol=[0.1, 0.2])


def test_imag_of_real_tensor_cannot_be_written() -> None:
    with pytest.raises(ArgumentError, match=r"x\.imag = value: x must be complex, got dtype float64"):
        pb.tensor(V).imag = 1.0


UNANSWERED: dict[str, tuple[Callable[..., Any], str]] = {
    "np.nditer": (lambda x: sum(v for v in np.nditer(x)), "Iterate over x itself or x.flat"),
    "np.ma": (lambda x: np.ma.masked_array(x, x > 0).sum(), "Masked arrays hold plain numbers"),
    "a.dot(x)": (lambda x: A.dot(x).sum(), r"np\.dot\(a, x\) for a\.dot\(x\)"),
    "a.conj(t)": (lambda x: np.arange(4).conj(x), "output must be an array: the methods of NumPy's arrays"),
    "chebfit": (lambda x: np.polynomial.chebyshev.chebfit(np.arange(4.0), x, 2), "lstsq of their Vandermonde"),
}


@pytest.mark.parametrize("name", UNANSWERED)
def test_unsupported_numpy_function_error_suggests_replacement(name: str) -> None:
    f, cure = UNANSWERED[name]
    with pytest.raises((TracedValueError, ArgumentError), match=cure):
        pb.grad(f)(V)


def test_ufunc_where_has_no_gradient_of_skipped_elements() -> None:
    def f(x: Any) -> Any:
        root = np.sqrt(x, where=x > 0, out=x * 0.0)
        quotient = np.divide(1.0, x, where=x != 0, out=x * 2.0)
        return np.sum(root * 3.0 + quotient)

    np.testing.assert_allclose(pb.grad(f)(np.array([4.0, -1.0, 0.0])), [0.75 - 1 / 16, -1.0, 2.0])


SERIES = [
    np.polynomial.polynomial.polyval, np.polynomial.chebyshev.chebval, np.polynomial.legendre.legval,
    np.polynomial.hermite.hermval, np.polynomial.hermite_e.hermeval, np.polynomial.laguerre.lagval,
]  # fmt: skip


@pytest.mark.parametrize("f", SERIES)
@pytest.mark.parametrize("terms", [1, 2, 4])
def test_polynomial_series_of_several_columns_match_numpy(f: Any, terms: int) -> None:
    c = np.arange(1.0, 13.0).reshape(4, 3)[:terms] * 0.1
    for x in (A[0], A):
        expected = f(x, c)
        np.testing.assert_allclose(f(pb.tensor(x), c).numpy(), expected)
        np.testing.assert_allclose(pb.vmap(lambda x: f(x, c))(np.stack([x, x]))[1], expected)
        np.testing.assert_allclose(pb.compile(lambda x: f(x, c))(x), expected)
        with pb.debug_nans():
            np.testing.assert_allclose(pb.value_and_grad(lambda x: f(x, c).sum())(x)[0], expected.sum())
    np.testing.assert_allclose(f(pb.tensor(A[0]), c[..., None], tensor=False).numpy(), f(A[0], c))


@pytest.mark.parametrize("dtype", ["int64", "int8", "bool", "float32"])
def test_reciprocal_has_dtype_of_numpy(dtype: str) -> None:
    x = np.array([1, 2, 1], dtype)
    found = np.reciprocal(pb.tensor(x)).numpy()
    np.testing.assert_array_equal(found, np.reciprocal(x), strict=True)


def test_polyvalfromroots_of_tensor_with_axes_raises() -> None:
    f, roots = np.polynomial.polynomial.polyvalfromroots, np.array([3.0, 4.0])
    with pytest.raises(ArgumentError, match="polyvalfromroots"):
        f(pb.tensor([1.0, 2.0]), roots)
    assert f(pb.tensor(2.0), roots).item() == 2.0


@pytest.mark.parametrize("f", [np.exp, np.add.accumulate, np.clip])
def test_out_writes_result_into_tensor(f: Any) -> None:
    more = (0.0, 1.0) if f is np.clip else ()
    out = pb.tensor(A)
    assert f(pb.tensor(A), *more, out=out) is out
    np.testing.assert_allclose(out.numpy(), f(A, *more))
    out = pb.tensor(A)
    assert f(A, *more, out=out) is out
    np.testing.assert_allclose(out.numpy(), f(A, *more))


def test_out_by_position_writes_result_into_tensor() -> None:
    t = pb.tensor(np.ones(A.shape[1:]))
    np.sum(pb.tensor(A), 0, None, t)
    np.testing.assert_allclose(t.numpy(), A.sum(0))
    np.nanmedian(pb.tensor(A), 0, t)
    np.testing.assert_allclose(t.numpy(), np.nanmedian(A, 0))


# ---- without a gradient to lose


@pytest.mark.parametrize(
    "f",
    [
        np.linalg.inv,
        np.linalg.slogdet,
        lambda x: np.histogram(x, 3),
        np.spacing,
        np.fft.fft,
        lambda x: np.sum(x, dtype=np.float32),
        lambda x: np.add.reduceat(x, [0, 2]),
        lambda x: np.mean(x, where=B > 0),
        lambda x: np.quantile(x, 0.4, method="lower"),
        lambda x: np.insert(x, 1, 5.0),
        lambda x: np.reshape(x, -1, order="F"),
        lambda x: np.maximum.accumulate(x),
        lambda x: np.linalg.norm(x, 2),
        lambda x: np.linalg.matrix_power(x, -2),
        lambda x: np.pad(x, 1, mode="mean"),
        lambda x: np.add(x, 1, casting="unsafe"),
        lambda x: np.linalg.qr(x, mode="raw"),
        lambda x: np.searchsorted(x[0], [0.1, 0.2], sorter=np.argsort(A[0])),
        lambda x: np.roots(np.array([3.0, 0.0, 0.0]) * x[0]),
        lambda x: np.roots(0 * x[0]),
    ],
)
def test_numpy_functions_without_rule_of_constants(f: Any) -> None:
    ours, theirs = f(pb.tensor(A)), f(A)
    assert type(ours) is (pb.Tensor if isinstance(theirs, np.ndarray | np.generic) else type(theirs))
    for y, z in zip(parts(ours), parts(theirs), strict=True):
        assert isinstance(y, pb.Tensor)
        np.testing.assert_allclose(np.asarray(y), z)


def test_out_array_of_constants() -> None:
    buffer = np.ones((3, 3))
    buffer *= pb.tensor(A)
    np.testing.assert_array_equal(buffer, A)
    assert np.sum(pb.tensor(A), axis=0, out=buffer[0]) is not None
    np.testing.assert_array_equal(buffer[0], A.sum(0))


WITHOUT_GRADIENT: dict[str, Callable[[Any], Any]] = {
    **{f.__name__: f for f in (np.argmax, np.argmin, np.argsort, np.nonzero, np.where, np.isnan, np.signbit, np.all)},
    **{f.__name__: f for f in (np.any, np.count_nonzero, np.isreal, np.shape, np.ndim, np.size, np.array_str)},
    **{f.__name__: f for f in (np.iscomplexobj, np.result_type)},
    "argmax, axis": lambda x: np.argmax(x, axis=1),
    "argmin, keepdims": lambda x: np.argmin(x, 0, keepdims=True),
    "argmax, all kept": lambda x: np.argmax(x, keepdims=True),
    "nanargmax": lambda x: np.nanargmax(x, 1),
    "searchsorted": lambda x: np.searchsorted([-1.0, 0.0, 1.0], x),
    "digitize": lambda x: np.digitize(x, [-1.0, 0.0, 1.0]),
    "isclose": lambda x: np.isclose(x, B),
    "allclose": lambda x: np.allclose(x, x + 1e-12),
    "array_equal": lambda x: np.array_equal(x, A),
    "logical": lambda x: np.logical_and(x > 0, np.logical_not(x > 1)),
    "reduce": lambda x: np.logical_and.reduce(x > 0) | np.logical_or.reduce(x > 0, axis=1),
    "size, axis": lambda x: np.size(x, 1),
    "isin": lambda x: np.isin(x, A[0]),
    "comparison": lambda x: np.greater(B, x),
    "lexsort": lambda x: np.lexsort((x[0], x[1])),
    "argpartition": lambda x: np.argpartition(x, 1)[:, 1],
}


@pytest.mark.parametrize("name", WITHOUT_GRADIENT)
def test_integer_and_bool_results_have_no_gradient(name: str) -> None:
    f = WITHOUT_GRADIENT[name]
    for found in (f(pb.tensor(A)), traced(f)):
        for ours, theirs in zip(parts(found), parts(f(A)), strict=True):
            is_count = name == "count_nonzero"  # a Python number, in older NumPy
            assert isinstance(ours, pb.Tensor) == (is_count or isinstance(theirs, np.ndarray | np.generic))
            np.testing.assert_array_equal(pb.stop_gradient(ours) if isinstance(ours, pb.Tensor) else ours, theirs)


def test_unconnected_error_names_the_function() -> None:
    with pytest.raises(UnconnectedError, match=r"cut.*np.searchsorted \(.*test_numpy.py"):
        pb.grad(lambda x: np.searchsorted(XP, x) * 1.0)(A)


# ---- who is who


def test_stack_gradients_by_argument_position() -> None:
    left, right = pb.grads(lambda x, y: np.sum(np.stack([x, V, y, W]) * T[0, :1, 0] * np.arange(4.0)[:, None]))([V, W])
    np.testing.assert_allclose(left, np.zeros(4))
    np.testing.assert_allclose(right, np.full(4, 2 * T[0, 0, 0]))


class Other:
    """An array of another library, which handles what it meets itself."""

    def __array_ufunc__(self, ufunc: Any, method: str, *args: Any, **kwargs: Any) -> str:
        return f"other {ufunc.__name__}"

    def __array_function__(self, func: Any, types: Any, args: Any, kwargs: Any) -> str:
        return f"other {func.__name__}"


def test_numpy_functions_defer_to_other_array_function_classes() -> None:
    t = pb.tensor(A)
    assert np.add(t, Other()) == "other add"
    assert np.add(Other(), t) == "other add"
    assert np.hypot(t, Other()) == "other hypot"
    assert np.concatenate([t, Other()]) == "other concatenate"


def test_lists_take_dtype_of_tensor() -> None:
    assert np.multiply([0.1], pb.tensor(np.ones(1))).item() == 0.1
    assert np.multiply([0.1], pb.tensor([1.0])).dtype == np.float32
    assert np.dot([0.1, 0.2], pb.tensor([1.0, 1.0])).dtype == np.float32
    assert np.concatenate([pb.tensor([1.0]), [0.1]]).dtype == np.float32


def test_numpy_scalars_on_the_left() -> None:
    t = pb.tensor([1.0, 2.0])
    assert (np.float32(2) * t).dtype == np.float32
    assert (np.int64(3) + t).dtype == np.float32
    assert (np.float64(2) * t).dtype == np.float64
    assert (np.array([1, 2]) * t).dtype == np.float32
    assert isinstance(np.float64(2) ** t, pb.Tensor)


@pytest.mark.parametrize(
    "f", [np.log2, np.cbrt, np.sinc, lambda x: np.hypot(x, B[0, 0]), lambda x: np.logaddexp(x, 1.0)]
)
def test_numpy_functions_large_arrays(f: Any) -> None:
    x = np.linspace(0.5, 2.0, 100_000)
    small = pb.grad(lambda t: np.sum(f(t)))(x[::9999])
    np.testing.assert_allclose(pb.grad(lambda t: np.sum(f(t)))(x)[::9999], small, rtol=1e-12)


def test_numpy_functions_of_variables() -> None:
    v = pb.variable(np.array([3.0, 4.0]), name="interop")
    value, grads = pb.variable_grads(lambda: np.linalg.norm(v) + np.hypot(v[0], 1.0) * 0 + np.dot([0.0, 1.0], v))
    np.testing.assert_allclose(value.numpy(), 9.0)
    np.testing.assert_allclose(grads["interop"].numpy(), [0.6, 1.8])


def test_astype_method() -> None:
    assert np.astype(pb.tensor(A), np.float32).dtype == np.float32
    np.testing.assert_allclose(pb.grad(lambda x: np.astype(x, np.float32) * 3)(V), np.full(4, 3.0))
    assert pb.grad(lambda x: np.astype(x, np.float32) * 3)(V).dtype == float


def test_derivative_conventions_at_zero() -> None:
    zeros = np.zeros(3)
    for f in (np.linalg.norm, np.std, lambda x: np.sum(np.hypot(x, 0.0)), np.nanstd, lambda x: np.linalg.norm(x, 3)):
        np.testing.assert_array_equal(pb.grad(f)(zeros), zeros)
    np.testing.assert_array_equal(pb.grad(np.max)(np.ones(2)), [0.5, 0.5])


def test_real_if_close_of_complex_numbers() -> None:
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(np.real_if_close(x + 0j) ** 2))(V), 2 * V)
    assert np.real_if_close(pb.tensor(V + 1j)).dtype == np.complex128


def test_nanvar_of_complex_numbers() -> None:
    z = pb.tensor(A + 1j * B)
    np.testing.assert_allclose(np.nanvar(z).numpy(), np.nanvar(A + 1j * B))
    np.testing.assert_allclose(np.nanstd(z, axis=0).numpy(), np.nanstd(A + 1j * B, axis=0))


def test_np_size_of_several_axes_and_matrix_rank_of_vector() -> None:
    assert np.size(pb.tensor(T), (0, 2)) == 8
    assert np.size(pb.tensor(T), 1) == 3
    assert traced(lambda t: np.linalg.matrix_rank(t[0])) == np.linalg.matrix_rank(A[0]) == 1


UFUNCS = {f.__name__: f for f in vars(np).values() if isinstance(f, np.ufunc) and f.nin <= 2 and not f.signature}


@pytest.mark.parametrize("name", sorted(UFUNCS.keys() - {"reciprocal", "frexp", "nextafter", "spacing"}))
def test_ufunc_dtype_of_integers_and_bools(name: str) -> None:
    """A float16, which NumPy gives for bools and bytes, is a float32 here; the reciprocal of integers is a float."""
    f = UFUNCS[name]
    for dtype in (bool, "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8"):
        args = [np.array([0, 1, 1]).astype(dtype)] * f.nin
        with np.errstate(all="ignore"):
            try:
                theirs = parts(f(*args))
            except TypeError:
                continue
            eager, compiled = parts(f(*map(pb.tensor, args))), parts(pb.compile(f, backend="numpy")(*args))
        for a, b, c in zip(theirs, eager, compiled, strict=True):
            wanted = np.float32 if a.dtype == np.float16 else a.dtype
            assert b.dtype == c.dtype == wanted
            np.testing.assert_allclose(b.numpy(), a, rtol=1e-3)
            np.testing.assert_array_equal(b.numpy(), c)


@pytest.mark.parametrize("name", ["argmax", "argmin"])
def test_methods_argmax_and_argmin_match_numpy(name: str) -> None:
    given: tuple[int, ...]
    for given in ((), (0,), (1,), (-1,)):
        np.testing.assert_array_equal(getattr(pb.tensor(A), name)(*given).numpy(), getattr(A, name)(*given))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
def test_numpy_matrix_times_tensor_is_matrix_product() -> None:
    m, a = np.matrix([[1.0, 2.0], [3.0, 4.0]]), np.array([[1.0, 2.0], [5.0, 6.0]])
    for f in (lambda t: m * t, lambda t: t * m, lambda t: m * t[0, 0], lambda t: np.multiply(m, t), lambda t: m + t):
        assert np.allclose(np.asarray(f(pb.tensor(a))), f(a))
        steps = 1e-6 * np.eye(4).reshape(4, 2, 2)
        slopes = [(np.sum(f(a + s)) - np.sum(f(a - s))) / 2e-6 for s in steps]
        assert np.allclose(pb.grad(lambda t, f=f: np.sum(f(t)))(a).ravel(), slopes)

    def in_place(t: Any) -> Any:
        y = t * 1.0
        y *= m  # which is elementwise in NumPy, too
        return np.sum(y)

    assert np.array_equal(pb.grad(in_place)(a), m)
    for f in (lambda t: m * t[0], lambda t: t**m, lambda t: pb.mul(m, t)):
        with pytest.raises(ArgumentError, match=r"np\.asarray\(matrix\)"):
            f(pb.tensor(a))


@pytest.mark.filterwarnings("ignore::PendingDeprecationWarning")
@pytest.mark.parametrize(
    "call",
    [
        lambda f, m: pb.grad(f)(m), lambda f, m: pb.value_and_grad(f, argnums=0)(m), lambda f, m: pb.jacobian(f)(m),
        lambda f, m: pb.jvp(f, [m], [m]), lambda f, m: pb.vjp(f, m), lambda f, m: pb.vmap(f)(m),
        lambda f, m: pb.compile(f)(m), lambda f, m: pb.grad(lambda p: f(p["m"]))({"m": m}),
    ],
)  # fmt: skip
def test_matrix_as_argument_raises(call: Any) -> None:
    with pytest.raises(
        DataError, match=r"got an np\.matrix, of which \* is the product of matrices .*np\.asarray\(x\)"
    ):
        call(lambda x: np.sum(x * x), np.matrix([[1.0, 2.0], [3.0, 4.0]]))


@pytest.mark.parametrize("name", ["cumsum", "cumprod"])
def test_methods_cumsum_and_cumprod_match_numpy(name: str) -> None:
    given: tuple[Any, ...]
    for given in ((), (0,), (1,), (-1, np.float32)):
        want = getattr(A, name)(*given)
        np.testing.assert_allclose(getattr(pb.tensor(A), name)(*given).numpy(), want, rtol=1e-6)


def test_flat_writes_are_differentiated() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y.flat[1] = y.flat[0] * 2.0
        y.put([2], y.flat[0] ** 2)
        return np.sum(y)

    np.testing.assert_allclose(pb.grad(f)(V), [1 + 2 + 2 * V[0], 0, 0, 1])
    np.testing.assert_allclose(
        pb.grad(lambda x: sum(y * i for i, y in enumerate(x.flat)))(A), np.arange(9).reshape(3, 3)
    )


def test_ndarray_methods_work_or_raise_by_name() -> None:
    x = pb.tensor(A)
    names = [name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(x, name)]
    for name in names:
        with pytest.raises(AttributeError, match=rf"no attribute '{name}'\. "):  # and says what to do
            getattr(x, name)


def test_int_item_ndenumerate_and_numpy_testing_accept_traced_tensors() -> None:
    def f(x: Any) -> Any:
        np.testing.assert_allclose(x, [1.0, 3.0, 2.0])
        np.testing.assert_array_less(x, 4.0)
        total = sum(v * (i[0] + 1) for i, v in np.ndenumerate(x))
        return total * x[int(np.argmax(x))] / float(np.sum(x > 0)) + x[np.argmin(x).item()]

    x, v = np.array([1.0, 3.0, 2.0]), np.array([0.5, -1.0, 2.0])
    slopes = np.array([1.0, 2.0, 3.0]) + np.array([1.0, 13.0 / 3, 0.0])
    np.testing.assert_allclose(pb.grad(f)(x), slopes)
    np.testing.assert_allclose(pb.jvp(f, [x], [v])[1], slopes @ v)
    with pytest.raises(AssertionError, match="Not equal to tolerance"):
        pb.grad(lambda x: np.testing.assert_allclose(x, 0.0))(x)


def test_polynomial_series_under_compile_error_suggests_replacement() -> None:
    with pytest.raises(SymbolValueError, match=r"np\.polydiv|np\.polyfit"):
        pb.compile(lambda c: np.polynomial.polynomial.polydiv(c, [1.0, 2.0])[0])(np.ones(3))


@pytest.mark.parametrize(
    ("x", "axis", "slope"),
    [
        ([3.0, 1.0, np.inf], None, [1, 0, 0]),
        ([-np.inf, 1.0, 2.0, np.inf], None, [0, 0.5, 0.5, 0]),
        ([np.inf, np.inf], None, [0.5, 0.5]),
        ([1.0, 1.0, 0.0, 1.0, 1.0], None, [0, 1, 0, 0, 0]),  # of equal ones the second in their order
        ([[4.0, 1.0, 3.0], [2.0, 2.0, 2.0]], 1, [[0, 0, 1], [0, 1, 0]]),
        ([[np.nan, 1.0, 3.0], [2.0, 2.0, 1.0]], 1, [[0, 0, 0], [1, 0, 0]]),
    ],
)
def test_median_of_even_count_is_mean_of_two_middle_elements(x: Any, axis: Any, slope: Any) -> None:
    x = np.array(x)

    def f(x: Any) -> Any:
        return np.median(x, axis=axis)

    for value, g in ((f(pb.tensor(x)), pb.grad(f)(x)), (pb.compile(f)(x), pb.compile(pb.grad(f))(x))):
        np.testing.assert_array_equal(np.asarray(value), np.median(x, axis=axis))
        np.testing.assert_array_equal(g, slope)
    assert np.median(pb.tensor(np.array([1, 2, 4]))).dtype == np.float64
    np.testing.assert_array_equal(np.median(pb.tensor(np.array([40000, 40000], "f2"))).numpy(), 40000)


@pytest.mark.parametrize("axis", [None, 0, -1])
def test_nanmedian_beside_infinities_matches_numpy(axis: Any) -> None:
    x = np.array([[1.0, 2.0, np.inf, np.nan], [np.nan, -np.inf, 3.0, 4.0], [5.0, 1.0, 2.0, 6.0]])
    np.testing.assert_array_equal(np.nanmedian(pb.tensor(x), axis=axis).numpy(), np.nanmedian(x, axis=axis))


COMPLEX = np.array([1 + 2j, 3.0, -1j, 0.5 - 0.25j])


@pytest.mark.parametrize(
    "f",
    [
        lambda z: np.var(z),
        lambda z: np.std(z, ddof=1),
        lambda z: np.nanvar(z),
        lambda z: np.nanstd(z),
        lambda z: np.correlate(z, z[:2]),
        lambda z: np.correlate(z[1:3], z, "full"),
        lambda z: np.correlate(z, np.array([1j, 2.0]), "same"),
    ],
)
def test_variance_and_correlation_of_complex_numbers_match_numpy(f: Any) -> None:
    expected = f(COMPLEX)
    for found in (f(pb.tensor(COMPLEX)), pb.compile(f)(COMPLEX)):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, 1e-13)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
def test_convolve_of_long_arrays(mode: str) -> None:
    x, y = np.random.default_rng(3).normal(size=(2, 300))
    f = lambda x, y: np.sum(np.convolve(x, y, mode) ** 2)
    np.testing.assert_allclose(np.asarray(np.convolve(pb.tensor(x), y[:80], mode)), np.convolve(x, y[:80], mode), 1e-9)
    step = 1e-6 * y[::-1]
    for a, b in ((x, y[:80]), (y[:80], x)):
        towards = step[: len(a)]
        expected = (f(a + towards, b) - f(a - towards, b)) / 2
        np.testing.assert_allclose(np.sum(pb.grad(f, argnums=0)(a, b) * towards), expected, 1e-5)


@pytest.mark.parametrize(
    "call",
    [
        "np.diff(x, axis=2)", "np.rollaxis(x, -3)", "np.trapezoid(x, axis=2)", "np.take(x, [0], 2)",
        "np.delete(x, 0, -3)",
        "np.compress([True], x, 2)", "np.unstack(x, axis=2)", "np.split(x, 3, 2)", "np.add.reduceat(x, [0], 2)",
        "np.maximum.accumulate(x, 2)", "np.put_along_axis(x * 1, np.zeros((2, 3), int), 0.0, 2)", "np.sum(x, 2)",
        "np.moveaxis(x, 2, 0)", "np.pad(x, {2: 1})", "np.linalg.tensorsolve(x, x[0], axes=(2,))",
    ],
)  # fmt: skip
def test_axis_out_of_range_is_an_axis_error(call: str) -> None:
    def f(x: Any) -> Any:
        return eval(call, {"np": np, "x": x})

    with pytest.raises(np.exceptions.AxisError, match=r"axis -?[23] "):
        pb.grad(f)(np.ones((2, 3)))


@pytest.mark.parametrize("call", ["np.repeat(x, 3, axis=0)", "np.cumsum(x, axis=-1)", "np.cumprod(x, axis=0)"])
def test_numpy_functions_of_scalar_accept_axis_zero(call: str) -> None:
    def f(x: Any) -> Any:
        return eval(call, {"np": np, "x": x})

    expected = f(2.0)
    value, d = pb.value_and_grad(f)(2.0)
    np.testing.assert_array_equal(value, expected, strict=True)
    assert d == len(expected)


def test_transpose_of_vector_with_one_axis_as_number() -> None:
    weights = np.arange(3.0)
    np.testing.assert_array_equal(pb.grad(lambda x: np.transpose(x, 0) * weights)(np.ones(3)), weights)
    np.testing.assert_array_equal(pb.grad(lambda x: x.transpose(0) * weights)(np.ones(3)), weights)


@pytest.mark.parametrize(
    "call",
    [
        "np.vander(np.array([11, -12, 13], np.int8))", "np.poly(np.arange(1, 21))",
        "np.linspace(np.array(-124, np.int8), np.array(124, np.int8), 3)",
        "np.histogram(np.array([-124, 0, 124], np.int8), bins=2)[1]", "np.histogram(np.array([]))[1]",
        "np.gradient(np.array([[1.0, 2.0, 6.0], [3.0, 4.0, 5.0]]), axis=(1, 0))[0]",
        "np.nansum(np.array([1j, np.nan]))",
        "np.gradient(np.array([5, 4, 2], np.uint8))", "np.gradient(np.array([-128, 0, 127], np.int8))",
        "np.cov(np.array([1.0, 2.0, 4.0]), rowvar=False)",
        "np.nan_to_num(np.array([1 + 2j, np.nan + 1j, complex(1, np.inf), complex(-np.inf, np.nan)]), posinf=7.0)",
        "np.sum(np.array([1, 2]), initial=0.5)", "np.max(np.array([1, 2], np.uint8), initial=2.5)",
        "np.average(np.array([200, 100], np.uint8), weights=np.array([200, 100], np.uint8))",
        "np.linspace(np.array(-0.5), np.array(-3.7), 3, dtype=int)", "np.logspace(np.array(0.5), 1.7, 3, dtype=int)",
        "np.linalg.eigvalsh(np.array([[200, 100], [100, 250]], np.uint8))",
        "np.linalg.norm(np.array([-128, 100], np.int8), 1)", "np.polyint(np.array([1, 1, 0], bool))",
        "np.polymul(np.array([0.0, 0.0, 1.0, 2.0]), np.array([1.0, 2.0]))",
        "np.convolve(np.array([200, 200], np.uint8), np.array([2, 3], np.uint8))",
        "np.bincount([0, 0, 1], weights=np.array([200, 100, 3], np.uint8))",
        "np.polyder(np.array([200, 200, 200], np.uint8))", "np.einsum('ij->i', np.array([[200, 100]], np.uint8))",
        "np.sort_complex(np.array([3, 1], np.int8))", "np.sort_complex(np.array([2 + 1j, 2 - 1j, 1], np.complex64))",
        "np.sort_complex(np.array([[2, 1], [0, -1]], np.float32))", "np.sort_complex(np.array([True, False]))",
        "np.nanmedian(np.array([[4, 1, 2], [7, 8, 9]]), axis=1, keepdims=True)",
        "np.nanmax(np.array([3, 1], np.uint8))",
        "np.corrcoef(np.array([1.0, 2.0, 4.0]))", "np.trim_zeros(np.array(0.0))",
        "np.lib.scimath.power(np.array([3, -1, 2]), -2)", "np.roots(np.array([0, 7, 0]))", "np.roots(np.array([0, 0]))",
        "np.einsum('ij->i', np.array([[True, True]]))", "np.subtract.outer(np.array([1, 2], np.uint8), 2)",
    ],
)  # fmt: skip
def test_numpy_functions_of_integers_and_complex_numbers_match_numpy(call: str) -> None:
    expected = eval(call, {"np": np, "complex": complex})
    found = eval(call.replace("np.array(", "tensor(").replace("np.arange(1, 21)", "tensor(np.arange(1, 21))"),
                 {"np": np, "complex": complex, "tensor": lambda *a: pb.tensor(np.array(*a))})  # fmt: skip
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, strict=True)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("np.histogram(x, range=(1, 0))", "range must be finite"), ("np.histogram(x, bins=[2.0, 1.0])", "increasing"),
        ("np.histogram(x * np.nan)", "range of the data must be finite"),
        ("np.histogram(x, bins=5.0)", "positive integer"),
        ("np.histogram(x, bins=0)", "positive integer"), ("np.histogram(x, range=(0.0, np.inf))", "must be finite"),
        ("np.pad(x, 1.5)", "pad_width must be integers"), ("np.vsplit(x, 2)", "two axes or more"),
        ("np.put_along_axis(x, np.zeros((4, 1), int), 1.0, 0)", "have 2 axes"),
        ("np.ix_(np.ones((2, 2)) * x[1])", r"np.ix_: expected vectors, got shape \(2, 2\)"),
        ("np.linalg.pinv(np.ones((2, 2)) * x[1], 1e-3, rtol=1e-3)", "rtol and rcond mean the same"),
        ("np.linalg.tensorinv(np.ones((2, 3, 6)) * x[1], 0)", "ind must be a positive integer, got 0"),
        ("np.linalg.tensorinv(np.ones((2, 3, 6)) * x[1], 1)", r"the axes \(2,\) before ind=1 and \(3, 6\) after it"),
        ("np.linalg.tensorsolve(np.ones((2, 3, 6)) * x[1], np.ones(3))", "a must have b.size² elements"),
        ("np.linalg.matrix_rank(np.ones((2, 2, 2)) * x[1], [1e-3, 0.1], rtol=[1e-3, 0.1])", "either tol or rtol"),
        ("np.polyder(x, -1)", "np.polyder: m must not be negative, got -1"),
        ("np.poly(np.ones((2, 2, 2)) * x[1])", r"roots or a square matrix are expected, got shape \(2, 2, 2\)"),
        ("np.polyfit(x, x, [1, 2])", r"deg must be one degree, got \[1, 2\]"),
        ("np.vecdot(x, [1.0, 2.0])", "vectors of 4 and 2 elements have no dot product"),
        ("np.hypot.reduce(x * 1j)", "hypot"),
        ("np.copyto(np.astype(x, int), x)", "float64 cannot be cast to int64 by the rule 'same_kind'"),
        ("np.fill_diagonal(x, 1.0)", r"expected two axes, or more of one length, got shape \(4,\)"),
        ("np.fill_diagonal(np.ones((2, 3, 2)) * x[1], 1.0)", r"or more of one length, got shape \(2, 3, 2\)"),
        ("np.place(x, x > 1, [])", "no values for the elements that the mask chooses"),
    ],
)  # fmt: skip
def test_wrong_argument_values_raise_value_or_type_error(call: str, message: str) -> None:
    with pytest.raises((ValueError, TypeError)):
        eval(call, {"np": np, "x": np.arange(4.0)})
    with pytest.raises((ValueError, TypeError), match=message):
        eval(call, {"np": np, "x": pb.tensor(np.arange(4.0))})


@pytest.mark.parametrize("f", [np.median, np.nanmedian, lambda x: np.quantile(x, 0.5)])
def test_quantiles_of_empty_arrays_raise(f: Any) -> None:
    with pytest.raises(ValueError, match=r"there is nothing along axis None of shape \(0,\)"):
        f(pb.tensor(np.zeros(0)))


def test_nan_to_num_copy_false_of_complex_numbers_and_place_of_empty_values() -> None:
    x = pb.tensor(np.array([np.nan + 1j, 2.0, complex(0.5, -np.inf)]))
    assert np.nan_to_num(x, copy=False, neginf=-3.0) is x
    np.testing.assert_array_equal(x, [1j, 2.0, 0.5 - 3j])
    np.place(x, np.abs(x) > 9.0, [])
    np.testing.assert_array_equal(x, [1j, 2.0, 0.5 - 3j])


def test_nan_to_num_of_integers_and_putmask_of_empty_values() -> None:
    x = pb.tensor(np.array([1, 2]))
    y = np.nan_to_num(x)
    y[0] = 5
    np.putmask(x, x > 0, [])
    np.testing.assert_array_equal(x, [1, 2])


def test_real_dtype_for_complex_numbers_raises() -> None:
    with pytest.raises(ArgumentError, match="imaginary parts"):
        np.var(pb.tensor(np.array([1j, 2.0])), dtype=float)


def test_polynomial_series_of_small_integers_do_not_overflow() -> None:
    x = np.array([200, 200, 200], np.uint8)
    np.testing.assert_array_equal(
        pb.value_and_grad(lambda x: pb.stack(np.polynomial.legendre.legder(x)))(x).value,
        np.polynomial.legendre.legder(x),
    )


def test_cov_of_one_row_whose_columns_are_variables() -> None:
    row = pb.tensor(np.array([[1.0, 2.0, 4.0]]))  # older NumPy takes the row for one variable
    np.testing.assert_array_equal(np.cov(row, ddof=0, rowvar=False), np.zeros((3, 3)))


@pytest.mark.parametrize("run", [lambda f, x: f(x), lambda f, x: pb.compile(f)(x)], ids=["eager", "compiled"])
@pytest.mark.parametrize("f", [np.var, np.std])
def test_variance_without_degrees_of_freedom_matches_numpy(f: Any, run: Any) -> None:
    for x in [np.array([1.0, 2.0]), np.array([1, 2]), np.zeros(0), np.ones(1)]:
        for ddof in (1, 2, 3):
            with np.errstate(all="ignore"), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.testing.assert_array_equal(run(lambda x, n=ddof: f(x, ddof=n), pb.tensor(x)), f(x, ddof=ddof))


def test_nanvar_without_degrees_of_freedom_is_nan() -> None:
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(np.nanvar(pb.tensor(np.array([1.0, np.nan, 3.0])), ddof=2), np.nan)


def test_var_where_ignores_nan_outside_mask() -> None:
    x = np.array([1.0, np.nan, 4.0])
    np.testing.assert_allclose(pb.grad(lambda x: np.var(x, where=~np.isnan(x)))(x), [-1.5, 0, 1.5])
    np.testing.assert_allclose(pb.grad(lambda x: np.nanvar(x, mean=2.0))(x), [-1, 0, 2])


def test_ddof_and_correction_together_raise() -> None:
    with pytest.raises(ArgumentError, match="same parameter"):
        np.var(pb.tensor(np.array([1.0, 2.0])), ddof=1, correction=1)


def test_average_takes_weights_in_the_order_of_axis() -> None:
    a, w = np.arange(24.0).reshape(2, 3, 4), np.arange(8.0).reshape(4, 2)
    np.testing.assert_allclose(np.average(pb.tensor(a), (2, 0), w), np.average(a, (2, 0), w))
    with pytest.raises(ZeroDivisionError, match="sum to 0"):
        np.average(pb.tensor(a), 0, np.array([1.0, -1.0]))


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("widths", [((3, 0), (1, 4)), ((0, 45), (2, 2))])
def test_pad_of_large_array_matches_numpy(mode: str, widths: tuple[tuple[int, int], ...]) -> None:
    x = np.random.default_rng(0).normal(size=(40, 130))
    padded = np.pad(x, widths, mode=mode)  # type: ignore[call-overload]

    def f(x: Any) -> Any:
        return np.pad(x, widths, mode=mode)  # type: ignore[call-overload]

    places = np.pad(np.arange(x.size).reshape(x.shape), widths, mode=mode)  # type: ignore[call-overload]
    want = np.bincount(places.ravel(), padded.ravel()).reshape(x.shape)
    np.testing.assert_array_equal(pb.compile(f)(x), padded)
    gradient_of_x = pb.grad(lambda x: np.sum(f(x) * padded))
    np.testing.assert_allclose(gradient_of_x(x), want, rtol=1e-12)
    np.testing.assert_allclose(pb.compile(gradient_of_x)(x), want, rtol=1e-12)


@pytest.mark.parametrize("x", [[1.0, np.inf, 3.0], [1.0, np.nan, 3.0, np.inf], [4, 1, 2], [True, False]])
@pytest.mark.parametrize("f", [np.nanvar, np.nanstd])
def test_nanvar_beside_infinities_and_of_integers_matches_numpy(f: Any, x: Any) -> None:
    a = np.array(x)
    with np.errstate(invalid="ignore"):
        expected, found, compiled = f(a), f(pb.tensor(a)), pb.compile(f)(a)
    np.testing.assert_allclose(np.asarray(found), expected)
    np.testing.assert_allclose(np.asarray(compiled), expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("method", ["lower", "higher", "nearest", "midpoint", "linear", "hazen"])
@pytest.mark.parametrize("x", [[1.0, 2.0, np.inf], [-np.inf, -np.inf, 3.0], [-np.inf, 1.0, 2.0, np.inf], [4, 1, 2]])
def test_quantiles_beside_infinities_match_numpy(x: Any, method: str) -> None:
    a = np.array(x)

    def take_all(a: Any) -> list[Any]:
        return [f(a, q, method=method) for q in (0.25, 0.5, [0.6, 0.9]) for f in (np.quantile, np.nanquantile)]

    with np.errstate(invalid="ignore"):
        results = zip(take_all(a), take_all(pb.tensor(a)), pb.compile(take_all)(a), strict=True)
    for expected, found, compiled in results:
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(np.asarray(found), expected)
        np.testing.assert_allclose(np.asarray(compiled), expected)


def test_quantile_of_complex_numbers_raises() -> None:
    with pytest.raises(pb.errors.ArgumentError, match="complex numbers have no order"):
        np.quantile(pb.tensor(np.array([1j, 2.0])), 0.5)
    assert np.isnan(np.median(pb.tensor(np.array([1j, np.nan, 2.0]))).numpy())


@pytest.mark.parametrize(
    "ufunc", [np.hypot, np.divide, np.subtract, np.logaddexp, np.logaddexp2, np.copysign, np.fmod, np.add]
)
@pytest.mark.parametrize("values", [np.array([[-1.5, 2.0, -0.5], [4.0, -3.0, 1.0]]), np.array([[5, -2, 3], [1, 7, 2]])])
def test_ufunc_methods_over_short_axes(ufunc: Any, values: Any) -> None:
    for x in (values, values[:, :1], values[:1], values[:, :0], values[:0]):
        for axis in (0, 1):
            calls = [lambda x: ufunc.accumulate(x, axis)]  # noqa: B023
            calls += [lambda x: ufunc.reduceat(x, [0, 0], axis)] if x.shape[axis] else []  # noqa: B023
            calls += [lambda x: ufunc.reduce(x, axis)] if x.shape[axis] or ufunc.identity is not None else []  # noqa: B023
            for f in calls:
                found, wanted = f(pb.tensor(x)), f(x)
                assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
                np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("index", [-1, 3])
def test_reduceat_index_out_of_range(index: int) -> None:
    with pytest.raises(IndexRangeError, match=rf"np.add.reduceat: index {index} is out of range for an axis of"):
        np.add.reduceat(pb.tensor([1.0, 2.0, 3.0]), [0, index])


@pytest.mark.parametrize(("ufunc", "slopes"), [(np.maximum, [1, 1]), (np.minimum, [2, 0])])
def test_running_extremes_keep_nan(ufunc: Any, slopes: list[int]) -> None:
    x = np.array([[1.0, 3.0, np.nan, 2.0, np.nan, 5.0], [np.nan, 1.0, np.inf, -np.inf, 2.0, 4.0]])
    for run in (lambda x: ufunc.accumulate(x), lambda x: ufunc.accumulate(x, axis=1)):
        for found in (run(pb.tensor(x)), pb.jvp(run, [x], [x])[0], pb.compile(run)(x)):
            np.testing.assert_array_equal(found, run(x))
    found = pb.grad(lambda x: np.sum(ufunc.accumulate(x, axis=1)[:, :2]))(x)
    np.testing.assert_array_equal(found[:, :2], [slopes, [2, 0]])


def test_interp_at_points_beside_infinity_and_nan() -> None:
    xp, fp = np.arange(5.0), np.array([1.0, np.nan, 3.0, np.inf, 4.0])
    x = np.array([0.0, 2.0, 4.0, 4.5])
    for run in (lambda x, fp: np.interp(x, xp, fp), lambda x, fp: np.interp(x, xp, fp, right=7.0)):
        for found in (run(pb.tensor(x), fp), pb.compile(run)(x, fp)):
            np.testing.assert_array_equal(found, run(x, fp))
    np.testing.assert_array_equal(pb.grad(lambda fp: np.interp(pb.tensor(x), xp, fp))(fp), [1, 0, 1, 0, 2])


def test_average_returns_sum_of_weights_in_dtype_of_mean() -> None:
    z = A + 1j
    for x, w in ((z, B[0] + 3), (A.astype(np.float32), np.arange(1, 4)), (A, None)):
        mean, total = np.average(x, 1, w, returned=True)
        found = np.average(pb.tensor(x), 1, w, returned=True)
        assert found[1].dtype == (total.dtype if x.dtype != np.float32 else np.float32)
        np.testing.assert_allclose(found[0], mean, rtol=1e-6)
        np.testing.assert_allclose(found[1], total, rtol=1e-6)


@pytest.mark.parametrize("spacing", [(), (0.5,), (np.arange(6) * 0.5,), (np.array([0.0, 1.0, 1.5, 3.0, 3.5, 4.0]),)])
@pytest.mark.parametrize("edge_order", [1, 2])
def test_gradient_of_samples_with_nan_and_infinity(spacing: Any, edge_order: int) -> None:
    x = np.array([[1.0, 2.0, np.nan, 4.0, 6.0, 5.0], [0.0, 2.0, 3.0, np.inf, 1.0, 2.5], [3.0, 1.0, 4.0, 1.0, 5.0, 9.0]])
    f = lambda x: np.gradient(x, *spacing, axis=1, edge_order=edge_order)
    with np.errstate(invalid="ignore"):
        for found in (f(pb.tensor(x)), pb.compile(f)(x)):
            even = len(spacing) == 0 or np.ndim(spacing[0]) == 0 or spacing[0][1] == 0.5
            np.testing.assert_allclose(found[None if even else 2 :], f(x)[None if even else 2 :], rtol=1e-12)
    h = 1e-6 * np.eye(6)
    weights = np.arange(1.0, 7.0) ** 2
    slopes = [np.sum((f(x[2:] + e) - f(x[2:] - e)) * weights) / 2e-6 for e in h]
    np.testing.assert_allclose(pb.grad(lambda x: np.sum(f(x) * weights))(x[2:])[0], slopes, rtol=1e-6)


@pytest.mark.parametrize("matrix", [[[0.0, 0.0], [0.0, 0.0]], [[1.0, np.inf], [2.0, 7.0]], [[1.0, 2.0], [3.0, 4.0]]])
@pytest.mark.parametrize("p", [None, 2, -2])
def test_cond_of_zeros_and_infinities_is_as_in_numpy(matrix: Any, p: Any) -> None:
    x = np.array(matrix)
    with np.errstate(all="ignore"):
        value = np.linalg.cond(x, p)
        for found in (np.linalg.cond(pb.tensor(x), p), pb.compile(lambda x: np.linalg.cond(x, p))(x)):
            np.testing.assert_allclose(found, value)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("length", [4, 8000])
def test_convolve_with_infinite_weights_has_no_nan_at_its_ends(mode: Any, length: int) -> None:
    x, weights = np.arange(1.0, length + 1), np.array([1.0, np.inf, -1.0])
    expected = np.convolve(x, weights, mode)
    assert not np.isnan(expected).any()
    np.testing.assert_array_equal(np.convolve(pb.tensor(x), weights, mode), expected)
    if length < 100:
        np.testing.assert_array_equal(pb.compile(lambda x, w: np.convolve(x, w, mode))(x, weights), expected)


def test_unwrap_of_integers_stays_integer() -> None:
    x = np.array([0, 1, 2, -1, 0, 3, 1])
    expected = np.unwrap(x, period=4)
    for found in (np.unwrap(pb.tensor(x), period=4), pb.compile(lambda x: np.unwrap(x, period=4))(x)):
        np.testing.assert_array_equal(found, expected)
        assert np.asarray(found).dtype == expected.dtype


@pytest.mark.parametrize("ends", [(0, 1), (0.5, 1), (1, 0), (np.float64(0.5), 1)])
@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.int8])
def test_linspace_of_numbers_and_arrays_has_the_dtype_of_numpy(ends: Any, dtype: Any) -> None:
    x = np.array([100, 2], dtype)
    for f in (lambda x: np.linspace(ends[0], x, 3), lambda x: np.linspace(x, ends[1], 3)):
        for found in (f(pb.tensor(x)), pb.compile(f)(x), pb.vmap(f)(x[None])[0]):
            assert np.asarray(found).dtype == f(x).dtype
            np.testing.assert_allclose(found, f(x), rtol=1e-6)


def test_piecewise_of_conditions_with_fewer_axes_raises() -> None:
    with pytest.raises(ShapeError, match=r"conditions must have the shape of x, \(3, 4\)"):
        np.piecewise(pb.zeros((3, 4)), [np.zeros(3, bool)], [1.0])


def test_roots_of_unsigned_integers_and_bools_are_those_of_numbers() -> None:
    for p in (np.array([1, 2, 3], np.uint8), np.array([True, True, False])):
        np.testing.assert_allclose(np.sort_complex(np.roots(pb.tensor(p))), np.sort_complex(np.roots(p)))


@pytest.mark.parametrize("bounds", [(1, None), (None, 1), (False, None), (0.5, None)])
def test_clip_of_bools_by_one_bound_has_the_dtype_of_numpy(bounds: Any) -> None:
    x = np.array([True, False])
    found = np.clip(pb.tensor(x), *bounds)
    assert found.dtype == np.clip(x, *bounds).dtype
    np.testing.assert_array_equal(found, np.clip(x, *bounds))


def test_apply_along_axis_of_empty_vectors() -> None:
    for shape in ((0,), (0, 3)):
        np.testing.assert_array_equal(
            np.apply_along_axis(np.sum, 0, pb.zeros(shape)), np.apply_along_axis(np.sum, 0, np.zeros(shape))
        )
    with pytest.raises(ShapeError, match="there are no vectors along axis 0"):
        np.apply_along_axis(np.sum, 0, pb.zeros((3, 0)))


def test_bincount_of_minlength_has_the_dtype_of_numpy() -> None:
    x = np.array([0, 2, 2])
    for found in (
        pb.compile(lambda x: np.bincount(x, minlength=4))(x),
        pb.vmap(lambda x: np.bincount(x, None, 4))(x[None])[0],
    ):
        np.testing.assert_array_equal(found, [1, 0, 2, 0])
        assert np.asarray(found).dtype == np.bincount(x).dtype


@pytest.mark.parametrize(
    "mean",
    [
        np.nanmean, np.nanstd, lambda x: np.mean(x, where=x > 6), lambda x: np.std(x, where=x > 6),
        lambda x: np.average(x, weights=[1, 2, 3, 4]),
    ],
)  # fmt: skip
def test_means_of_large_integers_do_not_overflow(mean: Any) -> None:
    largest = np.iinfo(np.int64).max
    x = np.array([largest, largest - 1, 5, largest])
    for found in (mean(pb.tensor(x)), pb.compile(mean)(x)):
        np.testing.assert_allclose(found, mean(x))


def test_norm_of_order_zero_counts_nan() -> None:
    x = np.array([1.0, np.nan, 0.0, -np.inf])
    assert np.linalg.norm(pb.tensor(x), 0) == pb.compile(lambda x: np.linalg.norm(x, 0))(x) == np.linalg.norm(x, 0) == 3


def test_unwrap_keeps_an_infinite_first_element() -> None:
    x = np.array([np.inf, 1.0, 9.0])
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(np.unwrap(pb.tensor(x)), np.unwrap(x))


@pytest.mark.parametrize("dtype", [float, np.float32, "float32", np.dtype(int)])
@pytest.mark.parametrize("name", ["sum", "mean", "prod", "max", "any", "std"])
def test_methods_of_reductions_with_a_dtype_as_keepdims_raise(name: str, dtype: Any) -> None:
    for x in (pb.tensor(A), pb.tensor(np.float64(2.0)) * A):
        with pytest.raises(ArgumentError, match="keepdims must be True or False"):
            getattr(x, name)(0, dtype)
    with pytest.raises(ArgumentError, match="keepdims must be True or False"):
        pb.grad(lambda x: np.sum(getattr(x * 1.0, name)(0, dtype)))(A)


@pytest.mark.parametrize("keepdims", [1, 0, np.True_, None])
def test_methods_of_reductions_take_numbers_as_keepdims(keepdims: Any) -> None:
    for name in ("sum", "mean", "max", "argmax", "all"):
        expected = getattr(A, name)(axis=0, keepdims=bool(keepdims))
        np.testing.assert_allclose(getattr(pb.tensor(A), name)(0, keepdims), expected)


def test_argsort_of_a_kind_as_descending_raises() -> None:
    with pytest.raises(ArgumentError, match="descending must be True or False, got 'stable'"):
        pb.tensor(V).argsort(-1, "stable")
    np.testing.assert_array_equal(pb.tensor(V).argsort(-1, None), V.argsort(-1, None))


@pytest.mark.parametrize("keywords", [{"kind": "stable"}, {"stable": True}, {"axis": None}, {"axis": 0, "kind": None}])
def test_argsort_method_takes_the_keywords_of_numpy(keywords: Any) -> None:
    for found in (pb.tensor(A).argsort(**keywords), pb.compile(lambda x: x.argsort(**keywords))(A)):
        np.testing.assert_array_equal(found, A.argsort(**keywords))


def test_take_of_an_unknown_mode_raises() -> None:
    x = pb.tensor(V)
    for call in (lambda mode: np.take(x, [9], mode=mode), lambda mode: x.take([9], 0, mode)):
        with pytest.raises(ArgumentError, match="mode must be 'raise', 'clip' or 'wrap', got 'nearest'"):
            call("nearest")
    with pytest.raises(IndexRangeError):
        x.take([9], 0, None)
