"""The methods and operators that ops give to ``Tensor``.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Sequence
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.interop.numpy_methods import Flat
from pullback.typing import Array, Axis, DType, Index, Lengths, Number, Padding, Seed, ShapeLike, TensorLike, Value
from typing import Any, Generic, Literal, NamedTuple, TypeVar

V = TypeVar("V")

class PoolWithArgmax(NamedTuple, Generic[V]):
    """The result of ``max_pool_with_argmax``."""

    result: V
    indexes: V

class Moments(NamedTuple, Generic[V]):
    """The result of ``moments``."""

    mean: V
    variance: V

class SetDifference(NamedTuple, Generic[V]):
    """The result of ``setdiff1d``."""

    values: V
    indices: V

class TopK(NamedTuple, Generic[V]):
    """The result of ``topk``."""

    values: V
    indices: V

class Unique(NamedTuple, Generic[V]):
    """The result of ``unique``."""

    values: V
    indices: V

class TensorOps:
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: TensorLike, /) -> Tensor: ...
    def __and__(self, other: TensorLike, /) -> Tensor: ...
    def __eq__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __floordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __ge__(self, other: TensorLike, /) -> Tensor: ...
    def __getitem__(self, index: Index) -> Tensor: ...
    def __gt__(self, other: TensorLike, /) -> Tensor: ...
    def __iadd__(self, other: TensorLike, /) -> Tensor: ...
    def __iand__(self, other: TensorLike, /) -> Tensor: ...
    def __ifloordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __ilshift__(self, other: TensorLike, /) -> Tensor: ...
    def __imatmul__(self, other: TensorLike, /) -> Tensor: ...
    def __imod__(self, other: TensorLike, /) -> Tensor: ...
    def __imul__(self, other: TensorLike, /) -> Tensor: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: TensorLike, /) -> Tensor: ...
    def __ipow__(self, other: TensorLike, /) -> Tensor: ...
    def __irshift__(self, other: TensorLike, /) -> Tensor: ...
    def __isub__(self, other: TensorLike, /) -> Tensor: ...
    def __itruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __ixor__(self, other: TensorLike, /) -> Tensor: ...
    def __le__(self, other: TensorLike, /) -> Tensor: ...
    def __lshift__(self, other: TensorLike, /) -> Tensor: ...
    def __lt__(self, other: TensorLike, /) -> Tensor: ...
    def __matmul__(self, other: TensorLike, /) -> Tensor: ...
    def __mod__(self, other: TensorLike, /) -> Tensor: ...
    def __mul__(self, other: TensorLike, /) -> Tensor: ...
    def __ne__(self, other: object, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: TensorLike, /) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: TensorLike, /) -> Tensor: ...
    def __radd__(self, other: TensorLike, /) -> Tensor: ...
    def __rand__(self, other: TensorLike, /) -> Tensor: ...
    def __rfloordiv__(self, other: TensorLike, /) -> Tensor: ...
    def __rlshift__(self, other: TensorLike, /) -> Tensor: ...
    def __rmatmul__(self, other: TensorLike, /) -> Tensor: ...
    def __rmod__(self, other: TensorLike, /) -> Tensor: ...
    def __rmul__(self, other: TensorLike, /) -> Tensor: ...
    def __ror__(self, other: TensorLike, /) -> Tensor: ...
    def __round__(self, decimals: int = 0) -> Tensor: ...
    def __rpow__(self, other: TensorLike, /) -> Tensor: ...
    def __rrshift__(self, other: TensorLike, /) -> Tensor: ...
    def __rshift__(self, other: TensorLike, /) -> Tensor: ...
    def __rsub__(self, other: TensorLike, /) -> Tensor: ...
    def __rtruediv__(self, other: TensorLike, /) -> Tensor: ...
    def __rxor__(self, other: TensorLike, /) -> Tensor: ...
    def __setitem__(self, index: Index, value: TensorLike) -> None: ...
    def __sub__(self, other: TensorLike, /) -> Tensor: ...
    def __truediv__(self, other: TensorLike, /) -> Tensor: ...
    def __xor__(self, other: TensorLike, /) -> Tensor: ...
    def abs(self) -> Tensor:
        """Return the absolute value (the modulus of complex numbers); its derivative at 0 is 0."""
    def absolute(self) -> Tensor:
        """Return the absolute value (the modulus of complex numbers); its derivative at 0 is 0."""
    def acos(self) -> Tensor:
        """Return the inverse cosine, between 0 and π."""
    def acosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine, which is not negative."""
    def add(self, y: TensorLike, /) -> Tensor:
        """Return the sum ``x + y``, element by element."""
    def all(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return whether all elements over ``axis`` are true."""
    def angle(self) -> Tensor:
        """Return the angle from the positive real axis, between -π and π; its derivative at 0 is 0."""
    def any(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return whether some element over ``axis`` is true."""
    def arccos(self) -> Tensor:
        """Return the inverse cosine, between 0 and π."""
    def arccosh(self) -> Tensor:
        """Return the inverse hyperbolic cosine, which is not negative."""
    def arcsin(self) -> Tensor:
        """Return the inverse sine, between -π/2 and π/2."""
    def arcsinh(self) -> Tensor:
        """Return the inverse hyperbolic sine."""
    def arctan(self) -> Tensor:
        """Return the inverse tangent, between -π/2 and π/2."""
    def arctan2(self, b: TensorLike, /) -> Tensor:
        """Return the angle of the point ``(b, a)``, the inverse tangent of ``a / b``, between -π and π."""
    def arctanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent."""
    def arg_max(self, axis: Axis = 0, keepdims: bool = False) -> Tensor:
        """Return the index of the first maximum along ``axis``; with ``axis=None``, in the flattened array."""
    def arg_min(self, axis: Axis = 0, keepdims: bool = False) -> Tensor:
        """Return the index of the first minimum along ``axis``; with ``axis=None``, in the flattened array."""
    def argmax(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the maximum along ``axis``, or in the flattened array, as the method of NumPy's arrays."""
    def argmin(self, axis: int | None = None, keepdims: bool = False) -> Tensor:
        """Return the index of the minimum along ``axis``, or in the flattened array, as the method of NumPy's arrays."""
    def argpartition(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.argpartition(x, ...)``."""
    def argsort(
        self, axis: int | None = -1, descending: bool = False, *, kind: str | None = None, stable: bool | None = None
    ) -> Tensor:
        """Return the positions that sort the elements along ``axis``; equal ones stay in order, whatever ``kind`` is."""
    def as1d(self) -> Tensor:
        """Return all elements as a vector."""
    def as2d(self, rows: int, columns: int) -> Tensor:
        """Return the elements as a matrix."""
    def as3d(self, rows: int, columns: int, depth: int) -> Tensor:
        """Return the elements as a tensor of rank 3."""
    def as4d(self, rows: int, columns: int, depth: int, depth2: int) -> Tensor:
        """Return the elements as a tensor of rank 4."""
    def as5d(self, rows: int, columns: int, depth: int, depth2: int, depth3: int) -> Tensor:
        """Return the elements as a tensor of rank 5."""
    def as_scalar(self) -> Tensor:
        """Return the only element as a scalar tensor."""
    def as_type(self, dtype: DType) -> Tensor:
        """Return ``x`` in another dtype.  Between floats the gradient is cast back; integers and bools carry none."""
    def asin(self) -> Tensor:
        """Return the inverse sine, between -π/2 and π/2."""
    def asinh(self) -> Tensor:
        """Return the inverse hyperbolic sine."""
    def astype(
        self, dtype: DType, order: str = "K", casting: str = "unsafe", subok: bool = True, copy: bool = True
    ) -> Tensor:
        """Return the elements in another dtype; ``casting`` says which conversions are allowed, as in NumPy."""
    def atan(self) -> Tensor:
        """Return the inverse tangent, between -π/2 and π/2."""
    def atan2(self, b: TensorLike, /) -> Tensor:
        """Return the angle of the point ``(b, a)``, the inverse tangent of ``a / b``, between -π and π."""
    def atanh(self) -> Tensor:
        """Return the inverse hyperbolic tangent."""
    def avg_pool(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NHWC",
    ) -> Tensor:
        """Return the mean of each window of images (batch, height, width, channels)."""
    def avg_pool1d(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NWC",
    ) -> Tensor:
        """Return the mean of each window of (batch, width, channels)."""
    def avg_pool3d(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NDHWC",
    ) -> Tensor:
        """Return the mean of each window of (batch, depth, height, width, channels)."""
    def band_part(self, num_lower: int, num_upper: int) -> Tensor:
        """Return a copy with zeros outside a band: ``num_lower`` diagonals below the main one stay, ``num_upper`` above it."""
    def batch_norm(
        self,
        mean: TensorLike,
        variance: TensorLike,
        offset: TensorLike | None = None,
        scale: TensorLike | None = None,
        variance_epsilon: float | Value | None = 0.001,
    ) -> Tensor:
        """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``."""
    def batch_norm2d(
        self,
        mean: TensorLike,
        variance: TensorLike,
        offset: TensorLike | None = None,
        scale: TensorLike | None = None,
        variance_epsilon: float | Value | None = 0.001,
    ) -> Tensor:
        """Return ``batch_norm`` of a tensor of rank 2."""
    def batch_norm3d(
        self,
        mean: TensorLike,
        variance: TensorLike,
        offset: TensorLike | None = None,
        scale: TensorLike | None = None,
        variance_epsilon: float | Value | None = 0.001,
    ) -> Tensor:
        """Return ``batch_norm`` of a tensor of rank 3."""
    def batch_norm4d(
        self,
        mean: TensorLike,
        variance: TensorLike,
        offset: TensorLike | None = None,
        scale: TensorLike | None = None,
        variance_epsilon: float | Value | None = 0.001,
    ) -> Tensor:
        """Return ``batch_norm`` of a tensor of rank 4."""
    def batch_to_space_nd(self, block_shape: Lengths | Array, crops: Sequence[Any] | Array) -> Tensor:
        """Return the batch rearranged to blocks of ``block_shape`` in the spatial axes, from which ``crops`` are removed."""
    def beta(self, y: TensorLike, /) -> Tensor:
        """Return ``gamma(x) * gamma(y) / gamma(x + y)``."""
    def betaln(self, y: TensorLike, /) -> Tensor:
        """Return the logarithm of the absolute value of the beta function."""
    def bitwise_and(self, y: TensorLike, /) -> Tensor:
        """Return the bits that both integers have; of bools, where both are true."""
    def bitwise_not(self) -> Tensor:
        """Return every bit inverted; for bools the logical negation."""
    def bitwise_or(self, y: TensorLike, /) -> Tensor:
        """Return the bits that at least one integer has."""
    def bitwise_xor(self, y: TensorLike, /) -> Tensor:
        """Return the bits that exactly one integer has."""
    def boolean_mask(self, mask: TensorLike, axis: Axis = None) -> Tensor:
        """Return the elements of ``x`` where ``mask`` is true; the mask's first axis is aligned with ``axis`` of ``x``."""
    def broadcast_args(self, s1: TensorLike, /) -> Tensor:
        """Return the shape that two shapes broadcast to; all three are vectors of integers."""
    def broadcast_to(self, shape: ShapeLike) -> Tensor:
        """Return ``x`` repeated along axes of length 1 and new leading axes, without copying."""
    def cast(self, dtype: DType) -> Tensor:
        """Return ``x`` in another dtype.  Between floats the gradient is cast back; integers and bools carry none."""
    def cbrt(self) -> Tensor:
        """Return the cube root."""
    def ceil(self) -> Tensor:
        """Return the smallest integer that is not less than ``x``; its derivative is 0."""
    def cholesky(self, upper: bool = False) -> Tensor:
        """Return the lower triangular ``L`` with ``L @ L.T = x``, for symmetric (Hermitian) positive definite matrices."""
    def choose(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.choose(x, ...)``."""
    def clip(self, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
        """Return ``x`` clipped to bounds, as ``np.clip``: ``None`` stands for no bound."""
    def clip_by_value(self, clip_value_min: TensorLike, clip_value_max: TensorLike, /) -> Tensor:
        """Return ``x`` clipped to two bounds, which may be tensors; at a bound the gradient goes to ``x``."""
    def clone(self) -> Tensor:
        """Return a copy of a tensor, through which gradients pass."""
    def complex(self, imag: TensorLike, /) -> Tensor:
        """Return the complex numbers with these real and imaginary parts."""
    def compress(self, condition: Any, axis: Any = None, out: Any = None) -> Tensor:
        """Return the elements along ``axis`` for which the condition is true."""
    def concat(self, others: TensorLike, axis: int = 0) -> Tensor:
        """Return ``x.concat(y)`` and ``x.concat([y, z])``, as in TensorFlow.js."""
    def concatenate(self, others: TensorLike, axis: int = 0) -> Tensor:
        """Return ``x.concat(y)`` and ``x.concat([y, z])``, as in TensorFlow.js."""
    def confusion_matrix(self, predictions: TensorLike, /, num_classes: int) -> Tensor:
        """Return how often each label (the row) was predicted as each class (the column)."""
    def conj(self, out: Any = None) -> Tensor:
        """Return the complex conjugate of each element; of real numbers ``x`` itself, as in NumPy."""
    def conjugate(self, out: Any = None) -> Tensor:
        """Return the complex conjugate of each element; of real numbers ``x`` itself, as in NumPy."""
    def conv1d(
        self,
        filter: TensorLike,
        stride: Lengths = 1,
        pad: Padding = "valid",
        data_format: str = "NWC",
        dilation: Lengths = 1,
        dim_rounding_mode: str | None = None,
    ) -> Tensor:
        """Return the convolution of (batch, width, channels) with a filter of (width, channels, channels of the result)."""
    def conv2d(
        self,
        filter: TensorLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        data_format: str = "NHWC",
        dilations: Lengths = 1,
        dim_rounding_mode: str | None = None,
    ) -> Tensor:
        """Return images (batch, height, width, channels) convolved with a filter (height, width, channels, results)."""
    def conv2d_transpose(
        self,
        filter: TensorLike,
        output_shape: ShapeLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NHWC",
    ) -> Tensor:
        """Return the adjoint of ``conv2d`` in the image, with a filter (height, width, channels of the result, channels)."""
    def conv3d(
        self,
        filter: TensorLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        data_format: str = "NDHWC",
        dilations: Lengths = 1,
        dim_rounding_mode: str | None = None,
    ) -> Tensor:
        """Return the convolution of (batch, depth, height, width, channels) with a filter over three axes."""
    def conv3d_transpose(
        self,
        filter: TensorLike,
        output_shape: ShapeLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        data_format: str = "NDHWC",
    ) -> Tensor:
        """Return the adjoint of ``conv3d`` in the image."""
    def copy(self, order: str = "C") -> Tensor:
        """Return a copy, through which gradients pass."""
    def cos(self) -> Tensor:
        """Return the cosine."""
    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine."""
    def count_nonzero(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return how many elements over ``axis`` are not 0."""
    def cube(self) -> Tensor:
        """Return the third power; ``x ** 3`` calls it, as two products are many times faster than a power."""
    def cumprod(
        self, axis: Axis = None, exclusive: Any = False, reverse: bool = False, *, dtype: DType = None
    ) -> Tensor:
        """Return the cumulative product along ``axis``, or of the flattened array, as the method of NumPy's arrays."""
    def cumsum(
        self, axis: Axis = None, exclusive: Any = False, reverse: bool = False, *, dtype: DType = None
    ) -> Tensor:
        """Return the cumulative sum along ``axis``, or of the flattened array, as the method of NumPy's arrays."""
    def deg2rad(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.deg2rad(x, ...)``."""
    def degrees(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.degrees(x, ...)``."""
    def depth_to_space(self, block_size: int, data_format: str = "NHWC") -> Tensor:
        """Return images in which the channels of each pixel are rearranged to a block of pixels."""
    def depthwise_conv2d(
        self,
        filter: TensorLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        data_format: str = "NHWC",
        dilations: Lengths = 1,
        dim_rounding_mode: str | None = None,
    ) -> Tensor:
        """Return ``conv2d`` of each channel separately, with a filter (height, width, channels, results of each)."""
    def det(self) -> Tensor:
        """Return the determinant of square matrices over the last two axes."""
    def diag(self) -> Tensor:
        """Return zeros with ``x`` on the diagonal: a matrix for a vector, a tensor of twice the rank for other inputs."""
    def diag_embed(self, k: int = 0, shape: ShapeLike | None = None) -> Tensor:
        """Return matrices with the vectors ``x`` on their ``k``-th diagonal; of ``shape``, or the smallest square ones."""
    def diag_part(self, k: int = 0) -> Tensor:
        """Return the diagonals of matrices over the last two axes; ``k`` above the main one, or below it if negative."""
    def diagonal(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.diagonal(x, ...)``."""
    def digamma(self) -> Tensor:
        """Return the derivative of ``gammaln``."""
    def dilation2d(
        self,
        filter: TensorLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dilations: Lengths = 1,
        data_format: str = "NHWC",
    ) -> Tensor:
        """Return the maximum over each window of ``x`` plus ``filter`` (height, width, channels)."""
    def div(self, y: TensorLike, /) -> Tensor:
        """Return the quotient ``x / y``; it is a float for integers too, as in Python."""
    def div_no_nan(self, y: TensorLike, /) -> Tensor:
        """Return the quotient ``x / y``, and 0 where ``y`` is 0; the derivatives there are 0 too."""
    def divide(self, y: TensorLike, /) -> Tensor:
        """Return the quotient ``x / y``; it is a float for integers too, as in Python."""
    def dot(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.dot(x, ...)``."""
    def dropout(self, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Tensor:
        """Return ``x`` with a fraction ``rate`` of its elements set to 0, and the others scaled by ``1 / (1 - rate)``."""
    def eigvals(self) -> Tensor:
        """Return the eigenvalues of square matrices, in no order; they are complex."""
    def eigvalsh(self, uplo: str = "L") -> Tensor:
        """Return the eigenvalues of symmetric or Hermitian matrices, in ascending order."""
    def elu(self) -> Tensor:
        """Return the exponential linear unit: ``x`` where it is positive, else ``exp(x) - 1``."""
    def ensure_shape(self, shape: ShapeLike) -> Tensor:
        """Return ``x`` itself, if it has this shape; ``None`` stands for any length."""
    def entr(self) -> Tensor:
        """Return ``-x * log(x)``, and 0 at 0: a term of the entropy."""
    def equal(self, y: TensorLike, /) -> Tensor:
        """Return where ``x`` and ``y`` are equal."""
    def erf(self) -> Tensor:
        """Return the error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``x``."""
    def erfc(self) -> Tensor:
        """Return ``1 - erf(x)``, accurate where that is near 0."""
    def erfcinv(self) -> Tensor:
        """Return the inverse of ``erfc``."""
    def erfcx(self) -> Tensor:
        """Return ``exp(x * x) * erfc(x)``, without overflow."""
    def erfinv(self) -> Tensor:
        """Return the inverse of ``erf``."""
    def euclidean_norm(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the square root of the sum of squares; its gradient at 0 is 0."""
    def exp(self) -> Tensor:
        """Return the exponential of ``x``."""
    def exp1(self) -> Tensor:
        """Return the exponential integral E1: the integral of ``exp(-t) / t`` from ``x`` to infinity."""
    def exp2(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.exp2(x, ...)``."""
    def expand_dims(self, axis: Axis = 0) -> Tensor:
        """Return ``x`` with a new axis of length 1 at ``axis``."""
    def expi(self) -> Tensor:
        """Return the exponential integral Ei: the integral of ``exp(t) / t`` from minus infinity to ``x``."""
    def expit(self) -> Tensor:
        """Return ``1 / (1 + exp(-x))``, the inverse of ``logit``."""
    def expm1(self) -> Tensor:
        """Return ``exp(x) - 1``, accurate for small ``x`` too."""
    def fabs(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.fabs(x, ...)``."""
    def fft(self, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
        """Return the discrete Fourier transform."""
    def fill(self, value: TensorLike) -> None:
        """Write one number into all elements, as the method of NumPy's arrays does."""
    @property
    def flat(self) -> Flat: ...
    @flat.setter
    def flat(self, value: TensorLike) -> None: ...
    def flatten(self, order: Any = "C") -> Tensor:
        """Return a flattened copy; ``order="F"`` is column-major, with the first axis varying fastest."""
    def flip(self, axis: Axis = None) -> Tensor:
        """Return the elements in reverse order along ``axis``, or along all axes."""
    def floor(self) -> Tensor:
        """Return the largest integer that is not greater than ``x``; its derivative is 0."""
    def floor_div(self, y: TensorLike, /) -> Tensor:
        """Return the quotient rounded down; its derivative is 0 between the jumps."""
    def floor_divide(self, y: TensorLike, /) -> Tensor:
        """Return the quotient rounded down; its derivative is 0 between the jumps."""
    def fmod(self, y: TensorLike, /) -> Tensor:
        """Return the remainder with the sign of ``x``."""
    def full_like(self, fill_value: Number, dtype: DType = None) -> Tensor:
        """Return one value everywhere, in the shape of ``x``."""
    def gamma(self) -> Tensor:
        """Return the gamma function, ``(n - 1)!`` for positive integers ``n``."""
    def gammaln(self) -> Tensor:
        """Return the logarithm of the absolute value of the gamma function."""
    def gather(self, indices: TensorLike, /, axis: Axis = 0, batch_dims: int = 0) -> Tensor:
        """Return the slices of ``x`` at these positions along ``axis``; ``batch_dims`` leading axes belong together."""
    def gather_nd(self, indices: TensorLike, /) -> Tensor:
        """Return the slices of ``x`` at coordinates, which are along the last axis of ``indices``."""
    def gelu(self, approximate: bool = False) -> Tensor:
        """Return the Gaussian error linear unit: ``x`` times the normal CDF at ``x``, with ``approximate`` by a tanh."""
    def greater(self, y: TensorLike, /) -> Tensor:
        """Return where ``x > y``."""
    def greater_equal(self, y: TensorLike, /) -> Tensor:
        """Return where ``x >= y``."""
    def hypot(self, y: TensorLike, /) -> Tensor:
        """Return the length ``sqrt(x**2 + y**2)``; its derivative at the origin is 0, as that of a norm."""
    def i0(self) -> Tensor:
        """Return the modified Bessel function of order 0."""
    def i0e(self) -> Tensor:
        """Return ``exp(-abs(x)) * i0(x)``, without overflow."""
    def i1(self) -> Tensor:
        """Return the modified Bessel function of order 1."""
    def i1e(self) -> Tensor:
        """Return ``exp(-abs(x)) * i1(x)``, without overflow."""
    def identity(self) -> Tensor:
        """Return a copy of a tensor, through which gradients pass."""
    def ifft(self, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
        """Return the inverse of ``fft``."""
    @property
    def imag(self) -> Tensor: ...
    @imag.setter
    def imag(self, value: TensorLike) -> None: ...
    def in_top_k(self, targets: TensorLike, /, k: int = 1) -> Tensor:
        """Return whether the score of the target class is among the ``k`` highest ones."""
    def inner(self, b: TensorLike) -> Tensor:
        """Return the product over the last axis of both."""
    def intersect1d(self, y: TensorLike) -> Tensor:
        """Return the sorted distinct elements that are in both ``x`` and ``y``."""
    def inv(self) -> Tensor:
        """Return the inverse of square matrices over the last two axes."""
    def invert(self) -> Tensor:
        """Return every bit inverted; for bools the logical negation."""
    def irfft(self, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
        """Return the inverse of ``rfft``; give ``n`` if its length is odd."""
    def is_finite(self) -> Tensor:
        """Return where ``x`` is neither infinite nor NaN."""
    def is_inf(self) -> Tensor:
        """Return where ``x`` is infinite, of either sign."""
    def is_nan(self) -> Tensor:
        """Return where ``x`` is not a number."""
    def isfinite(self) -> Tensor:
        """Return where ``x`` is neither infinite nor NaN."""
    def isin(self, test_elements: TensorLike, /) -> Tensor:
        """Return whether each element is among the test elements."""
    def isinf(self) -> Tensor:
        """Return where ``x`` is infinite, of either sign."""
    def isnan(self) -> Tensor:
        """Return where ``x`` is not a number."""
    @property
    def itemsize(self) -> int: ...
    def iv(self, x: TensorLike, /) -> Tensor:
        """Return the modified Bessel function of the first kind, of order ``v``; no derivative in ``v``."""
    def ive(self, x: TensorLike, /) -> Tensor:
        """Return ``exp(-abs(x)) * iv(v, x)``, without overflow."""
    def j0(self) -> Tensor:
        """Return the Bessel function of order 0."""
    def j1(self) -> Tensor:
        """Return the Bessel function of order 1."""
    def jv(self, x: TensorLike, /) -> Tensor:
        """Return the Bessel function of the first kind, of order ``v``; no derivative in ``v``."""
    def kl_div(self, y: TensorLike, /) -> Tensor:
        """Return ``x * log(x / y) - x + y``, which is never negative."""
    def layer_norm(
        self,
        offset: TensorLike | None = None,
        scale: TensorLike | None = None,
        axis: Axis = -1,
        variance_epsilon: float | Value | None = 1e-05,
    ) -> Tensor:
        """Return ``x`` normalized to mean 0 and variance 1 over ``axis``, times ``scale``, plus ``offset``."""
    def leaky_relu(self, alpha: float = 0.2) -> Tensor:
        """Return ``x`` where it is positive, else ``alpha * x``."""
    def left_shift(self, y: TensorLike, /) -> Tensor:
        """Return the bits of integers shifted left by ``y`` places: ``x << y``."""
    def less(self, y: TensorLike, /) -> Tensor:
        """Return where ``x < y``."""
    def less_equal(self, y: TensorLike, /) -> Tensor:
        """Return where ``x <= y``."""
    def lgamma(self) -> Tensor:
        """Return the logarithm of the absolute value of the gamma function."""
    def local_response_normalization(
        self,
        depth_radius: float | None = 5,
        bias: float | Value | None = 1,
        alpha: float | Value | None = 1,
        beta: float | Value | None = 0.5,
    ) -> Tensor:
        """Return ``x`` divided by ``(bias + alpha * s) ** beta``, ``s`` the sum of squares of the channels around each one."""
    def log(self) -> Tensor:
        """Return the natural logarithm."""
    def log10(self) -> Tensor:
        """Return the logarithm to the base 10."""
    def log1p(self) -> Tensor:
        """Return ``log(1 + x)``, accurate for small ``x`` too."""
    def log2(self) -> Tensor:
        """Return the logarithm to the base 2."""
    def log_expit(self) -> Tensor:
        """Return the logarithm of ``expit``."""
    def log_ndtr(self) -> Tensor:
        """Return the logarithm of ``ndtr``, accurate far to the left."""
    def log_sigmoid(self) -> Tensor:
        """Return ``log(sigmoid(x))``, without overflow."""
    def log_softmax(self, axis: Axis = -1) -> Tensor:
        """Return the logarithm of ``softmax``, accurate where the softmax is near 0."""
    def log_sum_exp(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return ``log(sum(exp(x)))`` over ``axis``, without overflow."""
    def logaddexp(self, y: TensorLike, /) -> Tensor:
        """Return ``log(exp(x) + exp(y))``, without overflow."""
    def logaddexp2(self, y: TensorLike, /) -> Tensor:
        """Return ``log2(2**x + 2**y)``, without overflow."""
    def logical_and(self, y: TensorLike, /) -> Tensor:
        """Return where both are true, that is, not 0."""
    def logical_not(self) -> Tensor:
        """Return where ``x`` is false."""
    def logical_or(self, y: TensorLike, /) -> Tensor:
        """Return where at least one is true."""
    def logical_xor(self, y: TensorLike, /) -> Tensor:
        """Return where exactly one is true."""
    def logit(self) -> Tensor:
        """Return ``log(x / (1 - x))``."""
    def logsumexp(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return ``log(sum(exp(x)))`` over ``axis``, without overflow."""
    def lower_bound(self, values: TensorLike) -> Tensor:
        """Return the index of the first element that is not less than each value."""
    def mat_mul(self, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
        """Return the matrix product over the last two axes, with either operand transposed first; leading axes broadcast."""
    def matmul(self, y: TensorLike, /) -> Tensor:
        """Return the matrix product ``x @ y`` over the last two axes; leading axes broadcast, vectors are rows or columns."""
    def matrix_rank(self, tol: float | None = None, hermitian: bool = False, rtol: float | None = None) -> Tensor:
        """Return the number of singular values above ``tol``, or above ``rtol`` times the largest; it has no gradient."""
    def max(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the maximum of ``x`` over ``axis``; equal maxima share the gradient."""
    def max_pool(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NHWC",
    ) -> Tensor:
        """Return the maximum of each window of images (batch, height, width, channels)."""
    def max_pool1d(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NWC",
    ) -> Tensor:
        """Return the maximum of each window of (batch, width, channels)."""
    def max_pool3d(
        self,
        filter_size: Lengths,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dim_rounding_mode: str | None = None,
        data_format: str = "NDHWC",
    ) -> Tensor:
        """Return the maximum of each window of (batch, depth, height, width, channels)."""
    def max_pool_with_argmax(
        self, filter_size: Lengths, strides: Lengths = 1, pad: Padding = "valid", include_batch_in_index: bool = False
    ) -> PoolWithArgmax[Tensor]:
        """Return ``max_pool``, and the position of each of its elements in the flattened image, or in the whole batch."""
    def maximum(self, y: TensorLike, /) -> Tensor:
        """Return the elementwise maximum; where both are equal, each gets half of the gradient."""
    def mean(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the mean of the elements of ``x`` over ``axis``; it is a float for integers."""
    def min(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the minimum of ``x`` over ``axis``; equal minima share the gradient."""
    def minimum(self, y: TensorLike, /) -> Tensor:
        """Return the elementwise minimum; where both are equal, each gets half of the gradient."""
    def mirror_pad(self, paddings: Sequence[Any] | Array, mode: str = "reflect") -> Tensor:
        """Return ``x`` padded with its reflection; ``"symmetric"`` repeats the edge element, ``"reflect"`` does not."""
    def mod(self, y: TensorLike, /) -> Tensor:
        """Return the remainder of ``x // y``, with the sign of ``y``."""
    def moments(self, axis: Axis = None, keepdims: bool = False) -> Moments[Tensor]:
        """Return the mean and the variance over ``axis``, as a named tuple."""
    def moveaxis(self, source: Lengths, destination: Lengths) -> Tensor:
        """Return ``x`` with axes moved from ``source`` to ``destination``; the others keep their order."""
    def mul(self, y: TensorLike, /) -> Tensor:
        """Return the product ``x * y``, element by element."""
    def multiply(self, y: TensorLike, /) -> Tensor:
        """Return the product ``x * y``, element by element."""
    @property
    def nbytes(self) -> int: ...
    def ndtr(self) -> Tensor:
        """Return the cumulative distribution function of the standard normal distribution."""
    def ndtri(self) -> Tensor:
        """Return the quantile function of the standard normal distribution, the inverse of ``ndtr``."""
    def neg(self) -> Tensor:
        """Return the negative, ``-x``."""
    def negative(self) -> Tensor:
        """Return the negative, ``-x``."""
    def nextafter(self, y: TensorLike, /) -> Tensor:
        """Return the next floating-point number after ``x`` in the direction of ``y``; its derivative by ``x`` is 1."""
    def nonzero(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.nonzero(x, ...)``."""
    def norm(self, ord: str | float | None = "euclidean", axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the norm of vectors or, over two axes, of matrices; without ``axis`` that of the flattened array."""
    def not_equal(self, y: TensorLike, /) -> Tensor:
        """Return where ``x`` and ``y`` differ; NaN differs from everything."""
    def one_hot(self, depth: int, on_value: TensorLike = 1, off_value: TensorLike = 0, dtype: DType = None) -> Tensor:
        """Return ``on_value`` at each index and ``off_value`` elsewhere along a new last axis; int32 by default."""
    def ones_like(self, dtype: DType = None) -> Tensor:
        """Return ones in the shape of ``x``."""
    def outer(self, b: TensorLike) -> Tensor:
        """Return every element of ``a`` times every element of ``b``, as a matrix."""
    def outer_product(self, b: TensorLike) -> Tensor:
        """Return every element of ``a`` times every element of ``b``, as a matrix."""
    def overlap_and_add(self, frame_step: int, length: int | None = None) -> Tensor:
        """Return the signal that is the sum of overlapping frames, ``frame_step`` apart."""
    def pad(self, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
        """Return ``x`` padded with ``constant_value`` by ``[before, after]`` elements along each axis."""
    def pad1d(self, paddings: Sequence[int] | Array, constant_value: Number = 0) -> Tensor:
        """Return ``pad`` of a vector; ``paddings`` is one pair."""
    def pad2d(self, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
        """Return ``pad`` of a tensor of rank 2."""
    def pad3d(self, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
        """Return ``pad`` of a tensor of rank 3."""
    def pad4d(self, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
        """Return ``pad`` of a tensor of rank 4."""
    def partition(self, kth: Any, axis: int = -1, kind: str = "introselect") -> None:
        """Partition in place, so that the ``kth`` element is the one of the sorted array."""
    def pinv(self, rtol: float | Value | None = None, hermitian: bool = False) -> Tensor:
        """Return the pseudo-inverse of matrices of any shape; singular values under ``rtol`` times the largest count as 0."""
    def polygamma(self, x: TensorLike, /) -> Tensor:
        """Return the derivative of order ``n`` of ``digamma``."""
    def pool(
        self,
        window_shape: Lengths,
        pooling_type: str = "max",
        pad: Padding = "valid",
        dilations: Lengths = 1,
        strides: Lengths = 1,
        dim_rounding_mode: str | None = None,
    ) -> Tensor:
        """Return ``max_pool`` or ``avg_pool`` ("max", "avg"), whose windows may be dilated."""
    def positive(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.positive(x, ...)``."""
    def pow(self, y: TensorLike, /) -> Tensor:
        """Return ``x`` to the power ``y``.  ``x ** 0`` has slope 0; the exponent of a base ``x <= 0`` gets gradient 0."""
    def power(self, y: TensorLike, /) -> Tensor:
        """Return ``x`` to the power ``y``.  ``x ** 0`` has slope 0; the exponent of a base ``x <= 0`` gets gradient 0."""
    def prelu(self, alpha: TensorLike, /) -> Tensor:
        """Return ``leaky_relu`` with a tensor of slopes, which can be trained."""
    def prod(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the product of the elements of ``x`` over ``axis``."""
    def psi(self) -> Tensor:
        """Return the derivative of ``gammaln``."""
    def put(self, indices: Any, values: TensorLike, mode: Any = "raise") -> None:
        """Write values to positions in the flattened array."""
    def rad2deg(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.rad2deg(x, ...)``."""
    def radians(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.radians(x, ...)``."""
    def ravel(self, order: str = "C") -> Tensor:
        """Return the flattened array, which shares memory with ``x`` if its elements are contiguous."""
    @property
    def real(self) -> Tensor: ...
    @real.setter
    def real(self, value: TensorLike) -> None: ...
    def reciprocal(self) -> Tensor:
        """Return ``1 / x``; it is a float for integers too (``np.reciprocal`` returns an integer)."""
    def rel_entr(self, y: TensorLike, /) -> Tensor:
        """Return ``x * log(x / y)``, and 0 where ``x`` is 0: a term of the relative entropy."""
    def relu(self) -> Tensor:
        """Return the rectified linear unit, ``maximum(x, 0)``; its derivative at 0 is 0."""
    def relu6(self) -> Tensor:
        """Return ``x`` clipped to the range from 0 to 6."""
    def remainder(self, y: TensorLike, /) -> Tensor:
        """Return the remainder of ``x // y``, with the sign of ``y``."""
    def repeat(self, repeats: Lengths | Value, axis: Axis = None) -> Tensor:
        """Return each element repeated ``repeats`` times, along ``axis`` or of the flattened array."""
    def reshape(self, *shape: ShapeLike, order: str = "C", copy: bool | None = None) -> Tensor:
        """Return ``x.reshape([2, 3])`` as in TensorFlow.js, ``x.reshape(2, 3)`` as in NumPy."""
    def reshape_as(self, y: TensorLike) -> Tensor:
        """Return the elements of ``x`` in the shape of ``y``."""
    def resize_bilinear(
        self, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
    ) -> Tensor:
        """Return images resized to ``size`` [height, width] by bilinear interpolation."""
    def resize_nearest_neighbor(
        self, size: Sequence[int] | Array, align_corners: bool = False, half_pixel_centers: bool = False
    ) -> Tensor:
        """Return images resized to ``size`` [height, width] by nearest-neighbour interpolation."""
    def reverse(self, axis: Axis = None) -> Tensor:
        """Return the elements in reverse order along ``axis``, or along all axes."""
    def reverse1d(self) -> Tensor:
        """Return the elements of a vector in reverse order."""
    def reverse2d(self, axis: Axis = None) -> Tensor:
        """Return ``reverse`` of a tensor of rank 2."""
    def reverse3d(self, axis: Axis = None) -> Tensor:
        """Return ``reverse`` of a tensor of rank 3."""
    def reverse4d(self, axis: Axis = None) -> Tensor:
        """Return ``reverse`` of a tensor of rank 4."""
    def rfft(self, n: int | None = None, axis: Axis = -1, norm: str | None = None) -> Tensor:
        """Return the Fourier transform of real numbers at non-negative frequencies; the others are its conjugates."""
    def right_shift(self, y: TensorLike, /) -> Tensor:
        """Return the bits of integers shifted right by ``y`` places: ``x >> y``."""
    def rint(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.rint(x, ...)``."""
    def roll(self, shift: Lengths, axis: Axis = None) -> Tensor:
        """Return the elements shifted by ``shift`` places, cyclically."""
    def round(self, decimals: int = 0) -> Tensor:
        """Return the nearest integer, with ties to even, or the nearest number with so many decimals; its derivative is 0."""
    def rsqrt(self) -> Tensor:
        """Return ``1 / sqrt(x)``."""
    def scatter_nd(self, updates: TensorLike, /, shape: ShapeLike) -> Tensor:
        """Return zeros of ``shape`` with ``updates`` added at coordinates; repeated coordinates are summed."""
    def search_sorted(self, values: TensorLike, /, side: str = "left") -> Tensor:
        """Return the index at which each value can be inserted to keep the sequence sorted, before or after equal ones."""
    def searchsorted(self, values: TensorLike, /, side: str = "left") -> Tensor:
        """Return the index at which each value can be inserted to keep the sequence sorted, before or after equal ones."""
    def segment_max(self, segment_ids: TensorLike) -> Tensor:
        """Return the maximum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""
    def segment_mean(self, segment_ids: TensorLike) -> Tensor:
        """Return the mean of each run of slices with the same number; the numbers are sorted."""
    def segment_min(self, segment_ids: TensorLike) -> Tensor:
        """Return the minimum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""
    def segment_prod(self, segment_ids: TensorLike) -> Tensor:
        """Return the product of each run of slices with the same number; the numbers are sorted."""
    def segment_sum(self, segment_ids: TensorLike) -> Tensor:
        """Return the sum of each run of slices with the same number; the numbers are sorted."""
    def selu(self) -> Tensor:
        """Return the scaled exponential linear unit, which keeps mean 0 and variance 1 through a network."""
    def separable_conv2d(
        self,
        depthwise_filter: TensorLike,
        pointwise_filter: TensorLike,
        strides: Lengths = 1,
        pad: Padding = "valid",
        dilation: Lengths = 1,
        data_format: str = "NHWC",
    ) -> Tensor:
        """Return ``depthwise_conv2d`` followed by a 1 × 1 convolution that mixes the channels."""
    def setdiff1d(self, y: TensorLike) -> SetDifference[Tensor]:
        """Return the elements of the vector ``x`` that are not in ``y``, in their order, and their indices."""
    def setxor1d(self, y: TensorLike) -> Tensor:
        """Return the sorted distinct elements that are in exactly one of ``x`` and ``y``."""
    def sigmoid(self) -> Tensor:
        """Return ``1 / (1 + exp(-x))``, without overflow."""
    def sigmoid_cross_entropy_with_logits(self, logits: TensorLike, /) -> Tensor:
        """Return the cross entropy of ``sigmoid(logits)``, without overflow: one loss per element."""
    def sign(self) -> Tensor:
        """Return the sign, -1, 0 or 1; 0 for NaN, as in TensorFlow.js (``np.sign`` gives NaN); ``x / abs(x)`` if complex."""
    def silu(self) -> Tensor:
        """Return ``x * sigmoid(x)``."""
    def sin(self) -> Tensor:
        """Return the sine."""
    def sinh(self) -> Tensor:
        """Return the hyperbolic sine."""
    def slice(self, begin: Lengths, size: Lengths | None = None) -> Tensor:
        """Return the block of ``x`` that starts at ``begin`` and has the lengths ``size``; -1 means up to the end."""
    def slice1d(self, begin: Lengths, size: Lengths | None = None) -> Tensor:
        """Return ``slice`` of a vector."""
    def slice2d(self, begin: Lengths, size: Lengths | None = None) -> Tensor:
        """Return ``slice`` of a tensor of rank 2."""
    def slice3d(self, begin: Lengths, size: Lengths | None = None) -> Tensor:
        """Return ``slice`` of a tensor of rank 3."""
    def slice4d(self, begin: Lengths, size: Lengths | None = None) -> Tensor:
        """Return ``slice`` of a tensor of rank 4."""
    def softmax(self, dim: int = -1, axis: Axis = None) -> Tensor:
        """Return ``exp(logits)`` divided by its sum over ``dim``; ``axis`` is another name for ``dim``."""
    def softplus(self) -> Tensor:
        """Return ``log(1 + exp(x))``, without overflow."""
    def solve(self, y: TensorLike, /) -> Tensor:
        """Return the solution ``z`` of ``x @ z = y`` for square ``x``; ``y`` is a vector, or columns if it has more axes."""
    def sort(
        self, axis: int = -1, kind: str | None = None, *, descending: bool = False, stable: bool | None = None
    ) -> None:
        """Sort a tensor in place along ``axis``, as the method of NumPy's arrays does; ``pb.sort`` gives a new one."""
    def space_to_batch_nd(self, block_shape: Lengths | Array, paddings: Sequence[Any] | Array) -> Tensor:
        """Return the spatial axes, padded with zeros, divided into blocks of ``block_shape``, which move to the batch axis."""
    def space_to_depth(self, block_size: int, data_format: str = "NHWC") -> Tensor:
        """Return images in which each block of pixels is rearranged to the channels of one pixel."""
    def split(self, num_or_size_splits: Lengths, axis: Axis = 0) -> list[Tensor]:
        """Return ``x`` split along ``axis`` into equal parts, or into parts of given lengths (one may be -1)."""
    def sqrt(self) -> Tensor:
        """Return the square root; its derivative at 0 is infinite."""
    def square(self) -> Tensor:
        """Return the square."""
    def squared_difference(self, y: TensorLike, /) -> Tensor:
        """Return ``(x - y) ** 2``."""
    def squeeze(self, axis: Axis = None) -> Tensor:
        """Return ``x`` without the axes of length 1, or without those named by ``axis``."""
    def stack(self, others: TensorLike, axis: int = 0) -> Tensor:
        """Return ``x.stack(y)`` and ``x.stack([y, z])``, as in TensorFlow.js."""
    def std(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
        """Return the standard deviation over ``axis``; its gradient is 0 where it is 0."""
    def step(self, alpha: float = 0.0) -> Tensor:
        """Return 1 where ``x`` is positive, else ``alpha``; its derivative is 0."""
    def strided_slice(
        self,
        begin: Lengths,
        end: Lengths,
        strides: Lengths | None = None,
        begin_mask: int = 0,
        end_mask: int = 0,
        ellipsis_mask: int = 0,
        new_axis_mask: int = 0,
        shrink_axis_mask: int = 0,
    ) -> Tensor:
        """Return ``x[begin:end:strides]`` along each axis; bit ``i`` of a mask changes what entry ``i`` means."""
    def sub(self, y: TensorLike, /) -> Tensor:
        """Return the difference ``x - y``."""
    def subtract(self, y: TensorLike, /) -> Tensor:
        """Return the difference ``x - y``."""
    def sum(self, axis: Axis = None, keepdims: bool = False) -> Tensor:
        """Return the sum of the elements of ``x`` over ``axis``."""
    def svdvals(self) -> Tensor:
        """Return the singular values of matrices, in descending order.  Second derivatives need values that differ."""
    def swapaxes(self, axis1: int, axis2: int) -> Tensor:
        """Return ``x`` with two axes exchanged."""
    def swish(self) -> Tensor:
        """Return ``x * sigmoid(x)``."""
    def take(self, indices: TensorLike, axis: Axis = None, mode: str = "raise") -> Tensor:
        """Return the elements at these positions along ``axis``, or of the flattened array."""
    def take_along_axis(self, indices: TensorLike, axis: int = -1) -> Tensor:
        """Return for each line of ``x`` along ``axis`` the elements at the positions in the same line of ``indices``."""
    def tan(self) -> Tensor:
        """Return the tangent."""
    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent."""
    def tensor_diag_part(self) -> Tensor:
        """Return the diagonal of a tensor of shape ``(*s, *s)``: the inverse of ``diag``."""
    def tensor_scatter_update(self, indices: TensorLike, updates: TensorLike, /) -> Tensor:
        """Return a copy of ``tensor`` with ``updates`` written at coordinates."""
    def tensordot(self, b: TensorLike, axes: int | Sequence[Any] = 2) -> Tensor:
        """Return products summed over the last ``axes`` axes of ``a`` and the first of ``b``, or over two lists of axes."""
    def threshold(self, method: str = "binary", inverted: bool = False, thresh_value: float = 0.5) -> Tensor:
        """Return 255 where an image (values 0 to 255) is brighter than the threshold, and 0 elsewhere, or the inverse."""
    def tile(self, reps: Lengths) -> Tensor:
        """Return ``x`` repeated ``reps`` times along each axis."""
    def to_bool(self) -> Tensor:
        """Return where ``x`` is not 0."""
    def to_float(self) -> Tensor:
        """Return ``x`` as float32."""
    def to_int(self) -> Tensor:
        """Return ``x`` as int32, truncated towards 0."""
    def tobytes(self, order: Literal["K", "A", "C", "F"] = "C") -> bytes:
        """Return the bytes of all elements, in the order of C or of Fortran."""
    def topk(self, k: int | None = 1, sorted: bool = True) -> TopK[Tensor]:
        """Return the ``k`` largest elements along the last axis, in descending order, and their indices."""
    def trace(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.trace(x, ...)``."""
    def transpose(self, *perm: Lengths | None) -> Tensor:
        """Return ``x.transpose([1, 0])`` as in TensorFlow.js, ``x.transpose(1, 0)`` as in NumPy."""
    def triangular_solve(self, y: TensorLike, /, lower: bool = True, trans: bool = False) -> Tensor:
        """Return the solution ``z`` of ``x @ z = y`` for a triangular ``x``; with ``trans``, of ``x.T @ z = y``."""
    def true_divide(self, y: TensorLike, /) -> Tensor:
        """Return the quotient ``x / y``; it is a float for integers too, as in Python."""
    def trunc(self, *args: object, **kwargs: object) -> Tensor:
        """As ``np.trunc(x, ...)``."""
    def union1d(self, y: TensorLike) -> Tensor:
        """Return the sorted distinct elements of ``x`` and ``y``."""
    def unique(self, axis: Axis = 0) -> Unique[Tensor]:
        """Return the distinct slices along ``axis`` in the order of their first occurrence, and the index of each slice."""
    def unsorted_segment_max(self, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
        """Return the maximum of each segment, the lowest number if it is empty; equal maxima share the gradient."""
    def unsorted_segment_mean(self, segment_ids: TensorLike, num_segments: int) -> Tensor:
        """Return the mean of each segment, 0 if it is empty."""
    def unsorted_segment_min(self, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
        """Return the minimum of each segment, the highest number if it is empty; equal minima share the gradient."""
    def unsorted_segment_prod(self, segment_ids: TensorLike, num_segments: int) -> Tensor:
        """Return the product of each segment, 1 if it is empty; the gradient is correct where elements are 0."""
    def unsorted_segment_sum(self, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
        """Return the sum of each segment; ``segment_ids`` has the segment of each slice of ``x`` along its first axis."""
    def unstack(self, axis: Axis = 0) -> list[Tensor]:
        """Return the list of the slices along ``axis``: the inverse of ``stack``."""
    def upper_bound(self, values: TensorLike) -> Tensor:
        """Return the index of the first element that is greater than each value."""
    def var(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
        """Return the variance over ``axis``: the sum of squared differences from the mean, divided by ``n - ddof``."""
    @property
    def variable(self) -> Callable[..., Variable]: ...
    def variance(self, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
        """Return the variance over ``axis``: the sum of squared differences from the mean, divided by ``n - ddof``."""
    def vdot(self, b: TensorLike) -> Tensor:
        """Return the sum of the products of all elements of ``a``, conjugated if they are complex, with those of ``b``."""
    def view(self, dtype: DType = None, type: Any = None) -> Tensor:
        """Return a view of all elements; their bytes cannot be read as another dtype."""
    def where(self, condition: TensorLike, b: TensorLike) -> Tensor:
        """Return itself where the condition holds, else ``b``: TensorFlow.js's order for the method."""
    def xlog1py(self, y: TensorLike, /) -> Tensor:
        """Return ``x * log1p(y)``, and 0 where ``x`` is 0, even if ``y`` is -1; the derivatives are 0 there too."""
    def xlogy(self, y: TensorLike, /) -> Tensor:
        """Return ``x * log(y)``, and 0 where ``x`` is 0, even if ``y`` is 0; the derivatives are 0 there too."""
    def zeros_like(self, dtype: DType = None) -> Tensor:
        """Return zeros in the shape of ``x``."""
    def zeta(self, q: TensorLike, /) -> Tensor:
        """Return the Hurwitz zeta function: the sum of ``(k + q) ** -x`` over all ``k`` from 0; no derivative in ``x``."""
