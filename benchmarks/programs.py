"""The programs that compiled.py times: each written once, over the functions of a library under common names.

A program is ``f(n, *parameters, *data)`` and gives a number; ``n`` has the functions of one library, each as that
library's own documentation would write it.  What is timed is what a library makes of it (``Library``): the value and
the gradients by the parameters, a step of gradient descent, a product with the hessian, gradients for each example.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from images import gather_rows, gather_rows_data, network, network_data
from peers import Jax, Torch
from workloads import rosenbrock

import pullback as pb

RATE = 0.01  # of gradient descent
GRADIENTS, UPDATE, VARIABLES, HESSIAN, EXAMPLES = "gradients", "update", "variables", "hessian", "examples"


@dataclass(frozen=True)
class Program:
    key: str
    title: str
    bar: float  # jax.jit's time over ours must be at least this
    f: Callable[..., Any]
    data: Callable[[], tuple[list[Any], list[Any]]]  # parameters, and the rest
    does: str = GRADIENTS
    tolerance: float = 2e-4  # relative to the largest element
    threads: float = 0.0  # how much quicker two threads must be than one, if anything is asked


# ---- the programs


def chain(n, x):
    return n.sum(n.tanh(n.sin(x) * n.exp(-(x * x) * 0.5) + n.log(1.0 + x * x)))


def chain_without_sin(n, x):
    return n.sum(n.tanh(n.sigmoid(x) * n.exp(-(x * x) * 0.5) + n.log(1.0 + x * x)))


def polynomial(n, x):
    t = x * x + 1.0
    u = t * x - 2.0 * x
    w = u * u + t * 0.5
    return n.sum(w * x - u)


def cross_entropy(n, logits, labels):
    return n.cross_entropy(logits, labels)


def cross_entropy_one_hot(n, logits, labels):
    return -n.mean(n.sum(n.one_hot(labels, logits.shape[1], logits.dtype) * n.log_softmax(logits), 1))


def layer_norm(n, x, scale, offset, weights):
    return n.sum(n.layer_norm(x, scale, offset) * weights)


def log_sum_exp(n, x):
    return n.sum(n.log_sum_exp(x, 1))


def logistic_regression(n, w, x, y):
    return n.mean(n.log1p(n.exp(-y * (x @ w))))


def mlp(n, w1, b1, w2, b2, images, labels):
    hidden = n.tanh(images @ w1 + b1)
    return n.cross_entropy(hidden @ w2 + b2, labels)


def mlp_one_hot(n, w1, b1, w2, b2, image, label):
    scores = n.tanh(image @ w1 + b1) @ w2 + b2
    return n.log_sum_exp(scores, 0) - n.sum(scores * label)


def black_scholes(n, spot, strike, years, rate, volatility):
    spread = volatility * n.sqrt(years)
    d1 = (n.log(spot / strike) + (rate + volatility * volatility * 0.5) * years) / spread
    below = lambda x: 0.5 * (1.0 + n.erf(x * (1 / math.sqrt(2))))
    return n.sum(spot * below(d1) - strike * n.exp(-rate * years) * below(d1 - spread))


def recurrent(n, wx, wh, b, h, xs):
    for t in range(len(xs)):
        h = n.tanh(xs[t] @ wx + h @ wh + b)
    return n.sum(h * h)


def recurrent_scan(n, wx, wh, b, h, xs):
    h = n.scan(lambda h, x: n.tanh(x @ wx + h @ wh + b), h, xs)
    return n.sum(h * h)


def attention(n, wq, wk, wv, wo, x, target):
    batch, tokens, size = x.shape
    heads = 4
    split = lambda y: y.reshape((batch, tokens, heads, size // heads)).swapaxes(1, 2)
    q, k, v = split(x @ wq), split(x @ wk), split(x @ wv)
    weights = n.softmax(q @ k.swapaxes(2, 3) / math.sqrt(size // heads))
    mixed = (weights @ v).swapaxes(1, 2).reshape((batch, tokens, size))
    error = x + mixed @ wo - target
    return n.mean(error * error)


def mixture(n, means, log_scales, scores, points):
    z = (points[:, None, :] - means) / n.exp(log_scales)
    inside = -0.5 * n.sum(z * z, 2) - n.sum(log_scales, 1) - 0.5 * math.log(2 * math.pi) * points.shape[1]
    return n.mean(n.log_sum_exp(inside + n.log_softmax(scores), 1))


def identity(n, x):
    return n.sum(x)


# ---- their data


def draw(*shapes: tuple[int, ...], dtype: str = "f4", scale: float = 1.0) -> list[Any]:
    random = np.random.default_rng(0)
    return [(random.normal(size=shape) * scale).astype(dtype) for shape in shapes]


def vector(n: int, dtype: str) -> tuple[list[Any], list[Any]]:
    return draw((n,), dtype=dtype), []


def draw_labels(rows: int, classes: int) -> tuple[list[Any], list[Any]]:
    return draw((rows, classes)), [np.random.default_rng(1).integers(0, classes, rows).astype("i4")]


def regression_data(dtype: str) -> tuple[list[Any], list[Any]]:
    x, y, w = draw((10000, 100), (10000,), (100,), dtype=dtype)
    return [w * np.asarray(0.1, dtype)], [x, np.sign(y)]


def mlp_data(inputs: int, hidden: int, outputs: int, batch: int, one_hot: bool = False) -> tuple[list[Any], list[Any]]:
    w1, b1, w2, b2 = draw((inputs, hidden), (hidden,), (hidden, outputs), (outputs,), scale=0.05)
    (images,), (labels,) = draw((batch, inputs)), draw_labels(batch, outputs)[1]
    return [w1, b1, w2, b2], [images, np.eye(outputs, dtype="f4")[labels] if one_hot else labels]


def hessian_data() -> tuple[list[Any], list[Any]]:
    parameters, data = mlp_data(784, 256, 10, 128)
    return parameters, [*data, *draw(*(p.shape for p in parameters), scale=0.1)]


def options(n: int, dtype: str) -> tuple[list[Any], list[Any]]:
    random = np.random.default_rng(0)
    ranges = (80, 120), (80, 120), (0.2, 2), (0.01, 0.05), (0.1, 0.5)
    return [random.uniform(*ends, n).astype(dtype) for ends in ranges], []


def recurrent_data() -> tuple[list[Any], list[Any]]:
    *parameters, h, xs = draw((32, 32), (32, 32), (32,), (16, 32), (50, 16, 32), scale=0.3)
    return parameters, [h, xs]


def attention_data() -> tuple[list[Any], list[Any]]:
    return draw(*[(64, 64)] * 4, scale=0.125), draw((4, 64, 64), (4, 64, 64))


def mixture_data(dtype: str) -> tuple[list[Any], list[Any]]:
    *parameters, points = draw((8, 4), (8, 4), (8,), (20000, 4), dtype=dtype)
    return parameters, [points]


def pair_data(data: Callable[[], tuple[Any, Any]]) -> Callable[[], tuple[list[Any], list[Any]]]:
    return lambda: tuple(list(part) for part in data())  # type: ignore[return-value]


def list_programs() -> Iterator[Program]:
    """All of them, in the order of the table."""
    sizes = (10**2, 10**4, 10**5, 10**6, 10**7)
    for key, title, f, bar in (
        ("chain", "chain with sin", chain, 3.0), ("smooth", "chain without sin", chain_without_sin, 1.1),
        ("poly", "polynomial", polynomial, 3.0),
    ):  # fmt: skip
        for dtype in ("f4", "f8"):
            for n in sizes:
                data, quicker = partial(vector, n, dtype), 1.6 if n >= 10**5 and f is not polynomial else 0
                named = f"{title}, {dtype}, 1e{round(math.log10(n))}"
                yield Program(f"{key}/{dtype}/{n:.0e}".replace("+0", ""), named, bar, f, data, threads=quicker)
    labels = partial(draw_labels, 1024, 1000)
    yield Program("xent", "cross-entropy 1024×1000, labels", 1.2, cross_entropy, labels, threads=1.6)
    yield Program("xent/one_hot", "cross-entropy 1024×1000, one-hot", 1.2, cross_entropy_one_hot, labels)
    normed = lambda: (draw((1024, 768), (768,), (768,)), draw((1024, 768)))
    yield Program("layernorm", "layernorm 1024×768", 2.5, layer_norm, normed, threads=1.6)
    for dtype in ("f4", "f8"):
        rows = lambda dtype=dtype: (draw((1000, 1000), dtype=dtype), [])
        yield Program(f"logsumexp/{dtype}", f"logsumexp 1000×1000, {dtype}", 1.05, log_sum_exp, rows, threads=1.6)
    for dtype in ("f4", "f8"):
        data, title = partial(regression_data, dtype), f"logistic regression, {dtype}"
        yield Program(f"logreg/{dtype}", title, 1.8, logistic_regression, data, threads=1.6)
    digits = partial(mlp_data, 784, 256, 10, 128)
    yield Program("mlp", "MLP 784-256-10, SGD update", 1.1, mlp, digits, UPDATE)
    yield Program("mlp/variables", "MLP 784-256-10, SGD, variables", 1.1, mlp, digits, VARIABLES)
    for dtype in ("f4", "f8"):
        for n, bar in ((10**5, 1.5), (10**6, 4.0)):
            size = f"{n:.0e}".replace("+0", "")
            key, title = f"options/{dtype}/{size}", f"Black-Scholes, {dtype}, {size}"
            yield Program(key, title, bar, black_scholes, partial(options, n, dtype), threads=1.6)
    yield Program("rnn", "RNN 50 steps, unrolled", 4.0, recurrent, recurrent_data)
    yield Program("rnn/scan", "RNN 50 steps, jax.lax.scan", 4.0, recurrent_scan, recurrent_data)
    yield Program("rosenbrock", "Rosenbrock 1000", 20.0, rosenbrock, partial(vector, 1000, "f8"))
    yield Program("attention", "attention 4×64×64, 4 heads", 1.0, attention, attention_data)
    for dtype in ("f4", "f8"):
        yield Program(f"mixture/{dtype}", f"Gaussian mixture, {dtype}", 1.5, mixture, partial(mixture_data, dtype))
    yield Program("gather", "gather, scatter 4096 of 10000×64", 1.5, gather_rows, pair_data(gather_rows_data))
    yield Program("convnet", "conv net step, batch 16", 1.0, network, pair_data(network_data), UPDATE)
    yield Program("hessian", "MLP hessian-vector product", 1.0, mlp, hessian_data, HESSIAN)
    many = partial(mlp_data, 784, 256, 10, 128, True)
    yield Program("examples", "MLP per-example, 784-256-10, 128", 1.0, mlp_one_hot, many, EXAMPLES)
    few = partial(mlp_data, 64, 64, 10, 256, True)
    yield Program("examples/small", "MLP per-example, 64-64-10, 256", 1.0, mlp_one_hot, few, EXAMPLES)
    yield Program("call", "call overhead: sum, n = 10", 5.0, identity, partial(vector, 10, "f8"))
    yield Program("call/chain", "call overhead: chain, n = 10", 5.0, chain, partial(vector, 10, "f8"))


# ---- the libraries


class Ours:
    """NumPy's functions wherever it has them, compiled."""

    name = "pullback"

    def __init__(self, compile: Callable[..., Any]) -> None:
        def loop(step: Callable[..., Any], h: Any, xs: Any) -> Any:
            for t in range(len(xs)):
                h = step(h, xs[t])
            return h

        def labelled_loss(logits: Any, labels: Any) -> Any:
            return -np.mean(np.take_along_axis(pb.log_softmax(logits), labels[:, None], 1))

        self.compile = compile
        self.n = SimpleNamespace(
            sum=np.sum, mean=np.mean, sin=np.sin, tanh=np.tanh, exp=np.exp, log=np.log, log1p=np.log1p, sqrt=np.sqrt,
            sigmoid=pb.sigmoid, relu=pb.relu, erf=pb.erf, softmax=pb.softmax, log_softmax=pb.log_softmax,
            layer_norm=lambda x, s, o: pb.layer_norm(x, scale=s, offset=o, variance_epsilon=1e-5),
            log_sum_exp=pb.log_sum_exp, cross_entropy=labelled_loss, gather=pb.gather,
            one_hot=lambda i, size, dtype: pb.one_hot(i, size, dtype=dtype),
            conv2d=lambda x, w: pb.conv2d(x, w, 1, "same"), max_pool=lambda x: pb.max_pool(x, 2, 2), scan=loop,
        )  # fmt: skip

    def function(self, p: Program, count: int) -> Callable[..., Any]:
        """What is compiled: a function of all arguments, of which the first ``count`` are parameters."""
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

        return {GRADIENTS: gradients, UPDATE: update, HESSIAN: hessian, EXAMPLES: examples}[p.does]

    def call(self, p: Program, params: list[Any], data: list[Any]) -> Callable[[], Any]:
        if p.does != VARIABLES:
            step, args = self.compile(self.function(p, len(params))), (*params, *data)
            return lambda: step(*args)
        train, variables = self.trained(p, params)
        return lambda: (train(*data), *variables)

    def trained(self, p: Program, params: list[Any]) -> tuple[Any, list[Any]]:
        """A step of gradient descent, and the variables that it changes."""
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

        vars(self.n).update(
            exp=jnp.exp, log=jnp.log, log1p=jnp.log1p, sqrt=jnp.sqrt, erf=jax.scipy.special.erf,
            softmax=jax.nn.softmax, log_softmax=jax.nn.log_softmax, layer_norm=norm, cross_entropy=labelled_loss,
            one_hot=lambda i, size, dtype: jax.nn.one_hot(i, size, dtype=dtype),
            scan=lambda step, h, xs: jax.lax.scan(lambda h, x: (step(h, x), None), h, xs)[0],
        )  # fmt: skip

    def jitted(self, p: Program, count: int) -> Any:
        jax, f, every = self.jax, partial(p.f, self.n), tuple(range(count))

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

        ways = {GRADIENTS: gradients, UPDATE: update, VARIABLES: update, HESSIAN: hessian, EXAMPLES: examples}
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

        def loop(step: Callable[..., Any], h: Any, xs: Any) -> Any:
            for x in xs:
                h = step(h, x)
            return h

        vars(self.n).update(
            exp=torch.exp, log=torch.log, log1p=torch.log1p, sqrt=torch.sqrt, erf=torch.erf, scan=loop,
            softmax=lambda x: torch.softmax(x, -1), log_softmax=lambda x: torch.log_softmax(x, -1),
            layer_norm=lambda x, s, o: functional.layer_norm(x, x.shape[1:], s, o, 1e-5),
            one_hot=lambda i, size, dtype: functional.one_hot(i, size).to(dtype),
            cross_entropy=functional.cross_entropy,
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
    """The results in float64, op by op."""
    wide = lambda x: x.astype("f8") if x.dtype.kind == "f" else x
    does = UPDATE if p.does == VARIABLES else p.does
    plain = Program(p.key, p.title, p.bar, p.f, p.data, does)
    function = Ours(lambda f: f).function(plain, len(params))
    return list(function(*map(wide, params), *map(wide, data)))
