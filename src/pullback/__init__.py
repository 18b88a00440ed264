"""Gradients of programs written with NumPy, in the words of TensorFlow.js and TensorFlow."""

# ruff: noqa: I001
# fmt: off
from pullback import errors as errors
from pullback import interop as interop
from pullback.core.convert import (
    default_dtype as default_dtype, get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype,
)
from pullback.core.tensor import Tensor as Tensor
from pullback.core.variable import Variable as Variable, variable as variable
from pullback.ops.activations import (
    elu as elu, leaky_relu as leaky_relu, log_sigmoid as log_sigmoid, log_softmax as log_softmax, prelu as prelu,
    relu as relu, relu6 as relu6, selu as selu, sigmoid as sigmoid, silu as silu, softmax as softmax,
    softplus as softplus, step as step, swish as swish,
)
from pullback.ops.comparison import (
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    equal as equal, greater as greater, greater_equal as greater_equal, invert as invert, is_finite as is_finite,
    is_inf as is_inf, is_nan as is_nan, isfinite as isfinite, isinf as isinf, isnan as isnan, less as less,
    less_equal as less_equal, logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, not_equal as not_equal, where as where,
)
from pullback.ops.contraction import (
    dot as dot, einsum as einsum, inner as inner, mat_mul as mat_mul, matmul as matmul, outer as outer,
    outer_product as outer_product, tensordot as tensordot, vdot as vdot,
)
from pullback.ops.conversion import (
    astype as astype, cast as cast, clone as clone, identity as identity, to_bool as to_bool, to_float as to_float,
    to_int as to_int,
)
from pullback.ops.creation import (
    constant as constant, eye as eye, fill as fill, full_like as full_like, linspace as linspace, ones as ones,
    ones_like as ones_like, range as range, scalar as scalar, tensor as tensor, tensor1d as tensor1d,
    tensor2d as tensor2d, tensor3d as tensor3d, tensor4d as tensor4d, tensor5d as tensor5d, tensor6d as tensor6d,
    zeros as zeros, zeros_like as zeros_like,
)
from pullback.ops.elementwise import (
    abs as abs, absolute as absolute, add as add, add_n as add_n, ceil as ceil, clip as clip,
    clip_by_value as clip_by_value, cube as cube, div as div, div_no_nan as div_no_nan, divide as divide, exp as exp,
    expm1 as expm1, floor as floor, floor_div as floor_div, floor_divide as floor_divide, log as log, log1p as log1p,
    maximum as maximum, minimum as minimum, mod as mod, mul as mul, multiply as multiply, neg as neg,
    negative as negative, pow as pow, power as power, reciprocal as reciprocal, remainder as remainder,
    round as round, rsqrt as rsqrt, sign as sign, sqrt as sqrt, square as square,
    squared_difference as squared_difference, sub as sub, subtract as subtract, true_divide as true_divide,
)
from pullback.ops.gathering import (
    TopK as TopK, gather as gather, gather_nd as gather_nd, one_hot as one_hot, repeat as repeat,
    scatter_nd as scatter_nd, take as take, take_along_axis as take_along_axis,
    tensor_scatter_update as tensor_scatter_update, topk as topk,
)
from pullback.ops.gaussian import erf as erf, gelu as gelu
from pullback.ops.indexing import boolean_mask as boolean_mask
from pullback.ops.joining import (
    concat as concat, concat1d as concat1d, concat2d as concat2d, concat3d as concat3d, concat4d as concat4d,
    concatenate as concatenate, slice as slice, slice1d as slice1d, slice2d as slice2d, slice3d as slice3d,
    slice4d as slice4d, split as split, stack as stack, strided_slice as strided_slice, unstack as unstack,
)
from pullback.ops.movement import (
    as1d as as1d, as2d as as2d, as3d as as3d, as4d as as4d, as5d as as5d, as_scalar as as_scalar,
    broadcast_to as broadcast_to, expand_dims as expand_dims, flatten as flatten, flip as flip, moveaxis as moveaxis,
    ravel as ravel, reshape as reshape, reshape_as as reshape_as, reverse as reverse, reverse1d as reverse1d,
    reverse2d as reverse2d, reverse3d as reverse3d, reverse4d as reverse4d, roll as roll, squeeze as squeeze,
    swapaxes as swapaxes, tile as tile, transpose as transpose,
)
from pullback.ops.norms import euclidean_norm as euclidean_norm, norm as norm
from pullback.ops.padding import (
    mirror_pad as mirror_pad, pad as pad, pad1d as pad1d, pad2d as pad2d, pad3d as pad3d, pad4d as pad4d,
)
from pullback.ops.reductions import (
    Moments as Moments, all as all, any as any, arg_max as arg_max, arg_min as arg_min, argmax as argmax,
    argmin as argmin, count_nonzero as count_nonzero, log_sum_exp as log_sum_exp, logsumexp as logsumexp, max as max,
    mean as mean, min as min, moments as moments, prod as prod, std as std, sum as sum, var as var,
    variance as variance,
)
from pullback.ops.scans import cumprod as cumprod, cumsum as cumsum
from pullback.ops.scientific import (
    cbrt as cbrt, fmod as fmod, hypot as hypot, log10 as log10, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2,
)
from pullback.ops.trigonometry import (
    acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
    arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan,
    atan2 as atan2, atanh as atanh, cos as cos, cosh as cosh, sin as sin, sinh as sinh, tan as tan, tanh as tanh,
)
from pullback.transforms.checkpoint import checkpoint as checkpoint, recompute_grad as recompute_grad
from pullback.transforms.custom import custom_grad as custom_grad, custom_gradient as custom_gradient
from pullback.transforms.forward import jvp as jvp
from pullback.transforms.grad import (
    ValueAndGrad as ValueAndGrad, ValueAndGrads as ValueAndGrads, grad as grad, grads as grads,
    stop_gradient as stop_gradient, value_and_grad as value_and_grad, value_and_grads as value_and_grads,
    variable_grads as variable_grads,
)
from pullback.transforms.modifiers import grad_pass_through as grad_pass_through
from pullback.transforms.override import override_gradient as override_gradient, register_gradient as register_gradient
from pullback.transforms.reverse import GradientTape as GradientTape
# fmt: on

__version__ = "0.1.0"
