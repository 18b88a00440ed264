"""Loops and branches of a program that is being compiled, as ops: each transform makes another one of them.

Their bodies are closed functions, recorded by the trace of the program (``Body``).  A transform that meets such an op
runs its bodies once, on symbols, and performs the op with the bodies that were recorded meanwhile one level down.  So
any transforms may be nested in any order, and the trace is given one loop or branch for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pullback.core.convert import float_of, unwrap_constant
from pullback.core.interpreter import new_level
from pullback.core.tensor import BY_KERNEL, Tensor
from pullback.transforms.batch import Batched, take_out
from pullback.transforms.forward import Dual, split_dual
from pullback.transforms.gates import Gate, open_gate
from pullback.transforms.linear import LinearRecord
from pullback.transforms.modifiers import stop_gradient
from pullback.transforms.session import open_recording


def is_float(like: Any) -> bool:
    return bool(like.dtype.kind in "fc")


def align_examples(taken: Any, x: Any) -> Any:
    """Return a value for each example as an array with the axes of ``x``, whose first one is that of the examples."""
    return np.reshape(taken, (-1, *(1,) * (np.ndim(x) - 1)))


def hold_back_gradient(taken: Any, x: Any) -> Any:
    """Return ``x``, whose cotangent is 0 where ``taken`` is false, even where it would be infinite or NaN."""
    return np.where(taken, x, stop_gradient(x))


def make_zeros(like: Any) -> Any:
    """Return a zero tangent or cotangent, which takes no memory."""
    return np.broadcast_to(np.zeros((), float_of(like.dtype)), like.shape)[()]


def record_jvp(body: Any, moving: Sequence[bool], wanted: Sequence[bool]) -> Any:
    """Return the body that also pushes tangents.

    Its inputs are followed by the tangents of those that are ``moving``, its outputs by those of the ``wanted`` ones.
    """
    with body.open_trace() as trace:
        xs = [trace.add_input(*like) for like in body.input_likes]
        ts = iter([trace.add_input(x.shape, float_of(x.dtype)) for x, on in zip(xs, moving, strict=True) if on])
        number = new_level()
        duals = [Dual(number, x, next(ts)) if on else x for x, on in zip(xs, moving, strict=True)]
        pairs = [split_dual(z, number) for z in body(duals)]
        pushed = [
            make_zeros(z) if t is None else fit_derivative(t, z) for (z, t), on in zip(pairs, wanted, strict=True) if on
        ]
        return close(trace, [*(z for z, _ in pairs), *pushed])


def record_batch(body: Any, on: Sequence[bool], wanted: Sequence[bool], size: int) -> Any:
    """Return the body for ``size`` examples, along axis 0 of inputs that are ``on`` and of ``wanted`` outputs."""
    with body.open_trace() as trace:
        likes = body.input_likes
        xs = [
            trace.add_input((size, *x.shape), x.dtype) if b else trace.add_input(*x)
            for x, b in zip(likes, on, strict=True)
        ]
        number = new_level()
        zs = body([Batched(number, x) if b else x for x, b in zip(xs, on, strict=True)])
        return close(
            trace, [take_out(z, 0, number, size) if b else unwrap_constant(z) for z, b in zip(zs, wanted, strict=True)]
        )


class Joint:
    """A body and its backward pass, recorded as one body, with the numbers of its values.

    The cotangents of the first ``summed`` inputs are added to sums, which are inputs of the joint body.  A cotangent of
    these, or of the ``carried`` ones after them, that may not be there comes with a bool; for a sum it says whether any
    part is there.
    """

    def __init__(
        self, body: Any, moving: Sequence[bool], has_cotangent: Sequence[bool], summed: int = 0, carried: int = 0
    ) -> None:
        """Run the body and its backward pass; ``has_cotangent`` says which outputs have one."""
        with body.open_trace() as trace:
            xs = [trace.add_input(*like) for like in body.input_likes]
            with open_recording() as tape:

                def run(traced: list[Any]) -> list[Any]:
                    source = iter(traced)
                    return list(body([next(source) if on else x for x, on in zip(xs, moving, strict=True)]))

                record = LinearRecord(tape, run, [x for x, on in zip(xs, moving, strict=True) if on])
            zs = record.values
            gs = [
                trace.add_input(z.shape, float_of(z.dtype)) if on else None
                for z, on in zip(zs, has_cotangent, strict=True)
            ]
            found = iter(record.pull(gs))
            ds = [next(found) if on else None for on in moving]
            taken = {i: d.taken for i, d in enumerate(ds) if isinstance(d, Gate)}
            ds = [
                None if d is None else fit_derivative(make_dense(open_gate(d)), x) for d, x in zip(ds, xs, strict=True)
            ]
            sums = [
                trace.add_input(x.shape, d.dtype) if i < summed and d is not None else None
                for i, (x, d) in enumerate(zip(xs, ds, strict=True))
            ]
            ds = [d if total is None else total + d for d, total in zip(ds, sums, strict=True)]
            seen = {i: trace.add_input((), np.bool_) for i in taken if i < summed + carried}
            taken |= {i: np.logical_or(before, taken[i]) for i, before in seen.items() if i < summed}
            self.whole = close(trace, [*zs, *(d for d in ds if d is not None), *taken.values()])
        numbers = iter(self.whole.inputs)
        self.inputs: list[int] = [next(numbers) for _ in xs]
        self.cotangents = {i: next(numbers) for i, g in enumerate(gs) if g is not None}  # by output
        self.sums = {i: next(numbers) for i, total in enumerate(sums) if total is not None}  # by input
        self.seen = {i: next(numbers) for i in seen}  # by input: what ``taken`` was in the step before
        self.values = self.whole.outputs[: len(zs)]
        pulled = iter(self.whole.outputs[len(zs) :])
        self.pulled = {i: next(pulled) for i, d in enumerate(ds) if d is not None}  # by input
        self.taken = {i: next(pulled) for i in taken}  # whether a cotangent is there, for those that may not be


def close(trace: Any, outputs: Sequence[Any]) -> Any:
    """Return the body that a trace recorded; it must not have captured anything."""
    body, captured = trace.close(outputs)
    if captured:
        raise AssertionError(f"a body captured {captured} while it was transformed")
    return body


def fit_derivative(d: Any, x: Any) -> Any:
    """Return a derivative by ``x`` in its shape and in the dtype of derivatives."""
    wanted = float_of(x.dtype)
    d = d if np.shape(d) == x.shape else np.broadcast_to(d, x.shape)
    return d if d.dtype == wanted else d.astype(wanted)


def make_dense(d: Any) -> Any:
    """Return a cotangent that may be row-sparse as a dense one."""
    return d.to_dense() if hasattr(d, "to_dense") else d


def stack_values(values: Sequence[Any]) -> Any:
    """Return values of several steps, tensors of any level or arrays, stacked along a new axis 0."""
    if any(isinstance(z, Tensor) for z in values):
        return BY_KERNEL[np.stack].function([*values])
    return np.stack([np.asarray(z) for z in values])


def repeat_for_examples(arrays: Sequence[Any], on: Sequence[bool], wanted: Sequence[bool], size: int) -> list[Any]:
    """Return operands, of which the ``wanted`` ones that are the same for all examples are repeated for each."""
    return [
        np.broadcast_to(x, (size, *np.shape(x))) if now and not before else x
        for x, before, now in zip(arrays, on, wanted, strict=True)
    ]


def split_pushed(results: Sequence[Any], wanted: Sequence[bool]) -> tuple[list[Any], list[Any]]:
    """Return results, and their tangents, which follow them for those that are ``wanted``; None for the others."""
    after = iter(results[len(wanted) :])
    return list(results[: len(wanted)]), [next(after) if on else None for on in wanted]


def get_array(x: Any) -> Any:
    """Return the array in a tensor that no transform follows."""
    return x.value if isinstance(x, Tensor) and not x.level else x
