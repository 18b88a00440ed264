"""``vmap``: a function of one example becomes a function of many.

A ``Batched`` tensor holds many examples and has the shape of one; an op on it is performed for all of them at once, by
the batching rule that follows from the op's ``acts``.  ``vmap`` is a level like any other transform, so gradients can
be taken inside and outside it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from sys import _getframe
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core import tree
from pullback.core.callers import HOW_TO_PICK, MEANS, explain_refusal, reveal
from pullback.core.conditions import RefusedConditions
from pullback.core.convert import unwrap_constant
from pullback.core.hooks import observe_calls
from pullback.core.interpreter import level_of, new_level
from pullback.core.tape import CAUGHT, constant
from pullback.core.tensor import (
    ARRAYS,
    PLAIN,
    Tensor,
    Wrapped,
    call_unfollowed,
    iterate_levels,
    stop_following,
    strip,
)
from pullback.core.writes import INPUT, freeze
from pullback.errors import ArgumentError, BatchedValueError, ShapeError
from pullback.transforms.custom_op import BodyRun, WrappingOp
from pullback.transforms.grad import as_leaf, convert_back, describe, kind_of
from pullback.transforms.leaf_names import name_all_leaves
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.transforms.custom_op import CustomOp
    from pullback.typing import Axis, Lengths, Operand, TensorLike, Tree, Value


class Batched(Wrapped):
    """Many examples that look like one; they are along axis 0 of ``array``."""

    __slots__ = ()
    differentiates = False

    array: Any = vars(Tensor)["value"]  # in the slots of any tensor: so a GradientTape can make it a handle of its own
    number: int = vars(Tensor)["y"]

    def __init__(self, number: int, array: Value) -> None:
        self.number, self.array = number, array

    def twin(self) -> Batched:
        return Batched(self.number, self.array)

    @property
    def shape(self) -> tuple[int, ...]:
        shape: tuple[int, ...] = self.array.shape[1:]
        return shape

    @property
    def dtype(self) -> np.dtype[Any]:
        if self.array.ndim == 1 and id(_getframe(1).f_code) in MEANS:
            raise AttributeError("dtype")
        dtype: np.dtype[Any] = self.array.dtype
        return dtype

    @property
    def level(self) -> int:
        return self.number

    has_derivative = False  # whether what it holds is differentiated

    def beneath(self) -> Any:
        return self._concrete("a plain value")

    def stop_following(self) -> Any:
        beneath = stop_following(self.array)
        return self if beneath is self.array else Batched(self.number, unwrap_constant(beneath))

    def strip(self) -> Any:
        beneath = strip(self.array)
        return self if beneath is self.array else Batched(self.number, beneath)

    def all_values(self) -> Any:
        return self.array

    def _concrete(self, subject: str) -> Any:
        picking = HOW_TO_PICK if self.dtype.kind in "iu" else ""
        purpose, cure = explain_refusal(self.dtype)
        raise BatchedValueError(
            f"{subject}{'' if ' ' in subject else '()'} of a value that is different for each of {self.array.shape[0]} "
            f"examples of vmap{purpose}. {cure and cure + '. '}{picking}"
            "Python can only take one way for all of them: use where(condition, x, y) to "
            "choose for each example, or give what decides to the function with in_axes=None."
        )

    def _condition(self) -> Any:
        return self._concrete("bool")

    def __index__(self) -> int:
        return int(self._concrete("an index"))

    def __repr__(self) -> str:
        return f"<{self.array.shape[0]} examples of shape {self.shape}: {self.array!r}>"

    __str__ = __repr__

    # ---- what the engine calls

    def mine(self, args: Sequence[Any]) -> tuple[list[Any], list[bool]]:
        """Return the arguments one level down, and for each whether it has examples."""
        on = [isinstance(a, Batched) and a.number == self.number for a in args]
        return [a.array if b else _unwrap(a) for a, b in zip(args, on, strict=True)], on

    def interpret(self, op: Any, args: tuple[Any, ...], params: dict[str, Any]) -> Any:
        if not op.custom and op.elementwise and not params:
            z = self._interpret_elementwise(op, args)
            if z is not None:
                return Batched(self.number, z)
        arrays, on = self.mine(args)
        if op.custom and op.is_structured:
            zs, batched = op.batch(arrays, on, len(self.array))
            return tuple(Batched(self.number, unwrap_constant(z)) if b else z for z, b in zip(zs, batched, strict=True))
        if op.custom:
            return self.around(BatchedOp(op, self.number, on, len(self.array)).apply(arrays))
        if len(arrays) > 1:
            arrays = op.promote(arrays)
        try:
            return self.around(op.acts.batch(op, arrays, on, params))
        except CAUGHT as error:
            raise self._translate_error(op, error, arrays, on, params) from None

    def _translate_error(
        self, op: Op, error: Exception, arrays: list[Any], on: Sequence[bool], params: dict[str, Any]
    ) -> Exception:
        """Return the op's error for the shapes of one example, or if there is none this one with a note on ``vmap``."""
        alone = [
            np.broadcast_to(np.zeros((), a.dtype), a.shape[1:]) if b else a for a, b in zip(arrays, on, strict=True)
        ]
        try:
            op.acts.shape(op.name, [np.shape(a) for a in alone], params)
        except CAUGHT as own:
            return op.translate_error(op, own, alone, params)
        note = f" (Under vmap: the {len(self.array)} examples are one of the axes.)"
        return ShapeError(f"{error}{note}") if isinstance(error, ShapeError) else error

    def _interpret_elementwise(self, op: Op, args: tuple[Any, ...]) -> Any:
        """Return the result of an elementwise op on floats of one dtype; None if the general code must perform it."""
        dtype = self.array.dtype
        if dtype.kind != "f":
            return None
        arrays: list[Any] = []
        ranks, shared = set[int](), 0  # how many axes there are: of examples, and at most of what is the same for all
        for a in map(_unwrap, args):
            t = type(a)
            is_batched = t is Batched and a.number == self.number
            if is_batched:
                a = a.array
                t = type(a)
            if t is ndarray and a.dtype is dtype:
                if is_batched:
                    ranks.add(a.ndim)
                else:
                    shared = max(shared, a.ndim)
            elif is_batched or (t is not float and t is not int and t is not dtype.type):
                return None
            arrays.append(a)
        arrays = _align_ranks(arrays, ranks, shared)
        try:
            return op.run(*arrays) if arrays else None
        except CAUGHT:
            return None  # the general code raises the error

    def around(self, z: TensorLike) -> Any:
        """Return a result as a ``Batched`` tensor; for an op with several results, each of them."""
        return tuple(map(self.around, z)) if type(z) is tuple else Batched(self.number, unwrap_constant(z))

    def call_unfollowed(self, f: Callable[..., Any], args: Sequence[Any]) -> Any:
        arrays, on = self.mine(args)
        n = len(self.array)
        if not n:  # no examples: run one of zeros, to know the shapes and dtypes of results
            arrays = [np.zeros((1, *a.shape[1:]), a.dtype) if b else a for a, b in zip(arrays, on, strict=True)]
        rows = [
            call_unfollowed(f, *(a[i] if b else a for a, b in zip(arrays, on, strict=True))) for i in range(max(n, 1))
        ]
        return Batched(self.number, np.stack(rows)[:n])


def _align_ranks(arrays: list[Any], ranks: set[int], shared: int) -> list[Any]:
    """Return arrays that broadcast example by example; an empty list if they do not."""
    most = max(ranks)
    if shared >= most or not ranks <= {1, most} or (len(ranks) > 1 and shared):
        return []
    if len(ranks) == 1:
        return arrays
    # One number for each example.
    return [a.reshape(-1, *(1,) * (most - 1)) if type(a) is ndarray and a.ndim == 1 else a for a in arrays]


def _unwrap(x: Operand) -> Any:
    """Return the array in a tensor that no transform follows, anything else as it is."""
    return x.value if type(x) is Tensor and not x.level and x.meta.raw else x


PLAIN.add(Batched)


def is_batched(x: object) -> bool:
    """Return whether a value is different for each example of some ``vmap``."""
    return any(isinstance(t, Batched) for t in iterate_levels(x))


class BatchedOp(WrappingOp):
    """A function with a custom gradient for all examples at once, as a custom op one level down."""

    def __init__(self, op: CustomOp, number: int, on: Sequence[bool], size: int) -> None:
        super().__init__(op.name)
        self.op, self.number, self.on, self.size = op, number, on, size
        self.follows, self.states_jvp = op.follows, op.states_jvp

    def run(self, values: Sequence[Any]) -> BodyRun:
        inner = self.op.run_reduced([Batched(self.number, v) if b else v for v, b in zip(values, self.on, strict=True)])
        zs = tuple(take_out(z, 0, self.number, self.size) for z in inner.values)
        on = [*self.on, *(False for _ in inner.variables)]

        def back(dys: list[Any]) -> list[Any]:
            ds = inner.back([Batched(self.number, dy) for dy in dys])
            return [None if d is None else self._pull(d, b) for d, b in zip(ds, on, strict=True)]

        return BodyRun(zs, back, inner.variables)

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        """Run the op's own jvp, which need not be the transpose of its backward rule."""
        xs = [Batched(self.number, unwrap_constant(v)) if b else v for v, b in zip(primals, self.on, strict=True)]
        ts = [
            None if t is None else self._tangent(unwrap_constant(t), b) for t, b in zip(tangents, self.on, strict=True)
        ]
        moved = self.op.jvp([Batched(self.number, unwrap_constant(y)) for y in z], xs, ts, params)
        self.op.check_tangents(moved, self.number + 1)
        return [None if t is None else take_out(t, 0, self.number, self.size) for t in moved]

    def _tangent(self, t: Value, on: bool) -> Any:
        """Return a tangent with a value for each example, even if it is of a transform that was begun later.

        A tangent that is the same for all examples is returned as it is.
        """
        if not on and level_of(t) < self.number:
            return t
        return Batched(self.number, t if on else np.broadcast_to(t, (self.size, *t.shape)))

    def _pull(self, d: Tensor, on: bool) -> Any:
        """Return the cotangent of an input: one per example, or their sum for an input shared by all."""
        if level_of(d) > self.number:
            raise self.make_lost_error((d,), self.number + 1)
        whole = take_out(d, 0, self.number, self.size)
        return whole if on else np.sum(whole, axis=0)


class Mapped:
    """The function that ``vmap`` returns: it keeps the name and docstring of ``f``, and pickles when ``f`` does."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]

    def __init__(self, f: Callable[..., Any], in_axes: Any, out_axes: Any) -> None:
        check_function("vmap(f): f", f)
        _check_axes("in_axes", in_axes)
        _check_axes("out_axes", out_axes)
        self.__name__ = self.__qualname__ = type(f).__name__
        update_wrapper(self, f)
        self.in_axes, self.out_axes = in_axes, out_axes  # after update_wrapper, which copies those of another vmap

    def __dir__(self) -> list[str]:
        return ["in_axes", "out_axes"]

    def __reduce__(self) -> Any:
        return Mapped, (self.__wrapped__, self.in_axes, self.out_axes)

    def __repr__(self) -> str:
        return f"<vmap of {self.__name__}>"

    @observe_calls("function")
    def __call__(self, *args: Value, **kwargs: object) -> Any:
        number = new_level()
        given: list[_Given] = []
        ins = [
            _collect_given(n, arg, axes, given)
            for n, (arg, axes) in enumerate(zip(args, self._axes_of(args), strict=True))
        ]
        named = {k: _collect_given(k, v, 0, given) for k, v in kwargs.items()}
        size = _size(given)
        kind = max([kind_of(g.x) for g in given], default=0)

        def enter(leaf: Any) -> Any:
            return leaf.enter(number) if isinstance(leaf, _Given) else leaf

        wide = any(g.axis is not None and g.value.dtype == np.float64 for g in given)

        def place(v: Any, axis: int) -> Any:
            v = np.float64(v) if wide and type(v) is float else v  # a number is as wide as the examples
            return convert_back(_copy_if_given(take_out(v, axis, number, size), given), kind)

        try:
            with RefusedConditions():
                y = self.__wrapped__(*tree.map_leaves(enter, ins), **tree.map_leaves(enter, named))
        except Exception as error:
            reveal(error)
            raise
        return _map_axes("out_axes", self.out_axes, y, place)

    def _axes_of(self, args: tuple[Any, ...]) -> Sequence[Any]:
        if not isinstance(self.in_axes, tuple | list):
            return [self.in_axes] * len(args)
        if len(self.in_axes) != len(args):
            raise ArgumentError(
                f"vmap: in_axes has {len(self.in_axes)} entries, {self.in_axes!r}, but the function was given "
                f"{len(args)} arguments; give one for each, or one number for all."
            )
        return self.in_axes


class _Given:
    """An array among the arguments, and the axis of its examples."""

    def __init__(self, x: Value, axis: int | None, where: int | str, whole: Tree) -> None:
        self.x, self.axis, self.where, self.whole = x, axis, where, whole
        self.value: Any = x if axis is None else unwrap_constant(as_leaf(x, "vmap"))
        rank = np.ndim(self.value) if axis is not None else 0
        if axis is not None and not -rank <= axis < rank:
            if isinstance(where, str):
                raise ShapeError(
                    f"vmap: keyword arguments have their examples along axis 0, but {self.label} has shape "
                    f"{self.value.shape}. Give what is the same for all examples by position, with None in in_axes."
                )
            raise ShapeError(
                f"vmap: in_axes names axis {axis} of {self.label}, which has shape {self.value.shape}; "
                "None means that it is the same for all examples."
            )

    @property
    def label(self) -> str:
        """The expression by which the user would select it: the argument, and the path in it if that is a tree."""
        inside = next((path for path, leaf in name_all_leaves("", self.whole) if leaf is self.x), "")
        name = f"argument {self.where + 1}" if isinstance(self.where, int) else f"argument '{self.where}'"
        return f"{inside} of {name}" if inside else name

    @property
    def size(self) -> int:
        return int(self.value.shape[self.axis])

    def enter(self, number: int) -> Any:
        if self.axis is None:  # a plain array could not be indexed by a Batched tensor
            if type(self.x) is np.ndarray and self.x.dtype.kind in "fiubc":
                return freeze(constant(self.x), INPUT)
            return self.x
        return freeze(Batched(number, np.moveaxis(self.value, self.axis, 0) if self.axis else self.value), INPUT)


def _collect_given(where: Any, arg: Any, axes: int | None, given: list[_Given]) -> Any:
    """Return an argument with each array in it noted in ``given``."""

    def note(x: Any, axis: Any) -> _Given:
        given.append(_Given(x, axis, where, arg))
        return given[-1]

    return _map_axes("in_axes", axes, arg, note)


def _copy_if_given(z: Any, given: list[_Given]) -> Any:
    """Return a result as an array of its own, not one that shares memory with an argument or is repeated."""
    if type(z) is not np.ndarray or (z.flags.owndata and not any(z is g.value for g in given)):
        return z
    is_shared = not z.flags.writeable or any(
        isinstance(g.value, np.ndarray) and np.may_share_memory(z, g.value) for g in given
    )
    return z.copy() if is_shared else z


def _size(given: list[_Given]) -> int:
    """Return the number of examples, on which all arguments agree."""
    batched = [g for g in given if g.axis is not None]
    if not batched:
        raise ArgumentError("vmap: no argument has examples: every one of in_axes is None, or there are no arrays.")
    first = batched[0]
    for g in batched:
        if g.size != first.size:
            raise ShapeError(
                f"vmap: {first.label} has {first.size} examples along axis {first.axis} (shape {first.value.shape}), "
                f"but {g.label} has {g.size} along axis {g.axis} (shape {g.value.shape}); the numbers must be equal. "
                "in_axes says which axis, or None for what is the same for all."
            )
    return first.size


def _check_axes(name: str, axes: Axis) -> None:
    for axis in tree.leaves(axes):
        if isinstance(axis, bool) or not hasattr(axis, "__index__") or np.ndim(axis):
            hint = " The result for the examples in x is vmap(f)(x)." if hasattr(axis, "shape") else ""
            raise ArgumentError(f"vmap: {name} must be integers or None, or a tree of them, got {axis!r}.{hint}")


def _map_axes(name: str, axes: Axis, value: Any, f: Callable[[Any, Any], Any]) -> Any:
    """Return ``value`` with ``f(leaf, axis)`` for each array; ``axes`` is a number or a tree of its structure."""
    if axes is None or hasattr(axes, "__index__"):
        return tree.map_leaves(lambda leaf: f(leaf, axes) if _is_data(leaf) else leaf, value, whole=tree.is_number_list)
    theirs, parts = tree.get_branches(axes), None if value is None else tree.get_branches(value)
    same = theirs is not None and parts is not None and len(theirs[0]) == len(parts[0])
    if not same or (isinstance(axes, dict) and ({*axes} != {*value} if isinstance(value, dict) else True)):
        raise ArgumentError(
            f"vmap: {name}={axes!r} does not fit what it is for, {describe(value)}; their trees differ."
        )
    order = [axes[k] for k in value] if isinstance(axes, dict) else theirs[0]  # type: ignore[index]
    return parts[1]([_map_axes(name, a, v, f) for a, v in zip(order, parts[0], strict=True)])  # type: ignore[index]


def _is_data(leaf: Value) -> bool:
    return isinstance(leaf, (*ARRAYS, list, int, float, complex)) or hasattr(leaf, "__array__")


def take_out(v: Any, axis: int, number: int, size: int) -> Any:
    """Return a result with its examples along ``axis``; one that did not depend on them is repeated."""
    v = unwrap_constant(v, "vmap")
    is_own = isinstance(v, Batched) and v.number == number
    if axis is None:
        if is_own:
            raise ArgumentError(
                "vmap: out_axes is None for a result that is different for each example; give the axis to put them."
            )
        return v
    z = v.array if is_own else np.broadcast_to(v, (size, *v.shape))
    if not is_own and isinstance(z, np.ndarray):
        z = z.copy()
    rank = np.ndim(z)
    if not -rank <= axis < rank:
        raise ShapeError(f"vmap: out_axes names axis {axis} of a result of rank {rank}; use {-rank} to {rank - 1}.")
    return np.moveaxis(z, 0, axis) if axis else z


def vmap(f: Callable[..., Any], in_axes: Lengths = 0, out_axes: int = 0) -> Mapped:
    """Return a function that applies ``f``, written for one example, to many examples at once.

    ``in_axes``: along which axis of each argument the examples lie: a number for all of them, or a list with one
    for each; ``None`` is for what is the same for all examples.  An argument that is a tree may have a tree of them.
    ``out_axes``: along which axes they lie in the results.  Keyword arguments have their examples along axis 0.

    >>> import numpy as np, pullback as pb
    >>> pb.vmap(np.dot)(np.ones((3, 2)), np.arange(6.0).reshape(3, 2))
    array([1., 5., 9.])

    Gradients for each example:

    >>> w = np.ones(2)
    >>> slope = lambda x: pb.grad(lambda w: pb.sum(w * x) ** 2)(w)
    >>> pb.vmap(slope)(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([[ 6., 12.],
           [42., 56.]])
    """
    return Mapped(f, in_axes, out_axes)
