"""``jacobian``, ``hessian``, and ``hvp``, the product of a hessian and a vector without the hessian."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.core.convert import float_of
from pullback.core.hooks import observe_calls
from pullback.core.interpreter import new_level
from pullback.core.tensor import Tensor, all_values
from pullback.errors import ArgumentError, GradientError, ShapeError
from pullback.transforms.argnums import BoundCall, Derivative, WholeCall, call_by_all, point_hint
from pullback.transforms.directions import pull_unit_vectors
from pullback.transforms.grad import convert_back, grad, grads
from pullback.transforms.leaves import finish_derivative
from pullback.transforms.linear import Linear, LinearRecord
from pullback.transforms.session import open_tape

if TYPE_CHECKING:
    from pullback.typing import ArgNames, ArgNums, Value

MODES = ("auto", "forward", "reverse")


class Jacobian(Derivative):
    """The function that ``jacobian`` returns."""

    face = "jacobian"

    def __init__(
        self,
        f: Callable[..., Any],
        mode: str = "auto",
        *,
        argnums: ArgNums = None,
        argnames: ArgNames = None,
        has_aux: bool = False,
    ) -> None:
        super().__init__(f, argnums, argnames)
        chosen: Any = mode
        if not isinstance(chosen, str) or mode not in MODES:
            is_number = isinstance(chosen, int | tuple)
            hint = f" Write argnums={mode!r} to choose arguments." if is_number else point_hint(self.face, chosen)
            raise ArgumentError(f"{self.face}: mode must be 'auto', 'forward' or 'reverse', got {mode!r}.{hint}")
        self.mode, self.has_aux = mode, has_aux

    def options(self) -> dict[str, Any]:
        return {**super().options(), "mode": self.mode, "has_aux": self.has_aux}

    def __call__(self, *args: Any, **kwargs: object) -> Any:
        call = self.bind(args, kwargs)
        call.has_aux = self.has_aux
        blocks, aux = self.at(call.xs, call)
        return (blocks, aux) if self.has_aux else blocks

    @observe_calls("jacobian")
    def at(self, xs: Sequence[Any], call: BoundCall) -> tuple[Any, Any]:
        """Return the derivatives of a call by ``xs``, and aux."""
        number = new_level()  # lower than the levels of the tapes, whose steps see a batch of cotangents as one
        with open_tape() as tape:
            linear = Linear(self.face, xs, call, tape)
            self.check(linear)
            blocks = self._blocks(linear, number)
        rows = [[convert_back(d, linear.outputs.kind) for d in row] for row in blocks]
        return linear.outputs.place([self.pack(linear.inputs.fill(row)) for row in rows]), linear.aux

    def check(self, linear: Linear) -> None:
        """Raise if the recorded function has no such derivatives."""

    def _blocks(self, linear: Linear, number: int) -> list[list[Any]]:
        """Return, for each result, a list of its derivatives by each input."""
        record, xs, ys = linear.record, linear.inputs.values, linear.record.values
        forward = self.mode == "forward" or (self.mode == "auto" and _total(xs) < _total(ys))
        if not forward:
            pulled = [pull_result(record, k, number) for k in range(len(ys))]
            return [self._assemble_row(found, y, linear, False) for found, y in zip(pulled, ys, strict=True)]
        with open_tape() as tape:
            transposed = record.transpose(tape)
            pushed = [pull_result(transposed, k, number) for k in range(len(xs))]
        return [self._assemble_row([p[i] for p in pushed], y, linear, True) for i, y in enumerate(ys)]

    def _assemble_row(self, found: Sequence[tuple[Any, Any]], y: Value, linear: Linear, pushed: bool) -> list[Any]:
        """Return the derivatives of one result by each input, from those along its unit vectors."""
        row = []
        for pair, x, dtype in zip(found, linear.inputs.values, linear.inputs.gradient_dtypes([y]), strict=True):
            shape = y.shape + x.shape
            one, turned = [None if d is None else _order_axes(d, x, shape, pushed) for d in pair]
            if y.dtype.kind == "c" or dtype.kind == "c":
                one, dtype = join_parts(self.face, one, turned, y, x, pushed), block_dtype(y, dtype)
            row.append(finish_derivative(one, shape, dtype))
        return row


def _total(values: Sequence[Any]) -> int:
    return sum(int(v.size) for v in values)


def _order_axes(d: Any, x: Value, shape: tuple[int, ...], pushed: bool) -> Any:
    """Return derivatives with the axes of the result in front of those of the input."""
    if pushed and x.shape:
        d = np.moveaxis(d, 0, -1)
    return d if d.shape == shape else np.reshape(d, shape)


def block_dtype(y: Value, dtype: np.dtype[Any]) -> Any:
    """Return the dtype of derivatives of ``y``: that of a gradient, complex where ``y`` is."""
    return np.result_type(dtype, np.complex64) if y.dtype.kind == "c" else dtype


def join_parts(face: str, one: Value | None, turned: Value | None, y: Any, x: Value, pushed: bool = False) -> Any:
    """Return complex derivatives from those along the directions 1 (``one``) and i (``turned``).

    By a real input they are those of the real and the imaginary part.  Of a real result they are ``∂y/∂a + i ∂y/∂b``
    for ``x = a + ib``, as a gradient is.  A complex function of complex numbers has a derivative where it is
    holomorphic: then the direction i gives i times what 1 gives.
    """
    if (x if pushed else y).dtype.kind != "c":  # real numbers have one direction only
        return one
    if (y if pushed else x).dtype.kind != "c":
        if turned is None:
            return one
        imaginary: Any = 1j * turned
        return (0 if one is None else one) + imaginary
    if one is None and turned is None:
        return None
    if one is None or turned is None:
        raise _make_holomorphic_error(face, x)
    _check_holomorphic(face, one, turned, y, x)
    return one if pushed else np.conjugate(one)


def _check_holomorphic(face: str, one: Value, turned: Value, y: Any, x: Value) -> None:
    """Raise GradientError if the derivative along i is not i times that along 1."""
    a, b = all_values(one), all_values(turned)
    if np.size(a) < one.size:
        raise GradientError(
            f"{face}(f): a complex function of complex numbers ({x.dtype}) has a derivative only where it is "
            "holomorphic, and a program that is being compiled has no values to tell. "
            "Differentiate by the real and imaginary parts."
        )
    near = np.sqrt(max(np.finfo(v.dtype).eps for v in (a, x, y)))
    if a.size and np.any(np.abs(b - 1j * a) > near * np.max(np.abs(a) + np.abs(b))):
        raise _make_holomorphic_error(face, x)


def _make_holomorphic_error(face: str, x: Any) -> GradientError:
    return GradientError(
        f"{face}(f): f is a complex function of complex numbers ({x.dtype}) and not holomorphic there (as conj, real "
        "and abs are not), so one complex number is not its derivative. Differentiate by the real and imaginary "
        "parts, lambda a, b: f(a + 1j * b), or use vjp and jvp."
    )


def check_real_function(face: str, linear: Linear) -> None:
    """Raise if an input or result is complex."""
    for subject, values in (("f returned", linear.record.values), ("an input has", linear.inputs.values)):
        for v in values:
            if v.dtype.kind == "c":
                raise GradientError(
                    f"{face}(f): {subject} complex numbers ({v.dtype}). Differentiate by their real and imaginary "
                    "parts, or use vjp."
                )


def pull_result(record: LinearRecord, k: int, number: int) -> list[tuple[Any, Any]]:
    """Return, for each input, the unit vectors of the result ``k`` pulled back; None for one that is not reached.

    Each is a pair: for a complex result the second are those of the unit vectors times i.
    """
    value, count = record.values[k], len(record.leaves)
    if record.results[k] is None:
        return [(None, None)] * count
    at = record.only(k), value.shape, float_of(value.dtype), record.widest, number, count
    one = pull_unit_vectors(*at)
    return list(zip(one, pull_unit_vectors(*at, 1j) if value.dtype.kind == "c" else [None] * count, strict=True))


def jacobian(
    f: Callable[..., Any],
    mode: str = "auto",
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: bool = False,
) -> Jacobian:
    """Return ``J(x, **kwargs)``: the derivatives of all elements of ``f(x)`` by all elements of ``x``.

    Its shape is that of the result followed by that of ``x``.  Where they are trees, it has the structure of the
    result, with trees of the structure of ``x`` in place of its leaves.
    ``mode`` is ``"forward"`` (a pass for each element of ``x``), ``"reverse"`` (one for each element of the result) or
    ``"auto"``, which is whichever are fewer.  All passes are made at once.
    ``argnums`` and ``argnames`` choose the arguments to differentiate by, as in ``grad``; then ``J`` is called as ``f``
    is.  ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(jacobian, aux)``.

    >>> import numpy as np, pullback as pb
    >>> pb.jacobian(lambda x: x * x)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    >>> pb.jacobian(lambda p: p["a"] * p["b"])({"a": 2.0, "b": np.array([3.0, 4.0])})["a"]
    array([3., 4.])
    >>> pb.jacobian(lambda t, a: a * t, argnums=1)(np.array([3.0, 4.0]), 2.0)
    array([3., 4.])
    """
    return Jacobian(f, mode, argnums=argnums, argnames=argnames, has_aux=has_aux)


class HessianJacobian(Jacobian):
    """The jacobian of a gradient, whose errors speak of ``hessian``."""

    face = "hessian"

    def check(self, linear: Linear) -> None:
        check_real_function(self.face, linear)


class Hessian(Derivative):
    """The function that ``hessian`` returns."""

    face = "hessian"

    def __init__(
        self, f: Callable[..., Any], *, argnums: ArgNums = None, argnames: ArgNames = None, has_aux: bool = False
    ) -> None:
        super().__init__(f, argnums, argnames)
        self.has_aux = has_aux
        gradient = HessianJacobian(f, "reverse", **self.options())
        self.of_gradient = HessianJacobian(gradient, "reverse", **self.options())

    def options(self) -> dict[str, Any]:
        return {**super().options(), "has_aux": self.has_aux}

    def __call__(self, *args: object, **kwargs: object) -> Any:
        self.bind(args, kwargs)  # for its errors, which name f and not its gradient
        return self.of_gradient(*args, **kwargs)


def hessian(
    f: Callable[..., Any], argnums: ArgNums = None, *, argnames: ArgNames = None, has_aux: bool = False
) -> Hessian:
    """Return ``H(x, **kwargs)``: the second derivatives of ``f(x)``, by every pair of elements of ``x``.

    Of a result of rank 0 the shape is that of ``x``, twice; a tree ``x`` gives a tree of trees.
    ``argnums`` and ``argnames`` choose the arguments to differentiate by, as in ``grad``; a tuple of them gives a tuple
    of tuples.  ``has_aux=True``: ``f`` returns ``(y, aux)`` and the result is ``(hessian, aux)``.

    >>> import numpy as np, pullback as pb
    >>> pb.hessian(lambda x: x[0] ** 2 * x[1])(np.array([3.0, 5.0]))
    array([[10.,  6.],
           [ 6.,  0.]])
    >>> pb.hessian(lambda x, y: x**2 * y, argnums=(0, 1))(3.0, 5.0)
    ((10.0, 6.0), (6.0, 0.0))
    """
    return Hessian(f, argnums=argnums, argnames=argnames, has_aux=has_aux)


def hvp(
    f: Callable[..., Any], x: Any, v: Any, /, *, argnums: Any = None, argnames: Any = None, **kwargs: object
) -> Any:
    """Return the hessian of ``f`` at ``x`` times ``v``, a tree like ``x``, at the cost of a few gradients.

    Keywords are passed on to ``f``.  With ``argnums`` or ``argnames``, which choose the arguments to differentiate by,
    ``x`` is the list of all positional arguments of ``f``, and ``v`` belongs to the chosen one, or is a tuple with an
    entry for each of them.

    >>> import numpy as np, pullback as pb
    >>> pb.hvp(lambda x: pb.sum(x**3), np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([  6., 120.])
    >>> pb.hvp(lambda x, n: pb.sum(x**n), [np.array([1.0, 2.0]), 3], np.array([1.0, 10.0]), argnums=0)
    array([  6., 120.])
    """
    chosen = argnums is not None or argnames is not None
    if chosen and not isinstance(x, list | tuple):
        raise ArgumentError(
            f"hvp(f, args, v, argnums=...): args must be a list of the arguments of f, got {type(x).__name__}."
        )
    call, selection = call_by_all("hvp(f, x, v)", f, x if chosen else (x,), kwargs, argnums, argnames)
    one = selection is None or selection.one
    if not one and (not isinstance(v, list | tuple) or len(v) != len(call.xs)):
        raise ArgumentError(f"hvp: v must be a tuple of {len(call.xs)}, one entry for each chosen argument, got {v!r}.")
    found = times_hessian(call.xs, (v,) if one else v, call)
    return found[0] if selection is None else selection.pack(found)


@observe_calls("hvp")
def times_hessian(xs: Sequence[Any], vs: Sequence[Any], call: BoundCall) -> tuple[Any, ...]:
    """Return the hessian of a call by ``xs``, times ``vs``."""

    def scalar(*xs: object) -> Any:
        y = call(*xs)
        if isinstance(y, Tensor) and y.shape:
            raise ShapeError(f"hvp: f must return one number, got a tensor of shape {y.shape}. Sum it, or use vjp.")
        return y

    with open_tape() as tape, open_tape() as second:
        one = len(xs) == 1  # a single argument takes less overhead
        gradient: Any = grad(scalar, unconnected="zero") if one else grads(scalar, unconnected="zero")
        gradient.face = "hvp"
        linear = Linear("hvp", xs, WholeCall(gradient if one else lambda *xs: gradient(xs), tuple(xs)), tape)
        inputs = linear.inputs
        tangents = inputs.directions(vs, "vector")
        slopes = linear.record.values
        moved = zip(
            linear.record.transpose(second).back(tangents), inputs.values, inputs.gradient_dtypes(slopes), strict=True
        )
        found = [finish_derivative(d, x.shape, dtype, tangents) for d, x, dtype in moved]
    return inputs.convert_back(found)
