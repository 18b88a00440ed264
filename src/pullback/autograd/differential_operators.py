"""Gradients, Jacobians and products with them, in autograd's signatures."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from pullback.autograd.core import make_jvp as _make_jvp  # autograd's own names, which other packages use
from pullback.autograd.core import make_vjp as _make_vjp
from pullback.autograd.core import vspace
from pullback.autograd.wrap_util import unary_to_nary, wraps
from pullback.core.tensor import Tensor
from pullback.transforms.checkpoint import checkpoint as recompute
from pullback.transforms.jacobian import jacobian as full_jacobian

if TYPE_CHECKING:
    from pullback.typing import Tree, Value

make_vjp = unary_to_nary(_make_vjp)
make_jvp = unary_to_nary(_make_jvp)


def _value_and_grad(face: str, fun: Callable[..., Any], x: Tree) -> tuple[Any, Any]:
    vjp, ans = _make_vjp(fun, x)
    if isinstance(ans, list | tuple | dict) or np.size(ans) != 1 or np.result_type(ans).kind not in "fiu":
        raise TypeError(
            f"{face} only applies to real scalar-output functions. Try jacobian, elementwise_grad or holomorphic_grad."
        )
    return ans, vjp(np.ones(np.shape(ans), np.result_type(ans, np.float16)))


@unary_to_nary
def grad(fun: Callable[..., Any], x: Tree) -> Any:
    """
    Returns a function which computes the gradient of `fun`.

    fun: a function whose value is one real number.
    argnum: the number of the argument to differentiate by, or several in a tuple or list.

    >>> import numpy as np
    >>> grad(lambda x, y: np.sum(x * y), 1)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([1., 2.])
    """
    return _value_and_grad("Grad", fun, x)[1]


@unary_to_nary
def value_and_grad(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the value and the gradient, as scipy.optimize takes them with jac=True.

    fun: a function whose value is one real number.
    argnum: the number of the argument to differentiate by, or several in a tuple or list.

    >>> value_and_grad(lambda x: x**2)(3.0)
    (np.float64(9.0), np.float64(6.0))
    """
    return _value_and_grad("value_and_grad", fun, x)


@unary_to_nary
def elementwise_grad(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the sums of the columns of the Jacobian in one pass.

    fun: a function of real values; if its elements depend on one element each, these are its derivatives.
    argnum: the number of the argument to differentiate by.

    >>> import numpy as np
    >>> elementwise_grad(lambda x: x**2)(np.array([1.0, 2.0]))
    array([2., 4.])
    """
    vjp, ans = _make_vjp(fun, x)
    if vspace(ans).iscomplex:
        raise TypeError("Elementwise_grad only applies to real-output functions.")
    return vjp(vspace(ans).ones())


egrad = elementwise_grad


@unary_to_nary
def deriv(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the derivative by one number in forward mode.

    fun: a function of numbers.
    argnum: the number of the argument to differentiate by.

    >>> deriv(lambda x: x**2)(3.0)
    np.float64(6.0)
    """
    return _make_jvp(fun, x)(vspace(x).ones())[1]


@unary_to_nary
def jacobian(fun: Callable[..., Any], x: Value | float) -> Any:
    """Returns a function which computes the Jacobian, of the shape of the value followed by that of the argument.

    fun: a function from an array or number to an array or number.
    argnum: the number of the argument to differentiate by.

    >>> import numpy as np
    >>> jacobian(lambda x: x**2)(np.array([1.0, 2.0]))
    array([[2., 0.],
           [0., 4.]])
    """
    if np.iscomplexobj(x):
        vjp, ans = _make_vjp(fun, x)
        rows = [vjp(one) for one in vspace(ans).standard_basis()]
        return np.reshape(np.stack(rows), np.shape(ans) + np.shape(x))
    return full_jacobian(fun)(x if isinstance(x, Tensor | np.ndarray) else np.float64(x))


@unary_to_nary
def holomorphic_grad(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the complex derivative of a holomorphic function.

    fun: a function from complex numbers to one.
    argnum: the number of the argument to differentiate by.

    >>> holomorphic_grad(lambda z: z**2)(1.0 + 2.0j)
    np.complex128(2+4j)
    """
    if not vspace(x).iscomplex:
        warnings.warn("Input to holomorphic_grad is not complex", stacklevel=3)
    return grad(lambda z: np.real(fun(z)))(x)


def grad_named(fun: Callable[..., Any], argname: str) -> Callable[..., Any]:
    """Returns a function which computes the gradient by an argument that is given by name.

    fun: a function whose value is one real number.
    argname: the name of one of its positional parameters.

    >>> grad_named(lambda x, y: x * y, "y")(2.0, 3.0)
    np.float64(2.0)
    """
    gradient: Callable[..., Any] = grad(fun, inspect.getfullargspec(fun).args.index(argname))
    return gradient


@unary_to_nary
def hessian(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the matrix of second derivatives.

    fun: a function whose value is one real number.
    argnum: the number of the argument to differentiate by.

    >>> import numpy as np
    >>> hessian(lambda x: np.sum(x**3))(np.array([1.0, 2.0]))
    array([[ 6.,  0.],
           [ 0., 12.]])
    """
    return jacobian(jacobian(fun))(x)


@unary_to_nary
def make_hvp(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which gives the Hessian-vector product at a point as a function, and the gradient.

    fun: a function whose value is one real number.
    argnum: the number of the argument to differentiate by.

    >>> hvp, gradient = make_hvp(lambda x: x**3)(2.0)
    >>> hvp(1.0), gradient
    (np.float64(12.0), np.float64(12.0))
    """
    return _make_vjp(grad(fun), x)


def hessian_tensor_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Returns a function of ``(*args, tensor)`` which computes the Hessian times a tensor.

    fun: a function whose value is one real number.
    argnum: the number of the argument to differentiate by.

    >>> hessian_tensor_product(lambda x: x**3)(2.0, 1.0)
    np.float64(12.0)
    """
    gradient = grad(fun, argnum)

    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(gradient(*args[:-1], **kwargs), args[-1], np.ndim(args[-1]))

    product_gradient: Callable[..., Any] = grad(product, argnum)
    return product_gradient


hessian_vector_product = hessian_tensor_product


def tensor_jacobian_product(fun: Callable[..., Any], argnum: int = 0) -> Callable[..., Any]:
    """Returns a function of ``(*args, tensor)`` which computes a tensor times the Jacobian.

    fun: a function from an array to an array.
    argnum: the number of the argument to differentiate by.

    >>> import numpy as np
    >>> tensor_jacobian_product(lambda x: x**2)(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 2., 40.])
    """

    def product(*args: Any, **kwargs: Any) -> Any:
        return np.tensordot(args[-1], fun(*args[:-1], **kwargs), axes=np.ndim(args[-1]))

    derivative: Callable[..., Any] = jacobian(product, argnum)
    return derivative


vector_jacobian_product = tensor_jacobian_product


@unary_to_nary
def make_jvp_reversemode(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which gives the Jacobian-vector product at a point, by two backward passes.

    fun: a function from an array to an array.
    argnum: the number of the argument to differentiate by.

    >>> make_jvp_reversemode(lambda x: x**2)(3.0)(1.0)
    np.float64(6.0)
    """
    vjp, y = _make_vjp(fun, x)
    return _make_vjp(vjp, vspace(y).zeros())[0]


def _halve_sum_of_squares(x: Value) -> Any:
    return 0.5 * np.sum(x**2, axis=-1)


def make_ggnvp(
    f: Callable[..., Any], g: Callable[..., Any] = _halve_sum_of_squares, f_argnum: int = 0
) -> Callable[..., Any]:
    """Returns a function which gives products with the generalized Gauss-Newton matrix at a point.

    f: the inner function, from an array to an array.
    g: the outer one, whose value is one real number.
    f_argnum: the number of the argument of ``f`` to differentiate by.

    >>> import numpy as np
    >>> make_ggnvp(lambda x: 2.0 * x)(np.ones(2))(np.array([1.0, 0.0]))
    array([4., 0.])
    """

    @unary_to_nary
    def products(f: Callable[..., Any], x: Tree) -> Callable[[Any], Any]:
        f_vjp, f_x = _make_vjp(f, x)
        g_hvp, gradient = _make_vjp(grad(g), f_x)
        f_jvp, _ = _make_vjp(f_vjp, vspace(gradient).zeros())
        return lambda v: f_vjp(g_hvp(f_jvp(v)))

    product_of: Callable[..., Any] = products(f, f_argnum)
    return product_of


@unary_to_nary
def grad_and_aux(fun: Callable[..., Any], x: Tree) -> Any:
    """Returns a function which computes the gradient of the first of two results, and the second as it is.

    fun: a function that returns (value, aux).
    argnum: the number of the argument to differentiate by.

    >>> grad_and_aux(lambda x: (x**2, x + 1.0))(3.0)
    (np.float64(6.0), np.float64(4.0))
    """
    vjp, (ans, aux) = _make_vjp(lambda x: tuple(fun(x)), x)
    return vjp((vspace(ans).ones(), vspace(aux).zeros())), aux


def multigrad_dict(fun: Callable[..., Any]) -> Callable[..., dict[str, Any]]:
    """Returns a function which computes the gradients by all arguments, in a dict by their names.

    fun: a function whose value is one real number.

    >>> multigrad_dict(lambda x, y: x * y)(2.0, 3.0)
    {'x': np.float64(3.0), 'y': np.float64(2.0)}
    """
    signature = inspect.signature(fun)

    @wraps(fun, "multigrad_of_{fun}")
    def gradients(*args: object, **kwargs: object) -> dict[str, Any]:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()

        def run(arguments: dict[str, Any]) -> Any:
            filled = inspect.BoundArguments(signature, arguments)
            return fun(*filled.args, **filled.kwargs)

        found: dict[str, Any] = grad(run)(dict(bound.arguments))
        return found

    return gradients


def checkpoint(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Returns ``fun`` such that what it computes is not kept for the backward pass but computed again.

    fun: a function of arrays.

    >>> grad(checkpoint(lambda x: x**2))(3.0)
    np.float64(6.0)
    """
    wrapped: Callable[..., Any] = recompute(fun)
    return wrapped


# doctest does not look into what a decorator of another module made
__test__ = {f.__name__: f.__doc__ for f in (
    grad, value_and_grad, elementwise_grad, deriv, jacobian, holomorphic_grad, hessian, make_hvp, make_jvp_reversemode,
    grad_and_aux,
)}  # fmt: skip
