"""How an op differentiates.  Its vjp and its jvp are derived from one fact.

    partials(dz/dx, dz/dy)        elementwise: a partial derivative per input (a number if constant, None if there is
                                  none); one with a parameter ``g`` is the whole product ``g * dz/dx``, for both modes
    linear(adjoint, ...)          linear in each input: an adjoint per input; the jvp is the op itself
    linear(each=adjoint)          the same for a list of inputs: one adjoint giving the list of cotangents
    linear(adjoint, into=add)     ``add(acc, g, *params)`` adds the cotangent into an array instead of making one
    linear(adjoint, rows=part)    ``part`` gives the rows of the first input in which the cotangent is not zero, as
                                  ``(indices, values)``, or None where these are not whole rows
    rule(vjp, ..., jvp=...)       anything else: both written out, the tangents of x, y being ``dx``, ``dy``
    rule(..., together=vjps)      the same, with one formula for the cotangents of all inputs, which share work
    rule(..., adjoint=True)       the same, with vjps that are already adjoints for complex numbers: none is conjugated
    no_derivative()               the derivative is zero wherever it exists

A formula's parameter names are what it needs (see formula.py).  Formulas are plain NumPy and operators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.formula import Formula, Names, get_parameters
from pullback.errors import DefinitionError

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Value


class Calculus:
    """How an op differentiates, the base of the classes here: it gives the positional vjps and the jvp of the op."""

    formulas: tuple[Any, ...] = ()
    each: Formula | None = None
    into: Formula | None = None
    rows: Formula | None = None
    together: Formula | None = None
    times = False  # whether formulas without ``g`` are partials, which are multiplied by it
    adjoint = False  # whether the vjps conjugate complex numbers themselves
    flows = True  # False: the cotangent of every input is zero
    mixes = True  # False: the dtype of the result does not depend on the inputs
    names: Names

    def bind(self, names: Names) -> None:
        """Check every formula's names, while the op is being defined."""
        self.names = names
        if self.each is not None:
            names.check(self.each)
        elif self.flows and len(self.formulas) != len(names.inputs):
            raise DefinitionError(
                f"{names.op}: {len(names.inputs)} inputs {names.inputs} but {len(self.formulas)} formulas."
            )
        for formula in (*self.formulas, self.rows, self.together):
            names.check(formula)

    def vjps(self) -> list[Any]:
        """Return the positional rules; compiled when the op is first used."""
        if not self.flows:
            return [None] * len(self.names.inputs)
        if self.each is not None:
            return [self.names.compile(self.each, False)]
        return [None if f is None else self.names.compile(f, self.times) for f in self.formulas]

    def row_rule(self) -> Any:
        """Return the positional rule that gives the rows of the first input with a cotangent; None if there is none."""
        return None if self.rows is None else self.names.compile(self.rows, False)

    def joint_rule(self) -> Any:
        """Return the positional rule that gives the cotangents of all inputs at once; None if there is none."""
        return None if self.together is None else self.names.compile(self.together, False)

    def differentiable(self, i: int) -> bool:
        """Return whether the op has a derivative in its input number ``i``."""
        return self.flows and (self.each is not None or self.formulas[i] is not None)

    def get_needed_names(self, i: int) -> frozenset[str]:
        """Return the names of the values that the rule of input ``i`` reads."""
        formula = self.each if self.each is not None else self.formulas[i]
        return frozenset(get_parameters(formula)) if callable(formula) else frozenset()

    def jvp(self, op: Op, z: Value, inputs: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        """Return the tangent of ``z``, or None for zero; a tangent of an input that is None is zero too."""
        raise NotImplementedError

    def call(self, formula: Formula, z: Value, inputs: Sequence[Any], params: Mapping[str, Any], **more: object) -> Any:
        """Return a formula of the values that its parameters name."""
        env = {"z": z, **params, **more}
        for n, x in zip(self.names.inputs, inputs, strict=False):
            env[n], env[f"{n}_shape"] = x, getattr(x, "shape", ())
        values = [env[n] for n in get_parameters(formula)]
        try:
            return formula(*values)
        except ZeroDivisionError:  # of Python numbers; those of NumPy are infinite or NaN
            return formula(*[z.dtype.type(x) if type(x) in (int, float) else x for x in values])


def add_terms(terms: list[Any]) -> Any:
    """Return the sum of a list of tensors or arrays; None if there are none.

    >>> add_terms([1.0, 2.0]), add_terms([])
    (3.0, None)
    """
    return sum(terms[1:], terms[0]) if terms else None


class partials(Calculus):
    times = True

    def __init__(self, *formulas: Formula | float | None) -> None:
        self.formulas = formulas

    def jvp(self, op: Op, z: Value, inputs: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        terms = []
        for f, t in zip(self.formulas, tangents, strict=True):
            if t is None or f is None:
                continue
            if not callable(f):
                terms.append(t if f == 1 else -t if f == -1 else t * f)
            elif "g" in get_parameters(f):
                terms.append(self.call(f, z, inputs, params, g=t))
            else:
                terms.append(t * self.call(f, z, inputs, params))
        return add_terms(terms)


class linear(Calculus):
    def __init__(
        self, *adjoints: Formula | None, each: Formula | None = None, into: Formula | None = None,
        rows: Formula | None = None,
    ) -> None:  # fmt: skip
        self.formulas, self.each, self.into, self.rows = adjoints, each, into, rows

    def jvp(self, op: Op, z: Value, inputs: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        if self.each is not None:  # linear in all inputs together
            moved = [np.zeros_like(x) if t is None else t for x, t in zip(inputs, tangents, strict=True)]
            return op.call(moved, params)
        terms = [
            op.call([*inputs[:i], t, *inputs[i + 1 :]], params)
            for i, t in enumerate(tangents)
            if t is not None and self.formulas[i] is not None
        ]
        return add_terms(terms)


class rule(Calculus):
    """Neither elementwise nor linear: the vjp (one formula per input) and the jvp are both written out."""

    def __init__(
        self, *vjps: Formula | None, jvp: Formula, adjoint: bool = False, together: Formula | None = None
    ) -> None:
        self.formulas, self._jvp, self.adjoint, self.together = vjps, jvp, adjoint, together

    def bind(self, names: Names) -> None:
        super().bind(names)
        names.check(self._jvp, frozenset(f"d{n}" for n in names.inputs))

    def jvp(self, op: Op, z: Value, inputs: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        moved = {f"d{n}": t for n, t in zip(self.names.inputs, tangents, strict=True)}
        for (name, t), x in zip(moved.items(), inputs, strict=True):
            if t is None and name in get_parameters(self._jvp):
                moved[name] = np.zeros_like(x)
        return self.call(self._jvp, z, inputs, params, **moved)


class no_derivative(Calculus):
    """The derivative is zero wherever it exists (comparisons, rounding): inputs get no cotangent."""

    flows = False

    def __init__(self, mixes: bool = True) -> None:
        self.mixes = mixes

    def jvp(self, op: Op, z: Value, inputs: Sequence[Any], tangents: Sequence[Any], params: Mapping[str, Any]) -> Any:
        return None
