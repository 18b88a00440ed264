"""The libraries that compiled.py and larger.py compare: what each makes of a program, behind one interface.

A program is ``f(n, *parameters, *data)`` and gives a number; ``n`` has the functions of one library: those of NumPy
under NumPy's names, and a few more, each as that library's own documentation would write it.  What is timed is what a
library makes of it: the value and the gradients by the parameters, the value alone, a step of gradient descent, a
product with the hessian, gradients for each example.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.fft  # which NumPy loads when it is first used, so that vars(np) lacks it until then
from peers import Jax, Torch

import pullback as pb

RATE = 0.01  # of gradient descent
GRADIENTS, VALUE, UPDATE, VARIABLES, HESSIAN, EXAMPLES = (
    "gradients", "value", "update", "variables", "hessian", "examples",
)  # fmt: skip


@dataclass(frozen=True)
class Program:
    key: str
    title: str
    bar: float  # jax.jit's time over ours must be at least this
    f: Callable[..., Any]
    data: Callable[[], tuple[list[Any], list[Any]]]  # parameters, and the rest
    does: str = GRADIENTS
    tolerance: float = 2e-4  # relative to the largest element
    threads: float = 0.0  # how much quicker two threads must be than one, if there is a bar
    jax: Callable[..., Any] | None = None  # as users of jax write it, where that is another text


def loop(step: Callable[..., Any], carry: Any, xs: Any, length: int | None = None) -> Any:
    """Return a loop of Python that gives what jax.lax.scan gives."""
    ys = []
    for t in range(len(xs) if length is None else length):
        carry, y = step(carry, None if xs is None else xs[t])
        ys.append(y)
    return carry, None if ys[0] is None else np.stack(ys)


class Ours:
    """NumPy's functions wherever it has them, compiled."""

    name = "pullback"

    def __init__(self, compile: Callable[..., Any]) -> None:
        def labelled_loss(logits: Any, labels: Any) -> Any:
            return -np.mean(np.take_along_axis(pb.log_softmax(logits), labels[:, None], 1))

        self.compile = compile
        self.n = SimpleNamespace(**vars(np))
        vars(self.n).update(
            sigmoid=pb.sigmoid, relu=pb.relu, gelu=pb.gelu, erf=pb.erf, softmax=pb.softmax, log_softmax=pb.log_softmax,
            layer_norm=lambda x, s, o: pb.layer_norm(x, scale=s, offset=o, variance_epsilon=1e-5),
            log_sum_exp=pb.log_sum_exp, cross_entropy=labelled_loss, gather=pb.gather,
            one_hot=lambda i, size, dtype: pb.one_hot(i, size, dtype=dtype),
            conv2d=lambda x, w: pb.conv2d(x, w, 1, "same"), max_pool=lambda x: pb.max_pool(x, 2, 2),
            top_k=pb.topk, solve_lower=pb.linalg.triangular_solve, scan=pb.scan, gammaln=pb.special.gammaln,
            segment_sum=pb.unsorted_segment_sum, segment_max=pb.unsorted_segment_max, stop_gradient=pb.stop_gradient,
        )  # fmt: skip

    def function(self, p: Program, count: int) -> Callable[..., Any]:
        """Return what is compiled: a function of all arguments, of which the first ``count`` are parameters."""
        f = partial(p.f, self.n)

        def gradients(*args: Any) -> Any:
            value, grads = pb.value_and_grads(lambda *params: f(*params, *args[count:]))(list(args[:count]))
            return value, *grads

        def update(*args: Any) -> Any:
            value, *grads = gradients(*args)
            return value, *(w - RATE * g for w, g in zip(args[:count], grads, strict=True))

        def hessian(*args: Any) -> Any:
            data, v = args[count:-count], args[-count:]
            return pb.hvp(lambda params: f(*params, *data), list(args[:count]), list(v))

        def examples(*args: Any) -> Any:
            one = lambda *data: pb.grads(lambda *params: f(*params, *data))(list(args[:count]))
            return pb.vmap(one)(*args[count:])

        return {GRADIENTS: gradients, VALUE: f, UPDATE: update, HESSIAN: hessian, EXAMPLES: examples}[p.does]

    def call(self, p: Program, params: list[Any], data: list[Any]) -> Callable[[], Any]:
        if p.does != VARIABLES:
            step, args = self.compile(self.function(p, len(params))), (*params, *data)
            return lambda: step(*args)
        train, variables = self.trained(p, params)
        return lambda: (train(*data), *variables)

    def trained(self, p: Program, params: list[Any]) -> tuple[Any, list[Any]]:
        """Return a step of gradient descent, and the variables that it changes."""
        variables = [pb.variable(w) for w in params]

        @self.compile
        def train(*data: Any) -> Any:
            value, grads = pb.variable_grads(lambda: p.f(self.n, *variables, *data))
            for v in variables:
                v.assign(v - RATE * grads[v.name])
            return value

        return train, variables

    def lowered(self, p: Program, params: list[Any], data: list[Any]) -> Any:
        if p.does == VARIABLES:
            return self.trained(p, params)[0].lower(*data)
        return self.compile(self.function(p, len(params))).lower(*params, *data)


class Jit(Jax):
    """jax.jit, which is given its own arrays."""

    name = "jax"

    def __init__(self) -> None:
        super().__init__()
        jax, jnp = self.jax, self.jax.numpy

        def norm(x: Any, scale: Any, offset: Any) -> Any:
            centred = x - jnp.mean(x, 1, keepdims=True)
            return centred * jax.lax.rsqrt(jnp.mean(centred**2, 1, keepdims=True) + 1e-5) * scale + offset

        def labelled_loss(logits: Any, labels: Any) -> Any:
            return -jnp.mean(jnp.take_along_axis(jax.nn.log_softmax(logits), labels[:, None], 1))

        self.n = SimpleNamespace(**{**vars(jnp), **vars(self.n)})
        vars(self.n).update(
            erf=jax.scipy.special.erf, gelu=partial(jax.nn.gelu, approximate=False), top_k=jax.lax.top_k,
            solve_lower=lambda a, b: jax.scipy.linalg.solve_triangular(a, b, lower=True),
            softmax=jax.nn.softmax, log_softmax=jax.nn.log_softmax, layer_norm=norm, cross_entropy=labelled_loss,
            scan=jax.lax.scan, gammaln=jax.scipy.special.gammaln, stop_gradient=jax.lax.stop_gradient,
            segment_sum=jax.ops.segment_sum, segment_max=jax.ops.segment_max,
            one_hot=lambda i, size, dtype: jax.nn.one_hot(i, size, dtype=dtype),
        )  # fmt: skip

    def jitted(self, p: Program, count: int) -> Any:
        jax, f, every = self.jax, partial(p.jax or p.f, self.n), tuple(range(count))

        def gradients(*args: Any) -> Any:
            value, grads = jax.value_and_grad(f, every)(*args)
            return value, *grads

        def update(*args: Any) -> Any:
            value, *grads = gradients(*args)
            return value, *(w - RATE * g for w, g in zip(args[:count], grads, strict=True))

        def hessian(*args: Any) -> Any:
            data, v = args[count:-count], args[-count:]
            slopes = jax.grad(lambda params: f(*params, *data))
            return jax.jvp(slopes, (list(args[:count]),), (list(v),))[1]

        def examples(*args: Any) -> Any:
            axes = [None] * count + [0] * (len(args) - count)
            return jax.vmap(jax.grad(f, every), axes)(*args)

        ways = {GRADIENTS: gradients, VALUE: f, UPDATE: update, VARIABLES: update, HESSIAN: hessian, EXAMPLES: examples}
        return jax.jit(ways[p.does])

    def call(self, p: Any, params: Any, data: Any) -> Callable[[], Any]:
        step, args = self.jitted(p, len(params)), [self.constant(a) for a in (*params, *data)]
        return lambda: self.jax.block_until_ready(step(*args))

    def temporaries(self, p: Program, params: list[Any], data: list[Any]) -> int:
        """Bytes that XLA needs besides arguments and results."""
        args = [self.constant(a) for a in (*params, *data)]
        return int(self.jitted(p, len(params)).lower(*args).compile().memory_analysis().temp_size_in_bytes)


class Eager(Torch):
    """torch op by op, or its compiler's code for the function that is differentiated."""

    name = "torch"

    def __init__(self, compiled: bool = False, threads: int = 1) -> None:
        super().__init__()
        torch = self.torch
        torch.set_num_threads(threads)
        self.compiled = compiled
        functional = torch.nn.functional

        vars(self.n).update(
            exp=torch.exp, log=torch.log, log1p=torch.log1p, sqrt=torch.sqrt, erf=torch.erf, scan=loop,
            softmax=lambda x: torch.softmax(x, -1), log_softmax=lambda x: torch.log_softmax(x, -1),
            layer_norm=lambda x, s, o: functional.layer_norm(x, x.shape[1:], s, o, 1e-5),
            one_hot=lambda i, size, dtype: functional.one_hot(i, size).to(dtype),
            cross_entropy=functional.cross_entropy, gammaln=torch.lgamma,
        )  # fmt: skip

    def constant(self, x: Any) -> Any:
        return super().constant(x if x.dtype.kind == "f" else x.astype("i8"))  # labels are long in torch

    def call(self, p: Any, params: Any, data: Any) -> Callable[[], Any]:
        torch, every = self.torch, tuple(range(len(params)))
        ws, ds = [self.constant(w) for w in params], [self.constant(d) for d in data]
        f = partial(p.f, self.n)
        if p.does == HESSIAN:
            vs, ds = tuple(ds[-len(ws) :]), ds[: -len(ws)]
            slopes = torch.func.grad(lambda *ws: f(*ws, *ds), every)
            made = lambda *ws: torch.func.jvp(slopes, ws, vs)[1]
            product = torch.compile(made, dynamic=False) if self.compiled else made
            return lambda: product(*ws)
        if p.does == EXAMPLES:
            made = torch.func.vmap(torch.func.grad(f, every), (*[None] * len(ws), *[0] * len(ds)))
            slopes = torch.compile(made, dynamic=False) if self.compiled else made
            return lambda: slopes(*ws, *ds)
        forward = torch.compile(f, dynamic=False) if self.compiled else f
        for w in ws:
            w.requires_grad_()

        def call() -> Any:
            value = forward(*ws, *ds)
            grads = torch.autograd.grad(value, ws)
            if p.does == GRADIENTS:
                return value.detach(), *grads
            with torch.no_grad():
                if p.does == UPDATE:
                    return value.detach(), *(w - RATE * g for w, g in zip(ws, grads, strict=True))
                return value.detach(), *(w.sub_(g, alpha=RATE) for w, g in zip(ws, grads, strict=True))

        return call


def compute_expected(p: Program, params: list[Any], data: list[Any]) -> list[Any]:
    """Return the results in float64, op by op."""
    wide = lambda x: x.astype("f8") if x.dtype.kind == "f" else x
    does = UPDATE if p.does == VARIABLES else p.does
    ours = Ours(lambda f: f)
    ours.n.scan = loop  # a carry that begins in float32 may go on in float64
    function = ours.function(replace(p, does=does), len(params))
    return list(function(*map(wide, params), *map(wide, data)))
