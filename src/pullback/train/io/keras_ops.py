"""Operations in the graphs of Keras's models, such as ``h + x`` or ``keras.ops.mean(h, axis=1)``: functions of the same
meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from pullback.core.suggestions import snake_case
from pullback.ops import activations, gaussian, reductions, sorting

HOMES = ("keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.core", "keras.src.ops.math", "keras.src.ops.linalg",
         "keras.ops")  # fmt: skip
# Operations that are called as functions of NumPy, with the same arguments.
SAME = (
    "absolute", "add", "all", "amax", "amin", "any", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "argmax", "argmin", "average", "broadcast_to", "cbrt", "ceil", "concatenate", "copy", "cos",
    "cosh", "count_nonzero", "cumprod", "cumsum", "deg2rad", "diff", "divide", "dot", "equal", "exp", "exp2",
    "expand_dims", "expm1", "flip", "floor", "floor_divide", "greater", "greater_equal", "hstack", "hypot", "isfinite",
    "isinf", "isnan", "less", "less_equal", "log", "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "logical_xor", "matmul", "max", "maximum", "mean", "median", "min", "minimum", "mod", "moveaxis",
    "multiply", "nan_to_num", "negative", "not_equal", "outer", "power", "prod", "rad2deg", "reciprocal", "repeat",
    "roll", "round", "sign", "sin", "sinh", "sort", "sqrt", "square", "squeeze", "stack", "std", "subtract", "sum",
    "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "transpose", "true_divide", "var", "vstack",
    "where",
)  # fmt: skip
ACTIVATIONS = ("log_sigmoid", "relu", "relu6", "selu", "sigmoid", "softplus")
DTYPES = {"cast": ("bool", "float32", "int32"), "convert_to_tensor": (None,)}  # that these operations may have


def find_operation(module: object, name: object, config: Mapping[str, Any]) -> Callable[..., Any] | None:
    """Return the function of the inputs of an operation of Keras; None if it is none, or not known here.

    >>> mean = find_operation("keras.src.ops.numpy", "Mean", {"name": "mean", "axis": 1, "keepdims": False})
    >>> mean(np.ones((2, 3)))
    array([1., 1.])
    >>> find_operation("keras.src.ops.numpy", "ZerosLike", {"dtype": "bool"})(np.ones(2))  # in the graphs of masks
    array([False, False])
    """
    if not isinstance(name, str) or not str(module).startswith(HOMES):
        return None
    word = snake_case(name)
    arguments = {key: x for key, x in config.items() if key not in ("name", "trainable") and x is not None}
    settings = {key: tuple(x) if isinstance(x, list) else x for key, x in arguments.items()}
    if word in DTYPES and settings.get("dtype") not in DTYPES[word]:
        return None
    if word in OTHERS:
        return OTHERS[word](settings)
    if word in ACTIVATIONS:
        activation: Callable[..., Any] = getattr(activations, word)
        return activation
    settings.pop("dtype", None)
    function = getattr(np, word) if word in SAME else None
    return None if function is None else lambda *xs, **more: function(*xs, **settings, **more)


def _cast(dtype: str, x: Any) -> Any:
    return x * np.float32(1) if dtype == "float32" else x.astype(dtype)


def _get_item(x: Any, index: Any) -> Any:
    return x[tuple(index) if isinstance(index, list) else index]


def _elu(alpha: float, x: Any) -> Any:
    return np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0)))


def _pad(width: Any, mode: Any, x: Any, **more: Any) -> Any:
    return np.pad(x, width, mode, **more)


def _gelu(x: Any) -> Any:
    return x * 0.5 * (1.0 + gaussian.erf(x * 0.5**0.5))


def _gelu_by_tanh(x: Any) -> Any:
    return x * 0.5 * (1.0 + np.tanh((x + 0.044715 * x * x * x) * (2 / np.pi) ** 0.5))


# Operations whose arguments are called otherwise: functions from the config to what is called.
OTHERS: dict[str, Callable[[Mapping[str, Any]], Callable[..., Any]]] = {
    "argsort": lambda config: lambda x: sorting.argsort(x, axis=config.get("axis", -1)),
    "cast": lambda config: partial(_cast, config["dtype"]),
    "convert_to_tensor": lambda config: lambda x: x,
    "ones_like": lambda config: lambda x: np.ones_like(x, dtype=config.get("dtype")),
    "zeros_like": lambda config: lambda x: np.zeros_like(x, dtype=config.get("dtype")),
    "clip": lambda config: lambda x: np.clip(x, config["x_min"], config["x_max"]),
    "einsum": lambda config: lambda *xs: np.einsum(config["subscripts"], *xs),
    "elu": lambda config: partial(_elu, config.get("alpha", 1.0)),
    "erf": lambda config: gaussian.erf,
    "get_item": lambda config: _get_item,
    "gelu": lambda config: _gelu_by_tanh if config.get("approximate", True) else _gelu,
    "hard_silu": lambda config: lambda x: x * np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "hard_tanh": lambda config: lambda x: np.clip(x, -1.0, 1.0),
    "norm": lambda config: (
        lambda x: np.linalg.norm(x, config.get("ord"), config["axis"], config.get("keepdims", False))
    ),
    "softsign": lambda config: lambda x: x / (np.abs(x) + 1.0),
    "hard_sigmoid": lambda config: lambda x: np.clip(x / 6.0 + 0.5, 0.0, 1.0),
    "leaky_relu": lambda config: lambda x: np.where(x > 0, x, config["negative_slope"] * x),
    "log_softmax": lambda config: lambda x: activations.log_softmax(x, axis=config.get("axis", -1)),
    "logsumexp": lambda config: lambda x: reductions.log_sum_exp(x, config.get("axis"), config.get("keepdims", False)),
    "pad": lambda config: partial(_pad, config["pad_width"], config.get("mode", "constant")),
    "rsqrt": lambda config: lambda x: 1.0 / np.sqrt(x),
    "tile": lambda config: lambda x: np.tile(x, config["repeats"]),
    "split": lambda config: lambda x: tuple(np.split(x, config["indices_or_sections"], axis=config.get("axis", 0))),
    "reshape": lambda config: lambda x: np.reshape(x, tuple(-1 if n is None else n for n in config["newshape"])),
    "silu": lambda config: lambda x: x * activations.sigmoid(x),
    "softmax": lambda config: lambda x: activations.softmax(x, axis=config.get("axis", -1)),
}
