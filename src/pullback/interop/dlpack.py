"""DLPack: tensors that share the memory of another library's arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from pullback.core.tape import constant
from pullback.core.tensor import Tensor
from pullback.errors import ArgumentError, DataError

HOST = (1, 3, 11)  # the kinds of devices whose memory the CPU reads: CPU, pinned for CUDA, pinned for ROCm
DEVICES = {2: "CUDA", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 10: "ROCm", 13: "CUDA managed", 14: "oneAPI", 15: "WebGPU"}


def from_dlpack(x: Any, /, *, copy: bool | None = None) -> Tensor:
    """Return a tensor that shares the memory of another library's array, by DLPack.

    x: an object with ``__dlpack__`` and ``__dlpack_device__``, such as an array of NumPy or a tensor of PyTorch, in
        memory that the CPU reads.
    copy: ``True`` for a copy of its own; else the tensor shares the memory and sees what its owner writes there
        later.  It does not write there itself.

    The other way, ``np.from_dlpack(t)`` and ``torch.from_dlpack(t)`` take a tensor, as a copy.

    >>> import numpy as np, pullback as pb
    >>> a = np.array([1.0, 2.0])
    >>> t = pb.from_dlpack(a)
    >>> t
    Tensor([1., 2.], dtype=float64)
    >>> np.shares_memory(a, np.asarray(t)), np.asarray(t).flags.writeable
    (True, False)
    """
    if isinstance(x, Tensor):
        return x
    if not hasattr(x, "__dlpack__") or not hasattr(x, "__dlpack_device__"):
        raise ArgumentError(
            f"from_dlpack: expected an array with __dlpack__ and __dlpack_device__, got {type(x).__name__}. "
            "Numbers and lists become tensors by pb.tensor."
        )
    kind, number = x.__dlpack_device__()
    if int(kind) not in HOST:
        device = DEVICES.get(int(kind), f"kind {int(kind)}")
        raise ArgumentError(
            f"from_dlpack: the array is on a device of {device} (number {number}), and pullback computes on the CPU. "
            "Copy it there first, as x.cpu() does in PyTorch."
        )
    try:
        array = np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError) as error:
        raise DataError(f"from_dlpack: NumPy cannot take this {type(x).__name__}: {error}") from error
    array = array.copy() if copy else array.view()
    array.flags.writeable = False  # a tensor never changes what it was made of
    return constant(array)
