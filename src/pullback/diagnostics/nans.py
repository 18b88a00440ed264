"""Where did the NaN come from?  ``diagnose`` for one function, ``debug_nans`` for a block of code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from pullback.compiler.compiled import Compiled
from pullback.core import tree
from pullback.core.convert import float_of
from pullback.core.rowsparse import RowSparse
from pullback.core.tape import ARRAYS
from pullback.diagnostics import switches
from pullback.diagnostics.findings import NanReport
from pullback.diagnostics.recorded import entering, pulling
from pullback.diagnostics.running import Examined, Ran, Result, is_number
from pullback.diagnostics.steps import finite
from pullback.diagnostics.watch import Monitor
from pullback.errors import NanError
from pullback.transforms.forward import jvp
from pullback.transforms.grad import Differentiated, as_leaf
from pullback.transforms.jacobian import Jacobian, hvp
from pullback.transforms.leaves import whole_mapped
from pullback.transforms.linear import linearize, vjp
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
    """In this block, in this thread, a gradient that is not finite is an error that says where that came from.

    It holds for ``grad`` and its family, ``variable_grads``, ``jvp``, ``vjp``, ``linearize``, ``jacobian``,
    ``hessian``, ``hvp``, the sparse ones, ``GradientTape``, and for all that a compiled function gives.  A function
    whose result is not finite is run a second time, under watch, for the report (see ``diagnose``), which is in the
    error as ``report``.

    >>> import pullback as pb
    >>> with pb.debug_nans():
    ...     pb.grad(lambda x: pb.sqrt(x))(0.0)
    Traceback (most recent call last):
    ...
    pullback.errors.NanError: Not finite: ...
    """
    with switches.switched(guarded=True):
        yield


def _guarding(own: Any) -> Any:
    """The same function, which looks at what it gives; only the outermost one of a call does."""
    return lambda *args, **kwargs: _looked_at(own, own, args, kwargs)


def _guarding_both(own: Any) -> Any:
    """The same for a function that gives another one beside the value."""

    def guarded(f: Any, *args: Any) -> Any:
        y, move = _looked_at(own, own, (f, *args), {})

        def again(f: Any, args: Any, given: Any) -> Any:
            return own(f, *args)[1](*given)

        def moved(*given: Any) -> Any:
            return _looked_at(lambda *_: move(*given), again, (f, args, given), {})

        return y, moved

    return guarded


def _guarding_sparse(own: Any) -> Any:
    """The same for a matrix of SciPy's, of which nobody knows how it came about: its product with ones tells."""

    def again(self: SparseJacobian, x: Any) -> Any:
        return jvp(self.differentiated(), [x], [np.ones(x.shape, float_of(x.dtype))])

    return lambda self, x: _looked_at(own, again, (self, x), {})


def _guarding_compiled(own: Any) -> Any:
    """The same for a program: if all it was given and read was finite, so must be what it gives and assigns."""

    def run(self: Compiled, *args: Any, **kwargs: Any) -> Any:
        call = self.called(args, kwargs) if switches.mode().guarded else None
        if call is None or not _all_finite((args, kwargs, [v.held for v in call[0].reads])):
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
        if _all_finite((out, [v.held for v in variables])):
            return out
        # Python's own numbers are not divided by zero
        plain, named = tree.mapped(lambda x: np.float64(x) if type(x) is float else x, (args, kwargs))
        with np.errstate(all="ignore"):
            again(*plain, **named)  # a gradient in it that is not finite is an error of its own
            with switches.switched(guarded=False):
                raise NanError(_traced(again, args, kwargs))

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


def _looked_at(call: Any, again: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """What ``call`` gives; an error if it is not finite, with the report of ``again``."""
    if not switches.mode().guarded:
        return call(*args, **kwargs)
    with switches.switched(guarded=False), np.errstate(all="ignore"):
        out = call(*args, **kwargs)
        if _all_finite(out):
            return out
        raise NanError(_traced(again, args, kwargs))


def _all_finite(out: Any) -> bool:
    return all(finite(v) for v in map(_numbers, tree.leaves(out)) if isinstance(v, (*ARRAYS, float)))


def _numbers(leaf: Any) -> Any:
    """Those that are stored of a sparse array; anything else as it is."""
    if isinstance(leaf, RowSparse):
        return leaf.values
    return leaf.data if hasattr(leaf, "nnz") else leaf


def _traced(own: Any, args: Any, kwargs: Any) -> NanReport | str:
    """The report of a second run of a function that gives gradients."""
    monitor = Monitor()

    def lift(x: Any) -> Any:
        return monitor.lifted(as_leaf(x, "debug_nans")) if is_number(x) else x

    # a list is one of inputs here, also if they are plain numbers
    given = [
        type(a)(whole_mapped(lift, x) for x in a) if type(a) in (list, tuple) else whole_mapped(lift, a) for a in args
    ]
    out = monitor.run(own, *given, **kwargs)
    report = NanReport([Result("the result", v, monitor.note_of(v)) for v in tree.leaves(out)], monitor.notes)
    return report or "Not finite: the result; but a second run, to find out why, gave finite numbers."


switches.asking(GradientTape.__enter__, entering)
switches.asking(GradientTape._pulled, pulling)
ONE: Sequence[Any] = (Differentiated.pulled, Jacobian.__call__, jvp, hvp, differentiate_by_variables)
BOTH: Sequence[Any] = (vjp, linearize)
switches.asking(Compiled._run, _guarding_compiled)
switches.asking(Compiled._program, _unguarded)
switches.asking(SparseJacobian.__call__, _guarding_sparse)
for _function in (*ONE, *BOTH):
    switches.asking(_function, _guarding_both if _function in BOTH else _guarding)
