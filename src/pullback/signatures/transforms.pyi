"""The transforms of functions: each keeps the parameters of the function that it is given.

A derivative has the type of what it is taken by: ``grad(f)`` of an array is an array, of a dict of Tensors a dict of
Tensors.  ``P`` are the parameters of ``f``, without the first one, ``X0``, where that is differentiated by.

Without ``argnums`` a derivative takes one argument by position, and ``dy`` where ``f`` takes no more: other calls give
an ``ArgnumsNeeded``, which nothing accepts.
"""
# mypy: disable-error-code="overload-overlap"

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any, Concatenate, Generic, Literal, NamedTuple, ParamSpec, Protocol, TypeVar, overload

from typing_extensions import TypeVar as DefaultTypeVar

from pullback.compiler.api import CompiledProgram
from pullback.compiler.profile import Profile
from pullback.core.tensor import Tensor
from pullback.core.variable import Variable
from pullback.transforms.reverse import UnconnectedGradients
from pullback.typing import Array, ArrayLike, TensorLike

P = ParamSpec("P")
Q = ParamSpec("Q")
F = TypeVar("F", bound=Callable[..., Any])
X = TypeVar("X")
X1 = TypeVar("X1")
X2 = TypeVar("X2")
X3 = TypeVar("X3")
S = TypeVar("S")
A = TypeVar("A")
R = TypeVar("R")
V = TypeVar("V")
G = TypeVar("G")
R_co = TypeVar("R_co", covariant=True)
T0 = TypeVar("T0", bound=Any)  # the first two parameters of f
T1 = TypeVar("T1", bound=Any)
A_co = TypeVar("A_co", covariant=True)
K = DefaultTypeVar("K", bound=Literal[0] | None, default=None)
K_co = TypeVar("K_co", covariant=True)
X0 = TypeVar("X0", bound=Any)  # the first parameter of f; the bound makes that of a lambda Any
N = TypeVar("N", bound=Tensor | ArrayLike | list[Any] | tuple[Any, ...] | dict[Any, Any])

ArgNums = int | Sequence[int] | None
ArgNames = str | Sequence[str] | None
Unconnected = Literal["raise", "zero", "none"] | UnconnectedGradients
Backend = Literal["auto", "llvm", "numpy", "jax", "torch", "cupy"]
Mode = Literal["auto", "forward", "reverse"]

class ValueAndGrad(NamedTuple, Generic[V, G]):
    """The result of ``value_and_grad``."""

    value: V
    grad: G

class ValueAndGrads(NamedTuple, Generic[V, G]):
    """The result of ``value_and_grads`` and ``variable_grads``."""

    value: V
    grads: G

# ---- what the transforms return

class ArgnumsNeeded:
    """What ``grad(f)(x, y)`` is to a type checker: it raises, ``grad(f, argnums=0)(x, y)`` is meant."""

class Derivative(Protocol[X0, P, K_co]):  # type: ignore[misc]
    """``grad(f)``, ``jacobian(f)`` and ``hessian(f)``; ``K`` is ``argnums``, None or 0."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @property
    def argnums(self) -> K_co: ...
    @overload
    def __call__(self: Derivative[X0, [], None], x: N, /, dy: TensorLike) -> N: ...
    @overload
    def __call__(
        self: Derivative[X0, Concatenate[Any, Q], None], x: Any, second: Any, /, *args: Q.args, **kwargs: Q.kwargs
    ) -> ArgnumsNeeded: ...
    @overload
    def __call__(self, x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> Tensor: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kwargs: P.kwargs) -> N: ...
    @overload
    def __call__(self, x: X0, /, *args: P.args, **kwargs: P.kwargs) -> X0: ...
    @overload
    def __call__(self, x: X, /, *args: Any, dy: TensorLike, **kwargs: Any) -> X: ...

class DerivativeAndAux(Protocol[X0, P, K_co, A_co]):  # type: ignore[misc]
    """The same of a function that returns ``(y, aux)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @property
    def argnums(self) -> K_co: ...
    @overload
    def __call__(self: DerivativeAndAux[X0, [], None, A_co], x: N, /, dy: TensorLike) -> tuple[N, A_co]: ...
    @overload
    def __call__(
        self: DerivativeAndAux[X0, Concatenate[Any, Q], None, A_co],
        x: Any,
        second: Any,
        /,
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> ArgnumsNeeded: ...
    @overload
    def __call__(self, x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> tuple[Tensor, A_co]: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kwargs: P.kwargs) -> tuple[N, A_co]: ...
    @overload
    def __call__(self, x: X0, /, *args: P.args, **kwargs: P.kwargs) -> tuple[X0, A_co]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, dy: TensorLike, **kwargs: Any) -> tuple[X, A_co]: ...

class TwoOrMore(Protocol[P, T0, T1, Q]):  # type: ignore[misc]
    """A function of two arguments or more: ``P`` are all of them; ``T0``, ``T1`` and ``Q`` too, two by position."""

    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    @overload
    def __call__(self, x: T0, y: T1, /, *args: Q.args, **kwargs: Q.kwargs) -> Any: ...

class SecondDerivative(Protocol[P, T0, T1, Q]):  # type: ignore[misc]
    """The derivative by the second argument: ``grad(f, argnums=1)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(self, x: T0, y: Tensor, /, *args: Q.args, **kwargs: Q.kwargs) -> Tensor: ...
    @overload
    def __call__(self, x: T0, y: Array, /, *args: Q.args, **kwargs: Q.kwargs) -> Array: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> T1: ...
    @overload
    def __call__(self, *args: Any, dy: TensorLike, **kwargs: Any) -> T1: ...

class ValueAndSecondDerivative(Protocol[P, T0, T1, Q]):  # type: ignore[misc]
    """``value_and_grad(f, argnums=1)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(self, x: T0, y: Tensor, /, *args: Q.args, **kwargs: Q.kwargs) -> ValueAndGrad[Any, Tensor]: ...
    @overload
    def __call__(self, x: T0, y: Array, /, *args: Q.args, **kwargs: Q.kwargs) -> ValueAndGrad[Any, Array]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[Any, T1]: ...
    @overload
    def __call__(self, *args: Any, dy: TensorLike, **kwargs: Any) -> ValueAndGrad[Any, T1]: ...

class BothDerivatives(Protocol[P, T0, T1, Q]):  # type: ignore[misc]
    """The derivatives by the first two arguments: ``grad(f, argnums=(0, 1))``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(self, x: Tensor, y: Tensor, /, *args: Q.args, **kwargs: Q.kwargs) -> tuple[Tensor, Tensor]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> tuple[T0, T1]: ...
    @overload
    def __call__(self, *args: Any, dy: TensorLike, **kwargs: Any) -> tuple[T0, T1]: ...

class ValueAndBothDerivatives(Protocol[P, T0, T1, Q]):
    """``value_and_grad(f, argnums=(0, 1))``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(
        self, x: Tensor, y: Tensor, /, *args: Q.args, **kwargs: Q.kwargs
    ) -> ValueAndGrad[Any, tuple[Tensor, Tensor]]: ...
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[Any, tuple[T0, T1]]: ...
    @overload
    def __call__(self, *args: Any, dy: TensorLike, **kwargs: Any) -> ValueAndGrad[Any, tuple[T0, T1]]: ...

class ChosenDerivatives(Protocol[P, R_co]):
    """The same by the arguments that ``argnums`` and ``argnames`` choose."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, *args: Any, dy: TensorLike, **kwargs: Any) -> R_co: ...

class ValueAndDerivative(Protocol[X0, P, K_co]):  # type: ignore[misc]
    """``value_and_grad(f)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @property
    def argnums(self) -> K_co: ...
    @overload
    def __call__(self: ValueAndDerivative[X0, [], None], x: N, /, dy: TensorLike) -> ValueAndGrad[Any, N]: ...
    @overload
    def __call__(
        self: ValueAndDerivative[X0, Concatenate[Any, Q], None],
        x: Any,
        second: Any,
        /,
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> ArgnumsNeeded: ...
    @overload
    def __call__(self, x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[Tensor, Tensor]: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[Any, N]: ...
    @overload
    def __call__(self, x: X0, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[Any, X0]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, dy: TensorLike, **kwargs: Any) -> ValueAndGrad[Any, X]: ...

class ValueAndDerivativeAndAux(Protocol[X0, P, K_co, A]):  # type: ignore[misc]
    """The same of a function that returns ``(y, aux)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @property
    def argnums(self) -> K_co: ...
    @overload
    def __call__(
        self: ValueAndDerivativeAndAux[X0, [], None, A], x: N, /, dy: TensorLike
    ) -> ValueAndGrad[tuple[Any, A], N]: ...
    @overload
    def __call__(
        self: ValueAndDerivativeAndAux[X0, Concatenate[Any, Q], None, A],
        x: Any,
        second: Any,
        /,
        *args: Q.args,
        **kwargs: Q.kwargs,
    ) -> ArgnumsNeeded: ...
    @overload
    def __call__(self, x: Tensor, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[tuple[Tensor, A], Tensor]: ...
    @overload
    def __call__(self, x: N, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[tuple[Any, A], N]: ...
    @overload
    def __call__(self, x: X0, /, *args: P.args, **kwargs: P.kwargs) -> ValueAndGrad[tuple[Any, A], X0]: ...
    @overload
    def __call__(self, x: X, /, *args: Any, dy: TensorLike, **kwargs: Any) -> ValueAndGrad[tuple[Any, A], X]: ...

class DerivativeList(Protocol):
    """``grads(f)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(self, xs: Sequence[Tensor], /, dy: TensorLike | None = None, **kwargs: Any) -> list[Tensor]: ...
    @overload
    def __call__(self, xs: Sequence[X], /, dy: TensorLike | None = None, **kwargs: Any) -> list[X]: ...

class ValueAndDerivativeList(Protocol):
    """``value_and_grads(f)``."""

    __name__: str
    __wrapped__: Callable[..., Any]
    @overload
    def __call__(
        self, xs: Sequence[Tensor], /, dy: TensorLike | None = None, **kwargs: Any
    ) -> ValueAndGrads[Tensor, list[Tensor]]: ...
    @overload
    def __call__(
        self, xs: Sequence[X], /, dy: TensorLike | None = None, **kwargs: Any
    ) -> ValueAndGrads[Any, list[X]]: ...

class CompiledFunction(Protocol[P, R_co]):
    """``compile(f)``."""

    __name__: str
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> CompiledProgram: ...
    def profile(self, *args: Any, rounds: int = 20, **kwargs: Any) -> Profile: ...
    @overload
    def __get__(self, instance: None, owner: type, /) -> CompiledFunction[P, R_co]: ...
    @overload
    def __get__(
        self: CompiledFunction[Concatenate[S, Q], R_co], instance: S, owner: type | None = None, /
    ) -> Callable[Q, R_co]: ...

class _Compiled(Protocol):
    def lower(self, *args: Any, **kwargs: Any) -> CompiledProgram: ...
    def profile(self, *args: Any, rounds: int = 20, **kwargs: Any) -> Profile: ...

class CompiledDerivative(Derivative[X0, P, K_co], _Compiled, Protocol[X0, P, K_co]):  # type: ignore[misc]
    """``compile(grad(f))``."""

class CompiledValueAndDerivative(ValueAndDerivative[X0, P, K_co], _Compiled, Protocol[X0, P, K_co]):  # type: ignore[misc]
    """``compile(value_and_grad(f))``."""

class CustomFunction(Protocol[P, R_co]):
    """``custom_grad(f)``, ``custom_gradient(f)`` and ``custom_jvp(f)``."""

    __name__: str
    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def defjvp(self, rule: F) -> F: ...
    def defjvps(self, *rules: Callable[..., Any] | None) -> None: ...

class Save(Protocol):
    """What ``custom_grad`` gives to ``f`` as its last argument."""

    def __call__(self, values: Any, /) -> Any: ...

D = TypeVar("D", bound=Derivative[Any, ..., Any] | ValueAndDerivative[Any, ..., Any])

# ---- gradients

@overload
def grad(
    f: Derivative[X0, P, Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> Derivative[X0, P, K]: ...
@overload
def grad(
    f: Derivative[Any, ..., Any],
    argnums: ArgNums = None,
    *,
    argnames: ArgNames = None,
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[..., Any]: ...
@overload
def grad(
    f: Callable[Concatenate[X0, P], Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> Derivative[X0, P, K]:
    """Return the gradient of ``f(x)``, as a function ``g(x, dy=None, **kwargs)``."""

@overload
def grad(
    f: Callable[Concatenate[X0, P], tuple[Any, A]],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[True],
    unconnected: Unconnected = "raise",
) -> DerivativeAndAux[X0, P, K, A]: ...
@overload
def grad(
    f: TwoOrMore[P, T0, T1, Q],
    argnums: Literal[1],
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> SecondDerivative[P, T0, T1, Q]: ...
@overload
def grad(
    f: TwoOrMore[P, T0, T1, Q],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> BothDerivatives[P, T0, T1, Q]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int],
    *,
    argnames: ArgNames = None,
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, Any]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: None = None,
    *,
    argnames: str | Sequence[str],
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, Any]: ...
@overload
def grad(
    f: Callable[P, Any],
    argnums: ArgNums = None,
    *,
    argnames: ArgNames = None,
    has_aux: bool,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, Any]: ...
def grads(f: Callable[..., Any], *, has_aux: bool = False, unconnected: Unconnected = "raise") -> DerivativeList:
    """Return the gradients of ``f(x1, x2, ...)``, as a function ``g([x1, x2, ...], dy=None, **kwargs)``."""

@overload
def value_and_grad(
    f: Derivative[X0, P, Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> ValueAndDerivative[X0, P, K]: ...
@overload
def value_and_grad(
    f: Derivative[Any, ..., Any],
    argnums: ArgNums = None,
    *,
    argnames: ArgNames = None,
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[..., ValueAndGrad[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[Concatenate[X0, P], Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> ValueAndDerivative[X0, P, K]:
    """Return the value and gradient of ``f(x)`` as a named tuple, by a function ``g(x, dy=None, **kwargs)``."""

@overload
def value_and_grad(
    f: Callable[Concatenate[X0, P], tuple[Any, A]],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[True],
    unconnected: Unconnected = "raise",
) -> ValueAndDerivativeAndAux[X0, P, K, A]: ...
@overload
def value_and_grad(
    f: TwoOrMore[P, T0, T1, Q],
    argnums: Literal[1],
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> ValueAndSecondDerivative[P, T0, T1, Q]: ...
@overload
def value_and_grad(
    f: TwoOrMore[P, T0, T1, Q],
    argnums: tuple[Literal[0], Literal[1]],
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
    unconnected: Unconnected = "raise",
) -> ValueAndBothDerivatives[P, T0, T1, Q]: ...
@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: int | Sequence[int],
    *,
    argnames: ArgNames = None,
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, ValueAndGrad[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: None = None,
    *,
    argnames: str | Sequence[str],
    has_aux: bool = False,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, ValueAndGrad[Any, Any]]: ...
@overload
def value_and_grad(
    f: Callable[P, Any],
    argnums: ArgNums = None,
    *,
    argnames: ArgNames = None,
    has_aux: bool,
    unconnected: Unconnected = "raise",
) -> ChosenDerivatives[P, ValueAndGrad[Any, Any]]: ...
def value_and_grads(
    f: Callable[..., Any], *, has_aux: bool = False, unconnected: Unconnected = "raise"
) -> ValueAndDerivativeList:
    """Return value and gradients of ``f(x1, x2, ...)``, by a function ``g([x1, x2, ...], dy=None, **kwargs)``."""

@overload
def variable_grads(
    f: Callable[[], R],
    var_list: Sequence[Variable] | None = None,
    *,
    has_aux: bool = False,
    sparse: Literal[False] = False,
) -> ValueAndGrads[R, dict[str, Tensor]]:
    """Return the value of ``f()`` and its gradients by the trainable variables it reads, as a dict by name."""

@overload
def variable_grads(
    f: Callable[[], R],
    var_list: Sequence[Variable] | None = None,
    *,
    has_aux: bool = False,
    sparse: bool | Callable[[Variable], bool] = False,
) -> ValueAndGrads[R, dict[str, Any]]: ...
@overload
def gradients(
    ys: Tensor | Sequence[Tensor],
    xs: Tensor | Sequence[Tensor],
    grad_ys: TensorLike | Sequence[TensorLike | None] | None = None,
    *,
    unconnected_gradients: Literal["zero", "raise"],
    stop_gradients: Tensor | Sequence[Tensor] | None = None,
) -> list[Tensor]:
    """Return the gradient of the sum of all ``ys`` by each of ``xs``, as a list, while a tape is recording."""

@overload
def gradients(
    ys: Tensor | Sequence[Tensor],
    xs: Tensor | Sequence[Tensor],
    grad_ys: TensorLike | Sequence[TensorLike | None] | None = None,
    *,
    unconnected_gradients: Unconnected = "none",
    stop_gradients: Tensor | Sequence[Tensor] | None = None,
) -> list[Any]: ...

class GradientTape:
    """Records what is computed in a ``with`` block, and differentiates it afterwards."""

    def __init__(self, persistent: bool = False, watch_accessed_variables: bool = True) -> None: ...
    def __enter__(self) -> GradientTape: ...
    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None: ...
    def watch(self, tensor: Any) -> None:
        """Follow a tensor or variable, or all in a list or tree, from now on until the end of the block."""
    def stop_recording(self) -> AbstractContextManager[None]:
        """Record nothing that is computed in this block."""
    def reset(self) -> None:
        """Forget what was recorded, and what was watched; go on recording if in the block."""
    def watched_variables(self) -> tuple[Variable, ...]:
        """Return the variables that were followed, in the order in which they were first read."""
    @overload
    def gradient(
        self,
        target: Any,
        sources: Tensor,
        output_gradients: Any = None,
        unconnected_gradients: Unconnected = "none",
        *,
        sparse: bool = False,
    ) -> Tensor:
        """Return the gradient of the target, or of the sum of a tree of targets, by each source, in their structure."""
    @overload
    def gradient(
        self,
        target: Any,
        sources: Sequence[Tensor],
        output_gradients: Any = None,
        unconnected_gradients: Unconnected = "none",
        *,
        sparse: bool = False,
    ) -> list[Tensor]: ...
    @overload
    def gradient(
        self,
        target: Any,
        sources: X,
        output_gradients: Any = None,
        unconnected_gradients: Unconnected = "none",
        *,
        sparse: bool = False,
    ) -> X: ...
    @overload
    def jacobian(self, target: Any, sources: Tensor, unconnected_gradients: Unconnected = "none") -> Tensor:
        """Return the derivative of every element of the target by every element of each source."""
    @overload
    def jacobian(self, target: Any, sources: Any, unconnected_gradients: Unconnected = "none") -> Any: ...
    def batch_jacobian(self, target: Tensor, source: Tensor, unconnected_gradients: Unconnected = "none") -> Tensor:
        """The jacobian of each example by itself, where axis 0 of the target and of the source are the examples."""

# ---- both modes, matrices of derivatives

@overload
def jvp(
    f: Callable[..., R],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[False] = False,
    **kwargs: Any,
) -> tuple[R, R]:
    """Return the value of ``f(*args, **kwargs)`` and its derivative in the direction of ``tangents``."""

@overload
def jvp(
    f: Callable[..., tuple[R, A]],
    args: Sequence[Any],
    tangents: Sequence[Any],
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[True],
    **kwargs: Any,
) -> tuple[R, R, A]: ...
@overload
def vjp(
    f: Callable[..., R],
    /,
    *args: Any,
    argnums: None = None,
    argnames: None = None,
    has_aux: Literal[False] = False,
    **kwargs: Any,
) -> tuple[R, Callable[[Any], tuple[Any, ...]]]:
    """Return the value of ``f(*args, **kwargs)``, and ``pull``, which maps a cotangent to those of ``args``."""

@overload
def vjp(
    f: Callable[..., R],
    /,
    *args: Any,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[False] = False,
    **kwargs: Any,
) -> tuple[R, Callable[[Any], Any]]: ...
@overload
def vjp(
    f: Callable[..., tuple[R, A]],
    /,
    *args: Any,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[True],
    **kwargs: Any,
) -> tuple[R, Callable[[Any], Any], A]: ...
@overload
def linearize(
    f: Callable[..., R],
    /,
    *args: Any,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[False] = False,
    **kwargs: Any,
) -> tuple[R, Callable[..., R]]:
    """Return the value of ``f(*args, **kwargs)``, and ``push``, which maps tangents of ``args`` to its tangent."""

@overload
def linearize(
    f: Callable[..., tuple[R, A]],
    /,
    *args: Any,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: Literal[True],
    **kwargs: Any,
) -> tuple[R, Callable[..., R], A]: ...
@overload
def jacobian(
    f: Derivative[X0, P, Any],
    mode: Mode = "auto",
    *,
    argnums: K = ...,
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> Derivative[X0, P, K]: ...
@overload
def jacobian(
    f: Derivative[Any, ..., Any],
    mode: Mode = "auto",
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: bool = False,
) -> ChosenDerivatives[..., Any]: ...
@overload
def jacobian(
    f: Callable[Concatenate[X0, P], Any],
    mode: Mode = "auto",
    *,
    argnums: K = ...,
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> Derivative[X0, P, K]: ...
@overload
def jacobian(
    f: TwoOrMore[P, T0, T1, Q],
    mode: Mode = "auto",
    *,
    argnums: Literal[1],
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> SecondDerivative[P, T0, T1, Q]: ...
@overload
def jacobian(
    f: Callable[P, Any],
    mode: Mode = "auto",
    *,
    argnums: int | Sequence[int],
    argnames: ArgNames = None,
    has_aux: bool = False,
) -> ChosenDerivatives[P, Any]: ...
@overload
def jacobian(
    f: Callable[P, Any],
    mode: Mode = "auto",
    *,
    argnums: None = None,
    argnames: str | Sequence[str],
    has_aux: bool = False,
) -> ChosenDerivatives[P, Any]: ...
@overload
def jacobian(
    f: Callable[P, Any],
    mode: Mode = "auto",
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    has_aux: bool,
) -> ChosenDerivatives[P, Any]: ...
@overload
def hessian(
    f: Derivative[X0, P, Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> Derivative[X0, P, K]: ...
@overload
def hessian(
    f: Derivative[Any, ..., Any],
    argnums: ArgNums = None,
    *,
    argnames: ArgNames = None,
    has_aux: bool = False,
) -> ChosenDerivatives[..., Any]: ...
@overload
def hessian(
    f: Callable[Concatenate[X0, P], Any],
    argnums: K = ...,
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> Derivative[X0, P, K]:
    """Return ``H(x, **kwargs)``: the second derivatives of ``f(x)``, by every pair of elements of ``x``."""

@overload
def hessian(
    f: TwoOrMore[P, T0, T1, Q],
    argnums: Literal[1],
    *,
    argnames: None = None,
    has_aux: Literal[False] = False,
) -> SecondDerivative[P, T0, T1, Q]: ...
@overload
def hessian(
    f: Callable[P, Any], argnums: int | Sequence[int], *, argnames: ArgNames = None, has_aux: bool = False
) -> ChosenDerivatives[P, Any]: ...
@overload
def hessian(
    f: Callable[P, Any], argnums: None = None, *, argnames: str | Sequence[str], has_aux: bool = False
) -> ChosenDerivatives[P, Any]: ...
@overload
def hessian(
    f: Callable[P, Any], argnums: ArgNums = None, *, argnames: ArgNames = None, has_aux: bool
) -> ChosenDerivatives[P, Any]: ...
@overload
def hvp(
    f: Callable[..., Any],
    x: Tensor,
    v: TensorLike,
    /,
    *,
    argnums: ArgNums = None,
    argnames: ArgNames = None,
    **kwargs: Any,
) -> Tensor:
    """Return the hessian of ``f`` at ``x`` times ``v``, a tree like ``x``, at the cost of a few gradients."""

@overload
def hvp(
    f: Callable[..., Any], x: X, v: Any, /, *, argnums: ArgNums = None, argnames: ArgNames = None, **kwargs: Any
) -> X: ...
def sparse_jacobian(f: Callable[P, Any], *, argnums: ArgNums = None, argnames: ArgNames = None) -> Callable[P, Any]:
    """Return ``J(x)``: the jacobian of ``f(x)`` as a sparse array of SciPy's (CSR), a row per result."""

def sparse_hessian(f: Callable[P, Any], *, argnums: ArgNums = None, argnames: ArgNames = None) -> Callable[P, Any]:
    """Return ``H(x)``: the hessian of ``f(x)``, which is one number, as a sparse array of SciPy's (CSR)."""

# ---- other transforms

@overload
def vmap(f: D, in_axes: Any = 0, out_axes: Any = 0) -> D:
    """Return a function that applies ``f``, written for one example, to many examples at once."""

@overload
def vmap(f: Callable[P, R], in_axes: Any = 0, out_axes: Any = 0) -> Callable[P, R]: ...
def recompute_grad(f: F) -> F:
    """Return ``f`` with gradient checkpointing: only its inputs are kept, the rest is computed again."""

checkpoint = recompute_grad

@overload
def compile(
    f: ValueAndDerivative[X0, P, K],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
    device: Any = None,
    threads: int | None = None,
    cache: bool = True,
) -> CompiledValueAndDerivative[X0, P, K]:
    """Return ``f`` compiled to machine code; it is traced once for each signature of shapes and dtypes."""

@overload
def compile(
    f: Derivative[X0, P, K],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
    device: Any = None,
    threads: int | None = None,
    cache: bool = True,
) -> CompiledDerivative[X0, P, K]: ...
@overload
def compile(
    f: Callable[P, R],
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
    device: Any = None,
    threads: int | None = None,
    cache: bool = True,
) -> CompiledFunction[P, R]: ...
@overload
def compile(
    f: None = None,
    *,
    static_argnums: int | Sequence[int] = (),
    static_argnames: str | Sequence[str] = (),
    backend: Backend = "auto",
    device: Any = None,
    threads: int | None = None,
    cache: bool = True,
) -> Callable[[Callable[P, R]], CompiledFunction[P, R]]: ...

# ---- gradients of one's own

class CustomGrad(Protocol):
    """``custom_grad(check=True)``: the decorator."""

    @overload
    def __call__(self, f: Callable[[X1, Save], tuple[R, Any]], /) -> CustomFunction[[X1], R]: ...
    @overload
    def __call__(self, f: Callable[[X1, X2, Save], tuple[R, Any]], /) -> CustomFunction[[X1, X2], R]: ...
    @overload
    def __call__(self, f: Callable[[X1, X2, X3, Save], tuple[R, Any]], /) -> CustomFunction[[X1, X2, X3], R]: ...
    @overload
    def __call__(self, f: Callable[P, tuple[R, Any]], /) -> CustomFunction[P, R]: ...

@overload
def custom_grad(
    f: Callable[[X1, Save], tuple[R, Any]], *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> CustomFunction[[X1], R]:
    """Return a function with a custom gradient, from ``f(*inputs, save)`` that returns ``(value, grad_func)``."""

@overload
def custom_grad(
    f: Callable[[X1, X2, Save], tuple[R, Any]], *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> CustomFunction[[X1, X2], R]: ...
@overload
def custom_grad(
    f: Callable[[X1, X2, X3, Save], tuple[R, Any]], *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> CustomFunction[[X1, X2, X3], R]: ...
@overload
def custom_grad(
    f: Callable[P, tuple[R, Any]], *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> CustomFunction[P, R]: ...
@overload
def custom_grad(f: None = None, *, check: bool = False, jvp: Callable[..., Any] | None = None) -> CustomGrad: ...
@overload
def custom_gradient(
    f: Callable[P, tuple[R, Any]], *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> CustomFunction[P, R]:
    """Return a function with a custom gradient, from ``f(*args, **kwargs)`` that returns ``(value, grad_fn)``."""

@overload
def custom_gradient(
    f: None = None, *, check: bool = False, jvp: Callable[..., Any] | None = None
) -> Callable[[Callable[P, tuple[R, Any]]], CustomFunction[P, R]]: ...
@overload
def custom_jvp(f: Callable[P, R], *, jvp: Callable[..., Any] | None = None) -> CustomFunction[P, R]:
    """Return ``f`` with a custom tangent, from which the gradient follows by transposition."""

@overload
def custom_jvp(
    f: None = None, *, jvp: Callable[..., Any] | None = None
) -> Callable[[Callable[P, R]], CustomFunction[P, R]]: ...
def custom_root(f: Callable[Concatenate[X0, P], Any], solve: Callable[..., Any]) -> Callable[Concatenate[X0, P], X0]:
    """Return ``root(x0, *params)``: the solution of ``f(x, *params) = 0`` that ``solve`` finds, differentiable."""

def custom_fixed_point(
    f: Callable[Concatenate[X0, P], X0], solve: Callable[..., Any] | None = None
) -> Callable[Concatenate[X0, P], X0]:
    """Return ``point(x0, *params)``: the solution of ``x = f(x, *params)`` that ``solve`` finds, differentiable."""

def register_gradient(name: str) -> Callable[[F], F]:
    """Give a gradient a name, by which ``override_gradient`` finds it."""

def override_gradient(gradients: Mapping[str, str]) -> AbstractContextManager[None]:
    """Give the named ops the gradients that ``register_gradient`` registered, in this block and thread."""

def grad_pass_through(f: F) -> F:
    """Return ``f`` with its value and the gradient of the identity."""

def straight_through(f: F) -> F:
    """Return ``f`` with the derivative of the identity: the straight-through estimator."""

# ---- the value as it is, and the gradient changed

@overload
def stop_gradient(x: Tensor | complex) -> Tensor:
    """Return ``x`` as a constant: no gradient passes through it."""

@overload
def stop_gradient(x: X) -> X: ...
@overload
def scale_gradient(x: Tensor, factor: TensorLike) -> Tensor:
    """Return ``x``, whose cotangent is multiplied by ``factor``."""

@overload
def scale_gradient(x: X, factor: TensorLike) -> X: ...
@overload
def reverse_gradient(x: Tensor, factor: TensorLike = 1.0) -> Tensor:
    """Return ``x``, whose cotangent is multiplied by ``-factor``: for training against an adversary."""

@overload
def reverse_gradient(x: X, factor: TensorLike = 1.0) -> X: ...
@overload
def clip_gradient(x: Tensor, low: TensorLike | None, high: TensorLike | None) -> Tensor:
    """Return ``x``, whose cotangent is clipped to lie between ``low`` and ``high``."""

@overload
def clip_gradient(x: X, low: TensorLike | None, high: TensorLike | None) -> X: ...
@overload
def clip_gradient_norm(x: Tensor, limit: TensorLike) -> Tensor:
    """Return ``x``, whose cotangent is scaled down to the norm ``limit`` where its norm is larger."""

@overload
def clip_gradient_norm(x: X, limit: TensorLike) -> X: ...
@overload
def tap_gradient(x: Tensor, callback: Callable[[Tensor], Any]) -> Tensor:
    """Return ``x``; in every backward pass ``callback`` is called with its cotangent."""

@overload
def tap_gradient(x: X, callback: Callable[[Any], Any]) -> X: ...

# ---- loops and branches

C = TypeVar("C")
Y = TypeVar("Y")

def scan(
    f: Callable[[Any, Any], tuple[Any, Y]],
    carry: C,
    xs: Any = None,
    length: int | None = None,
    reverse: bool = False,
    unroll: int = 1,
    recompute: bool = False,
) -> tuple[C, Y]: ...
def map(f: Callable[[Any], Y], xs: Any) -> Y: ...
def fori_loop(lo: Any, hi: Any, body: Callable[[Any, Any], Any], carry: C, max_steps: int | None = None) -> C: ...
def while_loop(cond: Callable[[Any], Any], body: Callable[[Any], Any], carry: C, max_steps: int | None = None) -> C: ...
def cond(pred: Any, true_fn: Callable[..., Y], false_fn: Callable[..., Y], *operands: Any) -> Y: ...
def switch(index: Any, branches: Sequence[Callable[..., Y]], *operands: Any) -> Y: ...
