"""Operations in the graphs of Keras's models, such as ``h + x`` or ``keras.ops.mean(h, axis=1)``: functions of the same
meaning here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from pullback.core.suggestions import snake_case
from pullback.ops import activations, gaussian, reductions

__all__ = ["find_operation"]

HOMES = ("keras.src.ops.numpy", "keras.src.ops.nn", "keras.src.ops.core", "keras.src.ops.math", "keras.ops")
# Operations that are called as functions of NumPy, with the same arguments.
SAME = (
    "absolute", "add", "all", "any", "arctan", "argmax", "argmin", "ceil", "concatenate", "cos", "cosh", "cumsum",
    "divide", "equal", "exp", "expand_dims", "expm1", "flip", "floor", "floor_divide", "greater", "greater_equal",
    "isfinite", "isnan", "less", "less_equal", "log", "log1p", "log2", "logaddexp", "logical_and", "logical_not",
    "logical_or", "matmul", "max", "maximum", "mean", "min", "minimum", "moveaxis", "multiply", "negative",
    "not_equal", "power", "prod", "reciprocal", "repeat", "roll", "sign", "sin", "sinh", "sqrt", "square",
    "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "tan", "tanh", "tensordot", "transpose",
    "true_divide", "var", "where",
)  # fmt: skip
ACTIVATIONS = ("relu", "relu6", "selu", "sigmoid", "softplus")


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
    given = {key: x for key, x in config.items() if key not in ("name", "trainable") and x is not None}
    own = {key: tuple(x) if isinstance(x, list) else x for key, x in given.items()}
    if word == "cast" and own.get("dtype") != "float32":
        return None
    if word in OTHERS:
        return OTHERS[word](own)
    if word in ACTIVATIONS:
        activation: Callable[..., Any] = getattr(activations, word)
        return activation
    own.pop("dtype", None)
    function = getattr(np, word) if word in SAME else None
    return None if function is None else lambda *xs, **more: function(*xs, **own, **more)


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
    "cast": lambda config: lambda x: x * np.float32(1),
    "ones_like": lambda config: lambda x: np.ones_like(x, dtype=config.get("dtype")),
    "zeros_like": lambda config: lambda x: np.zeros_like(x, dtype=config.get("dtype")),
    "clip": lambda config: lambda x: np.clip(x, config["x_min"], config["x_max"]),
    "einsum": lambda config: lambda *xs: np.einsum(config["subscripts"], *xs),
    "elu": lambda config: partial(_elu, config.get("alpha", 1.0)),
    "erf": lambda config: gaussian.erf,
    "get_item": lambda config: _get_item,
    "gelu": lambda config: _gelu_by_tanh if config.get("approximate", True) else _gelu,
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
