"""In-place writes and views: ``x[i] = v``, ``x += y``, and writes through views.

A write is a functional update: the new value is computed by ordinary ops, and the user's object refers to it from then
on.  Steps that were recorded before keep the old value.

A small tensor is its own tape node, so the user's object and the recorded operand are one object.  A write to it stores
the new value in the object and puts a node on the tape, at which the backward pass undoes the write (``undo_write``).
The node of ``x += y`` is also the node of ``x + y``: it keeps the old value, and the object has the new one.  All other
readers of a tape call ``Tape.list_steps``, which first replaces the object in every step by the version that the step
saw (``resolve_writes``).  So a write takes constant time besides the update itself, and programs without writes pay
nothing.  Other tensors (big ones, dual numbers, batches, symbols) are handles separate from the recorded nodes, and a
write only changes what they refer to.

A view refers to its base and to how it is derived from it.  A write through a view is a write to its base; every other
view of that base becomes a ``StaleView``, which is derived again when it is next used.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import ref

import numpy as np
from numpy import ndarray

from pullback import late_binding
from pullback.core import hooks
from pullback.core.memory import Large, node_of
from pullback.core.tape import SAME, TAPED, Step, Tape, as_tensor, make_node, make_writing
from pullback.core.tensor import PLAIN, Tensor, Wrapped
from pullback.errors import ArgumentError, ShapeError, VariableError
from pullback.numerics.axis_arguments import is_broadcastable

if TYPE_CHECKING:
    from pullback.core.op import Op
    from pullback.typing import Operand, Value

T = TypeVar("T")
MIN_PRUNED_VIEWS = 32  # views of a base after which dead ones are dropped, and then whenever their number has doubled


class Links:
    """The tensors with which a tensor shares memory in NumPy: the base it is a view of, and its own views.

    ``derive(base)`` returns the view's value, and ``put(base, value)`` the base with that written into it; ``put`` is
    None for a read-only view.  ``params`` are those of the op that made the view; ``by_step``: the view's own step has
    all this.  ``is_array``: a tensor without axes is an array in NumPy and no number, though it is no view.  ``frozen``
    is the reason why a tensor must not be written to.  ``strides`` are those before the first write, where the tensor's
    own array has others, or those of NumPy's result, where ours is part of a larger one.
    """

    __slots__ = (
        "base", "by_step", "derive", "frozen", "is_array", "kind", "limit", "params", "put", "strides", "views",
    )  # fmt: skip

    def __init__(
        self,
        base: Tensor | None = None,
        derive: Callable[..., Any] | None = None,
        put: Callable[..., Any] | None = None,
        params: dict[str, Any] | None = None,
        by_step: bool = False,
    ) -> None:
        self.base: Any = base
        self.derive: Any = derive
        self.put, self.params, self.by_step = put, params, by_step
        self.views: list[Any] = []
        self.limit, self.kind, self.frozen, self.is_array = MIN_PRUNED_VIEWS, Tensor, "", False
        self.strides: Any = None


def get_links(x: Tensor) -> Links:
    """Return the links of a tensor, made when they are first needed."""
    links: Links | None = getattr(x, "links", None)
    if links is None or links is UNLINKED_ARRAY:
        is_array = links is not None
        links = x.links = Links()
        links.is_array = is_array
    return links


UNLINKED_ARRAY = Links()  # the links of all tensors without axes that are arrays and have no views yet
UNLINKED_ARRAY.is_array = True


# ---- views


def link_view(
    view: Tensor,
    base: Tensor,
    derive: Callable[..., Any],
    put: Callable[..., Any] | None,
    params: dict[str, Any] | None = None,
) -> None:
    """Make ``view`` a view of ``base``."""
    base = base.read()
    view.links = Links(base, derive, put, params)
    views = get_links(base)
    if views.frozen:
        return  # it is never written to
    views.views.append(ref(view))
    if len(views.views) > views.limit:
        views.views = [v for v in views.views if v() is not None]
        views.limit = max(MIN_PRUNED_VIEWS, 2 * len(views.views))


def note_view(z: Tensor, base: Tensor, op: Op, params: dict[str, Any]) -> Any:
    """Record that ``z``, the result of an op that moves elements, is a view of ``base`` if it is one in NumPy."""
    base = base.read()
    if type(z) is Tensor and z.level and type(base) is Tensor:
        z.meta.note(z)  # its step has the rest
    elif is_view(z, base, op, params):
        link_view(z, base, *_find_derivation(op, params))
        if type(z) is Tensor and z.level:
            z.meta.note(z)
    return z


def link_constant(z: Tensor) -> None:
    """Record the base of a new tensor that is not on a tape: the ``note`` of such tensors."""
    op = z.via.op
    params = dict(zip(op.params, z.y, strict=True))
    if is_view(z, z.x, op, params):
        link_view(z, z.x, *_find_derivation(op, params))


def _find_derivation(op: Any, params: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Return the functions that derive a view from its base and write it into the base, and the op's parameters."""
    put = op.lower.put

    def put_adjoint(base: Tensor, value: Tensor) -> Any:
        """Return the base from a view of all its elements, by the adjoint of the op that made the view."""
        return op.one.cotangents(make_node(value, base, tuple(params.values())))[0]

    def put_parts(base: Any, value: Any) -> Any:
        return put(base, value, **params)

    def derive(base: Value) -> Any:
        return op.call([base], params)

    return derive, put_adjoint if put == "adjoint" else put and put_parts, params


def link_part(z: Value, base: Value, derive: Callable[..., Any], put: Callable[..., Any] | None = None) -> Any:
    """Make ``z``, which was computed from ``base`` by several ops, a view of it, as it is in NumPy; return it."""
    if isinstance(z, Tensor) and isinstance(base, Tensor):
        link_view(z, base, derive, put)
        if type(z) is Tensor and z.level:
            z.meta.note(z)
    return z


def is_view(z: Any, base: Any, op: Any, params: dict[str, Any]) -> bool:
    """Return whether NumPy's result of a moving op shares memory with its argument."""
    if not isinstance(z, Tensor) or (not base.shape and is_numpy_number(base)):
        return False
    if not z.shape:  # x[0] is a number, x[0, ...] an array without axes
        return bool(op.lower.is_array(**params))
    if not op.lower.is_view(**params):
        return False
    return not op.lower.by_layout or is_laid_out(base, lambda a: np.may_share_memory(a, op.run(a, *params.values())))


def mark_as_array(x: T) -> T:
    """Note that a new tensor is an array in NumPy even without axes, so that ``+=`` writes into it; return it."""
    if isinstance(x, Tensor) and not x.ndim:
        links: Links | None = getattr(x, "links", None)
        if links is None:
            x.links = UNLINKED_ARRAY
        elif not links.frozen:
            links.is_array = True
        if type(x) is Tensor and x.level:
            x.meta.note(x)  # in-place operators read the links of nodes only on a tape that has noted some
    return x


def is_array(x: Tensor) -> bool:
    """Return whether a tensor is an array that NumPy writes into, and not a number."""
    if x.ndim:
        return True
    links: Links | None = getattr(x, "links", None)
    return (links is not None and links.is_array) or find_base_links(x.read()) is not None


def is_numpy_number(x: Any) -> bool:
    """Return whether a tensor without axes is a number in NumPy, which has no views, and not an array."""
    if is_array(x):
        return False
    a = x
    while isinstance(a, Tensor):
        a = a.value
    return not isinstance(a, ndarray) or bool(a.ndim)  # vmap and compile have no array that could tell


def is_contiguous(x: Tensor) -> bool:
    """Return whether the elements of a tensor lie in C order, side by side, in NumPy."""
    return is_laid_out(x, lambda a: a.flags.c_contiguous)


def are_in_order(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Return whether no axis has a longer stride than one before it, as in C order and slices of that.

    >>> are_in_order((2, 3), (6, 1)), are_in_order((2, 3), (1, 2))
    (True, False)
    """
    longest = sys.maxsize
    for n, step in zip(shape, strides, strict=True):
        if n != 1 and step:
            if abs(step) > longest:
                return False
            longest = abs(step)
    return True


def has_axes_in_order(x: Tensor) -> bool:
    """Return whether the array that NumPy would have in place of ``x`` has its axes in C order."""
    links: Links | None = getattr(x, "links", None)
    if (links is None or links.strides is None) and getattr(_find_innermost(x), "is_in_order", False):
        return True
    a = get_layout(x)
    return are_in_order(a.shape, a.strides)


def order_axes(x: Tensor) -> list[int]:
    """Return the axes of a tensor in the order of NumPy's memory layout, the one with the largest stride first."""
    a = get_layout(x)
    return sorted(range(a.ndim), key=lambda i: -abs(a.strides[i]))


def is_laid_out(x: Tensor, has: Callable[[Any], bool]) -> bool:
    """Return ``has(array)`` for the array that NumPy would have in place of ``x``; False for a number."""
    return not (not x.ndim and is_numpy_number(x)) and bool(has(get_layout(x)))


def get_layout(x: Tensor) -> Any:
    """Return the array that NumPy would have in place of ``x``, or one with the same layout in memory."""
    if not x.ndim:
        return np.empty((), np.int8)
    a = _find_innermost(x)
    links: Links | None = getattr(x, "links", None)
    is_other = links is not None and (links.strides is not None or (links.base is not None and links.params is None))
    return a if isinstance(a, ndarray) and a.ndim == x.ndim and not is_other else make_layout(x, a)


def _find_innermost(x: Any) -> Any:
    """Return the array in a tensor, under all transforms, or the tensor without values that stands for it."""
    while isinstance(x, Tensor) and isinstance(x.value, Tensor | ndarray | np.generic):
        x = x.value  # value, primal and array are in the same slot
    return x


def make_layout(x: Tensor, inner: Any) -> Any:
    """Return an array laid out as NumPy's would be for a tensor of ``vmap`` or ``compile``.

    A view is derived from its base's; anything else is contiguous, with its axes in the order of the ``inner`` array.
    """
    links = find_base_links(x)
    if links is not None:
        base = links.base.read()
        return links.derive(make_layout(base, _find_innermost(base)))
    own: Links | None = getattr(x, "links", None)
    strides = inner.strides if own is None or own.strides is None else own.strides
    strides = strides[len(strides) - x.ndim :]
    order = sorted(range(x.ndim), key=lambda i: -abs(strides[i]))
    return np.empty([x.shape[i] for i in order], np.int8).transpose(np.argsort(order))


def close_gaps(x: Tensor) -> Tensor:
    """Return a result that is part of a larger array of ours as one with memory of its own, as it is in NumPy."""
    strides = _find_innermost(x).strides
    x.links = Links()
    x.links.strides = strides
    return x


def find_base_links(x: Tensor) -> Links | None:
    """Return the links of a tensor that is a view; None if it is no view."""
    links: Links | None = getattr(x, "links", None)
    if links is not None and links.base is not None:
        return links
    if type(x) is not Tensor or not x.level or x.x is None or (links is not None and links.strides is not None):
        return None
    if not x.via.makes_views:
        return None
    op = x.via.op
    params = dict(zip(op.params, x.y, strict=True))
    return Links(x.x, *_find_derivation(op, params), by_step=True) if is_view(x, x.x, op, params) else None


def _pop_views(x: Tensor) -> Iterator[tuple[Any, Links]]:
    """Yield each live view of ``x`` and remove it from the views until it is derived again."""
    links: Links | None = getattr(x, "links", None)
    if links is not None and links.views:
        found, links.views = links.views, []
        for weak in found:
            view = weak()
            if view is not None:
                yield view, view.links
    if type(x) is Tensor and x.level:
        tape = x.meta.tape
        _sort_views(tape)
        _, noted = tape.viewed.pop(id(x), (None, ()))
        for view in noted:
            how = find_base_links(view) if type(view) is Tensor and view.x is x else None
            if how is not None:
                yield view, how


def _sort_views(tape: Tape) -> None:
    """Sort the tensors that were noted since the last write by their possible base."""
    for view in tape.views[tape.sorted :]:
        base = view.x
        if type(base) is Tensor:
            held = tape.viewed.get(id(base))
            if held is None:
                tape.viewed[id(base)] = base, [view]  # the base is kept, so that its id stays its own
            else:
                held[1].append(view)
    tape.sorted = len(tape.views)


class StaleView(Wrapped):
    """A view whose base was written to.  It is derived from the base again when it is read."""

    __slots__ = ()

    refers = True
    shape = property(lambda self: self.read().shape)
    dtype = property(lambda self: self.read().dtype)
    level = property(lambda self: self.read().level)

    def read(self) -> Tensor:
        links: Links = self.links
        new = as_tensor(links.derive(links.base))
        if links.kind is Tensor and self.x is not None and not self.meta.tape.level:
            return new  # a GradientTape that is paused has the old value
        self.__class__ = links.kind  # type: ignore[assignment]
        assign(self, new.read())
        if links.by_step and type(self) is Tensor and self.level and type(links.base) is Tensor:
            del self.links
            self.meta.note(self)
        else:
            link_view(self, links.base, links.derive, links.put, links.params)
        held = self.read()  # of the class that it has now: a Reference if a value of another transform was written
        if held is not self and find_base_links(held) is None:
            link_view(held, links.base, links.derive, links.put, links.params)
        return held


PLAIN.add(StaleView)


def _make_stale(view: Tensor, links: Links) -> None:
    if type(view) is StaleView:
        return
    for inner, how in list(_pop_views(view)):
        _make_stale(inner, how)
    links.kind = type(view)
    view.links = links
    view.__class__ = StaleView


# ---- writes


class BaseReference(Wrapped):
    """A tensor to which a value of another transform was written: it refers to that value, and is read before use."""

    __slots__ = ()

    refers = True
    shape = property(lambda self: self.value.shape)
    dtype = property(lambda self: self.value.dtype)
    level = property(lambda self: self.value.level)

    def read(self) -> Tensor:
        held: Tensor = self.value.read()
        return held


PLAIN.add(BaseReference)


FROZEN: dict[str, Links] = {}  # one for all tensors that are frozen for the same reason


def freeze(x: Tensor, reason: str) -> Any:
    """Refuse writes to ``x``, a new tensor, from now on; return it."""
    links = FROZEN.get(reason)
    if links is None:
        links = FROZEN[reason] = Links()
        links.frozen = reason
    x.links = links
    return x


INPUT = (
    "is an input of the function that is transformed, and NumPy would change the caller's array. "
    "Copy it first: x = x.copy()."
)
HELD = "is the value of a variable, which is changed as a whole: use assign, assign_add or assign_sub."


def check_writable(x: Tensor, subject: str) -> None:
    """Raise an error if a tensor that is no view must not be written to."""
    if hooks.blocks and (observer := hooks.find("check_write")) is not None:
        observer.check_write(x, subject)
    links = getattr(x, "links", None)
    reason = links.frozen if links is not None else ""
    if not reason and type(x) in TAPED and node_of(x).x is None and x.level:
        reason = INPUT
    if not reason and not x.level and type(x) is Tensor and x.x is not None:
        reason = (
            "is on a GradientTape that may still compute a gradient, and stays as it is. "
            "Write inside the block, or copy it first: x = x.copy()."
        )
    if reason:
        error = VariableError if reason is HELD else ArgumentError
        raise error(f"{subject}: this tensor of shape {x.shape} {reason}")


def write(x: Any, compute: Callable[[Any], Any], subject: str = "x[...] = value") -> None:
    """Write ``compute(x)`` to ``x`` and to all tensors that share its memory in NumPy.

    ``subject`` is the name of the write in error messages.
    """
    if x.is_variable:
        raise VariableError(f"{subject}: {x.name} {HELD}")
    x = x.read()
    links = find_base_links(x)
    if links is None:
        check_writable(x, subject)
        new = as_tensor(compute(x)).read()
        stale = list(_pop_views(x))
        if x.ndim:
            new = _keep_layout(x, new)
        assign(x, new)
        for view, how in stale:
            _make_stale(view, how)
        return
    put = links.put
    if put is None:
        raise ArgumentError(
            f"{subject}: this tensor of shape {x.shape} is a read-only view in NumPy, as of np.broadcast_to. "
            "Copy it first: x = x.copy()."
        )
    check_root(links, subject)
    new = compute(x)
    write(links.base, lambda base: put(base, new), subject)
    _make_stale(x, links)


def _keep_layout(x: Tensor, new: Tensor) -> Any:
    """Return a new value with the memory layout of the old one: NumPy writes in place, and views depend on it."""
    old: Any = x
    inner: Any = new
    outer = None
    while isinstance(old.value, Tensor) and isinstance(inner.value, Tensor):
        old, inner, outer = old.value, inner.value, inner
    a, b = old.value, inner.value
    if isinstance(a, ndarray) and isinstance(b, ndarray) and a.shape == b.shape == x.shape:
        if a.strides != b.strides:
            inner.value = np.empty_like(a, b.dtype)
            inner.value[...] = b
    elif x.ndim > 1 and not isinstance(a, np.generic | Tensor):
        links = get_links(x)
        links.strides = _find_innermost(x).strides if links.strides is None else links.strides
        if isinstance(a, ndarray) and type(new) not in TAPED:  # a constant, which refers to the new value from now on
            new = make_twin(new)
            get_links(new).strides = links.strides
        elif (lay_out := getattr(inner, "lay_out", None)) is not None and inner.shape == old.shape:  # traced
            inner = lay_out(old.strides)
            if outer is None:
                return inner
            outer.value = inner
    return new


def check_root(links: Links, subject: str) -> None:
    """Raise an error if the base of a view must not be written to, before anything is computed."""
    base = links.base.read()
    further = find_base_links(base)
    if further is None:
        check_writable(base, subject)
    else:
        check_root(further, subject)


def assign(x: Tensor, new: Tensor) -> None:
    """Make the object ``x`` refer to ``new``; steps that were recorded keep the value they saw."""
    kind, new_kind = type(x), type(new)
    if kind is Tensor and x.level:
        tape = x.meta.tape
        if new_kind is Tensor and new.level and new.meta.tape is tape:
            record_write(x, new)
            x.value, x.meta = new.value, new.meta
            return
        record_write(x, None)
    elif kind in TAPED and new_kind is Tensor and new.level:
        nodes = new.meta.tape.nodes
        if nodes and nodes[-1] is new:  # it was recorded just now: the object takes its place
            nodes[-1] = x
            x.__class__ = Tensor
            _copy_slots(x, new)
            return
    elif kind is new_kind or (kind in TAPED and new_kind in TAPED):
        x.__class__ = new_kind
        _copy_slots(x, new)
        return
    if is_array(x):
        mark_as_array(new)
    x.__class__ = BaseReference
    x.value = new


def _copy_slots(to: Tensor, of: Tensor) -> None:
    for slot in ("g", "meta", "value", "via", "x", "y"):
        if hasattr(of, slot):
            setattr(to, slot, getattr(of, slot))
    if type(to) is Tensor and to.level and getattr(to, "links", None) is not None:
        to.meta.note(to)  # for in-place operators, as in ``mark_as_array``


def make_alias(x: Tensor) -> Any:
    """Return a tensor of the same value that later writes by the user do not change, for an inner transform to save."""
    return x if type(x) is Tensor and x.x is None else make_twin(x)  # an input is never written to


def make_twin(x: Any) -> Any:
    """Return another tensor of the same value, which the transform of ``x`` follows as well."""
    if type(x) is Large:
        handle = Large()
        handle.value, handle.meta, handle.x, handle.g = x.value, x.meta, x.x, None
        return handle
    if type(x) is not Tensor:
        return x.twin()
    twin = Tensor()
    twin.value, twin.meta, twin.via, twin.x, twin.y, twin.g = x.value, x.meta, SAME, x, None, None
    x.meta.push(twin)
    return twin


class Version:
    """The version of a written tensor at one point of the tape; stored in the slot ``g`` of that tensor meanwhile."""

    __slots__ = ("first", "g", "last", "node")

    def __init__(self, first: Tensor, g: Any) -> None:
        self.first = self.node = first
        self.g, self.last = g, None


class End:
    """Marks the node of the last version of a written tensor, in its slot ``g``."""

    __slots__ = ("tensor",)

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


def resolve_writes(tape: Tape) -> None:
    """Replace each written tensor, in every step recorded so far, by the version that the step saw.

    The object itself becomes the node of its last version, and a new node that of its first.
    """
    nodes = _separate_writes(tape.nodes)
    written = _mark_written(nodes)
    steps: list[Any] = []
    for r in nodes:
        if r.via is WRITE:
            version = r.x.g
            version.node = r.x if r.y is version.last else r.y
            continue
        x = r.x
        if type(x) is Tensor:
            if type(x.g) is Version:
                r.x = x.g.node
        elif x is not None:
            _redirect(r, x)
        y = r.y
        if type(y) is Tensor and type(y.g) is Version:
            r.y = y.g.node
        elif isinstance(y, Wrapped) and r.via.original.has_two_operands:
            r.y = _get_version(y)
        g = r.g
        if type(g) is Version:
            g.first.x, g.first.y = r.x, r.y
            r = g.first
        elif type(g) is End:
            r.g = None
            x = g.tensor
            x.via, x.x, x.y = r.via, r.x, r.y
            r = x
        steps.append(r)
    tape.nodes[:] = steps
    for x in written:
        x.g = x.g.g
    tape.has_writes = False


def _mark_written(nodes: list[Any]) -> list[Any]:
    """Put a ``Version`` into each written tensor and an ``End`` into its last version; return the written tensors."""
    written: list[Any] = []
    for w in nodes:
        if w.via is WRITE:
            x = w.x
            if type(x.g) is not Version:
                first = Tensor()
                first.value, first.meta, first.via, first.x, first.y, first.g = w.value, w.meta, x.via, x.x, x.y, None
                x.g = Version(first, x.g)
                written.append(x)
            x.g.last = w.y
    for x in written:
        if x.g.last is not None:
            x.g.last.g = End(x)
    return written


def _separate_writes(nodes: list[Any]) -> list[Any]:
    """Return the nodes with each that is a step and a write replaced by two: the step, and the write of its result."""
    newest: dict[int, Any] = {}  # the value of each tensor before the current node
    separated: list[Any] = []
    for r in reversed(nodes):
        if r.via is WRITE:
            newest[id(r.x)] = r.value
        elif r.via.original.writing is r.via:
            x, old = r.x, r.value
            w = Tensor()
            w.via, w.x, w.y, w.value, w.meta, w.g = WRITE, x, r, old, r.meta, True
            separated.append(w)
            r.value, r.via, r.g = newest.get(id(x), x.value), r.via.original, None
            newest[id(x)] = old
        separated.append(r)
    separated.reverse()
    return separated


def _redirect(r: Any, x: Any) -> None:
    """Make a step refer to the former versions of its operands, if it has several, or one that is no plain tensor."""
    if isinstance(x, Tensor):
        if type(x.g) is Version:
            r.x = x.g.node
    elif type(x) is tuple:
        operands, values, live = x
        r.x = [_get_version(n) for n in operands], values, live
    else:
        x[:] = [_get_version(n) for n in x]


def _get_version(node: Value) -> Any:
    g = getattr(node, "g", None)
    return g.node if type(g) is Version else node


def record_write(x: Tensor, new: Any) -> None:
    """Record on the tape of ``x`` that it now refers to ``new``: a node of the same tape, or None for other values."""
    w = Tensor()
    w.via, w.x, w.y, w.value, w.meta, w.g = WRITE, x, new, x.value, x.meta, True  # not None: the walk stops here
    w.meta.push(w)
    w.meta.tape.has_writes = True


def undo_write(w: Tensor) -> None:
    """Restore the old value of a written tensor, and give its cotangent to the node of the new value."""
    x = w.x
    m = w.meta
    written = m.tape.written
    if id(x) not in written:
        written[id(x)] = x, x.value, x.meta
    y = w.y
    if y is not None:
        y.g = x.g
    x.g = None
    x.value = w.value
    x.meta = m


WRITE = Step(None, back=undo_write, needs_z=False)


late_binding.make_alias = make_alias
late_binding.get_layout = get_layout
late_binding.mark_as_array = mark_as_array
late_binding.note_view = note_view
late_binding.link_constant = link_constant
late_binding.resolve_writes = resolve_writes


# ---- x += y


def define_in_place(function: Any, word: str, sign: str) -> None:
    """Define the operator ``x += y`` of tensors (for the word ``add``), which writes ``function(x, y)`` into ``x``."""
    subject = f"x {sign}= value"

    def in_place(x: Tensor, y: Operand) -> Any:
        new = function(x, y)
        if type(x) is Tensor and type(new) is Tensor and x.x is not None:
            written = _write_small(x, new)
            if written is not None:
                return written
        if new is NotImplemented or not is_array(x):
            return new  # most tensors without axes are numbers, as NumPy's scalars are
        write(x, lambda old: fit_result(x, new, subject), subject)
        return x

    in_place.__name__ = f"__i{word}__"
    setattr(Tensor, in_place.__name__, in_place)


def _write_small(x: Tensor, new: Tensor) -> Any:
    """Return what ``x += y`` makes of a small node ``x`` without views, by the node ``new`` of ``x + y``.

    That is ``x`` with its new value, and ``new`` becomes a write; or ``new``, if ``x`` is a number.  None if ``write``
    must do it.
    """
    m = x.meta
    tape = m.tape
    if not tape.level:
        return None
    if not m.ndim:
        has_links = tape.views and getattr(x, "links", None) is not None
        return None if has_links or x.via.makes_views else new
    if new.meta is not m or new.x is not x or (tape.views and not is_apart(x, tape)):
        return None
    step, value, old = new.via.writing or make_writing(new.via), new.value, x.value
    if step is None or (m.ndim > 1 and not (m.raw and value.strides == old.strides)):
        return None
    new.via, new.value, new.g = step, old, True  # not None: the walk stops here
    x.value = value
    tape.has_writes = True
    return x


def is_apart(x: Tensor, tape: Tape) -> bool:
    """Return whether a node of a tape neither is a view nor has views."""
    if tape.sorted < len(tape.views):
        _sort_views(tape)
    return id(x) not in tape.viewed and not x.via.makes_views and getattr(x, "links", None) is None


def fit_result(x: Any, new: Any, subject: str) -> Any:
    """Return a result with the shape and dtype of ``x``, as NumPy's ``out=`` does; raise if it does not fit."""
    new = as_tensor(new)
    if new.shape != x.shape:
        if not is_broadcastable(new.shape, x.shape):
            raise ShapeError(
                f"{subject}: the result has shape {new.shape}, which does not fit into x of shape {x.shape}. "
                "Make a new tensor instead, as in x = x + value."
            )
        new = np.broadcast_to(new, x.shape)
    if new.dtype != x.dtype:
        if not np.can_cast(new.dtype, x.dtype, "same_kind"):
            raise ArgumentError(
                f"{subject}: the result has dtype {new.dtype}, which x of dtype {x.dtype} cannot hold. "
                "Make a new tensor instead, as in x = x + value, or cast x first."
            )
        new = np.astype(new, x.dtype)
    return new
