"""Structured control flow: ``scan``, ``map``, ``fori_loop``, ``while_loop``, ``cond`` and ``switch``.

Run eagerly they are Python's own loops and branches.  In a function that is being compiled, bodies are traced once and
become loops and branches of the machine code, also under ``grad``, ``jvp`` and ``vmap``.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Sequence
from functools import partial
from math import isqrt
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core import tree
from pullback.core.convert import as_value, join_array, unwrap_constant
from pullback.core.tensor import ARRAYS, Tensor, all_values, concrete
from pullback.core.variable import get_trace
from pullback.errors import ArgumentError, ShapeError
from pullback.transforms.batch import is_batched
from pullback.transforms.branch import run_for_some
from pullback.transforms.grad import describe
from pullback.transforms.leaf_names import name_all_leaves
from pullback.transforms.outside_writes import BRANCH, STEP, refuse_outside_writes
from pullback.transforms.scan_op import ScanOp
from pullback.transforms.signatures import check_function, list_parameters, list_required
from pullback.transforms.structured import close, stack_values
from pullback.transforms.switch_op import SwitchOp
from pullback.transforms.while_op import WhileOp

if TYPE_CHECKING:
    from pullback.typing import TensorLike, Tree

NUMBERS = (bool, int, float, complex)
map_ = builtins.map


def scan(
    f: Callable[..., Any],
    carry: Tree,
    xs: Tree = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    recompute: bool = False,
) -> tuple[Any, Any]:
    """Run ``carry, y = f(carry, x)`` for each ``x`` along axis 0 of ``xs``; return the last carry and all ``y``.

    f: takes the carry and one element of ``xs``, and returns the next carry and a result of this step.
    carry: what goes from step to step, a tree of arrays; its shapes and dtypes stay the same.
    xs: a tree of arrays of the same length along axis 0, or None.
    length: the number of steps; needed where ``xs`` is None.
    reverse: go from the last element to the first.  Results stay at the places of their elements.
    unroll: how many steps a compiled loop does in one go.
    recompute: store few states for the backward pass of a compiled loop, and compute the others again.

    The results of the steps are stacked along a new axis 0.  Run eagerly it is a Python loop.  Compiled it is traced
    once and stays a loop, and so does its gradient.

    >>> import numpy as np, pullback as pb
    >>> pb.scan(lambda total, x: (total + x, total * x), 0.0, np.array([1.0, 2.0, 3.0]))
    (np.float64(6.0), array([0., 2., 9.]))
    >>> pb.grad(lambda w: pb.scan(lambda h, x: (w * h + x, None), 1.0, np.ones(3))[0])(2.0)
    17.0
    """
    return _scan("scan", f, f, carry, xs, length, reverse, _check_count("scan: unroll", unroll), recompute)


def _scan(
    name: str,
    user_function: Callable[..., Any],
    f: Callable[..., Any],
    carry: Tree,
    xs: Tree,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    recompute: bool = False,
) -> tuple[Any, Any]:
    """Run a ``scan`` of ``f``, which calls the function that the user gave to the function ``name``."""
    steps, program = Steps(name, user_function, f, carry, xs, length, reverse), get_trace()
    if program is not None:
        return steps.trace(program, unroll, recompute)
    return steps.run() if steps.length else steps.run_none()


def map(f: Callable[..., Any], xs: Tree) -> Any:
    """Apply ``f`` to each element along axis 0 of ``xs``, one after the other, and stack the results.

    f: takes one element, and returns an array or a tree of them.
    xs: an array or a tree of them, of the same length along axis 0.

    ``vmap`` does all at once; this needs the memory of one.

    >>> import numpy as np, pullback as pb
    >>> pb.map(lambda x: x @ x, np.arange(6.0).reshape(3, 2))
    array([ 1., 13., 41.])
    """
    check_function("map: f", f)
    if xs is None or not tree.leaves(xs):
        raise ArgumentError("map: xs has no arrays in it; give what f is to be applied to.")
    return _scan("map", f, lambda _, x: (None, f(x)), None, xs)[1]


def fori_loop(lo: Any, hi: Any, body: Callable[..., Any], carry: Tree, max_steps: int | None = None) -> Any:
    """Return ``carry`` after ``carry = body(i, carry)`` for each ``i`` from ``lo`` up to, not including, ``hi``.

    lo: the first ``i``, an integer.
    hi: the end, an integer.
    body: takes ``i`` and the carry, and returns the next carry.
    carry: what goes from step to step, a tree of arrays; its shapes and dtypes stay the same.
    max_steps: end after so many steps at the latest.  Needed only for reverse mode in a compiled function whose ``lo``
        or ``hi`` is an argument or computed from one, as it stores the states of all steps.

    >>> import pullback as pb
    >>> pb.fori_loop(0, 5, lambda i, x: x * 2.0 + i, 1.0).item()
    58.0
    >>> pb.compile(lambda n: pb.fori_loop(0, n, lambda i, x: x * 2.0 + i, 1.0))(5).item()
    58.0
    """
    check_function("fori_loop: body", body)
    most = None if max_steps is None else _check_count("fori_loop: max_steps", max_steps)
    for name, bound in (("lo", lo), ("hi", hi)):
        _check_integer(f"fori_loop: {name}", bound)
    if _is_unknown(lo) or _is_unknown(hi):
        return _count_up(_as_leaf(lo).astype(np.int64), _as_leaf(hi), body, carry, most)
    first = int(lo)
    end = int(hi) if most is None else min(int(hi), first + most)
    if end <= first:
        return tree.map_leaves(_as_operand, carry, whole=tree.is_number_list)
    numbers = np.arange(first, end)
    return _scan("fori_loop", body, lambda state, i: (body(i, state), None), carry, numbers)[0]


def _is_unknown(bound: TensorLike) -> bool:
    """Return whether a limit of a loop has no value yet, or one for each example of ``vmap``."""
    return isinstance(bound, Tensor) and bool(bound.level) and (get_trace() is not None or is_batched(bound))


def _count_up(lo: Any, hi: Any, body: Callable[..., Any], carry: Tree, most: int | None) -> Any:
    """Return the carry of a ``fori_loop`` whose number of steps is found out while it runs."""
    carry = tree.map_leaves(_as_operand, carry, whole=tree.is_number_list)

    def step(state: Sequence[Any]) -> Any:
        i, before = state
        return i + 1, _check_carry("fori_loop", before, body(i, before))

    return _run_while("fori_loop", [body], lambda state: state[0] < hi, step, (lo, carry), most)[1]


def while_loop(cond: Callable[..., Any], body: Callable[..., Any], carry: Tree, max_steps: int | None = None) -> Any:
    """Return ``carry`` after ``carry = body(carry)`` for as long as ``cond(carry)`` holds.

    cond: takes the carry, and returns one bool.
    body: takes the carry, and returns the next one.
    carry: what goes from step to step, a tree of arrays; its shapes and dtypes stay the same.
    max_steps: end after so many steps at the latest.  Reverse mode in a compiled function needs it, as it stores the
        states of all steps; forward mode and Python's own loop do not.

    >>> import pullback as pb
    >>> pb.while_loop(lambda x: x < 100.0, lambda x: x * 3.0, 1.0)
    243.0
    >>> pb.grad(lambda x: pb.while_loop(lambda y: y < 50.0, lambda y: y * y, x))(3.0)
    108.0
    """
    for argument, f in (("cond", cond), ("body", body)):
        check_function(f"while_loop: {argument}", f)
        _check_takes_carry(f"while_loop: {argument}", f, carry)
    most = None if max_steps is None else _check_count("while_loop: max_steps", max_steps)
    return _run_while("while_loop", [cond, body], cond, body, carry, most)


def _run_while(
    name: str,
    user_functions: Sequence[Callable[..., Any]],
    cond: Callable[..., Any],
    body: Callable[..., Any],
    carry: Tree,
    most: int | None,
) -> Any:
    """Run a ``while_loop`` of functions that call those that the user gave to the function ``name``."""
    carry = tree.map_leaves(_as_operand, carry, whole=tree.is_number_list)
    program = get_trace()
    if program is None:
        result = None
    else:
        with refuse_outside_writes(name, user_functions, STEP):
            result = _trace_while(program, cond, body, carry, most)
    if result is not None:
        return result
    steps = 0
    while steps != most:
        holds = _check_predicate("while_loop: cond must return", cond(carry), "Use np.all or np.any.")
        batched = is_batched(holds)
        if not (np.any(all_values(holds)) if batched else holds):
            break
        result = run_for_some(holds, body, [carry]) if batched else body(carry)
        new, steps = _check_carry("while_loop", carry, result), steps + 1
        carry = _select(holds, new, carry) if batched else new
    return carry


def _check_predicate(subject: str, holds: TensorLike, cure: str) -> Any:
    """Return what decides on a step or a branch: one bool or number."""
    if np.shape(holds):
        raise ShapeError(f"{subject} one bool, got shape {np.shape(holds)}. {cure}")
    if not isinstance(holds, (*NUMBERS, *ARRAYS, np.generic)):
        raise ArgumentError(f"{subject} one bool, got {describe(holds)}.")
    return holds


def _check_integer(subject: str, x: Any) -> None:
    """Raise unless ``x`` is one integer, whose value may be unknown while compiling."""
    if not isinstance(x, (*NUMBERS, *ARRAYS, np.generic)):
        raise ArgumentError(f"{subject} must be one integer, got {describe(x)}.")
    number = _as_leaf(x)
    if np.shape(number) or number.dtype.kind not in "iu":
        raise ArgumentError(f"{subject} must be one integer, got {number.dtype} of shape {np.shape(number)}.")


def _check_takes_carry(subject: str, f: Callable[..., Any], carry: Tree) -> None:
    """Raise for a function that takes the parts of the carry one by one, as TensorFlow's loops call it."""
    needed = list_required(list_parameters(f) or []) if isinstance(carry, list | tuple) else []
    if len(needed) > 1:
        names = ", ".join(needed)
        raise ArgumentError(f"{subject} is given the carry as one argument, but takes {names}. Unpack it inside.")


def _select(condition: Any, x: Any, y: Any) -> Any:
    """Return ``where(condition, x, y)`` of each leaf of two trees."""
    rows = zip(tree.leaves(x), tree.leaves(y), strict=True)
    return tree.replace_leaves(x, [np.where(condition, _as_operand(a), _as_operand(b)) for a, b in rows])


def _trace_while(program: Any, cond: Callable[..., Any], body: Callable[..., Any], carry: Tree, most: Any) -> Any:
    """Add a loop to a program, and return its carry; None if its steps must be traced one by one."""
    whole = (carry, np.int64(0))  # and the number of steps

    def step(state: Sequence[Any], _: Any) -> Any:
        before, count = state
        return (_check_carry("while_loop", before, body(before)), count + 1), None

    def goes_on(state: Sequence[Any]) -> list[Any]:
        found = _check_predicate("while_loop: cond must return", cond(state[0]), "Use np.all or np.any.")
        holds = _as_leaf(found).astype(bool)
        return [holds if most is None else holds & (state[1] < most)]

    recorded = _record_steps(program, step, whole)
    if recorded is None:
        return None
    traced, captured, leaves, _ = recorded
    condition, others, draws = _record(program, goes_on, [whole], leaves)
    if draws:
        return None
    every = {**captured, **others}
    op = WhileOp(condition.take_captured(others, every), traced.take_captured(captured, every), len(every), most)
    zs = op.apply([*every.values(), *leaves])
    return tree.replace_leaves(carry, list(zs[:-1]))


def cond(pred: TensorLike, true_fn: Callable[..., Any], false_fn: Callable[..., Any], *operands: Tree) -> Any:
    """Return ``true_fn(*operands)`` if ``pred`` is true, else ``false_fn(*operands)``.

    pred: one bool.
    true_fn: what is called if it is true.
    false_fn: what is called if it is not; both return trees of the same structure, with the same shapes and dtypes.
    operands: what they take.

    Run eagerly it is Python's ``if``.  Compiled only one of them is run; under ``vmap``, where examples differ, both
    are, and ``where`` chooses.

    >>> import pullback as pb
    >>> pb.cond(2.0 > 1.0, lambda x: x * 2.0, lambda x: -x, 3.0)
    6.0
    """
    _check_predicate("cond: pred must be", pred, "Use where, or vmap of cond.")
    number = _as_leaf(pred) != 0 if isinstance(pred, Tensor) else bool(pred)
    return _choose("cond", number, [false_fn, true_fn], operands)


def switch(index: TensorLike, branches: Sequence[Callable[..., Any]], *operands: Tree) -> Any:
    """Return ``branches[index](*operands)``; an index beyond the ends counts as the nearest one.

    index: one integer.
    branches: functions that return trees of the same structure, with the same shapes and dtypes.
    operands: what they take.

    Compiled only one branch is run; under ``vmap``, where examples differ, all are, and ``where`` chooses.  An example
    has no gradient from branches that it does not take.

    >>> import pullback as pb
    >>> [pb.switch(i, [lambda x: x, lambda x: x * x, lambda x: x * x * x], 2.0) for i in range(3)]
    [2.0, 4.0, 8.0]
    """
    _check_integer("switch: index", index)
    number = _as_leaf(index)
    if not isinstance(branches, Sequence):
        raise ArgumentError(f"switch: branches must be a list of functions, got {type(branches).__name__}.")
    if not branches:
        raise ArgumentError("switch: there are no branches.")
    return _choose("switch", number, list(branches), operands)


def _choose(name: str, number: TensorLike, branches: list[Callable[..., Any]], operands: Sequence[Any]) -> Any:
    for f in branches:
        check_function(f"{name}: a branch", f)
    last, program = len(branches) - 1, get_trace()
    if not last:
        return branches[0](*operands)
    if isinstance(number, Tensor) and number.level:
        result = None if program is None else _trace_branches(name, program, number, branches, operands)
        if result is not None:
            return result
        if is_batched(number):
            number = np.clip(number, 0, last)
            result = run_for_some(number == last, branches[last], operands)
            for i in reversed(range(last)):
                other = run_for_some(number == i, branches[i], operands)
                result = _select(number == i, _check_alike(name, result, other), result)
            return result
    return branches[min(max(int(concrete(number)), 0), last)](*operands)


def _trace_branches(
    name: str, program: Any, number: Any, branches: Sequence[Callable[..., Any]], operands: Sequence[Any]
) -> Any:
    """Add branches to a program, and return their results; None if they cannot be recorded."""
    inputs = tree.map_leaves(_as_operand, list(operands), whole=tree.is_number_list)
    leaves = tree.leaves(inputs)
    results: list[Any] = []

    def run_branch(f: Callable[..., Any], inputs: Sequence[Any]) -> list[Any]:
        z = f(*inputs)
        results.append(_check_alike(name, results[0], z) if results else z)
        return tree.leaves(results[-1])

    with refuse_outside_writes(name, branches, BRANCH):
        recorded = [_record(program, partial(run_branch, f), [inputs], leaves, takes_all=True) for f in branches]
    if any(draws for _, _, draws in recorded):
        return None
    every = {key: t for _, captured, _ in recorded for key, t in captured.items()}
    bodies = [body.take_captured(captured, every) for body, captured, _ in recorded]
    kinds = zip(*([_get_kind(_as_operand(x)) for x in tree.leaves(result)] for result in results), strict=True)
    dtypes = [np.result_type(*(dtype if weak is None else weak() for dtype, weak in row)) for row in kinds]
    op = SwitchOp([_cast_outputs(body, dtypes) for body in bodies])
    zs = op.apply([number.astype(np.int64), *every.values(), *leaves])
    return tree.replace_leaves(results[0], list(zs))


def _check_alike(name: str, first: Tree, other: Tree) -> Any:
    """Return the result of a branch; raise if it differs from that of another branch in structure or shapes."""
    other = _arrange_like(first, other)
    if _get_structure(first) != _get_structure(other):
        raise ArgumentError(f"{name}: one branch returns {_describe_tree(first)}, another {_describe_tree(other)}.")
    differs = _find_difference("result", first, other)
    if differs is not None:
        path, aspect, x, z = differs
        text = f"{name}: the {aspect} of {path} is {x} in one branch and {z} in another"
        raise ShapeError(f"{text}.") if aspect == "shape" else ArgumentError(f"{text}; cast one of them.")
    return other


def _find_difference(root: str, first: Tree, other: Tree) -> tuple[str, str, Any, Any] | None:
    """Return the path of the first leaf in which two trees differ, "shape" or "dtype", and what both have.

    None if there is no difference; a Python number takes the dtype of the other.
    """
    for (path, x), (_, z) in zip(name_all_leaves(root, first), name_all_leaves(root, other), strict=True):
        if x is None:
            continue
        if np.shape(x) != np.shape(z):
            return path, "shape", np.shape(x), np.shape(z)
        (dtype, weak), (other_dtype, other_weak) = _get_kind(_as_operand(x)), _get_kind(_as_operand(z))
        if weak is None and other_weak is None and dtype != other_dtype:
            return path, "dtype", dtype, other_dtype
    return None


def _cast_outputs(body: Any, dtypes: Sequence[Any]) -> Any:
    """Return a body whose outputs are cast to these dtypes, so that Python numbers take those of other branches."""
    if [like.dtype for like in body.output_likes] == list(dtypes):
        return body
    with body.open_trace() as trace:
        zs = body([trace.add_input(*like) for like in body.input_likes])
        return close(trace, [_as_leaf(z).astype(dtype) for z, dtype in zip(zs, dtypes, strict=True)])


def _check_count(subject: str, count: object) -> int:
    if isinstance(count, bool) or not hasattr(count, "__index__") or int(count) < 1:
        raise ArgumentError(f"{subject} must be a positive integer, got {count!r}.")
    return int(count)


class Steps:
    """The steps of one call of ``scan``."""

    def __init__(
        self,
        name: str,
        user_function: Callable[..., Any],
        f: Callable[..., Any],
        carry: Tree,
        xs: Tree,
        length: int | None,
        reverse: bool,
    ) -> None:
        check_function(f"{name}: f", f)
        self.name, self.user_function, self.f, self.reverse = name, user_function, f, reverse
        self.carry = tree.map_leaves(_as_operand, carry, whole=tree.is_number_list)
        self.xs = tree.map_leaves(_as_leaf, xs, whole=tree.is_number_list)
        self.length = self._find_length(length)

    def _find_length(self, length: int | None) -> int:
        found: dict[int, str] = {}
        for path, x in name_all_leaves("xs", self.xs):
            if x is not None and not np.ndim(x):
                raise ShapeError(f"{self.name}: {path} is a number; there is no axis to go along.")
            if x is not None:
                found.setdefault(x.shape[0], f"{path} has {x.shape[0]} elements along axis 0")
        if length is not None:
            if isinstance(length, bool) or not hasattr(length, "__index__") or int(length) < 0:
                raise ArgumentError(f"{self.name}: length must be an integer that is not negative, got {length!r}.")
            found.setdefault(int(length), f"length is {length}")
        if len(found) > 1:
            raise ShapeError(f"{self.name}: {' but '.join([*found.values()][:2])}; they must be equal.")
        if not found:
            raise ArgumentError(f"{self.name}: xs has no arrays in it, so length must say how many steps there are.")
        return next(iter(found))

    def step(self, carry: Tree, x: Any) -> tuple[Any, Any]:
        """Run one step, and return its checked carry and its result."""
        result = self.f(carry, x)
        if not isinstance(result, tuple) or len(result) != 2:
            raise ArgumentError(f"{self.name}: f must return a pair (carry, y), got {describe(result)}.")
        return _check_carry(self.name, carry, result[0]), result[1]

    # ---- eagerly

    def run(self) -> tuple[Any, Any]:
        """Run the steps in Python."""
        carry, rows = self.carry, [None] * self.length
        for t in range(self.length)[:: -1 if self.reverse else 1]:
            carry, rows[t] = self.step(carry, tree.map_leaves(lambda x, t=t: x[t], self.xs))
        return carry, _stack_trees(rows)

    def run_none(self) -> tuple[Any, Any]:
        """Return the results of no steps: the carry, and empty arrays with the shapes of a step's results."""
        zeros = tree.map_leaves(lambda x: np.zeros(x.shape, x.dtype)[()] if isinstance(x, ARRAYS) else x, self.carry)
        _, y = self.step(zeros, tree.map_leaves(lambda x: np.zeros(x.shape[1:], x.dtype)[()], self.xs))
        return self.carry, tree.map_leaves(lambda z: np.zeros((0, *np.shape(z)), _as_leaf(z).dtype), y)

    # ---- in a program that is being compiled

    def trace(self, program: Any, unroll: int, recompute: bool) -> tuple[Any, Any]:
        """Record a step, and add the loop to the program."""
        with refuse_outside_writes(self.name, [self.user_function], STEP):
            recorded = _record_steps(program, self.step, self.carry, self.xs)
        if recorded is None:  # trace the steps one by one
            return self.run() if self.length else self.run_none()
        body, captured, carry, y = recorded
        op = ScanOp(body, len(captured), len(carry), self.length, self.reverse)
        operands = [*captured.values(), *carry, *tree.leaves(self.xs)]
        zs = _run_loop(op, operands, isqrt(self.length) if recompute else unroll, recompute)
        count = len(carry)
        return tree.replace_leaves(self.carry, list(zs[:count])), tree.replace_leaves(y, list(zs[count:]))


def _record_steps(program: Any, step: Callable[..., Any], carry: Tree, xs: Tree = None) -> Any:
    """Return the body of a loop, what it captured, the leaves of the carry, and the result of a step.

    None if the steps must be traced one by one, such as those that draw random numbers.
    """
    leaves, rows = tree.leaves(carry), tree.map_leaves(lambda x: np.zeros(x.shape[1:], x.dtype), xs)
    found: list[Any] = []

    def run(state: Tree, x: Any) -> list[Any]:
        found[:] = step(state, x)
        return [z for part in found for z in tree.leaves(part)]

    while True:
        inputs = [*leaves, *tree.leaves(rows)]
        body, captured, draws = _record(program, run, [carry, rows], inputs, True, repeats=True)
        if draws:
            return None
        dtypes = [like.dtype for like in body.output_likes[: len(leaves)]]
        if all(_get_kind(x) == (dtype, None) for x, dtype in zip(leaves, dtypes, strict=True)):
            return *body.compute_constants(captured), leaves, found[1]
        # Python numbers in the carry get the dtype that they have after a step.
        leaves = [_cast_number(x, dtype) for x, dtype in zip(leaves, dtypes, strict=True)]


def _record(
    program: Any,
    f: Callable[..., Any],
    args: list[Any],
    leaves: Sequence[Any],
    takes_all: bool = False,
    repeats: bool = False,
) -> tuple[Any, dict[Any, Any], bool]:
    """Return the body that runs ``f`` on arguments like these, what it captured, and whether it draws numbers.

    ``leaves`` are those of the arguments.
    """
    with program.open_body(takes_all, repeats) as trace:
        inputs = [trace.add_input(np.shape(x), *_get_kind(x)) for x in leaves]
        outputs = [_as_leaf(z) for z in f(*tree.replace_leaves(args, inputs))]
        body, captured = trace.close(outputs)
        return body, captured, trace.draws


def _run_loop(op: ScanOp, operands: Sequence[Any], several: int, recompute: bool) -> Sequence[Any]:
    """Return the results of a loop unrolled by ``several`` steps, followed by a loop over the steps that remain.

    With ``recompute`` the unrolled steps are inner loops, run again from their first state in the backward pass.
    """
    if not op.length:  # the carry, and empty arrays
        carry = operands[op.constants : op.constants + op.carry]
        return [*carry, *(np.zeros(shape, dtype) for shape, dtype in op.infer()[op.carry :])]
    if several < 2:
        return op.apply(operands)
    constants, state, xs = (
        operands[: op.constants],
        operands[op.constants :][: op.carry],
        operands[op.constants + op.carry :],
    )
    count, left = divmod(op.length, several)
    split = count * several
    body = _record_several(op, several, recompute)
    parts: list[list[Any]] = []
    for is_rest in (True, False) if op.reverse else (False, True):
        if is_rest and left:
            loop = ScanOp(op.body, op.constants, op.carry, left, op.reverse)
            zs = loop.apply([*constants, *state, *(x[split:] for x in xs)])
            parts.append(list(zs[op.carry :]))
        elif not is_rest and count:
            loop = ScanOp(body, op.constants, op.carry, count, op.reverse, recompute)
            rows = [np.reshape(x[:split], (count, several, *x.shape[1:])) for x in xs]
            zs = loop.apply([*constants, *state, *rows])
            parts.append([np.reshape(z, (split, *z.shape[2:])) for z in zs[op.carry :]])
        else:
            continue
        state = zs[: op.carry]
    columns = zip(*(parts[::-1] if op.reverse else parts), strict=True)
    return [*state, *(np.concatenate(column) if len(column) > 1 else column[0] for column in columns)]


def _record_several(op: ScanOp, several: int, recompute: bool) -> Any:
    """Return the body of ``several`` steps of a loop: unrolled, or with ``recompute`` as an inner loop."""
    inner = ScanOp(op.body, op.constants, op.carry, several, op.reverse)
    with op.body.open_trace() as trace:
        likes = op.body.input_likes
        shapes = [like.shape if i < op.constants + op.carry else (several, *like.shape) for i, like in enumerate(likes)]
        inputs = [trace.add_input(shape, like.dtype) for shape, like in zip(shapes, likes, strict=True)]
        return close(trace, inner.apply(inputs) if recompute else inner.run_unrolled(inputs))


def _as_leaf(x: Any) -> Any:
    """Return a leaf as an array, or a tensor of some level."""
    if type(x) in NUMBERS:
        return np.asarray(x)[()]
    return unwrap_constant(join_array(x)) if isinstance(x, ARRAYS) else as_value(x)


def _as_operand(x: Any) -> Any:
    """Return a leaf of the carry as an array; a Python number stays one."""
    return x if type(x) in NUMBERS else _as_leaf(x)


def _get_kind(x: Any) -> tuple[Any, Any]:
    """Return the dtype of a leaf, and ``int``, ``float`` or ``complex`` if it stands for a Python number."""
    return (np.asarray(x).dtype, type(x)) if type(x) in NUMBERS else (x.dtype, getattr(x, "weak", None))


def _cast_number(x: Any, dtype: Any) -> Any:
    if _get_kind(x)[1] is None:
        return x
    return x.astype(dtype) if isinstance(x, Tensor) else np.asarray(x, dtype)[()]


def _check_carry(name: str, before: Tree, after: Tree) -> Any:
    """Return the carry after a step, its dicts in the order of those before; raise if structure or shapes differ."""
    if _is_alike(before, after):
        return after
    after = _arrange_like(before, after)
    if _get_structure(before) != _get_structure(after):
        is_list = isinstance(before, ARRAYS) and isinstance(after, list)
        cure = " A list of numbers is one array: begin with a tuple, or return an array." if is_list else ""
        cure = " Is a return missing?" if after is None else cure
        raise ArgumentError(
            f"{name}: the structure of the carry changes in a step, from {_describe_tree(before)} to "
            f"{_describe_tree(after)}.{cure}"
        )
    differs = _find_difference("carry", before, after)
    if differs is not None:
        path, aspect, old, new = differs
        text = f"{name}: the {aspect} of {path} changes in a step, from {old} to {new}."
        raise ShapeError(text) if aspect == "shape" else ArgumentError(f"{text} Begin with {new}, or cast it back.")
    return after


def _is_alike(x: Any, z: Any) -> bool:
    """Return whether two simple trees have equal structure, shapes and dtypes; False also if that is not clear."""
    t = type(z)
    if t is tuple or t is list:
        return type(x) is t and len(x) == len(z) and all(map_(_is_alike, x, z))
    if t is dict:
        return type(x) is t and [*x] == [*z] and all(map_(_is_alike, x.values(), z.values()))
    if not isinstance(z, ARRAYS) or not isinstance(x, ARRAYS):
        return x is None and z is None
    return bool(x.shape == z.shape and x.dtype == z.dtype)


def _describe_tree(x: Tree) -> str:
    """Return the structure of a tree in words, as ``a tuple with [0], [1]`` or ``one number or array``."""
    if x is None:
        return "None"
    parts = [path.removeprefix("x") for path, _ in name_all_leaves("x", x)]
    return "one number or array" if parts == [""] else f"a {describe(x)} with {', '.join(parts) or 'nothing'} in it"


def _arrange_like(before: Tree, after: Tree) -> Any:
    """Return a tree with the keys of its dicts in the order that they have in another one."""
    if isinstance(before, dict) and isinstance(after, dict) and {*before} == {*after}:
        return tree.get_branches(before)[1]([_arrange_like(before[k], after[k]) for k in before])  # type: ignore[index]
    parts, others = (None if x is None else tree.get_branches(x) for x in (before, after))
    if parts is None or others is None or len(parts[0]) != len(others[0]) or type(before) is not type(after):
        return after
    return others[1]([_arrange_like(b, a) for b, a in zip(parts[0], others[0], strict=True)])


def _get_structure(x: Tree) -> Any:
    parts = None if x is None else tree.get_branches(x)
    if parts is None:
        return x is None
    return (type(x), [*x] if isinstance(x, dict) else None, *[_get_structure(part) for part in parts[0]])


def _stack_trees(rows: Sequence[Any]) -> Any:
    """Return trees of the same structure as one, with their leaves stacked along a new axis 0."""
    columns = zip(*(tree.leaves(row) for row in rows), strict=True)
    return tree.replace_leaves(rows[0], [stack_values(column) for column in columns])
