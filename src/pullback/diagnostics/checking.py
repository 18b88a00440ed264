"""``check_grads``: compares the derivatives of a function with finite differences, to any order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pullback.core import tree
from pullback.core.calculus import add_terms
from pullback.core.convert import join_array, unwrap_constant
from pullback.core.tensor import Tensor, all_values
from pullback.diagnostics.monitored_run import is_number
from pullback.display.html import render_frame, render_table
from pullback.display.progress import Progress, report_progress
from pullback.errors import ArgumentError, GradientError, GradientMismatchError
from pullback.transforms.compare import (
    Comparison,
    Differences,
    compare_derivatives,
    compute_slope,
    is_movable,
    list_mismatches,
    to_double,
)
from pullback.transforms.forward import jvp
from pullback.transforms.grad import as_leaf, grads
from pullback.transforms.leaf_names import list_parameter_names, name_leaves
from pullback.transforms.leaves import map_whole
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import Array, Value

MODES = {"fwd": "forward", "rev": "reverse"}
ORDERS = {1: "derivative", 2: "second derivative", 3: "third derivative"}
Scalar = Callable[..., Any]  # of all inputs, flat: one real number


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int = 2, modes: Sequence[str] = ("fwd", "rev")
) -> GradientCheck:
    """Compare the derivatives of ``f`` at ``args`` with finite differences, and raise an error if they differ.

    f: a function of floats, arrays or trees of them, that returns the same.
    args: the list of its arguments; integers and bools among them are left as they are.
    order: the highest derivative that is compared.
    modes: ``"rev"`` for gradients, ``"fwd"`` for ``jvp``, or both.

    Everything is computed in double precision.  Each derivative is compared along random directions, and element by
    element: all elements of a small input, some of a big one.  An error of 0.1 % is found, and the message names the
    worst element of each argument.  The returned report lists what was compared.

    >>> import numpy as np, pullback as pb
    >>> pb.check_grads(lambda x, y: np.sin(x) * y, [np.array([1.0, 2.0]), 3.0])
    check_grads(<lambda>): 12 derivatives agree with finite differences; the largest difference is ...
    >>> wrong = pb.custom_grad(lambda x, save: (x * x, lambda dy, saved: dy * 2))
    >>> pb.check_grads(wrong, [3.0], order=1)
    Traceback (most recent call last):
    ...
    pullback.errors.GradientMismatchError: check_grads(...): the derivative by forward mode is not what finite ...
    """
    check_function("check_grads(f, args): f", f)
    if not isinstance(args, list | tuple):
        got = type(args).__name__
        raise ArgumentError(f"check_grads(f, args): args must be a list of the arguments of f, got {got}. Write [x].")
    modes = [modes] if isinstance(modes, str) else list(modes)
    if not modes or not {*modes} <= {*MODES}:
        raise ArgumentError(f"check_grads: modes must be 'fwd' or 'rev', or a list of them, got {modes!r}.")
    if type(order) is not int or order < 1:
        raise ArgumentError(f"check_grads: order must be 1 or more, got {order!r}.")
    total = sum(len(modes) ** k for k in range(1, order + 1))
    with report_progress("check_grads", total) as shown:
        check = Check(f, args, shown)
        check.run(order, modes)
        shown.close({})
    return GradientCheck(check.name, check.rows)


class CheckedDerivative(NamedTuple):
    """A derivative that agrees with finite differences: its order, the argument, and the largest difference."""

    derivative: str
    argument: str
    elements: int  # that were compared one by one
    difference: float  # the largest among them


class GradientCheck:
    """The report of ``check_grads``: ``rows`` has each derivative by each argument; printed, it is a sentence."""

    def __init__(self, name: str, rows: Sequence[CheckedDerivative]) -> None:
        self.name, self.rows = name, list(rows)

    @property
    def difference(self) -> float:
        """The largest difference of an element from finite differences."""
        return max((row.difference for row in self.rows), default=0.0)

    def __repr__(self) -> str:
        return (
            f"check_grads({self.name}): {len(self.rows)} derivatives agree with finite differences; "
            f"the largest difference is {self.difference:.2g}"
        )

    def _repr_html_(self) -> str:
        rows = [(row.derivative, row.argument, row.elements, f"{row.difference:.2g}") for row in self.rows]
        header = ["derivative", "by", "elements", "largest difference"]
        return render_frame(f"check_grads({self.name})", ["all agree"], render_table(header, rows, right=[2, 3]))


class Check:
    """The inputs of one check as flat lists, and the function of them."""

    def __init__(self, f: Callable[..., Any], args: Sequence[Any], progress: Progress) -> None:
        self.f, self.args, self.progress = f, args, progress
        self.name = getattr(f, "__name__", type(f).__name__)
        self.rows: list[CheckedDerivative] = []
        self.xs: list[Any] = []
        names = []
        for parameter, a in zip(list_parameter_names(f, len(args)), args, strict=True):
            for name, x in name_leaves(parameter, a):
                if is_number(x):
                    self.xs.append(to_double(all_values(unwrap_constant(as_leaf(x, "check_grads")))))
                    names.append(name)
        self.on = [is_movable(x) for x in self.xs]
        self.names = [name for name, on in zip(names, self.on, strict=True) if on]
        if not self.names:
            raise GradientError("check_grads: none of the arguments is a float, so there is no derivative to check.")

    def run(self, order: int, modes: Sequence[str]) -> None:
        inputs = [x for x, on in zip(self.xs, self.on, strict=True) if on]
        weights = [to_double(_draw_like(y, k)) for k, y in enumerate(self.results(inputs))]
        if not weights:
            raise GradientError("check_grads: f returned no float, so there is no derivative to check.")

        def scalar(*xs: Value) -> Any:
            return add_terms(
                [np.sum(np.real(np.conjugate(w) * y)) for w, y in zip(weights, self.results(xs), strict=True)]
            )

        self.compare(scalar, inputs, order, 1, modes, "")

    def results(self, xs: Sequence[Any]) -> list[Any]:
        """Return the floats among the results of ``f``, with ``xs`` in place of those inputs that can be moved."""
        moved, fixed = iter(xs), iter(self.xs)

        def fill(leaf: object) -> Any:
            if not is_number(leaf):
                return leaf
            x = next(fixed)
            return next(moved) if is_movable(x) else x

        out = map(join_array, tree.leaves(self.f(*(map_whole(fill, a) for a in self.args))))
        return [y for y in out if is_movable(y) or (isinstance(y, Tensor) and y.dtype.kind in "fc")]

    def compare(self, f: Scalar, xs: list[Any], order: int, now: int, modes: Sequence[str], path: str) -> None:
        """Compare each mode with differences of ``f``, then the derivative itself up to ``order``."""
        us = [to_double(_draw_like(x, 100 + k)) for k, x in enumerate(xs)]
        differences = Differences(lambda xs: _to_float(f(*xs)), xs)
        for mode in modes:
            compared = compare_derivatives(differences, DERIVATIVES[mode](f, xs))
            self.add(f"{ORDERS.get(now, f'derivative of order {now}')} by {MODES[mode]} mode{path}", compared)
            if now < order:
                over = f" over {MODES[mode]}{path}"
                self.compare(FUNCTIONS[mode](f, us), xs, order, now + 1, modes, over)

    def add(self, derivative: str, compared: Sequence[Comparison]) -> None:
        """Keep what was compared; raise an error if something does not agree."""
        if any(c.mismatch for c in compared):
            lines = "".join(f"\n  {line}" for line in list_mismatches(self.names, compared))
            raise GradientMismatchError(
                f"check_grads({self.name}): the {derivative} is not what finite differences say:{lines}"
            )
        self.rows += [
            CheckedDerivative(derivative, name, c.elements, c.difference)
            for name, c in zip(self.names, compared, strict=True)
        ]
        self.progress.step()


def _draw_like(x: Value, seed: int) -> Any:
    """Return numbers of the shape and kind of ``x``: weights of results, directions of inputs."""
    random = np.random.default_rng(seed)
    w = random.standard_normal(x.shape)
    return (w + 1j * random.standard_normal(x.shape) if x.dtype.kind == "c" else w)[()]


def _to_float(y: Array) -> float:
    return float(np.real(all_values(y)))


def _differentiate_reverse(f: Scalar, xs: Sequence[Any]) -> Any:
    ds = [all_values(d) for d in grads(f, unconnected="zero")(list(xs))]
    return lambda i, v: compute_slope(ds[i], v)


def _differentiate_forward(f: Scalar, xs: Sequence[Any]) -> Any:
    def derivative(i: int, v: Array) -> float:
        return _to_float(jvp(f, list(xs), [v if k == i else np.zeros_like(x) for k, x in enumerate(xs)])[1])

    return derivative


def _gradient_along(f: Scalar, us: Sequence[Any]) -> Scalar:
    def along_gradient(*xs: Value) -> Any:
        ds = grads(f, unconnected="zero")(list(xs))
        return add_terms([np.sum(np.real(np.conjugate(u) * d)) for u, d in zip(us, ds, strict=True)])

    return along_gradient


def _tangent_along(f: Scalar, us: Sequence[Any]) -> Scalar:
    return lambda *xs: jvp(f, list(xs), list(us))[1]


DERIVATIVES: dict[str, Any] = {"fwd": _differentiate_forward, "rev": _differentiate_reverse}
FUNCTIONS: dict[str, Any] = {"fwd": _tangent_along, "rev": _gradient_along}
