"""Creation: what goes into a tensor, and what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError, ShapeError, TracedValueError

F32, F64, I32, I64, BOOL = (np.dtype(t) for t in ("f4", "f8", "i4", "i8", "?"))

MADE = {
    "numbers": (lambda: pb.tensor([1, 2]), F32, [1.0, 2.0]),
    "one number": (lambda: pb.tensor(3), F32, 3.0),
    "bools": (lambda: pb.tensor([True, False]), BOOL, [True, False]),
    "bools and numbers": (lambda: pb.tensor([True, 2]), F32, [1.0, 2.0]),
    "None is 0": (lambda: pb.tensor([[1, None], [3, 4]]), F32, [[1.0, 0.0], [3.0, 4.0]]),
    "array": (lambda: pb.tensor(np.array([1.5])), F64, [1.5]),
    "integers": (lambda: pb.tensor(np.arange(2)), I64, [0, 1]),
    "numpy scalars": (lambda: pb.tensor([np.float64(1), 2.0]), F64, [1.0, 2.0]),
    "list of arrays": (lambda: pb.tensor([np.zeros(1, "i4"), np.ones(1, "i4")]), I32, [[0], [1]]),
    "integers and a number": (lambda: pb.tensor([np.int32(1), 2.5]), F32, [1.0, 2.5]),
    "tensors": (lambda: pb.tensor([pb.scalar(1.0), 2.0]), F32, [1.0, 2.0]),
    "python range": (lambda: pb.tensor(range(3)), F32, [0.0, 1.0, 2.0]),
    "huge": (lambda: pb.tensor([2**70, 1]), F32, [float(2**70), 1.0]),
    "empty": (lambda: pb.tensor([[], []]), F32, [[], []]),
    "shape": (lambda: pb.tensor([1, 2, 3, 4], [2, 2]), F32, [[1.0, 2.0], [3.0, 4.0]]),
    "dtype": (lambda: pb.tensor([1.7, -1.7], dtype="int32"), I32, [1, -1]),
    "dtype in second place": (lambda: pb.tensor([1], "int32"), I32, [1]),
    "of a tensor": (lambda: pb.tensor(pb.tensor([1.5]), dtype="float64"), F64, [1.5]),
    "text": (lambda: pb.tensor(np.array(["a", "b"])), np.dtype("U1"), ["a", "b"]),
    "constant": (lambda: pb.constant([[1]]), F32, [[1.0]]),
    "scalar": (lambda: pb.scalar(2, "int32"), I32, 2),
    "tensor1d": (lambda: pb.tensor1d([1, 2], "bool"), BOOL, [True, True]),
    "tensor2d": (lambda: pb.tensor2d([1, 2], [1, 2], "int32"), I32, [[1, 2]]),
    "tensor3d": (lambda: pb.tensor3d([[[1]]]), F32, [[[1.0]]]),
    "zeros": (lambda: pb.zeros([2]), F32, [0.0, 0.0]),
    "zeros of a length": (lambda: pb.zeros(2, "int32"), I32, [0, 0]),
    "ones": (lambda: pb.ones([], "float64"), F64, 1.0),
    "fill": (lambda: pb.fill([2], 3), F32, [3.0, 3.0]),
    "fill bool": (lambda: pb.fill([1], True), BOOL, [True]),
    "fill dtype": (lambda: pb.fill([1], 3, "int32"), I32, [3]),
    "zeros_like": (lambda: pb.zeros_like(pb.tensor([1, 2], dtype="int32")), I32, [0, 0]),
    "ones_like": (lambda: pb.ones_like(pb.tensor([True])), BOOL, [True]),
    "full_like": (lambda: pb.full_like(pb.tensor([1.0, 2.0]), 7), F32, [7.0, 7.0]),
    "like of a list": (lambda: pb.ones_like([5, 6]), F32, [1.0, 1.0]),
    "range": (lambda: pb.range(0, 1, 0.25), F32, [0.0, 0.25, 0.5, 0.75]),
    "range down": (lambda: pb.range(3, 0), F32, [3.0, 2.0, 1.0]),
    "range by -2": (lambda: pb.range(4, 0, -2, "int32"), I32, [4, 2]),
    "range the wrong way": (lambda: pb.range(3, 0, 2), F32, []),
    "range to": (lambda: pb.range(3), F32, [0.0, 1.0, 2.0]),
    "range step left out": (lambda: pb.range(0, 2, None, "int32"), I32, [0, 1]),
    "linspace": (lambda: pb.linspace(0, 1, 3), F32, [0.0, 0.5, 1.0]),
    "linspace of none": (lambda: pb.linspace(0, 1, 0), F32, []),
    "eye": (lambda: pb.eye(2, 3), F32, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]),
    "eyes": (lambda: pb.eye(1, None, [2], "int32"), I32, [[[1]], [[1]]]),
}


@pytest.mark.parametrize("name", MADE)
def test_creation_values(name: str) -> None:
    call, dtype, values = MADE[name]
    t = call()
    assert isinstance(t, pb.Tensor)
    assert t.dtype == dtype
    assert t.tolist() == values


def test_creation_default_dtype() -> None:
    with pb.default_dtype("float64"):
        made = [
            pb.tensor([1]),
            pb.zeros([1]),
            pb.ones(1),
            pb.fill([1], 2),
            pb.eye(1),
            pb.range(1),
            pb.linspace(0, 1, 2),
        ]
    assert {t.dtype for t in made} == {F64}
    assert pb.zeros([1]).dtype == F32


class Held:
    """Something that shows its array to NumPy."""

    def __init__(self, values: Any) -> None:
        self.values = values

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self.values


@pytest.mark.parametrize("wrapped", [lambda a: a, lambda a: a.T, lambda a: a[::-1], Held, lambda a: a[0]])
def test_creation_ops_copy_arrays(wrapped: Any) -> None:
    a = np.ones((2, 2), np.float32)
    given = wrapped(a)
    made = [pb.tensor(given), pb.tensor(given, "float32")]
    a[:] = 5
    assert all((t.numpy() == 1).all() for t in made)


REFUSED = {
    "ragged": (lambda: pb.tensor([[1, 2], [3]]), DataError, "ragged: found lengths 2 and 1 at depth 1"),
    "deep ragged": (lambda: pb.tensor([[[1]], [[1, 2]]]), DataError, "ragged"),
    "number beside list": (lambda: pb.tensor([[1], 2]), DataError, "ragged: found lengths 1 and a number"),
    "text": (lambda: pb.tensor(["a"]), DataError, r"expected numbers, got text.*np\.array"),
    "text among numbers": (lambda: pb.tensor([1, "a"]), DataError, "got text"),
    "object": (lambda: pb.tensor([object()]), DataError, "expected numbers or nested lists of numbers, got object"),
    "nothing": (lambda: pb.tensor(None), DataError, "got NoneType"),
    "dict": (lambda: pb.tensor({"a": 1}), DataError, "got dict"),
    "object array": (lambda: pb.tensor(np.array([object()])), DataError, "dtype object"),
    "dates": (lambda: pb.tensor(np.array(["2020"], "M8[Y]")), DataError, "datetime64"),
    "no dtype": (lambda: pb.tensor([1], dtype="float31"), ArgumentError, "'float31' is not a dtype; try 'float32'"),
    "does not fit": (lambda: pb.tensor([300], dtype="uint8"), DataError, "do not fit dtype uint8"),
    "complex in real": (lambda: pb.tensor([1j], dtype="float32"), DataError, "do not fit dtype float32"),
    "too few": (lambda: pb.tensor([1, 2, 3], [2, 2]), ShapeError, r"shape \(2, 2\) has 4 values, but there are 3"),
    "other shape": (lambda: pb.tensor([[1, 2], [3, 4]], [4]), ShapeError, r"shape \(2, 2\), which is not .* \(4,\)"),
    "negative length": (
        lambda: pb.zeros([-1]),
        ArgumentError,
        r"zeros: shape must be integers of 0 or more, got \[-1\]",
    ),
    "shape of floats": (lambda: pb.ones([1.5]), ArgumentError, "ones: shape must be integers"),
    "scalar": (lambda: pb.scalar([1]), ShapeError, r"scalar: expected values of rank 0, got shape \(1,\)"),
    "tensor1d": (lambda: pb.tensor1d(1), ShapeError, r"tensor1d: expected values of rank 1, got shape \(\)"),
    "tensor2d": (
        lambda: pb.tensor2d([1, 2]),
        ShapeError,
        "tensor2d: expected values of rank 2.*flat list with a shape",
    ),
    "step": (lambda: pb.range(0, 3, 0), ArgumentError, "range: cannot have a step of 0"),
    "range of text": (lambda: pb.range("a"), ArgumentError, "range: stop must be a number, got str"),
    "linspace": (lambda: pb.linspace(0, 1, -1), ArgumentError, "linspace: num must be 0 or more, got -1"),
    "traced": (lambda: pb.grad(pb.tensor)(1.0), TracedValueError, "traced tensor"),
    "traced in a list": (lambda: pb.grad(lambda x: pb.tensor([x]))(1.0), TracedValueError, r"Use pb\.stack"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_creation_bad_input_raises(name: str) -> None:
    call, error, message = REFUSED[name]
    with pytest.raises(error, match=message):
        call()


def test_zeros_like_gradient_is_zero() -> None:
    x = np.array([1.0, np.inf])
    for f in (pb.zeros_like, pb.ones_like, lambda x: pb.full_like(x, 3.0)):
        assert pb.grad(f)(x).tolist() == [0.0, 0.0]
    assert pb.grad(lambda x: pb.fill([2, 2], x) * 3.0)(2.0) == 12.0
