"""Variables: tensors that can be assigned to.  Reading one gives a tensor of the transforms that watch it."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from itertools import count
from typing import TYPE_CHECKING, Any
from weakref import ref

import numpy as np

from pullback.core.callers import is_called_by
from pullback.core.convert import as_array
from pullback.core.memory import SOLE, TRUSTED, node_of
from pullback.core.rowsparse import RowSparse, collect_rows
from pullback.core.source import find_user_line
from pullback.core.tape import Tape, constant
from pullback.core.tensor import PLAIN, Tensor, Wrapped, call_unfollowed
from pullback.core.weak import WEAK_TYPES, Weak
from pullback.core.writes import HELD, freeze
from pullback.errors import ArgumentError, BatchedValueError, VariableError

if TYPE_CHECKING:
    from pullback.typing import Array, DType, TensorLike, Value

WEAK = (Weak, *WEAK_TYPES)
_number = count()
_live: dict[str, list[ref[Variable]]] = {}  # the live variables of each name, oldest first
_flag_changes = 0
# Used only when a variable is read, never by ops on tensors.  Outermost first: each wraps the result of the one before.
_watchers: ContextVar[tuple[Any, ...]] = ContextVar("watchers", default=())


class Variable(Wrapped):
    """A tensor with a name that can be assigned to.  Operators such as ``v += d`` assign in place.

    initial: the initial value.
    trainable: whether ``variable_grads`` and optimizers change it.
    dtype: its dtype; without it, that of the initial value.

    >>> import pullback as pb
    >>> w = pb.variable([1.0, 2.0], name="weights")
    >>> w.assign_add([0.5, 0.5])
    Variable([1.5, 2.5], dtype=float32, name='weights')
    >>> pb.variable_grads(lambda: (w * w).sum()).grads["weights"]
    Tensor([3., 5.], dtype=float32)
    """

    __slots__ = ("_trainable", "constraint", "held", "made_at", "name")

    _internal: tuple[str, ...] = ("held", "hold", "made_at", "own_array", "write_rows")
    refers = is_variable = True
    held: Tensor
    name: str
    made_at: str  # the user's line, for messages
    constraint: Callable[[Any], Any] | None  # a projection that optimizers apply after each step

    def __init__(
        self, initial: TensorLike, trainable: bool = True, name: str | None = None, dtype: DType = None
    ) -> None:
        values = np.array(as_array(initial, dtype, "variable"), order="C")[()]
        if values.dtype.kind not in "fiub":
            raise VariableError(f"variable: expected numbers, got dtype {values.dtype}.")
        if name is not None and not isinstance(name, str):
            raise ArgumentError(f"variable: the name must be text, got {type(name).__name__}.")
        self.held = freeze(constant(values), HELD)
        self.trainable = trainable
        self.constraint = None
        self.name = name if name is not None else _free_name()
        self.made_at = find_user_line()
        _live.setdefault(self.name, []).append(ref(self, partial(_forget, self.name)))

    @property
    def trainable(self) -> bool:
        """Whether ``variable_grads`` and ``GradientTape`` follow it."""
        return self._trainable

    @trainable.setter
    def trainable(self, value: bool) -> None:
        global _flag_changes
        self._trainable = bool(value)
        _flag_changes += 1

    @property
    def shape(self) -> tuple[int, ...]:
        return self.held.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.held.dtype

    @property
    def level(self) -> int:
        level: int = self.read().level
        return level

    def read(self) -> Any:
        """Return the tensor that an op computes with: a leaf of every tape that watches the variable."""
        value: Any = self.held
        for watcher in _watchers.get():
            value = watcher.on_read(self, value)
        return value

    # ---- change

    def assign(self, value: TensorLike) -> Variable:
        """Assign a new value of the same shape and dtype.

        value: the new value.

        >>> import pullback as pb
        >>> pb.variable([1.0, 2.0], name="v").assign([3.0, 4.0])
        Variable([3., 4.], dtype=float32, name='v')
        """
        if (by := get_trace()) is not None:
            by.assign(self, value)
            return self
        new = self._as_held(value, f"{self.name}.assign")
        if new.shape != self.shape:
            raise VariableError(f"{self.name}.assign: expected shape {self.shape}, got shape {new.shape}.")
        if new.dtype != self.dtype:
            raise VariableError(
                f"{self.name}.assign: expected dtype {self.dtype}, got dtype {new.dtype}. Cast it first."
            )
        self.hold(np.array(new, order="C")[()])
        return self

    def hold(self, array: Any) -> None:
        """Assign an array without copying it; it must have the same shape and dtype."""
        log = _log.get()
        if log is not None:
            log.entries.append((self, self.held, None, None))
        meta = self.held.meta
        if type(array) is np.ndarray and array.ndim and array.dtype is meta.dtype and array.shape == meta.shape:
            new = Tensor()  # what constant(array) makes, without looking for what it was before
            new.value, new.meta, new.g, new.x, new.y = array, meta, None, None, None
        else:
            new = constant(array)
        self.held = freeze(new, HELD)

    def assign_rows(self, indices: TensorLike, values: TensorLike) -> Variable:
        """Assign new values to some rows; if a row is given several times, the last value stays.

        indices: the indices of the rows.
        values: their new values.

        >>> import pullback as pb
        >>> pb.variable([[1.0, 2.0], [3.0, 4.0]], name="t").assign_rows([1], [[5.0, 6.0]])
        Variable([[1., 2.], [5., 6.]], dtype=float32, name='t')
        """
        symbolic = get_trace() is not None and isinstance(values, Tensor)
        rows = RowSparse(indices, values if symbolic else self._as_held(values, f"{self.name}.assign_rows"), self.shape)
        if rows.dtype != self.dtype:
            raise VariableError(
                f"{self.name}.assign_rows: expected dtype {self.dtype}, got dtype {rows.dtype}. Cast it first."
            )
        self.write_rows(rows.indices, rows.values)
        return self

    def write_rows(self, indices: Any, values: Any) -> None:
        """Write rows without checks, in place if nothing else refers to the array."""
        if (by := get_trace()) is not None:
            by.assign_rows(self, indices, values)
            return
        x = self.own_array()
        if x is None:
            x = np.array(self.held.value, order="C")
            self.hold(x)
        elif (log := _log.get()) is not None:  # which does not keep the array alive
            log.entries.append((self, ref(x), indices, x.take(indices, 0)))
        x[indices] = values

    def own_array(self) -> Any:
        """Return the variable's array for writing in place if nothing else refers to it; else None."""
        t = self.held
        x = t.value
        alone = _is_held_once(t) and _is_held_once(x) and x.base is None
        return x if alone and x.flags.writeable and x.flags.c_contiguous else None

    def assign_add(self, delta: TensorLike) -> Variable:
        """Add to the value.

        delta: what is added.

        >>> import pullback as pb
        >>> pb.variable(1.0, name="n").assign_add(2.0)
        Variable(3., dtype=float32, name='n')
        """
        return self._assign_changed(np.add, delta, f"{self.name}.assign_add")

    def assign_sub(self, delta: TensorLike) -> Variable:
        """Subtract from the value.

        delta: what is subtracted.

        >>> import pullback as pb
        >>> pb.variable(1.0, name="m").assign_sub(2.0)
        Variable(-1., dtype=float32, name='m')
        """
        return self._assign_changed(np.subtract, delta, f"{self.name}.assign_sub")

    def __iadd__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.add, other, f"{self.name} +=")

    def __isub__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.subtract, other, f"{self.name} -=")

    def __imul__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.multiply, other, f"{self.name} *=")

    def __itruediv__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.true_divide, other, f"{self.name} /=")

    def __ifloordiv__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.floor_divide, other, f"{self.name} //=")

    def __imod__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.mod, other, f"{self.name} %=")

    def __ipow__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.power, other, f"{self.name} **=")

    def __imatmul__(self, other: TensorLike, /) -> Variable:
        return self._assign_changed(np.matmul, other, f"{self.name} @=")

    def _as_held(self, value: TensorLike, subject: str) -> Any:
        """Return an argument of an assignment as an array; Python numbers get the dtype of the variable."""
        kept = isinstance(value, np.ndarray | np.generic | Tensor) and not isinstance(value, WEAK)
        try:
            return as_array(value, subject=subject, dtype=None if kept else self.dtype)
        except BatchedValueError:
            raise BatchedValueError(
                f"{subject}: the value is different for each example of vmap, but a variable holds one. "
                "Return it from the function, and assign what you make of it outside of vmap."
            ) from None

    def _assign_changed(self, change: Callable[..., Any], delta: TensorLike, subject: str) -> Variable:
        """Assign ``change(value, delta)``; both are cast as NumPy's in-place arithmetic casts them."""
        by: Any = delta if get_trace() is not None and isinstance(delta, Tensor) else self._as_held(delta, subject)
        self._check_cast(delta if isinstance(delta, Tensor) else np.asarray(delta), subject)
        if get_trace() is not None:
            new = change(self.read(), by if by.dtype == self.dtype else np.astype(by, self.dtype))
            self._check_changed(new, by, subject)
            return self.assign(new)
        try:
            new = change(self.held.value, by.astype(self.dtype, copy=False))
        except ValueError as error:
            raise VariableError(f"{subject}: expected shape {self.shape}, got shape {by.shape}. {error}") from None
        self._check_changed(new, by, subject)
        self.hold(np.asarray(new)[()])
        return self

    def _check_cast(self, by: Value, subject: str) -> None:
        if by.dtype.kind in "fiubc" and not np.can_cast(by.dtype, self.dtype, "same_kind"):
            raise VariableError(f"{subject}: the variable is {self.dtype}, got {by.dtype}. Cast it first.")

    def _check_changed(self, new: Value, by: Value, subject: str) -> None:
        if new.shape != self.shape:
            raise VariableError(f"{subject}: expected shape {self.shape}, got shape {by.shape}.")
        if new.dtype != self.dtype:
            raise VariableError(f"{subject}: the variable is {self.dtype}, and the result would be {new.dtype}.")

    # ---- out of the library

    def __reduce__(self) -> Any:
        return _restore, (np.array(self.held.value), self.trainable, self.name, self.constraint)

    def __copy__(self) -> Variable:
        return _restore(np.array(self.held.value), self.trainable, self.name, self.constraint)

    def __deepcopy__(self, memo: dict[int, Any]) -> Variable:
        return self.__copy__()

    def __repr__(self) -> str:
        return f"{super().__repr__()[:-1]}, name={self.name!r})"

    def _describe(self) -> tuple[str, tuple[str, ...]]:
        return f"Variable {self.name}", () if self.trainable else ("not trainable",)


PLAIN.add(Variable)


def _is_held_once(v: Any) -> bool:
    """Return whether ``v`` has exactly two references: the caller's local variable and one other."""
    return TRUSTED and sys.getrefcount(v) == SOLE + 1


def hold_results(variables: Sequence[Variable], arrays: Sequence[Any]) -> None:
    """Assign the results of a program, which have the shapes and dtypes of the variables, without copying them."""
    log = _log.get()
    if log is not None:
        log.entries += [(v, v.held, None, None) for v in variables]
    frozen = freeze(Tensor(), HELD).links
    for v, array in zip(variables, arrays, strict=True):
        new = Tensor()
        new.value, new.meta, new.g, new.x, new.y, new.links = array, v.held.meta, None, None, None, frozen
        v.held = new


# ---- writes that can be undone


class WriteLog:
    """The former values of variables that were written to, for undoing: arrays, or the rows that were overwritten."""

    def __init__(self) -> None:
        self.entries: list[tuple[Variable, Any, Any, Any]] = []  # before: the tensor; or the array, rows, their values

    def undo(self) -> None:
        """Restore the former values of the variables, the latest write first.

        Rows are put back only where the variable still holds the array that they were written in.
        """
        entries, self.entries = self.entries, []
        for v, before, rows, values in reversed(entries):
            if rows is None:
                v.held = before
            elif v.held.value is before():
                v.write_rows(rows, values)
        self.entries.clear()  # the writes of undoing are not undone


_log: ContextVar[WriteLog | None] = ContextVar("writes", default=None)


@contextmanager
def log_writes() -> Iterator[WriteLog]:
    """Log every write to a variable in this block and thread; the log can undo them."""
    token = _log.set(WriteLog())
    try:
        yield _log.get()  # type: ignore[misc]
    finally:
        _log.reset(token)


def is_logged() -> bool:
    """Return whether writes to variables are noted in a log just now."""
    return _log.get() is not None


def get_trace() -> Any:
    """Return the trace of the program that is being compiled, None if there is none."""
    return next((w for w in _watchers.get() if w.writes), None)


def call_with_values(f: Callable[..., Any], *args: Value) -> None:
    """Call ``f`` with the plain arrays under all levels; in a program that is being compiled, whenever that is run.

    >>> import pullback as pb
    >>> call_with_values(print, pb.tensor(2.0))
    2.0
    """
    program = get_trace()

    def run(*values: Array) -> Any:
        if get_trace() is None:  # while tracing there are no values
            f(*values)
        return np.zeros(())

    if program is None:
        call_unfollowed(run, *args)
    else:
        call_unfollowed(lambda _, *values: run(*values), program.get_order_symbol(), *args)
        program.keeps_latest = True


def flag_changes() -> int:
    """Return how often a variable was made trainable or not; while it is the same, no flag has changed."""
    return _flag_changes


def find_variable(name: str) -> Variable | None:
    """Return the newest live variable of this name, if there is one."""
    same = _list_same_named(name)
    return same[-1] if same else None


def find_only_variable(name: str, subject: str) -> Variable | None:
    """Return the live variable of this name, if there is one; refused if there are several."""
    return index_by_name(_list_same_named(name), subject).get(name)


def index_by_name(variables: Iterable[Variable], subject: str) -> dict[str, Variable]:
    """Return variables by their names; refused if two have the same one, which ``subject`` needs to distinguish them.

    >>> [*index_by_name([Variable(0.0, name="left"), Variable(1.0, name="right")], "save")]
    ['left', 'right']
    """
    found: dict[str, Variable] = {}
    for v in variables:
        other = found.setdefault(v.name, v)
        if other is not v:
            raise VariableError(
                f"{subject}: two variables are named '{v.name}', of shape {other.shape} made at {_get_place(other)} "
                f"and of shape {v.shape} made at {_get_place(v)}; it needs names that tell them apart. "
                "Give one another name, or delete the one that is not used."
            )
    return found


def _get_place(v: Variable) -> str:
    return getattr(v, "made_at", "an unknown line")


def _list_same_named(name: str) -> list[Variable]:
    return [v for one in _live.get(name, ()) if (v := one()) is not None]


def _forget(name: str, gone: ref[Variable]) -> None:
    """Take a variable that is no more out of the register."""
    same = _live[name]
    same.remove(gone)
    if not same:
        del _live[name]


def _restore(values: Array, trainable: bool, name: str, constraint: Callable[[Any], Any] | None = None) -> Variable:
    v = Variable(values, trainable, None if _list_same_named(name) else name)
    v.constraint = constraint
    return v


def _free_name() -> str:
    while (name := f"Variable_{next(_number)}") in _live:
        pass
    return name


def variable(initial: TensorLike, trainable: bool = True, name: str | None = None, dtype: DType = None) -> Variable:
    """Return a variable: a tensor that can be assigned to and that ``variable_grads`` differentiates by.

    ``initial`` is what it holds at first, copied.
    ``trainable``: whether ``variable_grads`` and ``GradientTape`` follow it.
    ``name`` is its key in the dict of ``variable_grads`` and in files; the newest variable of a name has it.
    ``dtype`` is that of the numbers; without it Python's numbers have the default one, and arrays their own.

    >>> import pullback as pb
    >>> pb.variable([1.0, 2.0], name="b")
    Variable([1., 2.], dtype=float32, name='b')
    """
    return Variable(initial, trainable, name, dtype)


def _as_variable(t: Tensor, trainable: bool = True, name: str | None = None, dtype: DType = None) -> Variable:
    """Return a new variable that begins with these values."""
    return Variable(t, trainable, name, dtype)


def _variable_method(t: Tensor) -> Any:
    """Return TensorFlow.js's ``variable`` method; hidden from xarray, which takes its owners for its own arrays."""
    if is_called_by("xarray"):
        raise AttributeError("variable")
    return partial(_as_variable, t)


setattr(Tensor, "variable", property(_variable_method))  # noqa: B010


class Watcher:
    """Follows variables onto a tape: each read gives a leaf, a new one whenever the variable was assigned to."""

    writes = False

    def __init__(self, tape: Tape, wanted: Sequence[Any] | None = None) -> None:
        self.tape = tape
        self.wanted = None if wanted is None else {id(v) for v in wanted}
        self.leaves: dict[int, tuple[Variable, list[tuple[Any, Any]]]] = {}

    @property
    def level(self) -> int:
        """The level of the tensors that it returns."""
        return self.tape.level

    def wants(self, v: Variable) -> bool:
        return v._trainable and (self.wanted is None or id(v) in self.wanted)

    def on_read(self, v: Variable, value: Tensor) -> Any:
        if not self.wants(v):
            return value
        known = self.leaves.get(id(v))
        if known is None:
            known = self.leaves[id(v)] = v, []
        reads = known[1]
        if not reads or reads[-1][0] is not value:
            reads.append((value, self.tape.make_leaf(value)))
        return reads[-1][1]

    def collect_rows(self, wanted: Callable[[Variable], bool]) -> None:
        """Let the leaves of wanted variables collect the rows that are picked of them, in the coming backward pass."""
        for v, reads in self.leaves.values():
            for _, leaf in reads if v.shape and v.dtype.kind == "f" and wanted(v) else ():
                collect_rows(node_of(leaf))


class Recorder:
    """Records which variables are read in its ``with`` block, and changes nothing."""

    level = 0
    writes = False

    def __init__(self) -> None:
        self.read: dict[int, Variable] = {}

    def __enter__(self) -> Recorder:
        self.token = _watchers.set((*_watchers.get(), self))
        return self

    def __exit__(self, *error: object) -> None:
        _watchers.reset(self.token)

    def on_read(self, v: Variable, value: Tensor) -> Any:
        self.read[id(v)] = v
        return value


class HeldValues:
    """Makes variables read as other values than they have, given by the id of the variable."""

    level = 0
    writes = False

    def __init__(self, values: dict[int, Any]) -> None:
        self.values = values

    def on_read(self, v: Variable, value: Tensor) -> Any:
        return self.values.get(id(v), value)


@contextmanager
def watch_variables(watcher: Any) -> Iterator[Any]:
    """Call ``watcher.on_read`` for every variable that is read in this block and thread."""
    token = _watchers.set((*_watchers.get(), watcher))
    try:
        yield watcher
    finally:
        _watchers.reset(token)


@contextmanager
def watch_below(level: float, above: int = -1) -> Iterator[None]:
    """Let only transforms of lower levels watch the variables that are read in this block."""
    token = _watchers.set(tuple(w for w in _watchers.get() if above < w.level < level))
    try:
        yield
    finally:
        _watchers.reset(token)


def is_watched() -> bool:
    """Return whether a transform watches variables, or a program is being traced."""
    return bool(_watchers.get())


def as_symbol(v: Array) -> Any:
    """Return an array as a symbol of the program that is being traced; a constant tensor if there is none."""
    writes = get_trace()
    return constant(v) if writes is None else writes.as_symbol(v).as_result(writes.result_kind)


def list_leaves_on(v: Variable, tape: Tape) -> list[Any] | None:
    """Return the tensors that stand for a variable on a tape, one for each value that was read.

    It is None if the variable is not followed.
    """
    watchers = [w for w in _watchers.get() if isinstance(w, Watcher) and w.tape is tape and w.wants(v)]
    return [leaf for w in watchers for _, leaf in w.leaves.get(id(v), (v, []))[1]] if watchers else None


def find_highest_watcher() -> Any:
    """Return the watcher of the highest level that follows variables onto a tape; None if there is none."""
    watchers = _watchers.get()
    if not watchers:
        return None
    return max((w for w in watchers if w.level and not w.writes), key=lambda w: w.level, default=None)
