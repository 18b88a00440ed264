"""The nine trainings with jax alone: functions of trees of parameters, and a jitted step of Adam."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import trainings_data as data
from jax import lax, nn, tree
from trainings_data import count, lose, score

# ---- what a training needs


def begin(params: Any) -> Any:
    """Return what a step changes: parameters, the two means of Adam, and the number of steps."""
    return params, tree.map(jnp.zeros_like, params), tree.map(jnp.zeros_like, params), jnp.zeros(())


def make_step(loss: Callable[..., Any], rate: float, b1: float = 0.9, b2: float = 0.999) -> Any:
    """Return a jitted step of Adam."""

    @jax.jit
    def step(state: Any, *batch: Any) -> Any:
        params, m, v, n = state
        grads, n = jax.grad(loss)(params, *batch), n + 1
        m = tree.map(lambda m, g: b1 * m + (1 - b1) * g, m, grads)
        v = tree.map(lambda v, g: b2 * v + (1 - b2) * g * g, v, grads)
        move = lambda p, m, v: p - rate * (m / (1 - b1**n)) / (jnp.sqrt(v / (1 - b2**n)) + 1e-8)
        return tree.map(move, params, m, v), m, v, n

    return step


def compute_loss(logits: Any, labels: Any) -> Any:
    """Return the mean cross-entropy."""
    return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[..., None], -1))


def train(forward: Any, params: Any, x: Any, y: Any, seed: int, rate: float, epochs: int, batch: int) -> Any:
    """Train a classifier, and return its parameters."""
    random, state = np.random.default_rng(seed), begin(params)
    step = make_step(lambda params, x, y: compute_loss(forward(params, x), y), rate)
    for _ in range(epochs):
        order = random.permutation(len(x))
        for i in range(0, len(x), batch):
            rows = order[i : i + batch]
            state = step(state, x[rows], y[rows])
    return state[0]


def draw(random: Any, shape: tuple[int, ...], inputs: int) -> Any:
    return random.uniform(-(inputs**-0.5), inputs**-0.5, shape).astype("f4")


def make_dense(random: Any, inputs: int, units: int) -> Any:
    return draw(random, (inputs, units), inputs), draw(random, (units,), inputs)


def make_stack(random: Any, *sizes: int) -> Any:
    return [make_dense(random, *pair) for pair in pairwise(sizes)]


def dense(layer: Any, x: Any) -> Any:
    return x @ layer[0] + layer[1]


def stack(params: Any, x: Any, activation: Any = nn.relu) -> Any:
    for layer in params[:-1]:
        x = activation(dense(layer, x))
    return dense(params[-1], x)


# ---- the trainings


def iris(seed: int) -> float:
    x, y, held, labels = data.iris(seed)
    params = make_stack(np.random.default_rng(seed), 4, 16, 3)
    params = train(stack, params, x, y, seed, 0.01, count(60), 15)
    return score(jax.jit(stack)(params, held), labels)


def make_net(random: Any, classes: int) -> Any:
    convolution = lambda inputs, filters: (
        draw(random, (3, 3, inputs, filters), 9 * inputs), draw(random, (filters,), 9 * inputs)
    )  # fmt: skip
    return [convolution(1, 16), convolution(16, 32)], make_dense(random, 128, classes)


def extract(convolutions: Any, x: Any) -> Any:
    for w, b in convolutions:
        x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")) + b
        x = lax.reduce_window(nn.relu(x), -jnp.inf, lax.max, (1, 2, 2, 1), (1, 2, 2, 1), "VALID")
    return x.reshape(len(x), -1)


def classify(params: Any, x: Any) -> Any:
    return dense(params[1], extract(params[0], x))


def digits(seed: int) -> float:
    x, y, held, labels = data.digits(seed)
    params = train(classify, make_net(np.random.default_rng(seed), 10), x, y, seed, 0.003, count(10), 32)
    return score(jax.jit(classify)(params, held), labels)


def transfer(seed: int) -> float:
    (x, y), (new, wanted, held, labels) = data.split_digits(seed)
    random = np.random.default_rng(seed)
    features, _ = train(classify, make_net(random, 5), x, y, seed, 0.003, count(5), 32)
    other = lambda head, x: dense(head, extract(features, x))
    head = train(other, make_dense(random, 128, 5), new, wanted, seed, 0.01, count(10), 32)
    return score(jax.jit(other)(head, held), labels)


def make_lstm(random: Any, inputs: int, units: int) -> Any:
    return [draw(random, shape, units) for shape in ((inputs, 4 * units), (units, 4 * units), (4 * units,))]


def lstm(layer: Any, x: Any) -> Any:
    """Return the outputs of all steps."""
    w, u, b = layer

    def advance(carry: Any, x: Any) -> Any:
        h, c = carry
        i, f, g, o = jnp.split(x + h @ u, 4, -1)
        c = nn.sigmoid(f) * c + nn.sigmoid(i) * jnp.tanh(g)
        h = nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    zeros = jnp.zeros((len(x), len(u)))
    return lax.scan(advance, (zeros, zeros), (x @ w + b).swapaxes(0, 1))[1].swapaxes(0, 1)


def addition(seed: int) -> float:
    x, y, held, labels = data.sums(seed)
    random = np.random.default_rng(seed)
    params = make_lstm(random, 12, 64), make_lstm(random, 64, 64), make_dense(random, 64, 12)

    def forward(params: Any, x: Any) -> Any:
        h = jnp.repeat(lstm(params[0], x)[:, -1:], 3, 1)
        return dense(params[2], lstm(params[1], h))

    params = train(forward, params, x, y, seed, 0.005, count(15), 64)
    return score(jax.jit(forward)(params, held), labels)


def spelling(seed: int) -> float:
    x, y, held, labels = data.letters(seed)
    size, random = data.read_text()[1], np.random.default_rng(seed)
    params = random.normal(size=(size, 24)).astype("f4"), make_lstm(random, 24, 64), make_dense(random, 64, size)
    forward = lambda params, x: dense(params[2], lstm(params[1], jnp.asarray(params[0])[x]))
    params = train(forward, params, x, y, seed, 0.01, count(4), 32)
    return lose(jax.jit(forward)(params, held), labels)


def normalize(layer: Any, x: Any) -> Any:
    x = x - x.mean(-1, keepdims=True)
    return x * lax.rsqrt(jnp.mean(x * x, -1, keepdims=True) + 1e-5) * layer[0] + layer[1]


def attend(layer: Any, x: Any) -> Any:
    q, k, v = (dense(part, x).reshape(*x.shape[:2], 4, 8) for part in layer[:3])
    scores = jnp.einsum("bqhd,bkhd->bhqk", q, k) / np.sqrt(8)
    shares = nn.softmax(jnp.where(np.tri(x.shape[1], dtype=bool), scores, -1e9))
    return dense(layer[3], jnp.einsum("bhqk,bkhd->bqhd", shares, v).reshape(x.shape))


def gpt(seed: int) -> float:
    x, y, held, labels = data.letters(seed, 32, 1000)
    size, random = data.read_text()[1], np.random.default_rng(seed)
    norm = np.ones(32, "f4"), np.zeros(32, "f4")
    block = lambda: (norm, [make_dense(random, 32, 32) for _ in range(4)], norm, make_stack(random, 32, 128, 32))
    tables = [random.normal(size=(many, 32)).astype("f4") for many in (size, 32)]
    params = tables, [block(), block()], norm, make_dense(random, 32, size)

    def forward(params: Any, x: Any) -> Any:
        (tokens, places), blocks, norm, out = params
        h = jnp.asarray(tokens)[x] + places
        for before, attention, after, wide in blocks:
            h = h + attend(attention, normalize(before, h))
            h = h + stack(wide, normalize(after, h))
        return dense(out, normalize(norm, h))

    params = train(forward, params, x, y, seed, 0.003, count(6), 32)
    return lose(jax.jit(forward)(params, held), labels)


def vae(seed: int) -> float:
    x, held = (a.reshape(-1, 64) for a in data.digits(seed)[::2])
    random = np.random.default_rng(seed)
    params = make_stack(random, 64, 128, 16), make_stack(random, 8, 128, 64)

    def loss(params: Any, x: Any, noise: Any) -> Any:
        m, s = jnp.split(stack(params[0], x), 2, -1)
        logits = stack(params[1], m + jnp.exp(s / 2) * noise)
        unlike = jnp.sum(nn.softplus(logits) - x * logits, -1)
        return jnp.mean(unlike - jnp.sum(1 + s - m * m - jnp.exp(s), -1) / 2)

    state, step = begin(params), make_step(loss, 0.003)
    for _ in range(count(20)):
        order = random.permutation(len(x))
        for i in range(0, len(x) - 63, 64):
            state = step(state, x[order[i : i + 64]], random.normal(size=(64, 8)).astype("f4"))
    return float(jax.jit(loss)(state[0], held, random.normal(size=(len(held), 8)).astype("f4")))


def wgan(seed: int) -> float:
    random = np.random.default_rng(seed)
    own, others = (begin(make_stack(random, n, 64, 64, m)) for n, m in ((4, 2), (2, 1)))

    def judge_loss(judge: Any, make: Any, real: Any, noise: Any, share: Any) -> Any:
        fake = stack(make, noise)
        slope = jax.grad(lambda x: jnp.sum(stack(judge, x)))(share * real + (1 - share) * fake)
        far = jnp.sqrt(jnp.sum(slope * slope, -1) + 1e-12) - 1
        return jnp.mean(stack(judge, fake)) - jnp.mean(stack(judge, real)) + 0.1 * jnp.mean(far * far)

    teach = make_step(judge_loss, 0.001, 0.5, 0.9)
    learn = make_step(lambda make, judge, noise: -jnp.mean(stack(judge, stack(make, noise))), 0.001, 0.5, 0.9)
    noise = lambda many=64: random.normal(size=(many, 4)).astype("f4")
    for _ in range(count(400)):
        for _ in range(5):
            others = teach(
                others, own[0], data.draw_circle(random, 64), noise(), random.random((64, 1)).astype("f4")
            )  # fmt: skip
        own = learn(own, others[0], noise())
    return data.measure_points(np.asarray(stack(own[0], noise(512))))


def cart_pole(seed: int) -> float:
    state = begin(make_stack(np.random.default_rng(seed), 4, 32, 1))
    policy = lambda params, x: stack(params, x, jnp.tanh)[:, 0]
    guess = jax.jit(lambda params, x: nn.sigmoid(policy(params, x))[0])

    def loss(params: Any, states: Any, pushes: Any, advantages: Any) -> Any:
        logits = policy(params, states)
        return jnp.mean(advantages * (nn.softplus(logits) - pushes * logits))

    step = make_step(loss, 0.02)

    def learn(*batch: Any) -> None:
        nonlocal state
        spare = 1600 - len(batch[0])  # one size, so that one program is compiled; the padding has advantage 0
        state = step(state, *(np.pad(a, [(0, spare)] + [(0, 0)] * (a.ndim - 1)) for a in batch))

    return data.balance(lambda x: guess(state[0], x), learn, seed)
