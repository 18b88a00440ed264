"""Functions with a custom tangent: ``custom_jvp``, as in JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import partial
from typing import Any

from pullback.core import tree
from pullback.core.calculus import add_terms
from pullback.core.interpreter import level_of
from pullback.core.variable import Recorder, Variable, watch_below
from pullback.errors import ArgumentError, CustomGradientError
from pullback.transforms.captured import line_of, make_capture_error, make_variable_error
from pullback.transforms.custom import WithTangentRule
from pullback.transforms.custom_call import CustomCall
from pullback.transforms.custom_op import BodyRun, transpose
from pullback.transforms.enclosing import Scope
from pullback.transforms.linearity import has_values, is_linear, sample

# Of functions whose rule is being transposed: the level from which on tensors are tangents.
_tangent_levels: ContextVar[dict[Any, int]] = ContextVar("tangent_levels", default={})  # noqa: B039  # never changed


class TangentCall(CustomCall):
    """One call of a function with a custom tangent; its backward rule is the transpose of the tangent's rule."""

    owner: CustomJvp

    def run(self, values: Sequence[Any]) -> BodyRun:
        with Scope(values).open(), Recorder() as recorder:
            self.structure = self.body(values)
        zs = self.results_in(self.structure)
        read = [v for v in recorder.read.values() if v.trainable]
        tangents = partial(self._tangents, zs, values)

        def back(dys: list[Any]) -> list[Any]:
            if self._is_linear(tangents, values) is False:
                raise CustomGradientError(
                    f"{self.name}: the rule of the tangent is not linear in the tangents: for -c times the tangents it "
                    "does not return -c times the tangent. So it cannot be transposed for reverse mode (grad, vjp). "
                    f"Use custom_grad, which states the gradient ({line_of(self.owner.rule)})."
                )
            return [*transpose(partial(self._mark_tangents, tangents), dys, values), *(None for _ in read)]

        return BodyRun(zs, back, read)

    def _is_linear(self, tangents: Callable[[Sequence[Any]], Sequence[Any]], values: Sequence[Any]) -> bool | None:
        linear = is_linear(tangents, values) if all(map(has_values, values)) else None
        if linear is None:  # a program is being compiled: there are symbols, but no numbers
            with suppress(Exception), watch_below(0):
                xs = [sample(x) for x in values]
                linear = is_linear(partial(self._tangents, self.results_in(self.body(xs)), xs), xs)
        return linear

    def _tangents(self, zs: Sequence[Any], values: Sequence[Any], ts: Sequence[Any]) -> Sequence[Any]:
        return self.jvp(zs, values, ts, {})

    def _mark_tangents(self, rule: Callable[[Sequence[Any]], Sequence[Any]], ts: Sequence[Any]) -> Sequence[Any]:
        """Return the rule's tangents, while the function itself knows tensors that are tangents by their level."""
        level = min(map(level_of, ts))
        token = _tangent_levels.set({self.owner: level, **_tangent_levels.get()})
        try:
            return rule(ts)
        finally:
            _tangent_levels.reset(token)

    def jvp(
        self, z: Sequence[Any], primals: Sequence[Any], tangents: Sequence[Any], params: dict[str, Any]
    ) -> Sequence[Any]:
        if self.owner.rule is None:
            name = self.owner.__name__
            raise CustomGradientError(
                f"{self.name}: there is no rule for its tangent. Write @{name}.defjvp above a function "
                f"rule(primals, tangents) that returns (value, tangent) ({line_of(self.f)})."
            )
        return super().jvp(z, primals, tangents, params)

    def make_lost_error(self, ds: Sequence[Any], level: int) -> Exception:
        return make_capture_error(self.name, "the rule of the tangent", [self.owner.rule or self.f], level - 1, {}, ())

    def check_variables(self, variables: Sequence[Variable]) -> None:
        if variables:
            raise make_variable_error(self.name, variables, self.f, "Pass")


class CustomJvp(WithTangentRule):
    """The function that ``custom_jvp`` returns."""

    face = "custom_jvp"
    call = TangentCall

    def __init__(self, f: Callable[..., Any], jvp: Callable[..., Any] | None = None) -> None:
        super().__init__(f)
        if jvp is not None:
            self.defjvp(jvp)

    def __call__(self, *args: object, **kwargs: object) -> Any:
        level = _tangent_levels.get().get(self)
        if level is not None and any(level_of(x) >= level for x in tree.leaves(args)):
            # its rule applies it to tangents, so it is linear: transposed as it is
            return self.__wrapped__(*args, **kwargs)
        return super().__call__(*args, **kwargs)

    def settings(self) -> tuple[Any, ...]:
        return self.__wrapped__, self.rule

    def defjvps(self, *rules: Callable[..., Any] | None) -> None:
        """State the tangent argument by argument; their sum is the tangent of the value.

        rules: for each argument ``rule(t, value, *args)``, its part of the tangent, or ``None`` if that is zero.

        >>> import pullback as pb
        >>> product = pb.custom_jvp(lambda x, y: x * y)
        >>> product.defjvps(lambda dx, value, x, y: dx * y, lambda dy, value, x, y: x * dy)
        >>> pb.grads(product)([3.0, 5.0])
        [5.0, 3.0]
        """
        for rule in rules:
            if rule is not None and not callable(rule):
                got = type(rule).__name__
                raise ArgumentError(f"custom_jvp({self.__name__}): each rule must be a function or None, got {got}.")
        self.rule = partial(_sum_of_parts, self, rules)


def _sum_of_parts(
    owner: CustomJvp,
    rules: Sequence[Callable[..., Any] | None],
    primals: tuple[Any, ...],
    tangents: tuple[Any, ...],
    **kwargs: object,
) -> Any:
    if len(rules) != len(primals):
        raise ArgumentError(
            f"custom_jvp({owner.__name__}): {len(rules)} rules were given to defjvps, but there are {len(primals)} "
            "arguments; give one for each, None where there is no derivative."
        )
    value = owner(*primals, **kwargs)
    terms = [
        rule(t, value, *primals, **kwargs)
        for rule, t in zip(rules, tangents, strict=True)
        if rule is not None and tree.leaves(t)
    ]
    return value, add_terms(terms)


def custom_jvp(f: Callable[..., Any] | None = None, *, jvp: Callable[..., Any] | None = None) -> Any:
    """Return ``f`` with a custom tangent, from which the gradient follows by transposition.

    f: any function of tensors or trees of them; keyword arguments are passed on and not differentiated.
    jvp: the rule, ``rule(primals, tangents)``, which returns ``(value, tangent)``.  ``primals`` is the tuple of the
        arguments, ``tangents`` that of their tangents: zeros for constants, ``None`` for what is not a tensor.
        ``@f.defjvp`` and ``f.defjvps`` state it afterwards.

    Forward mode runs the rule; reverse mode transposes it, so it must be linear in the tangents.  The rule is itself
    differentiated for higher orders, and works under ``vmap`` and ``compile``.

    >>> import pullback as pb
    >>> @pb.custom_jvp
    ... def log1pexp(x):
    ...     return pb.log(1 + pb.exp(x))
    >>> @log1pexp.defjvp
    ... def log1pexp_jvp(primals, tangents):
    ...     (x,), (dx,) = primals, tangents
    ...     return log1pexp(x), pb.sigmoid(x) * dx
    >>> pb.jvp(log1pexp, [0.0], [2.0])
    (0.6931471805599453, 1.0)
    >>> pb.grad(log1pexp)(100.0), pb.grad(pb.grad(log1pexp))(0.0)
    (1.0, 0.25)
    """
    return partial(CustomJvp, jvp=jvp) if f is None else CustomJvp(f, jvp)
