"""How an op acts on axes.  This determines its output shape, shape errors, batching rule and samples for the tests.

elementwise1, elementwise2        z has the broadcast shape of the inputs
broadcast("(m,k),(k,n)->(m,n)")   the same, over trailing core axes (a NumPy gufunc signature)
reduces()                         some axes disappear, named by ``axis`` and ``keepdims``
scans()                           the shape stays, ``axis`` names the axis that is scanned
keeps_shape({"decimals": 1})      the shape of the only input stays, whatever the parameters are
moves(shape, samples, batch)      anything else: functions give the shape, the samples and the batching rule

A sample is ``(inputs, params)``; an input is a shape, to be filled with numbers of the op's domain, or an array.

Batching rules are in ``numerics/batching.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.errors import ShapeError
from pullback.numerics.axis_arguments import format_shapes, resolve_axes, resolve_axis, resolve_reduced_axes
from pullback.numerics.batching import batch_leading_axes, batch_one_by_one

if TYPE_CHECKING:
    from pullback.core.op import Op

Shape = tuple[int, ...]
Sample = tuple[tuple[Any, ...], dict[str, Any]]


together = lru_cache(1024)(np.broadcast_shapes)


class Acts:
    """How an op acts on axes, the base of the classes here: output shape, shape errors, batching rule and samples."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        """Return the shape of the result, or raise a ShapeError that names the op and the shapes."""
        raise NotImplementedError

    def samples(self) -> list[Sample]:
        """Return calls that the generated tests make."""
        raise NotImplementedError

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        """Return the op of many examples at once, along axis 0; ``on`` says which of the arguments have examples."""
        return batch_one_by_one(op, args, on, params)


class broadcast(Acts):
    """Broadcasting over leading axes, with core axes named by a gufunc signature.

    ``samples``, a list or a function that returns it, is for ops that do not take floats of any shape.
    """

    def __init__(
        self, signature: str, samples: Sequence[Sample] | Callable[[], Sequence[Sample]] | None = None
    ) -> None:
        self._samples = samples
        left, right = signature.replace(" ", "").split("->")
        self.signature = signature
        groups = left[1:-1].split("),(")
        self.core = [tuple(d for d in group.split(",") if d) for group in groups]
        self.out = tuple(d for d in right.strip("()").split(",") if d)
        self.loose = not self.out and not any(self.core)  # no core axes

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        if self.loose and len(shapes) == len(self.core) and shapes.count(shapes[0]) == len(shapes):
            return shapes[0]
        size: dict[str, int] = {}
        loops = []
        for shape, core in zip(shapes, self.core, strict=True):
            split = len(shape) - len(core)
            if split < 0:
                raise ShapeError(
                    f"{name}: got shapes {format_shapes(shapes)}; expected {self.signature}, "
                    "with axes before these if wanted."
                )
            for dim, n in zip(core, shape[split:], strict=True):
                if size.setdefault(dim, n) != n:
                    raise ShapeError(
                        f"{name}: got shapes {format_shapes(shapes)}; axis '{dim}' of {self.signature} "
                        f"is {size[dim]} in one and {n} in another. Transpose or reshape one of them."
                    )
            loops.append(shape[:split])
        try:
            return together(*loops) + tuple([size[d] for d in self.out])
        except ValueError:
            raise ShapeError(
                f"{name}: shapes {format_shapes(shapes)} do not broadcast. "
                "Axes are compared from the last; each pair must be equal or one of them 1."
            ) from None

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        loops = [np.ndim(a) - b - len(core) for a, b, core in zip(args, on, self.core, strict=True)]
        most = max(loops)  # the examples stay leftmost: axes of length 1 come after them, where others have more
        lined = [
            np.reshape(a, (a.shape[0], *(1,) * (most - n), *a.shape[1:])) if b and n < most else a
            for a, b, n in zip(args, on, loops, strict=True)
        ]
        return op.call(lined, params)

    def samples(self) -> list[Sample]:
        if self._samples is not None:
            return list(self._samples() if callable(self._samples) else self._samples)
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
    """Axes are removed (or shrink to 1), as ``axis`` and ``keepdims`` say.  ``empty``: empty axes can be reduced."""

    def __init__(self, empty: bool = True) -> None:
        self.empty = empty

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        (shape,) = shapes
        gone = resolve_reduced_axes(len(shape), params["axis"], name)
        if params.get("keepdims"):
            return tuple(1 if i in gone else n for i, n in enumerate(shape))
        return tuple(n for i, n in enumerate(shape) if i not in gone)

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        (x,) = args
        rank = np.ndim(x) - 1
        gone = resolve_reduced_axes(rank, params["axis"], op.name)
        if len(gone) == rank:  # all axes of each example: reduce one flat axis, which works for rank 0 too
            z = op.call(
                [np.reshape(x, (x.shape[0], prod(x.shape[1:])))], {**params, "axis": 1, **self.drop_keepdims(params)}
            )
            return np.reshape(z, (x.shape[0], *(1,) * rank)) if params.get("keepdims") else z
        return op.call([x], {**params, "axis": gone[0] + 1 if len(gone) == 1 else tuple(a + 1 for a in gone)})

    @staticmethod
    def drop_keepdims(params: Mapping[str, Any]) -> dict[str, Any]:
        """Return the parameter that drops reduced axes, for ops that have it."""
        return {"keepdims": False} if "keepdims" in params else {}

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
    """The shape stays; ``axis`` names the axis that is scanned."""

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        resolve_axes(len(shapes[0]), params["axis"], name)
        return shapes[0]

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        (x,) = args
        return op.call([x], {**params, "axis": resolve_axis(np.ndim(x) - 1, params["axis"], op.name) + 1})

    def samples(self) -> list[Sample]:
        return [(((4,),), {}), (((2, 3, 4),), {"axis": 1}), (((2, 3),), {"axis": -1}), (((0, 2),), {"axis": 0})]


class moves(Acts):
    """Ops with a function for the output shape: ``shape(*shapes, **params)``.

    ``samples`` may be a function that returns them, so that importing does not compute what only tests use.
    ``batch(op, args, on, params)`` is the batching rule (see ``Acts.batch``); without it examples run one by one.
    """

    def __init__(
        self, shape: Callable[..., Any], samples: Sequence[Sample] | Callable[[], Sequence[Sample]], batch: Any = None
    ) -> None:
        self._shape, self._samples, self._batch = shape, samples, batch or batch_one_by_one

    def batch(self, op: Op, args: Sequence[Any], on: Sequence[bool], params: Mapping[str, Any]) -> Any:
        return self._batch(op, args, on, params)

    def shape(self, name: str, shapes: Sequence[Shape], params: Mapping[str, Any]) -> Shape:
        return tuple(self._shape(*shapes, **params))

    def samples(self) -> list[Sample]:
        return list(self._samples() if callable(self._samples) else self._samples)


def keeps_shape(*parameter_sets: dict[str, Any]) -> moves:
    """Return the action of an op of one input whose result has its shape.

    ``parameter_sets`` are parameters of the op that the samples are made for.
    """
    shapes: list[Shape] = [(), (3,), (0, 2), (2, 3)]
    return moves(
        lambda s, **params: s, [((s,), params) for params in parameter_sets for s in shapes], batch_leading_axes
    )


elementwise1 = broadcast("()->()")
elementwise2 = broadcast("(),()->()")
elementwise3 = broadcast("(),(),()->()")
