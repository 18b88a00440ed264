"""Functions with stated derivatives: ``primitive``, ``defvjp`` and ``defjvp``.

A primitive's function is called with plain NumPy values only.  Its rules are called with what is one level down, so
they are differentiated themselves.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Container, Iterator, Sequence
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.containers import align, children, conjugate, flatten
from pullback.core import tree
from pullback.core.calculus import add_terms
from pullback.core.convert import join_array, unwrap_constant
from pullback.core.tape import as_tensor
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.transforms.arguments import Arguments
from pullback.transforms.captured import line_of
from pullback.transforms.custom import Customized
from pullback.transforms.custom_call import CustomCall
from pullback.transforms.custom_op import (
    ArrayLikeness,
    Back,
    BodyRun,
    CustomOp,
    gradient_for,
    is_differentiated,
    like,
    set_transposing,
    tangent_for,
)
from pullback.transforms.custom_op import transpose as transpose_rule

if TYPE_CHECKING:
    from pullback.typing import Function, Operand, Tree

__all__: list[str] = []

primitive_vjps: dict[Any, Callable[..., Any]] = {}
primitive_jvps: dict[Any, Callable[..., Any]] = {}
linear_arguments: dict[Any, Container[int]] = {}  # of primitives: those whose tangent rule is the function itself


class _RuleSlot:
    """The place of a tensor in the arguments."""


SLOT = _RuleSlot()


class TracedArguments(Arguments):
    """Positional arguments of which only the tensors are inputs; everything else is passed on as it is."""

    def __init__(self, args: Sequence[Any]) -> None:
        self.has_no_tree, self.given_tensor = False, True
        self.flat = [unwrap_constant(leaf) for arg in args for leaf in tree.leaves(arg) if isinstance(leaf, Tensor)]
        self.argnums = tuple(i for i, a in enumerate(args) if any(isinstance(x, Tensor) for x in tree.leaves(a)))
        marks = {i: tree.map_leaves(_mark, args[i]) for i in self.argnums}
        self.tree = [marks.get(i, a) for i, a in enumerate(args)]

    def fill(self, values: Sequence[Any]) -> list[Any]:
        """Return the arguments with these inputs, plain NumPy values where nothing follows them."""
        source = iter(values)
        filled = {i: tree.map_leaves(lambda x: next(source) if x is SLOT else x, self.tree[i]) for i in self.argnums}
        return [filled.get(i, a) for i, a in enumerate(self.tree)]

    def release(self) -> None:
        self.flat = []


def _mark(leaf: Operand) -> Any:
    return SLOT if isinstance(leaf, Tensor) else leaf


class PrimitiveCall(CustomCall):
    """One call of a primitive with tensors among its arguments."""

    owner: Primitive
    arguments: TracedArguments

    def __init__(self, owner: Primitive, arguments: TracedArguments, kwargs: dict[str, Any]) -> None:
        super().__init__(owner, arguments, kwargs)
        self.states_jvp = owner in primitive_jvps

    def body(self, values: Sequence[Any]) -> Any:
        return join_array(self.owner(*self.arguments.fill(values), **self.kwargs))

    def split(self, out: Tree) -> tuple[Any, Any]:
        return out, primitive_vjps.get(self.owner, self.f)

    def _result(self, z: Tree) -> Any:
        return np.asarray(z)[()] if isinstance(z, bool | int | float | complex) else super()._result(z)

    def gradient(
        self, values: Sequence[Any], zs: tuple[Any, ...], grad_func: Callable[..., Any], read: list[Variable]
    ) -> BodyRun:
        ans, args = self.structure, self.arguments.fill(values)
        rule = primitive_vjps.get(self.owner)
        if rule is None:
            return BodyRun(zs, lambda dys: self._transpose(zs, values, dys), read)
        pull: list[Any] = []

        def back(dys: list[Any]) -> list[Any]:
            if not pull:
                pull.append(rule(self.arguments.argnums, ans, args, self.kwargs))
            g = tree.replace_leaves(ans, [conjugate(unwrap_constant(dy)) for dy in dys])
            return [*self._collect(pull[0](g), values, dys), *(None for _ in read)]

        return BodyRun(zs, back, read)

    def _transpose(self, zs: tuple[Any, ...], values: Sequence[Any], dys: list[Any]) -> list[Any]:
        """Return the gradient of each input by the transpose of the tangent rule."""
        linear = [i for i in self.arguments.argnums if i in linear_arguments.get(self.owner, ())]
        if linear:
            raise NotImplementedError(
                f"VJP of {self.owner.__name__} wrt argnum {linear[0]} not defined: its tangent is the function itself, "
                f"which has no transpose. State it with defvjp({self.owner.__name__}, rule)."
            )
        return transpose_rule(lambda ts: self.jvp(zs, values, ts, {}), dys, values)

    def _collect(self, out: list[Any], values: Sequence[Any], dys: Sequence[Any]) -> Iterator[Any]:
        """Yield the gradient of each input from what a rule gave for each argument."""
        source, line = iter(values), partial(line_of, self.f)
        for i, d in zip(self.arguments.argnums, out, strict=True):
            marked = self.arguments.tree[i]
            for slot, part in zip(flatten(marked), align(marked, d), strict=True):
                if slot is SLOT:
                    x = next(source)
                    yield None if part is None else self._convert(part, x, f"argument {i}", line, dys)

    def _convert(self, d: Any, x: Operand, name: str, line: Callable[[], str], dys: Sequence[Any]) -> Any:
        d = conjugate(join_array(d))
        if np.iscomplexobj(d) and not np.iscomplexobj(x):
            d = np.real(d)  # the gradient by a real number
        if isinstance(d, np.ndarray | np.integer) and d.dtype.kind in "iub":
            d = d.astype(float)
        return gradient_for(d, like(x), self.name, lambda: name, line, dys)

    def transposable(self, back: Back, xs: Sequence[Any], zs: Sequence[ArrayLikeness], dys: list[Any]) -> Sequence[Any]:
        with set_transposing(False):
            return back(dys)

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        rule = primitive_jvps.get(self.owner)
        if rule is None:
            return CustomOp.jvp(self, z, primals, tangents, params)
        args = self.arguments.fill([unwrap_constant(p) for p in primals])
        moved = [np.zeros_like(unwrap_constant(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
        along = self.arguments.fill([unwrap_constant(t) for t in moved])
        argnums = self.arguments.argnums
        ans = join_array(self.owner(*args, **self.kwargs)) if self.structure is None else None
        ans = tree.replace_leaves(self.structure if ans is None else ans, list(z))
        out = rule(argnums, [along[i] for i in argnums], ans, args, self.kwargs)
        line = partial(line_of, self.f)
        parts = [join_array(t) for t in align(ans, out)]
        return [
            None if t is None or y.dtype.kind not in "fc" else tangent_for(as_tensor(t), y, self.name, line)
            for t, y in zip(parts, z, strict=True)
        ]


class Primitive(Customized):
    """The function that ``primitive`` returns."""

    face = "primitive"
    call = PrimitiveCall

    def __init__(self, f: Callable[..., Any]) -> None:
        super().__init__(f)
        self.fun = f
        self._old_rules: dict[int, Any] = {}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        if not any(isinstance(leaf, Tensor) for arg in args for leaf in tree.leaves(arg)):
            return self.fun(*args, **kwargs)
        arguments = TracedArguments(args)
        if not any(is_differentiated(x, 0) for x in arguments.flat):
            return self.fun(*arguments.fill(arguments.flat), **kwargs)
        if self not in primitive_vjps and self not in primitive_jvps:
            raise NotImplementedError(
                f"VJP of {self.__name__} wrt argnums {arguments.argnums} not defined. State it with "
                f"defvjp({self.__name__}, rule), or the tangent with defjvp."
            )
        return self.outcome(arguments, kwargs)

    # ---- as autograd spelled it before its version 1.2

    def defvjp(self, vjpmaker: Callable[..., Any], argnum: int = 0) -> None:
        """State the gradient by one argument as ``rule(g, ans, vs, gvs, *args)``; an old spelling."""
        _warn_of_old("defvjp")

        def rule(ans: Tree, *args: object, **kwargs: object) -> Callable[[Any], Any]:
            return lambda g: vjpmaker(g, ans, None, None, *args, **kwargs)

        self._state(argnum, rule)

    def defgrad(self, gradfun: Callable[..., Any], argnum: int = 0) -> None:
        """State the gradient by one argument as ``rule(ans, *args)``; an old spelling."""
        _warn_of_old("defgrad")
        self._state(argnum, gradfun)

    def defvjp_is_zero(self, argnums: Sequence[int] = (0,)) -> None:
        """State that the gradients by some arguments are zero; an old spelling."""
        _warn_of_old("defvjp_is_zero")
        for argnum in argnums:
            self._state(argnum, None)

    def _state(self, argnum: int, rule: Callable[..., Any] | None) -> None:
        self._old_rules[argnum] = rule
        defvjp(self, *self._old_rules.values(), argnums=tuple(self._old_rules))


def _warn_of_old(name: str) -> None:
    warnings.warn(f"The {name} method is deprecated: use pullback.autograd.extend.defvjp.", stacklevel=3)


def primitive(f_raw: Callable[..., Any]) -> Primitive:
    """Return a function whose derivatives are stated by ``defvjp`` and ``defjvp``.

    f_raw: called with plain NumPy values; what it returns is an array, a number, or a container of them.

    >>> import numpy as np
    >>> from pullback.autograd import grad
    >>> @primitive
    ... def square(x):
    ...     return np.asarray(x) ** 2
    >>> defvjp(square, lambda ans, x: lambda g: g * 2 * x)
    >>> grad(square)(3.0)
    np.float64(6.0)
    """
    return Primitive(f_raw)


def _is_primitive(face: str, fun: Function) -> bool:
    """Return whether a function is a primitive; a rule for another one has no effect, in autograd as well."""
    if isinstance(fun, Primitive):
        return True
    name = getattr(fun, "__name__", fun)
    warnings.warn(
        f"{face}: {name} is no primitive, so this rule is not used: NumPy's functions have their derivatives here, and "
        f"another function is differentiated through. For a rule of its own write {name} = primitive({name}) first.",
        stacklevel=4,
    )
    return False


def defvjp_argnums(fun: Function, vjpmaker: Callable[..., Any]) -> None:
    """State the gradients of a primitive by several arguments at once.

    fun: a primitive.
    vjpmaker: ``rule(argnums, ans, args, kwargs)``, which returns a function from the cotangent to one gradient each.
    """
    if _is_primitive("defvjp", fun):
        primitive_vjps[fun] = vjpmaker


def defvjp_argnum(fun: Function, vjpmaker: Callable[..., Any]) -> None:
    """State the gradient of a primitive by any argument.

    fun: a primitive.
    vjpmaker: ``rule(argnum, ans, args, kwargs)``, which returns a function from the cotangent to the gradient.
    """

    def rule(argnums: Sequence[int], *rest: object) -> Callable[[Any], list[Any]]:
        vjps = [vjpmaker(argnum, *rest) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, rule)


def defvjp(fun: Function, *vjpmakers: Callable[..., Any] | None, argnums: Sequence[int] | None = None) -> None:
    """State the gradients of a primitive argument by argument.

    fun: a primitive.
    vjpmakers: for each argument ``rule(ans, *args, **kwargs)``, which returns a function from the cotangent to the
        gradient; None for a gradient of zero.
    argnums: the arguments that the rules are for; the first ones if it is not given.
    """
    rules = dict(zip(count() if argnums is None else argnums, vjpmakers, strict=False))
    _check_rules("VJP", fun, rules)

    def rule(
        given: Sequence[int], ans: Tree, args: Sequence[Any], kwargs: dict[str, Any]
    ) -> Callable[[Any], list[Any]]:
        missing = [i for i in given if i not in rules]
        if missing:
            raise NotImplementedError(f"VJP of {fun.__name__} wrt argnum {missing[0]} not defined")
        makers = [rules[i] for i in given]
        vjps = [None if maker is None else maker(ans, *args, **kwargs) for maker in makers]
        return lambda g: [None if vjp is None else vjp(g) for vjp in vjps]

    defvjp_argnums(fun, rule)


def _check_rules(kind: str, fun: Function, rules: dict[int, Any]) -> None:
    for rule in rules.values():
        if rule is not None and not callable(rule) and not (kind == "JVP" and rule == "same"):
            raise TypeError(f"Bad {kind} '{rule}' for '{getattr(fun, '__name__', fun)}'")


def defjvp_argnums(fun: Function, jvpmaker: Callable[..., Any]) -> None:
    """State the tangent of a primitive for several arguments that move at once.

    fun: a primitive.
    jvpmaker: ``rule(argnums, tangents, ans, args, kwargs)``, which returns the tangent of the value.
    """
    if _is_primitive("defjvp", fun):
        primitive_jvps[fun] = jvpmaker
        linear_arguments.pop(fun, None)


def _sum_parts(parts: list[Any]) -> Any:
    known = [p for p in parts if p is not None]
    if not known:
        return None
    if children(known[0]) is None:
        return add_terms(known)
    leaves = [add_terms(list(row)) for row in zip(*(align(known[0], p) for p in known), strict=True)]
    return tree.replace_leaves(known[0], leaves)


def defjvp_argnum(fun: Function, jvpmaker: Callable[..., Any]) -> None:
    """State the tangent of a primitive for any one argument that moves; they are added.

    fun: a primitive.
    jvpmaker: ``rule(argnum, tangent, ans, args, kwargs)``, which returns its part of the tangent of the value.
    """

    def rule(argnums: Sequence[int], gs: Sequence[Any], ans: Tree, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        return _sum_parts([jvpmaker(i, g, ans, args, kwargs) for i, g in zip(argnums, gs, strict=True)])

    defjvp_argnums(fun, rule)


def _replace(args: Sequence[Any], i: int, new: object) -> list[Any]:
    return [*args[:i], new, *args[i + 1 :]]


def defjvp(fun: Function, *jvpfuns: Callable[..., Any] | str | None, argnums: Sequence[int] | None = None) -> None:
    """State the tangent of a primitive argument by argument.

    fun: a primitive.
    jvpfuns: for each argument ``rule(tangent, ans, *args, **kwargs)``, "same" if the function is linear in it, or None.
    argnums: the arguments that the rules are for; the first ones if it is not given.
    """
    rules = dict(zip(count() if argnums is None else argnums, jvpfuns, strict=False))
    _check_rules("JVP", fun, rules)

    def part(i: int, g: Tree, ans: Tree, args: Sequence[Any], kwargs: dict[str, Any]) -> Any:
        if i not in rules:
            raise NotImplementedError(f"JVP of {fun.__name__} wrt argnum {i} not defined")
        rule = rules[i]
        if callable(rule):
            return rule(g, ans, *args, **kwargs)
        return None if rule is None else fun(*_replace(args, i, g), **kwargs)

    defjvp_argnum(fun, part)
    linear_arguments[fun] = [i for i, rule in rules.items() if rule == "same"]


def def_linear(fun: Function) -> None:
    """State that a primitive is linear in each of its arguments.

    fun: a primitive.
    """
    defjvp_argnum(fun, lambda i, g, ans, args, kwargs: fun(*_replace(args, i, g), **kwargs))
    linear_arguments[fun] = range(sys.maxsize)
