"""How an op acts on axes.  From that one fact: output shape, shape errors, sample shapes for the tests.

elementwise1, elementwise2        z has the broadcast shape of the inputs
broadcast("(m,k),(k,n)->(m,n)")   the same, over trailing core axes (a NumPy gufunc signature)
reduces()                         some axes disappear, named by ``axis`` and ``keepdims``
scans()                           the shape stays, ``axis`` names the one that is run along
moves(shape, samples)             anything else: the op says it itself

A sample is ``(inputs, params)``; an input is a shape, to be filled with numbers of the op's domain, or an array.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from pullback.errors import ArgumentError, ShapeError

Shape = tuple[int, ...]
Sample = tuple[tuple[Any, ...], dict[str, Any]]


class Acts:
    """What the engine asks of each kind."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        """The shape of the result; a ShapeError that names op and shapes where there is none."""
        raise NotImplementedError

    def samples(self) -> list[Sample]:
        """Calls that the generated tests make."""
        raise NotImplementedError


class broadcast(Acts):
    """Broadcasting over leading axes, with core axes named by a gufunc signature."""

    def __init__(self, signature: str) -> None:
        left, right = signature.replace(" ", "").split("->")
        self.signature = signature
        groups = left[1:-1].split("),(")
        self.core = [tuple(d for d in group.split(",") if d) for group in groups]
        self.out = tuple(d for d in right.strip("()").split(",") if d)

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        size: dict[str, int] = {}
        loops = []
        for shape, core in zip(shapes, self.core, strict=True):
            split = len(shape) - len(core)
            if split < 0:
                raise ShapeError(
                    f"{name}: got shapes {listed(shapes)}; expected {self.signature}, with axes before these if wanted."
                )
            for dim, n in zip(core, shape[split:], strict=True):
                if size.setdefault(dim, n) != n:
                    raise ShapeError(
                        f"{name}: got shapes {listed(shapes)}; axis '{dim}' of {self.signature} "
                        f"is {size[dim]} in one and {n} in another. Transpose or reshape one of them."
                    )
            loops.append(shape[:split])
        try:
            return np.broadcast_shapes(*loops) + tuple(size[d] for d in self.out)
        except ValueError:
            raise ShapeError(
                f"{name}: shapes {listed(shapes)} do not broadcast. "
                "Axes are compared from the last; each pair must be equal or one of them 1."
            ) from None

    def samples(self) -> list[Sample]:
        size = dict(zip(sorted({d for c in self.core for d in c}), (2, 3, 4, 5), strict=False))
        cores = [tuple(size[d] for d in c) for c in self.core]
        n = len(cores)
        loops: list[list[Shape]] = [[()] * n, [(3,)] * n, [(0, 2)] * n]
        if n > 1:
            loops += [
                [(2, 1), (3,)] + [()] * (n - 2),
                [(), (2, 3)] + [(3,)] * (n - 2),
                [(1, 3), (2, 1)] + [()] * (n - 2),
            ]
        return [(tuple(p + c for p, c in zip(loop, cores, strict=True)), {}) for loop in loops]


class reduces(Acts):
    """Axes vanish (or shrink to 1), as named by ``axis`` and ``keepdims``.  ``empty``: of nothing there is a result."""

    def __init__(self, empty: bool = True) -> None:
        self.empty = empty

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        (shape,) = shapes
        gone = over(len(shape), params["axis"], name)
        if params.get("keepdims"):
            return tuple(1 if i in gone else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in gone)

    def samples(self) -> list[Sample]:
        more: list[Sample] = [(((0, 3),), {"axis": 0})] if self.empty else []
        return [
            *(
                (((2, 3, 4),), {"axis": axis, "keepdims": keep})
                for axis in (None, 0, -1, (0, 2))
                for keep in (False, True)
            ),
            (((),), {}),
            (((5,),), {}),
            (((0, 3),), {"axis": 1}),
            *more,
        ]


class scans(Acts):
    """The shape stays; ``axis`` names the axis that is run along."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        over(len(shapes[0]), params["axis"], name)
        return shapes[0]

    def samples(self) -> list[Sample]:
        return [(((4,),), {}), (((2, 3, 4),), {"axis": 1}), (((2, 3),), {"axis": -1}), (((0, 2),), {"axis": 0})]


class moves(Acts):
    """The op itself says the output shape: ``shape(*shapes, **params)``.

    ``samples`` may be a function that gives them, so that importing does not wait for what only tests ask for.
    """

    def __init__(self, shape: Callable[..., Any], samples: Sequence[Sample] | Callable[[], Sequence[Sample]]) -> None:
        self._shape, self._samples = shape, samples

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        return tuple(self._shape(*shapes, **params))

    def samples(self) -> list[Sample]:
        return list(self._samples() if callable(self._samples) else self._samples)


def listed(shapes: Sequence[Shape]) -> str:
    """
    >>> listed([(2,), (3,)])
    '(2,) and (3,)'
    """
    return " and ".join(map(str, shapes))


def over(ndim: int, axis: Any, name: str = "axis") -> tuple[int, ...]:
    """The axes meant by ``axis``, as sorted non-negative integers.

    >>> over(3, None), over(3, -1), over(3, (2, 0))
    ((0, 1, 2), (2,), (0, 2))
    """
    if axis is None:
        return tuple(range(ndim))
    axes = (axis,) if not isinstance(axis, tuple | list) else axis
    for a in axes:
        if isinstance(a, bool) or not hasattr(a, "__index__"):
            raise ArgumentError(f"{name}: axis must be an integer or a tuple of them, got {axis!r}.")
        if not -ndim <= a < ndim:
            raise ShapeError(f"{name}: axis {a} is out of range for rank {ndim}; use {-ndim} to {ndim - 1}.")
    found = tuple(sorted(int(a) % ndim for a in axes))
    if len({*found}) != len(found):
        raise ShapeError(f"{name}: an axis is named twice in {axis!r}.")
    return found


def one_axis(ndim: int, axis: Any, name: str) -> int:
    """The one axis that is meant, counted from the front.

    >>> one_axis(3, -1, "concat")
    2
    """
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ArgumentError(f"{name}: axis must be one integer, got {axis!r}.")
    return over(ndim, axis, name)[0]


elementwise1 = broadcast("()->()")
elementwise2 = broadcast("(),()->()")
elementwise3 = broadcast("(),(),()->()")
