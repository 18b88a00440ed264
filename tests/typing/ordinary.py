"""Ordinary code of users: mypy --strict and pyright accept every line, and infer what reveal_type says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import pullback as pb
from pullback.train.nn.layers.symbolic import SymbolicTensor
from pullback.typing import Array, TensorLike

# ---- tensors: operators, methods, indices

t = pb.tensor([[1.0, 2.0], [3.0, 4.0]])
a = np.ones((2, 2))
assert_type(t * 2, pb.Tensor)
assert_type(2 * t, pb.Tensor)
assert_type(1 - t, pb.Tensor)
assert_type(t @ t, pb.Tensor)
assert_type(t @ a, pb.Tensor)
assert_type(t * [1.0, 2.0], pb.Tensor)
assert_type(-t, pb.Tensor)
assert_type(abs(t), pb.Tensor)
assert_type(t**2, pb.Tensor)
assert_type(2**t, pb.Tensor)
assert_type(t // 2 % 3, pb.Tensor)
assert_type(t > 0, pb.Tensor)
assert_type(t == t, pb.Tensor)
assert_type((t > 0) & (t < 3) | ~(t != 1), pb.Tensor)
assert_type(t[0], pb.Tensor)
assert_type(t[:, 1:, None], pb.Tensor)
assert_type(t[t > 1], pb.Tensor)
t[0] = 1.0
t[:, 1] = [5.0, 6.0]
t += 1
t *= a
assert_type(t.T, pb.Tensor)
assert_type(t.tanh().sum(axis=0), pb.Tensor)
assert_type(t.reshape([4]).max(), pb.Tensor)
assert_type(t.mean(0, keepdims=True).squeeze(), pb.Tensor)
assert_type(t.shape, tuple[int, ...])
assert_type(float(t.sum()), float)
rows: list[pb.Tensor] = list(t)
assert_type(t.numpy(), Array)
count: int = pb.sum(pb.tensor([1, 2])).item()
total: float = t.sum().item()
positive: bool = (t > 0).all().item()
text = f"{t.sum():.3f} {t} {len(t)} {t.ndim} {t.dtype}"

# ---- ops: a Tensor for Tensors and lists, an array for arrays

assert_type(pb.exp(t), pb.Tensor)
assert_type(pb.exp([1.0, 2.0]), pb.Tensor)
assert_type(pb.exp(a), Array)
assert_type(pb.exp(1.0), Array)
assert_type(pb.add(a, t), pb.Tensor)
assert_type(pb.add(a, 1.0), Array)
assert_type(pb.sum(t, axis=[0, 1]), pb.Tensor)
assert_type(pb.where(t > 0, t, 0.0), pb.Tensor)
assert_type(pb.stack(t, 1), pb.Tensor)
assert_type(pb.transpose(t, np.array([1, 0])), pb.Tensor)
assert_type(pb.tile(t, np.array([1, 2])), pb.Tensor)
assert_type(pb.concat([t, a], 0), pb.Tensor)
assert_type(pb.softmax(t), pb.Tensor)
assert_type(pb.moments(t).mean, pb.Tensor)
assert_type(pb.topk(t, k=1).values, pb.Tensor)
assert_type(pb.split(t, 2), list[pb.Tensor])
assert_type(pb.linalg.solve(t, t), pb.Tensor)
assert_type(pb.linalg.qr(t).Q, pb.Tensor)
assert_type(pb.losses.mean_squared_error(t, a), pb.Tensor)
assert_type(pb.special.erfc(t), pb.Tensor)
assert_type(pb.random.normal([2, 3], seed=1), pb.Tensor)
assert_type(pb.image.flip_left_right(pb.zeros([1, 2, 2, 3])), pb.Tensor)
image = pb.conv2d(pb.ones([1, 4, 4, 1]), pb.ones([2, 2, 1, 1]), strides=1, pad="same")
ready = pb.einsum("ij,jk->ik", t, t).astype("float64")
cast: pb.Tensor = pb.cast(t, np.float64)
spectrum = pb.spectral.rfft(t)


def predict(w: pb.Tensor, x: NDArray[np.float64]) -> pb.Tensor:
    """Return ops of an array and a tensor."""
    return pb.mean((pb.matmul(x, w) - pb.tanh(w)) ** 2)


with pb.default_dtype("float64"):
    wide = pb.linspace(0, 1, 5)


def normalize(x: TensorLike) -> TensorLike:
    """Return an op of anything that a tensor can be made of: a Tensor or an array."""
    return pb.exp(x) / pb.sum(pb.exp(x))


# ---- NumPy's functions: its stubs say what they return, mostly Any or an array

total_of_all: pb.Tensor = np.sum(t)
largest: pb.Tensor = np.max(t)
product: pb.Tensor = np.dot(t, t)
other_product: pb.Tensor = np.matmul(a, t)
inner: pb.Tensor = np.inner(t, t)
contracted: pb.Tensor = np.einsum("ij,jk->ik", t, a)
diagonal_sum: pb.Tensor = np.trace(t)
determinant: pb.Tensor = np.linalg.det(t)
middle: pb.Tensor = np.median(t)
for made in (
    np.sin(t), np.exp(t) * 2, np.maximum(t, 0.0), np.add(a, t), np.mean(t), np.mean(t, axis=0), np.var(t), np.std(t, 0),
    np.sum(t, axis=1), np.min(t, axis=0), np.prod(t), np.concatenate([t, t]), np.concatenate([t, a]), np.stack([t, t]),
    np.vstack([t, a]), np.where(a > 0, t, 0.0), np.where(t > 0, t, a), np.outer(t, t), np.tensordot(t, t, 1),
    np.reshape(t, (4, 1)), np.transpose(t), np.expand_dims(t, 0), np.squeeze(t), np.clip(t, 0.0, 1.0), np.cumsum(t),
    np.sort(t), np.roll(t, 1), np.pad(t, 1), np.tile(t, 2), np.broadcast_to(t, (3, 2, 2)), np.linalg.norm(t),
    np.linalg.norm(t, axis=0), np.linalg.inv(t), np.linalg.solve(t, a), np.linalg.cholesky(t @ t.T),
    np.linalg.eigh(t).eigenvalues, np.fft.fft(t), np.zeros_like(t),
):  # fmt: skip
    assert isinstance(made, pb.Tensor)
assert_type(np.asarray(t).shape, tuple[Any, ...])
np.testing.assert_allclose(t, t.numpy())
assert np.allclose(t, t.numpy())
stored: list[NDArray[Any]] = [np.array(t), np.asarray(t, dtype=np.float64)]

# ---- gradients


def loss(w: pb.Tensor, scale: float = 1.0) -> pb.Tensor:
    return (w * w).sum() * scale


def dict_loss(weights: dict[str, pb.Tensor]) -> pb.Tensor:
    return loss(weights["w"])


def energy(x: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.sin(x) * x


assert_type(pb.grad(loss)(t), pb.Tensor)
assert_type(pb.grad(loss)(t, scale=2.0), pb.Tensor)
assert_type(pb.grad(pb.grad(loss))(t), pb.Tensor)
assert_type(pb.grad(dict_loss)({"w": t}), dict[str, pb.Tensor])
pb.grad(lambda x: x**3)(2.0)
assert_type(pb.value_and_grad(loss)(t).grad, pb.Tensor)
assert_type(pb.value_and_grad(loss)(t).value, pb.Tensor)
assert_type(pb.grads(lambda x, y: x * y)([t, t]), list[pb.Tensor])
assert_type(pb.value_and_grads(lambda x, y: x * y)([t, t]).grads, list[pb.Tensor])
assert_type(pb.hessian(loss)(t), pb.Tensor)
assert_type(pb.jacobian(pb.tanh)(t), pb.Tensor)
slope: NDArray[np.float64] = pb.grad(energy)(np.ones(3))
assert_type(pb.grad(loss, argnums=0)(t, 2.0), pb.Tensor)
pb.grad(lambda x, y: x * y, argnums=(0, 1))(t, t)
pb.grad(lambda x, y: x * y, argnums=1)(t, y=t)
pb.grad(lambda x, y, z: x * y * z, argnums=[0, 2])(t, t, t)
pb.grad(lambda x, y: x * y, argnames=["x", "y"])(x=t, y=t)
assert_type(pb.grad(lambda x: x * x)(t, dy=t), pb.Tensor)
assert_type(pb.grad(lambda x: x * x)(t, t), pb.Tensor)
assert_type(pb.grad(lambda x, y: (x * y).sum())(t, y=t), pb.Tensor)
assert_type(pb.grad(pb.tanh)(t, t), pb.Tensor)
pb.grad(loss, unconnected=pb.UnconnectedGradients.ZERO)(t)
value, tangent = pb.jvp(loss, [t], [t])
assert_type(tangent, pb.Tensor)
result, pull = pb.vjp(loss, t)
assert_type(result, pb.Tensor)
(cotangent,) = pull(1.0)
linear_value, push = pb.linearize(loss, t)
assert_type(push(t), pb.Tensor)


def mixed(w: pb.Tensor, x: pb.Tensor) -> pb.Tensor:
    return (w * w * x).sum()


def action(q: NDArray[np.float64], speed: float, mass: float = 1.0) -> Any:
    return mass * np.sum(q) * speed**2


def penalty(weights: dict[str, pb.Tensor], x: TensorLike) -> pb.Tensor:
    return dict_loss(weights) * pb.sum(x)


assert_type(pb.grad(mixed, argnums=1)(t, t), pb.Tensor)
assert_type(pb.grad(mixed, argnums=1)(t, x=t), pb.Tensor)
assert_type(pb.grad(mixed, argnums=(0, 1))(t, t), tuple[pb.Tensor, pb.Tensor])
assert_type(pb.grad(action, argnums=1)(np.ones(2), 2.0, mass=3.0), float)
assert_type(pb.grad(penalty, argnums=1)({"w": t}, t), pb.Tensor)
assert_type(pb.value_and_grad(mixed, argnums=(0, 1))(t, t).grad, tuple[pb.Tensor, pb.Tensor])
assert_type(pb.compile(pb.grad(mixed, argnums=1))(t, t), pb.Tensor)
assert_type(pb.hessian(mixed, argnums=1)(t, t), pb.Tensor)
assert_type(pb.jacobian(pb.grad(loss))(t), pb.Tensor)
assert_type(pb.grad(lambda w: pb.grad(loss)(w).sum())(t), pb.Tensor)
assert_type(pb.jacobian(pb.grad(mixed, argnums=0), argnums=0)(t, t), pb.Tensor)
pb.jacobian(pb.grad(mixed, argnums=0), argnums=1)(t, t)


def flatness(w: pb.Tensor) -> pb.Tensor:
    return pb.grad(lambda u: (u * u).sum())(w)


@dataclass
class Weights:
    """A tree of a class of one's own."""

    w: pb.Tensor


def weights_loss(weights: Weights) -> pb.Tensor:
    return loss(weights.w)


assert_type(pb.grad(weights_loss)(Weights(t)), Weights)


def pull_back(f: Callable[..., pb.Tensor], dy: pb.Tensor) -> pb.Tensor:
    return pb.grad(f)(t, dy)


pull_back(pb.sin, t)


def with_aux(w: pb.Tensor) -> tuple[pb.Tensor, str]:
    return w.sum(), "aux"


assert_type(pb.grad(with_aux, has_aux=True)(t), tuple[pb.Tensor, str])
assert_type(pb.jvp(with_aux, [t], [t], has_aux=True)[2], str)
vector, unravel = pb.ravel_tree({"w": t})
assert_type(unravel(vector), dict[str, pb.Tensor])
root = pb.custom_root(lambda x, c: x * x - c, lambda f, x0, c: np.sqrt(c))
root(1.0, 2.0)

# ---- variables, tapes, optimizers

v = pb.variable([1.0, 2.0], name="v")
v += 1
assert_type(v, pb.Variable)
assert_type(v.assign_add([1.0, 1.0]), pb.Variable)
assert_type(v * 2, pb.Tensor)
found = pb.variable_grads(lambda: (v * v).sum())
assert_type(found.grads["v"], pb.Tensor)
assert_type(found.value, pb.Tensor)
with pb.GradientTape(persistent=True) as tape:
    tape.watch(t)
    y = loss(t) + v.sum()
assert_type(tape.gradient(y, t), pb.Tensor)
assert_type(tape.gradient(y, [t, v]), list[pb.Tensor])
optimizer = pb.train.adam(0.1)
optimizer.minimize(lambda: (v * v).sum())
assert_type(optimizer.minimize(lambda: (v * v).sum(), return_cost=True), pb.Tensor)
optimizer.apply_gradients(pb.train.clip_values(found.grads, 1.0))
params = {"w": np.ones(2)}
params, state = optimizer.update(params, {"w": np.ones(2)}, optimizer.init(params))
rate: float = optimizer.learning_rate
optimizer.learning_rate *= 0.5
solution = pb.train.lbfgs().solve(lambda p: ((p["w"] - 1.0) ** 2).sum(), params)
assert_type(solution.params["w"].dtype, np.dtype[np.float64])

# ---- decorated functions keep their signatures


GradFunc = Callable[[pb.Tensor, list[pb.Tensor]], pb.Tensor]


@pb.compile
def step(w: pb.Tensor, n: int = 1) -> pb.Tensor:
    return w * n


@pb.compile(threads=1)
def other_step(w: pb.Tensor) -> pb.Tensor:
    return w * 2


@pb.custom_gradient
def clipped(x: pb.Tensor) -> tuple[pb.Tensor, Callable[[pb.Tensor], pb.Tensor]]:
    return x, lambda dy: pb.clip_by_value(dy, -1, 1)


@pb.custom_grad
def saving(x: pb.Tensor, save: Callable[[list[pb.Tensor]], None]) -> tuple[pb.Tensor, GradFunc]:
    save([x])
    return x * x, lambda dy, saved: dy * pb.abs(saved[0])


@pb.custom_grad(check=True)
def doubled(x: pb.Tensor) -> tuple[pb.Tensor, Callable[[pb.Tensor], pb.Tensor]]:
    return x * 2, lambda dy: dy * 2


@pb.custom_jvp
def softplus(x: pb.Tensor) -> pb.Tensor:
    return pb.log(1 + pb.exp(x))


@softplus.defjvp
def softplus_jvp(primals: tuple[pb.Tensor], tangents: tuple[pb.Tensor]) -> tuple[pb.Tensor, pb.Tensor]:
    return softplus(primals[0]), pb.sigmoid(primals[0]) * tangents[0]


@pb.checkpoint
def block(x: pb.Tensor, layers: int = 2) -> pb.Tensor:
    for _ in range(layers):
        x = pb.sin(x)
    return x


class Regression:
    """A compiled method binds its instance."""

    def __init__(self) -> None:
        self.w = pb.variable(pb.zeros([2]))

    @pb.compile
    def predict(self, x: pb.Tensor) -> pb.Tensor:
        return x @ self.w


assert_type(step(t, n=2), pb.Tensor)
assert_type(other_step(t), pb.Tensor)
assert_type(clipped(t), pb.Tensor)
assert_type(saving(t), pb.Tensor)
assert_type(doubled(t), pb.Tensor)
assert_type(softplus(t), pb.Tensor)
assert_type(block(t, layers=3), pb.Tensor)
assert_type(Regression().predict(t), pb.Tensor)
assert_type(pb.vmap(loss)(t), pb.Tensor)
assert_type(pb.stop_gradient(t), pb.Tensor)
fast = pb.compile(pb.value_and_grad(loss), backend="auto")
assert_type(fast(t).grad, pb.Tensor)


def misfit(params: dict[str, Any], x: Any, y: Any) -> Any:
    return np.mean((x @ params["w"] - y) ** 2)


weights = {"w": np.ones(2)}
fitted = pb.compile(pb.value_and_grad(misfit, argnums=0))
slopes = fitted(weights, np.ones((3, 2)), np.ones(3)).grad
slopes = pb.compile(pb.grad(misfit))(weights, x=np.ones((3, 2)), y=np.ones(3))
program = fitted.lower(weights, np.ones((3, 2)), np.ones(3))
pb.vmap(pb.grad(lambda w, x, y: (x @ w - y) ** 2, argnums=0), in_axes=(None, 0, 0))(
    np.ones(2), np.ones((3, 2)), np.ones(3)
)

# ---- training

model = pb.sequential([pb.layers.dense(units=8, activation="relu", input_shape=[2]), pb.layers.dense(units=1)])
model.compile(optimizer="adam", loss="mean_squared_error")
history = model.fit(np.ones((4, 2)), np.ones((4, 1)), epochs=1, verbose=0)
model.predict(np.ones((1, 2)))
model.optimizer.learning_rate = 0.01
assert_type(model.layers[0].trainable, bool)
assert_type(pb.model_from_json(model.to_json()).name, str)


class Network(pb.Model):
    def __init__(self) -> None:
        super().__init__()
        self.hidden, self.out = pb.layers.dense(8), pb.layers.dense(1)

    def call(self, x: pb.Tensor) -> pb.Tensor:
        return self.out(np.tanh(self.hidden(x)))


class Encoder(pb.layers.Layer):
    """A call has the type that the layer's own call declares."""

    def __init__(self) -> None:
        super().__init__()
        self.center, self.spread = pb.layers.dense(2), pb.layers.dense(2)

    def call(self, x: pb.Tensor) -> tuple[pb.Tensor, pb.Tensor]:
        return self.center(x), self.spread(x)


def run_network(x: NDArray[np.float32]) -> Array:
    return model.predict(x)


assert_type(model(np.ones((1, 2))), pb.Tensor)
assert_type(Network()(t), pb.Tensor)
assert_type(Network().apply({}, t), pb.Tensor)
assert_type(Encoder()(t), tuple[pb.Tensor, pb.Tensor])
assert_type(pb.clone_model(Network()).hidden(t), pb.Tensor)
x = pb.input([2])
hidden = pb.layers.dense(3)(x)
skipping = pb.model(x, pb.layers.concatenate()([x, hidden]))
assert_type(skipping(np.ones((1, 2))), pb.Tensor)
assert_type(pb.layers.dense(1)(x * 2.0 + x[:, :1]), SymbolicTensor)
pb.model(x, pb.relu(hidden))
pb.model([x], [pb.concat([x, hidden], axis=1), np.tanh(np.mean(hidden, axis=1, keepdims=True))])
first, second = pb.model(x, [hidden, pb.layers.dense(1)(hidden)])(np.ones((1, 2)))
by_name = pb.model({"x": x}, {"y": hidden})({"x": np.ones((1, 2))})["y"]
images = np.ones((1, 2, 2, 3))
images = pb.layers.rescaling(1 / 255)(images)
losses: list[float] = history.history["loss"]
assert_type(Network().name, str)
