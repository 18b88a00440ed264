"""Inputs and outputs of transformed functions: trees as lists of leaves, each with a name for messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree
from pullback.core.convert import float_of, join_array, unwrap_constant
from pullback.core.tensor import ARRAYS, Tensor
from pullback.errors import ArgumentError, DataError, GradientError, ShapeError
from pullback.transforms.argnums import BoundCall
from pullback.transforms.grad import as_leaf, convert_back, copy_if_shared, describe, gradient_dtype, kind_of
from pullback.transforms.leaf_names import is_leaf, list_keys, name_input

if TYPE_CHECKING:
    from pullback.typing import Operand, Value


class Inputs:
    """The arguments of one call: their leaves, and the structure and kinds in which results are returned."""

    def __init__(self, face: str, args: Sequence[Any], call: BoundCall) -> None:
        self.face, self.args, self.names = face, args, [f"input {i + 1}" for i in range(len(args))]
        self.given: list[Any] = [leaf for a in args for leaf in list_whole_leaves(a)]
        self.values: list[Any] = []
        try:
            for leaf in self.given:
                self.values.append(unwrap_constant(as_leaf(leaf, face)))
        except DataError as error:
            raise name_input(error, face, call.names, args, len(self.values)) from None
        self.kind = max(map(kind_of, self.given), default=0)
        if not self.values:
            cure = f"write {face}(f, x)" if face in ("vjp", "linearize") else "give a tensor, an array or a number"
            raise GradientError(f"{face}: there is no input to differentiate by; {cure}.")
        for leaf, v in zip(self.given, self.values, strict=True):
            if v.dtype.kind not in "fiubc":
                raise GradientError(
                    f"{face}: an input of dtype {v.dtype} has no derivative, only numbers have; got {leaf!r}."
                )

    def gradient_dtypes(self, results: Sequence[Any]) -> list[Any]:
        """Return the dtype of the gradient of several results by each leaf of the arguments."""
        return [
            v.dtype if v.dtype.kind in "fc" else gradient_dtype(leaf if isinstance(leaf, Tensor) else v, results)
            for leaf, v in zip(self.given, self.values, strict=True)
        ]

    def fill(self, new: Sequence[Any]) -> list[Any]:
        """Return the arguments with their leaves replaced."""
        source = iter(new)
        return [map_whole(lambda _: next(source), a) for a in self.args]

    def convert_back(self, ds: Sequence[Any]) -> tuple[Any, ...]:
        """Return derivatives in the structure of the arguments, each of the kind of its own input."""
        form = [convert_back(d, kind_of(leaf)) for d, leaf in zip(ds, self.given, strict=True)]
        return tuple(self.fill(form))

    def directions(self, values: Sequence[Any], role: str) -> list[Any]:
        """Return one tangent for each leaf of the arguments, checked to have its shape."""
        if len(values) != len(self.args):
            raise ArgumentError(
                f"{self.face}: {len(self.args)} inputs but {len(values)} {role}s; each input needs its own."
            )
        found: list[Any] = []
        for name, x, t in zip(self.names, self.args, values, strict=True):
            found += [check_alike(self.face, role, *row) for row in pair_leaves(self.face, role, name, x, t)]
        return found


class Outputs:
    """The result of a function: its leaves, and the structure and kinds in which others like it are returned."""

    def __init__(self, face: str, y: object, kind: int) -> None:
        self.face, self.kind, self.structure = face, kind, y
        self.given = [join_array(leaf) for leaf in list_whole_leaves(y)]
        for leaf in self.given:
            if not isinstance(leaf, (*ARRAYS, int, float, complex, list)):
                raise GradientError(
                    f"{face}: f must return numbers, as a tensor or as a tree of tensors, got {describe(leaf)}."
                )
        if not self.given:
            raise GradientError(f"{face}: f must return something to differentiate, got {describe(y)}.")

    def convert_back(self, zs: Sequence[Any]) -> Any:
        return self.place([convert_back(z, self.kind) for z in zs])

    def place(self, parts: Sequence[Any]) -> Any:
        """Return the structure of the result with these leaves, unchanged."""
        source = iter(parts)
        return map_whole(lambda _: next(source), self.structure)

    def release(self, values: Sequence[Any]) -> None:
        """Keep the structure, shapes and dtypes, but not the tensors and what they were computed from."""
        plain = [v if isinstance(v, Tensor) else np.asarray(v) for v in values]  # a list of NumPy's floats would be one
        self.structure, self.given = self.place(plain), list(values)


def list_whole_leaves(x: object) -> list[Any]:
    """Return the leaves of a tree; a list of numbers is one leaf."""
    found: list[Any] = []
    map_whole(found.append, x)
    return found


def map_whole(f: Callable[..., Any], x: object) -> Any:
    return None if x is None else tree.map_numbers(f, x)


def pair_leaves(face: str, role: str, name: str, x: Any, other: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield each leaf of a tree with its name and its counterpart in another tree of the same structure."""
    if x is None:
        return
    if is_leaf(x) or tree.is_number_list(x) or tree.get_branches(x) is None:
        if other is None or (not is_leaf(other) and tree.get_branches(other) is not None):
            raise ArgumentError(
                f"{face}: {name} is one tensor, but its {role} is {describe(other)}; they must have the same structure."
            )
        yield name, x, other
        return
    rows = None if other is None or isinstance(other, ARRAYS) else pair_branches(x, other)
    if rows is None:
        is_built, other_is = _describe_structure(x), _describe_structure(other)
        raise ArgumentError(
            f"{face}: {name} is {is_built}, but its {role} is {other_is}; they must have the same structure."
        )
    for key, (a, b) in zip(list_keys(x, len(rows)), rows, strict=True):
        if not tree.is_text(a):
            yield from pair_leaves(face, role, name + key, a, b)


def pair_branches(x: Any, other: Any) -> list[tuple[Any, Any]] | None:
    """Return the branches of two trees in pairs, by keys in dicts; None if their structures differ."""
    own, theirs = tree.get_branches(x), tree.get_branches(other)
    if own is None or theirs is None or len(theirs[0]) != len(own[0]):
        return None
    if isinstance(x, Mapping) and isinstance(other, Mapping):
        return [(x[k], other[k]) for k in x] if {*x} == {*other} else None
    return None if isinstance(x, Mapping) or isinstance(other, Mapping) else [*zip(own[0], theirs[0], strict=True)]


def _describe_structure(x: object) -> str:
    if isinstance(x, Mapping):
        return f"a dict with the keys {', '.join(map(repr, x))}"
    return f"a {type(x).__name__} of {len(x)}" if isinstance(x, tuple | list) else describe(x)


def check_alike(face: str, role: str, name: str, x: Operand, t: Operand) -> Any:
    """Return a tangent or cotangent, checked to have the shape of its value, in the dtype of derivatives."""
    x, t = unwrap_constant(as_leaf(x, face)), unwrap_constant(as_leaf(t, face))
    if x.shape != t.shape:
        raise ShapeError(
            f"{face}: {name} has shape {x.shape}, but its {role} has shape {t.shape}; they must be the same."
        )
    wanted = float_of(x.dtype, t.dtype)
    if t.dtype.kind not in ("fiubc" if wanted.kind == "c" else "fiub"):
        raise GradientError(f"{face}: the {role} of {name} must be real numbers as it is itself, got dtype {t.dtype}.")
    return t if t.dtype == wanted else t.astype(wanted)


def finish_derivative(d: Value | None, shape: tuple[int, ...], dtype: np.dtype[Any], taken: Sequence[Any] = ()) -> Any:
    """Return a derivative as an array of its own, in this shape and dtype; zeros for None."""
    if d is None:
        return np.zeros(shape, dtype)[()]
    d = unwrap_constant(d)
    if d.dtype != dtype:
        return d.astype(dtype)
    return copy_if_shared(d, taken)
