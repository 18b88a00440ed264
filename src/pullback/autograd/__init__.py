"""The interface of HIPS autograd: `from pullback.autograd import grad` for `from autograd import grad`."""

from pullback.autograd.builtins import dict as dict
from pullback.autograd.builtins import isinstance as isinstance
from pullback.autograd.builtins import list as list
from pullback.autograd.builtins import tuple as tuple
from pullback.autograd.builtins import type as type
from pullback.autograd.differential_operators import checkpoint as checkpoint
from pullback.autograd.differential_operators import deriv as deriv
from pullback.autograd.differential_operators import egrad as egrad
from pullback.autograd.differential_operators import elementwise_grad as elementwise_grad
from pullback.autograd.differential_operators import grad as grad
from pullback.autograd.differential_operators import grad_and_aux as grad_and_aux
from pullback.autograd.differential_operators import grad_named as grad_named
from pullback.autograd.differential_operators import hessian as hessian
from pullback.autograd.differential_operators import hessian_tensor_product as hessian_tensor_product
from pullback.autograd.differential_operators import hessian_vector_product as hessian_vector_product
from pullback.autograd.differential_operators import holomorphic_grad as holomorphic_grad
from pullback.autograd.differential_operators import jacobian as jacobian
from pullback.autograd.differential_operators import make_ggnvp as make_ggnvp
from pullback.autograd.differential_operators import make_hvp as make_hvp
from pullback.autograd.differential_operators import make_jvp as make_jvp
from pullback.autograd.differential_operators import make_jvp_reversemode as make_jvp_reversemode
from pullback.autograd.differential_operators import make_vjp as make_vjp
from pullback.autograd.differential_operators import multigrad_dict as multigrad_dict
from pullback.autograd.differential_operators import tensor_jacobian_product as tensor_jacobian_product
from pullback.autograd.differential_operators import value_and_grad as value_and_grad
from pullback.autograd.differential_operators import vector_jacobian_product as vector_jacobian_product
from pullback.autograd.primitives import primitive as primitive

__all__ = [
    "checkpoint", "deriv", "dict", "egrad", "elementwise_grad", "grad", "grad_and_aux", "grad_named", "hessian",
    "hessian_tensor_product", "hessian_vector_product", "holomorphic_grad", "isinstance", "jacobian", "list",
    "make_ggnvp", "make_hvp", "make_jvp", "make_jvp_reversemode", "make_vjp", "multigrad_dict", "primitive",
    "tensor_jacobian_product", "tuple", "type", "value_and_grad", "vector_jacobian_product",
]  # fmt: skip


def __dir__() -> list[str]:
    return sorted(__all__)
