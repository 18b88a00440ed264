"""The arguments of a call of a function with a custom gradient: which parts are inputs, and their names."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import deepcopy
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_array, unwrap_constant
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, Tensor
from pullback.core.variable import get_trace
from pullback.transforms.leaf_names import list_parameter_names, name_all_leaves

HERE = np.float64(0)  # a placeholder for an input that is no longer kept


class AsIs:
    """A part of the arguments that is no input; a random generator is restored to draw the same numbers again."""

    def __init__(self, value: object) -> None:
        self.given = value
        self.before = deepcopy(value) if hasattr(value, "bit_generator") else None

    def value(self, again: bool) -> Any:
        return deepcopy(self.before) if again and self.before is not None else self.given


def mark(arg: object) -> Any:
    """Return an argument whose arrays and floats are inputs; integers, bools and text are passed on as they are."""
    return tree.map_leaves(lambda leaf: leaf if _is_input(leaf) else AsIs(leaf), arg, whole=tree.is_number_list)


def _is_input(leaf: object) -> bool:
    if tree.is_number_list(leaf):
        return any(isinstance(n, float | complex) for n in tree.leaves(leaf))
    return isinstance(leaf, (*ARRAYS, float, complex))


def restore_marked(args: list[Any], again: bool = False) -> Any:
    """Return arguments with the marked ones replaced by what they were."""
    return tree.map_leaves(lambda x: x.value(again) if isinstance(x, AsIs) else x, args)


class Arguments:
    """Positional arguments.  The tensors, arrays and numbers in them are the inputs; anything else passes through."""

    flat: list[Any]
    tree: list[Any]

    def __init__(self, args: Sequence[Any]) -> None:
        if len(args) == 1 and type(args[0]) is Tensor:  # the usual case, without a look at the others
            self.has_no_tree = self.given_tensor = True
            self.flat = self.tree = [unwrap_constant(args[0])]
            return
        self.has_no_tree = all(isinstance(a, ARRAYS) for a in args)  # each argument is one array or tensor
        leaves = args if self.has_no_tree else [*self._leaves(list(args))]
        self.given_tensor = any(isinstance(leaf, Tensor) for leaf in leaves)
        if self.has_no_tree:
            self.flat = self.tree = [unwrap_constant(a) for a in args]
        else:
            floats = [leaf.dtype for leaf in leaves if isinstance(leaf, ARRAYS) and leaf.dtype.kind == "f"]
            self.width = np.result_type(*floats) if floats else np.dtype(float)
            self.tree = [self._unify(a) for a in args]
            self.flat = [x for x in tree.leaves(self.tree) if isinstance(x, ARRAYS)]

    def _leaves(self, x: object) -> Iterator[Any]:
        parts = None if tree.is_tensor_data(x) else tree.get_branches(x)
        if parts is None:
            yield x
        else:
            for branch in parts[0]:
                yield from self._leaves(branch)

    def _unify(self, x: Any) -> Any:
        """Return the tree with every input an array or a traced tensor; Python's numbers do not widen the others."""
        if x is None or isinstance(x, ARRAYS):
            return x if x is None else unwrap_constant(x)
        if tree.is_tensor_data(x):
            bools = x == [] or all(isinstance(n, bool) for n in tree.leaves(x))
            array = as_array(x, None if bools or any(isinstance(n, complex) for n in tree.leaves(x)) else self.width)
            return array[()]
        parts = tree.get_branches(x)
        if parts is not None:
            return parts[1]([self._unify(branch) for branch in parts[0]])
        return unwrap_constant(x) if hasattr(x, "__array__") else x

    def float_width(self) -> np.dtype[Any]:
        """Return the dtype that a Python number has beside these inputs: that of the widest float, else float64."""
        floats = [x.dtype for x in self.flat if x.dtype.kind == "f"]
        return np.result_type(*floats) if floats else np.dtype(float)

    def fill(self, values: Sequence[Any]) -> list[Any]:
        """Return the arguments with these inputs, as tensors."""
        if self.has_no_tree:
            return [as_tensor(v) for v in values]
        source = iter(values)
        filled: list[Any] = tree.map_leaves(
            lambda x: as_tensor(next(source)) if isinstance(x, ARRAYS) else x, self.tree
        )
        return filled

    def release(self) -> None:
        """Drop the inputs and keep the structure: a function that saved no input must not hold their memory."""
        self.flat = [HERE] * len(self.flat)
        self.tree = (
            self.flat
            if self.has_no_tree
            else tree.map_leaves(lambda x: HERE if isinstance(x, ARRAYS) else x, self.tree)
        )

    def names(self, f: Callable[..., Any]) -> list[str]:
        """Return the name of each input in the signature of ``f``."""
        out: list[str] = []
        for name, x in zip(list_parameter_names(f, len(self.tree)), self.tree, strict=True):
            out += [path for path, leaf in name_all_leaves(name, x) if isinstance(leaf, ARRAYS)]
        return out

    def convert_back(self, z: Any) -> Any:
        """Return results as Tensors if any argument was a Tensor, else as arrays."""
        if self.given_tensor or not self.flat:
            return as_tensor(z)
        writes = get_trace() if isinstance(z, Tensor) else None
        return z if writes is None else z.as_result(writes.result_kind)
