"""A function with a gradient of its own, as the engine sees it: an op made on the spot.

Its body is run on the *values* of its inputs, one level down.  So at first order it sees untraced tensors and costs
nothing extra; at second order it sees the tensors of the outer tape, and what it kept has its path to the inputs.  For
the same reason a traced tensor that it captured shows at once: a result has a higher level than the inputs have.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np
from numpy import ndarray

from pullback.core import tree
from pullback.core.bundle import place_all
from pullback.core.calculus import total
from pullback.core.convert import as_array, as_value
from pullback.core.interpreter import level_of
from pullback.core.memory import node_of
from pullback.core.tape import RAW, TAPED, Tape, constant
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, highest_watcher, watched_below
from pullback.errors import CustomGradientError
from pullback.transforms.grad import grads

__all__: list[str] = []

ARRAYS = (Tensor, *RAW)
HERE = np.float64(0)  # stands in the place of an input that is no longer held


class Run(NamedTuple):
    """One run of a body: its results, the variables it read, and the way back to all of them."""

    values: tuple[Any, ...]
    back: Callable[[list[Any]], list[Any]]
    variables: Sequence[Variable] = ()


def bare(x: Any) -> Any:
    """An array or NumPy scalar, or a tensor that some transform follows."""
    while isinstance(x, Tensor):
        x = x.read()
        if x.level:
            return x
        x = x.value
    return as_value(x)


class Like(NamedTuple):
    """Shape and dtype of an array that need not be kept."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]


def like(x: Any) -> Like:
    return Like(x.shape, x.dtype)


def as_tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else constant(x)


def float_of(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype of a gradient: that of its input, float32 for integers and bools."""
    return dtype if dtype.kind in "fc" else np.dtype(np.float32)


class CustomOp:
    """What the engine asks of any op, and ``run``, which is what makes one."""

    custom = True
    follows = False  # whether the variables that the body reads are operands as well

    def __init__(self, name: str) -> None:
        self.name = name

    def run(self, values: Sequence[Any]) -> Run:
        """Perform the body on the values, and say what it captured."""
        raise NotImplementedError

    def lost(self, ds: Sequence[Any], level: int) -> Exception:
        """The error for gradients that are of the level being differentiated, or a higher one."""
        raise NotImplementedError

    def apply(self, args: Sequence[Any]) -> tuple[Any, ...]:
        """The results, each an array or a tensor of the highest level there is."""
        args = [bare(a) for a in args]
        top = max(args, key=level_of, default=None)
        watcher = highest_watcher() if self.follows else None
        if watcher is not None and watcher.level > level_of(top):
            return self.record(watcher.tape, args, args, {})
        if not level_of(top):
            return self.run(args).values
        results: tuple[Any, ...] = top.interpret(self, tuple(args), {})  # type: ignore[union-attr]
        return results

    def call(self, args: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        return self.apply(args)

    def below(self, values: Sequence[Any]) -> int:
        """The highest level that results of these values may have."""
        watcher = highest_watcher() if self.follows else None
        return max([*map(level_of, values), watcher.level if watcher is not None else 0])

    def record(self, tape: Tape, args: Sequence[Any], values: Sequence[Any], params: dict[str, Any]) -> tuple[Any, ...]:
        """Perform the op one level down, and put its node on the tape."""
        values = [bare(v) for v in values]
        if not tape.level:
            return self.apply(values)
        with watched_below(tape.level) if self.follows else nullcontext():
            zs, back, variables = self.traced(values)
        operands = [*args, *(v.read() for v in variables)]
        nodes = [node_of(a) if type(a) in TAPED and a.meta.tape is tape else None for a in operands]
        if all(n is None for n in nodes):  # only a variable could have brought it here, and none was read
            return zs
        level, likes = tape.level, [like(z) for z in zs]

        def checked_back(gs: list[Any]) -> list[Any]:
            dys = [np.zeros(z.shape, float_of(z.dtype))[()] if g is None else g for g, z in zip(gs, likes, strict=True)]
            with watched_below(level):
                ds = back(dys)
            if any(level_of(d) >= level for d in ds):
                raise self.lost(ds, level)
            if any(d is None and n is not None for d, n in zip(ds, nodes, strict=True)):
                tape.cut(self.name)
            return ds

        return place_all(tape, zs, nodes, checked_back)

    def traced(self, values: Sequence[Any]) -> Run:
        """A run whose results come from the op itself, so that lower levels see its gradient and not its body's."""
        run = self.run(values)
        return run._replace(values=self.apply(values)) if self.below(values) else run

    def jvp(self, z: Any, primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]) -> Sequence[Any]:
        """The way back is linear in the cotangents: its transpose, applied to the tangents, is the way forward."""
        back = self.run([bare(p) for p in primals]).back

        def paired(*dys: Any) -> Any:
            terms = [
                np.sum(d * t) for d, t in zip(back(list(dys)), tangents, strict=False) if not (d is None or t is None)
            ]
            return total(terms) if terms else constant(0.0)

        moved: list[Any] = grads(paired, unconnected="zero")([np.ones(y.shape, float_of(y.dtype)) for y in z])
        highest = max([self.below(primals), *map(level_of, tangents)])
        if any(level_of(m) > highest for m in moved):
            raise self.lost(moved, highest + 1)
        return moved

    def __repr__(self) -> str:
        return f"<op {self.name}>"


def gradient_for(d: Any, x: Any, face: str, name: Callable[[], str], line: Callable[[], str]) -> Any:
    """A gradient that the user returned for input ``x``, checked, as the engine takes it."""
    if not isinstance(d, ARRAYS):
        got = "None" if d is None else type(d).__name__
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must be a tensor of shape {x.shape}, got {got} ({line()})."
        )
    d = bare(d)
    if d.shape != x.shape:
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must have its shape {x.shape}, got shape {d.shape}; "
            f"nothing is broadcast here ({line()})."
        )
    wanted = float_of(x.dtype)
    if d.dtype.kind not in ("fc" if wanted.kind == "c" else "f"):
        raise CustomGradientError(
            f"{face}: the gradient of '{name()}' must be a float like {wanted}, got {d.dtype}. Cast it ({line()})."
        )
    if d.dtype != wanted:
        return d.astype(wanted) if isinstance(d, RAW) else np.astype(d, wanted)
    return d.view() if type(d) is ndarray else d  # a view: it may be the user's own array


class Arguments:
    """Positional arguments.  The tensors, arrays and numbers in them are the inputs; anything else passes through."""

    def __init__(self, args: Sequence[Any]) -> None:
        self.plain = all(isinstance(a, ARRAYS) for a in args)  # no tree to look into
        leaves = args if self.plain else [*self._leaves(list(args))]
        self.given_tensor = any(isinstance(leaf, Tensor) for leaf in leaves)
        if self.plain:
            self.flat = self.tree = [bare(a) for a in args]
        else:
            floats = [leaf.dtype for leaf in leaves if isinstance(leaf, ARRAYS) and leaf.dtype.kind == "f"]
            self.width = np.result_type(*floats) if floats else np.dtype(float)
            self.tree = [self._settled(a) for a in args]
            self.flat = [x for x in tree.leaves(self.tree) if isinstance(x, ARRAYS)]

    def _leaves(self, x: Any) -> Iterator[Any]:
        parts = None if tree.is_tensor_data(x) else tree.branches(x)
        if parts is None:
            yield x
        else:
            for branch in parts[0]:
                yield from self._leaves(branch)

    def _settled(self, x: Any) -> Any:
        """The same tree with every input an array or a traced tensor; Python's numbers do not widen the others."""
        if x is None or isinstance(x, ARRAYS):
            return x if x is None else bare(x)
        if tree.is_tensor_data(x):
            bools = x == [] or all(isinstance(n, bool) for n in tree.leaves(x))
            made = as_array(x, None if bools or any(isinstance(n, complex) for n in tree.leaves(x)) else self.width)
            return made[()]
        parts = tree.branches(x)
        if parts is not None:
            return parts[1]([self._settled(branch) for branch in parts[0]])
        return bare(x) if hasattr(x, "__array__") else x

    def filled(self, values: Sequence[Any]) -> list[Any]:
        """The arguments with these inputs, as tensors."""
        if self.plain:
            return [as_tensor(v) for v in values]
        source = iter(values)
        filled: list[Any] = tree.mapped(lambda x: as_tensor(next(source)) if isinstance(x, ARRAYS) else x, self.tree)
        return filled

    def release(self) -> None:
        """Keep the structure only: big inputs are not kept by a function that saved nothing of them."""
        self.tree = tree.mapped(lambda x: HERE if isinstance(x, ARRAYS) else x, self.tree)
        self.flat = [HERE] * len(self.flat)

    def names(self, f: Any) -> list[str]:
        """The name of each input in the signature of ``f``."""
        out: list[str] = []
        for name, x in zip(_parameters(f, len(self.tree)), self.tree, strict=True):
            out += [path for path, leaf in paths(name, x) if isinstance(leaf, ARRAYS)]
        return out

    def given_back(self, z: Any) -> Any:
        """Arrays for arrays; Tensors as soon as a Tensor was given."""
        return as_tensor(z) if self.given_tensor or not self.flat else z


def paths(name: str, x: Any) -> Iterator[tuple[str, Any]]:
    """The leaves of a tree, ``None`` too, each with how one would write it."""
    parts = tree.branches(x)
    if parts is None:
        yield name, x
        return
    fields = getattr(x, "_fields", None) or getattr(x, "__dataclass_fields__", None)
    keys = [f"[{k!r}]" for k in x] if isinstance(x, dict) else [f".{k}" for k in fields] if fields else None
    for key, branch in zip(keys or [f"[{i}]" for i in range(len(parts[0]))], parts[0], strict=False):
        yield from paths(name + key, branch)


def _parameters(f: Any, count: int) -> list[str]:
    """The names of the first ``count`` positional parameters."""
    names: list[str] = []
    try:
        for p in inspect.signature(f).parameters.values():
            if p.kind is p.VAR_POSITIONAL:
                names += [f"{p.name}[{i}]" for i in range(count - len(names))]
            elif p.kind is not p.KEYWORD_ONLY and p.kind is not p.VAR_KEYWORD:
                names.append(p.name)
    except (TypeError, ValueError):  # no signature to be had
        pass
    return [*names, *(f"input {i + 1}" for i in range(len(names), count))][:count]
