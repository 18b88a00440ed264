"""Comparison of derivatives with finite differences, in float64: along random directions, and by element."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from pullback.typing import Array, Value

MAX_ELEMENTS = 64  # elements of an input that are compared one by one
MAX_SEARCHED = 1024  # the same if a random direction differs, to find the wrong element
DIRECTIONS = 2
TOLERANCE = 1e-4  # relative; an error of 0.1 % is ten times that
# Step lengths, and number of steps to each side: long ones for smooth functions, short ones near a kink.
STEPS = ((1e-3, 2), (1e-5, 2), (1e-6, 1))
FIRST_STEP = (1e-4, 1)  # takes two values only, and mostly suffices; the others are tried where it does not

Function = Callable[[Sequence[Any]], float]  # of all inputs
Derivative = Callable[[int, Any], float]  # of the function, when one input moves in a direction


class Comparison(NamedTuple):
    """The result of comparing the derivative by one input with finite differences."""

    mismatch: str  # what is wrong, at the worst element; "" if nothing is
    elements: int  # number of elements that were compared one by one
    difference: float  # the largest difference among them


class Differences:
    """Central differences of a function at a point, cached for all derivatives that are compared with them."""

    def __init__(self, f: Function, xs: Sequence[Any]) -> None:
        self.f, self.xs = f, xs
        with np.errstate(all="ignore"):
            self.value = abs(float(f(xs)))
        self.known: dict[Hashable, float] = {}

    def move_along(self, i: int, v: Array, name: Hashable) -> Callable[[float, int], float]:
        """Return the differences along a direction of one input, as a function of the step; ``name``: a cache key."""

        def compute(h: float, count: int) -> float:
            key = i, name, h, count
            if key not in self.known:
                self.known[key] = _difference(self.f, self.xs, i, v, h, count)
            return self.known[key]

        return compute


def compare_derivatives(differences: Differences, derivative: Derivative) -> list[Comparison]:
    """Compare the derivative by each input that can be moved with finite differences.

    >>> differences = Differences(lambda xs: xs[0] ** 2, [np.float64(3.0)])
    >>> [right] = compare_derivatives(differences, lambda i, v: 6 * v)
    >>> right.mismatch, right.elements, right.difference < 1e-8
    ('', 1, True)
    >>> compare_derivatives(differences, lambda i, v: 3 * v)[0].mismatch
    'is off by 3 (analytic 3, numeric 6, ratio 0.5)'
    """
    with np.errstate(all="ignore"):  # a step may leave the domain
        return [_compare_input(differences, i, derivative) for i, x in enumerate(differences.xs) if is_movable(x)]


def is_movable(x: Value) -> bool:
    """Return whether an input can be moved a little: integers and bools cannot."""
    return getattr(x, "dtype", np.dtype(object)).kind in "fc"


def to_double(x: Array) -> Any:
    """Return an input in double precision; what is not a float stays.

    >>> to_double(np.float32(0.5)).dtype
    dtype('float64')
    """
    kind = {"f": np.float64, "c": np.complex128}.get(x.dtype.kind)
    return x if kind is None else np.array(x, kind)[()]


def _compare_input(differences: Differences, i: int, derivative: Derivative) -> Comparison:
    x, value = np.asarray(differences.xs[i]), differences.value
    random = np.random.default_rng(i)
    scale = np.maximum(1.0, np.abs(x))
    if not np.isfinite(value):
        return Comparison(f"cannot be compared: the value of the function is {value:g} there", 0, np.nan)
    good = True
    for number in range(DIRECTIONS if x.size else 0):
        v = scale * _normal(random, x)
        found = float(derivative(i, v[()]))
        good = good and _compare_direction(differences.move_along(i, v, ("random", number)), found, value)[1]
    if good and x.size > MAX_ELEMENTS:
        places = random.choice(x.size, MAX_ELEMENTS, replace=False)
    elif x.size <= MAX_SEARCHED:
        places = np.arange(x.size)
    else:
        places = random.choice(x.size, MAX_SEARCHED, replace=False)
    worst, mismatch, largest = 0.0, "", 0.0
    for at in places:
        for unit in (1.0, 1j) if x.dtype.kind == "c" else (1.0,):
            v = np.zeros(x.shape, x.dtype)
            v.flat[at] = unit
            found = float(derivative(i, v[()]))
            times = scale.flat[at]
            difference = differences.move_along(i, v * times, (int(at), unit))
            expected, agrees = _compare_direction(difference, found * times, value)
            expected /= times
            off = abs(found - expected)
            largest = max(largest, float(off))
            if not agrees and not off <= worst:
                worst, mismatch = off, _describe_element(x.shape, int(at), unit, found, expected)
    if not mismatch and not good and x.size > MAX_SEARCHED:
        mismatch = "is off along a random direction, by elements that were not looked at one by one"
    return Comparison(mismatch, len(places), largest)


def _normal(random: np.random.Generator, x: Array) -> Any:
    v = random.standard_normal(x.shape)
    return v + 1j * random.standard_normal(x.shape) if x.dtype.kind == "c" else v


def _compare_direction(difference: Callable[[float, int], float], found: float, value: float) -> tuple[float, bool]:
    """Return the derivative by central differences, with the step that comes nearest to ``found``, and if it agrees.

    Differences that are small beside the value of the function may be rounding errors: they count as agreement,
    unless two step lengths give the same.
    """
    expected = difference(*FIRST_STEP)
    if abs(found - expected) <= TOLERANCE * abs(expected):
        return expected, True
    nearest = before = np.nan
    for h, count in STEPS:
        expected = difference(h, count)
        if np.isnan(nearest) or abs(expected - found) < abs(nearest - found):
            nearest = expected
        if abs(found - nearest) <= TOLERANCE * abs(nearest):
            return nearest, True
        if abs(found - nearest) <= 1e-9 * value + 1e-11 and not np.isnan(before):
            return nearest, not abs(expected - before) <= TOLERANCE * abs(expected) or not expected
        before = expected
    return nearest, False


def _difference(f: Function, xs: Sequence[Any], i: int, v: Array, h: float, count: int) -> float:
    def move(by: float) -> float:
        return float(f([*xs[:i], (xs[i] + by * v)[()], *xs[i + 1 :]]))

    near = (move(h) - move(-h)) / (2 * h)
    return near if count == 1 else (4 * near - (move(2 * h) - move(-2 * h)) / (4 * h)) / 3


def _describe_element(shape: tuple[int, ...], at: int, unit: complex, found: float, expected: float) -> str:
    place = f" at {[int(k) for k in np.unravel_index(at, shape)]}" if shape else ""
    part = " (imaginary part)" if unit == 1j else ""
    ratio = f", ratio {found / expected:.6g}" if expected else ""
    return f"is off by {abs(found - expected):.3g}{place}{part} (analytic {found:.6g}, numeric {expected:.6g}{ratio})"


def compute_slope(g: Any, v: Array) -> float:
    """Return how fast a function with the gradient ``g`` grows in the direction ``v``.

    >>> compute_slope(np.array([1.0, 2.0]), np.array([10.0, 1.0]))
    12.0
    """
    return float(np.sum(np.real(np.conjugate(g) * v)))


def list_mismatches(names: Sequence[str], compared: Sequence[Comparison]) -> Iterator[str]:
    """Return what is wrong with the derivative by each input, with its name."""
    return (f"'{name}' {c.mismatch or 'agrees'}" for name, c in zip(names, compared, strict=True))
