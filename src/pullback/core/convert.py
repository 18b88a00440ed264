"""Convert numbers, lists and arrays to the arrays and tensors that the engine computes with; default dtypes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy import ndarray

from pullback.core import environment
from pullback.core.tensor import OBJECT, Tensor, concrete
from pullback.errors import ArgumentError, DataError, TracedValueError
from pullback.numerics.dtypes import make_dtype

if TYPE_CHECKING:
    from pullback.typing import Array, DType, TensorLike, Value

_default: ContextVar[np.dtype[Any] | None] = ContextVar("default_dtype", default=None)
_process_default = np.dtype(np.float32)


def get_default_dtype() -> np.dtype[Any]:
    """Return the dtype that Python numbers get in a new tensor.

    >>> get_default_dtype()
    dtype('float32')
    """
    return _default.get() or _process_default


def set_default_dtype(dtype: DType) -> None:
    """Choose the dtype that Python numbers get in new tensors, for the whole process.

    dtype: float16, float32 or float64.

    >>> set_default_dtype("float32")
    """
    global _process_default
    _process_default = _as_float(dtype)
    environment.change_process()


@contextmanager
def default_dtype(dtype: DType) -> Iterator[None]:
    """Set the default dtype in this block, in this thread.

    dtype: float16, float32 or float64.

    >>> import pullback as pb
    >>> with pb.default_dtype("float64"):
    ...     pb.tensor([1.0]).dtype
    dtype('float64')
    """
    token = _default.set(_as_float(dtype))
    environment.change_blocks(1)
    try:
        yield
    finally:
        environment.change_blocks(-1)
        _default.reset(token)


def _unusual(dtype: np.dtype[Any]) -> Any:
    return None if dtype == np.float32 else ("default dtype", dtype)


environment.add_part(lambda: _unusual(get_default_dtype()), lambda: _unusual(_process_default))


def _as_float(dtype: DType) -> np.dtype[Any]:
    float_dtype = make_dtype(dtype)
    if float_dtype.kind != "f":
        raise ArgumentError(f"set_default_dtype: dtype must be a float, such as 'float64', got {float_dtype}.")
    return float_dtype


def as_dtype(dtype: Any, subject: str = "dtype") -> np.dtype[Any]:
    """Return a NumPy dtype from what users write, checked.

    >>> as_dtype("int32")
    dtype('int32')
    """
    try:
        found = make_dtype(str if isinstance(dtype, str) and dtype == "string" else dtype)
    except TypeError:
        shape = " A shape is one argument: (2, 3), not 2, 3." if isinstance(dtype, int) else ""
        raise ArgumentError(
            f"{subject}: {dtype!r} is not a dtype; try 'float32', 'float64', 'int32' or 'bool'.{shape}"
        ) from None
    if found.kind not in "fiubcUS":
        raise ArgumentError(f"{subject}: tensors hold numbers and bools, not {found}.")
    return found


def as_shape(name: str, shape: Any) -> tuple[int, ...]:
    """Return a shape from what users write: a number, or numbers.

    >>> as_shape("zeros", 3), as_shape("zeros", [2, 3.0])
    ((3,), (2, 3))
    """
    shape = concrete(shape)
    several = isinstance(shape, list | tuple) or (isinstance(shape, ndarray) and shape.ndim)
    lengths = list(shape) if several else [shape]
    for n in lengths:
        whole = hasattr(n, "__index__") or (isinstance(n, float) and n.is_integer())
        if isinstance(n, bool) or not whole or np.ndim(n) or n < 0:
            raise ArgumentError(f"{name}: shape must be integers of 0 or more, got {shape!r}.")
    return tuple(int(n) for n in lengths)


def as_number(name: str, argument: str, x: object, least: float = -np.inf, most: float = np.inf) -> float:
    """Return one real number from what users write, within limits.

    >>> as_number("dropout", "rate", np.float32(0.5), 0, 1)
    0.5
    """
    number = concrete(x)
    number = number.item() if isinstance(number, ndarray | np.generic) and not number.ndim else number
    if isinstance(number, bool) or not isinstance(number, int | float) or not least <= number <= most:
        limits = {(True, True): "", (False, True): f" of {least} or more", (True, False): f" of at most {most}"}
        allowed = limits.get((least == -np.inf, most == np.inf), f" from {least} to {most}")
        raise ArgumentError(f"{name}: {argument} must be a number{allowed}, got {x!r}.")
    return number


def check_sequence(name: str, tensors: object) -> Any:
    """Return the list of tensors that an op of many inputs is given."""
    if not isinstance(tensors, list | tuple | ndarray | Tensor):
        raise ArgumentError(f"{name}: tensors must be a list of tensors, got {type(tensors).__name__}.")
    return tensors


def check_real(name: str, x: Any, argument: str = "") -> None:
    """Refuse complex numbers, where only real ones have a meaning.

    >>> check_real("huber", np.array([1j]))
    Traceback (most recent call last):
    ...
    pullback.errors.ArgumentError: huber: expected real numbers, got dtype complex128.
    """
    dtype = x.dtype if hasattr(x, "dtype") else np.result_type(x)
    if dtype.kind == "c":
        raise ArgumentError(f"{name}: expected real numbers{argument and f' for {argument}'}, got dtype {dtype}.")


def as_value(x: TensorLike, subject: str = "tensor") -> Array:
    """Return an array, or a NumPy scalar for rank 0, which is ten times quicker than a 0-d array.

    Nothing is copied.
    """
    if type(x) is ndarray and x.ndim and x.dtype.kind in "fiubc":
        return x
    if type(x) is np.float64 or type(x) is np.float32:
        return x  # type: ignore[return-value]
    return as_array(x, subject=subject)[()]


def refuse_matrix(x: object, subject: str) -> None:
    """Raise for an ``np.matrix`` as an argument of a function that is traced: its operators mean something else."""
    if isinstance(x, np.matrix):
        raise DataError(
            f"{subject}: got an np.matrix, of which * is the product of matrices and every slice has two axes; those "
            "of a tensor are not. Give np.asarray(x), and write @ for the product."
        )


def unwrap_constant(x: Any, subject: str = "tensor") -> Value:
    """Return the array or NumPy scalar of a tensor that no transform follows; a tensor that one follows as it is."""
    if type(x) is Tensor:  # the usual tensors without calls: transforms come here for each of theirs, again and again
        m = x.meta
        if m.tape.level:
            return x
        if m.raw:
            held: Value = x.value
            return held
    elif not isinstance(x, Tensor):
        try:
            return as_value(x, subject)
        except (DataError, TracedValueError):
            x = get_array_inside(x)
            if not has_tensors(x):
                numbers: Array | None = _numbers_in(x)
                if numbers is None:
                    raise
                return numbers
            x = join_tensors(x)
    t: Tensor = x.read()
    value: Value = t if t.level else t.value
    return value


def get_array_inside(x: TensorLike) -> Any:
    """Return the contents of another library's container: a tensor, or an object array of tensors."""
    held = None if isinstance(x, ndarray) else getattr(x, "data", None)
    return held if isinstance(held, Tensor) else np.asarray(x) if hasattr(x, "__array__") else x


def _numbers_in(x: TensorLike) -> Any:
    """Return the plain numbers of an object array, such as NumPy makes from traced numbers, as a numeric array.

    The result is None if anything else is in it.
    """
    numbers = np.array(x.tolist()) if isinstance(x, ndarray) and x.dtype is OBJECT else np.array(None)
    return numbers[()] if numbers.dtype.kind in "fiubc" else None


def has_tensors(x: TensorLike) -> bool:
    """Return whether there are tensors in nested lists, or in an object array.

    >>> import pullback as pb
    >>> has_tensors([[1.0], [pb.tensor(2.0)]]), has_tensors([1.0, 2.0])
    (True, False)
    """
    if isinstance(x, list | tuple):
        return not {*map(type, x)} <= {float, int, bool} and any(map(has_tensors, x))
    return isinstance(x, Tensor) or (type(x) is ndarray and x.dtype is OBJECT and any(map(has_tensors, x.flat)))


def join_tensors(x: Any, like: Any = None) -> Any:
    """Return nested lists of tensors and numbers, or the object array that NumPy makes from them, as one tensor.

    Python floats among them get the dtype ``like``, that of the tensors.  Anything else is returned unchanged.

    >>> import pullback as pb
    >>> join_tensors([pb.tensor(1.0), 2.0])
    Tensor([1., 2.], dtype=float32)
    """
    if not has_tensors(x):
        return x
    items = x.tolist() if isinstance(x, ndarray) else x
    if isinstance(items, Tensor):  # the array, or what was given, is of rank 0
        return items
    like = like or _float_among(items)
    return np.stack([_join_item(item, like) for item in items])


def join_array(x: object) -> Any:
    """Return an object array of tensors as one tensor; anything else as it is: a list may be a tree.

    >>> join_array([1.0])
    [1.0]
    """
    return join_tensors(x) if type(x) is ndarray and x.dtype is OBJECT else x


def _join_item(x: TensorLike, like: np.dtype[Any]) -> Any:
    """Return one item of a list that is joined to a tensor: a tensor, or an array of plain numbers."""
    if has_tensors(x):
        return join_tensors(x, like)
    value = as_value(x)
    weak = not isinstance(x, ndarray | np.generic) and value.dtype.kind == "f" and like is not None
    return value.astype(like) if weak else value


def _float_among(x: TensorLike) -> Any:
    """Return the float dtype of the tensors in nested lists; None if they have integers."""
    if isinstance(x, Tensor):
        return x.dtype if x.dtype.kind == "f" else None
    found = [_float_among(item) for item in x] if isinstance(x, list | tuple) else []
    floats = [dtype for dtype in found if dtype is not None]
    return np.result_type(*floats) if floats else None


def float_of(dtype: np.dtype[Any], value: np.dtype[Any] | None = None) -> np.dtype[Any]:
    """Return the dtype of a gradient: that of its input.

    It is float32 for integers and bools, or float64 where the value has it.

    >>> float_of(np.dtype(int)), float_of(np.dtype(int), np.dtype(float))
    (dtype('float32'), dtype('float64'))
    """
    if dtype.kind in "fc":
        return dtype
    wide = value is not None and value.kind in "fc" and value.itemsize > (8 if value.kind == "c" else 4)
    return np.dtype(np.float64 if wide else np.float32)


def as_array(data: Any, dtype: DType = None, subject: str = "tensor") -> Array:
    """Return the data as an ndarray: Python numbers get the default dtype, arrays keep theirs.

    >>> as_array([1, None, 3])
    array([1., 0., 3.], dtype=float32)
    """
    if isinstance(data, Tensor):
        data = data._concrete(subject)
    if isinstance(data, ndarray | np.generic) or (hasattr(data, "__array__") and not isinstance(data, list | tuple)):
        array = _check_array(data, subject)
        return array if dtype is None else _cast(array, as_dtype(dtype, subject))
    kinds = _kinds_of_numbers(data)
    if not kinds:
        _shape_of(data, subject, kinds)
    if str in kinds:
        cure = " An array of text, np.array([...]), can be a tensor." if subject == "tensor" else ""
        raise DataError(f"{subject}: expected numbers, got text.{cure}")
    if type(None) in kinds:
        data = _replace_none(data)
    wanted = _dtype_of(kinds) if dtype is None else as_dtype(dtype, subject)
    try:
        return np.array(data, wanted)
    except (OverflowError, TypeError, ValueError) as error:
        _shape_of(data, subject, set())  # raises an error if they are ragged
        raise DataError(f"{subject}: the values do not fit dtype {wanted}: {error}.") from None


def _check_array(data: Any, subject: str) -> Array:
    """Return an array, or an object that gives one, as an ndarray of numbers, bools or text; raise for others."""
    is_subclass = type(data) is not ndarray and isinstance(data, ndarray)  # first, as np.ma takes 7 ms to import
    if is_subclass and isinstance(data, np.ma.MaskedArray) and np.ma.is_masked(data):
        raise DataError(f"{subject}: got an array with masked elements. Give them values first: x.filled(value).")
    array = np.asarray(data)
    if has_tensors(array):
        raise TracedValueError(
            f"{subject}: an object array with traced tensors would lose their gradients. Use pb.stack."
        )
    if array.dtype.kind not in "fiubcU":
        raise DataError(f"{subject}: expected numbers or bools, got an array of dtype {array.dtype}.")
    return array


def _kinds_of_numbers(data: object) -> set[Any]:
    """Return the kinds in lists of Python numbers only, found quickly.

    The result is empty if they must be examined one by one.
    """
    if type(data) is not list and type(data) is not tuple:
        return {bool} if type(data) is bool else {float} if type(data) in (int, float) else set()
    types = {*map(type, data)}
    if types <= {bool, int, float}:
        return types if types <= {bool} else {float}
    if not types <= {list, tuple}:
        return set()
    rows = [_kinds_of_numbers(row) for row in data]
    return {float} & set().union(*rows) or {bool} if all(rows) else set()


def _dtype_of(kinds: set[Any]) -> Any:
    """Return the dtype for elements of these kinds: NumPy scalars have one, Python numbers get the default."""
    own = [k for k in kinds if isinstance(k, np.dtype)]
    if own and (float not in kinds or any(k.kind == "f" for k in own)):
        return np.result_type(*own)
    if complex in kinds:
        return np.complex64
    return np.bool_ if kinds == {bool} else get_default_dtype()


def _cast(x: Array, dtype: np.dtype[Any]) -> Any:
    return x if x.dtype == dtype else x.astype(dtype)


def _check_equal_shapes(shapes: list[tuple[int, ...]], subject: str, depth: int) -> None:
    for other in shapes:
        if other != shapes[0]:
            a, b = (s[0] if s else "a number" for s in (shapes[0], other))
            raise DataError(
                f"{subject}: the nested lists are ragged: found lengths {a} and {b} at depth {depth}. "
                "Every row must have the same length; pad the short ones."
            )


def _shape_of(data: TensorLike, subject: str, kinds: set[Any], depth: int = 0) -> tuple[int, ...]:
    """Return the shape of nested lists and add the kinds of their elements to ``kinds``; raise for other data."""
    if isinstance(data, list | tuple | range):
        shapes = [_shape_of(item, subject, kinds, depth + 1) for item in data]
        _check_equal_shapes(shapes, subject, depth + 1)
        return (len(data), *(shapes[0] if shapes else ()))
    if isinstance(data, Tensor):
        if data.level:
            raise TracedValueError(
                f"{subject}: a list with a traced tensor of shape {data.shape} would lose its gradient. Use pb.stack."
            )
        kinds.add(data.dtype)
        return data.shape
    if isinstance(data, ndarray | np.generic) and data.dtype.kind in "fiubc":
        kinds.add(data.dtype)
        return data.shape
    kind = next((kind for types, kind in ELEMENT_KINDS.items() if isinstance(data, types)), None)
    if kind is not None:
        kinds.add(kind)
    elif data is None and depth:
        kinds.update((float, type(None)))
    else:
        raise DataError(f"{subject}: expected numbers or nested lists of numbers, got {type(data).__name__}.")
    return ()


# The kind of a Python value in nested lists, by the first of these types that it has: a bool is an int, too.
ELEMENT_KINDS: dict[Any, type] = {bool: bool, (int, float): float, complex: complex, (str, bytes): str}


def _replace_none(data: TensorLike | None) -> Any:
    """Return 0 for ``None``, as TensorFlow.js does; anything else as it is."""
    if isinstance(data, list | tuple):
        return [_replace_none(item) for item in data]
    return 0 if data is None else data
