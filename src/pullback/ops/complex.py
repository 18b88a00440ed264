"""Complex numbers: real and imaginary parts, conjugate, angle.

Rules are written for real numbers; where a result is complex the tape conjugates what goes in and what comes out.  So
only ops that treat the two parts differently have rules for complex numbers.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.axes import Sample, Shape, broadcast, elementwise2, moves
from pullback.core.calculus import linear, rule
from pullback.core.convert import float_of
from pullback.core.lowering import scalar
from pullback.core.op import alias, op
from pullback.core.tensor import NUMPY, Tensor
from pullback.core.writes import link_part
from pullback.errors import ArgumentError
from pullback.numerics.adjoints import make_zero_cotangent, replace_zeros

if TYPE_CHECKING:
    from pullback.typing import Array, TensorLike, Value

__all__ = ["angle", "complex", "conj", "conjugate", "imag", "real"]


def is_complex(x: Value) -> bool:
    return bool(x.dtype.kind == "c")


def _list_samples() -> list[Sample]:
    """Return real and complex numbers of several shapes."""
    rng = np.random.default_rng(3)
    shapes: list[Shape] = [(), (3,), (2, 3), (0, 2)]
    numbers = [rng.uniform(0.5, 2, n) * np.exp(1j * rng.uniform(-3, 3, n)) for n in shapes]
    return [*(((n,), {}) for n in shapes), *(((np.asarray(z),), {}) for z in numbers)]


parts = broadcast("()->()", _list_samples)


@op(
    np.real,
    acts=parts,
    d=linear(lambda g: g),
    run=lambda x: x.real.copy("K") if is_complex(x) else x,
    lower=scalar(lambda s, x: x),
)
def real(x: TensorLike, /) -> Any:
    """Return the real part; real numbers are returned unchanged.

    x: a tensor, an array or a number.

    >>> pb.real(np.array([1 + 2j, 3 - 4j]))
    array([1., 3.])
    """


@op(
    np.imag,
    acts=parts,
    d=linear(lambda g, x: g * 1j if is_complex(x) else make_zero_cotangent(g)),
    run=lambda x: x.imag.copy("K") if is_complex(x) else np.zeros(x.shape, x.dtype)[()],
    lower=scalar(lambda s, x: 0),
)
def imag(x: TensorLike, /) -> Any:
    """Return the imaginary part, which is 0 for real numbers.

    x: a tensor, an array or a number.

    >>> pb.imag(np.array([1 + 2j, 3 - 4j]))
    array([ 2., -4.])
    """


@op(np.conjugate, acts=parts, d=linear(lambda g: np.conjugate(g)), lower=scalar(lambda s, x: x))
def conj(x: TensorLike, /) -> Any:
    """Return the complex conjugate; real numbers are returned unchanged.

    x: a tensor, an array or a number.

    >>> pb.conj(np.array([1 + 2j, 3 - 4j]))
    array([1.-2.j, 3.+4.j])
    """


def compute_angle(x: Array) -> Any:
    """Return ``np.angle``, in float32 at least."""
    return np.angle(x if x.dtype.kind in "fc" else x.astype(np.result_type(x.dtype, np.float32)))


@op(
    np.angle,
    acts=parts,
    d=rule(
        lambda g, x: g * (np.sign(x) / replace_zeros(np.absolute(x)) * 1j) if is_complex(x) else make_zero_cotangent(g),
        jvp=lambda dx, x: (
            np.imag(np.conjugate(np.sign(x)) * dx) / replace_zeros(np.absolute(x))
            if is_complex(x)
            else make_zero_cotangent(dx)
        ),
    ),
    run=compute_angle,
    domain=(0.5, 2.0),
)
def angle(x: TensorLike, /) -> Any:
    """Return the angle from the positive real axis, between -π and π; its derivative at 0 is 0.

    x: a tensor, an array or a number.

    >>> pb.angle(np.array([1.0, 1j, -1j]))
    array([ 0.        ,  1.57079633, -1.57079633])
    """


def _join_parts(real: Array, imag: Array) -> Any:
    for name, x in (("real", real), ("imag", imag)):
        if is_complex(x):
            raise ArgumentError(f"complex: {name} must be real numbers, got dtype {x.dtype}.")
    wide = np.result_type(float_of(real.dtype), float_of(imag.dtype), np.complex64)
    z = np.empty(np.broadcast_shapes(real.shape, imag.shape), wide)
    z.real, z.imag = real, imag
    return z if z.ndim else z[()]


@op(
    _join_parts,
    acts=moves(lambda x, y: elementwise2.shape("complex", (x, y), {}), elementwise2.samples(), elementwise2.batch),
    d=rule(lambda g: g, lambda g: g * 1j, jvp=lambda dreal, dimag: dreal + dimag * 1j),
)
def complex(real: TensorLike, imag: TensorLike, /) -> Any:
    """Return the complex numbers with these real and imaginary parts.

    real: the real part.
    imag: the imaginary part.

    >>> pb.complex(np.array([1.0, 3.0]), np.array([2.0, -4.0]))
    array([1.+2.j, 3.-4.j])
    """


conjugate = alias("conjugate", conj)


def _real_part(x: Value) -> Any:
    """Return ``x.real``, a view of ``x`` as in NumPy."""
    if not isinstance(x, Tensor) or not is_complex(x):
        return x
    return link_part(real(x), x, _derive_by(real), lambda base, value: complex(value, imag(base)))


def _imaginary_part(x: Value) -> Any:
    """Return ``x.imag``, a view of ``x`` as in NumPy."""
    if not isinstance(x, Tensor) or not is_complex(x):
        return imag(x)
    return link_part(imag(x), x, _derive_by(imag), lambda base, value: complex(real(base), value))


def _derive_by(part: Any) -> Any:
    """Return a function from the base of a view to the view; an array that stands for a layout is not complex."""
    return lambda x: part(x) if is_complex(x) else x.astype("complex64").real


def _write_real_part(x: Tensor, value: TensorLike) -> None:
    _real_part(x)[...] = value


def _write_imaginary_part(x: Tensor, value: TensorLike) -> None:
    if not is_complex(x):
        raise ArgumentError(f"x.imag = value: x must be complex, got dtype {x.dtype}. Use x = x + 1j * value.")
    _imaginary_part(x)[...] = value


setattr(Tensor, "real", property(_real_part, _write_real_part))  # noqa: B010  # as NumPy has them
setattr(Tensor, "imag", property(_imaginary_part, _write_imaginary_part))  # noqa: B010
NUMPY[np.real], NUMPY[np.imag] = (lambda val: _real_part(val)), (lambda val: _imaginary_part(val))
