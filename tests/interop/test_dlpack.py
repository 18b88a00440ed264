"""from_dlpack: tensors of the memory of other libraries, and tensors for them."""

from __future__ import annotations

import numpy as np
import pytest

import pullback as pb
from pullback.errors import ArgumentError, DataError, TracedValueError


class Exporter:
    """An array of another library, on some device."""

    def __init__(self, array, device=(1, 0)):
        self.array, self.device = array, device

    def __dlpack__(self, **kwargs):
        return self.array.__dlpack__(**kwargs)

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32", "uint8", "complex128", "bool"])
@pytest.mark.parametrize("wrap", [lambda a: a, Exporter])
def test_from_dlpack_shares_memory(dtype, wrap):
    a = np.arange(6).reshape(2, 3).astype(dtype)
    t = pb.from_dlpack(wrap(a))
    assert isinstance(t, pb.Tensor)
    assert t.dtype == a.dtype
    np.testing.assert_array_equal(t.numpy(), a)
    assert np.shares_memory(np.asarray(t), a)
    assert not np.asarray(t).flags.writeable


def test_from_dlpack_of_views_and_read_only_arrays():
    a = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(pb.from_dlpack(a.T[::2]).numpy(), a.T[::2])
    a.flags.writeable = False
    assert pb.from_dlpack(a).shape == (2, 3)
    assert pb.from_dlpack(np.array(3.0)).item() == 3.0


def test_from_dlpack_copy():
    a = np.ones(2)
    shared, own = pb.from_dlpack(a), pb.from_dlpack(a, copy=True)
    a[0] = 9.0
    assert shared.numpy().tolist() == [9, 1]
    assert own.numpy().tolist() == [1, 1]


def test_from_dlpack_does_not_write_shared_memory():
    a = np.ones(2)
    t = pb.from_dlpack(a)
    t[0] = 5.0
    assert t.numpy().tolist() == [5, 1]
    assert a.tolist() == [1, 1]


def test_from_dlpack_gradient():
    a = np.array([1.0, 2.0])
    t = pb.from_dlpack(a)
    np.testing.assert_array_equal(pb.grad(lambda x: np.sum(x * x))(t).numpy(), 2 * a)
    assert pb.grad(lambda x: np.sum(pb.from_dlpack(x) * a))(a).tolist() == [1, 2]


def test_from_dlpack_bad_input_raises():
    with pytest.raises(ArgumentError, match=r"on a device of CUDA \(number 1\).*x\.cpu\(\)"):
        pb.from_dlpack(Exporter(np.ones(2), (2, 1)))
    with pytest.raises(ArgumentError, match="on a device of kind 99"):
        pb.from_dlpack(Exporter(np.ones(2), (99, 0)))
    with pytest.raises(ArgumentError, match=r"expected an array with __dlpack__ .* got list.*pb\.tensor"):
        pb.from_dlpack([1.0])
    with pytest.raises(DataError, match="NumPy cannot take this ndarray"):
        pb.from_dlpack(np.array(["text"]))


def test_numpy_takes_tensors_by_dlpack():
    t = pb.tensor([1.0, 2.0])
    a = np.from_dlpack(t)
    if a.flags.writeable:  # older NumPy takes all memory as read-only
        a[0] = 9.0
    assert t.numpy().tolist() == [1, 2]
    with pytest.raises(TracedValueError, match="DLPack export"):
        pb.grad(lambda x: np.sum(np.from_dlpack(x)))(np.ones(2))


def test_torch_tensors_by_dlpack():
    torch = pytest.importorskip("torch")
    t = pb.from_dlpack(torch.arange(3.0))
    assert t.numpy().tolist() == [0, 1, 2]
    assert torch.from_dlpack(t).tolist() == [0, 1, 2]
