"""Movement, joining and padding: what the generated tests do not say."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from differences import gradient

import pullback as pb
from pullback.errors import ArgumentError, ShapeError

X = np.arange(1.0, 7.0).reshape(2, 3)


def weighed(f: Any) -> Any:
    """A scalar that tells all elements of all results apart."""

    def g(x: Any) -> Any:
        parts = f(x)
        parts = parts if isinstance(parts, list) else [parts]
        flat = pb.concat([pb.reshape(p, [-1]) for p in parts])
        return (flat * np.arange(1.0, flat.size + 1) ** 2).sum() + (flat * flat).sum()

    return g


COMPOSED = {
    "unstack": lambda x: pb.unstack(x, 1),
    "unstack last": lambda x: pb.unstack(x, -1)[::-1],
    "split in three": lambda x: pb.split(x, 3, 1),
    "split by lengths": lambda x: pb.split(x, [1, -1], axis=-1),
    "one piece unused": lambda x: pb.split(x, 3, 1)[1],
    "slice": lambda x: pb.slice(x, [0, 1], [-1, 2]),
    "slice from a number": lambda x: pb.slice(x, 1),
    "slice2d": lambda x: pb.slice2d(x, [1, 0], [1, 2]),
    "strided": lambda x: pb.strided_slice(x, [0, 2], [2, 0], [1, -1]),
    "masks": lambda x: pb.strided_slice(x, [1, 1], [0, 0], None, begin_mask=1, end_mask=3),
    "ellipsis and new axis": lambda x: pb.strided_slice(x, [0, 0, 1], [0, 0, 2], ellipsis_mask=1, new_axis_mask=2),
    "shrink": lambda x: pb.strided_slice(x, [1, 0], [2, 3], [1, 2], shrink_axis_mask=1),
    "reflect": lambda x: pb.mirror_pad(x, [[1, 1], [2, 0]], "reflect"),
    "symmetric": lambda x: pb.mirror_pad(x, [[2, 1], [0, 3]], "symmetric"),
    "reflect again and again": lambda x: pb.mirror_pad(x, [[0, 0], [5, 4]], "reflect"),
    "pad1d": lambda x: pb.pad1d(x.flatten(), [1, 2], 7.0),
    "concat of itself": lambda x: pb.concat([x, x * 2.0, x], 1),
    "concat flat": lambda x: np.concatenate([x, np.ones(2), x], axis=None),
    "stack with numbers": lambda x: pb.stack([x[0, 0], 3.0, x[1, 2], 1]),
    "methods": lambda x: x.concat(x.reverse(0)).transpose().reshape(2, 6).as3d(3, 2, 2).squeeze(),
    "stack method": lambda x: x.stack([x * x], -1),
}


@pytest.mark.parametrize("name", COMPOSED)
def test_gradients_of_composed_movement_ops(name: str) -> None:
    f = COMPOSED[name]
    np.testing.assert_allclose(pb.grad(weighed(f))(X), gradient(weighed(f), X), rtol=1e-6, atol=1e-6)
    v = np.ones_like(X)
    np.testing.assert_allclose(pb.jvp(weighed(f), [X], [v])[1], gradient(weighed(f), X).sum(), rtol=1e-6)


VALUES = {
    "negative perm": (lambda: pb.transpose(np.ones((2, 3, 4)), [-1, 0, 1]).shape, (4, 2, 3)),
    "method perm": (lambda: pb.tensor(np.ones((2, 3, 4))).transpose(2, 0, 1).shape, (4, 2, 3)),
    "numpy's keyword": (lambda: np.transpose(pb.tensor(np.ones((2, 3, 4))), axes=(2, 0, 1)).shape, (4, 2, 3)),
    "T": (lambda: pb.tensor(X).T.shape, (3, 2)),
    "transposed scalar": (lambda: pb.transpose(pb.scalar(2.0)).item(), 2.0),
    "reshape to nothing": (lambda: type(pb.reshape(np.ones(1), [])), np.float64),
    "reshape of a scalar": (lambda: pb.reshape(pb.scalar(2.0), [1, 1]).shape, (1, 1)),
    "expand None": (lambda: pb.expand_dims(np.ones(3), None).shape, (1, 3)),
    "list is a tensor": (lambda: pb.reverse([1, 2, 3]).tolist(), [3.0, 2.0, 1.0]),
    "strided end": (lambda: pb.strided_slice(np.arange(6), [-2], [-6], [-2]).tolist(), [4, 2]),
    "concat ints": (lambda: pb.concat([np.array([1], "i4"), np.array([2.5], "f4")]).dtype, np.float32),
    "stack weak": (lambda: pb.stack([np.float32(1), 2.5, 3]).dtype, np.float32),
    "as_scalar": (lambda: pb.tensor([[3.0]]).as_scalar().shape, ()),
    "reshape_as": (lambda: pb.tensor(X).reshape_as(np.ones((3, 2))).shape, (3, 2)),
    "roll": (lambda: pb.roll(X, [1, -1], [0, 1]).tolist(), np.roll(X, (1, -1), (0, 1)).tolist()),
}


@pytest.mark.parametrize("name", VALUES)
def test_movement_values(name: str) -> None:
    f, want = VALUES[name]
    assert f() == want


REFUSED = {
    "reshape": (lambda: pb.reshape(X, [4, 2]), ShapeError, r"reshape: x has shape \(2, 3\), that is 6 .* \(4, 2\)"),
    "two unknown": (lambda: pb.reshape(X, [-1, -1]), ShapeError, "more than one -1"),
    "does not divide": (lambda: pb.reshape(X, [4, -1]), ShapeError, r"do not fit shape \(4, -1\)"),
    "perm": (lambda: pb.transpose(X, [0, 0]), ShapeError, r"named twice in \[0, 0\]"),
    "short perm": (lambda: pb.transpose(X, [0]), ShapeError, "each of the 2 axes"),
    "axis": (lambda: pb.unstack(X, 2), ShapeError, "unstack: axis 2 is out of range for rank 2"),
    "unstack scalar": (lambda: pb.unstack(pb.scalar(1.0)), ShapeError, "rank 0"),
    "squeeze": (lambda: pb.squeeze(X, [0]), ShapeError, r"squeeze: cannot select .* \(given shapes \(2, 3\), float"),
    "expand": (
        lambda: pb.expand_dims(X, 4),
        ShapeError,
        r"expand_dims: axis 4 is out of .* \(given shapes \(2, 3\), .*axis=4\)",
    ),
    "broadcast": (lambda: pb.broadcast_to(X, [3, 3]), ShapeError, r"\(2, 3\), which cannot be broadcast to \(3, 3\)"),
    "tile": (lambda: pb.tile(X, [-1, 1]), ShapeError, "tile: reps must not be negative"),
    "concat": (
        lambda: pb.concat([X, X.T]),
        ShapeError,
        r"tensors\[1\] has shape \(3, 2\); all lengths but that of axis 0",
    ),
    "concat nothing": (lambda: pb.concat([]), ArgumentError, "concat: expected at least one tensor"),
    "concat2d": (
        lambda: pb.concat2d([X, X[0]]),
        ShapeError,
        r"concat2d: tensors\[1\] must have rank 2, got shape \(3,\)",
    ),
    "stack": (lambda: pb.stack([X, X[0]]), ShapeError, r"tensors\[1\] has shape \(3,\); they must be the same"),
    "split": (lambda: pb.split(X, 2, 1), ShapeError, "axis 1 of length 3 cannot be cut into 2 equal pieces"),
    "split lengths": (lambda: pb.split(X, [1, 1], 1), ShapeError, r"\[1, 1\] must add up to the length 3 of axis 1"),
    "split negative": (lambda: pb.split(X, [4, -1], 1), ShapeError, r"\[4, -1\] must add up"),
    "slice": (
        lambda: pb.slice(X, [0, 2], [1, 2]),
        ShapeError,
        r"slice: x has shape \(2, 3\).* beyond axis 1 of length 3",
    ),
    "slice axes": (lambda: pb.slice(X, [0, 0, 0]), ShapeError, "more axes than that"),
    "slice1d": (lambda: pb.slice1d(X, 0), ShapeError, r"slice1d: x must have rank 1, got shape \(2, 3\)"),
    "strides": (lambda: pb.strided_slice(X, [0], [1], [0]), ArgumentError, "strides must not be 0"),
    "strided lengths": (lambda: pb.strided_slice(X, [0], [1, 2]), ArgumentError, "must be of the same length"),
    "reverse": (lambda: pb.reverse(X, 2), ShapeError, r"reverse: .*\(given shapes \(2, 3\), float"),
    "reverse3d": (lambda: pb.reverse3d(X), ShapeError, "reverse3d: x must have rank 3"),
    "pad": (lambda: pb.pad(X, [[1, 1]]), ShapeError, r"pad: x has shape \(2, 3\), so paddings must be 2 pairs"),
    "pad negative": (lambda: pb.pad(X, [[1, -1], [0, 0]]), ShapeError, ">= 0"),
    "pad what": (lambda: pb.pad(X, 3), ArgumentError, "pad: paddings must be a pair"),
    "mode": (lambda: pb.mirror_pad(X, [[0, 0], [0, 0]], "wrap"), ArgumentError, "'reflect' or 'symmetric', got 'wrap'"),
    "mirror nothing": (lambda: pb.mirror_pad(np.ones(0), [[1, 0]]), ShapeError, "nothing to mirror along axis 0"),
    "as_scalar": (lambda: pb.as_scalar(X), ShapeError, r"as_scalar: x has shape \(2, 3\)"),
}


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("kind", ["plain", "traced"])
def test_movement_bad_input_raises(name: str, kind: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call() if kind == "plain" else pb.grad(lambda _: call())(1.0)


def test_movement_gradients_own_their_memory() -> None:
    gradient = pb.grad(lambda x: pb.transpose(x).reshape([-1]).sum())(X)
    gradient[0, 0] = 5.0
    assert pb.grad(lambda x: pb.transpose(x).reshape([-1]).sum())(X)[0, 0] == 1.0


def test_reshape_method_in_column_order_and_as_copy() -> None:
    x = pb.tensor(X)
    for shape in ((3, 2), ([3, 2],)):
        np.testing.assert_array_equal(x.reshape(*shape, order="F"), X.reshape(*shape, order="F"))
    z = x.reshape(3, 2, copy=True)
    z[0, 0] = 9.0
    np.testing.assert_array_equal(x, X)
    assert z[0, 0].item() == 9.0
    weights = np.arange(6.0).reshape(3, 2)
    found = pb.grad(lambda x: np.sum(x.reshape(3, 2, order="F", copy=True) * weights))(X)
    np.testing.assert_array_equal(found, weights.reshape(2, 3, order="F"))


def test_stack_of_nothing_raises() -> None:
    with pytest.raises(ArgumentError, match="stack: expected at least one tensor, got an empty list"):
        pb.stack([])
