"""``gradients``, as in TensorFlow 1: derivatives of tensors of a tape that is still recording.

The rules of the steps are run on the tensors of the tape themselves, and not on their values, so that their results
are recorded on the same tape and can be differentiated again.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pullback.core import tree
from pullback.core.bundle import PICK
from pullback.core.calculus import add_terms
from pullback.core.convert import float_of, unwrap_constant
from pullback.core.memory import node_of
from pullback.core.tape import SAME, TAPED, Step, Tape, copy_node, place
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, list_leaves_on
from pullback.errors import ArgumentError, GradientError
from pullback.transforms.gates import open_gate
from pullback.transforms.recording import unwatch
from pullback.transforms.session import check_unconnected, finish_gradient, make_missing, make_seed

if TYPE_CHECKING:
    from pullback.typing import TensorLike


def gradients(
    ys: object,
    xs: TensorLike,
    grad_ys: list[Any] | None = None,
    *,
    unconnected_gradients: str = "none",
    stop_gradients: list[Any] | None = None,
) -> list[Any]:
    """Return the gradient of the sum of all ``ys`` by each of ``xs``, as a list, while a tape is recording.

    ``ys`` and ``xs`` are tensors, or lists of them, computed inside ``with pb.GradientTape()`` or in a function that is
    being differentiated; ``xs`` may be variables.  ``grad_ys`` has a cotangent for each of ``ys``, ``None`` for ones.
    ``unconnected_gradients``: what to return for one that is not reached: ``"none"``, ``"zero"`` or ``"raise"``.
    Nothing flows past the tensors in ``stop_gradients``.  The result is on the tape as well: ``gradients`` of it are
    second derivatives.

    >>> import pullback as pb
    >>> x = pb.tensor(3.0)
    >>> with pb.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x**3
    ...     (first,) = pb.gradients(y, x)
    ...     (second,) = pb.gradients(first, x)
    >>> first.item(), second.item()
    (27.0, 18.0)
    """
    check_unconnected("gradients", "unconnected_gradients", unconnected_gradients)
    targets, sources = _tensors("ys", ys), _tensors("xs", xs)
    tape = _tape_of(targets)
    seeds = _make_seeds(targets, grad_ys)
    stops = {id(node_of(t.read())) for t in _tensors("stop_gradients", stop_gradients)}
    walk = Walk(tape, [_find_nodes(i, x, tape) for i, x in enumerate(sources)], stops)
    found = walk.back([(node_of(y.read()), g) for y, g in zip(targets, seeds, strict=True) if tape.holds(y.read())])
    dtypes = [float_of(x.dtype) for x in sources]
    return [
        make_missing(x.shape, dtype, tape, unconnected_gradients) if d is None else finish_gradient(d, dtype)
        for d, x, dtype in zip(found, sources, dtypes, strict=True)
    ]


def _tensors(subject: str, values: object) -> list[Any]:
    found = tree.leaves(values)
    for t in found:
        if not isinstance(t, Tensor):
            raise ArgumentError(
                f"gradients(ys, xs): {subject} must be tensors or variables, got {type(t).__name__}. "
                "For the gradient of a function use pb.grad."
            )
    return found


def _tape_of(targets: Sequence[Any]) -> Tape:
    """Return the tape of the targets; those that are not on a tape are ignored, unless none is."""
    tapes = {id(t.meta.tape): t.meta.tape for t in (y.read() for y in targets) if type(t) in TAPED and t.level}
    if len(tapes) != 1:
        subject = "ys are on different tapes" if tapes else "ys are on no tape that is recording"
        raise GradientError(
            f"gradients(ys, xs): {subject}, and tensors alone do not know how they were computed. Compute ys and call "
            "their gradients inside 'with pb.GradientTape() as tape: tape.watch(xs)', or in a function given to "
            "pb.grad; of a function f use pb.grads(f)(xs)."
        )
    (tape,) = tapes.values()
    found: Tape = tape
    return found


def _make_seeds(targets: Sequence[Any], grad_ys: Sequence[Any] | None) -> list[Any]:
    seeds = [None] * len(targets) if grad_ys is None else grad_ys
    seeds = seeds if isinstance(seeds, list | tuple) else [seeds]
    if len(seeds) != len(targets):
        raise ArgumentError(f"gradients: {len(targets)} ys but {len(seeds)} grad_ys; give one for each, or None.")
    return [make_seed(g, y, "gradients", "grad_ys", "its y") for y, g in zip(targets, seeds, strict=True)]


def _find_nodes(i: int, x: Tensor, tape: Tape) -> list[Any]:
    """Return the nodes of ``x`` on the tape: a variable has a leaf for each value that it was read with."""
    if isinstance(x, Variable):
        leaves = list_leaves_on(x, tape)
    else:
        leaves = [x.read()] if tape.holds(x.read()) else None
    if leaves is None:
        raise GradientError(
            f"gradients(ys, xs): xs[{i}], of shape {x.shape}, is not followed by the tape that ys are on, so it is not "
            "known whether they depend on it. Call tape.watch(x) before it is used, or make it an argument of the "
            "function that is differentiated."
        )
    return [node_of(leaf) for leaf in leaves]


class Walk:
    """A backward pass over the nodes of a tape that records on the same tape."""

    def __init__(self, tape: Tape, sources: Sequence[Sequence[Any]], stops: set[int]) -> None:
        self.tape, self.sources, self.stops = tape, sources, stops
        self.nodes = list(tape.list_steps())
        self.cotangents: dict[int, Any] = {}
        self.tensors: dict[int, Tensor] = {}

    def back(self, seeds: Sequence[tuple[Any, Any]]) -> list[Any]:
        """Return the cotangent of each source, None for one not reached."""
        with unwatch(self.nodes):
            reached = self._find_reached()
            for node, g in seeds:
                self._add(node, g)
            for r in reversed(self.nodes):
                g = self.cotangents.get(id(r))
                if g is not None and id(r) in reached and id(r) not in self.stops:
                    for node, d in zip(r.via.original.operands(r), self._pull(r, g), strict=True):
                        if d is not None and id(node) in reached:
                            self._add(node, d)
        found = [[g for n in group if (g := self.cotangents.get(id(n))) is not None] for group in self.sources]
        return [add_terms(terms) for terms in found]

    def _find_reached(self) -> set[int]:
        """Return the nodes that depend on the sources."""
        reached = {id(n) for group in self.sources for n in group}
        for r in self.nodes:
            if id(r) not in self.stops and any(id(n) in reached for n in _list_operands(r)):
                reached.add(id(r))
        return reached

    def _add(self, node: Tensor, d: object) -> None:
        before = self.cotangents.get(id(node))
        self.cotangents[id(node)] = d if before is None else before + d

    def _pull(self, r: Tensor, g: TensorLike) -> list[Any]:
        """Return what a step adds to the cotangent of each operand, recorded on the tape."""
        step = r.via.original
        if step.is_custom:
            return [self._guard(r, d) for d in step.cotangents(copy_node(r, g, r.value, lambda _, v: v))]
        if step is PICK:
            return list(step.cotangents(copy_node(r, g, r.value, lambda _, v: v)))
        return list(step.cotangents(copy_node(r, g, self._tensor(r), self._operand)))

    def _operand(self, node: Any, value: Any) -> Any:
        return value if node is None else self._tensor(node)

    def _tensor(self, node: Tensor) -> Tensor:
        """Return a tensor of the tape with the value that a node had, even if the user has written to it since."""
        tensor = self.tensors.get(id(node))
        if tensor is None:
            tensor = self.tensors[id(node)] = Tensor()
            tensor.value, tensor.meta, tensor.via, tensor.x, tensor.y, tensor.g = (
                node.value,
                node.meta,
                SAME,
                node,
                None,
                None,
            )
            tensor.meta.push(tensor)
        return tensor

    def _guard(self, r: Tensor, d: Tensor) -> Any:
        """Return a cotangent that a custom gradient computed from values, such that differentiating it raises.

        Its own derivative is not known here.
        """
        if d is None:
            return None
        value = d.value if self.tape.holds(d) else unwrap_constant(open_gate(d))
        return place(value, self.tape.get_meta(value), UNKNOWN, _list_operands(r), None)


def _list_operands(r: Tensor) -> list[Any]:
    """Return the nodes that a step was computed from."""
    return [node for node in r.via.original.operands(r) if node is not None]


class UnknownStep(Step):
    """The step from the operands of a custom gradient to its result, whose own derivative is not known: it raises."""

    __slots__ = ()

    def cotangents(self, r: Tensor) -> list[Any]:
        raise GradientError(
            "gradients(ys, xs): a second derivative through a custom gradient is not known on the same tape. "
            "Nest two tapes, tape.gradient in the block of another one, or pb.grad of pb.grad."
        )


UNKNOWN = UnknownStep(None, needs_z=False)
