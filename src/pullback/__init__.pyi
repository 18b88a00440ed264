"""The public names of the package.

Written by script/write_signatures.py; a test fails when it is out of date.
"""
# ruff: noqa: E402, E501, F401, I001, N802, N816, PIE790, RUF100, UP
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Sequence
from pullback.core.tensor import Tensor as Tensor
from pullback.typing import (
    Array,
    ArrayLike,
    ArrayOrNumber,
    Axis,
    DType,
    Lengths,
    Number,
    Padding,
    Seed,
    ShapeLike,
    TensorLike,
    TensorOrNested,
    Value,
)
from typing import Any, Generic, NamedTuple, TypeVar, overload

V = TypeVar("V")

class CellState(NamedTuple, Generic[V]):
    """The state of an LSTM cell: its cell state ``c`` and its output ``h``; for several cells, a list of each."""

    c: V
    h: V

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

from pullback.signatures.transforms import GradientTape as GradientTape
from pullback.train.nn.models import Model as Model
from pullback.core.rowsparse import RowSparse as RowSparse
from pullback.transforms.reverse import UnconnectedGradients as UnconnectedGradients
from pullback.signatures.transforms import ValueAndGrad as ValueAndGrad
from pullback.signatures.transforms import ValueAndGrads as ValueAndGrads
from pullback.core.variable import Variable as Variable
from pullback import array_api as array_api
from pullback import autograd as autograd
from pullback.diagnostics.timing import benchmark as benchmark
from pullback.train.loop import callbacks as callbacks
from pullback.diagnostics.checking import check_grads as check_grads
from pullback.signatures.transforms import checkpoint as checkpoint
from pullback.signatures.transforms import clip_gradient as clip_gradient
from pullback.signatures.transforms import clip_gradient_norm as clip_gradient_norm
from pullback.train.nn.cloning import clone_model as clone_model
from pullback.signatures.transforms import compile as compile
from pullback.signatures.transforms import cond as cond
from pullback.train.nn import constraints as constraints
from pullback.signatures.transforms import custom_fixed_point as custom_fixed_point
from pullback.signatures.transforms import custom_grad as custom_grad
from pullback.signatures.transforms import custom_gradient as custom_gradient
from pullback.signatures.transforms import custom_jvp as custom_jvp
from pullback.signatures.transforms import custom_root as custom_root
from pullback.train import data as data
from pullback.diagnostics.nans import debug_nans as debug_nans
from pullback.core.convert import default_dtype as default_dtype
from pullback.diagnostics.nans import diagnose as diagnose
from pullback import errors as errors
from pullback.diagnostics.paths import explain as explain
from pullback.signatures.transforms import fori_loop as fori_loop
from pullback.interop.dlpack import from_dlpack as from_dlpack
from pullback.signatures import fused as fused
from pullback.core.convert import get_default_dtype as get_default_dtype
from pullback.compiler.runtime.threads import get_num_threads as get_num_threads
from pullback.signatures.transforms import grad as grad
from pullback.signatures.transforms import grad_pass_through as grad_pass_through
from pullback.signatures.transforms import gradients as gradients
from pullback.signatures.transforms import grads as grads
from pullback.signatures.transforms import hessian as hessian
from pullback.signatures.transforms import hvp as hvp
from pullback.signatures import image as image
from pullback.train.nn import initializers as initializers
from pullback.train.nn.layers.symbolic import input as input
from pullback.signatures.transforms import jacobian as jacobian
from pullback.signatures.transforms import jvp as jvp
from pullback.train.nn import layers as layers
from pullback.signatures import linalg as linalg
from pullback.transforms.ravel import linear_operator as linear_operator
from pullback.signatures.transforms import linearize as linearize
from pullback.train.nn.model_files import load_layers_model as load_layers_model
from pullback.train.nn.model_files import load_model as load_model
from pullback.signatures import losses as losses
from pullback.signatures.transforms import map as map
from pullback.signatures import math as math
from pullback.train.loop import metrics as metrics
from pullback.train.nn.functional import model as model
from pullback.train.nn.model_files import model_from_json as model_from_json
from pullback.signatures.transforms import override_gradient as override_gradient
from pullback import plot as plot
from pullback.display.progress import progress as progress
from pullback.signatures import random as random
from pullback.transforms.ravel import ravel_tree as ravel_tree
from pullback.signatures.transforms import recompute_grad as recompute_grad
from pullback.signatures.transforms import register_gradient as register_gradient
from pullback.core.tree import register_node as register_node
from pullback.train.nn import regularizers as regularizers
from pullback.signatures.transforms import reverse_gradient as reverse_gradient
from pullback.train.io.onnx_files import save_onnx as save_onnx
from pullback import scale as scale
from pullback.signatures.transforms import scale_gradient as scale_gradient
from pullback.signatures.transforms import scan as scan
from pullback import scipy as scipy
from pullback.train.nn.sequential import sequential as sequential
from pullback.core.convert import set_default_dtype as set_default_dtype
from pullback.compiler.runtime.threads import set_num_threads as set_num_threads
from pullback import settings as settings
from pullback.display.progress import show_progress as show_progress
from pullback.signatures import signal as signal
from pullback import sklearn as sklearn
from pullback.signatures.transforms import sparse_hessian as sparse_hessian
from pullback.signatures.transforms import sparse_jacobian as sparse_jacobian
from pullback.signatures import special as special
from pullback.signatures import spectral as spectral
from pullback.signatures.transforms import stop_gradient as stop_gradient
from pullback.signatures.transforms import straight_through as straight_through
from pullback.diagnostics.strong_zero import strong_zero as strong_zero
from pullback.signatures.transforms import switch as switch
from pullback.signatures.transforms import tap_gradient as tap_gradient
from pullback.diagnostics.program import trace as trace
from pullback import train as train
from pullback import typing as typing
from pullback.signatures.transforms import value_and_grad as value_and_grad
from pullback.signatures.transforms import value_and_grads as value_and_grads
from pullback.core.variable import variable as variable
from pullback.signatures.transforms import variable_grads as variable_grads
from pullback.signatures.transforms import vjp as vjp
from pullback.signatures.transforms import vmap as vmap
from pullback.signatures.transforms import while_loop as while_loop

__version__: str

@overload
def abs(x: TensorOrNested, /) -> Tensor:
    """Return the absolute value (the modulus of complex numbers); its derivative at 0 is 0."""

@overload
def abs(x: ArrayLike, /) -> Array: ...
@overload
def acos(x: TensorOrNested, /) -> Tensor:
    """Return the inverse cosine, between 0 and π."""

@overload
def acos(x: ArrayLike, /) -> Array: ...
@overload
def acosh(x: TensorOrNested, /) -> Tensor:
    """Return the inverse hyperbolic cosine, which is not negative."""

@overload
def acosh(x: ArrayLike, /) -> Array: ...
@overload
def add(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the sum ``x + y``, element by element."""

@overload
def add(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the sum ``x + y``, element by element."""

@overload
def add(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def add_n(tensors: Sequence[ArrayOrNumber]) -> Array: ...
@overload
def add_n(tensors: Sequence[TensorLike]) -> Tensor:
    """Return the sum of a list of tensors."""

@overload
def all(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether all elements over ``axis`` are true."""

@overload
def all(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def angle(x: TensorOrNested, /) -> Tensor:
    """Return the angle from the positive real axis, between -π and π; its derivative at 0 is 0."""

@overload
def angle(x: ArrayLike, /) -> Array: ...
@overload
def any(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return whether some element over ``axis`` is true."""

@overload
def any(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def arg_max(x: TensorOrNested, /, axis: Axis = 0, keepdims: bool = False) -> Tensor:
    """Return the index of the first maximum along ``axis``; with ``axis=None``, in the flattened array."""

@overload
def arg_max(x: ArrayLike, /, axis: Axis = 0, keepdims: bool = False) -> Array: ...
@overload
def arg_min(x: TensorOrNested, /, axis: Axis = 0, keepdims: bool = False) -> Tensor:
    """Return the index of the first minimum along ``axis``; with ``axis=None``, in the flattened array."""

@overload
def arg_min(x: ArrayLike, /, axis: Axis = 0, keepdims: bool = False) -> Array: ...
@overload
def argsort(x: TensorOrNested, /, axis: int = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort ``x`` along ``axis``; the order of equal elements is kept."""

@overload
def argsort(x: ArrayLike, /, axis: int = -1, descending: bool = False) -> Array: ...
def array(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a new tensor with a copy of these values, through which gradients pass."""

@overload
def as1d(x: TensorOrNested) -> Tensor:
    """Return all elements as a vector."""

@overload
def as1d(x: ArrayLike) -> Array: ...
@overload
def as2d(x: TensorOrNested, rows: int, columns: int) -> Tensor:
    """Return the elements as a matrix."""

@overload
def as2d(x: ArrayLike, rows: int, columns: int) -> Array: ...
@overload
def as3d(x: TensorOrNested, rows: int, columns: int, depth: int) -> Tensor:
    """Return the elements as a tensor of rank 3."""

@overload
def as3d(x: ArrayLike, rows: int, columns: int, depth: int) -> Array: ...
@overload
def as4d(x: TensorOrNested, rows: int, columns: int, depth: int, depth2: int) -> Tensor:
    """Return the elements as a tensor of rank 4."""

@overload
def as4d(x: ArrayLike, rows: int, columns: int, depth: int, depth2: int) -> Array: ...
@overload
def as5d(x: TensorOrNested, rows: int, columns: int, depth: int, depth2: int, depth3: int) -> Tensor:
    """Return the elements as a tensor of rank 5."""

@overload
def as5d(x: ArrayLike, rows: int, columns: int, depth: int, depth2: int, depth3: int) -> Array: ...
@overload
def as_scalar(x: TensorOrNested) -> Tensor:
    """Return the only element as a scalar tensor."""

@overload
def as_scalar(x: ArrayLike) -> Array: ...
def asarray(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of these values; a tensor is returned unchanged, so that gradients pass through."""

@overload
def asin(x: TensorOrNested, /) -> Tensor:
    """Return the inverse sine, between -π/2 and π/2."""

@overload
def asin(x: ArrayLike, /) -> Array: ...
@overload
def asinh(x: TensorOrNested, /) -> Tensor:
    """Return the inverse hyperbolic sine."""

@overload
def asinh(x: ArrayLike, /) -> Array: ...
@overload
def atan(x: TensorOrNested, /) -> Tensor:
    """Return the inverse tangent, between -π/2 and π/2."""

@overload
def atan(x: ArrayLike, /) -> Array: ...
@overload
def atan2(a: TensorOrNested, b: TensorLike, /) -> Tensor:
    """Return the angle of the point ``(b, a)``, the inverse tangent of ``a / b``, between -π and π."""

@overload
def atan2(a: TensorLike, b: TensorOrNested, /) -> Tensor:
    """Return the angle of the point ``(b, a)``, the inverse tangent of ``a / b``, between -π and π."""

@overload
def atan2(a: ArrayLike, b: ArrayLike, /) -> Array: ...
@overload
def atanh(x: TensorOrNested, /) -> Tensor:
    """Return the inverse hyperbolic tangent."""

@overload
def atanh(x: ArrayLike, /) -> Array: ...
@overload
def avg_pool(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the mean of each window of images (batch, height, width, channels)."""

@overload
def avg_pool(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Array: ...
@overload
def avg_pool1d(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Tensor:
    """Return the mean of each window of (batch, width, channels)."""

@overload
def avg_pool1d(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Array: ...
@overload
def avg_pool3d(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the mean of each window of (batch, depth, height, width, channels)."""

@overload
def avg_pool3d(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Array: ...
@overload
def basic_lstm_cell(
    forget_bias: TensorOrNested,
    lstm_kernel: TensorLike,
    lstm_bias: TensorLike,
    data: TensorLike,
    c: TensorLike,
    h: TensorLike,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorOrNested,
    lstm_bias: TensorLike,
    data: TensorLike,
    c: TensorLike,
    h: TensorLike,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorLike,
    lstm_bias: TensorOrNested,
    data: TensorLike,
    c: TensorLike,
    h: TensorLike,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorLike,
    lstm_bias: TensorLike,
    data: TensorOrNested,
    c: TensorLike,
    h: TensorLike,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorLike,
    lstm_bias: TensorLike,
    data: TensorLike,
    c: TensorOrNested,
    h: TensorLike,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: TensorLike,
    lstm_kernel: TensorLike,
    lstm_bias: TensorLike,
    data: TensorLike,
    c: TensorLike,
    h: TensorOrNested,
) -> CellState[Tensor]:
    """Perform one step of an LSTM: from ``data`` and the state before to the state after."""

@overload
def basic_lstm_cell(
    forget_bias: ArrayLike, lstm_kernel: ArrayLike, lstm_bias: ArrayLike, data: ArrayLike, c: ArrayLike, h: ArrayLike
) -> CellState[Array]: ...
@overload
def batch_norm(
    x: TensorOrNested,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``."""

@overload
def batch_norm(
    x: TensorLike,
    mean: TensorOrNested,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``."""

@overload
def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorOrNested,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``(x - mean) / sqrt(variance + variance_epsilon) * scale + offset``."""

@overload
def batch_norm(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    offset: ArrayOrNumber | None = None,
    scale: ArrayOrNumber | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Array: ...
@overload
def batch_norm(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor: ...
@overload
def batch_norm2d(
    x: TensorOrNested,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 2."""

@overload
def batch_norm2d(
    x: TensorLike,
    mean: TensorOrNested,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 2."""

@overload
def batch_norm2d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorOrNested,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 2."""

@overload
def batch_norm2d(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    offset: ArrayOrNumber | None = None,
    scale: ArrayOrNumber | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Array: ...
@overload
def batch_norm2d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor: ...
@overload
def batch_norm3d(
    x: TensorOrNested,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 3."""

@overload
def batch_norm3d(
    x: TensorLike,
    mean: TensorOrNested,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 3."""

@overload
def batch_norm3d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorOrNested,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 3."""

@overload
def batch_norm3d(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    offset: ArrayOrNumber | None = None,
    scale: ArrayOrNumber | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Array: ...
@overload
def batch_norm3d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor: ...
@overload
def batch_norm4d(
    x: TensorOrNested,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 4."""

@overload
def batch_norm4d(
    x: TensorLike,
    mean: TensorOrNested,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 4."""

@overload
def batch_norm4d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorOrNested,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor:
    """Return ``batch_norm`` of a tensor of rank 4."""

@overload
def batch_norm4d(
    x: ArrayLike,
    mean: ArrayLike,
    variance: ArrayLike,
    offset: ArrayOrNumber | None = None,
    scale: ArrayOrNumber | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Array: ...
@overload
def batch_norm4d(
    x: TensorLike,
    mean: TensorLike,
    variance: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    variance_epsilon: float | Value | None = 0.001,
) -> Tensor: ...
@overload
def batch_to_space_nd(x: TensorOrNested, /, block_shape: Lengths | Array, crops: Sequence[Any] | Array) -> Tensor:
    """Return the batch rearranged to blocks of ``block_shape`` in the spatial axes, from which ``crops`` are removed."""

@overload
def batch_to_space_nd(x: ArrayLike, /, block_shape: Lengths | Array, crops: Sequence[Any] | Array) -> Array: ...
@overload
def bincount(x: TensorOrNested, weights: TensorLike | None = None, size: int | None = None) -> Tensor:
    """Return how often each number from 0 to ``size - 1`` is in ``x``, or the sum of its weights."""

@overload
def bincount(x: ArrayLike, weights: ArrayOrNumber | None = None, size: int | None = None) -> Array: ...
@overload
def bincount(x: TensorLike, weights: TensorLike | None = None, size: int | None = None) -> Tensor: ...
@overload
def bitwise_and(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the bits that both integers have; of bools, where both are true."""

@overload
def bitwise_and(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the bits that both integers have; of bools, where both are true."""

@overload
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def bitwise_or(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the bits that at least one integer has."""

@overload
def bitwise_or(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the bits that at least one integer has."""

@overload
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def bitwise_xor(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the bits that exactly one integer has."""

@overload
def bitwise_xor(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the bits that exactly one integer has."""

@overload
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def boolean_mask(x: TensorOrNested, mask: TensorLike, axis: Axis = None) -> Tensor:
    """Return the elements of ``x`` where ``mask`` is true; the mask's first axis is aligned with ``axis`` of ``x``."""

@overload
def boolean_mask(x: TensorLike, mask: TensorOrNested, axis: Axis = None) -> Tensor:
    """Return the elements of ``x`` where ``mask`` is true; the mask's first axis is aligned with ``axis`` of ``x``."""

@overload
def boolean_mask(x: ArrayLike, mask: ArrayLike, axis: Axis = None) -> Array: ...
@overload
def broadcast_args(s0: TensorOrNested, s1: TensorLike, /) -> Tensor:
    """Return the shape that two shapes broadcast to; all three are vectors of integers."""

@overload
def broadcast_args(s0: TensorLike, s1: TensorOrNested, /) -> Tensor:
    """Return the shape that two shapes broadcast to; all three are vectors of integers."""

@overload
def broadcast_args(s0: ArrayLike, s1: ArrayLike, /) -> Array: ...
@overload
def broadcast_to(x: TensorOrNested, /, shape: ShapeLike) -> Tensor:
    """Return ``x`` repeated along axes of length 1 and new leading axes, without copying."""

@overload
def broadcast_to(x: ArrayLike, /, shape: ShapeLike) -> Array: ...
@overload
def cast(x: TensorOrNested, dtype: DType) -> Tensor:
    """Return ``x`` in another dtype.  Between floats the gradient is cast back; integers and bools carry none."""

@overload
def cast(x: ArrayLike, dtype: DType) -> Array: ...
@overload
def cbrt(x: TensorOrNested, /) -> Tensor:
    """Return the cube root."""

@overload
def cbrt(x: ArrayLike, /) -> Array: ...
@overload
def ceil(x: TensorOrNested, /) -> Tensor:
    """Return the smallest integer that is not less than ``x``; its derivative is 0."""

@overload
def ceil(x: ArrayLike, /) -> Array: ...
@overload
def clip(x: TensorOrNested, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor:
    """Return ``x`` clipped to bounds, as ``np.clip``: ``None`` stands for no bound."""

@overload
def clip(x: ArrayLike, min: ArrayOrNumber | None = None, max: ArrayOrNumber | None = None) -> Array: ...
@overload
def clip(x: TensorLike, min: TensorLike | None = None, max: TensorLike | None = None) -> Tensor: ...
@overload
def clip_by_value(x: TensorOrNested, clip_value_min: TensorLike, clip_value_max: TensorLike, /) -> Tensor:
    """Return ``x`` clipped to two bounds, which may be tensors; at a bound the gradient goes to ``x``."""

@overload
def clip_by_value(x: TensorLike, clip_value_min: TensorOrNested, clip_value_max: TensorLike, /) -> Tensor:
    """Return ``x`` clipped to two bounds, which may be tensors; at a bound the gradient goes to ``x``."""

@overload
def clip_by_value(x: TensorLike, clip_value_min: TensorLike, clip_value_max: TensorOrNested, /) -> Tensor:
    """Return ``x`` clipped to two bounds, which may be tensors; at a bound the gradient goes to ``x``."""

@overload
def clip_by_value(x: ArrayLike, clip_value_min: ArrayLike, clip_value_max: ArrayLike, /) -> Array: ...
@overload
def clone(x: TensorOrNested, /) -> Tensor:
    """Return a copy of a tensor, through which gradients pass."""

@overload
def clone(x: ArrayLike, /) -> Array: ...
@overload
def complex(real: TensorOrNested, imag: TensorLike, /) -> Tensor:
    """Return the complex numbers with these real and imaginary parts."""

@overload
def complex(real: TensorLike, imag: TensorOrNested, /) -> Tensor:
    """Return the complex numbers with these real and imaginary parts."""

@overload
def complex(real: ArrayLike, imag: ArrayLike, /) -> Array: ...
@overload
def concat(tensors: Sequence[ArrayOrNumber] | Array, /, axis: Axis = 0) -> Array: ...
@overload
def concat(tensors: Sequence[TensorLike] | Value, /, axis: Axis = 0) -> Tensor:
    """Return the tensors concatenated along an existing axis."""

@overload
def concat1d(tensors: Sequence[ArrayOrNumber] | Array) -> Array: ...
@overload
def concat1d(tensors: Sequence[TensorLike] | Value) -> Tensor:
    """Return concatenated vectors."""

@overload
def concat2d(tensors: Sequence[ArrayOrNumber] | Array, axis: int = 0) -> Array: ...
@overload
def concat2d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Tensor:
    """Return ``concat`` of tensors of rank 2."""

@overload
def concat3d(tensors: Sequence[ArrayOrNumber] | Array, axis: int = 0) -> Array: ...
@overload
def concat3d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Tensor:
    """Return ``concat`` of tensors of rank 3."""

@overload
def concat4d(tensors: Sequence[ArrayOrNumber] | Array, axis: int = 0) -> Array: ...
@overload
def concat4d(tensors: Sequence[TensorLike] | Value, axis: int = 0) -> Tensor:
    """Return ``concat`` of tensors of rank 4."""

@overload
def conj(x: TensorOrNested, /) -> Tensor:
    """Return the complex conjugate; real numbers are returned unchanged."""

@overload
def conj(x: ArrayLike, /) -> Array: ...
@overload
def conv1d(
    x: TensorOrNested,
    filter: TensorLike,
    stride: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NWC",
    dilation: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the convolution of (batch, width, channels) with a filter of (width, channels, channels of the result)."""

@overload
def conv1d(
    x: TensorLike,
    filter: TensorOrNested,
    stride: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NWC",
    dilation: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the convolution of (batch, width, channels) with a filter of (width, channels, channels of the result)."""

@overload
def conv1d(
    x: ArrayLike,
    filter: ArrayLike,
    stride: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NWC",
    dilation: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Array: ...
@overload
def conv2d(
    x: TensorOrNested,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return images (batch, height, width, channels) convolved with a filter (height, width, channels, results)."""

@overload
def conv2d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return images (batch, height, width, channels) convolved with a filter (height, width, channels, results)."""

@overload
def conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Array: ...
@overload
def conv2d_transpose(
    x: TensorOrNested,
    filter: TensorLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the adjoint of ``conv2d`` in the image, with a filter (height, width, channels of the result, channels)."""

@overload
def conv2d_transpose(
    x: TensorLike,
    filter: TensorOrNested,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the adjoint of ``conv2d`` in the image, with a filter (height, width, channels of the result, channels)."""

@overload
def conv2d_transpose(
    x: ArrayLike,
    filter: ArrayLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Array: ...
@overload
def conv3d(
    x: TensorOrNested,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the convolution of (batch, depth, height, width, channels) with a filter over three axes."""

@overload
def conv3d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return the convolution of (batch, depth, height, width, channels) with a filter over three axes."""

@overload
def conv3d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Array: ...
@overload
def conv3d_transpose(
    x: TensorOrNested,
    filter: TensorLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the adjoint of ``conv3d`` in the image."""

@overload
def conv3d_transpose(
    x: TensorLike,
    filter: TensorOrNested,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the adjoint of ``conv3d`` in the image."""

@overload
def conv3d_transpose(
    x: ArrayLike,
    filter: ArrayLike,
    output_shape: ShapeLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NDHWC",
) -> Array: ...
@overload
def cos(x: TensorOrNested, /) -> Tensor:
    """Return the cosine."""

@overload
def cos(x: ArrayLike, /) -> Array: ...
@overload
def cosh(x: TensorOrNested, /) -> Tensor:
    """Return the hyperbolic cosine."""

@overload
def cosh(x: ArrayLike, /) -> Array: ...
@overload
def count_nonzero(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return how many elements over ``axis`` are not 0."""

@overload
def count_nonzero(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def cube(x: TensorOrNested, /) -> Tensor:
    """Return the third power; ``x ** 3`` calls it, as two products are many times faster than a power."""

@overload
def cube(x: ArrayLike, /) -> Array: ...
@overload
def cumprod(x: TensorOrNested, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the cumulative product along ``axis``."""

@overload
def cumprod(x: ArrayLike, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Array: ...
@overload
def cumsum(x: TensorOrNested, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Tensor:
    """Return the cumulative sum along ``axis``."""

@overload
def cumsum(x: ArrayLike, /, axis: Axis = 0, exclusive: bool = False, reverse: bool = False) -> Array: ...
@overload
def dense_bincount(
    x: TensorOrNested, weights: TensorLike | None = None, size: int | None = None, binary_output: bool = False
) -> Tensor:
    """Return ``bincount`` of a vector or of each row of a matrix; with ``binary_output``, 1 for numbers that occur."""

@overload
def dense_bincount(
    x: ArrayLike, weights: ArrayOrNumber | None = None, size: int | None = None, binary_output: bool = False
) -> Array: ...
@overload
def dense_bincount(
    x: TensorLike, weights: TensorLike | None = None, size: int | None = None, binary_output: bool = False
) -> Tensor: ...
@overload
def depth_to_space(x: TensorOrNested, /, block_size: int, data_format: str = "NHWC") -> Tensor:
    """Return images in which the channels of each pixel are rearranged to a block of pixels."""

@overload
def depth_to_space(x: ArrayLike, /, block_size: int, data_format: str = "NHWC") -> Array: ...
@overload
def depthwise_conv2d(
    x: TensorOrNested,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return ``conv2d`` of each channel separately, with a filter (height, width, channels, results of each)."""

@overload
def depthwise_conv2d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return ``conv2d`` of each channel separately, with a filter (height, width, channels, results of each)."""

@overload
def depthwise_conv2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    data_format: str = "NHWC",
    dilations: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Array: ...
@overload
def diag(x: TensorOrNested, /) -> Tensor:
    """Return zeros with ``x`` on the diagonal: a matrix for a vector, a tensor of twice the rank for other inputs."""

@overload
def diag(x: ArrayLike, /) -> Array: ...
@overload
def dilation2d(
    x: TensorOrNested,
    filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilations: Lengths = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the maximum over each window of ``x`` plus ``filter`` (height, width, channels)."""

@overload
def dilation2d(
    x: TensorLike,
    filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilations: Lengths = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the maximum over each window of ``x`` plus ``filter`` (height, width, channels)."""

@overload
def dilation2d(
    x: ArrayLike,
    filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilations: Lengths = 1,
    data_format: str = "NHWC",
) -> Array: ...
@overload
def div(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the quotient ``x / y``; it is a float for integers too, as in Python."""

@overload
def div(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the quotient ``x / y``; it is a float for integers too, as in Python."""

@overload
def div(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def div_no_nan(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the quotient ``x / y``, and 0 where ``y`` is 0; the derivatives there are 0 too."""

@overload
def div_no_nan(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the quotient ``x / y``, and 0 where ``y`` is 0; the derivatives there are 0 too."""

@overload
def div_no_nan(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def dot(a: TensorOrNested, b: TensorLike) -> Tensor:
    """Return the product of vectors, matrices or scalars; in general over ``a``'s last axis and ``b``'s last but one."""

@overload
def dot(a: TensorLike, b: TensorOrNested) -> Tensor:
    """Return the product of vectors, matrices or scalars; in general over ``a``'s last axis and ``b``'s last but one."""

@overload
def dot(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def dropout(x: TensorOrNested, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Tensor:
    """Return ``x`` with a fraction ``rate`` of its elements set to 0, and the others scaled by ``1 / (1 - rate)``."""

@overload
def dropout(x: ArrayLike, rate: float, noise_shape: ShapeLike | None = None, seed: Seed = None) -> Array: ...
@overload
def einsum(equation: str, *operands: ArrayOrNumber) -> Array: ...
@overload
def einsum(equation: str, *operands: TensorLike) -> Tensor:
    """Return products summed over labelled axes: labels that are not in the result are summed over."""

@overload
def elu(x: TensorOrNested, /) -> Tensor:
    """Return the exponential linear unit: ``x`` where it is positive, else ``exp(x) - 1``."""

@overload
def elu(x: ArrayLike, /) -> Array: ...
@overload
def ensure_shape(x: TensorOrNested, shape: ShapeLike) -> Tensor:
    """Return ``x`` itself, if it has this shape; ``None`` stands for any length."""

@overload
def ensure_shape(x: ArrayLike, shape: ShapeLike) -> Array: ...
@overload
def equal(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x`` and ``y`` are equal."""

@overload
def equal(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x`` and ``y`` are equal."""

@overload
def equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def erf(x: TensorOrNested, /) -> Tensor:
    """Return the error function, ``2 / sqrt(pi)`` times the integral of ``exp(-t * t)`` from 0 to ``x``."""

@overload
def erf(x: ArrayLike, /) -> Array: ...
@overload
def euclidean_norm(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the square root of the sum of squares; its gradient at 0 is 0."""

@overload
def euclidean_norm(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def exp(x: TensorOrNested, /) -> Tensor:
    """Return the exponential of ``x``."""

@overload
def exp(x: ArrayLike, /) -> Array: ...
@overload
def expand_dims(x: TensorOrNested, /, axis: Axis = 0) -> Tensor:
    """Return ``x`` with a new axis of length 1 at ``axis``."""

@overload
def expand_dims(x: ArrayLike, /, axis: Axis = 0) -> Array: ...
@overload
def expm1(x: TensorOrNested, /) -> Tensor:
    """Return ``exp(x) - 1``, accurate for small ``x`` too."""

@overload
def expm1(x: ArrayLike, /) -> Array: ...
def eye(
    num_rows: int, num_columns: int | None = None, batch_shape: ShapeLike | None = None, dtype: DType = None
) -> Tensor:
    """Return ones on the diagonal, zeros elsewhere; repeated over ``batch_shape``."""

@overload
def fill(shape: ShapeLike, value: TensorOrNested, dtype: DType = None) -> Tensor:
    """Return a tensor with one value everywhere."""

@overload
def fill(shape: ShapeLike, value: ArrayLike, dtype: DType = None) -> Array: ...
@overload
def flatten(x: TensorOrNested, order: Any = "C") -> Tensor:
    """Return a flattened copy; ``order="F"`` is column-major, with the first axis varying fastest."""

@overload
def flatten(x: ArrayLike, order: Any = "C") -> Array: ...
@overload
def floor(x: TensorOrNested, /) -> Tensor:
    """Return the largest integer that is not greater than ``x``; its derivative is 0."""

@overload
def floor(x: ArrayLike, /) -> Array: ...
@overload
def floor_div(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the quotient rounded down; its derivative is 0 between the jumps."""

@overload
def floor_div(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the quotient rounded down; its derivative is 0 between the jumps."""

@overload
def floor_div(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def fmod(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the remainder with the sign of ``x``."""

@overload
def fmod(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the remainder with the sign of ``x``."""

@overload
def fmod(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def full_like(x: TensorOrNested, /, fill_value: Number, dtype: DType = None) -> Tensor:
    """Return one value everywhere, in the shape of ``x``."""

@overload
def full_like(x: ArrayLike, /, fill_value: Number, dtype: DType = None) -> Array: ...
@overload
def gather(x: TensorOrNested, indices: TensorLike, /, axis: Axis = 0, batch_dims: int = 0) -> Tensor:
    """Return the slices of ``x`` at these positions along ``axis``; ``batch_dims`` leading axes belong together."""

@overload
def gather(x: TensorLike, indices: TensorOrNested, /, axis: Axis = 0, batch_dims: int = 0) -> Tensor:
    """Return the slices of ``x`` at these positions along ``axis``; ``batch_dims`` leading axes belong together."""

@overload
def gather(x: ArrayLike, indices: ArrayLike, /, axis: Axis = 0, batch_dims: int = 0) -> Array: ...
@overload
def gather_nd(x: TensorOrNested, indices: TensorLike, /) -> Tensor:
    """Return the slices of ``x`` at coordinates, which are along the last axis of ``indices``."""

@overload
def gather_nd(x: TensorLike, indices: TensorOrNested, /) -> Tensor:
    """Return the slices of ``x`` at coordinates, which are along the last axis of ``indices``."""

@overload
def gather_nd(x: ArrayLike, indices: ArrayLike, /) -> Array: ...
@overload
def gelu(x: TensorOrNested, approximate: bool = False) -> Tensor:
    """Return the Gaussian error linear unit: ``x`` times the normal CDF at ``x``, with ``approximate`` by a tanh."""

@overload
def gelu(x: ArrayLike, approximate: bool = False) -> Array: ...
@overload
def greater(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x > y``."""

@overload
def greater(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x > y``."""

@overload
def greater(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def greater_equal(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x >= y``."""

@overload
def greater_equal(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x >= y``."""

@overload
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def hypot(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the length ``sqrt(x**2 + y**2)``; its derivative at the origin is 0, as that of a norm."""

@overload
def hypot(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the length ``sqrt(x**2 + y**2)``; its derivative at the origin is 0, as that of a norm."""

@overload
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def imag(x: TensorOrNested, /) -> Tensor:
    """Return the imaginary part, which is 0 for real numbers."""

@overload
def imag(x: ArrayLike, /) -> Array: ...
@overload
def in_top_k(predictions: TensorOrNested, targets: TensorLike, /, k: int = 1) -> Tensor:
    """Return whether the score of the target class is among the ``k`` highest ones."""

@overload
def in_top_k(predictions: TensorLike, targets: TensorOrNested, /, k: int = 1) -> Tensor:
    """Return whether the score of the target class is among the ``k`` highest ones."""

@overload
def in_top_k(predictions: ArrayLike, targets: ArrayLike, /, k: int = 1) -> Array: ...
@overload
def inner(a: TensorOrNested, b: TensorLike) -> Tensor:
    """Return the product over the last axis of both."""

@overload
def inner(a: TensorLike, b: TensorOrNested) -> Tensor:
    """Return the product over the last axis of both."""

@overload
def inner(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def intersect1d(x: TensorOrNested, y: TensorLike) -> Tensor:
    """Return the sorted distinct elements that are in both ``x`` and ``y``."""

@overload
def intersect1d(x: TensorLike, y: TensorOrNested) -> Tensor:
    """Return the sorted distinct elements that are in both ``x`` and ``y``."""

@overload
def intersect1d(x: ArrayLike, y: ArrayLike) -> Array: ...
@overload
def invert(x: TensorOrNested, /) -> Tensor:
    """Return every bit inverted; for bools the logical negation."""

@overload
def invert(x: ArrayLike, /) -> Array: ...
@overload
def is_finite(x: TensorOrNested, /) -> Tensor:
    """Return where ``x`` is neither infinite nor NaN."""

@overload
def is_finite(x: ArrayLike, /) -> Array: ...
@overload
def is_inf(x: TensorOrNested, /) -> Tensor:
    """Return where ``x`` is infinite, of either sign."""

@overload
def is_inf(x: ArrayLike, /) -> Array: ...
@overload
def is_nan(x: TensorOrNested, /) -> Tensor:
    """Return where ``x`` is not a number."""

@overload
def is_nan(x: ArrayLike, /) -> Array: ...
@overload
def isin(element: TensorOrNested, test_elements: TensorLike, /) -> Tensor:
    """Return whether each element is among the test elements."""

@overload
def isin(element: TensorLike, test_elements: TensorOrNested, /) -> Tensor:
    """Return whether each element is among the test elements."""

@overload
def isin(element: ArrayLike, test_elements: ArrayLike, /) -> Array: ...
@overload
def layer_norm(
    x: TensorOrNested,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    axis: Axis = -1,
    variance_epsilon: float | Value | None = 1e-05,
) -> Tensor:
    """Return ``x`` normalized to mean 0 and variance 1 over ``axis``, times ``scale``, plus ``offset``."""

@overload
def layer_norm(
    x: ArrayLike,
    offset: ArrayOrNumber | None = None,
    scale: ArrayOrNumber | None = None,
    axis: Axis = -1,
    variance_epsilon: float | Value | None = 1e-05,
) -> Array: ...
@overload
def layer_norm(
    x: TensorLike,
    offset: TensorLike | None = None,
    scale: TensorLike | None = None,
    axis: Axis = -1,
    variance_epsilon: float | Value | None = 1e-05,
) -> Tensor: ...
@overload
def leaky_relu(x: TensorOrNested, /, alpha: float = 0.2) -> Tensor:
    """Return ``x`` where it is positive, else ``alpha * x``."""

@overload
def leaky_relu(x: ArrayLike, /, alpha: float = 0.2) -> Array: ...
@overload
def left_shift(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the bits of integers shifted left by ``y`` places: ``x << y``."""

@overload
def left_shift(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the bits of integers shifted left by ``y`` places: ``x << y``."""

@overload
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def less(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x < y``."""

@overload
def less(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x < y``."""

@overload
def less(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def less_equal(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x <= y``."""

@overload
def less_equal(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x <= y``."""

@overload
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
def linspace(start: TensorLike, stop: TensorLike, num: float | Array = 50, dtype: DType = None) -> Tensor:
    """Return ``num`` evenly spaced numbers from ``start`` to ``stop``, both included."""

@overload
def local_response_normalization(
    x: TensorOrNested,
    depth_radius: float | None = 5,
    bias: float | Value | None = 1,
    alpha: float | Value | None = 1,
    beta: float | Value | None = 0.5,
) -> Tensor:
    """Return ``x`` divided by ``(bias + alpha * s) ** beta``, ``s`` the sum of squares of the channels around each one."""

@overload
def local_response_normalization(
    x: ArrayLike,
    depth_radius: float | None = 5,
    bias: float | Value | None = 1,
    alpha: float | Value | None = 1,
    beta: float | Value | None = 0.5,
) -> Array: ...
@overload
def log(x: TensorOrNested, /) -> Tensor:
    """Return the natural logarithm."""

@overload
def log(x: ArrayLike, /) -> Array: ...
@overload
def log10(x: TensorOrNested, /) -> Tensor:
    """Return the logarithm to the base 10."""

@overload
def log10(x: ArrayLike, /) -> Array: ...
@overload
def log1p(x: TensorOrNested, /) -> Tensor:
    """Return ``log(1 + x)``, accurate for small ``x`` too."""

@overload
def log1p(x: ArrayLike, /) -> Array: ...
@overload
def log2(x: TensorOrNested, /) -> Tensor:
    """Return the logarithm to the base 2."""

@overload
def log2(x: ArrayLike, /) -> Array: ...
@overload
def log_sigmoid(x: TensorOrNested, /) -> Tensor:
    """Return ``log(sigmoid(x))``, without overflow."""

@overload
def log_sigmoid(x: ArrayLike, /) -> Array: ...
@overload
def log_softmax(logits: TensorOrNested, /, axis: Axis = -1) -> Tensor:
    """Return the logarithm of ``softmax``, accurate where the softmax is near 0."""

@overload
def log_softmax(logits: ArrayLike, /, axis: Axis = -1) -> Array: ...
@overload
def log_sum_exp(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return ``log(sum(exp(x)))`` over ``axis``, without overflow."""

@overload
def log_sum_exp(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def logaddexp(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``log(exp(x) + exp(y))``, without overflow."""

@overload
def logaddexp(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``log(exp(x) + exp(y))``, without overflow."""

@overload
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def logaddexp2(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``log2(2**x + 2**y)``, without overflow."""

@overload
def logaddexp2(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``log2(2**x + 2**y)``, without overflow."""

@overload
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def logical_and(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where both are true, that is, not 0."""

@overload
def logical_and(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where both are true, that is, not 0."""

@overload
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def logical_not(x: TensorOrNested, /) -> Tensor:
    """Return where ``x`` is false."""

@overload
def logical_not(x: ArrayLike, /) -> Array: ...
@overload
def logical_or(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where at least one is true."""

@overload
def logical_or(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where at least one is true."""

@overload
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def logical_xor(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where exactly one is true."""

@overload
def logical_xor(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where exactly one is true."""

@overload
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def lower_bound(sorted_sequence: TensorOrNested, values: TensorLike) -> Tensor:
    """Return the index of the first element that is not less than each value."""

@overload
def lower_bound(sorted_sequence: TensorLike, values: TensorOrNested) -> Tensor:
    """Return the index of the first element that is not less than each value."""

@overload
def lower_bound(sorted_sequence: ArrayLike, values: ArrayLike) -> Array: ...
@overload
def mat_mul(a: TensorOrNested, b: TensorLike, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Return the matrix product over the last two axes, with either operand transposed first; leading axes broadcast."""

@overload
def mat_mul(a: TensorLike, b: TensorOrNested, transpose_a: bool = False, transpose_b: bool = False) -> Tensor:
    """Return the matrix product over the last two axes, with either operand transposed first; leading axes broadcast."""

@overload
def mat_mul(a: ArrayLike, b: ArrayLike, transpose_a: bool = False, transpose_b: bool = False) -> Array: ...
@overload
def matmul(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the matrix product ``x @ y`` over the last two axes; leading axes broadcast, vectors are rows or columns."""

@overload
def matmul(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the matrix product ``x @ y`` over the last two axes; leading axes broadcast, vectors are rows or columns."""

@overload
def matmul(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def max(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the maximum of ``x`` over ``axis``; equal maxima share the gradient."""

@overload
def max(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def max_pool(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Tensor:
    """Return the maximum of each window of images (batch, height, width, channels)."""

@overload
def max_pool(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NHWC",
) -> Array: ...
@overload
def max_pool1d(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Tensor:
    """Return the maximum of each window of (batch, width, channels)."""

@overload
def max_pool1d(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NWC",
) -> Array: ...
@overload
def max_pool3d(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Tensor:
    """Return the maximum of each window of (batch, depth, height, width, channels)."""

@overload
def max_pool3d(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dim_rounding_mode: str | None = None,
    data_format: str = "NDHWC",
) -> Array: ...
@overload
def max_pool_with_argmax(
    x: TensorOrNested,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    include_batch_in_index: bool = False,
) -> PoolWithArgmax[Tensor]:
    """Return ``max_pool``, and the position of each of its elements in the flattened image, or in the whole batch."""

@overload
def max_pool_with_argmax(
    x: ArrayLike,
    filter_size: Lengths,
    strides: Lengths = 1,
    pad: Padding = "valid",
    include_batch_in_index: bool = False,
) -> PoolWithArgmax[Array]: ...
@overload
def maximum(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the elementwise maximum; where both are equal, each gets half of the gradient."""

@overload
def maximum(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the elementwise maximum; where both are equal, each gets half of the gradient."""

@overload
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def mean(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the mean of the elements of ``x`` over ``axis``; it is a float for integers."""

@overload
def mean(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def meshgrid(*xs: ArrayOrNumber, indexing: str = "xy", sparse: bool = False) -> tuple[Array, ...]: ...
@overload
def meshgrid(*xs: TensorLike, indexing: str = "xy", sparse: bool = False) -> tuple[Tensor, ...]:
    """Return the coordinates of every point of a grid, one result for each vector of coordinates along an axis."""

@overload
def min(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the minimum of ``x`` over ``axis``; equal minima share the gradient."""

@overload
def min(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def minimum(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the elementwise minimum; where both are equal, each gets half of the gradient."""

@overload
def minimum(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the elementwise minimum; where both are equal, each gets half of the gradient."""

@overload
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def mirror_pad(x: TensorOrNested, paddings: Sequence[Any] | Array, mode: str = "reflect") -> Tensor:
    """Return ``x`` padded with its reflection; ``"symmetric"`` repeats the edge element, ``"reflect"`` does not."""

@overload
def mirror_pad(x: ArrayLike, paddings: Sequence[Any] | Array, mode: str = "reflect") -> Array: ...
@overload
def mod(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the remainder of ``x // y``, with the sign of ``y``."""

@overload
def mod(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the remainder of ``x // y``, with the sign of ``y``."""

@overload
def mod(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def moments(x: TensorOrNested, axis: Axis = None, keepdims: bool = False) -> Moments[Tensor]:
    """Return the mean and the variance over ``axis``, as a named tuple."""

@overload
def moments(x: ArrayLike, axis: Axis = None, keepdims: bool = False) -> Moments[Array]: ...
@overload
def moveaxis(x: TensorOrNested, /, source: Lengths, destination: Lengths) -> Tensor:
    """Return ``x`` with axes moved from ``source`` to ``destination``; the others keep their order."""

@overload
def moveaxis(x: ArrayLike, /, source: Lengths, destination: Lengths) -> Array: ...
@overload
def moving_average(
    v: TensorOrNested, x: TensorLike, decay: TensorLike, step: TensorLike | None = None, zero_debias: bool = True
) -> Tensor:
    """Return the moving average ``decay * v + (1 - decay) * x``; nothing is assigned."""

@overload
def moving_average(
    v: TensorLike, x: TensorOrNested, decay: TensorLike, step: TensorLike | None = None, zero_debias: bool = True
) -> Tensor:
    """Return the moving average ``decay * v + (1 - decay) * x``; nothing is assigned."""

@overload
def moving_average(
    v: TensorLike, x: TensorLike, decay: TensorOrNested, step: TensorLike | None = None, zero_debias: bool = True
) -> Tensor:
    """Return the moving average ``decay * v + (1 - decay) * x``; nothing is assigned."""

@overload
def moving_average(
    v: ArrayLike, x: ArrayLike, decay: ArrayLike, step: ArrayOrNumber | None = None, zero_debias: bool = True
) -> Array: ...
@overload
def moving_average(
    v: TensorLike, x: TensorLike, decay: TensorLike, step: TensorLike | None = None, zero_debias: bool = True
) -> Tensor: ...
@overload
def mul(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the product ``x * y``, element by element."""

@overload
def mul(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the product ``x * y``, element by element."""

@overload
def mul(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def multi_rnn_cell(
    lstm_cells: Sequence[object], data: ArrayLike, c: Sequence[ArrayOrNumber], h: Sequence[ArrayOrNumber]
) -> CellState[Array]: ...
@overload
def multi_rnn_cell(
    lstm_cells: Sequence[object], data: TensorLike, c: Sequence[TensorLike], h: Sequence[TensorLike]
) -> CellState[Tensor]:
    """Perform one step of stacked cells: each takes the output of the one below as its data."""

def multinomial(logits: TensorLike, num_samples: int, seed: Seed = None, normalized: bool = False) -> Tensor:
    """Return ``categorical`` by its name in TensorFlow.js; with ``normalized`` the logits are probabilities."""

@overload
def neg(x: TensorOrNested, /) -> Tensor:
    """Return the negative, ``-x``."""

@overload
def neg(x: ArrayLike, /) -> Array: ...
@overload
def nextafter(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the next floating-point number after ``x`` in the direction of ``y``; its derivative by ``x`` is 1."""

@overload
def nextafter(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the next floating-point number after ``x`` in the direction of ``y``; its derivative by ``x`` is 1."""

@overload
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def norm(x: TensorOrNested, ord: str | float | None = "euclidean", axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the norm of vectors or, over two axes, of matrices; without ``axis`` that of the flattened array."""

@overload
def norm(x: ArrayLike, ord: str | float | None = "euclidean", axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def not_equal(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return where ``x`` and ``y`` differ; NaN differs from everything."""

@overload
def not_equal(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return where ``x`` and ``y`` differ; NaN differs from everything."""

@overload
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def one_hot(
    indices: TensorOrNested, /, depth: int, on_value: TensorLike = 1, off_value: TensorLike = 0, dtype: DType = None
) -> Tensor:
    """Return ``on_value`` at each index and ``off_value`` elsewhere along a new last axis; int32 by default."""

@overload
def one_hot(
    indices: ArrayLike, /, depth: int, on_value: ArrayOrNumber = 1, off_value: ArrayOrNumber = 0, dtype: DType = None
) -> Array: ...
@overload
def one_hot(
    indices: TensorLike, /, depth: int, on_value: TensorLike = 1, off_value: TensorLike = 0, dtype: DType = None
) -> Tensor: ...
def ones(shape: ShapeLike, dtype: DType = None) -> Tensor:
    """Return ones."""

@overload
def ones_like(x: TensorOrNested, /, dtype: DType = None) -> Tensor:
    """Return ones in the shape of ``x``."""

@overload
def ones_like(x: ArrayLike, /, dtype: DType = None) -> Array: ...
@overload
def outer_product(a: TensorOrNested, b: TensorLike) -> Tensor:
    """Return every element of ``a`` times every element of ``b``, as a matrix."""

@overload
def outer_product(a: TensorLike, b: TensorOrNested) -> Tensor:
    """Return every element of ``a`` times every element of ``b``, as a matrix."""

@overload
def outer_product(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def pad(x: TensorOrNested, /, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
    """Return ``x`` padded with ``constant_value`` by ``[before, after]`` elements along each axis."""

@overload
def pad(x: ArrayLike, /, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Array: ...
@overload
def pad1d(x: TensorOrNested, paddings: Sequence[int] | Array, constant_value: Number = 0) -> Tensor:
    """Return ``pad`` of a vector; ``paddings`` is one pair."""

@overload
def pad1d(x: ArrayLike, paddings: Sequence[int] | Array, constant_value: Number = 0) -> Array: ...
@overload
def pad2d(x: TensorOrNested, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
    """Return ``pad`` of a tensor of rank 2."""

@overload
def pad2d(x: ArrayLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Array: ...
@overload
def pad3d(x: TensorOrNested, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
    """Return ``pad`` of a tensor of rank 3."""

@overload
def pad3d(x: ArrayLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Array: ...
@overload
def pad4d(x: TensorOrNested, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Tensor:
    """Return ``pad`` of a tensor of rank 4."""

@overload
def pad4d(x: ArrayLike, paddings: Sequence[Any] | Array, constant_value: Number = 0) -> Array: ...
@overload
def pool(
    input: TensorOrNested,
    window_shape: Lengths,
    pooling_type: str = "max",
    pad: Padding = "valid",
    dilations: Lengths = 1,
    strides: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Tensor:
    """Return ``max_pool`` or ``avg_pool`` ("max", "avg"), whose windows may be dilated."""

@overload
def pool(
    input: ArrayLike,
    window_shape: Lengths,
    pooling_type: str = "max",
    pad: Padding = "valid",
    dilations: Lengths = 1,
    strides: Lengths = 1,
    dim_rounding_mode: str | None = None,
) -> Array: ...
@overload
def pow(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``x`` to the power ``y``.  ``x ** 0`` has slope 0; the exponent of a base ``x <= 0`` gets gradient 0."""

@overload
def pow(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``x`` to the power ``y``.  ``x ** 0`` has slope 0; the exponent of a base ``x <= 0`` gets gradient 0."""

@overload
def pow(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def prelu(x: TensorOrNested, alpha: TensorLike, /) -> Tensor:
    """Return ``leaky_relu`` with a tensor of slopes, which can be trained."""

@overload
def prelu(x: TensorLike, alpha: TensorOrNested, /) -> Tensor:
    """Return ``leaky_relu`` with a tensor of slopes, which can be trained."""

@overload
def prelu(x: ArrayLike, alpha: ArrayLike, /) -> Array: ...
@overload
def prod(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the product of the elements of ``x`` over ``axis``."""

@overload
def prod(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
def rand(shape: ShapeLike, rand_function: Callable[[], float], dtype: DType = None) -> Tensor:
    """Return a tensor of numbers from calls of a function."""

def range(
    start: TensorLike, stop: TensorLike | None = None, step: float | Value | None = 1, dtype: DType = None
) -> Tensor:
    """Return numbers from ``start`` to ``stop``, which is not included; descending if ``stop < start`` without a step."""

@overload
def ravel(x: TensorOrNested, /, order: str = "C") -> Tensor:
    """Return the flattened array, which shares memory with ``x`` if its elements are contiguous."""

@overload
def ravel(x: ArrayLike, /, order: str = "C") -> Array: ...
@overload
def real(x: TensorOrNested, /) -> Tensor:
    """Return the real part; real numbers are returned unchanged."""

@overload
def real(x: ArrayLike, /) -> Array: ...
@overload
def reciprocal(x: TensorOrNested, /) -> Tensor:
    """Return ``1 / x``; it is a float for integers too (``np.reciprocal`` returns an integer)."""

@overload
def reciprocal(x: ArrayLike, /) -> Array: ...
@overload
def relu(x: TensorOrNested, /) -> Tensor:
    """Return the rectified linear unit, ``maximum(x, 0)``; its derivative at 0 is 0."""

@overload
def relu(x: ArrayLike, /) -> Array: ...
@overload
def relu6(x: TensorOrNested, /) -> Tensor:
    """Return ``x`` clipped to the range from 0 to 6."""

@overload
def relu6(x: ArrayLike, /) -> Array: ...
@overload
def repeat(x: TensorOrNested, repeats: Lengths | Value, axis: Axis = None) -> Tensor:
    """Return each element repeated ``repeats`` times, along ``axis`` or of the flattened array."""

@overload
def repeat(x: ArrayLike, repeats: Lengths | Value, axis: Axis = None) -> Array: ...
@overload
def reshape(x: TensorOrNested, /, shape: ShapeLike) -> Tensor:
    """Return the elements of ``x``, in order, in another shape; a length of -1 is inferred."""

@overload
def reshape(x: ArrayLike, /, shape: ShapeLike) -> Array: ...
@overload
def reshape_as(x: TensorOrNested, y: TensorLike) -> Tensor:
    """Return the elements of ``x`` in the shape of ``y``."""

@overload
def reshape_as(x: TensorLike, y: TensorOrNested) -> Tensor:
    """Return the elements of ``x`` in the shape of ``y``."""

@overload
def reshape_as(x: ArrayLike, y: ArrayLike) -> Array: ...
@overload
def reverse(x: TensorOrNested, /, axis: Axis = None) -> Tensor:
    """Return the elements in reverse order along ``axis``, or along all axes."""

@overload
def reverse(x: ArrayLike, /, axis: Axis = None) -> Array: ...
@overload
def reverse1d(x: TensorOrNested) -> Tensor:
    """Return the elements of a vector in reverse order."""

@overload
def reverse1d(x: ArrayLike) -> Array: ...
@overload
def reverse2d(x: TensorOrNested, axis: Axis = None) -> Tensor:
    """Return ``reverse`` of a tensor of rank 2."""

@overload
def reverse2d(x: ArrayLike, axis: Axis = None) -> Array: ...
@overload
def reverse3d(x: TensorOrNested, axis: Axis = None) -> Tensor:
    """Return ``reverse`` of a tensor of rank 3."""

@overload
def reverse3d(x: ArrayLike, axis: Axis = None) -> Array: ...
@overload
def reverse4d(x: TensorOrNested, axis: Axis = None) -> Tensor:
    """Return ``reverse`` of a tensor of rank 4."""

@overload
def reverse4d(x: ArrayLike, axis: Axis = None) -> Array: ...
@overload
def right_shift(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the bits of integers shifted right by ``y`` places: ``x >> y``."""

@overload
def right_shift(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the bits of integers shifted right by ``y`` places: ``x >> y``."""

@overload
def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def roll(x: TensorOrNested, /, shift: Lengths, axis: Axis = None) -> Tensor:
    """Return the elements shifted by ``shift`` places, cyclically."""

@overload
def roll(x: ArrayLike, /, shift: Lengths, axis: Axis = None) -> Array: ...
@overload
def round(x: TensorOrNested, /, decimals: int = 0) -> Tensor:
    """Return the nearest integer, with ties to even, or the nearest number with so many decimals; its derivative is 0."""

@overload
def round(x: ArrayLike, /, decimals: int = 0) -> Array: ...
@overload
def rsqrt(x: TensorOrNested, /) -> Tensor:
    """Return ``1 / sqrt(x)``."""

@overload
def rsqrt(x: ArrayLike, /) -> Array: ...
def scalar(value: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 0."""

@overload
def scatter_nd(indices: TensorOrNested, updates: TensorLike, /, shape: ShapeLike) -> Tensor:
    """Return zeros of ``shape`` with ``updates`` added at coordinates; repeated coordinates are summed."""

@overload
def scatter_nd(indices: TensorLike, updates: TensorOrNested, /, shape: ShapeLike) -> Tensor:
    """Return zeros of ``shape`` with ``updates`` added at coordinates; repeated coordinates are summed."""

@overload
def scatter_nd(indices: ArrayLike, updates: ArrayLike, /, shape: ShapeLike) -> Array: ...
@overload
def search_sorted(sorted_sequence: TensorOrNested, values: TensorLike, /, side: str = "left") -> Tensor:
    """Return the index at which each value can be inserted to keep the sequence sorted, before or after equal ones."""

@overload
def search_sorted(sorted_sequence: TensorLike, values: TensorOrNested, /, side: str = "left") -> Tensor:
    """Return the index at which each value can be inserted to keep the sequence sorted, before or after equal ones."""

@overload
def search_sorted(sorted_sequence: ArrayLike, values: ArrayLike, /, side: str = "left") -> Array: ...
@overload
def segment_max(x: TensorOrNested, segment_ids: TensorLike) -> Tensor:
    """Return the maximum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""

@overload
def segment_max(x: TensorLike, segment_ids: TensorOrNested) -> Tensor:
    """Return the maximum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""

@overload
def segment_max(x: ArrayLike, segment_ids: ArrayLike) -> Array: ...
@overload
def segment_mean(x: TensorOrNested, segment_ids: TensorLike) -> Tensor:
    """Return the mean of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_mean(x: TensorLike, segment_ids: TensorOrNested) -> Tensor:
    """Return the mean of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_mean(x: ArrayLike, segment_ids: ArrayLike) -> Array: ...
@overload
def segment_min(x: TensorOrNested, segment_ids: TensorLike) -> Tensor:
    """Return the minimum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""

@overload
def segment_min(x: TensorLike, segment_ids: TensorOrNested) -> Tensor:
    """Return the minimum of each run of slices with the same number; the numbers are sorted, a missing one gives 0."""

@overload
def segment_min(x: ArrayLike, segment_ids: ArrayLike) -> Array: ...
@overload
def segment_prod(x: TensorOrNested, segment_ids: TensorLike) -> Tensor:
    """Return the product of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_prod(x: TensorLike, segment_ids: TensorOrNested) -> Tensor:
    """Return the product of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_prod(x: ArrayLike, segment_ids: ArrayLike) -> Array: ...
@overload
def segment_sum(x: TensorOrNested, segment_ids: TensorLike) -> Tensor:
    """Return the sum of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_sum(x: TensorLike, segment_ids: TensorOrNested) -> Tensor:
    """Return the sum of each run of slices with the same number; the numbers are sorted."""

@overload
def segment_sum(x: ArrayLike, segment_ids: ArrayLike) -> Array: ...
@overload
def selu(x: TensorOrNested, /) -> Tensor:
    """Return the scaled exponential linear unit, which keeps mean 0 and variance 1 through a network."""

@overload
def selu(x: ArrayLike, /) -> Array: ...
@overload
def separable_conv2d(
    x: TensorOrNested,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilation: Lengths = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return ``depthwise_conv2d`` followed by a 1 × 1 convolution that mixes the channels."""

@overload
def separable_conv2d(
    x: TensorLike,
    depthwise_filter: TensorOrNested,
    pointwise_filter: TensorLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilation: Lengths = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return ``depthwise_conv2d`` followed by a 1 × 1 convolution that mixes the channels."""

@overload
def separable_conv2d(
    x: TensorLike,
    depthwise_filter: TensorLike,
    pointwise_filter: TensorOrNested,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilation: Lengths = 1,
    data_format: str = "NHWC",
) -> Tensor:
    """Return ``depthwise_conv2d`` followed by a 1 × 1 convolution that mixes the channels."""

@overload
def separable_conv2d(
    x: ArrayLike,
    depthwise_filter: ArrayLike,
    pointwise_filter: ArrayLike,
    strides: Lengths = 1,
    pad: Padding = "valid",
    dilation: Lengths = 1,
    data_format: str = "NHWC",
) -> Array: ...
@overload
def setdiff1d(x: TensorOrNested, y: TensorLike) -> SetDifference[Tensor]:
    """Return the elements of the vector ``x`` that are not in ``y``, in their order, and their indices."""

@overload
def setdiff1d(x: TensorLike, y: TensorOrNested) -> SetDifference[Tensor]:
    """Return the elements of the vector ``x`` that are not in ``y``, in their order, and their indices."""

@overload
def setdiff1d(x: ArrayLike, y: ArrayLike) -> SetDifference[Array]: ...
@overload
def setxor1d(x: TensorOrNested, y: TensorLike) -> Tensor:
    """Return the sorted distinct elements that are in exactly one of ``x`` and ``y``."""

@overload
def setxor1d(x: TensorLike, y: TensorOrNested) -> Tensor:
    """Return the sorted distinct elements that are in exactly one of ``x`` and ``y``."""

@overload
def setxor1d(x: ArrayLike, y: ArrayLike) -> Array: ...
@overload
def sigmoid(x: TensorOrNested, /) -> Tensor:
    """Return ``1 / (1 + exp(-x))``, without overflow."""

@overload
def sigmoid(x: ArrayLike, /) -> Array: ...
@overload
def sign(x: TensorOrNested, /) -> Tensor:
    """Return the sign, -1, 0 or 1; 0 for NaN, as in TensorFlow.js (``np.sign`` gives NaN); ``x / abs(x)`` if complex."""

@overload
def sign(x: ArrayLike, /) -> Array: ...
@overload
def sin(x: TensorOrNested, /) -> Tensor:
    """Return the sine."""

@overload
def sin(x: ArrayLike, /) -> Array: ...
@overload
def sinh(x: TensorOrNested, /) -> Tensor:
    """Return the hyperbolic sine."""

@overload
def sinh(x: ArrayLike, /) -> Array: ...
@overload
def slice(x: TensorOrNested, begin: Lengths, size: Lengths | None = None) -> Tensor:
    """Return the block of ``x`` that starts at ``begin`` and has the lengths ``size``; -1 means up to the end."""

@overload
def slice(x: ArrayLike, begin: Lengths, size: Lengths | None = None) -> Array: ...
@overload
def slice1d(x: TensorOrNested, begin: Lengths, size: Lengths | None = None) -> Tensor:
    """Return ``slice`` of a vector."""

@overload
def slice1d(x: ArrayLike, begin: Lengths, size: Lengths | None = None) -> Array: ...
@overload
def slice2d(x: TensorOrNested, begin: Lengths, size: Lengths | None = None) -> Tensor:
    """Return ``slice`` of a tensor of rank 2."""

@overload
def slice2d(x: ArrayLike, begin: Lengths, size: Lengths | None = None) -> Array: ...
@overload
def slice3d(x: TensorOrNested, begin: Lengths, size: Lengths | None = None) -> Tensor:
    """Return ``slice`` of a tensor of rank 3."""

@overload
def slice3d(x: ArrayLike, begin: Lengths, size: Lengths | None = None) -> Array: ...
@overload
def slice4d(x: TensorOrNested, begin: Lengths, size: Lengths | None = None) -> Tensor:
    """Return ``slice`` of a tensor of rank 4."""

@overload
def slice4d(x: ArrayLike, begin: Lengths, size: Lengths | None = None) -> Array: ...
@overload
def softmax(logits: TensorOrNested, /, dim: int = -1, axis: Axis = None) -> Tensor:
    """Return ``exp(logits)`` divided by its sum over ``dim``; ``axis`` is another name for ``dim``."""

@overload
def softmax(logits: ArrayLike, /, dim: int = -1, axis: Axis = None) -> Array: ...
@overload
def softplus(x: TensorOrNested, /) -> Tensor:
    """Return ``log(1 + exp(x))``, without overflow."""

@overload
def softplus(x: ArrayLike, /) -> Array: ...
@overload
def sort(x: TensorOrNested, axis: int | None = -1, descending: bool = False) -> Tensor:
    """Return the elements sorted along ``axis``, or the flattened array sorted."""

@overload
def sort(x: ArrayLike, axis: int | None = -1, descending: bool = False) -> Array: ...
@overload
def space_to_batch_nd(x: TensorOrNested, /, block_shape: Lengths | Array, paddings: Sequence[Any] | Array) -> Tensor:
    """Return the spatial axes, padded with zeros, divided into blocks of ``block_shape``, which move to the batch axis."""

@overload
def space_to_batch_nd(x: ArrayLike, /, block_shape: Lengths | Array, paddings: Sequence[Any] | Array) -> Array: ...
@overload
def space_to_depth(x: TensorOrNested, /, block_size: int, data_format: str = "NHWC") -> Tensor:
    """Return images in which each block of pixels is rearranged to the channels of one pixel."""

@overload
def space_to_depth(x: ArrayLike, /, block_size: int, data_format: str = "NHWC") -> Array: ...
@overload
def sparse_to_dense(
    sparse_indices: TensorOrNested,
    sparse_values: TensorLike,
    output_shape: ShapeLike,
    default_value: TensorLike | None = 0,
) -> Tensor:
    """Return an array with values at these coordinates, the last one of repeated ones, and a default value elsewhere."""

@overload
def sparse_to_dense(
    sparse_indices: TensorLike,
    sparse_values: TensorOrNested,
    output_shape: ShapeLike,
    default_value: TensorLike | None = 0,
) -> Tensor:
    """Return an array with values at these coordinates, the last one of repeated ones, and a default value elsewhere."""

@overload
def sparse_to_dense(
    sparse_indices: ArrayLike,
    sparse_values: ArrayLike,
    output_shape: ShapeLike,
    default_value: ArrayOrNumber | None = 0,
) -> Array: ...
@overload
def sparse_to_dense(
    sparse_indices: TensorLike, sparse_values: TensorLike, output_shape: ShapeLike, default_value: TensorLike | None = 0
) -> Tensor: ...
@overload
def split(x: TensorOrNested, num_or_size_splits: Lengths, axis: Axis = 0) -> list[Tensor]:
    """Return ``x`` split along ``axis`` into equal parts, or into parts of given lengths (one may be -1)."""

@overload
def split(x: ArrayLike, num_or_size_splits: Lengths, axis: Axis = 0) -> list[Array]: ...
@overload
def sqrt(x: TensorOrNested, /) -> Tensor:
    """Return the square root; its derivative at 0 is infinite."""

@overload
def sqrt(x: ArrayLike, /) -> Array: ...
@overload
def square(x: TensorOrNested, /) -> Tensor:
    """Return the square."""

@overload
def square(x: ArrayLike, /) -> Array: ...
@overload
def squared_difference(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return ``(x - y) ** 2``."""

@overload
def squared_difference(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return ``(x - y) ** 2``."""

@overload
def squared_difference(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def squeeze(x: TensorOrNested, /, axis: Axis = None) -> Tensor:
    """Return ``x`` without the axes of length 1, or without those named by ``axis``."""

@overload
def squeeze(x: ArrayLike, /, axis: Axis = None) -> Array: ...
@overload
def stack(tensors: Sequence[ArrayOrNumber] | Array, /, axis: int = 0) -> Array: ...
@overload
def stack(tensors: Sequence[TensorLike] | Value, /, axis: int = 0) -> Tensor:
    """Return the tensors stacked along a new axis."""

@overload
def std(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """Return the standard deviation over ``axis``; its gradient is 0 where it is 0."""

@overload
def std(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Array: ...
@overload
def step(x: TensorOrNested, /, alpha: float = 0.0) -> Tensor:
    """Return 1 where ``x`` is positive, else ``alpha``; its derivative is 0."""

@overload
def step(x: ArrayLike, /, alpha: float = 0.0) -> Array: ...
@overload
def strided_slice(
    x: TensorOrNested,
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

@overload
def strided_slice(
    x: ArrayLike,
    begin: Lengths,
    end: Lengths,
    strides: Lengths | None = None,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> Array: ...
@overload
def sub(x: TensorOrNested, y: TensorLike, /) -> Tensor:
    """Return the difference ``x - y``."""

@overload
def sub(x: TensorLike, y: TensorOrNested, /) -> Tensor:
    """Return the difference ``x - y``."""

@overload
def sub(x: ArrayLike, y: ArrayLike, /) -> Array: ...
@overload
def sum(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False) -> Tensor:
    """Return the sum of the elements of ``x`` over ``axis``."""

@overload
def sum(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False) -> Array: ...
@overload
def swapaxes(x: TensorOrNested, /, axis1: int, axis2: int) -> Tensor:
    """Return ``x`` with two axes exchanged."""

@overload
def swapaxes(x: ArrayLike, /, axis1: int, axis2: int) -> Array: ...
@overload
def swish(x: TensorOrNested) -> Tensor:
    """Return ``x * sigmoid(x)``."""

@overload
def swish(x: ArrayLike) -> Array: ...
@overload
def take(x: TensorOrNested, indices: TensorLike, axis: Axis = None, mode: str = "raise") -> Tensor:
    """Return the elements at these positions along ``axis``, or of the flattened array."""

@overload
def take(x: TensorLike, indices: TensorOrNested, axis: Axis = None, mode: str = "raise") -> Tensor:
    """Return the elements at these positions along ``axis``, or of the flattened array."""

@overload
def take(x: ArrayLike, indices: ArrayLike, axis: Axis = None, mode: str = "raise") -> Array: ...
@overload
def take_along_axis(x: TensorOrNested, indices: TensorLike, axis: int = -1) -> Tensor:
    """Return for each line of ``x`` along ``axis`` the elements at the positions in the same line of ``indices``."""

@overload
def take_along_axis(x: TensorLike, indices: TensorOrNested, axis: int = -1) -> Tensor:
    """Return for each line of ``x`` along ``axis`` the elements at the positions in the same line of ``indices``."""

@overload
def take_along_axis(x: ArrayLike, indices: ArrayLike, axis: int = -1) -> Array: ...
@overload
def tan(x: TensorOrNested, /) -> Tensor:
    """Return the tangent."""

@overload
def tan(x: ArrayLike, /) -> Array: ...
@overload
def tanh(x: TensorOrNested, /) -> Tensor:
    """Return the hyperbolic tangent."""

@overload
def tanh(x: ArrayLike, /) -> Array: ...
def tensor(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor with these values: numbers, nested lists, or an array, which is copied."""

def tensor1d(values: TensorLike, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 1."""

def tensor2d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 2, from nested lists, or from a flat one and its shape."""

def tensor3d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 3."""

def tensor4d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 4."""

def tensor5d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 5."""

def tensor6d(values: TensorLike, shape: ShapeLike | None = None, dtype: DType = None) -> Tensor:
    """Return a tensor of rank 6."""

@overload
def tensor_scatter_update(tensor: TensorOrNested, indices: TensorLike, updates: TensorLike, /) -> Tensor:
    """Return a copy of ``tensor`` with ``updates`` written at coordinates."""

@overload
def tensor_scatter_update(tensor: TensorLike, indices: TensorOrNested, updates: TensorLike, /) -> Tensor:
    """Return a copy of ``tensor`` with ``updates`` written at coordinates."""

@overload
def tensor_scatter_update(tensor: TensorLike, indices: TensorLike, updates: TensorOrNested, /) -> Tensor:
    """Return a copy of ``tensor`` with ``updates`` written at coordinates."""

@overload
def tensor_scatter_update(tensor: ArrayLike, indices: ArrayLike, updates: ArrayLike, /) -> Array: ...
@overload
def tensordot(a: TensorOrNested, b: TensorLike, axes: int | Sequence[Any] = 2) -> Tensor:
    """Return products summed over the last ``axes`` axes of ``a`` and the first of ``b``, or over two lists of axes."""

@overload
def tensordot(a: TensorLike, b: TensorOrNested, axes: int | Sequence[Any] = 2) -> Tensor:
    """Return products summed over the last ``axes`` axes of ``a`` and the first of ``b``, or over two lists of axes."""

@overload
def tensordot(a: ArrayLike, b: ArrayLike, axes: int | Sequence[Any] = 2) -> Array: ...
@overload
def tile(x: TensorOrNested, /, reps: Lengths) -> Tensor:
    """Return ``x`` repeated ``reps`` times along each axis."""

@overload
def tile(x: ArrayLike, /, reps: Lengths) -> Array: ...
@overload
def to_bool(x: TensorOrNested) -> Tensor:
    """Return where ``x`` is not 0."""

@overload
def to_bool(x: ArrayLike) -> Array: ...
@overload
def to_float(x: TensorOrNested) -> Tensor:
    """Return ``x`` as float32."""

@overload
def to_float(x: ArrayLike) -> Array: ...
@overload
def to_int(x: TensorOrNested) -> Tensor:
    """Return ``x`` as int32, truncated towards 0."""

@overload
def to_int(x: ArrayLike) -> Array: ...
@overload
def topk(x: TensorOrNested, k: int | None = 1, sorted: bool = True) -> TopK[Tensor]:
    """Return the ``k`` largest elements along the last axis, in descending order, and their indices."""

@overload
def topk(x: ArrayLike, k: int | None = 1, sorted: bool = True) -> TopK[Array]: ...
@overload
def transpose(x: TensorOrNested, /, perm: Sequence[int] | Array | None = None) -> Tensor:
    """Return ``x`` with its axes in the order ``perm``, by default reversed."""

@overload
def transpose(x: ArrayLike, /, perm: Sequence[int] | Array | None = None) -> Array: ...
def truncated_normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers within two standard deviations of the mean; others are drawn again."""

@overload
def union1d(x: TensorOrNested, y: TensorLike) -> Tensor:
    """Return the sorted distinct elements of ``x`` and ``y``."""

@overload
def union1d(x: TensorLike, y: TensorOrNested) -> Tensor:
    """Return the sorted distinct elements of ``x`` and ``y``."""

@overload
def union1d(x: ArrayLike, y: ArrayLike) -> Array: ...
@overload
def unique(x: TensorOrNested, axis: Axis = 0) -> Unique[Tensor]:
    """Return the distinct slices along ``axis`` in the order of their first occurrence, and the index of each slice."""

@overload
def unique(x: ArrayLike, axis: Axis = 0) -> Unique[Array]: ...
@overload
def unsorted_segment_max(x: TensorOrNested, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
    """Return the maximum of each segment, the lowest number if it is empty; equal maxima share the gradient."""

@overload
def unsorted_segment_max(x: TensorLike, segment_ids: TensorOrNested, /, num_segments: int) -> Tensor:
    """Return the maximum of each segment, the lowest number if it is empty; equal maxima share the gradient."""

@overload
def unsorted_segment_max(x: ArrayLike, segment_ids: ArrayLike, /, num_segments: int) -> Array: ...
@overload
def unsorted_segment_mean(x: TensorOrNested, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """Return the mean of each segment, 0 if it is empty."""

@overload
def unsorted_segment_mean(x: TensorLike, segment_ids: TensorOrNested, num_segments: int) -> Tensor:
    """Return the mean of each segment, 0 if it is empty."""

@overload
def unsorted_segment_mean(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Array: ...
@overload
def unsorted_segment_min(x: TensorOrNested, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
    """Return the minimum of each segment, the highest number if it is empty; equal minima share the gradient."""

@overload
def unsorted_segment_min(x: TensorLike, segment_ids: TensorOrNested, /, num_segments: int) -> Tensor:
    """Return the minimum of each segment, the highest number if it is empty; equal minima share the gradient."""

@overload
def unsorted_segment_min(x: ArrayLike, segment_ids: ArrayLike, /, num_segments: int) -> Array: ...
@overload
def unsorted_segment_prod(x: TensorOrNested, segment_ids: TensorLike, num_segments: int) -> Tensor:
    """Return the product of each segment, 1 if it is empty; the gradient is correct where elements are 0."""

@overload
def unsorted_segment_prod(x: TensorLike, segment_ids: TensorOrNested, num_segments: int) -> Tensor:
    """Return the product of each segment, 1 if it is empty; the gradient is correct where elements are 0."""

@overload
def unsorted_segment_prod(x: ArrayLike, segment_ids: ArrayLike, num_segments: int) -> Array: ...
@overload
def unsorted_segment_sum(x: TensorOrNested, segment_ids: TensorLike, /, num_segments: int) -> Tensor:
    """Return the sum of each segment; ``segment_ids`` has the segment of each slice of ``x`` along its first axis."""

@overload
def unsorted_segment_sum(x: TensorLike, segment_ids: TensorOrNested, /, num_segments: int) -> Tensor:
    """Return the sum of each segment; ``segment_ids`` has the segment of each slice of ``x`` along its first axis."""

@overload
def unsorted_segment_sum(x: ArrayLike, segment_ids: ArrayLike, /, num_segments: int) -> Array: ...
@overload
def unstack(x: TensorOrNested, axis: Axis = 0) -> list[Tensor]:
    """Return the list of the slices along ``axis``: the inverse of ``stack``."""

@overload
def unstack(x: ArrayLike, axis: Axis = 0) -> list[Array]: ...
@overload
def upper_bound(sorted_sequence: TensorOrNested, values: TensorLike) -> Tensor:
    """Return the index of the first element that is greater than each value."""

@overload
def upper_bound(sorted_sequence: TensorLike, values: TensorOrNested) -> Tensor:
    """Return the index of the first element that is greater than each value."""

@overload
def upper_bound(sorted_sequence: ArrayLike, values: ArrayLike) -> Array: ...
@overload
def var(x: TensorOrNested, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Tensor:
    """Return the variance over ``axis``: the sum of squared differences from the mean, divided by ``n - ddof``."""

@overload
def var(x: ArrayLike, /, axis: Axis = None, keepdims: bool = False, ddof: float = 0) -> Array: ...
@overload
def vdot(a: TensorOrNested, b: TensorLike) -> Tensor:
    """Return the sum of the products of all elements of ``a``, conjugated if they are complex, with those of ``b``."""

@overload
def vdot(a: TensorLike, b: TensorOrNested) -> Tensor:
    """Return the sum of the products of all elements of ``a``, conjugated if they are complex, with those of ``b``."""

@overload
def vdot(a: ArrayLike, b: ArrayLike) -> Array: ...
@overload
def where(condition: TensorOrNested, a: TensorLike, b: TensorLike, /) -> Tensor:
    """Return ``a`` where the condition is true, else ``b``; only the selected elements get a gradient."""

@overload
def where(condition: TensorLike, a: TensorOrNested, b: TensorLike, /) -> Tensor:
    """Return ``a`` where the condition is true, else ``b``; only the selected elements get a gradient."""

@overload
def where(condition: TensorLike, a: TensorLike, b: TensorOrNested, /) -> Tensor:
    """Return ``a`` where the condition is true, else ``b``; only the selected elements get a gradient."""

@overload
def where(condition: ArrayLike, a: ArrayLike, b: ArrayLike, /) -> Array: ...
def zeros(shape: ShapeLike, dtype: DType = None) -> Tensor:
    """Return zeros."""

@overload
def zeros_like(x: TensorOrNested, /, dtype: DType = None) -> Tensor:
    """Return zeros in the shape of ``x``."""

@overload
def zeros_like(x: ArrayLike, /, dtype: DType = None) -> Array: ...

absolute = abs
arccos = acos
arccosh = acosh
arcsin = asin
arcsinh = asinh
arctan = atan
arctan2 = atan2
arctanh = atanh
argmax = arg_max
argmin = arg_min
astype = cast
bitwise_not = invert
concatenate = concat
conjugate = conj
constant = tensor
divide = div
flip = reverse
floor_divide = floor_div
identity = clone
isfinite = is_finite
isinf = is_inf
isnan = is_nan
logsumexp = log_sum_exp
multiply = mul
negative = neg
outer = outer_product
power = pow

def random_gamma(
    shape: ShapeLike | None = None,
    alpha: TensorLike = 1.0,
    beta: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return gamma distributed numbers of shape ``alpha`` and rate ``beta``, differentiable in both, to any order."""

def random_normal(
    shape: ShapeLike | None = None,
    mean: TensorLike = 0.0,
    std_dev: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return normally distributed numbers, differentiable in ``mean`` and ``std_dev``, which may be tensors."""

def random_standard_normal(shape: ShapeLike, dtype: DType = None, seed: Seed = None) -> Tensor:
    """Return normally distributed numbers of mean 0 and standard deviation 1."""

def random_uniform(
    shape: ShapeLike | None = None,
    minval: TensorLike = 0.0,
    maxval: TensorLike = 1.0,
    dtype: DType = None,
    seed: Seed = None,
) -> Tensor:
    """Return numbers uniformly distributed between ``minval`` and ``maxval``, differentiable in both."""

def random_uniform_int(
    shape: ShapeLike, minval: TensorLike, maxval: TensorLike, dtype: DType = "int32", seed: Seed = None
) -> Tensor:
    """Return integers uniformly distributed from ``minval`` to ``maxval - 1``."""

remainder = mod
searchsorted = search_sorted
silu = swish
subtract = sub
true_divide = div
variance = var
customGrad = custom_grad
customGradient = custom_gradient
gradPassThrough = grad_pass_through
gradient_override_map = override_gradient
recomputeGrad = recompute_grad
RegisterGradient = register_gradient
registerGradient = register_gradient
stopGradient = stop_gradient
valueAndGrad = value_and_grad
valueAndGrads = value_and_grads
variableGrads = variable_grads
