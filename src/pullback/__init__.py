"""Gradients of programs written with NumPy, with the API of TensorFlow.js and TensorFlow."""

# ruff: noqa: I001  # by subject, not by alphabet
# fmt: off

from importlib import import_module as _import_module
from sys import modules as _modules
from types import ModuleType as _Module

# ---- What users hold

from pullback import late_binding as _late_binding
from pullback.core.op import build_ops as _build_ops
from pullback.core.tensor import Tensor as Tensor
from pullback.core.variable import Variable as Variable, variable as variable
from pullback.core.rowsparse import RowSparse as RowSparse
from pullback.core.convert import (
    default_dtype as default_dtype, get_default_dtype as get_default_dtype, set_default_dtype as set_default_dtype,
)

# ---- Gradients: transforms of functions

from pullback.transforms.grad import (
    ValueAndGrad as ValueAndGrad, ValueAndGrads as ValueAndGrads, grad as grad, grads as grads,
    value_and_grad as value_and_grad, value_and_grads as value_and_grads,
)

# ---- Tensors from numbers, in other dtypes

from pullback.ops.creation import (
    array as array, asarray as asarray, constant as constant, eye as eye, fill as fill, full_like as full_like,
    linspace as linspace, ones as ones,
    ones_like as ones_like, range as range, scalar as scalar, tensor as tensor, tensor1d as tensor1d,
    tensor2d as tensor2d, tensor3d as tensor3d, tensor4d as tensor4d, tensor5d as tensor5d, tensor6d as tensor6d,
    zeros as zeros, zeros_like as zeros_like,
)
from pullback.ops.conversion import (
    astype as astype, cast as cast, clone as clone, identity as identity, to_bool as to_bool, to_float as to_float,
    to_int as to_int,
)

# ---- Element by element

from pullback.ops.elementwise import (
    abs as abs, absolute as absolute, add as add, add_n as add_n, ceil as ceil, clip as clip,
    clip_by_value as clip_by_value, cube as cube, div as div, div_no_nan as div_no_nan, divide as divide, exp as exp,
    expm1 as expm1, floor as floor, floor_div as floor_div, floor_divide as floor_divide, log as log, log1p as log1p,
    maximum as maximum, minimum as minimum, mod as mod, mul as mul, multiply as multiply, neg as neg,
    negative as negative, pow as pow, power as power, reciprocal as reciprocal, remainder as remainder,
    round as round, rsqrt as rsqrt, sign as sign, sqrt as sqrt, square as square,
    squared_difference as squared_difference, sub as sub, subtract as subtract, true_divide as true_divide,
)
from pullback.ops.sorting import (
    SetDifference as SetDifference, Unique as Unique, argsort as argsort, in_top_k as in_top_k,
    intersect1d as intersect1d, isin as isin, lower_bound as lower_bound, search_sorted as search_sorted,
    searchsorted as searchsorted, setdiff1d as setdiff1d, setxor1d as setxor1d, sort as sort, union1d as union1d,
    unique as unique, upper_bound as upper_bound,
)
from pullback.ops.trigonometry import (
    acos as acos, acosh as acosh, arccos as arccos, arccosh as arccosh, arcsin as arcsin, arcsinh as arcsinh,
    arctan as arctan, arctan2 as arctan2, arctanh as arctanh, asin as asin, asinh as asinh, atan as atan,
    atan2 as atan2, atanh as atanh, cos as cos, cosh as cosh, sin as sin, sinh as sinh, tan as tan, tanh as tanh,
)
from pullback.ops.scientific import (
    cbrt as cbrt, fmod as fmod, hypot as hypot, log10 as log10, log2 as log2, logaddexp as logaddexp,
    logaddexp2 as logaddexp2, nextafter as nextafter,
)
from pullback.ops.complex import (
    angle as angle, complex as complex, conj as conj, conjugate as conjugate, imag as imag, real as real,
)
from pullback.ops.gaussian import erf as erf, gelu as gelu
from pullback.ops.comparison import (
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or, bitwise_xor as bitwise_xor,
    equal as equal, greater as greater, greater_equal as greater_equal, invert as invert, is_finite as is_finite,
    is_inf as is_inf, is_nan as is_nan, isfinite as isfinite, isinf as isinf, isnan as isnan,
    left_shift as left_shift, less as less, less_equal as less_equal,
    logical_and as logical_and, logical_not as logical_not, logical_or as logical_or,
    logical_xor as logical_xor, not_equal as not_equal, right_shift as right_shift, where as where,
)

# ---- Over axes: reductions, scans, products

from pullback.ops.reductions import (
    Moments as Moments, all as all, any as any, arg_max as arg_max, arg_min as arg_min, argmax as argmax,
    argmin as argmin, count_nonzero as count_nonzero, log_sum_exp as log_sum_exp, logsumexp as logsumexp, max as max,
    mean as mean, min as min, moments as moments, prod as prod, std as std, sum as sum, var as var,
    variance as variance,
)
from pullback.ops.norms import euclidean_norm as euclidean_norm, norm as norm
from pullback.ops.scans import cumprod as cumprod, cumsum as cumsum
from pullback.ops.contraction import (
    dot as dot, einsum as einsum, inner as inner, mat_mul as mat_mul, matmul as matmul, outer as outer,
    outer_product as outer_product, tensordot as tensordot, vdot as vdot,
)

# ---- The same elements elsewhere: shapes, joining, padding, picking

from pullback.ops.movement import (
    as1d as as1d, as2d as as2d, as3d as as3d, as4d as as4d, as5d as as5d, as_scalar as as_scalar,
    broadcast_to as broadcast_to, expand_dims as expand_dims, flatten as flatten, flip as flip, moveaxis as moveaxis,
    ravel as ravel, reshape as reshape, reshape_as as reshape_as, reverse as reverse, reverse1d as reverse1d,
    reverse2d as reverse2d, reverse3d as reverse3d, reverse4d as reverse4d, squeeze as squeeze, swapaxes as swapaxes,
    transpose as transpose,
)
from pullback.ops.repeating import roll as roll, tile as tile
from pullback.ops.joining import (
    concat as concat, concat1d as concat1d, concat2d as concat2d, concat3d as concat3d, concat4d as concat4d,
    concatenate as concatenate, slice as slice, slice1d as slice1d, slice2d as slice2d, slice3d as slice3d,
    slice4d as slice4d, split as split, stack as stack, strided_slice as strided_slice, unstack as unstack,
)
from pullback.ops.padding import (
    mirror_pad as mirror_pad, pad as pad, pad1d as pad1d, pad2d as pad2d, pad3d as pad3d, pad4d as pad4d,
)
from pullback.ops.indexing import boolean_mask as boolean_mask
from pullback.ops.gathering import (
    TopK as TopK, gather as gather, gather_nd as gather_nd, one_hot as one_hot, repeat as repeat,
    scatter_nd as scatter_nd, take as take, take_along_axis as take_along_axis,
    tensor_scatter_update as tensor_scatter_update, topk as topk,
)

# ---- Ops that others are made of

from pullback.ops import diagonals as _diagonals, draws as _draws, positions as _positions  # noqa: F401

# ---- Errors, and the registration of tensors with other libraries

from pullback import errors as errors, typing as typing
from pullback.tracebacks import register_with_ipython as _register_with_ipython
from pullback import interop as interop
from pullback.settings import is_enabled as _is_enabled
from pullback.names import answers as _answers
from pullback.names.table import ALIASES as _ALIASES, MODULES as _MODULES
# fmt: on

__version__ = "0.1.0"

# ---- Imported when first used: importing pullback does not wait for what a program may not need

_LAZY_OPS = {  # modules of ops, with the names in `pb`
    "ops.activations": [
        "elu", "leaky_relu", "log_sigmoid", "log_softmax", "prelu", "relu", "relu6", "selu", "sigmoid", "silu",
        "softmax", "softplus", "step", "swish",
    ],
    "ops.blocks": [
        "batch_to_space_nd", "broadcast_args", "depth_to_space", "ensure_shape", "meshgrid", "space_to_batch_nd",
        "space_to_depth",
    ],
    "ops.convolution": [
        "conv1d", "conv2d", "conv2d_transpose", "conv3d", "conv3d_transpose", "depthwise_conv2d", "separable_conv2d",
    ],
    "ops.fused": ["fused"],
    "ops.gammas": [],
    "ops.image": ["image"],
    "ops.linalg": ["diag", "linalg"],
    "ops.losses": ["losses"],
    "ops.math": ["math"],
    "ops.morphology": ["dilation2d"],
    "ops.normalization": [
        "batch_norm", "batch_norm2d", "batch_norm3d", "batch_norm4d", "layer_norm", "local_response_normalization",
    ],
    "ops.pooling": [
        "PoolWithArgmax", "avg_pool", "avg_pool1d", "avg_pool3d", "max_pool", "max_pool1d", "max_pool3d",
        "max_pool_with_argmax", "pool",
    ],
    "ops.random": [
        "dropout", "multinomial", "rand", "random", "random_gamma", "random_normal", "random_standard_normal",
        "random_uniform", "random_uniform_int", "truncated_normal",
    ],
    "ops.segments": [
        "bincount", "dense_bincount", "segment_max", "segment_mean", "segment_min", "segment_prod", "segment_sum",
        "sparse_to_dense", "unsorted_segment_max", "unsorted_segment_mean", "unsorted_segment_min",
        "unsorted_segment_prod", "unsorted_segment_sum",
    ],
    "ops.signal": ["signal"],
    "ops.special": ["special"],
    "ops.special.functions": [],
    "ops.spectral": ["spectral"],
}  # fmt: skip
_METHODS = {  # of tensors, that these modules define
    "ops.activations": _LAZY_OPS["ops.activations"],
    "ops.blocks": [name for name in _LAZY_OPS["ops.blocks"] if name != "meshgrid"],
    "ops.convolution": _LAZY_OPS["ops.convolution"],
    "ops.image": ["resize_bilinear", "resize_nearest_neighbor", "threshold"],
    "ops.linalg": [
        "band_part", "cholesky", "det", "diag", "diag_embed", "diag_part", "eigvals", "eigvalsh", "inv", "matrix_rank",
        "pinv", "solve", "svdvals", "tensor_diag_part", "triangular_solve",
    ],
    "ops.losses": ["sigmoid_cross_entropy_with_logits"],
    "ops.math": ["confusion_matrix"],
    "ops.morphology": ["dilation2d"],
    "ops.normalization": _LAZY_OPS["ops.normalization"],
    "ops.pooling": [name for name in _LAZY_OPS["ops.pooling"] if name != "PoolWithArgmax"],
    "ops.random": ["dropout"],
    "ops.segments": [name for name in _LAZY_OPS["ops.segments"] if "segment_" in name],
    "ops.signal": ["overlap_and_add"],
    "ops.special": [
        "beta", "betaln", "digamma", "entr", "erfc", "erfcinv", "erfcx", "erfinv", "exp1", "expi", "expit", "gamma",
        "gammaln", "i0", "i0e", "i1", "i1e", "iv", "ive", "j0", "j1", "jv", "kl_div", "lgamma", "log_expit", "log_ndtr",
        "logit", "ndtr", "ndtri", "polygamma", "psi", "rel_entr", "xlog1py", "xlogy", "zeta",
    ],
    "ops.spectral": ["fft", "ifft", "irfft", "rfft"],
}  # fmt: skip
_NUMPY_TABLES = ["interop.numpy_fft", "interop.numpy_linalg", "interop.numpy_polynomials"]
_NUMPY_MODULES = {  # what implements their functions
    "numpy.fft": ["ops.spectral", "interop.numpy_fft"],
    "numpy.linalg": ["ops.linalg", "interop.numpy_linalg"],
}
_LAZY_MODULES = {
    **_LAZY_OPS,
    "autograd": ["autograd"],
    "array_api": ["array_api"],
    "compiler.api": ["compile"],
    "compiler.runtime.threads": ["get_num_threads", "set_num_threads"],
    "core.tree": ["register_node"],
    "diagnostics.checking": ["check_grads"],
    "diagnostics.nans": ["debug_nans", "diagnose"],
    "diagnostics.paths": ["explain"],
    "diagnostics.program": ["trace"],
    "diagnostics.strong_zero": ["strong_zero"],
    "diagnostics.timing": ["benchmark"],
    "display.progress": ["progress", "show_progress"],
    "interop.dlpack": ["from_dlpack"],
    "plot": ["plot"],  # a package
    "scale": ["scale"],  # a package
    "sklearn": ["sklearn"],
    "ops.recurrent": ["CellState", "basic_lstm_cell", "moving_average", "multi_rnn_cell"],
    "transforms.batch": ["vmap"],
    "transforms.checkpoint": ["checkpoint", "recompute_grad"],
    "transforms.control_flow": ["cond", "fori_loop", "map", "scan", "switch", "while_loop"],
    "transforms.custom": ["custom_grad", "custom_gradient"],
    "transforms.custom_jvp": ["custom_jvp"],
    "transforms.forward": ["jvp"],
    "transforms.gradients": ["gradients"],
    "transforms.implicit": ["custom_fixed_point", "custom_root"],
    "transforms.jacobian": ["hessian", "hvp", "jacobian"],
    "transforms.linear": ["linearize", "vjp"],
    "transforms.modifiers": [
        "clip_gradient",
        "clip_gradient_norm",
        "grad_pass_through",
        "reverse_gradient",
        "scale_gradient",
        "stop_gradient",
        "straight_through",
        "tap_gradient",
    ],
    "transforms.override": ["override_gradient", "register_gradient"],
    "transforms.reverse": ["GradientTape", "UnconnectedGradients"],
    "transforms.variables": ["variable_grads"],
    "transforms.sparse": ["sparse_hessian", "sparse_jacobian"],
    "train": [
        "train",
        "callbacks",
        "constraints",
        "data",
        "initializers",
        "layers",
        "metrics",
        "regularizers",
    ],  # a module, and some of its own modules
    "scipy": ["scipy"],  # a package
    "transforms.ravel": ["linear_operator", "ravel_tree"],
    "train.nn.layers.symbolic": ["input"],
    "train.io.onnx_files": ["save_onnx"],
    "train.nn.model_files": ["load_layers_model", "load_model", "model_from_json"],
    "train.nn.cloning": ["clone_model"],
    "train.nn.models": ["Model"],
    "train.nn.functional": ["model"],
    "train.nn.sequential": ["sequential"],
}
# A training loop of the user's own needs an optimizer, which takes 5 ms to import; all of training takes 300.
_LAZY_TRAIN = {  # modules of training, with the names in `pb.train`
    "data": ["data"],
    "io.saving": ["load", "load_weights", "save"],
    "loop.callbacks": ["callbacks"],
    "loop.losses": ["losses"],
    "loop.metrics": ["metrics"],
    "loop.metrics.ctc": ["ctc_decode", "ctc_loss"],
    "nn.constraints": ["constraints"],
    "nn.initializers": ["initializers"],
    "nn.layers": ["layers"],
    "nn.policies": ["global_policy", "set_global_policy"],
    "nn.regularizers": ["regularizers"],
    "nn.serialization": ["deserialize", "serialize"],
}
_answers.IMPORTED_LATER["pb.train"] = {
    name: f"pullback.train.{path}" for path, names in _LAZY_TRAIN.items() for name in names
}
_INTERNAL = {
    "command",
    "compiler",
    "core",
    "diagnostics",
    "display",
    "interop",
    "late_binding",
    "names",
    "numerics",
    "ops",
    "tracebacks",
    "transforms",
}
_loaded: set[str] = set()  # modules by ``_load``
_LATER = {name: module for module, names in _LAZY_MODULES.items() for name in names}


def _load(path: str) -> _Module:
    """Import a module of this package; what an import of pullback does with its ops and names is done for it too."""
    module = _import_module(f"pullback.{path}")
    if path not in _loaded:
        _loaded.add(path)
        for name in _METHODS.get(path, ()):
            setattr(Tensor, name, _answers.check_keywords(vars(Tensor)[name]))
    _build_ops()
    return module


def _load_numpy_module(name: str) -> bool:
    """Import what implements the functions of a module of NumPy; return whether that was still to be done."""
    for path in _NUMPY_MODULES.get(name, ()):
        _load(path)
    return _NUMPY_MODULES.pop(name, None) is not None  # when all is there: another thread may ask meanwhile


def _load_ops() -> bool:
    """Import all ops, and what they implement of NumPy; return whether that was still to be done."""
    waiting = [path for path in (*_LAZY_OPS, *_NUMPY_TABLES) if path not in _loaded]
    for path in waiting:
        _load(path)
    return bool(waiting)


def __getattr__(name: str) -> object:
    name = _ALIASES.get(name, name)
    if name in globals():
        return globals()[name]
    if name not in _LATER:
        raise _answers.make_name_error("pb", name)
    module = _load(_LATER[name])
    is_module = module.__name__ in (f"pullback.{name}", f"pullback.ops.{name}")
    value = module if is_module else _answers.check_keywords(getattr(module, name), __name__, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(n for n in {*globals(), *_LATER} if not n.startswith("_") and n not in _INTERNAL)


_late_binding.load_module = _load
_late_binding.load_ops = _load_ops
_late_binding.load_numpy_module = _load_numpy_module

# ---- Names of other libraries are answered with those here

for _path, _names in _METHODS.items():
    for _name in _names if f"pullback.{_path}" not in _modules else ():
        setattr(Tensor, _name, _late_binding.DeferredMethod(_name, _path))
_answers.install_answers(*[name for name, module in _MODULES.items() if module in _modules])
_build_ops()
if not _is_enabled("lazy ops"):
    _load_ops()
_register_with_ipython(errors.PullbackError)
