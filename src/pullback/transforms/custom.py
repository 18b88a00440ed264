"""Functions with a gradient of one's own: ``custom_grad`` as in TensorFlow.js, ``custom_gradient`` as in TensorFlow."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from types import MethodType
from typing import Any

import numpy as np

from pullback.core import tree
from pullback.core.convert import bare, float_of
from pullback.core.interpreter import level_of
from pullback.core.tape import ARRAYS, as_tensor
from pullback.core.tensor import concrete
from pullback.core.variable import Recorder, Variable, call_with_values, watched_below, watching
from pullback.errors import ArgumentError, CustomGradientError, DataError, GradientMismatchError
from pullback.transforms.arguments import Arguments, paths
from pullback.transforms.captured import captured, line_of
from pullback.transforms.compare import along, listed, mismatches, movable, widened
from pullback.transforms.customop import CustomOp, Run, gradient_for, like

__all__ = ["custom_grad", "custom_gradient"]


class Call(CustomOp):
    """One call of a function with its own gradient."""

    structure: Any  # of the results
    grad_func: Any

    def __init__(self, owner: Customized, arguments: Arguments, kwargs: dict[str, Any]) -> None:
        super().__init__(f"{owner.face}({owner.__name__})")
        self.owner, self.f, self.arguments, self.kwargs = owner, owner.__wrapped__, arguments, kwargs

    def run(self, values: Sequence[Any]) -> Run:
        out, read = self.performed(values)
        self.structure, self.grad_func = self._split(out)
        zs = self.checked(self.structure, values, read)
        return self.gradient(values, zs, self.grad_func, read)

    def performed(self, values: Sequence[Any]) -> tuple[Any, list[Variable]]:
        """What the body gives, and the trainable variables it read."""
        with watching(Recorder()) as recorder:
            out = self.body(values)
        return out, [v for v in recorder.read.values() if v.trainable]

    def checked(self, value: Any, values: Sequence[Any], read: list[Variable]) -> tuple[Any, ...]:
        """The results in ``value``, which depend on nothing but the inputs."""
        zs = tuple(self._result(z) for z in self.results(value))
        self.check_levels(zs, self.below(values), read)
        return zs

    def check_levels(self, zs: Sequence[Any], highest: int, read: Sequence[Variable]) -> None:
        if any(level_of(z) > highest for z in zs):
            raise captured(self.name, "the body", [self.f], highest, self.kwargs, read)

    def body(self, values: Sequence[Any]) -> Any:
        return self.f(*self.arguments.filled(values), **self.kwargs)

    def results(self, value: Any) -> list[Any]:
        return tree.leaves(value)

    def gradient(self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Any, read: list[Variable]) -> Run:
        """The run, with the way back that ``grad_func`` is."""
        raise NotImplementedError

    def lost(self, ds: Sequence[Any], level: int) -> Exception:
        return captured(self.name, "the gradient function", [self.grad_func], level - 1, {}, ())

    def _split(self, out: Any) -> tuple[Any, Any]:
        if not isinstance(out, tuple | list) or len(out) != 2 or not callable(out[1]):
            got = type(out).__name__
            if isinstance(out, tuple | list):
                got = f"{got} of ({', '.join(type(part).__name__ for part in out)})"
            raise CustomGradientError(f"{self.name}: f must return (value, grad_func), got {got} ({line_of(self.f)}).")
        return out[0], out[1]

    def _result(self, z: Any) -> Any:
        if not isinstance(z, ARRAYS):
            raise CustomGradientError(
                f"{self.name}: the value must be a tensor, got {type(z).__name__} ({line_of(self.f)})."
            )
        return bare(z)

    def named(self, i: int) -> str:
        return self.arguments.names(self.f)[i]

    def wrong_count(self, got: int, grad_func: Any) -> Exception:
        names = self.arguments.names(self.f)
        expected = f"{len(names)} gradient{'s' * (len(names) != 1)}, one for each input ({', '.join(names)})"
        return CustomGradientError(
            f"{self.name}: the gradient function must return {expected}; got {got} ({line_of(grad_func)})."
        )


class SavingCall(Call):
    """A call in the manner of TensorFlow.js: ``f(*inputs, save)`` with ``grad_func(dy, saved)``."""

    owner: CustomGrad
    saved: Any

    def body(self, values: Sequence[Any]) -> Any:
        saved: list[Any] = [[]]

        def save(kept: Any) -> None:
            if not isinstance(kept, list | tuple | dict):
                got = type(kept).__name__
                raise ArgumentError(
                    f"{self.name}: save takes a list, tuple or dict of tensors, got {got}. Write save([x])."
                )
            saved[0] = tree.mapped(lambda t: t, kept)  # a copy: the user may change his list

        self.saved = saved
        args = self.arguments.filled(values)
        return self.f(*args, save=save) if self.owner.by_keyword else self.f(*args, save)

    def results(self, value: Any) -> list[Any]:
        return [value]  # one tensor, and not a tree of them

    def gradient(self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Any, read: list[Variable]) -> Run:
        saved, likes = self.saved, [like(v) for v in values]

        def back(dys: list[Any]) -> list[Any]:
            out = grad_func(as_tensor(dys[0]), saved[0])
            ds = list(out) if isinstance(out, list | tuple) else [out]
            if len(ds) != len(likes):
                raise self.wrong_count(len(ds), grad_func)
            line = partial(line_of, grad_func)
            return [
                gradient_for(d, x, self.name, partial(self.named, i), line)
                for i, (d, x) in enumerate(zip(ds, likes, strict=True))
            ]

        return Run(zs, back)


class NestedCall(Call):
    """A call in the manner of TensorFlow: trees in and out, ``grad_fn(*dys, variables=...)``."""

    follows = True

    def gradient(self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Any, read: list[Variable]) -> Run:
        if read and not _accepts_variables(grad_func):
            names = " and ".join(f"'{v.name}'" for v in read)
            raise ArgumentError(
                f"{self.name}: f reads the trainable variable{'s' * (len(read) > 1)} {names}, so grad_fn must accept "
                "the keyword 'variables' and return (input_grads, variable_grads). "
                f"Add variables=None to it, pass them as inputs, or use stop_gradient ({line_of(grad_func)})."
            )
        line, likes = partial(line_of, grad_func), [like(v) for v in [*values, *read]]

        def back(dys: list[Any]) -> list[Any]:
            out = grad_func(*map(as_tensor, dys), **{"variables": read} if read else {})
            out, more = self._parted(out, read, grad_func) if read else (out, [])
            count = len(likes) - len(read)
            names = [*(partial(self.named, i) for i in range(count)), *(partial(str, v.name) for v in read)]
            return [
                None if d is None else gradient_for(d, x, self.name, name, line)
                for d, x, name in zip([*self._matched(out, grad_func), *more], likes, names, strict=True)
            ]

        return Run(zs, back, read)

    def _parted(self, out: Any, read: list[Variable], grad_func: Any) -> tuple[Any, Sequence[Any]]:
        """The gradients of the inputs and those of the variables."""
        names = ", ".join(v.name for v in read)
        if not isinstance(out, tuple | list) or len(out) != 2:
            raise CustomGradientError(
                f"{self.name}: f reads variables ({names}), so the gradient function must return "
                f"(input_grads, variable_grads); got {type(out).__name__} ({line_of(grad_func)})."
            )
        more = [out[1]] if isinstance(out[1], ARRAYS) else out[1]
        if not isinstance(more, list | tuple) or len(more) != len(read):
            got = len(more) if isinstance(more, list | tuple) else type(more).__name__
            raise CustomGradientError(
                f"{self.name}: variable_grads must be a list with one gradient for each of {len(read)} variables "
                f"({names}); got {got} ({line_of(grad_func)})."
            )
        return out[0], more

    def _matched(self, out: Any, grad_func: Any) -> list[Any]:
        """The gradients in the order of the inputs: in the structure of the arguments, or in a flat list."""
        count = len(self.arguments.flat)
        args = [a for a in self.arguments.tree if any(isinstance(x, ARRAYS) for x in tree.leaves(a))]
        found = _aligned(args, out)
        if found is None and len(args) == 1:
            found = _aligned(args[0], out)
        if found is None and isinstance(out, list | tuple) and len(out) == count:
            found = list(out)
        if found is None:
            raise self.wrong_count(len([*paths("", out)]), grad_func)
        return found


def _aligned(arg: Any, d: Any) -> list[Any] | None:
    """For each input in a tree what stands in its place in another; None if they are built differently."""
    parts = None if arg is None else tree.branches(arg)
    if parts is None:
        single = tree.branches(d) is None
        return ([d] if single else None) if isinstance(arg, ARRAYS) else []
    if d is None:  # no gradient for anything in here
        return [None for x in tree.leaves(arg) if isinstance(x, ARRAYS)]
    others = tree.branches(d)
    if others is None or len(others[0]) != len(parts[0]) or isinstance(arg, dict) != isinstance(d, dict):
        return None
    if isinstance(arg, dict) and {*arg} != {*d}:
        return None
    rows = [(arg[k], d[k]) for k in arg] if isinstance(arg, dict) else zip(parts[0], others[0], strict=True)
    found = [_aligned(a, b) for a, b in rows]
    return None if any(f is None for f in found) else [x for f in found for x in f or ()]


def _accepts_variables(grad_func: Any) -> bool:
    try:
        parameters = inspect.signature(grad_func).parameters
    except (TypeError, ValueError):
        return True
    return "variables" in parameters or any(p.kind is p.VAR_KEYWORD for p in parameters.values())


class Customized:
    """A function with its own gradient: keeps its name and docstring, and pickles when ``f`` does."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    face = ""
    call: type[Call]

    def __init__(self, f: Callable[..., Any]) -> None:
        if not callable(f):
            raise ArgumentError(f"{self.face}(f): f must be a function, got {type(f).__name__}.")
        self.__name__ = self.__qualname__ = type(f).__name__
        update_wrapper(self, f)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.outcome(Arguments(args), kwargs)

    def outcome(self, arguments: Arguments, kwargs: dict[str, Any]) -> Any:
        """What one call gives, in the form of what was given."""
        call = self.call(self, arguments, kwargs)
        zs = iter(call.apply(arguments.flat))
        arguments.release()
        structure, call.structure = call.structure, None
        return tree.mapped(lambda _: arguments.given_back(next(zs)), structure)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (type(self), (self.__wrapped__,))

    def __repr__(self) -> str:
        return f"<{self.face} {self.__name__}>"


class CustomGrad(Customized):
    """What ``custom_grad`` makes."""

    face = "custom_grad"
    call = SavingCall

    def __init__(self, f: Callable[..., Any], check: bool = False) -> None:
        super().__init__(f)
        self.check = check
        self._agreed: set[Any] = set()
        try:
            save = inspect.signature(f).parameters.get("save")
        except (TypeError, ValueError):
            save = None
        self.by_keyword = save is not None and save.kind is save.KEYWORD_ONLY

    def __call__(self, *inputs: Any) -> Any:
        if any(isinstance(x, str | bytes) for x in inputs):
            raise DataError(f"{self.face}({self.__name__}): the inputs must be tensors or numbers, got text.")
        if self.check:
            self._compare(inputs)
        return super().__call__(*inputs)

    def __reduce__(self) -> Any:
        found = super().__reduce__()
        return found if isinstance(found, str) else (CustomGrad, (self.__wrapped__, self.check))

    def _compare(self, inputs: Sequence[Any]) -> None:
        """Compare with finite differences, once for each combination of shapes and dtypes; under vmap, of one example.

        In a compiled function they are compared when it is first run.
        """
        arguments = Arguments(inputs)
        signature = tuple((x.shape, x.dtype.char) for x in arguments.flat)

        def compare(*plain: Any) -> None:
            if signature not in self._agreed:
                self._compare_at(arguments, plain)
                self._agreed.add(signature)

        if signature not in self._agreed:
            call_with_values(compare, *arguments.flat)

    def _compare_at(self, arguments: Arguments, plain: Sequence[Any]) -> None:
        xs = [widened(x) for x in plain]
        call = SavingCall(self, arguments, {})
        with watched_below(0):
            (z,), back, _ = call.run(xs)
            dy = widened(np.random.default_rng(0).standard_normal(z.shape).astype(float_of(z.dtype)))
            ds = [concrete(d) for d in back([dy])]
            told = mismatches(lambda xs: along(dy, call.run(xs).values[0]), xs, lambda i, v: along(ds[i], v))
        if any(told):
            names = [n for n, x in zip(arguments.names(self.__wrapped__), xs, strict=True) if movable(x)]
            line = line_of(call.grad_func)
            raise GradientMismatchError(
                f"{call.name}, check=True: not what finite differences say ({line}): {'; '.join(listed(names, told))}."
            )


class CustomGradient(Customized):
    """What ``custom_gradient`` makes."""

    face = "custom_gradient"
    call = NestedCall


def custom_grad(f: Callable[..., Any] | None = None, *, check: bool = False) -> Any:
    """``f(*inputs, save)``, which returns ``(value, grad_func)``, to a function of the inputs with that gradient.

    ``grad_func(dy, saved)`` returns one gradient per input; ``saved`` is what ``save`` was given.  The gradient
    function is itself differentiated for higher orders.
    ``check=True`` compares with finite differences on each new signature.

    >>> import pullback as pb
    >>> @pb.custom_grad
    ... def f(x, save):
    ...     save([x])
    ...     return x * x, lambda dy, saved: dy * pb.abs(saved[0])
    >>> print(pb.grad(f)(pb.tensor([0, -1, 1, 2])))
    Tensor
        [0, 1, 1, 2]
    """
    return partial(CustomGrad, check=check) if f is None else CustomGrad(f, check)


def custom_gradient(f: Callable[..., Any]) -> Any:
    """``f(*args, **kwargs)``, which returns ``(value, grad_fn)``, to a function with that gradient.

    Arguments and value may be trees.  ``grad_fn(*dys)`` gets one cotangent per result and returns one gradient per
    input, ``None`` where there is none.  If ``f`` reads trainable variables, ``grad_fn`` gets them as ``variables`` and
    returns ``(input_grads, variable_grads)``.

    >>> import pullback as pb
    >>> @pb.custom_gradient
    ... def log1pexp(x):
    ...     e = pb.exp(x)
    ...     return pb.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> pb.grad(log1pexp)(100.0)
    1.0
    """
    return CustomGradient(f)
