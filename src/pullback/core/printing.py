"""Tensors as text: `tensor_text` as TensorFlow.js prints them, `tensor_repr` as one line of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:  # importing it takes time
    from numpy.typing import NDArray

    from pullback.typing import Array

MAX_ITEMS = 20  # an axis longer than this is abbreviated
EDGE_ITEMS = 3  # items at either end of an abbreviated axis
DECIMALS = 7
SCALE = 10**DECIMALS
BLOCK_ROWS = 1 << 16  # rows measured at a time, so that a large tensor needs little extra memory


def tensor_text(values: NDArray[Any], verbose: bool = False) -> str:
    """Return the text of TensorFlow.js's `tensor.toString(verbose)`.

    >>> print(tensor_text(np.array([[1, 2.5], [-3, np.inf]], np.float32)))
    Tensor
        [[1 , 2.5     ],
         [-3, Infinity]]
    >>> print(tensor_text(np.array(0.1, np.float32), verbose=True))
    Tensor
      dtype: float32
      rank: 0
      shape: []
      values:
        0.10000000149011612
    """
    values = np.asarray(values)
    if values.ndim == 0:
        lines = [_scalar_text(values)]
    else:
        lines = _format_lines(values, _element_text(values.dtype), _column_widths(values), is_last=True)
    header = ["Tensor"]
    if verbose:
        dtype = "string" if _is_text(values.dtype) else values.dtype.name
        shape = ",".join(map(str, values.shape))
        header += [f"  dtype: {dtype}", f"  rank: {values.ndim}", f"  shape: [{shape}]", "  values:"]
    return "\n".join(header + ["    " + line for line in lines])


def tensor_repr(values: NDArray[Any], kind: str = "Tensor") -> str:
    """Return a tensor as one line of Python; a long one is abbreviated. The precision is NumPy's print option.

    >>> tensor_repr(np.array([[1, 2], [3, 4]], np.float32))
    'Tensor([[1., 2.], [3., 4.]], dtype=float32)'
    >>> tensor_repr(np.arange(1000), kind="Variable")
    'Variable([0, 1, 2, ..., 997, 998, 999], shape=(1000,), dtype=int64)'
    """
    values = np.asarray(values)
    edge = {1: 3, 2: 2}.get(values.ndim, 1)  # what is shown grows with the power of the rank
    abbreviated = values.size > MAX_ITEMS and max(values.shape) > 2 * edge
    body = _nest(values, edge if abbreviated else values.size) if values.size else "[]"
    tells_shape = abbreviated or (values.size == 0 and values.ndim > 1)
    shape = f", shape={values.shape}" if tells_shape else ""
    return f"{kind}({body}{shape}, dtype={'str' if _is_text(values.dtype) else values.dtype.name})"


# ------------------------------------------------------------------ numbers as JavaScript writes them


def _js_number(x: float) -> str:
    """Return JavaScript's `String(x)`: the shortest digits that give x back, in full from 1e-6 up to 1e21.

    >>> [_js_number(x) for x in (1.0, -0.0, 1e-6, 1e-7, 1e20, 1e21)]
    ['1', '0', '0.000001', '1e-7', '100000000000000000000', '1e+21']
    """
    if x != x:
        return "NaN"
    if x in (np.inf, -np.inf):
        return "Infinity" if x > 0 else "-Infinity"
    if x == 0:
        return "0"  # of either sign
    mantissa, _, exponent = repr(x).removesuffix(".0").partition("e")
    power = int(exponent or 0)
    if power == 0:
        return mantissa
    sign, digits = "-" * (x < 0), mantissa.lstrip("-").replace(".", "")
    if -7 < power < 0:
        return f"{sign}0.{'0' * (-power - 1)}{digits}"
    if 0 < power < 21:
        return sign + digits.ljust(power + 1, "0")
    return f"{mantissa}e{power:+d}"


def _round(x: float) -> float:
    """Return JavaScript's `parseFloat(x.toFixed(7))`: the exact binary value is rounded, ties away from zero."""
    if not abs(x) < 1e21:
        return x
    numerator, denominator = abs(x).as_integer_ratio()
    magnitude: float = (2 * SCALE * numerator + denominator) // (2 * denominator) / SCALE
    return -magnitude if x < 0 else magnitude


def _float_text(x: Array) -> str:
    return _js_number(_round(float(x)))


def _complex_text(z: Array) -> str:
    return f"{_float_text(z.real)} + {_float_text(z.imag)}j"


def _bool_text(x: Array) -> str:
    return "true" if x else "false"


def _int_text(x: Array) -> str:
    return str(int(x))


def _quote(x: Array) -> str:
    return f"'{x}'"


def _is_text(dtype: np.dtype[Any]) -> bool:
    return dtype.kind not in "fciub"


def _element_text(dtype: np.dtype[Any]) -> Callable[[Any], str]:
    kinds = {"f": _float_text, "c": _complex_text, "b": _bool_text, "i": _int_text, "u": _int_text}
    return kinds.get(dtype.kind, _quote)


def _scalar_text(values: NDArray[Any]) -> str:
    """Return a scalar as text: without quotes, and not rounded if it is real."""
    if values.dtype.kind == "f":
        return _js_number(float(values))
    return str(values[()]) if _is_text(values.dtype) else _element_text(values.dtype)(values[()])


# ------------------------------------------------------------------ layout


def _list_shown(size: int) -> Iterable[int | None]:
    """Return the indices of an axis that are printed; None stands for the ellipsis."""
    return range(size) if size <= MAX_ITEMS else [*range(EDGE_ITEMS), None, *range(size - EDGE_ITEMS, size)]


def _format_lines(values: NDArray[Any], text: Callable[[Any], str], widths: dict[int, int], is_last: bool) -> list[str]:
    """Return the lines of an array of rank one or more, with exactly TensorFlow.js's commas and blank lines."""
    size = len(values)
    if values.ndim == 1:
        cells = ["..." if i is None else _pad(text(values[i]), widths.get(i, 0)) for i in _list_shown(size)]
        return ["[" + ", ".join(cells) + "]"]
    lines: list[str] = []
    for i in _list_shown(size):
        lines += ["..."] if i is None else _format_lines(values[i], text, widths, i == size - 1)
    comma = "," if values.ndim == 2 else ""
    lines = lines or [""]
    lines[0] = "[" + lines[0] + (comma if size else "")
    lines[1:-1] = [f" {line}{comma}" for line in lines[1:-1]]
    # A single line is both the first and the last: it gets the comma and the blank, as in " [[1, 2],]".
    lines[-1] = f" {lines[-1]}]" + ("" if is_last else ",\n" + "\n" * (values.ndim - 2))
    return lines


def _pad(cell: str, width: int) -> str:
    return cell + " " * (width - _js_length(cell))


def _js_length(text: str) -> int:
    """Return the number of UTF-16 units, by which JavaScript measures text."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def _column_widths(values: NDArray[Any]) -> dict[int, int]:
    """Return the longest text of each shown column over all rows, the hidden ones too; a vector is not padded."""
    if values.ndim < 2 or values.size == 0:
        return {}
    columns = [i for i in _list_shown(values.shape[-1]) if i is not None]
    table = values[..., columns].reshape(-1, len(columns))
    return dict(zip(columns, map(int, _longest(table)), strict=True))


def _longest(table: NDArray[Any]) -> Iterable[int]:
    kind = table.dtype.kind
    if kind == "b":
        return [4 if column.all() else 5 for column in table.T]
    if kind in "iu":  # the extremes are the longest
        return [max(len(_int_text(column.min())), len(_int_text(column.max()))) for column in table.T]
    if kind not in "fc":
        return [max(_js_length(_quote(x)) for x in column) for column in table.T]
    longest = np.zeros(table.shape[1], np.int64)
    for start in range(0, len(table), BLOCK_ROWS):
        block = table[start : start + BLOCK_ROWS]
        lengths = _float_lengths(block.real) + _float_lengths(block.imag) + 4 if kind == "c" else _float_lengths(block)
        longest = np.maximum(longest, lengths.max(axis=0))
    return [int(length) for length in longest]


def _float_lengths(x: NDArray[Any]) -> NDArray[np.int64]:
    """Return `len(_float_text(x))` of every element: by arithmetic where that is exact, else from the text."""
    with np.errstate(all="ignore"):
        x = x.astype(np.float64)
        scaled = np.abs(x) * SCALE
        sure = (np.abs(x) < 1e8) & (np.abs(scaled - np.floor(scaled) - 0.5) > scaled * 2.0**-52)
        units = np.where(sure, np.floor(scaled + 0.5), 0).astype(np.int64)
    whole = units // SCALE
    decimals = DECIMALS - sum((units % 10**k == 0).astype(np.int64) for k in range(1, DECIMALS + 1))
    lengths = 1 + np.searchsorted(10 ** np.arange(1, 9), whole, side="right") + decimals + (decimals > 0)
    lengths = np.where((units > 0) & (units < 10), len("1e-7"), lengths) + ((x < 0) & (units > 0))
    others, where = np.unique(x[~sure], return_inverse=True)
    lengths[~sure] = np.array([len(_float_text(value)) for value in others], np.int64)[where]
    return lengths


# ------------------------------------------------------------------ the Python form


def _nest(values: NDArray[Any], edge: int) -> str:
    """Return nested brackets on one line, each axis cut to `edge` items at either end."""
    if values.ndim == 0:
        return _python_text(values[()])
    size = len(values)
    if size <= 2 * edge:
        items = [_nest(item, edge) for item in map(np.asarray, values)]
    else:
        ends = [_nest(np.asarray(values[i]), edge) for i in (*range(edge), *range(size - edge, size))]
        items = [*ends[:edge], "...", *ends[edge:]]
    return "[" + ", ".join(items) + "]"


def _python_text(x: Any) -> str:
    if isinstance(x, np.complexfloating):
        imaginary = _python_text(x.imag)
        return f"{_python_text(x.real)}{'' if imaginary.startswith('-') else '+'}{imaginary}j"
    if isinstance(x, np.floating):
        precision = np.get_printoptions()["precision"]
        if x == 0 or 1e-4 <= abs(float(x)) < 1e8 or not np.isfinite(x):
            return np.format_float_positional(x, precision, trim=".")
        return np.format_float_scientific(x, precision, trim=".")
    return repr(x.item() if isinstance(x, np.generic) else x)
