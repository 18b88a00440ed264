"""The libraries that are compared, each behind the same small interface; an absent one is reported.

A peer turns a program of workloads.py and its data into a call without arguments that gives the value and the
gradients, in the way the library's own documentation writes it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import PackageNotFoundError, version
from types import SimpleNamespace
from typing import Any

import numpy as np

import pullback as pb

Call = Callable[[], tuple[Any, Any]]


class Peer:
    """``n`` has the library's functions under the names that the programs use."""

    name = ""
    n: Any

    @property
    def version(self) -> str:
        try:
            return version(self.name)
        except PackageNotFoundError:
            return "from source"

    def constant(self, x: Any) -> Any:
        return x

    def can(self, needs: tuple[str, ...]) -> bool:
        """Return whether the library has all these functions."""
        return all(hasattr(self.n, name) for name in needs)

    def call(self, f: Callable[..., Any], inputs: list[Any], constants: tuple[Any, ...]) -> Call:
        raise NotImplementedError


class Pullback(Peer):
    name = "pullback"
    n = SimpleNamespace(
        tanh=pb.tanh, sin=pb.sin, sum=pb.sum, mean=pb.mean, relu=pb.relu, sigmoid=pb.sigmoid, grad=pb.grad,
        log_sum_exp=pb.log_sum_exp, conv2d=lambda x, w: pb.conv2d(x, w, 1, "same"),
        max_pool=lambda x: pb.max_pool(x, 2, 2), gather=pb.gather,
    )  # fmt: skip

    def call(self, f: Callable[..., Any], inputs: list[Any], constants: tuple[Any, ...]) -> Call:
        value_and_grads = pb.value_and_grads(lambda *xs: f(self.n, *xs, *constants))
        return lambda: value_and_grads(inputs)


class Torch(Peer):
    name = "torch"

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.torch = torch
        conv2d, max_pool = torch.nn.functional.conv2d, torch.nn.functional.max_pool2d
        as_first = lambda x: x.permute(0, 3, 1, 2)  # a view: channels last is its quicker layout
        as_last = lambda x: x.permute(0, 2, 3, 1)
        self.n = SimpleNamespace(
            tanh=torch.tanh, sin=torch.sin, sum=torch.sum, mean=torch.mean, relu=torch.relu, sigmoid=torch.sigmoid,
            log_sum_exp=torch.logsumexp, grad=lambda f: lambda x: torch.autograd.grad(f(x), x, create_graph=True)[0],
            conv2d=lambda x, w: as_last(conv2d(as_first(x), w.permute(3, 2, 0, 1), padding="same")),
            max_pool=lambda x: as_last(max_pool(as_first(x), 2)), gather=lambda x, i: torch.index_select(x, 0, i),
        )  # fmt: skip

    def constant(self, x: Any) -> Any:
        return [self.constant(item) for item in x] if isinstance(x, list) else self.torch.as_tensor(np.array(x))

    def call(self, f: Callable[..., Any], inputs: list[Any], constants: tuple[Any, ...]) -> Call:
        gradients = self.torch.autograd.grad
        xs = [self.constant(x).requires_grad_() for x in inputs]
        cs = [self.constant(c) for c in constants]

        def call() -> tuple[Any, Any]:
            y = f(self.n, *xs, *cs)
            return y.detach(), gradients(y, xs)

        return call


class Autograd(Peer):
    name = "autograd"

    def __init__(self) -> None:
        import autograd
        import autograd.numpy as anp
        from autograd.scipy.special import expit, logsumexp

        self.autograd = autograd
        self.n = SimpleNamespace(
            tanh=anp.tanh, sin=anp.sin, sum=anp.sum, mean=anp.mean, relu=lambda x: anp.maximum(x, 0), sigmoid=expit,
            log_sum_exp=logsumexp, grad=autograd.grad, gather=lambda x, i: x[i],
        )  # fmt: skip

    def call(self, f: Callable[..., Any], inputs: list[Any], constants: tuple[Any, ...]) -> Call:
        every = tuple(range(len(inputs)))
        value_and_grads = self.autograd.value_and_grad(lambda *xs: f(self.n, *xs, *constants), argnum=every)
        return lambda: value_and_grads(*inputs)


class Jax(Peer):
    """Without jit: op by op, as the others."""

    name = "jax"

    def __init__(self) -> None:
        import jax
        import jax.numpy as jnp

        jax.config.update("jax_enable_x64", True)
        self.jax = jax
        layout, window = ("NHWC", "HWIO", "NHWC"), (1, 2, 2, 1)
        self.n = SimpleNamespace(
            tanh=jnp.tanh, sin=jnp.sin, sum=jnp.sum, mean=jnp.mean, relu=jax.nn.relu, sigmoid=jax.nn.sigmoid,
            log_sum_exp=jax.nn.logsumexp, grad=jax.grad, gather=lambda x, i: x[i],
            conv2d=lambda x, w: jax.lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=layout),
            max_pool=lambda x: jax.lax.reduce_window(x, -jnp.inf, jax.lax.max, window, window, "VALID"),
        )  # fmt: skip

    def constant(self, x: Any) -> Any:
        return [self.constant(item) for item in x] if isinstance(x, list) else self.jax.numpy.asarray(x)

    def call(self, f: Callable[..., Any], inputs: list[Any], constants: tuple[Any, ...]) -> Call:
        xs = [self.constant(x) for x in inputs]
        cs = [self.constant(c) for c in constants]
        every = tuple(range(len(xs)))
        value_and_grads = self.jax.value_and_grad(lambda *xs: f(self.n, *xs, *cs), argnums=every)
        return lambda: self.jax.block_until_ready(value_and_grads(*xs))


PEERS: dict[str, type[Peer]] = {peer.name: peer for peer in (Torch, Autograd, Jax)}


def find_installed(names: list[str]) -> tuple[list[Peer], list[str]]:
    """Return the peers that can be imported, and the names of those that cannot."""
    present: list[Peer] = []
    absent: list[str] = []
    for name in names:
        try:
            present.append(PEERS[name]())
        except ImportError:
            absent.append(name)
    return present, absent
