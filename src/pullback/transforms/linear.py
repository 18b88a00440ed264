"""``vjp`` and ``linearize``: the derivative of ``f`` at a point as a function of cotangents or of tangents.

``f`` is run once and recorded; the returned functions walk over the record as often as they are called.  ``linearize``
transposes the backward pass: that is linear in the cotangent, so its own backward pass, which is recorded once, takes
tangents forward by products and sums only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import RLock
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.capture import check_captured
from pullback.core.convert import float_of, unwrap_constant
from pullback.core.hooks import observe_calls
from pullback.core.memory import node_of
from pullback.core.tape import Tape
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError
from pullback.transforms.argnums import BoundCall, call_by_all
from pullback.transforms.custom_op import make_zero_gradient, set_transposing
from pullback.transforms.directions import find_widest
from pullback.transforms.gates import open_gate
from pullback.transforms.grad import as_leaf, detach_aux, kind_of_passed, split_aux
from pullback.transforms.leaves import Inputs, Outputs, check_alike, finish_derivative, pair_leaves
from pullback.transforms.session import open_recording, pull_again

if TYPE_CHECKING:
    from pullback.typing import ArgNames, ArgNums, TensorLike


class LinearRecord:
    """One recorded run of a function, whose backward pass can be run many times."""

    is_transpose = False  # whether it records a backward pass, so that its own backward pass gives tangents

    def __init__(self, tape: Tape, f: Callable[[list[Any]], Sequence[Any]], values: Sequence[Any]) -> None:
        self.level = tape.level
        leaves = [tape.make_leaf(v) for v in values]
        results = [z.read() if isinstance(z, Tensor) else z for z in f(leaves)]
        held = [tape.holds(z) for z in results]
        self.leaves: list[Tensor] = [node_of(t) for t in leaves]
        self.results: list[Tensor | None] = [node_of(z) if on else None for z, on in zip(results, held, strict=True)]
        self.values = [z.value if on else unwrap_constant(as_leaf(z, "f")) for z, on in zip(results, held, strict=True)]
        self.nodes = list(tape.list_steps())
        self.captured = list(tape.captured)
        self.lock = RLock()  # held during a backward pass, which stores cotangents in the nodes

    def back(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangent of each input, None for one that is not reached; a cotangent that is None is zero."""
        return [open_gate(d) for d in self.pull(cotangents)]

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the cotangent of each input, which may be a gate."""
        check_captured(self.captured)
        seeds = zip(self.results, cotangents, strict=True)
        with self.lock:
            return pull_again(
                self.nodes, self.level, seeds, self.leaves, lambda: [leaf.g for leaf in self.leaves],
                keep=False, transposed=self.is_transpose,
            )  # fmt: skip

    def only(self, k: int) -> Callable[[Any], list[Any]]:
        """Return the backward pass from the result ``k`` alone."""
        zeros: list[Any] = [None] * len(self.results)
        return lambda g: self.back([*zeros[:k], g, *zeros[k + 1 :]])

    @property
    def widest(self) -> int:
        """The bytes of the largest value on the tape."""
        return find_widest([*self.nodes, *self.leaves])

    def transpose(self, tape: Tape) -> LinearRecord:
        """Return a record of the backward pass, whose own backward pass takes tangents forward."""
        # any numbers would do: the backward pass is linear in them
        ones = [np.ones(v.shape, float_of(v.dtype))[()] for v in self.values]
        with set_transposing():
            transposed = LinearRecord(tape, self._pull, ones)
        transposed.is_transpose = True
        return transposed

    def _pull(self, cotangents: list[Any]) -> list[Any]:
        return [
            d if d is not None else make_zero_gradient(x)
            for d, x in zip(self.back(cotangents), self.leaves, strict=True)
        ]


class Linear:
    """A function at a point: its inputs, its outputs, and the record of the run."""

    aux: Any = None

    def __init__(self, face: str, xs: Sequence[Any], call: BoundCall, tape: Tape) -> None:
        self.inputs = Inputs(face, xs, call)
        # The caller may change arrays of its own before the derivative is applied.
        self.inputs.values = [
            v if isinstance(leaf, Tensor) or not isinstance(v, np.ndarray) else v.copy()
            for leaf, v in zip(self.inputs.given, self.inputs.values, strict=True)
        ]
        kind = max(self.inputs.kind, kind_of_passed(call))

        def run(leaves: list[Any]) -> list[Any]:
            y = call(*self.inputs.fill(leaves))
            if call.has_aux:
                y, aux = split_aux(face, y)
                self.aux = detach_aux(aux, tape, self.inputs.values, kind, is_kept=True)
            self.outputs = Outputs(face, y, kind)
            return self.outputs.given

        self.record = LinearRecord(tape, run, self.inputs.values)
        self.outputs.release(self.record.values)

    @property
    def value(self) -> Any:
        """The value of the function; its arrays are copies, as the caller may change them while the tape needs them."""
        return self.outputs.convert_back([z.copy() if type(z) is np.ndarray else z for z in self.record.values])


def _record(face: str, xs: Sequence[Any], call: BoundCall) -> Linear:
    with open_recording() as tape:
        return Linear(face, xs, call, tape)


def vjp(
    f: Callable[..., Any],
    /,
    *args: TensorLike,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: bool = False,
    **kwargs: object,
) -> tuple[Any, ...]:
    """Return the value of ``f(*args, **kwargs)``, and ``pull``, which maps a cotangent to those of ``args``.

    ``f`` is run once; ``pull`` may be called many times, under ``vmap`` as well, and it can be differentiated.  It
    takes a tree of the structure of the value, and returns a tuple with one entry for each positional argument.
    ``argnums`` and ``argnames`` choose other arguments to differentiate by: one gives its cotangent, a tuple of them a
    tuple.  ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(y, pull, aux)``.

    >>> import numpy as np, pullback as pb
    >>> y, pull = pb.vjp(lambda x, w: x * w, np.array([1.0, 2.0]), 3.0)
    >>> y
    array([3., 6.])
    >>> pull(np.array([1.0, 10.0]))
    (array([ 3., 30.]), 21.0)
    >>> y, pull = pb.vjp(lambda x, w: x * w, np.array([1.0, 2.0]), 3.0, argnums=1)
    >>> pull(np.array([1.0, 10.0]))
    21.0
    """
    call, selection = call_by_all("vjp", f, args, kwargs, argnums, argnames)
    call.has_aux = has_aux
    y, back, aux = record_pull(call.xs, call)

    pull = back if selection is None else lambda dy: selection.pack(back(dy))
    return (y, pull, aux) if has_aux else (y, pull)


@observe_calls("vjp")
def record_pull(xs: Sequence[Any], call: BoundCall) -> tuple[Any, Callable[[Any], tuple[Any, ...]], Any]:
    """Return the value of a call, a function that pulls a cotangent of it back to ``xs``, and aux."""
    recorded = _record("vjp", xs, call)
    inputs, outputs, record = recorded.inputs, recorded.outputs, recorded.record
    y = recorded.value

    def pull(dy: object, *more: object) -> tuple[Any, ...]:
        if more:
            raise ArgumentError(
                f"vjp: pull takes one cotangent, a tree like y, and was given {1 + len(more)} arguments. "
                "For several results it is pull((dy0, dy1))."
            )
        rows = pair_leaves("vjp: pull", "cotangent", "y", outputs.structure, dy)
        gs = [check_alike("vjp: pull", "cotangent", *row) for row in rows]
        taken: list[Any] = [*gs]
        ds = []
        for d, x, dtype in zip(record.back(gs), inputs.values, inputs.gradient_dtypes(record.values), strict=True):
            ds.append(finish_derivative(d, x.shape, dtype, taken))
            taken.append(ds[-1])
        return inputs.convert_back(ds)

    return y, pull, recorded.aux


def linearize(
    f: Callable[..., Any],
    /,
    *args: object,
    argnums: int | None = None,
    argnames: Any = None,
    has_aux: bool = False,
    **kwargs: object,
) -> tuple[Any, ...]:
    """Return the value of ``f(*args, **kwargs)``, and ``push``, which maps tangents of ``args`` to its tangent.

    As ``jvp``, for many tangents at the same point: ``f`` is run once, and only what is linear in the tangents is left
    to do in ``push``.  It takes a tangent for each positional argument, or for each that ``argnums`` and ``argnames``
    choose.  ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(y, push, aux)``.

    >>> import numpy as np, pullback as pb
    >>> y, push = pb.linearize(np.sin, 0.0)
    >>> y, push(1.0), push(2.0)
    (0.0, 1.0, 2.0)
    """
    call, _ = call_by_all("linearize", f, args, kwargs, argnums, argnames)
    call.has_aux = has_aux
    y, push, aux = record_push(call.xs, call)
    return (y, push, aux) if has_aux else (y, push)


@observe_calls("linearize")
def record_push(xs: Sequence[Any], call: BoundCall) -> tuple[Any, Callable[..., Any], Any]:
    """Return the value of a call, a function that pushes tangents of ``xs`` to that of the value, and aux."""
    recorded = _record("linearize", xs, call)
    inputs, outputs = recorded.inputs, recorded.outputs
    y, values = recorded.value, recorded.record.values
    with open_recording() as tape:
        forward = recorded.record.transpose(tape)

    def push(*tangents: object) -> Any:
        ts = inputs.directions(tangents, "tangent")
        moved = zip(forward.back(ts), values, strict=True)
        return outputs.convert_back([finish_derivative(d, z.shape, float_of(z.dtype), ts) for d, z in moved])

    return y, push, recorded.aux
