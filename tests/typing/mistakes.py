"""Mistakes that mypy --strict and pyright report: on every line that is marked, and on no other."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import pullback as pb

t = pb.tensor([1.0, 2.0])
w = pb.variable([1.0, 2.0])

# ---- names

w.tnah()  # error
pb.typo  # error
pb.linalg.slove(t, t)  # error
pb.losses.mean_square_error(t, t)  # error
t.stop_gradient()  # error
t.cofactors()  # error

# ---- arguments of ops and methods

pb.exp("text")  # error
pb.exp(None)  # error
pb.exp({"x": 1.0})  # error
pb.exp()  # error
pb.exp(t, t)  # error
pb.add(t)  # error
pb.sum(t, axes=0)  # error
pb.sum(t, axis="rows")  # error
pb.concat(t, t)  # error
t.sum(keep_dims=True)  # error
t.reshape("4")  # error
t + "text"  # error
t @ None  # error
t < {}  # error
pb.conv2d(t, t, stride=2)  # error
pb.zeros([2], shape=[3])  # error
w.assign("text")  # error

# ---- results


def loss(x: pb.Tensor, scale: float = 1.0) -> pb.Tensor:
    return (x * x).sum() * scale


def misfit(w: pb.Tensor, x: pb.Tensor, y: pb.Tensor) -> pb.Tensor:
    return loss(w * x - y)


text: str = pb.exp(t)  # error
array: pb.Tensor = pb.exp(np.ones(2))  # error
number: int = t.shape  # error
name: str = t.numpy()  # error
word: str = t.item()  # error
pb.moments(t).means  # error

# ---- functions of functions

pb.grad(loss)(t, scale="2")  # error
pb.grad(loss)(t, 1.0, 2.0)  # error
pb.grad(loss)()  # error
pb.grad(loss)("a")  # error
pb.grad(loss)(None)  # error
pb.grad(lambda w, x, y: loss(w * x - y))(t, t, t) * 2  # error
by_first: pb.Tensor = pb.grad(misfit)(t, t, t)  # error
both: pb.ValueAndGrad = pb.value_and_grad(misfit)(t, t, t)  # error
matrix: pb.Tensor = pb.jacobian(misfit)(t, t, t)  # error
second: pb.Tensor = pb.hessian(misfit)(t, t, t)  # error
pb.grad(misfit, argnums=0)(t, t)  # error
tangents: str = pb.jvp(loss, [t], [t])[1]  # error
pb.grad(3.0)  # error
pb.grad(loss, unconnected="ignore")  # error
slope: str = pb.grad(loss)(t)  # error
pb.value_and_grad(loss)(t).gradient  # error
pb.grads(loss)(t)  # error
pb.variable_grads(loss)  # error
pb.variable_grads(lambda: loss(w)).gradients  # error


@pb.compile
def step(x: pb.Tensor, n: int) -> pb.Tensor:
    return x * n


@pb.custom_gradient
def clipped(x: pb.Tensor) -> tuple[pb.Tensor, Callable[[pb.Tensor], pb.Tensor]]:
    return x, lambda dy: dy


@pb.custom_gradient  # error
def without_gradient(x: pb.Tensor) -> pb.Tensor:
    return x


step(t)  # error
step(t, "2")  # error
step(t, 2).tnah()  # error
clipped(t, t)  # error
clipped(t)[0].tnah()  # error
pb.compile(step, thread=2)  # error
pb.compile(step, backend="lvm")  # error
pb.jacobian(loss, "backward")  # error
pb.vmap(loss)(t, scale="2")  # error
pb.checkpoint(loss)(t, rate=2.0)  # error

model = pb.sequential([pb.layers.dense(8)])
model.ftt(t)  # error
model.fit()  # error
model.compile("adam", 3)  # error
pb.load_model("model.safetensors").sumary()  # error
pb.sequential(pb.layers.dense(8))  # error
pb.cond(True, 1.0, 2.0)  # error
