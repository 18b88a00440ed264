"""Where did the NaN come from?  ``diagnose`` for one function, ``debug_nans`` for a block of code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.compiler.api import Compiled
from pullback.core import tree
from pullback.core.convert import float_of
from pullback.diagnostics import switches
from pullback.diagnostics.entrypoints import guarding
from pullback.diagnostics.findings import NanReport
from pullback.diagnostics.looking import Names, Naming, all_finite, look_at, look_for_new, trace_back, unnamed
from pullback.diagnostics.recorded import entering, pulling
from pullback.diagnostics.running import Examined, Ran, is_number
from pullback.errors import NanError
from pullback.transforms.argnums import Call, WholeCall
from pullback.transforms.arguments import named_leaves, parameters_of
from pullback.transforms.batch import Mapped
from pullback.transforms.checkpoint import Recomputed
from pullback.transforms.custom import Customized
from pullback.transforms.forward import jvp, push_once
from pullback.transforms.grad import Differentiated
from pullback.transforms.jacobian import Jacobian, times_hessian
from pullback.transforms.linear import record_pull, record_push
from pullback.transforms.reverse import GradientTape
from pullback.transforms.sparse import SparseJacobian
from pullback.transforms.variables import differentiate_by_variables

__all__ = ["debug_nans", "diagnose"]


class Diagnosed(Examined):
    """What ``diagnose`` makes."""

    face = "diagnose"

    def __call__(self, *args: Any, **kwargs: Any) -> NanReport:
        ran = Ran(self.__wrapped__, args, kwargs)
        return NanReport([*ran.values, *ran.gradients], ran.monitor.notes)


def diagnose(f: Callable[..., Any]) -> Diagnosed:
    """``f`` to a function of the same arguments that says where a NaN or infinity in its value or gradients came from.

    It runs ``f`` forward, and back to all arguments and to the trainable variables that it reads.  The report names the
    first op that made a NaN or infinity, the line of the program it stands in (also when it shows on the way back),
    the index, the numbers there, the ops from there to the result, and what helps.  NaNs that nothing depends on are
    not reported.

    >>> import pullback as pb
    >>> report = pb.diagnose(lambda x: pb.log(1 + pb.exp(x)))(1000.0)
    >>> report.op, report.phase, report.inputs
    ('exp', 'forward', [np.float64(1000.0)])
    >>> report.backward.op, report.backward.operands
    ('exp', [np.float64(0.0), np.float64(inf)])
    """
    return Diagnosed(f)


@contextmanager
def debug_nans() -> Iterator[None]:
    """In this block, in this thread, a NaN or infinity that comes up is an error that says where it came from.

    It holds for ``grad`` and its family, ``variable_grads``, ``jvp``, ``vjp``, ``linearize``, ``jacobian``,
    ``hessian``, ``hvp``, the sparse ones, ``GradientTape``, and for all that a compiled function gives.  Where no
    gradient is taken it holds for ops and functions of tensors, ``vmap`` and functions with a gradient of their own:
    a result must have no NaN, and no infinity unless one was given.  A function whose result is not finite is run a
    second time, under watch, for the report (see ``diagnose``), which is in the error as ``report``.

    >>> import pullback as pb
    >>> with pb.debug_nans():
    ...     pb.grad(lambda x: pb.sqrt(x))(0.0)
    Traceback (most recent call last):
    ...
    pullback.errors.NanError: Not finite: the gradient of x...
    >>> with pb.debug_nans():
    ...     pb.tensor([1.0, 0.0]).log()
    Traceback (most recent call last):
    ...
    pullback.errors.NanError: Not finite: the result...
    """
    with guarding(), switches.switched(guarded=True):
        yield


def _guarding(naming: Naming) -> Any:
    """Makes of a function the same one, which looks at what it gives; only the outermost one of a call does."""
    return lambda own: lambda *args, **kwargs: look_at(own, own, args, kwargs, naming)


def _guarding_values(own: Any) -> Any:
    """The same for a function that takes no gradient: what it was given may be infinite, and so may what it gives."""

    def guarded(*args: Any, **kwargs: Any) -> Any:
        if not switches.mode().guarded:
            return own(*args, **kwargs)
        return look_for_new(own, args, kwargs, _of_function, is_number)

    return guarded


def _guarding_both(naming: Naming) -> Any:
    """The same for a function that gives another one beside the value."""
    return lambda own: _guard_both(own, naming)


def _guard_both(own: Any, naming: Naming) -> Any:
    def guarded(xs: Any, call: Any) -> Any:
        y, move, aux = look_at(own, own, (xs, call), {}, naming)

        def again(xs: Any, call: Any, given: Any) -> Any:
            return own(xs, call)[1](*given)

        def moved(*given: Any) -> Any:
            return look_at(lambda *_: move(*given), again, (xs, call, given), {}, naming)

        return y, moved, aux

    return guarded


def _guarding_sparse(own: Any) -> Any:
    """The same for a matrix of SciPy's, of which nobody knows how it came about: its product with ones tells."""

    def again(self: SparseJacobian, x: Any, call: Any) -> Any:
        return jvp(self.differentiated(call), [x], [np.ones(x.shape, float_of(x.dtype))])

    return lambda self, x, call: look_at(own, again, (self, x, call), {})


def _guarding_compiled(own: Any) -> Any:
    """The same for a program: if all it was given and read was finite, so must be what it gives and assigns."""

    def run(self: Compiled, *args: Any, **kwargs: Any) -> Any:
        call = self.called(args, kwargs) if switches.mode().guarded else None
        if call is None or not all_finite((args, kwargs, [v.held for v in call[0].reads])):
            return own(self, *args, **kwargs)
        variables = [*call[0].assigned, *call[0].written_rows]
        before = [v.held for v in variables]

        def again(*args: Any, **kwargs: Any) -> Any:
            after = [v.held for v in variables]
            try:
                _hold(variables, before)
                return self.__wrapped__(*args, **kwargs), [v.held for v in variables]
            finally:
                _hold(variables, after)

        out = own(self, *args, **kwargs)
        if all_finite((out, [v.held for v in variables])):
            return out
        # Python's own numbers are not divided by zero
        plain, named = tree.mapped(lambda x: np.float64(x) if type(x) is float else x, (args, kwargs))
        with np.errstate(all="ignore"):
            again(*plain, **named)  # a gradient in it that is not finite is an error of its own
            with switches.switched(guarded=False):
                raise NanError(trace_back(again, args, kwargs))

    return run


def _unguarded(own: Any) -> Any:
    """The same function, in which nothing is looked at: while a program is written down there are no numbers."""

    def unguarded(*args: Any) -> Any:
        with switches.switched(guarded=False):
            return own(*args)

    return unguarded


def _hold(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for v, held in zip(variables, values, strict=True):
        v.hold(held.value)


def _of_function(args: tuple[Any, ...]) -> Names:
    """``f`` or what was made of it, and then its arguments."""
    f = _program(args[0])
    return Names(_name(f), ["", *parameters_of(f, len(args) - 1)])


def _of_gradients(args: tuple[Any, ...]) -> Names:
    """What gives the value and the gradients of a list of arguments, or of those that are chosen."""
    self, xs, _, *rest = args
    call = rest[0] if rest and isinstance(rest[0], Call) else WholeCall(_program(self), xs)
    return _of_call(call, xs, ["", None], ["the value"], "the gradient of {}")


def _of_jacobian(args: tuple[Any, ...]) -> Names:
    _, xs, call = args
    return _of_call(call, xs, ["", None], [], "the derivative by {}")


def _of_tangent(args: tuple[Any, ...]) -> Names:
    xs, _, call = args
    return _of_call(call, xs, [None], ["the value", "the tangent"])


def _of_hessian_product(args: tuple[Any, ...]) -> Names:
    xs, _, call = args
    return _of_call(call, xs, [None], [], "the product for {}")


def _of_pull(args: tuple[Any, ...]) -> Names:
    xs, call, *given = args
    return _of_call(call, xs, [None], [], "the gradient of {}" if given else "")


def _of_push(args: tuple[Any, ...]) -> Names:
    xs, call, *_ = args
    return _of_call(call, xs, [None], [])


def _of_call(call: Call, xs: Sequence[Any], arguments: list[Any], results: list[str], each: str = "") -> Names:
    """The names of a call of ``f`` that is differentiated by ``xs``, whose names are in place of None in ``arguments``.

    The results are those that are given and, if ``each`` is a text, one for each leaf of ``xs``.
    """
    names, f = call.names, _program(call.f)
    leaves = [label for name, x in zip(names, xs, strict=True) for label, _ in named_leaves(name, x)]
    given = [names if name is None else name for name in arguments]
    return Names(_name(f), given, [*results, *(each.format(label) for label in leaves if each)])


def _program(f: Any) -> Any:
    """The function that a transformed one was made of."""
    return getattr(f, "__wrapped__", f)


def _name(f: Any) -> str:
    return getattr(f, "__name__", type(f).__name__)


switches.asking(GradientTape.__enter__, entering)
switches.asking(GradientTape._pulled, pulling)
switches.asking(Compiled._run, _guarding_compiled)
switches.asking(Compiled._program, _unguarded)
switches.asking(SparseJacobian.at, _guarding_sparse)
switches.asking(Differentiated.pulled, _guarding(_of_gradients))
switches.asking(Jacobian.at, _guarding(_of_jacobian))
switches.asking(push_once, _guarding(_of_tangent))
switches.asking(times_hessian, _guarding(_of_hessian_product))
switches.asking(differentiate_by_variables, _guarding(unnamed))
switches.asking(Mapped.__call__, _guarding_values)
switches.asking(Customized.__call__, _guarding_values)
switches.asking(Recomputed.__call__, _guarding_values)
switches.asking(record_pull, _guarding_both(_of_pull))
switches.asking(record_push, _guarding_both(_of_push))
