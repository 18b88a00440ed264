"""An array library that can run a graph: NumPy's functions by NumPy's names, and where a library differs, a method.

``Library`` itself is for libraries that have NumPy's names and in-place writes (CuPy, and NumPy, with which it is
tested); ``jax`` and ``torch`` override what they do in another way.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from pullback.compiler.backends.views import decompose_view
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.structured import Loop, RunBody, Structure, While

Ints = tuple[int, ...]


class Library:
    """The functions of one array library that evaluating a graph needs; ``xp`` is its namespace."""

    name = "numpy"
    xp: Any = np
    special: Any = None  # the namespace of special functions, by SciPy's names
    correlate: Any = None  # convolution of images (batch, *space, channels) with a filter, at given windows
    pull_back: Any = None  # the gradient of a function of an array, for a cotangent

    def __init__(self, device: Any = None) -> None:
        self.device = device

    def __getattr__(self, name: str) -> Any:
        """Return a function or package of the library by NumPy's name; a scalar lowering is given this as ``s``."""
        found = getattr(self.xp, name, None) or getattr(self.special, name, None)
        if found is None:
            raise AttributeError(name)
        return found

    # ---- arrays in and out

    def enter(self, x: Any) -> Any:
        """Return a NumPy array as an array of the library, on its device."""
        return self.xp.asarray(x)

    def leave(self, x: Any) -> Any:
        """Return an array of the library as a NumPy array."""
        return np.asarray(x)

    def is_own(self, x: Any) -> bool:
        """Return whether ``x`` is an array of the library."""
        return isinstance(x, self.xp.ndarray)

    def get_dtype(self, x: Any) -> np.dtype[Any]:
        """Return NumPy's dtype of an array of the library."""
        dtype: np.dtype[Any] = np.dtype(x.dtype)
        return dtype

    def prepare(self, run: Callable[..., Any]) -> Callable[..., Any]:
        """Return the function of arrays compiled, where the library can do that."""
        return run

    def find_own(self, node: Node) -> Callable[..., Any] | None:
        """Return how the library evaluates a node in a way of its own, as a function of arrays; None if it does not."""
        return None

    def call_host(self, evaluate: Callable[..., Any], results: dict[Any, Node]) -> Callable[..., Any]:
        """Return a function of the library's arrays that is evaluated by NumPy on the host.

        ``results`` has the results that are used: by their places, or by None if there is only one.
        """

        def run(*xs: Any) -> Any:
            computed = evaluate(*map(self.leave, xs))
            return (
                self.enter(computed) if None in results else {place: self.enter(computed[place]) for place in results}
            )

        return run

    # ---- functions that differ from library to library

    def floor_divide(self, x: Any, y: Any) -> Any:
        """Return the quotient rounded down, of infinities as the op ``floor_div`` has it."""
        z = self.xp.floor_divide(x, y)
        if self.get_dtype(z).kind != "f":
            return z
        return self.where(self.xp.isinf(x) | self.xp.isinf(y), self.xp.floor(x / y), z)

    def astype(self, x: Any, dtype: Any) -> Any:
        return x.astype(dtype)

    def select(self, condition: Any, x: Any, y: Any) -> Any:
        return self.where(condition, x, y)

    def reduce(self, name: str, x: Any, axes: Ints) -> Any:
        """Reduce by ``sum``, ``prod``, ``max``, ``min``, ``all`` or ``any``, in the dtype of ``x``."""
        how = {"dtype": x.dtype} if name in ("sum", "prod") else {}
        return getattr(self.xp, name)(x, axis=axes, **how)

    def scan(self, name: str, x: Any, axis: int) -> Any:
        """Return the running sum or product, ``cumsum`` or ``cumprod``, in the dtype of ``x``."""
        return getattr(self.xp, name)(x, axis=axis, dtype=x.dtype)

    def full(self, shape: Ints, fill: Any, dtype: Any) -> Any:
        return self.xp.full(shape, fill, dtype)

    def put(self, x: Any, index: Any, y: Any) -> Any:
        """Return ``x``, which nobody else holds, with ``y`` written at an index."""
        x[index] = y
        return x

    def add_at(self, x: Any, index: Any, y: Any) -> Any:
        """Return ``x``, which nobody else holds, with ``y`` added at an index, whose positions may repeat."""
        self.xp.add.at(x, index, y)
        return x

    def take(self, x: Any, rows: Any) -> Any:
        return x[rows]

    def loop(self, step: Callable[[Any, Any], Any], first: Any, xs: Sequence[Any]) -> Any:
        """Return the results of ``z = step(z, x)`` along axis 0 of arrays, ``first`` before them, as one array."""
        found = [first]
        for i in range(xs[0].shape[0]):
            found.append(step(found[-1], [x[i] for x in xs]))
        return self.stack(found)

    def run_structure(self, data: Structure, run: RunBody, values: Sequence[Any], runs_all: bool) -> list[Any]:
        """Return the results of a loop or branches; ``run`` runs a body, by the library alone if it ``runs_all``."""
        if isinstance(data, While):
            constants, carry = values[: data.constants], list(values[data.constants :])
            while self.leave(run(data.condition, [*constants, *carry])[0]):
                carry = list(run(data.body, [*constants, *carry]))
            return carry
        if isinstance(data, Loop):
            constants, carry = values[: data.constants], list(values[data.constants : data.xs])
            rows: list[Any] = [None] * data.length
            for t in range(data.length)[:: -1 if data.reverse else 1]:
                results = run(data.body, [*constants, *carry, *(x[t] for x in values[data.xs :])])
                carry, rows[t] = list(results[: data.carry]), results[data.carry :]
            return [*carry, *(self.stack(list(column)) for column in zip(*rows, strict=True))]
        number = min(max(int(self.leave(values[0])), 0), len(data.bodies) - 1)
        return list(run(data.bodies[number], values[1:]))

    def sort_positions(self, x: Any, axis: int, descending: bool) -> Any:
        """Return the positions that sort ``x``; of equal elements the first comes first."""
        if not descending:
            return self.xp.argsort(x, axis, kind="stable")
        last = x.shape[axis] - 1
        return self.flip(last - self.xp.argsort(self.flip(x, (axis,)), axis, kind="stable"), (axis,))

    # ---- views

    def view(self, x: Any, shape: Ints, offset: int, strides: Ints) -> Any:
        """Return the elements of ``x``, taken in C order, at the places that the strides name."""
        size = prod(x.shape)
        if not prod(shape):
            return self.full(shape, 0, self.get_dtype(x))
        flat = self.xp.reshape(x, (size,))
        steps = decompose_view(size, shape, offset, strides)
        if steps is None:
            return self.take(flat, self.enter(locate_elements(size, shape, offset, strides)))
        if steps.length > size:
            flat = self.concatenate([flat, self.full((steps.length - size,), 0, self.get_dtype(x))])
        grid = self.xp.reshape(flat[: steps.length], steps.grid)[steps.slices]
        if steps.flipped:
            grid = self.flip(grid, steps.flipped)
        kept = self.xp.reshape(self.permute(grid, steps.order), steps.kept)
        return kept if steps.kept == shape else self.broadcast_to(kept, shape)

    def permute(self, x: Any, order: Ints) -> Any:
        return self.xp.transpose(x, order)


def locate_elements(size: int, shape: Ints, offset: int, strides: Ints) -> Any:
    """Return the place of each element of a view in the flat array.

    >>> locate_elements(4, (3, 2), 0, (1, 1)).tolist()
    [[0, 1], [1, 2], [2, 3]]
    """
    places = np.arange(size)
    return as_strided(places[offset:], shape, [s * places.itemsize for s in strides]).copy()
