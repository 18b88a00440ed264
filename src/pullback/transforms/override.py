"""Another gradient for an op, chosen by name for a block of code.

An op's function has no hook that would cost time.  Entering a block swaps its code for one that asks this context;
when the last block ends, the op gets its own code back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from threading import Lock
from types import FunctionType, MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from pullback.core import environment
from pullback.core.convert import bare
from pullback.core.fitting import fit
from pullback.core.op import REGISTRY, Op
from pullback.core.source import is_defined_again
from pullback.core.suggestions import did_you_mean
from pullback.core.tape import ARRAYS, as_tensor
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, CustomGradientError, GradientError
from pullback.transforms.arguments import Arguments
from pullback.transforms.captured import captured, line_of
from pullback.transforms.customop import CustomOp, Run, gradient_for

if TYPE_CHECKING:
    from pullback.typing import Operand, TensorLike

__all__ = ["override_gradient", "register_gradient"]

F = TypeVar("F", bound=Callable[..., Any])
GRADIENTS: dict[str, Callable[..., Any]] = {}
_chosen: ContextVar[Mapping[str, str]] = ContextVar("overridden gradients", default=MappingProxyType({}))
_lock = Lock()
_blocks: dict[str, int] = {}  # op -> in how many blocks, of all threads, it is overridden
_own: dict[str, list[FunctionType]] = {}  # op -> its function and the reflected one, with their own code


class OpCall(NamedTuple):
    """What a registered gradient is told of the op."""

    name: str
    inputs: list[Any]
    outputs: list[Any]
    attrs: dict[str, Any]


class Overridden(CustomOp):
    """One call of an op that has another gradient."""

    def __init__(self, op: Op, gradient: str, arguments: Arguments, attrs: dict[str, Any]) -> None:
        super().__init__(f"gradient '{gradient}' of {op.name}")
        self.op, self.fn, self.arguments, self.attrs = op, GRADIENTS[gradient], arguments, attrs

    def run(self, values: Sequence[Any]) -> Run:
        op, inputs = self.op, list(map(as_tensor, values))
        args = [inputs] if op.variadic else inputs
        rest = {k: v for k, v in _chosen.get().items() if k != op.name}
        token = _chosen.set(rest)
        try:
            z = bare(_own[op.name][0](*args, **self.attrs))
        finally:
            _chosen.reset(token)

        def back(dys: list[Any]) -> list[Any]:
            out = self.fn(OpCall(op.name, inputs, [as_tensor(z)], dict(self.attrs)), as_tensor(dys[0]))
            ds = list(out) if isinstance(out, list | tuple) else [out]
            if len(ds) != len(values):
                expected = f"{len(values)} gradient{'s' * (len(values) != 1)}, one for each input"
                raise CustomGradientError(f"{self.name}: expected {expected}; got {len(ds)} ({line_of(self.fn)}).")
            if op.elementwise:  # undoing broadcasting is no more this rule's business than any other's
                ds = [
                    fit(d, x) if isinstance(d, ARRAYS) and x.shape != d.shape == z.shape else d
                    for d, x in zip(ds, values, strict=True)
                ]
            line = partial(line_of, self.fn)
            return [
                None if d is None else gradient_for(d, x, self.name, partial(self._named, i), line, dys)
                for i, (d, x) in enumerate(zip(ds, values, strict=True))
            ]

        return Run((z,), back)

    def _named(self, i: int) -> str:
        return f"{self.op.inputs[0]}[{i}]" if self.op.variadic else self.op.inputs[i]

    def lost(self, ds: Sequence[Any], level: int) -> Exception:
        return captured(self.name, "the gradient function", [self.fn], level - 1, {}, ())


def _stand_in(*args: TensorLike, **kwargs: object) -> Any:
    """The code of an op's function while some block overrides it; its globals are the op's own."""
    return OVERRIDDEN(OP, False, args, kwargs)  # type: ignore[name-defined]  # noqa: F821


def _stand_in_reflected(*args: Operand, **kwargs: object) -> Any:
    return OVERRIDDEN(OP, True, args, kwargs)  # type: ignore[name-defined]  # noqa: F821


def _perform(op: Op, reflected: bool, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    gradient = _chosen.get().get(op.name)
    own = _own[op.name][reflected]
    if gradient is None:
        return own(*args, **kwargs)
    count = 1 if op.variadic else len(op.inputs)
    inputs = list(args[0]) if op.variadic else [*args[:count]]
    if reflected:
        inputs.reverse()
    attrs = {**op.params, **dict(zip(op.params, args[count:], strict=False)), **kwargs}
    if len(args) < count or {*attrs} != {*op.params} or not any(isinstance(x, Tensor) for x in inputs):
        return own(*args, **kwargs)
    inputs = [  # what has no derivative, such as indices, is not made a float
        np.asarray(x) if not op.d.differentiable(i) and op.flows and not isinstance(x, ARRAYS) else x
        for i, x in enumerate(inputs)
    ]
    arguments = Arguments(inputs)
    (z,) = Overridden(op, gradient, arguments, attrs).apply(arguments.flat)
    return as_tensor(z)


def register_gradient(name: str) -> Callable[[F], F]:
    """Give a gradient a name, by which ``override_gradient`` finds it.

    The function is called as ``fn(op, dy)``, with ``op.name``, ``op.inputs``, ``op.outputs`` and ``op.attrs``, and
    returns one gradient per input: a bare tensor for one, ``None`` where there is none.  A function that is defined
    again, as by a notebook's cell that is run twice, takes the place of the former; another one may not have its name.

    >>> import pullback as pb
    >>> @pb.register_gradient("doubled")
    ... def doubled(op, dy):
    ...     return dy * 2
    >>> with pb.override_gradient({"sin": "doubled"}):
    ...     pb.grad(lambda x: pb.sin(x))(1.0)
    2.0
    """
    if not isinstance(name, str):
        raise ArgumentError(f"register_gradient: the name must be text, got {type(name).__name__}.")

    def register(fn: F) -> F:
        if not callable(fn):
            raise ArgumentError(f"register_gradient('{name}'): expected a function, got {type(fn).__name__}.")
        if name in GRADIENTS and not is_defined_again(fn, GRADIENTS[name]):
            line = line_of(GRADIENTS[name])
            raise GradientError(f"register_gradient: the name '{name}' is taken ({line}). Choose another.")
        GRADIENTS[name] = fn
        return fn

    return register


@contextmanager
def override_gradient(gradients: Mapping[str, str]) -> Iterator[None]:
    """In this block, in this thread, the named ops have the named gradients, which ``register_gradient`` registered.

    >>> import pullback as pb
    >>> @pb.register_gradient("straight_through")
    ... def straight_through(op, dy):
    ...     return dy
    >>> with pb.override_gradient({"round": "straight_through"}):
    ...     pb.grad(lambda x: pb.round(x) * 3)(1.2)
    3.0
    """
    if not isinstance(gradients, Mapping):
        got = type(gradients).__name__
        raise ArgumentError(f"override_gradient: expected a dict of op names to names of gradients, got {got}.")
    chosen = {}
    for name, gradient in gradients.items():
        if gradient not in GRADIENTS:
            raise _unknown("gradient", gradient, GRADIENTS, "Register it with pb.register_gradient.")
        chosen[_found(name).name] = gradient
    ops = [REGISTRY[name] for name in chosen]
    begun: list[Op] = []
    token = _chosen.set({**_chosen.get(), **chosen})
    environment.change_blocks(1)
    try:
        for op in ops:
            _begin(op)
            begun.append(op)
        yield
    finally:
        environment.change_blocks(-1)
        for op in begun:
            _end(op)
        _chosen.reset(token)


def _overridden() -> Any:
    """Which ops have which gradients here; None if all have their own."""
    chosen = _chosen.get()
    return ("gradients", *((op, GRADIENTS[name]) for op, name in sorted(chosen.items()))) if chosen else None


environment.add_part(_overridden)


def _found(name: str) -> Op:
    """The op of this name, which may be an alias."""
    op = REGISTRY.get(name) or getattr(getattr(Tensor, str(name), None), "op", None)
    if isinstance(op, Op):
        return op
    raise _unknown("op", name, REGISTRY, "Only ops have a gradient to override; a function made of ops has theirs.")


def _unknown(kind: str, name: str, known: Iterable[str], cure: str) -> Exception:
    hint = did_you_mean(name, known)
    return GradientError(f"override_gradient: there is no {kind} named {name!r}.{hint} {cure}")


def _begin(op: Op) -> None:
    with _lock:
        op.build(False)
        _blocks[op.name] = _blocks.get(op.name, 0) + 1
        if _blocks[op.name] > 1:
            return
        functions = _functions(op)
        _own[op.name] = [FunctionType(f.__code__, op.space, op.name, f.__defaults__) for f in functions]
        op.space["OVERRIDDEN"] = _perform
        for f, stand_in in zip(functions, (_stand_in, _stand_in_reflected), strict=False):
            f.__code__ = stand_in.__code__


def _functions(op: Op) -> list[FunctionType]:
    """What users call, and what Python calls for a number on the left, where there is such a sign."""
    return [op.function] if op.reflected is None else [op.function, op.reflected]


def _end(op: Op) -> None:
    with _lock:
        _blocks[op.name] -= 1
        if not _blocks[op.name]:
            for f, own in zip(_functions(op), _own[op.name], strict=True):
                f.__code__ = own.__code__
