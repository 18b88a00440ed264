"""Where a NaN came from: ``diagnose`` for one function, ``debug_nans`` for a block of code."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import hooks, tree
from pullback.core.convert import float_of
from pullback.core.op import perform_observed
from pullback.core.tensor import ARRAYS, BY_KERNEL, Tensor
from pullback.core.variable import get_trace
from pullback.diagnostics.finite_checks import (
    Naming,
    UserNames,
    are_finite,
    check_finite,
    check_new,
    name_nothing,
    report_origin,
)
from pullback.diagnostics.monitored_run import Examined, MonitoredRun, is_number
from pullback.diagnostics.nan_report import NanReport
from pullback.diagnostics.record import make_record
from pullback.diagnostics.tape_report import Push, check_pulled
from pullback.errors import NanError
from pullback.transforms.argnums import BoundCall, WholeCall
from pullback.transforms.custom_op import is_differentiated
from pullback.transforms.forward import jvp
from pullback.transforms.leaf_names import list_parameter_names, name_leaves
from pullback.transforms.sparse import SparseJacobian

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.core.tensor import Tensor


class Diagnosed(Examined):
    """The function that ``diagnose`` returns."""

    face = "diagnose"

    def __call__(self, *args: object, **kwargs: object) -> NanReport:
        ran = MonitoredRun(self.__wrapped__, args, kwargs)
        report = NanReport([*ran.values, *ran.gradients], ran.monitor.notes)
        report.record = make_record(ran, self.__name__)
        return report


def diagnose(f: Callable[..., Any]) -> Diagnosed:
    """Return a function of the same arguments that reports where a NaN or infinity in value or gradients came from.

    It runs ``f`` and the backward pass to all arguments and to the trainable variables that it reads.  The report names
    the first op that made a NaN or infinity, its line in the program (for ops of the backward pass too), the index, the
    numbers there, the ops from there to the result, and a suggestion.  NaNs on which no result depends are not
    reported.

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
    """In this block and thread, raise an error that names the op if a NaN or infinity comes up.

    It checks the results of ``grad`` and similar functions, ``variable_grads``, ``jvp``, ``vjp``, ``linearize``,
    ``jacobian``, ``hessian``, ``hvp``, their sparse versions, ``GradientTape``, and compiled functions.  Without a
    gradient it checks ops and functions of tensors, ``vmap`` and functions with a custom gradient: a result must have
    no NaN, and no infinity unless an argument has one.  A function whose result is not finite is run again under a
    monitor; the error has the report (see ``diagnose``) as its attribute ``report``.

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
    with hooks.observe(NanGuard(), without=NanGuard):
        yield


class NanGuard(hooks.CallObserver):
    """Checks the results of the ops, functions made of ops, transforms and compiled functions that a program calls.

    It is off inside such a call: intermediate results are not checked.
    """

    events = hooks.CallObserver.events | {"record_lines"}
    ops = None

    def run_call(self, entry: str, function: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Run a call, and raise an error if its result is not finite."""
        with hooks.observe(without=NanGuard):
            if get_trace() is not None:  # while a program is compiled there are no numbers
                return function(*args, **kwargs)
            return CALLS[entry](function, args, kwargs)

    def perform(self, op: Op, args: Sequence[Any], params: dict[str, Any]) -> Any:
        """Perform an op, and raise an error if its result is not finite, unless it is differentiated."""
        if get_trace() is not None or _is_differentiated(args):
            return perform_observed(op, args, params, NanGuard)

        def call(*args: Any, **params: object) -> Any:
            return op.call(args[0] if op.variadic else args, params)

        with hooks.observe(without=NanGuard):
            given = (list(args),) if op.variadic else tuple(args)
            return check_new(call, given, params, lambda _: UserNames(op.name, op.inputs), _is_followed)

    def record_lines(self, tape: Any) -> None:
        """Let a tape remember the line of the program in which each step was recorded."""
        tape.push = Push(tape.nodes)


def _check_derivatives(naming: Naming) -> Any:
    return lambda function, args, kwargs: check_finite(function, function, args, kwargs, naming)


def _check_values(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Check a call that takes no gradient: its result may be infinite if its arguments are."""
    return check_new(function, args, kwargs, _name_function, is_number)


def _check_ops(naming: Callable[[Any, tuple[Any, ...]], UserNames]) -> Any:
    """Return the check of a function made of ops, which is skipped where it is differentiated."""

    def check(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if _is_differentiated((args, kwargs)):
            return function(*args, **kwargs)
        return check_new(function, args, kwargs, lambda args: naming(function, args), _is_followed)

    return check


def _check_both(naming: Naming) -> Any:
    """Return the check of a function that returns another one beside the value, whose results are checked too."""

    def check(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        y, move, aux = check_finite(function, function, args, kwargs, naming)

        def again(*args: Any) -> Any:
            *before, given = args
            return function(*before)[1](*given)

        def move_checked(*given: object) -> Any:
            if not isinstance(hooks.find("run_call"), NanGuard):
                return move(*given)
            with hooks.observe(without=NanGuard):
                return check_finite(lambda *_: move(*given), again, (*args, given), {}, naming)

        return y, move_checked, aux

    return check


def _check_sparse(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Check a sparse matrix; its origin is found from its product with ones."""

    def again(self: SparseJacobian, x: Tensor, call: WholeCall) -> Any:
        return jvp(self.get_function(call), [x], [np.ones(x.shape, float_of(x.dtype))])

    return check_finite(function, again, args, kwargs)


def _check_compiled(function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Check a compiled call: if all that it reads is finite, its results and assigned variables must be."""
    compiled, *given = args
    call = compiled.find_program(tuple(given), kwargs)
    if call is None:  # a transform follows an argument: it sees the function itself
        with hooks.observe(NanGuard()):
            return compiled.__wrapped__(*given, **kwargs)
    if not are_finite((given, kwargs, [v.held for v in call[0].reads])):
        return function(*args, **kwargs)
    variables = [*call[0].assigned, *call[0].written_rows]
    before = [v.held for v in variables]

    def again(*args: object, **kwargs: object) -> Any:
        after = [v.held for v in variables]
        try:
            _assign_all(variables, before)
            return compiled.__wrapped__(*args, **kwargs), [v.held for v in variables]
        finally:
            _assign_all(variables, after)

    out = function(*args, **kwargs)
    if are_finite((out, [v.held for v in variables])):
        return out
    # Python's own numbers are not divided by zero
    plain, named = tree.map_leaves(lambda x: np.float64(x) if type(x) is float else x, (tuple(given), kwargs))
    with np.errstate(all="ignore"):
        with hooks.observe(NanGuard()):
            again(*plain, **named)  # a gradient in it that is not finite is an error of its own
        raise NanError(report_origin(again, tuple(given), kwargs))


def _assign_all(variables: Sequence[Any], values: Sequence[Any]) -> None:
    for v, value in zip(variables, values, strict=True):
        v.hold(value.value)


def _name_function(args: tuple[Any, ...]) -> UserNames:
    """Return the names in a call of ``f``, or of the function that a transform made from it."""
    f = _find_program(args[0])
    return UserNames(_get_name(f), ["", *list_parameter_names(f, len(args) - 1)])


def _name_gradients(args: tuple[Any, ...]) -> UserNames:
    """Return what gives the value and the gradients of a list of arguments, or of those that are chosen."""
    _, body, xs, _, given = args
    call = given if isinstance(given, BoundCall) else WholeCall(_find_program(body.__self__), xs)
    return _name_call(call, xs, ["", "", None], ["the value"], "the gradient of {}")


def _name_jacobian(args: tuple[Any, ...]) -> UserNames:
    _, xs, call = args
    return _name_call(call, xs, ["", None], [], "the derivative by {}")


def _name_tangent(args: tuple[Any, ...]) -> UserNames:
    xs, _, call = args
    return _name_call(call, xs, [None], ["the value", "the tangent"])


def _name_hessian_product(args: tuple[Any, ...]) -> UserNames:
    xs, _, call = args
    return _name_call(call, xs, [None], [], "the product for {}")


def _name_pull(args: tuple[Any, ...]) -> UserNames:
    xs, call, *given = args
    return _name_call(call, xs, [None], [], "the gradient of {}" if given else "")


def _name_push(args: tuple[Any, ...]) -> UserNames:
    xs, call, *_ = args
    return _name_call(call, xs, [None], [])


def _name_call(
    call: BoundCall, xs: Sequence[Any], arguments: list[Any], results: list[str], each: str = ""
) -> UserNames:
    """Return the names of a call of ``f`` that is differentiated by ``xs``.

    Those of ``xs`` are put in place of None in ``arguments``.  The results are those that are given and, if ``each`` is
    a text, one for each leaf of ``xs``.
    """
    names, f = call.names, _find_program(call.f)
    leaves = [label for name, x in zip(names, xs, strict=True) for label, _ in name_leaves(name, x)]
    given = [names if name is None else name for name in arguments]
    return UserNames(_get_name(f), given, [*results, *(each.format(label) for label in leaves if each)])


def _find_program(f: Callable[..., Any]) -> Any:
    """Return the function from which a transform made another one."""
    return getattr(f, "__wrapped__", f)


def _get_name(f: Callable[..., Any]) -> str:
    return getattr(f, "__name__", type(f).__name__)


def _name_composition(f: Callable[..., Any], args: tuple[Any, ...]) -> UserNames:
    return UserNames(f.__name__, list_parameter_names(f, len(args)))


def _name_ufunc(f: Callable[..., Any], args: tuple[Any, ...]) -> UserNames:
    """Return the names of the arguments of a ufunc, in a call of ``Tensor.__array_ufunc__``."""
    _, ufunc, _, *given = args
    op = BY_KERNEL.get(ufunc)
    names = op.inputs if op is not None else ("x", "y")
    return UserNames(ufunc.__name__, ["", "", "", *names[: len(given)]])


def _name_numpy_function(f: Callable[..., Any], args: tuple[Any, ...]) -> UserNames:
    """Return the names in a call of ``Tensor.__array_function__``."""
    _, func, _, given, _ = args
    return UserNames(func.__name__, ["", "", "", list_parameter_names(func, len(given))])


def _is_differentiated(given: Any) -> bool:
    return any(isinstance(x, Tensor) and is_differentiated(x, 0) for x in tree.leaves(given))


def _is_followed(x: object) -> bool:
    """Return whether an argument of an op is numbers to compute with, and not an axis or a shape."""
    if tree.is_number_list(x):
        return any(isinstance(n, float) for n in tree.leaves(x))
    return isinstance(x, float) or (isinstance(x, ARRAYS) and x.dtype.kind in "fc")


# How each entry of the engine is checked.
CALLS: dict[str, Callable[[Any, tuple[Any, ...], dict[str, Any]], Any]] = {
    "gradients": _check_derivatives(_name_gradients),
    "jacobian": _check_derivatives(_name_jacobian),
    "jvp": _check_derivatives(_name_tangent),
    "hvp": _check_derivatives(_name_hessian_product),
    "variables": _check_derivatives(name_nothing),
    "vjp": _check_both(_name_pull),
    "linearize": _check_both(_name_push),
    "sparse jacobian": _check_sparse,
    "tape": check_pulled,
    "function": _check_values,
    "compiled": _check_compiled,
    "composition": _check_ops(_name_composition),
    "ufunc": _check_ops(_name_ufunc),
    "numpy function": _check_ops(_name_numpy_function),
}
