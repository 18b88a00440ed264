"""``GradientTape``, as in TensorFlow: derivatives of what was computed in a block of code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from enum import StrEnum
from typing import TYPE_CHECKING, Any
from warnings import warn

import numpy as np

from pullback.core import hooks, tree
from pullback.core.calculus import add_terms
from pullback.core.callers import reveal
from pullback.core.convert import float_of, has_tensors
from pullback.core.interpreter import new_level
from pullback.core.memory import Large, node_of
from pullback.core.rowsparse import collect_rows
from pullback.core.tape import TAPED
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable, watch_variables
from pullback.core.writes import StaleView
from pullback.errors import ArgumentError, GradientError, ShapeError, UnrecordedGradientWarning
from pullback.transforms.directions import find_widest, pull_examples, pull_unit_vectors
from pullback.transforms.jacobian import block_dtype, join_parts
from pullback.transforms.recording import Follower, Recording, become, follow, stages, unwatch
from pullback.transforms.session import (
    UNCHANGED,
    check_unconnected,
    finish_cotangent,
    finish_gradient,
    make_missing,
    make_seed,
    pull_again,
)

if TYPE_CHECKING:
    from pullback.typing import Array, Shape, TensorLike, Value


class UnconnectedGradients(StrEnum):
    """TensorFlow's names for what ``unconnected`` may be: ``NONE`` is ``"none"``, ``ZERO`` is ``"zero"``.

    >>> import pullback as pb
    >>> pb.grads(lambda x, y: x * x, unconnected=pb.UnconnectedGradients.ZERO)([3.0, 5.0])
    [6.0, 0.0]
    """

    NONE = "none"
    ZERO = "zero"


class GradientTape:
    """Records what is computed in a ``with`` block, and differentiates it afterwards.

    Trainable variables that are read are watched automatically, tensors when they are given to ``watch``.
    Gradients can be taken once, or any number of times if the tape is ``persistent``.  Tapes nest for higher
    derivatives: a tape does not record the gradients that are taken from it, and warns if that is done inside its
    block.

    persistent: whether ``gradient`` may be called several times.
    watch_accessed_variables: whether variables that are read are watched.

    >>> import pullback as pb
    >>> x = pb.tensor(3.0)
    >>> with pb.GradientTape() as tape:
    ...     tape.watch(x)
    ...     y = x * x
    >>> tape.gradient(y, x)
    Tensor(6., dtype=float32)
    """

    _tape: Recording | None = None
    _recording = _spent = False

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None:
        self._persistent, self._accessed = persistent, watch_accessed_variables
        self._watched: dict[int, tuple[Tensor, list[Tensor]]] = {}  # watched tensors, by id, and their nodes
        self._variables: tuple[Variable, ...] = ()  # those that were followed until the tape was used up
        self._handles: list[tuple[Tensor, Tensor]] = []  # watched tensors and their nodes while the block runs

    def __repr__(self) -> str:
        """Return what the tape is and does.

        >>> GradientTape(persistent=True)
        <GradientTape, persistent, nothing recorded yet>
        """
        kind = ", persistent" * self._persistent
        did = "recorded" if self._tape is not None else "used up" if self._spent else "nothing recorded yet"
        return f"<GradientTape{kind}, {'recording' if self._recording else did}>"

    # ---- recording

    def __enter__(self) -> GradientTape:
        if self._recording:
            raise GradientError("GradientTape: this tape is already recording. Nest another one for a higher order.")
        if self._tape is None:
            self._spent = False
            observer = hooks.find("record_lines") if hooks.blocks else None
            self._tape = Recording.begin() if observer is None else Recording(new_level())
            self._follower = Follower(self._tape, self._accessed)
            if observer is not None:
                observer.record_lines(self._tape)
        else:  # go on with what was recorded
            self._tape.level = new_level()
            self._tape.resume()
        self._recording = self._follower.recording = True
        self._watching = watch_variables(self._follower)
        self._watching.__enter__()
        return self

    def __exit__(self, kind: type | None, error: BaseException | None, traceback: object) -> None:
        self._stop()
        self._watching.__exit__(None, None, None)
        if error is not None:
            reveal(error)

    def _stop(self) -> None:
        """Make the tensors of this tape constants, and restore those that were watched."""
        for t, node in reversed(self._handles):
            if t.x is node:
                become(t, t.g)
        self._handles.clear()
        if self._recording and self._tape is not None:
            self._recording = self._follower.recording = False
            self._tape.pause()

    def watch(self, tensor: object) -> None:
        """Follow a tensor or variable, or all in a list or tree, from now on until the end of the block.

        tensor: what to follow.

        >>> import pullback as pb
        >>> x, y = pb.tensor(3.0), pb.tensor(4.0)
        >>> with pb.GradientTape() as tape:
        ...     tape.watch([x, y])
        ...     z = x * y
        >>> tape.gradient(z, [x, y])
        [Tensor(4., dtype=float32), Tensor(3., dtype=float32)]
        """
        tape, follower = self._on("watch")
        for t in tree.leaves(tensor):
            if isinstance(t, Variable):
                follower.watched[id(t)] = t
                t.read()  # so that it may be a target
            elif not isinstance(t, Tensor):
                raise ArgumentError(
                    f"GradientTape.watch: expected a tensor or variable, got {type(t).__name__}. "
                    "Write x = pb.tensor(x) before the block, and compute with that."
                )
            elif t.dtype.kind not in "fiubc":
                raise GradientError(
                    f"GradientTape.watch: a tensor of dtype {t.dtype} has no gradient; only numbers have."
                )
            elif not tape.holds(t):
                node = follow(tape, t)
                self._watched.setdefault(id(t), (t, []))[1].append(node)
                self._handles.append((t, node))

    @contextmanager
    def stop_recording(self) -> Iterator[None]:
        """Record nothing that is computed in this block.

        >>> import pullback as pb
        >>> x = pb.variable(3.0)
        >>> with pb.GradientTape() as tape:
        ...     y = x * x
        ...     with tape.stop_recording():
        ...         factor = x * 100
        ...     z = y * factor
        >>> tape.gradient(z, x)
        Tensor(1800., dtype=float32)
        """
        tape, follower = self._on("stop_recording")
        tape.pause()
        self._recording = follower.recording = False
        try:
            yield
        finally:
            if self._tape is tape:
                tape.resume()
                self._recording = follower.recording = True

    def reset(self) -> None:
        """Forget what was recorded, and what was watched; go on recording if in the block.

        >>> import pullback as pb
        >>> x = pb.variable(3.0)
        >>> with pb.GradientTape() as tape:
        ...     y = x * x
        ...     tape.reset()
        ...     z = x * 2
        >>> tape.gradient([y, z], x)
        Tensor(2., dtype=float32)
        """
        recording, level = self._recording, 0 if self._tape is None else self._tape.level
        self._forget()
        self._variables = ()
        if recording:  # at the same level among the transforms in progress
            self._tape = self._follower.tape = Recording(level)
            self._follower.leaves, self._follower.watched = {}, {}
            self._recording = self._follower.recording = True

    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that were followed: those given to ``watch``, then those that were read, in order.

        >>> import pullback as pb
        >>> v = pb.variable(3.0, name="speed")
        >>> with pb.GradientTape() as tape:
        ...     y = v * 2
        >>> [v.name for v in tape.watched_variables()]
        ['speed']
        """
        if self._tape is None:
            return self._variables
        read = {key: v for key, (v, _) in self._follower.leaves.items()}
        return tuple({**self._follower.watched, **read}.values())

    def _on(self, subject: str) -> tuple[Recording, Follower]:
        if not self._recording or self._tape is None:
            raise GradientError(f"GradientTape.{subject}: the tape is not recording. Call it inside the 'with' block.")
        return self._tape, self._follower

    def _forget(self) -> None:
        self._stop()
        if self._tape is not None:
            for r in self._tape.nodes:
                if type(r) is Tensor:
                    r.x = r.y = None  # so that a tensor that a user keeps does not keep the graph behind it
            self._watched.clear()
            tape, self._tape = self._tape, None
            self._follower.leaves = {}
            tape.recycle()

    def __del__(self) -> None:
        if self._tape is not None:
            self._forget()

    # ---- the backward pass

    def gradient(
        self,
        target: Value,
        sources: Tensor,
        output_gradients: Array | None = None,
        unconnected_gradients: str = "none",
        *,
        sparse: bool = False,
    ) -> Any:
        """Return the gradient of the target, or of the sum of a tree of targets, by each source, in their structure.

        Sources are variables, watched tensors, or tensors computed in the block.  ``output_gradients`` has the
        structure of the target.  A source that is not reached gives ``None``; ``unconnected_gradients`` may request
        ``"zero"``, or for an error with ``"raise"``.  ``sparse=True``: the gradient of a variable or watched tensor
        of which only rows were picked is a ``RowSparse``.

        target: a tensor that was computed in the block, or a tree of them.
        sources: a watched tensor or variable, or a tree of them.

        >>> import pullback as pb
        >>> v = pb.variable([1.0, 2.0])
        >>> with pb.GradientTape() as tape:
        ...     y = (v * v).sum()
        >>> tape.gradient(y, {"v": v})
        {'v': Tensor([2., 4.], dtype=float32)}
        """
        tape = self._check_ready("gradient", unconnected_gradients)
        self._read_targets(target)
        self._derive_views(target, sources)
        flat, known = self._list_sources(sources), self._list_nodes()
        seeds = [
            (self._find_node(t, known), self._make_seed(t, dy))
            for t, dy in self._pair_targets(target, output_gradients)
        ]
        found = self._pull(known, seeds, flat, sparse)[::-1]
        known, seeds = {}, []  # else their nodes would keep the tape from being used again
        out: list[Any] = []
        for s in flat:
            dtype = float_of(s.dtype)
            if found[-1] is not None:
                out.append(finish_gradient(found.pop(), dtype))  # not held here, so that it need not be copied
            else:
                out.append(make_missing(s.shape, dtype, tape, unconnected_gradients))
                found.pop()
        if not self._persistent:
            self._spend()
        if isinstance(sources, Tensor):
            return out[0]
        return tree.replace_leaves(sources, out) if out else sources

    def jacobian(self, target: Any, sources: Any, unconnected_gradients: str = "none") -> Any:
        """Return the derivative of every element of the target by every element of each source.

        Its shape is that of the target followed by that of the source.

        target: a tensor that was computed in the block.
        sources: a watched tensor or variable, or a tree of them.
        unconnected_gradients: what to return for a source on which the target does not depend: ``"none"`` or
            ``"zero"``.

        >>> import pullback as pb
        >>> x = pb.tensor([1.0, 2.0])
        >>> with pb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.jacobian(y, x).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
        """
        tape = self._check_ready("jacobian", unconnected_gradients)
        self._check_single("jacobian", "target", target)
        self._read_targets(target)
        self._derive_views(target, sources)
        flat, known = self._list_sources(sources), self._list_nodes()
        dtype, level = float_of(target.dtype), new_level()
        back = self._make_pull(target, known, flat)
        parts = [
            pull_unit_vectors(back, target.shape, dtype, find_widest(tape.nodes), level, len(flat), one)
            for one in ((1, 1j) if dtype.kind == "c" else (1,))
        ]
        out = []
        for i, s in enumerate(flat):
            found = [None if part[i] is None else np.reshape(part[i], target.shape + s.shape) for part in parts]
            d = join_parts("GradientTape.jacobian", found[0], found[-1], target, s)
            dtype = block_dtype(target, float_of(s.dtype))
            out.append(_finish_jacobian(d, target, target.shape + s.shape, dtype, tape, unconnected_gradients))
        if not self._persistent:
            self._spend()
        return tree.replace_leaves(sources, out)

    def batch_jacobian(self, target: Any, source: Any, unconnected_gradients: str = "none") -> Any:
        """Return the jacobian of each example by itself, where axis 0 of the target and of the source are the examples.

        Its shape is (examples, rest of the target's, rest of the source's).  It takes as many passes as one example of
        the target has elements.  An example of the target must depend on its own example of the source alone: where
        others move it too, that is an error.

        target: a tensor that was computed in the block, with the examples along axis 0.
        source: a watched tensor or variable, with the examples along axis 0.
        unconnected_gradients: what to return where the target does not depend on the source: ``"none"`` or ``"zero"``.

        >>> import pullback as pb
        >>> x = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> with pb.GradientTape() as tape:
        ...     tape.watch(x)
        ...     y = x * x
        >>> tape.batch_jacobian(y, x).tolist()
        [[[2.0, 0.0], [0.0, 4.0]], [[6.0, 0.0], [0.0, 8.0]]]
        """
        name = "GradientTape.batch_jacobian"
        tape = self._check_ready("batch_jacobian", unconnected_gradients)
        for subject, t in (("target", target), ("source", source)):
            self._check_single("batch_jacobian", subject, t)
            if t.dtype.kind == "c":
                raise GradientError(f"{name}: the {subject} has complex numbers ({t.dtype}). Use jacobian.")
        if not target.ndim or not source.ndim or target.shape[0] != source.shape[0]:
            raise ShapeError(
                f"{name}: axis 0 of target and source are the examples, as many in both; got the shapes "
                f"{target.shape} and {source.shape}."
            )
        self._read_targets(target)
        self._derive_views(target, source)
        known, shape = self._list_nodes(), target.shape + source.shape[1:]
        back = self._make_pull(target, known, [source])
        (found,) = pull_examples(name, back, target, find_widest(tape.nodes), new_level())
        out = _finish_jacobian(found, target, shape, float_of(source.dtype), tape, unconnected_gradients)
        if not self._persistent:
            self._spend()
        return out

    def _check_single(self, face: str, subject: str, value: TensorLike) -> None:
        if not isinstance(value, Tensor):
            cure = " Join its numbers inside of the block: pb.stack(array)." if has_tensors(value) else ""
            got = type(value).__name__
            raise ArgumentError(f"GradientTape.{face}: the {subject} must be one tensor, got {got}.{cure}")

    def _make_pull(self, target: Value, known: dict[int, Tensor], sources: Sequence[Any]) -> Any:
        """Return the function that pulls a cotangent of the target back to the sources."""
        node = self._find_node(target, known)
        return lambda seed: self._pull(known, [(node, seed)], sources)

    def _check_ready(self, subject: str, unconnected: str) -> Recording:
        """Return the tape, if something was recorded and can be differentiated."""
        check_unconnected(f"GradientTape.{subject}", "unconnected_gradients", unconnected)
        if self._recording and self._persistent:
            warn(
                f"GradientTape.{subject}: inside of the block of a persistent tape the gradient is a constant to it: "
                "what is computed with it there has no derivative through it. Nest a second tape for that.",
                UnrecordedGradientWarning,
                stacklevel=4,  # above the check of keywords
            )
        if self._spent:
            raise GradientError(
                f"GradientTape.{subject}: a gradient was computed already, and what the tape recorded is deleted then. "
                "Pass all sources in one call, or make the tape with GradientTape(persistent=True)."
            )
        if self._tape is None:
            raise GradientError(
                f"GradientTape.{subject}: nothing was recorded. Compute inside 'with GradientTape() as tape'."
            )
        return self._tape

    def _spend(self) -> None:
        self._variables = self.watched_variables()
        self._forget()
        self._spent = True

    def _list_sources(self, sources: Any) -> list[Any]:
        flat = tree.leaves(sources)
        for s in flat:
            if not isinstance(s, Tensor):
                raise ArgumentError(f"GradientTape: a source must be a tensor or a variable, got {type(s).__name__}.")
        return flat

    def _read_targets(self, target: Any) -> None:
        """Follow the variables among the targets that were passed on in the block, but not read in it."""
        if type(target) is Tensor:
            return
        unread = [t for t in tree.leaves(target) if isinstance(t, Variable) and not self._list_leaves(t)]
        if unread:
            with nullcontext() if self._recording else self:
                for t in unread:
                    t.read()

    def _derive_views(self, *trees: Any) -> None:
        """Record the values of views whose base was written to in the block after they were last read."""
        stale = [t for t in tree.leaves(trees) if type(t) is StaleView and id(t) not in self._watched]
        if stale and self._tape is not None:
            paused = not self._recording
            if paused:
                self._tape.resume()
            for t in stale:
                t.read()
            if paused:
                self._tape.pause()

    def _list_nodes(self) -> dict[int, Tensor]:
        """Return all nodes of the tape, leaves first."""
        assert self._tape is not None
        leaves = [node for _, nodes in self._watched.values() for node in nodes]
        leaves += [node_of(leaf) for _, reads in self._follower.leaves.values() for _, leaf in reads]
        return {id(node): node for node in [*leaves, *self._tape.list_steps()]}

    def _list_leaves(self, t: Tensor) -> list[Tensor]:
        """Return the leaves of a variable or a watched tensor."""
        if isinstance(t, Variable):
            _, reads = self._follower.leaves.get(id(t), (t, []))
            return [node_of(leaf) for _, leaf in reads]
        return self._watched[id(t)][1] if id(t) in self._watched else []

    def _find_node(self, t: Any, known: dict[int, Tensor]) -> Tensor | None:
        """Return the node of a tensor on this tape, which may be under another transform's; None if there is none."""
        level = 0 if self._tape is None else self._tape.level
        while isinstance(t, Tensor):
            leaves = self._list_leaves(t)
            if leaves:
                return leaves[-1]
            for node in stages(t):
                if id(node) in known:
                    return known[id(node)]
            outer = type(t) not in TAPED and t.level < level  # a tensor of a transform around this tape
            t = None if isinstance(t, Variable) or outer else t.beneath()
        return None

    def _pair_targets(self, target: Value, output_gradients: Array | None) -> list[tuple[Any, Any]]:
        """Return each target with its cotangent, None for ones."""
        if output_gradients is None:
            return [pair for t in tree.leaves(target) for pair in _split_target(t, None)]
        pairs: list[tuple[Any, Any]] = []
        try:
            tree.map_leaves(lambda t, dy: pairs.append((t, dy)), target, output_gradients)
        except ValueError:
            raise GradientError(
                "GradientTape.gradient: output_gradients must have the structure of the target; "
                f"expected {len(tree.leaves(target))} of them, got {len(tree.leaves(output_gradients))}."
            ) from None
        return [pair for t, dy in pairs for pair in _split_target(t, dy)]

    def _make_seed(self, target: Tensor, dy: Array | None) -> Any:
        if not isinstance(target, Tensor):
            raise ArgumentError(f"GradientTape.gradient: a target must be a tensor, got {type(target).__name__}.")
        return make_seed(dy, target, "GradientTape.gradient", "output_gradients", "its target")

    def _pull(
        self,
        known: dict[int, Tensor],
        seeds: Sequence[tuple[Any, Any]],
        sources: Sequence[Any],
        sparse: bool = False,
    ) -> list[Any]:
        """Return the cotangent of each source, None for one not reached.  The tape stays as it is."""
        if hooks.blocks and (observer := hooks.find("run_call")) is not None:
            observed: list[Any] = observer.run_call("tape", GradientTape._pull, self, known, seeds, sources, sparse)
            return observed
        assert self._tape is not None
        nodes = list(self._tape.list_steps())
        wanted = [self._list_leaves(s) or [n for n in [self._find_node(s, known)] if n is not None] for s in sources]

        def collect() -> list[list[Any]]:
            return [[g for g in (finish_cotangent(n.g) for n in group) if g is not None] for group in wanted]

        with unwatch(nodes) if any(type(r) is Large for r in nodes) else UNCHANGED:
            if sparse:
                _collect_rows(wanted)
            found = pull_again(nodes, self._tape.level, seeds, known.values(), collect)
        return [add_terms(terms) for terms in found]


def _finish_jacobian(
    d: Array | None, target: Value, shape: Shape, dtype: np.dtype[Any], tape: Recording, unconnected: str
) -> Any:
    """Return a jacobian as a tensor; that of a target without elements has none either."""
    if d is None and target.size:
        return make_missing(shape, dtype, tape, unconnected)
    return finish_gradient(np.zeros(shape) if d is None else d, dtype)


def _collect_rows(sources: Sequence[Sequence[Tensor]]) -> None:
    """Give the leaves among sources a ``RowSum`` as cotangent, which collects rows."""
    for n in {id(n): n for group in sources for n in group}.values():
        if n.x is None and n.shape and n.dtype.kind == "f":  # a leaf
            collect_rows(n)


def _split_target(target: Any, dy: Any) -> list[tuple[Any, Any]]:
    """Return a target with its cotangent; an object array, which NumPy makes of traced numbers, is many targets."""
    if not isinstance(target, np.ndarray) or not has_tensors(target):
        return [(target, dy)]
    dys = [None] * target.size if dy is None else np.reshape(dy, -1)
    if len(dys) != target.size:
        raise GradientError(
            f"GradientTape.gradient: output_gradients has shape {np.shape(dy)}, but its target has shape "
            f"{target.shape}; they must be the same."
        )
    return [(t, d) for t, d in zip(target.flat, dys, strict=True) if isinstance(t, Tensor)]
