"""The programs that compiled.py times, each written once over the functions of a library, as libraries.py says."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
from images import gather_rows, gather_rows_data, network, network_data
from libraries import EXAMPLES, HESSIAN, UPDATE, VARIABLES, Program
from workloads import rosenbrock

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
    h, _ = n.scan(lambda h, x: (n.tanh(x @ wx + h @ wh + b), None), h, xs)
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
    """Yield all of them, in the order of the table."""
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
