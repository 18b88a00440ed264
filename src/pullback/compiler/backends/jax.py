"""JAX as the library that runs a graph; the only module that imports it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from pullback.compiler.backends.library import Library
from pullback.compiler.ir.graph import Node
from pullback.compiler.ir.structured import Loop, RunBody, Structure, While
from pullback.numerics.windows import Windows


class Jax(Library):
    """JAX's functions; the whole graph is one ``jax.jit``, with 64-bit numbers."""

    name = "jax"

    def __init__(self, device: Any = None) -> None:
        import jax
        import jax.experimental
        import jax.numpy
        import jax.scipy.special

        super().__init__(device)
        self.jax, self.xp, self.special = jax, jax.numpy, jax.scipy.special
        self.error: Exception | None = None  # of a host op, in the call that is running
        self.place = jax.devices(device)[0] if isinstance(device, str) else device

    def enter(self, x: Any) -> Any:
        with self.jax.enable_x64(True):
            return self.jax.device_put(x, self.place) if self.place is not None else self.xp.asarray(x)

    def is_own(self, x: Any) -> bool:
        return isinstance(x, self.jax.Array)

    def prepare(self, run: Callable[..., Any]) -> Callable[..., Any]:
        compiled = self.jax.jit(run)

        def call(values: Sequence[Any]) -> Any:
            self.error = None
            try:
                with self.jax.enable_x64(True):
                    return self.jax.block_until_ready(compiled(values))
            except self.jax.errors.JaxRuntimeError:
                if self.error is None:
                    raise
                raise self.error from None  # what a host op raised, rather than JAX's account of it

        return call

    def call_host(self, evaluate: Callable[..., Any], results: dict[Any, Node]) -> Callable[..., Any]:
        likes = [self.jax.ShapeDtypeStruct(n.shape, n.dtype) for n in results.values()]

        def run_on_host(*xs: object) -> list[Any]:
            try:
                computed = evaluate(*map(np.asarray, xs))
            except Exception as error:
                self.error = error
                raise
            chosen = [computed if place is None else computed[place] for place in results]
            return [np.asarray(z, like.dtype) for z, like in zip(chosen, likes, strict=True)]

        def run(*xs: object) -> Any:
            # in order, and each time: it may be a random draw
            computed = self.jax.experimental.io_callback(run_on_host, likes, *xs, ordered=True)
            return computed[0] if None in results else dict(zip(results, computed, strict=True))

        return run

    def put(self, x: Any, index: Any, y: Any) -> Any:
        return x.at[index].set(y)

    def add_at(self, x: Any, index: Any, y: Any) -> Any:
        return x.at[index].add(y)

    def loop(self, step: Callable[[Any, Any], Any], first: Any, xs: Sequence[Any]) -> Any:
        def advance(z: Any, row: Any) -> Any:
            z = step(z, row)
            return z, z

        _, rest = self.jax.lax.scan(advance, first, list(xs))
        return self.concatenate([first[None], rest])

    def run_structure(self, data: Structure, run: RunBody, values: Sequence[Any], runs_all: bool) -> list[Any]:
        lax = self.jax.lax
        if not runs_all and isinstance(data, Loop):  # callbacks keep their order step by step
            return super().run_structure(data, run, values, runs_all)
        if isinstance(data, While):
            constants = values[: data.constants]
            carry = lax.while_loop(
                lambda carry: run(data.condition, [*constants, *carry])[0],
                lambda carry: list(run(data.body, [*constants, *carry])),
                list(values[data.constants :]),
            )
            return list(carry)
        if isinstance(data, Loop):
            constants, count = values[: data.constants], data.carry

            def advance(carry: Any, xs: Any) -> Any:
                results = run(data.body, [*constants, *carry, *xs])
                return list(results[:count]), list(results[count:])

            begin, xs = list(values[data.constants : data.xs]), list(values[data.xs :])
            carry, ys = lax.scan(advance, begin, xs, data.length, data.reverse)
            return [*carry, *ys]
        branches = [lambda operands, body=body: list(run(body, operands)) for body in data.bodies]
        return list(lax.switch(values[0], branches, list(values[1:])))

    def sort_positions(self, x: Any, axis: int, descending: bool) -> Any:
        return self.xp.argsort(x, axis, descending=descending)

    def correlate(self, x: Any, filter: Any, windows: Windows) -> Any:
        space = "DHW"[-len(windows.size) :]
        pads = [
            (before, reach - before - length)
            for before, reach, length in zip(windows.before, windows.reach, x.shape[1:-1], strict=True)
        ]
        return self.jax.lax.conv_general_dilated(
            x, filter, windows.strides, pads, rhs_dilation=windows.dilations,
            dimension_numbers=(f"N{space}C", f"{space}IO", f"N{space}C"), precision="highest",
        )  # fmt: skip

    def pull_back(self, f: Callable[[Any], Any], x: Any, cotangent: Any) -> Any:
        """Return the cotangent of ``x`` for one of ``f(x)``."""
        return self.jax.vjp(f, x)[1](cotangent)[0]
