"""Big arrays: buffers that are recycled, and values that are freed as soon as no rule needs them.

The operating system provides fresh memory page by page, which costs more than the arithmetic done in it.  So each tape
keeps a pool of buffers per shape and dtype, which NumPy writes to through ``out=``.  A buffer returns to the pool when
its reference count shows that nothing else refers to it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core import native
from pullback.core.accelerate import FUNCTIONS, compile_nothing, find_function, run_function
from pullback.core.residuals import drop_residual
from pullback.core.tensor import PLAIN, Tensor, Wrapped
from pullback.settings import is_enabled

if TYPE_CHECKING:
    from pullback.core.tape import Meta
    from pullback.typing import Array, ArrayOrNumber, Operand, Value

LARGE = 1024 * 1024  # bytes of arrays for which fresh memory costs more than managing buffers
RECYCLED = LARGE if is_enabled("buffer recycling") else sys.maxsize  # bytes of the smallest array with such a buffer
NODES_PER_LARGE = 100  # a node with a large value counts as this many nodes towards the use of machine code
MAPPED = 128 * 1024  # bytes from which on glibc gets memory for an array from the system, and returns it
FREED_ONCE = 31 * 1024 * 1024  # bytes of the array by which it is told not to; it learns from arrays up to 32 MB
MAX_KEPT_BYTES = 64 * 1024 * 1024  # of free buffers per shape and dtype of a tape


@lru_cache(1)
def keep_freed_memory() -> None:
    """Have glibc keep up to 62 MB of freed memory, as it does in any program that has freed an array of 31 MB.

    By default it returns most arrays of 128 KB and more to the system, which clears their memory page by page when it
    is needed again.  Elsewhere, and where the program has set glibc's limits itself, nothing changes.
    """
    if is_enabled("kept memory"):
        np.empty(FREED_ONCE, np.uint8)  # memory that is not touched is not used


def _count_references(v: Any) -> int:
    return sys.getrefcount(v)


def _references_of_a_local() -> int:
    v: list[Any] = []
    return _count_references(v)


def _references_in_a_dict() -> int:
    for v in {0: object()}.values():
        count = sys.getrefcount(v)
    return count


def _can_trust_counts() -> bool:
    """Return whether reference counts can be used: not on free-threaded builds, nor where counting differs."""
    if not hasattr(sys, "getrefcount") or not getattr(sys, "_is_gil_enabled", lambda: True)():
        return False
    v: list[Any] = []
    alone = _count_references(v)
    w = v
    return _count_references(w) == alone + 1 and alone == _references_of_a_local()


TRUSTED = _can_trust_counts()
SOLE = _references_of_a_local() if TRUSTED else -1  # interpreters differ in what they count: measured, not assumed
IDLE = _references_in_a_dict() if TRUSTED else -1


def is_sole(v: Array) -> bool:
    """Return whether one local variable of the caller is the only reference to ``v``."""
    return sys.getrefcount(v) == SOLE


class BufferPool(list[Any]):
    """Buffers to reuse: not more than were taken, as not every op can use one."""

    __slots__ = ("wanted",)

    def __init__(self) -> None:
        self.wanted = 0


def take_buffer(pool: BufferPool) -> Any:
    """Return a buffer of the pool; None if there is none, so that NumPy (``out=None``) allocates one."""
    pool.wanted += 1
    try:
        return pool.pop()
    except IndexError:
        return None


def give_buffer(v: Array, pool: BufferPool, meta: Meta) -> None:
    """Put ``v`` into the pool; one local variable of the caller must be the only reference to it."""
    fits = v.base is None and v.dtype is meta.dtype and v.shape == meta.shape
    if fits and pool.wanted > 0 and len(pool) < meta.capacity and v.flags.c_contiguous and v.flags.writeable:
        pool.wanted = min(pool.wanted, meta.capacity) - 1
        drop_residual(v)
        pool.append(v)


class Large(Wrapped):
    """The user's handle of a big result.  Its node on the tape is another object, in the slot ``x``.

    The node's value is only its meta (shape and dtype) unless a rule reads the array itself, so an array that no rule
    needs is freed when the user drops the handle.  Inputs need no handle: the caller holds their arrays anyway.
    """

    __slots__ = ()

    def __del__(self) -> None:
        pool = self.meta.pool
        if pool is not None:
            v, self.value = self.value, None
            if type(v) is ndarray and is_sole(v):
                give_buffer(v, pool, self.meta)


PLAIN.add(Large)


def node_of(t: Operand) -> Any:
    """Return the node of a tensor of a tape: itself, except for a handle."""
    return t.x if type(t) is Large else t


def keep(node: Tensor, value: Value) -> None:
    """Let ``node`` keep its value, which a rule reads."""
    if type(node.value) is not ndarray:
        node.value = value


class Scratch:
    """A big array while rules run: results go into recycled buffers, temporaries are overwritten.

    ``fresh``: nothing else refers to the array.  A formula may still hold the Scratch in a variable, to use it again:
    its reference count shows that.
    """

    __slots__ = ("fresh", "meta", "v")

    v: Any
    meta: Any
    fresh: bool
    shape = property(lambda self: self.v.shape)
    dtype = property(lambda self: self.v.dtype)

    def __array_ufunc__(self, ufunc: Callable[..., Any], method: str, *args: object, **kwargs: object) -> Any:
        if method == "__call__" and not kwargs:
            return _compute(ufunc, args, self.meta, BY_NAME)
        return getattr(ufunc, method)(*unwrap_scratch(args), **unwrap_scratch(kwargs))

    def __array_function__(
        self, func: Callable[..., Any], types: tuple[Any, ...], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        return func(*unwrap_scratch(args), **unwrap_scratch(kwargs))

    def __neg__(self) -> Any:
        return _compute(np.negative, (self,), self.meta, BY_SIGN)

    def __del__(self) -> None:
        if self.fresh:
            v, self.v = self.v, None
            if is_sole(v):
                give_buffer(v, self.meta.pool, self.meta)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.v, name)

    def __getitem__(self, index: tuple[Any, ...]) -> Any:
        return self.v[index]


BY_NAME, BY_SIGN = 0, 1  # ways to call a ufunc: np.add(x, y) and x + y
TEMPORARY = [-1, -1]  # the reference count of a Scratch that is a temporary of an expression, for each way
_seen = [-1, -1]


def _compute(ufunc: Callable[..., Any], args: tuple[Any, ...], meta: Meta, form: int) -> Any:
    """Return the result of a ufunc, in a free buffer: that of a temporary, or one of the pool."""
    raw = [a.v if type(a) is Scratch else a for a in args]
    if not _fits_buffer(ufunc, raw, meta):
        return ufunc(*raw)
    if ufunc is np.multiply:
        other = 1 if is_all_ones(raw[0], meta) else 0 if is_all_ones(raw[1], meta) else None
        if other is not None and type(raw[other]) is ndarray and raw[other].shape == meta.shape:
            a = args[other]
            return a if type(a) is Scratch and a.fresh else make_scratch(_make_readonly(raw[other]), meta)
    out = None
    for a in args:
        if type(a) is Scratch and a.fresh:
            n = _seen[form] = sys.getrefcount(a)
            if n <= TEMPORARY[form]:
                out = a.v
    return make_scratch(_run_ufunc(ufunc, raw, meta, out), meta, True)


def _run_ufunc(ufunc: Any, values: Sequence[Any], meta: Meta, out: Any = None) -> Any:
    """Return the result of a ufunc that fits a buffer: in ``out``, or in one of the pool."""
    function = find_function(ufunc, values, meta.shape, meta.dtype)
    if function is None:
        return ufunc(*values, out=take_buffer(meta.pool) if out is None else out)
    buffer = take_buffer(meta.pool)  # not an operand's
    return run_function(function, ufunc, values, np.empty(meta.shape, meta.dtype) if buffer is None else buffer)


def _fits_buffer(ufunc: Any, values: Sequence[Any], meta: Any) -> bool:
    """Return whether the result of a ufunc fits a buffer of the pool."""
    if ufunc.nout != 1 or ufunc.signature or ufunc in PREDICATES:
        return False
    return all(_fits(v, meta) for v in values)


def _fits(v: Any, meta: Any) -> bool:
    """Return whether an operand does not change the shape and dtype of the result."""
    if type(v) is ndarray and v.shape == meta.shape:
        return bool(v.dtype == meta.dtype)
    if type(v) in (float, int, bool):
        return True
    if not hasattr(v, "dtype") or v.dtype != meta.dtype or v.ndim > meta.ndim:
        return False
    return not v.ndim or all(n in (1, m) for n, m in zip(v.shape[::-1], meta.shape[::-1], strict=False))


def is_all_ones(v: ArrayOrNumber, meta: Meta) -> bool:
    """Return whether an operand is a single 1 repeated by a view, as the cotangent of a sum is."""
    return type(v) is ndarray and v.shape == meta.shape and not any(v.strides) and bool(v[(0,) * v.ndim] == 1)


def _make_readonly(v: Array) -> Any:
    """Return a read-only view of an array that has other references; it is copied before it is returned to users."""
    view = v.view()
    view.flags.writeable = False
    return view


PREDICATES = frozenset({
    np.equal, np.not_equal, np.less, np.less_equal, np.greater, np.greater_equal, np.isnan, np.isfinite, np.isinf,
    np.signbit, np.logical_and, np.logical_or, np.logical_not, np.logical_xor,
})  # fmt: skip

for _name, _ufunc in {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "truediv": np.divide, "pow": np.power, "matmul": np.matmul,
    "mod": np.remainder, "floordiv": np.floor_divide,
}.items():  # fmt: skip
    setattr(Scratch, f"__{_name}__", lambda self, o, u=_ufunc: _compute(u, (self, o), self.meta, BY_SIGN))
    setattr(Scratch, f"__r{_name}__", lambda self, o, u=_ufunc: _compute(u, (o, self), self.meta, BY_SIGN))
for _name, _ufunc in {
    "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
}.items():  # fmt: skip
    setattr(Scratch, f"__{_name}__", lambda self, o, u=_ufunc: _compute(u, (self, o), self.meta, BY_SIGN))


def make_scratch(v: Array, meta: Any, fresh: bool = False) -> Scratch:
    """Return an array as a Scratch."""
    r = Scratch()
    r.v, r.meta, r.fresh = v, meta, fresh
    return r


class _Tiny:
    """A stand-in for a meta while references are counted."""

    dtype, shape, ndim, capacity = np.dtype(float), (1,), 1, 0
    pool = BufferPool()


def _count_temporaries() -> list[int]:
    """Return the reference count of a temporary for each way; -1 where that of a variable's value is not higher."""

    def make() -> Any:
        return make_scratch(np.ones(1), _Tiny, True)

    def hold(f: Callable[..., Any]) -> Any:
        return lambda: f(make())

    def fewest(form: int, *calls: Any) -> int:
        return min([(call(), _seen[form])[1] for call in calls])

    by_name = lambda: np.exp(make()), lambda: np.add(make(), 1.0), lambda: np.add(1.0, make())
    by_sign = lambda: make() + 1.0, lambda: 1.0 + make(), lambda: -make()
    held_by_name = hold(lambda x: np.exp(x)), hold(lambda x: np.add(x, 1.0)), hold(lambda x: np.add(1.0, x))
    held_by_sign = hold(lambda x: x + 1.0), hold(lambda x: 1.0 + x), hold(lambda x: -x)
    found = [
        (fewest(BY_NAME, *by_name), fewest(BY_NAME, *held_by_name)),
        (fewest(BY_SIGN, *by_sign), fewest(BY_SIGN, *held_by_sign)),
    ]
    return [alone if alone < kept else -1 for alone, kept in found]


if TRUSTED:
    with compile_nothing():
        TEMPORARY = _count_temporaries()


def unwrap_scratch(a: object) -> Any:
    """Return an argument of a NumPy function with arrays in place of each Scratch in it."""
    if type(a) is Scratch:
        return a.v
    if isinstance(a, tuple | list):
        return type(a)([unwrap_scratch(b) for b in a])
    return {k: unwrap_scratch(v) for k, v in a.items()} if isinstance(a, dict) else a


def use_scratch(f: Callable[..., Any], values: list[Any], meta: Meta) -> Any:
    """Return ``f`` of big arrays, elementwise, with its result and temporaries in recycled buffers."""
    kernel: Any = getattr(f, "kernel", f)
    if type(kernel) is np.ufunc and _fits_buffer(kernel, values, meta):  # there are no temporaries
        return _run_ufunc(kernel, values, meta)
    # an op of several NumPy functions, which machine code computes in one pass
    if kernel is not f and find_function(kernel, values, meta.shape, meta.dtype) is not None:
        return _run_ufunc(kernel, values, meta)
    return unwrap_scratch(f(*[_wrap_scratch(v, meta) for v in values]))


def _wrap_scratch(v: object, meta: Meta) -> Any:
    if type(v) is ndarray and v.dtype == meta.dtype and v.shape == meta.shape:
        return make_scratch(v, meta)
    return v


def add_large(rules: tuple[Any, ...], blockwise: bool, add_cotangents: Any) -> Any:
    """Return the ``back`` of a step for nodes with big values: its rules, by machine code or on Scratch.

    ``add_cotangents`` does the same for nodes that have no buffers.
    """
    dx, dy, *_ = (*rules, None, None)

    def back(r: Tensor) -> None:
        meta = r.meta
        if native.machine is None:
            native.count_nodes(NODES_PER_LARGE)
        if dx is None or type(r.g) is not ndarray or meta.pool is None:
            add_cotangents(r)
        elif blockwise and native.machine is not None and (done := native.machine.pull_large(r)):
            r.x = r.y = None
            done.reverse()
            done.pop()  # this node; those before it on the tape are done as well, and are released one by one
            while done:
                n = done.pop()
                release_node(n)
        elif dy is None:
            _add_from_rule(r.x, dx, (r.g, r.value, r.x.value, r.y), meta)
        else:
            _add_from_rule(r.x, dx, (r.g, r.value, r.x.value, r.y.value), meta)
            _add_from_rule(r.y, dy, (r.g, r.value, r.x.value, r.y.value), meta)
        r.x = r.y = None
        v, g = r.value, r.g
        r.g = None
        if meta.pool is None:
            return
        if sys.getrefcount(r) == SOLE:  # as in release_node, whose call would be one more reference
            r.value = None
            if type(v) is ndarray and is_sole(v):
                give_buffer(v, meta.pool, meta)
        if type(g) is ndarray and is_sole(g):
            give_buffer(g, meta.pool, meta)

    return back


def release_node(r: Tensor) -> None:
    """Drop the operands of a node that is done, and recycle its value and its cotangent."""
    meta = r.meta
    r.x = r.y = None
    v, g = r.value, r.g
    r.g = None
    if sys.getrefcount(r) == SOLE:  # the caller's local and ours
        r.value = None
        if type(v) is ndarray and is_sole(v):
            give_buffer(v, meta.pool, meta)
    if type(g) is ndarray and is_sole(g):
        give_buffer(g, meta.pool, meta)


def _add_from_rule(a: Tensor, rule: Callable[..., Any], values: tuple[Any, ...], meta: Meta) -> None:
    """Give the operand ``a`` its cotangent, or add it to the one it has."""
    e, a.g = a.g, None
    d = rule(*[_wrap_scratch(v, meta) for v in values])
    fresh = type(d) is Scratch and d.fresh
    if type(d) is Scratch:
        d = d.v
    if e is None:
        a.g = d
        return
    a.g = _add_arrays(e, d, fresh, a.meta)
    if fresh and is_sole(d):
        give_buffer(d, meta.pool, meta)  # it was added into the other


def calls_function(rule: Any, dtype: np.dtype[Any]) -> bool:
    """Return whether a rule calls a NumPy function for which machine code on whole arrays is faster."""
    called = _list_functions(rule)
    return any(find_function(u, [np.ones(1, dtype)] * u.nin, (1,), dtype) is not None for u in called)


@lru_cache(1000)
def _list_functions(rule: Any) -> list[Any]:
    """Return the NumPy functions in a rule for which there may be machine code."""
    return [u for u in FUNCTIONS if f"np_{u.__name__}(" in getattr(rule, "source", "")]


def _add_arrays(e: Array, d: Array, fresh: bool, meta: Meta) -> Any:
    """Return the sum of two cotangents of one node, in whichever of their buffers may be overwritten."""
    if type(e) is not ndarray or type(d) is not ndarray or not meta.ndim or e.shape != d.shape or e.dtype != d.dtype:
        return e + d
    if sys.getrefcount(e) == SOLE and e.base is None and e.flags.writeable:  # the caller's local and ours
        return np.add(e, d, e)
    pool = meta.pool
    return np.add(e, d, d if fresh else take_buffer(pool) if type(pool) is BufferPool else None)
