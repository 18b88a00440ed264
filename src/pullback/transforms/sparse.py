"""``sparse_jacobian`` and ``sparse_hessian``: derivatives that are mostly zeros.

Only this module imports SciPy's sparse arrays.

Columns that share no row are computed together, in one pass: so a banded matrix takes as many passes as its band is
wide, however long it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from pullback.core.convert import float_of
from pullback.core.hooks import observe_calls
from pullback.core.interpreter import level_of, new_level
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, ShapeError, TracedValueError
from pullback.names.packages import import_package
from pullback.transforms.argnums import BoundCall, Derivative, WholeCall
from pullback.transforms.colouring import color_columns
from pullback.transforms.directions import pull_in_batches
from pullback.transforms.grad import grad
from pullback.transforms.jacobian import check_real_function
from pullback.transforms.leaves import list_whole_leaves
from pullback.transforms.linear import Linear, LinearRecord
from pullback.transforms.session import open_tape
from pullback.transforms.sparsity import Outline, find_pattern

if TYPE_CHECKING:
    from pullback.typing import ArgNames, ArgNums, TensorLike


class SparsePlan:
    """The pattern, colours and directions, which are reused while the program runs the same steps."""

    def __init__(self, places: Any, back: Outline, forward: Outline) -> None:
        self.back, self.forward = back, forward
        self._directions: Any = None
        places.sort_indices()
        self.shape, self.indices, self.starts = places.shape, places.indices, places.indptr
        rows, columns = np.repeat(np.arange(self.shape[0]), np.diff(self.starts)), self.indices.astype(np.intp)
        self.pushes, self.colours = self._choose_direction(places)
        self.passes = int(self.colours.max(initial=-1)) + 1
        along, across = (columns, rows) if self.pushes else (rows, columns)
        colour = self.colours[along]
        self.order = np.argsort(colour, kind="stable")  # the elements of the pattern, by the pass that computes them
        self.colour, self.across = colour[self.order], across[self.order]
        self.ends = np.searchsorted(self.colour, np.arange(self.passes + 1))

    def _choose_direction(self, places: Any) -> tuple[bool, Any]:
        """Return whether forward passes over columns need fewer colours than backward ones over rows; the colours."""
        by_column = places.tocsc()
        widest, longest = (int(np.diff(starts).max(initial=0)) for starts in (places.indptr, by_column.indptr))
        forward = widest < longest
        colours = self._color(places, by_column, forward)
        if colours.max(initial=-1) >= (longest if forward else widest):  # the other direction may need fewer
            others = self._color(places, by_column, not forward)
            if others.max(initial=-1) < colours.max():
                return not forward, others
        return forward, colours

    def _color(self, by_row: Any, by_column: Any, forward: bool) -> Any:
        groups = by_column if forward else by_row
        return color_columns(groups.indices, groups.indptr, self.shape[0] if forward else self.shape[1])

    def directions(self, dtype: np.dtype[Any]) -> Any:
        """Return, for each colour, the sum of its unit vectors; computed once."""
        if self._directions is None or self._directions.dtype != dtype:
            self._directions = np.zeros((self.passes, len(self.colours)), dtype)
            self._directions[self.colours, np.arange(len(self.colours))] = 1
        return self._directions


PLANS: WeakKeyDictionary[Callable[..., Any], dict[Any, SparsePlan]] = WeakKeyDictionary()


class SparseJacobian(Derivative):
    """The function that ``sparse_jacobian`` returns."""

    face = "sparse_jacobian"

    def __init__(self, f: Callable[..., Any], *, argnums: ArgNums = None, argnames: ArgNames = None) -> None:
        super().__init__(f, argnums, argnames)
        if self.selection is not None and len(self.selection.chosen) != 1:
            raise ArgumentError(
                f"{self.face}: one argument can be chosen, got {len(self.selection.chosen)}; use "
                f"{self.face.removeprefix('sparse_')} for several."
            )
        try:  # the pattern of a function is found once
            self._plans = PLANS.setdefault(f, {})
        except TypeError:  # an unhashable function
            self._plans = {}

    @property
    def _plan(self) -> SparsePlan | None:
        """The plan of the last run."""
        return self._plans.get(self._key)

    @property
    def _key(self) -> Any:
        return self.face, self.selection and self.selection.chosen[0]

    def get_function(self, call: BoundCall) -> Callable[..., Any]:
        """Return the function whose jacobian is computed."""
        return call

    def __call__(self, *args: TensorLike, **kwargs: object) -> Any:
        call = self.bind(args, kwargs)
        return self.at(call.xs[0], call)

    @observe_calls("sparse jacobian")
    def at(self, x: TensorLike, call: BoundCall) -> Any:
        """Return the derivatives of a call by ``x``."""
        sparse = import_package("scipy.sparse", "sparse derivatives need SciPy", "pullback[scipy]")
        self._check_single("x", list_whole_leaves(x))
        number = new_level()  # lower than the levels of the tapes, whose steps see a batch of directions as one
        with open_tape() as tape:
            linear = Linear(self.face, (x,), WholeCall(self.get_function(call), (x,)), tape)
            self._check_single("the result of f", linear.record.values)
            check_real_function(self.face, linear)
            (dtype,) = linear.inputs.gradient_dtypes(linear.record.values)
            back, seen, plan = linear.record, Outline(linear.record), self._plan
            if plan is not None and not plan.pushes and seen.steady and seen.is_same(plan.back):
                data = self._compute_values(back, plan, number, dtype)
            else:
                with open_tape() as second:
                    forward = back.transpose(second)
                    plan = self._update_plan(seen, forward, sparse)
                    data = self._compute_values(forward if plan.pushes else back, plan, number, dtype)
        return sparse.csr_array((data, plan.indices.copy(), plan.starts.copy()), shape=plan.shape)

    def _check_single(self, subject: str, leaves: Sequence[Any]) -> None:
        """Raise if there is more than one leaf, or one that another transform follows."""
        if len(leaves) != 1:
            raise ArgumentError(
                f"{self.face}: {subject} must be one tensor, got a tree of {len(leaves)}; "
                "concatenate them, or use jacobian."
            )
        if level_of(leaves[0]):
            raise TracedValueError(
                f"{self.face} gives a SciPy array, through which no other transform can follow {subject}; "
                f"use {self.face.removeprefix('sparse_')} there."
            )

    def _update_plan(self, back: Outline, forward: LinearRecord, sparse: object) -> SparsePlan:
        """Return the plan of the last run if this one ran the same steps, else a new one."""
        seen, plan = Outline(forward), self._plan
        if plan is None or not seen.is_same(plan.forward):
            places = find_pattern(forward, sparse, self.face).T.tocsr()
            plan = self._plans[self._key] = SparsePlan(places, back.freeze_arrays(), seen.freeze_arrays())
        return plan

    @staticmethod
    def _compute_values(record: LinearRecord, plan: SparsePlan, number: int, dtype: np.dtype[Any]) -> Any:
        """Return the values of the derivative at the elements of the pattern."""
        value = record.values[0]
        data = np.zeros(len(plan.indices), dtype)
        seeds = plan.directions(float_of(value.dtype)).reshape(plan.passes, *value.shape)
        first = 0
        for (rows,) in pull_in_batches(record.only(0), seeds, record.widest, number):
            if rows is None:  # the result does not depend on the input
                break
            last = first + len(rows)
            these = slice(plan.ends[first], plan.ends[last])
            at = plan.across[these]
            if last > first + 1:
                at = at + (plan.colour[these] - first) * rows[0].size
            data[plan.order[these]] = rows.ravel()[at]
            first = last
        return data


class SparseHessian(SparseJacobian):
    """The function that ``sparse_hessian`` returns."""

    face = "sparse_hessian"

    def get_function(self, call: BoundCall) -> Callable[..., Any]:
        def scalar(x: Tensor) -> Any:
            y = call(x)
            if isinstance(y, Tensor) and y.shape:
                raise ShapeError(f"{self.face}: f must return one number, got a tensor of shape {y.shape}. Sum it.")
            return y

        gradient = grad(scalar, unconnected="zero")
        gradient.face = self.face
        return gradient


def sparse_jacobian(f: Callable[..., Any], *, argnums: ArgNums = None, argnames: ArgNames = None) -> SparseJacobian:
    """Return ``J(x)``: the jacobian of ``f(x)`` as a sparse array of SciPy's (CSR), a row per result.

    ``argnums`` or ``argnames`` chooses the one argument to differentiate by; then ``J`` is called as ``f`` is.
    Which places may differ from zero is found from the recorded program: both branches of a ``where`` count, and an
    op whose pattern is not known counts as dense.  The pattern is kept for further calls, and found again when ``f``
    runs other ops: for another shape, another branch of an ``if``, or other indices.

    >>> import numpy as np, pullback as pb
    >>> J = pb.sparse_jacobian(lambda x: x[1:] * x[:-1])(np.array([1.0, 2.0, 3.0]))
    >>> J.nnz, J.toarray().tolist()
    (4, [[2.0, 1.0, 0.0], [0.0, 3.0, 2.0]])
    """
    return SparseJacobian(f, argnums=argnums, argnames=argnames)


def sparse_hessian(f: Callable[..., Any], *, argnums: ArgNums = None, argnames: ArgNames = None) -> SparseHessian:
    """Return ``H(x)``: the hessian of ``f(x)``, which is one number, as a sparse array of SciPy's (CSR).

    ``argnums`` or ``argnames`` chooses the one argument to differentiate by; then ``H`` is called as ``f`` is.

    >>> import numpy as np, pullback as pb
    >>> H = pb.sparse_hessian(lambda x: pb.sum(x[1:] * x[:-1] ** 2))(np.array([1.0, 2.0, 3.0]))
    >>> H.toarray().tolist()
    [[4.0, 2.0, 0.0], [2.0, 6.0, 4.0], [0.0, 4.0, 0.0]]
    """
    return SparseHessian(f, argnums=argnums, argnames=argnames)
