"""Mistakes that mypy --strict and pyright report: on every line that is marked, and on no other.

The marks are mypy's own: where it finds no error of that kind, it reports that the mark is not used.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import pullback as pb

t = pb.tensor([1.0, 2.0])
w = pb.variable([1.0, 2.0])

# ---- names

w.tnah()  # type: ignore[attr-defined]
pb.typo  # type: ignore[attr-defined]
pb.linalg.slove(t, t)  # type: ignore[attr-defined]
pb.losses.mean_square_error(t, t)  # type: ignore[attr-defined]
t.stop_gradient()  # type: ignore[attr-defined]
t.cofactors()  # type: ignore[attr-defined]

# ---- arguments of ops and methods

pb.exp("text")  # type: ignore[call-overload]
pb.exp(None)  # type: ignore[call-overload]
pb.exp({"x": 1.0})  # type: ignore[call-overload]
pb.exp()  # type: ignore[call-overload]
pb.exp(t, t)  # type: ignore[call-overload]
pb.add(t)  # type: ignore[call-overload]
pb.sum(t, axes=0)  # type: ignore[call-overload]
pb.sum(t, axis="rows")  # type: ignore[arg-type]
pb.concat(t, t)  # type: ignore[call-overload]
t.sum(keep_dims=True)  # type: ignore[call-arg]
t.reshape("4")  # type: ignore[arg-type]
t + "text"  # type: ignore[operator]
t @ None  # type: ignore[operator]
t["x"]  # type: ignore[index]
t["x"] = 1.0  # type: ignore[index]
t < {}  # type: ignore[operator]
pb.conv2d(t, t, stride=2)  # type: ignore[call-overload]
pb.zeros([2], shape=[3])  # type: ignore[misc]
w.assign("text")  # type: ignore[arg-type]

# ---- results


def loss(x: pb.Tensor, scale: float = 1.0) -> pb.Tensor:
    return (x * x).sum() * scale


def misfit(w: pb.Tensor, x: pb.Tensor, y: pb.Tensor) -> pb.Tensor:
    return loss(w * x - y)


text: str = pb.exp(t)  # type: ignore[assignment]
array: pb.Tensor = pb.exp(np.ones(2))  # type: ignore[assignment]
number: int = t.shape  # type: ignore[assignment]
name: str = t.numpy()  # type: ignore[assignment]
word: str = t.item()  # type: ignore[assignment]
pb.moments(t).means  # type: ignore[attr-defined]

# ---- functions of functions

pb.grad(loss)(t, scale="2")  # type: ignore[call-overload]
pb.grad(loss)(t, 1.0, 2.0)  # type: ignore[call-overload]
pb.grad(loss)()  # type: ignore[call-overload]
pb.grad(loss)("a")  # type: ignore[call-overload]
pb.grad(loss)(None)  # type: ignore[call-overload]
pb.grad(lambda w, x, y: loss(w * x - y))(t, t, t) * 2  # type: ignore[operator]
by_first: pb.Tensor = pb.grad(misfit)(t, t, t)  # type: ignore[assignment]
both: pb.ValueAndGrad = pb.value_and_grad(misfit)(t, t, t)  # type: ignore[assignment, type-arg]
matrix: pb.Tensor = pb.jacobian(misfit)(t, t, t)  # type: ignore[assignment]
second: pb.Tensor = pb.hessian(misfit)(t, t, t)  # type: ignore[assignment]
pb.grad(misfit, argnums=0)(t, t)  # type: ignore[call-overload]
pb.grad(misfit, argnums=1)(t, t)  # type: ignore[call-overload]
pb.grad(misfit, argnums=(0, 1))(t, t, "y")  # type: ignore[call-overload]
pb.grad(misfit, argnums=(0, 1))(t, t, t).tnah()  # type: ignore[attr-defined]
tangents: str = pb.jvp(loss, [t], [t])[1]  # type: ignore[assignment]
pb.grad(3.0)  # type: ignore[call-overload]
pb.grad(loss, unconnected="ignore")  # type: ignore[call-overload]
slope: str = pb.grad(loss)(t)  # type: ignore[assignment]
pb.value_and_grad(loss)(t).gradient  # type: ignore[attr-defined]
pb.value_and_grad(loss)(t).numpy()  # type: ignore[attr-defined]
pb.grads(loss)(t)  # type: ignore[call-overload]
pb.variable_grads(loss)  # type: ignore[arg-type]
pb.variable_grads(lambda: loss(w)).gradients  # type: ignore[attr-defined]


@pb.compile
def step(x: pb.Tensor, n: int) -> pb.Tensor:
    return x * n


@pb.custom_gradient
def clipped(x: pb.Tensor) -> tuple[pb.Tensor, Callable[[pb.Tensor], pb.Tensor]]:
    return x, lambda dy: dy


@pb.custom_gradient  # type: ignore[arg-type]
def without_gradient(x: pb.Tensor) -> pb.Tensor:
    return x


pb.custom_grad(misfit)  # type: ignore[arg-type]


step(t)  # type: ignore[call-arg]
step(t, "2")  # type: ignore[arg-type]
step(t, 2).tnah()  # type: ignore[attr-defined]
clipped(t, t)  # type: ignore[call-arg]
clipped(t)[0].tnah()  # type: ignore[attr-defined]
pb.compile(step, thread=2)  # type: ignore[call-overload]
pb.compile(step, backend="lvm")  # type: ignore[call-overload]
pb.jacobian(loss, "backward")  # type: ignore[call-overload]
pb.vmap(loss)(t, scale="2")  # type: ignore[arg-type]
pb.checkpoint(loss)(t, rate=2.0)  # type: ignore[call-arg]

model = pb.sequential([pb.layers.dense(8)])
model.ftt(t)  # type: ignore[attr-defined]
model(t).tnah()  # type: ignore[attr-defined]
cost: str = model.predict(t)  # type: ignore[assignment]
model.fit()  # type: ignore[call-arg]
model.fit(t, t, epoch=3)  # type: ignore[call-arg]
pb.layers.dense(8, activatoin="relu")  # type: ignore[call-arg]
pb.layers.dense("8")  # type: ignore[arg-type]
model.compile("adam", 3)  # type: ignore[arg-type]
pb.load_model("model.safetensors").sumary()  # type: ignore[attr-defined]
pb.sequential(pb.layers.dense(8))  # type: ignore[arg-type]
pb.cond(True, 1.0, 2.0)  # type: ignore[arg-type]
pb.model(pb.input([2]), "y")  # type: ignore[arg-type]

optimizer = pb.train.adam(0.1)
pb.train.adam("fast")  # type: ignore[arg-type]
optimizer.minimize(loss(w))  # type: ignore[call-overload]
optimizer.minimize(lambda: loss(w)).item()  # type: ignore[attr-defined]
optimizer.apply_gradients(3)  # type: ignore[arg-type]
