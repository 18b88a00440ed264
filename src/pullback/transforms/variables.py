"""``variable_grads``: the gradients of a function by the variables that it reads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from pullback.core.calculus import add_terms
from pullback.core.convert import float_of, join_array
from pullback.core.memory import node_of
from pullback.core.tape import Tape
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, Watcher, index_by_name, watch_variables
from pullback.errors import ArgumentError, GradientError, UnconnectedError
from pullback.transforms.grad import (
    NO_RETURN,
    TENSOR,
    ValueAndGrads,
    convert_back,
    describe,
    detach_aux,
    split_aux,
)
from pullback.transforms.session import cut_text, finish_cotangent, finish_gradient, pull, run_session
from pullback.transforms.signatures import check_function

UNREACHED = (
    "Cannot compute gradient of y=f() with respect to any trainable variable. "
    "Make sure that the f you passed encloses all operations that lead from the variables to y."
)
MAKE_VARIABLES = "Make the parameters by pb.variable; pb.grad(f)(params) is the gradient by arrays."


class CountingWatcher(Watcher):
    """Makes the wanted variables leaves of a tape, and records which others are read."""

    def __init__(self, tape: Tape, wanted: Sequence[Any] | None) -> None:
        super().__init__(tape, wanted)
        self.others: dict[int, Variable] = {}

    def wants(self, v: Variable) -> bool:
        wanted = super().wants(v)
        if not wanted:
            self.others[id(v)] = v
        return wanted


def variable_grads(
    f: Callable[[], Any],
    var_list: Sequence[Variable] | None = None,
    *,
    has_aux: bool = False,
    sparse: bool | Callable[[Variable], bool] = False,
) -> ValueAndGrads:
    """Return the value of ``f()`` and its gradients by the trainable variables it reads, as a dict by name.

    ``f`` must return a scalar.  ``var_list`` says which variables; listed ones that are not trainable map to ``None``.
    ``has_aux=True``: ``f`` returns ``(y, aux)`` and the value of the result is ``(y, aux)``.
    ``sparse=True``: the gradient of a variable of which ``f`` only picks rows (by ``gather``, ``x[indices]`` or an
    embedding) is a ``RowSparse``, and what it costs does not depend on how many rows there are; a function instead
    says of each variable whether this is wanted.

    >>> import pullback as pb
    >>> a, x = pb.variable([3.0, 4.0], name="a"), pb.tensor([1.0, 2.0])
    >>> value, grads = pb.variable_grads(lambda: (a * x * x).sum())
    >>> print(value, grads["a"])
    Tensor
        19 Tensor
        [1, 4]
    """
    frozen = _list_frozen(var_list)
    value, grads = differentiate_by_variables(f, var_list, sparse, has_aux)
    return ValueAndGrads(value, NamedGradients(index_by_name([*grads, *frozen], "variable_grads"), grads))


class NamedGradients(dict[str, Any]):
    """Gradients by the names of their variables, which it knows: another variable may be given the same name."""

    def __init__(self, variables: dict[str, Variable], grads: dict[Variable, Any]) -> None:
        super().__init__({name: grads.get(v) for name, v in variables.items()})
        self.variables = variables

    def __reduce__(self) -> Any:
        return dict, (dict(self),)


def differentiate_by_variables(
    f: Callable[[], Any],
    var_list: Sequence[Variable] | None = None,
    sparse: Any = False,
    has_aux: bool = False,
    face: str = "variable_grads",
) -> ValueAndGrads:
    """Return the value of ``f()`` and its gradients by the trainable variables it reads, as a dict by variable.

    ``face`` is the function that the user called, for messages.
    """
    check_function(f"{face}(f): f", f)
    _list_frozen(var_list, face)

    def body(tape: Tape, f: Callable[[], Any], *_: None) -> tuple[Any, dict[Variable, Any], Any]:
        return _pull_variables(tape, f, var_list, sparse, has_aux, face)

    value, out, aux = run_session("variables", body, f)
    y = convert_back(value, TENSOR)
    return ValueAndGrads((y, aux) if has_aux else y, out)


def _pull_variables(
    tape: Tape, f: Callable[[], Any], var_list: Any, sparse: object, has_aux: bool, face: str
) -> tuple[Any, dict[Variable, Any], Any]:
    with watch_variables(CountingWatcher(tape, var_list)) as watcher:
        y, aux = f(), None
        if has_aux:
            y, aux = split_aux(face, y)
        y = y.read() if isinstance(y, Variable) else y  # f returned the variable itself
    if has_aux:
        aux = detach_aux(aux, tape, (), TENSOR)
    y = _scalar_result(tape, y, watcher, face)
    value = y.value
    results, y = [y], None
    if sparse:
        watcher.collect_rows(sparse if callable(sparse) else lambda v: True)
    pull(tape, results, [float_of(value.dtype).type(1)])
    out: dict[Any, Any] = {}
    for v, reads in watcher.leaves.values():
        terms = [g for _, leaf in reads if (g := finish_cotangent(node_of(leaf).g)) is not None]
        if terms:
            out[v] = finish_gradient(add_terms(terms), float_of(v.dtype))
    if not out:
        raise UnconnectedError(UNREACHED + cut_text(tape))
    return value, out, aux


def _list_frozen(var_list: Any, face: str = "variable_grads") -> list[Variable]:
    """Return the listed variables that are not trainable; checks the list."""
    if var_list is None:
        return []
    if not isinstance(var_list, list | tuple):
        got = type(var_list).__name__
        cost = " Write minimize(f, return_cost=True) for the cost." if isinstance(var_list, bool) else ""
        raise ArgumentError(f"{face}(f, var_list): var_list must be a list of variables, got {got}.{cost}")
    for i, v in enumerate(var_list):
        if not isinstance(v, Variable):
            raise ArgumentError(
                f"{face}(f, var_list): var_list must be a list of variables, got {type(v).__name__} as "
                f"var_list[{i}] of {len(var_list)}. Make one with pb.variable."
            )
    frozen = [v for v in var_list if not v.trainable]
    if len(frozen) == len(var_list):
        names = f" ({', '.join(v.name for v in frozen)})" if frozen else ""
        raise GradientError(
            f"{face}(f, var_list): var_list has no trainable variable among its {len(var_list)}{names}; there "
            "is nothing to differentiate by. Set v.trainable = True, or list others."
        )
    return frozen


def _scalar_result(tape: Tape, y: Tensor, watcher: CountingWatcher, face: str) -> Any:
    y = join_array(y)
    if not isinstance(y, Tensor):
        cure = f" {NO_RETURN}" if y is None else "" if watcher.leaves else f" It read no variable. {MAKE_VARIABLES}"
        raise GradientError(f"{face}(f): f must return a scalar tensor, got {describe(y)}.{cure}")
    y = y.read()
    if not tape.holds(y):
        if not watcher.leaves:
            others = [v.name for v in watcher.others.values()]
            which = f"It read {len(others)} that are not trainable or not listed: {', '.join(others)}."
            cure = f"{which} Set v.trainable = True, or list them." if others else MAKE_VARIABLES
            raise UnconnectedError(f"{face}(f): f read 0 trainable variables, so there is no gradient. {cure}")
        raise UnconnectedError(UNREACHED + cut_text(tape))
    if y.ndim:
        raise GradientError(
            f"{face}(f): f must return a scalar (rank 0), got rank {y.ndim}, shape {y.shape}. Sum it up."
        )
    return y
