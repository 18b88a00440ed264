"""Functions with a custom gradient: ``custom_grad`` as in TensorFlow.js, ``custom_gradient`` as in TensorFlow."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from functools import partial, update_wrapper
from types import DynamicClassAttribute, MethodType
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import hooks, tree
from pullback.core.convert import float_of
from pullback.core.tape import constant
from pullback.core.tensor import Tensor, concrete
from pullback.core.variable import HeldValues, call_with_values, watch_below, watch_variables
from pullback.errors import ArgumentError, DataError, GradientMismatchError
from pullback.transforms.arguments import Arguments
from pullback.transforms.captured import line_of
from pullback.transforms.compare import (
    Differences,
    compare_derivatives,
    compute_slope,
    is_movable,
    list_mismatches,
    to_double,
)
from pullback.transforms.custom_call import CustomCall, NestedCall, SavingCall
from pullback.transforms.signatures import check_function

if TYPE_CHECKING:
    from pullback.typing import Array


class Customized:
    """A function with its own gradient: keeps its name and docstring, and pickles when ``f`` does."""

    __name__: str
    __qualname__: str
    __wrapped__: Callable[..., Any]
    face = ""
    call: type[CustomCall]
    rule: Callable[..., Any] | None  # the user's rule for tangents, if any
    save_passing: dict[Any, str]  # a cache: how ``f`` takes ``save``

    def __init__(self, f: Callable[..., Any]) -> None:
        check_function(f"{self.face}(f): f", f)
        self.__name__ = self.__qualname__ = type(f).__name__
        update_wrapper(self, f)
        self.rule, self.save_passing = None, {}  # after update_wrapper, which copies those of ``f`` if it has them

    def __dir__(self) -> list[str]:
        return [name for name in ("defjvp", "defjvps") if hasattr(self, name)]

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if hooks.blocks and (observer := hooks.find("run_call")) is not None:
            return observer.run_call("function", Customized.__call__, self, *args, **kwargs)
        return self.outcome(Arguments(args), kwargs)

    def outcome(self, arguments: Arguments, kwargs: dict[str, Any]) -> Any:
        """Return the result of one call: tensors if any argument is one, else arrays."""
        call = self.call(self, arguments, kwargs)
        zs = call.apply(arguments.flat)
        arguments.release()
        structure, call.structure = call.structure, None
        if isinstance(structure, Tensor):
            return arguments.convert_back(zs[0])
        return tree.replace_leaves(structure, [arguments.convert_back(z) for z in zs])

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else MethodType(self, instance)

    def __reduce__(self) -> Any:
        found: Any = sys.modules.get(self.__module__)
        for part in self.__qualname__.split("."):
            found = getattr(found, part, None)
        return self.__qualname__ if found is self else (type(self), self.settings())

    def settings(self) -> tuple[Any, ...]:
        """Return the arguments to make it again, for pickling."""
        return (self.__wrapped__,)

    def __repr__(self) -> str:
        return f"<{self.face} {self.__name__}>"


class WithTangentRule(Customized):
    """A function that may have a user's rule for tangents."""

    def defjvp(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        """State the tangent: ``rule(primals, tangents)`` returns ``(value, tangent)``.  It may be a decorator.

        rule: called with the tuple of the arguments and the tuple of their tangents, built alike.

        >>> import pullback as pb
        >>> @pb.custom_grad
        ... def clipped(x):
        ...     return pb.clone(x), lambda dy: pb.clip_by_value(dy, -1.0, 1.0)
        >>> @clipped.defjvp
        ... def clipped_jvp(primals, tangents):
        ...     return primals[0], tangents[0]
        >>> pb.grad(lambda x: clipped(x) * 5.0)(2.0), pb.jvp(lambda x: clipped(x) * 5.0, [2.0], [1.0])
        (1.0, (10.0, 5.0))
        """
        check_function(f"{self.face}({self.__name__}): jvp", rule)
        self.rule = rule
        return rule


class Stated(WithTangentRule):
    """A function with a user's gradient and perhaps a user's tangent, which can be checked by finite differences."""

    def __init__(self, f: Callable[..., Any], check: bool = False, jvp: Callable[..., Any] | None = None) -> None:
        super().__init__(f)
        self.check = check
        self._agreed: set[Any] = set()
        if jvp is not None:
            self.defjvp(jvp)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if self.check:
            self._compare(args, kwargs)
        return super().__call__(*args, **kwargs)

    def settings(self) -> tuple[Any, ...]:
        return self.__wrapped__, self.check, self.rule

    def _compare(self, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        """Compare with finite differences, once for each combination of shapes and dtypes.

        Under ``vmap`` one example is compared; in a compiled function that is done in its first run.
        """
        arguments = Arguments(args)
        signature = tuple((x.shape, x.dtype.char) for x in arguments.flat)

        def compare(*plain: Array) -> None:
            if signature not in self._agreed:
                self._compare_at(arguments, plain, kwargs)
                self._agreed.add(signature)

        if signature not in self._agreed:
            call_with_values(compare, *arguments.flat)

    def _compare_at(self, arguments: Arguments, plain: Sequence[Any], kwargs: dict[str, Any]) -> None:
        call = self.call(self, arguments, kwargs)
        with watch_below(0):
            run = call.run([to_double(x) for x in plain])
            count, read = len(plain), list(run.variables)
            xs = [*map(to_double, plain), *(to_double(v.held.value) for v in read)]
            dys = _draw_cotangents([*map(concrete, run.values)])
            ds = [d if d is None else concrete(d) for d in run.back(dys)]
            present = [i for i, d in enumerate(ds) if d is not None]

            def weigh(moved: Sequence[Any]) -> float:
                at = list(xs)
                for i, x in zip(present, moved, strict=True):
                    at[i] = x
                with watch_variables(HeldValues({id(v): constant(x) for v, x in zip(read, at[count:], strict=True)})):
                    zs = call.run(at[:count]).values
                return sum(compute_slope(dy, concrete(z)) for dy, z in zip(dys, zs, strict=True))

            differences = Differences(weigh, [xs[i] for i in present])
            compared = compare_derivatives(differences, lambda i, v: compute_slope(ds[present[i]], v))
        if any(c.mismatch for c in compared):
            names = [*arguments.names(self.__wrapped__), *(v.name for v in read)]
            names = [names[i] for i in present if is_movable(xs[i])]
            line = line_of(call.grad_func)
            found = "; ".join(list_mismatches(names, compared))
            raise GradientMismatchError(f"{call.name}, check=True: not what finite differences say ({line}): {found}.")


def _draw_cotangents(zs: Sequence[Any]) -> list[Any]:
    """Return random cotangents of results, the same at every call; those of integers are zero."""
    random = np.random.default_rng(0)
    return [to_double(random.standard_normal(z.shape).astype(float_of(z.dtype))) * (z.dtype.kind in "fc") for z in zs]


class CustomGrad(Stated):
    """The function that ``custom_grad`` returns."""

    face = "custom_grad"
    call = SavingCall

    @DynamicClassAttribute
    def __signature__(self) -> inspect.Signature:
        """Return what can be given: the arguments of ``f`` without ``save``."""
        own = inspect.signature(self.__wrapped__)
        return own.replace(parameters=[p for p in own.parameters.values() if p.name != "save"])

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if any(isinstance(x, str | bytes) for x in args):
            raise DataError(
                f"{self.face}({self.__name__}): the inputs must be tensors or numbers, got text. "
                "Give it as a keyword argument, which is passed on as it is."
            )
        if "save" in kwargs:
            raise ArgumentError(f"{self.face}({self.__name__}): save is given to f, not by the caller.")
        return super().__call__(*args, **kwargs)


class CustomGradient(Stated):
    """The function that ``custom_gradient`` returns."""

    face = "custom_gradient"
    call = NestedCall


def custom_grad(
    f: Callable[..., Any] | None = None, *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> Any:
    """Return a function with a custom gradient, from ``f(*inputs, save)`` that returns ``(value, grad_func)``.

    f: called with the inputs as tensors and, if it has a parameter ``save`` or needs one argument more, with ``save``,
        which takes a list, tuple or dict of tensors to keep.  It returns ``(value, grad_func)``, or an object or dict
        with ``value`` and ``grad_func`` (or ``gradFunc``).  The value may be several tensors.
    check: compare with finite differences on each new combination of shapes and dtypes.
    jvp: the rule of forward mode, ``rule(primals, tangents)`` to ``(value, tangent)``.  Without it the gradient
        function is transposed, for which it must be linear in ``dy``.

    ``grad_func(dy, saved)`` returns one gradient per input; ``saved`` is what ``save`` was given, and may be left out.
    For several values it takes one ``dy`` each, or all in one argument.  If it has a parameter ``variables``, it is
    given the trainable variables that ``f`` read, and returns ``(input_grads, variable_grads)``.  Keyword arguments
    are passed on to ``f`` and not differentiated.  The gradient function is itself differentiated for higher orders.

    >>> import pullback as pb
    >>> @pb.custom_grad
    ... def f(x, save):
    ...     save([x])
    ...     return x * x, lambda dy, saved: dy * pb.abs(saved[0])
    >>> print(pb.grad(f)(pb.tensor([0, -1, 1, 2])))
    Tensor
        [0, 1, 1, 2]
    """
    return partial(CustomGrad, check=check, jvp=jvp) if f is None else CustomGrad(f, check, jvp)


def custom_gradient(
    f: Callable[..., Any] | None = None, *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> Any:
    """Return a function with a custom gradient, from ``f(*args, **kwargs)`` that returns ``(value, grad_fn)``.

    f: called with the inputs as tensors; arguments and value may be trees, keyword arguments are passed on.
    check: compare with finite differences on each new combination of shapes and dtypes.
    jvp: the rule of forward mode, as in ``custom_grad``.

    ``grad_fn(*dys)`` gets one cotangent per result and returns one gradient per input, ``None`` where there is none.
    If ``f`` reads trainable variables, ``grad_fn`` gets them as ``variables`` and returns
    ``(input_grads, variable_grads)``.

    >>> import pullback as pb
    >>> @pb.custom_gradient
    ... def log1pexp(x):
    ...     e = pb.exp(x)
    ...     return pb.log(1 + e), lambda dy: dy * (1 - 1 / (1 + e))
    >>> pb.grad(log1pexp)(100.0)
    1.0
    """
    return partial(CustomGradient, check=check, jvp=jvp) if f is None else CustomGradient(f, check, jvp)
