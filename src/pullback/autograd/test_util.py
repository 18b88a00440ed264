"""Checks of derivatives by finite differences in random directions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, Any

from pullback.autograd.core import make_jvp, make_vjp, vspace
from pullback.autograd.wrap_util import get_name, unary_to_nary

if TYPE_CHECKING:
    from pullback.typing import Function, Tree

TOL = 1e-6
RTOL = 1e-6
EPS = 1e-6


def scalar_close(a: float, b: float) -> bool:
    """Return whether two numbers agree to six digits.

    >>> scalar_close(1.0, 1.0 + 1e-9)
    True
    """
    return bool(abs(a - b) < TOL or abs(a - b) / abs(a + b) < RTOL)


def make_numerical_jvp(f: Callable[..., Any], x: Tree) -> Callable[[Any], Any]:
    """Return the central difference of ``f`` at ``x`` as a function of the direction."""
    inputs, outputs = vspace(x), vspace(f(x))

    def jvp(v: Tree) -> Any:
        up, down = (f(inputs.add(x, inputs.scalar_mul(v, step))) for step in (EPS / 2, -EPS / 2))
        return outputs.scalar_mul(outputs.add(up, outputs.scalar_mul(down, -1.0)), 1.0 / EPS)

    return jvp


def check_vjp(f: Callable[..., Any], x: Tree) -> None:
    """Compare the gradient of ``f`` at ``x`` with finite differences in one random direction."""
    vjp, y = make_vjp(f, x)
    inputs, outputs = vspace(x), vspace(y)
    v, w = inputs.randn(), outputs.randn()
    gradient = inputs.covector(vjp(outputs.covector(w)))
    assert vspace(gradient) == inputs, f"The gradient is in {vspace(gradient)}, the argument in {inputs}."
    exact = inputs.inner_prod(v, gradient)
    numeric = outputs.inner_prod(w, make_numerical_jvp(f, x)(v))
    assert scalar_close(numeric, exact), (
        f"Derivative (VJP) check of {get_name(f)} failed with arg {x}:\nanalytic: {exact}\nnumeric:  {numeric}"
    )


def check_jvp(f: Callable[..., Any], x: Tree) -> None:
    """Compare the tangent of ``f`` at ``x`` with finite differences in one random direction."""
    v = vspace(x).randn()
    check_equivalent(make_jvp(f, x)(v)[1], make_numerical_jvp(f, x)(v))


def check_equivalent(x: Tree, y: Tree) -> None:
    """Refuse two values that are not of one vector space and close in a random direction.

    >>> check_equivalent([1.0, 2.0], [1.0, 2.0])
    """
    space = vspace(x)
    assert space == vspace(y), f"VSpace mismatch:\nx: {space}\ny: {vspace(y)}"
    v = space.randn()
    assert scalar_close(space.inner_prod(x, v), space.inner_prod(y, v)), f"Value mismatch:\nx: {x}\ny: {y}"


@unary_to_nary
def check_grads(f: Callable[..., Any], x: Tree, modes: Sequence[str] | None = None, order: int = 2) -> None:
    """Compare derivatives with finite differences, in both modes and up to an order.

    fun: the function.
    argnum: the argument to differentiate by, or several in a tuple.
    modes: "fwd", "rev" or both.
    order: how often to differentiate.
    """
    modes = ["fwd", "rev"] if modes is None else modes
    if not all(mode in ("fwd", "rev") for mode in modes):
        raise ValueError(f"check_grads: modes must be from 'fwd' and 'rev', got {modes}.")
    if "fwd" in modes:
        check_jvp(f, x)
        if order > 1:
            _check_next(lambda x, v: make_jvp(f, x)(v)[1], f"jvp_{get_name(f)}", x, vspace(x).randn(), modes, order)
    if "rev" in modes:
        check_vjp(f, x)
        if order > 1:
            v = vspace(f(x)).randn()
            _check_next(lambda x, v: make_vjp(f, x)[0](v), f"vjp_{get_name(f)}", x, v, modes, order)


def _check_next(derivative: Function, name: str, x: Tree, v: Tree, modes: Sequence[str], order: int) -> None:
    derivative.__name__ = name
    check_grads(derivative, (0, 1), modes, order=order - 1)(x, v)


def combo_check(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Callable[..., None]:
    """Return a function that checks the gradients for every combination of the arguments it is given.

    fun: the function; further arguments are those of ``check_grads``.
    """

    def check(*lists: Sequence[Any], **named_lists: Sequence[Any]) -> None:
        for choice in product(*lists):
            for named in product(*([(k, x) for x in xs] for k, xs in named_lists.items())):
                check_grads(fun, *args, **kwargs)(*choice, **dict(named))

    return check
