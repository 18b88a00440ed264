"""The extension interface of autograd: primitives, their rules, and vector spaces."""

from pullback.autograd.primitives import def_linear as def_linear
from pullback.autograd.primitives import defjvp as defjvp
from pullback.autograd.primitives import defjvp_argnum as defjvp_argnum
from pullback.autograd.primitives import defjvp_argnums as defjvp_argnums
from pullback.autograd.primitives import defvjp as defvjp
from pullback.autograd.primitives import defvjp_argnum as defvjp_argnum
from pullback.autograd.primitives import defvjp_argnums as defvjp_argnums
from pullback.autograd.primitives import primitive as primitive
from pullback.autograd.tracer import Box as Box
from pullback.autograd.tracer import notrace_primitive as notrace_primitive
from pullback.autograd.tracer import refuse_name
from pullback.autograd.tracer import register_notrace as register_notrace
from pullback.autograd.vector_spaces import VSpace as VSpace
from pullback.autograd.vector_spaces import vspace as vspace


def __getattr__(name: str) -> object:
    raise refuse_name(__name__, name)
