"""The programs that larger.py times: what people write with these libraries, of the size of a model's part.

Each is ``f(n, *parameters, *data)``, as in programs.py.  Loops over time are ``n.scan``, as in jax; where a user of
NumPy would write something else than a user of jax, there are two texts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from libraries import VALUE, Program
from programs import draw

Data = tuple[list[Any], list[Any]]  # parameters, and the rest


def draw_integers(end: int, *shape: int) -> Any:
    return np.random.default_rng(1).integers(0, end, shape).astype("i4")


# ---- physics


def n_body(n, positions, masses):
    """Return the potential energy of softened gravity."""
    apart = positions[:, None, :] - positions[None, :, :]
    distances = n.sqrt(n.sum(apart * apart, -1) + 1e-2)
    return -0.5 * n.sum(masses[:, None] * masses[None, :] / distances)


def n_body_data() -> Data:
    positions, masses = draw((512, 3), (512,))
    return [positions, np.abs(masses)], []


def diffuse(n, u, rate):
    around = n.roll(u, 1, 0) + n.roll(u, -1, 0) + n.roll(u, 1, 1) + n.roll(u, -1, 1)
    return u + rate * (around - 4.0 * u)


def diffusion(n, u, rate, target):
    """Twenty steps of the heat equation on a torus, with a rate for each point."""
    for _ in range(20):
        u = diffuse(n, u, rate)
    return n.mean((u - target) ** 2)


def diffusion_by_scan(n, u, rate, target):
    u, _ = n.scan(lambda u, _: (diffuse(n, u, rate), None), u, None, 20)
    return n.mean((u - target) ** 2)


def diffusion_data() -> Data:
    u, rate, target = draw((256, 256), (256, 256), (256, 256))
    return [u, np.float32(0.1) + np.float32(0.02) * np.tanh(rate)], [target]


def runge_kutta(n, w1, b1, w2, y, target):
    """Return the classical method on y' = tanh(y w1 + b1) w2, a neural differential equation."""
    h = 0.05
    slope = lambda y: n.tanh(y @ w1 + b1) @ w2

    def step(y, _):
        k1 = slope(y)
        k2 = slope(y + 0.5 * h * k1)
        k3 = slope(y + 0.5 * h * k2)
        k4 = slope(y + h * k3)
        return y + h / 6 * (k1 + 2.0 * k2 + 2.0 * k3 + k4), None

    y, _ = n.scan(step, y, None, 100)
    return n.mean((y - target) ** 2)


def runge_kutta_data() -> Data:
    w1, b1, w2 = draw((4, 32), (32,), (32, 4), scale=0.3)
    return [w1, b1, w2], draw((32, 4), (32, 4))


def rigid_motion(n, turns, more, points, targets):
    """Points that are turned by one matrix after another."""
    turned = turns @ more
    moved = (turned @ points[:, :, None])[:, :, 0]
    excess = turned @ n.swapaxes(turned, 1, 2) - n.eye(3, dtype="f4")
    return n.mean((moved - targets) ** 2) + 0.1 * n.mean(excess**2)


def rigid_motion_data() -> Data:
    return draw((10000, 3, 3), (10000, 3, 3)), draw((10000, 3), (10000, 3))


# ---- sequences


def recur(n, cell, state, xs):
    return n.scan(lambda state, x: (cell(state, x), None), state, xs)[0]


def lstm(n, wx, wh, b, xs, target):
    def cell(state, x):
        h, c = state
        i, f, g, o = n.split(x @ wx + h @ wh + b, 4, -1)
        c = n.sigmoid(f) * c + n.sigmoid(i) * n.tanh(g)
        return n.sigmoid(o) * n.tanh(c), c

    start = n.zeros((xs.shape[1], wh.shape[0]), dtype="f4")
    h, _ = recur(n, cell, (start, start), xs)
    return n.mean((h - target) ** 2)


def lstm_data() -> Data:
    return draw((64, 256), (64, 256), (256,), scale=0.15), draw((100, 32, 64), (32, 64))


def gru(n, wx, wh, b, xs, target):
    size = wh.shape[0]

    def cell(h, x):
        gx, gh = x @ wx + b, h @ wh
        r = n.sigmoid(gx[:, :size] + gh[:, :size])
        z = n.sigmoid(gx[:, size : 2 * size] + gh[:, size : 2 * size])
        new = n.tanh(gx[:, 2 * size :] + r * gh[:, 2 * size :])
        return (1.0 - z) * new + z * h

    h = recur(n, cell, n.zeros((xs.shape[1], size), dtype="f4"), xs)
    return n.mean((h - target) ** 2)


def gru_data() -> Data:
    return draw((64, 192), (64, 192), (192,), scale=0.15), draw((100, 32, 64), (32, 64))


def kalman(n, a, q, r, h, ys):
    """Return the negative log-likelihood of a linear state space model."""

    def step(carry, y):
        m, p = carry
        m, p = a @ m, a @ p @ a.T + q @ q.T
        s = h @ p @ h.T + r @ r.T
        v = y - h @ m
        gain = n.linalg.solve(s, h @ p).T
        loss = 0.5 * (v @ n.linalg.solve(s, v) + n.linalg.slogdet(s)[1])
        return (m + gain @ v, p - gain @ h @ p), loss

    state = a.shape[0]
    _, losses = n.scan(step, (n.zeros(state, dtype="f8"), n.eye(state, dtype="f8")), ys)
    return n.sum(losses)


def kalman_data() -> Data:
    a, q, r, h, ys = draw((4, 4), (4, 4), (2, 2), (2, 4), (200, 2), dtype="f8")
    return [0.9 * np.eye(4) + 0.05 * a, 0.3 * np.eye(4) + 0.1 * q, np.eye(2) + 0.1 * r], [h, ys]


def hidden_markov(n, start, moves, emissions, seen):
    """Return the log-likelihood by the forward algorithm."""
    start, moves = n.log_softmax(start), n.log_softmax(moves)
    emissions = n.log_softmax(emissions)

    def step(alpha, y):
        return n.log_sum_exp(alpha[:, None] + moves, 0) + emissions[:, y], None

    alpha, _ = n.scan(step, start + emissions[:, seen[0]], seen[1:])
    return -n.log_sum_exp(alpha, 0)


def hidden_markov_data() -> Data:
    return draw((32,), (32, 32), (32, 20)), [draw_integers(20, 200)]


# ---- networks


def normalize(n, x, scale, offset):
    centred = x - n.mean(x, -1, keepdims=True)
    return centred / n.sqrt(n.mean(centred * centred, -1, keepdims=True) + 1e-5) * scale + offset


def attend(n, q, k, v, mask):
    scores = n.where(mask, q @ n.swapaxes(k, -1, -2) / math.sqrt(q.shape[-1]), -1e9)
    return n.softmax(scores) @ v


def split_heads(n, x, heads):
    batch, tokens, size = x.shape
    return n.swapaxes(x.reshape((batch, tokens, heads, size // heads)), 1, 2)


def join_heads(n, x):
    batch, heads, tokens, size = x.shape
    return n.swapaxes(x, 1, 2).reshape((batch, tokens, heads * size))


def gpt(n, *args):
    """Return two blocks with a causal mask, and the loss of the next token."""
    embedding, positions, *weights, tokens, targets = args
    mask = n.tril(n.ones((tokens.shape[1], tokens.shape[1]), dtype=bool))
    x = embedding[tokens] + positions
    for layer in range(2):
        s1, o1, wqkv, wo, s2, o2, w1, b1, w2, b2 = weights[10 * layer : 10 * layer + 10]
        q, k, v = (split_heads(n, part, 4) for part in n.split(normalize(n, x, s1, o1) @ wqkv, 3, -1))
        x = x + join_heads(n, attend(n, q, k, v, mask)) @ wo
        x = x + n.gelu(normalize(n, x, s2, o2) @ w1 + b1) @ w2 + b2
    scores = n.log_softmax(x @ embedding.T)
    return -n.mean(n.take_along_axis(scores, targets[:, :, None], 2))


def draw_block(size: int) -> list[Any]:
    """Return the weights of a transformer block."""
    wqkv, wo, w1, b1, w2, b2 = draw(
        (size, 3 * size), (size, size), (size, 4 * size), (4 * size,), (4 * size, size), (size,), scale=0.05
    )
    one, none = np.ones(size, "f4"), np.zeros(size, "f4")
    return [one, none, wqkv, wo, one, none, w1, b1, w2, b2]


def gpt_data() -> Data:
    embedding, positions = draw((256, 128), (128, 128), scale=0.1)
    tokens = draw_integers(256, 4, 129)
    return [embedding, positions, *draw_block(128), *draw_block(128)], [tokens[:, :-1].copy(), tokens[:, 1:].copy()]


def decode(n, *args):
    """Return the scores of the next token after one block, with the keys and values of the tokens before."""
    embedding, s1, o1, wqkv, wo, s2, o2, w1, b1, w2, b2, tokens, keys, values = args
    x = embedding[tokens][:, None]
    q, k, v = (split_heads(n, part, 4) for part in n.split(normalize(n, x, s1, o1) @ wqkv, 3, -1))
    keys, values = n.concatenate([keys, k], 2), n.concatenate([values, v], 2)
    x = x + join_heads(n, n.softmax(q @ n.swapaxes(keys, 2, 3) / math.sqrt(q.shape[-1])) @ values) @ wo
    x = x + n.gelu(normalize(n, x, s2, o2) @ w1 + b1) @ w2 + b2
    return x[:, 0] @ embedding.T, keys, values


def decode_loss(n, *args):
    *args, labels = args
    scores, _, _ = decode(n, *args)
    return n.cross_entropy(scores, labels)


def decode_data(with_labels: bool) -> Data:
    (embedding,) = draw((1000, 128), scale=0.1)
    labels = [draw_integers(1000, 8)] if with_labels else []
    return [embedding, *draw_block(128)], [draw_integers(1000, 8), *draw((8, 4, 255, 32), (8, 4, 255, 32)), *labels]


def normalize_batch(n, x, scale, offset):
    mean, variance = n.mean(x, (0, 1, 2)), n.var(x, (0, 1, 2))
    return (x - mean) / n.sqrt(variance + 1e-5) * scale + offset


def residual(n, w1, s1, o1, w2, s2, o2, x, target):
    """Return two convolutions with batch norm, and the input added."""
    y = n.relu(normalize_batch(n, n.conv2d(x, w1), s1, o1))
    y = n.relu(normalize_batch(n, n.conv2d(y, w2), s2, o2) + x)
    return n.mean((y - target) ** 2)


def residual_data() -> Data:
    w1, w2 = draw((3, 3, 32, 32), (3, 3, 32, 32), scale=0.06)
    one, none = np.ones(32, "f4"), np.zeros(32, "f4")
    return [w1, one, none, w2, one, none], draw((16, 16, 16, 32), (16, 16, 16, 32))


def u_net(n, w1, w2, w3, w4, images, targets):
    """Return one level: down, up, and the pixels of before beside them."""
    fine = n.relu(n.conv2d(images, w1))
    coarse = n.relu(n.conv2d(n.max_pool(fine), w2))
    up = n.repeat(n.repeat(coarse, 2, 1), 2, 2)
    y = n.relu(n.conv2d(n.concatenate([fine, up], 3), w3))
    return n.mean((n.conv2d(y, w4) - targets) ** 2)


def u_net_data() -> Data:
    weights = draw((3, 3, 3, 16), (3, 3, 16, 32), (3, 3, 48, 16), (1, 1, 16, 1), scale=0.1)
    return weights, draw((4, 32, 32, 3), (4, 32, 32, 1))


def autoencoder(n, w1, b1, wm, bm, ws, bs, w2, b2, w3, b3, images, noise):
    """Return the negative evidence bound of a variational autoencoder of binary pixels."""
    hidden = n.relu(images @ w1 + b1)
    mean, log_variance = hidden @ wm + bm, hidden @ ws + bs
    z = mean + n.exp(0.5 * log_variance) * noise
    logits = n.relu(z @ w2 + b2) @ w3 + b3
    reconstruction = n.sum(n.maximum(logits, 0.0) - logits * images + n.log1p(n.exp(-n.abs(logits))), 1)
    divergence = -0.5 * n.sum(1.0 + log_variance - mean**2 - n.exp(log_variance), 1)
    return n.mean(reconstruction + divergence)


def autoencoder_data() -> Data:
    sizes = [(784, 256), (256, 20), (256, 20), (20, 256), (256, 784)]
    weights = draw(*(shape for size in sizes for shape in (size, size[1:])), scale=0.05)
    (noise,) = draw((64, 20))
    return weights, [np.random.default_rng(2).uniform(size=(64, 784)).astype("f4"), noise]


def flow(n, *args):
    """Return the negative log-likelihood of affine coupling layers."""
    *weights, x = args
    half, log_det = x.shape[1] // 2, 0.0
    for layer in range(4):
        w1, b1, w2, b2 = weights[4 * layer : 4 * layer + 4]
        a, b = x[:, :half], x[:, half:]
        out = n.tanh(a @ w1 + b1) @ w2 + b2
        shift, log_scale = out[:, :half], n.tanh(out[:, half:])
        x = n.concatenate([b * n.exp(log_scale) + shift, a], 1)
        log_det = log_det + n.sum(log_scale, 1)
    return n.mean(0.5 * n.sum(x * x, 1) - log_det)


def flow_data() -> Data:
    weights = draw(*[(8, 64), (64,), (64, 16), (16,)] * 4, scale=0.2)
    return weights, draw((512, 16))


def embedding_bag(n, table, w, b, words, labels):
    """Logistic regression on the mean of the embeddings of a text's words."""
    scores = n.mean(table[words], 1) @ w + b
    return n.mean(n.log1p(n.exp(-labels * scores)))


def embedding_bag_data() -> Data:
    table, w, b, labels = draw((20000, 64), (64,), (), (512,))
    return [table, w, np.asarray(b)], [draw_integers(20000, 512, 32), np.sign(labels)]


def route(n, w, table, x, target):
    """Return every token goes to the four experts with the highest scores."""
    scores, experts = n.top_k(x @ w, 4)
    mixed = n.sum(n.softmax(scores)[:, :, None] * table[experts], 1)
    return n.mean((mixed - target) ** 2)


def route_data() -> Data:
    w, table = draw((64, 64), (64, 64))
    return [w * np.float32(0.125), table], draw((2048, 64), (2048, 64))


# ---- statistics


def gaussian_process(n, scale, length, noise, x, y):
    """Return the negative log marginal likelihood."""
    apart = x[:, None, :] / n.exp(length) - x[None, :, :] / n.exp(length)
    k = n.exp(2.0 * scale) * n.exp(-0.5 * n.sum(apart * apart, -1)) + n.exp(2.0 * noise) * n.eye(len(x), dtype="f8")
    root = n.linalg.cholesky(k)
    z = n.solve_lower(root, y)
    return 0.5 * n.sum(z * z) + n.sum(n.log(n.diagonal(root)))


def gaussian_process_data() -> Data:
    x, y = draw((256, 4), (256, 1), dtype="f8")
    return [np.array(0.1), np.array([0.1, 0.2, -0.1, 0.0]), np.array(-1.0)], [x, y]


def normal_likelihood(n, mean, factor, points):
    """Return the negative log-likelihood of a normal distribution with a whole covariance matrix."""
    covariance = factor @ factor.T + n.eye(len(factor), dtype="f4")
    root = n.linalg.cholesky(covariance)
    z = n.solve_lower(root, (points - mean).T)
    return 0.5 * n.mean(n.sum(z * z, 0)) + n.sum(n.log(n.diagonal(root)))


def normal_likelihood_data() -> Data:
    return draw((32,), (32, 32), scale=0.3), draw((1000, 32))


def k_means(n, centres, points):
    """Return the mean squared distance to the nearest centre."""
    squares = n.sum((points[:, None, :] - centres[None, :, :]) ** 2, -1)
    return n.mean(n.min(squares, 1))


def k_means_data() -> Data:
    return draw((16, 16)), [np.random.default_rng(3).normal(size=(10000, 16)).astype("f4")]


def sorted_distance(n, x, y):
    """Return the Wasserstein distance of samples, row by row."""
    return n.mean((n.sort(x, -1) - n.sort(y, -1)) ** 2)


def sorted_distance_data() -> Data:
    return draw((64, 1024)), [np.random.default_rng(3).normal(size=(64, 1024)).astype("f4")]


def blur(n, images, width, target):
    """Images that are blurred by a Gaussian in the frequency domain."""
    height, length = images.shape[1:]
    squares = n.fft.fftfreq(height)[:, None] ** 2 + n.fft.rfftfreq(length)[None, :] ** 2
    transfer = n.exp(-(width**2) * squares.astype("f4"))
    blurred = n.fft.irfft2(n.fft.rfft2(images) * transfer, s=(height, length))
    return n.mean((blurred - target) ** 2)


def blur_data() -> Data:
    images, target = draw((4, 256, 256), (4, 256, 256))
    return [images, np.array(3.0, "f4")], [target]


def count_regression(n, w, dispersion, x, counts):
    """Return the negative log-likelihood of negative binomial counts."""
    mean, shape = n.exp(x @ w), n.exp(dispersion)
    normal = n.gammaln(counts + shape) - n.gammaln(shape) - n.gammaln(counts + 1.0)
    return -n.mean(normal + shape * n.log(shape / (shape + mean)) + counts * n.log(mean / (shape + mean)))


def count_regression_data() -> Data:
    w, x = draw((20,), (20000, 20))
    return [w * np.float32(0.1), np.array(0.3, "f4")], [x, draw_integers(6, 20000).astype("f4")]


def graph_attention(n, w, a, b, x, sources, targets, goal):
    """One layer in which every node of a graph averages its neighbours by a softmax over its edges."""
    nodes = len(x)
    h = x @ w
    scores = (h @ a)[sources] + (h @ b)[targets]
    scores = n.where(scores > 0, scores, 0.2 * scores)
    highest = n.stop_gradient(n.segment_max(scores, targets, nodes))
    e = n.exp(scores - highest[targets])
    shares = e / n.segment_sum(e, targets, nodes)[targets]
    return n.mean((n.segment_sum(h[sources] * shares[:, None], targets, nodes) - goal) ** 2)


def graph_attention_data() -> Data:
    w, a, b, x, goal = draw((64, 32), (32,), (32,), (1000, 64), (1000, 32))
    own = np.arange(1000, dtype="i4")  # every node has an edge to itself
    sources, targets = (np.concatenate([own, ends]) for ends in draw_integers(1000, 2, 4000))
    return [w * np.float32(0.1), a, b], [x, sources, targets, goal]


def list_programs() -> Iterator[Program]:
    """Yield all of them, in the order of the table."""
    add = partial(Program, bar=1.0)
    yield add("n_body", "n-body energy, 512 bodies", f=n_body, data=n_body_data)
    yield add("gpt", "GPT, 2 blocks, 4×128×128", f=gpt, data=gpt_data)
    yield add("lstm", "LSTM, 100 steps, 32×64", f=lstm, data=lstm_data)
    yield add("gru", "GRU, 100 steps, 32×64", f=gru, data=gru_data)
    yield add("residual", "residual block, batch norm", f=residual, data=residual_data, tolerance=1e-3)
    yield add("vae", "VAE 784-256-20, batch 64", f=autoencoder, data=autoencoder_data)
    yield add("gp", "Gaussian process, 256 points, f8", f=gaussian_process, data=gaussian_process_data)
    yield add("kalman", "Kalman filter, 200 steps, f8", f=kalman, data=kalman_data)
    yield add("hmm", "hidden Markov model, 200 steps", f=hidden_markov, data=hidden_markov_data)
    yield add("flow", "normalising flow, 512×16", f=flow, data=flow_data)
    yield add("runge_kutta", "Runge-Kutta, 100 steps", f=runge_kutta, data=runge_kutta_data)
    yield add("k_means", "k-means 10000×16, 16 centres", f=k_means, data=k_means_data)
    yield add("fft", "blur by FFT, 4×256×256", f=blur, data=blur_data)
    yield add("sort", "sorting loss 64×1024", f=sorted_distance, data=sorted_distance_data)
    yield add("bag", "embedding bag 512×32 of 20000×64", f=embedding_bag, data=embedding_bag_data)
    yield add("batched", "10000 products 3×3", f=rigid_motion, data=rigid_motion_data)
    yield add("top_k", "top 4 of 64, 2048 rows", f=route, data=route_data)
    yield add("u_net", "U-net step 4×32×32", f=u_net, data=u_net_data)
    yield add("decode", "transformer decode step", f=decode, data=partial(decode_data, False), does=VALUE)
    yield add("decode/gradients", "decode step with gradients", f=decode_loss, data=partial(decode_data, True))
    yield add("pde", "heat equation, 20 steps 256×256", f=diffusion, data=diffusion_data, jax=diffusion_by_scan)
    yield add("counts", "negative binomial 20000×20", f=count_regression, data=count_regression_data, tolerance=1e-3)
    yield add("graph", "graph attention, 5000 edges", f=graph_attention, data=graph_attention_data)
    yield add("normal", "Cholesky likelihood 1000×32", f=normal_likelihood, data=normal_likelihood_data)
