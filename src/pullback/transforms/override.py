"""``override_gradient``: other gradients for ops, chosen by name for a block of code.

While a block is open in any thread, the functions of its ops call the observer of their own thread, if that has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from pullback.core import hooks
from pullback.core.convert import unwrap_constant
from pullback.core.fitting import fit
from pullback.core.op import REGISTRY, Op, find_op, perform_observed
from pullback.core.source import is_defined_again
from pullback.core.suggestions import did_you_mean
from pullback.core.tape import as_tensor
from pullback.core.tensor import ARRAYS, Tensor
from pullback.errors import ArgumentError, CustomGradientError, GradientError
from pullback.transforms.arguments import Arguments
from pullback.transforms.captured import line_of, make_capture_error
from pullback.transforms.custom_op import BodyRun, CustomOp, gradient_for

F = TypeVar("F", bound=Callable[..., Any])
GRADIENTS: dict[str, Callable[..., Any]] = {}


class OpCall(NamedTuple):
    """The first argument of a registered gradient: the op it differentiates."""

    name: str
    inputs: list[Any]
    outputs: list[Any]
    attrs: dict[str, Any]


class Overridden(CustomOp):
    """One call of an op with a registered gradient."""

    def __init__(self, op: Op, gradient: str, arguments: Arguments, attrs: dict[str, Any]) -> None:
        super().__init__(f"gradient '{gradient}' of {op.name}")
        self.op, self.fn, self.arguments, self.attrs = op, GRADIENTS[gradient], arguments, attrs

    def run(self, values: Sequence[Any]) -> BodyRun:
        op, inputs = self.op, list(map(as_tensor, values))
        rest = {k: v for k, v in _get_chosen().items() if k != op.name}
        with hooks.observe(Override(rest), without=Override):
            z = unwrap_constant(op.call(inputs, self.attrs))

        def back(dys: list[Any]) -> list[Any]:
            out = self.fn(OpCall(op.name, inputs, [as_tensor(z)], dict(self.attrs)), as_tensor(dys[0]))
            ds = list(out) if isinstance(out, list | tuple) else [out]
            if len(ds) != len(values):
                expected = f"{len(values)} gradient{'s' * (len(values) != 1)}, one for each input"
                raise CustomGradientError(f"{self.name}: expected {expected}; got {len(ds)} ({line_of(self.fn)}).")
            if op.elementwise:  # sum over broadcast axes, as for any other rule
                ds = [
                    fit(d, x) if isinstance(d, ARRAYS) and x.shape != d.shape == z.shape else d
                    for d, x in zip(ds, values, strict=True)
                ]
            line = partial(line_of, self.fn)
            return [
                None if d is None else gradient_for(d, x, self.name, partial(self._name_input, i), line, dys)
                for i, (d, x) in enumerate(zip(ds, values, strict=True))
            ]

        return BodyRun((z,), back)

    def _name_input(self, i: int) -> str:
        return f"{self.op.inputs[0]}[{i}]" if self.op.variadic else self.op.inputs[i]

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return make_capture_error(self.name, "the gradient function", [self.fn], level - 1, {}, ())


class Override(hooks.Observer):
    """The observer of a block, which performs ops with other gradients; ``chosen`` maps names of ops to theirs."""

    def __init__(self, chosen: Mapping[str, str]) -> None:
        self.chosen = self.ops = dict(chosen)

    def cache_key(self) -> Any:
        chosen = [(op, GRADIENTS[name]) for op, name in sorted(self.chosen.items())]
        return ("gradients", *chosen) if chosen else None

    def perform(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Perform an op with the gradient that is chosen for it, if anything in its inputs may be differentiated."""
        if not any(isinstance(x, Tensor) for x in args):
            return perform_observed(op, args, params, Override)
        inputs = [  # inputs without a derivative, such as indices, stay integers
            np.asarray(x) if not op.d.differentiable(i) and op.flows and not isinstance(x, ARRAYS) else x
            for i, x in enumerate(args)
        ]
        arguments = Arguments(inputs)
        (z,) = Overridden(op, self.chosen[op.name], arguments, params).apply(arguments.flat)
        return as_tensor(z)


def _get_chosen() -> dict[str, str]:
    return {k: v for o in hooks.observers() if isinstance(o, Override) for k, v in o.chosen.items()}


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
    """Give the named ops the gradients that ``register_gradient`` registered, in this block and thread.

    gradients: a dict from names of ops to names of registered gradients.

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
            raise _make_unknown_error("gradient", gradient, GRADIENTS, "Register it with pb.register_gradient.")
        chosen[_find_op(name).name] = gradient
    with hooks.observe(Override({**_get_chosen(), **chosen}), without=Override):
        yield


def _find_op(name: str) -> Op:
    """Return the op of this name, which may be an alias."""
    op = find_op(name) or getattr(getattr(Tensor, str(name), None), "op", None)
    if isinstance(op, Op):
        return op
    raise _make_unknown_error(
        "op", name, REGISTRY, "Only ops have a gradient to override; a function made of ops has theirs."
    )


def _make_unknown_error(kind: str, name: str, known: Iterable[str], cure: str) -> Exception:
    hint = did_you_mean(name, known)
    return GradientError(f"override_gradient: there is no {kind} named {name!r}.{hint} {cure}")
